package check

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

const (
	maxChanged   = 200 // caps TestReport.Changed
	maxRounds    = 3   // of putting back what the base's tests do not compile with
	maxNarrow    = 20  // packages that are named one by one
	changedBytes = 600 // of a TestChange's error
)

// outcome is what became of a test.
type outcome struct {
	status status
	err    string
	file   string
}

// outcomes sums a list of tests up by name; of two tests of one name the worse counts.
func outcomes(cases []testcase) map[string]outcome {
	rank := map[status]int{passed: 1, flaky: 1, carrier: 2, skipped: 3, failed: 4}
	out := make(map[string]outcome, len(cases))
	for i := range cases {
		t := &cases[i]
		if t.whole {
			continue // no test
		}
		if had, ok := out[t.name]; !ok || rank[t.status] > rank[had.status] {
			out[t.name] = outcome{t.status, t.err, t.file}
		}
	}
	return out
}

func (o outcome) ok() bool { return o.status == passed || o.status == flaky }

// stood is what the base's own tests, as they stood there, say about the head.
type stood struct {
	cases   []testcase
	tests   map[string]outcome
	kept    map[string]string // files of the tests that stayed as the change made them, and why
	declare map[string]string // test functions in those of them that are Go's, by name: the file
	helpers []string          // of the kept files those by which other tests may pass
	narrow  []string          // directories of the Go packages that were run; nil: all
	cut     string            // why they could not be run at all
	notRun  string            // why one of their suites could not
}

// runBaseTests runs the base's tests as they stood. What they do not compile with
// any more, or what breaks them all, is put back as the change made it, file by
// file, so that one changed signature does not hide a package's other tests.
func (v *verdict) runBaseTests(ctx context.Context) error {
	if len(v.edits) == 0 && len(v.loose) == 0 {
		return nil
	}
	s, p, err := v.stand(ctx, len(v.loose) > 0)
	if err != nil {
		return err
	}
	if len(v.edits) > 0 {
		v.stood = s
	}
	return v.mustFail(ctx, p, true, s.kept)
}

// stand runs the tests of the head with the edits taken back.
func (v *verdict) stand(ctx context.Context, plan bool) (*stood, *planting, error) {
	s := &stood{kept: map[string]string{}, declare: map[string]string{}, narrow: v.packages()}
	var p *planting
	narrow := s.narrow
	for round := 0; ; round++ {
		c, err := v.run(ctx, treeRun{sha: v.o.Head, back: true, kept: s.kept, narrow: narrow, plants: &p, plan: plan && round == 0})
		if text, mine := environment(err); mine {
			s.cut = text
		} else if err != nil {
			return nil, nil, err
		}
		s.take(c, p, round > 0 && narrow != nil)
		blamed := v.blame(c, s)
		if len(blamed) == 0 || round == maxRounds || s.cut != "" {
			break
		}
		maps.Copy(s.kept, blamed)
		narrow = v.again(c, blamed)
	}
	s.tests = outcomes(s.cases)
	v.declared(s)
	return s, p, nil
}

// leaning is what the base's tests say with some of their helpers as they stood.
type leaning struct {
	stood *stood
	edits []edit
	alone bool // the helper may be the product's own
}

// runWithHelpers runs the base's tests once more with the files put back that they
// lean on under other names. It is a run of its own: where such a file is the
// product's after all, the first run still has the code of the change in it.
func (v *verdict) runWithHelpers(ctx context.Context) error {
	try := func(back []edit, alone bool) error {
		w := *v
		w.edits, w.helping = slices.Concat(v.edits, back), true
		if w.allBack() {
			return nil
		}
		s, _, err := w.stand(ctx, false)
		if err == nil && (!alone || s.cut == "") {
			v.leaning = append(v.leaning, leaning{s, back, alone})
		}
		return err
	}
	helpers, w := v.helpers, *v
	if w.edits = slices.Concat(v.edits, helpers); w.allBack() { // a script leads to all: some of it is what it tests
		helpers = slices.DeleteFunc(slices.Clone(helpers), func(e edit) bool { return !toolDirs.MatchString(e.name) && !supportNames.MatchString(e.name) })
	}
	if len(helpers) > 0 {
		if err := try(helpers, false); err != nil {
			return err
		}
	}
	for _, list := range v.alone {
		if err := try(list, true); err != nil {
			return err
		}
	}
	return nil
}

