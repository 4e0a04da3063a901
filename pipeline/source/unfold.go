package source

import (
	"slices"
	"strings"
)

// Unfold writes a function of Python as it would stand without what a change put around it: a lambda of its
// name, a class that holds it alone, a function that only works out what one call of it says, a tuple of values for as many
// names. old is the file before: only what is not in it is taken away. It returns the file, and where the function
// begins and ends in it; ok is false where it has none.
func Unfold(old, new []Token, name string) (out []Token, from, to int, ok bool) {
	out = slices.Clone(new)
	out = unwrapped(old, out, name)
	out = asDef(out, name)
	for range 20 {
		next, done := callOne(old, out, name)
		if !done {
			break
		}
		out = next
	}
	if from, to = define(out, name); from < 0 || at(out, from-1) == "async" || decorated(out, from) {
		return nil, 0, 0, false
	}
	body := untupled(out[from:to])
	out = slices.Concat(out[:from], body, out[to:])
	to = from + len(body)
	for to > from && IsLayout(out[to-1]) {
		to--
	}
	return out, from, to, true
}

// define is where the only definition of a function at the margin begins and ends, -1 where it has none.
func define(list []Token, name string) (from, to int) {
	from, depth := -1, 0
	for i, t := range list {
		switch t.Text {
		case indent:
			depth++
		case dedent:
			depth--
		case "def":
			if depth != 0 || at(list, i+1) != name {
				continue
			}
			if from >= 0 {
				return -1, 0
			}
			from, to = i, blockEnd(list, i)
		}
	}
	return from, to
}

// blockEnd is behind the block that the first line from a token on opens.
func blockEnd(list []Token, from int) int {
	depth := 0
	for i := from; i < len(list); i++ {
		switch list[i].Text {
		case stop:
			if depth == 0 && at(list, i+1) != indent {
				return i + 1
			}
		case indent:
			depth++
		case dedent:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(list)
}

// decorated reports whether a line with @ stands above a definition.
func decorated(list []Token, def int) bool {
	i := def - 2
	for ; i >= 0 && !IsLayout(list[i]); i-- {
	}
	return i+1 < def && i+1 >= 0 && list[i+1].Text == "@"
}

func isNew(old []Token, name string) bool { return isName(name) && mentions(old, name) == 0 }

// unwrapped takes a function out of a new class that has it alone, and that only gives it its name.
func unwrapped(old, list []Token, name string) []Token {
	for i := range list {
		class := at(list, i+1)
		if list[i].Text != "class" || !isNew(old, class) || mentions(list, class) != 2 || at(list, i+4) != indent { // with a base, it is further on
			continue
		}
		first, end := i+5, blockEnd(list, i)
		if Equal(list[first:min(first+3, len(list))], words("@", "staticmethod", stop)) {
			first += 3
		}
		alias := words(name, "=", class, ".", name)
		from := Find(list, alias)
		if from < end || !begins(list[from-1].Text) || !begins(at(list, from+len(alias))) {
			continue
		}
		if first+1 >= end || list[first].Text != "def" || list[first+1].Text != name || blockEnd(list, first) != end-1 {
			continue
		}
		body := list[first : end-1]
		if slices.ContainsFunc(body, func(t Token) bool { return strings.HasPrefix(t.Text, "__") || t.Text == "super" }) {
			continue
		}
		return slices.Concat(list[:i], body, list[end:from], list[min(from+len(alias)+1, len(list)):])
	}
	return list
}

func words(list ...string) (out []Token) {
	for _, w := range list {
		out = append(out, Token{Text: w})
	}
	return out
}

// asDef writes `name = lambda a: b` as a function.
func asDef(list []Token, name string) []Token {
	start := Find(list, words(name, "=", "lambda"))
	if start < 0 || start > 0 && !begins(list[start-1].Text) {
		return list
	}
	end, colon, depth := statementEnd(list, start, "python"), -1, 0
	for i := start + 3; i < end && colon < 0; i++ {
		switch list[i].Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case "lambda": // as the default of a parameter
			return list
		case ":":
			if depth == 0 {
				colon = i
			}
		}
	}
	if colon < 0 {
		return list
	}
	if args, _ := arguments(slices.Concat(words("("), list[colon+1:end], words(")")), 0); len(args) != 1 { // a tuple that begins with it
		return list
	}
	head, tail := words(")", ":", stop, indent, "return"), words(stop, dedent)
	return slices.Concat(list[:start], words("def", name, "("), list[start+3:colon], head, list[colon+1:end], tail, list[min(end+1, len(list)):])
}

// callOne puts what a new function works out in the place of the only call of it.
func callOne(old, list []Token, name string) (out []Token, done bool) {
	for i, t := range list {
		helper := at(list, i+1)
		fresh := t.Text == "def" && helper != name && isNew(old, helper) && mentions(list, helper) == 2
		if !fresh || at(list, i-1) == "async" || decorated(list, i) {
			continue
		}
		from, end := define(list, helper)
		if from != i {
			continue
		}
		params, body := parameters(list[i:end])
		use := slices.IndexFunc(list, func(u Token) bool { return u.Text == helper && u.Line != t.Line })
		if params == nil || use < 0 || use > i && use < end || at(list, use+1) != "(" || at(list, use-1) == "." || at(list, use-1) == "def" {
			continue
		}
		args, last := arguments(list, use+1)
		value := filled(params, args, body)
		if forwarded := forwards(list, name, use, last, params, args); forwarded && len(body) > 0 {
			return moveBody(list, name, i, end), true
		}
		if value == nil {
			continue
		}
		if needsGroup(value, at(list, use-1), at(list, last+1)) {
			value = slices.Concat(words("("), value, words(")"))
		}
		if use < i {
			return slices.Concat(list[:use], value, list[last+1:i], list[end:]), true
		}
		return slices.Concat(list[:i], list[end:use], value, list[last+1:]), true
	}
	return nil, false
}

// parameters are those of a function, nil where they are more than names, and its body.
func parameters(def []Token) (names []string, body []Token) {
	end := slices.IndexFunc(def, func(t Token) bool { return t.Text == ")" })
	if end < 4 || at(def, end+1) != ":" {
		return nil, nil
	}
	for i := 3; i < end; i += 2 {
		if !isName(def[i].Text) || i+1 < end && def[i+1].Text != "," {
			return nil, nil
		}
		names = append(names, def[i].Text)
	}
	body = def[end+2:]
	for len(body) > 0 && IsLayout(body[0]) {
		body = body[1:]
	}
	for len(body) > 0 && IsLayout(body[len(body)-1]) {
		body = body[:len(body)-1]
	}
	return names, body
}

// arguments are those of a call, from its bracket on; nil where they have names or stars.
func arguments(list []Token, open int) (args [][]Token, last int) {
	depth, from := 0, open+1
	for i := open; i < len(list); i++ {
		switch list[i].Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return append(args, list[from:i]), i
			}
		case ",":
			if depth == 1 {
				args, from = append(args, list[from:i]), i+1
			}
		case "=", "**", "for", "yield", ":=", "lambda":
			if depth == 1 {
				return nil, 0
			}
		}
	}
	return nil, 0
}

