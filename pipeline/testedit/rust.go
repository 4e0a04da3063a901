package testedit

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// rustToken is a token of Rust and where it stands. A doc comment is one: it belongs to
// the item behind it.
type rustToken struct {
	text     string
	from, to int
}

const rustDoc = "///"

func (t rustToken) word() string { return t.text }

var (
	rustRaw      = lazyregexp.New(`^(?:b|c|br|cr|r)?(#*)"`)
	rustChar     = lazyregexp.New(`^b?'(?:\\(?:u\{[0-9a-fA-F_]*\}|x..|.)|[^\\'\n])'`)
	rustDocument = lazyregexp.New(`^(?://[/!]|/\*[*!])`)
	rustWord     = lazyregexp.New(`^(?:r#)?[\pL\pN_]+`)
)

func rustTokens(source string) []rustToken {
	var out []rustToken
	for i := 0; i < len(source); {
		rest, n := source[i:], 1
		text := ""
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
		case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"):
			if n = until(rest, "\n"); rest[1] == '*' {
				n = rustComment(rest)
			}
			if rustDocument.MatchString(rest) && !strings.HasPrefix(rest, "////") && !strings.HasPrefix(rest, "/**/") {
				text = rustDoc
			}
		case rustRaw.MatchString(rest):
			n = rustString(rest)
			text = rest[:n]
		case rustChar.MatchString(rest):
			n = len(rustChar.FindString(rest))
			text = rest[:n]
		case rustWord.MatchString(rest):
			n = len(rustWord.FindString(rest))
			text = rest[:n]
		default:
			text = rest[:1]
		}
		if text != "" {
			out = append(out, rustToken{text, i, i + n})
		}
		i += n
	}
	return out
}

// rustComment is the length of a comment of several lines; they nest.
func rustComment(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// rustString is the length of the string that a text begins with, raw or not.
func rustString(s string) int {
	m := rustRaw.FindStringSubmatch(s)
	if raw := strings.IndexByte(m[0], 'r') >= 0; raw || m[1] != "" {
		return min(len(m[0])+until(s[len(m[0]):], `"`+m[1])+1+len(m[1]), len(s))
	}
	for i := len(m[0]); i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == '"' {
			return i + 1
		}
	}
	return len(s)
}

// rustItem is an item of a file of Rust, or one in a module, an impl or a trait of it.
type rustItem struct {
	in       string // what holds it, "" for the file
	key      string // its kind and name
	name     string
	toks     []rustToken // with its attributes
	body     []rustToken // of a module, an impl or a trait: what it holds
	from, to int
	close    int  // where its block ends, before the bracket; 0: it has none
	test     bool // it declares a test
	only     bool // it is compiled for tests alone
}

// rustItems lists the items of a stretch of a file; ok is false where it cannot be read.
func rustItems(toks []rustToken, in string) (out []rustItem, ok bool) {
	for i := 0; i < len(toks); {
		start, attrs := i, []string(nil)
		for i < len(toks) {
			if toks[i].text == rustDoc {
				i++
				continue
			}
			if toks[i].text != "#" || i+1 >= len(toks) {
				break
			}
			open := i + 1
			inner := toks[open].text == "!"
			if inner {
				open++
			}
			end := closes(toks, open)
			if end == 0 {
				return nil, false
			}
			if inner {
				start = end // of what is around it
			} else {
				attrs = append(attrs, joined(toks[open+1:end-1]))
			}
			i = end
		}
		if i == len(toks) {
			break
		}
		item, end := rustItemAt(toks, i)
		if end == 0 {
			return nil, false
		}
		item.in, item.toks, item.from, item.to = in, toks[start:end], toks[start].from, toks[end-1].to
		for _, a := range attrs {
			item.test = item.test || rustTest.MatchString(a)
			item.only = item.only || onlyTests(a)
		}
		item.only = item.only || item.test
		out = append(out, item)
		i = end
	}
	return out, true
}

var (
	rustTest = lazyregexp.New(`^(?:\w+::)*(?:test|bench|rstest|quickcheck|test_case|parameterized|\w+_test)(?:\(|$)`)
	rustCfg  = lazyregexp.New(`^cfg\((.*)\)$`)
	rustKeep = lazyregexp.New(`^(?:pub|crate|unsafe|async|default|extern)$`)
)

// onlyTests reports whether an attribute has its item compiled for tests alone.
func onlyTests(attr string) bool {
	m := rustCfg.FindStringSubmatch(attr)
	return m != nil && needsTest(m[1])
}

