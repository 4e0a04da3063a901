package change

import (
	"fmt"
	"strings"
	"testing"
)

const calc = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"

// followed is what becomes of a line of a file between two versions of a tree.
func followed(t *testing.T, file string, line int, about string, before, after map[string]string) Fate {
	t.Helper()
	now := reader(after)
	return Read(diff(t, before, after)).Follow(Place{File: file, Line: line, CodeAlone: true, About: about}, now)
}

// Covers T8: what has no effect does not close a finding about what the code does, and it
// is said why.
func TestChangeWithoutEffect(t *testing.T) {
	t.Parallel()
	one := func(file, content string) map[string]string { return map[string]string{file: content} }
	calcAs := func(content string) map[string]string { return one("calc.py", content) }
	mulAdd := "def mul(a, b):\n    return a * b\n\n\ndef add(a, b):\n    return a + b\n"
	for _, c := range []struct {
		name          string
		line          int
		before, after map[string]string
		idle          string
	}{
		{"parentheses", 2, calcAs(calc), calcAs("def add(a, b):\n    return (a + b)\n" + calc[31:]), idleHere},
		{"pass", 2, calcAs(calc), calcAs("def add(a, b):\n    pass\n    return a + b\n" + calc[31:]), idleHere},
		{"a semicolon", 2, calcAs(calc), calcAs("def add(a, b):\n    return a + b;\n" + calc[31:]), idleHere},
		{"a docstring", 2, calcAs(calc), calcAs("def add(a, b):\n    \"\"\"Add with Decimal.\"\"\"\n    return a + b\n" + calc[31:]), idleHere},
		{"hints", 1, calcAs(calc), calcAs("def add(a: int, b: int) -> int:\n    return a + b\n" + calc[31:]), idleHere},
		{"hints, and an edit far away", 1, calcAs(calc), calcAs("def add(a: int, b: int) -> int:\n    return a + b\n\n\ndef mul(a, b):\n    return b * a\n"), idleHere},
		{"functions swapped", 2, calcAs(calc), calcAs(mulAdd), idleMoved},
		{"the other swapped", 6, calcAs(calc), calcAs(mulAdd), idleMoved},
		{"moved to a new file", 2, calcAs(calc), map[string]string{"calc.py": "from impl import add, mul\n", "impl.py": mulAdd}, idleMoved + ", to impl.py"},
		{"quotes", 1, calcAs("S = \"x\"\n\n\n" + calc), calcAs("S = 'x'\n\n\n" + calc), idleHere},
		{"assert True", 2, calcAs(calc), calcAs("def add(a, b):\n    assert True\n    return a + b\n" + calc[31:]), idleHere},
		{"wider indents", 2, calcAs(calc), calcAs("def add(a, b):\n        return a + b\n" + calc[31:]), idleHere},
	} {
		got := followed(t, "calc.py", c.line, "it is wrong", c.before, c.after)
		if got.Changed || got.Idle != c.idle {
			t.Errorf("%s: changed %v, %q, want %q", c.name, got.Changed, got.Idle, c.idle)
		}
	}
	for _, c := range []struct{ name, file, before, after string }{
		{"parentheses", "calc.go", "package calc\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n", "package calc\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn (a + b)\n}\n"},
		{"a semicolon", "calc.js", "\n\n\nfunction add(a, b) {\n  return a + b;\n}\n", "\n\n\nfunction add(a, b) {\n  return a + b\n}\n"},
	} {
		if got := followed(t, c.file, 5, "it is wrong", one(c.file, c.before), one(c.file, c.after)); got.Changed || got.Idle != idleHere {
			t.Errorf("%s of %s: changed %v, %q", c.name, c.file, got.Changed, got.Idle)
		}
	}
}

