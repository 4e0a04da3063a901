package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/module"
	"forge/pipeline/text"
)

// contractParts are what the result of a module's implementer has as well.
var contractParts = []any{
	"contract?", typed("string", "What the contract between the modules must say in another way, and why, where your module cannot be built by it as it is. Whoever wrote it revises it, "+
		"and you continue with that. Empty otherwise."),
}

// The implementer's result: at first, and of work that was sent back.
var (
	implementParts = []any{
		"summary", typed("string", "What was changed and why, in a few sentences."),
		"unable?", typed("string", "What could not be done, and which clarification is needed. Empty otherwise."),
	}
	addressedParts = []any{
		"id", typed("string", "The id of the finding or failure, such as F1 or T1."),
		"what", typed("string", "What was done about it, or why nothing was."),
	}
	backParts = []any{ // of what has come back
		"differs?", typed("string", "Only for what has come back: why the last attempt did not fix it, and how this one differs."),
		"doubt?", typed("string", "Only for what has come back: what is missing, if you doubt that this attempt fixes it. Empty otherwise."),
	}
	reworkParts = []any{
		implementParts[0], implementParts[1],
		"addressed", listOf(object(slices.Concat(addressedParts, backParts)...), "One entry for each finding and failure that is not disputed."),
		"disputes?", listOf(object("id", typed("string", "The id of the finding, such as F1."),
			"why", typed("string", "Why it is mistaken. Name the code or the test, so that the reviewer can check it.")),
			"Findings that are mistaken and for which you changed nothing. The reviewer rules on them, and a human on those about the tests."),
		implementParts[2], implementParts[3],
	}
)

// feedback is what an implementer must deal with before anything else (T5), by
// ids that are local to its prompt.
type feedback struct {
	findings  []pipeline.Finding // F1…
	failures  []pipeline.Failure // T1…
	suggested []pipeline.Finding // S1…: they hold nothing up, and say what to put there
	times     map[string]int     // by fingerprint, how often it was seen, of what has come back
	ruled     map[string]string  // by fingerprint, what the reviewer last said to leave it open
	tried     map[string]string  // by fingerprint, what the implementer last said to have done about it
}

func (p *phase) implement(ctx context.Context) (pipeline.Implementation, error) {
	if p.job.Workspace == nil {
		return pipeline.Implementation{}, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "the implementer has no workspace"}
	}
	mode := p.job.Ref.Mode
	if mode == "" {
		mode = pipeline.ModeFresh
	}
	w := p.prompt().say("Work on the following task. What you are asked for this time is said at the end.").
		task().plan().instructions().files().mark().notes().comments().tests().recall().scratchpad()
	var fb feedback
	if p.job.Conflict != nil {
		return p.merge(ctx, w)
	}
	first := mode == pipeline.ModeFresh || mode == pipeline.ModeContract || mode == pipeline.ModeWire
	if !first || len(p.job.Run.Iterations) > 1 {
		fb = openFeedback(p.job.Run)
		w.own().lastFault()
		w.say("Iteration %d. The work was sent back; deal with what is listed below before anything else.", p.job.Ref.Iteration)
		w.data("Findings of the review to address", findingList(fb.findings, "F", fb.again))
		w.data("Test failures to fix", fb.failureList())
		w.data("Suggestions of the review that hold nothing up; take those that are right and cheap", findingList(fb.suggested, "S", nil))
	} else {
		w.lastFault().contract().excerpts(ctx)
	}
	var impl pipeline.Implementation
	name := "implementer"
	if mode == pipeline.ModeContract {
		name = "contract"
		if p.job.Ref.Part != "" {
			name = "revision"
		}
	}
	if p.job.Lock != nil {
		w.say("%s", promptText("locks"))
	}
	w.say("%s", promptText("implementer_"+string(mode)))
	if len(fb.times) > 0 {
		w.say("%s", promptText("implementer_back"))
	}
	s := w.spec(name, roleImplementer, system("implementer"))
	asked := slices.Clone(reworkParts)
	switch {
	case len(fb.titles()) == 0:
		asked = implementParts
	case len(fb.times) == 0: // nothing has come back
		asked[3] = listOf(object(addressedParts...), "One entry for each finding and failure that is not disputed.")
	}
	var form []any
	if of := p.job.Run.Part; of != nil && len(of.Contract) > 0 {
		form = append(form, contractParts...)
	}
	if len(provable(p.job.Run)) > 0 && mode != pipeline.ModeContract {
		form = append(form, proofParts...)
	}
	if p.job.Run.TakesFeedback() {
		form = append(form, constraintParts...)
	}
	s.tools, s.result = p.working(), object(slices.Concat(loose(reworkParts...), form)...)
	s.forms = []tool{{name: "submit", schema: object(slices.Concat(asked, form)...)}}
	s.accept = func(args json.RawMessage) []string {
		var problems []string
		impl, problems = fb.check(args)
		problems = append(problems, p.proved(ctx, args, &impl)...)
		problems = append(problems, p.constrained(args, &impl)...)
		problems = append(problems, slices.Concat(p.refused(ctx), p.strays(ctx))...)
		if len(problems) == 0 && impl.Unable == "" {
			problems = p.locked(ctx)
		}
		return problems
	}
	if err := p.converse(ctx, s); err != nil {
		if err == p.spent && mode != pipeline.ModeContract && p.handOver(ctx, &impl) {
			return impl, nil
		}
		return pipeline.Implementation{}, err
	}
	return impl, nil
}

