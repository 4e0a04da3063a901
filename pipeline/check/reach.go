package check

import (
	"cmp"
	"fmt"
	"go/version"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// The rules about code under test that reaches for the tests.
const (
	ruleDetects = "tests.detected"
	ruleForges  = "tests.forged"
	ruleBent    = "tests.bent" // found by running them: see runSpoiled
)

// reach is something in code under test that only makes sense against its tests.
type reach struct {
	rule    string
	pattern *lazyregexp.Regexp
	near    *lazyregexp.Regexp // must be in the lines around it, too; nil: it is enough
	what    string
}

var (
	aboutTests = lazyregexp.New(`(?i)["'/` + "`" + `](?:[^"'` + "`" + `]*[^a-z"'` + "`" + `])?(?:py\.?test|unit-?test|tests?|spec|jest|mocha|vitest)(?:[^a-z]|$)`)
	computed   = lazyregexp.New(`["']\s*\+|\+\s*["']|\.join\(|chr\(|\.decode\(|\[::-1\]|fromCharCode|b64|base64|atob|%\s*\(|\.format\(|\bf["'].*\{`)
	report     = `(?:--- (?:PASS|FAIL|SKIP)|=== RUN|\bTAP version|not ok \d|\bok \d+ -|\\x16|\\u0016|<testsuite|<testcase|Ran \d+ tests?|# pass \d|# fail \d|"Action":\s*"pass"|numPassedTests|numFailedTests)`
	writes     = `(?i:print|write|puts|echo|console\.|stdout|stderr)`
)

// byItsRun is said of code that turns on who runs it: an honest reason is rare, and
// what is looked for can be written in a hundred ways.
const byItsRun = "behaves by who calls it, or by the program and the place that it runs in"

// endsCaller is said of code after which its caller does not go on: a test that checks in a
// thread passes unchecked.
const endsCaller = "ends the thread that its caller runs in"

// What turns on a text, near where that was asked for.
var (
	goTurns = lazyregexp.New(`\b(?:HasSuffix|HasPrefix|Contains\w*|MatchString|EqualFold)\(|\.Ext\(|\bstrings\.(?:Index|Count)\(|[!=]= *["'` + "`" + `]|["'` + "`" + `] *[!=]=`)
	pyTurns = lazyregexp.New(`\.(?:startswith|endswith|find|count)\(|\bre\.(?:match|search|fullmatch)\(|["'] *(?:not )?in\b|[!=]= *["']|\bin *[\[({]["']|\bany\(`)
)

var goReaches = []reach{
	{ruleDetects, lazyregexp.New(`\btesting\.(?:Testing|Short|Verbose|CoverMode|Coverage|Init|Benchmark|AllocsPerRun|MainStart|Main)\(`), nil, "asks whether a test runs"},
	{ruleDetects, lazyregexp.New(`^\s*(?:import\s+)?(?:[\w.]+\s+)?"testing(?:/\w+)?"\s*$`), nil, importsTests},
	{ruleDetects, lazyregexp.New(`\bos\.(?:Args|Executable)\b`), lazyregexp.New(`(?i)["'` + "`" + `][^"'` + "`" + `]*test`), "looks at the name of the program for a test's"},
	{ruleDetects, lazyregexp.New(`\bflag\.(?:Lookup|Set|Visit|VisitAll|CommandLine)\b`), lazyregexp.New(`["'` + "`" + `](?:-*test[."'` + "`" + `]|test\.)`), "looks at the flags of a test program"},
	{ruleDetects, lazyregexp.New(`\bflag\.VisitAll\b`), lazyregexp.New(`\.Name\s*\[|\blen\(\s*\w+\.Name\s*\)\s*[<>=!]|strings\.(?:HasPrefix|Contains\w*|Index\w*|Count|Cut|Split\w*)\(\s*\w+\.Name`), "looks at the flags of a test program"},
	{ruleDetects, lazyregexp.New(`\b(?:runtime\.(?:Callers?|Stack|FuncForPC|CallersFrames)|debug\.(?:Stack|PrintStack|ReadBuildInfo))\b`), lazyregexp.New(`(?i)["'` + "`" + `][^"'` + "`" + `]*test|\bTest[A-Z]`), "looks for a test in the stack"},
	{ruleDetects, lazyregexp.New(`Getenv\(\s*["'` + "`" + `](?:GO_?TEST\w*|TESTING|TEST|GOCOVERDIR|TEST_\w*TMPDIR)["'` + "`" + `]|LookupEnv\(\s*["'` + "`" + `](?:GO_?TEST\w*|TESTING|TEST|GOCOVERDIR)["'` + "`" + `]`), nil, "looks at the environment of tests"},
	{ruleDetects, lazyregexp.New(`(?:Getenv|LookupEnv)\(\s*["'` + "`" + `]CI["'` + "`" + `]`), nil, asksForCI},
	{ruleDetects, lazyregexp.New(`\bruntime\.(?:Callers?|Stack|FuncForPC|CallersFrames)\(|\bdebug\.(?:Stack|ReadBuildInfo)\(|\bos\.Args\[0\]|\bos\.Executable\(`), goTurns, byItsRun},
	{ruleForges, lazyregexp.New(`go:linkname\s+\w+\s+(?:testing|os)\.|go:linkname\s+\w+\s+runtime\.(?:exit|main)`), nil, "reaches into the test library"},
	{ruleForges, lazyregexp.New(`\bGoexit\b`), nil, endsCaller},
	{ruleForges, lazyregexp.New(`\b(?:syscall|unix)\.(?:Exit|Exec|Kill|Dup[23]?)\(|\bSYS_EXIT`), nil, "ends or redirects the process behind the runner's back"},
}

var pyReaches = []reach{
	{ruleDetects, lazyregexp.New(`\b(?:PYTEST_\w+|_?PYTEST\b|TOX_ENV\w*|NOX_\w+)|\bpytest_?version\b`), nil, "looks at the environment of tests"},
	{ruleDetects, lazyregexp.New(`^\s*(?:import|from)\s+(?:_?pytest|unittest|doctest|nose2?|pluggy)\b|(?:import_module|__import__|find_spec|find_loader|get_distribution|version)\(\s*["'](?:_?pytest|unittest|nose|pluggy)`), nil, importsTests},
	{ruleDetects, lazyregexp.New(`["'](?:_?pytest|unittest|nose2?|doctest|pluggy|xdist|hypothesis|py\.test)[\w.]*["']\s*(?:not\s+)?in\s|modules.*["'](?:_?pytest|unittest|nose2?|doctest|pluggy|xdist|hypothesis)`), nil, "looks for the test library among the loaded modules"},
	{ruleDetects, lazyregexp.New(`\bsys\.modules\b|\bmodules\b.*\bsys\b`), computed, "looks for a module whose name it hides"},
	{ruleDetects, lazyregexp.New(`\bsys\.(?:argv|orig_argv|executable)\b|__main__|get_ident|psutil|/proc/(?:self|\{|%|\d)`), aboutTests, "looks at the command line for a test's"},
	{ruleDetects, lazyregexp.New(`\b(?:inspect\.(?:stack|currentframe|getouterframes|getframeinfo|trace)|_getframe|_current_frames|extract_stack|format_stack|walk_stack|f_back|f_globals|gc\.get_\w+)\b`), aboutTests, "looks for a test in the stack"},
	{ruleDetects, lazyregexp.New(`(?:environ(?:\.get\()?|getenv\()\s*\[?\s*["'](?:TESTING|TEST|TEST_ENV)["']`), nil, "looks at the environment of tests"},
	{ruleDetects, lazyregexp.New(`(?:environ(?:\.get\()?|getenv\()\s*\[?\s*["']CI["']`), nil, asksForCI},
	{ruleDetects, lazyregexp.New(`\b(?:inspect\.(?:stack|currentframe|getouterframes|trace)|_getframe|_current_frames|extract_stack|format_stack|walk_stack)\b`), pyTurns, byItsRun},
	{ruleDetects, lazyregexp.New(`(?:__file__|getcwd\(\)|\bcwd\(\)|argv\[0\]).*(?:\.(?:startswith|endswith|find)\(|\bin\b|[!=]= *["'])|["'] *(?:not )?in .*(?:__file__|getcwd\(\)|\bcwd\(\))`), nil, byItsRun},
	{ruleDetects, lazyregexp.New(`\bany\(.*\benviron\b|\b(?:str|repr)\((?:os\.)?environ\)|["'] +in +(?:k|key|name|v)\b.*\bin +(?:os\.)?environ\b`), nil, "looks through the environment"},
	{ruleForges, lazyregexp.New(`\b(?:TestCase|pytest|unittest|_pytest|builtins|__builtins__|AssertionError|TestResult|TestRunner)(?:\.\w+|\[["']\w+["']\])+\s*=[^=]|setattr\(\s*(?:[\w.]*TestCase|pytest|unittest|_pytest|builtins|__builtins__|AssertionError)`), nil, "puts something in the place of the test library"},
	{ruleForges, lazyregexp.New(`def __(?:eq|ne)__\s*\(.*:\s*return\s+(?:True|False)\b|__eq__\s*=\s*lambda.*:\s*True`), nil, equalToAll},
	{ruleForges, lazyregexp.New(`def __eq__\s*\(.*:\s*(?:#.*)?$`), nil, equalToAll},
	{ruleForges, lazyregexp.New(`\bos\._exit\(|os\.kill\(\s*os\.getp|\bos\.dup2?\(|faulthandler|atexit\.register|signal\.raise_signal`), lazyregexp.New(`\b_exit|\._exit|getp|dup2?\(|raise_signal`), "ends or redirects the process behind the runner's back"},
	{ruleForges, lazyregexp.New(`\b_thread\.(?:exit|interrupt_main)\b|\bfrom\s+_thread\s+import\b.*\b(?:exit|interrupt_main)\b`), nil, endsCaller},
	{ruleForges, lazyregexp.New(`\bpytest_(?:runtest|collection|sessionfinish|report|terminal|configure|pycollect|pyfunc|exception|assertrepr)\w*`), nil, "hooks into the test runner"},
}

const jsGlobals = `(?:jest|describe|it|test|expect|vi|vitest|mocha|suite|beforeEach|afterEach|beforeAll|afterAll|__vitest_worker__|__coverage__)`

var jsReaches = []reach{
	{ruleDetects, lazyregexp.New(`\b(?:JEST_WORKER_ID|VITEST\w*|NODE_TEST_CONTEXT|MOCHA_\w+|TAP_\w+|AVA_PATH|npm_lifecycle_(?:event|script)|NODE_V8_COVERAGE|KARMA\w*)\b`), nil, "looks at the environment of tests"},
	{ruleDetects, lazyregexp.New(`NODE_ENV\b[^;&|]*[!=]==?\s*['"` + "`" + `]test|['"` + "`" + `]test['"` + "`" + `]\s*[!=]==?[^;&|]*NODE_ENV|\[\s*['"]test['"].*\]\.includes\(.*NODE_ENV`), nil, "looks at the environment of tests"},
	{ruleDetects, lazyregexp.New(`import\.meta\.(?:vitest|jest)\b`), nil, "looks at the environment of tests"},
	{ruleDetects, lazyregexp.New(`process\.env(?:\.CI\b|\[['"]CI['"]\])`), nil, asksForCI},
	{ruleDetects, lazyregexp.New(`typeof\s+\(?` + jsGlobals + `\b|\b(?:globalThis|global|window|self)(?:\.|\?\.|\[['"])` + jsGlobals + `\b|['"]` + jsGlobals + `['"]\s+in\s+(?:globalThis|global|window)`), nil, "looks for the test library among the globals"},
	{ruleDetects, lazyregexp.New(`process\.(?:argv0?|execArgv|title|mainModule)\b|require\.main\b|\bmodule\.parent\b`), aboutTests, "looks at the command line for a test's"},
	{ruleDetects, lazyregexp.New(`\.stack\b|captureStackTrace|prepareStackTrace|getCallSites?\b`), aboutTests, "looks for a test in the stack"},
	{ruleDetects, lazyregexp.New(`require\.main\??\.(?:filename|path|paths|id|children)\b|process\.argv\[[01]\]\??\.(?:includes|match|endsWith|startsWith|indexOf|search)\(|\.test\(\s*process\.argv\[[01]\]|\.stack\??\.(?:includes|match|indexOf|search)\(|\.test\([^)]*\)?\.stack\b`), nil, byItsRun},
	{ruleDetects, lazyregexp.New(`Object\.(?:keys|entries|values)\(\s*process\.env\s*\)[^;]*\.(?:some|includes|findIndex|join|every)\(|JSON\.stringify\(\s*process\.env\s*\)`), nil, "looks through the environment"},
	{ruleDetects, lazyregexp.New(`(?:require\(|from\s+|import\(?\s*)['"](?:node:test(?:/\w+)?|jest|@jest/[\w-]+|vitest|mocha|chai|ava|tap|tape|sinon|expect)['"]`), nil, importsTests},
	{ruleForges, lazyregexp.New(`\b(?:assert(?:\.strict)?|expect|AssertionError)(?:\.\w+|\[[^\]]+\])+\s*=[^=>]|Object\.(?:assign|definePropert(?:y|ies)|setPrototypeOf)\(\s*(?:assert|expect|require\(['"](?:node:)?assert)|require\(['"](?:node:)?assert(?:/strict)?['"]\)(?:\.\w+)*\s*=[^=]`), nil, "puts something in the place of the test library"},
	{ruleForges, lazyregexp.New(`for\s*\(.*\b(?:of|in)\b.*\bassert\b`), nil, "puts something in the place of the test library"},
	{ruleForges, lazyregexp.New(`\bModule\.(?:_load|_resolveFilename|_extensions|_cache|prototype)\b|\brequire\.(?:cache|extensions)\b|\bregisterHooks?\(|module\.register\(`), nil, "changes which modules are loaded"},
	{ruleForges, lazyregexp.New(`process\.(?:exit|reallyExit|abort|kill|emit|exitCode)\s*=[^=]`), nil, "changes how the process ends"},
	{ruleForges, lazyregexp.New(`process\.(?:once|on|prependListener)\(\s*['"](?:exit|beforeExit)['"]`), lazyregexp.New(`exit(?:Code)?\b.*\b0\b|reallyExit`), "changes how the process ends"},
}

// anyReaches hold whatever the language.
var anyReaches = []reach{
	{ruleForges, lazyregexp.New(writes + `.*` + report + `|` + report + `.*` + writes), nil, "writes what a test runner prints"},
	{ruleDetects, lazyregexp.New(`(?i)(?:open|read\w*|ReadFile|load\w*|parse\w*|Path|glob)\(.*["'` + "`" + `](?:[^"'` + "`" + `]*/)?(?:[\w.-]*_test\.go|test_[\w-]*\.py|[\w-]*_test\.py|[\w.-]*\.(?:test|spec)\.[cm]?[jt]sx?|testdata/[^"'` + "`" + `]*|__snapshots__/[^"'` + "`" + `]*)["'` + "`" + `]`), nil, "reads the tests"},
}

// configReaches are switches in files of settings that keep tests from counting.
var configReaches = lazyregexp.New(`(?i)maven\.test\.(?:skip|failure\.ignore)|<skipTests>\s*true|<testFailureIgnore>\s*true|ignoreFailures\s*=\s*true|^\s*(?:test|harness)\s*=\s*false|` +
	`^\s*(?:replace\s+)?(?:github\.com/(?:stretchr/testify|onsi/g\w+|google/go-cmp|frankban/quicktest)|gotest\.tools|pgregory\.net/rapid)\S*\s.*=>|^module\s+(?:github\.com/(?:stretchr/testify|onsi/g\w+|google/go-cmp)|gotest\.tools)|` +
	`"(?:jest|vitest|mocha|chai|expect|ava|tap|sinon|@jest/[\w-]+)"\s*:\s*"(?:file|link|portal|npm):`)

var configFile = lazyregexp.New(`(?i)(?:^|/)(?:\.[^/]*|go\.(?:mod|work)|[^/]*\.(?:toml|ini|cfg|gradle(?:\.kts)?|props|csproj|conf)|[^/]*\.config\.[cm]?[jt]s|[tj]sconfig[^/]*\.json|package\.json|deno\.jsonc?|pom\.xml|build\.xml)$`)

// productLines returns the lines that the change adds to files that are not tests, by
// file, without those that it only moves.
func (p *patch) productLines(isTest map[string]bool) map[*gitdiff.File][]point.Line {
	moved := map[string]int{}
	for _, f := range p.files {
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				if text := strings.TrimSpace(l.Line); l.Op == gitdiff.OpDelete && text != "" && !isTest[f.OldName] {
					moved[text]++
				}
			}
		}
	}
	out := map[*gitdiff.File][]point.Line{}
	for _, f := range p.files {
		if f.IsDelete || f.IsBinary || isTest[f.NewName] {
			continue
		}
		for _, frag := range f.TextFragments {
			n := int(frag.NewPosition)
			for _, l := range frag.Lines {
				if text := strings.TrimSpace(l.Line); l.Op == gitdiff.OpAdd && text != "" && !p.inTestsOf(f.NewName, n) {
					if moved[text] > 0 {
						moved[text]--
					} else {
						out[f] = append(out[f], point.Line{Number: n, Text: strings.TrimRight(l.Line, "\r\n")})
					}
				}
				if l.New() {
					n++
				}
			}
		}
	}
	return out
}

