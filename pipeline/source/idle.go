package source

import (
	"slices"
	"strconv"
	"strings"
)

// flow is code as statements, of which those are found that do nothing, as their syntax
// alone shows: branches that are never taken, what follows on a return, handlers that only
// raise again, assignments of a name to itself, values that nobody takes.
type flow struct {
	list []Token // the code; nothing else
	gone []bool  // tokens without effect
	lang string
	deep int  // how many blocks are open
	lost bool // it is not understood
}

type span struct{ from, to int }

// part is a block of a statement, with what it is under: `if a {`.
type part struct {
	word        string
	all, cond   span
	open, close span // what encloses the body
	body        []*stmt
}

// stmt is a statement: a simple one has no parts; those of functions within an
// expression are nested.
type stmt struct {
	span
	end    int // where the mark of its end begins
	parts  []*part
	nested []*part
}

func (s *stmt) word() string {
	if len(s.parts) == 0 {
		return ""
	}
	return s.parts[0].word
}

// markIdle marks what does nothing in a file of one of the languages that are parsed.
func markIdle(list []Token, lang string) {
	for range 4 { // what is empty now may be all of what is around it
		if !markOnce(list, lang) {
			return
		}
	}
}

func markOnce(list []Token, lang string) (marked bool) {
	var at []int
	f := &flow{lang: lang}
	for i, t := range list {
		if t.Kind == Code {
			at, f.list = append(at, i), append(f.list, t)
		}
	}
	f.gone = make([]bool, len(f.list))
	f.neutral()
	top := f.parse()
	if f.lost {
		return false
	}
	f.block(top, false, nil)
	for i, gone := range f.gone {
		list[at[i]].Text = f.list[i].Text
		if gone {
			list[at[i]].Kind, marked = Idle, true
		}
	}
	return marked
}

// maxDeep caps how deep statements may lie in each other to be looked at.
const maxDeep = 200

// enter goes a block deeper; what is deferred goes back.
func (f *flow) enter() (leave func()) {
	f.deep++
	f.lost = f.lost || f.deep > maxDeep
	return func() { f.deep-- }
}

func (f *flow) parse() []*stmt {
	if f.lang == "python" {
		return f.pythonBlock(0, len(f.list))
	}
	return f.braceBlock(0, len(f.list))
}

func (f *flow) text(i int) string { return at(f.list, i) }

func (f *flow) drop(s span) {
	for i := s.from; i < s.to; i++ {
		f.gone[i] = true
	}
}

// live are the texts of what has an effect in a span, without the ends of statements.
func (f *flow) live(s span) (out []string) {
	for i := s.from; i < s.to; i++ {
		if t := f.list[i]; !f.gone[i] && !IsLayout(t) && t.Text != ";" {
			out = append(out, t.Text)
		}
	}
	return out
}

