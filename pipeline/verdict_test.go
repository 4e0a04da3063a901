package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"

	"pgregory.net/rapid"
)

// names are what findings of the adversarial team are about, each in a file of its
// own; binaries are files that the reviewer may not be able to read.
var (
	names    = []string{"alpha", "bravo", "charlie"}
	binaries = []string{"logo.png", "table.bin"}
	oldTests = []string{"TestOldOne", "TestOldTwo"}
)

// team is an adversarial one: a reviewer that forgets and rules wrongly, an
// implementer that lies, disputes and does nothing, tests that are edited, and people
// who do anything at any moment. It knows what is in every commit.
type team struct {
	t       *rapid.T
	rng     *rand.Rand // of this step: rapid's own numbers are mostly small
	p       *pipelinetest.Player
	content map[string]map[string]int // by commit and path: the version
	commits int
	results int
}

func (w *team) chance(percent int) bool { return w.rng.IntN(100) < percent }

func pick[T any](w *team, from []T) T { return from[w.rng.IntN(len(from))] }

func file(name string) string { return name + ".go" }

// commit makes a commit on another one, in which some paths differ.
func (w *team) commit(on string, percent int) (sha string, changed []string) {
	w.commits++
	sha = fmt.Sprintf("c%d", w.commits)
	w.content[sha] = maps.Clone(w.content[on])
	if w.content[sha] == nil {
		w.content[sha] = map[string]int{}
	}
	for _, path := range append([]string{"alpha.go", "bravo.go", "charlie.go"}, binaries...) {
		if w.chance(percent) {
			w.content[sha][path] = w.commits
			if w.chance(25) { // as it was once
				w.content[sha][path] = w.content[fmt.Sprintf("c%d", 1+w.rng.IntN(w.commits))][path]
			}
			changed = append(changed, path)
		}
	}
	return sha, changed
}

func (w *team) changed(path, from, to string) bool {
	return w.content[from][path] != w.content[to][path]
}

// finding is about a name, with the code that the head has there.
func (w *team) finding(name string, s Severity) Finding {
	f := Finding{ID: name, Severity: s, Category: "correctness", Message: name, File: file(name), Line: 1, Confidence: 0.9}
	f.Fingerprint = f.Digest()
	f.Code = fmt.Sprintf("%s = %d;", name, w.content[w.p.Run.Head][f.File])
	return f
}

// result writes down what a phase brought; now and then it is one of another execution.
func (w *team) result(ref *PhaseRef, d Data) {
	w.results++
	done := *ref
	done.Millis = 1000
	if w.chance(2) {
		done.Attempt--
	}
	d.Phase = &done
	w.p.Append(Event{ID: fmt.Sprintf("result/%d", w.results), Type: EventPhaseCompleted, Source: "agent", Data: d})
}

// work carries out a phase, badly.
func (w *team) work(ref *PhaseRef) {
	run := &w.p.Run
	if w.chance(4) {
		f := &Fault{Class: pick(w, []FaultClass{FaultAgent, FaultProvider, FaultBudget, FaultEnvironment}), Message: "broke down"}
		w.results++
		w.p.Append(Event{ID: fmt.Sprintf("fault/%d", w.results), Type: EventPhaseFailed, Data: Data{Phase: ref, Fault: f}})
		return
	}
	switch ref.Phase {
	case PhasePlan:
		d := Data{Plan: &Plan{Summary: "do it"}}
		if ref.Iteration == 0 {
			d.Tests = pipelinetest.Tests(run.Base, "ok")
		}
		w.result(ref, d)
	case PhaseImplement:
		w.implement(ref)
	case PhaseReview:
		w.review(ref)
	case PhaseTest:
		w.test(ref)
	case PhaseUpdate:
		u := Update{Base: run.BaseHead, Parent: run.Head}
		if u.Head = run.Head; w.chance(10) {
			u.Conflicts = []string{"alpha.go"}
		} else {
			u.Head, _ = w.commit(run.Head, 20)
		}
		w.result(ref, Data{Update: &u, Tests: pipelinetest.Tests(run.BaseHead, "ok")})
	}
}