// handOver makes a result of what is in the work tree when a conversation has ended without
// one: review and tests judge the work, whether it was said to be done or not. ok is false
// where there is none, or none that can be committed.
func (p *phase) handOver(ctx context.Context, impl *pipeline.Implementation) (ok bool) {
	ws, _ := p.job.Workspace.(changer)
	if ws == nil {
		return false
	}
	changed, err := ws.Changes(ctx)
	if err != nil || len(changed) == 0 || len(p.strays(ctx)) > 0 || len(p.locked(ctx)) > 0 {
		return false
	}
	impl.Unable, impl.Contract = "", ""
	impl.Summary = strings.TrimSpace(firstOf(impl.Summary, p.words) + "\n\n(Handed over as it stood: " + p.why + ".)")
	return true
}

// contract says what a module wants of the contract that is to be revised, and to a
// module, that it was.
func (w *prompt) contract() *prompt {
	run := w.p.job.Run
	if part := module.Find(run.Parts, w.p.job.Ref.Part); part != nil {
		return w.say("The contract stands, and modules are built by it. One of them, %s, cannot be built by it as it is. Revise the contract as it needs, where that is right for the others, too: "+
			"change no more than that, and leave the modules' own files alone but for the stubs of what is new. What the others rely on must go on to hold.", part.ID).
			data("What the module wants of the contract", part.Wants)
	}
	if it := run.Current(); run.Part != nil && it != nil && it.Update != nil {
		return w.own().say("You have asked for another contract. It was revised since, and your work stands on it: go on from there.")
	}
	return w
}

// refused says why what is in the work tree cannot be committed, such as a symbolic
// link: the implementer mends it while it still knows why it is there. A fault is the
// phase's, which asks again.
func (p *phase) refused(ctx context.Context) []string {
	ws, ok := p.job.Workspace.(changer)
	if !ok {
		return nil
	}
	_, err := ws.Changes(ctx)
	var f *pipeline.Fault
	if err == nil || ctx.Err() != nil || errors.As(err, &f) {
		return nil
	}
	return []string{fmt.Sprintf("the work cannot be committed: %v. Put that right in the work tree", err)}
}

// strays says what commands have changed that is not the implementer's to change: it gives
// that back while it still knows how, where the commit would be refused, and the attempt lost.
func (p *phase) strays(ctx context.Context) []string {
	ws, ok := p.job.Workspace.(strayer)
	if !ok {
		return nil
	}
	err := ws.Strays(ctx)
	var f *pipeline.Fault
	if err == nil || ctx.Err() != nil || errors.As(err, &f) {
		return nil
	}
	return []string{fmt.Sprintf("no commit takes the work as it is, because a command of yours has changed what is not yours to change:\n%v\n"+
		"By a command, give each such file the content back that it had, or remove it where it is new", err)}
}

