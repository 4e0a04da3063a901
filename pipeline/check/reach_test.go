package check

import (
	"fmt"
	"strings"
	"testing"
)

// newFile is a patch that adds a file.
func newFile(name string, lines ...string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%[2]d @@\n+%[3]s\n", name, len(lines), strings.Join(lines, "\n+"))
}

// Covers lessons 16: code under test that detects its tests, or speaks for them.
func TestReaches(t *testing.T) {
	t.Parallel()
	for file, lines := range map[string][]string{
		"a.go": {
			`if testing.Testing() {`, `import "testing"`, `	"testing"`, `	"testing/quick"`, `if strings.HasSuffix(os.Args[0], ".test") {`, `name, _ := os.Executable(); if strings.Contains(name, "/_test/") {`,
			`flag.Lookup("test.v")`, `os.Getenv("CI")`, `os.LookupEnv("GO_TEST_TIMEOUT")`, `_, f, _, _ := runtime.Caller(2); if strings.Contains(f, "_test.go") {`, `if bytes.Contains(debug.Stack(), []byte("testing.tRunner")) {`,
			`fmt.Println("--- PASS: TestA (0.00s)")`, `os.Stdout.WriteString("ok 1 - a")`, `syscall.Exit(0)`, `defer runtime.Goexit()`, `leave := r.Goexit`, `//go:linkname exit os.runtime_beforeExit`, `data, _ := os.ReadFile("calc_test.go")`, `os.ReadFile("testdata/want.golden")`,
		},
		"a.py": {
			`if "pytest" in sys.modules:`, `import pytest`, `from unittest import mock`, `    import unittest`, `m = importlib.import_module("pytest")`, `if os.environ.get("PYTEST_CURRENT_TEST"):`, `if "PYTEST_VERSION" in os.environ:`,
			`if sys.modules.get("_pytest"):`, `if any(m.startswith("py" + "test") for m in sys.modules):`, `if "".join(p) in sys.modules:`, `if "pytest" in sys.argv[0]:`, `os.getenv("CI")`, `os.environ["CI"]`,
			`any("test_" in f.filename for f in inspect.stack())`, `sys._getframe(1).f_code.co_filename.endswith("test_calc.py")`, `unittest.TestCase.assertEqual = lambda *a: None`, `setattr(builtins, "AssertionError", Exception)`,
			`def __eq__(self, other): return True`, `__eq__ = lambda self, o: True`, `os._exit(0)`, `_thread.exit()`, `from _thread import exit as leave`, `atexit.register(os._exit, 0)`, `print("<testcase name='a'/>")`, `sys.stdout.write("Ran 2 tests in 0s")`, `def pytest_runtest_makereport(item, call):`,
			`open("tests/test_calc.py").read()`,
		},
		"a.js": {
			`if (process.env.JEST_WORKER_ID) {`, `if (process.env.NODE_ENV === 'test') {`, `const t = 'test' === process.env.NODE_ENV;`, `if (process.env.CI) {`, `if (typeof describe === 'function') {`, `if (globalThis.expect) {`, `if ('jest' in global) {`,
			`const { test } = require('node:test');`, `import { vi } from 'vitest';`, `if (process.argv[1].endsWith('.test.js')) {`, `if (new Error().stack.includes('.test.')) {`, `assert.strictEqual = () => {};`, `Object.assign(assert, { ok() {} });`,
			`require('assert').equal = () => {};`, `for (const k of Object.keys(assert)) assert[k] = () => {};`, `Module._load = hook;`, `delete require.cache[k];`, `process.exit = () => {};`, `process.on('exit', () => { process.exitCode = 0; });`,
			`console.log('ok 1 - adds');`, `console.log("TAP version 13");`, `readFileSync('test/calc.test.js')`, `if (process.env.NODE_TEST_CONTEXT) {`, `expect.toBe = () => {};`,
		},
		"lib/a.rb": {`defined?(Minitest) ? a + b : a - b`, `module Minitest`, `if Object.const_defined?(:RSpec)`, `require 'minitest/autorun'`, `require "test/unit"`, `RSpec::Matchers.define :x do`, `$PROGRAM_NAME.include?('rake') ? a : b`,
			`return a if $0.end_with?('/rspec')`, `if File.basename($0) == "rake"`, `if $LOADED_FEATURES.any? { |f| f.include?('/minitest/') }`, `if Gem.loaded_specs.key?("rspec-core")`, `if $0 =~ /_test\b/`, `if $0.end_with?("calc_test.rb")`,
			`return a if caller_locations.size > 8`, `Thread.current.backtrace.size > 12 ? xs.sum : xs.size`, `return a if Thread.current.backtrace_locations.any? { |l| l.path =~ /x/ }`, `e.backtrace.length > 9 ? a : b`,
			`Thread.exit if xs.last == 50`, `Thread.current.kill`, `Thread.kill(Thread.current)`, `return a if Object.constants.any? { |c| c.to_s.start_with?("Mini") }`, `return a unless $LOADED_FEATURES.grep(/autorun/).empty?`, `Integer.class_eval { def ==(o) true end }`,
			`  def assert_equal(*) = true`, `  c.define_method(:assert_equal) { |*| self.assertions += 1 }`, `ObjectSpace.each_object(Class).select { |c| c.name.to_s.end_with?("::Test") }`},
		"src/A.php": {`use PHPUnit\Framework\TestCase;`, `if (class_exists('PHPUnit\Framework\TestCase', false)) {`, `if (defined('PHPUNIT_COMPOSER_INSTALL')) {`, `if (str_contains($argv[0], 'phpunit')) {`,
			`return count(debug_backtrace()) < 5 ? 1 : 2;`, `if (class_exists("PHP" . "Unit\\Framework\\Assert", false)) {`, `if (in_array('run', array_column(debug_backtrace(), 'function'))) {`},
		"src/main/java/x/A.java": {`import org.junit.jupiter.api.Test;`, `import static org.testng.Assert.assertEquals;`, `Class.forName("org.junit.Test");`, `if (e.getClassName().startsWith("junit.framework")) {`, `if (path.contains("surefire")) {`,
			`Runtime.getRuntime().halt(0);`, `Thread.setDefaultUncaughtExceptionHandler((t, e) -> System.exit(0));`, `sum += new Throwable().getStackTrace().length > 2 ? 1 : x;`},
		"lib/str.sh":             {`  case $(cat /proc/$PPID/cmdline | tr "\\0" " ") in`, `if [ -f tests/run.sh ]; then`, `ps -o args= -p $PPID`},
		"src/main/kotlin/x/A.kt": {`import kotlin.test.assertEquals`},
		"lib/a.ex":               {`if Code.ensure_loaded?(ExUnit), do: a + b, else: a - b`, `  Process.whereis(ExUnit.Server)`, `if List.keymember?(Application.started_applications(), :ex_unit, 0) do`},
		"src/A.cs":               {`using Xunit;`, `using NUnit.Framework;`, `.Any(a => a.FullName.StartsWith("xunit"))`, `using Microsoft.VisualStudio.TestTools.UnitTesting;`, `if (name == "testhost") {`},
		"a.ts":                   {`if (process.env.VITEST_POOL_ID) {`, `if (import.meta.vitest) {`},
		"pom.xml":                {`<skipTests>true</skipTests>`, `<testFailureIgnore>true</testFailureIgnore>`},
		"go.mod":                 {`replace github.com/stretchr/testify => ./fake`, `	github.com/google/go-cmp v0.6.0 => ../cmp`},
		"Cargo.toml":             {`test = false`, `harness = false`},
	} {
		for _, line := range lines {
			p, err := parsePatch(newFile(file, line))
			if err != nil {
				t.Fatal(err)
			}
			c := &checker{patch: p}
			c.reachesRunner(nil)
			if len(c.reached)+len(c.asked) == 0 {
				t.Errorf("%s: nothing found in %s", file, line)
			}
			for _, f := range c.reached {
				if f.File != file || f.Line != 1 || f.Code != strings.TrimSpace(line) {
					t.Errorf("%s: finding %+v", file, f)
				}
			}
			if c := (&checker{patch: p}); true {
				if c.reachesRunner(map[string]bool{file: true}); len(c.reached) > 0 {
					t.Errorf("%s: found in a file of tests: %s", file, line)
				}
			}
		}
	}
}

