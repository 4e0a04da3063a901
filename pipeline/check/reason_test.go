package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Covers B4: what a compiler or an interpreter says becomes the failure's error,
// with its place.
func TestReasonOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, out string
		want      reason
	}{
		{"Maven", "[INFO] ----\n[ERROR] COMPILATION ERROR : \n[ERROR] /src/app/src/main/java/Calc.java:[12,8] cannot find symbol\n  symbol:   variable nope\n  location: class Calc\n[ERROR] /src/app/src/main/java/Calc.java:[12,8] cannot find symbol\n",
			reason{"/src/app/src/main/java/Calc.java:12: cannot find symbol\n  symbol:   variable nope\n  location: class Calc", "/src/app/src/main/java/Calc.java", 12, causeSyntax}},
		{"javac", "> Task :compileJava FAILED\n/src/Calc.java:3: error: ';' expected\n    int x = 1\n             ^\n1 error\n", reason{"/src/Calc.java:3: error: ';' expected", "/src/Calc.java", 3, causeSyntax}},
		{"Kotlin", "e: file:///src/Calc.kt:3:5 Unresolved reference: nope\n", reason{"/src/Calc.kt:3: Unresolved reference: nope", "/src/Calc.kt", 3, causeSyntax}},
		{"Kotlin, older", "e: /src/Calc.kt: (3, 5): Unresolved reference: nope\n", reason{"/src/Calc.kt:3: Unresolved reference: nope", "/src/Calc.kt", 3, causeSyntax}},
		{".NET", "/src/Calc.cs(4,17): error CS1002: ; expected [/src/Calc.csproj]\n", reason{"/src/Calc.cs:4: error CS1002: ; expected", "/src/Calc.cs", 4, causeSyntax}},
		{"TypeScript", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n", reason{"src/a.ts:3: error TS2322: Type 'string' is not assignable to type 'number'.", "src/a.ts", 3, causeSyntax}},
		{"TypeScript, pretty", "src/a.ts:3:5 - error TS2322: Type.\n", reason{"src/a.ts:3: error TS2322: Type.", "src/a.ts", 3, causeSyntax}},
		{"C", "calc.c:3:5: error: expected ';'\n", reason{"calc.c:3: error: expected ';'", "calc.c", 3, causeSyntax}},
		{"PHP", "PHP Parse error:  syntax error, unexpected end of file in /src/Calc.php on line 5\n", reason{"/src/Calc.php:5: Parse error:  syntax error, unexpected end of file", "/src/Calc.php", 5, causeSyntax}},
		{"Ruby", "/src/lib/calc.rb:3: syntax error, unexpected end-of-input (SyntaxError)\n", reason{"/src/lib/calc.rb:3: syntax error, unexpected end-of-input (SyntaxError)", "/src/lib/calc.rb", 3, causeSyntax}},
		{"coverage threshold of pytest", "3 passed\nFAIL Required test coverage of 90% not reached. Total coverage: 41.00%\n", reason{text: "FAIL Required test coverage of 90% not reached. Total coverage: 41.00%"}},
		{"coverage threshold of jest", "Jest: \"global\" coverage threshold for lines (90%) not met: 40%\n", reason{text: "Jest: \"global\" coverage threshold for lines (90%) not met: 40%"}},
		{"crash after the tests", "OK\nSegmentation fault (core dumped)\n", reason{text: "Segmentation fault (core dumped)"}},
		{"race", "PASS\nWARNING: DATA RACE\n", reason{text: "WARNING: DATA RACE"}},
		{"Python traceback", "Traceback (most recent call last):\n  File \"/src/run.py\", line 2, in <module>\n    import app\n  File \"/src/app.py\", line 1, in <module>\n    1/0\n  File \"/usr/lib/python3/x.py\", line 9, in f\nZeroDivisionError: division by zero\n",
			reason{"ZeroDivisionError: division by zero", "/src/app.py", 1, ""}},
		{"Node", "node:internal/modules/cjs/loader:1210\n  throw err;\n\nError: Cannot find module './sum'\nRequire stack:\n", reason{text: "Error: Cannot find module './sum'"}},
		{"Node's syntax", "/src/sum.js:3\nconst x = ;\n          ^\n\nSyntaxError: Unexpected token ';'\n", reason{"SyntaxError: Unexpected token ';'", "/src/sum.js", 3, causeSyntax}},
		{"nothing", "oh no\n", reason{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, reasonOf(c.out), cmp.AllowUnexported(reason{})); d != "" {
				t.Errorf("reasonOf (-want +got):\n%s", d)
			}
		})
	}
}

// Covers B4: a command that ends with an error although all its tests passed has
// failed, and one part of a build that does not compile is told beside the tests
// of another that fail.
func TestErrorBesideTests(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- x --\n")
	got := run(t, w, Options{Config: config.Tests{Commands: []string{
		`printf 'TAP version 13\n1..1\nok 1 - a\n'; echo 'free(): invalid pointer, core dumped' >&2; exit 134`}}})
	if got.OK() || len(got.Failures) != 1 || got.Failures[0].Cause != causeRuntime || text.FirstLine(got.Failures[0].Error) != "free(): invalid pointer, core dumped" {
		t.Errorf("report %+v, want a failure by the crash", got)
	}
	s := &suite{dir: ".", format: formatReports, done: pipeline.Suite{Name: "mvn test"}}
	s.result.add(testcase{name: "a.T.x", status: failed, err: "x"})
	(&checker{}).judgeExit(s, &workspace.Result{Exit: 1}, "[ERROR] /src/b/Calc.java:[12,8] cannot find symbol\n")
	if n := s.result.failing(); n != 2 || s.result.cases[1].file != "/src/b/Calc.java" {
		t.Errorf("%d failures, want the build beside the test: %+v", n, s.result.cases)
	}
}

// Covers lessons 9: a package that is missing at the base is missing; one that the
// change asks for anew is the change's failure.
func TestAbsentPackage(t *testing.T) {
	t.Parallel()
	s := &suite{own: []string{"app"}, done: pipeline.Suite{Command: "python3 -m pytest"}}
	const out = "E   ModuleNotFoundError: No module named 'requests'\nE   ModuleNotFoundError: No module named 'app.old'\n"
	c := &checker{}
	if got, want := c.absentPackage(s, out), "the Python package `requests` is not installed and the sandbox has no network"; got != want {
		t.Errorf("absentPackage = %q, want %q", got, want)
	}
	c.o.Baseline = &pipeline.TestReport{Suites: []pipeline.Suite{{Command: "python3 -m pytest"}}}
	if got := c.absentPackage(s, out); got != "" {
		t.Errorf("absentPackage = %q where the base ran, want a failure", got)
	}
}
