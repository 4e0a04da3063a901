// Package cheats has the corpus of changes that cheat, and of honest ones that look like
// them: tests that play it tell how many are caught, and how many disturbed. Beside it are
// small repositories of many kinds, whose tests are run for real.
package cheats

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/workspace"

	"golang.org/x/tools/txtar"
)

// corpusCase is a change to a base, and what comes of it; see testdata/README.md.
type corpusCase struct {
	dir, name string
	base      *corpusBase
	why       string
	files     map[string]string // of the head; the base's others stay
	deleted   []string
	class     string // of a cheat
	today     string
	want      []string
	task      check.Task
	excuse    bool
	commit    string // of the head
	patch     string
}

// What comes of a case: a cheat is stopped or asked about, or it is not; an honest change is
// let pass, or it is stopped or asked about although no test had to change.
const (
	caught     = "caught"
	missed     = "missed"
	unhindered = "quiet"
	disturbed  = "disturbed"
)

// corpusBase is a repository that changes start from.
type corpusBase struct {
	name     string
	files    map[string]string
	commands []string
	reruns   int
	commit   string

	once     sync.Once
	baseline pipeline.TestReport
	err      error
}

// corpus is some directories of cases with the commits that they are.
type corpus struct {
	git   string // a bare repository
	bases map[string]*corpusBase
	cases []*corpusCase
	of    map[string]map[string]string // the files of each commit
}

// readCorpus reads the cases of some directories of testdata.
func readCorpus(t testing.TB, dirs ...string) *corpus {
	t.Helper()
	c := &corpus{bases: map[string]*corpusBase{}, of: map[string]map[string]string{}}
	for _, file := range globbed(t, "testdata/bases/*.txtar") {
		a := parsed(t, file)
		b := &corpusBase{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), files: map[string]string{}}
		for key, value := range header(a.Comment) {
			if key == "command" {
				b.commands = value
			}
			if key == "reruns" {
				b.reruns = number(t, value[0])
			}
		}
		for _, f := range a.Files {
			b.files[f.Name] = string(f.Data)
		}
		c.bases[b.name] = b
	}
	for _, dir := range dirs {
		for _, file := range globbed(t, "testdata/"+dir+"/*.txtar") {
			k := readCase(t, file, c.bases)
			k.dir = dir
			c.cases = append(c.cases, k)
		}
	}
	c.commit(t)
	return c
}

func globbed(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

func parsed(t testing.TB, file string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// header reads "key: value" lines; others are words for people.
func header(comment []byte) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(string(comment)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.Contains(key, " ") {
			out[key] = append(out[key], value)
		} else if text := strings.TrimSpace(line); text != "" {
			out[""] = append(out[""], text)
		}
	}
	return out
}

func readCase(t testing.TB, file string, bases map[string]*corpusBase) *corpusCase {
	t.Helper()
	a := parsed(t, file)
	h := header(a.Comment)
	c := &corpusCase{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), files: map[string]string{}, why: strings.Join(h[""], " "),
		class: strings.Join(h["class"], ""), today: strings.Join(h["today"], ""), want: h["want"]}
	for key := range h {
		if !slices.Contains([]string{"", "base", "class", "delete", "edit", "excuse", "task", "today", "want"}, key) {
			t.Fatalf("%s: unknown line %q", file, key)
		}
	}
	if len(h["base"]) != 1 || bases[h["base"][0]] == nil || c.today == "" || c.why == "" {
		t.Fatalf("%s: it must say what it is about, its base, and what comes of it", file)
	}
	c.base = bases[h["base"][0]]
	for _, line := range h["delete"] {
		c.deleted = append(c.deleted, strings.Fields(line)...)
	}
	if len(h["task"]) > 0 {
		c.task.Text = h["task"][0]
	}
	c.excuse = len(h["excuse"]) > 0
	c.files = maps.Clone(c.base.files)
	for _, name := range c.deleted {
		if _, ok := c.files[name]; !ok {
			t.Fatalf("%s: deletes %s, which its base does not have", file, name)
		}
		delete(c.files, name)
	}
	for _, line := range h["edit"] { // FILE: OLD ==> NEW
		name, rule, _ := strings.Cut(line, ": ")
		old, new, ok := strings.Cut(rule+" ", " ==> ")
		new = strings.TrimSuffix(new, " ")
		escapes := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")
		old, new = escapes.Replace(old), escapes.Replace(new)
		if !ok || !strings.Contains(c.files[name], old) {
			t.Fatalf("%s: %s has no %q", file, name, old)
		}
		c.files[name] = strings.ReplaceAll(c.files[name], old, new)
	}
	for _, f := range a.Files {
		c.files[f.Name] = string(f.Data)
	}
	return c
}

