package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"forge/pipeline"
)

var implementSchema = object(
	"summary", typed("string", "what was changed and why"),
	"addressed?", listOf(object("id", typed("string", "id of the finding or failure, F1 or T1"), "what", typed("string", "what was done about it, or why nothing"),
		"differs?", typed("string", "of one that has come back: why the last attempt did not mend it, and how this one differs"),
		"doubt?", typed("string", "of one that has come back: what is missing, if you doubt that this attempt mends it; empty otherwise")), "one entry for each finding and failure"),
	"unable?", typed("string", "what could not be done, and which clarification is needed; empty otherwise"),
)

// feedback is what an implementer must deal with before anything else (T5), by
// ids that are local to its prompt.
type feedback struct {
	findings []pipeline.Finding // F1…
	failures []pipeline.Failure // T1…
	times    map[string]int     // by fingerprint, how often it was seen, of what has come back
}

func (p *phase) implement(ctx context.Context) (pipeline.Implementation, error) {
	if p.job.Workspace == nil {
		return pipeline.Implementation{}, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "the implementer has no workspace"}
	}
	mode := p.job.Ref.Mode
	if mode == "" {
		mode = pipeline.ModeFresh
	}
	w := p.prompt()
	var fb feedback
	if mode != pipeline.ModeFresh || len(p.job.Run.Iterations) > 1 {
		fb = openFeedback(p.job.Run)
		w.say("Iteration %d. The work was sent back; deal with what is listed below before anything else.", p.job.Ref.Iteration)
		w.scratchpad()
		w.data("Findings of the review to address", fb.findingList())
		w.data("Test failures to fix", fb.failureList())
	} else {
		w.say("Carry out the following task.")
		w.scratchpad()
	}
	w.task().plan().recall()
	if mode == pipeline.ModeFresh {
		w.tree()
	}
	var impl pipeline.Implementation
	err := p.converse(ctx, spec{
		name: "implementer", role: roleImplementer, system: system("implementer_" + string(mode)), prompt: w.String(),
		tools: append(append(append([]tool{}, readingTools...), editingTools...), commandTool), result: implementSchema,
		accept: func(args json.RawMessage) []string {
			var problems []string
			impl, problems = fb.check(args)
			return problems
		},
	})
	if err != nil {
		return pipeline.Implementation{}, err
	}
	return impl, nil
}

// openFeedback collects what is open: the blocking findings and the failures that
// the run follows, else those of the last review and test report.
func openFeedback(run *pipeline.Run) feedback {
	fb := feedback{times: map[string]int{}}
	for i := range run.Findings {
		if f := run.Findings[i].Finding; f != nil && run.Findings[i].State == "open" && f.Severity.Blocks() {
			fb.findings = append(fb.findings, *f)
			fb.seen(&run.Findings[i])
		}
	}
	for i := range run.Failures {
		if f := run.Failures[i].Failure; f != nil && run.Failures[i].State == "open" {
			fb.failures = append(fb.failures, *f)
			fb.seen(&run.Failures[i])
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

// seen notes that an issue has outlived an attempt to mend it.
func (fb feedback) seen(i *pipeline.Issue) {
	if i.Times > 1 {
		fb.times[i.Fingerprint()] = i.Times
	}
}

// again says that an issue has come back. Whoever is asked outright whether they
// can do a thing says so when they cannot; whoever is told to do it tries.
func (fb feedback) again(fingerprint string) string {
	n := fb.times[fingerprint]
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("   IT HAS COME BACK: this is the %s time that it is found. Can you mend it with what you know? If you doubt that this attempt does, say in its doubt what is missing; if you cannot, say in unable what you need.\n", ordinal(n))
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

func (fb feedback) findingList() string {
	var b strings.Builder
	for i, f := range fb.findings {
		fmt.Fprintf(&b, "F%d [%s, %s]%s %s\n", i+1, f.Severity, f.Category, where(f.File, f.Line, f.EndLine), f.Message)
		b.WriteString(fb.again(f.Fingerprint))
		if f.Criterion != "" {
			fmt.Fprintf(&b, "   not met: %s\n", f.Criterion)
		}
		if f.Code != "" {
			fmt.Fprintf(&b, "   the code was:\n%s\n", indent(clip(f.Code, 1500)))
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "   suggested: %s\n", f.Fix.Description)
			switch {
			case f.Fix.Replacement != nil:
				fmt.Fprintf(&b, "   as replacement of these lines:\n%s\n", indent(clip(*f.Fix.Replacement, 2000)))
			case f.Fix.Diff != "":
				b.WriteString(indent(clip(f.Fix.Diff, 2000)) + "\n")
			}
		}
	}
	return b.String()
}

func (fb feedback) failureList() string {
	var b strings.Builder
	for i, f := range fb.failures {
		fmt.Fprintf(&b, "T%d %s%s\n%s\n", i+1, f.Test, where(f.File, f.Line, 0), indent(clip(f.Error, 2000)))
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
				b.WriteString(indent(clip(f.Fix.Diff, 2000)) + "\n")
			}
		}
	}
	return b.String()
}

// check validates a result: every finding and failure has an answer, or the
// implementer says that it is unable.
func (fb feedback) check(args json.RawMessage) (pipeline.Implementation, []string) {
	var in struct {
		Summary   string
		Addressed []struct{ ID, What, Differs, Doubt string }
		Unable    string
	}
	if err := decode(args, &in); err != nil {
		return pipeline.Implementation{}, []string{err.Error()}
	}
	impl := pipeline.Implementation{Summary: strings.TrimSpace(in.Summary), Unable: unlessNone(in.Unable)}
	var bad []string
	if impl.Summary == "" && impl.Unable == "" {
		bad = append(bad, "summary is missing")
	}
	titles, back := fb.titles(), fb.back()
	done := map[string]bool{}
	for _, a := range in.Addressed {
		id, what := strings.TrimSpace(a.ID), strings.TrimSpace(a.What)
		title, known := titles[id]
		switch {
		case !known && len(titles) == 0:
			impl.Addressed = append(impl.Addressed, strings.TrimLeft(id+": "+what, ": "))
			continue
		case !known:
			bad = append(bad, fmt.Sprintf("addressed: there is no %q; the ids are %s", id, fb.ids()))
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
			bad = append(bad, fmt.Sprintf("addressed: %s has come back, and differs does not say how this attempt is another one; if you doubt that it helps, say in doubt what is missing; if you cannot mend it, say in unable what you need", id))
		}
		impl.Addressed = append(impl.Addressed, fmt.Sprintf("%s (%s): %s", id, title, what))
	}
	for _, id := range strings.Split(fb.ids(), ", ") {
		if id != "" && !done[id] && impl.Unable == "" {
			bad = append(bad, fmt.Sprintf("addressed: %s (%s) has no entry: deal with it, and say what you did, or why nothing; or say in unable what you need", id, titles[id]))
		}
	}
	return impl, bad
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
		m[fmt.Sprintf("F%d", i+1)] = clip(firstLine(f.Message), 100)
	}
	for i, f := range fb.failures {
		m[fmt.Sprintf("T%d", i+1)] = clip(f.Test, 100)
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