func needsTest(cfg string) bool {
	cfg = strings.TrimSpace(cfg)
	if cfg == "test" {
		return true
	}
	name, rest, call := strings.Cut(cfg, "(")
	if !call || !strings.HasSuffix(rest, ")") {
		return false
	}
	var list []string
	depth, from := 0, 0
	rest = strings.TrimSuffix(rest, ")")
	for i := 0; i <= len(rest); i++ {
		switch {
		case i == len(rest) || rest[i] == ',' && depth == 0:
			if strings.TrimSpace(rest[from:i]) != "" {
				list = append(list, rest[from:i])
			}
			from = i + 1
		case rest[i] == '(':
			depth++
		case rest[i] == ')':
			depth--
		}
	}
	switch name {
	case "all":
		return slices.ContainsFunc(list, needsTest)
	case "any":
		return len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool { return !needsTest(s) })
	}
	return false
}

// rustItemAt reads an item behind its attributes; end is 0 where it does not end.
func rustItemAt(toks []rustToken, at int) (item rustItem, end int) {
	k := at
	for k < len(toks) && (rustKeep.MatchString(toks[k].text) || strings.HasPrefix(toks[k].text, `"`)) {
		if k++; k < len(toks) && toks[k].text == "(" && toks[k-1].text == "pub" {
			k = max(closes(toks, k), k+1)
		}
	}
	if k >= len(toks) {
		return item, 0
	}
	kind := toks[k].text
	plain := kind == "use" || kind == "static" || kind == "type" ||
		kind == "const" && !(k+1 < len(toks) && slices.Contains([]string{"fn", "unsafe", "async", "extern"}, toks[k+1].text))
	head := len(toks)
	for i := at; i < len(toks); {
		switch t := toks[i].text; {
		case t == ";":
			item.describe(kind, toks, k, min(head, i))
			return item, i + 1
		case t == "{" && !plain:
			end := closes(toks, i)
			if end == 0 {
				return item, 0
			}
			item.describe(kind, toks, k, min(head, i))
			if kind == "mod" || kind == "impl" || kind == "trait" || kind == "unsafe" {
				item.body, item.close = toks[i+1:end-1], toks[end-1].from
			}
			return item, end
		case t == "(" || t == "[" || t == "{":
			end := closes(toks, i)
			if end == 0 {
				return item, 0
			}
			i = end
		default:
			if t == "=" {
				head = min(head, i)
			}
			i++
		}
	}
	return item, 0
}

// describe names an item by what stands before its block or its value.
func (item *rustItem) describe(kind string, toks []rustToken, from, to int) {
	item.key = joined(toks[from:to])
	switch {
	case kind == "macro_rules" && from+2 < len(toks):
		item.name = toks[from+2].text
	case kind == "impl" || kind == "use":
		item.name = item.key
		return
	case from+1 < len(toks):
		item.name = toks[from+1].text
		if kind == "const" || kind == "async" || kind == "unsafe" || kind == "extern" {
			if i := slices.IndexFunc(toks[from:to], func(t rustToken) bool { return t.text == "fn" }); i >= 0 && from+i+1 < to {
				kind, item.name = "fn", toks[from+i+1].text
			}
		}
	}
	item.key = kind + " " + item.name
}

// rustWhole tells files of Rust that are tests as a whole.
var rustWhole = lazyregexp.New(`(?:^|/)(?:tests|benches)/.*\.rs$|(?:^|/)(?:tests?|\w+_tests?)\.rs$`)

// readRust takes the tests of a file apart: all of a file of tests, else what is compiled
// for tests alone.
func readRust(name, source string) (parts, bool) {
	out := parts{}
	if !addRust(out, rustTokens(source), "", rustWhole.MatchString(name) || wholeRust(source)) {
		return nil, false
	}
	return out, true
}

func addRust(out parts, toks []rustToken, prefix string, all bool) bool {
	items, ok := rustItems(toks, "")
	for _, it := range items {
		name := prefix + it.name
		switch {
		case it.close > 0 && strings.HasPrefix(it.key, "mod "):
			ok = addRust(out, it.body, name+"::", all || it.only) && ok
		case it.close > 0 && !all && !it.only:
			ok = addRust(out, it.body, prefix, false) && ok
		case !all && !it.only:
		case it.test:
			out.add(name, joined(it.toks), test, it.name)
		case strings.HasPrefix(it.key, "use"):
			out.load(joined(it.toks), it.key, regexp.MustCompile(`\w+`).FindAllString(it.key, -1)...)
		case it.close > 0:
			out.add(name, joined(it.toks), hook, it.name)
		default:
			out.add(name, joined(it.toks), plain, it.name)
		}
	}
	return ok
}

// wholeRust reports whether a file says of itself that it is compiled for tests alone.
func wholeRust(source string) bool {
	toks := rustTokens(source)
	for i := 0; i+2 < len(toks) && toks[i].text == "#" && toks[i+1].text == "!"; {
		end := closes(toks, i+2)
		if end == 0 {
			return false
		}
		if onlyTests(joined(toks[i+3 : end-1])) {
			return true
		}
		i = end
	}
	return false
}

// Span is a stretch of a file, in bytes.
type Span struct{ From, To int }

// insideRust lists what of a file of the product is compiled for tests alone, and where the
// blocks end that may hold such.
func insideRust(toks []rustToken, in string) (tests []rustItem, blocks map[string]int, ok bool) {
	items, ok := rustItems(toks, in)
	blocks = map[string]int{}
	for _, it := range items {
		switch {
		case it.only:
			tests = append(tests, it)
		case it.close > 0:
			within := in + it.key + "{"
			blocks[within] = it.close
			list, more, fine := insideRust(it.body, within)
			tests, ok = append(tests, list...), ok && fine
			for key, at := range more {
				blocks[key] = at
			}
		}
	}
	return tests, blocks, ok
}

// Inside returns where the tests stand in a file of the product: what is compiled for tests
// alone. ok is false where its language has none, or the file cannot be read.
func Inside(name string, source []byte) (spans []Span, ok bool) {
	if path.Ext(name) != ".rs" {
		return nil, false
	}
	if wholeRust(string(source)) {
		return []Span{{0, len(source)}}, true
	}
	tests, _, ok := insideRust(rustTokens(string(source)), "")
	for _, it := range tests {
		spans = append(spans, Span{it.from, it.to})
	}
	return spans, ok
}

// DeclaresForTests reports whether a file of the product loads a module of its own file for
// tests alone.
func DeclaresForTests(source []byte, module string) bool {
	tests, _, _ := insideRust(rustTokens(string(source)), "")
	return slices.ContainsFunc(tests, func(it rustItem) bool { return it.key == "mod "+module && it.close == 0 })
}

// Graft returns a product file with the change's code and the old tests: tests that the
// change adds are removed, and tests that it edits are as before. same is true if the change
// edits no test in the file. ok is false if the old tests have no place in the new file, or
// the file cannot be read.
func Graft(name string, before, now []byte) (grafted []byte, same, ok bool) {
	if path.Ext(name) != ".rs" {
		return nil, false, false
	}
	if wholeRust(string(before)) {
		return before, joined(rustTokens(string(before))) == joined(rustTokens(string(now))), true
	}
	was, _, ok := insideRust(rustTokens(string(before)), "")
	is, blocks, fine := insideRust(rustTokens(string(now)), "")
	if !ok || !fine {
		return nil, false, false
	}
	if same = slices.EqualFunc(was, is, func(a, b rustItem) bool { return a.in == b.in && joined(a.toks) == joined(b.toks) }); same {
		return now, true, true
	}
	placed := make([]bool, len(was))
	edits := map[Span]string{}
	for _, it := range is {
		i := slices.IndexFunc(was, func(w rustItem) bool {
			return w.in == it.in && w.key == it.key && !placed[slices.IndexFunc(was, func(o rustItem) bool { return o.from == w.from })]
		})
		text := ""
		if i >= 0 {
			placed[i], text = true, string(before[was[i].from:was[i].to])
		}
		edits[Span{it.from, it.to}] = text
	}
	blocks[""] = len(now)
	for i, it := range was {
		if placed[i] {
			continue
		}
		at, there := blocks[it.in]
		if !there {
			return nil, false, false
		}
		edits[Span{at, at}] += "\n" + string(before[it.from:it.to]) + "\n"
	}
	order := make([]Span, 0, len(edits))
	for s := range edits {
		order = append(order, s)
	}
	slices.SortFunc(order, func(a, b Span) int { return b.From - a.From })
	out := slices.Clone(now)
	for _, s := range order {
		out = slices.Concat(out[:s.From:s.From], []byte(edits[s]), out[s.To:])
	}
	return out, false, true
}
