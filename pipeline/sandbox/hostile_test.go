package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// long is a command that makes a file so many KiB long, of which nothing is written.
func long(kib int, name string) string {
	return fmt.Sprintf("dd if=/dev/null of=%s bs=1024 seek=%d count=0 2>/dev/null", name, kib)
}

// Covers S13: what a command leaves in the work tree and is no plain file is
// refused, by name; what is ignored is not looked at.
func TestChangesRefuse(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n", ".gitignore": "skip/\n", "@link": "a.txt"})
	w := f.open(t, newManager(t, Options{Unsafe: true, Limits: Limits{Ignore: time.Second}}), f.head)
	rows := []struct{ script, named string }{
		{"ln -s /etc/passwd new-link", "new-link"},
		{"rm a.txt; ln -s /etc/passwd a.txt", "a.txt"},
		{"ln -sf /etc/passwd link", "link"},
		{"mkfifo pipe", "pipe"},
		{"rm a.txt; mkfifo a.txt", "a.txt"},
		{"ln a.txt second", "hard link"},
		{"mkdir -p new/.git && echo x >new/.git/config", "new/.git"},
		{"mkdir .git && echo x >.git/config", ".git"},
		{"mkdir -p dir/.GIT", "dir/.GIT"},
		{"echo gitdir: /x >dir/.git", "dir/.git"},
		{"mkdir new && mkfifo new/.gitignore", "new/.gitignore"},
		{"rm .gitignore && mkfifo .gitignore", ".gitignore"},
		{long(2048, ".gitignore"), ".gitignore has 2048 KiB"},
		{"mkdir new && " + long(2048, "new/.gitignore"), "new/.gitignore has 2048 KiB"},
		{"printf '*/**/%.0s' 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 >.gitignore; echo z >>.gitignore; mkdir -p $(printf 'a/%.0s' 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0)b", "more than 1s to match"},
		{long(900<<10, "sparse"), "sparse"},
		{"printf 'x' >\"$(printf 'new\\nline')\"", `new\nline`},
		{"i=0; while [ $i -lt 2001 ]; do : >f$i; i=$((i+1)); done", "more than 2000 files"},
	}
	if runtime.GOOS == "linux" { // other file systems take no such name
		rows = append(rows, struct{ script, named string }{"printf 'x' >\"$(printf 'no\\377text')\"", `no\xfftext`})
	}
	for _, tt := range rows {
		if err := w.Checkout(t.Context(), f.head); err != nil {
			t.Fatal(err)
		}
		mustRun(t.Context(), t, w, tt.script)
		if got, err := w.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), tt.named) {
			t.Errorf("after %q: Changes = %.200v, %v; want an error that names %s", tt.script, got, err, tt.named)
		}
	}
	if err := w.Checkout(t.Context(), f.head); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(w.dir, "tree", "sock"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), "sock is a socket") {
		t.Errorf("with a socket: Changes = %.200v, %v", got, err)
	}
	socket.Close()
	mustRun(t.Context(), t, w, "mkdir -p skip/deep && mkfifo skip/deep/pipe && ln -s / skip/root && rm link && echo c >:colon && chmod 0 dir")
	mustRun(t.Context(), t, w, "chmod 755 dir")
	changes, err := w.Changes(t.Context())
	if err != nil || len(changes) != 2 || changes[0].Path != ":colon" || changes[1].Path != "link" || !changes[1].Deleted {
		t.Errorf("Changes = %v, %v; want :colon added and link deleted", changes, err)
	}
	// A tree in which a command took permissions away can be made right again.
	mustRun(t.Context(), t, w, "mkdir -p locked/in && chmod 0 locked dir")
	if err := w.Checkout(t.Context(), f.head); err != nil {
		t.Errorf("Checkout over locked directories: %v", err)
	}
	if got, err := w.Changes(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Changes after that = %v, %v", got, err)
	}
}