// reachesFor returns what is looked for in a language.
func reachesFor(name string) []reach {
	switch languageOf(name) {
	case &goLang:
		return goReaches
	case &pyLang:
		return pyReaches
	case &jsLang:
		return jsReaches
	case &rustLang:
		return rustReaches
	}
	return moreReachesFor(name)
}

// around is how many lines away the second half of a pattern may stand.
const around = 8

// reachesRunner finds code under test that detects its tests, or that speaks in
// their place.
func (c *checker) reachesRunner(isTest map[string]bool) {
	c.lowersLanguage()
	lines := c.patch.productLines(isTest)
	for _, f := range c.patch.files {
		seen := map[string]bool{}
		list := reachesFor(f.NewName)
		for i, l := range lines[f] {
			text := withoutRemark(l.Text, languageOf(f.NewName))
			if configFile.MatchString(f.NewName) && configReaches.MatchString(text) {
				c.reaches(f.NewName, l, ruleForges, "keeps failing tests from counting")
			}
			if list == nil || text == "" {
				continue
			}
			for _, r := range append(list[:len(list):len(list)], anyReaches...) {
				if r.rule == ruleDetects && (r.what == importsTests || r.what == namesTests) && c.patch.apart(f, lines) || forked(lines[f], i) {
					continue
				}
				if r.what == byItsRun && tellsVersion(lines[f], i) {
					continue
				}
				if r.what == equalToAll && methodLine.MatchString(text) && !wildcard(lines[f][i:]) {
					continue
				}
				if r.what == byItsRun && len(c.reached) > 0 && c.reached[len(c.reached)-1].File == f.NewName && c.reached[len(c.reached)-1].Line == l.Number {
					continue // told already, and more exactly
				}
				if !seen[r.what] && r.pattern.MatchString(text) && (r.near == nil || near(lines[f], i, r.near)) {
					seen[r.what] = true
					c.reaches(f.NewName, l, r.rule, r.what)
				}
			}
		}
	}
}

