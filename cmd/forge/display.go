package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	ansi "github.com/jedib0t/go-pretty/v6/text"

	"forge/cmd/forge/shell"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/module"
	"forge/pipeline/text"
)

// display shows what happens to runs as it happens: a line for each thing that
// counts, and on a terminal one more line below them that says what is going on
// right now.
type display struct {
	out   io.Writer
	live  bool // a terminal
	color bool
	links bool // say where on GitHub things are

	mu     sync.Mutex
	begun  time.Time
	status string // what the live line shows
	shown  map[int64]map[string]bool
	runs   map[int64]bool // that were seen: with several, each line says whose it is
}

func newDisplay(out io.Writer, now time.Time) *display {
	tty := shell.IsTerminal(out)
	return &display{out: out, live: tty, color: tty && os.Getenv("NO_COLOR") == "", begun: now, shown: map[int64]map[string]bool{}, runs: map[int64]bool{}}
}

// onEvents is work.Options.OnEvents.
func (d *display) onEvents(run *pipeline.Run, events []pipeline.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if run.Part == nil {
		d.runs[run.ID] = true
	}
	for _, e := range events {
		if line := narrate(run, e); line.text != "" {
			if run.Repo.ID == 0 {
				line.text = typed(run, line.text)
			}
			switch {
			case run.Part != nil:
				line.text = fmt.Sprintf("%s: %s", run.Part.Module.ID, line.text)
			case len(d.runs) > 1:
				line.text = fmt.Sprintf("run %d: %s", run.ID, line.text)
			}
			d.print(e.Time, line)
		}
		if d.links && e.Type == pipeline.EventPublishCompleted {
			d.showLinks(run, e)
		}
	}
	d.refresh(run)
}

// say prints a line of the command's own.
func (d *display) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
	fmt.Fprintf(d.out, format+"\n", args...)
	d.redraw()
}

func (d *display) print(at time.Time, l line) {
	d.clear()
	stamp := fmt.Sprintf("%6.1fs", at.Sub(d.begun).Seconds())
	label := fmt.Sprintf("%-10s", l.label)
	if d.color {
		stamp, label = colored(stamp, ansi.Faint), colored(label, ansi.Bold, l.color())
	}
	// Models and strangers write parts of it: they make no lines, and do not drive the terminal.
	fmt.Fprintf(d.out, "%s  %s  %s\n", stamp, label, text.OneLine(strings.Map(text.Visible, l.text)))
}

// showLinks says where new things are, once each.
func (d *display) showLinks(run *pipeline.Run, e pipeline.Event) {
	seen := d.shown[run.ID]
	if seen == nil {
		seen = map[string]bool{}
		d.shown[run.ID] = seen
	}
	if p := run.Published.Pull; p != nil && !seen[p.URL] {
		seen[p.URL] = true
		d.print(e.Time, line{label: "github", text: fmt.Sprintf("draft pull request #%d: %s", p.Number, p.URL)})
	}
	if e.Data.Publication == nil {
		return
	}
	for key, a := range e.Data.Publication.Artefacts {
		if strings.HasPrefix(key, "review/") && a.URL != "" && !seen[a.URL] {
			seen[a.URL] = true
			d.print(e.Time, line{label: "github", text: "findings as inline comments: " + a.URL})
		}
	}
}

// refresh redraws the line that says what is going on.
func (d *display) refresh(run *pipeline.Run) {
	d.status = ""
	if run.Active != nil && run.State == pipeline.StateRunning {
		d.status = fmt.Sprintf("… %s", run.Active.Phase)
		if run.Active.Iteration > 0 {
			d.status += fmt.Sprintf(", iteration %d of %d", run.Active.Iteration, run.MaxIterations())
		}
		d.status += fmt.Sprintf(" (%d model calls, %s)", run.Usage.Calls, run.Usage.Cost())
	}
	d.redraw()
}

func (d *display) clear() {
	if d.live && d.status != "" {
		fmt.Fprint(d.out, "\r\x1b[K")
	}
}

func (d *display) redraw() {
	if d.live {
		fmt.Fprint(d.out, "\r\x1b[K"+d.status)
	}
}

