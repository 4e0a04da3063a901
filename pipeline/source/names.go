package source

import (
	"slices"
	"strings"
)

// SameButNames reports whether two versions of a function are the same except for the names of
// its own variables, and for values that are put into a variable right before their only
// use, or are never read. names are those variables that were there before, and the new names
// of those. It is sure of what it says, and does not
// see all such.
func SameButNames(file string, old, new []Token) (names []string, same bool) {
	lang := language(file)
	if !plain(old) || !plain(new) {
		return nil, false
	}
	old, names = inlined(old, lang)
	new, _ = inlined(new, lang)
	if len(old) != len(new) {
		return nil, false
	}
	ofOld, ofNew := bound(old, lang), bound(new, lang)
	there, back := map[string]string{}, map[string]string{}
	for i := range old {
		a, b := old[i].Text, new[i].Text
		if labels(old, i, lang) || labels(new, i, lang) || !ofOld[a] && !ofNew[b] {
			if a != b {
				return nil, false
			}
			continue
		}
		if to, known := there[a]; known && to != b || !ofOld[a] || !ofNew[b] {
			return nil, false
		}
		if from, known := back[b]; known && from != a {
			return nil, false
		}
		if there[a], back[b] = b, a; a != b {
			names = append(names, a, b)
		}
	}
	return names, true
}

// plain reports whether a function has no names that are read in another way: attributes of a
// class, and what is evaluated from a text.
func plain(list []Token) bool {
	return !slices.ContainsFunc(list, func(t Token) bool {
		return slices.Contains([]string{"class", "locals", "vars", "eval", "exec"}, t.Text)
	})
}

// labels reports whether a token names a member, an argument or a field, and no variable.
func labels(list []Token, i int, lang string) bool {
	prev, next := at(list, i-1), at(list, i+1)
	return prev == "." || prev == "?." || lang == "python" && next == "=" && !begins(prev) || lang != "python" && next == ":" && (prev == "{" || prev == ",")
}

// reserved are words of the languages that look like names.
var reserved = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`and as assert async await break case catch class const continue def default del delete do elif else enum except export extends false False
		finally for from func function global go goto if import in instanceof interface is lambda let map new nil None nonlocal not null or package pass raise range return self
		select static struct super switch this throw true True try type typeof var void while with yield undefined`) {
		out[w] = true
	}
	return out
}()

func isName(s string) bool {
	return isWord(s) && !reserved[s] && (s[0] < '0' || s[0] > '9')
}

// bound are the names that a function binds itself, except its parameters.
func bound(list []Token, lang string) map[string]bool {
	out, not := map[string]bool{}, map[string]bool{}
	for i, t := range list {
		if !isName(t.Text) {
			if t.Text == "global" || t.Text == "nonlocal" {
				for j := i + 1; j < len(list) && !IsLayout(list[j]); j++ {
					not[list[j].Text] = true
				}
			}
			continue
		}
		prev, next := at(list, i-1), at(list, i+1)
		if lang == "js" && (prev == "{" || prev == ",") && (next == "}" || next == ",") { // perhaps the name of a property, too
			not[t.Text] = true
		}
		switch lang {
		case "python":
			if next == "=" && begins(prev) || prev == "for" || prev == "as" {
				out[t.Text] = true
			}
		case "js":
			if prev == "const" || prev == "let" || prev == "var" {
				out[t.Text] = true
			}
		case "go":
			if next == ":=" && begins(prev) || prev == "var" && at(list, i-2) != "" {
				out[t.Text] = true
			}
		}
	}
	for name := range out {
		if not[name] || slices.ContainsFunc(list, func(t Token) bool { return fills(t, name) }) {
			delete(out, name)
		}
	}
	return out
}

func at(list []Token, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return list[i].Text
}

// begins reports whether a statement begins behind a token.
func begins(s string) bool {
	return s == "" || s == stop || s == indent || s == dedent || s == ";" || s == "{" || s == "}"
}

// inlined puts values that stand in a variable right before their only use where they are
// used, and leaves out variables that are never read. names are those variables.
func inlined(list []Token, lang string) (out []Token, names []string) {
	out = slices.Clone(list)
	for range 20 {
		name, next, ok := unread(out, lang)
		if !ok {
			name, next, ok = inlineOne(out, lang)
		}
		if !ok {
			break
		}
		out, names = next, append(names, name)
	}
	return out, names
}

// unread leaves out a variable that nothing reads: declared, given a name or a constant, or
// in Python a value on the way (`(x := a + b)`).
func unread(list []Token, lang string) (name string, out []Token, ok bool) {
	for i, t := range list {
		name = t.Text
		blank := lang == "go" && name == "_"
		if lang == "" || !isName(name) || !blank && mentions(list, name) > 1 {
			continue
		}
		first, prev, next := i, at(list, i-1), at(list, i+1)
		if lang == "python" && next == ":=" && !begins(prev) {
			return name, ungroup(slices.Concat(list[:i], list[i+2:]), callsPython, false), true
		}
		if lang == "js" && (prev == "const" || prev == "let" || prev == "var") {
			first--
		}
		end := statementEnd(list, i, lang)
		if end == len(list) || !begins(at(list, first-1)) && (lang == "python" || list[first].Line == list[first-1].Line) {
			continue
		}
		switch value := list[i+1 : end]; {
		case slices.ContainsFunc(value, func(t Token) bool { return t.Text == "yield" }): // waits
			continue
		case len(value) == 0 && first < i: // let x;
		case len(value) > 1 && lang == "python" && value[0].Text == ":" && !slices.ContainsFunc(value, func(t Token) bool { return t.Text == "=" }): // x: int
		case len(value) == 2 && value[0].Text == "=" && (lang == "python" || first < i || blank): // x = 0, const x = 0, _ = a
		default:
			continue
		}
		for end < len(list) && (list[end].Text == stop || list[end].Text == ";") {
			end++
		}
		return name, slices.Concat(list[:first], list[end:]), true
	}
	return "", nil, false
}

