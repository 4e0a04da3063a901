package check

import (
	"context"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
	"forge/pipeline/workspace"
)

// Code under test can turn on the place that it runs in in more ways than can be
// listed. So where a change reads anything of that place, its tests run once more in
// another: a tree, a user, a host and caches of other names, another command line,
// and no CI in the environment.

// elsewhere is a tree whose commands run in another place.
type elsewhere struct{ Tree }

func (e elsewhere) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	c.Elsewhere = true
	return e.Tree.Run(ctx, c)
}

// cloned makes a work tree look like one that somebody cloned: those of the sandbox
// have no .git.
func cloned(ctx context.Context, tree Tree) error {
	_, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"sh", "-c",
		`test -e .git || { mkdir -p .git/objects .git/refs && echo 'ref: refs/heads/main' >.git/HEAD; }`}})
	return err
}

// What code needs in order to know where it runs.
var (
	goSenses = lazyregexp.New(`\b(?:os|runtime|filepath|exec|user|debug|plugin|syscall|unix|unsafe|flag|testing|net|buildinfo)\.|"(?:os|log|runtime|path/filepath|syscall|unsafe|flag|testing|net|plugin|debug)(?:/[\w/]+)?"|linkname|go:embed`)
	pySenses = lazyregexp.New(`__\w+__|\b(?:os|sys|pathlib|Path|getpass|pwd|socket|platform|shutil|tempfile|glob|open|subprocess|site|sysconfig|inspect|import_module|importlib|getattr|eval|exec|globals|vars|locals|ctypes|psutil|threading|multiprocessing|gc|traceback|linecache|resource|uuid|locale|logging|warnings|faulthandler|signal|stat|tty|pty|termios|curses|environ|getenv|getcwd)\b`)
	jsSenses = lazyregexp.New("\\b(?:process|__dirname|__filename|globalThis|global|eval|Function|Deno|Bun|env)\\b|import\\.meta|['\"](?:node:)?(?:os|fs|path|child_process|process|url|vm|module|worker_threads|v8|inspector|async_hooks|net|dns|tty|readline|perf_hooks)(?:/\\w+)?['\"]|\\.stack\\b|require\\(\\s*[^'\")]|import\\(\\s*[^'\")]|require\\.\\w|\\bmodule\\.(?:parent|path|id|filename|paths)")
	// anySenses is for the languages whose ways are not known so well.
	anySenses = lazyregexp.New(`(?i)env|getcwd|__file__|__dir__|\bdir\b|argv|args|hostname|home|tmp|\buser|path|proc\b|file|caller|stack|backtrace|program|\$0`)
	sourceExt = lazyregexp.New(`(?i)\.(?:rb|php|java|kt|kts|scala|groovy|cs|fs|vb|rs|ex|exs|c|cc|cpp|h|hpp|m|swift|lua|pl|pm|sh|bash|r|jl|dart|clj|hs|ml|zig|nim)$`)
)

// senses reports whether the change adds to the product what can know its place.
func (v *verdict) senses() bool {
	if len(v.loose) > 0 {
		return true
	}
	for f, lines := range v.head.patch.productLines(v.isTest) {
		lang := languageOf(f.NewName)
		re := map[*language]*lazyregexp.Regexp{&goLang: goSenses, &pyLang: pySenses, &jsLang: jsSenses}[lang]
		if re == nil && sourceExt.MatchString(f.NewName) {
			re = anySenses
		}
		if re == nil {
			continue
		}
		for _, l := range lines {
			if text := l.Text; re.MatchString(text) && (lang == nil || withoutRemark(text, lang) != "") {
				return true
			}
		}
	}
	return v.asksOf(point.Place, point.Hidden, point.Ends)
}

// runElsewhere holds that what passes does so in another place, too. A test that does
// not, and that does where the base's code runs there, fails. Where all pass, code
// that asks for CI is not for the tests.
func (v *verdict) runElsewhere(ctx context.Context) error {
	if !v.senses() {
		return nil
	}
	sure, err := v.runMoved(ctx)
	if err != nil || sure {
		return err
	}
	now, err := v.inAnotherPlace(ctx, v.o.Head, false)
	if err != nil || now == nil {
		return err
	}
	bad := v.failsThere(now)
	if len(bad) > 0 {
		before, err := v.inAnotherPlace(ctx, v.o.Base, false)
		if err != nil || before == nil {
			return err
		}
		was := outcomes(before.cases())
		bad = slices.DeleteFunc(bad, func(p placed) bool {
			o, there := was[p.test.name]
			return o.status == failed || p.skips && o.status != passed || p.broke && before.brokenSuite(p.suite) || !there && p.skips
		})
	}
	if len(bad) > 0 { // once more: luck is not the place
		again, err := v.inAnotherPlace(ctx, v.o.Head, false)
		if err != nil || again == nil {
			return err
		}
		sure := v.failsThere(again)
		bad = slices.DeleteFunc(bad, func(p placed) bool {
			return !slices.ContainsFunc(sure, func(o placed) bool { return o.test.name == p.test.name })
		})
	}
	for _, p := range bad {
		p.fail(turnsOnPlace)
	}
	v.settled(now, bad)
	return nil
}