// done ends the live line.
func (d *display) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
	d.status = ""
}

// line is one thing that happened, for people.
type line struct{ label, text string }

// colored is a text as a terminal shows it in colour. Whether it has any is the caller's
// to know.
func colored(s string, c ...ansi.Color) string {
	return ansi.Colors(c).EscapeSeq() + s + ansi.Reset.EscapeSeq()
}

func (l line) color() ansi.Color {
	switch l.label {
	case "back", "stopped", "fault":
		return ansi.FgYellow
	case "verified", "accepted":
		return ansi.FgGreen
	case "failed", "cancelled", "skipped":
		return ansi.FgRed
	}
	return ansi.FgCyan
}

// narrate says what an event means in a line; most events mean nothing to people.
func narrate(run *pipeline.Run, e pipeline.Event) line {
	d := e.Data
	switch e.Type {
	case pipeline.EventRunStarted:
		title := d.Start.Task.Title
		if of := d.Start.Part; of != nil {
			title = of.Module.Title
		}
		return line{"start", fmt.Sprintf("%s (run %d)", title, e.Run)}
	case pipeline.EventPhaseEntered:
		return entered(run, d.Phase)
	case pipeline.EventPhaseCompleted:
		return completed(run, d)
	case pipeline.EventPhaseFailed:
		return line{"fault", fmt.Sprintf("%s broke down (it counts no attempt): %s", d.Phase.Phase, text.Clip(text.FirstLine(d.Fault.Message), 100))}
	case pipeline.EventPublishFailed:
		return line{"fault", "GitHub: " + text.Clip(text.FirstLine(d.Fault.Message), 100)}
	case pipeline.EventBounce:
		return line{"back", fmt.Sprintf("%s sends the work back to %s (bounce %d): %s", d.Bounce.Phase, d.Bounce.To(), d.Bounce.Number, run.WhyBack(d.Bounce))}
	case pipeline.EventDiminishing, pipeline.EventGuardFired:
		return line{"stopped", fmt.Sprintf("%s: %s", d.Guard.Name, d.Guard.Detail)}
	case pipeline.EventGateAnswered, pipeline.EventRunStopped, pipeline.EventRunResumed:
		return line{"human", fmt.Sprintf("%s says %s", cmp.Or(d.Answer.By.Login, "the run that planned it"), d.Answer.Choice)}
	case pipeline.EventUpstreamRaised:
		return line{"asked", fmt.Sprintf("the %s: %s", d.Upstream.Who(), text.Clip(text.OneLine(d.Upstream.Text), 200))}
	case pipeline.EventModuleTold:
		if d.Part.Told == "" {
			return line{"back", d.Part.ID + " goes back to work, on what was merged since"}
		}
	case pipeline.EventModuleLeft:
		if p := module.Find(run.Parts, d.Part.ID); p != nil && p.Merged != "" {
			return line{"merge", d.Part.ID + " stays as it was merged: " + d.Part.Left}
		}
		return line{"left out", d.Part.ID + ": " + d.Part.Left}
	case pipeline.EventGateReminded:
		return line{"waiting", d.Note}
	case pipeline.EventPhaseWaiting:
		return waits(d.Await)
	case pipeline.EventChangesAsked:
		if run.Part != nil {
			return line{"back", text.Plural(len(d.Review.Findings), "thing is", "things are") + " to be fixed that the integration found"}
		}
		return line{"human", "a review asks for changes: the work goes back with them"}
	case pipeline.EventChangesEdited:
		return line{"human", "a review asks for something else now, or takes it back"}
	case pipeline.EventRollout:
		if d.Rollout != nil {
			return line{"production", d.Rollout.String()}
		}
	case pipeline.EventShipAsked, pipeline.EventShipMerged, pipeline.EventShipDeployed, pipeline.EventShipFinished:
		if d.Ship != nil {
			return line{"shipping", d.Ship.Why}
		}
	case pipeline.EventBaseMoved:
		if run.Part != nil {
			return line{"merge", fmt.Sprintf("taking in what was merged since, at %.7s", d.Head)}
		}
		if words := run.Behind(); d.Mergeable != nil && words != "" {
			return line{"github", words}
		}
		return line{"base", fmt.Sprintf("%s has moved on to %.7s", run.Repo.DefaultBranch, d.Head)}
	case pipeline.EventBaseRenamed:
		return line{"base", fmt.Sprintf("%s is called %s by now: the work is for that", cmp.Or(run.BaseWas, run.Repo.DefaultBranch), d.Note)}
	case pipeline.EventRetargeted:
		return line{"human", cmp.Or(run.Behind(), "the pull request goes into "+run.Repo.DefaultBranch+" again")}
	case pipeline.EventRepositoryRenamed:
		return line{"github", "the repository is called " + run.Repo.FullName() + " now"}
	case pipeline.EventBranchDeleted:
		return line{"human", "somebody deleted the branch"}
	case pipeline.EventBranchMoved:
		if d.Lost != "" {
			return line{"back", fmt.Sprintf("commit %.7s went with the machine that made it, and is made again from %.7s", d.Lost, d.Head)}
		}
		return line{"human", "somebody pushed to the branch: it goes on from " + d.Head}
	case pipeline.EventRunVerified:
		return line{string(run.State), run.Ended} // with who let what pass
	case pipeline.EventRunAccepted, pipeline.EventRunCancelled, pipeline.EventRunFailed, pipeline.EventRunSkipped:
		return line{string(run.State), run.Ended}
	}
	return line{}
}