// allBack reports whether nothing of the change would be left to be tested.
func (v *verdict) allBack() bool {
	return !slices.ContainsFunc(v.head.patch.files, func(f *gitdiff.File) bool {
		return !slices.ContainsFunc(v.edits, func(e edit) bool {
			return (e.name == f.OldName || e.name == f.NewName) && (e.merged == nil || e.role != testSource) // a part of it
		})
	})
}

// changes tells the tests that pass only with the helpers as the change has them.
func (l *leaning) changes(c *checker, told []pipeline.TestChange) []pipeline.TestChange {
	var names []string
	for _, e := range l.edits {
		names = append(names, e.name)
	}
	var out []pipeline.TestChange
	for _, change := range l.stood.changes(c, l.edits) {
		broken := slices.Contains(l.stood.helpers, change.Test)
		if slices.ContainsFunc(told, func(o pipeline.TestChange) bool { return o.Test == change.Test }) ||
			broken && !slices.Contains(names, change.Test) || l.alone && (broken || l.stood.tests[change.Test].status != failed) {
			continue
		}
		change.Files = names[:min(len(names), 10)]
		out = append(out, change)
	}
	return out
}

// treeRun says how the tests of a commit are run for comparison.
type treeRun struct {
	sha       string
	back      bool              // with the base's tests put back
	kept      map[string]string // but for these
	narrow    []string
	plants    **planting      // tests that must fail, to be planted
	plan      bool            // make them up first
	whole     bool            // for the suites that tell no tests apart, alone
	once      map[string]bool // the commands that are run, without running again what fails; nil: all
	elsewhere bool            // in another place
	moved     bool            // and with the tests moved there, too
	often     int             // Go's alone, so often in one process; 0: as usual
	all       bool            // whatever the suites can tell: the commit may have others
	ahead     []string        // files that are as the head has them
	names     []string        // the tests that matter; nil: all
	record    *recording      // takes what tests call; nil: nothing is recorded
	spoil     *spoiler        // with what the tests expect changed; nil: as it is
}

