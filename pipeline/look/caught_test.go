package look

import (
	"slices"
	"strings"
	"testing"

	"forge/pipeline/point"
)

// whole makes a file of all its lines, of which those that end with "+" are added; those that begin
// with "-" are gone.
func whole(name, lines string) File {
	f := File{Name: name}
	var now []string
	for l := range strings.SplitSeq(lines, "\n") {
		if gone, is := strings.CutPrefix(l, "-"); is {
			f.Gone = append(f.Gone, gone)
			continue
		}
		text, added := strings.CutSuffix(l, "+")
		if now = append(now, text); added {
			f.Added = append(f.Added, point.Line{Number: len(now), Text: text})
		}
	}
	f.Source = strings.Join(now, "\n")
	return f
}

// Covers T8: what swallows what a caller checks, what an error is taken for, and what numbers are near to is asked
// about, and not what only looks like it.
func TestFindCaught(t *testing.T) {
	t.Parallel()
	const exit = "class C:\n    def __exit__(self, kind, error, trace):\n        self.n = 0\n"
	for _, c := range []struct {
		file, lines string
		want        []point.Kind
	}{
		{"a.py", exit + "        return kind is not None+", []point.Kind{point.Ends}},
		{"a.py", exit + "        if kind:\n            return True+", []point.Kind{point.Ends}},
		{"a.py", strings.ReplaceAll(exit, "def __", "async def __a") + "        return self+", []point.Kind{point.Ends}},
		{"a.py", "class C:\n    __exit__ = lambda self, *_: True+", []point.Kind{point.Ends}},
		{"a.py", "class C(contextlib.suppress):+", []point.Kind{point.Ends}},
		{"a.py", "@contextmanager\ndef c():\n    try:\n        yield\n    except Exception:+\n        pass", []point.Kind{point.Ends}},
		{"a.py", "@contextlib.contextmanager\ndef c():\n    with suppress(Exception):+\n        yield", []point.Kind{point.Ends}},
		{"a.rb", "    yield\n  rescue Exception => e+", []point.Kind{point.Ends}},
		{"a.py", exit + "        return False+", nil},
		{"a.py", exit + "        return+", nil},
		{"a.py", exit + "        return self.lock.__exit__(kind, error, trace)+", nil},
		{"a.py", exit + "\n    def size(self):\n        return True+", nil},
		{"a.py", "@contextmanager\ndef c():\n    try:\n        yield\n    except Exception:+\n        log()\n        raise", nil},
		{"a.py", "@contextmanager\ndef c():\n    try:\n        yield\n    except KeyError:+\n        pass", nil},
		{"a.py", "def c():\n    with suppress(OSError):+\n        os.remove(p)\n    try:\n        go()\n    except Exception:+\n        pass", nil},
		{"a.rb", "    yield\n  rescue KeyError => e+", nil},

		{"a.py", "-class ParseError(ValueError):\nParseError = Exception+", []point.Kind{point.Compare}},
		{"a.py", "-class ParseError(ValueError):\nParseError = (ValueError, NameError)+", []point.Kind{point.Compare}},
		{"a.py", "-class ParseError(ValueError):\nclass ParseError(Exception):+", []point.Kind{point.Compare}},
		{"a.py", "-from .errors import ParseError\nParseError = Exception  # any+", []point.Kind{point.Compare}},
		{"a.py", "-from .errors import ParseError\nfrom builtins import Exception as ParseError+", []point.Kind{point.Compare}},
		{"a.py", "class Odd(AssertionError):+", []point.Kind{point.Compare}},
		{"a.js", "-class ParseError extends Error {}\nconst ParseError = Error;+", []point.Kind{point.Compare}},
		{"a.js", "-class ParseError extends TypeError {\nclass ParseError extends Error {+", []point.Kind{point.Compare}},
		{"a.rb", "-  class ParseError < ArgumentError\n  class ParseError < StandardError+", []point.Kind{point.Compare}},
		{"a.py", "-class ParseError(ValueError):\nclass NotANumber(ValueError):+\n    pass\nParseError = NotANumber+", nil},
		{"a.py", "-class ParseError(ValueError): pass\nclass ParseError(ValueError):+", nil},
		{"a.py", "-class Shop(Base):\nclass Shop(Mixin, Base):+", nil},
		{"a.py", "class TooBig(Exception):+\nRETRIED = (TimeoutError, OSError)+\nlast_error = Error(\"x\")+", nil},
		{"a.js", "const error = new Error('no');+\nclass TooBig extends Error {}+", nil},

		{"a.py", "getcontext().prec = 1+", []point.Kind{point.Compare}},
		{"a.py", "c = decimal.getcontext()+", []point.Kind{point.Compare}},
		{"a.py", "getcontext().traps[Inexact] = False+", []point.Kind{point.Compare}},
		{"a.py", "np.seterr(all=\"ignore\")+", []point.Kind{point.Compare}},
		{"a.py", "math.isclose = near+", []point.Kind{point.Compare}},
		{"a.js", "Number.EPSILON = 1;+", []point.Kind{point.Compare}},
		{"a.py", "with localcontext() as c:\n    c.prec = 40+\n    n = getcontext().prec+\n    if getcontext().prec == 28:+", nil},
		{"a.js", "const near = Math.abs(a - b) <= Number.EPSILON;+", nil},
	} {
		var got []point.Kind
		for _, p := range Find([]File{whole(c.file, c.lines)}, nil) {
			got = append(got, p.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: asked %q, want %q", c.file, c.lines, got, c.want)
		}
	}
}

// Covers T8: errors that are gone from what a file exports, functions that a test holds against each other alone, and
// files for who loads a package in another way are asked about.
func TestFindAlike(t *testing.T) {
	t.Parallel()
	pair := func(name string) File {
		return whole(name, "def encode(s):\n    return s+\n\ndef decode(s):\n    return s+\n\ndef size(s):\n    return 1")
	}
	gone := func(left string) File {
		return whole("a.js", "-exports.ParseError = ParseError;\n"+left+"\nexports.parse = (s) => s;+")
	}
	dual := whole("package.json", `  "exports": {".": {"import": "./a.mjs", "require": "./a.js"}},+`)
	entry := func(lines string) File { f := whole("a.mjs", lines); f.New = true; return f }
	for name, c := range map[string]struct {
		files []File
		test  string
		want  int
	}{
		"there and back":           {[]File{pair("a.py")}, "    assert decode(encode(text)) == text", 1},
		"there and back, by name":  {[]File{pair("a.py")}, "    assert a.decode(a.encode(text)) == text", 1},
		"against each other":       {[]File{pair("a.py")}, "    assert encode(x) == decode(x)", 1},
		"held by a value":          {[]File{pair("a.py")}, "    assert decode(encode(text)) == 'abc'", 0},
		"the other is as it was":   {[]File{pair("a.py")}, "    assert encode(x) == size(x)", 0},
		"no check":                 {[]File{pair("a.py")}, "    x = encode(x), decode(x)", 0},
		"an error is gone":         {[]File{gone("")}, "assert.throws(f, ParseError);", 1},
		"it is exported elsewhere": {[]File{gone("module.exports = { ParseError };")}, "assert.throws(f, ParseError);", 0},
		"it is there, unexported":  {[]File{gone("class ParseError extends Error {}")}, "assert.throws(f, ParseError);", 1},
		"no test names it":         {[]File{gone("")}, "assert.throws(f);", 0},
		"another entry":            {[]File{dual, entry("export const total = (xs) => xs.length;+")}, "", 1},
		"an entry that hands on":   {[]File{dual, entry("export { total } from './a.js';+")}, "", 0},
		"entries that were there":  {[]File{dual}, "", 0},
	} {
		if got := Find(c.files, map[string]string{"a_test": c.test}); len(got) != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}
