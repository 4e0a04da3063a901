package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Git's modes of tree entries.
const (
	modeFile = "100644"
	modeExec = "100755"
	modeLink = "120000"
	modeSub  = "160000"
)

// entry is one file of the checked-out commit, and how it looked on disk when it
// was last known to be the same.
type entry struct {
	mode string
	oid  string
	size int64
	seen stamp
}

// stamp tells whether a file was touched. The zero stamp matches nothing.
type stamp struct {
	ino          uint64
	size         int64
	mtime, ctime syscall.Timespec
}

func stampOf(info fs.FileInfo) stamp {
	st := info.Sys().(*syscall.Stat_t)
	mtime, ctime := timesOf(st)
	return stamp{ino: st.Ino, size: st.Size, mtime: mtime, ctime: ctime}
}

// readManifest lists a commit's files, and refuses one that would not fit: entries
// are counted while git prints them, so that a tree of ten billion files costs
// nothing.
func (t *tree) readManifest(ctx context.Context, sha string) (map[string]entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := t.git.command(ctx, gitCall{args: []string{"ls-tree", "-r", "-l", "-z", "--full-tree", sha}})
	errs := &limitWriter{max: 4 << 10}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	manifest, err := t.parseManifest(bufio.NewReaderSize(out, 64<<10))
	if err != nil {
		cancel()
		err = unfit(err)
	}
	if waitErr := cmd.Wait(); err == nil && waitErr != nil {
		err = &gitError{command: "ls-tree", code: cmd.ProcessState.ExitCode(), stderr: errs.buf.String()}
	}
	return manifest, err
}

// unfit is the fault of a commit that cannot be checked out for what is in it: trying again does not
// help. What git broke off in the middle says nothing about the commit.
func unfit(why error) error {
	if errors.Is(why, io.ErrUnexpectedEOF) {
		return why
	}
	return &pipeline.Fault{Class: pipeline.FaultEnvironment, Final: true, Message: fmt.Sprintf("the commit cannot be checked out: %v", why)}
}

// parseManifest reads rows of "mode type oid size<TAB>path<NUL>".
func (t *tree) parseManifest(r *bufio.Reader) (map[string]entry, error) {
	manifest := map[string]entry{}
	var total int64
	for {
		row, err := readRow(r)
		if err == io.EOF {
			return manifest, nil
		}
		if err != nil {
			return nil, err
		}
		meta, name, _ := strings.Cut(row, "\t")
		field := strings.Fields(meta)
		if len(field) != 4 || !isOID(field[2]) {
			return nil, fmt.Errorf("git ls-tree printed %q", text.ClipBytes(row, 200))
		}
		if len(manifest) >= t.limits.TreeFiles {
			return nil, fmt.Errorf("the commit has more than %d files", t.limits.TreeFiles)
		}
		if err := checkPath(name); err != nil {
			return nil, err
		}
		if strings.Count(name, "/") > maxDepth {
			return nil, fmt.Errorf("%.100s… is nested more than %d deep", name, maxDepth)
		}
		e := entry{mode: field[0], oid: field[2]}
		switch e.mode {
		case modeSub:
		case modeLink, modeFile, modeExec, "100664":
			if e.size, err = strconv.ParseInt(field[3], 10, 64); err != nil {
				return nil, fmt.Errorf("git ls-tree printed %q", text.ClipBytes(row, 200))
			}
		default:
			return nil, fmt.Errorf("%s has mode %s, which is no file's", name, e.mode)
		}
		if total += e.size; total > t.limits.TreeBytes {
			return nil, fmt.Errorf("the commit has more than %d bytes", t.limits.TreeBytes)
		}
		manifest[name] = e
	}
}

// readRow reads up to a NUL byte, within 8 KiB.
func readRow(r *bufio.Reader) (string, error) {
	row, err := r.ReadSlice(0)
	switch {
	case err == io.EOF && len(row) == 0:
		return "", io.EOF
	case err == io.EOF:
		return "", io.ErrUnexpectedEOF
	case err == bufio.ErrBufferFull || len(row) > 8<<10:
		return "", fmt.Errorf("it has a path of more than 8 KiB, %.100s…", row)
	case err != nil:
		return "", err
	}
	return string(row[:len(row)-1]), nil
}

