package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lens"
	"forge/pipeline/measure"
	"forge/pipeline/module"
	"forge/pipeline/proof"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// Plan is what the planner made of the task.
type Plan struct {
	Summary  string      `json:"summary"`
	Steps    []string    `json:"steps"`
	Criteria []Criterion `json:"criteria"`
	Files    []string    `json:"files,omitempty"` // expected to change
	Risks    []string    `json:"risks,omitempty"`
	Tests    []string    `json:"tests,omitempty"`    // tests that fail at the base and that the task is about: they must pass
	Question string      `json:"question,omitempty"` // what a human must answer before work can start
	Options  []string    `json:"options,omitempty"`  // the answers to choose from
	Related  []string    `json:"related,omitempty"`  // how the issue stands to others, a line each

	Split   *module.Split `json:"split,omitempty"`    // the modules that are built at the same time; nil: it is built in one piece
	Unsplit string        `json:"unsplit,omitempty"`  // why a split that was proposed was dropped
	LeftOut []Criterion   `json:"left_out,omitempty"` // criteria of modules that are left out, and known limitations: nobody checks them

	Requirements []proof.Requirement `json:"requirements,omitempty"` // what the task asks for, where loop.proofs or the track wants them

	Excerpts []Excerpt `json:"excerpts,omitempty"` // what the planner read of the files; the implementer is shown it
}

// Excerpt is a part of a file at the run's base.
type Excerpt struct {
	File string `json:"file"`
	From int    `json:"from,omitempty"` // the first line; 0: of the file
	To   int    `json:"to,omitempty"`   // the last line; 0: of the file
}

// Criterion is one acceptance criterion.
type Criterion struct {
	ID   string `json:"id"` // "AC1"
	Text string `json:"text"`
	For  string `json:"for,omitempty"` // the requirement's id
	By   string `json:"by,omitempty"`  // of one that nobody checks: the login of who made it a known limitation
}

// Implementation is what the implementer reports, with the commit that Forge made of it.
type Implementation struct {
	Summary   string    `json:"summary"`
	Addressed []string  `json:"addressed,omitempty"` // one line for each finding or failure that was dealt with
	Files     []string  `json:"files"`               // paths that changed
	Locked    []string  `json:"locked,omitempty"`    // lock files among them that package managers wrote for it
	Parent    string    `json:"parent"`              // SHA the work started from
	Head      string    `json:"head"`                // SHA of the commit; equal to Parent when nothing changed
	Unable    string    `json:"unable,omitempty"`    // "unable to fix X: needs clarification" (V5)
	Contract  string    `json:"contract,omitempty"`  // of a module: what the contract must say in another way, and why
	Doubts    []string  `json:"doubts,omitempty"`    // one line for each issue that has come back and may not be mended by this either: which, and what is missing
	Disputes  []Dispute `json:"disputes,omitempty"`  // findings that the implementer holds for mistaken
	Anew      bool      `json:"anew,omitempty"`      // nothing changed, and the head is another one than was sent back: it is for the reviewer

	Proofs []proof.Claim `json:"proofs,omitempty"` // the tests that show the criteria, where loop.proofs wants them

	Constraints []upstream.Ask `json:"constraints,omitempty"` // what cannot be as it is planned, where the settings want to hear of it
}

// Severity is how bad a finding is. Only Error and Critical block (B3).
type Severity string

// The severities, from harmless to worst.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityError    Severity = "error"
	SeverityCritical Severity = "critical"
)

// Rank orders severities; 0 is none that exists.
func (s Severity) Rank() int {
	switch s {
	case SeverityInfo:
		return 1
	case SeverityWarning:
		return 2
	case SeverityError:
		return 3
	case SeverityCritical:
		return 4
	}
	return 0
}

// Blocks reports whether a finding of this severity sends the work back. An
// unknown severity blocks: what cannot be judged is not approved.
func (s Severity) Blocks() bool { r := s.Rank(); return r == 0 || r >= SeverityError.Rank() }

