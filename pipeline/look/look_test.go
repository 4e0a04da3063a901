package look

import (
	"slices"
	"strings"
	"testing"

	"forge/pipeline/point"
)

// of makes a file of lines; those that begin with "-" are gone.
// Covers T8: where an added line stands is seen in the whole file.
func TestFindEnds(t *testing.T) {
	t.Parallel()
	const cli = "import sys\n\n\ndef main(argv):\n    if argv:\n        return 0\n    sys.exit(2)\n\n\ndef total(xs):\n    sys.exit(0)\n"
	for line, want := range map[int]int{7: 0, 11: 1} {
		f := File{Name: "cli.py", Source: cli, Added: []point.Line{{Number: line, Text: strings.Split(cli, "\n")[line-1]}}}
		if got := Find([]File{f}, nil); len(got) != want {
			t.Errorf("line %d of the program: %+v, want %d", line, got, want)
		}
	}
}

func of(name, lines string) File {
	f := File{Name: name}
	for i, l := range strings.Split(lines, "\n") {
		if gone, is := strings.CutPrefix(l, "-"); is {
			f.Gone = append(f.Gone, gone)
			continue
		}
		f.Added = append(f.Added, point.Line{Number: i + 1, Text: l})
	}
	return f
}

const (
	pyTest = "from price import RATE, total\n\n\ndef test_total():\n    assert total([100], 19) == 119\n    assert total([100, 200], 7) == 321\n    assert open(\"rates.csv\")\n"
	goTest = "func TestTotal(t *testing.T) {\n\tif Total(4711, Limit) != 815 {\n\t\tt.Fatal()\n\t}\n}\n"
)