var sums = []string{"+", "-", "*", "/", "//", "%", "(", ")"}

// filled is the sum that a function returns with the arguments in it; nil where it does more, or in
// another order than that of its parameters.
func filled(params []string, args [][]Token, body []Token) (out []Token) {
	if len(args) != len(params) || len(body) < 2 || body[0].Text != "return" {
		return nil
	}
	next := 0
	for i, t := range body[1:] {
		switch {
		case next < len(params) && t.Text == params[next]:
			arg := args[next]
			if needsGroup(arg, body[i].Text, at(body, i+2)) {
				arg = slices.Concat(words("("), arg, words(")"))
			}
			out = append(out, arg...)
			next++
		case slices.Contains(sums, t.Text), isNumber(t.Text):
			out = append(out, t)
		default:
			return nil
		}
	}
	if next != len(params) {
		return nil
	}
	return out
}

// forwards reports whether all that a function does is to return a call with its own parameters.
func forwards(list []Token, name string, use, last int, params []string, args [][]Token) bool {
	from, to := define(list, name)
	if from < 0 || use < from || use > to || decorated(list, from) {
		return false
	}
	own, body := parameters(list[from:to])
	if len(own) != len(args) || len(body) < 2 || body[0].Text != "return" || !slices.Equal(own, params) || len(body) != last-use+2 {
		return false
	}
	for i, a := range args {
		if len(a) != 1 || a[0].Text != own[i] {
			return false
		}
	}
	return true
}

// moveBody gives a function the definition of another, from one token to another, in its own place.
func moveBody(list []Token, name string, from, to int) []Token {
	def := slices.Clone(list[from:to])
	def[1].Text = name
	first, end := define(list, name)
	if first < from {
		return slices.Concat(list[:first], def, list[end:from], list[to:])
	}
	return slices.Concat(list[:from], list[to:first], def, list[end:])
}

// untupled takes `a, b = x, y` of a function apart where no value reads a name before it.
func untupled(def []Token) []Token {
	if slices.ContainsFunc(def[1:], func(t Token) bool { return slices.Contains([]string{"def", "lambda", "global", "nonlocal"}, t.Text) }) {
		return def
	}
	for i := 1; i < len(def); i++ {
		if !begins(def[i-1].Text) || at(def, i+1) != "," {
			continue
		}
		var left []string
		j := i
		for ; isName(at(def, j)) && at(def, j+1) == ","; j += 2 {
			left = append(left, def[j].Text)
		}
		left = append(left, at(def, j))
		end := statementEnd(def, i, "python")
		if !isName(at(def, j)) || at(def, j+1) != "=" || at(def, end) != stop {
			continue
		}
		group := slices.Concat(words("("), def[j+2:end], words(")"))
		right, last := arguments(group, 0)
		if len(right) != len(left) || last != len(group)-1 || !apart(left, right) {
			continue
		}
		out := slices.Clone(def[:i])
		for n, value := range right {
			out = slices.Concat(out, words(left[n], "="), value, words(stop))
		}
		def = append(out, def[end+1:]...)
	}
	return def
}

// apart reports whether names are given values one by one as all at once.
func apart(names []string, values [][]Token) bool {
	for i, value := range values {
		odd := len(value) == 0 || strings.HasPrefix(value[0].Text, "*")
		if odd || slices.ContainsFunc(names[:i], func(n string) bool { return mentions(value, n) > 0 }) || slices.Contains(names[:i], names[i]) {
			return false
		}
	}
	return true
}
