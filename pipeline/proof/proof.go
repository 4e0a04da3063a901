// Package proof traces what was asked for to what shows it: requirement, criterion,
// test, commit. What an implementer names as a proof is a claim; only the tests that ran
// say what it is worth.
package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forge/pipeline/lazyregexp"
)

// Requirement is one thing that a task asks for.
type Requirement struct {
	ID    string `json:"id"` // "REQ1"
	Text  string `json:"text"`
	Quote string `json:"quote"` // the task's own words that it comes from
}

// Quoted reports whether a quote stands in a text: its words, in their order, whatever
// the white space, the case and the marks of an emphasis, a heading or a quote among them. It
// begins and ends where words do, where the script has such: "undelete rows" says not "delete rows".
func Quoted(in, quote string) bool {
	words, text := plain(quote), plain(in)
	if words == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], words)
		if at < 0 {
			return false
		}
		at += from
		if !splits(text, at) && !splits(text, at+len(words)) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

// splits reports whether a place in a text lies within a word; a hyphen is within it.
func splits(text string, at int) bool {
	before, size := utf8.DecodeLastRuneInString(text[:at])
	after, next := utf8.DecodeRuneInString(text[at:])
	if before == '-' {
		before, _ = utf8.DecodeLastRuneInString(text[:at-size])
	} else if after == '-' {
		after, _ = utf8.DecodeRuneInString(text[at+next:])
	}
	return inWord(before) && inWord(after)
}

// inWord reports whether a letter belongs to a script that parts words by spaces.
func inWord(c rune) bool {
	return (unicode.IsLetter(c) || unicode.IsDigit(c)) && !unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Says reports whether a text is a whole sentence of another, as Quoted reads them: a part of
// one may say the contrary.
func Says(in, text string) bool {
	want := strings.Trim(plain(text), ".!?; ")
	if want == "" {
		return false
	}
	for block := range strings.SplitSeq(blocks.ReplaceAllString(in, "\x00"), "\x00") {
		block = strings.Join(strings.Fields(block), " ")
		from := 0
		for _, at := range append(ends.FindAllStringSubmatchIndex(block, -1), []int{0, 0, len(block), 0}) {
			if strings.Trim(plain(block[from:at[2]]), ".!?; ") == want {
				return true
			}
			from = at[2]
		}
	}
	return false
}

// blocks part what stands apart from each other: paragraphs, items of a list, headings. A
// sentence ends where another begins, in a letter that is not small: neither in "1.5 s" nor
// behind "e.g." or "z. B.".
var (
	blocks = lazyregexp.New(`(?:^|\n)\s*(?:[-*+]|\d{1,2}[.)]|#+|>)\s+(?:\[[ xX]\]\s+)?|\n\s*\n`)
	ends   = lazyregexp.New(`[\p{L}\p{N})"']{2}[.!?]["')*_]*( )[^\p{Ll}]`)
)

func plain(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if strings.ContainsRune("*_`>#\"'“”‘’", c) {
			return -1
		}
		return c
	}, strings.ToLower(s))), " ")
}

// Claim is what an implementer says shows that a criterion is met.
type Claim struct {
	Criterion string   `json:"criterion"`        // its id
	Tests     []string `json:"tests,omitempty"`  // as the test runner names them
	Why       string   `json:"why,omitempty"`    // why no test can show it
	Commit    string   `json:"commit,omitempty"` // SHA of the work that came with the claim
}

// State is what became of a named test.
type State string

// The states of a test.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Flaky   State = "flaky"
	Pending State = "pending" // a promise's, whose other side is not there yet
	Skipped State = "skipped" // it, a case of it, or another one that its name stands for
	NotRun  State = "not run" // it is not there, or belongs to no suite that ran
)

// Trial is how the tests that passed, and that are named as proofs, do on the product code
// from before the change. Of those that are in neither list it is not known.
type Trial struct {
	Fails  []string `json:"fails,omitempty"`
	Passes []string `json:"passes,omitempty"`
	Why    string   `json:"why,omitempty"` // why it is not known
}

// Ran is what the tests of one head showed, by the names that their runners print.
type Ran struct {
	Passed, Failed, Flaky, Pending []string
	Skipped                        []string
	Before                         []string // that pass before the change, as they stood there
	Trial                          *Trial   // how they do without the change, as they are now; nil: by Before alone

	Same func(test, name string) bool // whether a name stands for a test
	Base func(test string) string     // a test's own name, without its package

	bases []string // of Passed, once they are needed
}

// is reports whether a claim names a test: by its name, or the end of it, not by the file
// or the package that it belongs to, which would name them all.
func (r *Ran) is(test, name string) bool {
	return r.Same(test, name) && (strings.HasSuffix(test, name) || strings.Contains(name, r.Base(test)))
}