func entered(run *pipeline.Run, p *pipeline.PhaseRef) line {
	switch {
	case p.Phase == pipeline.PhasePlan && run.Given != nil && p.Iteration == 0:
		return line{"plan", "running the tests as they are"}
	case p.Phase == pipeline.PhasePlan && p.Iteration == 0:
		return line{"plan", "running the tests as they are, then planning"}
	case p.Phase == pipeline.PhaseContract:
		return line{"contract", "laying down what the modules promise each other"}
	case p.Mode == pipeline.ModeLook:
		return line{"merge", "looking whether the merged modules are still on the branch"}
	case p.Phase == pipeline.PhaseMerge:
		return line{"merge", "merging " + p.Part}
	}
	what := map[pipeline.Phase]string{
		pipeline.PhaseReview: "reviewing the change", pipeline.PhaseTest: "running the tests", pipeline.PhaseResolve: "deciding what an agent asked",
		pipeline.PhaseUpdate: "taking " + run.Repo.DefaultBranch + " in", pipeline.PhaseAnalyse: "writing down what is wanted", pipeline.PhaseDesign: "designing it",
	}[p.Phase]
	switch p.Mode {
	case pipeline.ModeFresh:
		what = "implementing the plan"
	case pipeline.ModeWire:
		what = "wiring the modules together"
	case pipeline.ModeFixFindings:
		what = "fixing what the review found"
	case pipeline.ModeFixFailures:
		what = "fixing what the tests found"
	case pipeline.ModeResearch:
		what = "finding out what is wanted, then planning again"
	case pipeline.ModeReplan:
		what = "planning again"
	case pipeline.ModeConflict:
		what = "resolving what does not merge by itself"
	}
	return line{string(p.Phase), fmt.Sprintf("iteration %d of %d: %s", p.Iteration, run.MaxIterations(), what)}
}