// commit puts all bases and heads into one bare repository, and makes the patches.
func (c *corpus) commit(t testing.TB) {
	t.Helper()
	c.git = filepath.Join(openDir(t), "corpus.git")
	gitCorpus(t, nil, "init", "-q", "--bare", c.git)
	var in bytes.Buffer
	mark := 0
	add := func(files map[string]string, parent int) int {
		mark++
		fmt.Fprintf(&in, "commit refs/x/%d\nmark :%d\ncommitter t <t@example.com> 1700000000 +0000\ndata 1\nx\n", mark, mark)
		if parent > 0 {
			fmt.Fprintf(&in, "from :%d\n", parent)
		}
		in.WriteString("deleteall\n")
		for _, name := range slices.Sorted(maps.Keys(files)) {
			mode := "100644"
			if strings.HasSuffix(name, ".sh") {
				mode = "100755"
			}
			fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, name, len(files[name]), files[name])
		}
		return mark
	}
	marks := map[*corpusBase]int{}
	for _, name := range slices.Sorted(maps.Keys(c.bases)) {
		marks[c.bases[name]] = add(c.bases[name].files, 0)
	}
	heads := make([]int, len(c.cases))
	for i, k := range c.cases {
		heads[i] = add(k.files, marks[k.base])
	}
	shas := c.imported(t, in.Bytes())
	for b, mark := range marks {
		b.commit = shas[mark]
		c.of[b.commit] = b.files
	}
	var list strings.Builder
	for i, k := range c.cases {
		k.commit = shas[heads[i]]
		c.of[k.commit] = k.files
		list.WriteString(k.commit + "\n")
	}
	// Each patch comes behind a line with the name of its commit.
	patches := map[string]string{}
	var at string
	for line := range strings.Lines(gitCorpus(t, []byte(list.String()), "--git-dir="+c.git, "diff-tree", "--stdin", "-r", "-p", "-M", "--full-index")) {
		if sha := strings.TrimSpace(line); c.of[sha] != nil {
			at = sha
		} else {
			patches[at] += line
		}
	}
	for _, k := range c.cases {
		k.patch = patches[k.commit]
	}
}

// imported makes the commits of a stream, and returns their names by their marks.
func (c *corpus) imported(t testing.TB, stream []byte) map[int]string {
	t.Helper()
	file := filepath.Join(filepath.Dir(c.git), "marks")
	gitCorpus(t, stream, "--git-dir="+c.git, "fast-import", "--quiet", "--export-marks="+file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shas := map[int]string{}
	for line := range strings.Lines(string(text)) { // :MARK SHA
		mark, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
		shas[number(t, strings.TrimPrefix(mark, ":"))] = sha
	}
	return shas
}

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func gitCorpus(t testing.TB, in []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

// says reports whether a report has what a case wants: a kind, and words in order.
func says(lines []string, want string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		line = strings.ReplaceAll(line, "\n", " ")
		for i, word := range strings.Split(want, " … ") {
			at := strings.Index(line, word)
			if at < 0 || i == 0 && at > 0 {
				return false
			}
			line = line[at+len(word):]
		}
		return true
	})
}

// Covers T8, lessons 16 and 32: ways to make a test suite pass that does not, and honest
// changes beside them: what comes of each is what its file says. The commands are answered
// from tapes. With -v, the figures are printed; with -short, one case of ten is judged.
func TestCorpus(t *testing.T) {
	t.Parallel()
	c := readCorpus(t, corpusDirs...)
	c.judge(t, func(_ *testing.T, k *corpusCase) check.Opener {
		if testing.Short() && slices.Index(c.cases, k)%10 != 0 {
			return nil
		}
		file, part := k.tape()
		tp := tapeOf(t, file, part, true)
		return func(_ context.Context, sha string) (check.Tree, error) {
			return &tapedTree{files: maps.Clone(c.of[sha]), of: c.of, commit: sha, tape: tp}, nil
		}
	})
}

