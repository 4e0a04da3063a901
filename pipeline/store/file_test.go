package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Covers reliability 11: a database that is not sound is refused with one clear
// message, and nothing is changed.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		says    string
	}{
		{"empty file", func(t *testing.T, path string) { write(t, path, nil) }, "the file is empty"},
		{"emptied, log still there", func(t *testing.T, path string) {
			makeFile(t, path)
			write(t, path, nil)
			write(t, path+"-wal", []byte("something"))
		}, "the file is empty"},
		{"gone, log still there", func(t *testing.T, path string) { write(t, path+"-wal", []byte("something")) }, "the file is missing but"},
		{"a link to nothing", func(t *testing.T, path string) { must(t, os.Symlink(path+".moved", path)) }, "a link to a file that is missing"},
		{"gone after a server ran", func(t *testing.T, path string) { write(t, path+".lock", []byte("4711\n")) }, "a server ran on it"},
		{"gone, its copy still there", func(t *testing.T, path string) { write(t, path+rescued, []byte("something")) }, "a server ran on it"},
		{"directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, "it is a directory"},
		{"text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("hello world\n"), 1000)) }, "not an SQLite database"},
		{"another program's", func(t *testing.T, path string) { change(t, path, `CREATE TABLE x (a); PRAGMA application_id = 66`) }, "of another program"},
		{"another program's without id", func(t *testing.T, path string) { change(t, path, `CREATE TABLE x (a)`) }, "of another program"},
		{"newer", func(t *testing.T, path string) {
			makeFile(t, path)
			change(t, path, `INSERT INTO forge_schema (version_id, is_applied) VALUES (900, 1)`)
		}, "a newer Forge wrote it (schema 900"},
		{"no schema's record", func(t *testing.T, path string) { makeFile(t, path); change(t, path, `DELETE FROM forge_schema`) },
			"the record of its schema is gone"},
		{"no schema at all", func(t *testing.T, path string) { makeFile(t, path); change(t, path, `DROP TABLE forge_schema`) }, "forge_schema"},
		{"truncated", func(t *testing.T, path string) { makeFile(t, path); must(t, os.Truncate(path, 3*pageSize)) }, "the file is damaged"},
		{"a page of noise", func(t *testing.T, path string) {
			makeFile(t, path)
			overwrite(t, path, 4*pageSize, bytes.Repeat([]byte{0xA5}, pageSize))
		}, "the file is damaged"},
		{"a page of zeros", func(t *testing.T, path string) {
			makeFile(t, path)
			overwrite(t, path, 4*pageSize, make([]byte, pageSize))
		}, "the file is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forge.db")
			c.prepare(t, path)
			before, _ := os.ReadFile(path)
			d, err := Open(t.Context(), path, quiet())
			if err == nil {
				d.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q and the path", err, c.says)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ address, says string }{
		{"", "no address"},
		{"mysql://me:hunter2@host/db", `"mysql" is not a kind of database`},
		{"sqlite:", "no file's path"},
		{":memory:", "no file's path"},
		{filepath.Join(dir, "none", "forge.db"), "no such file or directory"},
		{"postgres://me:hunter2@host:none/db", "the URL cannot be read"},
		{"postgres://me:hunter2@127.0.0.1:1/db?connect_timeout=1", "postgres://127.0.0.1:1/db"},
	} {
		d, err := Open(t.Context(), c.address, quiet())
		if err == nil {
			d.Close()
			t.Errorf("%q was opened", c.address)
		} else if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %q, want %q and no password", c.address, err, c.says)
		}
	}
	odd := filepath.Join(dir, "a b%20?c#d.db")
	for _, address := range []string{odd, "sqlite:" + odd, "sqlite://" + odd} {
		d, err := Open(t.Context(), address, quiet())
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		if d.Pool() != nil || d.SQL() == nil {
			t.Errorf("%q: pool %v, writer %v", address, d.Pool(), d.SQL())
		}
		must(t, d.Close())
	}
	info, err := os.Stat(odd)
	must(t, err)
	want(t, "mode", info.Mode().Perm(), 0o600)
}

func makeFile(t *testing.T, path string) {
	t.Helper()
	d, err := Open(t.Context(), path, quiet())
	must(t, err)
	begin(t, d, 5)
	must(t, d.Close())
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o600))
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(data, at)
	must(t, errors.Join(err, f.Close()))
}