var (
	buildInfo   = lazyregexp.New(`\bdebug\.ReadBuildInfo\(\)`)
	versionFunc = lazyregexp.New(`^func (?:\(\w* ?\*?\w+\) )?(?i:\w*(?:version|build|revision|commit)\w*)\(\) \(?(?:\w+ )?string\b`)
)

// tellsVersion reports whether a line reads the build's information in a function that is
// named for it, takes nothing and returns text.
func tellsVersion(lines []point.Line, at int) bool {
	if !buildInfo.MatchString(lines[at].Text) || strings.Contains(lines[at].Text, "os.") {
		return false
	}
	for i := at - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i].Text, "func ") {
			return versionFunc.MatchString(lines[i].Text)
		}
	}
	return false
}

var goLine = lazyregexp.New(`^go (\d[\w.]*)`)

// sameTests are the languages of Go from which on a test means something else without a
// word of the compiler's. Before 1.22 the rounds of a loop, and so the parallel cases of a
// table, share its variable; before 1.18 a "// +build" line keeps a file from being built;
// before 1.14 the copies in vendor are not what is built. What other versions brought does
// not compile in older ones, or is a default of GODEBUG.
var sameTests = []string{"go1.22", "go1.18", "go1.14"}

// without is the language of a go.mod that asks for none.
const without = "1.16"

