// Package pipelinetest plays scripts of runs: what agents, checks, people and GitHub
// do, line by line, through the real Decide and Apply. Tests of the core use it for
// its decisions, and tests of what people see for how a run is shown.
package pipelinetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/measure"
	"forge/pipeline/mergeable"
	"forge/pipeline/module"
	"forge/pipeline/proof"
	"forge/pipeline/role"
	"forge/pipeline/track"
	"forge/pipeline/upstream"

	"golang.org/x/tools/txtar"
)

// Player drives a run through Decide with scripted outcomes; the README beside the
// scripts in pipeline/testdata/loop has their language. The zero value is of no use.
type Player struct {
	Run    pipeline.Run
	Events []pipeline.Event
	Now    time.Time          // a second passes with each event
	Trace  strings.Builder    // what was decided
	ID     int64              // of the run; 7 unless it builds a module
	Parts  map[string]*Player // that build modules, by these
	parent *Player
	sha    int
	down   bool // GitHub cannot be reached: nothing is published
}

// New starts a run.
func New(cfg config.Config, task pipeline.Task) *Player {
	p := &Player{ID: 7, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	files := func() ([]string, error) { return []string{"page.html"}, nil }
	chosen, _ := track.Choose(track.Track(cfg.Track), "", task.Title, task.Body+"\n\nSee page.html.", files) // with a user interface
	p.Append(pipeline.Event{ID: "start", Type: pipeline.EventRunStarted, Source: "human:ann", Data: pipeline.Data{Start: &pipeline.Start{
		Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main"}, Task: task,
		By: pipeline.Actor{ID: 5, Login: "ann"}, Config: cfg, Base: "base000", Branch: "forge/issue-1-slug", Track: chosen,
	}}})
	return p
}

// Load starts the run of a script file and returns its script.
func Load(ar *txtar.Archive) (p *Player, script string, err error) {
	cfg := config.Default()
	for _, f := range ar.Files {
		switch f.Name {
		case "config.json":
			if err := json.Unmarshal(f.Data, &cfg); err != nil {
				return nil, "", fmt.Errorf("config.json: %w", err)
			}
		case "script":
			script = string(f.Data)
		}
	}
	return New(cfg, pipeline.Task{Issue: 1, Title: "Sum is wrong", Body: "It is."}), script, nil
}

// Append folds events in, a second apart.
func (p *Player) Append(events ...pipeline.Event) {
	for _, e := range events {
		p.Now = p.Now.Add(time.Second)
		e.Run, e.Trace, e.Time, e.Seq = p.ID, "cafe", p.Now, int64(len(p.Events)+1)
		p.Events = append(p.Events, e)
		p.Run.Apply(e)
	}
}

func (p *Player) printf(format string, args ...any) { fmt.Fprintf(&p.Trace, format+"\n", args...) }

// Step carries out what Decide wants, up to the next action that needs a line of
// the script. It reports false when the run waits.
func (p *Player) Step() (*pipeline.PhaseRef, bool) {
	for range 1000 {
		a := pipeline.Decide(&p.Run)
		if a == nil {
			return nil, false
		}
		switch a.Kind {
		case pipeline.ActionRecord:
			for _, e := range a.Events {
				p.describe(e)
			}
			p.Append(a.Events...)
		case pipeline.ActionPublish:
			if p.down {
				return nil, false
			}
			pub := &pipeline.Publication{Rev: p.Run.Rev, Calls: 1}
			if p.Run.Head != p.Run.Base {
				pub.Head = p.Run.Head
			}
			if p.parent != nil {
				part := p.Run.AsPart()
				p.parent.Append(pipeline.Event{ID: fmt.Sprintf("part/%d/rev/%d", p.ID, part.Rev), Type: pipeline.EventModuleChanged, Source: "forge", Data: pipeline.Data{Part: part, Upstream: p.Run.AsksParent()}})
			}
			p.Append(pipeline.Event{ID: a.Key, Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: pub}})
		case pipeline.ActionSpawn:
			p.spawn(a)
		case pipeline.ActionTell:
			p.tell(a)
		case pipeline.ActionWork:
			return a.Phase, true
		}
	}
	panic("a thousand actions without work: " + p.Trace.String())
}

