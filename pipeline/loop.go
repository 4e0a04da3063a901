package pipeline

import (
	"maps"
	"slices"
	"strings"
	"time"

	"forge/pipeline/upstream"
)

// Loop is where a run stands between implement, review and test: its rounds, what they
// found, what sent the work back, and what the guards count.
type Loop struct {
	Iterations []Iteration `json:"iterations,omitempty"` // the last one is current
	Findings   []Issue     `json:"findings,omitempty"`   // by identity, in order of first sight
	Failures   []Issue     `json:"failures,omitempty"`   // by identity, in order of first sight
	Bounces    []Bounce    `json:"bounces,omitempty"`    // in order (B8)
	Requested  []Finding   `json:"asked,omitempty"`      // what humans want changed and nobody has been given to do yet
	Counters   Counters    `json:"counters"`
}

// Counters are what the guards look at.
type Counters struct {
	Granted       int   `json:"granted,omitempty"`         // iterations that humans granted in all: each brings its share of the budget
	Back          bool  `json:"back,omitempty"`            // an ended run goes on with somebody's words: the work goes back with them, whatever else is asked
	GrantedUntil  int   `json:"until,omitempty"`           // the iteration up to which a human let the loop go on
	ResetAt       int   `json:"from,omitempty"`            // the iteration after which the guards count, since a reset
	Raised        int64 `json:"raised,omitempty"`          // micro-dollars that humans added to the budget
	Updates       int   `json:"updates,omitempty"`         // times the base branch was taken in
	ReviewBounces int   `json:"review_bounces,omitempty"`  // since the last grant
	TestBounces   int   `json:"test_bounces,omitempty"`    //
	ReviewInARow  int   `json:"review_in_a_row,omitempty"` // reviews that sent the work back, since the last pass (T3)
	TestInARow    int   `json:"test_in_a_row,omitempty"`   //
	Faults        int   `json:"faults,omitempty"`          // in a row
	PublishFaults int   `json:"publish_faults,omitempty"`  // in a row
	Moved         int   `json:"moved,omitempty"`           // times the branch moved under the run
	EmptyRounds   int   `json:"stale,omitempty"`           // rounds in a row without a commit
	DoubtsAckedAt int   `json:"heard,omitempty"`           // the iteration up to which a human has answered to doubts; see signs
	Cost          int64 `json:"cost,omitempty"`            // micro-dollars spent before it was reopened: its budget is a fresh one
	Tokens        int64 `json:"tokens,omitempty"`          // likewise
	Millis        int64 `json:"ms,omitempty"`              // likewise, of working time
}

// Result says how an iteration ended.
type Result string

// The results of iterations.
const (
	ResultInProgress Result = "in_progress"
	ResultPassed     Result = "passed"
	ResultFailed     Result = "failed"
)