func completed(run *pipeline.Run, d pipeline.Data) line {
	l := line{label: string(d.Phase.Phase)}
	took := text.Clock(time.Duration(d.Phase.Millis) * time.Millisecond)
	switch {
	case d.Update != nil && d.Update.Unable != "":
		l.text = "the conflicts cannot be resolved: " + text.Clip(text.OneLine(d.Update.Unable), 200)
	case d.Update != nil && d.Update.Resolved != "":
		l.text = fmt.Sprintf("commit %.7s: its conflicts are resolved: %s", d.Update.Head, text.Clip(text.OneLine(d.Update.Resolved), 200))
	case d.Update != nil && len(d.Update.Conflicts) > 0:
		l.text = "conflicts in " + strings.Join(d.Update.Conflicts, ", ")
	case d.Phase.Mode == pipeline.ModeLook && len(d.Update.Gone) > 0:
		l.text = "not on the branch any more, and merged again: " + strings.Join(d.Update.Gone, ", ")
	case d.Phase.Mode == pipeline.ModeLook && len(d.Update.Reverted) > 0:
		l.text = "taken back, and left out: " + strings.Join(d.Update.Reverted, ", ")
	case d.Phase.Mode == pipeline.ModeLook:
		l.text = "they are"
	case d.Phase.Phase == pipeline.PhaseMerge && d.Tests != nil && len(d.Tests.Failures) > 0:
		l.text = fmt.Sprintf("%s does not go in as it is: %s", d.Phase.Part, tested(d.Tests))
	case d.Phase.Phase == pipeline.PhaseMerge && len(d.Update.Conflicts) == 0:
		l.text = fmt.Sprintf("commit %.7s: %s is in", d.Update.Head, d.Phase.Part)
	case d.Update != nil && d.Update.Head == d.Update.Parent:
		l.text = "nothing new to take in"
	case d.Update != nil:
		l.text = fmt.Sprintf("commit %.7s: merged", d.Update.Head)
	case d.Plan != nil:
		l.text = planned(d.Plan)
	case d.Implementation != nil && d.Implementation.Head == d.Implementation.Parent:
		l.text = "nothing changed"
	case d.Implementation != nil:
		l.text = fmt.Sprintf("commit %.7s: %s", d.Implementation.Head, text.Clip(text.FirstLine(d.Implementation.Summary), 100))
	case d.Review != nil:
		l.text = "approved"
		if d.Review.Unread() {
			l.text = "not reviewed: " + text.Clip(d.Review.NotReviewed[0].Why, 200)
		}
		if n := len(d.Review.Blocking()); n > 0 {
			l.text = fmt.Sprintf("changes requested, %d of %d findings block", n, len(d.Review.Findings))
		} else if it := run.Current(); it != nil && it.Review != nil {
			if n := len(run.Blocking(it.Review)); n > 0 {
				l.text = "changes requested, " + text.Plural(n, "finding", "findings") + " of before not gone"
			}
		}
	case d.Tests != nil && d.Tests.None != "":
		l.text = "no tests: " + d.Tests.None
	case d.Tests != nil:
		l.text = tested(d.Tests)
	case d.Upstream != nil && d.Upstream.Reply != nil:
		l.text = text.Clip(text.OneLine(d.Upstream.Reply.String()), 200)
	}
	l.text += " (" + took + ")"
	return l
}

func planned(p *pipeline.Plan) string {
	words := fmt.Sprintf("%s, %s", text.Plural(len(p.Steps), "step", "steps"), text.Plural(len(p.Criteria), "acceptance criterion", "acceptance criteria"))
	switch {
	case p.Split != nil:
		var names []string
		for i := range p.Split.Modules {
			names = append(names, p.Split.Modules[i].ID)
		}
		words += fmt.Sprintf(", %d modules at the same time: %s", len(names), strings.Join(names, ", "))
	case p.Unsplit != "":
		words += "; in one piece: " + p.Unsplit
	}
	return words
}

// waits says what a phase waits for. A model's provider is asked again at a time that
// is known; the repository's own checks are looked at until they end.
func waits(a *pipeline.Await) line {
	if a.Model {
		text := fmt.Sprintf("for the model's provider, until %s", a.Next.Local().Format("15:04"))
		if _, why, ok := strings.Cut(a.What, " ("); ok {
			text += " (" + why
		}
		return line{"waiting", text}
	}
	return line{"waiting", fmt.Sprintf("for %s, until %s at most", a.What, a.Until.Local().Format("15:04"))}
}

// waived says what people let pass, and who.
func waived(run *pipeline.Run) (out []string) {
	for _, w := range run.Waivers {
		out = append(out, fmt.Sprintf("%s let pass, at %.7s: %s", w.By.Login, w.Head, text.Clip(text.FirstLine(w.What), 100)))
	}
	return out
}

// maxFound is how many findings by rule a line names.
const maxFound = 3

// place says where a finding is.
func place(f *pipeline.Finding) string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return f.File + ": "
	}
	return fmt.Sprintf("%s:%d: ", f.File, f.Line)
}

// summary is the run's, with its choices as they are given here.
func summary(run *pipeline.Run) string { return typed(run, run.Summary()) }