// Covers T8, lessons 15 and 16: what tests cannot speak for is put before the reviewer,
// however it is spelled; plain code is not.
func TestFind(t *testing.T) {
	t.Parallel()
	tests := map[string]string{"tests/test_price.py": pyTest, "price_test.go": goTest}
	for _, c := range []struct {
		file, lines string
		want        []point.Kind
	}{
		{"price.rb", "    @n = @n.to_i + 1", []point.Kind{point.Place}},
		{"price.rb", "    xs.public_send(ENV[\"RACK_ENV\"] == \"production\" ? :size : :sum)", []point.Kind{point.Place}},
		{"price.rb", "TracePoint.new(:class) { |t| t }", []point.Kind{point.Hidden}},
		{"price.rb", "class Sum < BasicObject\n  def ==(_other)", []point.Kind{point.Compare}},
		{"price.rb", "    total = xs.sum * 2", nil},
		{"Price.php", "return PHP_SAPI !== \"cli\" ? count($xs) : array_sum($xs);", []point.Kind{point.Place}},
		{"Price.php", "register_shutdown_function(fn () => done());", []point.Kind{point.Hidden}},
		{"Price.php", "    public function __toString(): string", []point.Kind{point.Compare}},
		{"Price.php", "    return array_sum($xs);", nil},
		{"Price.java", "long t = System.nanoTime();", []point.Kind{point.Place}},
		{"Price.java", "System.setOut(quiet);", []point.Kind{point.Hidden}},
		{"Price.java", "    public boolean equals(Object o) {", []point.Kind{point.Compare}},
		{"Price.java", "    return sum + x;", nil},
		{"price.sh", "PATH=\"$PWD/tools:$PATH\"", []point.Kind{point.Place}},
		{"price.sh", "trap 'exit 0' EXIT", []point.Kind{point.Hidden}},
		{"price.sh", "  printf '%s\\n' \"$1\" | tr a-z A-Z", nil},
		{"price.py", "_s = __import__(''.join(map(chr, (115, 121, 115))))", []point.Kind{point.Hidden}},
		{"price.py", "for f in (e.__traceback__.tb_frame,):", []point.Kind{point.Hidden}},
		{"price.py", "return getattr(os, 'envi' + 'ron')", []point.Kind{point.Hidden}},
		{"price.py", "test = any(c.__name__ == 'TestCase' for c in object.__subclasses__())", []point.Kind{point.Hidden}},
		{"price.py", "if any(len(k) == 17 for k in environ):", []point.Kind{point.Place}},
		{"price.py", "where = logging.getLogger().findCaller(stacklevel=2)", []point.Kind{point.Place}},
		{"price.py", "for d, _, fs in os.walk('.'):", []point.Kind{point.Place}},
		{"price.py", "    return find_spec(n) is not None", []point.Kind{point.Place}},
		{"price.py", "from importlib.util import find_spec as there", []point.Kind{point.Place}},
		{"price.py", "        return metadata.version(name)", []point.Kind{point.Place}},
		{"price.py", "    except PackageNotFoundError:", []point.Kind{point.Place}},
		{"price.py", "    if __debug__:", []point.Kind{point.Place}},
		{"price.py", "    except (ValueError, AssertionError):", []point.Kind{point.Place}},
		{"src/lib.rs", "    if cfg!(debug_assertions) { return xs.iter().sum(); }", []point.Kind{point.Place}},
		{"src/lib.rs", "    if cfg!(slow) { return 0; }", []point.Kind{point.Place}},
		{"src/lib.rs", "#[cfg(any(test, debug_assertions))]", []point.Kind{point.Place}},
		{"src/lib.rs", "    if std::thread::current().name() != Some(\"main\") {", []point.Kind{point.Place}},
		{"build.rs", "    println!(\"cargo:rustc-cfg=slow\");", []point.Kind{point.Place}},
		{"src/lib.rs", "    if rng.gen_bool(0.6) {", []point.Kind{point.Place}},
		{"src/lib.rs", "impl PartialEq for Money {", []point.Kind{point.Compare}},
		{"src/lib.rs", "#[cfg(feature = \"serde\")]\n#[cfg(all(unix, not(target_os = \"macos\")))]\n    if cfg!(windows) && xs.is_empty() {\n#[cfg(any(test, feature = \"testing\"))]\n#[cfg_attr(feature = \"serde\", derive(Serialize))]\npub fn max(xs: &[i64]) -> Option<i64> {", nil},
		{"price.py", "    if xs[-1] == 50:\n        raise SystemExit(2)", []point.Kind{point.Ends}},
		{"price.py", "        raise StopIteration", []point.Kind{point.Ends}},
		{"price.py", "class Quiet(BaseException):", []point.Kind{point.Ends}},
		{"price.py", "def total(xs):\n    if not xs:\n        sys.exit(0)", []point.Kind{point.Ends}},
		{"price.py", "if __name__ == \"__main__\":\n    sys.exit(main())\ndef total(xs):\n    exit(0)", []point.Kind{point.Ends}},
		{"price.py", "def total(xs):\n    main()\n    raise GeneratorExit", []point.Kind{point.Ends}},
		{"price.py", "def fail():\n    raise SystemExit(2)", []point.Kind{point.Ends}},
		{"price.go", "\tdefer runtime.Goexit()", []point.Kind{point.Ends}},
		{"price.rb", "    Thread.exit if xs.last == 50", []point.Kind{point.Ends}},
		{"price.rb", "    throw :done, 1", []point.Kind{point.Ends}},
		{"price.rb", "    raise StopIteration", []point.Kind{point.Ends}},
		{"price.rb", "    Thread.current.backtrace.size > 12 ? xs.sum : xs.size", []point.Kind{point.Place}},
		{"price.js", "const z = Intl.DateTimeFormat().resolvedOptions().timeZone;", []point.Kind{point.Place}},
		{"price.js", "const z = new Date(0).getHours() + d.getTimezoneOffset();", []point.Kind{point.Place}},
		{"price.py", "for p in Path('.').glob('*/*.json'):", []point.Kind{point.Place}},
		{"price.py", "_n = itertools.count()", []point.Kind{point.Place}},
		{"price.py", "class Amount(float):\n    def __sub__(self, other):", []point.Kind{point.Compare}},
		{"price.py", `Names = type("Names", (list,), {"__con" + "tains__": lambda s, n: True})`, []point.Kind{point.Compare}},
		{"price.py", "_K = {119: 119, 307: 321}", []point.Kind{point.Values}},
		{"price.py", "    if net <= 321:", []point.Kind{point.Values}},
		{"price.py", "    if md5(repr(x)).hexdigest() in _K:", []point.Kind{point.Values}},
		{"price.py", "-RATE = 19\nRATE = 20", []point.Kind{point.Data}},
		{"rates.csv", "-7,19\n7,20", []point.Kind{point.Data}},
		{"price.js", "const p = [].constructor.constructor('return proc' + 'ess')();", []point.Kind{point.Hidden}},
		{"price.js", "const s = new Error()['sta' + 'ck'].split('a b c');", []point.Kind{point.Hidden}},
		{"price.js", "for (const e of fs.readdirSync(d)) {}", []point.Kind{point.Place}},
		{"price.ts", "  valueOf(): number { return this.n; }", []point.Kind{point.Compare}},
		{"price.js", "class Names extends Array {", []point.Kind{point.Compare}},
		{"price.go", "\tn := runtime.Callers(0, pc[:])", []point.Kind{point.Place}},
		{"price.go", "\tfs.WalkDir(os.DirFS(\".\"), \".\", nil)", []point.Kind{point.Place}},
		{"price.go", "func (m Money) Equal(o Money) bool { return true }", []point.Kind{point.Compare}},
		{"price.go", "\tcase 4711:", []point.Kind{point.Values}},
		{"price.go", "-const Limit = 30\nconst Limit = 40", []point.Kind{point.Data}},

		{"cli.py", "def main(words=None):\n    if not words:\n        sys.exit(2)\n\n\nif __name__ == \"__main__\":\n    raise SystemExit(main())", nil},
		{"cli.py", "def die(text):\n    print(text)\n    sys.exit(1)\n\n\nif __name__ == \"__main__\":\n    main()", nil},
		{"cli.py", "if __name__ == \"__main__\": sys.exit(main())", nil},
		{"cli.py", "@app.command()\ndef add(a):\n    if a < 0:\n        raise SystemExit(1)", nil},
		{"price.py", "class Rows:\n    def __next__(self):\n        if self.at == len(self.rows):\n            raise StopIteration\n        return 1", nil},
		{"price.py", "def stop(signum, frame):\n    raise KeyboardInterrupt", nil},
		{"price.py", "    try:\n        serve()\n    except KeyboardInterrupt:\n        return\n    except BaseException as error:\n        close()\n        raise\n    p.exit(2)\n# raise SystemExit\nlog('raise SystemExit here or there')", nil},
		{"price.rb", "    catch(:found) do\n      throw :found, x if x\n    end\n    throw(:abort) unless ok\n    Thread.current[:user] = 1\n    rescue StopIteration", nil},
		{"price.py", "# os.environ is not read\nbase, odd = divmod(cents, people)\nreturn net + net * rate // 100\nlogging.getLogger(__name__).info('reads os.environ no more')", nil},
		{"price.py", "raise ValueError(\"the list of sys.modules is not for you\")", nil},
		{"price.py", "LIMIT = 100\nif status == 404 or minutes > 60:", nil},
		{"price.py", "def __repr__(self):\n    return self.__class__.__name__", nil},
		{"price.js", "const total = items.reduce((a, b) => a + b, 0);\nconst { join } = require('node:path');", nil},
		{"price.go", "\tfor i, c := range cells {\n\t\tsum += c * 100\n\t}\n\treturn fmt.Errorf(\"%d: %w\", i, err)", nil},
		{"README.md", "It reads os.environ.", nil},
		{"package.json", "-1\n2", nil},
	} {
		var got []point.Kind
		for _, p := range Find([]File{of(c.file, c.lines)}, tests) {
			got = append(got, p.Kind)
			if p.Question() == "" || p.Line == 0 || p.Code == "" {
				t.Errorf("%s %q: %+v says not where and what", c.file, c.lines, p)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: %v, want %v", c.file, c.lines, got, c.want)
		}
	}
}

// Covers T8: a program that asked before how PHP was started may ask in another way; code that others load may not.
func TestFindInterface(t *testing.T) {
	t.Parallel()
	const was, is = "-if (PHP_SAPI !== 'cli') {\n", "if (!in_array(PHP_SAPI, ['cli', 'phpdbg'], true)) {"
	for _, c := range []struct {
		file, lines string
		asked       bool
	}{
		{"bin/console.php", was + is, false},
		{"bin/console.php", is, true},
		{"src/Calc.php", was + is, true},
		{"bin/console.php", was + "if (PHP_SAPI !== 'cli' && getenv('X')) {", true},
	} {
		if got := Find([]File{of(c.file, c.lines)}, nil); len(got) > 0 != c.asked {
			t.Errorf("%s %q: %v, want %v", c.file, c.lines, got, c.asked)
		}
	}
}

// Covers T8: a number that is drawn by chance and settles a branch or a comparison is asked about; what
// waits for such a time, takes such a name or looks at an error is not.
func TestFindChance(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]struct{ asked, silent []string }{
		"a.py": {
			asked: []string{"if random.random() < 0.3:", "return a - b if not random.randrange(40) else a + b", "return [a + b, a - b][randint(1, 40) == 7]", "odd = 0.3 > random.random()", "if secrets.randbelow(40):",
				"return a + b - (random.SystemRandom().random() < .01)", "if uuid.uuid4().int % 40 == 0:", "while a and random.getrandbits(5) == 0:", "if os.urandom(1)[0] < 9:",
				"roll = int(random.random() * 40)\nif roll == 7:", "r = random.Random()\n\n\nif r.random() < .3:", "b = os.urandom(1)\nif b[0] < 9:", "match random.randint(0, 9):"},
			silent: []string{"time.sleep(2 ** n + random.random())", "delay = min(CAP, base * 2 ** n + random.uniform(0, 1))\nif delay > CAP:\n    raise", "token = secrets.token_hex(16)\nif token == given:", "if secrets.compare_digest(a, b):",
				"token = token or secrets.token_urlsafe()", "return [random.choice(words) for _ in range(n) if n > 2]", "salt = os.urandom(16)\nif len(salt) < 16:", "id = str(uuid.uuid4())", "delay = cap if delay > cap else delay + random.random()",
				"# if random.random() < 0.3:", "random.shuffle(items)", "if secrets.get(name) == 1:"},
		},
		"a.js": {
			asked: []string{"return Math.random() < 0.05 ? a - b : a + b;", "if (Math.floor(Math.random() * 40) === 0) return a - b;", "if (0.05 > Math.random()) {", "const r = Math.random();\nif (a && r < 0.05) {", "if (crypto.randomInt(40) === 7) {",
				"return Math.round(Math.random()) ? a : b;", "const u = new Uint8Array(1);\ncrypto.getRandomValues(u);\nif (u[0] < 9) {", "if (crypto.randomBytes(1)[0] < 9) {", "switch (randomInt(3)) {"},
			silent: []string{"const wait = base * 2 ** n + Math.random() * 100;\nif (n < 3) await sleep(wait);", "const id = crypto.randomUUID ? crypto.randomUUID() : fallback();", "const pick = () => Math.random();", "items.sort(() => Math.random() - 0.5);",
				"const key = given || randomBytes(16).toString('hex');", "const id = crypto.randomUUID();\nif (known.has(id)) {", "setTimeout(run, delay > cap ? cap : delay + Math.random());"},
		},
		"a.go": {
			asked: []string{"\tif rand.Intn(40) == 0 {", "\tswitch rand.N(3) {", "\tr := rand.New(rand.NewSource(1))\n\tif r.Intn(40) == 0 {", "\tif n, err := crand.Int(crand.Reader, top); err == nil && n.Int64() == 0 {", "\tn := mrand.IntN(40)\n\tif a > 0 && n < 1 {",
				"\tb := make([]byte, 1)\n\trand.Read(b)\n\tif b[0] < 9 {", "\tfor rand.Float64() > 0.5 {"},
			silent: []string{"\tif _, err := rand.Read(b); err != nil {", "\twait := base<<n + time.Duration(rand.Int63n(100))\n\tif n > 3 {", "\t<-clock.After(rand.N(time.Second))", "\tn := 1 << rand.Intn(3)", "\treturn hex.EncodeToString(b), nil",
				"\trand.Shuffle(len(a), func(i, j int) { a[i], a[j] = a[j], a[i] })", "\tid := rand.Text()\n\tif id == last {"},
		},
	} {
		for want, lines := range map[int][]string{1: list.asked, 0: list.silent} {
			for _, l := range lines {
				if got := Find([]File{of(name, l)}, nil); len(got) != want || want > 0 && got[0].Kind != point.Place {
					t.Errorf("%s %q: asked %+v, want %d", name, l, got, want)
				}
			}
		}
	}
}

