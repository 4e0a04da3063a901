package check

import (
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
)

const (
	smallGo = "-- go.mod --\nmodule example.com/m\n\ngo 1.21\n-- m.go --\npackage m\n\n" +
		"func Add(a, b int) int { return a + b }\n" +
		"-- m_test.go --\npackage m\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n" +
		"\t\tt.Fatal(got)\n\t}\n}\n\n" +
		"func TestZero(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Fatal()\n\t}\n}\n"
	// A crate, with what stands for cargo.
	smallRust = "-- Cargo.toml --\n[package]\nname = \"calc\"\nversion = \"0.1.0\"\n-- cargo.py --\n" +
		"source = open(\"src/lib.rs\").read()\nbad = \"sum()\" not in source and \"17\" in source\n" +
		"print(\"test tests::sums ... \" + (\"FAILED\" if bad else \"ok\")" +
		" + \"\\n\\ntest result: %s. 0 passed; 0 failed\" % (\"FAILED\" if bad else \"ok\"))\nraise SystemExit(101 if bad else 0)\n" +
		"-- src/lib.rs --\npub fn total(xs: &[i64]) -> i64 {\n    xs.iter().sum()\n}\n\n#[cfg(test)]\nmod tests {\n" +
		"    use super::*;\n\n    #[test]\n    fn sums() {\n        assert_eq!(total(&[8, 9]), 17);\n    }\n}\n"
	// A script whose target comes by an include, and a shell's tests.
	smallMake = "-- calc.py --\ndef sign(n):\n    return (n > 0) - (n < 0)\n-- Makefile --\ninclude mk/rules.mk\n" +
		"-- mk/rules.mk --\ntest: prove\nprove:\n\tpython3 prove.py\n.PHONY: test prove\n" +
		"-- prove.py --\nfrom calc import sign\n\nassert sign(-4) == -1\nprint(\"ok\")\n"
	smallShell = "-- sum.sh --\necho 3\n" +
		"-- t.sh --\necho 1..1\nif [ \"$(sh sum.sh)\" = 3 ]; then echo ok 1 - adds; else echo not ok 1 - adds; fi\n"
)