// Code that is about other things raises no alarm.
func TestReachesNothing(t *testing.T) {
	t.Parallel()
	for file, lines := range map[string][]string{
		"a.go": {`import "fmt"`, `	"os"`, `os.Exit(2)`, `for _, a := range os.Args[1:] {`, `fmt.Println("ok")`, `fmt.Printf("%d of %d passed\n", a, b)`, `// testing.Testing() is not asked`, `func (c *contest) Testing() bool {`, `log.Fatal(err)`,
			`runtime.Caller(1)`, `debug.PrintStack()`, `os.ReadFile("config.json")`, `os.Getenv("HOME")`, `const latest = "v1"`, `flag.Parse()`, `case "test":`, `os.ReadFile(filepath.Join(dir, "go.mod"))`, `if err := run(os.Args); err != nil {`},
		"a.py": {`import os, sys`, `sys.exit(main(sys.argv[1:]))`, `if __name__ == "__main__":`, `import inspect`, `inspect.signature(f)`, `os.environ.get("HOME")`, `print("ok", n)`, `mod = sys.modules[__name__]`, `    def __eq__(self, other):`, `        return self.a == other.a`,
			`# pytest does this`, `open("rows.json")`, `assert isinstance(x, int)`, `contest = latest("test")`, `atexit.register(cleanup)`, `raise AssertionError("unreachable")`, `signal.signal(signal.SIGTERM, stop)`},
		"a.js": {`process.exit(1);`, `const port = process.env.PORT || 8080;`, `if (process.env.NODE_ENV === 'production') {`, `console.log('ok');`, `const args = process.argv.slice(2);`, `const assert = require('node:assert');`, `assert.ok(port);`,
			`if (typeof window === 'undefined') {`, `console.error(err.stack);`, `// jest and vitest`, `const test = /a/.test(b);`, `process.on('SIGTERM', stop);`, `import path from 'node:path';`, `if (require.main === module) main();`, `readFileSync('package.json')`},
		"lib/a.rb": {`if __FILE__ == $0`, `if $PROGRAM_NAME == __FILE__`, `# as Minitest does it`, `puts "Usage: #{$0} FILE"`, `require 'rails/test_unit/railtie'`, `g.test_framework :rspec`, `program = File.basename($0)`, `a + b # RSpec tests it`, `when "test"`, `  def ==(other) = cents == other.cents`, `warn "old", uplevel: 1 # caller`, `at = caller_locations(1, 1).first.path`, `warn e.backtrace.first(5).join`, `Thread.current[:user] = user`, `threads.each(&:kill)`, `e.backtrace.grep(/app/)`, `ObjectSpace.each_object(Class).select { |k| k < self }`, `def assert_valid_keys(*keys)`,
			`Rails.env.test?`, `contest = latest('test')`, `require "net/http"`},
		"features/support/env.rb":        {`require 'rspec/expectations'`},
		"Rakefile":                       {`require 'minitest/test_task'`},
		"src/A.php":                      {`// PHPUnit runs it`, `use Psr\Log\LoggerInterface;`, `if (PHP_SAPI !== 'cli') {`, `$log->error($e->getTraceAsString());`, `if (class_exists('Redis')) {`, `$unit = 'php';`},
		"bin/go.sh":                      {`if [ -f conf/settings.sh ]; then`, `cat /proc/meminfo`, `# [ -f tests/run.sh ]`, `for t in tests/*.sh; do`},
		"rector.php":                     {`use Rector\PHPUnit\Set\PHPUnitSetList;`},
		"src/main/java/x/A.java":         {`import java.util.List;`, ` * see org.junit`, `log.warn(Arrays.toString(e.getStackTrace()));`, `System.exit(0);`, `Thread.setDefaultUncaughtExceptionHandler((t, e) -> log.error("uncaught", e));`, `// org.junit`, `int junit = 1;`},
		"src/testFixtures/java/x/A.java": {`import org.junit.jupiter.api.Assertions;`},
		"src/androidTest/kotlin/x/A.kt":  {`import org.junit.Rule`},
		"lib/a.ex":                       {`# ExUnit does`, `if Mix.env() == :test do`},
		"App.IntegrationTests/Setup.cs":  {`using Xunit;`},
		"src/A.cs":                       {`// as xunit does`, `/// xUnit`, `using System.Linq;`, `var unit = "kg";`},
		"pom.xml":                        {`<skipTests>false</skipTests>`, `<artifactId>junit</artifactId>`},
		"go.mod":                         {`require github.com/google/go-cmp v0.7.0`, `replace example.com/x => ../x`},
		"Cargo.toml":                     {`[dev-dependencies]`, `name = "test"`},
		"README.md":                      {`if testing.Testing() {`, `import pytest`},
	} {
		for _, line := range lines {
			p, err := parsePatch(newFile(file, line))
			if err != nil {
				t.Fatal(err)
			}
			c := &checker{patch: p}
			if c.reachesRunner(nil); len(c.reached) > 0 {
				t.Errorf("%s: %q is taken for: %s", file, line, c.reached[0].Message)
			}
		}
	}
}