// skipped returns what a name stands for that was skipped: tests of that name, and what
// is inside them. A test's whole name stands for that test alone.
func (r *Ran) skipped(name string) []string {
	known := func(tests []string) []string {
		return slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return !r.is(test, name) })
	}
	meant := slices.Concat(known(r.Passed), known(r.Skipped))
	if slices.Contains(meant, name) {
		meant = []string{name}
	}
	var out []string
	for _, test := range r.Skipped {
		if slices.ContainsFunc(meant, func(of string) bool { return test == of || inside(test, of) }) {
			out = append(out, test)
		}
	}
	return out
}

// inside reports whether a test is a case of another one: a subtest, or one of its sets of
// parameters.
func inside(test, of string) bool {
	rest, ok := strings.CutPrefix(test, of)
	return ok && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, " (") || strings.HasPrefix(rest, " ["))
}

// better are names that single out, of what a name stands for, tests that passed whole.
func (r *Ran) better(name string) []string {
	var out []string
	for _, test := range r.Passed {
		if len(out) < maxNamed && test != name && !slices.Contains(out, test) && (r.is(test, name) || inside(test, name)) && len(r.skipped(test)) == 0 {
			out = append(out, test)
		}
	}
	return out
}

// maxNamed are the most tests that a sentence names.
const maxNamed = 3

// Test is a named test, as it went.
type Test struct {
	Name   string
	State  State
	Why    string // of a skipped one: what was skipped, and what to name instead
	Before bool   // it passes without the change, too: alone it shows nothing that is new
	Unsure bool   // whether it does is not known
}

// Row is a criterion with what shows it.
type Row struct {
	Criterion, Text, For string // For is the requirement's id
	Tests                []Test
	Why, Commit          string
	unsure               string // why it is not known how tests do without the change
}

// Row holds a claim against what ran. A test that passes without the change counts only
// where said, the reviewer's evidence for the criterion, names it, too.
func (r *Ran) Row(c Claim, said string) Row {
	row := Row{Criterion: c.Criterion, Why: c.Why, Commit: c.Commit}
	if r.Trial != nil {
		row.unsure = r.Trial.Why
	}
	for _, name := range c.Tests {
		t := Test{Name: name, State: r.state(name)}
		if t.State == Skipped {
			t.Why = r.whySkipped(name)
		}
		if t.State == Passed && !Mentions(said, r.Base(name)) {
			t.Before, t.Unsure = r.before(name)
		}
		row.Tests = append(row.Tests, t)
	}
	return row
}

// before reports whether all that passed of a name does so without the change, too, or
// whether that is not known.
func (r *Ran) before(name string) (before, unsure bool) {
	for _, test := range r.Passed {
		switch {
		case !r.is(test, name):
		case r.Trial == nil && slices.Contains(r.Before, test), r.Trial != nil && slices.Contains(r.Trial.Passes, test):
		case r.Trial == nil, slices.Contains(r.Trial.Fails, test):
			return false, false
		default:
			unsure = true
		}
	}
	return !unsure, unsure
}

// state is the worst that became of the tests that a name stands for.
func (r *Ran) state(name string) State {
	for _, s := range []struct {
		state State
		tests []string
	}{{Failed, r.Failed}, {Flaky, r.Flaky}, {Skipped, r.skipped(name)}, {Pending, r.Pending}, {Passed, r.Passed}} {
		if s.state == Skipped && len(s.tests) > 0 {
			return Skipped
		}
		if slices.ContainsFunc(s.tests, func(test string) bool { return r.is(test, name) }) {
			return s.state
		}
	}
	return NotRun
}

// whySkipped says what of a name was skipped, and which name would do.
func (r *Ran) whySkipped(name string) string {
	gone := r.skipped(name)
	why := name
	if more := len(gone) - maxNamed; len(gone) > 1 || gone[0] != name {
		why += " (" + strings.Join(gone[:min(len(gone), maxNamed)], ", ")
		if more > 0 {
			why += fmt.Sprintf(" and %d more", more)
		}
		why += ")"
	}
	if better := r.better(name); len(better) > 0 {
		return why + ": name what passed more exactly, as " + strings.Join(better, ", ")
	}
	return why
}

// Mentions reports whether a name stands in a text as a word of its own.
func Mentions(said, name string) bool {
	at := 0
	for {
		i := strings.Index(said[at:], name)
		if i < 0 || name == "" {
			return false
		}
		from, to := at+i, at+i+len(name)
		if !within(said, from-1) && !within(said, to) {
			return true
		}
		at = to
	}
}