// run runs tests once, in a fresh tree.
func (v *verdict) run(ctx context.Context, r treeRun) (*checker, error) {
	c, err := newChecker(nil, Options{Config: v.o.Config, Timeout: v.o.Timeout, Log: v.o.Log, Clock: v.o.Clock})
	if err != nil {
		return nil, err
	}
	tree, err := v.open(ctx, r.sha)
	if err != nil {
		return c, err
	}
	defer tree.Close()
	if r.back {
		if err := v.putBack(ctx, tree, r.kept); err != nil {
			return c, err
		}
	}
	if len(r.ahead) > 0 {
		if err := tree.Restore(ctx, v.o.Head, r.ahead); err != nil {
			return c, fmt.Errorf("put the head's tests on the base: %w", err)
		}
	}
	if r.elsewhere {
		if err := cloned(ctx, tree); err != nil {
			return c, err
		}
		if r.moved {
			if c.moved, err = move(ctx, tree, &v.o); err != nil {
				return c, err
			}
		}
		tree = elsewhere{tree}
	}
	c.ws, c.bare, c.narrow, c.elsewhere = tree, true, r.narrow, r.elsewhere
	if err := v.suitesOf(ctx, c, r); err != nil {
		return c, err
	}
	if c.moved != nil {
		for _, s := range c.suites {
			s.args = c.moved.command(s.args)
		}
	}
	if r.often > 0 {
		c.often, c.o.Config.Reruns = r.often, 0
		c.only = func(s *suite) bool { return s.format == formatGo }
	}
	if r.plan {
		files, err := c.testFiles(ctx, tree, v.passing())
		if err != nil {
			return c, err
		}
		*r.plants = newPlanting(files, v.o.word(12))
	}
	var p *planting
	if r.plants != nil {
		p = *r.plants
	}
	c.worth = func(t *testcase) bool { return !p.made(t) && v.matters(t.name) }
	if r.names != nil {
		c.worth = func(t *testcase) bool { return slices.Contains(r.names, t.name) }
	}
	if r.spoil != nil {
		c.o.Config.Reruns = 0
		if n, err := r.spoil.tree(ctx, tree); err != nil || n == 0 { // then nothing is to be seen
			return c, err
		}
	}
	if r.whole && !r.all {
		c.only = func(s *suite) bool { return s.format == formatAny }
		c.o.Config.Reruns = 0
	}
	if r.once != nil {
		c.only = func(s *suite) bool { return r.once[s.done.Command] }
		c.o.Config.Reruns = 0
	}
	if p != nil {
		if err := p.plant(ctx, tree, r.whole); err != nil {
			return c, err
		}
	}
	if r.record != nil {
		if err := into(ctx, tree, recorders); err != nil {
			return c, err
		}
		c.recording, c.o.Config.Reruns, c.o.Timeout = true, 0, min(c.timeout(), recordAtMost)
	}
	if err := c.runAll(ctx); err != nil {
		return c, err
	}
	if r.record != nil {
		return c, recorded(ctx, tree, r.record)
	}
	if c.moved != nil {
		c.moved.back(c)
	}
	c.wrote = written(ctx, tree)
	if p != nil {
		p.look(c)
	}
	return c, nil
}

// suitesOf finds the suites of a tree. They are the head's where no file came, went
// or is about how tests are run.
func (v *verdict) suitesOf(ctx context.Context, c *checker, r treeRun) error {
	same := r.sha == v.o.Head && !r.elsewhere && !slices.ContainsFunc(v.edits, func(e edit) bool { return e.role == runner || e.added })
	for _, f := range v.head.patch.files {
		same = same && !f.IsDelete && !f.IsRename
	}
	var err error
	if !same {
		c.suites, err = c.detect(ctx)
		return err
	}
	c.root, c.modules = v.head.root, v.head.modules
	for _, s := range v.suites {
		c.suites = append(c.suites, &s)
	}
	return nil
}

