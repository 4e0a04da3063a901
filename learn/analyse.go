package learn

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Analysis is what kind of change turned some lines into others.
type Analysis struct {
	Kinds    []string          // in words, the most telling first: "renames tmp to timeout"
	Category pipeline.Category // of a finding that would have asked for it
}

// Words says it in one sentence part: "renames tmp to timeout and adds a comment".
func (a Analysis) Words() string { return strings.Join(a.Kinds, " and ") }

var (
	token   = lazyregexp.New("\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`[^`]*`|[A-Za-z_][A-Za-z0-9_]*|[0-9][0-9A-Za-z_.]*|[^\\s\\w]")
	ident   = lazyregexp.New(`^[A-Za-z_]`)
	literal = lazyregexp.New("^[\"'`0-9]")
	comment = lazyregexp.New(`^\s*(//|#|/\*|\*|--|<!--|""")`)
	guard   = lazyregexp.New(`^\s*(if|unless|guard)\b`)
	leave   = lazyregexp.New(`\b(return|continue|break|throw|raise|panic)\b`)
	errIf   = lazyregexp.New(`\berr\s*!=\s*nil\b|\bcatch\b|\bexcept\b|\bis_err\b`)
	wrap    = lazyregexp.New(`%w|\bfrom\s+e(rr|xc)?\b|errors\.(Wrap|Join)|\.(with_)?context\(|cause:`)
	logs    = lazyregexp.New(`(?i)\b(log|logger|slog|console)\.\w+|\bprint(f|ln)?\(`)
	tests   = lazyregexp.New(`\bt\.(Run|Error|Fatal)|\bfunc Test|\bassert|\bexpect\(|\bdef test_`)
	frees   = lazyregexp.New(`\bdefer\b|\bfinally\b|\bwith \w|\.Close\(\)`)
	locks   = lazyregexp.New(`(?i)\b\w*mu(tex)?\.r?lock\(|\bsynchronized\b|\bsync\.`)
)

// Analyse says what kind of change turned before into after (H3, H4). It looks at
// the lines alone, the same way in every language: what it cannot name it calls
// written in another way.
func Analyse(before, after string) Analysis {
	gone, come := changed(split(before), split(after))
	if CodeDigest(before) == CodeDigest(after) {
		return Analysis{[]string{"formats the lines in another way"}, pipeline.CategoryStyle}
	}
	oldCode, oldNotes := apart(gone)
	newCode, newNotes := apart(come)
	var a Analysis
	say := func(category pipeline.Category, format string, args ...any) {
		a.Kinds = append(a.Kinds, fmt.Sprintf(format, args...))
		if a.Category == "" {
			a.Category = category
		}
	}
	sayTokens(say, oldCode, newCode)
	if len(a.Kinds) == 0 && len(oldCode)+len(newCode) > 0 {
		sayLines(say, oldCode, newCode)
	}
	switch {
	case len(newNotes) > 0 && len(oldNotes) > 0:
		say(pipeline.CategoryStyle, "rewords a comment")
	case len(newNotes) > 0:
		say(pipeline.CategoryStyle, "adds a comment")
	case len(oldNotes) > 0:
		say(pipeline.CategoryStyle, "removes a comment")
	}
	if len(a.Kinds) == 0 {
		say(pipeline.CategoryStyle, "writes the lines in another way (%d lines for %d)", len(come), len(gone))
	}
	return a
}

// sayTokens names changes that leave the form of the code and exchange names or
// literals.
func sayTokens(say func(category pipeline.Category, format string, args ...any), gone, come []string) {
	x, y := token.FindAllString(strings.Join(gone, "\n"), -1), token.FindAllString(strings.Join(come, "\n"), -1)
	if len(x) != len(y) || len(x) == 0 {
		return
	}
	type pair struct{ from, to string }
	var names, values, named []pair
	for i := range x {
		p := pair{x[i], y[i]}
		switch {
		case p.from == p.to:
		case ident.MatchString(p.from) && ident.MatchString(p.to):
			names = append(names, p)
		case literal.MatchString(p.from) && literal.MatchString(p.to):
			values = append(values, p)
		case literal.MatchString(p.from) && ident.MatchString(p.to):
			named = append(named, p)
		default:
			return // an operator: no exchange of names
		}
	}
	for kind, list := range map[string][]pair{"names": names, "values": values, "named": named} {
		list = slices.Compact(slices.Clone(list))
		if len(list) > 4 || kind == "names" && !consistent(len(list), func(i int) (string, string) { return list[i].from, list[i].to }) {
			return // too much for an exchange: it is other code
		}
	}
	once := map[pair]bool{}
	tell := func(list []pair, category pipeline.Category, format string) {
		for _, p := range list {
			if !once[p] {
				once[p] = true
				say(category, format, text.Within(p.from, 60), text.Within(p.to, 60))
			}
		}
	}
	tell(names, pipeline.CategoryStyle, "renames %s to %s")
	tell(named, pipeline.CategoryStyle, "replaces the literal %s by the name %s")
	tell(values, pipeline.CategoryCorrectness, "replaces the literal %s by %s")
}

// consistent reports whether no name got two new ones.
func consistent(n int, at func(int) (string, string)) bool {
	to := map[string]string{}
	for i := range n {
		a, b := at(i)
		if c, ok := to[a]; ok && c != b {
			return false
		}
		to[a] = b
	}
	return true
}