// spawn begins the run of a module.
func (p *Player) spawn(a *pipeline.Action) {
	id := a.Start.Part.Module.ID
	part := &Player{ID: p.ID*100 + int64(len(p.Parts)) + 1, Now: p.Now, parent: p}
	part.Append(pipeline.Event{ID: a.Key, Type: pipeline.EventRunStarted, Source: "forge", Data: pipeline.Data{Start: a.Start}})
	if p.Parts == nil {
		p.Parts = map[string]*Player{}
	}
	p.Parts[id] = part
	a.Events[0].Data.Part.Run = part.ID
	p.printf("  spawn %s from %s", id, p.Run.Head)
	p.Append(a.Events...)
}

// tell lets a module's run know what its parent wants.
func (p *Player) tell(a *pipeline.Action) {
	for _, part := range p.Parts {
		if part.ID == a.To {
			part.Now = p.Now
			part.Append(a.Tell...)
		}
	}
	var types []string
	for _, e := range a.Tell {
		types = append(types, string(e.Type))
	}
	p.printf("  tell %s: %s", a.Events[0].Data.Part.ID, strings.Join(types, ", "))
	p.Append(a.Events...)
}

// settle lets the run and those of its modules do what they can without a script.
func (p *Player) settle() (ref *pipeline.PhaseRef, working bool) {
	for before := -1; before != p.events(); {
		before = p.events()
		ref, working = p.Step()
		for _, id := range slices.Sorted(maps.Keys(p.Parts)) {
			p.Parts[id].Step()
		}
	}
	return ref, working
}

// Busy lets the run and those of its modules do what they can without a script, and
// returns the players of those that then wait for the outcome of a phase.
func (p *Player) Busy() map[*Player]*pipeline.PhaseRef {
	out := map[*Player]*pipeline.PhaseRef{}
	if ref, working := p.settle(); working {
		out[p] = ref
	}
	for _, part := range p.Parts {
		if ref, working := part.Step(); working {
			out[part] = ref
		}
	}
	return out
}

func (p *Player) events() int {
	n := len(p.Events)
	for _, part := range p.Parts {
		n += len(part.Events)
	}
	return n
}

// part plays "ID: LINE" in the run of a module.
func (p *Player) part(line string) bool {
	id, line, _ := strings.Cut(line, ": ")
	part := p.Parts[id]
	if part == nil {
		return false
	}
	ref, working := part.Step()
	verb, rest, _ := strings.Cut(line, " ")
	return part.Human(verb, rest) || part.Outcome(verb, rest, ref, working)
}

func (p *Player) describe(e pipeline.Event) {
	d := e.Data
	switch {
	case d.Gate != nil:
		var words []string
		for _, c := range d.Gate.Choices {
			words = append(words, "`"+c.Command(p.Run.Slug)+"`")
		}
		p.printf("  gate %s for %s: %s [%s]", d.Gate.Kind, d.Gate.For.Login, d.Gate.Question, strings.Join(words, ", "))
	case d.Guard != nil:
		p.printf("  %s: %s %d/%d", e.Type, d.Guard.Name, d.Guard.Value, d.Guard.Limit)
	case d.Bounce != nil:
		p.printf("  bounce %d from %s to %s: %d issues, weight %d", d.Bounce.Number, d.Bounce.Phase, d.Bounce.Target, d.Bounce.Count, d.Bounce.Weight)
	case d.Upstream != nil:
		words := d.Upstream.Text + d.Upstream.Why
		if d.Upstream.Decision != nil {
			words = d.Upstream.Decision.String()
		}
		p.printf("  %s %s: %s", e.Type, d.Upstream.ID, words)
	case d.Phase != nil && e.Type == pipeline.EventPhaseEntered:
		resumed := ""
		if d.Phase.Resumed {
			resumed = " resumed"
		}
		p.printf("  enter %s iteration %d attempt %d %s%s", d.Phase.Phase, d.Phase.Iteration, d.Phase.Attempt, d.Phase.Mode, resumed)
	default:
		p.printf("  %s", e.Type)
	}
}

// Play runs a script to its end. The error names the line that does not fit.
func (p *Player) Play(script string) error {
	for n, line := range strings.Split(strings.TrimSpace(script), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		ref, working := p.settle()
		p.printf("%s", line)
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "part" {
			if !p.part(rest) {
				return fmt.Errorf("line %d: %q does not fit; so far:\n%s", n+1, line, p.Trace.String())
			}
			continue
		}
		if !p.Human(verb, rest) && !p.Outcome(verb, rest, ref, working) {
			return fmt.Errorf("line %d: %q does not fit: the run is %s, in %+v; so far:\n%s", n+1, line, p.Run.State, ref, p.Trace.String())
		}
	}
	p.settle()
	p.printf("= %s", p.Run.Summary())
	return nil
}