// Covers S16: a path that the repository or Forge protects is refused when it is
// edited, by whatever spelling, with the rule in the message.
func TestEditsRefuseProtected(t *testing.T) {
	f := newFixture(t, map[string]string{
		"migrations/1.sql": "a\n", "db/schema.sql": "a\n", "docs/api/v1.md": "a\n", ".github/workflows/ci.yml": "on: push\n",
		".github/ISSUE_TEMPLATE/bug.md": "a\n", "src/gen/x.pb.go": "package gen\n", "src/main.go": "package main\n", "plain/deep/AGENTS.md": "a\n",
	})
	protected := []string{"migrations/", "db", "docs/**/v1.md", "**/*.pb.go"}
	w, err := newManager(t, Options{Unsafe: true}).open(t.Context(), workspace.OpenOptions{
		Name: "run/1", GitDir: f.gateway.Dir(f.repo), Commit: f.head, Cache: "x", Protected: protected, Allow: []string{"plain/allowed/AGENTS.md"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := t.Context()
	for path, rule := range map[string]string{
		"migrations/2.sql": "migrations/", "./migrations/1.sql": "migrations/", "Migrations/1.sql": "migrations/", "db/schema.sql": "db", "sub/db/x": "db",
		"docs/api/v1.md": "docs/**/v1.md", "docs/v1.md": "docs/**/v1.md", "src/gen/x.pb.go": "**/*.pb.go",
		"./.github/workflows/ci.yml": ".github/workflows/**", ".github/workflows/new.yml": ".github/workflows/**",
	} {
		for name, err := range map[string]error{"Write": w.Write(ctx, path, []byte("b\n")), "Remove": w.Remove(ctx, path)} {
			var refused *workspace.ProtectedError
			if !errors.As(err, &refused) || refused.Rule != rule || !strings.Contains(err.Error(), fmt.Sprintf("%q", rule)) {
				t.Errorf("%s(%q) = %v; want it refused by %q, and named", name, path, err, rule)
			} else if refused.Repository != slices.Contains(protected, rule) {
				t.Errorf("%s(%q): rule of the repository %v", name, path, refused.Repository)
			}
		}
	}
	for _, dir := range []string{".github", "plain", "src", "docs", "."} {
		var refused *workspace.ProtectedError
		if err := w.Remove(ctx, dir); !errors.As(err, &refused) {
			t.Errorf("Remove(%q) = %v; want it refused for what is in it", dir, err)
		}
	}
	for _, path := range []string{"src/main.go", "docs/api/v2.md", "migrations.md", "dbx/a", "plain/allowed/AGENTS.md", ".github/ISSUE_TEMPLATE/bug.md"} {
		if err := w.Write(ctx, path, []byte("b\n")); err != nil {
			t.Errorf("Write(%q): %v", path, err)
		}
	}
	if err := w.Remove(ctx, ".github/ISSUE_TEMPLATE"); err != nil {
		t.Errorf("Remove of a directory without protected files: %v", err)
	}
	// A command does it all the same; the commit is refused.
	mustRun(ctx, t, w, "echo b >migrations/1.sql")
	changes, err := w.Changes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := change(f.head, "x", "x")
	o.Changes, o.Protected, o.Allow = changes, protected, []string{"plain/allowed/AGENTS.md"}
	var refused *workspace.ProtectedError
	if _, err := f.gateway.Commit(ctx, f.repo, o); !errors.As(err, &refused) || refused.Path != "migrations/1.sql" {
		t.Errorf("Commit = %v; want migrations/1.sql refused", err)
	}
}

// Globs of many stars cost no more than their length times the path's.
func TestMatchGlob(t *testing.T) {
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"**", "a", true}, {"**", "a/b", true}, {"a/**", "a", true}, {"a/**", "a/b/c", true}, {"a/**/c", "a/c", true}, {"a/**/c", "a/b/b/c", true},
		{"a/**/c", "a/b", false}, {"**/c", "c", true}, {"**/c", "a/b/c", true}, {"*.go", "a/b.go", true}, {"a/*.go", "a/b/c.go", false},
		{"**/**/x", "x", true}, {"a/**/**", "a/b", true}, {"a/**/**", "a", true}, {"/a", "a", true},
		{strings.Repeat("**/a/", 200) + "b", strings.Repeat("a/", 1500) + "c", false},
		{strings.Repeat("**/a/", 200) + "b", strings.Repeat("a/", 1500) + "b", true},
	} {
		if got := matchGlob(tt.glob, tt.name); got != tt.want {
			t.Errorf("matchGlob(%.40q, %.40q) = %v, want %v", tt.glob, tt.name, got, tt.want)
		}
	}
}

// What is written into a submodule's directory would be in no commit: it is refused, with why.
func TestSubmoduleIsNotWritten(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "a\n"})
	dir := f.gateway.Dir(f.repo)
	tree := gitIn(t, dir, []string{"GIT_DIR=" + dir, "STDIN=160000 commit " + f.head + "\tlib\n"}, "mktree")
	head := gitIn(t, dir, []string{"GIT_DIR=" + dir}, "commit-tree", strings.TrimSpace(tree), "-p", f.head, "-m", "grouped")
	w := f.open(t, newManager(t, Options{Unsafe: true}), strings.TrimSpace(head))
	for _, path := range []string{"lib/x.py", "lib/deep/x.py"} {
		if err := w.Write(t.Context(), path, []byte("x = 1\n")); err == nil || !strings.Contains(err.Error(), path+" is in the submodule lib") {
			t.Errorf("Write(%q): %v", path, err)
		}
	}
	if err := w.Write(t.Context(), "library/x.py", []byte("x = 1\n")); err != nil {
		t.Error(err)
	}
	if res := mustRun(t.Context(), t, w, "true"); len(res.Outside) > 0 {
		t.Errorf("%q are told to have something in them", res.Outside)
	}
	if res := mustRun(t.Context(), t, w, "echo 1 >lib/x.py"); !slices.Equal(res.Outside, []string{"lib"}) {
		t.Errorf("%q are told to have something in them, want lib", res.Outside)
	}
}