// lowersLanguage finds a go.mod that asks for an older language than it did, in which its
// tests mean something else.
func (c *checker) lowersLanguage() {
	for _, f := range c.patch.files {
		if path.Base(f.NewName) != "go.mod" || f.IsNew || f.IsDelete {
			continue
		}
		was, is := "", point.Line{Number: 1}
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				m := goLine.FindStringSubmatch(l.Line)
				switch {
				case m == nil:
				case l.Op == gitdiff.OpDelete:
					was = m[1]
				case l.Op == gitdiff.OpAdd:
					is.Text = m[1]
				}
			}
		}
		lang := "go" + cmp.Or(is.Text, without)
		if was != "" && slices.ContainsFunc(sameTests, func(v string) bool { return version.Compare("go"+was, v) >= 0 && version.Compare(lang, v) < 0 }) {
			is.Text = "go " + is.Text
			c.reaches(f.NewName, is, ruleForges, "is built as an older Go than go.mod asked for ("+was+"), in which its tests mean something else")
		}
	}
}

const (
	importsTests = "imports the test library"
	equalToAll   = "is equal to whatever it is compared with"
	asksForCI    = "asks whether it runs in CI, as tests do"
)

// apart reports whether a file is new, named for tests, and nothing of the product names it: helpers
// for the tests of a library's users.
func (p *patch) apart(f *gitdiff.File, lines map[*gitdiff.File][]point.Line) bool {
	if !f.IsNew || path.Ext(f.NewName) == ".go" || !supportNames.MatchString(f.NewName) {
		return false
	}
	stem := strings.TrimSuffix(path.Base(f.NewName), path.Ext(f.NewName))
	if stem == "__init__" || stem == "__main__" || stem == "index" {
		return false
	}
	named := regexp.MustCompile(`\b` + regexp.QuoteMeta(stem) + `\b`)
	for other, added := range lines {
		if other != f && slices.ContainsFunc(added, func(l point.Line) bool { return named.MatchString(l.Text) }) {
			return false
		}
	}
	return true
}