// Human plays what a person, a machine or GitHub does; it reports whether it knew
// the verb.
func (p *Player) Human(verb, rest string) bool {
	switch verb {
	case "human":
		p.command(rest)
	case "notice":
		p.notice(rest)
	case "offline", "online":
		p.down = verb == "offline"
	case "refused": // the publication of what comes next is refused for good
		p.Append(pipeline.Event{ID: "refused" + rest, Type: pipeline.EventPublishFailed, Data: pipeline.Data{Fault: &pipeline.Fault{Class: pipeline.FaultGitHub, Message: rest, Final: true}}})
	case "withheld": // it is not pushed, because of what looks like a secret
		p.Append(pipeline.Event{ID: "withheld" + rest, Type: pipeline.EventPublishFailed, Data: pipeline.Data{Fault: leak(rest)}})
	case "alarm": // nobody does anything until the run's time is over
		at, events := p.Run.Alarm()
		if at.IsZero() {
			p.printf("  no alarm is set")
			return true
		}
		p.printf("  after %s:", at.Sub(p.Now).Round(time.Minute))
		if at.After(p.Now) {
			p.Now = at
		}
		for _, e := range events {
			p.printf("  %s %s", e.Type, e.Data.Note)
		}
		p.Append(events...)
	case "dismiss", "undismiss":
		signal := pipeline.Signal{Kind: pipeline.SignalDismissed, Actor: pipeline.Actor{ID: 5, Login: "ann"}, Weight: 1, At: p.Now, Off: verb == "undismiss"}
		name, login, _ := strings.Cut(rest, " by ")
		switch login {
		case "":
		case "a stranger":
			signal.Actor, signal.Weight = pipeline.Actor{ID: 9, Login: "eve"}, 0
		case "nobody":
			signal.Actor = pipeline.Actor{}
		}
		signal.Key, signal.Finding = "dismissed/"+name, p.fingerprint(name)
		if signal.Finding == "" {
			p.printf("  no finding %q", name)
			return true
		}
		if p.Run.State.Ended() && !p.Run.Reopenable() { // it is said at a pull request, and there is none
			return true
		}
		events := pipeline.SignalEvents([]pipeline.Signal{signal})
		follow := p.Run.Dismissals(events, p.Now)
		for _, e := range follow {
			p.describe(e)
		}
		p.Append(append(events, follow...)...)
	case "pull": // the pull request is there
		ref := &pipeline.PullRef{Number: 3, Node: "PR_3", URL: "https://github.com/acme/shop/pull/3"}
		p.Append(pipeline.Event{ID: "pull", Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &pipeline.Publication{Rev: p.Run.Rev, Head: p.Run.Head, Pull: ref}}})
	default:
		return false
	}
	return true
}

// fingerprint is that of the run's finding with the message; "" when it has none.
func (p *Player) fingerprint(message string) string {
	for _, is := range p.Run.Findings {
		if is.Finding.Message == message {
			return is.Fingerprint()
		}
	}
	return ""
}

// command plays "NAME ARGS @GATE by LOGIN // TEXT"; all but the name may be left out.
func (p *Player) command(rest string) {
	by := pipeline.Actor{ID: 5, Login: "ann"}
	line, text, _ := strings.Cut(rest, " // ")
	line, login, ok := strings.Cut(line, " by ")
	if ok {
		by = pipeline.Actor{ID: 6, Login: login}
	}
	line, gate, _ := strings.Cut(line, " @")
	name, args, _ := strings.Cut(line, " ")
	events, reply := p.Run.Answer(command.Line{Name: name, Args: args, Text: text, Gate: gate}, by, "comment", 9, p.Now)
	p.Append(events...)
	if reply != "" {
		p.printf("  reply: %s", strings.Split(reply, "\n")[0])
	}
}