// Covers S15: reads and writes do not leave the tree, and do not hang.
func TestFilesRefuse(t *testing.T) {
	f := newFixture(t, map[string]string{
		"a.txt": "a\n", "@passwd": "/etc/passwd", "@up": "..", "@proc": "/proc/self/environ", "@inner": "a.txt", "@dir": "sub", "sub/x": "x",
	})
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	ctx := t.Context()
	mustRun(ctx, t, w, "mkfifo pipe; "+long(900<<10, "sparse")+"; echo x >one; ln one two")
	for _, path := range []string{
		"passwd", "up/x", "up", "proc", "pipe", "sparse", "one", "sub", "../x", "/etc/passwd", "a/../../x", "sub/../a.txt", ".git/config", "a\x00b", "missing",
	} {
		if got, err := w.Read(ctx, path); err == nil {
			t.Errorf("Read(%q) = %q; want an error", path, got)
		}
	}
	if got, err := w.Read(ctx, "inner"); err != nil || string(got) != "a\n" {
		t.Errorf("Read through a link within the tree = %q, %v", got, err)
	}
	for _, path := range []string{"passwd", "up/x", "inner", "dir/y", "pipe", "pipe/x", "sub", "../x", "/tmp/x", ".git/hooks/x",
		".github/workflows/x.yml", ".", ""} {
		if err := w.Write(ctx, path, []byte("evil")); err == nil {
			t.Errorf("Write(%q): no error", path)
		}
		if path == "passwd" || path == "inner" || path == "pipe" || path == "sub" {
			continue // removing these is fine
		}
		if err := w.Remove(ctx, path); err == nil {
			t.Errorf("Remove(%q): no error", path)
		}
	}
	if err := w.Write(ctx, "big", make([]byte, 11<<20)); err == nil {
		t.Error("Write of 11 MiB: no error")
	}
	if err := w.Write(ctx, "two", []byte("new")); err != nil {
		t.Error(err)
	}
	if r := mustRun(ctx, t, w, "cat one"); string(r.Stdout) != "x\n" {
		t.Errorf("a write went through a hard link: %q", r.Stdout)
	}
	var refused *workspace.ProtectedError
	if err := w.Write(ctx, "sub/AGENTS.md", nil); !errors.As(err, &refused) {
		t.Errorf("Write of a protected path: %v; want ProtectedError", err)
	}
	if err := w.Remove(ctx, "passwd"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error(err)
	}
	if got, err := w.Search(ctx, "root:|^x$|a", "", 10); err != nil || fmt.Sprint(got) != "[a.txt:1: a one:1: x sub/x:1: x]" {
		t.Errorf("Search = %q, %v", got, err)
	}
	if _, err := w.Search(ctx, "(", "", 1); err == nil {
		t.Error("Search with a bad pattern: no error")
	}
}

