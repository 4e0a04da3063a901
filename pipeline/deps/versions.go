package deps

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
)

// version is a version's numbers; those that are not said are left out.
type version []int

var numbers = lazyregexp.New(`\d+(?:\.\d+)*`)

// readVersion finds the first version in a text, such as "Python 3.11.7".
func readVersion(text string) version {
	var v version
	for part := range strings.SplitSeq(numbers.FindString(text), ".") {
		if n, err := strconv.Atoi(part); err == nil {
			v = append(v, n)
		}
	}
	return v
}

// part is a version's number at a place; 0 where it is not said.
func (v version) part(i int) int {
	if i < len(v) {
		return v[i]
	}
	return 0
}

func (v version) compare(w version) int {
	for i := range max(len(v), len(w)) {
		if c := cmp.Compare(v.part(i), w.part(i)); c != 0 {
			return c
		}
	}
	return 0
}

// begins reports whether a version is one of those that another stands for: 3.11.7 is
// one of 3.11.
func (v version) begins(w version) bool {
	for i := range w {
		if v.part(i) != w[i] {
			return false
		}
	}
	return true
}

// next is the first version after those that the first n numbers stand for.
func (v version) next(n int) version {
	out := slices.Clone(v[:min(n, len(v))])
	if len(out) > 0 {
		out[len(out)-1]++
	}
	return out
}

// rangeTerm is one condition of a range, as npm, PyPI and Poetry write them.
var rangeTerm = lazyregexp.New(`(===|==|!=|~=|~>|>=|<=|>|<|=|\^|~)?\s*v?(\*|[xX]|\d+(?:\.(?:\d+|[xX*]))*)(?:[-+.]?[A-Za-z][\w.+-]*)?`)

// inRange reports whether a version is in a range; ok is false when the range cannot be
// read.
func inRange(v version, text string) (in, ok bool) {
	for alternative := range strings.SplitSeq(text, "||") {
		alternative = strings.TrimSpace(alternative)
		if from, to, hyphen := strings.Cut(alternative, " - "); hyphen {
			alternative = ">=" + strings.TrimSpace(from) + " <=" + strings.TrimSpace(to)
		}
		rest := strings.NewReplacer(",", " ", "(", " ", ")", " ").Replace(alternative)
		fits, read := true, false
		for _, m := range rangeTerm.FindAllStringSubmatch(rest, -1) {
			fits, read = fits && v.meets(m[1], m[2]), true
		}
		if left := strings.TrimSpace(rangeTerm.ReplaceAllString(rest, "")); left != "" || !read && alternative != "" {
			return false, false
		}
		in = in || fits
	}
	return in, true
}

// meets reports whether a version meets one condition.
func (v version) meets(op, text string) bool {
	any := strings.ContainsAny(text, "*xX")
	w := readVersion(strings.TrimRight(text, ".*xX"))
	if len(w) == 0 {
		return op != "!=" && op != "<" && op != ">"
	}
	switch op {
	case ">=":
		return v.compare(w) >= 0
	case ">":
		return v.compare(w) > 0 && !v.begins(w)
	case "<=":
		return v.compare(w) <= 0 || v.begins(w)
	case "<":
		return v.compare(w) < 0
	case "!=":
		return !(any && v.begins(w) || v.compare(w) == 0)
	case "^":
		n := 1
		for n < len(w) && w[n-1] == 0 {
			n++
		}
		return v.compare(w) >= 0 && v.compare(w.next(n)) < 0
	case "~":
		return v.compare(w) >= 0 && v.compare(w.next(min(2, len(w)))) < 0
	case "~=", "~>":
		return v.compare(w) >= 0 && v.compare(w.next(max(1, len(w)-1))) < 0
	}
	return v.begins(w)
}

// named versions that are pinned: how many of their numbers must be the same.
var pinned = map[string]int{"node": 1, "python3": 2, "ruby": 2, "php": 2}

// serves reports whether a tool of some version does for a file that asks for another by
// its number alone. Go, Rust, Java and .NET run what was made for older ones.
func serves(tool string, has, want version) bool {
	n, ok := pinned[tool]
	if !ok {
		return has.compare(want) >= 0
	}
	return has.begins(want[:min(n, len(want))]) && (len(want) < 2 || has.compare(want[:2]) >= 0)
}
