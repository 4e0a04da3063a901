package check

import (
	"bytes"
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
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/look"
	"forge/pipeline/testname"
	"forge/pipeline/workspace"

	"golang.org/x/tools/txtar"
)

// corpusCase is a change to a base, and what a verdict must say about it; see
// testdata/README.md.
type corpusCase struct {
	dir, name string
	base      *corpusBase
	why       string
	files     map[string]string // of the head; the base's others stay
	deleted   []string
	want      []string
	task      Task
	excuse    bool
	commit    string // of the head
	patch     string
}

// corpusBase is a repository that changes start from.
type corpusBase struct {
	files    map[string]string
	commands []string
	reruns   int
	commit   string
}

// corpus is some directories of cases with the commits that they are.
type corpus struct {
	git   string // a bare repository
	bases map[string]*corpusBase
	cases []*corpusCase
	of    commits
}

// readCorpus reads the cases of some directories of testdata.
func readCorpus(t testing.TB, dirs ...string) *corpus {
	t.Helper()
	c := &corpus{bases: map[string]*corpusBase{}, of: commits{}}
	for _, file := range globbed(t, "testdata/bases/*.txtar") {
		a := parsed(t, file)
		b := &corpusBase{files: map[string]string{}}
		for key, value := range header(a.Comment) {
			if key == "command" {
				b.commands = value
			}
			if key == "reruns" {
				b.reruns = atoi(value[0])
			}
		}
		for _, f := range a.Files {
			b.files[f.Name] = string(f.Data)
		}
		c.bases[strings.TrimSuffix(filepath.Base(file), ".txtar")] = b
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
	c := &corpusCase{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), files: map[string]string{}, want: h["want"], why: strings.Join(h[""], " ")}
	for key := range h {
		if !slices.Contains([]string{"", "base", "delete", "want", "task", "edit", "excuse"}, key) {
			t.Fatalf("%s: unknown line %q", file, key)
		}
	}
	if len(h["base"]) != 1 || bases[h["base"][0]] == nil || len(c.want) == 0 || c.why == "" {
		t.Fatalf("%s: it must say what it is about, its base, and what is wanted", file)
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
		shas[atoi(strings.TrimPrefix(mark, ":"))] = sha
	}
	return shas
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

// questions are what the reviewer is asked by name about a case's change: kind and file.
func (k *corpusCase) questions(t *testing.T) (list []string) {
	t.Helper()
	p, err := parsePatch(k.patch)
	if err != nil {
		t.Fatal(err)
	}
	base, head := maps.Clone(k.base.files), maps.Clone(k.files)
	tests, isTest := map[string]string{}, map[string]bool{}
	for _, files := range []map[string]string{head, base} {
		for name, text := range files {
			if roleOf(name) == testSource || inTests(name) {
				tests[name], isTest[name] = text, true
			}
		}
	}
	for _, files := range []map[string]string{base, head} {
		maps.DeleteFunc(files, func(name, _ string) bool { return isTest[name] || path.Ext(name) != ".go" || testname.IsFile(name) })
	}
	files := p.lookFiles(isTest)
	for _, at := range append(look.Find(files, tests), look.Twins(base, head, files)...) {
		list = append(list, string(at.Kind)+" "+at.File)
	}
	return list
}

// Covers T8: changes that no run of the tests tells from honest ones are asked about.
func TestAsked(t *testing.T) {
	t.Parallel()
	for _, k := range readCorpus(t, "asked").cases {
		got := k.questions(t)
		for _, want := range k.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %s\nwant %q, asked %q", k.name, k.why, want, got)
			}
		}
	}
}

// Covers T8: most honest changes are asked nothing; many of these were written to look
// like cheats.
func TestHonestQuestions(t *testing.T) {
	t.Parallel()
	c := readCorpus(t, "honest")
	asked := 0
	for _, k := range c.cases {
		if list := k.questions(t); len(list) > 0 {
			asked++
			t.Logf("%s: %q", k.name, list)
		}
	}
	if asked*3 > len(c.cases) {
		t.Errorf("%d of %d honest changes are asked about, want a third at most", asked, len(c.cases))
	}
}

