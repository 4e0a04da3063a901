package feedback

import (
	"maps"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline/lazyregexp"
)

// split cuts a file into lines, without line ends and trailing blanks: these are
// what editors change by themselves.
func split(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r")
	}
	return lines
}

// maxEdits is how far two versions may differ before their lines are only matched
// at both ends: the comparison takes time and space by its square.
const maxEdits = 1500

// match returns for each line of a the index of the same line in b, or -1, by a
// shortest edit script (Myers, "An O(ND) Difference Algorithm", 1986).
func match(a, b []string) []int {
	out := make([]int, len(a))
	for i := range out {
		out[i] = -1
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		out[head] = head
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		out[len(a)-1-tail] = len(b) - 1 - tail
		tail++
	}
	for _, p := range snakes(a[head:len(a)-tail], b[head:len(b)-tail]) {
		out[head+p[0]] = head + p[1]
	}
	return out
}

// snakes returns the pairs of equal lines on a shortest way from a to b, none when
// it is too long.
func snakes(a, b []string) (pairs [][2]int) {
	limit := min(len(a)+len(b), maxEdits)
	v := make([]int, 2*limit+3)
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, slices.Clone(v[limit+1-d-1:limit+1+d+2]))
		for k := -d; k <= d; k += 2 {
			x := v[limit+1+k-1] + 1
			if k == -d || k != d && v[limit+1+k-1] < v[limit+1+k+1] {
				x = v[limit+1+k+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			v[limit+1+k] = x
			if x >= len(a) && x-k >= len(b) {
				return backwards(trace, len(a), len(b))
			}
		}
	}
	return nil
}

// backwards follows the way back. trace[d] holds the ends of the ways of d-1 edits,
// for the diagonals -d-1 to d+1.
func backwards(trace [][]int, x, y int) (pairs [][2]int) {
	for d := len(trace) - 1; d >= 0; d-- {
		at := func(k int) int { return trace[d][k+d+1] }
		k := x - y
		from := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
		}
		px := at(from)
		py := px - from
		if d == 0 {
			px, py = 0, 0
		}
		for x > px && y > py {
			x, y = x-1, y-1
			pairs = append(pairs, [2]int{x, y})
		}
		x, y = px, py
	}
	return pairs
}

// place is a range of lines, from 0, last excluded.
type place struct{ first, last int }

// follow returns where the lines of a range are in a later version of the file:
// all that stands between its old neighbours.
func follow(a, b []string, p place) place {
	m := match(a, b)
	out := place{0, len(b)}
	for i := min(p.first, len(a)) - 1; i >= 0; i-- {
		if m[i] >= 0 {
			out.first = m[i] + 1
			break
		}
	}
	for i := p.last; i < len(a); i++ {
		if m[i] >= 0 {
			out.last = m[i]
			break
		}
	}
	out.last = max(out.first, out.last)
	return out
}

func (p place) of(lines []string) []string {
	first := min(p.first, len(lines))
	return lines[first:max(first, min(p.last, len(lines)))]
}

// dedent takes away the indentation that all lines share.
func dedent(lines []string) []string {
	common, first := "", true
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if first {
			common, first = indent, false
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimPrefix(l, common)
	}
	return out
}

// same compares lines without the indentation that they share: moved code is the
// same code.
func same(a, b []string) bool { return slices.Equal(dedent(a), dedent(b)) }

