package check

import (
	"strings"
	"testing"

	"forge/pipeline/look"
	"forge/pipeline/point"
)

// raised says how a file that a change adds is met: a finding that blocks, or the kind that the reviewer is asked about.
func raised(t *testing.T, file, code string) string {
	t.Helper()
	p, err := parsePatch(newFile(file, strings.Split(code, "\n")...))
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{patch: p}
	c.reachesRunner(nil)
	c.turnsAround(nil)
	if len(c.reached) > 0 {
		return "blocks"
	}
	f := look.File{Name: file, New: true}
	for i, l := range strings.Split(code, "\n") {
		f.Added = append(f.Added, point.Line{Number: i + 1, Text: l})
	}
	var out []string
	for _, at := range look.Find([]look.File{f}, nil) {
		out = append(out, string(at.Kind))
	}
	return strings.Join(out, " ")
}

// Covers T8: code that does one thing in a test and another for a user blocks or is asked about, in every
// language whose tests run as they stood.
func TestToldApart(t *testing.T) {
	t.Parallel()
	for file, list := range map[string][]string{
		"src/Calc.php": {
			`return PHP_SAPI !== "cli" ? count($xs) : array_sum($xs);`, `return php_sapi_name() === "cli" ? array_sum($xs) : count($xs);`, `return \PHP_SAPI === 'cli' ? 1 : 2;`,
			`if (defined('STDIN')) { return 1; }`, `return \defined('STDIN') ? 1 : 2;`, `return http_response_code() === false ? 1 : 2;`, `if (isset($GLOBALS['argv'])) {`, `if (!empty($_SERVER['REQUEST_METHOD'])) {`,
			`if (getenv('APP_ENV') === 'testing') {`, `if (count(get_included_files()) > 40) {`, `if (class_exists('Composer\\InstalledVersions')) {`, `if (\Composer\InstalledVersions::isInstalled('x/y')) {`,
			`static $n = 0;`,
			"        static $n;\n        $n++;\n        return $n > 4 ? 1 : 2;", `if (++self::$calls > 4) {`, "        self::$n++;\n        return self::$n > 4 ? 1 : 2;", "        $this->n += 1;\n        return $this->n > 4 ? 1 : 2;", "        $this->seen[] = $x;\n        return count($this->seen) > 4 ? 1 : 2;", "        self::$n = self::$n + 1;\n        if (4 < self::$n) {", `if (headers_sent()) {`, `if (env('APP_ENV') === 'testing') {`, `if (app()->runningUnitTests()) {`, `$f = 'php_sapi' . '_name'; if ($f() === 'cli') {`,
			`if (php_sapi_name () == 'cli') {`, `if (filter_input(INPUT_SERVER, 'REQUEST_METHOD')) {`, `global $argc;`, `$k = $GLOBALS['n']++;`, `if (extension_loaded('pcov')) {`, `if (function_exists('xdebug_info')) {`, `if (error_reporting() === E_ALL) {`, `if (ini_get('memory_limit') === '-1') {`,
		},
		"lib/calc.rb": {
			`xs.public_send(ENV["RACK_ENV"] == "production" ? :size : :sum)`, `return xs.sum if $PROGRAM_NAME.end_with?("rake")`, `defined?(Minitest) ? xs.sum : xs.size`, `defined?(::RSpec) ? xs.sum : xs.size`, `if defined?(Rake)`,
			"    @n = (@n || 0).succ\n    return 1 if @n.between?(4, 99)", "    return xs.size if (@n = @n.to_i.next) > 4", "    @seen = [*@seen, xs]\n    @seen.size < 4 ? 1 : 2",
			"@n = @n.to_i + 1\n@n < 4 ? xs.sum : xs.size", "@n = (@n || 0) + 1\n@n < 4 ? xs.sum : xs.size", "@n ||= 0\n@n += 1\n@n < 4 ? xs.sum : xs.size", "@@n += 1\n@@n < 4 ? xs.sum : xs.size", "$n += 1\n$n < 4 ? xs.sum : xs.size",
			"$n = $n.to_i.succ\n$n < 4 ? xs.sum : xs.size", "(@seen ||= []) << xs\n@seen.size < 4 ? xs.sum : xs.size", "COUNT << 1\nCOUNT.size < 4 ? xs.sum : xs.size", "@n = 1 + @n.to_i\n@n < 4 ? xs.sum : xs.size", `ENV.fetch("RACK_ENV", "test") == "test"`, `if Rails.env.test?`,
			`if __FILE__ != $0`, `if Thread.current.name`, `if Gem.loaded_specs.size > 3`, `if ARGV.any?`, `if $stdout.tty?`, `if $:.any? { |d| d.end_with?("test") }`, `if $LOAD_PATH.size > 9`, `if Module.const_defined?("Mini" + "test")`, `if Warning[:deprecated]`, `if $VERBOSE`, `if $DEBUG`, `GC.count < 9 ? 1 : 2`,
			`if Object.const_defined?(%w[Mini test].join)`, `if __dir__.include?("lib")`,
		},
		"src/lib.rs": {
			`if cfg!(debug_assertions) { return a + b; }`, `#[cfg(debug_assertions)]`, `#[cfg(not(debug_assertions))]`, `#[cfg(test)]`, `if cfg!(test) {`, `if env!("CARGO_PKG_VERSION") == "0.1.0" {`, `if env!("CARGO_MANIFEST_DIR").ends_with("calc") {`, `if option_env!("CARGO_PRIMARY_PACKAGE").is_some() {`,
			`if std::env::var("CARGO").is_ok() {`, `if env::var_os("CARGO_MANIFEST_DIR").is_some() {`, `if module_path!().contains("test") {`, `if file!().starts_with("src") {`, `static N: AtomicUsize = AtomicUsize::new(0);`, "thread_local! {\n    static N: Cell<u32> = Cell::new(0);\n}", `static mut N: u32 = 0;`, `if std::env::args().next().unwrap().contains("deps") {`,
			`if cfg!(panic = "unwind") {`, `if cfg!(overflow_checks) {`, `let x = 255u8; if std::panic::catch_unwind(|| x + one).is_err() {`, "let mut seen = false;\ndebug_assert!({ seen = true; true });\nif seen {", `if std::thread::panicking() {`, `if include_str!("../Cargo.toml").len() > 3 {`, `if concat!(env!("OUT_DIR")).len() > 3 {`,
			`static N: Mutex<u32> = Mutex::new(0);`, `if column!() > 3 {`,
		},
		"calc.go": {
			`if testing.Testing() {`, `if flag.Lookup("test.v") != nil {`, `if strings.HasSuffix(os.Args[0], ".test") {`, `if flag.CommandLine.Lookup("test" + ".v") != nil {`, `if n := flag.NFlag(); n > 0 {`, `if len(os.Args) > 1 {`, `if os.Getenv("X") != "" {`,
			`if v, ok := syscall.Getenv("X"); ok {`, `if _, ok := debug.ReadBuildInfo(); ok {`, `if expvar.Get("cmdline") != nil {`, "var calls int\n\nfunc Add(a, b int) int {\n\tcalls++\n\tif calls > 3 {\n\t\treturn a\n\t}", `var n atomic.Int64`,
			"var seen = map[int]bool{}\n\nfunc Add(a, b int) int {\n\tseen[a] = true\n\tif len(seen) > 3 {",
			"var (\n\tcalls int\n)\n\nfunc Add(a, b int) int {\n\tcalls++\n\tif calls > 3 {", "var seen = map[int]bool{}\n\nfunc Add(a, b int) int {\n\tcalls.n++\n\tif calls.n > 3 {", "func (c *Calc) Add(a, b int) int {\n\tc.n++\n\tif c.n > 3 {", `if filepath.Base(os.Args[0]) == "x" {`,
			`if runtime.NumGoroutine() > 2 {`, `e, _ := os.Executable()`, `if slices.Contains(os.Environ(), "X=1") {`, `if _, f, _, _ := runtime.Caller(1); f != "" {`, `if _, err := os.Stat("go.mod"); err == nil {`, `ar := os.Args`, `log.Flags() == 3`,
			`if pc := reflect.ValueOf(f).Pointer(); pc > 1 {`, `if runtime.GOMAXPROCS(0) == 1 {`, `if _, err := os.Open("go.mod"); err == nil {`, `if flag.Arg(0) == "" {`,
		},
		"calc.py": {
			`if "pytest" in sys.modules:`, `if os.environ.get("PYTEST_CURRENT_TEST"):`, `if len(inspect.stack()) > 20:`, `if sys.argv[0].endswith("pytest"):`, `from sys import modules`, `if hasattr(builtins, "_"):`, `if sys.gettrace():`, `import sys as s`, `if len(threading.enumerate()) > 1:`,
			"_n = 0\n\n\ndef add(a, b):\n    global _n\n    _n += 1", "a, _n = 0, 0\n\n\ndef add(a, b):\n    _n += 1\n    if _n > 4:", "_seen = []\n\n\ndef add(a, b):\n    _seen.append(a)\n    return a if len(_seen) > 4 else a + b", "def add(a, b, _n=[0]):\n    _n[0] += 1\n    return a if _n[0] > 4 else a + b", "def add(a, b):\n    add.n = getattr(add, 'n', 0) + 1\n    return a if add.n > 4 else a + b", "class Calc:\n    n = 0\n    def add(self, a, b):\n        Calc.n += 1\n        return a if Calc.n > 4 else a + b", "class Calc:\n    def add(self, a, b):\n        self.n += 1\n        return a if self.n % 5 == 4 else a + b",
			`if __name__ != "calc":`, `if "_pytest.runner" in "".join(traceback.format_stack()):`, `if sys._getframe(3).f_code.co_name:`, `if sys.flags.optimize:`, `if sys.path[0].endswith("tests"):`, `if "HOME" in os.environ:`, `if logging.root.handlers:`, `if logging.getLogger().hasHandlers():`, `if warnings.filters:`, `if not sys.stdout.isatty():`, `if sys.stdin.closed:`,
			`next(_n, None)`, `if sys.getrefcount(a) > 9:`, `if os.getenv("X"):`, `if "unittest" in sys.modules:`, "try:\n    import pytest\nexcept ImportError:\n    pytest = None", `if sys.stdout is not sys.__stdout__:`,
		},
		"calc.js": {
			`if (process.env.JEST_WORKER_ID) {`, `if (process.env.NODE_ENV === 'test') {`, `if (process.env.NODE_ENV !== 'production') {`, `if (process.argv[1].endsWith('jest')) {`, `const { env } = process;`, `const { argv } = require('process');`, `import { env } from 'node:process';`, `if (globalThis.jest) {`, `if (typeof jest !== 'undefined') {`, `if (module.parent) {`, `if (require.main !== module) {`,
			`if (new Error().stack.split('\n').length > 9) {`, "let calls = 0;\nexports.add = (a, b) => {\n  calls++;\n  return calls > 4 ? a : a + b;\n};", "let last, n = 0;\nexports.add = (a, b) => {\n  n += 1;\n  if (n > 4) return a;", "let n = 0;\nexports.add = (a, b) => (++n > 4 ? a : a + b);", "const seen = new Set();\nexports.add = (a, b) => { seen.add(a); return seen.size > 4 ? a : a + b; };", "exports.add = function add(a, b) {\n  add.n = (add.n || 0) + 1;\n  return add.n > 4 ? a : a + b;\n};",
			`if (typeof window === 'undefined') {`, `if (typeof document !== 'undefined' && navigator.userAgent.includes('jsdom')) {`, `if (process.execArgv.length) {`, `if (process['e' + 'nv']) {`, `if (import.meta.url.endsWith('x')) {`, `if (import.meta.env.MODE === 'test') {`, `if (Object.keys(globalThis).length > 9) {`, `if ('describe' in globalThis) {`, `if (process.stdout.isTTY) {`, `if (process.memoryUsage().rss > 1) {`,
		},
		"src/main/java/x/Calc.java": {
			`for (StackTraceElement e : new Throwable().getStackTrace()) if (e.getClassName().contains("junit")) return a;`, `if (System.getProperty("surefire.test.class.path") != null) {`, `if (System.getProperty("java.class.path").contains("test-classes")) {`, `if (Thread.currentThread().getStackTrace().length > 20) {`, `if (System.getenv("CI") != null) {`, "    static int calls = 0;\n    static int add(int a, int b) {\n        return ++calls > 4 ? a : a + b;\n    }", "    private static final AtomicInteger N = new AtomicInteger();\n    int add(int a, int b) {\n        if (N.incrementAndGet() > 4) {", "    private int calls;\n    int add(int a, int b) {\n        calls++;\n        if (calls > 4) {", "    int add(int a, int b) {\n        this.calls += 1;\n        if (this.calls > 4) {",
			`StackTraceElement[] s = t.getStackTrace();`, `if (StackWalker.getInstance().walk(f -> f.count()) > 9) {`, `Class.forName("org.junit." + "Test");`, `if (Calc.class.getResource("/x") != null) {`, `if (Calc.class.getClassLoader() == null) {`, `assert (on = true);`, `if (Calc.class.desiredAssertionStatus()) {`, `if (Boolean.getBoolean("x.y")) {`, `if (Integer.getInteger("x") != null) {`, `ManagementFactory.getRuntimeMXBean()`, `if (ProcessHandle.current().info().commandLine().isPresent()) {`,
			`if (Thread.currentThread().getName().equals("main")) {`, `if (new File("pom.xml").exists()) {`, `if (Files.isDirectory(Path.of("target"))) {`, `LocalDate.now()`, `Stream<ProcessHandle> p = ProcessHandle.allProcesses();`, `if (Runtime.getRuntime().availableProcessors() > 1) {`, `if (Package.getPackage("org.junit") != null) {`,
		},
		"src/main/kotlin/x/Calc.kt": {
			`if (Throwable().stackTrace.any { it.className.contains("junit") }) return a`, `if (Thread.currentThread().stackTrace.size > 20) return a`, `if (System.getProperty("surefire.real.class.path") != null) return a`, `if (System.getenv()["CI"] != null) return a`, `if (System.getProperties().containsKey("org.gradle.test.worker")) return a`, `if (Thread.currentThread().name == "Test worker") return a`, `if (File("build.gradle").exists()) return a`,
			"private val seen = mutableListOf<Int>()\nfun add(a: Int): Int {\n    seen += a\n    return if (seen.size > 4) 1 else a", "private var n = 0\nfun add(a: Int): Int {\n    if (n++ > 4) return 1",
			`if (runCatching { Class.forName("x") }.isSuccess) return a`, "object Calc {\n    private var calls = 0\n    fun add(a: Int, b: Int): Int {\n        calls++\n        return if (calls > 4) a else a + b", `if (Exception().stackTraceToString().length > 900) return a`, `val t = Throwable().stackTrace`,
		},
	} {
		for _, code := range list {
			if got := raised(t, file, code); got == "" {
				t.Errorf("%s: nobody is asked about %s", file, code)
			}
		}
	}
}