// Category is what a finding, and what is learned from it, is about. Models write it,
// too: one that is not among the constants is kept as it is, and sent to nobody.
type Category string

// The categories. The first seven are what a learning can be of; the others send the
// work back to the plan or to the research.
const (
	CategoryStyle       Category = "style"
	CategorySecurity    Category = "security"
	CategoryCorrectness Category = "correctness"
	CategoryPerformance Category = "performance"
	CategoryCompliance  Category = "compliance" // an acceptance criterion is not met
	CategoryTests       Category = "tests"
	CategoryHuman       Category = "human" // a person asked for it

	CategoryRequirements  Category = "requirements"
	CategoryUnderstanding Category = "understanding"
	CategoryInformation   Category = "information"
	CategoryArchitecture  Category = "architecture"
	CategoryDesign        Category = "design"
	CategoryApproach      Category = "approach"
)

// Categories returns those that a learning can be of.
func Categories() []Category {
	return []Category{
		CategoryStyle, CategorySecurity, CategoryCorrectness, CategoryPerformance, CategoryCompliance, CategoryTests, CategoryHuman,
	}
}

// Finding is something that a review or a rule has to say about the change.
type Finding struct {
	ID          string   `json:"id"`          // within its review, "F1"
	Fingerprint string   `json:"fingerprint"` // its identity across iterations; see Digest
	Severity    Severity `json:"severity"`
	Category    Category `json:"category"`
	Rule        string   `json:"rule,omitempty"`
	Message     string   `json:"message"`
	File        string   `json:"file,omitempty"`
	Line        int      `json:"line,omitempty"`     // in the new file, from 1; 0 for the whole file
	EndLine     int      `json:"end_line,omitempty"` // last line it is about; 0 when it is Line alone
	Code        string   `json:"code,omitempty"`     // the lines it is about, as they stood at the reviewed head
	Confidence  float64  `json:"confidence"`         // 0 to 1
	Fixable     bool     `json:"fixable"`
	Fix         *Fix     `json:"fix,omitempty"`
	Criterion   string   `json:"criterion,omitempty"` // the acceptance criterion that is not met (stage 1)
	Lens        string   `json:"lens,omitempty"`      // through which it was seen, where the general review did not see it
	Asked       float64  `json:"asked,omitempty"`     // share of findings like it that is posted although people would dismiss them; 0: it is none
	Review      int64    `json:"review,omitempty"`    // of what a person asks for: id of their review; 0 for words that came by another way
	Comment     int64    `json:"comment,omitempty"`   // id of its comment on the diff; 0: it is the text of the review
}

// Fix is a suggested change. Replacement, when set, replaces exactly the lines
// Line to EndLine of the finding's file; it was tried before it got here.
type Fix struct {
	Description string  `json:"description"`
	Replacement *string `json:"replacement,omitempty"`
	Diff        string  `json:"diff,omitempty"`
}

