package testedit

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	pyDef    = lazyregexp.New(`^(?:async )?def (\w+)`)
	pyClass  = lazyregexp.New(`^class (\w+)`)
	pyImport = lazyregexp.New(`^(?:import|from)\b ?(.*)$`)
	pyAssign = lazyregexp.New(`^([A-Za-z_]\w*)(?::[^=]*)?=[^=]`)
	pyWord   = lazyregexp.New(`\w+`)
	pyHook   = lazyregexp.New(`^(?:setUp|tearDown|setup_|teardown_|setup$|teardown$|pytest_|setUpClass|load_tests|__)`)
	pyText   = lazyregexp.New(`^[rRbBuUfF]{0,2}(?:"[^"]*"|'[^']*'|"""(?s:.*)"""|'''(?s:.*)''')$`)
)

// pyLine is a statement of Python, over however many lines.
type pyLine struct {
	indent int
	text   string
}

// scope is a class or a function that lines are in.
type scope struct {
	indent int
	name   string
	def    bool
}

func readPython(source string) (parts, bool) {
	lines, ok := pyLines(source)
	if !ok {
		return nil, false
	}
	out := parts{}
	var in []scope
	marks := ""
	for _, l := range lines {
		for len(in) > 0 && in[len(in)-1].indent >= l.indent {
			in = in[:len(in)-1]
		}
		top, prefix := scope{}, ""
		if len(in) > 0 {
			top = in[len(in)-1]
			prefix = top.name + "."
		}
		def, class := pyDef.FindStringSubmatch(l.text), pyClass.FindStringSubmatch(l.text)
		switch {
		case pyText.MatchString(l.text) && !strings.Contains(l.text, ">>>"): // a comment, as far as tests go
		case top.def:
			out[top.name].text += "\n" + strings.Repeat(" ", l.indent-top.indent) + l.text
		case strings.HasPrefix(l.text, "@"):
			marks += l.text + "\n"
		case def != nil:
			name := prefix + def[1]
			out.add(name, marks+l.text, pyKind(def[1], marks, top.name), def[1])
			in, marks = append(in, scope{l.indent, name, true}), ""
		case class != nil:
			out.add(prefix+class[1], marks+l.text, plain, class[1])
			in, marks = append(in, scope{l.indent, prefix + class[1], false}), ""
		case top.name != "":
			out[top.name].text += "\n" + l.text
		default:
			pyStatement(out, l)
		}
	}
	return out, true
}

func pyKind(name, marks, class string) kind {
	switch {
	case strings.HasPrefix(name, "test"):
		return test
	case strings.Contains(marks, "autouse"), pyHook.MatchString(name), class != "":
		return hook
	}
	return plain
}

// pyStatement adds what stands in no function and in no class.
func pyStatement(out parts, l pyLine) {
	if m := pyImport.FindStringSubmatch(l.text); m != nil {
		if strings.HasSuffix(l.text, "*") {
			out.add(l.text, l.text, hook)
			return
		}
		from, names, ok := strings.Cut(m[1], "import")
		if !ok {
			from, names = "", m[1]
		}
		out.load(l.text, from, pyWord.FindAllString(names, -1)...)
		return
	}
	if m := pyAssign.FindStringSubmatch(l.text); m != nil && l.indent == 0 {
		kind := plain
		if m[1] == "pytestmark" || m[1] == "pytest_plugins" {
			kind = hook
		}
		out.add(m[1], l.text, kind, m[1])
		return
	}
	out.add(around, strings.Repeat(" ", l.indent)+l.text, hook)
}

// pyLines takes a source apart into statements, without comments. What may be left out
// between the words of a line is left out.
func pyLines(source string) ([]pyLine, bool) {
	var out []pyLine
	var b []byte
	depth, indent, fresh, space := 0, 0, true, false
	end := func() {
		if len(b) > 0 {
			out = append(out, pyLine{indent, string(b)})
		}
		b, indent, fresh, space = nil, 0, true, false
	}
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c == '#':
			for i+1 < len(source) && source[i+1] != '\n' {
				i++
			}
		case c == '\\' && i+1 < len(source) && (source[i+1] == '\n' || source[i+1] == '\r'):
			i++
			space = true
		case c == '\n' && depth == 0:
			end()
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f':
			if fresh && c == '\t' {
				indent += 8 - indent%8
			} else if fresh && c == ' ' {
				indent++
			}
			space = true
		default:
			n := 1
			if c == '"' || c == '\'' {
				if n = pyString(source[i:]); n == 0 {
					return nil, false
				}
			}
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
			if space && len(b) > 0 && wordy(b[len(b)-1]) && wordy(c) {
				b = append(b, ' ')
			}
			b = append(b, source[i:i+n]...)
			i += n - 1
			fresh, space = false, false
		}
	}
	end()
	return out, depth == 0
}

func wordy(c byte) bool {
	return c == '_' || c == '$' || c == '"' || c == '\'' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// pyString is the length of the string that a text begins with; 0: it has no end.
func pyString(s string) int {
	quote := s[:1]
	if len(s) > 2 && s[1] == s[0] && s[2] == s[0] {
		quote = s[:3]
	} else if len(s) > 1 && s[1] == s[0] {
		return 2
	}
	for i := len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		case s[i] == '\n' && len(quote) == 1:
			return 0
		}
	}
	return 0
}