func (w *team) implement(ref *PhaseRef) {
	run := &w.p.Run
	m := &Implementation{Summary: "mended all of it", Addressed: []string{"everything"}, Parent: run.Head, Head: run.Head}
	if w.chance(70) {
		m.Head, m.Files = w.commit(run.Head, 40)
	}
	for _, is := range run.Findings {
		if w.chance(40) {
			m.Disputes = append(m.Disputes, Dispute{Finding: is.Fingerprint(), Why: pick(w, []string{"it is not so", "it is not so", ""})})
		}
	}
	w.result(ref, Data{Implementation: m})
}

// review lists what comes to mind and rules as it likes, as several reviewers would,
// who do not agree. Only what Forge itself observes is true: the head, what was not
// shown, whether the code has changed, and how bad it was said to be.
func (w *team) review(ref *PhaseRef) {
	run := &w.p.Run
	v := &Review{Head: run.Head, Ruled: true}
	for _, n := range names {
		if w.chance(12) {
			v.Findings = append(v.Findings, w.finding(n, pick(w, []Severity{SeverityError, SeverityCritical, SeverityWarning, SeverityInfo, "odd"})))
		}
	}
	for _, is := range run.Findings {
		if f := is.Finding; is.State == IssueFixed && f.Severity.Blocks() && f.Category != CategoryHuman && is.FixedIn != run.Head && w.changed(f.File, is.FixedIn, run.Head) {
			v.Back = append(v.Back, is.Fingerprint())
		}
	}
	for _, path := range binaries {
		if w.chance(5) {
			v.NotReviewed = append(v.NotReviewed, Skipped{Path: path, Why: "binary"})
		}
	}
	for range 1 + w.rng.IntN(2) {
		for _, is := range run.Findings {
			if w.chance(20) { // forgotten
				continue
			}
			v.Rulings = append(v.Rulings, Ruling{Finding: is.Fingerprint(), Verdict: pick(w, []Verdict{VerdictFixed, VerdictFixed, VerdictFixed, VerdictOpen, VerdictWithdrawn, "gone"}),
				Why: pick(w, []string{"", " ", "so it is", "so it is"}), Changed: w.changed(is.Finding.File, is.Seen, run.Head)})
		}
	}
	if w.chance(5) { // of something that it was not shown
		v.Rulings = append(v.Rulings, Ruling{Finding: "0123456789abcdef", Verdict: VerdictFixed, Changed: true})
	}
	if w.chance(5) { // somebody dismissed the like elsewhere
		v.Suppressed = append(v.Suppressed, SuppressedFinding{Finding: w.finding("echo", pick(w, []Severity{SeverityError, SeverityWarning})),
			Why: "dismissed before", By: Actor{Login: "emil"}})
	}
	if w.chance(5) {
		v.NeedsHuman = "it looks odd"
	}
	if w.chance(5) {
		v.Head = "another"
	}
	run.KeepSeverity(v)
	w.result(ref, Data{Review: v})
}

func (w *team) test(ref *PhaseRef) {
	kind := "ok"
	if w.chance(30) {
		kind = pick(w, []string{"TestA 0.9", "TestA 0.9, TestB 0.2", "tampered TestE", "none x", "empty", "unclean exit 2", "ok before TestOldOne",
			"ok before TestOldOne, TestOldTwo", "TestA 0.9 before TestOldTwo"})
	}
	t := pipelinetest.Tests(w.p.Run.Head, kind)
	if w.chance(8) {
		t.Head = "another"
	}
	if w.chance(20) { // tests of the base that pass only as the change edited them, and what is said of it
		t.Changed = []TestChange{{Test: "TestEdited", Now: "passed"}, {Test: "TestGone", Now: "gone"}}[:1+w.rng.IntN(2)]
		check.Justify(t, pick(w, [][]TestChange{nil, {{Test: "TestElse", Reason: "TestElse had to"}}, {{Test: "TestEdited", Reason: "  "}},
			{{Test: "TestEdited", Reason: "TestEdited had to"}}, {{Test: "TestEdited", Reason: "TestEdited had to"}, {Test: "TestGone", Reason: "TestGone was wrong"}}}))
	}
	for i := range t.Before {
		if w.chance(15) {
			t.Before[i].KnownBy = pick(w, []string{"settings", "dora"})
		}
	}
	w.result(ref, Data{Tests: t})
}