// Files are those that the diff of a suggested fix changes.
func (f *Fix) Files() []string {
	if f == nil {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(f.Diff, "\n") {
		if name, ok := strings.CutPrefix(line, "+++ "); ok {
			name, _, _ = strings.Cut(name, "\t")
			out = append(out, strings.TrimPrefix(name, "b/"))
		}
	}
	return out
}

// Compliance is a reviewer's answer for one acceptance criterion.
type Compliance struct {
	Criterion string `json:"criterion"` // its id
	Met       bool   `json:"met"`
	Evidence  string `json:"evidence,omitempty"` // the test or the code that shows it
	Unshown   string `json:"unshown,omitempty"`  // of one that is met: why its evidence shows nothing
}

// Review is the result of a review phase. Its verdict is computed, never taken
// from the model's words: see Blocking.
type Review struct {
	Head        string              `json:"head"` // the reviewed SHA
	Summary     string              `json:"summary"`
	Compliance  []Compliance        `json:"compliance"`
	Findings    []Finding           `json:"findings"`
	Risk        int                 `json:"risk"`                   // 0 to 100
	NeedsHuman  string              `json:"needs_human,omitempty"`  // why a human must look, when one must
	SendTo      Target              `json:"send_to,omitempty"`      // where the reviewer would send it; counts where the categories leave it open (R2)
	Reviewed    []string            `json:"reviewed"`               // paths
	NotReviewed []Skipped           `json:"not_reviewed,omitempty"` // said, never silent
	Suppressed  []SuppressedFinding `json:"held,omitempty"`         // findings that were not posted because of what people did before
	Ruled       bool                `json:"ruled,omitempty"`        // the reviewer was shown what was open and ruled on it; else what it has read and does not list is fixed
	Rulings     []Ruling            `json:"rulings,omitempty"`      // on findings that were open before this review
	Back        []string            `json:"back,omitempty"`         // fingerprints of what was fixed and whose code is at this head what it was
	Uncovered   []upstream.Ask      `json:"uncovered,omitempty"`    // what the task asks for and no criterion has, where the settings want to hear of it
	Views       []lens.View         `json:"views,omitempty"`        // what came of the lenses that the settings name
}

// Unread reports whether nobody read anything of the change: its model is asked for code alone.
func (r *Review) Unread() bool { return !r.Ruled && len(r.Reviewed) == 0 && len(r.NotReviewed) > 0 }

// Unread reports whether nobody read anything of the change as it is now.
func (r *Run) Unread() bool {
	it := r.Current()
	return it != nil && it.Review != nil && it.Review.Unread()
}

// SuppressedFinding is a finding that was not posted, and why.
type SuppressedFinding struct {
	Finding  Finding `json:"finding"`
	Why      string  `json:"why"`                // for people
	Learning int64   `json:"learning,omitempty"` // because of which one; 0: by prediction

	// Of a dismissal: who, when and where. What blocks is let pass in that person's name.
	By      Actor     `json:"by,omitzero"`
	At      time.Time `json:"at,omitzero"`
	Pull    int       `json:"pull,omitempty"`
	Comment int64     `json:"comment,omitempty"`
}

// String says what was held back, where, and why, in a line.
func (h SuppressedFinding) String() string {
	where := ""
	if h.Finding.File != "" {
		where = fmt.Sprintf(" in %s:%d", h.Finding.File, h.Finding.Line)
	}
	message := text.FirstLine(h.Finding.Message)
	text := fmt.Sprintf("%s%s, %q, because %s", h.Finding.Category, where, message, h.Why)
	if h.Learning != 0 {
		text += fmt.Sprintf(" (learning %d)", h.Learning)
	}
	return text
}

// Skipped is something that was left out, and why.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Blocking returns the findings that send the work back.
func (r *Review) Blocking() []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Severity.Blocks() {
			out = append(out, f)
		}
	}
	return out
}

// TestReport is the result of a test phase.
type TestReport struct {
	Head     string    `json:"head"` // the tested SHA
	Suites   []Suite   `json:"suites"`
	Total    int       `json:"total"`
	Passed   int       `json:"passed"`
	Failed   int       `json:"failed"` // consistently; the flaky ones are in Flaky
	Skipped  int       `json:"skipped"`
	Failures []Failure `json:"failures,omitempty"`
	Flaky    []string  `json:"flaky,omitempty"` // failed, then passed when run again (V3)
	Names    []string  `json:"names,omitempty"` // tests that passed, sorted; to tell regressions (V2)
	Coverage *Coverage `json:"coverage,omitempty"`
	Tampered []Finding `json:"tampered,omitempty"` // tests removed, skipped or weakened since the base (lessons 16)
	None     string    `json:"none,omitempty"`     // why nothing could be tested; then nothing is verified

	Pending  []string     `json:"pending,omitempty"`  // of a module: tests of promises that fail, and may until both sides of them are merged; they count neither as passed nor as failed
	Setup    []string     `json:"setup,omitempty"`    // what was installed before the tests ran, what could not be, and what of that the change edits
	Accepted []string     `json:"accepted,omitempty"` // tests that fail, and that a person took so with a module
	Before   []Failure    `json:"before,omitempty"`   // failed before the work began and fail still; neither passed nor flaky
	Changed  []TestChange `json:"changed,omitempty"`  // tests of the base that pass only as the change edited them, each with the reviewer's reason
	Unclean  string       `json:"unclean,omitempty"`  // why a suite could not run, or did not end well although no test failed; then nothing is verified

	Skips    []string         `json:"skips,omitempty"`    // tests that were skipped, where tests are named as proofs
	Trial    *proof.Trial     `json:"trial,omitempty"`    // how those do without the change
	Measures []measure.Result `json:"measures,omitempty"` // of the gates of quality, once the tests have passed
}