// Covers T8: other names of variables, and values that are put into one first, close no
// finding; where that is what is asked for, or anything else changes, they do.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	py := func(body string) string { return "def f(a, b):\n" + body + "\n\ndef g(a):\n    return a\n" }
	js := func(body string) string { return "function f(a, b) {\n" + body + "}\n" }
	gofn := func(body string) string { return "package a\n\nfunc f(a, b int) int {\n" + body + "}\n" }
	for _, c := range []struct {
		name, file    string
		line          int
		before, after string
		about         string
		changed       bool
	}{
		{"a name", "a.py", 2, py("    x = a / b\n    y = x + 1\n    return x * y\n"), py("    q = a / b\n    z = q + 1\n    return q * z\n"), "", false},
		{"a value first", "a.py", 2, py("    return a + a * b\n"), py("    tax = a * b\n    return a + tax\n"), "", false},
		{"two values first", "a.py", 2, py("    return a[0] + a[1] * b\n"), py("    net = a[0]\n    tax = a[1] * b\n    return net + tax\n"), "", false},
		{"a value of a call first", "a.py", 2, py("    return h(a)\n"), py("    out = h(a)\n    return out\n"), "", false},
		{"a value that groups", "a.py", 2, py("    return a + a * b\n"), py("    s = a + a\n    return s * b\n"), "", true},
		{"a minus that groups", "a.py", 2, py("    return a - b - 1\n"), py("    d = b - 1\n    return a - d\n"), "", true},
		{"an order of calls", "a.py", 2, py("    return h(a) + k(b)\n"), py("    y = k(b)\n    return h(a) + y\n"), "", true},
		{"a member before a call", "a.py", 2, py("    return h(a) + a.n\n"), py("    size = a.n\n    return h(a) + size\n"), "", true},
		{"an element before a call", "a.py", 2, py("    return h(a) + a[0]\n"), py("    n = a[0]\n    return h(a) + n\n"), "", true},
		{"two names for one", "a.py", 2, py("    x = a\n    y = b\n    return x - y\n"), py("    x = a\n    y = b\n    return y - x\n"), "", true},
		{"an argument's name", "a.py", 2, py("    x = a\n    y = x\n    return h(x=y, z=x)\n"), py("    t = a\n    y = t\n    return h(t=y, z=t)\n"), "", true},
		{"a global", "a.py", 2, py("    global x\n    x = a\n    y = x\n    return y + x\n"), py("    global x\n    y = a\n    x = y\n    return x + y\n"), "", true},
		{"another function", "a.py", 2, py("    return h(a)\n"), py("    return k(a)\n"), "", true},
		{"the name that is asked for", "a.py", 2, py("    x = a / b\n    return x + x\n"), py("    ratio = a / b\n    return ratio + ratio\n"), "x says nothing", true},
		{"a bare hint", "a.py", 2, py("    return a + b\n"), py("    total: int\n    return a + b\n"), "", false},
		{"a bare hint of a parameter", "a.py", 2, py("    return a + b\n"), py("    a: int\n    return a + b\n"), "", false},
		{"a walrus that is not read", "a.py", 2, py("    return a + b\n"), py("    return (c := a + b)\n"), "", false},
		{"a walrus in a call", "a.py", 2, py("    return h(a)\n"), py("    return h((c := a))\n"), "", false},
		{"a walrus that is read", "a.py", 2, py("    return a + h(a)\n"), py("    return (c := h(a)) + c\n"), "", true},
		{"an unread constant", "a.py", 2, py("    return a + b\n"), py("    checked = True\n    return a + b\n"), "", false},
		{"an unread value that may fail", "a.py", 2, py("    return a + b\n"), py("    c = a + b\n    return a + b\n"), "", true},
		{"a name that is read by text", "a.py", 2, py("    return t.format(**locals())\n"), py("    c = a\n    return t.format(**locals())\n"), "", true},
		{"a global that is unread here", "a.py", 2, py("    global x\n    return a\n"), py("    global x\n    x = a\n    return a\n"), "", true},
		{"an attribute of a class", "a.py", 2, "class A(B):\n    limit = 3\n", "class A(B):\n    most = 3\n", "", true},
		{"an unread constant", "a.js", 2, js("  return a + b;\n"), js("  const checked = true;\n  return a + b;\n"), "", false},
		{"an unread declaration", "a.js", 2, js("  return a + b;\n"), js("  let c;\n  return a + b;\n"), "", false},
		{"an unread one of TypeScript", "a.js", 2, js("  return a + b\n"), js("  const c = 1\n  return a + b\n"), "", false},
		{"a property that is set", "a.js", 2, js("  return a\n"), js("  a.b = 1\n  return a\n"), "", true},
		{"a blank name", "a.go", 4, gofn("\treturn a / b\n"), gofn("\t_ = b\n\treturn a / b\n"), "", false},
		{"an underscore that is read", "a.py", 2, py("    _ = a\n    return _(b) + _(a)\n"), py("    _ = b\n    return _(b) + _(a)\n"), "", true},
		{"an underscore that is read", "a.js", 2, js("  const _ = a;\n  return _(b) + _(a);\n"), js("  const _ = b;\n  return _(b) + _(a);\n"), "", true},
		{"a name in an f-string", "a.py", 2, py("    c = a\n    return f\"{c}\"\n"), py("    c = b\n    return f\"{c}\"\n"), "", true},
		{"a name in a template", "a.js", 2, js("  const c = a;\n  return `${c}`;\n"), js("  const c = b;\n  return `${c}`;\n"), "", true},
		{"a name that a text keeps", "a.py", 2, py("    c = a\n    return f\"{c}\" + c\n"), py("    return f\"{c}\" + a\n"), "", true},
		{"names that a text keeps", "a.py", 2, py("    x = h(a)\n    y = h(b)\n    return f\"{x}\" + x + y\n"), py("    y = h(a)\n    x = h(b)\n    return f\"{x}\" + y + x\n"), "", true},
		{"an argument by name", "a.py", 2, py("    return h(\n        c=1\n    )\n"), py("    return h(\n    )\n"), "", true},
		{"an argument by name behind others", "a.py", 2, py("    return h(a,\n        c=1)\n"), py("    return h(a)\n"), "", true},
		{"a pause", "a.py", 2, py("    c = yield\n    return a\n"), py("    return a\n"), "", true},
		{"a blank name of a call", "a.go", 4, gofn("\treturn a / b\n"), gofn("\t_ = g(b)\n\treturn a / b\n"), "", true},
		{"a value first", "a.js", 2, js("  return a.map((v) => v * b);\n"), js("  const out = a;\n  return out.map((v) => v * b);\n"), "", false},
		{"a name", "a.js", 2, js("  const x = a / b;\n  return x * x;\n"), js("  const q = a / b;\n  return q * q;\n"), "", false},
		{"a property", "a.js", 2, js("  const x = a / b;\n  return { x, y: x };\n"), js("  const q = a / b;\n  return { q, y: q };\n"), "", true},
		{"awaited", "a.js", 2, js("  return g(a);\n"), js("  const x = await g(a);\n  return x;\n"), "", true},
		{"a value first", "a.go", 4, gofn("\treturn a/b + 1\n"), gofn("\tq := a / b\n\treturn q + 1\n"), "", false},
		{"a name", "a.go", 4, gofn("\tx := a / b\n\tx++\n\treturn x\n"), gofn("\tq := a / b\n\tq++\n\treturn q\n"), "", false},
		{"a field", "a.go", 4, gofn("\tx := a / b\n\treturn g(T{x: x}, x)\n"), gofn("\tq := a / b\n\treturn g(T{q: q}, q)\n"), "", true},
		{"a guard", "a.go", 4, gofn("\treturn a / b\n"), gofn("\tif b == 0 {\n\t\treturn 0\n\t}\n\treturn a / b\n"), "", true},
		{"a name and an edit", "a.go", 4, gofn("\tx := a / b\n\treturn x + x\n"), gofn("\tq := a / (b + 1)\n\treturn q + q\n"), "", true},
	} {
		got := followed(t, c.file, c.line, c.about+" it is wrong", map[string]string{c.file: c.before}, map[string]string{c.file: c.after})
		if got.Changed != c.changed || !c.changed && got.Idle != idleNames && got.Idle != idleHere {
			t.Errorf("%s of %s: changed %v, %q, want %v", c.name, c.file, got.Changed, got.Idle, c.changed)
		}
	}
}