// notice plays "KIND ARG", where ARG is a head, "on BRANCH", "merged", a title, or
// what a review says.
func (p *Player) notice(rest string) {
	kind, arg, _ := strings.Cut(rest, " ")
	n := pipeline.Notice{Kind: pipeline.NoticeKind(kind), Actor: pipeline.Actor{ID: 5, Login: "ann"}, Branch: p.Run.Branch, Head: arg, Merged: arg == "merged", Task: pipeline.Task{Title: arg}}
	if branch, ok := strings.CutPrefix(arg, "on "); ok {
		n.Branch = branch
	}
	switch n.Kind {
	case pipeline.NoticeIssueEdited:
		n.Task.Title, n.Task.Body, _ = strings.Cut(arg, " // ")
	case pipeline.NoticePush:
		if head, bot := strings.CutSuffix(arg, " by a bot"); bot {
			n.Head, n.Actor = head, pipeline.Actor{ID: 8, Login: "tidy[bot]", Bot: true}
		} else if head, own := strings.CutSuffix(arg, " by forge"); own {
			n.Head, n.Own, n.Actor = head, true, pipeline.Actor{ID: 9, Login: "forge[bot]", Bot: true}
		}
	case pipeline.NoticeBaseMoved: // "HEAD", and after the end "HEAD N behind WHAT"
		n.Branch = p.Run.Repo.DefaultBranch
		if head, stands, ended := strings.Cut(arg, " "); ended {
			n.Head, n.Mergeable = head, &mergeable.State{Base: head, Conflict: strings.Contains(stands, "conflict"), Required: strings.Contains(stands, "required"), Unknown: strings.Contains(stands, "unknown")}
			fmt.Sscan(stands, &n.Mergeable.Behind)
		}
	case pipeline.NoticeChecks:
		if n.Why = "check build: success"; arg == "" {
			n.Head = p.Run.Head
		}
	case pipeline.NoticeAskedAnew: // "REVIEW", or "REVIEW WORDS" when it still asks for something
		id, words, _ := strings.Cut(arg, " ")
		n.Feedback, n.Review = &pipeline.Feedback{}, &pipeline.Review{}
		fmt.Sscan(id, &n.Feedback.Review)
		if words != "" {
			n.Review.Findings = []pipeline.Finding{{Message: words, Review: n.Feedback.Review}}
		}
	case pipeline.NoticeReviewed: // "VERDICT WORDS", with " #REVIEW" behind them when they may be edited
		var words string
		n.Verdict, words, _ = strings.Cut(arg, " ")
		words, review, _ := strings.Cut(words, " #")
		if words != "" {
			n.Review = &pipeline.Review{Findings: []pipeline.Finding{
				{Severity: pipeline.SeverityError, Category: pipeline.CategoryHuman, Message: words, File: "a.go", Line: 3}}}
			if what, file, ok := strings.Cut(words, " in "); ok && strings.Contains(file, "/") {
				n.Review.Findings[0].Message, n.Review.Findings[0].File = what, file
			}
			fmt.Sscan(review, &n.Review.Findings[0].Review)
		}
	}
	events, outcome := p.Run.Notice(n, p.Now)
	p.Append(events...)
	p.printf("  outcome: %s", outcome)
}

