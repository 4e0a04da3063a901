package check

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

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
	if len(v.edits) == 0 {
		return nil
	}
	s := &stood{kept: map[string]string{}, declare: map[string]string{}, narrow: v.packages()}
	narrow := s.narrow
	for round := 0; ; round++ {
		c, err := v.run(ctx, treeRun{sha: v.o.Head, back: true, kept: s.kept, narrow: narrow})
		if text, mine := environment(err); mine {
			s.cut = text
		} else if err != nil {
			return err
		}
		s.take(c, round > 0 && narrow != nil)
		blamed := v.blame(c, s)
		if len(blamed) == 0 || round == maxRounds || s.cut != "" {
			break
		}
		maps.Copy(s.kept, blamed)
		narrow = v.again(c, blamed)
	}
	s.tests = outcomes(s.cases)
	v.declared(s)
	v.stood = s
	return nil
}

// maxUnsure is how many files [verdict.settle] tries. Each is a run of the plain commands.
const maxUnsure = 4

// settle finds, of the files that may be the tests' or the product's, those by whose edit alone a
// plain command passes: with the base's tests it fails on the new code as soon as such a one, too, is
// as it stood, although it passed at the base. Then it is taken for one of the tests'.
func (v *verdict) settle(ctx context.Context) error {
	if v.o.Baseline == nil {
		return nil
	}
	plain := map[string]bool{}
	for _, s := range v.head.suites {
		if s.plain() && s.done.Exit == 0 {
			plain[s.done.Command] = true
		}
	}
	if len(plain) == 0 {
		return nil
	}
	failing := func(more ...edit) (map[string]bool, error) {
		return v.failing(ctx, slices.Concat(v.edits, more), plain)
	}
	tried := slices.Clone(v.unsure[:min(len(v.unsure), maxUnsure)])
	for i := range tried {
		tried[i].role = runner
	}
	var without map[string]bool
	back := func(edits ...edit) (found bool, err error) {
		with, err := failing(edits...)
		if _, mine := environment(err); mine {
			return false, nil
		}
		for name, fails := range with {
			if fails = fails && slices.Contains(v.o.Baseline.Names, name); fails && without == nil {
				if without, err = failing(); err != nil {
					return false, err
				}
			}
			if fails && !without[name] {
				for _, e := range edits {
					v.edits, v.isTest[e.name], v.texts[e.name] = append(v.edits, e), true, e.now
				}
				without = nil
				return true, nil
			}
		}
		return false, err
	}
	told := false
	for _, e := range tried {
		found, err := back(e)
		if err != nil {
			return err
		}
		told = told || found
	}
	// Where each of several suffices, all go back; and all but one, which may be the product.
	for i := -1; !told && len(tried) > 1 && i < len(tried) && (i < 0 || len(tried) > 2); i++ {
		others := slices.Clone(tried)
		if i >= 0 {
			others = slices.Delete(others, i, i+1)
		}
		found, err := back(others...)
		if err != nil {
			return err
		}
		told = found
	}
	return nil
}

// failing tells which tests fail on the new code with some edits taken back, of these commands.
func (v *verdict) failing(ctx context.Context, back []edit, commands map[string]bool) (map[string]bool, error) {
	edits := v.edits
	v.edits = back
	defer func() { v.edits = edits }()
	c, err := v.run(ctx, treeRun{sha: v.o.Head, back: true, once: commands})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for name, o := range outcomes(c.cases()) {
		out[name] = o.status == failed
	}
	return out, nil
}