// Covers T8: what syntax alone shows to do nothing closes no finding, whatever it names, unless
// such code is what is asked to go.
func TestCosmetic(t *testing.T) {
	t.Parallel()
	py := func(body string) string { return "def mean(xs):\n" + body + "\n\ndef first(xs):\n    return xs[0]\n" }
	raw := func(code string) string { // what is no body is the whole function
		if strings.HasPrefix(code, " ") {
			return py(code)
		}
		return code + "\n\ndef first(xs):\n    return xs[0]\n"
	}
	far := func(code string) string { // what is behind @@ stands far below
		body, below, _ := strings.Cut(code, "@@")
		if body != "" {
			body = "def mean(xs):\n" + body
		}
		return body + strings.Repeat("\n", 2) + "def first(xs):\n" + strings.Repeat("    xs = sorted(xs)\n", 9) + "    return xs[0]\n\n\n" + below
	}
	gofn := func(body string) string { return "package q\n\nfunc Mean(xs []int) int {\n" + body + "}\n" }
	js := func(body string) string { return "exports.mean = function (xs) {\n" + body + "};\n" }
	const (
		pyWas = "    total = sum(xs)\n    return total / len(xs)\n"
		goWas = "\ttotal := 0\n\tfor _, x := range xs {\n\t\ttotal += x\n\t}\n\treturn total / len(xs)\n"
		jsWas = "  let total = 0;\n  for (const x of xs) total += x;\n  return Math.trunc(total / xs.length);\n"
	)
	cases := []struct {
		name, file string
		wrap       func(string) string
		was, is    string
		about      string
		changed    bool
	}{
		{"an unread name of the finding", "m.py", py, pyWas, "    total = sum(xs)\n    empty = not xs\n    return total / len(xs)\n", "", false},
		{"if False", "m.py", py, pyWas, "    if False:\n        return 0\n" + pyWas, "", false},
		{"if not True in a line", "m.py", py, pyWas, "    if not True: return 0\n" + pyWas, "", false},
		{"if True", "m.py", py, pyWas, "    if True:\n        total = sum(xs)\n        return total / len(xs)\n", "", false},
		{"else of True", "m.py", py, pyWas, "    if 1 == 1:\n        total = sum(xs)\n        return total / len(xs)\n    else:\n        return 0\n", "", false},
		{"behind a return", "m.py", py, pyWas, pyWas + "    if not xs:\n        return 0\n", "", false},
		{"a handler that raises", "m.py", py, pyWas, "    total = sum(xs)\n    try:\n        return total / len(xs)\n    except ZeroDivisionError:\n        raise\n", "", false},
		{"one with a name", "m.py", py, pyWas, "    total = sum(xs)\n    try:\n        return total / len(xs)\n    except ZeroDivisionError as e:\n        raise e\n    finally:\n        pass\n", "", false},
		{"to itself", "m.py", py, pyWas, "    xs = xs\n" + pyWas, "", false},
		{"plus nothing", "m.py", py, pyWas, "    total = sum(xs)\n    return total / (len(xs) + 0)\n", "", false},
		{"itself and nothing", "m.py", py, pyWas, "    total = sum(xs)\n    total = total + 0\n    return total / len(xs)\n", "", false},
		{"plus nothing in place", "m.py", py, pyWas, "    total = sum(xs)\n    total += 0\n    return total / len(xs)\n", "", false},
		{"a value alone", "m.py", py, pyWas, "    len(xs)\n" + pyWas, "", false},
		{"a comparison alone", "m.py", py, pyWas, "    len(xs) == 0\n" + pyWas, "", false},
		{"a branch to nothing", "m.py", py, pyWas, "    if not xs:\n        pass\n" + pyWas, "", false},
		{"a loop that stops", "m.py", py, pyWas, "    while not xs:\n        break\n" + pyWas, "", false},
		{"a loop over nothing", "m.py", py, pyWas, "    for _ in ():\n        return 0\n" + pyWas, "", false},
		{"a function that is not called", "m.py", py, pyWas, "    def guard():\n        return 0\n" + pyWas, "", false},
		{"two branches of one code", "m.py", py, pyWas, "    total = sum(xs)\n    if xs:\n        return total / len(xs)\n    else:\n        return total / len(xs)\n", "", false},
		{"a branch to what comes", "m.py", py, pyWas, "    total = sum(xs)\n    if not xs:\n        return total / len(xs)\n    return total / len(xs)\n", "", false},
		{"taken back", "m.py", py, pyWas, "    ok = len(xs) > 0\n    del ok\n" + pyWas, "", false},
		{"a hint alone", "m.py", py, pyWas, "    total: int\n" + pyWas, "", false},

		{"a tuple", "m.py", py, pyWas, "    total, _ = sum(xs), None\n    return total / len(xs)\n", "", false},
		{"a tuple of both", "m.py", py, pyWas, "    total, size = sum(xs), len(xs)\n    return total / size\n", "", false},
		{"a helper", "m.py", py, pyWas, "    total = sum(xs)\n    return _div(total, len(xs))\n\n\ndef _div(a, b):\n    return a / b\n", "", false},
		{"a helper in a lambda's place", "m.py", raw, pyWas, "def _div(a, b):\n    return a / b\n\n\nmean = lambda xs: _div(sum(xs), len(xs))\n", "", false},
		{"a helper of a helper", "m.py", py, pyWas, "    return _mean(sum(xs), len(xs))\n\n\ndef _mean(t, n):\n    return _div(t, n)\n\n\ndef _div(a, b):\n    return a / b\n", "", false},
		{"a helper for all", "m.py", py, pyWas, "    return _mean(xs)\n\n\ndef _mean(xs):\n" + pyWas, "", false},
		{"a lambda", "m.py", raw, pyWas, "mean = lambda xs: sum(xs) / len(xs)\n", "", false},
		{"a class around it", "m.py", raw, pyWas, "class _M:\n    @staticmethod\n    def mean(xs):\n        total = sum(xs)\n        return total / len(xs)\n\n\nmean = _M.mean\n", "", false},
		{"a class without a decorator", "m.py", raw, pyWas, "class _M:\n    def mean(xs):\n        return sum(xs) / len(xs)\n\n\nmean = _M.mean\n", "", false},

		{"a tuple that reads a name before it", "m.py", py, "    a = xs[0]\n    b = xs[1]\n    a = b\n    b = a\n    return g(a, b)\n", "    a = xs[0]\n    b = xs[1]\n    a, b = b, a\n    return g(a, b)\n", "", true},
		{"a helper that guards", "m.py", py, pyWas, "    total = sum(xs)\n    return _div(total, len(xs))\n\n\ndef _div(a, b):\n    return a / b if b else 0\n", "", true},
		{"a helper in another order", "m.py", py, pyWas, "    total = sum(xs)\n    return _div(total, len(xs))\n\n\ndef _div(b, a):\n    return a / b\n", "", true},
		{"a helper that drops a call", "m.py", py, pyWas, "    total = sum(xs)\n    return _div(total, len(xs), check(xs))\n\n\ndef _div(a, b, c):\n    return a / b\n", "", true},
		{"a helper that turns it round", "m.py", py, pyWas, "    total = sum(xs)\n    return _div(len(xs), total)\n\n\ndef _div(a, b):\n    return a / b\n", "", true},
		{"a helper that groups", "m.py", py, "    # the rest\n    return sum(xs) - len(xs) - 1\n", "    # the rest\n    return _sub(sum(xs), len(xs) - 1)\n\n\ndef _sub(a, b):\n    return a - b\n", "", true},
		{"a helper with a decorator", "m.py", far, pyWas, "    total = sum(xs)\n    return _div(total, len(xs))\n@@@safe\ndef _div(a, b):\n    return a / b\n", "", true},
		{"a helper for all with a guard", "m.py", py, pyWas, "    return _mean(xs)\n\n\ndef _mean(xs):\n    if not xs:\n        return 0\n" + pyWas, "", true},
		{"a helper for all that is handed more", "m.py", py, pyWas, "    return _mean(ys)\n\n\ndef _mean(xs):\n" + pyWas, "", true},
		{"a lambda with a guard", "m.py", raw, pyWas, "mean = lambda xs: sum(xs) / len(xs) if xs else 0\n", "", true},
		{"a lambda with a default", "m.py", raw, pyWas, "mean = lambda xs=(1,): sum(xs) / len(xs)\n", "", true},
		{"a class with a base", "m.py", raw, pyWas, "class _M(Safe):\n    @staticmethod\n    def mean(xs):\n        return sum(xs) / len(xs)\n\n\nmean = _M.mean\n", "", true},
		{"a lambda in a tuple", "m.py", raw, "    total = sum(xs)\n    return total, len(xs)\n", "mean = lambda xs: sum(xs), len(xs)\n", "", true},
		{"a class method", "m.py", raw, pyWas, "class _M:\n    @classmethod\n    def mean(xs):\n        return sum(xs) / len(xs)\n\n\nmean = _M.mean\n", "", true},
		{"a helper that is asked for", "m.py", py, pyWas, "    total = sum(xs)\n    return _div(total, len(xs))\n\n\ndef _div(a, b):\n    return a / b\n", "extract a helper", true},
		{"a guard", "m.py", py, pyWas, "    if not xs:\n        return 0\n" + pyWas, "", true},
		{"a guard in a line", "m.py", py, pyWas, "    if not xs: return 0\n" + pyWas, "", true},
		{"another value", "m.py", py, pyWas, "    total = sum(xs)\n    return total / max(len(xs), 1)\n", "", true},
		{"a handler that answers", "m.py", py, pyWas, "    total = sum(xs)\n    try:\n        return total / len(xs)\n    except ZeroDivisionError:\n        return 0\n", "", true},
		{"a handler before another", "m.py", py, "    try:\n        return g(xs)\n    except Exception:\n        return 0\n", "    try:\n        return g(xs)\n    except KeyError:\n        raise\n    except Exception:\n        return 0\n", "", true},
		{"a value that is looked at for its error", "m.py", py, "    return xs\n", "    try:\n        len(xs)\n    except TypeError:\n        return 0\n    return xs\n", "", true},
		{"a call alone", "m.py", py, pyWas, "    check(xs)\n" + pyWas, "", true},
		{"an element alone", "m.py", py, pyWas, "    xs[0]\n" + pyWas, "", true},
		{"a flag that is read", "m.py", py, pyWas, "    empty = not xs\n    total = sum(xs)\n    return total / (len(xs) or empty)\n", "", true},
		{"a loop that runs", "m.py", py, "    while xs:\n        g()\n", "    while True:\n        g()\n", "", true},
		{"a loop that waits", "m.py", py, "    g()\n", "    while not xs:\n        pass\n    g()\n", "", true},
		{"plus more", "m.py", py, pyWas, "    total = sum(xs)\n    return total / (len(xs) + 0 * 1 + 1)\n", "", true},
		{"minus nothing of a product", "m.py", py, "    return xs - 0 * y\n", "    return xs * y\n", "", true},
		{"a generator", "m.py", py, pyWas, pyWas + "    yield 0\n", "", true},
		{"dead code that is to go", "m.py", py, pyWas + "    return 0\n", pyWas, "there is dead code below", true},
		{"a handler that is to go", "m.py", py, "    try:\n        return g(xs)\n    except ValueError:\n        raise\n", "    return g(xs)\n", "the handler is redundant", true},
		{"an unused name that is to go", "m.py", py, "    n = not xs\n    return g(xs)\n", "    return g(xs)\n", "n is never read", true},

		{"if false", "q.go", gofn, goWas, "\tif false {\n\t\treturn 0\n\t}\n" + goWas, "", false},
		{"a blank name", "q.go", gofn, goWas, "\t_ = len(xs) == 0\n" + goWas, "", false},
		{"a branch to what comes", "q.go", gofn, goWas, goWas[:len(goWas)-len("\treturn total / len(xs)\n")] + "\tif len(xs) == 0 {\n\t\treturn total / len(xs)\n\t}\n\treturn total / len(xs)\n", "", false},
		{"a branch to nothing", "q.go", gofn, goWas, "\tif len(xs) == 0 {\n\t}\n" + goWas, "", false},
		{"a block", "q.go", gofn, goWas, "\t{\n" + goWas + "\t}\n", "", false},
		{"a constant", "q.go", gofn, goWas, "\tconst empty = true\n" + goWas, "", false},
		{"nothing later", "q.go", gofn, goWas, "\tdefer func() {}()\n" + goWas, "", false},
		{"an empty switch", "q.go", gofn, goWas, "\tswitch {\n\t}\n" + goWas, "", false},
		{"behind a return", "q.go", gofn, goWas, goWas + "\tif len(xs) == 0 {\n\t\treturn 0\n\t}\n\treturn 1\n", "", false},
		{"a guard", "q.go", gofn, goWas, "\tif len(xs) == 0 {\n\t\treturn 0\n\t}\n" + goWas, "", true},
		{"a guard with an else", "q.go", gofn, goWas, "\tif len(xs) == 0 {\n\t\treturn 0\n\t} else if xs[0] == 1 {\n\t\treturn 2\n\t}\n" + goWas, "", true},
		{"a loop over a list of its own", "q.go", gofn, goWas, "\tfor _, y := range []int{1, 2} {\n\t\txs = append(xs, y)\n\t}\n" + goWas, "", true},
		{"a recover", "q.go", gofn, goWas, "\tdefer func() { recover() }()\n" + goWas, "", true},

		{"if false", "q.js", js, jsWas, "  if (false) return 0;\n" + jsWas, "", false},
		{"a value that nobody takes", "q.js", js, jsWas, "  void xs.length;\n" + jsWas, "", false},
		{"a block and a branch to nothing", "q.js", js, jsWas, "  {}\n  if (xs.length === 0) {\n  }\n" + jsWas, "", false},
		{"a handler that throws", "q.js", js, jsWas, "  try {\n" + jsWas + "  } catch (e) {\n    throw e;\n  }\n", "", false},
		{"a label", "q.js", js, jsWas, "  guard: {\n    break guard;\n  }\n" + jsWas, "", false},
		{"braces", "q.js", js, jsWas, "  let total = 0;\n  for (const x of xs) { total += x; }\n  return Math.trunc(total / xs.length);\n", "", false},
		{"behind a return, without semicolons", "q.js", js, "  let t = g(xs)\n  return t\n", "  let t = g(xs)\n  return t\n  if (!xs) return 0\n", "", false},
		{"an unread name", "q.ts", js, jsWas, "  const empty = xs.length === 0;\n" + jsWas, "", false},
		{"to itself", "q.js", js, jsWas, "  xs = xs\n" + jsWas, "", false},
		{"a guard", "q.js", js, jsWas, "  if (xs.length === 0) return 0;\n" + jsWas, "", true},
		{"a guard in braces", "q.js", js, jsWas, "  if (!xs.length) {\n    return 0\n  }\n" + jsWas, "", true},
		{"a function that comes later", "q.js", js, "  return g(xs)\n", "  return g(xs)\n  function g(a) { return a }\n", "", true},
		{"a number of a text", "q.js", js, "  return g(xs)\n", "  return g(xs) * 1\n", "", true},
		{"use strict", "q.js", js, jsWas, "  'use strict';\n" + jsWas, "", true},
		{"a handler that answers", "q.js", js, "  return g(xs)\n", "  try { return g(xs) } catch (e) { return null }\n", "", true},
	}
	before, after := map[string]string{}, map[string]string{} // one file for each, so that one diff does
	for i, c := range cases {
		before[fmt.Sprint(i, c.file)], after[fmt.Sprint(i, c.file)] = c.wrap(c.was), c.wrap(c.is)
	}
	patch, now := Read(diff(t, before, after)), reader(after)
	for i, c := range cases {
		line := 3
		if c.file == "q.go" {
			line = 4
		}
		got := patch.Follow(Place{File: fmt.Sprint(i, c.file), Line: line, CodeAlone: true, About: "Division by zero raises when the list of values is empty. " + c.about}, now)
		if got.Changed != c.changed {
			t.Errorf("%s of %s: changed %v, %q, want %v", c.name, c.file, got.Changed, got.Idle, c.changed)
		}
	}
}

