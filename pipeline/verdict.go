package pipeline

import "time"

// Verdict is what a reviewer says of a finding that was open before this review.
type Verdict string

// The verdicts. A finding without one stays open: absent is not fixed (lessons 23).
const (
	VerdictFixed     Verdict = "fixed"     // the problem is gone
	VerdictOpen      Verdict = "open"      // it is still there; of a disputed finding: the dispute is rejected
	VerdictWithdrawn Verdict = "withdrawn" // it was no problem, or is none any more; Why says why
)

// Ruling is a reviewer's verdict on one open finding.
type Ruling struct {
	Finding string  `json:"finding"` // its fingerprint
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Changed is Forge's own observation: the code at the finding's place differs from
	// what it was when the finding was last seen. Fixed counts only with it; a finding
	// without a place needs any commit since.
	Changed bool `json:"changed,omitempty"`
}

// Dispute is the implementer's objection to a finding.
type Dispute struct {
	Finding string `json:"finding"` // its fingerprint
	Why     string `json:"why"`
}

// TestChange is a test of the base that passes on the change only in the form that
// the change gave it. The reviewer says why it had to change; without a reason it
// is a finding that blocks.
type TestChange struct {
	Test   string   `json:"test"`            // name, as in Failure.Test
	Error  string   `json:"error,omitempty"` // how it fails as it stood at the base
	Now    string   `json:"now"`             // passed, failed, skipped, gone: what became of it
	Files  []string `json:"files,omitempty"` // test files, configuration and fixtures that the change edited and that it depends on
	Reason string   `json:"reason,omitempty"`
	Since  int      `json:"since,omitempty"` // of a test that the work itself brought, and that passed: the iteration; 0 for one of the base
}

// Waiver is what a named person let pass although Forge could not verify it.
type Waiver struct {
	Guard GuardName `json:"guard"`
	What  string    `json:"what"` // one sentence for people: "3 tests failed before this work and still fail: ..."
	By    Actor     `json:"by"`
	At    time.Time `json:"at"`
	Head  string    `json:"head"`            // SHA that it was given for
	About []string  `json:"about,omitempty"` // fingerprints of the findings that it is about
}