// locked says why lock files cannot be brought in line with the manifests. Where that
// breaks down, whoever makes the commit says so.
func (p *phase) locked(ctx context.Context) []string {
	if p.job.Lock == nil {
		return nil
	}
	problems, err := p.job.Lock(ctx)
	if err != nil {
		return nil
	}
	return problems
}

// own appends what the run has changed so far.
func (w *prompt) own() *prompt {
	whose := "Your work so far"
	if w.p.job.Run.Anew() {
		whose = "The work so far, with what somebody else has pushed to the branch since it was sent back to you (what is asked for may be done by that: " +
			"where nothing is left to do, change nothing and submit, and the reviewer looks at it)"
	}
	return w.data(whose+": the change since the base, with the lines' numbers as they are now", inShort(change.Read(w.p.job.Diff)))
}

// inShort is the beginning of a change, and the names of the files behind it.
func inShort(c change.Change) string {
	r := c.Divide(ownChange, func(string) (string, bool) { return "", false })
	text := ""
	for _, part := range r.Parts {
		text += part.Text
	}
	for i, s := range r.Unread {
		if i == 0 {
			text += "\nChanged too, and not shown here:\n"
		}
		text += s.Path + "\n"
	}
	return text
}

// openFeedback collects what is open: the blocking findings and the failures that
// the run follows, else those of the last review and test report.
func openFeedback(run *pipeline.Run) feedback {
	fb := feedback{times: map[string]int{}, ruled: map[string]string{}, tried: map[string]string{}}
	for i := range run.Findings {
		is := &run.Findings[i]
		f := is.Finding
		switch {
		case f == nil || is.State != pipeline.IssueOpen:
		case f.Severity.Blocks():
			fb.findings = append(fb.findings, *f)
			fb.seen(run, is, titleOf(f))
		case f.Fix != nil && f.Fix.Replacement != nil:
			fb.suggested = append(fb.suggested, *f)
		}
	}
	for i := range run.Failures {
		if f := run.Failures[i].Failure; f != nil && run.Failures[i].State == pipeline.IssueOpen {
			fb.failures = append(fb.failures, *f)
			fb.seen(run, &run.Failures[i], text.ClipBytes(f.Test, 100))
		}
	}
	for i := len(run.Iterations) - 1; i >= 0 && len(fb.findings)+len(fb.failures) == 0; i-- {
		it := &run.Iterations[i]
		if it.Review != nil {
			fb.findings = it.Review.Blocking()
		}
		if it.Tests != nil {
			fb.findings = append(fb.findings, it.Tests.Tampered...)
			fb.failures = it.Tests.Failures
		}
	}
	return fb
}

// seen notes that an issue has outlived an attempt to fix it, and what that was.
func (fb feedback) seen(run *pipeline.Run, i *pipeline.Issue, title string) {
	if i.Times <= 1 {
		return
	}
	print := i.Fingerprint()
	fb.times[print], fb.ruled[print] = i.Times, i.Ruling
	for _, it := range slices.Backward(run.Iterations) {
		if it.Impl != nil {
			fb.tried[print] = said(it.Impl, title)
			return
		}
	}
}

