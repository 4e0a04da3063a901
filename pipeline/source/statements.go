package source

import "slices"

// heads are the words that a block of Python follows, by what it is.
var heads = map[string]string{"if": "if", "elif": "if", "else": "else", "while": "while", "for": "for", "try": "try", "except": "catch", "finally": "finally",
	"with": "with", "def": "def", "class": "class"}

// pythonBlock reads statements of one block.
func (f *flow) pythonBlock(from, to int) (out []*stmt) {
	defer f.enter()()
	for i := from; i < to && !f.lost; {
		if t := f.text(i); t == stop || t == dedent || t == indent {
			f.lost = f.lost || t == indent
			i++
			continue
		}
		word := i
		if f.text(i) == "async" {
			word++
		}
		kind := heads[f.text(word)]
		if kind == "" || f.text(word+1) == "=" {
			end := f.endOf(i, to)
			out = append(out, &stmt{span: span{i, min(end+1, to)}, end: end})
			i = end + 1
			continue
		}
		p := f.pythonPart(i, word, to, kind)
		i = p.all.to
		follows := kind == "else" || kind == "catch" || kind == "finally" || f.text(word) == "elif"
		if n := len(out) - 1; follows {
			if n < 0 || len(out[n].parts) == 0 {
				f.lost = true
				return
			}
			out[n].parts, out[n].to, out[n].end = append(out[n].parts, p), i, i
			continue
		}
		out = append(out, &stmt{span: p.all, end: i, parts: []*part{p}})
	}
	return out
}

// endOf is where a simple statement of Python ends.
func (f *flow) endOf(i, to int) int {
	for i < to && f.text(i) != stop && f.text(i) != indent && f.text(i) != dedent {
		i++
	}
	return i
}

func (f *flow) pythonPart(from, word, to int, kind string) *part {
	p := &part{word: kind}
	depth, colon, lambdas := 0, -1, 0
	for i := word; i < to && colon < 0; i++ {
		switch f.text(i) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case "lambda":
			lambdas++
		case ":":
			if depth == 0 && lambdas > 0 {
				lambdas--
			} else if depth == 0 {
				colon = i
			}
		case indent, dedent, stop:
			f.lost = true
			p.all = span{from, to}
			return p
		}
	}
	if colon < 0 {
		f.lost, p.all = true, span{from, to}
		return p
	}
	p.cond, p.open = span{word + 1, colon}, span{colon, colon + 1}
	begin, end := colon+1, colon+1
	if f.text(begin) == stop && f.text(begin+1) == indent {
		begin++
	}
	switch {
	case f.text(begin) == indent:
		begin++
		depth = 1
		for end = begin; end < to; end++ {
			if t := f.text(end); t == indent {
				depth++
			} else if t == dedent {
				if depth--; depth == 0 {
					break
				}
			}
		}
		p.open.to, p.close, p.all = begin, span{end, min(end+1, to)}, span{from, min(end+1, to)}
	default: // in the same line
		for end < to && f.text(end) != dedent && f.text(end) != indent && f.list[end].Line == f.list[colon].Line {
			end = min(f.endOf(end, to)+1, to)
		}
		p.close, p.all = span{end, end}, span{from, end}
	}
	p.body = f.pythonBlock(begin, end)
	return p
}

// matching is the end of what a bracket opens.
func (f *flow) matching(i, to int) int {
	depth := 0
	for j := i; j < to; j++ {
		switch f.text(j) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return j
			}
		}
	}
	f.lost = true
	return to
}

// braceBlock reads statements of Go or JavaScript.
func (f *flow) braceBlock(from, to int) (out []*stmt) {
	for i := from; i < to && !f.lost; {
		if f.text(i) == ";" {
			i++
			continue
		}
		s := f.braceStmt(i, to)
		if s.to <= i {
			f.lost = true
			return
		}
		out = append(out, s)
		i = s.to
	}
	return out
}