// people do something: they answer what is asked, or anything else.
func (w *team) people() {
	run := &w.p.Run
	commands := []string{"approve", "approve", "approve", "continue 2", "continue 3 // look again", "accept", "retry", "resume", "reset", "raise 5", "stop", "take-over", "choose x", "simplify it"}
	by := pick(w, []string{"", " by bob"})
	if g := run.Gate(); g != nil && w.chance(80) {
		c := pick(w, g.Choices)
		if c.Name != "cancel" {
			w.say(strings.TrimSpace(c.Name+" "+strings.NewReplacer("N", "2", "WORDS", "less", "ANSWER", "so").Replace(c.Arg)) + by)
		}
		return
	}
	switch w.rng.IntN(14) {
	case 0: // a push, or a suggestion that is applied: the same to Forge
		sha, _ := w.commit(run.Head, 30)
		if w.chance(30) { // by force: to an earlier commit, or beside the last ones
			if sha = fmt.Sprintf("c%d", 1+w.rng.IntN(w.commits)); w.chance(50) {
				sha, _ = w.commit(sha, 30)
			}
		}
		w.p.Human("notice", "push "+sha+pick(w, []string{"", " by a bot"}))
	case 1:
		w.p.Human("dismiss", pick(w, names)+pick(w, []string{"", "", " by a stranger", " by nobody"}))
	case 2:
		w.p.Human("undismiss", pick(w, names))
	case 3:
		w.p.Human("notice", "reviewed changes_requested delta")
	case 4:
		w.p.Human("notice", "reviewed approved")
	case 5:
		w.p.Human("notice", fmt.Sprintf("issue_edited wish %d", w.results))
	case 6:
		w.p.Human("notice", fmt.Sprintf("base_moved b%d", w.results))
	case 7:
		w.p.Human("pull", "")
	case 8:
		w.p.Human("alarm", "")
	case 9:
		w.p.Human("refused", fmt.Sprint(w.results))
	case 10: // somebody who may not, in an older log
		w.results++
		w.p.Append(Event{ID: fmt.Sprintf("edit/%d", w.results), Type: EventIssueEdited, Data: Data{Task: &Task{Title: "mischief"}}})
	default:
		w.say(pick(w, commands) + by)
	}
}

// say gives a command. The repository's settings, which are read again for an answer,
// may say anything by then.
func (w *team) say(command string) {
	p := w.p
	before, run := len(p.Events), p.Run
	if w.chance(80) {
		p.Human("human", command)
		return
	}
	raw, _ := json.Marshal(&run)
	p.Human("human", command)
	events := slices.Clone(p.Events[before:])
	p.Events, p.Run = p.Events[:before], Run{}
	_ = json.Unmarshal(raw, &p.Run)
	for _, e := range events {
		e.Data.Config = &config.Config{Tests: config.Tests{Commands: []string{"true"}, KnownFailures: "allow"}, OnBaseMoved: "ignore"}
		p.Append(e)
	}
}

// Covers T8: whatever the team does and people say, at any moment, verified means
// that every blocking finding is shown to be gone, and not back, or dismissed by a person, that
// nothing is unread, that the tests passed and ended well, and all that on this very
// head; and what does not hold of that carries a name. The oracle knows the commits
// and reads the log; it does not look at the run's own books. For a longer look:
//
//	go test ./pipeline -run 'TestVerified.*True' -rapid.checks=20000
func TestVerifiedIsTrue(t *testing.T) {
	t.Parallel()
	verified, cases := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := config.Default()
		cfg.Loop.MaxIterations, cfg.Loop.ReviewBounces, cfg.Loop.TestBounces, cfg.Loop.SameFinding, cfg.Loop.Faults = 9, 9, 9, 9, 9
		cfg.Loop.DiminishingFrom, cfg.Loop.AutoFixOnly, cfg.Breaker.Enabled = 9, false, false
		w := &team{t: t, p: pipelinetest.New(cfg, Task{Issue: 1, Title: "wish"}), content: map[string]map[string]int{}}
		for step := range rapid.IntRange(5, 60).Draw(t, "length") {
			w.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "step"), uint64(step)))
			was := w.p.Run.State
			ref, working := w.p.Step()
			if w.p.Run.State == StateVerified && was != StateVerified {
				verified++
				w.audit()
			}
			switch {
			case !working, w.chance(8):
				w.people()
			default:
				w.work(ref)
			}
		}
		if cases++; cases%50 == 0 {
			checkReplay(t, w.p.Events, &w.p.Run)
		}
	})
	if verified == 0 {
		t.Error("nothing was verified: the test says nothing")
	}
	t.Logf("%d times verified", verified)
}