// again says that an issue has come back. Whoever is asked outright whether they
// can do a thing says so when they cannot; whoever is told to do it tries.
func (fb feedback) again(fingerprint string) string {
	n := fb.times[fingerprint]
	if n == 0 {
		return ""
	}
	out := fmt.Sprintf("   IT HAS COME BACK: it is found for the %s time. Why did the last fix fail? Can you fix it with what you know? If not, say in unable what you need.\n", ordinal(n))
	if what := fb.tried[fingerprint]; what != "" {
		out += fmt.Sprintf("   the last attempt, in your words: %s\n", text.ClipBytes(what, 800))
	}
	if why := fb.ruled[fingerprint]; why != "" {
		out += fmt.Sprintf("   the reviewer left it open: %s\n", text.ClipBytes(why, 800))
	}
	return out
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

// findingList shows findings by their local ids.
func findingList(list []pipeline.Finding, letter string, note func(fingerprint string) string) string {
	var b strings.Builder
	for i, f := range list {
		print := ""
		if f.Fingerprint != "" {
			print = ", " + shortPrint(f.Fingerprint)
		}
		fmt.Fprintf(&b, "%s%d [%s, %s%s]%s %s\n", letter, i+1, f.Severity, f.Category, print, where(f.File, f.Line, f.EndLine), f.Message)
		if note != nil {
			b.WriteString(note(f.Fingerprint))
		}
		if f.Criterion != "" {
			fmt.Fprintf(&b, "   not met: %s\n", f.Criterion)
		}
		if f.Code != "" {
			fmt.Fprintf(&b, "   the code was:\n%s\n", indent(text.ClipBytes(f.Code, 1500)))
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "   suggested: %s\n", f.Fix.Description)
			switch {
			case f.Fix.Replacement != nil:
				fmt.Fprintf(&b, "   as replacement of these lines:\n%s\n", indent(text.ClipBytes(*f.Fix.Replacement, 2000)))
			case f.Fix.Diff != "":
				b.WriteString(indent(text.ClipBytes(f.Fix.Diff, 2000)) + "\n")
			}
		}
	}
	return b.String()
}

func (fb feedback) failureList() string {
	var b strings.Builder
	for i, f := range fb.failures {
		fmt.Fprintf(&b, "T%d %s%s\n%s\n", i+1, f.Test, where(f.File, f.Line, 0), indent(middleCut(f.Error, 1500, 2500)))
		b.WriteString(fb.again(f.Fingerprint))
		if f.WorkedIn > 0 {
			fmt.Fprintf(&b, "   NEW FAILURE: it passed in iteration %d\n", f.WorkedIn)
		}
		if f.Analysis != "" {
			fmt.Fprintf(&b, "   the tester's analysis (%s, confidence %.2f): %s\n", f.Cause, f.Confidence, f.Analysis)
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "   suggested: %s\n", f.Fix.Description)
			if f.Fix.Diff != "" {
				b.WriteString(indent(text.ClipBytes(f.Fix.Diff, 2000)) + "\n")
			}
		}
	}
	return b.String()
}

// check validates a result: every finding and failure has an answer or is disputed,
// or the implementer says that it is unable.
func (fb feedback) check(args json.RawMessage) (pipeline.Implementation, []string) {
	var in struct {
		Summary   string
		Addressed []struct{ ID, What, Differs, Doubt string }
		Disputes  []struct{ ID, Why string }
		Unable    string
		Contract  string
	}
	if err := decode(args, &in); err != nil {
		return pipeline.Implementation{}, []string{err.Error()}
	}
	impl := pipeline.Implementation{Summary: strings.TrimSpace(in.Summary), Unable: unlessNone(in.Unable), Contract: unlessNone(in.Contract)}
	var bad []string
	if impl.Summary == "" && impl.Unable == "" && impl.Contract == "" {
		bad = append(bad, "summary is missing")
	}
	titles, back := fb.titles(), fb.back()
	done := map[string]bool{}
	for _, d := range in.Disputes {
		id, why := fb.id(d.ID), unlessNone(d.Why)
		if problem := fb.mayDispute(id, why); problem != "" {
			bad = append(bad, problem)
			continue
		}
		done[id] = true
		impl.Disputes = append(impl.Disputes, pipeline.Dispute{Finding: fb.finding(id).Fingerprint, Why: why})
		impl.Addressed = append(impl.Addressed, fmt.Sprintf("%s (%s): disputed: %s", id, titles[id], why))
	}
	for _, a := range in.Addressed {
		id, what := fb.id(a.ID), strings.TrimSpace(a.What)
		title, known := titles[id]
		switch {
		case !known && len(titles) == 0:
			impl.Addressed = append(impl.Addressed, strings.TrimLeft(id+": "+what, ": "))
			continue
		case !known:
			bad = append(bad, fmt.Sprintf("addressed: there is no %q; the ids are %s", id, fb.ids()))
			continue
		case done[id]: // it is disputed, which says why nothing was done
			continue
		case what == "":
			bad = append(bad, fmt.Sprintf("addressed: %s does not say what was done", id))
		}
		done[id] = true
		doubt := unlessNone(a.Doubt)
		if doubt != "" && back[id] {
			impl.Doubts = append(impl.Doubts, title+": "+doubt)
		}
		if differs := strings.TrimSpace(a.Differs); differs != "" {
			what += " (" + differs + ")"
		} else if back[id] && doubt == "" && impl.Unable == "" {
			bad = append(bad, fmt.Sprintf("addressed: %s has come back, and differs does not say how this attempt is another one; if you doubt that it helps, say in doubt what is missing; if you cannot fix it, say in unable what you need", id))
		}
		impl.Addressed = append(impl.Addressed, fmt.Sprintf("%s (%s): %s", id, title, what))
	}
	for _, id := range strings.Split(fb.ids(), ", ") {
		if id != "" && !done[id] && impl.Unable == "" && impl.Contract == "" {
			bad = append(bad, fmt.Sprintf("addressed: %s (%s) has no entry: deal with it, and say what you did, or why nothing; or say in unable what you need", id, titles[id]))
		}
	}
	return impl, bad
}