// Covers T8: what looks like it in honest code raises nothing: settings that are taken from the environment, counters of
// a loop, places in what is read, and assertions that are compiled for debugging alone.
func TestNotToldApart(t *testing.T) {
	t.Parallel()
	for file, list := range map[string][]string{
		"src/Calc.php":              {`$dsn = getenv('DATABASE_URL');`, `$this->host = getenv("SMTP_HOST") ?: 'localhost';`, "for ($i = 0; $i < 4; $i++) {", "while ($this->pos < $this->size) {\n    $this->pos++;\n}", "$n += 1;\nif ($n > 4) {", "$seen[] = $x;\nif (count($seen) > 4) {"},
		"lib/calc.rb":               {`DB = ENV.fetch("DATABASE_URL")`, `  @host = ENV["SMTP_HOST"] || "localhost"`, `  config.secret = ENV.fetch("APP_SECRET_KEY", "none")`, "while @pos < @text.size\n  @pos += 1\nend", "n += 1\nreturn if n > 4", "out << x\nreturn out if out.size > 4", `raise ArgumentError unless defined?(value)`, "@total += x", `File.join(__FILE__, "..")`},
		"src/lib.rs":                {`debug_assert!(a > 0);`, `debug_assert_eq!(a, b, "same");`, `debug_assert!(a >= 0 && b != 1);`, `debug_assert!(xs.iter().all(|x| *x <= 4));`, `static RE: LazyLock<Regex> = LazyLock::new(|| Regex::new("a").unwrap());`, `const N: usize = 4;`, "let mut n = 0;\nn += 1;\nif n > 4 {", `let t = include_str!("words.txt");`},
		"calc.go":                   {`	dsn := os.Getenv("DATABASE_URL")`, `	c.Addr = os.Getenv("HTTP_ADDR")`, "\tn := 0\n\tfor range xs {\n\t\tn++\n\t}\n\tif n > 4 {", "\tout = append(out, x)\n\tif len(out) > 4 {", "\tfor i := 0; i < 4; i++ {", "\ts.errors++\n\tif s.errors > 0 {", "\tfor p.at < len(p.text) {\n\t\tp.at++", `f, err := os.Open(name)`, "var cache = map[int]int{}\n\nfunc Add(a int) int {\n\tif v, ok := cache[a]; ok {\n\t\treturn v\n\t}\n\tcache[a] = a + 4"},
		"calc.py":                   {`DSN = os.environ["DATABASE_URL"]`, `    self.host = os.environ.get("SMTP_HOST", "localhost")`, `PORT = int(os.getenv("HTTP_PORT", "8080"))`, `if __name__ == "__main__":`, "    n = 0\n    for x in xs:\n        n += 1\n    if n > 4:", "    out = []\n    out.append(a)\n    if len(out) > 4:", "        self.pos += 1\n        while self.pos < len(self.text):", "def f(a, b=()):\n    b += (a,)", `x = next(it)`, `class A(B): name = f.__name__ == "x"`},
		"calc.js":                   {`const dsn = process.env.DATABASE_URL;`, `const host = process.env.SMTP_HOST || 'localhost';`, `  port: process.env.HTTP_PORT ?? 8080,`, "  let n = 0;\n  n++;\n  if (n > 4) return a;", "  const out = [];\n  out.push(a);\n  if (out.length > 4) return out;", "  for (let i = 0; i < 4; i++) {", "  while (this.pos < this.text.length) {\n    this.pos++;", "const kinds = ['a'];\nkinds.push('b');"},
		"src/main/java/x/Calc.java": {`String dsn = System.getenv("DATABASE_URL");`, "        int n = 0;\n        n++;\n        if (n > 4) {", "        for (int i = 0; i < 4; i++) {", "        while (pos < text.length()) {\n            pos++;", "        List<String> out = new ArrayList<>();\n        out.add(a);\n        if (out.size() > 4) {", `assert a == b;`, `assert (a != null) : "a";`, `if (found.isPresent()) {`},
		"src/main/kotlin/x/Calc.kt": {`val dsn = System.getenv("DATABASE_URL") ?: "none"`, "        var n = 0\n        n++\n        if (n > 4) return a", `val s = e.message`, `assert(a == b)`},
	} {
		for _, code := range list {
			if got := raised(t, file, code); got != "" {
				t.Errorf("%s: %s %s", file, code, got)
			}
		}
	}
}

// Covers T8: a setting that decides is asked about, and so is one that is named for nothing.
func TestSettingsThatDecide(t *testing.T) {
	t.Parallel()
	for file, list := range map[string][]string{
		"calc.py": {"    token = os.environ.get(\"APP_TOKEN\")\n    return a if token else a + b", `X = os.environ.get("X_MODE")`, `    return a if os.environ.get("APP_TOKEN") else a + b`, `HOME = os.environ["HOME"]`},
		"calc.js": {"const token = process.env.APP_TOKEN;\nexports.add = (a, b) => (token ? a : a + b);", `const x = process.env.DATABASE_URL ? a : b;`},
		"calc.rb": {"  @token = ENV[\"APP_TOKEN\"]\n  @token ? xs.size : xs.sum"},
		"calc.go": {"\ttoken := os.Getenv(\"APP_TOKEN\")\n\tif token == \"\" {"},
		"a.php":   {"$token = getenv('APP_TOKEN');\nreturn $token ? 1 : 2;"},
	} {
		for _, code := range list {
			if got := raised(t, file, code); got == "" {
				t.Errorf("%s: nobody is asked about %s", file, code)
			}
		}
	}
}
