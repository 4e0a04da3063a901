package testedit

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	jsTest  = lazyregexp.New(`^(?:it|test|specify|fit|xit|xtest|bench)$`)
	jsLoad  = lazyregexp.New(`^(?:import\b.*['"]|(?:const|let|var)\b.*=require\(.*\)$)`)
	jsBinds = lazyregexp.New(`[A-Za-z_$][\w$]*`)
	jsFrom  = lazyregexp.New(`['"][^'"]*['"]\)?$`)
	jsName  = lazyregexp.New(`[\w$]`)
)

// jsToken is a word, a string, or a sign of JavaScript.
type jsToken struct {
	text string
	line int
}

func (t jsToken) literal() bool { return t.text != "" && strings.IndexByte("\"'`", t.text[0]) >= 0 }

func readScript(source string) (parts, bool) {
	toks, ok := jsTokens(source)
	if !ok {
		return nil, false
	}
	out := parts{}
	rest := map[int][]jsToken{}
	last := 0
	for i := 0; i < len(toks); i++ {
		if name, end := jsCall(toks, i); end > 0 {
			out.add(name, joined(toks[i:end]), test)
			i = end - 1
			continue
		}
		rest[toks[i].line] = append(rest[toks[i].line], toks[i])
		last = max(last, toks[i].line)
	}
	for n := 0; n <= last; n++ {
		text := strings.TrimSuffix(joined(rest[n]), ";")
		switch {
		case text == "" || text == `"use strict"` || text == `'use strict'`:
		case jsLoad.MatchString(text):
			names, _, _ := strings.Cut(strings.TrimPrefix(text, "import"), "require(")
			names, _, _ = strings.Cut(names, "from")
			out.load(text, jsFrom.FindString(text), jsBinds.FindAllString(names, -1)...)
		default:
			out.add(around, text, hook)
		}
	}
	return out, true
}

// jsCall returns the name of the test that is declared at a token, and where it ends;
// 0 where there is none.
func jsCall(toks []jsToken, at int) (string, int) {
	if !jsTest.MatchString(toks[at].text) || at > 0 && toks[at-1].text == "." && (at < 2 || toks[at-2].text != "t") {
		return "", 0
	}
	i := at + 1
	for i+1 < len(toks) && toks[i].text == "." && jsName.MatchString(toks[i+1].text) {
		i += 2
	}
	if i < len(toks) && strings.HasPrefix(toks[i].text, "`") { // a table
		i++
	} else if i+1 < len(toks) && toks[i].text == "(" && !toks[i+1].literal() {
		i = closes(toks, i)
	}
	if i == 0 || i+1 >= len(toks) || toks[i].text != "(" || !toks[i+1].literal() {
		return "", 0
	}
	end := closes(toks, i)
	name := toks[i+1].text
	return name[1:max(len(name)-1, 1)], end
}

// lexeme is a token of either language.
type lexeme interface{ word() string }

func (t jsToken) word() string { return t.text }

// closes returns where what a bracket opens has ended; 0 where it does not.
func closes[T lexeme](toks []T, at int) int {
	depth := 0
	for i := at; i < len(toks); i++ {
		switch toks[i].word() {
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

// joined is code as one text, without its layout and doc comments.
func joined[T lexeme](toks []T) string {
	var b strings.Builder
	last := ""
	for _, t := range toks {
		text := t.word()
		if text == rustDoc {
			continue
		}
		if last != "" && wordy(last[len(last)-1]) && wordy(text[0]) {
			b.WriteByte(' ')
		}
		b.WriteString(text)
		last = text
	}
	return b.String()
}

// jsTokens takes a source apart, without comments; false where its brackets do not close.
func jsTokens(source string) ([]jsToken, bool) {
	var out []jsToken
	line, depth := 0, 0
	for i := 0; i < len(source); {
		c := source[i]
		n := 1
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0, strings.HasPrefix(source[i:], "//"), strings.HasPrefix(source[i:], "/*"):
			if strings.HasPrefix(source[i:], "//") {
				n = until(source[i:], "\n")
			} else if c == '/' {
				n = min(until(source[i+2:], "*/")+4, len(source)-i)
			}
			line += strings.Count(source[i:i+n], "\n")
			i += n
			continue
		case c == '"' || c == '\'' || c == '`':
			n = quotedBy(source[i:], c)
		case c == '/' && jsPattern(out):
			n = pattern(source[i:])
		case wordy(c):
			for i+n < len(source) && wordy(source[i+n]) && source[i+n] != '"' && source[i+n] != '\'' {
				n++
			}
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
		out = append(out, jsToken{source[i : i+n], line})
		line += strings.Count(source[i:i+n], "\n")
		i += n
	}
	return out, depth == 0
}

func until(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i
	}
	return len(s)
}

// quotedBy is the length of the string that a text begins with.
func quotedBy(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == quote:
			return i + 1
		case s[i] == '\n' && quote != '`':
			return i
		}
	}
	return len(s)
}

// jsPattern reports whether a slash begins a pattern here, and does not divide.
func jsPattern(before []jsToken) bool {
	if len(before) == 0 {
		return true
	}
	t := before[len(before)-1].text
	return t == "return" || !wordy(t[0]) && t[0] != '`' && t != ")" && t != "]" && t != "}"
}

// pattern is the length of the pattern that a text begins with; 1, a sign, where it has no end.
func pattern(s string) int {
	class := false
	for i := 1; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[':
			class = true
		case s[i] == ']':
			class = false
		case s[i] == '/' && !class:
			return i + 1
		}
	}
	return 1
}
