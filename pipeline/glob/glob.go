// Package glob matches slash-separated paths against patterns: elements as in
// [path.Match], and "**" for any number of directories, also none.
package glob

import (
	"path"
	"strings"
)

// Match reports whether a path, or a directory, matches a pattern as a whole. The
// work is bounded by the product of their numbers of elements: patterns come from
// repositories. An element that is no valid pattern matches nothing.
func Match(pattern, name string) bool {
	elements, names := strings.Split(pattern, "/"), strings.Split(name, "/")
	ends := make([]bool, len(names)+1) // whether the elements so far can match the first i names
	ends[0] = true
	for _, e := range elements {
		next := make([]bool, len(ends))
		for i := range next {
			switch {
			case e == "**":
				next[i] = ends[i] || i > 0 && next[i-1]
			case i > 0 && ends[i-1]:
				next[i], _ = path.Match(e, names[i-1])
			}
		}
		ends = next
	}
	return ends[len(names)]
}

// Overlap reports whether some path could match both patterns. It may say so where
// elements such as "a*b" and "*c*" meet in no name; it never misses a path.
func Overlap(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	meet := make([][]bool, len(as)+1) // whether the first i and the first j elements can match the same
	for i := range meet {
		meet[i] = make([]bool, len(bs)+1)
		for j := range meet[i] {
			meet[i][j] = i == 0 && j == 0 ||
				i > 0 && as[i-1] == "**" && (meet[i-1][j] || j > 0 && meet[i][j-1]) ||
				j > 0 && bs[j-1] == "**" && (meet[i][j-1] || i > 0 && meet[i-1][j]) ||
				i > 0 && j > 0 && meet[i-1][j-1] && elementsMeet(as[i-1], bs[j-1])
		}
	}
	return meet[len(as)][len(bs)]
}

const special = `*?[\`

// elementsMeet compares what two elements begin and end with in plain letters.
func elementsMeet(a, b string) bool {
	plainA, plainB := !strings.ContainsAny(a, special), !strings.ContainsAny(b, special)
	switch {
	case plainA && plainB:
		return a == b
	case plainA:
		ok, err := path.Match(b, a)
		return ok || err != nil
	case plainB:
		ok, err := path.Match(a, b)
		return ok || err != nil
	}
	headA, headB := a[:strings.IndexAny(a, special)], b[:strings.IndexAny(b, special)]
	if !strings.HasPrefix(headA, headB) && !strings.HasPrefix(headB, headA) {
		return false
	}
	if strings.ContainsAny(a, `[\`) || strings.ContainsAny(b, `[\`) { // what a class ends with takes more than a look
		return true
	}
	tailA, tailB := a[strings.LastIndexAny(a, special)+1:], b[strings.LastIndexAny(b, special)+1:]
	return strings.HasSuffix(tailA, tailB) || strings.HasSuffix(tailB, tailA)
}
