package edit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// chunk is a definition, or other code that stands together, as indentation tells: the
// languages of repositories have that in common.
type chunk struct {
	name string // what it declares; "" for other code
	lead string // comments and decorators before it
	body string // whole lines
	gap  string // blank lines behind it
	kids bool   // it holds definitions of its own: a class
}

func (c chunk) text() string { return c.lead + c.body + c.gap }

// Names are what a text declares, the members of classes as Class.member.
func Names(text string) (out []string) {
	for _, c := range chunks(text) {
		if c.name == "" {
			continue
		}
		out = append(out, c.name)
		if _, inner, _ := c.members(); c.kids {
			for _, m := range Names(inner) {
				out = append(out, c.name+"."+m)
			}
		}
	}
	return out
}

// Declared is the name that a line declares, "" for none.
func Declared(line string) string {
	name, _ := declared(strings.TrimSpace(line))
	return name
}

// Excerpt is a file without the definitions that are of none of the names: a line stands for
// those, which Merge takes for what it is.
func Excerpt(file string, names []string) string {
	var b strings.Builder
	gap := ""
	for _, c := range chunks(file) {
		_, inner, _ := c.members()
		named := slices.Contains(names, c.name) || slices.Contains(names, c.name[strings.LastIndexByte(c.name, '.')+1:]) ||
			c.kids && slices.ContainsFunc(Names(inner), func(m string) bool { return slices.Contains(names, m) })
		if named || c.name == "package" || c.name == "" && isImport(c.body) {
			b.WriteString(gap + c.text())
			gap = ""
			continue
		}
		gap = "// ... existing code ...\n\n"
	}
	return b.String() + gap
}

// Merge returns what a file becomes by a text that a model wrote for it: the file as a whole,
// or definitions of it. What the file declares and the text lacks is put back, unless it may
// go; put back is returned by name. What the text adds that only shows how the code is used
// is left out.
func Merge(file, text string, mayGo func(name string) bool) (merged string, back []string) {
	crlf := strings.Contains(file, "\r\n")
	file = strings.ReplaceAll(file, "\r\n", "\n")
	m := &merging{mayGo: mayGo}
	merged = m.merge(file, text, "")
	if merged = strings.TrimRight(merged, "\n") + "\n"; crlf {
		merged = strings.ReplaceAll(merged, "\n", "\r\n")
	}
	return merged, m.back
}

// Add returns a file with what a text declares and the file does not; what is there stays as it is.
func Add(file, text string) string {
	have, known := chunks(file), map[string]bool{}
	for _, c := range have {
		known[c.name] = true
	}
	out := strings.TrimRight(file, "\n") + "\n"
	for _, c := range chunks(text) {
		if c.name != "" && !known[c.name] && c.name != "package" {
			out += "\n" + strings.TrimRight(c.text(), "\n") + "\n"
		}
	}
	return withImports(out, chunks(text))
}

type merging struct {
	mayGo func(string) bool
	back  []string
}

func (m *merging) merge(file, text, prefix string) string {
	text, elided := withoutElisions(text)
	was, is := chunks(file), chunks(text)
	find := func(list []chunk, name string) int {
		return slices.IndexFunc(list, func(c chunk) bool { return c.name == name })
	}
	tests := func(c chunk) bool { return strings.HasPrefix(strings.ToLower(c.name), "test") }
	if prefix == "" {
		is = housed(was, is)
	}
	is = slices.DeleteFunc(is, func(c chunk) bool {
		return shows(c) && !contains(was, c) || tests(c) && prefix == "" && !slices.ContainsFunc(was, tests)
	})
	for i := range is {
		if k := find(was, is[i].name); k >= 0 && is[i].name != "" {
			is[i] = m.replaced(was[k], is[i], prefix)
		}
	}
	var missing []string
	for _, c := range was {
		if c.name != "" && find(is, c.name) < 0 && !m.mayGo(c.name) {
			missing = append(missing, prefix+c.name)
		}
	}
	imports := func(c chunk) bool { return c.name == "" && isImport(c.body) }
	bare := slices.ContainsFunc(was, imports) && !slices.ContainsFunc(is, imports)
	if len(missing) == 0 && !elided && !bare {
		return opening(was, is) + all(is)
	}
	if !elided {
		m.back = append(m.back, missing...)
	}
	// The text is a part of the file: its definitions take their places there.
	out := slices.Clone(was)
	out = slices.DeleteFunc(out, func(c chunk) bool { return c.name != "" && find(is, c.name) < 0 && m.mayGo(c.name) && !elided })
	at := -1
	for _, c := range is {
		k := find(out, c.name)
		switch {
		case c.name == "":
			continue
		case k >= 0:
			out[k] = c
		case at < 0:
			k = len(out)
			fallthrough
		default:
			k = max(k, at+1)
			c.gap = "\n"
			out = slices.Insert(out, k, c)
			if k > 0 && out[k-1].gap == "" {
				out[k-1].gap = "\n"
			}
		}
		at = k
	}
	if prefix != "" {
		return all(out)
	}
	return withImports(all(out), is)
}

