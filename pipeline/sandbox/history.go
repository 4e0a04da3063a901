package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Caps on what a look at the history gives out, and how long it may take.
const (
	maxLogEntries  = 100
	defLogEntries  = 20
	maxLogBody     = 400
	maxBlameLines  = 400
	defBlameLines  = 200
	maxHistory     = 64 << 10 // bytes of text that a call returns
	maxHistoryRead = 8 << 20  // bytes that git may print for it
	historyTimeout = 30 * time.Second
)

// field separates what git prints of a commit; no commit message can hold it.
const field = "\x00"

// head is the checked-out commit.
func (t *tree) head() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.manifest == nil {
		return "", errors.New("no commit is checked out")
	}
	return t.commit, nil
}

// log lists the newest commits that changed a path, renames followed.
func (w *worker) log(ctx context.Context, name string, n int) (string, error) {
	head, err := w.tree.head()
	if err != nil {
		return "", err
	}
	if name, err = cleanPath(name); err != nil {
		return "", err
	}
	if n <= 0 {
		n = defLogEntries
	}
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	// One entry more than is shown, to know that there are more.
	n = min(n, maxLogEntries)
	args := []string{"log", "-z", "--no-color", "--no-show-signature", "--no-notes", "--no-ext-diff", "--no-textconv",
		"--date=short", "--format=tformat:%h%x00%ad%x00%an%x00%s%x00%b", "-n", strconv.Itoa(n + 1)}
	if w.isFile(name) {
		args = append(args, "--follow")
	}
	args = append(args, "--end-of-options", head, "--")
	if name != "." {
		args = append(args, name)
	}
	out, err := w.git.run(ctx, gitCall{args: args, max: maxHistoryRead})
	if err != nil {
		return "", fmt.Errorf("log of %s: %w", name, err)
	}
	if len(out) == 0 {
		return "no commit of " + name + " up to " + short(head) + "\n", nil
	}
	rows := strings.Split(strings.TrimSuffix(string(out), field), field)
	var b strings.Builder
	for i := 0; i+4 < len(rows); i += 5 {
		if i/5 == n {
			fmt.Fprintf(&b, "(older commits are left out; the %d newest are shown)\n", n)
			break
		}
		fmt.Fprintf(&b, "%s %s %s: %s\n", rows[i], rows[i+1], text.ClipBytes(text.OneLine(rows[i+2]), 60), text.ClipBytes(text.OneLine(rows[i+3]), 200))
		for l := range strings.SplitSeq(strings.TrimSpace(text.ClipBytes(rows[i+4], maxLogBody)), "\n") {
			if l = strings.TrimSpace(l); l != "" {
				b.WriteString("    " + l + "\n")
			}
		}
	}
	return capText(b.String(), "ask for fewer commits"), nil
}

