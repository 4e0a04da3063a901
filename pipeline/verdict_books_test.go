package pipeline_test

import (
	"cmp"
	"fmt"
	"strings"

	. "forge/pipeline"
)

// book is what the oracle knows of a finding.
type book struct {
	state  string // open, fixed, withdrawn, dismissed, accepted
	by     string // who dismissed it
	blocks bool
	seen   string // the commit that it was last listed for
	fixed  string // the commit that it was ruled fixed on
	code   string // as it was last quoted
	file   string
	print  string
}

// books are the oracle's: what the log says of the run.
type books struct {
	*team
	findings map[string]*book             // by their words
	asked    map[string]string            // what people want changed and nobody has been given to do yet, with its file
	read     map[string]map[string]string // versions of files that a person let pass: who
	known    map[string]string            // tests that failed before: who says that they are known
	fix      map[string]bool              // tests that failed before, and that are to be fixed
	gates    map[string]*Gate
	tampered []Finding         // what the last tests said of the change
	passed   map[string]string // of that what a person let pass, by its code: who
	active   *PhaseRef         // what is being carried out
	planned  bool
	replan   bool // the task was edited by somebody who may, and what it says is in no plan yet
	looked   bool // a person has looked because the last review wants that
	head     string
	review   *Review
	tests    *TestReport
}

// audit holds a verified run against its log.
func (w *team) audit() {
	b := &books{team: w, findings: map[string]*book{}, asked: map[string]string{}, read: map[string]map[string]string{},
		known: map[string]string{}, fix: map[string]bool{}, gates: map[string]*Gate{}, passed: map[string]string{}, head: w.p.Run.Base}
	for i := range w.p.Events {
		b.take(&w.p.Events[i])
	}
	b.verdict()
}

func (b *books) moved(head string) { b.head, b.review, b.tests = head, nil, nil }

func (b *books) take(e *Event) {
	switch d := e.Data; e.Type {
	case EventPhaseEntered:
		b.active = d.Phase
	case EventPhaseFailed:
		b.active = nil
	case EventPhaseCompleted:
		if a := b.active; a != nil && a.Phase == d.Phase.Phase && a.Iteration == d.Phase.Iteration && a.Attempt == d.Phase.Attempt {
			b.completed(&d)
		}
	case EventBranchMoved:
		if d.Lost == "" {
			b.handOver()
		}
		b.moved(d.Head)
		if b.active != nil && b.active.Phase != PhasePlan {
			b.active = nil
		}
	case EventRunReopened:
		b.reopened(&d)
	case EventIssueEdited:
		if b.replan = b.replan || d.Actor != nil && b.planned; d.Actor != nil && b.active != nil && b.active.Phase == PhasePlan {
			b.active = nil
		}
	case EventChangesAsked:
		for _, f := range d.Review.Findings {
			b.asked[f.Message] = f.File
		}
	case EventBounce:
		b.handOver()
	case EventRunAccepted:
		b.active = nil
		for _, f := range b.findings {
			if f.state == "open" {
				f.state = "accepted"
			}
		}
	case EventDismissed:
		b.dismissed(d.Signal)
	case EventGateRequested:
		b.gates[d.Gate.ID], b.active = d.Gate, nil
	case EventGateAnswered:
		if g := b.gates[d.Answer.Gate]; g != nil && g.Guard != nil {
			b.answered(g, d.Answer)
		}
	}
}

func (b *books) completed(d *Data) {
	b.active = nil
	switch {
	case d.Plan != nil:
		if b.planned = true; b.replan { // what was judged was held against another plan
			b.replan, b.review, b.tests = false, nil, nil
		}
	case d.Implementation != nil:
		b.moved(d.Implementation.Head)
	case d.Update != nil && d.Update.Parent == b.head && len(d.Update.Conflicts) == 0:
		b.moved(d.Update.Head)
	case d.Review != nil && d.Review.Head == b.head:
		b.review, b.looked = d.Review, false
		b.rule(d.Review)
	case d.Tests != nil && d.Tests.Head == b.head:
		b.tests, b.tampered = d.Tests, d.Tests.Tampered
	}
}

func (b *books) reopened(d *Data) {
	b.active = nil
	if d.Head != "" {
		b.moved(d.Head)
	}
	if d.Answer == nil {
		return
	}
	for _, f := range b.findings { // who goes on with it wants what was accepted mended
		if f.state == "accepted" {
			f.state = "open"
		}
	}
	if d.Answer.Text != "" {
		b.asked[d.Answer.Text] = ""
	} else if d.Head == "" { // look again
		b.review, b.tests = nil, nil
	}
}

func (b *books) dismissed(s *Signal) {
	for _, f := range b.findings {
		switch {
		case f.print != s.Finding:
		case !s.Off && f.state == "open" && s.Weight > 0:
			f.state, f.by = "dismissed", cmp.Or(s.Actor.Login, "ghost") // whose account is gone
		case s.Off && f.state == "dismissed":
			f.state = "open"
		}
	}
}

// handOver makes what people want changed findings like others.
func (b *books) handOver() {
	for m, file := range b.asked {
		f := Finding{Category: "human", Message: m, File: file}
		b.findings[m] = &book{state: "open", blocks: true, seen: b.head, file: file, print: f.Digest()}
	}
	clear(b.asked)
}