// typed puts the commands of a text about a run as they are typed at a terminal: the text
// has them as people comment on an issue.
func typed(run *pipeline.Run, s string) string {
	as := func(slug, here string) {
		s = strings.ReplaceAll(s, "`"+command.Write(slug, "")+" ", "`forge answer "+here+" ")
	}
	for i := range run.Parts { // before the run's own, which is the beginning of theirs
		as(cmp.Or(run.Slug, command.Slug)+" "+run.Parts[i].ID, fmt.Sprintf("%d/%s", run.ID, run.Parts[i].ID))
	}
	as(run.Slug, strconv.FormatInt(run.ID, 10))
	return strings.ReplaceAll(s, "words on further lines", "words behind `--words`")
}

// help lists what a local run can be told.
func help(run *pipeline.Run) string {
	var b strings.Builder
	b.WriteString("| command | what it does |\n| --- | --- |\n")
	for _, c := range command.All {
		if c.Memory || c.Outside || c.Name == "run" { // these have commands of their own, or an issue
			continue
		}
		for _, h := range c.Help {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(h[0], "/SLUG", fmt.Sprintf("forge answer %d", run.ID)), h[1])
		}
	}
	return b.String()
}

// waitingParts says of the modules of a run that wait for people how they go on.
func waitingParts(run *pipeline.Run) (out []string) {
	for i := range run.Parts {
		switch p := &run.Parts[i]; {
		case run.State.Ended() || p.Left != "":
		case p.Question != "" && p.State == string(pipeline.StateWaiting):
			out = append(out, fmt.Sprintf("%s asks: %s\nAnswer with `forge answer %d CHOICE`; `forge show %d` has the choices.", p.ID, p.Question, p.Run, p.Run))
		case p.State == string(pipeline.StateStopped) && run.State != pipeline.StateStopped:
			out = append(out, fmt.Sprintf("%s is stopped. %s", p.ID, goOn(p.Branch, p.Run)))
		}
	}
	return out
}

// goOn says how a run goes on that was stopped.
func goOn(branch string, run int64) string {
	return fmt.Sprintf("What you commit on its branch %s is taken in by `forge resume %d`.", branch, run)
}

// tested is the result of tests in a line: what passed, and why that is not all.
func tested(t *pipeline.TestReport) string {
	words := fmt.Sprintf("%d of %d passed, %d failed", t.Passed, t.Total, t.Failed)
	if n := len(t.Before); n > 0 {
		var names []string
		for _, f := range t.Before {
			names = append(names, f.Test)
		}
		words += fmt.Sprintf("; %d failed before this work and still fail: %s", n, text.Clip(text.FirstLine(strings.Join(names, ", ")), 100))
	}
	for _, f := range t.Failures {
		words += fmt.Sprintf("; %s: %s", f.Test, text.Clip(text.FirstLine(f.Error), 100))
	}
	if len(t.Flaky) > 0 {
		words += "; failed, then passed when run again: " + text.Clip(strings.Join(t.Flaky, ", "), 200)
	}
	if n := len(t.Pending); n > 0 {
		words += fmt.Sprintf("; %d wait for other modules", n)
	}
	if n := len(t.Changed); n > 0 {
		words += fmt.Sprintf("; %d pass only as this work changed them", n)
	}
	for _, s := range t.Suites {
		if s.NotRun != "" {
			words += fmt.Sprintf("; %s did not run: %s", s.Name, text.Clip(text.FirstLine(s.NotRun), 100))
		}
	}
	for _, m := range t.Measures {
		words += fmt.Sprintf("; quality gate %s: %s", m.Name, text.Clip(m.Says(), 200))
	}
	for i, f := range t.Tampered {
		if i == maxFound {
			words += fmt.Sprintf("; and %d more", len(t.Tampered)-i)
			break
		}
		words += "; " + place(&f) + text.Clip(text.FirstLine(f.Message), 200)
	}
	for _, line := range t.Setup {
		words += "; " + text.Clip(text.FirstLine(line), 150)
	}
	if t.Unclean != "" {
		words += "; not green: " + text.Clip(text.FirstLine(t.Unclean), 100)
	}
	return words
}