// checkout makes the tree be the commit.
func (t *tree) checkout(ctx context.Context, sha string) error {
	if err := checkOIDs(sha); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	manifest, err := t.readManifest(ctx, sha)
	if err != nil {
		return fmt.Errorf("checkout %s: %w", sha, err)
	}
	old := t.manifest
	t.commit, t.manifest = "", nil
	have, err := t.sweep(ctx, manifest, old)
	if errors.Is(err, fs.ErrPermission) { // a command took permissions away
		t.unlock(".", 0)
		have, err = t.sweep(ctx, manifest, old)
	}
	if err != nil {
		return fmt.Errorf("checkout %s: %w", sha, err)
	}
	if err := t.fill(ctx, manifest, have); err != nil {
		return fmt.Errorf("checkout %s: %w", sha, err)
	}
	t.commit, t.manifest = sha, manifest
	return nil
}

// sweep removes what is not the commit's, and returns what is there already.
func (t *tree) sweep(ctx context.Context, manifest, old map[string]entry) (map[string]bool, error) {
	dirs := dirsOf(manifest)
	have := map[string]bool{}
	now := time.Now()
	var gone []string
	err := t.walk(ctx, ".", func(name string, info fs.FileInfo) error {
		want, wanted := manifest[name]
		switch {
		case info.IsDir() && (dirs[name] || wanted && want.mode == modeSub):
			if wanted { // a submodule's directory stays empty
				gone = append(gone, children(t, name)...)
				return fs.SkipDir
			}
			return nil
		case wanted && want.mode != modeSub && !info.IsDir():
			want.seen = old[name].seen
			if old[name].oid != want.oid {
				want.seen = stamp{}
			}
			untouched := want.seen == stampOf(info)
			if same, err := t.same(name, info, &want); err == nil && same {
				if !untouched && want.mode != modeLink { // a command may have set its times, which build tools go by
					want.seen = stamp{}
					if err := t.root.Chtimes(name, now, now); err != nil {
						return err
					}
				}
				manifest[name], have[name] = want, true
				return nil
			}
		}
		gone = append(gone, name)
		return fs.SkipDir
	})
	if err != nil {
		return nil, err
	}
	for _, name := range gone {
		if err := t.clear(name); err != nil {
			return nil, err
		}
	}
	return have, nil
}

func children(t *tree, dir string) []string {
	var names []string
	entries, _ := t.readDir(dir)
	for _, e := range entries {
		names = append(names, path.Join(dir, e.Name()))
	}
	return names
}

