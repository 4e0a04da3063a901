package module

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Of says which module of which run a run builds.
type Of struct {
	Run      int64             `json:"run"`
	Module   Module            `json:"module"`
	Wave     int               `json:"wave,omitempty"`     // in which it can begin, from 1
	Base     string            `json:"base"`               // SHA that the whole work stands on: what of the repository is trusted, is read there
	Branch   string            `json:"branch"`             // the repository's default branch, whose rules hold for what is merged into it
	Contract []string          `json:"contract,omitempty"` // files that it may read and not change
	Promises []Promise         `json:"promises,omitempty"` // that it keeps or relies on
	Probes   []string          `json:"probes,omitempty"`   // tests of all promises: one that fails is not this module's alone
	Owners   map[string]string `json:"owners,omitempty"`   // of those globs that belong to other modules: which
	Untested bool              `json:"untested,omitempty"` // a person wants it built although no test runs at the base
	Tells    bool              `json:"tells,omitempty"`    // its agents tell the run that planned it what cannot be
	Others   []string          `json:"others,omitempty"`   // globs of what belongs to other modules, and of what the integration alone changes
}

// Part is what a run knows of the run that builds one of its modules. In an event it
// has the fields that the event is about.
type Part struct {
	ID  string `json:"id"`            // of the module
	Run int64  `json:"run,omitempty"` // that builds it; 0: none was begun

	// As that run last told.
	Rev       int64     `json:"rev,omitempty"`   // its last event then
	State     string    `json:"state,omitempty"` // pipeline.State
	Phase     string    `json:"phase,omitempty"`
	Iteration int       `json:"iteration,omitempty"`
	Max       int       `json:"max,omitempty"` // iterations
	Branch    string    `json:"branch,omitempty"`
	Base      string    `json:"base,omitempty"` // SHA that it stands on
	Head      string    `json:"head,omitempty"`
	Tests     string    `json:"tests,omitempty"`    // "12 of 12 passed"
	Findings  string    `json:"findings,omitempty"` // what of the last review blocks
	Gate      string    `json:"gate,omitempty"`     // id of its open question
	Question  string    `json:"question,omitempty"`
	Wants     string    `json:"wants,omitempty"`      // what it wants the contract to say in another way
	Asks      string    `json:"asks,omitempty"`       // what its agents wait for a decision on
	Insists   int       `json:"insists,omitempty"`    // times that a person let it have the contract revised beyond the limit
	Known     []string  `json:"known,omitempty"`      // of one that was accepted: tests that fail
	Errors    []string  `json:"errors,omitempty"`     // of those, in the same order: what their errors are known by
	By        string    `json:"by,omitempty"`         // who accepted it, or gave it up
	Why       string    `json:"why,omitempty"`        // why it ended
	How       string    `json:"how,omitempty"`        // of one that was given up, what becomes of it: Later, Without, Wired; "": nothing
	Foreign   bool      `json:"foreign,omitempty"`    // somebody else pushed to its branch
	Halted    bool      `json:"halted,omitempty"`     // it was stopped together with its parent
	Simpler   string    `json:"simpler,omitempty"`    // the words by which a person made less of it
	SimplerBy string    `json:"simpler_by,omitempty"` // who
	Criteria  []string  `json:"criteria,omitempty"`   // then: what it is to meet, in the words of its new plan
	Raised    int64     `json:"raised,omitempty"`     // micro-dollars that people added to its budget
	MicroUSD  int64     `json:"micro_usd,omitempty"`
	Unpriced  int64     `json:"unpriced,omitempty"` // tokens of models without a price: what they cost is not in MicroUSD
	Tokens    int64     `json:"tokens,omitempty"`
	Millis    int64     `json:"ms,omitempty"` // of work
	Changed   time.Time `json:"changed,omitzero"`

	Met    []Met               `json:"met,omitempty"`    // commits of people that its merges had conflicts with
	Proofs map[string][]string `json:"proofs,omitempty"` // by its criteria's words, the tests that it names for them

	// What its parent has made of it.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`     // when it last ended; its run tells it
	Merged  string    `json:"merged,omitempty"`   // SHA of its head that the parent holds
	As      string    `json:"as,omitempty"`       // SHA of the parent's head that its last merge made
	Round   int       `json:"round,omitempty"`    // times that the integration sent work back to it
	Clashes int       `json:"clashes,omitempty"`  // merges in a row that conflicted or broke tests
	Denied  string    `json:"denied,omitempty"`   // why the contract is not revised as it wants
	After   string    `json:"after,omitempty"`    // the module that has to be merged again first: it does not keep what it promised this one
	Left    string    `json:"left,omitempty"`     // why it is left out
	Doubt   string    `json:"doubt,omitempty"`    // what may have taken it off the branch since it was merged: to be looked at
	DoubtBy string    `json:"doubt_by,omitempty"` // the login of who did that
	Off     string    `json:"off,omitempty"`      // what did: it is merged again, or left out where its content was taken back
	Owed    []string  `json:"owed,omitempty"`     // tests that failed at the last merge that sent it back: who accepts it takes it with them
	OwedAs  []string  `json:"owed_as,omitempty"`  // what their errors are known by, in the same order

	Rework *Rework `json:"rework,omitempty"` // what it has to be told to do
	Tells  int     `json:"tells,omitempty"`  // times that it was told something
	Told   string  `json:"told,omitempty"`   // the last of: stopped, resumed, cancelled, over
}