// Outcome plays the result of the phase that Decide wants; it reports whether the
// line fits it.
func (p *Player) Outcome(verb, rest string, ref *pipeline.PhaseRef, working bool) bool {
	if !working || (verb != "fault" && verb != "cost" && verb != "wait" && verb != "away" && pipeline.Phase(verb) != ref.Phase) {
		return false
	}
	done := pipeline.Event{ID: "r" + strconv.Itoa(len(p.Events)), Type: pipeline.EventPhaseCompleted, Source: "agent", Data: pipeline.Data{Phase: &pipeline.PhaseRef{
		Phase: ref.Phase, Iteration: ref.Iteration, Attempt: ref.Attempt, Mode: ref.Mode, Part: ref.Part, Millis: 60_000}}}
	d := &done.Data
	switch verb {
	case "cost": // micro-dollars and tokens of one model call
		var usd, tokens int64
		fmt.Sscan(rest, &usd, &tokens)
		done.Type = pipeline.EventAgentIteration
		done.Data = pipeline.Data{Step: &pipeline.Step{Phase: ref.Phase, Iteration: ref.Iteration, Usage: pipeline.Usage{Calls: 1, MicroUSD: usd, Input: tokens}}}
	case "wait":
		done.Type = pipeline.EventPhaseWaiting
		d.Await = &pipeline.Await{What: rest, Since: p.Now, Next: p.Now.Add(5 * time.Minute), Until: p.Now.Add(30 * time.Minute)}
	case "away": // the model's provider is, for so many minutes at least
		minutes, _ := strconv.Atoi(rest)
		next := p.Now.Add(time.Duration(minutes) * time.Minute)
		done.Type = pipeline.EventPhaseWaiting
		d.Await = &pipeline.Await{Model: true, What: "the model's provider until " + next.Format("15:04 UTC"), Since: p.Now, Next: next, Until: p.Now.Add(2 * time.Hour)}
	case "fault":
		class, msg, _ := strings.Cut(rest, " ")
		final := strings.HasSuffix(class, "!")
		done.Type, d.Fault = pipeline.EventPhaseFailed, &pipeline.Fault{Class: pipeline.FaultClass(strings.TrimSuffix(class, "!")), Message: msg, Final: final}
		if d.Fault.Class == pipeline.FaultSecret {
			d.Fault = leak(msg)
		}
	case "analyse", "design":
		p.written(d, rest)
	case "plan":
		if why, ok := strings.CutPrefix(rest, "untested "); ok {
			d.Tests = Tests(p.Run.Base, "none "+why)
			break
		}
		if p.Run.Given != nil && rest == "given" {
			d.Plan, d.Tests = p.Run.Given, Tests(p.Run.Base, "ok")
			break
		}
		if d.Plan = plan(rest); ref.Iteration == 0 {
			d.Tests = Tests(p.Run.Base, "ok")
		}
	case "resolve":
		d.Upstream = &upstream.Feedback{ID: "up/" + strconv.Itoa(len(p.Run.Upstream)), Reply: Reply(rest)}
	case "implement":
		rest, asks, _ := strings.Cut(rest, " constraint ")
		rest, proves, _ := strings.Cut(rest, " proves ")
		rest, disputes, _ := strings.Cut(rest, " disputes ")
		rest, doubts, doubted := strings.Cut(rest, " doubts ")
		d.Implementation = &pipeline.Implementation{Summary: "did " + rest, Files: []string{"a.go"}, Parent: p.Run.Head, Head: p.Run.Head}
		switch {
		case strings.HasPrefix(rest, "unable "):
			d.Implementation.Unable = rest[7:]
		case strings.HasPrefix(rest, "contract "):
			d.Implementation.Contract = rest[9:]
		case rest != "nothing":
			d.Implementation.Head = p.commit()
		}
		d.Implementation.Constraints, d.Implementation.Anew = constraints(asks), strings.HasPrefix(rest, "nothing") && p.Run.Anew()
		if doubted {
			d.Implementation.Doubts = strings.Split(doubts, " | ")
		}
		for claim := range strings.SplitSeq(proves, ", ") { // AC1 TestA TestB
			if words := strings.Fields(claim); len(words) > 0 {
				d.Implementation.Proofs = append(d.Implementation.Proofs, proof.Claim{Criterion: words[0], Tests: words[1:]})
			}
		}
		for dispute := range strings.SplitSeq(disputes, " | ") {
			if name, why, ok := strings.Cut(dispute, ": "); ok {
				d.Implementation.Disputes = append(d.Implementation.Disputes, pipeline.Dispute{Finding: p.fingerprint(name), Why: why})
			}
		}
	case "review":
		d.Review = p.review(rest)
	case "test":
		d.Tests = Tests(p.Run.Head, rest)
		d.Tests.Add(&pipeline.TestReport{Failures: p.Run.Unproved(d.Tests)})
	case "contract":
		d.Implementation = &pipeline.Implementation{Summary: rest, Parent: p.Run.Head, Head: p.commit()}
		if why, ok := strings.CutPrefix(rest, "unable "); ok {
			d.Implementation.Unable, d.Implementation.Head = why, p.Run.Head
		}
	case "merge":
		d.Update = &pipeline.Update{Base: module.Find(p.Run.Parts, ref.Part).Head, Parent: p.Run.Head, Head: p.Run.Head}
		switch kind, arg, _ := strings.Cut(rest, " "); kind {
		case "gone":
			d.Update.Base, d.Update.Gone, d.Tests = "", strings.Fields(arg), Tests(p.Run.Head, "ok")
		case "reverted":
			d.Update.Base, d.Update.Reverted, d.Tests = "", strings.Fields(arg), Tests(p.Run.Head, "ok")
		case "conflict":
			d.Update.Conflicts = strings.Fields(arg)
		case "fails":
			d.Update.Head, d.Tests = p.commit(), Tests(p.Run.Head, arg)
			p.Run.AcceptMerge(d.Tests, ref.Part)
		default:
			d.Update.Head, d.Tests = p.commit(), Tests(p.Run.Head, "ok")
		}
	case "update":
		d.Update = &pipeline.Update{Base: p.Run.BaseHead, Parent: p.Run.Head, Head: p.Run.Head}
		kind, arg, _ := strings.Cut(rest, " ")
		if last := p.Run.Current().Update; last != nil && p.Run.Active.Mode == pipeline.ModeConflict {
			d.Update = &pipeline.Update{Base: last.Base, Parent: p.Run.Head, Conflicts: last.Conflicts, Markers: last.Markers}
		}
		switch kind {
		case "conflict":
			d.Update.Conflicts = strings.Fields(arg)
		case "markers": // a conflict that the implementer may resolve
			d.Update.Conflicts, d.Update.Markers = strings.Fields(arg), "markers"
		case "unable":
			d.Update.Unable = arg
		case "resolved":
			how, over, _ := strings.Cut(arg, " over ")
			d.Update.Conflicts, d.Update.Markers, d.Update.Resolved, d.Update.Met = nil, "", how, met(over)
			fallthrough
		case "ok":
			d.Update.Head, d.Tests = p.commit(), Tests(d.Update.Base, "ok")
		}
	}
	p.Append(done)
	return true
}

