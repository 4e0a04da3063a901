package change

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

// maxBlock is how many lines a block may have and still count as one place.
const maxBlock = 60

var (
	// defines matches the first line of what people call a function or a type, in the
	// common languages. Climbing ends there.
	defines = lazyregexp.New(`^\s*(?:(?:export|default|public|private|protected|internal|static|async|final|abstract|override|virtual|inline|pub(?:\([^)]*\))?|unsafe|extern|open|data|sealed|local)\s+)*(?:func|fn|def|defp|function|fun|sub|proc|class|struct|impl|trait|interface|module|namespace|enum|object|type)\b`)
	// method matches "int area(int w)" and "render() {".
	method = lazyregexp.New(`^\s*[A-Za-z_~][\w<>\[\],.*&:\s~?]*\([^;={}]*\)[\w\s,.:<>-]*\{?\s*$`)
	// control matches the first line of a block within a function.
	control = lazyregexp.New(`^\s*[})\]]*\s*(?:if|else|elif|elsif|for|foreach|while|do|switch|case|default|select|match|when|try|catch|except|finally|rescue|ensure|with|using|unless|until|loop|return|go|defer|await|yield|lock|synchronized|begin|then)\b`)
	closes  = lazyregexp.New(`^\s*(?:[})\]]|end\b|fi\b|done\b|esac\b)`)
)

// block returns the lines, from 1, of the function around the lines from and to, or
// of as much of it as counts as one place. It goes by indentation, which all
// languages share.
func block(lines []string, from, to int) (first, last int) {
	first, last = max(1, from), min(to, len(lines))
	if first > last {
		return from, to
	}
	base := -1
	for i := first; i <= last; i++ {
		if n, ok := indent(lines[i-1]); ok && (base < 0 || n < base) {
			base = n
		}
	}
	if base <= 0 {
		return topLevel(lines, first, last)
	}
	for base > 0 {
		head := first - 1
		for ; head >= 1; head-- {
			if n, ok := indent(lines[head-1]); ok && n < base {
				break
			}
		}
		if head < 1 {
			break
		}
		base, _ = indent(lines[head-1])
		end := below(lines, last, base)
		if end-head+1 > maxBlock {
			break
		}
		first, last = head, end
		if l := lines[head-1]; defines.MatchString(l) || method.MatchString(l) && !control.MatchString(l) {
			break
		}
	}
	return first, last
}

// topLevel is block for lines that are not indented: with what is indented below
// them, and what they close above.
func topLevel(lines []string, from, to int) (first, last int) {
	first, last = from, to
	if closes.MatchString(lines[from-1]) {
		for first > 1 {
			first--
			if n, ok := indent(lines[first-1]); ok && n == 0 {
				break
			}
		}
	}
	last = below(lines, to, 0)
	if last-first+1 > maxBlock {
		return from, to
	}
	return first, last
}

// below returns the last line of a block whose first line is indented by base, from
// one of its lines on.
func below(lines []string, from, base int) int {
	last := from
	for i := from + 1; i <= len(lines); i++ {
		n, ok := indent(lines[i-1])
		switch {
		case !ok:
			continue
		case n > base:
			last = i
			continue
		case n == base && closes.MatchString(lines[i-1]):
			return i
		}
		break
	}
	return last
}

// indent returns how far a line is indented; ok is false for an empty one.
func indent(s string) (n int, ok bool) {
	for _, c := range s {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4
		case '\r':
		default:
			return n, true
		}
	}
	return n, false
}

// squeezed is code without white space.
func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }
