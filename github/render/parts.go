package render

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxParts bounds into how many comments one text is split; what is longer is cut.
const maxParts = 8

// partFrame is room for what a part is given on top: what it continues, the code blocks
// and folds that it opens again and closes.
const partFrame = 1500

// Parts splits the body of a comment into as many as GitHub takes, the first with the
// marker. Lines stay whole where they can; code blocks and folds that a cut goes through
// are closed before it and opened again behind it. Nearly every body is one part, and
// stays as it is.
func Parts(body string) []string {
	marker, text, _ := strings.Cut(body, "\n")
	if utf8.RuneCountInString(text) <= MaxText+1 { // a body ends with a line's end
		return []string{body}
	}
	text = Cut(text, maxParts*(MaxText-partFrame)-partFrame)
	var out []string
	var open frame
	var b strings.Builder
	room := 0
	begin := func() {
		b.Reset()
		b.WriteString(open.opening())
		room = MaxText - partFrame
	}
	end := func() { out = append(out, strings.TrimRight(b.String(), "\n")+"\n"+open.closing()) }
	begin()
	for line := range strings.Lines(text) {
		for n := utf8.RuneCountInString(line); n > room; n = utf8.RuneCountInString(line) {
			if n > MaxText-partFrame { // longer than a part of its own
				runes := []rune(line)
				b.WriteString(string(runes[:room]))
				line = string(runes[room:])
			}
			end()
			begin()
		}
		b.WriteString(line)
		room -= utf8.RuneCountInString(line)
		open.pass(line)
	}
	end()
	out[0] = marker + "\n" + out[0]
	return out
}

// frame is what stands open at a line of Markdown.
type frame struct {
	fence string   // the line that opened a code block
	folds []string // the lines that opened folds
}

// pass goes by a line.
func (f *frame) pass(line string) {
	t := strings.TrimSpace(line)
	switch run := fenceRun(t); {
	case f.fence != "":
		opened := strings.TrimSpace(f.fence)
		if run > 0 && t[0] == opened[0] && run >= fenceRun(opened) && len(t) == run {
			f.fence = ""
		}
	case run > 0 && (t[0] == '~' || !strings.Contains(t[run:], "`")):
		f.fence = strings.TrimRight(line, "\n")
	case strings.HasPrefix(t, "<details>") && !strings.HasSuffix(t, "</details>"):
		f.folds = append(f.folds, t)
	case t == "</details>" && len(f.folds) > 0:
		f.folds = f.folds[:len(f.folds)-1]
	}
}

// fenceRun counts the characters of a code block's fence that a line begins with; 0: of none.
func fenceRun(t string) int {
	for _, c := range "`~" {
		if n := len(t) - len(strings.TrimLeft(t, string(c))); n >= 3 {
			return n
		}
	}
	return 0
}

// opening opens again what stands open.
func (f *frame) opening() string {
	var b strings.Builder
	for _, fold := range f.folds {
		b.WriteString(fold + "\n\n")
	}
	if f.fence != "" {
		b.WriteString(Shorten(f.fence, 200) + "\n")
	}
	return b.String()
}

// closing closes it.
func (f *frame) closing() string {
	var b strings.Builder
	if f.fence != "" {
		t := strings.TrimSpace(f.fence)
		b.WriteString(t[:fenceRun(t)] + "\n")
	}
	for range f.folds {
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

// Part is the body of the n-th of several comments that hold one text, behind the first.
func (v Renderer) Part(key string, n, of int, first, text string) string {
	from := "the first comment"
	if first != "" {
		from = "[the first comment](" + first + ")"
	}
	if text == "" {
		return Marker(v.Run.Trace, key) + "\n*Nothing stands here any more: all of it is in " + from + ".*\n"
	}
	return Marker(v.Run.Trace, key) + "\n*Part " + strconv.Itoa(n) + " of " + strconv.Itoa(of) + ": this goes on where " + from + " ends.*\n\n" + text
}