func (f *flow) braceStmt(i, to int) *stmt {
	defer f.enter()()
	s := &stmt{span: span{i, to}, end: to}
	word := i
	for f.lang == "js" && slices.Contains([]string{"export", "default", "async"}, f.text(word)) {
		word++
	}
	at := i
	switch kind := f.text(word); {
	case kind == "if" || kind == "while" && f.lang == "js" || kind == "for" || kind == "with" && f.lang == "js":
		at = f.conditional(s, i, kind, to)
		for kind == "if" && f.text(at) == "else" && at < to && !f.lost {
			if f.text(at+1) == "if" {
				at = f.elseIf(s, at, to)
				continue
			}
			p := &part{word: "else"}
			at = f.body(p, at, at+1, to)
			s.parts = append(s.parts, p)
			break
		}
	case kind == "try" && f.text(word+1) == "{":
		p := &part{word: "try"}
		at = f.body(p, i, word+1, to)
		s.parts = append(s.parts, p)
		for at < to && (f.text(at) == "catch" || f.text(at) == "finally") {
			p := &part{word: f.text(at)}
			open := at + 1
			if f.text(open) == "(" {
				end := f.matching(open, to)
				p.cond = span{open + 1, end}
				open = end + 1
			}
			at = f.body(p, at, open, to)
			s.parts = append(s.parts, p)
		}
	case (kind == "function" || kind == "func") && (isName(f.text(word+1)) || f.text(word+1) == "*" || f.text(word+1) == "("):
		at = f.function(s, word, to)
	case kind == "{":
		p := &part{word: "{"}
		at = f.body(p, i, i, to)
		s.parts = append(s.parts, p)
	case f.lang == "js" && isName(kind) && f.text(word+1) == ":" && f.text(word+2) == "{":
		p := &part{word: "label"}
		at = f.body(p, i, word+2, to)
		s.parts = append(s.parts, p)
	case kind == "switch" || kind == "select" || kind == "do":
		at = f.opaque(s, i, to)
	}
	if len(s.parts) == 0 && at == i {
		at = f.simple(s, i, to)
	}
	s.end, s.to = at, at
	if f.text(at) == ";" && at < to {
		s.to++
	}
	return s
}

// opaque goes over a statement whose inside is not looked at.
func (f *flow) opaque(s *stmt, i, to int) int {
	for j := i + 1; j < to; j++ {
		switch f.text(j) {
		case "(", "[":
			j = f.matching(j, to)
		case "{":
			end := f.matching(j, to) + 1
			if f.text(i) != "do" && f.text(i+1) == "{" && end == i+3 {
				return end // simple: it is empty
			}
			if f.text(i) == "do" && f.text(end) == "while" {
				end = f.matching(end+1, to) + 1
			}
			s.parts = append(s.parts, &part{word: "opaque", all: span{i, end}})
			return end
		}
	}
	f.lost = true
	return to
}

// conditional reads a condition and what is under it.
func (f *flow) conditional(s *stmt, i int, word string, to int) int {
	p := &part{word: word}
	s.parts = append(s.parts, p)
	return f.under(p, i, i+1, to)
}

func (f *flow) elseIf(s *stmt, i, to int) int {
	p := &part{word: "if"}
	s.parts = append(s.parts, p)
	return f.under(p, i, i+2, to)
}

// under reads a condition from head on, and the body of its part, which begins at i.
func (f *flow) under(p *part, i, head, to int) int {
	if f.lang == "go" {
		open := f.goBody(head, to)
		p.cond = span{head, open}
		return f.body(p, i, open, to)
	}
	if f.text(head) == "await" {
		head++
	}
	if f.text(head) != "(" {
		f.lost = true
		return to
	}
	end := f.matching(head, to)
	p.cond = span{head + 1, end}
	return f.body(p, i, end+1, to)
}

// goBody is where the block of a statement of Go opens.
func (f *flow) goBody(i, to int) int {
	for ; i < to; i++ {
		switch f.text(i) {
		case "(", "[":
			i = f.matching(i, to)
		case "{":
			end := f.matching(i, to)
			if next := f.text(end + 1); end+1 >= to || next == ";" || next == "}" || next == "else" {
				return i
			}
			i = end
		}
	}
	f.lost = true
	return to
}