// settled lets code ask for CI whose tests pass in another place.
func (v *verdict) settled(now *checker, bad []placed) {
	if len(bad) == 0 && !slices.ContainsFunc(now.suites, func(s *suite) bool { return s.needsCI() || s.done.NotRun != "" }) {
		v.head.asked = nil
	}
}

// runMoved does the same with the tests moved as well. It judges by tests alone that
// pass so on the base's code. sure is whether that was all of them that pass: else a
// place is asked that asks less of them.
func (v *verdict) runMoved(ctx context.Context) (sure bool, err error) {
	now, err := v.inAnotherPlace(ctx, v.o.Head, true)
	if err != nil || now == nil {
		return false, err
	}
	bad := v.failsThere(now)
	if sure = v.reported(now); len(bad) > 0 {
		before, err := v.inAnotherPlace(ctx, v.o.Base, true)
		if err != nil || before == nil {
			return false, err
		}
		was, all := outcomes(before.cases()), len(bad)
		bad = slices.DeleteFunc(bad, func(p placed) bool { return was[p.test.name].status != passed })
		sure = sure && len(bad) == all
	}
	if len(bad) > 0 { // once more: luck is not the place
		again, err := v.inAnotherPlace(ctx, v.o.Head, true)
		if err != nil || again == nil {
			return false, err
		}
		steady := v.failsThere(again)
		bad = slices.DeleteFunc(bad, func(p placed) bool {
			return !slices.ContainsFunc(steady, func(o placed) bool { return o.test.name == p.test.name })
		})
	}
	for _, p := range bad {
		p.fail(turnsOnTests)
	}
	if sure {
		v.settled(now, bad)
	}
	return sure, nil
}

// reported reports whether each test of the head's run that passes is in another one.
func (v *verdict) reported(there *checker) bool {
	got := outcomes(there.cases())
	for _, s := range v.head.suites {
		for i := range s.result.cases {
			t := &s.result.cases[i]
			if _, is := got[t.name]; t.status == passed && !t.whole && !is {
				return false
			}
		}
	}
	return true
}

// counts tells by a line of Go that something counts its calls.
var (
	counts  = lazyregexp.New(`\.Add(?:Int|Uint)?(?:32|64)?\(.*\b1\s*\)|\w\+\+|\+=\s*1\b`)
	keeping = lazyregexp.New(`^var\s+\w+(?:, \w+)*\s+(?:=\s*)?(?:atomic\.|u?int|\d)|\batomic\.`)
)

const (
	oftenCalls  = 3000             // runs of tests in all
	oftenAtMost = 10 * time.Second // of tests whose run takes longer, nobody waits for many
)

// runOften holds that Go's tests pass, too, when they are run often in one process,
// where the change counts calls. It judges by tests alone that do so on the base's code.
func (v *verdict) runOften(ctx context.Context) error {
	count := false
	for f, lines := range v.head.patch.productLines(v.isTest) {
		has := func(re *lazyregexp.Regexp) bool {
			return slices.ContainsFunc(lines, func(l point.Line) bool { return re.MatchString(l.Text) })
		}
		count = count || languageOf(f.NewName) == &goLang && has(counts) && has(keeping)
	}
	var ms int64
	for _, s := range v.head.suites {
		ms += s.done.Millis
	}
	if !count || len(v.tests) == 0 || time.Duration(ms)*time.Millisecond > oftenAtMost {
		return nil
	}
	r := treeRun{sha: v.o.Head, often: max(10, min(1000, oftenCalls/len(v.tests)))}
	now, err := v.run(ctx, r)
	if _, mine := environment(err); err != nil {
		if mine {
			return nil
		}
		return err
	}
	bad := v.failsThere(now)
	if len(bad) == 0 {
		return nil
	}
	r.sha = v.o.Base
	before, err := v.run(ctx, r)
	if _, mine := environment(err); err != nil {
		if mine {
			return nil
		}
		return err
	}
	was := outcomes(before.cases())
	for _, p := range bad {
		if was[p.test.name].status == passed {
			p.fail(turnsOnCalls)
		}
	}
	return nil
}