// review reads what Review does; behind "ruled", with what became of each earlier
// finding: "fixed NAME", "unchanged NAME" (called fixed, though nothing changed),
// "open NAME: WHY", "withdrawn NAME: WHY", and with "unread PATH: WHY".
func (p *Player) review(s string) *pipeline.Review {
	s, ruled := strings.CutPrefix(s, "ruled ")
	if !ruled {
		return Review(p.Run.Head, s)
	}
	found, rulings, _ := strings.Cut(s, "; ")
	v := Review(p.Run.Head, found)
	v.Ruled = true
	for item := range strings.SplitSeq(rulings, "; ") {
		word, name, _ := strings.Cut(item, " ")
		name, why, _ := strings.Cut(name, ": ")
		r := pipeline.Ruling{Finding: p.fingerprint(name), Verdict: pipeline.Verdict(word), Why: why, Changed: word == "fixed"}
		switch word {
		case "":
			continue
		case "unread":
			v.NotReviewed = append(v.NotReviewed, pipeline.Skipped{Path: name, Why: why})
			continue
		case "unchanged":
			r.Verdict = pipeline.VerdictFixed
		}
		v.Rulings = append(v.Rulings, r)
	}
	p.Run.KeepSeverity(v)
	return v
}

// constraints reads "SEVERITY ABOUT,ABOUT: TEXT | …".
func constraints(s string) (out []upstream.Ask) {
	for item := range strings.SplitSeq(s, " | ") {
		if severity, words, ok := strings.Cut(item, " "); ok {
			about, words, _ := strings.Cut(words, ": ")
			out = append(out, upstream.Ask{About: strings.Split(about, ","), Text: words, Severity: upstream.Severity(severity),
				Options: []upstream.Option{{Text: "poll", Effort: "low"}}})
		}
	}
	return out
}

// Reply reads an owner's answer: "fix WHY", "design STEP; STEP", "add TEXT (QUOTE)",
// "clarify AC1: TEXT", "tighten AC1: TEXT", "limit AC1", "settle ROLE: TEXT"; behind " but " with what speaks
// against it by who checks it.
func Reply(s string) *upstream.Reply {
	s, objection, _ := strings.Cut(s, " but ")
	choice, rest, _ := strings.Cut(s, " ")
	r := &upstream.Reply{Choice: upstream.Choice(choice), Why: "so it is", Objection: objection}
	r.Confirmed = r.Choice.Checked() && objection == ""
	switch r.Choice {
	case upstream.Fix:
		r.Why = rest
	case upstream.Settle:
		r.Holds, r.Text, _ = strings.Cut(rest, ": ")
	case upstream.Design:
		r.Steps = strings.Split(rest, "; ")
	case upstream.Add:
		r.Text, r.Quote, _ = strings.Cut(strings.TrimSuffix(rest, ")"), " (")
	default:
		r.Criterion, r.Text, _ = strings.Cut(rest, ": ")
	}
	return r
}

// met reads "PATH by NAME keeps N of N": a person's commit that a merge had a conflict with.
func met(s string) []module.Met {
	m := module.Met{Commit: "c0ffee1234", Subject: "mine"}
	if n, _ := fmt.Sscanf(s, "%s by %s keeps %d of %d", &m.Path, &m.By, &m.Kept, &m.Lines); n < 4 {
		return nil
	}
	return []module.Met{m}
}

func (p *Player) commit() string {
	p.sha++
	if p.parent != nil {
		return fmt.Sprintf("part%d-%d", p.ID, p.sha)
	}
	return fmt.Sprintf("commit%d", p.sha)
}