// mayDispute says why a finding cannot be disputed, or "".
func (fb feedback) mayDispute(id, why string) string {
	f := fb.finding(id)
	switch {
	case f == nil:
		return fmt.Sprintf("disputes: there is no finding %q; the ids are %s", id, fb.ids())
	case why == "":
		return fmt.Sprintf("disputes: %s has no why", id)
	}
	return ""
}

// id is the local id of what a model names, by that or by the beginning of a
// fingerprint.
func (fb feedback) id(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "[]()")
	for i, f := range fb.findings {
		if len(s) >= 6 && strings.HasPrefix(f.Fingerprint, strings.ToLower(s)) {
			return fmt.Sprintf("F%d", i+1)
		}
	}
	return s
}

// finding returns the finding with a local id, nil when there is none.
func (fb feedback) finding(id string) *pipeline.Finding {
	for i := range fb.findings {
		if id == fmt.Sprintf("F%d", i+1) {
			return &fb.findings[i]
		}
	}
	return nil
}

// unlessNone is a text, or "" for the words that models write where nothing is to
// be said.
func unlessNone(s string) string {
	s = strings.TrimSpace(s)
	switch strings.ToLower(strings.Trim(s, ".()-–—")) {
	case "", "none", "no", "n/a", "na", "null", "nothing", "empty", "no doubt", "no doubts":
		return ""
	}
	return s
}

func (fb feedback) titles() map[string]string {
	m := map[string]string{}
	for i, f := range fb.findings {
		m[fmt.Sprintf("F%d", i+1)] = titleOf(&f)
	}
	for i, f := range fb.suggested {
		m[fmt.Sprintf("S%d", i+1)] = titleOf(&f)
	}
	for i, f := range fb.failures {
		m[fmt.Sprintf("T%d", i+1)] = text.ClipBytes(f.Test, 100)
	}
	return m
}

// back are the ids of what has come back.
func (fb feedback) back() map[string]bool {
	m := map[string]bool{}
	for i, f := range fb.findings {
		m[fmt.Sprintf("F%d", i+1)] = fb.times[f.Fingerprint] > 0
	}
	for i, f := range fb.failures {
		m[fmt.Sprintf("T%d", i+1)] = fb.times[f.Fingerprint] > 0
	}
	return m
}

func (fb feedback) ids() string {
	var ids []string
	for i := range fb.findings {
		ids = append(ids, fmt.Sprintf("F%d", i+1))
	}
	for i := range fb.failures {
		ids = append(ids, fmt.Sprintf("T%d", i+1))
	}
	return strings.Join(ids, ", ")
}

func where(file string, line, end int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return " " + file + ":"
	case end > line:
		return fmt.Sprintf(" %s:%d-%d:", file, line, end)
	}
	return fmt.Sprintf(" %s:%d:", file, line)
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n      ")
}