// housed puts methods that the text has without their class into the one class that has them.
func housed(was, is []chunk) (out []chunk) {
	at := map[string]int{} // of classes made here
	for _, c := range is {
		house := house(was, c.name)
		if house == nil {
			out = append(out, c)
			continue
		}
		head, inner, _ := house.members()
		i, made := at[house.name]
		if !made {
			i, at[house.name] = len(out), len(out)
			out = append(out, chunk{name: house.name, kids: true, body: firstLine(head) + "\n"})
		}
		out[i].body += reindent(c.text(), indentOf(firstLine(inner)))
	}
	return out
}

// house is the one class with a member of a name that nothing else has.
func house(was []chunk, name string) (found *chunk) {
	for i, w := range was {
		if name == "" || w.name == name {
			return nil
		}
		if _, inner, _ := w.members(); w.kids && slices.ContainsFunc(chunks(inner), func(m chunk) bool { return m.name == name }) {
			if found != nil {
				return nil
			}
			found = &was[i]
		}
	}
	return found
}

// replaced is a definition of the file as the text has it, with what the text left out of it.
func (m *merging) replaced(was, is chunk, prefix string) chunk {
	if is.gap = was.gap; is.lead == "" || tellsChange(is.lead) {
		is.lead = was.lead
	}
	if was.name == "package" {
		is.body = was.body
	}
	if !was.kids || !is.kids {
		return is
	}
	head, inner, tail := is.members()
	_, before, end := was.members()
	if inner == "" || before == "" {
		return is
	}
	inner = m.merge(before, reindent(inner, indentOf(firstLine(before))), prefix+was.name+".")
	is.body = head + strings.TrimRight(inner, "\n") + "\n" + cmp.Or(tail, end)
	return is
}

// tellsChange reports whether a comment only says that what follows was changed.
func tellsChange(lead string) bool {
	for line := range strings.Lines(lead) {
		line = strings.ToLower(strings.TrimSpace(line))
		comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//")
		if !comment || !slices.ContainsFunc([]string{"changed", "corrected", "updated", "fixed", "modified"}, func(w string) bool { return strings.Contains(line, w) }) {
			return false
		}
	}
	return true
}

func all(list []chunk) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteString(c.text())
	}
	return b.String()
}

func contains(list []chunk, c chunk) bool {
	return slices.ContainsFunc(list, func(o chunk) bool {
		return c.name != "" && o.name == c.name || strings.TrimSpace(o.body) == strings.TrimSpace(c.body)
	})
}

// shows reports whether code only shows how other code is used: a main that the file has not.
func shows(c chunk) bool {
	if c.name == "main" || c.name == mainGuard {
		return true
	}
	body := strings.TrimSpace(c.body)
	return c.name == "" && slices.ContainsFunc([]string{"print(", "console.log(", "assert ", "fmt.Print"}, func(s string) bool { return strings.HasPrefix(body, s) })
}

// opening is the comment that a file begins with, where the text lacks it.
func opening(was, is []chunk) string {
	if len(was) == 0 || len(is) == 0 || was[0].name != "" || is[0].lead != "" {
		return ""
	}
	if was[0].body == "" {
		return was[0].lead + was[0].gap
	}
	return was[0].lead
}

// withoutElisions takes out lines that stand for code that the model did not write again.
func withoutElisions(text string) (out string, elided bool) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if isElision(line) {
			elided = true
			continue
		}
		b.WriteString(line)
	}
	return b.String(), elided
}