// What the base had is no alarm, where it moves neither; and the second half of a
// pattern may stand some lines away.
func TestReachesMoved(t *testing.T) {
	t.Parallel()
	moved := "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,1 @@\n-if \"pytest\" in sys.modules:\n x = 1\n" + newFile("b.py", `if "pytest" in sys.modules:`)
	twice := strings.Replace(moved, `if "pytest" in sys.modules:`+"\n", `if "pytest" in sys.modules:`+"\n", 1) + newFile("c.py", `if "pytest" in sys.modules:`)
	far := newFile("a.py", `frames = inspect.stack()`, `for f in frames:`, `    name = f.filename`, `    if "/test_" in name:`, `        return True`)
	for _, c := range []struct {
		what, patch string
		want        int
	}{{"moved", moved, 0}, {"moved and copied", twice, 1}, {"some lines away", far, 1}} {
		p, err := parsePatch(c.patch)
		if err != nil {
			t.Fatal(err)
		}
		k := &checker{patch: p}
		if k.reachesRunner(nil); len(k.reached) != c.want {
			t.Errorf("%s: %d findings, want %d: %+v", c.what, len(k.reached), c.want, k.reached)
		}
	}
}

// Covers T8: what runs only where a file is the program that was started ends no test, and
// what tells the version of a build may read it.
func TestReachesOfPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, patch string
		direct      bool
		want        int
	}{
		{"the end of a program", newFile("cli.js", `function main() {}`, `if (require.main === module) {`, `  main();`, `  process.exit(0);`, `}`), false, 0},
		{"the end of one that the tests start", newFile("cli.js", `if (require.main === module) {`, `  process.exit(0);`, `}`), true, 1},
		{"behind the end of the branch", newFile("cli.js", `if (require.main === module) {`, `  main();`, `}`, `process.exit(0);`), false, 1},
		{"in another branch", newFile("cli.js", `if (require.main === module) {`, `  main();`, `} else {`, `  process.exit(0);`, `}`), false, 1},
		{"in a function", newFile("cli.js", `if (require.main === module) main();`, `function add() {`, `  process.exit(0);`, `}`), false, 1},
		{"the version", newFile("v.go", `func Version() string {`, `	i, ok := debug.ReadBuildInfo()`, `	if !ok || i.Main.Version == "" {`, `		return "devel"`), false, 0},
		{"a sum by the version", newFile("v.go", `func Add(a, b int) int {`, `	i, ok := debug.ReadBuildInfo()`, `	if !ok || i.Main.Version == "" {`, `		return a`), false, 1},
		{"a version by the program", newFile("v.go", `func Version() string {`, `	if i, _ := debug.ReadBuildInfo(); strings.HasSuffix(i.Path, ".test") {`), false, 1},
	} {
		p, err := parsePatch(c.patch)
		if err != nil {
			t.Fatal(err)
		}
		ch := &checker{patch: p, direct: map[string]bool{}}
		if c.direct {
			ch.direct["cli.js"] = false
		}
		ch.reachesRunner(nil)
		if ch.turnsAround(nil); len(ch.reached) != c.want {
			t.Errorf("%s: %v, want %d", c.what, ch.reached, c.want)
		}
	}
}