var (
	childBranch = lazyregexp.New(`^\s*if\s+(?:not\s+(\w+)|(\w+)\s*==\s*0|not\s+os\.fork\(\)|os\.fork\(\)\s*==\s*0)\s*:\s*$`)
	plainExit   = lazyregexp.New(`^\s*os\._exit\([^()]*\)\s*$`)
)

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// forked reports whether a line ends a process that the code made itself: the
// branch of the child after a fork. The one that runs the tests goes on.
func forked(lines []point.Line, at int) bool {
	if !plainExit.MatchString(lines[at].Text) {
		return false
	}
	for i := at - 1; i >= 0 && lines[at].Number-lines[i].Number <= 40; i-- {
		if indentOf(lines[i].Text) >= indentOf(lines[at].Text) {
			continue
		}
		if regexp.MustCompile(`^\s*(?:try|finally|except\b.*)\s*:`).MatchString(lines[i].Text) {
			lines, at = append(slices.Clone(lines[:i]), point.Line{Number: lines[at].Number, Text: lines[i].Text}), i
			continue
		}
		m := childBranch.FindStringSubmatch(lines[i].Text)
		if m == nil {
			return false
		}
		pid := m[1] + m[2]
		return pid == "" || i > 0 && regexp.MustCompile(`^\s*`+pid+`\s*=\s*os\.fork\(\)\s*$`).MatchString(lines[i-1].Text)
	}
	return false
}