// answered takes a person's word for what the question named.
func (b *books) answered(gate *Gate, a *Answer) {
	g := gate.Guard
	b.letTests(gate, a)
	switch {
	case a.Choice == "approve" && g.Name == GuardUnread:
		for _, path := range binaries {
			if strings.Contains(g.Detail, path) {
				if b.read[path] == nil {
					b.read[path] = map[string]string{}
				}
				b.read[path][b.version(path)] = a.By.Login
			}
		}
	case a.Choice == "approve" && g.Name == GuardDispute:
		for n, f := range b.findings {
			if f.state == "open" && strings.Contains(g.Detail, n) {
				f.state, f.by = "dismissed", a.By.Login
			}
		}
	case g.Name == GuardKnown:
		for _, n := range oldTests {
			switch {
			case !strings.Contains(g.Detail, n):
			case a.Choice == "approve":
				b.known[n] = a.By.Login
			case a.Choice == "continue":
				b.fix[n] = true
			}
		}
	case g.Name == GuardHuman && (a.Choice == "approve" || a.Choice == "continue"):
		b.looked = true
	case g.Name == GuardNoProgress && a.Via == "review":
		b.handOver()
	}
	if a.Choice == "continue" && (g.Name == GuardHuman || g.Name == GuardUnread) {
		text := a.Text
		if text == "" {
			text = a.By.Login + " sends it back; see what the review says"
		}
		b.asked[text] = ""
	}
}

// letTests takes a person's word for what the tests say of the change, as far as the
// question or the choice named it.
func (b *books) letTests(gate *Gate, a *Answer) {
	said := gate.Question
	for _, c := range gate.Choices {
		if c.Name == "approve" {
			said += c.Label
		}
	}
	for _, f := range b.tampered {
		if a.Choice == "approve" && strings.Contains(said, f.Message[:min(len(f.Message), 140)]) {
			b.passed[f.Code] = a.By.Login
		}
	}
}

func (b *books) version(path string) string { return fmt.Sprint(b.content[b.head][path]) }

// rule takes a review into the books.
func (b *books) rule(v *Review) {
	for _, f := range b.findings {
		if b.back(f) {
			f.state = "open"
		}
	}
	listed := map[string]bool{}
	for _, l := range v.Findings {
		listed[l.Message] = true
		f := b.findings[l.Message]
		if f == nil {
			f = &book{file: l.File, print: l.Fingerprint}
			b.findings[l.Message] = f
		}
		gone, stays := b.ruled(f, v)
		blocks := l.Severity != SeverityInfo && l.Severity != SeverityWarning // what cannot be judged is not approved
		f.blocks = blocks || f.blocks && f.state == "open" && (gone == "" || stays)
		if f.state != "dismissed" && f.state != "accepted" || f.code != l.Code { // a person's word is for the code that they saw
			f.state = "open"
		}
		f.seen, f.code = v.Head, l.Code
	}
	for n, f := range b.findings {
		if gone, stays := b.ruled(f, v); f.state == "open" && !listed[n] && gone != "" && !stays {
			f.state, f.fixed = gone, v.Head
		}
	}
}

// back reports whether the code of what was ruled fixed is not as it was then.
func (b *books) back(f *book) bool {
	return f.state == "fixed" && f.blocks && f.code != "" && b.changed(f.file, f.fixed, b.head)
}

// ruled says how a review rules a finding gone, fixed or withdrawn, and whether it rules that
// it is still there.
func (b *books) ruled(f *book, v *Review) (gone string, stays bool) {
	for _, r := range v.Rulings {
		switch {
		case r.Finding != f.print:
		case r.Verdict == VerdictFixed && b.changed(f.file, f.seen, v.Head), r.Verdict == VerdictWithdrawn && strings.TrimSpace(r.Why) != "":
			gone = cmp.Or(gone, string(r.Verdict))
		default:
			stays = true
		}
	}
	return gone, stays
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
	case t.None != "" || t.Unclean != "" || t.Passed == 0 || len(t.Failures) > 0:
		fail("the tests are %+v", t)
	case len(b.asked) > 0:
		fail("%v was asked for", b.asked)
	case b.replan:
		fail("the task was edited and not planned again")
	case v.NeedsHuman != "" && !b.looked:
		fail("the reviewer asks for a human: %s", v.NeedsHuman)
	}
	for n, f := range b.findings {
		switch {
		case !f.blocks:
		case f.state == "open":
			fail("%s is open, last seen in %s", n, f.seen)
		case f.state == "dismissed" && !b.named(f.by), f.state == "accepted" && !strings.Contains(run.Ended, "let pass by @"):
			fail("%s is %s by %q, and they are not named: %s", n, f.state, f.by, run.Ended)
		}
	}
	for _, s := range v.NotReviewed {
		if by := b.read[s.Path][b.version(s.Path)]; !b.named(by) {
			fail("%s is unread; %q let it pass: %s", s.Path, by, run.Ended)
		}
	}
	for _, h := range v.Suppressed {
		if h.Finding.Severity.Blocks() && !b.named(h.By.Login) {
			fail("%s is held back because of %s, who is not named: %s", h.Finding.Message, h.By.Login, run.Ended)
		}
	}
	for _, f := range t.Tampered {
		if !b.named(b.passed[f.Code]) {
			fail("the tests say %s, and %q let it pass: %s", f.Message, b.passed[f.Code], run.Ended)
		}
	}
	for _, c := range t.Changed {
		if b.passed[c.Test] == "" && !strings.Contains(c.Reason, c.Test) {
			fail("%s passes only as it was edited, and nobody says why: %q", c.Test, c.Reason)
		}
	}
	for _, f := range t.Before {
		switch by := cmp.Or(f.KnownBy, b.known[f.Test]); {
		case b.fix[f.Test]:
			fail("%s was to be fixed", f.Test)
		case by != "settings" && !b.named(by) || !strings.Contains(run.Ended, f.Test):
			fail("%s failed before; %q let it pass: %s", f.Test, by, run.Ended)
		}
	}
}

// named reports whether the end of the run says that a person let something pass.
func (b *books) named(login string) bool {
	return login != "" && strings.Contains(b.p.Run.Ended, "let pass by @"+login+":")
}