// block goes through statements, and returns those that are left. What is held by what it
// raises, as in a try, keeps its values that nobody takes.
func (f *flow) block(list []*stmt, held bool, within *part) (out []*stmt) {
	for i, s := range list {
		out = append(out, f.stmt(s, held, within)...)
		if len(out) > 0 && f.leaves(out[len(out)-1]) && f.droppable(list[i+1:]) {
			for _, dead := range list[i+1:] {
				f.drop(dead.span)
			}
			break
		}
	}
	for i := len(out) - 2; i >= 0; i-- { // a branch to what comes next all the same
		s := out[i]
		if s.word() == "if" && len(s.parts) == 1 && f.quiet(s.parts[0].cond) && f.leave(s.parts[0].body) && slices.Equal(f.texts(s.parts[0].body), f.texts(out[i+1:])) {
			f.drop(s.span)
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

func (f *flow) texts(list []*stmt) (out []string) {
	for _, s := range list {
		out = append(out, f.live(s.span)...)
	}
	return out
}

// leaves reports whether nothing behind a statement is run.
func (f *flow) leaves(s *stmt) bool {
	switch s.word() {
	case "":
		return slices.Contains([]string{"return", "raise", "throw", "break", "continue"}, f.text(s.from))
	case "if":
		return s.parts[len(s.parts)-1].word == "else" && !slices.ContainsFunc(s.parts, func(p *part) bool { return !f.leave(p.body) })
	}
	return false
}

func (f *flow) leave(body []*stmt) bool { return len(body) > 0 && f.leaves(body[len(body)-1]) }

// droppable reports whether code that is not run declares nothing for code that is.
func (f *flow) droppable(list []*stmt) bool {
	for _, s := range list {
		for i := s.from; i < s.to; i++ {
			switch f.text(i) {
			case "yield", "global", "nonlocal", "function", "var", "goto":
				return f.text(i) == "var" && f.lang == "go"
			}
		}
		if f.lang != "python" && f.text(s.from+1) == ":" {
			return false
		}
	}
	return true
}

// stmt returns what is left of a statement: itself, what it encloses, or nothing.
func (f *flow) stmt(s *stmt, held bool, within *part) []*stmt {
	for _, p := range s.nested {
		p.body = f.block(p.body, false, p)
		f.unread(p)
	}
	for _, p := range s.parts {
		in := within
		switch p.word {
		case "def", "class":
			in = p
		}
		p.body = f.block(p.body, held && in == within || p.word == "try" && len(s.parts) > 1 || p.word == "with", in)
		if p.word == "def" {
			f.unread(p)
		}
	}
	f.bare(s)
	switch s.word() {
	case "":
		if !held && within != nil && f.idle(span{s.from, s.end}) {
			f.drop(s.span)
			return nil
		}
	case "if":
		return f.branches(s)
	case "while", "for":
		p := s.parts[0]
		stops := len(p.body) == 1 && slices.Equal(f.texts(p.body), []string{"break"}) && p.word == "while" && f.quiet(p.cond)
		if len(s.parts) == 1 && (p.word == "while" && f.constant(p.cond) == "false" || stops || f.emptyLoop(p)) {
			f.drop(s.span)
			return nil
		}
	case "try":
		return f.handlers(s, held, within)
	case "{", "label":
		p := s.parts[0]
		if p.word == "label" && !slices.Equal(f.texts(p.body), []string{"break", f.text(s.from)}) {
			return []*stmt{s}
		}
		if p.word == "label" || len(p.body) == 0 {
			f.drop(s.span)
			return nil
		}
		f.unwrap(p)
		return p.body
	}
	return []*stmt{s}
}

// bare takes away the braces around a single statement of JavaScript that needs none.
func (f *flow) bare(s *stmt) {
	for _, p := range s.parts {
		if f.lang != "js" || !slices.Contains([]string{"if", "else", "for", "while"}, p.word) || len(p.body) != 1 || len(p.body[0].parts) > 0 {
			continue
		}
		if first := f.text(p.body[0].from); !slices.Contains([]string{"let", "const", "class", "var"}, first) {
			f.drop(p.open)
			f.drop(p.close)
		}
	}
}

// emptyLoop reports whether a loop of Python goes over nothing.
func (f *flow) emptyLoop(p *part) bool {
	if f.lang != "python" || p.word != "for" {
		return false
	}
	cond := f.live(p.cond)
	n := len(cond)
	return n > 3 && cond[n-3] == "in" && (cond[n-2]+cond[n-1] == "()" || cond[n-2]+cond[n-1] == "[]")
}

// unwrap takes away what encloses a body.
func (f *flow) unwrap(p *part) {
	f.drop(span{p.all.from, p.open.to})
	f.drop(p.close)
}

// branches settles an if.
func (f *flow) branches(s *stmt) []*stmt {
	for len(s.parts) > 0 && s.parts[0].word != "else" {
		p := s.parts[0]
		known := f.constant(p.cond)
		if known == "true" {
			for _, q := range s.parts[1:] {
				f.drop(q.all)
			}
			f.unwrap(p)
			return p.body
		}
		if known == "" {
			break
		}
		f.drop(p.all)
		if s.parts = s.parts[1:]; len(s.parts) > 0 && s.parts[0].word == "if" { // else if
			f.headed(s.parts[0])
		}
	}
	if len(s.parts) == 0 {
		f.drop(s.span)
		return nil
	}
	if s.parts[0].word == "else" {
		f.unwrap(s.parts[0])
		return s.parts[0].body
	}
	if last := s.parts[len(s.parts)-1]; last.word == "else" && len(last.body) == 0 {
		f.drop(last.all)
		s.parts = s.parts[:len(s.parts)-1]
	}
	first, last := s.parts[0], s.parts[len(s.parts)-1]
	quiet := !slices.ContainsFunc(s.parts, func(p *part) bool { return p.word == "if" && !f.quiet(p.cond) })
	same := !slices.ContainsFunc(s.parts, func(p *part) bool { return !slices.Equal(f.texts(p.body), f.texts(first.body)) })
	switch {
	case quiet && same && len(first.body) == 0:
		f.drop(s.span)
		return nil
	case quiet && same && last.word == "else":
		for _, q := range s.parts[1:] {
			f.drop(q.all)
		}
		f.unwrap(first)
		return first.body
	}
	return []*stmt{s}
}

// headed makes an else if, before which nothing is left, an if.
func (f *flow) headed(p *part) {
	if f.lang == "python" {
		f.list[p.all.from].Text = "if"
	} else {
		f.gone[p.all.from] = true
	}
}

// handlers settles a try.
func (f *flow) handlers(s *stmt, held bool, within *part) []*stmt {
	for n := len(s.parts) - 1; n > 0; n = len(s.parts) - 1 {
		p := s.parts[n]
		if !(p.word == "catch" && f.again(p)) && !((p.word == "finally" || p.word == "else") && len(p.body) == 0) {
			break
		}
		f.drop(p.all)
		s.parts = s.parts[:n]
	}
	if len(s.parts) > 1 {
		return []*stmt{s}
	}
	f.unwrap(s.parts[0])
	return f.block(s.parts[0].body, held, within)
}

// again reports whether a handler only raises what it has caught.
func (f *flow) again(p *part) bool {
	body := f.texts(p.body)
	cond := f.live(p.cond)
	name := ""
	if n := len(cond); f.lang == "python" && n > 1 && cond[n-2] == "as" {
		name = cond[n-1]
	} else if f.lang != "python" && n == 1 {
		name = cond[0]
	}
	return slices.Equal(body, []string{"raise"}) || name != "" && (slices.Equal(body, []string{"raise", name}) || slices.Equal(body, []string{"throw", name}))
}

// constant is "true" or "false" where a condition is always so, else "".
func (f *flow) constant(s span) string {
	list := f.live(s)
	for len(list) > 1 && list[0] == "(" && list[len(list)-1] == ")" && !slices.Contains(list[1:len(list)-1], "(") {
		list = list[1 : len(list)-1]
	}
	not := false
	for len(list) > 1 && (list[0] == "not" || list[0] == "!" || list[0] == "!!") {
		not = not != (list[0] != "!!")
		list = list[1:]
	}
	is, known := truth(list)
	if !known {
		return ""
	}
	return strconv.FormatBool(is != not)
}

func truth(list []string) (is, known bool) {
	if len(list) == 3 {
		a, err := strconv.ParseFloat(list[0], 64)
		b, err2 := strconv.ParseFloat(list[2], 64)
		if err == nil && err2 == nil {
			switch list[1] {
			case "==", "===":
				return a == b, true
			case "!=", "!==":
				return a != b, true
			case "<":
				return a < b, true
			case ">":
				return a > b, true
			}
		}
		return false, false
	}
	switch strings.Join(list, "") {
	case "False", "false", "0", "None", "null", "undefined", `""`:
		return false, true
	case "True", "true", "1":
		return true, true
	}
	return false, false
}
