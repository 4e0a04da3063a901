package check

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/look"
	"forge/pipeline/sandbox"
	"forge/pipeline/testname"
	"forge/pipeline/workspace"

	"golang.org/x/tools/txtar"
)

// corpusCase is a change to a base, and what a verdict must say about it; see
// testdata/README.md.
type corpusCase struct {
	name, base string
	why        string
	files      map[string]string // of the head; the base's others stay
	deleted    []string
	want       []string
	task       Task
	excuse     bool
	gitBase    string // commits
	gitHead    string
	patch      string
}

// corpusBase is a repository that changes start from.
type corpusBase struct {
	files    map[string]string
	commands []string
	reruns   int
	once     sync.Once
	report   pipeline.TestReport
	err      error
}

// corpus is a directory of cases with the commits that they are.
type corpus struct {
	dir   string // the bare git directory
	bases map[string]*corpusBase
	cases []*corpusCase
	m     *sandbox.Manager

	caches map[string]string // of a commit: what compiles nothing starts without a build cache
	mu     sync.Mutex
	idle   map[string][]workspace.Workspace // by their cache
}

// readCorpus reads the cases of some directories of testdata.
func readCorpus(t testing.TB, dirs ...string) *corpus {
	t.Helper()
	c := &corpus{bases: map[string]*corpusBase{}, caches: map[string]string{}, idle: map[string][]workspace.Workspace{}}
	t.Cleanup(func() {
		for _, list := range c.idle {
			for _, w := range list {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
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
			c.cases = append(c.cases, readCase(t, file, c.bases))
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
	c.base = h["base"][0]
	for _, line := range h["delete"] {
		c.deleted = append(c.deleted, strings.Fields(line)...)
	}
	if len(h["task"]) > 0 {
		c.task.Text = h["task"][0]
	}
	c.excuse = len(h["excuse"]) > 0
	c.files = maps.Clone(bases[c.base].files)
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

// commit puts all bases and heads into one bare repository, with one process.
func (c *corpus) commit(t testing.TB) {
	t.Helper()
	c.dir = filepath.Join(openDir(t), "corpus.git")
	gitCorpus(t, nil, "init", "-q", "--bare", c.dir)
	var in bytes.Buffer
	mark := 0
	add := func(files map[string]string) int {
		mark++
		fmt.Fprintf(&in, "commit refs/x/%d\nmark :%d\ncommitter t <t@example.com> 1700000000 +0000\ndata 1\nx\ndeleteall\n", mark, mark)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			mode := "100644"
			if strings.HasSuffix(name, ".sh") {
				mode = "100755"
			}
			fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, name, len(files[name]), files[name])
		}
		return mark
	}
	marks := map[string]int{}
	for name, b := range c.bases {
		marks[name] = add(b.files)
	}
	heads := make([]int, len(c.cases))
	for i, k := range c.cases {
		heads[i] = add(k.files)
	}
	shas := c.imported(t, in.Bytes())
	for i, k := range c.cases {
		k.gitBase, k.gitHead = shas[marks[k.base]], shas[heads[i]]
		cache := cacheFor(c.bases[k.base].files)
		c.caches[k.gitBase], c.caches[k.gitHead] = cache, cache
		if some(i) {
			k.patch = gitCorpus(t, nil, "--git-dir="+c.dir, "diff-tree", "-r", "-p", "-M", "--full-index", k.gitBase, k.gitHead)
		}
	}
	c.m = newManager(t)
	warmGo(t, c.m)
}

// imported makes the commits of a stream, and returns their names by their marks.
func (c *corpus) imported(t testing.TB, stream []byte) map[int]string {
	t.Helper()
	file := filepath.Join(filepath.Dir(c.dir), "marks")
	gitCorpus(t, stream, "--git-dir="+c.dir, "fast-import", "--quiet", "--export-marks="+file)
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

// openDir is a temporary directory that the sandbox's user can pass.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "forge-check-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
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

// open is an Opener of real sandboxes. A checkout starts afresh, so that a
// workspace serves one run after the other.
func (c *corpus) open(ctx context.Context, sha string) (Tree, error) {
	c.mu.Lock()
	key := c.caches[sha]
	var w workspace.Workspace
	if n := len(c.idle[key]); n > 0 {
		w, c.idle[key] = c.idle[key][n-1], c.idle[key][:n-1]
	}
	c.mu.Unlock()
	if w != nil {
		return &lent{w, c, key}, w.Checkout(ctx, sha)
	}
	w, err := c.m.Open(context.WithoutCancel(ctx), workspace.OpenOptions{Name: "corpus", GitDir: c.dir, Commit: sha, Cache: key})
	return &lent{w, c, key}, err
}

// lent is a workspace that goes back to the corpus.
type lent struct {
	workspace.Workspace
	c   *corpus
	key string
}

func (l *lent) Close() error {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.idle[l.key] = append(l.c.idle[l.key], l.Workspace)
	return nil
}

// baseline runs a base's tests, once for all cases.
func (c *corpus) baseline(ctx context.Context, k *corpusCase) (*pipeline.TestReport, error) {
	b := c.bases[k.base]
	b.once.Do(func() {
		var tree Tree
		if tree, b.err = c.open(ctx, k.gitBase); b.err == nil {
			defer tree.Close()
			b.report, b.err = Run(ctx, tree, Options{Config: b.config(), Head: k.gitBase})
		}
	})
	return &b.report, b.err
}

func (b *corpusBase) config() config.Tests {
	return config.Tests{TimeoutMinutes: 1, Commands: b.commands, Reruns: b.reruns}
}

// judge runs a case's change through Verify.
func (c *corpus) judge(t *testing.T, k *corpusCase) pipeline.TestReport {
	t.Helper()
	base, err := c.baseline(context.WithoutCancel(t.Context()), k)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), c.open, Options{Config: c.bases[k.base].config(), Base: k.gitBase, Head: k.gitHead, Iteration: 1, Patch: k.patch, Baseline: base, Task: k.task})
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	return r
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

// some reports whether a case is one of those that every run of the tests judges: one
// of seven, over all languages. With the tag soak, all are.
func some(i int) bool { return wholeCorpus || i%7 == 0 }

// Covers T8, lessons 16 and 32: ways to make a test suite pass that does not.
// None is verified in silence.
func TestCheats(t *testing.T) {
	needAll(t)
	c := readCorpus(t, "cheats")
	if len(c.cases) < 60 {
		t.Errorf("%d ways to cheat, want 60 at least", len(c.cases))
	}
	for i, k := range c.cases {
		if !some(i) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r := c.judge(t, k)
			if k.excuse {
				excuseAll(&r)
			}
			lines := told(&r)
			for _, want := range k.want {
				if !says(lines, want) {
					t.Errorf("%s\nwant %q; the report says:\n%s", k.why, want, strings.Join(lines, "\n"))
				}
			}
			if r.OK() {
				t.Errorf("%s\nverified in silence: %d passed of %d", k.why, r.Passed, r.Total)
			}
			t.Logf("%s: %s\n%s", time.Since(begun).Round(time.Millisecond), k.why, strings.Join(lines, "\n"))
		})
	}
}

// Covers T8: changes that weaken tests of the base which need not change, each beside an
// honest one. They are verified, and what they edit is named.
func TestNamedEdits(t *testing.T) {
	needAll(t)
	c := readCorpus(t, "named")
	for i, k := range c.cases {
		if !some(i) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			if tool := map[string]string{"minitest": "ruby", "phpunit": "phpunit"}[k.base]; tool != "" {
				need(t, tool)
			}
			t.Parallel()
			r := c.judge(t, k)
			lines := told(&r)
			for _, want := range k.want {
				if !says(lines, want) {
					t.Errorf("%s\nwant %q; the report says:\n%s", k.why, want, strings.Join(lines, "\n"))
				}
			}
		})
	}
}