// Covers T8, lessons 16 and 32: some changes of each kind, whose commands are answered from
// tapes. All of them are run behind the tag e2e, by TestCorpus.
func TestTaped(t *testing.T) {
	t.Parallel()
	c := readCorpus(t, corpusDirs...)
	byName := map[string]*corpusCase{}
	for _, k := range c.cases {
		byName[k.dir+"/"+k.name] = k
	}
	for _, file := range globbed(t, "testdata/tapes/corpus/*/*.jsonl") {
		name, _ := strings.CutPrefix(strings.TrimSuffix(filepath.ToSlash(file), ".jsonl"), "testdata/tapes/corpus/")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := byName[name]
			if k == nil {
				t.Fatalf("%s is of no case", file)
			}
			tp := tapeOf(t, "corpus/"+name, "TestCorpus/"+name, true)
			k.judge(t, func(_ context.Context, sha string) (Tree, error) {
				return &tapedTree{files: maps.Clone(c.of[sha]), of: c.of, commit: sha, tape: tp}, nil
			})
		})
	}
}

var corpusDirs = []string{"cheats", "honest", "named", "asked", "inside", "unsteady"}

func (b *corpusBase) config() config.Tests {
	return config.Tests{TimeoutMinutes: 1, Commands: b.commands, Reruns: b.reruns}
}

// judge judges the change as a run does, and holds that what is wanted is said of it.
func (k *corpusCase) judge(t *testing.T, open Opener) {
	t.Helper()
	tree, err := open(t.Context(), k.base.commit)
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := Run(t.Context(), tree, Options{Config: k.base.config(), Head: k.base.commit})
	if err := errors.Join(err, tree.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), open, Options{Config: k.base.config(), Base: k.base.commit, Head: k.commit, Iteration: 1, Patch: k.patch,
		Baseline: &baseline, Task: k.task, random: words()})
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	if k.excuse {
		excuseAll(&r)
	}
	lines := told(&r)
	said := strings.Join(lines, "\n")
	for _, want := range k.want {
		if k.dir != "asked" && want != "ok" && !says(lines, want) {
			t.Errorf("%s\nwant %q; the report says:\n%s", k.why, want, said)
		}
	}
	switch k.dir {
	case "cheats":
		if r.OK() {
			t.Errorf("%s\nverified in silence: %d passed of %d", k.why, r.Passed, r.Total)
		}
	case "honest":
		changed := 0
		for _, want := range k.want {
			if strings.HasPrefix(want, "changed ") {
				changed++
			}
		}
		if len(r.Changed) != changed || r.OK() != (changed == 0) {
			t.Errorf("%s\n%d tests changed, want %d; OK %v:\n%s", k.why, len(r.Changed), changed, r.OK(), said)
		}
		if excuseAll(&r); !r.OK() {
			t.Errorf("%s\nnot verified, though each changed test has its reason:\n%s", k.why, strings.Join(told(&r), "\n"))
		}
	case "inside", "unsteady":
		if r.OK() != slices.Contains(k.want, "ok") {
			t.Errorf("%s\nOK %v:\n%s", k.why, r.OK(), said)
		}
	case "asked":
		if !r.OK() {
			t.Logf("%s\nis stopped by now, and belongs to cheats:\n%s", k.why, said)
		}
	}
	t.Logf("%s\n%s", k.why, said)
}

// tapedTree is a work tree in memory, whose commands a tape answers.
type tapedTree struct {
	files  map[string]string
	of     commits
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

func (m *tapedTree) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	return m.tape.run(m, c, nil, nil)
}

func (m *tapedTree) Close() error                         { return nil }
func (m *tapedTree) place() string                        { return "" }
func (m *tapedTree) snapshot() (map[string]string, error) { return m.files, nil }

func (m *tapedTree) change(files map[string]*string) error {
	for name, text := range files {
		if text == nil {
			delete(m.files, name)
		} else {
			m.files[name] = *text
		}
	}
	return nil
}

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
	Justify(r, reasons)
}
