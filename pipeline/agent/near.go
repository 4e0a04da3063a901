package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// nearly is a place in a file that a model meant with a text that does not stand there.
type nearly struct {
	from, to int // bytes of the file
	text     string
	how      string // what differs, for the model
}

// near finds the one place that old means although it was copied with another layout:
// blanks at the ends of lines, blank lines, another indentation, line numbers, "\n" for line
// breaks, or typographic quotes. What is to stand there gets the file's indentation where it
// has that of old. ok is false where there is no such place, or more than one.
func near(file, old, repl string) (found nearly, ok bool) {
	how := []string{}
	for _, change := range []struct {
		what string
		do   func(old, repl string) (string, string)
	}{
		{`"\n" for line breaks`, unescapedBreaks}, {"line numbers", withoutNumbers}, {"typographic quotes", plainQuotes},
	} {
		if o, r := change.do(old, repl); o != old {
			old, repl = o, r
			how = append(how, change.what)
		}
	}
	if n := strings.Count(file, old); n > 1 {
		return found, false
	} else if n == 1 && len(how) > 0 {
		from := strings.Index(file, old)
		return nearly{from, from + len(old), repl, strings.Join(how, ", ")}, true
	}
	lines, wanted := strings.SplitAfter(file, "\n"), strings.Split(old, "\n")
	whole := strings.HasSuffix(old, "\n")
	for len(wanted) > 0 && blank(wanted[len(wanted)-1]) {
		wanted = wanted[:len(wanted)-1]
		if !whole {
			break
		}
	}
	begin := 0
	for begin < len(wanted) && blank(wanted[begin]) {
		begin++
		repl = strings.TrimPrefix(repl, "\n")
	}
	if wanted = wanted[begin:]; len(wanted) == 0 {
		return found, false
	}
	for _, same := range []struct {
		what         string
		lines        func(a, b string) bool
		skip, indent bool
	}{
		{"blanks at the ends of lines", func(a, b string) bool { return trimmedEnd(a) == trimmedEnd(b) }, false, false},
		{"blank lines", func(a, b string) bool { return trimmedEnd(a) == trimmedEnd(b) }, true, false},
		{"the indentation", func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }, true, true},
	} {
		var spans [][2]int
		for i := range lines {
			if end := matches(lines, i, wanted, same.lines, same.skip); end > 0 {
				spans = append(spans, [2]int{i, end})
			}
		}
		if len(spans) == 0 {
			continue
		}
		if len(spans) > 1 {
			return found, false
		}
		block := lines[spans[0][0]:spans[0][1]]
		if same.indent {
			if repl, ok = reindented(wanted, block, repl); !ok {
				return found, false
			}
		}
		from := len(strings.Join(lines[:spans[0][0]], ""))
		stands := strings.Join(block, "")
		if !whole {
			stands = strings.TrimSuffix(strings.TrimSuffix(stands, "\n"), "\r")
		}
		return nearly{from, from + len(stands), repl, strings.Join(append(how, same.what), ", ")}, true
	}
	return found, false
}

// matches reports behind which line what is wanted ends when it begins at line i, 0 where it
// does not begin there. Blank lines count as nothing where they may be skipped.
func matches(lines []string, i int, wanted []string, same func(a, b string) bool, skip bool) int {
	if blank(lines[i]) {
		return 0
	}
	for _, w := range wanted {
		if skip && blank(w) {
			continue
		}
		for skip && i < len(lines) && blank(lines[i]) {
			i++
		}
		if i == len(lines) || !same(lines[i], w) {
			return 0
		}
		i++
	}
	return i
}

func blank(line string) bool        { return strings.TrimSpace(line) == "" }
func trimmedEnd(line string) string { return strings.TrimRightFunc(line, unicode.IsSpace) }

// indentOf is the white space that a line begins with.
func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// reindented gives a text the indentation of the file's block, when it has that of what was
// wanted there. Ok is false where the indentation of the two has no rule in common, or the
// text has neither.
func reindented(wanted, block []string, repl string) (string, bool) {
	to := map[string]string{} // indentation in what was wanted → in the file
	block = slices.DeleteFunc(slices.Clone(block), blank)
	for i, w := range slices.DeleteFunc(slices.Clone(wanted), blank) {
		is := indentOf(block[i])
		if was, known := to[indentOf(w)]; known && was != is {
			return "", false
		}
		to[indentOf(w)] = is
	}
	lines, others, files := strings.Split(repl, "\n"), false, true
	for _, l := range lines {
		if !blank(l) {
			_, known := to[indentOf(l)]
			others = others || !known
			files = files && slices.Contains(slices.Collect(maps.Values(to)), indentOf(l))
		}
	}
	if others && files {
		return repl, true // it has the file's already
	}
	first := slices.IndexFunc(lines, func(l string) bool { return !blank(l) })
	if first < 0 {
		return repl, true
	}
	if i := indentOf(lines[first]); i != indentOf(wanted[0]) && i == indentOf(block[0]) {
		return repl, true
	}
	for i, l := range lines {
		if blank(l) {
			continue
		}
		indent, ok := carried(to, indentOf(l))
		if !ok {
			return "", false
		}
		lines[i] = indent + l[len(indentOf(l)):]
	}
	return strings.Join(lines, "\n"), true
}