// isFile reports whether a path is a file of the checked-out commit or of the work tree.
func (w *worker) isFile(name string) bool {
	w.tree.mu.Lock()
	_, tracked := w.tree.manifest[name]
	w.tree.mu.Unlock()
	if tracked {
		return true
	}
	info, err := w.tree.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// blame says which commit each line of a file is from, lines that are not
// committed yet included.
func (w *worker) blame(ctx context.Context, name string, from, to int) (string, error) {
	head, err := w.tree.head()
	if err != nil {
		return "", err
	}
	if name, err = cleanPath(name); err != nil {
		return "", err
	}
	w.tree.mu.Lock()
	_, tracked := w.tree.manifest[name]
	w.tree.mu.Unlock()
	content, info, err := w.tree.safeRead(name, w.tree.limits.ReadBytes)
	switch {
	case err != nil:
		return "", err
	case !tracked:
		return name + " is in no commit yet\n", nil
	}
	from, to, err = blameRange(from, to, bytes.Count(content, []byte("\n"))+1)
	if err != nil {
		return "", fmt.Errorf("blame %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	o, err := w.overlay(ctx, head, []workspace.Change{{Path: name, Exec: info.Mode()&0o100 != 0, Content: content}})
	if err != nil {
		return "", fmt.Errorf("blame %s: %w", name, err)
	}
	defer o.close()
	now, err := o.commit(ctx, head)
	if err != nil {
		return "", fmt.Errorf("blame %s: %w", name, err)
	}
	out, err := w.git.run(ctx, gitCall{env: o.env, max: maxHistoryRead, args: []string{
		"blame", "--porcelain", "--no-textconv", fmt.Sprintf("-L%d,%d", from, to), now, "--", name}})
	var failed *gitError
	if errors.As(err, &failed) && strings.Contains(failed.stderr, "has only") {
		return "", fmt.Errorf("blame %s: there is no line %d", name, from)
	}
	if err != nil {
		return "", fmt.Errorf("blame %s: %w", name, err)
	}
	if now == head {
		now = "" // nothing is edited: the lines of that commit are its own
	}
	return capText(readBlame(string(out), now), "ask for fewer lines"), nil
}

// blameRange checks the lines that are asked for; zero means from the start, and
// a page from there.
func blameRange(from, to, lines int) (int, int, error) {
	if from <= 0 {
		from = 1
	}
	if to <= 0 {
		to = from + defBlameLines - 1
	}
	switch {
	case from > lines:
		return 0, 0, fmt.Errorf("there is no line %d, the file has %d", from, lines)
	case to < from:
		return 0, 0, fmt.Errorf("lines %d to %d are none", from, to)
	}
	return from, min(to, lines, from+maxBlameLines-1), nil
}

// readBlame turns git's porcelain into one line per line, then one per commit.
func readBlame(out, uncommitted string) string {
	type commit struct{ author, date, summary string }
	commits := map[string]*commit{}
	var order []string
	var b strings.Builder
	var now string
	var at *commit
	number := ""
	for l := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
		if words, ok := strings.CutPrefix(l, "\t"); ok {
			who := short(now)
			if now == uncommitted {
				who = "(edited)"
			}
			fmt.Fprintf(&b, "%-10s %5s: %s\n", who, number, text.ClipBytes(strings.TrimRight(words, "\r"), 500))
			continue
		}
		key, value, _ := strings.Cut(l, " ")
		switch {
		case isOID(key):
			now = key
			if f := strings.Fields(value); len(f) >= 2 {
				number = f[1]
			}
			if at = commits[now]; at == nil {
				at = &commit{}
				commits[now] = at
				order = append(order, now)
			}
		case at == nil:
		case key == "author":
			at.author = value
		case key == "author-time":
			if s, err := strconv.ParseInt(value, 10, 64); err == nil {
				at.date = time.Unix(s, 0).UTC().Format(time.DateOnly)
			}
		case key == "summary":
			at.summary = value
		}
	}
	b.WriteByte('\n')
	for _, sha := range order {
		if c := commits[sha]; sha != uncommitted {
			fmt.Fprintf(&b, "%-10s %s %s: %s\n", short(sha), c.date, text.ClipBytes(text.OneLine(c.author), 60), text.ClipBytes(text.OneLine(c.summary), 200))
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// diff is the patch from a commit to the work tree as it stands, edits that are
// not committed included. An empty base is the checked-out commit.
func (w *worker) diff(ctx context.Context, base, name string) (string, error) {
	head, err := w.tree.head()
	if err != nil {
		return "", err
	}
	if base == "" {
		base = head
	}
	if err := checkOIDs(base); err != nil {
		return "", err
	}
	if name, err = cleanPath(name); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	w.command.Lock()
	changes, err := w.tree.changes(ctx)
	w.command.Unlock()
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	o, err := w.overlay(ctx, head, changes)
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	defer o.close()
	call := gitCall{env: o.env, max: maxDiffBytes, args: append(slices.Clone(diffArgs), base, o.tree, "--")}
	if name != "." {
		call.args = append(call.args, name)
	}
	out, err := w.git.run(ctx, call)
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	return capText(strings.ToValidUTF8(string(out), "\uFFFD"), "ask for one path"), nil
}

// overlay is a tree that stands on a commit of the mirror, which is only read:
// new objects go to a directory of the worker's own, which no command sees.
type overlay struct {
	git  git
	dir  string
	env  []string
	tree string
}

func (o *overlay) close() {
	if o.dir != "" {
		_ = os.RemoveAll(o.dir)
	}
}

// overlay writes a commit's tree with changes.
func (w *worker) overlay(ctx context.Context, head string, changes []workspace.Change) (o *overlay, err error) {
	o = &overlay{git: w.git}
	if o.dir, err = os.MkdirTemp(w.Dir, "overlay-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	objects := filepath.Join(o.dir, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		return nil, err
	}
	o.env = []string{
		"GIT_INDEX_FILE=" + filepath.Join(o.dir, "index"), "GIT_OBJECT_DIRECTORY=" + objects,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(w.git.dir, "objects"),
	}
	if _, err := w.git.run(ctx, gitCall{args: []string{"read-tree", head}, env: o.env}); err != nil {
		return nil, err
	}
	blobs, err := writeBlobs(ctx, w.git, o.env, o.dir, changes)
	if err != nil {
		return nil, err
	}
	if _, err := w.git.run(ctx, gitCall{
		args: []string{"update-index", "-z", "--index-info"}, env: o.env, stdin: indexInfo(changes, blobs, head),
	}); err != nil {
		return nil, err
	}
	o.tree, err = line(w.git.run(ctx, gitCall{args: []string{"write-tree"}, env: o.env}))
	return o, err
}

// commit makes the tree a commit on top of head, or is head when nothing differs.
func (o *overlay) commit(ctx context.Context, head string) (string, error) {
	was, err := line(o.git.run(ctx, gitCall{args: []string{"rev-parse", "--verify", head + "^{tree}"}}))
	if err != nil || was == o.tree {
		return head, err
	}
	return line(o.git.run(ctx, gitCall{
		args: []string{"commit-tree", o.tree, "-p", head}, stdin: strings.NewReader("not committed\n"),
		env: append(slices.Clone(o.env), "GIT_AUTHOR_NAME=none", "GIT_AUTHOR_EMAIL=none", "GIT_COMMITTER_NAME=none", "GIT_COMMITTER_EMAIL=none"),
	}))
}

// capText cuts a text at a line's end, and says what to do about it.
func capText(s, advice string) string {
	if len(s) <= maxHistory {
		return s
	}
	cut := strings.LastIndexByte(s[:maxHistory], '\n') + 1
	if cut == 0 {
		cut = maxHistory
	}
	return strings.ToValidUTF8(s[:cut], "") + fmt.Sprintf("[%d bytes more are left out: %s]\n", len(s)-cut, advice)
}

func short(sha string) string { return sha[:min(len(sha), 10)] }

// Subjects returns the first lines of the newest commits up to one, at most n; those of
// merges are left out.
func (g *Gateway) Subjects(ctx context.Context, repo pipeline.Repo, sha string, n int) ([]string, error) {
	if err := checkOIDs(sha); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	out, err := g.git(repo).run(ctx, gitCall{args: []string{"log", "--no-merges", "-z", "--format=%s", "-n", strconv.Itoa(n), sha, "--"}})
	if err != nil {
		return nil, fmt.Errorf("subjects of the commits up to %s: %w", sha, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}