// Iteration is one round of implement → review → test (T1).
type Iteration struct {
	Number  int             `json:"number"` // from 1
	Mode    Mode            `json:"mode"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	Impl    *Implementation `json:"implementation,omitempty"`
	Review  *Review         `json:"review,omitempty"`
	Tests   *TestReport     `json:"tests,omitempty"`
	Result  Result          `json:"result"` // (R5)
	Brief   string          `json:"brief"`  // the feedback in one line: "1 critical, 2 errors" (R5)
	Usage   Usage           `json:"usage"`
	Forced  bool            `json:"forced,omitempty"` // a human decided to go on although a guard that judges this iteration's result said no

	Disputed bool    `json:"disputed,omitempty"` // nothing was changed, because all that was open is disputed: it is for the reviewer
	Update   *Update `json:"update,omitempty"`   // of the base branch, the last one in this iteration
	Redo     bool    `json:"redo,omitempty"`     // the implementer works again: what it said could not be was decided since
}

// IssueState says what became of a finding or a failure.
type IssueState string

// The states of findings and failures.
const (
	IssueOpen      IssueState = "open"
	IssueFixed     IssueState = "fixed"
	IssueWithdrawn IssueState = "withdrawn" // by the reviewer
	IssueDismissed IssueState = "dismissed" // by a human
	IssueAccepted  IssueState = "accepted"  // by a human
)

// Issue is a finding or a failure followed across iterations.
type Issue struct {
	Finding *Finding   `json:"finding,omitempty"`  // as last seen
	Failure *Failure   `json:"failure,omitempty"`  // as last seen
	Phase   Phase      `json:"phase"`              // review, or test: who saw it
	State   IssueState `json:"state"`              // Status says more
	Back    int        `json:"back,omitempty"`     // times it was fixed and came back
	First   int        `json:"first"`              // iteration in which it was first seen
	Last    int        `json:"last"`               // iteration in which it was last seen
	Times   int        `json:"times"`              // iterations in which it was seen, since a grant
	FixedIn string     `json:"fixed_in,omitempty"` // SHA of the commit after which it was gone

	Seen     string `json:"seen,omitempty"`     // SHA at which it was last listed: its lines are those of that commit
	Ruling   string `json:"ruling,omitempty"`   // why the reviewer says what it says of it, the last time
	Disputed string `json:"disputed,omitempty"` // why the implementer holds it for mistaken, until the reviewer has ruled
	Upheld   int    `json:"upheld,omitempty"`   // times the reviewer upheld it against a dispute
	By       Actor  `json:"by,omitzero"`        // of a dismissal: who, as far as it is known
}

// Fingerprint returns the identity of the finding or failure.
func (i *Issue) Fingerprint() string {
	if i.Finding != nil {
		return i.Finding.Fingerprint
	}
	return i.Failure.Fingerprint
}

// Bounce is work sent back from review or test to implement (B8).
type Bounce struct {
	Number    int       `json:"number"`           // within its phase, from 1
	Phase     Phase     `json:"phase"`            // the one that sent it back
	Target    Target    `json:"target,omitempty"` // where to; "" is implement
	Iteration int       `json:"iteration"`
	Count     int       `json:"count"`  // blocking findings, or failures
	Weight    int       `json:"weight"` // the same, weighed by severity
	Issues    []string  `json:"issues"` // their fingerprints
	At        time.Time `json:"at"`
	Resolved  bool      `json:"resolved"` // whether all that it was for was gone in the next iteration

	Parts map[string][]string `json:"parts,omitempty"` // by module, the fingerprints of what is its own to fix
}

// To says where the work goes back to, for people: a phase, or modules by their names.
func (b *Bounce) To() string {
	if b.Target != TargetModule || len(b.Parts) == 0 {
		return string(b.Target)
	}
	names := slices.Sorted(maps.Keys(b.Parts))
	owned := slices.Concat(slices.Collect(maps.Values(b.Parts))...)
	to := "the module " + names[0]
	if len(names) > 1 {
		to = "the modules " + strings.Join(names, ", ")
	}
	if slices.ContainsFunc(b.Issues, func(fp string) bool { return !slices.Contains(owned, fp) }) {
		to += " and the integration"
	}
	return to
}

// WhyBack says for people why work was sent back: what was found, or who wants it where
// nothing was.
func (r *Run) WhyBack(b *Bounce) string {
	brief := ""
	if n := b.Iteration; n > 0 && n <= len(r.Iterations) {
		brief = r.Iterations[n-1].Brief
	}
	decided := slices.ContainsFunc(r.Upstream, func(f upstream.Feedback) bool {
		return f.Iteration == b.Iteration && f.Part == "" && f.State == upstream.Resolved && f.Decision != nil && works(f.Decision)
	})
	switch {
	case brief != "":
		return brief
	case r.Part != nil && !r.byPeople(b):
		return "what the integration found"
	case decided:
		return "what was decided of what agents told each other"
	}
	return "a maintainer asked for changes"
}

// byPeople reports whether a bounce is about what people asked for.
func (r *Run) byPeople(b *Bounce) bool {
	return slices.ContainsFunc(r.Findings, func(is Issue) bool {
		return is.Finding.Category == CategoryHuman && slices.Contains(b.Issues, is.Fingerprint())
	})
}

// Current returns the current iteration, or nil before the first.
func (l *Loop) Current() *Iteration {
	if n := len(l.Iterations); n > 0 {
		return &l.Iterations[n-1]
	}
	return nil
}

// bounced closes the current iteration; the next one begins when its implementer
// is entered.
func (r *Run) bounced(e Event) {
	b := e.Data.Bounce
	if b == nil {
		return
	}
	rec := *b
	rec.At = e.Time
	r.Bounces = append(r.Bounces, rec)
	if b.Phase == PhaseReview {
		r.Counters.ReviewBounces++
	} else {
		r.Counters.TestBounces++
	}
	r.backToParts(b)
	if it := r.Current(); it != nil {
		it.Result, it.Ended = ResultFailed, e.Time
		seen := ""
		switch {
		case it.Review != nil && it.Review.Ruled:
			seen = it.Review.Head
		case it.Review == nil && r.Part != nil: // found on the whole, which the module has just taken in
			seen = r.Head
		}
		r.handOver(seen)
	}
	r.Requested, r.Counters.Back, r.Rev = nil, false, e.Seq
}

// handOver makes what people have requested findings like others, of the head at which they
// requested it: from here on somebody is given to do it, or has to rule on it.
func (r *Run) handOver(seen string) {
	it := r.Current()
	if it == nil {
		return
	}
	for i := range r.Requested {
		f := r.Requested[i]
		r.wanted(f.Fingerprint)
		r.Findings = sight(r.Findings, Issue{Finding: &f, Phase: PhaseReview, Seen: seen}, it.Number)
	}
	r.Requested, r.Counters.Back = nil, false
}