// Covers T8: small fixes that are honest are seen.
func TestChangeWithEffect(t *testing.T) {
	t.Parallel()
	goFile := func(body string) string {
		return "package a\n\nimport \"os\"\n\nconst limit = 10\n\nfunc f(name string, n int) error {\n" + body + "}\n"
	}
	js := func(body string) string { return "const LIMIT = 1\n\nasync function f(a) {\n" + body + "}\n" }
	py := func(body string) string { return "import os\n\nLIMIT = 1\n\n\ndef f(a, b):\n" + body }
	for _, c := range []struct {
		name, file    string
		line          int
		before, after string
		about         string
	}{
		{"quotes around a shell variable", "a.sh", 1, "echo hello, $1\n", "echo \"hello, $1\"\n", ""},
		{"an option of a shell command", "a.sh", 1, "rm $1\n", "rm -- $1\n", ""},
		{"an operator", "a.go", 8, goFile("\treturn g(n + 1)\n"), goFile("\treturn g(n - 1)\n"), ""},
		{"a guard above", "a.go", 8, goFile("\treturn g(n)\n"), goFile("\tif n > limit {\n\t\treturn nil\n\t}\n\treturn g(n)\n"), ""},
		{"the line is deleted", "a.go", 8, goFile("\tprintln(name)\n\treturn g(n)\n"), goFile("\treturn g(n)\n"), ""},
		{"a check moves up", "a.go", 9, goFile("\tx := g(n)\n\tif n > 1 {\n\t\treturn nil\n\t}\n\treturn x\n"), goFile("\tif n > 1 {\n\t\treturn nil\n\t}\n\tx := g(n)\n\treturn x\n"), ""},
		{"a constant beside it", "a.go", 5, goFile("\treturn g(limit)\n"), goFile("\treturn g(limit)\n")[:26] + "const limit = 20\n" + goFile("\treturn g(limit)\n")[43:], ""},
		{"a constant above its function", "a.go", 7, goFile("\treturn g(limit)\n"), goFile("\treturn g(limit)\n")[:26] + "const limit = 20\n" + goFile("\treturn g(limit)\n")[43:], ""},
		{"defer", "a.go", 8, goFile("\tmu.Unlock()\n\treturn g(n)\n"), goFile("\tdefer mu.Unlock()\n\treturn g(n)\n"), ""},
		{"an error is looked at", "a.go", 8, goFile("\tos.Remove(name)\n\treturn nil\n"), goFile("\treturn os.Remove(name)\n"), ""},
		{"a text", "a.go", 8, goFile("\treturn g(\"a\")\n"), goFile("\treturn g(\"b\")\n"), ""},
		{"parentheses that group", "a.go", 8, goFile("\treturn g(n - 1*2)\n"), goFile("\treturn g((n - 1) * 2)\n"), ""},
		{"a directive", "a.go", 7, goFile("\treturn nil\n"), goFile("\treturn nil\n")[:44] + "//go:noinline\n" + goFile("\treturn nil\n")[44:], ""},
		{"a type", "a.go", 7, goFile("\treturn nil\n"), "package a\n\nimport \"os\"\n\nconst limit = 10\n\nfunc f(name string, n int64) error {\n\treturn nil\n}\n", ""},
		{"await", "a.js", 4, js("  const x = g(a)\n  return x\n"), js("  const x = await g(a)\n  return x\n"), ""},
		{"a strict comparison", "a.js", 4, js("  return a == 1\n"), js("  return a === 1\n"), ""},
		{"an optional chain", "a.js", 4, js("  return a.b\n"), js("  return a?.b\n"), ""},
		{"a semicolon that matters", "a.js", 4, js("  const x = a\n  ;(g)()\n")[:0] + js("  const x = a\n  (g)()\n"), js("  const x = a;\n  (g)()\n"), ""},
		{"return and its value", "a.js", 4, js("  return\n    a\n"), js("  return a\n"), ""},
		{"a constant", "a.ts", 1, js("  return LIMIT\n"), "const LIMIT = 2\n" + js("  return LIMIT\n")[16:], ""},
		{"a decorator", "a.py", 7, py("    return a\n"), "import os\n\nLIMIT = 1\n\n\n@cache\ndef f(a, b):\n    return a\n", ""},
		{"the default of a parameter", "a.py", 6, py("    return a\n"), "import os\n\nLIMIT = 1\n\n\ndef f(a, b=None):\n    return a\n", ""},
		{"a call in the place of pass", "a.py", 10, py("    try:\n        g(a)\n    except OSError:\n        pass\n"), py("    try:\n        g(a)\n    except OSError:\n        raise\n"), ""},
		{"an indentation", "a.py", 9, py("    for x in a:\n        g(x)\n        h(a)\n"), py("    for x in a:\n        g(x)\n    h(a)\n"), ""},
		{"an f-string", "a.py", 7, py("    return '{a}'\n"), py("    return f'{a}'\n"), ""},
		{"a secret is read from elsewhere", "a.py", 3, "import os\n\nKEY = 'abc'\n", "import os\n\nKEY = os.environ['KEY']\n", ""},
		{"a hint, where one is asked for", "a.py", 6, py("    return a\n"), "import os\n\nLIMIT = 1\n\n\ndef f(a: str, b):\n    return a\n", "the type hint of a is missing, and mypy fails"},
		{"a hint that is wrong", "a.py", 6, "import os\n\nLIMIT = 1\n\n\ndef f(a: int, b):\n    return a\n", "import os\n\nLIMIT = 1\n\n\ndef f(a: str, b):\n    return a\n", ""},
		{"a wrong docstring", "a.py", 7, py("    \"\"\"Adds.\"\"\"\n    return a - b\n"), py("    \"\"\"Subtracts.\"\"\"\n    return a - b\n"), ""},
		{"a hint that a framework reads", "a.py", 7, "import os\n\nLIMIT = 1\n\n\n@app.get('/')\ndef f(a):\n    return a\n", "import os\n\nLIMIT = 1\n\n\n@app.get('/')\ndef f(a: int):\n    return a\n", ""},
		{"a field", "a.py", 2, "class A:\n    a = 1\n", "class A:\n    a: int = 1\n", ""},
		{"a document", "README.md", 1, "Call add(a, b).\n", "Call `add(a, b)`.\n", ""},
		{"an indentation of YAML", "a.yml", 3, "jobs:\n  test:\n  steps: [a]\n", "jobs:\n  test:\n    steps: [a]\n", ""},
		{"a line of a Dockerfile", "Dockerfile", 1, "FROM alpine:latest\nUSER root\n", "FROM alpine:3.20\nUSER root\n", ""},
		{"a number of JSON", "a.json", 1, "{\"a\": 1}\n", "{\"a\": 2}\n", ""},
		{"a column of SQL", "a.sql", 1, "SELECT a FROM b;\n", "SELECT a FROM b WHERE c = 1;\n", ""},
		{"a semicolon of Rust", "a.rs", 2, "fn f() {\n    a()\n}\n", "fn f() {\n    a();\n}\n", ""},
		{"a function is moved and changed", "a.py", 2, calc, "def mul(a, b):\n    return a * b\n\n\ndef add(a, b):\n    return b - a\n", ""},
	} {
		got := followed(t, c.file, c.line, c.about, map[string]string{c.file: c.before}, map[string]string{c.file: c.after})
		if !got.Changed {
			t.Errorf("%s in %s is not seen: %q", c.name, c.file, got.Idle)
		}
	}
}