// Covers T8: changes that no run of the tests tells from honest ones are asked about.
func TestAsked(t *testing.T) {
	needAll(t)
	c := readCorpus(t, "asked")
	for i, k := range c.cases {
		got := c.questions(t, k)
		for _, want := range k.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %s\nwant %q, asked %q", k.name, k.why, want, got)
			}
		}
		if !some(i) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if r := c.judge(t, k); !r.OK() {
				t.Logf("%s\nis stopped by now, and belongs to cheats:\n%s", k.why, strings.Join(told(&r), "\n"))
			}
		})
	}
}

// questions are what the reviewer is asked by name about a case's change: kind and file.
func (c *corpus) questions(t *testing.T, k *corpusCase) (list []string) {
	t.Helper()
	patch := k.patch
	if patch == "" {
		patch = gitCorpus(t, nil, "--git-dir="+c.dir, "diff-tree", "-r", "-p", "-M", "--full-index", k.gitBase, k.gitHead)
	}
	p, err := parsePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	base, head := maps.Clone(c.bases[k.base].files), maps.Clone(k.files)
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

// Covers T8: most honest changes are asked nothing; many of these were written to look
// like cheats.
func TestHonestQuestions(t *testing.T) {
	need(t, "git")
	c := readCorpus(t, "honest")
	asked, once := 0, 0
	for _, k := range c.cases {
		list := c.questions(t, k)
		if len(list) > 0 {
			asked++
			t.Logf("%s: %q", k.name, list)
		}
		if len(list) == 1 {
			once++
		}
	}
	t.Logf("%d of %d honest changes are asked about, %d of them once", asked, len(c.cases), once)
	if asked*3 > len(c.cases) {
		t.Errorf("%d of %d honest changes are asked about, want a third at most", asked, len(c.cases))
	}
}

// Honest changes raise no alarm. Where a test had to change, the reviewer's reason
// settles it.
func TestHonest(t *testing.T) {
	needAll(t)
	c := readCorpus(t, "honest")
	for i, k := range c.cases {
		if !some(i) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r := c.judge(t, k)
			lines := told(&r)
			wantChanged := 0
			for _, want := range k.want {
				switch {
				case want == "ok":
				case !says(lines, want):
					t.Errorf("%s\nwant %q; the report says:\n%s", k.why, want, strings.Join(lines, "\n"))
				}
				if strings.HasPrefix(want, "changed ") {
					wantChanged++
				}
			}
			if len(r.Changed) != wantChanged || r.OK() != (wantChanged == 0) {
				t.Errorf("%s\n%d tests changed, want %d; OK %v:\n%s", k.why, len(r.Changed), wantChanged, r.OK(), strings.Join(lines, "\n"))
			}
			excuseAll(&r)
			if !r.OK() {
				t.Errorf("%s\nnot verified, though each changed test has its reason:\n%s", k.why, strings.Join(told(&r), "\n"))
			}
			t.Logf("%s: %s\n%s", time.Since(begun).Round(time.Millisecond), k.why, strings.Join(lines, "\n"))
		})
	}
}

// excuseAll has the reviewer find a reason for every test that changed.
func excuseAll(r *pipeline.TestReport) {
	reasons := slices.Clone(r.Changed)
	for i := range reasons {
		reasons[i].Reason = "it had to"
	}
	Justify(r, reasons)
}

func needAll(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"bwrap", "git", "npm", "go", "python3"} {
		need(t, tool)
	}
}
