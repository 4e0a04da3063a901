package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

// backupForm is how backups are named, by their moment (UTC): in the order of time.
const backupForm = "forge-20060102T150405Z.db"

// A Backup is one copy of the database.
type Backup struct {
	Path string
	At   time.Time
	Size int64 // bytes
}

// Backups are those in a directory, the newest first.
func Backups(dir string) ([]Backup, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Backup
	for _, e := range list {
		at, bad := time.Parse(backupForm, e.Name())
		info, gone := e.Info()
		if bad == nil && gone == nil {
			out = append(out, Backup{Path: filepath.Join(dir, e.Name()), At: at, Size: info.Size()})
		}
	}
	slices.SortFunc(out, func(a, b Backup) int { return cmp.Compare(b.At.Unix(), a.At.Unix()) })
	return out, err
}

// BackUp copies the database into the directory of backups, and deletes older copies
// than are kept.
func BackUp(ctx context.Context, db *store.DB, cfg settings.Config, now time.Time) (string, error) {
	if err := os.MkdirAll(cfg.BackupDir, 0o700); err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	removeDrafts(cfg.BackupDir)
	if info, err := os.Stat(cfg.DatabaseURL.Reveal()); err == nil {
		if free, err := freeDisk(cfg.BackupDir); err == nil && free < info.Size()+leastDisk {
			return "", fmt.Errorf("back up: %s has %s free, and the copy takes %s: make room, or set backup_dir", cfg.BackupDir, size(free), size(info.Size()))
		}
	}
	path := filepath.Join(cfg.BackupDir, now.UTC().Format(backupForm))
	if err := db.Backup(ctx, path); err != nil {
		return "", err
	}
	list, err := Backups(cfg.BackupDir)
	for i, b := range list {
		if i >= cfg.BackupKeep {
			err = errors.Join(err, os.Remove(b.Path))
		}
	}
	if err != nil {
		return path, fmt.Errorf("delete old backups: %w", err)
	}
	return path, nil
}

// removeDrafts removes what a process that died had copied so far: each would take as much
// room as the database. One that is being written changes all the time.
func removeDrafts(dir string) {
	drafts, err := filepath.Glob(filepath.Join(dir, "forge-*.db.new*"))
	if err != nil {
		return // unreachable: the pattern is right
	}
	for _, path := range drafts {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path) // it is tried again with the next backup
		}
	}
}

// ofFile reports whether the database is a file, which Forge backs up itself.
func ofFile(cfg settings.Config) bool {
	return !strings.HasPrefix(cfg.DatabaseURL.Reveal(), "postgres")
}

// keepBackups backs the database up whenever the newest copy is old enough.
func (s *Server) keepBackups(ctx context.Context) {
	every := s.config.BackupEvery
	for {
		wait := time.Duration(0)
		if list, err := Backups(s.config.BackupDir); err == nil && len(list) > 0 {
			wait = every - s.now().Sub(list[0].At)
		}
		timer := time.NewTimer(max(min(wait, every), time.Second))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if _, err := BackUp(ctx, s.DB, s.config, s.now()); err != nil && ctx.Err() == nil {
			s.log.Error("back up the database", "error", err)
			select {
			case <-time.After(every / 10): // the cause stays for a while
			case <-ctx.Done():
			}
		}
	}
}

// backedUp tells how old the newest backup is.
func (d *doctor) backedUp() {
	c := &d.o.Config
	list, err := Backups(c.BackupDir)
	if err == nil && list == nil {
		err = mayWrite(c.BackupDir)
	}
	switch {
	case c.BackupEvery == 0:
		d.say("database", GradeWarn, "set backup_every, unless something else copies the file", "no backups are made")
	case err != nil:
		d.say("database", GradeWarn, "give it to the server's user, or set backup_dir", "backups cannot be kept: %v", err)
	case len(list) == 0:
		d.ok("database", "no backup yet: the server makes one every %s in %s", c.BackupEvery, c.BackupDir)
	case time.Since(list[0].At) > 3*c.BackupEvery:
		d.say("database", GradeWarn, "is a server running, and is there room? see its log", "the newest backup, %s, is %s old", list[0].Path, age(time.Since(list[0].At)))
	default:
		d.ok("database", "newest backup %s, %s old", list[0].Path, age(time.Since(list[0].At)))
	}
}

// age is how long ago something was, for people.
func age(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