// dirsOf are all directories that hold the manifest's files.
func dirsOf(manifest map[string]entry) map[string]bool {
	dirs := map[string]bool{}
	for name := range manifest {
		for dir := path.Dir(name); dir != "." && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return dirs
}

// same reports whether a file on disk is the manifest's. What was seen unchanged
// before, with the same stamp, is not read again.
func (t *tree) same(name string, info fs.FileInfo, want *entry) (bool, error) {
	if want.mode == modeLink {
		if info.Mode()&fs.ModeSymlink == 0 {
			return false, nil
		}
		target, err := t.root.Readlink(name)
		return err == nil && blobName(len(want.oid), []byte(target)) == want.oid, err
	}
	if !info.Mode().IsRegular() || info.Size() != want.size || (info.Mode()&0o100 != 0) != (want.mode == modeExec) {
		return false, nil
	}
	if info.Mode()&0o400 == 0 || info.Sys().(*syscall.Stat_t).Nlink > 1 {
		return false, nil
	}
	if want.seen == stampOf(info) {
		return true, nil
	}
	content, info, err := t.safeRead(name, want.size)
	if err != nil || blobName(len(want.oid), content) != want.oid {
		return false, err
	}
	// A file that was touched just now could be touched again without a new stamp.
	if at := stampOf(info); time.Since(time.Unix(at.ctime.Unix())) > time.Second {
		want.seen = at
	}
	return true, nil
}

// blobName is git's name for a blob; n is the length of names in the repository.
func blobName(n int, content []byte) string {
	var h hash.Hash
	if n == 64 {
		h = sha256.New()
	} else {
		h = sha1.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// fill writes the files that are missing, out of one git process.
func (t *tree) fill(ctx context.Context, manifest map[string]entry, have map[string]bool) error {
	var missing []string
	for name, e := range manifest {
		switch {
		case have[name]:
		case e.mode == modeSub:
			if err := t.parents(name + "/"); err != nil {
				return err
			}
		default:
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ask bytes.Buffer
	for _, name := range missing {
		ask.WriteString(manifest[name].oid)
		ask.WriteByte('\n')
	}
	cmd := t.git.command(ctx, gitCall{args: []string{"cat-file", "--batch", "--buffer"}, stdin: &ask})
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = t.fillFrom(ctx, bufio.NewReaderSize(out, 256<<10), missing, manifest)
	if err != nil {
		cancel()
	}
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	return err
}

// fillFrom writes the files in the order in which git prints their contents.
func (t *tree) fillFrom(ctx context.Context, r *bufio.Reader, missing []string, manifest map[string]entry) error {
	made := ""
	for _, name := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := manifest[name]
		head, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if head != fmt.Sprintf("%s blob %d\n", e.oid, e.size) {
			return fmt.Errorf("%s: git cat-file printed %q", name, text.ClipBytes(head, 200))
		}
		content := make([]byte, e.size)
		if _, err := io.ReadFull(r, content); err != nil {
			return err
		}
		if _, err := r.Discard(1); err != nil {
			return err
		}
		if dir := path.Dir(name); dir != made {
			if err := t.parents(name); err != nil {
				return err
			}
			made = dir
		}
		switch err := t.make(name, e, content); {
		case e.mode == modeLink && (errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ENOENT)):
			return unfit(fmt.Errorf("%s is a link that no file system has: it leads to %.100q", name, content))
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// make makes one file of the commit.
func (t *tree) make(name string, e entry, content []byte) error {
	if e.mode == modeLink {
		return t.root.Symlink(string(content), name)
	}
	mode := fs.FileMode(0o644)
	if e.mode == modeExec {
		mode = 0o755
	}
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// changes returns what differs from the commit.
func (t *tree) changes(ctx context.Context) ([]workspace.Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.manifest == nil {
		return nil, errors.New("no commit is checked out")
	}
	dirs := dirsOf(t.manifest)
	found := map[string]bool{} // paths of the commit that are still there, as what they were
	var differ, fresh []string // changed files; new files and the topmost new directories
	err := t.walk(ctx, ".", func(name string, info fs.FileInfo) error {
		if isWhiteout(info) {
			return nil
		}
		if err := refuseGit(name, info); err != nil {
			return err
		}
		want, tracked := t.manifest[name]
		switch {
		case tracked && want.mode == modeSub:
			found[name] = info.IsDir()
			return fs.SkipDir
		case info.IsDir() && dirs[name]:
			return nil
		case tracked && !info.IsDir():
			same, err := t.same(name, info, &want)
			if err != nil {
				return err
			}
			found[name] = true
			t.manifest[name] = want
			if !same {
				differ = append(differ, name)
			}
			return nil
		}
		fresh = append(fresh, name)
		return fs.SkipDir
	})
	if err != nil {
		return nil, err
	}
	fresh, err = t.expand(ctx, fresh)
	if err != nil {
		return nil, err
	}
	return t.collect(append(differ, fresh...), found)
}

// refuseGit refuses nested repositories, and an ignore file that git should not open.
func refuseGit(name string, info fs.FileInfo) error {
	base := path.Base(name)
	if isDotGit(base) {
		return fmt.Errorf("%s is a git directory of its own: remove it", name)
	}
	if base == ".gitignore" && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %s", name, kindOf(info.Mode()))
	}
	if base == ".gitignore" && info.Size() > maxIgnore {
		return fmt.Errorf("%s has %d KiB: an ignore file of more than %d KiB is not read", name, info.Size()>>10, maxIgnore>>10)
	}
	return nil
}

// maxIgnore is the size in bytes of the largest ignore file that git is given: it takes
// some 25 times that in memory.
const maxIgnore = 1 << 20

// expand replaces new directories by the files in them, level by level, without
// what the repository ignores.
func (t *tree) expand(ctx context.Context, fresh []string) ([]string, error) {
	var files []string
	for depth := 0; len(fresh) > 0; depth++ {
		if depth > maxDepth {
			return nil, fmt.Errorf("%.100s… is nested more than %d deep", fresh[0], maxDepth)
		}
		kept, err := t.notIgnored(ctx, fresh)
		if err != nil {
			return nil, err
		}
		fresh = nil
		for _, name := range kept {
			info, err := t.root.Lstat(name)
			if err != nil {
				return nil, err
			}
			if !info.IsDir() {
				files = append(files, name)
				continue
			}
			entries, err := t.readDir(name)
			if err != nil {
				return nil, err
			}
			for _, e := range entries { // looked at before git opens an ignore file
				child := path.Join(name, e.Name())
				info, err := t.root.Lstat(child)
				if err != nil {
					return nil, err
				}
				if isWhiteout(info) {
					continue
				}
				if err := refuseGit(child, info); err != nil {
					return nil, err
				}
				fresh = append(fresh, child)
			}
		}
		if len(files) > t.limits.Changes {
			return nil, fmt.Errorf("more than %d files changed", t.limits.Changes)
		}
	}
	return files, nil
}

// notIgnored returns which paths belong to no environment and are not named by the
// repository's ignore files, which is all that git reads for that.
func (t *tree) notIgnored(ctx context.Context, names []string) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.limits.Ignore,
		fmt.Errorf("the patterns of the repository's ignore files take more than %s to match: simplify those with many stars", t.limits.Ignore))
	defer cancel()
	input := "./" + strings.Join(names, "\x00./") + "\x00" // a leading colon would be magic
	out, err := t.git.run(ctx, gitCall{
		args: []string{"check-ignore", "-z", "--stdin", "--no-index"},
		env:  []string{"GIT_WORK_TREE=" + t.dir},
		dir:  t.dir, magic: true,
		config: []string{"core.excludesFile=" + filepath.Join(t.etc, "ignore")},
		stdin:  strings.NewReader(input),
	})
	var failed *gitError
	if errors.As(err, &failed) && failed.code == 1 && failed.stderr == "" { // none is ignored
		err = nil
	}
	if err != nil {
		return nil, err
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		ignored[strings.TrimPrefix(name, "./")] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return ignored[name] || t.isShown(name) }), nil
}

// isShown reports whether a path that the commit does not have belongs to an environment.
func (t *tree) isShown(name string) bool {
	return slices.ContainsFunc(t.shown, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// collect reads the changed files, and adds those that are gone.
func (t *tree) collect(names []string, found map[string]bool) ([]workspace.Change, error) {
	changes := []workspace.Change{}
	var total int64
	for _, name := range names {
		if !utf8.ValidString(name) { // its way to the server is JSON, which would make another name of it
			return nil, fmt.Errorf("path %q is not UTF-8: not changed by Forge", name)
		}
		if err := checkPath(name); err != nil {
			return nil, err
		}
		info, err := t.root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() { // safeRead would follow a link
			return nil, fmt.Errorf("%s is %s: only plain files can be committed", name, kindOf(info.Mode()))
		}
		content, info, err := t.safeRead(name, t.limits.ReadBytes)
		if err != nil {
			return nil, err
		}
		if total += int64(len(content)); total > t.limits.ChangeAll {
			return nil, fmt.Errorf("the changed files have more than %d bytes together", t.limits.ChangeAll)
		}
		changes = append(changes, workspace.Change{Path: name, Exec: info.Mode()&0o100 != 0, Content: content})
	}
	for name, e := range t.manifest {
		if !found[name] && e.mode != modeSub {
			changes = append(changes, workspace.Change{Path: name, Deleted: true})
		}
	}
	if len(changes) > t.limits.Changes {
		return nil, fmt.Errorf("%d files changed, more than %d", len(changes), t.limits.Changes)
	}
	slices.SortFunc(changes, func(a, b workspace.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}