// inAnotherPlace runs a commit's tests there; nil: that cannot be done.
func (v *verdict) inAnotherPlace(ctx context.Context, sha string, moved bool) (*checker, error) {
	c, err := v.run(ctx, treeRun{sha: sha, elsewhere: true, moved: moved})
	if text, mine := environment(err); mine {
		v.head.log.Warn("run the tests in another place", "head", sha, "error", text)
		return nil, nil
	}
	return c, err
}

// placed is a test that passes in the usual place alone.
type placed struct {
	suite *suite
	test  *testcase // of the head's own run
	skips bool      // it is skipped there
	broke bool      // it was not reported, because its suite broke
	err   string
}

// failsThere finds the tests of the head's run that pass here and not there.
func (v *verdict) failsThere(there *checker) []placed {
	got := outcomes(there.cases())
	var out []placed
	for _, s := range v.head.suites {
		broken := ""
		if !v.head.brokenSuite(s) {
			broken = there.breakOf(s)
		}
		for i := range s.result.cases {
			t := &s.result.cases[i]
			if t.status != passed {
				continue
			}
			o, reported := got[t.name]
			switch {
			case reported && o.status == failed:
				out = append(out, placed{suite: s, test: t, err: o.err})
			case reported && o.status == skipped:
				out = append(out, placed{suite: s, test: t, skips: true, err: "it is skipped there"})
			case !reported && broken != "":
				out = append(out, placed{suite: s, test: t, broke: true, err: broken})
			}
		}
	}
	return out
}

// breakOf returns the error with which a command broke as a whole.
func (c *checker) breakOf(like *suite) string {
	for _, s := range c.suites {
		for i := range s.result.cases {
			if t := &s.result.cases[i]; s.done.Command == like.done.Command && t.whole && t.status == failed {
				return t.err
			}
		}
	}
	return ""
}

func (c *checker) brokenSuite(like *suite) bool { return c.breakOf(like) != "" }

// What a test turns on that passes in the usual place alone.
const (
	turnsOnPlace = "It passes where Forge runs tests first, and does not in a checkout of another name, with another user, host and home directory, " +
		"another command line, and without CI in the environment. The base's code does not fail there: the change turns on where it runs."
	turnsOnTests = "It passes where Forge runs tests first, and does not in a checkout of another name and user, with the tests in another directory, their numbers written in another way (0x77 for 119), " +
		"no Go sources around them, a Python package installed, and at a terminal, without the test runner's extras and the sandbox's environment. The base's code passes there: the change turns on where it runs, or on its tests."
	turnsOnCalls = "It passes when it is run once, and does not when it is run often in one process. The base's code does: the change turns on how often it is called."
)

// fail makes a test that passes in the usual place alone a failure.
func (p placed) fail(why string) {
	p.test.status = failed
	p.test.err = strings.TrimSpace(strings.TrimSpace(p.err) + "\n" + why)
}

// needsCI reports whether a suite may wait for people where CI is not set.
func (s *suite) needsCI() bool {
	switch s.format {
	case formatGo, formatTAP, formatUnittest, formatCargo, formatMinitest, formatRSpec, formatExUnit:
		return false
	}
	return !s.pytest
}

// otherCommand is a suite's command in another place: the program that runs the tests
// has another name, and its arguments are no test's where that can be had.
func (c *checker) otherCommand(s *suite, args []string) []string {
	pythons := len(args) > 2 && strings.HasPrefix(args[0], "python") && args[1] == "-m"
	load, extra := `import importlib as i, sys; given = sys.argv[1:]; sys.argv[:] = ["app"]; m = i.import_module("%s"[::-1]); `, []string(nil)
	if c.moved != nil {
		load, extra = plainPython+load, plainPytest
	}
	switch {
	case s.format == formatGo && len(args) > 1 && args[0] == "go" && args[1] == "test" && !hasFlag(args, "-exec"):
		if c.moved != nil {
			return withGoFlags(args, "-exec=sh "+c.root+"/"+scratch+"/exec "+c.root)
		}
		return withGoFlags(args, `-exec=sh -c 'ln -f "$0" "${0%/*}/app" 2>/dev/null && exec "${0%/*}/app" "$@"; exec "$0" "$@"'`)
	case pythons && args[2] == "pytest":
		return append(slices.Concat([]string{args[0], "-c", strings.Replace(load, "%s", "tsetyp", 1) + "sys.exit(m.main(given))"}, extra), args[3:]...)
	case pythons && args[2] == "unittest":
		return append([]string{args[0], "-c", strings.Replace(load, "%s", "tsettinu", 1) + "m.main(module=None, argv=['app', *given])"}, args[3:]...)
	}
	return args
}
