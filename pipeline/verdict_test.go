package pipeline_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	. "forge/pipeline"
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
			changed = append(changed, path)
		}
	}
	return sha, changed
}

func (w *team) changed(path, from, to string) bool {
	return w.content[from][path] != w.content[to][path]
}

func finding(name string, s Severity) Finding {
	f := Finding{ID: name, Severity: s, Category: "correctness", Message: name, File: file(name), Line: 1, Code: name, Confidence: 0.9}
	f.Fingerprint = Fingerprint(&f)
	return f
}

func (w *team) result(ref *PhaseRef, d Data) {
	w.results++
	done := *ref
	done.Millis = 1000
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
		u.Head, _ = w.commit(run.Head, 20)
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

// review lists what comes to mind and rules as it likes. Only what Forge itself
// observes is true: the head, what was not shown, and whether the code has changed.
func (w *team) review(ref *PhaseRef) {
	run := &w.p.Run
	v := &Review{Head: run.Head, Ruled: true, Identity: 1}
	for _, n := range names {
		if w.chance(12) {
			v.Findings = append(v.Findings, finding(n, pick(w, []Severity{SeverityError, SeverityCritical, SeverityWarning, "odd"})))
		}
	}
	for _, path := range binaries {
		if w.chance(5) {
			v.NotReviewed = append(v.NotReviewed, Skipped{Path: path, Why: "binary"})
		}
	}
	for _, is := range run.Findings {
		if w.chance(20) { // forgotten
			continue
		}
		seen := is.Seen
		v.Rulings = append(v.Rulings, Ruling{Finding: is.Fingerprint(), Verdict: pick(w, []Verdict{VerdictFixed, VerdictFixed, VerdictOpen, VerdictWithdrawn, "gone"}),
			Why: pick(w, []string{"", " ", "so it is"}), Changed: w.changed(is.Finding.File, seen, run.Head)})
	}
	if w.chance(5) {
		v.NeedsHuman = "it looks odd"
	}
	if w.chance(5) {
		v.Head = "another"
	}
	w.result(ref, Data{Review: v})
}

func (w *team) test(ref *PhaseRef) {
	kind := "ok"
	if w.chance(30) {
		kind = pick(w, []string{"TestA 0.9", "TestA 0.9, TestB 0.2", "tampered TestE", "none x", "empty", "unclean exit 2", "ok before TestOldOne",
			"ok before TestOldOne, TestOldTwo", "TestA 0.9 before TestOldTwo"})
	}
	t := pipelinetest.Tests(w.p.Run.Head, kind)
	for i := range t.Before {
		if w.chance(15) {
			t.Before[i].KnownBy = pick(w, []string{"settings", "dora"})
		}
	}
	w.result(ref, Data{Tests: t})
}

// people do something.
func (w *team) people() {
	run := &w.p.Run
	commands := []string{"approve", "approve", "approve", "continue 2", "continue 3 // look again", "accept", "retry", "resume", "reset", "raise 5", "stop", "take-over", "choose x", "simplify it"}
	by := pick(w, []string{"", " by bob"})
	if g := run.Gate(); g != nil && w.chance(80) {
		c := pick(w, g.Choices)
		if c.Name != "cancel" {
			w.p.Human("human", strings.TrimSpace(c.Name+" "+strings.NewReplacer("N", "2", "WORDS", "less", "ANSWER", "so").Replace(c.Arg))+by)
		}
		return
	}
	switch w.rng.IntN(12) {
	case 0:
		sha, _ := w.commit(run.Head, 30)
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
	default:
		w.p.Human("human", pick(w, commands)+by)
	}
}

// Covers T8: whatever the team does and people say, at any moment, verified means
// that every blocking finding is shown to be gone or dismissed by a person, that
// nothing is unread, that the tests passed and ended well, and all that on this very
// head; and what does not hold of that carries a name. The oracle knows the commits
// and reads the log; it does not look at the run's own books.
func TestVerifiedIsTrue(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		_ = checks.Value.Set("20000")
		defer func() { _ = checks.Value.Set(before) }()
	}
	verified, cases := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
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

// book is what the oracle knows of a finding.
type book struct {
	state  string // open, closed, dismissed, accepted
	blocks bool
	seen   string // the commit that it was last listed for
	file   string
	print  string
}

// books are the oracle's: what the log says of the run.
type books struct {
	*team
	findings   map[string]*book           // by their words
	asked      map[string]string          // what people want changed and nobody has been given to do yet, with its file
	read       map[string]map[string]bool // versions of files that a person let pass
	known, fix map[string]bool            // tests that failed before
	gates      map[string]*Gate
	head       string
	review     *Review
	tests      *TestReport
}

// audit holds a verified run against its log.
func (w *team) audit() {
	b := &books{team: w, findings: map[string]*book{}, asked: map[string]string{}, read: map[string]map[string]bool{},
		known: map[string]bool{}, fix: map[string]bool{}, gates: map[string]*Gate{}, head: w.p.Run.Base}
	for i := range w.p.Events {
		b.take(&w.p.Events[i])
	}
	b.verdict()
}

func (b *books) moved(head string) { b.head, b.review, b.tests = head, nil, nil }

func (b *books) take(e *Event) {
	switch d := e.Data; e.Type {
	case EventBranchMoved:
		b.moved(d.Head)
	case EventRunReopened:
		if d.Head != "" {
			b.moved(d.Head)
		}
		if d.Answer == nil {
			break
		}
		for _, f := range b.findings { // who goes on with it wants what was accepted mended
			if f.state == "accepted" {
				f.state = "open"
			}
		}
		if d.Answer.Text != "" {
			b.asked[d.Answer.Text] = ""
		}
	case EventChangesAsked:
		for _, f := range d.Review.Findings {
			b.asked[f.Message] = f.File
		}
	case EventBounce:
		for m, file := range b.asked {
			f := Finding{Category: "human", Message: m, File: file}
			b.findings[m] = &book{state: "open", blocks: true, seen: b.head, file: file, print: Fingerprint(&f)}
		}
		clear(b.asked)
	case EventRunAccepted:
		for _, f := range b.findings {
			if f.state == "open" {
				f.state = "accepted"
			}
		}
	case EventPhaseCompleted:
		switch {
		case d.Implementation != nil:
			b.moved(d.Implementation.Head)
		case d.Update != nil:
			b.moved(d.Update.Head)
		case d.Review != nil && d.Review.Head == b.head:
			b.review = d.Review
			b.rule(d.Review)
		case d.Tests != nil && d.Plan == nil && d.Tests.Head == b.head:
			b.tests = d.Tests
		}
	case EventDismissed:
		for _, f := range b.findings {
			switch {
			case f.print != d.Signal.Finding:
			case !d.Signal.Off && f.state == "open" && d.Signal.Weight > 0:
				f.state = "dismissed"
			case d.Signal.Off && f.state == "dismissed":
				f.state = "open"
			}
		}
	case EventGateRequested:
		b.gates[d.Gate.ID] = d.Gate
	case EventGateAnswered:
		if g := b.gates[d.Answer.Gate]; g != nil && g.Guard != nil {
			b.answered(g.Guard, d.Answer)
		}
	}
}

// answered takes a person's word for what the question named.
func (b *books) answered(g *Guard, a *Answer) {
	switch {
	case a.Choice == "approve" && g.Name == GuardUnread:
		for _, path := range binaries {
			if strings.Contains(g.Detail, path) {
				if b.read[path] == nil {
					b.read[path] = map[string]bool{}
				}
				b.read[path][b.version(path)] = true
			}
		}
	case a.Choice == "approve" && g.Name == GuardDispute:
		for n, f := range b.findings {
			if f.state == "open" && strings.Contains(g.Detail, n) {
				f.state = "dismissed"
			}
		}
	case g.Name == GuardKnown:
		for _, n := range oldTests {
			if strings.Contains(g.Detail, n) {
				b.known[n] = b.known[n] || a.Choice == "approve"
				b.fix[n] = b.fix[n] || a.Choice == "continue"
			}
		}
	case a.Choice == "continue" && (g.Name == GuardHuman || g.Name == GuardUnread):
		text := a.Text
		if text == "" {
			text = a.By.Login + " sends it back; see what the review says"
		}
		b.asked[text] = ""
	}
}

func (b *books) version(path string) string { return fmt.Sprint(b.content[b.head][path]) }

// rule takes a review into the books.
func (b *books) rule(v *Review) {
	listed := map[string]bool{}
	for _, l := range v.Findings {
		listed[l.Message] = true
		f := b.findings[l.Message]
		if f == nil {
			f = &book{file: l.File, print: l.Fingerprint}
			b.findings[l.Message] = f
		}
		if f.state != "dismissed" && f.state != "accepted" {
			f.state = "open"
		}
		f.blocks, f.seen = l.Severity.Blocks(), v.Head
	}
	for n, f := range b.findings {
		gone, stays := false, listed[n]
		for _, r := range v.Rulings {
			switch {
			case r.Finding != f.print:
			case r.Verdict == VerdictFixed && b.changed(f.file, f.seen, v.Head), r.Verdict == VerdictWithdrawn && strings.TrimSpace(r.Why) != "":
				gone = true
			default:
				stays = true
			}
		}
		if f.state == "open" && gone && !stays {
			f.state = "closed"
		}
	}
}

func (b *books) verdict() {
	run, v, t := &b.p.Run, b.review, b.tests
	fail := func(format string, args ...any) {
		b.t.Helper()
		b.t.Fatalf("verified although "+format+"\n%s", append(args, b.p.Trace.String())...)
	}
	switch {
	case b.head != run.Head:
		fail("the branch is at %s and the run at %s", b.head, run.Head)
	case v == nil || t == nil:
		fail("%s has a review: %v, and tests: %v", b.head, v != nil, t != nil)
	case v.Head != b.head || t.Head != b.head:
		fail("reviewed was %s, tested %s, and the head is %s", v.Head, t.Head, b.head)
	case t.None != "" || t.Unclean != "" || t.Passed == 0 || len(t.Failures) > 0 || len(t.Tampered) > 0:
		fail("the tests are %+v", t)
	case len(b.asked) > 0:
		fail("%v was asked for", b.asked)
	}
	named := strings.Contains(run.Ended, "let pass by @")
	for n, f := range b.findings {
		if f.state == "open" && f.blocks {
			fail("%s is open, last seen in %s", n, f.seen)
		}
		if (f.state == "dismissed" || f.state == "accepted") && f.blocks && !named {
			fail("%s is %s, and nobody is named: %s", n, f.state, run.Ended)
		}
	}
	for _, s := range v.NotReviewed {
		if !b.read[s.Path][b.version(s.Path)] || !named {
			fail("%s is unread: %s", s.Path, run.Ended)
		}
	}
	for i, f := range t.Before {
		by := run.Current().Tests.Before[i].KnownBy
		switch {
		case b.fix[f.Test]:
			fail("%s was to be fixed", f.Test)
		case f.KnownBy == "" && !b.known[f.Test] || by == "":
			fail("nobody knows of %s", f.Test)
		case by != "settings" && !named:
			fail("%s is let pass, and nobody is named: %s", f.Test, run.Ended)
		}
	}
}