// Covers B3: what a commit does to a file as a whole.
func TestEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, before, after string
		want                      bool
	}{
		{"a blank line", "calc.py", calc, calc + "\n", false},
		{"a comment", "calc.py", calc, calc + "# met\n", false},
		{"an operator", "calc.py", calc, calc[:24] + "-" + calc[25:], true},
		{"a blank line in YAML", "a.yml", "a: 1\n", "a: 1\n\n", false},
		{"a value in YAML", "a.yml", "a: 1\n", "a: 2\n", true},
		{"a comment in YAML", "a.yml", "a: 1\n", "a: 1 # one\n", false},
		{"a value with the mark in YAML", "a.yml", "a: 1\n", "a: 1#one\n", true},
		{"a comment in TOML", "a.toml", "a = 1\n", "# one\na = 1\n", false},
		{"a comment in SQL", "a.sql", "SELECT 1;\n", "SELECT 1; -- one\n", false},
		{"a block in SQL", "a.sql", "SELECT 1;\n", "SELECT /* one\n  */ 1;\n", false},
		{"a text with the mark in SQL", "a.sql", "SELECT 'a';\n", "SELECT 'a /* b */';\n", true},
		{"a comment in CSS", "a.css", "a { b: c }\n", "/* it's one */\na { b: c }\n", false},
		{"a rule in CSS", "a.css", "a { b: c }\n", "a { b: d } /* d */\n", true},
		{"a comment in HTML", "a.html", "<p>don't</p>\n", "<p>don't<!-- it\nis --></p>\n", false},
		{"a word in HTML", "a.html", "<p>don't</p>\n", "<p>do<!-- it --></p>\n", true},
		{"a comment in Lua", "a.lua", "x = 1\n", "x = 1 -- one\n", false},
		{"a comment in a Dockerfile", "Dockerfile", "FROM a\n", "# why\nFROM a\n", false},
		{"a line in a Dockerfile", "Dockerfile", "FROM a\n", "FROM b\n", true},
		{"a comment in a Makefile", "sub/Makefile", "a:\n\ttrue\n", "a: # all\n\ttrue\n", false},
		{"a block in Java", "A.java", "int a = 1;\n", "int a = /* one */ 1;\n", false},
		{"a pattern in Java", "A.java", "f(\"a\");\n", "f(\"a/**/*.b\");\n", true},
		{"a comment in Markdown", "a.md", "a\n", "a<!-- b -->\n", false},
		{"an empty file", "b.py", "", "# nothing\n", false},
		{"a file", "b.py", "", "a()\n", true},
		{"a deleted file", "b.py", "a()\n", "", true},
	} {
		tree := func(content string) map[string]string {
			out := map[string]string{"other.py": "a()\n"}
			if content != "" {
				out[c.file] = content
			}
			return out
		}
		read := Read(diff(t, tree(c.before), tree(c.after)))
		if len(read.Files) != 1 || read.Files[0].Effect(reader(tree(c.after))) != c.want {
			t.Errorf("%s: effect is not %v", c.name, c.want)
		}
	}
}

