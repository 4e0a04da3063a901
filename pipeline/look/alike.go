package look

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

var (
	defines = lazyregexp.New(`^\s*(?:(?:export|default|async|pub|static|public)\s+)*(?:def|function\*?|func|fn)\s+(?:\([^)]*\)\s*)?(?:self\.)?(\w+)` +
		`|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?(?:\(|function\b|\w+\s*=>)|\bexports\.(\w+)\s*=\s*(?:async\s*)?(?:\(|function\b|\w+\s*=>)`)
	checking = lazyregexp.New(`\bassert|==|[eE]qual|\bexpect\b|\.Fatal|\.Error`)
	backAnd  = lazyregexp.New(`\b(\w+)\((?:\w+\.)*(\w+)\(([^()]*)\)\)+\s*(?:[!=]==?|,|\.(?:not\.)?to\w+\()\s*([^,)\s;:{]+)`) // decode(encode(x)) == x
	besides  = lazyregexp.New(`\b(\w+)\([^()]*\)\)?\s*(?:[!=]==?|,|\.(?:not\.)?to\w+\()\s*(?:\w+\.)*(\w+)\(`)                // fast(x) == slow(x)
)

// defined are the functions that the change adds lines to, each with the first of these.
func (f *File) defined() map[string]int {
	out := map[string]int{}
	name := ""
	for at := range f.Added {
		lines, i := f.whole(at)
		beside := at > 0 && f.Added[at].Number == f.Added[at-1].Number+1 && indentOf(f.Added[at].Text) == indentOf(f.Added[at-1].Text)
		if !beside || defines.MatchString(f.Added[at].Text) || defines.MatchString(f.Added[at-1].Text) { // else it stands in the same one
			name = definition(lines, i)
		}
		if _, ok := out[name]; !ok && name != "" {
			out[name] = at
		}
	}
	return out
}

// definition returns the name of the function that a line stands in, or begins; "" for none.
func definition(lines []string, i int) string {
	for indent := indentOf(lines[i]) + 1; i >= 0 && indent > 0; i-- {
		if strings.TrimSpace(lines[i]) == "" || indentOf(lines[i]) >= indent {
			continue
		}
		indent = indentOf(lines[i])
		if m := defines.FindStringSubmatch(lines[i]); m != nil {
			return m[1] + m[2] + m[3]
		}
	}
	return ""
}

var (
	byLoader = lazyregexp.New(`"(?:import|require|browser|module|development|production|worker|deno|bun|react-native|default)"\s*:\s*"\./([^"]*)"`)
	handsOn  = lazyregexp.New(`\bfrom\s+['"]\.|\brequire\(\s*['"]\.`)
	ownCode  = lazyregexp.New(`=>|\bfunction\b|\bclass\b`)
)

// otherwise reports whether a line of package.json has another file for who loads the package in another way,
// except for one that only hands on what the package has.
func (b *base) otherwise(line string) bool {
	for _, m := range byLoader.FindAllStringSubmatch(line, -1) {
		at := slices.IndexFunc(b.files, func(f File) bool { return f.New && strings.HasSuffix(f.Name, m[1]) })
		if at < 0 {
			continue // it was there
		}
		has := func(re *lazyregexp.Regexp) bool {
			return slices.ContainsFunc(b.files[at].Added, func(l point.Line) bool { return re.MatchString(l.Text) })
		}
		if !has(handsOn) || has(ownCode) {
			return true
		}
	}
	return false
}

// alike finds of the functions that a change touches those that a file of tests holds against each
// other alone: where both are wrong in the same way, it passes.
func alike(test string, touched map[string]bool) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(test) {
		if !checking.MatchString(line) {
			continue
		}
		pairs := besides.FindAllStringSubmatch(line, -1)
		for _, m := range backAnd.FindAllStringSubmatch(line, -1) {
			if strings.TrimSpace(m[3]) == m[4] {
				pairs = append(pairs, m)
			}
		}
		for _, m := range pairs {
			if m[1] != m[2] && touched[m[1]] && touched[m[2]] {
				out[m[1]], out[m[2]] = true, true
			}
		}
	}
	return out
}
