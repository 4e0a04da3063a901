package check

import (
	"path"
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
			if n = lengthUntil(rest, "\n"); rest[1] == '*' {
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
		return min(len(m[0])+lengthUntil(s[len(m[0]):], `"`+m[1])+1+len(m[1]), len(s))
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
			end := closing(toks, open)
			if end == 0 {
				return nil, false
			}
			if inner {
				start = end // of what is around it
			} else {
				attrs = append(attrs, rustText(toks[open+1:end-1]))
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
			k = max(closing(toks, k), k+1)
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
			end := closing(toks, i)
			if end == 0 {
				return item, 0
			}
			item.describe(kind, toks, k, min(head, i))
			if kind == "mod" || kind == "impl" || kind == "trait" || kind == "unsafe" {
				item.body, item.close = toks[i+1:end-1], toks[end-1].from
			}
			return item, end
		case t == "(" || t == "[" || t == "{":
			end := closing(toks, i)
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
	item.key = rustText(toks[from:to])
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

// wholeRust reports whether a file says of itself that it is compiled for tests alone.
func wholeRust(source string) bool {
	toks := rustTokens(source)
	for i := 0; i+2 < len(toks) && toks[i].text == "#" && toks[i+1].text == "!"; {
		end := closing(toks, i+2)
		if end == 0 {
			return false
		}
		if onlyTests(rustText(toks[i+3 : end-1])) {
			return true
		}
		i = end
	}
	return false
}

// stretch is a part of a file, in bytes.
type stretch struct{ from, to int }

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

// declaresForTests reports whether a file of the product loads a module of its own file for
// tests alone.
func declaresForTests(source []byte, module string) bool {
	tests, _, _ := insideRust(rustTokens(string(source)), "")
	return slices.ContainsFunc(tests, func(it rustItem) bool { return it.key == "mod "+module && it.close == 0 })
}

// graft returns a product file with the change's code and the old tests: tests that the
// change adds are removed, and tests that it edits are as before. same is true if the change
// edits no test in the file. ok is false if the old tests have no place in the new file, or
// the file cannot be read.
func graft(name string, before, now []byte) (grafted []byte, same, ok bool) {
	if path.Ext(name) != ".rs" {
		return nil, false, false
	}
	if wholeRust(string(before)) {
		return before, rustText(rustTokens(string(before))) == rustText(rustTokens(string(now))), true
	}
	was, _, ok := insideRust(rustTokens(string(before)), "")
	is, blocks, fine := insideRust(rustTokens(string(now)), "")
	if !ok || !fine {
		return nil, false, false
	}
	if same = slices.EqualFunc(was, is, func(a, b rustItem) bool { return a.in == b.in && rustText(a.toks) == rustText(b.toks) }); same {
		return now, true, true
	}
	placed := make([]bool, len(was))
	edits := map[stretch]string{}
	for _, it := range is {
		i := slices.IndexFunc(was, func(w rustItem) bool {
			return w.in == it.in && w.key == it.key && !placed[slices.IndexFunc(was, func(o rustItem) bool { return o.from == w.from })]
		})
		text := ""
		if i >= 0 {
			placed[i], text = true, string(before[was[i].from:was[i].to])
		}
		edits[stretch{it.from, it.to}] = text
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
		edits[stretch{at, at}] += "\n" + string(before[it.from:it.to]) + "\n"
	}
	order := make([]stretch, 0, len(edits))
	for s := range edits {
		order = append(order, s)
	}
	slices.SortFunc(order, func(a, b stretch) int { return b.from - a.from })
	out := slices.Clone(now)
	for _, s := range order {
		out = slices.Concat(out[:s.from:s.from], []byte(edits[s]), out[s.to:])
	}
	return out, false, true
}

// movedRust reports whether all tests of a file that goes are in some other files.
func movedRust(before []byte, others [][]byte) bool {
	body := func(it rustItem) string { return rustText(it.toks) }
	there := map[string]bool{}
	for _, source := range others {
		tests, _, _ := insideRust(rustTokens(string(source)), "")
		for _, it := range tests {
			there[body(it)] = true
		}
	}
	tests, _, ok := insideRust(rustTokens(string(before)), "")
	return ok && !slices.ContainsFunc(tests, func(it rustItem) bool { return !there[body(it)] })
}

// closing returns where what a bracket opens has ended; 0 where it does not.
func closing(toks []rustToken, at int) int {
	depth := 0
	for i := at; i < len(toks); i++ {
		switch toks[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// rustText is code as one text, without its layout and doc comments.
func rustText(toks []rustToken) string {
	var b strings.Builder
	last := ""
	for _, t := range toks {
		if t.text == rustDoc {
			continue
		}
		if last != "" && wordy(last[len(last)-1]) && wordy(t.text[0]) {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
		last = t.text
	}
	return b.String()
}

func wordy(c byte) bool {
	return c == '_' || c == '$' || c == '"' || c == '\'' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func lengthUntil(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i
	}
	return len(s)
}