// Covers S15: a file that is flipped to a link and back never leaks what is outside.
func TestReadRace(t *testing.T) {
	dir := openDir(t)
	if err := os.Mkdir(filepath.Join(dir, "tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "secret"), "SECRET", 0o644); err != nil {
		t.Fatal(err)
	}
	// Only root can make a file that is somebody else's; a hard link to one's own can
	// lose its second name in the middle of a read, and may be read then.
	foreign := os.Geteuid() == 0
	if foreign {
		if err := os.Chown(filepath.Join(dir, "secret"), nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "tree"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		file, link := filepath.Join(dir, "tree", "f"), filepath.Join(dir, "tree", "l")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(link+"1", []byte("fine"), 0o644)
			_ = os.Rename(link+"1", file)
			for range 20 { // long enough for some reads to come through
				_, _ = os.Lstat(file)
			}
			_ = os.Symlink("../secret", link+"2")
			_ = os.Rename(link+"2", file)
			if foreign {
				_ = os.Link(filepath.Join(dir, "secret"), link+"3")
				_ = os.Rename(link+"3", file)
			}
		}
	}()
	n := 20_000
	if testing.Short() {
		n = 1000
	}
	read := 0
	for i := 0; i < n || read == 0 && i < 100*n; i++ {
		content, _, err := safeRead(root, "f", 100, os.Geteuid())
		if bytes.Contains(content, []byte("SECRET")) {
			t.Fatal("a read leaked what is outside")
		}
		if err == nil {
			read++
		}
	}
	close(stop)
	<-stopped
	if read == 0 {
		t.Error("no read came through: the race was not run")
	}
}

// Covers S14: a tree of ten billion files is refused before any is made.
func TestTreeBomb(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "a"})
	blob := gitIn(t, f.remote, []string{"STDIN=x"}, "hash-object", "-w", "--stdin")
	rows := func(mode, kind, oid string) string {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "%s %s %s\tf%d\n", mode, kind, oid, i)
		}
		return b.String()
	}
	oid := gitIn(t, f.remote, []string{"STDIN=" + rows("100644", "blob", blob)}, "mktree")
	for range 9 {
		oid = gitIn(t, f.remote, []string{"STDIN=" + rows("040000", "tree", oid)}, "mktree")
	}
	bomb := gitIn(t, f.remote, nil, "commit-tree", oid, "-m", "bomb")
	gitIn(t, f.remote, nil, "update-ref", "refs/heads/bomb", bomb)
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "bomb"); err != nil {
		t.Fatal(err)
	}
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	begin := time.Now()
	err := w.Checkout(t.Context(), bomb)
	if err == nil || !strings.Contains(err.Error(), "more than 100000 files") {
		t.Errorf("Checkout = %v; want it refused", err)
	}
	if took := time.Since(begin); took > time.Minute { // 0.3 s when the machine is quiet; without the limit it does not end
		t.Errorf("it took %v", took)
	}
	if _, err := w.Read(t.Context(), "f0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was checked out: %v", err)
	}
}

// Covers S14: what no file system holds is a fault that names it, and trying again does not help.
func TestUnfitCommits(t *testing.T) {
	if err := unfit(io.ErrUnexpectedEOF); err != io.ErrUnexpectedEOF {
		t.Errorf("git that was ended is taken for a fault of the commit: %v", err)
	}
	f := newFixture(t, map[string]string{"a": "a"})
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	blob := gitIn(t, f.remote, []string{"STDIN=x"}, "hash-object", "-w", "--stdin")
	long := gitIn(t, f.remote, []string{"STDIN=" + strings.Repeat("x/", 3000)}, "hash-object", "-w", "--stdin")
	for i, c := range []struct {
		mode, oid, name, dir string
		dirs                 int
		want                 string
	}{
		{"100644", blob, "f", "d", maxDepth + 1, "d/d/d/d/d"},
		{"100644", blob, "f", strings.Repeat("n", 250), 17, "not a path inside the repository"},
		{"100644", blob, "f", strings.Repeat("n", 250), 300, "it has a path of more than 8 KiB, "},
		{"120000", long, "link", "d", 1, `d/link is a link that no file system has: it leads to "x/x/x`},
		{"100644", blob, `"a\001b"`, "d", 1, `path "d/a\x01b" has a control character`},
	} {
		oid := gitIn(t, f.remote, []string{"STDIN=" + fmt.Sprintf("%s blob %s\t%s\n", c.mode, c.oid, c.name)}, "mktree")
		for range c.dirs {
			oid = gitIn(t, f.remote, []string{"STDIN=" + fmt.Sprintf("040000 tree %s\t%s\n", oid, c.dir)}, "mktree")
		}
		branch := fmt.Sprintf("unfit-%d", i)
		gitIn(t, f.remote, nil, "update-ref", "refs/heads/"+branch, gitIn(t, f.remote, nil, "commit-tree", oid, "-m", "unfit"))
		if err := f.gateway.Fetch(t.Context(), f.repo, "", branch); err != nil {
			t.Fatal(err)
		}
		sha, err := f.gateway.Resolve(t.Context(), f.repo, branch)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Checkout(t.Context(), sha)
		var fault *pipeline.Fault
		if !errors.As(err, &fault) || !fault.Final || !strings.HasPrefix(fault.Message, "the commit cannot be checked out: ") || !strings.Contains(fault.Message, c.want) || len(fault.Message) > 400 {
			t.Errorf("%.20q in %d of %.20q: %v; want a final fault with %q", c.name, c.dirs, c.dir, err, c.want)
		}
	}
}