// What becomes of a module that is left out, besides that.
const (
	Later   = "later"   // an issue is opened for it
	Without = "without" // the plan is revised without it
	Wired   = "wired"   // it needed one of those, and the integration builds what is left of it
)

// Met is a commit of a person that a merge had a conflict with, which an agent resolved.
type Met struct {
	Path    string `json:"path"`
	Commit  string `json:"commit"`
	By      string `json:"by"`      // its author's name
	Subject string `json:"subject"` // its message's first line
	Lines   int    `json:"lines,omitempty"`
	Kept    int    `json:"kept,omitempty"` // of the lines that it brought, those that stand in what the agent made of it
}

// String says what became of the person's lines.
func (m Met) String() string {
	left := fmt.Sprintf("%d of its %d lines are left", m.Kept, m.Lines)
	switch {
	case m.Lines == 0:
		left = "it only takes lines away"
	case m.Kept == 0:
		left = "nothing of it is left there"
	case m.Kept == m.Lines:
		left = "all of its lines are left"
	}
	return fmt.Sprintf("%s was in conflict with %s by %s (%q): %s", m.Path, m.Commit[:min(7, len(m.Commit))], m.By, m.Subject, left)
}

// Rework is what sends a module back to work after it was verified.
type Rework struct {
	Base   string   `json:"base"`             // SHA of the parent's head, which it takes in first
	Why    string   `json:"why"`              // for people
	Issues []string `json:"issues,omitempty"` // fingerprints of the parent's findings and failures
	Fails  []string `json:"fails,omitempty"`  // tests that pass before a merge and not on it, each with its error
	With   string   `json:"with,omitempty"`   // the module whose merge showed that; "": its own
}

// Find returns a module's part, nil when there is none.
func Find(parts []Part, id string) *Part {
	for i := range parts {
		if parts[i].ID == id {
			return &parts[i]
		}
	}
	return nil
}

// Done reports whether nothing more is wanted of it: it is merged as it is, or left out.
func (p *Part) Done() bool {
	return p.Left != "" || p.Rework == nil && p.Passed() && p.Merged != "" && p.Merged == p.Head
}

// Know notes a test that fails in a module which was accepted, and what its error is known by.
func (p *Part) Know(test, as string) {
	if slices.Contains(p.Known, test) {
		return
	}
	p.Known, p.Errors = append(slices.Clip(p.Known), test), append(slices.Clip(p.Errors), as)
}

// Stays reports whether somebody gave it up in a later round, so that it stays as it was merged.
func (p *Part) Stays() bool {
	return p.State == "cancelled" && p.Merged != "" && p.Left == "" && p.Told != "cancelled"
}