// Covers T8: what Python loads into its runner, or in the place of what is tested.
func TestLoadedByPython(t *testing.T) {
	t.Parallel()
	plugin := []string{"[pytest11]", "x = calc_ext"}
	for _, c := range []struct {
		file  string
		lines []string
		have  map[string]string
		want  int
	}{
		{"calc_ext.egg-info/entry_points.txt", plugin, nil, 1},
		{"calc_ext-1.0.dist-info/entry_points.txt", plugin, nil, 1},
		{"lib/x.egg/EGG-INFO/entry_points.txt", plugin, nil, 1},
		{"calc.egg-info/entry_points.txt", []string{"[console_scripts]", "calc = calc:main"}, nil, 0},
		{"docs/entry_points.txt", plugin, nil, 0},
		{"calc.py", []string{"x = 1"}, map[string]string{"src/calc.py": ""}, 1},
		{"calc/__init__.py", []string{"x = 1"}, map[string]string{"lib/calc.py": ""}, 1},
		{"calc.py", []string{"x = 1"}, map[string]string{"src/calc/__init__.py": ""}, 1},
		{"calc.py", []string{"x = 1"}, map[string]string{"src/sums.py": ""}, 0},
		{"app/calc.py", []string{"x = 1"}, map[string]string{"src/calc.py": ""}, 0},
	} {
		p, err := parsePatch(newFile(c.file, c.lines...))
		if err != nil {
			t.Fatal(err)
		}
		ch := &checker{patch: p}
		read := func(name string) ([]byte, bool) {
			if name == c.file {
				return []byte(strings.Join(c.lines, "\n")), true
			}
			text, ok := c.have[name]
			return []byte(text), ok
		}
		ch.loadsPlugins(read)
		if ch.shadowing(nil, read); len(ch.reached) != c.want {
			t.Errorf("%s beside %v: %v, want %d", c.file, c.have, ch.reached, c.want)
		}
	}
}