// Covers S11: nothing that a repository or a command plants in the work tree makes
// git on this side run a program.
func TestDetonators(t *testing.T) {
	fired := filepath.Join(openDir(t), "fired")
	if err := os.Mkdir(fired, 0o777); err != nil || os.Chmod(fired, 0o777) != nil {
		t.Fatal(err)
	}
	boom := func(name string) string { return "touch " + filepath.Join(fired, name) + " #" }
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = " + boom("fsmonitor") +
		"\n\tpager = " + boom("pager") + "\n\tsshCommand = " + boom("ssh") + "\n\thooksPath = hooks\n[filter \"evil\"]\n\tclean = " + boom("clean") +
		"\n\tsmudge = " + boom("smudge") + "\n\tprocess = " + boom("process") + "\n[diff \"evil\"]\n\tcommand = " + boom("diff") +
		"\n\ttextconv = " + boom("textconv") +
		"\n[merge \"evil\"]\n\tdriver = " + boom("merge") + "\n[credential]\n\thelper = !" + boom("credential") + "\n[url \"ext::sh -c touch%20" +
		fired + "/ext\"]\n\tinsteadOf = /\n"
	f := newFixture(t, map[string]string{
		"a.txt": "a\n", ".gitattributes": "* filter=evil diff=evil merge=evil text=auto eol=crlf ident working-tree-encoding=UTF-16\n",
		".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:1/\n", "b.txt": "$Id$\n",
		".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = https://127.0.0.1:1/x\n",
	})
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	ctx := t.Context()
	if got, err := w.Read(ctx, "b.txt"); err != nil || string(got) != "$Id$\n" {
		t.Errorf("Read = %q, %v; want the bytes as committed", got, err)
	}
	plant := func(dir string) string {
		script := "mkdir -p " + dir + "/objects " + dir + "/refs " + dir + "/hooks; echo ref: refs/heads/main >" + dir + "/HEAD; cat >" + dir +
			"/config <<'X'\n" + config + "X\n"
		for _, hook := range []string{"pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-push", "post-commit"} {
			script += "printf '#!/bin/sh\\n" + boom(hook) + "\\n' >" + dir + "/hooks/" + hook + "; chmod +x " + dir + "/hooks/" + hook + "; "
		}
		return script
	}
	// Embedded bare repositories are refused, and do nothing where somebody lets them in.
	mustRun(ctx, t, w, "echo b >a.txt; "+plant("bare.git")+plant("deep/er"))
	changes, err := w.Changes(ctx)
	if err != nil || len(changes) < 10 {
		t.Fatalf("Changes = %d, %v", len(changes), err)
	}
	o := workspace.CommitOptions{Parent: f.head, Message: "m", Author: "f", Email: "f@example.com", Time: fixedTime, Changes: changes}
	var protected *workspace.ProtectedError
	if _, err := f.gateway.Commit(ctx, f.repo, o); !errors.As(err, &protected) || !strings.HasSuffix(protected.Path, "/HEAD") {
		t.Errorf("a commit with bare repositories: %v", err)
	}
	o.Allow = []string{"**/HEAD"}
	sha, err := f.gateway.Commit(ctx, f.repo, o)
	if err != nil {
		t.Fatal(err)
	}
	// Nor do hooks that stand in the mirror itself, such as those of the machine's template.
	hook := filepath.Join(f.gateway.Dir(f.repo), "hooks", "reference-transaction")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o755), os.WriteFile(hook, []byte("#!/bin/sh\n"+boom("mirror")+"\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"push": f.gateway.Push(ctx, f.repo, "", workspace.PushOptions{Branch: "forge/x", SHA: sha}), "fetch": f.gateway.Fetch(ctx, f.repo, "", "forge/x", "main"),
		"checkout": w.Checkout(ctx, sha),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff, err := f.gateway.Diff(ctx, f.repo, f.head, sha); err != nil || !strings.Contains(diff, "+b\n") {
		t.Errorf("Diff = %.100q, %v", diff, err)
	}
	// Nested ones are refused, and do not go off while they are found.
	mustRun(ctx, t, w, plant(".git")+plant("deep/.git"))
	if _, err := w.Changes(ctx); err == nil {
		t.Error("Changes with a nested repository: no error")
	}
	if err := w.Checkout(ctx, f.head); err != nil {
		t.Error(err)
	}
	went, err := os.ReadDir(fired)
	if err != nil || len(went) != 0 {
		t.Errorf("went off: %v, %v", went, err)
	}
}