// body reads a block, or in JavaScript one statement, and returns where it ends.
func (f *flow) body(p *part, from, open, to int) int {
	if open >= to {
		f.lost = true
		return to
	}
	if f.text(open) != "{" {
		if f.lang == "go" || f.text(open) == ";" {
			f.lost = f.lost || f.lang == "go"
			p.open, p.close, p.all = span{open, open}, span{open + 1, open + 1}, span{from, open + 1}
			return open + 1
		}
		s := f.braceStmt(open, to)
		p.open, p.close, p.all, p.body = span{open, open}, span{s.to, s.to}, span{from, s.to}, []*stmt{s}
		return s.to
	}
	end := f.matching(open, to)
	if f.lost {
		return to
	}
	p.open, p.close, p.all = span{open, open + 1}, span{end, end + 1}, span{from, end + 1}
	p.body = f.braceBlock(open+1, end)
	return end + 1
}

// function reads a declaration of a function.
func (f *flow) function(s *stmt, word, to int) int {
	open := -1
	if f.lang == "go" {
		if open = f.goBody(word+1, to); f.lost {
			return to
		}
	} else {
		for i := word + 1; i < to && open < 0; i++ {
			switch {
			case f.text(i) == "(" || f.text(i) == "[":
				i = f.matching(i, to)
			case f.text(i) == "{" && slices.Contains([]string{":", "<", "|", "&", "="}, f.text(i-1)):
				i = f.matching(i, to)
			case f.text(i) == "{":
				open = i
			case f.text(i) == ";": // of an overload
				return i
			}
		}
		if open < 0 {
			f.lost = true
			return to
		}
	}
	p := &part{word: "def"}
	end := f.body(p, s.from, open, to)
	s.parts = append(s.parts, p)
	return end
}

// simple reads a statement to its end, and the functions within it.
func (f *flow) simple(s *stmt, i, to int) int {
	depth := 0
	for j := i; j < to; j++ {
		t := f.text(j)
		if depth == 0 && j > i && f.lang == "js" && f.newStatement(j) {
			return j
		}
		switch t {
		case ";":
			if depth == 0 {
				return j
			}
		case "(", "[":
			depth++
		case ")", "]", "}":
			if depth--; depth < 0 {
				return j
			}
		case "{":
			if !f.opensFunction(i, j, to) {
				depth++
				continue
			}
			p := &part{word: "def"}
			end := f.body(p, j, j, to)
			if p.all.from = f.params(i, j); f.lost {
				return to
			}
			s.nested = append(s.nested, p)
			j = end - 1
		}
	}
	return to
}

// params is where the parameters of a function begin whose body opens at a place.
func (f *flow) params(from, open int) int {
	depth := 0
	for i := open - 1; i > from; i-- {
		switch f.text(i) {
		case ")":
			depth++
		case "(":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return from
}

// opensFunction reports whether a brace within an expression opens the body of a function.
func (f *flow) opensFunction(from, i, to int) bool {
	if f.lang == "js" {
		return f.text(i-1) == "=>" || f.text(i-1) == ")"
	}
	for j := i - 1; j >= from; j-- { // func(a int) int {
		switch f.text(j) {
		case "func":
			return true
		case "{", "}", ";", ",", "=", ":=":
			return false
		case ")":
			depth := 0
			for ; j > from; j-- {
				if f.text(j) == ")" {
					depth++
				} else if f.text(j) == "(" {
					if depth--; depth == 0 {
						break
					}
				}
			}
		}
	}
	return false
}

// newStatement reports whether a line of JavaScript begins a statement.
func (f *flow) newStatement(i int) bool {
	prev, next := f.list[i-1], f.list[i]
	if next.Line <= prev.Line {
		return false
	}
	if slices.Contains([]string{"return", "break", "continue", "throw"}, prev.Text) {
		return true
	}
	ends := isWord(prev.Text) && !slices.Contains([]string{"typeof", "void", "in", "of", "instanceof", "new", "await", "extends", "const", "let", "var", "case", "delete"}, prev.Text) ||
		slices.Contains([]string{")", "]", "}", "++", "--"}, prev.Text) || prev.Text[0] == '"' || prev.Text[0] == '`' || prev.Text[0] == '/'
	begins := isWord(next.Text) && next.Text != "instanceof" && next.Text != "in" && next.Text != "of" || next.Text == "{" || next.Text[0] == '"' || next.Text == "!" || next.Text == "@" || next.Text == "++" || next.Text == "--"
	return ends && begins
}