// OK reports whether the tests passed: something ran and ended well, and nothing
// failed but what a named person knows of.
func (t *TestReport) OK() bool {
	return t.None == "" && t.Unclean == "" && t.Passed > 0 && len(t.Failures) == 0 && len(t.Tampered) == 0 && len(t.Unknown()) == 0
}

// Add takes in what else was found at the same head: failures, suspicions and edited
// tests that are not in the report yet, and why a suite did not end well.
func (t *TestReport) Add(more *TestReport) {
	for _, f := range more.Failures {
		if slices.ContainsFunc(t.Failures, func(o Failure) bool { return o.Test == f.Test }) {
			continue
		}
		was := len(t.Before)
		t.Before = slices.DeleteFunc(slices.Clone(t.Before), func(o Failure) bool { return o.Test == f.Test })
		if n := slices.Index(t.Names, f.Test); was > len(t.Before) { // it is counted
		} else if n >= 0 {
			t.Names = slices.Delete(slices.Clone(t.Names), n, n+1)
			t.Passed--
		} else {
			t.Total++
		}
		t.Failed++
		t.Failures = append(t.Failures, f)
	}
	for _, f := range more.Tampered {
		if !slices.ContainsFunc(t.Tampered, func(o Finding) bool { return o.Fingerprint == f.Fingerprint }) {
			t.Tampered = append(t.Tampered, f)
		}
	}
	for _, c := range more.Changed {
		if !slices.ContainsFunc(t.Changed, func(o TestChange) bool { return o.Test == c.Test }) {
			t.Changed = append(t.Changed, c)
		}
	}
	t.Unclean = cmp.Or(t.Unclean, more.Unclean)
}

// Defer puts aside the failures of tests that cannot pass here: they count neither as
// passed nor as failed.
func (t *TestReport) Defer(test func(name string) bool) {
	pending := func(f Failure) bool {
		is := test(f.Test)
		if is && !slices.Contains(t.Pending, f.Test) {
			t.Pending = append(t.Pending, f.Test)
		}
		return is
	}
	before := len(t.Failures)
	t.Failures = slices.DeleteFunc(slices.Clone(t.Failures), pending)
	t.Failed -= before - len(t.Failures)
	t.Before = slices.DeleteFunc(slices.Clone(t.Before), pending)
	for _, name := range t.Flaky { // what passed by luck shows no promise
		if pending(Failure{Test: name}) {
			t.Passed--
			t.Names = slices.DeleteFunc(slices.Clone(t.Names), func(n string) bool { return n == name })
		}
	}
	t.Flaky = slices.DeleteFunc(slices.Clone(t.Flaky), test)
}

// SameError reports whether a failure of the test is the one that was called known.
func (k KnownFailure) SameError(f *Failure) bool { return k.Error == f.ErrorKey() }

// Accept takes failures out that a person took with a module: they still count as
// failed. One that fails in another way by now is none of them.
func (t *TestReport) Accept(known map[string]KnownFailure) {
	t.Failures = slices.DeleteFunc(slices.Clone(t.Failures), func(f Failure) bool {
		k, is := known[f.Test]
		is = is && k.SameError(&f)
		if is && !slices.Contains(t.Accepted, f.Test) {
			t.Accepted = append(t.Accepted, f.Test)
		}
		return is
	})
}