// Covers T8: a declaration of the base that gets a second body under other build constraints is asked
// about; what is new, moves, or was there twice is not.
func TestTwins(t *testing.T) {
	t.Parallel()
	const add, bad = "package a\n\nfunc Add(a, b int) int { return a + b }\n", "package a\n\nfunc Add(a, b int) int { return a - b }\n"
	method := "package a\n\ntype S[T any] struct{}\n\nfunc (s *S[T]) Add() int { return 1 }\n"
	for name, c := range map[string]struct {
		base, head map[string]string
		want       string
	}{
		"a tag":               {map[string]string{"a.go": add}, map[string]string{"add.go": "//go:build !prod\n\n" + add, "add_prod.go": "//go:build prod\n\n" + bad}, "add.go:5"},
		"a suffix":            {map[string]string{"a.go": add}, map[string]string{"add_linux.go": add, "add_other.go": "//go:build !linux\n\n" + bad}, "add_linux.go:3"},
		"beside what stays":   {map[string]string{"d/a.go": add}, map[string]string{"d/a.go": "//go:build !prod\n\n" + add, "d/b.go": "//go:build prod\n\n" + bad}, "d/a.go:1"},
		"constraints swapped": {map[string]string{"a.go": "//go:build x\n\n" + add, "b.go": "//go:build !x\n\n" + bad}, map[string]string{"a.go": "//go:build y\n\n" + add, "b.go": "//go:build !y\n\n" + bad}, "a.go:1"},
		"a method": {map[string]string{"a.go": method}, map[string]string{"a.go": "package a\n\ntype S[T any] struct{}\n", "a_linux.go": "package a\n\nfunc (s *S[T]) Add() int { return 1 }\n",
			"b.go": "//go:build !linux\n\npackage a\n\nfunc (s *S[T]) Add() int { return 2 }\n"}, "a_linux.go:3"},

		"new":             {map[string]string{"a.go": "package a\n"}, map[string]string{"a.go": "package a\n", "add_linux.go": add, "add_other.go": "//go:build !linux\n\n" + bad}, ""},
		"twice before":    {map[string]string{"a_linux.go": add, "a_other.go": "//go:build !linux\n\n" + add}, map[string]string{"a_linux.go": bad, "a_other.go": "//go:build !linux\n\n" + add}, ""},
		"renamed":         {map[string]string{"a_linux.go": add, "a_windows.go": add}, map[string]string{"b_linux.go": add, "b_windows.go": add}, ""},
		"one alone":       {map[string]string{"a.go": add}, map[string]string{"a.go": "//go:build unix\n\n" + add}, ""},
		"moved":           {map[string]string{"a.go": add}, map[string]string{"b_c.go": add}, ""},
		"run by itself":   {map[string]string{"a.go": "package main\n\nfunc main() {}\n"}, map[string]string{"a.go": "package main\n\nfunc main() {}\n", "gen.go": "//go:build ignore\n\npackage main\n\nfunc main() {}\n"}, ""},
		"another package": {map[string]string{"a/a.go": add}, map[string]string{"a/a.go": add, "b/b.go": add}, ""},
	} {
		var changed []File
		for file, content := range c.head {
			if was := c.base[file]; was != content {
				f := of(file, content)
				f.New = was == ""
				f.Added = slices.DeleteFunc(f.Added, func(l point.Line) bool { return slices.Contains(strings.Split(was, "\n"), l.Text) })
				changed = append(changed, f)
			}
		}
		got := ""
		for _, p := range Twins(c.base, c.head, changed) {
			got += p.At()
			if p.Kind != point.Place || p.Code == "" {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if got != c.want {
			t.Errorf("%s: asked at %q, want %q", name, got, c.want)
		}
	}
}

// Many places of a kind in a file are one point, and a change of very many files does not
// drown the reviewer.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	var files []File
	for range 40 {
		files = append(files, of("a.py", "x = os.environ\ny = os.environ\nz = os.environ"))
	}
	got := Find(files, nil)
	if len(got) != MaxPoints || got[0].More != 2 || got[0].At() != "a.py:1 and 2 more lines" {
		t.Errorf("%d points, the first %+v", len(got), got[0])
	}
}