// change runs a statement on a file as another program would.
func change(t *testing.T, path, statement string) {
	t.Helper()
	db, err := connect(path, "mode=rwc")
	must(t, err)
	_, err = db.Exec(statement)
	must(t, errors.Join(err, db.Close()))
}

// Covers reliability 16: a second server is refused, a command is not.
func TestOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forge.db")
	first, err := Open(t.Context(), path, quiet())
	must(t, err)
	must(t, first.Own())
	must(t, first.Own())
	second := openPath(t, path)
	run := begin(t, second, 5)
	if run.ID != 1 {
		t.Errorf("run %d", run.ID)
	}
	err = second.Own()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process id %d is running on it: stop that one first", os.Getpid())) {
		t.Errorf("second server: %v", err)
	}
	must(t, first.Close())
	must(t, second.Own())
}

// A child that is being started has copies of all descriptors for a moment. They hold no lock
// that this process has let go of.
func TestUnlockDespiteCopies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forge.db")
	f, err := tryLock(path)
	must(t, err)
	held, err := syscall.Dup(int(f.Fd()))
	must(t, err)
	defer syscall.Close(held) //nolint:errcheck // it holds nothing
	must(t, unlock(f))
	d := openPath(t, path)
	must(t, d.Own())
	for _, f := range []*os.File{d.file, d.lock} {
		held, err := syscall.Dup(int(f.Fd()))
		must(t, err)
		defer syscall.Close(held) //nolint:errcheck // it holds nothing
	}
	must(t, d.Close())
	must(t, openPath(t, path).Own())
}

// Covers reliability 16: no second server comes in by another name of the file, or
// because the file of the lock was deleted.
func TestOwnByAnotherName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		link func(t *testing.T, path string) string
		says string
	}{
		{"symbolic link", func(t *testing.T, path string) string {
			other := filepath.Join(t.TempDir(), "other.db")
			must(t, os.Symlink(path, other))
			return other
		}, "is running on it"},
		{"hard link", func(t *testing.T, path string) string {
			must(t, os.Link(path, path+".same"))
			return path + ".same"
		}, "has 2 names"},
		{"without the lock", func(t *testing.T, path string) string {
			must(t, os.Remove(path+".lock"))
			return path
		}, "is running on it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forge.db")
			first := openPath(t, path)
			must(t, first.Own())
			if err := openPath(t, c.link(t, path)).Own(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("a second server: %v", err)
			}
		})
	}
}

// A file that is deleted or replaced under a server takes nothing in any more, what was
// in it is copied, and no server begins anew in its place.
func TestFileIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		take func(t *testing.T, path string)
		says string // of a start afterwards
	}{
		{"deleted", func(t *testing.T, path string) {
			must(t, errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm")))
		}, "a server ran on it"},
		{"moved", func(t *testing.T, path string) { must(t, os.Rename(path, path+".old")) }, "the file is missing"},
		{"replaced", func(t *testing.T, path string) {
			write(t, path+".other", []byte("x"))
			must(t, os.Rename(path+".other", path))
		}, "another program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forge.db")
			d := openPath(t, path)
			must(t, d.Own())
			run := begin(t, d, 5)
			if got, err := d.Rescue(t.Context()); got != "" || err != nil {
				t.Fatalf("rescued though nothing happened: %q, %v", got, err)
			}
			c.take(t, path)
			var gone *errGone
			if err := d.Writable(t.Context()); !errors.As(err, &gone) {
				t.Errorf("writable: %v", err)
			}
			if err := d.KeepDeliveries(t.Context(), []record.Delivery{{GUID: "g", Event: "ping", Received: now}}); !errors.As(err, &gone) {
				t.Errorf("a delivery is kept: %v", err)
			}
			for range 2 {
				got, err := d.Rescue(t.Context())
				if got != path+rescued || err != nil {
					t.Fatalf("rescued to %q, %v", got, err)
				}
			}
			if _, err := openPath(t, path+rescued).Load(t.Context(), run.ID); err != nil {
				t.Errorf("the copy: %v", err)
			}
			killed := filepath.Join(t.TempDir(), "forge.db") // and the copy moved to the place, beside the log that was left
			for from, to := range map[string]string{path + rescued: killed, path + "-wal": killed + "-wal"} {
				if content, err := os.ReadFile(from); err == nil {
					write(t, to, content)
				}
			}
			if _, err := openPath(t, killed).Load(t.Context(), run.ID); err != nil {
				t.Errorf("the copy in the database's place: %v", err)
			}
			if _, err := Open(t.Context(), path, quiet()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("a start afterwards: %v", err)
			}
		})
	}
}

func TestOwnRefusesASchemaThatWentOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forge.db")
	d := openPath(t, path)
	change(t, path, `INSERT INTO forge_schema (version_id, is_applied) VALUES (900, 1)`)
	if err := d.Own(); err == nil || !strings.Contains(err.Error(), "a newer Forge") {
		t.Errorf("got %v", err)
	}
	if err := d.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "a newer Forge") {
		t.Errorf("Check: %v", err)
	}
}

// A new file is made by one of those who want it.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	onAddresses(t, func(t *testing.T, address string, _ dialect) {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				d, err := Open(context.Background(), address, quiet())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := d.CreateRun(context.Background(), fmt.Sprint(i), startOf(i+1), now, trace, nil); err != nil {
					t.Error(err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d, err := Open(t.Context(), address, quiet())
		must(t, err)
		closeAfter(t, d)
		want(t, "runs", count(t, d, `SELECT count(*) FROM runs`), 6)
		must(t, d.Check(t.Context()))
	})
}

// What an interrupted start left behind does not matter.
func TestCreateOverLeftovers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forge.db")
	for _, suffix := range []string{".new", ".new-journal", ".new-wal"} {
		write(t, path+suffix, []byte("half"))
	}
	d := openPath(t, path)
	must(t, d.Check(t.Context()))
	left, err := filepath.Glob(path + ".new*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// Every connection has its settings, not only the first.
func TestSettings(t *testing.T) {
	t.Parallel()
	d := openFile(t)
	for _, c := range []struct {
		db            *sql.DB
		pragma, value string
	}{
		{d.writer, "journal_mode", "wal"}, {d.writer, "synchronous", "2"}, {d.writer, "foreign_keys", "1"}, {d.writer, "busy_timeout", "10000"},
		{d.writer, "page_size", fmt.Sprint(pageSize)}, {d.reader, "query_only", "1"}, {d.reader, "busy_timeout", "10000"},
	} {
		var conns []*sql.Conn
		for range min(3, max(1, c.db.Stats().MaxOpenConnections)) {
			conn, err := c.db.Conn(t.Context())
			must(t, err)
			conns = append(conns, conn)
			var got string
			must(t, conn.QueryRowContext(t.Context(), "PRAGMA "+c.pragma).Scan(&got))
			want(t, c.pragma, got, c.value)
		}
		for _, conn := range conns {
			must(t, conn.Close())
		}
	}
}

// The states of the schema are those of the domain.
func TestStatesAreChecked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 0)
		for _, s := range []pipeline.State{pipeline.StateRunning, pipeline.StateWaiting, pipeline.StateStopped, pipeline.StateVerified,
			pipeline.StateAccepted, pipeline.StateCancelled, pipeline.StateFailed, pipeline.StateSkipped} {
			if _, err := d.SQL().Exec(`UPDATE runs SET state = $1 WHERE id = $2`, string(s), run.ID); err != nil {
				t.Errorf("%s: %v", s, err)
			}
			var alive bool
			must(t, d.SQL().QueryRow(`SELECT `+active+` FROM runs WHERE id = $1`, run.ID).Scan(&alive))
			want(t, string(s)+" is active", alive, !s.Ended())
		}
		if _, err := d.SQL().Exec(`UPDATE runs SET state = 'dreaming'`); err == nil {
			t.Error("a state that does not exist was stored")
		}
	})
}