func isElision(line string) bool {
	said, ok := strings.TrimSpace(line), false
	for _, mark := range []string{"#", "//", "/*", "--"} {
		if rest, is := strings.CutPrefix(said, mark); is {
			said, ok = strings.ToLower(strings.Trim(rest, " */-")), true
			break
		}
	}
	if !ok && said != "..." && said != "…" {
		return false
	}
	dots := strings.HasPrefix(said, "...") || strings.HasPrefix(said, "…") || strings.HasSuffix(said, "...") || strings.HasSuffix(said, "…")
	if strings.Trim(said, ".… ") == "" {
		return dots
	}
	return dots && slices.ContainsFunc([]string{"existing", "rest", "unchanged", "other", "same", "remain", "previous", "above", "omitted", "code"},
		func(w string) bool { return strings.Contains(said, w) })
}

// withImports adds the imports of a text that a file lacks, behind its own.
func withImports(file string, text []chunk) string {
	var add []string
	block := func(c chunk) bool { return strings.HasPrefix(c.body, "import (") }
	for _, c := range text {
		if c.name != "" || !isImport(c.body) {
			continue
		}
		for line := range strings.Lines(c.body) {
			line = strings.TrimSpace(line)
			if block(c) {
				if line == "" || line == "import (" || line == ")" {
					continue
				}
				line = "import " + line
			}
			bare := strings.TrimSpace(strings.TrimPrefix(line, "import "))
			if line != "" && !slices.Contains(add, line) && !strings.Contains(file, line) && !(strings.HasSuffix(bare, `"`) && strings.Contains(file, bare)) {
				add = append(add, line)
			}
		}
	}
	if len(add) == 0 {
		return file
	}
	list := chunks(file)
	at := 0
	for i, c := range list {
		if c.name == "" && (isImport(c.body) || i == 0 && (c.body == "" || strings.HasPrefix(c.body, `"""`))) || c.name == "package" {
			at = i + 1
		}
	}
	if at > 0 {
		last := &list[at-1]
		gap := last.gap
		if last.gap = ""; !isImport(last.body) {
			last.gap = "\n"
		}
		add[len(add)-1] += "\n" + gap
	} else {
		add[len(add)-1] += "\n\n"
	}
	return all(list[:at]) + strings.Join(add, "\n") + all(list[at:])
}

func isImport(body string) bool {
	return slices.ContainsFunc([]string{"import ", "from ", "use ", "#include", "require ", "require_relative ", "using "}, func(s string) bool { return strings.HasPrefix(body, s) }) ||
		strings.HasPrefix(body, "const ") && strings.Contains(firstLine(body), "require(")
}

// chunks divides a text at the lines that have the indentation of its first one.
func chunks(text string) (out []chunk) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			break
		}
		text = text[len(line):]
	}
	if text == "" {
		return nil
	}
	base := len(indentOf(firstLine(text)))
	lead, times := "", map[string]int{}
	add := func(c chunk) {
		c.lead, lead = lead, ""
		if times[c.name]++; c.name != "" && times[c.name] > 1 { // the second of a name is matched with the second
			c.name += "#" + strconv.Itoa(times[c.name])
		}
		out = append(out, c)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n") + "\n"
		said := strings.TrimSpace(line)
		deep, last := len(indentOf(line)) > base, len(out)-1
		switch {
		case said == "" && lead != "" && last < 0: // a comment about all of it
			add(chunk{gap: line})
		case said == "" && lead == "":
			out[last].gap += line
		case said == "", (deep || continues(said)) && opens(lead), !deep && leads(said):
			lead += line
		case (deep || continues(said) && lead == "") && last >= 0:
			out[last].body += out[last].gap + lead + line
			out[last].gap, lead = "", ""
		case lead == "" && last >= 0 && isImport(said) && out[last].name == "" && isImport(out[last].body):
			out[last].body += out[last].gap + line
			out[last].gap = ""
		default:
			name, kids := declared(said)
			add(chunk{name: name, body: line, kids: kids})
		}
	}
	if lead != "" {
		add(chunk{})
	}
	return out
}