// Again says what becomes of a module that was taken off the branch after its merge.
func (p *Part) Again() string {
	switch {
	case p.Left != "" && p.Merged == "":
		return "it is left out"
	case p.Merged == "":
		return "it is to be merged again"
	}
	return "it is merged again"
}

// Passed reports whether its run was verified, or accepted by a human.
func (p *Part) Passed() bool { return p.State == "verified" || p.State == "accepted" }

// Settled says what became of a module that has passed.
func (p *Part) Settled() string {
	how := "is verified"
	if p.State == "accepted" {
		how = "was accepted"
		if p.By != "" {
			how += " by " + p.By
		}
	}
	if p.Merged == "" || p.Merged != p.Head {
		return how + ", and waits to be merged"
	}
	return how + ", and is merged as " + p.Merged[:min(7, len(p.Merged))]
}

// Has reports whether one of the modules is to meet the criterion.
func (s *Split) Has(criterion string) bool {
	return slices.ContainsFunc(s.Modules, func(m Module) bool { return slices.Contains(m.Criteria, criterion) })
}

// Without is the split without some modules. Of these, gone tells those that nobody builds:
// what they promised, or relied on, is void. What the others did is the integration's to keep.
func (s *Split) Without(ids []string, gone func(id string) bool) *Split {
	out := *s
	out.Modules, out.Promises, out.Dropped, out.Void = nil, nil, slices.Clip(s.Dropped), slices.Clip(s.Void)
	for _, m := range s.Modules {
		if slices.Contains(ids, m.ID) {
			out.Dropped = append(out.Dropped, m)
		} else {
			out.Modules = append(out.Modules, m)
		}
	}
	for _, p := range s.Promises {
		to := slices.DeleteFunc(slices.Clone(p.To), gone)
		if gone(p.From) || len(to) == 0 {
			out.Void = append(out.Void, p)
			continue
		}
		p.To = to
		out.Promises = append(out.Promises, p)
	}
	return &out
}

// Row is a module of a plan with what became of it, for people.
type Row struct {
	Module `json:"module"`
	Part   `json:"part"`
	Wave   int
}

// Rows lists the modules of a split in its order, with the parts that are known.
func (s *Split) Rows(parts []Part) []Row {
	var out []Row
	for _, m := range slices.Concat(s.Modules, s.Dropped) {
		row := Row{Module: m, Wave: s.Wave(m.ID)}
		if p := Find(parts, row.Module.ID); p != nil {
			row.Part = *p
		}
		out = append(out, row)
	}
	return out
}

// Status says in a few words where a module stands. parts are all that are known; over is
// whether the run that planned them has ended, or does without them.
func (r *Row) Status(parts []Part, over bool) string {
	switch p := &r.Part; {
	case p.How == Wired && p.Merged == "" && over:
		return "was left to the integration"
	case p.How == Wired && p.Merged == "":
		return "left to the integration"
	case p.Left != "" && p.Merged == "":
		return "left out"
	case p.Run == 0 && over:
		return "not begun"
	case p.Run == 0:
		return r.waits(parts)
	case p.Question != "" && p.Left == "":
		return "asks you"
	case p.Done() || p.Stays():
		return "merged"
	case p.Passed() && over:
		return "not merged"
	case p.Rework != nil:
		return "goes back to work"
	case p.Passed():
		return "waits to be merged"
	case p.State == "stopped" || p.State == "cancelled":
		return p.State
	case p.Wants != "":
		return "waits for another contract"
	case p.Asks != "":
		return "waits for a decision"
	case p.Phase != "":
		return p.Phase
	}
	return "at work"
}

// waits says what a module that has not begun waits for.
func (r *Row) waits(parts []Part) string {
	var needs []string
	for _, id := range r.Needs {
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.ID == id && p.Merged != "" }) {
			needs = append(needs, id)
		}
	}
	if len(needs) > 0 {
		return "waits for " + strings.Join(needs, ", ")
	}
	return "waits"
}