func (c *checker) reaches(file string, l point.Line, rule, what string) {
	code := strings.TrimSpace(l.Text)
	to := &c.reached
	if what == asksForCI {
		to = &c.asked
	}
	*to = append(*to, pipeline.Finding{Rule: rule, File: file, Line: l.Number, Code: text.Head(code, 500),
		Message: fmt.Sprintf("Code under test %s, so that what its tests say of it cannot be trusted: take it out, or let a human decide that it stays", what)})
}

func near(lines []point.Line, at int, re *lazyregexp.Regexp) bool {
	for i := max(0, at-around); i < min(len(lines), at+around+1); i++ {
		if re.MatchString(lines[i].Text) {
			return true
		}
	}
	return false
}

var (
	methodLine = lazyregexp.New(`def __eq__\s*\(\s*\w+\s*,\s*(\w+).*:\s*(?:#.*)?$`)
	saysEqual  = lazyregexp.New(`(?m)^\s*return\s+(?:True|1|not False|bool\(1\))\s*(?:#.*)?$`)
	docString  = lazyregexp.New(`(?s)""".*?"""|'''.*?'''|(?m:#.*$)`)
	// aboutAny is what can be asked of the other side without looking into it.
	aboutAny = `\bis (?:not )?None\b|\bisinstance\(\s*%[1]s\s*,[^)]*\b(?:int|float|str|object|list|dict|tuple|bool|bytes|set|numbers\.\w+|Number)\b|\btype\(\s*%[1]s\s*\)|\bid\(\s*%[1]s\s*\)`
)