// Covers T8, lessons 16: a case of each rule about tests, and what is right beside it. The
// laboratory has the corpus.
func TestRules(t *testing.T) {
	t.Parallel()
	need(t, "python3", "make")
	for name, c := range map[string]struct {
		base    string
		command string   // that runs the tests; "": it is found
		edits   []string // in turn: a file's text, and what takes its place
		want    []string // how the lines of the report begin
		reason  bool     // the reviewer has one for each test that changed
		ok      bool
	}{
		"removed": {base: smallGo, edits: []string{"func TestZero(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Fatal()\n\t}\n" +
			"}\n", ""},
			want: []string{"tampered tests.removed "}},
		"skipped": {base: smallGo, edits: []string{"if got := Add", "t.Skip()\n" +
			"\tif got := Add"}, want: []string{"tampered tests.skipped "}},
		"weakened": {base: smallGo, edits: []string{"a + b", "a - b", "got != 3",
			"got == 3"}, want: []string{"changed passed example.com/m.TestAdd"}},
		"unasked": {base: smallGo, edits: []string{"a + b", "a + b + 1", "got != 3", "got != 4", "Add(0, 0) != 0",
			"Add(0, 0) != 1"},
			want: []string{"changed passed example.com/m.TestAdd", "changed passed example.com/m.TestZero"}},
		"asked": {base: smallGo, reason: true, ok: true,
			edits: []string{"a + b", "a + b + 1", "got != 3", "got != 4", "Add(0, 0) != 0", "Add(0, 0) != 1"},
			want:  []string{"changed passed example.com/m.TestAdd", "changed passed example.com/m.TestZero"}},
		"renamed":   {base: smallGo, edits: []string{"TestZero", "TestNothing"}, ok: true},
		"rewritten": {base: smallGo, edits: []string{"{ return a + b }", "{\n\ta += b\n\treturn a\n}"}, ok: true},
		"new": {base: smallGo, edits: []string{"func TestZero", "func TestMore(t *testing.T) {\n" +
			"\tif got := Add(2, 2); got != 4 {\n\t\tt.Fatal(got)\n\t}\n}\n\nfunc TestZero"}, ok: true},
		"other arguments": {base: smallGo, reason: true, ok: true, edits: []string{"a, b int) int { return a + b",
			"a, b, c int) int { return a + b + c",
			"Add(1, 2)", "Add(1, 2, 0)", "Add(0, 0)", "Add(0, 0, 0)"},
			want: []string{"changed passed example.com/m.TestAdd: it could not ",
				"changed passed example.com/m.TestZero: it could not "}},
		"a helper": {base: smallGo + "-- same_test.go --\npackage m\n\nimport \"testing\"\n\n" +
			"func same(t *testing.T, got, want int) {\n\tif got != want {\n\t\tt.Fatal(got)\n\t}\n}\n\n" +
			"func TestSame(t *testing.T) { same(t, Add(2, 1), 3) }\n", edits: []string{"a + b", "a - b", "got != 3", "got != -1",
			"got != want", "got == want"},
			want: []string{"changed passed example.com/m.TestAdd", "changed passed example.com/m.TestSame"}},
		"what a script runs": {base: smallMake, command: "make test", edits: []string{"(n > 0) - (n < 0)", "n", "prove:\n" +
			"\tpython3 prove.py\n", "prove:\n\t@true\n"},
			want: []string{"changed passed make test"}},
		"the script itself": {base: smallShell, command: "sh t.sh", edits: []string{"echo 3\n", "echo 4\n", `"$(sh sum.sh)" = 3`, "1"},
			want: []string{"changed passed adds"}},
		"what the script tests": {base: smallShell, command: "sh t.sh", edits: []string{"echo 3\n", "echo $((1 + 2))\n"}, ok: true},
		"by chance": {base: smallShell, command: "sh t.sh", edits: []string{"echo 3\n",
			"if [ -e mark ]; then echo 3; else touch mark; fi\n"},
			want: []string{"failed adds: "}},
		"Rust, weakened": {base: smallRust, command: "python3 cargo.py", edits: []string{"xs.iter().sum()", "xs.len() as i64",
			"assert_eq!(total(&[8, 9]), 17)", "assert!(total(&[8, 9]) > 0)"},
			want: []string{"changed passed "}},
		"Rust, more": {base: smallRust, command: "python3 cargo.py", edits: []string{"17);", "17);\n" +
			"        assert_eq!(total(&[]), 0);"}, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := commits{"base": filesOf(c.base), "head": filesOf(c.base)}
			for name, text := range of["head"] {
				of["head"][name] = strings.NewReplacer(c.edits...).Replace(text)
			}
			r := judged(t, of, c.command)
			got := slices.DeleteFunc(told(&r), func(line string) bool { return strings.HasPrefix(line, "tampered tests.changed ") })
			if c.reason {
				Justify(&r, slices.Collect(func(yield func(pipeline.TestChange) bool) {
					for _, x := range r.Changed {
						x.Reason = "it had to"
						yield(x)
					}
				}))
			}
			if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, strings.HasPrefix) || r.OK() != c.ok {
				t.Errorf("it is right: %v; the report says\n%s\nwant %q, %v", r.OK(), strings.Join(got, "\n"), c.want, c.ok)
			}
		})
	}
}