// opens reports whether a comment or a decorator goes on over further lines.
func opens(lead string) bool {
	lines := strings.Split(strings.TrimRight(lead, "\n"), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return strings.LastIndex(lead, "/*") > strings.LastIndex(lead, "*/") || strings.HasPrefix(last, "@") || strings.Count(lead, "(") > strings.Count(lead, ")") && strings.Contains(lead, "@")
}

// members divides a class into the lines before its members, those, and the bracket behind them.
func (c chunk) members() (head, inner, tail string) {
	lines := strings.SplitAfter(c.body, "\n")
	own := indentOf(lines[0])
	at := 1
	for at < len(lines) && (strings.TrimSpace(lines[at]) == "" || len(indentOf(lines[at])) <= len(own)) {
		at++
	}
	to := len(lines)
	for to > at && (strings.TrimSpace(lines[to-1]) == "" || len(indentOf(lines[to-1])) <= len(own)) {
		to--
	}
	return strings.Join(lines[:at], ""), strings.Join(lines[at:to], ""), strings.Join(lines[to:], "")
}

// reindent gives a text another indentation.
func reindent(text, to string) string {
	from := indentOf(firstLine(strings.TrimLeft(text, "\n")))
	if from == to {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, from); ok && strings.TrimSpace(line) != "" {
			line = to + rest
		}
		b.WriteString(line)
	}
	return b.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// continues reports whether a line goes on with what stands before it, whatever its indentation.
func continues(said string) bool {
	if strings.ContainsAny(said[:1], ")]}{") {
		return true
	}
	word := strings.TrimRight(firstWord(said), ":;")
	return slices.Contains([]string{"else", "elif", "except", "finally", "catch", "end", "where", `"""`, "'''"}, word)
}

func firstWord(said string) string {
	word, _, _ := strings.Cut(said, " ")
	return word
}

// leads reports whether a line belongs to what follows it: a comment, a decorator.
func leads(said string) bool {
	return slices.ContainsFunc([]string{"//", "/*", "* ", "*/", "@", "#[", "# ", "#!", "[["}, func(s string) bool { return strings.HasPrefix(said, s) }) || said == "#" || said == "*"
}

const mainGuard = `if __name__ == "__main__"`

// modifiers stand before the word that declares something; control begins what declares nothing.
var (
	modifiers = []string{"export", "default", "async", "pub", "pub(crate)", "public", "private", "protected", "internal", "static", "abstract", "final", "readonly",
		"unsafe", "open", "override", "virtual", "extern", "sealed", "partial", "declare"}
	declares = map[string]bool{ // whether it holds definitions of its own
		"def": false, "func": false, "fn": false, "function": false, "function*": false, "fun": false, "type": false, "struct": false, "enum": false,
		"class": true, "interface": true, "trait": true, "impl": true, "module": true, "object": true,
		"const": false, "let": false, "var": false, "val": false, "mod": false, "package": false,
	}
	control = []string{"if", "for", "while", "switch", "return", "with", "try", "match", "throw", "raise", "await", "yield", "assert", "print", "import", "from",
		"use", "using", "require", "super", "new", "del", "global", "else", "do"}
)

// declared is the name that a line declares, and whether what it declares holds definitions.
func declared(said string) (name string, kids bool) {
	if strings.HasPrefix(strings.ReplaceAll(said, "'", `"`), mainGuard) {
		return mainGuard, false
	}
	words := strings.Fields(said)
	for len(words) > 1 && slices.Contains(modifiers, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", false
	}
	rest := strings.Join(words[1:], " ")
	if inner, is := declares[words[0]]; is && rest != "" {
		if words[0] == "package" {
			return "package", false
		}
		if receiver, after, ok := strings.Cut(strings.TrimPrefix(rest, "("), ")"); ok && words[0] == "func" && strings.HasPrefix(rest, "(") {
			fields := strings.Fields(receiver)
			if len(fields) == 0 {
				return "", false
			}
			of, _, _ := strings.Cut(strings.TrimLeft(fields[len(fields)-1], "*"), "[")
			return of + "." + ident(strings.TrimSpace(after)), false
		}
		if words[0] == "impl" {
			return "impl " + strings.TrimRight(strings.TrimSpace(rest), " {"), true
		}
		return ident(rest), inner
	}
	if slices.Contains(control, strings.TrimRight(ident(words[0]), ":")) {
		return "", false
	}
	joined := strings.Join(words, " ")
	if open := strings.IndexByte(joined, '('); open > 0 && strings.HasSuffix(said, "{") {
		before := strings.Fields(joined[:open])
		return ident(before[len(before)-1]), false
	}
	if name := ident(joined); name != "" { // NAME = …, NAME: type = …
		after := strings.TrimSpace(joined[len(name):])
		typed, _, isTyped := strings.Cut(after, "=")
		if isTyped && !strings.HasPrefix(after, "==") && (strings.TrimSpace(typed) == "" || strings.HasPrefix(typed, ":") && !strings.HasPrefix(after, ":=")) {
			return name, false
		}
	}
	return "", false
}

// ident is the identifier that a text begins with.
func ident(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 128
	})
	if end < 0 {
		return s
	}
	return s[:end]
}
