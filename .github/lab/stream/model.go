package stream

import (
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// Model is what is assumed about a team and its reviewer. Shares are 0 to 1.
type Model struct {
	Name string `json:"name"`
	What string `json:"what"` // in which it differs, for people

	// The team.
	People    int     `json:"people"`    // the first has the word of a maintainer (1), every third of triage (0.4), the others of writers (0.8)
	Mistakes  float64 `json:"mistakes"`  // of what a person wants, dismissed all the same; and of the rest, acted on
	Reasons   float64 `json:"reasons"`   // of dismissals, with a reason in words
	Quiet     float64 `json:"quiet"`     // of wanted findings that block nothing, left as they are without a word
	Personal  int     `json:"personal"`  // rules that one person dismisses and the others want
	Change    float64 `json:"change"`    // at which share of the stream half of the preferences turn round; 0: never
	Tastes    int     `json:"tastes"`    // how many of the preferences (see tastes) the team has
	Remarks   float64 `json:"remarks"`   // of pull requests, in which people say what the reviewer did not
	OtherEyes float64 `json:"othereyes"` // of findings, answered by another person than the author
	Wordings  int     `json:"wordings"`  // ways to say a thing that the team does not want to hear, whatever the rule
	Names     int     `json:"names"`     // names in code of which the team wants to hear nothing that blocks no merge
	Persons   bool    `json:"persons"`   // each person has tastes of their own, and nobody shares them
	Weekly    bool    `json:"weekly"`    // the preferences hold every other week
	Tidy      float64 `json:"tidy"`      // of findings, resolved in silence before the merge by somebody who has not looked at them
	Elsewhere float64 `json:"elsewhere"` // of wanted findings, mended in another place and resolved in silence

	// The reviewer.
	Findings float64 `json:"findings"` // of a pull request, the mean
	False    float64 `json:"false"`    // of findings that block nothing, wrong
	Alarms   float64 `json:"alarms"`   // of a pull request, the mean: errors reported that are none
	Ruled    float64 `json:"ruled"`    // of findings, with a rule's name
	Reworded float64 `json:"reworded"` // of reviews of the same lines, in other words
	Telling  float64 `json:"telling"`  // how many standard deviations apart the confidences of right and wrong findings are
	Planted  float64 `json:"planted"`  // of pull requests, with a true error
}

// base is the model that the others differ from. The figures are judgement, not
// measurement: they say what a result holds for.
func base() Model {
	return Model{Name: "base", What: "five people, seven preferences, a middling reviewer", People: 5, Mistakes: 0.03, Reasons: 0.6,
		Quiet: 0.2, Tastes: len(tastes), Remarks: 0.15,
		OtherEyes: 0.3, Findings: 5, False: 0.15, Alarms: 0.06, Ruled: 0.8, Reworded: 0.2, Telling: 1.5, Planted: 0.7}
}

// Models are the teams and reviewers that are played.
func Models() []Model {
	with := func(name, what string, change func(*Model)) Model {
		m := base()
		m.Name, m.What = name, what
		change(&m)
		return m
	}
	hard := func(name, what string, change func(*Model)) Model {
		return with(name, what, func(m *Model) { m.Tastes = 0; change(m) })
	}
	return []Model{
		base(),
		with("small", "two people", func(m *Model) { m.People = 2 }),
		with("divided", "nine people; three rules that one dismisses and the others want", func(m *Model) { m.People, m.Personal = 9, 3 }),
		with("hasty", "10 % mistakes, one dismissal in four has a reason", func(m *Model) { m.Mistakes, m.Reasons = 0.1, 0.25 }),
		with("changing", "half of the preferences turn round at 50 %", func(m *Model) { m.Change = 0.5 }),
		with("content", "three preferences", func(m *Model) { m.Tastes = 3 }),
		with("wordy", "rules for 40 %, half of what is said again in other words", func(m *Model) { m.Ruled, m.Reworded = 0.4, 0.5 }),
		with("settled", "fixed preferences, a reviewer of known kinds: 1 % mistakes, 3 % of findings wrong, no false alarm, rules for all",
			func(m *Model) { m.Mistakes, m.False, m.Alarms, m.Ruled = 0.01, 0.03, 0, 1 }),
		with("wrong", "30 % of findings wrong, and confidence says little", func(m *Model) { m.False, m.Telling = 0.3, 0.7 }),
		hard("wording", "what is said in one of seven ways is not wanted, whatever its rule; no rules are named",
			func(m *Model) { m.Wordings, m.Ruled, m.Reworded = 7, 0, 0.5 }),
		hard("names", "nothing is wanted about code that names one of eight things", func(m *Model) { m.Names = 8 }),
		hard("persons", "each person has three tastes that nobody shares", func(m *Model) { m.Persons, m.OtherEyes = true, 0.1 }),
		with("weekly", "the preferences hold every other week", func(m *Model) { m.Weekly = true }),
		with("silent", "90 % of findings are resolved in silence, most of the others' work is done elsewhere", func(m *Model) { m.Tidy, m.Elsewhere = 0.9, 0.6 }),
		with("opposite", "two persons who want the opposite of each other", func(m *Model) { m.People, m.Persons, m.OtherEyes, m.Tastes = 2, true, 0.5, 0 }),
	}
}

// topic is what a reviewer remarks on: where it may is recognised by real lines.
type topic struct {
	rule     string
	category pipeline.Category
	severity pipeline.Severity
	tests    int // 0: anywhere; 1: in tests alone; -1: not in tests
	match    *lazyregexp.Regexp
	without  *lazyregexp.Regexp // in the line before
	fix      string             // of the matched line, as a template of match; empty: no suggestion
	messages []string           // %s is the name in the first group
}

var topics = []topic{
	{"doc-comment", pipeline.CategoryStyle, pipeline.SeverityInfo, 0, lazyregexp.New(`^(?:func (?:\([^)]*\) )?|type )([A-Z]\w*)`),
		lazyregexp.New(`^//`), "// $1 …\n$0",
		[]string{"The exported name %s has no doc comment", "Exported %s lacks a doc comment that says what it does", "Add a doc comment to the exported name %s"}},
	{"doc-comment", pipeline.CategoryStyle, pipeline.SeverityInfo, 0, lazyregexp.New(`^(?:func (?:\([^)]*\) )?|type )([a-z]\w*)`),
		lazyregexp.New(`^//`), "// $1 …\n$0",
		[]string{"The name %s has no doc comment", "%s lacks a doc comment that says what it does", "Add a doc comment to the name %s"}},
	{"short-name", pipeline.CategoryStyle, pipeline.SeverityInfo, 0, lazyregexp.New(`^\s+([a-z]{1,2})(?:, \w+)? :=`), nil, "",
		[]string{"The variable %s has a name that says little", "Name the variable %s after what it holds", "A longer name than %s would make this readable"}},
	{"line-length", pipeline.CategoryStyle, pipeline.SeverityInfo, 0, lazyregexp.New(`^.{100,}$`), nil, "",
		[]string{"This line is long: break it", "The line is too long to read: break it into several", "Break this long line"}},
	{"magic-number", pipeline.CategoryStyle, pipeline.SeverityWarning, 0, lazyregexp.New(`[^\w."'](\d{2,6})[^\w"'.]`), nil, "",
		[]string{"The number %s should be a named constant", "Magic number %s: name it as a constant", "Give the literal number %s the name of a constant"}},
	{"table-test", pipeline.CategoryTests, pipeline.SeverityInfo, 1, lazyregexp.New(`^func (Test\w+)`), nil, "",
		[]string{"%s would read better as a table-driven test", "Write %s as a table-driven test", "Consider a table-driven test for %s"}},
	{"untested", pipeline.CategoryTests, pipeline.SeverityWarning, -1, lazyregexp.New(`^func (?:\([^)]*\) )?(\w+)`), nil, "",
		[]string{"No test covers the changed function %s", "The changed function %s has no test", "Add a test that covers the change of %s"}},
	{"wrap-error", pipeline.CategoryCorrectness, pipeline.SeverityWarning, 0, lazyregexp.New(`^(\s*return .*)\berr$`), nil, "${1}fmt.Errorf(\"…: %w\", err)",
		[]string{"The error is returned without context: wrap it", "Wrap the returned error with context", "Returned as it is, this error says no context"}},
	{"ignored-error", pipeline.CategoryCorrectness, pipeline.SeverityWarning, 0,
		lazyregexp.New(`^(\s*)(?:_, _ |_ |defer )?:?=? ?(\w[\w.]*\.Close\(\)|\w[\w.]*\(.*\))$`), nil,
		"${1}if err := $2; err != nil {\n${1}\treturn err\n${1}}",
		[]string{"The error that this call returns is ignored", "This call's returned error is not checked", "Check the error returned by this call"}},
	{"nil-check", pipeline.CategoryCorrectness, pipeline.SeverityWarning, 0, lazyregexp.New(`\b(\w+)\.\w+\.\w+`), nil, "",
		[]string{"%s may be nil here", "Check %s for nil before its field is used", "A nil %s would panic on this line"}},
	{"allocation", pipeline.CategoryPerformance, pipeline.SeverityInfo, 0, lazyregexp.New(`^\s*(\w+) = append\(\w+,|\+ string\(|fmt\.Sprintf?\(`), nil, "",
		[]string{"This allocates on every call", "An allocation on each call could be avoided here", "Avoid the allocation that every call makes here"}},
	{"complexity", pipeline.CategoryStyle, pipeline.SeverityWarning, 0, lazyregexp.New(`^\t{4,}(?:if|for|switch) `), nil, "",
		[]string{"This is nested deeply: extract a function", "Extract a function: the nesting here is deep",
			"Deep nesting: extract what is inside into a function"}},
}

// A taste is something that a team does not want to hear. Of its place, "" is
// everywhere, "tests" files of tests, "folder" one folder of the repository.
type taste struct {
	rule     string // either
	category pipeline.Category
	hidden   bool // of names alone that others cannot see
	place    string
}

func (t taste) of(f *pipeline.Finding, rule, folder string) bool {
	switch {
	case t.rule != "" && t.rule != rule, t.category != "" && t.category != f.Category:
		return false
	case t.hidden && !hiddenName.MatchString(f.Code):
		return false
	case t.place == "tests":
		return isTest(f.File)
	case t.place == "folder":
		return strings.HasPrefix(f.File, folder+"/") || !strings.Contains(f.File, "/") && folder == "."
	}
	return true
}

var hiddenName = lazyregexp.New(`^(?:func (?:\([^)]*\) )?|type )[a-z]`)

// tastes are the preferences, in the order in which teams have them.
var tastes = []taste{
	{category: pipeline.CategoryStyle, place: "tests"},
	{rule: "doc-comment", hidden: true},
	{rule: "short-name"},
	{rule: "wrap-error", place: "folder"},
	{rule: "magic-number", place: "folder"},
	{rule: "ignored-error", place: "tests"},
	{rule: "allocation"},
}

// personal are the rules that single persons dismiss.
var personal = []string{"untested", "nil-check", "complexity"}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }

// A defect is what a pull request breaks: found breaks the line to broken.
type defect struct {
	rule     string
	category pipeline.Category
	severity pipeline.Severity
	found    *lazyregexp.Regexp
	broken   string
	message  string
}

var defects = []defect{
	{"inverted-condition", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(`err != nil`), "err == nil",
		"The condition is the wrong way round: the error is let through"},
	{"off-by-one", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(` < (len\()`), " <= ${1}", "The index runs one past the end"},
	{"swallowed-error", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(`return (.*)\berr$`), "return ${1}nil",
		"The error is swallowed: the caller goes on as if nothing had happened"},
	{"path-traversal", pipeline.CategorySecurity, pipeline.SeverityCritical, lazyregexp.New(`filepath\.Join\(`), "path.Join(\"/\", ",
		"A name from outside leads out of the folder"},
	{"injection", pipeline.CategorySecurity, pipeline.SeverityCritical, lazyregexp.New(`%q`), "%s", "Text from outside goes into a command unquoted"},
	{"lost-update", pipeline.CategoryCorrectness, pipeline.SeverityCritical,
		lazyregexp.New(`^(\s*)(.*)\bdefer (\w+(?:\.\w+)*)\.Unlock\(\)`), "${1}${3}.Unlock()",
		"The lock is given back before the update: writes are lost"},
	{"inverted-condition", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(`&&`), "||",
		"The condition holds when one half alone does: the wrong branch is taken"},
	{"nil-check", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(`if (\w+) == nil`), "if ${1} != nil",
		"The check for nil is the wrong way round: a nil value panics"},
	{"inverted-condition", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(` == `), " != ", "The comparison is the wrong way round"},
	{"swallowed-error", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(`return (\w+)$`), "_ = ${1}; return",
		"What was computed is dropped: the caller gets the zero value"},
	{"wrap-error", pipeline.CategoryCorrectness, pipeline.SeverityError, lazyregexp.New(`%w`), "%v",
		"The error is returned without what callers test for: wrap it"},
}

// remarks are what people say where the reviewer says nothing.
var remarks = []string{
	"Please log which repository this was about, at info level.",
	"The timeout should come from the settings, not from the code.",
	"We return errors to the caller here and never panic.",
	"This needs an entry in the change log.",
}

// reasons are what people say when they dismiss.
var reasons = []string{"we do not do that here", "not worth it", "this is on purpose", "no, see the other files in this folder", "noise"}
