// Package source reads code as tokens, so that two versions of it can be compared by what
// they do and not by how they are written: white space, comments, statements that do
// nothing, type hints that nothing reads, parentheses that group nothing and the kind of
// quotes are told from the rest. It knows no types and follows no values: a name that is
// changed, or two operands that are swapped, are another code to it.
//
// The package is pure.
package source

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Kind says what a token is for.
type Kind uint8

const (
	Code    Kind = 0
	Comment Kind = 1
	Idle    Kind = 2 // of a statement that does nothing: a docstring, pass
	Hint    Kind = 4 // of a type hint that nothing reads when the code runs
)

// Token is a token of code. Texts of equal meaning are equal.
type Token struct {
	Text string
	Line int // from 1
	Kind Kind
}

// Read reads the tokens of a file; ok is false for a language that it does not know.
func Read(file, text string) (list []Token, ok bool) {
	switch l := language(file); l {
	case "":
		return nil, false
	case "go":
		return readGo(text), true
	case "python":
		return readPython(text), true
	default:
		return readBraces(text, l), true
	}
}

// Knows reports whether Read knows the language of a file.
func Knows(file string) bool { return language(file) != "" }

func language(file string) string {
	switch strings.ToLower(path.Ext(file)) {
	case ".go":
		return "go"
	case ".py", ".pyi", ".pyw":
		return "python"
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
		return "js"
	case ".java", ".kt", ".kts", ".scala", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rs", ".swift", ".dart":
		return "c"
	}
	return ""
}

// Keep returns the code, and those of the other tokens that are of some kind.
func Keep(list []Token, kinds Kind) []Token {
	return slices.DeleteFunc(slices.Clone(list), func(t Token) bool { return t.Kind&^kinds != 0 })
}

// Span returns from which token to which the lines from and to go, without the ends of
// blocks and statements around them.
func Span(list []Token, from, to int) (first, end int) {
	first, _ = slices.BinarySearchFunc(list, from, func(t Token, n int) int { return cmp.Compare(t.Line, n) })
	for first < len(list) && IsLayout(list[first]) {
		first++
	}
	for end = first; end < len(list) && list[end].Line <= to; {
		end++
	}
	for end > first && IsLayout(list[end-1]) {
		end--
	}
	return first, end
}

// IsLayout reports whether a token is the begin or the end of a block of Python, or the end
// of a statement.
func IsLayout(t Token) bool { return t.Text == stop || t.Text == indent || t.Text == dedent }

// Equal reports whether two lists are of the same tokens, wherever they stand.
func Equal(a, b []Token) bool {
	return slices.EqualFunc(a, b, func(x, y Token) bool { return x.Text == y.Text })
}

// Find returns where a part begins in a list, -1 when it is not there.
func Find(list, part []Token) int {
	for i := 0; len(part) > 0 && i+len(part) <= len(list); i++ {
		if Equal(list[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// Edit says that the tokens from From up to To of the old list, none when they are equal,
// have been replaced.
type Edit struct{ From, To int }

// maxEdits caps the tokens by which two lists may differ and still be compared.
const maxEdits = 1500

// Diff returns where two lists differ; ok is false when they do so in too much.
func Diff(old, new []Token) (edits []Edit, ok bool) {
	start := 0
	for start < len(old) && start < len(new) && old[start].Text == new[start].Text {
		start++
	}
	a, b := old[start:], new[start:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].Text == b[len(b)-1].Text {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 && len(b) == 0 {
		return nil, true
	}
	if len(a) == 0 || len(b) == 0 {
		return []Edit{{start, start + len(a)}}, true
	}
	kept, ok := common(a, b)
	if !ok {
		return nil, false
	}
	x, y := 0, 0
	for _, k := range append(kept, [2]int{len(a), len(b)}) {
		if k[0] > x || k[1] > y {
			edits = append(edits, Edit{start + x, start + k[0]})
		}
		x, y = k[0]+1, k[1]+1
	}
	return edits, true
}

// common returns the pairs of a longest common subsequence, by Myers' algorithm.
func common(a, b []Token) (pairs [][2]int, ok bool) {
	most := min(len(a)+len(b), maxEdits)
	at := make([]int32, 2*most+2)
	var trace [][]int32
	for d := 0; d <= most; d++ {
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || k != d && at[most+k-1] < at[most+k+1] {
				x = int(at[most+k+1])
			} else {
				x = int(at[most+k-1]) + 1
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x].Text == b[y].Text {
				x, y = x+1, y+1
			}
			at[most+k] = int32(x)
			if x >= len(a) && y >= len(b) {
				return back(a, b, trace, d, k), true
			}
		}
		trace = append(trace, slices.Clone(at[most-d:most+d+1]))
	}
	return nil, false
}

// back follows the way that Myers' algorithm took, from its end.
func back(a, b []Token, trace [][]int32, d, k int) (pairs [][2]int) {
	x, y := len(a), len(b)
	for ; d > 0; d-- {
		was := trace[d-1] // of the diagonals -(d-1) to d-1
		at := func(k int) int {
			if i := k + d - 1; i >= 0 && i < len(was) {
				return int(was[i])
			}
			return -1
		}
		from := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
		}
		px := at(from)
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
			pairs = append(pairs, [2]int{x, y})
		}
		x, y, k = px, py, from
	}
	for x > 0 && y > 0 {
		x, y = x-1, y-1
		pairs = append(pairs, [2]int{x, y})
	}
	slices.Reverse(pairs)
	return pairs
}