// putBack makes the files of the tests be what they were at the base, those that
// the change added gone.
func (v *verdict) putBack(ctx context.Context, tree Tree, kept map[string]string) error {
	var paths []string
	for _, e := range v.edits {
		if _, keep := kept[e.name]; !keep {
			paths = append(paths, e.name)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	if err := tree.Restore(ctx, v.o.Base, paths); err != nil {
		return fmt.Errorf("put the base's tests back: %w", err)
	}
	for _, e := range v.edits {
		if _, keep := kept[e.name]; keep || e.merged == nil {
			continue
		}
		if err := tree.Write(ctx, e.name, e.merged); err != nil {
			return fmt.Errorf("put the base's test settings into %s: %w", e.name, err)
		}
	}
	return nil
}

// passing lists the tests that passed at the base and those that pass at the head:
// by them the files of tests are found.
func (v *verdict) passing() []string {
	var out []string
	if v.o.Baseline != nil {
		out = slices.Clone(v.o.Baseline.Names)
	}
	for name, o := range v.tests {
		if o.ok() {
			out = append(out, name)
		}
	}
	return out
}

// matters reports whether it would make a difference that a test fails as it
// stood: the head's own failures are told anyway.
func (v *verdict) matters(name string) bool { return v.tests[name].status != failed }

// packages returns the directories of the Go packages whose tests the change can
// have touched, where it is sure that there are no others: a test file is seen by
// its own package alone. Nil: all tests are run.
func (v *verdict) packages() []string {
	if len(v.loose) > 0 || len(v.edits) == 0 {
		return nil
	}
	var out []string
	for _, e := range v.edits {
		if !strings.HasSuffix(e.name, "_test.go") || !slices.ContainsFunc(v.head.modules, func(m goModule) bool { return m.holds(e.name) }) {
			return nil
		}
		out = append(out, path.Dir(e.name))
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxNarrow {
		return nil
	}
	return out
}

func (m goModule) holds(file string) bool {
	return m.dir == "" || m.dir == "." || strings.HasPrefix(file, strings.TrimPrefix(m.dir, "/")+"/")
}

// again returns what is to be run once more after files were put back.
func (v *verdict) again(c *checker, blamed map[string]string) []string {
	var out []string
	for file := range blamed {
		if path.Ext(file) != ".go" || v.helping { // others import it
			return c.narrow
		}
		out = append(out, path.Dir(file))
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxNarrow {
		return c.narrow
	}
	return out
}

// take adds the result of a run; one that was narrowed to some packages replaces
// what was known of those.
func (s *stood) take(c *checker, p *planting, part bool) {
	for _, suite := range c.suites {
		if suite.done.NotRun != "" && !suite.optional {
			s.notRun = suite.done.NotRun
		}
	}
	fresh := slices.DeleteFunc(c.cases(), func(t testcase) bool { return p.made(&t) })
	if !part {
		s.cases = nil
	}
	groups := map[string]bool{}
	for i := range fresh {
		groups[fresh[i].group] = true
	}
	s.cases = append(slices.DeleteFunc(s.cases, func(t testcase) bool { return groups[t.group] }), fresh...)
}

// cases lists what all suites found.
func (c *checker) cases() []testcase {
	var out []testcase
	for _, s := range c.suites {
		out = append(out, s.result.cases...)
	}
	return out
}

var compileLine = lazyregexp.New(`(?m)^(?:vet: )?(\S+_test\.go|\S+\.go):\d+(?::\d+)?: .*`)

// blame returns the files of the tests because of which tests could not even be
// started as they stood, with the error.
func (v *verdict) blame(c *checker, s *stood) map[string]string {
	out := map[string]string{}
	open := map[string]edit{}
	for _, e := range v.edits {
		if _, kept := s.kept[e.name]; !kept && !e.added {
			open[e.name] = e
		}
	}
	for _, s := range c.suites {
		for i := range s.result.cases {
			t := &s.result.cases[i]
			switch {
			case t.status != failed:
			case s.format == formatGo && t.whole:
				c.blameBuild(t, open, out)
			default:
				for name, e := range open {
					if e.inProduct() && !t.whole {
						continue // its own tests stand in it
					}
					if (e.role == runner || !testname.IsFile(name) || path.Base(name) == "conftest.py") && (t.file == name && !v.helping || t.whole && strings.Contains(t.err, name)) {
						out[name] = t.err
					}
				}
			}
		}
	}
	if v.helping && len(out) == 0 { // the product may not compile with what it uses of them by now
		for _, t := range c.cases() {
			if why := goMissing.FindString(t.err); t.whole && t.status == failed && why != "" {
				blameHelpers(open, why, out)
			}
		}
	}
	return out
}

// goMissing is how the compiler says that a package lacks something.
var goMissing = lazyregexp.New(`(?m)^.*\.go:\d+(?::\d+)?: (?:undefined: |.* undefined|cannot use |not enough arguments|too many arguments|no required module|package \S+ is not in).*$`)

// blameHelpers blames all code of Go that is no test.
func blameHelpers(open map[string]edit, why string, out map[string]string) {
	for name, e := range open {
		if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && e.role == testSource {
			out[name] = why
		}
	}
}

// blameBuild finds the files that a package's tests do not compile with. Where the
// compiler names none of them, it is all of the package's.
func (c *checker) blameBuild(t *testcase, open map[string]edit, out map[string]string) {
	g := &goOutput{modules: c.modules}
	dir := path.Join(".", g.moduleDir(t.group), g.inModule(t.group))
	named := false
	for _, m := range compileLine.FindAllStringSubmatch(t.err, -1) {
		for _, name := range []string{path.Join(g.moduleDir(t.group), m[1]), path.Join(dir, path.Base(m[1]))} {
			if _, ok := open[strings.TrimPrefix(name, "/")]; ok {
				name = strings.TrimPrefix(name, "/")
				named = true
				if out[name] == "" {
					out[name] = m[0]
				}
				break
			}
		}
	}
	if named {
		return
	}
	for name := range open {
		if path.Dir(name) == dir {
			out[name] = text.FirstLine(t.err)
		}
	}
}

var (
	goTestDecl = lazyregexp.New(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w*)\(`)
)

// declared finds the tests of Go files that stayed as the change made them: those
// whose text it edited could not be run as they stood. Tests of other files may
// depend on what else was edited there.
func (v *verdict) declared(s *stood) {
	for _, e := range v.edits {
		if _, kept := s.kept[e.name]; !kept {
			continue
		}
		if path.Ext(e.name) != ".go" {
			s.helpers = append(s.helpers, e.name)
			continue
		}
		pkg := v.head.packageOf(path.Dir(e.name))
		tests, rest := goParts(e.before)
		now, restNow := goParts(e.now)
		for name, text := range tests {
			if now[name] != text {
				s.declare[pkg+"."+name] = e.name
			}
		}
		if rest != restNow || !testname.IsFile(e.name) {
			s.helpers = append(s.helpers, e.name)
		}
	}
	slices.Sort(s.helpers)
}

// goParts takes a file of tests apart: the text of each test, and everything else
// but comments and imports that come and go with what the tests use.
func goParts(source []byte) (tests map[string]string, rest string) {
	tests = map[string]string{}
	var other strings.Builder
	name, imports := "", false
	for line := range strings.Lines(string(source)) {
		text := strings.TrimSpace(line)
		if m := goTestDecl.FindStringSubmatch(line); m != nil && name == "" {
			name = m[1]
		}
		switch {
		case name != "":
			tests[name] += text + "\n"
			if strings.HasPrefix(line, "}") || strings.HasSuffix(text, "}") && strings.HasPrefix(line, "func ") {
				name = ""
			}
		case text == "" || strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "//go:"):
		case strings.HasPrefix(line, "import (") || imports && text != ")":
			imports = true
			if plainImport.MatchString(text) {
				continue
			}
			other.WriteString(text + "\n")
		case imports:
			imports = false
		default:
			if !strings.HasPrefix(line, "import ") || !plainImport.MatchString(strings.TrimPrefix(text, "import ")) {
				other.WriteString(text + "\n")
			}
		}
	}
	return tests, other.String()
}

// plainImport is an import under its own name, of the standard library: what it
// is used for stands in the tests themselves.
var plainImport = lazyregexp.New(`^(?:import \(|"[a-z0-9/]+")$`)

// packageOf returns the import path of a directory.
func (c *checker) packageOf(dir string) string {
	best, out := -1, dir
	for _, m := range c.modules {
		if at := strings.TrimPrefix(path.Join("/", m.dir), "/"); m.holds(path.Join(dir, "x")) && len(at) > best {
			best, out = len(at), path.Join(m.path, strings.TrimPrefix(path.Join("/", dir), "/"+at))
		}
	}
	return out
}

// changes compares test by test what the base's tests as they stood say with what
// the head's own run says.
func (s *stood) changes(c *checker, edits []edit) []pipeline.TestChange {
	head := outcomes(c.cases())
	var out []pipeline.TestChange
	if s.cut != "" {
		return []pipeline.TestChange{{Test: "all tests of the base", Error: text.Head(s.cut, changedBytes), Now: string(passed), Files: touched("", edits)}}
	}
	for _, name := range s.helpers {
		out = append(out, pipeline.TestChange{Test: name, Error: text.Head(s.kept[name], changedBytes), Now: string(passed), Files: []string{name}})
	}
	var names []string
	if b := c.o.Baseline; b != nil {
		names = slices.Clone(b.Names)
		for _, f := range b.Failures {
			if !f.Whole {
				names = append(names, f.Test)
			}
		}
	}
	for name, o := range s.tests { // a base that could not be run has no names
		if o.status == failed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		why, bad := s.asItStood(c, name)
		if !bad || c.brought[name] {
			continue
		}
		is, there := head[name]
		switch {
		case is.status == failed, is.status == carrier:
			continue // told as a failure
		case !there && !c.finished(name):
			continue // its package or file broke off at the head
		}
		was := s.tests[name]
		_, kept := s.keptFile(name)
		if id := testname.Parse(name); kept && id.Param != "" && slices.Contains(names, id.Container+"."+id.Base) {
			continue // told with the test that it is a case of
		}
		if !is.ok() && was.status != failed && !kept && s.reason(name) == "" {
			continue // gone or skipped as it stood, too: the edit is not the cause
		}
		if is.status == skipped {
			why = "it is now skipped; as it stood: " + why
		}
		out = append(out, pipeline.TestChange{Test: name, Error: text.Head(why, changedBytes), Now: now(head, name), Files: touched(name, edits)})
	}
	if more := len(out) - maxChanged; more > 0 {
		out = out[:maxChanged]
		out[maxChanged-1] = pipeline.TestChange{Test: fmt.Sprintf("%d more tests", more+1), Now: string(passed), Error: "they, too, do not pass as they stood at the base", Files: touched("", edits)}
	}
	return out
}

// asItStood returns why a test of the base is not known to pass as it stood.
func (s *stood) asItStood(c *checker, name string) (why string, bad bool) {
	if file, kept := s.keptFile(name); kept {
		return "it could not be run as it stood at the base: " + s.kept[file], true
	}
	o, there := s.tests[name]
	switch {
	case o.ok():
		return "", false
	case o.status == failed:
		return o.err, true
	case o.status == carrier:
		return s.child(name)
	case o.status == skipped:
		return "as it stood at the base it is skipped", true
	case there:
		return "", false // unreachable: those are all
	}
	if !s.covers(c, name) {
		return "", false
	}
	if why := s.reason(name); why != "" {
		return "it could not be run as it stood at the base: " + why, true
	}
	return "as it stood at the base it is not run any more", true
}

// child looks at a test that failed because of one inside it, which speaks for itself.
func (s *stood) child(name string) (why string, bad bool) {
	for i := range s.cases {
		t := &s.cases[i]
		if t.status != failed || !strings.HasPrefix(t.name, name+"/") && !strings.HasPrefix(t.name, name+" ") {
			continue
		}
		return "", false
	}
	return "a test inside it fails as it stood at the base", true
}

// covers reports whether a test that is not in the result was to be run at all:
// where only some packages were run, the others are the head's own.
func (s *stood) covers(c *checker, name string) bool {
	if s.narrow == nil {
		return true
	}
	id := testname.Parse(name)
	return slices.ContainsFunc(s.narrow, func(dir string) bool { return c.packageOf(dir) == id.Container })
}

func (s *stood) keptFile(name string) (string, bool) {
	id := testname.Parse(name)
	file, ok := s.declare[id.Container+"."+id.Base]
	return file, ok
}

// reason returns the error with which a missing test's package, file or suite broke.
func (s *stood) reason(name string) string {
	suite := s.notRun
	for i := range s.cases {
		t := &s.cases[i]
		if t.status != failed || !t.whole {
			continue
		}
		if t.group == "" || strings.HasPrefix(t.name, "/") {
			suite = t.err
		} else if file, _, _ := strings.Cut(t.group, "::"); within(file)(name) || within(t.group)(name) || within(strings.ReplaceAll(t.group, ".", "/")+".py")(name) {
			return t.err
		}
	}
	return suite
}

// touched returns the files of the tests that the change touched and that a test
// depends on, as far as can be told: its own, those beside and beneath it, and
// what decides for all.
func touched(name string, edits []edit) []string {
	file, _, _ := strings.Cut(name, "::")
	file, _, _ = strings.Cut(file, " > ")
	var own, all []string
	for _, e := range edits {
		all = append(all, e.name)
		dir := path.Dir(e.name)
		if name == "" || e.name == file || e.role == runner || e.role == testData || strings.HasSuffix(testname.Parse(name).Container, dir) || dir == "." {
			own = append(own, e.name)
		}
	}
	if len(own) == 0 {
		own = all
	}
	return own[:min(len(own), 10)]
}

// editedInside finds tests that stand in files of the product (doctests, tests
// beside the code): those cannot be put back without the product, so that an edit
// of their text is told as it is.
func (c *checker) editedInside(isTest map[string]bool, read func(string) ([]byte, bool)) []pipeline.TestChange {
	if c.o.Baseline == nil {
		return nil
	}
	names := slices.Clone(c.o.Baseline.Names)
	for name, f := range c.base {
		if !f.Whole {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var out []pipeline.TestChange
	for _, f := range c.patch.files {
		if f.IsNew || isTest[f.OldName] || path.Ext(f.OldName) != ".py" {
			continue
		}
		before := textBefore(f, read)
		var now []byte
		if !f.IsDelete {
			now, _ = read(f.NewName)
		}
		for _, name := range names {
			rest, mine := strings.CutPrefix(name, f.OldName+"::")
			if !mine {
				rest, mine = strings.CutPrefix(name, strings.ReplaceAll(strings.TrimSuffix(f.OldName, ".py"), "/", ".")+".")
			}
			if !mine {
				continue
			}
			was, is := pythonTest(before, rest), pythonTest(now, rest)
			if !bytes.Equal(was, is) {
				out = append(out, pipeline.TestChange{Test: name, Files: []string{f.OldName},
					Error: "its text stands in a file of the product, and the change edits it: it could not be run as it stood"})
			}
		}
	}
	return append(out, c.editedExamples(names, isTest, read)...)
}

var doctestLine = lazyregexp.New(`^\s*(?:>>>|\.\.\.)`)

// pythonTest returns the text of a test function, or the examples of what has the name,
// or all of the file's where nothing in it has.
func pythonTest(source []byte, name string) []byte {
	id := testname.Parse(name)
	block := pythonBlock(source, id.Base)
	if strings.HasPrefix(id.Base, "test") {
		return block
	}
	if block != nil {
		source = block
	}
	var out []byte
	open := false
	for line := range bytes.Lines(source) {
		switch text := bytes.TrimSpace(line); {
		case doctestLine.Match(line):
			open = true
			out = append(append(out, text...), '\n')
		case len(text) == 0 || bytes.HasPrefix(text, []byte(`"""`)) || bytes.HasPrefix(text, []byte(`'''`)):
			open = false
		case open: // what the example is to print
			out = append(append(out, text...), '\n')
		}
	}
	return out
}

var pythonDecl = lazyregexp.New(`^\s*(?:(?:async )?def|class) (\w+)`)

// pythonBlock returns the lines of the functions and classes of a name, without space
// around them; nil where there are none.
func pythonBlock(source []byte, name string) []byte {
	var out []byte
	indent := -1
	for line := range bytes.Lines(source) {
		at := len(line) - len(bytes.TrimLeft(line, " \t"))
		blank := len(bytes.TrimSpace(line)) == 0
		if indent >= 0 && !blank && at <= indent {
			indent = -1
		}
		if m := pythonDecl.FindSubmatch(line); m != nil && indent < 0 && string(m[1]) == name {
			indent = at
		}
		if indent >= 0 {
			out = append(append(out, bytes.TrimSpace(line)...), '\n')
		}
	}
	return bytes.TrimSuffix(out, []byte("\n"))
}