// spare leaves what looks like the product's out of the edits that are taken back: a command such as
// `sh -n sum.sh && sh t.sh` names both, and the base's product passes the base's tests whatever the
// change made of it. So each file that commands name stays once as the change has it, all else as it
// stood; one with which a test fails that passed at the base stays so. Files with the name of a
// test's are tried only where no other is named.
func (v *verdict) spare(ctx context.Context) error {
	if v.o.Baseline == nil || len(v.direct) == 0 || len(v.edits)+len(v.unsure) < 2 {
		return nil
	}
	tried := slices.DeleteFunc(slices.Clone(v.direct), func(name string) bool {
		return testname.IsFile(name) || supportNames.MatchString(path.Base(name))
	})
	if len(tried) == 0 {
		tried = v.direct
	}
	all := map[string]bool{}
	for _, s := range v.head.suites {
		all[s.done.Command] = true
	}
	for _, name := range tried[:min(len(tried), maxUnsure)] {
		others := slices.DeleteFunc(slices.Clone(v.edits), func(e edit) bool { return e.name == name })
		fails, err := v.failing(ctx, slices.Concat(others, v.unsure), all)
		if _, mine := environment(err); mine {
			continue
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(v.o.Baseline.Names, func(test string) bool { return fails[test] && v.matters(test) }) {
			v.edits = others
			delete(v.isTest, name)
			return nil
		}
	}
	return nil
}

// treeRun says how the tests of a commit are run for comparison.
type treeRun struct {
	sha    string
	back   bool              // with the base's tests put back
	kept   map[string]string // but for these
	narrow []string
	among  []string          // files of tests, where others say nothing; nil: all
	once   map[string]bool   // the commands that are run, without running again what fails; nil: all
	ahead  []string          // files that are as the head has them
	names  []string          // the tests that matter; nil: all
	write  map[string][]byte // files that are changed, without running again what fails
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
	for _, name := range slices.Sorted(maps.Keys(r.write)) {
		if err := tree.Write(ctx, name, r.write[name]); err != nil {
			return c, fmt.Errorf("change what %s expects: %w", name, err)
		}
	}
	c.ws, c.bare, c.narrow, c.among = tree, true, r.narrow, r.among
	if err := v.suitesOf(ctx, c, r); err != nil {
		return c, err
	}
	c.worth = func(t *testcase) bool { return v.matters(t.name) }
	if r.names != nil {
		c.worth = func(t *testcase) bool { return slices.Contains(r.names, t.name) }
	}
	if r.once != nil {
		c.only = func(s *suite) bool { return r.once[s.done.Command] }
	}
	if r.once != nil || r.write != nil {
		c.o.Config.Reruns = 0
	}
	return c, c.runAll(ctx)
}

// suitesOf finds the suites of a tree. They are the head's where no file came, went
// or is about how tests are run.
func (v *verdict) suitesOf(ctx context.Context, c *checker, r treeRun) error {
	same := r.sha == v.o.Head && !slices.ContainsFunc(v.edits, func(e edit) bool { return e.role == runner || e.added })
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

// matters reports whether it would make a difference that a test fails as it
// stood: the head's own failures are told anyway.
func (v *verdict) matters(name string) bool { return v.tests[name].status != failed }

// packages returns the directories of the Go packages whose tests the change can
// have touched, where it is sure that there are no others: a test file is seen by
// its own package alone. Nil: all tests are run.
func (v *verdict) packages() []string {
	if len(v.edits) == 0 {
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
		if path.Ext(file) != ".go" {
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
func (s *stood) take(c *checker, part bool) {
	for _, suite := range c.suites {
		if suite.done.NotRun != "" && !suite.optional {
			s.notRun = suite.done.NotRun
		}
	}
	fresh := c.cases()
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
					if (e.role == runner || !testname.IsFile(name) || path.Base(name) == "conftest.py") && (t.file == name || t.whole && strings.Contains(t.err, name)) {
						out[name] = t.err
					}
				}
			}
		}
	}
	return out
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

// concerns reports whether a suite is part of a narrowed run.
func (c *checker) concerns(s *suite) bool {
	if c.only != nil && !c.only(s) {
		return false
	}
	if c.among != nil && s.pytest {
		return len(c.filesOf(s)) > 0
	}
	if c.among != nil && s.format == formatGo && !slices.ContainsFunc(c.among, func(name string) bool { return path.Ext(name) == ".go" }) {
		return false
	}
	return c.narrow == nil || s.format == formatGo && (s.args[len(s.args)-1] != "./..." || len(c.inModule(s)) > 0)
}

// inModule returns the packages of a narrowed run that a suite tests, as its
// command names them.
func (c *checker) inModule(s *suite) []string {
	var out []string
	for _, dir := range c.narrow {
		rest, ok := strings.CutPrefix("./"+dir+"/", "./"+strings.TrimPrefix(s.dir+"/", "./"))
		deeper := slices.ContainsFunc(c.modules, func(m goModule) bool { // the package is a nested module's
			at := strings.Trim(m.dir, "/")
			return len(at) > len(strings.Trim(s.dir, "./")) && strings.HasPrefix(dir+"/", at+"/")
		})
		if ok && !deeper {
			out = append(out, "./"+strings.TrimSuffix(rest, "/"))
		}
	}
	return out
}

// filesOf are the files of a narrowed run that a suite of Python tests, as its command names them.
func (c *checker) filesOf(s *suite) (out []string) {
	for _, name := range c.among {
		if rest, ok := strings.CutPrefix(name, strings.TrimPrefix(path.Clean(s.dir)+"/", "./")); ok && path.Ext(name) == ".py" {
			out = append(out, rest)
		}
	}
	return out
}

// bareArgs is a suite's command for a run that is only compared: nothing stops it
// early, and only what may differ is run.
func (c *checker) bareArgs(s *suite) []string {
	args := slices.Clone(s.args)
	switch {
	case s.format == formatGo:
		if n := len(args) - 1; c.narrow != nil && args[n] == "./..." {
			args = append(args[:n], c.inModule(s)...)
		}
		args = slices.DeleteFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "failfast" })
	case s.pytest:
		args = append(append(args, "--maxfail=0", "--continue-on-collection-errors"), c.filesOf(s)...)
	case s.format == formatJest:
		args = append(args, "--bail=0")
	case s.format == formatUnittest:
		args = slices.DeleteFunc(args, func(a string) bool { return a == "-f" || a == "--failfast" })
	}
	return args
}

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