// Covers B3: a test that asserts nothing shows nothing.
func TestAsserts(t *testing.T) {
	t.Parallel()
	const py = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
	for _, c := range []struct {
		name, file, before, after string
		want                      bool
	}{
		{"assert True", "test_calc.py", py, py + "\n\ndef test_met():\n    assert True\n", false},
		{"a constant", "test_calc.py", py, py + "\n\nimport calc\n\ndef test_met():\n    assert 1 == 1, 'met'\n", false},
		{"a comment", "test_calc.py", py, py + "# met\n", false},
		{"a call", "test_calc.py", py, py + "\n\ndef test_met():\n    assert add(1, 1) == 2\n", true},
		{"another value", "test_calc.py", py, py[:len(py)-2] + "6\n", true},
		{"nothing in Go", "a_test.go", "package a\n", "package a\n\nfunc TestMet(t *testing.T) {\n\tif false {\n\t\tt.Fatal(1)\n\t}\n}\n", false},
		{"Go", "a_test.go", "package a\n", "package a\n\nfunc TestMet(t *testing.T) {\n\tif Add(1, 1) != 2 {\n\t\tt.Fatal(1)\n\t}\n}\n", true},
		{"nothing in JavaScript", "a.test.js", "a()\n", "a()\ntest('met', () => {\n  expect(true).toBe(true)\n})\n", false},
		{"JavaScript", "a.test.js", "a()\n", "a()\ntest('met', () => {\n  expect(add(1, 1)).toBe(2)\n})\n", true},
		{"data", "tests/a.json", "{}\n", "{\"a\": 1}\n", true},
	} {
		read := Read(diff(t, map[string]string{c.file: c.before}, map[string]string{c.file: c.after}))
		if len(read.Files) != 1 || read.Files[0].Asserts() != c.want {
			t.Errorf("%s: asserts is not %v", c.name, c.want)
		}
	}
}