// sayLines names changes by what the new lines have and the old ones have not.
func sayLines(say func(category pipeline.Category, format string, args ...any), gone, come []string) {
	was, is := strings.Join(gone, "\n"), strings.Join(come, "\n")
	fresh := func(r *lazyregexp.Regexp) bool { return len(r.FindAllString(is, -1)) > len(r.FindAllString(was, -1)) }
	lost := func(r *lazyregexp.Regexp) bool { return len(r.FindAllString(is, -1)) < len(r.FindAllString(was, -1)) }
	if fresh(wrap) {
		say(pipeline.CategoryCorrectness, "wraps the error with its context")
	}
	switch {
	case fresh(errIf) && !fresh(wrap):
		say(pipeline.CategoryCorrectness, "checks an error")
	case guards(come) > guards(gone) && !fresh(errIf):
		say(pipeline.CategoryCorrectness, "adds a guard clause")
	}
	if fresh(frees) {
		say(pipeline.CategoryCorrectness, "releases what was opened")
	}
	if fresh(locks) {
		say(pipeline.CategoryCorrectness, "guards shared state by a lock")
	}
	if fresh(tests) {
		say(pipeline.CategoryTests, "adds a test")
	}
	switch {
	case fresh(logs):
		say(pipeline.CategoryStyle, "logs what happens")
	case lost(logs):
		say(pipeline.CategoryStyle, "removes logging")
	}
	switch {
	case len(come) == 0:
		say(pipeline.CategoryStyle, "removes the code")
	case len(gone) == 0 && !fresh(errIf) && guards(come) == 0 && !fresh(tests) && !fresh(logs) && !fresh(frees) && !fresh(locks):
		say(pipeline.CategoryCorrectness, "adds code that was missing")
	case len(come)*3 <= len(gone)*2:
		say(pipeline.CategoryStyle, "says it in fewer lines (%d for %d)", len(come), len(gone))
	}
}

// guards counts conditions that leave at once.
func guards(lines []string) (n int) {
	for i, l := range lines {
		if guard.MatchString(l) && (leave.MatchString(l) || i+1 < len(lines) && leave.MatchString(lines[i+1])) {
			n++
		}
	}
	return n
}

func split(s string) []string {
	var out []string
	for l := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n") {
		if strings.TrimSpace(l) != "" {
			out = append(out, strings.TrimRight(l, " \t"))
		}
	}
	return out
}

// apart tells code from comments.
func apart(lines []string) (code, notes []string) {
	for _, l := range lines {
		if comment.MatchString(l) {
			notes = append(notes, l)
		} else {
			code = append(code, l)
		}
	}
	return code, notes
}

// changed returns the lines of a that are not in b and the other way round, by
// their longest common subsequence; indentation does not count. Past a thousand
// lines on one side everything counts as changed.
func changed(a, b []string) (gone, come []string) {
	const most = 1000
	if len(a) > most || len(b) > most {
		return a, b
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width)
	same := func(i, k int) bool { return strings.TrimSpace(a[i]) == strings.TrimSpace(b[k]) }
	for i := len(a) - 1; i >= 0; i-- {
		for k := len(b) - 1; k >= 0; k-- {
			if same(i, k) {
				common[i*width+k] = common[(i+1)*width+k+1] + 1
			} else {
				common[i*width+k] = max(common[(i+1)*width+k], common[i*width+k+1])
			}
		}
	}
	i, k := 0, 0
	for i < len(a) && k < len(b) {
		switch {
		case same(i, k):
			i, k = i+1, k+1
		case common[(i+1)*width+k] >= common[i*width+k+1]:
			gone, i = append(gone, a[i]), i+1
		default:
			come, k = append(come, b[k]), k+1
		}
	}
	return append(gone, a[i:]...), append(come, b[k:]...)
}

// about are words by which people ask for things, by category. The first
// category with the most hits wins; the order is that of what a miss costs.
var about = []struct {
	category pipeline.Category
	words    map[string]bool
}{
	{pipeline.CategorySecurity, keySet(`security secure insecure injection inject sanitize sanitise escape unescaped xss csrf ssrf sql auth authentication authorization authorize
		permission privilege secret token password credential leak leaks exploit attacker untrusted traversal vulnerable vulnerability cve encrypt hash tls certificate`)},
	{pipeline.CategoryCorrectness, keySet(`bug wrong incorrect crash panic nil null undefined race deadlock leak overflow off-by-one boundary edge case error errors handle handling
		unhandled exception missing forget forgot fails fail broken break breaks invalid return returns check concurrent lock mutex timeout retry close logic`)},
	{pipeline.CategoryPerformance, keySet(`slow performance fast faster quadratic allocation allocate allocates alloc allocs cache caching memory cpu latency loop n+1 query queries batch
		index efficient inefficient expensive copy copies buffer throughput`)},
	{pipeline.CategoryTests, keySet(`test tests testing untested coverage cover covered assert assertion mock fixture flaky regression table-driven spec`)},
	{pipeline.CategoryStyle, keySet(`name naming rename typo spelling style format formatting indentation readable readability comment doc docs documentation nit convention consistent
		consistency idiom idiomatic simplify simpler duplicate duplication dead unused wording import order whitespace refactor extract constant magic`)},
}

func keySet(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		for _, k := range text.KeyWords(w) {
			out[k] = true
		}
	}
	return out
}

// CategoryOf classifies a comment by its words (H5): security, correctness,
// performance, tests or style; correctness when no word tells.
func CategoryOf(comment string) pipeline.Category {
	found := text.KeyWords(comment)
	best, most := pipeline.CategoryCorrectness, 0
	for _, a := range about {
		n := 0
		for _, w := range found {
			if a.words[w] {
				n++
			}
		}
		if n > most {
			best, most = a.category, n
		}
	}
	return best
}