// plan reads "ok", "WHAT", "QUESTION?" or "QUESTION? | OPTION | OPTION"; behind "keeps",
// criteria that it has besides.
func plan(s string) *pipeline.Plan {
	out := &pipeline.Plan{Summary: "do it", Steps: []string{"one"}, Criteria: []pipeline.Criterion{{ID: "AC1", Text: "works"}}}
	if modules, ok := strings.CutPrefix(s, "split "); ok {
		return split(out, modules)
	}
	s, keeps, _ := strings.Cut(s, " keeps ")
	for _, id := range strings.Fields(keeps) {
		out.Criteria = append(out.Criteria, pipeline.Criterion{ID: id, Text: "works without"})
	}
	q, options, ok := strings.Cut(s, " | ")
	switch {
	case ok:
		out.Question, out.Options = q, strings.Split(options, " | ")
	case strings.HasSuffix(s, "?"):
		out.Question = q
	case s != "ok":
		out.Summary = s
	}
	return out
}

// split reads "A, B, C needs A B; wire WHAT; contract FILE": each module owns the
// directory of its name, and has a criterion of its own. "promise A B TEST" is one of A
// to B.
func split(out *pipeline.Plan, s string) *pipeline.Plan {
	out.Split = &module.Split{Integration: []string{"AC1"}}
	list, more, _ := strings.Cut(s, "; ")
	for _, item := range strings.Split(list, ", ") {
		id, needs, _ := strings.Cut(item, " needs ")
		m := module.Module{ID: id, Title: id, Summary: "build " + id, Size: "M", Steps: []string{"one"}, Paths: []string{id + "/**"}, Needs: strings.Fields(needs), Criteria: []string{"AC-" + id}}
		out.Criteria = append(out.Criteria, pipeline.Criterion{ID: "AC-" + id, Text: id + " works"})
		out.Split.Modules = append(out.Split.Modules, m)
	}
	for _, item := range strings.Split(more, "; ") {
		switch word, arg, _ := strings.Cut(item, " "); word {
		case "contract":
			out.Split.Contract = []string{arg}
		case "promise":
			f := strings.Fields(arg)
			out.Split.Promises = append(out.Split.Promises,
				module.Promise{ID: fmt.Sprintf("P%d", len(out.Split.Promises)+1), From: f[0], To: f[1:2], Text: "it works", Probe: f[2]})
		case "unwired":
			out.Split.Integration = nil
		}
	}
	return out
}

// Review reads "ok", "human WHY", "stale", or "SEVERITY NAME @CATEGORY, SEVERITY
// NAME… > TARGET", where the category is correctness when there is none.
func Review(head, s string) *pipeline.Review {
	v := &pipeline.Review{Head: head, Summary: s, Reviewed: []string{"a.go"}}
	if why, ok := strings.CutPrefix(s, "human "); ok {
		v.NeedsHuman = why
		return v
	}
	if s == "stale" {
		v.Head = "other"
	}
	if s == "ok" || s == "stale" {
		return v
	}
	if quote, ok := strings.CutPrefix(s, "uncovered "); ok {
		v.Uncovered = []upstream.Ask{{Text: "nobody checks that " + quote, Quote: quote}}
		return v
	}
	if id, ok := strings.CutPrefix(s, "missed "); ok {
		v.Compliance = []pipeline.Compliance{{Criterion: id, Evidence: "it is not there"}}
		f := pipeline.Finding{ID: "F1", Severity: pipeline.SeverityError, Category: pipeline.CategoryCompliance, Criterion: id, Message: id + " is not met: works"}
		f.Fingerprint = f.Digest()
		v.Findings = []pipeline.Finding{f}
		return v
	}
	s, to, _ := strings.Cut(s, " > ")
	v.SendTo = pipeline.Target(to)
	for i, item := range strings.Split(s, ", ") {
		sev, name, _ := strings.Cut(item, " ")
		name, category, ok := strings.Cut(name, " @")
		if !ok {
			category = "correctness"
		}
		f := pipeline.Finding{ID: fmt.Sprintf("F%d", i+1), Severity: pipeline.Severity(sev), Category: pipeline.Category(category), Message: name,
			File: "a.go", Line: i + 1, Code: name, Confidence: 0.9}
		if what, file, ok := strings.Cut(name, " in "); ok && strings.Contains(file, "/") {
			f.Message, f.File, f.Code = what, file, what
		}
		f.Fingerprint = f.Digest()
		v.Findings = append(v.Findings, f)
	}
	return v
}