// judged is the report on the head over a base whose tests pass; command runs the tests, "": it is found.
func judged(t *testing.T, of commits, command string) pipeline.TestReport {
	t.Helper()
	tests := config.Tests{TimeoutMinutes: 1}
	if command != "" {
		tests.Commands, tests.Reruns = []string{command}, 1
	}
	var opened int
	open := of.open(t, &opened)
	tree, err := open(t.Context(), "base")
	if err != nil {
		t.Fatal(err)
	}
	before, err := Run(t.Context(), tree, Options{Config: tests, Head: "base"})
	if err != nil || !before.OK() {
		t.Fatal(told(&before), err)
	}
	r, err := Verify(t.Context(), open, Options{Config: tests, Base: "base", Head: "head", Iteration: 1, Baseline: &before,
		Patch: patchOf(t, of["base"], of["head"])})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Covers T8: a product that a plain command names, and its test with a test's name, may change together.
func TestPlainCommandNamesTheProduct(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	base := map[string]string{"calc.py": "def add(a, b):\n    return a + b\n", "test.sh": "python3 -c 'import calc; assert calc.add(2, 3) == 5'\n"}
	head := map[string]string{"calc.py": base["calc.py"] + "def sub(a, b):\n    return a - b\n", "test.sh": base["test.sh"] + "python3 -c 'import calc; assert calc.sub(3, 2) == 1'\n"}
	r := judged(t, commits{"base": base, "head": head}, "python3 -m py_compile calc.py && sh test.sh")
	if got := told(&r); !r.OK() || len(got) > 0 {
		t.Errorf("it is right: %v; the report says %q", r.OK(), got)
	}
}

// Covers T8, S33: whatever way a command takes to a script, the script decides as it stood at the
// base. In each case the product is broken, and what checks it checks nothing any more.
func TestPlainCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "node")
	const (
		ask     = "python3 -c 'import calc; assert calc.add(2, 3) == 5'\n"
		product = "-- calc.py --\ndef add(a, b):\n    return a + b\n"
		check   = "import calc\nassert calc.add(2, 3) == 5\nprint(\"ok\")\n"
		shell   = product + "-- t.sh --\n" + ask
	)
	for name, c := range map[string]struct {
		base, command string
		spoil         string // the file that checks nothing any more; "-" in front: it goes
	}{
		"wrapped":              {shell, "timeout 60 nice -n 5 sh t.sh", "t.sh"},
		"options":              {shell, "bash -euo pipefail t.sh", "t.sh"},
		"in a condition":       {shell, "if true; then sh t.sh; fi", "t.sh"},
		"read":                 {shell, "sh < t.sh", "t.sh"},
		"piped":                {shell, "cat t.sh | sh", "t.sh"},
		"a variable":           {shell, `T=t.sh; sh "$T"`, "t.sh"},
		"below a variable":     {shell, `sh "$PWD/t.sh"`, "t.sh"},
		"another directory":    {product + "-- sub/t.sh --\ncd .. && " + ask, "env -C sub sh t.sh", "sub/t.sh"},
		"a blank":              {product + "-- my t.sh --\n" + ask, "sh 'my t.sh'", "my t.sh"},
		"a loop":               {product + "-- jobs/one.sh --\n" + ask, "for f in jobs/*; do sh $f || exit 1; done", "jobs/one.sh"},
		"found":                {product + "-- jobs/one.sh --\n" + ask, "find jobs -type f -exec sh {} +", "jobs/one.sh"},
		"a module":             {product + "-- ask.py --\n" + check, "python3 -m ask", "ask.py"},
		"a package":            {product + "-- ask/__main__.py --\n" + check, "python3 -m ask", "ask/__main__.py"},
		"imported":             {product + "-- ask.py --\n" + check, `python3 -c "import ask"`, "ask.py"},
		"required":             {"-- calc.js --\nexports.add = (a, b) => a + b\n-- ask.js --\nif (require('./calc').add(2, 3) !== 5) process.exit(1)\n", `node -e "require('./ask')"`, "ask.js"},
		"the product, too":     {product + "-- t.sh --\n" + ask, "test -f calc.py && sh t.sh", "t.sh"},
		"as an argument":       {product + "-- t.sh --\n" + ask, "sh t.sh calc.py", "t.sh"},
		"as a prerequisite":    {product + "-- t.sh --\n" + ask + "-- Makefile --\ntest: calc.py t.sh\n\tsh t.sh\n", "make test", "t.sh"},
		"in another command":   {product + "-- t.sh --\n" + ask, "sh t.sh && python3 -m py_compile calc.py", "t.sh"},
		"make elsewhere":       {product + "-- t.sh --\n" + ask + "-- q/Makefile --\ntest:\n\tcd .. && sh t.sh\n", "make -C q test", "t.sh"},
		"make, and back":       {product + "-- t.sh --\n" + ask + "-- q/Makefile --\ntest:\n\t$(MAKE) -C .. check\n-- Makefile --\ncheck:\n\tsh t.sh\n", "make -C q test", "t.sh"},
		"make's first target":  {product + "-- t.sh --\n" + ask + "-- q/Makefile --\nall:\n\t$(MAKE) -C .. check\n-- Makefile --\ncheck:\n\tsh t.sh\n", "make -C q", "t.sh"},
		"a library beside it":  {product + "-- t.sh --\n. ./lib.sh\nsame 5 \"$(python3 -c 'import calc; print(calc.add(2, 3))')\"\n-- lib.sh --\nsame() { [ \"$1\" = \"$2\" ]; }\n", "test -f calc.py && sh t.sh", "lib.sh"},
		"a package elsewhere":  {product + "-- t.sh --\n" + ask + "-- q/package.json --\n{\"scripts\": {\"test\": \"cd .. && sh t.sh\"}}\n", "npm --prefix q test", "t.sh"},
		"a script elsewhere":   {product + "-- t.sh --\n" + ask + "-- q/run.sh --\ncd .. && sh t.sh\n", "cd q && sh run.sh", "t.sh"},
		"a pattern":            {shell, "sh t.*h", "t.sh"},
		"a variable's default": {shell, "sh ${X:-t.sh}", "t.sh"},
		"each suffices":        {product + "-- t.sh --\n. ./a.sh\n. ./b.sh\n" + ask + "-- a.sh --\nA=1\n-- b.sh --\nB=1\n", "sh t.sh", "a.sh+b.sh"},
		"an environment":       {shell + "-- .env --\nX=1\n", ". ./.env; sh t.sh", ".env"},
		"sourced":              {product + "-- t.sh --\n. \"$(dirname \"$0\")/lib.sh\"\nsame 5 \"$(python3 -c 'import calc; print(calc.add(2, 3))')\"\n-- lib.sh --\nsame() { [ \"$1\" = \"$2\" ]; }\n", "sh t.sh", "lib.sh"},
		"started by a program": {product + "-- run.py --\nimport subprocess, sys\nsys.exit(subprocess.call(['sh', 'x.sh']))\n-- x.sh --\n" + ask, "python3 run.py", "x.sh"},
		"what it looks for":    {product + "-- run.py --\nimport glob, subprocess, sys\nfor f in glob.glob('jobs/*.py'):\n    if subprocess.call([sys.executable, f], env={'PYTHONPATH': '.'}):\n        sys.exit(1)\n-- jobs/one.py --\n" + check, "python3 run.py", "-jobs/one.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := commits{"base": filesOf(c.base), "head": filesOf(c.base)}
			for name, text := range of["head"] {
				of["head"][name] = strings.NewReplacer("a + b", "a - b").Replace(text)
			}
			if gone, ok := strings.CutPrefix(c.spoil, "-"); ok {
				delete(of["head"], gone)
			} else if both := strings.Split(c.spoil, "+"); len(both) > 1 || c.spoil == ".env" {
				for _, name := range both {
					of["head"][name] = "exit 0\n"
				}
			} else if strings.HasSuffix(c.spoil, ".sh") {
				of["head"][c.spoil] = "same() { true; }\n"
			} else {
				of["head"][c.spoil] = "\n"
			}
			r := judged(t, of, c.command)
			if got := told(&r); r.OK() || !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "changed passed ") }) {
				t.Errorf("it is right: %v; the report says %q", r.OK(), got)
			}
		})
	}
}