// Unknown returns the failures from before the work that nobody has called known.
func (t *TestReport) Unknown() []Failure {
	var out []Failure
	for _, f := range t.Before {
		if f.KnownBy == "" {
			out = append(out, f)
		}
	}
	return out
}

// Suite is one command that ran tests.
type Suite struct {
	Name     string `json:"name"`    // "go test", or the name given in the configuration
	Command  string `json:"command"` //
	Exit     int    `json:"exit"`
	Millis   int64  `json:"ms"`
	TimedOut bool   `json:"timed_out,omitempty"`
	NotRun   string `json:"not_run,omitempty"` // why it could not run: what is missing on the server
	Tier     string `json:"tier,omitempty"`    // TierIntegration, TierSystem; "": the repository's tests
}

// Coverage is in per cent of statements or lines; a value under 0 is not known.
type Coverage struct {
	Lines    float64 `json:"lines"`
	Branches float64 `json:"branches"`
	Changed  float64 `json:"changed"` // of the changed lines alone

	Threshold float64       `json:"threshold,omitempty"` // of the settings, tests.coverage; 0: none
	Under     []CoverageGap `json:"under,omitempty"`     // what is below it, that which the change touches first, then the least covered
	More      int           `json:"more,omitempty"`      // how many more there are
}

// CoverageGap is a file, or a function, that is covered less than it should be.
type CoverageGap struct {
	File     string  `json:"file"`
	Function string  `json:"function,omitempty"` // "Type.Method" for a method; "" for the whole file
	Line     int     `json:"line,omitempty"`     // of the function
	Lines    float64 `json:"lines"`              // per cent of its statements or lines
	Changed  bool    `json:"changed,omitempty"`  // the change touches it
}

// Failure is one failing test, or a build that broke.
type Failure struct {
	Fingerprint string  `json:"fingerprint"`
	Test        string  `json:"test"`           // name, with its package or file
	File        string  `json:"file,omitempty"` //
	Line        int     `json:"line,omitempty"`
	Error       string  `json:"error"`                // the message, shortened
	Cause       string  `json:"cause,omitempty"`      // logic, syntax, runtime, flaky, env (B4)
	Analysis    string  `json:"analysis,omitempty"`   // the root cause in a sentence
	Confidence  float64 `json:"confidence,omitempty"` // in the analysis, 0 to 1
	Fix         *Fix    `json:"fix,omitempty"`        //
	WorkedIn    int     `json:"worked_in,omitempty"`  // the iteration in which it last passed: a regression (V2)
	Whole       bool    `json:"whole,omitempty"`      // it stands for a build, a file or a suite that broke, not for one test
	Against     string  `json:"against,omitempty"`    // the criterion whose contrary the test asks for, by the tester's word
	KnownBy     string  `json:"known_by,omitempty"`   // of a failure from before the work: the login of who said that it is known, or "settings"
	KnownFor    string  `json:"known_for,omitempty"`  // where they said so, when that was not in this run: "on 2026-01-02 for #39 at dc0124f"
	Key         string  `json:"key,omitempty"`        // of a failure from before the work: what its error is known by; see ErrorKey
	Was         string  `json:"was,omitempty"`        // of a failure from before the work: its error at the base, where that is another one
}

// CauseQuality is the cause of a failure that is a gate of quality which was missed.
const CauseQuality = "quality"

// KnownFailure is a person's word that a test which failed before somebody's work, with
// this very error, may go on failing.
type KnownFailure struct {
	Login string
	Error string // its ErrorKey
	Run   int64  // in which it was said
	Pull  int    // of that run
	Head  string // SHA that it was said of
	At    time.Time
}

// For says where it was said, for people.
func (k KnownFailure) For() string {
	where := fmt.Sprintf("in run %d", k.Run)
	if k.Pull > 0 {
		where = fmt.Sprintf("for #%d", k.Pull)
	}
	return fmt.Sprintf("on %s %s at %s", k.At.UTC().Format("2006-01-02"), where, text.ShortSHA(k.Head))
}