// Tests reads "ok", "none WHY", "empty", "tampered NAME", "unclean WHY", or "NAME
// CONFIDENCE, NAME CONFIDENCE…", each with "before NAME, NAME…" behind it: what
// failed before the work; "NAME: ERROR" with its error, "NAME: ERROR was ERROR" with
// another one at the base.
func Tests(head, s string) *pipeline.TestReport {
	s, before, _ := strings.Cut(s, " before ")
	t := tests(head, s)
	for name := range strings.SplitSeq(before, ", ") {
		if name != "" {
			f := pipeline.Failure{Test: name, File: "old_test.go", Line: 3, Error: "got 1 want 2"}
			if name, message, ok := strings.Cut(name, ": "); ok {
				f.Test = name
				f.Error, f.Was, _ = strings.Cut(message, " was ")
				f.Key = f.ErrorKey()
			}
			f.Fingerprint = f.Digest()
			t.Before, t.Total = append(t.Before, f), t.Total+1
		}
	}
	return t
}

func tests(head, s string) *pipeline.TestReport {
	t := &pipeline.TestReport{Head: head, Total: 3, Passed: 3, Names: []string{"TestA", "TestB", "TestC"}, Suites: []pipeline.Suite{{Name: "go test", Command: "go test ./..."}}}
	if why, ok := strings.CutPrefix(s, "none "); ok {
		return &pipeline.TestReport{Head: head, None: why}
	}
	if name, ok := strings.CutPrefix(s, "tampered "); ok {
		f := pipeline.Finding{ID: "T1", Severity: pipeline.SeverityError, Category: pipeline.CategoryTests, Rule: "tests.removed", Message: name + " is gone"}
		f.Fingerprint = f.Digest()
		t.Tampered = []pipeline.Finding{f}
		return t
	}
	if why, ok := strings.CutPrefix(s, "unclean "); ok {
		t.Unclean = why
		return t
	}
	if s == "empty" {
		return &pipeline.TestReport{Head: head}
	}
	if s == "ok" {
		return t
	}
	if name, ok := strings.CutPrefix(s, "ok and "); ok { // a test that is new
		t.Names, t.Total, t.Passed = append(t.Names, name), t.Total+1, t.Passed+1
		return t
	}
	for _, item := range strings.Split(s, ", ") {
		item, against, _ := strings.Cut(item, " against ")
		item, owners, gate := strings.Cut(item, " of ")
		name, conf, _ := strings.Cut(item, " ")
		f := pipeline.Failure{Test: name, File: "a_test.go", Line: 3, Error: "got 1 want 2"}
		f.Confidence, _ = strconv.ParseFloat(conf, 64)
		if f.Confidence > 0 {
			f.Cause, f.Analysis, f.Fix = "logic", "off by one", &pipeline.Fix{Description: "add one"}
		}
		f.Against = against
		f.Fingerprint = f.Digest()
		if gate {
			t.Measures = append(t.Measures, measure.Result{Name: strings.TrimPrefix(name, "quality/"), Block: true, Owner: strings.Fields(owners)})
		}
		t.Failures = append(t.Failures, f)
		t.Passed--
		t.Failed++
	}
	return t
}

// leak is the fault of what looks like a secret. Nobody can let one of Forge's own pass.
func leak(message string) *pipeline.Fault {
	f := &pipeline.Fault{Class: pipeline.FaultSecret, Message: message, Final: true}
	if !strings.Contains(message, "forge-secret") {
		f.About = []string{message}
	}
	return f
}

// written is what the roles write that are due, or that there is nothing to test with.
func (p *Player) written(d *pipeline.Data, rest string) {
	if why, ok := strings.CutPrefix(rest, "untested "); ok {
		d.Tests = Tests(p.Run.Base, "none "+why)
		return
	}
	rest, cannot, _ := strings.Cut(rest, " infeasible ")
	rest, clash, _ := strings.Cut(rest, " clash ")
	here, there, _ := strings.Cut(clash, " / ")
	for _, who := range p.Run.Due() {
		a := role.Artefact{Role: who, Body: rest, Items: []role.Item{{ID: "X1", Text: rest}}}
		if words := map[role.Role]string{role.Architect: here, role.UX: there}[who]; words != "" {
			a.Items = append(a.Items, role.Item{ID: "X2", Text: words})
		}
		if about, words, is := strings.Cut(cannot, ": "); is && who == role.Architect {
			a.Infeasible = []role.Claim{{About: []string{about}, Text: words, Options: []role.Option{{Text: "allow more"}}}}
		}
		if who == role.Architect && there != "" {
			a.Clashes = []role.Clash{{Design: here, UI: there}}
		}
		d.Artefacts = append(d.Artefacts, a)
	}
}