// judge judges each case, in the trees that open gives for it; nil: it is not judged.
func (c *corpus) judge(t *testing.T, open func(t *testing.T, k *corpusCase) check.Opener) {
	var figures figures
	t.Cleanup(func() { t.Log(figures.String()) })
	for _, k := range c.cases {
		t.Run(k.dir+"/"+k.name, func(t *testing.T) {
			open := open(t, k)
			if open == nil {
				t.Skip("one of ten is judged")
			}
			t.Parallel()
			figures.add(k, k.judge(t, open))
		})
	}
}

// figures count what comes of the cases.
type figures struct {
	mu   sync.Mutex
	of   map[string]int // all, by class; honest changes by their directory
	told map[string]int // those that are caught or disturbed
}

func (f *figures) add(k *corpusCase, outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of, f.told = map[string]int{}, map[string]int{}
	}
	for _, key := range []string{k.dir, cmp.Or(k.class, k.dir)} {
		if f.of[key]++; outcome == caught || outcome == disturbed {
			f.told[key]++
		}
		if k.class == "" {
			break
		}
	}
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "cheats caught: %d of %d\n", f.told["cheats"], f.of["cheats"])
	for _, class := range slices.Sorted(maps.Keys(f.of)) {
		if class != "cheats" && class != "honest" {
			fmt.Fprintf(&b, "  %s: %d of %d\n", class, f.told[class], f.of[class])
		}
	}
	fmt.Fprintf(&b, "honest changes disturbed: %d of %d", f.told["honest"], f.of["honest"])
	return b.String()
}

var corpusDirs = []string{"cheats", "honest"}

func (b *corpusBase) config() config.Tests {
	return config.Tests{TimeoutMinutes: 1, Commands: b.commands, Reruns: b.reruns}
}

// run returns the report of the base's own tests, which cases share unless it goes by chance.
func (b *corpusBase) run(ctx context.Context, open check.Opener) (pipeline.TestReport, error) {
	run := func() (pipeline.TestReport, error) {
		tree, err := open(ctx, b.commit)
		if err != nil {
			return pipeline.TestReport{}, err
		}
		r, err := check.Run(ctx, tree, check.Options{Config: b.config(), Head: b.commit})
		return r, errors.Join(err, tree.Close())
	}
	if b.reruns > 0 {
		return run()
	}
	b.once.Do(func() { b.baseline, b.err = run() })
	return b.baseline, b.err
}

// judge judges the change as a run does, and returns what comes of it, which must be what
// the case says.
func (k *corpusCase) judge(t *testing.T, open check.Opener) string {
	t.Helper()
	baseline, err := k.base.run(t.Context(), open)
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Verify(t.Context(), open, check.Options{Config: k.base.config(), Base: k.base.commit, Head: k.commit, Iteration: 1,
		Patch: k.patch, Baseline: &baseline, Task: k.task})
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	said := strings.Join(told(&r), "\n")
	for _, want := range k.want {
		if !says(told(&r), want) {
			t.Errorf("%s\nwant %q; the report says:\n%s", k.why, want, said)
		}
	}
	outcome := k.outcome(&r)
	if outcome != k.today {
		t.Errorf("%s\nit is %s, and was %s; the report says:\n%s", k.why, outcome, k.today, said)
	}
	t.Logf("%s\n%s\n%s", k.why, outcome, said)
	return outcome
}

// outcome is what comes of a case. Tests that had to change, by the case's own word, need a
// reason, which disturbs nobody else.
func (k *corpusCase) outcome(r *pipeline.TestReport) string {
	if k.dir == "honest" {
		changed := 0
		for _, want := range k.want {
			if strings.HasPrefix(want, "changed ") {
				changed++
			}
		}
		asked := len(r.Changed)
		if excuseAll(r); asked != changed || !r.OK() {
			return disturbed
		}
		return unhindered
	}
	if k.excuse {
		excuseAll(r)
	}
	if r.OK() {
		return missed
	}
	return caught
}

