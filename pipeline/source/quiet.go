package source

import (
	"slices"
	"strings"
)

// asks are functions that look at a value and do nothing else.
var asks = []string{"len", "bool", "isinstance", "type", "id", "callable", "Boolean", "cap"}

// quietWords are what may stand in a value that is worked out without doing anything.
var quietWords = []string{"not", "and", "or", "is", "==", "!=", "===", "!==", "<", ">", "<=", ">=", "!", "!!", "&&", "||", "(", ")", ",", "typeof", "void",
	"True", "False", "None", "true", "false", "null", "nil", "undefined", "..."}

// quiet reports whether working out a value does nothing else, and does not fail.
func (f *flow) quiet(s span) bool {
	list := f.live(s)
	for i, t := range list {
		prev := ""
		if i > 0 {
			prev = list[i-1]
		}
		switch {
		case isOperand(t) && isOperand(prev): // a statement of another kind
			return false
		case t == "(" && (isName(prev) && !slices.Contains(asks, prev) || prev == ")"):
			return false
		case t == "." || t == "length" && prev == ".":
			if t == "." && (f.lang != "js" || i+1 == len(list) || list[i+1] != "length") {
				return false
			}
		case slices.Contains(quietWords, t), isName(t), isNumber(t), strings.HasPrefix(t, `"`) && !strings.HasPrefix(t, `"f`):
		default:
			return false
		}
	}
	return len(list) > 0
}

func isOperand(s string) bool { return isName(s) || isNumber(s) || strings.HasPrefix(s, `"`) }

func isNumber(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// idle reports whether a statement does nothing.
func (f *flow) idle(s span) bool {
	list := f.live(s)
	n := len(list)
	switch {
	case n == 0:
		return false
	case strings.HasPrefix(list[0], `"`): // a docstring, a directive
		return false
	case f.lang == "go" && slices.Contains([]string{"switch{}", "deferfunc(){}()", "func(){}()"}, strings.Join(list, "")):
		return true
	case n == 3 && isName(list[0]) && list[1] == "=" && list[2] == list[0]:
		return true
	case n == 3 && isName(list[0]) && f.lang != "js" && (list[1] == "+=" || list[1] == "-=") && list[2] == "0", n == 3 && f.lang != "js" && list[1] == "*=" && list[2] == "1":
		return true
	case f.lang == "go" && n > 2 && list[0] == "_" && list[1] == "=":
		return f.quiet(span{s.from + 2, s.to})
	case n == 1 && slices.Contains([]string{"return", "raise", "throw", "break", "continue", "pass", "debugger", "fallthrough"}, list[0]):
		return false
	case slices.ContainsFunc(list[:1], func(t string) bool { return reserved[t] && !slices.Contains(quietWords, t) }):
		return false
	}
	return f.quiet(s)
}

// assigned is the name that a statement gives a quiet value, "" when it does something else.
func (f *flow) assigned(s *stmt) string {
	if len(s.parts) == 1 && s.parts[0].word == "def" && f.lang == "python" && f.text(s.from) == "def" {
		return f.text(s.from + 1)
	}
	if len(s.parts) > 0 || len(s.nested) > 0 {
		return ""
	}
	list := f.live(span{s.from, s.end})
	from := s.from
	if f.lang == "js" || f.lang == "go" {
		if len(list) == 0 || !slices.Contains([]string{"const", "let", "var"}, list[0]) {
			return ""
		}
		list, from = list[1:], from+1
	}
	switch {
	case f.lang == "python" && len(list) == 2 && list[0] == "del" && isName(list[1]):
		return list[1]
	case len(list) == 1 && f.lang == "js" && isName(list[0]):
		return list[0]
	case len(list) > 2 && isName(list[0]) && list[1] == "=" && !slices.Contains(list, ",") && f.quiet(span{from + 2, s.end}):
		return list[0]
	}
	return ""
}

// unread takes away the variables of a function that nothing reads.
func (f *flow) unread(p *part) {
	all := f.live(p.all)
	if slices.ContainsFunc(all, func(t string) bool {
		return slices.Contains([]string{"class", "locals", "vars", "eval", "exec", "global", "nonlocal"}, t)
	}) {
		return
	}
	sets := map[string][]*stmt{}
	for _, s := range statements(p.body) {
		if name := f.assigned(s); name != "" {
			sets[name] = append(sets[name], s)
		}
	}
	for name, list := range sets {
		n := 0
		for i := p.all.from; i < p.all.to; i++ {
			if !f.gone[i] && (f.text(i) == name || fills(f.list[i], name)) {
				n++
			}
		}
		if n == len(list) {
			for _, s := range list {
				f.drop(s.span)
			}
			p.body = minus(p.body, list)
		}
	}
}

// minus is a body without some of its statements.
func minus(body, gone []*stmt) []*stmt {
	return slices.DeleteFunc(body, func(s *stmt) bool { return slices.Contains(gone, s) })
}

// statements are those of a body and of its branches, not those of functions in it.
func statements(body []*stmt) (out []*stmt) {
	for _, s := range body {
		out = append(out, s)
		if s.word() == "def" || s.word() == "class" {
			continue
		}
		for _, p := range s.parts {
			if p.word != "try" && p.word != "with" {
				out = append(out, statements(p.body)...)
			}
		}
	}
	return out
}

// neutral takes away what changes no number: `+ 0`, `* 1`, and what changes no truth:
// `and True`. In JavaScript `+ 0` and `* 1` make a number of what is none.
func (f *flow) neutral() {
	for i := 1; i+1 < len(f.list); i++ {
		prev, op, value, next := f.text(i-1), f.text(i), f.text(i+1), f.text(i+2)
		if !isWord(prev) && prev != ")" && prev != "]" || reserved[prev] && prev != "True" && prev != "False" {
			continue
		}
		if next == "." || next == "[" || next == "(" || next == "**" {
			continue
		}
		sum := f.lang != "js" && value == "0" && (op == "+" || op == "-") && strength[next] < 5
		product := f.lang != "js" && value == "1" && op == "*"
		truth := (op == "and" && value == "True" || op == "or" && value == "False" || op == "&&" && value == "true" || op == "||" && value == "false") && strength[next] <= strength[op]
		if sum || product || truth && f.lang == "go" {
			f.gone[i], f.gone[i+1] = true, true
		}
	}
}