// mentions counts the tokens of a name, and the texts that may read it.
func mentions(list []Token, name string) (n int) {
	for _, t := range list {
		if t.Text == name || fills(t, name) {
			n++
		}
	}
	return n
}

// fills reports whether a text may take in the value of a name: f"{name}", `${name}`.
func fills(t Token, name string) bool {
	return (strings.HasPrefix(t.Text, `"`) || strings.HasPrefix(t.Text, "`")) && strings.Contains(t.Text, "{") && strings.Contains(t.Text, name)
}

func inlineOne(list []Token, lang string) (name string, out []Token, ok bool) {
	assign := map[string]string{"python": "=", "go": ":=", "js": "="}[lang]
	for i := range list {
		first := i // of the statement
		if lang == "js" {
			if w := list[i].Text; w != "const" && w != "let" {
				continue
			}
			i++
		}
		if assign == "" || !isName(at(list, i)) || at(list, i+1) != assign || !begins(at(list, first-1)) && lang != "js" {
			continue
		}
		name = list[i].Text
		from := i + 2
		to := statementEnd(list, from, lang)
		rest := to
		for rest < len(list) && (list[rest].Text == stop || list[rest].Text == ";") {
			rest++
		}
		end := statementEnd(list, rest, lang)
		use := -1
		for k := rest; k < end; k++ {
			if list[k].Text == name {
				use = k
			}
		}
		if mentions(list, name) != 2 || use < 0 || to <= from || !movable(list[from:to], list[rest:use]) || at(list, use-1) == "." || at(list, use+1) == assign {
			continue
		}
		if lang == "js" && (at(list, use-1) == "{" || at(list, use-1) == ",") && (at(list, use+1) == "}" || at(list, use+1) == ",") && at(list, use-1)+at(list, use+1) != ",," {
			continue
		}
		value := list[from:to]
		if needsGroup(value, at(list, use-1), at(list, use+1)) {
			value = slices.Concat([]Token{{Text: "(", Line: list[use].Line}}, value, []Token{{Text: ")", Line: list[use].Line}})
		}
		return name, slices.Concat(list[:first], list[rest:use], value, list[use+1:]), true
	}
	return "", nil, false
}

// statementEnd is where a statement of one line ends.
func statementEnd(list []Token, from int, lang string) int {
	depth := 0
	for i := from; i < len(list); i++ {
		switch list[i].Text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case ";", stop, indent, dedent:
			if depth <= 0 {
				return i
			}
		case "{", "}":
			return i
		}
		if depth < 0 || lang == "js" && depth == 0 && i > from && list[i].Line > list[i-1].Line {
			return i
		}
	}
	return len(list)
}

// movable reports whether a value can be worked out behind what stands before its use: it
// has no statement in it, and nothing that would come later than a call: neither another call,
// nor a member or an element, which the call may change.
func movable(value, before []Token) bool {
	calls := func(list []Token) bool {
		for i := 1; i < len(list); i++ {
			if list[i].Text == "(" && (isName(list[i-1].Text) || list[i-1].Text == ")" || list[i-1].Text == "]") {
				return true
			}
		}
		return false
	}
	odd := slices.ContainsFunc(value, func(t Token) bool {
		return slices.Contains([]string{"lambda", "yield", "await", ":=", "=>", "?", "if", "function", "func", "{", "&", "|", "^", "<<", ">>", "&^"}, t.Text)
	})
	loops := slices.ContainsFunc(before, func(t Token) bool {
		return slices.Contains([]string{"for", "while", "and", "or", "&&", "||", "lambda", "if", "?", "=>", "func", "function"}, t.Text)
	})
	reads := slices.ContainsFunc(value, func(t Token) bool { return t.Text == "." || t.Text == "?." || t.Text == "[" })
	return !odd && !loops && !((calls(value) || reads) && calls(before))
}

// strength orders operators by how they bind; 0 is none.
var strength = map[string]int{"or": 1, "||": 1, "??": 1, "and": 2, "&&": 2, "in": 3, "is": 3, "==": 3, "!=": 3, "===": 3, "!==": 3, "<": 3, "<=": 3, ">": 3, ">=": 3,
	"+": 4, "-": 4, "*": 5, "/": 5, "//": 5, "%": 5, "@": 5, "**": 6, "&": 7, "|": 7, "^": 7, "<<": 7, ">>": 7, "not": 7, "!": 7, "~": 7}

// needsGroup reports whether a value would be read in another way between two tokens.
func needsGroup(value []Token, prev, next string) bool {
	weakest, depth := 100, 0
	for i, t := range value {
		switch t.Text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		if s := strength[t.Text]; s > 0 && depth == 0 {
			if i == 0 { // a sign
				s = 5
			}
			weakest = min(weakest, s)
		}
	}
	if weakest == 100 {
		return false
	}
	if next == "." || next == "[" || next == "(" || next == "?." || weakest >= 6 && next == "**" {
		return true
	}
	return strength[prev] >= weakest || strength[next] > weakest
}