func within(s string, i int) bool {
	return i >= 0 && i < len(s) && (s[i] == '_' || s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
}

// maxFound are the most tests that a text is taken to name.
const maxFound = 10

// Found returns the tests that a text names, of those that passed: what a reviewer's
// evidence is worth where nobody claimed anything. A bare everyday word is no name.
func (r *Ran) Found(said string) []string {
	if said == "" {
		return nil
	}
	if r.bases == nil {
		for _, test := range r.Passed {
			base := r.Base(test)
			if len(base) > 5 && (strings.ContainsAny(base, "_0123456789 ") || strings.ToLower(base[1:]) != base[1:]) {
				r.bases = append(r.bases, base)
			}
		}
	}
	var out []string
	for _, base := range r.bases {
		if len(out) < maxFound && Mentions(said, base) && !slices.Contains(out, base) {
			out = append(out, base)
		}
	}
	return out
}

// Lacks says in a sentence what a criterion lacks to be proved: a named test that is new,
// and none that did not pass. "" when nothing is missing.
func (r Row) Lacks() string {
	lacks, _ := r.lacks()
	return lacks
}

// Unsure reports whether a criterion lacks nothing but that it is not known how its tests
// do without the change.
func (r Row) Unsure() bool {
	_, unsure := r.lacks()
	return unsure
}

func (r Row) lacks() (says string, unsure bool) {
	var missing, failed, skipped []string
	fresh := false
	for _, t := range r.Tests {
		switch t.State {
		case Passed, Pending:
			fresh = fresh || !t.Before && !t.Unsure
			unsure = unsure || t.Unsure
		case Skipped:
			skipped = append(skipped, t.Why)
		case NotRun:
			missing = append(missing, t.Name)
		default:
			failed = append(failed, t.Name+" ("+string(t.State)+")")
		}
	}
	switch {
	case len(r.Tests) == 0 && r.Why != "":
		return "no test shows it: " + strings.Join(strings.Fields(r.Why), " "), false
	case len(r.Tests) == 0:
		return "no test is named that shows it", false
	case len(failed) > 0:
		return "did not pass: " + strings.Join(failed, ", "), false
	case len(skipped) > 0:
		return "was skipped, in whole or in part: " + strings.Join(skipped, "; "), false
	case len(missing) > 0:
		return "did not run on this head: " + strings.Join(missing, ", "), false
	case !fresh && unsure:
		says = "not shown: it is not known whether it fails without the change: " + strings.Join(r.names(), ", ")
		if r.unsure != "" {
			says += " (" + r.unsure + ")"
		}
		return says, true
	case !fresh:
		return "passes without the change, too, and the reviewer does not name it: " + strings.Join(r.names(), ", "), false
	}
	return "", false
}

func (r Row) names() []string {
	var out []string
	for _, t := range r.Tests {
		out = append(out, t.Name)
	}
	return out
}

// String is what shows a criterion, for people: its tests, and what they lack.
func (r Row) String() string {
	var parts []string
	for _, t := range r.Tests {
		s := "`" + strings.ReplaceAll(t.Name, "`", "'") + "` " + string(t.State)
		if t.Before {
			s += ", as it does without the change"
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return r.Lacks()
	}
	out := strings.Join(parts, "; ")
	if r.Commit != "" {
		out += fmt.Sprintf(" (since %s)", r.Commit[:min(len(r.Commit), 7)])
	}
	return out
}

// Merge adds claims to earlier ones: the newest of a criterion stands.
func Merge(before, more []Claim) []Claim {
	out := slices.Clone(before)
	for _, c := range more {
		if i := slices.IndexFunc(out, func(o Claim) bool { return o.Criterion == c.Criterion }); i >= 0 {
			if slices.Equal(out[i].Tests, c.Tests) {
				c.Commit = cmp.Or(out[i].Commit, c.Commit)
			}
			out[i] = c
			continue
		}
		out = append(out, c)
	}
	return out
}

// Covered says what the requirements of a plan lack: a quote that stands in the task, and
// a criterion; fors are the requirements that the criteria name, by criterion.
func Covered(task string, list []Requirement, fors map[string]string) []string {
	var bad []string
	seen := map[string]bool{}
	for _, r := range list {
		switch {
		case r.ID == "" || r.Text == "":
			bad = append(bad, fmt.Sprintf("requirements: %q lacks its id or its text", cmp.Or(r.ID, r.Text)))
		case seen[r.ID]:
			bad = append(bad, fmt.Sprintf("requirements: %s occurs twice", r.ID))
		case !Quoted(task, r.Quote):
			bad = append(bad, fmt.Sprintf("requirements: the quote of %s, %q, does not stand in the task: quote its words as they are", r.ID, r.Quote))
		}
		seen[r.ID] = true
	}
	for id := range seen {
		met := id == ""
		for _, of := range fors {
			met = met || of == id
		}
		if !met {
			bad = append(bad, fmt.Sprintf("requirements: no criterion is for %s", id))
		}
	}
	for criterion, of := range fors {
		if of != "" && !seen[of] {
			bad = append(bad, fmt.Sprintf("criteria: %s is for %q, which is no requirement", criterion, of))
		}
	}
	slices.Sort(bad)
	return bad
}
