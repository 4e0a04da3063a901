// Package record has the rows that are kept besides the log, as all rooms read and write
// them: deliveries, what runs came to, the sums of metrics, and the scopes of what is
// remembered.
package record

import "time"

// DeliveryState says what has become of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryWaiting DeliveryState = "waiting" // to be handled, now or later
	DeliveryDone    DeliveryState = "done"    // handled; Outcome says how
	DeliveryDead    DeliveryState = "dead"    // tried too often; Error says why
)

// Delivery is one webhook delivery. To keep one, the fields up to Lane count, and
// Outcome: one that has it is kept as handled, and as quiet.
type Delivery struct {
	GUID     string // GitHub's X-GitHub-Delivery: the same for a redelivery
	Event    string // X-GitHub-Event
	Action   string // of the payload; empty when it has none
	Repo     string // "owner/name"; empty when the payload names none
	Received time.Time
	Payload  []byte // as it was sent; compressed in the database; absent in lists, and of old ones
	Lane     string // who handles it: "" the engine, else the service that reads this lane; not in lists

	ID       int64 // in the order of arrival
	State    DeliveryState
	Attempts int       // tries that failed
	Next     time.Time // when it may be tried again; zero: now
	Outcome  string    // what it became, or why nothing follows from it
	Quiet    bool      // nothing followed from it
	Error    string    // of the last attempt
	Finished time.Time
}

// Outcome is what became of a run, and which learnings it had: what learnings are
// worth is estimated from these.
type Outcome struct {
	Run       int64     `json:"run"`
	FirstPass bool      `json:"first_pass"` // its first review was approved
	Caught    bool      `json:"caught"`     // of what its first review raised, more was confirmed than not
	Bounces   int       `json:"bounces"`
	Findings  int       `json:"findings"`  // that people saw
	Dismissed int       `json:"dismissed"` // of them, by people
	MicroUSD  int64     `json:"micro_usd"`
	At        time.Time `json:"at"`
	Given     []int64   `json:"given,omitempty"`    // learnings
	Withheld  []int64   `json:"withheld,omitempty"` // in every phase that would have had it
	Holdout   *Holdout  `json:"holdout,omitempty"`  // of the memory as a whole; nil: nothing was drawn

	// Reviewers are the learnings that a reviewer was given, or would have been; true: and
	// nobody else.
	Reviewers map[int64]bool `json:"reviewers,omitempty"`
}

// Well reports whether the run's first review went well as far as a learning may have to do
// with it. A reviewer that knows more finds more, and approves less: what reviewers have is
// judged by what was confirmed of their findings, and what others have, too, by both.
func (o *Outcome) Well(learning int64) bool {
	switch alone, reviews := o.Reviewers[learning]; {
	case alone:
		return o.Caught
	case reviews:
		return o.Caught || o.FirstPass
	}
	return o.FirstPass
}

// MetricRow is a sum of observations: of one metric, label and bucket, on one day.
type MetricRow struct {
	Day     int64   // UTC, as 20260102
	Metric  string  // a key of learn/metrics' catalogue
	Label   string  // a phase, a tool, a category; "" for metrics without labels
	Bucket  int     // of the observations' size, where a distribution is kept
	N       int64   // observations
	Total   int64   // their sum; of shares, how many of them were so
	Squares float64 // sum of their squares; 0 of shares
}