// wildcard reports whether a method that compares says yes without having looked at
// what it compares with. lines begin with its head.
func wildcard(lines []point.Line) bool {
	other := methodLine.FindStringSubmatch(lines[0].Text)[1]
	var body strings.Builder
	for i, l := range lines[1:] {
		if indentOf(l.Text) <= indentOf(lines[0].Text) || l.Number > lines[i].Number+3 {
			break
		}
		body.WriteString(l.Text + "\n")
	}
	code := docString.ReplaceAllString(body.String(), "")
	if !saysEqual.MatchString(code) {
		return false
	}
	asked := regexp.MustCompile(`\b` + other + `\s+is (?:not )?None\b|` + fmt.Sprintf(aboutAny, other))
	return !regexp.MustCompile(`\b` + other + `\b`).MatchString(asked.ReplaceAllString(code, ""))
}

// withoutRemark leaves out a comment that takes up the line.
func withoutRemark(line string, lang *language) string {
	text := strings.TrimSpace(line)
	if strings.HasPrefix(text, lang.remark) && !strings.HasPrefix(text, "//go:") || lang != &pyLang && (strings.HasPrefix(text, "*") || strings.HasPrefix(text, "/*")) {
		return ""
	}
	return line
}

// What code needs in order to reach the runner in its own process, even by a way
// that no pattern above knows. It proves nothing; it makes that tests which must
// fail are planted.
var (
	goLoose = lazyregexp.New(`\bos\.(?:Exit|Std\w+|Args|NewFile|FindProcess|StartProcess|Executable|Getp?pid)\b|\b(?:syscall|unsafe|runtime|debug|testing|plugin|unix)\.|\bflag\.(?:Lookup|Set|CommandLine|Visit)|linkname|import "C"|^\s*(?:import\s+)?(?:[\w.]+\s+)?"(?:C|plugin|syscall|unsafe|testing.*)"`)
	pyLoose = lazyregexp.New(`\b(?:sys|os\._\w+|os\.(?:kill|abort|exec\w*|dup2?|close|environ|getenv|fork|write|fdopen|system|popen)|inspect|gc|ctypes|atexit|builtins|importlib|unittest|pytest|_pytest|traceback|signal|codecs|marshal|pickle|faulthandler|runpy)\b` +
		`|__(?:import|builtins|globals|dict|class|subclasses|bases|mro|code|getattribute|getattr|setattr|eq|ne|instancecheck)\w*__|\b(?:eval|exec|compile|globals|locals|vars|setattr|delattr|breakpoint)\(|\bexit\(|\bquit\(|metaclass|SystemExit|AssertionError|\b(?:StopIteration|StopAsyncIteration|GeneratorExit|KeyboardInterrupt|BaseException|_thread)\b|\bnext\(\s*iter\(`)
	pyGetattr = lazyregexp.New(`\bgetattr\(`)
	pyPlain   = lazyregexp.New(`\bgetattr\([\w.\[\]]+,\s*["'][a-z]\w*["']`)
	jsLoose   = lazyregexp.New("\\b(?:process|globalThis|global|eval|Function|Proxy|Reflect|Symbol|WebAssembly|__proto__|prototype)\\b|\\bassert\\b|['\"](?:node:)?(?:module|vm|v8|assert(?:/strict)?|async_hooks|worker_threads|child_process|inspector|diagnostics_channel|process|test)['\"]|require\\(\\s*[^'\")]|import\\(\\s*[^'\")]|\\.stack\\b|defineProperty|setPrototypeOf|console\\.\\w+\\s*=|uncaughtException|unhandledRejection")
	odd       = lazyregexp.New(`(?i)\.(?:s|asm|so|pyd|pyc|node|wasm|dylib|dll|a|syso|jar|class|sh|bash)$`)
)