// Covers reliability 1: what was committed survives a kill at any moment, and
// the file opens again. The child is this test, run as another process.
func TestKill(t *testing.T) {
	t.Parallel()
	if path := os.Getenv("FORGE_TEST_KILL"); path != "" {
		appendUntilKilled(path)
		return
	}
	path := filepath.Join(t.TempDir(), "forge.db")
	acked, rounds, least := map[string]bool{}, 2, 0
	if thorough {
		rounds = 8
	}
	for round := range rounds {
		least += 1 + 7*round
		for line := range killAfter(t, path, 1+7*round) {
			acked[line] = true
		}
		d, err := Open(t.Context(), path, quiet())
		if err != nil {
			t.Fatalf("after kill %d: %v", round, err)
		}
		must(t, d.Own())
		must(t, d.Check(t.Context()))
		must(t, d.Close())
	}
	d := openPath(t, path)
	run, err := d.Load(t.Context(), 1)
	must(t, err)
	events, err := d.Events(t.Context(), 1, 0)
	must(t, err)
	have := map[string]bool{}
	for _, e := range events {
		have[e.ID] = true
	}
	for id := range acked {
		if !have[id] {
			t.Errorf("event %s was acknowledged and is lost", id)
		}
	}
	if len(acked) < least || run.Seq != int64(len(events)) {
		t.Errorf("%d events acknowledged, seq %d, %d events", len(acked), run.Seq, len(events))
	}
}

// killAfter starts a child that appends events and says so, kills it after so
// many, and returns what it said.
func killAfter(t *testing.T, path string, lines int) map[string]bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "FORGE_TEST_KILL="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	acked := map[string]bool{}
	var buf bytes.Buffer
	for chunk := make([]byte, 4096); ; {
		n, err := out.Read(chunk)
		buf.Write(chunk[:n])
		if bytes.Count(buf.Bytes(), []byte("\n")) >= lines {
			cmd.Process.Kill() // again and again until the pipe is empty
		}
		if err != nil {
			break
		}
	}
	cmd.Wait()
	said := strings.Split(buf.String(), "\n")
	for _, line := range said[:len(said)-1] {
		acked[line] = true
	}
	if len(acked) < lines {
		t.Fatalf("the child said %q", buf.String())
	}
	return acked
}

func appendUntilKilled(path string) {
	ctx := context.Background()
	d, err := Open(ctx, path, quiet())
	if err == nil {
		err = d.Own()
	}
	var run *pipeline.Run
	if err == nil {
		run, err = d.CreateRun(ctx, "start", startOf(5), now, trace, nil)
	}
	for n := 0; err == nil; n++ {
		id := fmt.Sprintf("%d/%d", os.Getpid(), n)
		if err = d.Append(ctx, run, []pipeline.Event{ev(id, pipeline.EventRecalled, n, pipeline.Data{Note: strings.Repeat("x", 500)})}, nil); err == nil {
			fmt.Println(id)
		}
	}
	fmt.Println(err, time.Now())
}

// Covers R8: times are compared as texts in the database, also those that the queue writes
// in the server's own zone. East of Greenwich a job would be due hours later.
func TestTimesAreUTC(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := connect(path, createOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	at := time.Date(2026, 11, 29, 6, 57, 45, 34_946_444, time.FixedZone("IST", 19_800))
	var written string
	if err := db.QueryRowContext(t.Context(), "SELECT CAST(? AS TEXT)", at).Scan(&written); err != nil || written != "2026-11-29 01:27:45.034946444+00:00" {
		t.Errorf("%s is written as %q, %v", at, written, err)
	}
}