// carried is an indentation in the file's way: one that is known, or one so much deeper than
// a known one as others are that are.
func carried(to map[string]string, indent string) (string, bool) {
	if is, known := to[indent]; known {
		return is, true
	}
	shallow, deep := "", ""
	for was := range to {
		if deep == "" || len(was) > len(deep) {
			deep = was
		}
	}
	shallow = deep
	for was := range to {
		if len(was) < len(shallow) {
			shallow = was
		}
	}
	more, ok := strings.CutPrefix(indent, deep)
	if !ok {
		return "", false
	}
	step, ok := strings.CutPrefix(deep, shallow)
	isStep, same := strings.CutPrefix(to[deep], to[shallow])
	if !ok || !same || step == "" {
		return to[deep] + more, len(to) == 1 // a single offset: what is deeper is so as it was written
	}
	out := to[deep]
	for more != "" {
		if more, ok = strings.CutPrefix(more, step); !ok {
			return "", false
		}
		out += isStep
	}
	return out, true
}

// unescapedBreaks writes line breaks for "\n" where a text of several lines was given as one.
func unescapedBreaks(old, repl string) (string, string) {
	if strings.Contains(strings.TrimRight(old, "\n"), "\n") || !strings.Contains(old, `\n`) {
		return old, repl
	}
	plain := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`)
	if !strings.Contains(repl, "\n") {
		repl = plain.Replace(repl)
	}
	return plain.Replace(old), repl
}

// withoutNumbers takes away line numbers that were copied along, from a text whose every line
// has the next one.
func withoutNumbers(old, repl string) (string, string) {
	plain, ok := unnumbered(old)
	if !ok {
		return old, repl
	}
	if r, ok := unnumbered(repl); ok {
		repl = r
	}
	return plain, repl
}

func unnumbered(text string) (string, bool) {
	var b strings.Builder
	next := -1
	for line := range strings.Lines(text) {
		body := strings.TrimLeft(line, " ")
		digits := len(body) - len(strings.TrimLeft(body, "0123456789"))
		var n int
		if _, err := fmt.Sscanf(body[:digits], "%d", &n); err != nil || next >= 0 && n != next {
			return "", false
		}
		next = n + 1
		rest := body[digits:]
		switch {
		case strings.HasPrefix(rest, "\t"):
			rest = rest[1:]
		case strings.HasPrefix(rest, "|"), strings.HasPrefix(rest, ":"):
			rest = strings.TrimPrefix(rest[1:], " ")
		case strings.TrimSpace(rest) != "":
			return "", false
		}
		b.WriteString(rest)
	}
	return b.String(), next >= 0
}

func plainQuotes(old, repl string) (string, string) {
	plain := strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "’", "'")
	if p := plain.Replace(old); p != old {
		return p, plain.Replace(repl)
	}
	return old, repl
}

// closest is the block of lines that is most like a text, from 0; ok is false where none is
// half like it.
func closest(lines []string, old string) (from, to int, ok bool) {
	wanted := strings.Split(strings.Trim(old, "\n"), "\n")
	const most = 60 // lines that are compared
	wanted = wanted[:min(len(wanted), most)]
	pairs := make([]map[string]bool, len(lines))
	for i, l := range lines {
		pairs[i] = pairsOf(l)
	}
	best := 0.0
	want := make([]map[string]bool, len(wanted))
	for i, w := range wanted {
		want[i] = pairsOf(w)
	}
	for i := range lines {
		score := 0.0
		for k := range want {
			if i+k < len(lines) {
				score += alikeness(pairs[i+k], want[k])
			}
		}
		if score /= float64(len(wanted)); score > best {
			best, from = score, i
		}
	}
	return from, min(len(lines), from+len(wanted)), best >= 0.3
}

// pairsOf are the pairs of letters in a line, white space left out.
func pairsOf(line string) map[string]bool {
	line = strings.Join(strings.Fields(line), "")
	out := map[string]bool{}
	for i := 0; i+2 <= len(line); i++ {
		out[line[i:i+2]] = true
	}
	return out
}

// alikeness is from 0 to 1: how many pairs two lines have in common.
func alikeness(a, b map[string]bool) float64 {
	if len(a)+len(b) == 0 {
		return 1
	}
	n := 0
	for p := range a {
		if b[p] {
			n++
		}
	}
	return 2 * float64(n) / float64(len(a)+len(b))
}