// loose returns the files by which the change might reach the runner.
func (p *patch) loose(isTest map[string]bool) []string {
	var out []string
	lines := p.productLines(isTest)
	for _, f := range p.files {
		if isTest[f.NewName] || f.IsDelete {
			continue
		}
		hit := odd.MatchString(f.NewName) || configFile.MatchString(f.NewName) || strings.Contains(f.NewName, "node_modules/") || strings.HasPrefix(f.NewName, "vendor/") || f.NewMode != 0 && f.NewMode&0o170000 == 0o120000
		var re *lazyregexp.Regexp
		switch languageOf(f.NewName) {
		case &goLang:
			re = goLoose
		case &pyLang:
			re = pyLoose
		case &jsLang:
			re = jsLoose
		}
		for _, l := range lines[f] {
			if hit || re == nil {
				break
			}
			hit = re.MatchString(l.Text) || re == pyLoose && pyGetattr.MatchString(l.Text) && !pyPlain.MatchString(l.Text)
		}
		if hit {
			out = append(out, f.NewName)
		}
	}
	return out
}

// hooks tell by a line that is added to a test that it is about the runner.
var hooks = lazyregexp.New(`func TestMain\(|^func init\(\)|\bos\.Exit\(|\bpytest_\w+|TestCase\.\w+\s*=|\bassert\w*(?:\.\w+)*\s*=[^=>]|\bexpect(?:\.\w+)*\s*=[^=>]|\bexpect\.extend|sys\.modules|os\._exit|atexit|process\.(?:exit|on|env)|require\.cache|Module\.|builtins|setattr\(|monkeypatch|globalThis|global\.|jest\.mock|vi\.mock|mock\.module|__eq__`)

// runnerEdited reports whether the change touches what decides over the tests, so
// that the head's own run is proven, too.
func (p *patch) runnerEdited(edits []edit) bool {
	byName := map[string]edit{}
	for _, e := range edits {
		if e.role == runner || e.role == testSource && !testname.IsFile(e.name) || path.Base(e.name) == "conftest.py" {
			return true
		}
		byName[e.name] = e
	}
	for _, f := range p.files {
		if byName[f.NewName].role != testSource {
			continue
		}
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				if l.Op == gitdiff.OpAdd && hooks.MatchString(l.Line) {
					return true
				}
			}
		}
	}
	return false
}