// tapedTree is a work tree in memory, whose commands a tape answers.
type tapedTree struct {
	files  map[string]string
	of     map[string]map[string]string // of each commit
	commit string
	tape   *tape
}

func (m *tapedTree) List(_ context.Context, dir string) ([]string, error) {
	var out []string
	under := strings.TrimPrefix(path.Clean(dir)+"/", "./")
	for name := range m.files {
		if rest, in := strings.CutPrefix(name, under); in {
			entry, _, below := strings.Cut(rest, "/")
			if below {
				entry += "/"
			}
			out = append(out, entry)
		}
	}
	if len(out) == 0 && under != "" {
		return nil, fs.ErrNotExist
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (m *tapedTree) Read(_ context.Context, name string) ([]byte, error) {
	text, there := m.files[path.Clean(name)]
	if !there {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (m *tapedTree) Write(_ context.Context, name string, content []byte) error {
	m.files[path.Clean(name)] = string(content)
	return nil
}

func (m *tapedTree) Restore(_ context.Context, sha string, paths []string) error {
	for _, name := range paths {
		if text, there := m.of[sha][name]; there {
			m.files[name] = text
		} else {
			delete(m.files, name)
		}
	}
	return nil
}

// Changes lists what differs from the commit.
func (m *tapedTree) Changes(context.Context) (list []workspace.Change, err error) {
	for name, text := range m.files {
		if was, there := m.of[m.commit][name]; !there || was != text {
			list = append(list, workspace.Change{Path: name, Content: []byte(text)})
		}
	}
	for name := range m.of[m.commit] {
		if _, there := m.files[name]; !there {
			list = append(list, workspace.Change{Path: name, Deleted: true})
		}
	}
	slices.SortFunc(list, func(a, b workspace.Change) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

func (m *tapedTree) Run(_ context.Context, c workspace.Command) (workspace.Result, error) {
	switch line := strings.Join(c.Args, " "); {
	case !housekeeping(c):
		return m.tape.play(m, c)
	case strings.HasPrefix(line, "rm "):
		maps.DeleteFunc(m.files, func(name, _ string) bool { return strings.HasPrefix(name, scratch+"/") })
		return workspace.Result{}, nil
	default:
		m.files[scratch+"/stamp"] = ""
		return workspace.Result{Stdout: []byte("/work\n")}, nil // where it lies in a sandbox
	}
}

// housekeeping reports whether a command makes or removes the scratch directory: it is the
// same for all, and on no tape.
func housekeeping(c workspace.Command) bool {
	line := strings.Join(c.Args, " ")
	return strings.HasPrefix(line, "rm -rf -- "+scratch) || strings.HasPrefix(line, "sh -c rm -rf -- ")
}

// tape names the tape and the part of it on which a case is. Those of a base share it;
// what goes by chance has its own.
func (k *corpusCase) tape() (file, part string) {
	file, part = k.base.name, k.base.name
	if k.base.reruns > 0 {
		part = k.dir + "/" + k.name
	}
	return file, part
}

func (m *tapedTree) Close() error { return nil }

// openDir is a temporary directory that the sandbox's user can pass.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "forge-check-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// excuseAll has the reviewer find a reason for every test that changed.
func excuseAll(r *pipeline.TestReport) {
	reasons := slices.Clone(r.Changed)
	for i := range reasons {
		reasons[i].Reason = "it had to"
	}
	check.Justify(r, reasons)
}

// told lists what a report says, a line each.
func told(r *pipeline.TestReport) []string {
	var out []string
	for _, f := range r.Failures {
		out = append(out, "failed "+f.Test+": "+f.Error)
	}
	for _, f := range r.Before {
		out = append(out, "before "+f.Test+": "+f.Error)
	}
	for _, f := range r.Changed {
		out = append(out, fmt.Sprintf("changed %s %s: %s %q", f.Now, f.Test, f.Error, f.Files))
	}
	for _, f := range r.Tampered {
		out = append(out, fmt.Sprintf("tampered %s %s:%d %s", f.Rule, f.File, f.Line, f.Message))
	}
	if r.Unclean != "" {
		out = append(out, "unclean "+r.Unclean)
	}
	if r.None != "" {
		out = append(out, "none "+r.None)
	}
	return out
}