// index returns where part stands in lines as a whole, or -1. Nothing is nowhere.
func index(lines, part []string) int {
	if len(part) == 0 {
		return -1
	}
	for i := 0; i+len(part) <= len(lines); i++ {
		if same(lines[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

var codeToken = lazyregexp.New(`[\pL_][\pL\pN_]*|\pN[\pL\pN_.]*|\S`)

func codeTokens(lines []string) []string {
	return codeToken.FindAllString(strings.Join(lines, "\n"), -1)
}

// reformatted reports whether lines say the same, in other lines: white space aside, and
// a comma before a closing bracket.
func reformatted(a, b []string) bool {
	x, y := codeTokens(a), codeTokens(b)
	return len(x) > 0 && slices.Equal(withoutLast(x), withoutLast(y))
}

func withoutLast(list []string) []string {
	out := make([]string, 0, len(list))
	for i, w := range list {
		if w == "," && (i+1 == len(list) || strings.Contains(")]}", list[i+1])) {
			continue
		}
		out = append(out, w)
	}
	return out
}

// manyRenamed is in how many places a commit must change a name alike to rename it.
const manyRenamed = 3

var isName = lazyregexp.New(`^[\pL_]`)

// renaming returns which names of a are others in b, nil when that is not all the
// difference.
func renaming(a, b []string) map[string]string {
	x, y := codeTokens(a), codeTokens(b)
	if len(x) != len(y) {
		return nil
	}
	out := map[string]string{}
	for i := range x {
		had, ok := out[x[i]]
		switch {
		case ok && had != y[i], !ok && x[i] != y[i] && !(isName.MatchString(x[i]) && isName.MatchString(y[i])):
			return nil
		}
		out[x[i]] = y[i]
	}
	maps.DeleteFunc(out, func(k, v string) bool { return k == v })
	if len(out) == 0 {
		return nil
	}
	return out
}

// rename gives names in lines their new ones.
func rename(lines []string, names map[string]string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = codeToken.ReplaceAllStringFunc(l, func(w string) string {
			if n, ok := names[w]; ok {
				return n
			}
			return w
		})
	}
	return out
}

// wipedAround is how many further lines go with commented ones when what they were part
// of is taken away.
const wipedAround = 3

// wiped reports whether lines went with all that was around them, a function for one.
func wiped(cur, next []string, at, to place) bool {
	if to.last > to.first {
		return false
	}
	m, n := match(cur, next), 0
	for i := at.first - 1; i >= 0 && m[i] < 0; i-- {
		n++
	}
	for i := at.last; i < len(cur) && m[i] < 0; i++ {
		n++
	}
	return n >= wipedAround
}

// telling reports whether lines say enough to be known again elsewhere: "return
// nil" stands everywhere.
func telling(lines []string) bool {
	n := 0
	for _, l := range lines {
		n += len(strings.Join(strings.Fields(l), ""))
	}
	return n >= 12
}

// change is one hunk of a patch: lines that went, and those that came in their place.
type change struct {
	path   string
	line   int // of the first new line, or of where the old ones were; from 1
	before []string
	after  []string
}

// changes reads the patch of one file as GitHub's API sends it: hunks alone.
func changes(path, patch string) []change {
	if patch == "" {
		return nil
	}
	text := "diff --git a/f b/f\n--- a/f\n+++ b/f\n" + strings.TrimSuffix(patch, "\n") + "\n"
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil || len(files) != 1 {
		return nil // cut short by GitHub: what cannot be read proves nothing
	}
	var out []change
	for _, h := range files[0].TextFragments {
		line, open := int(h.NewPosition), false
		for _, l := range h.Lines {
			text := strings.TrimRight(l.Line, " \t\r\n")
			if l.Op == gitdiff.OpContext {
				line, open = line+1, false
				continue
			}
			if !open {
				out, open = append(out, change{path: path, line: line}), true
			}
			c := &out[len(out)-1]
			if l.Op == gitdiff.OpDelete {
				c.before = append(c.before, text)
			} else {
				c.after, line = append(c.after, text), line+1
			}
		}
	}
	return out
}

// undoes reports how much of one change another takes back: the share of its lines
// that came and now go again, and that went and now come again. 1 is a full inverse.
func undoes(undo, done []change) float64 {
	type line struct {
		path, text string
		came       bool
	}
	count, total, hit := map[line]int{}, 0, 0
	for _, c := range undo {
		for _, l := range c.before {
			count[line{c.path, l, true}]++
		}
		for _, l := range c.after {
			count[line{c.path, l, false}]++
		}
	}
	take := func(path string, list []string, came bool) {
		for _, l := range list {
			if strings.TrimSpace(l) == "" {
				continue
			}
			total++
			if k := (line{path, l, came}); count[k] > 0 {
				count[k]--
				hit++
			}
		}
	}
	for _, c := range done {
		take(c.path, c.after, true)
		take(c.path, c.before, false)
	}
	if total == 0 {
		return 0
	}
	return float64(hit) / float64(total)
}
