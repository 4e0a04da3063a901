package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/glob"
	"forge/pipeline/module"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// split is the plan's split into modules, nil when it is built in one piece.
func (r *Run) split() *module.Split {
	if r.Plan == nil || r.Part != nil {
		return nil
	}
	return r.Plan.Split
}

// part returns what the run knows of a module, nil when it was not begun.
func (r *Run) part(id string) *module.Part { return module.Find(r.Parts, id) }

// partState is the state of the run that builds a module.
func partState(p *module.Part) State { return State(p.State) }

// clashLimit is how many merges of a module in a row may conflict, or break tests,
// until a human is asked.
const clashLimit = 2

// await is what a station wants when all it can do is wait for an event.
var await = &Action{}

// wantsParts is done when every module is merged as it is, or left out. There is no
// barrier: a module begins when those that it needs are merged, whatever others do, and
// one is merged after the other, in the order in which they ended.
func (r *Run) wantsParts(*Iteration) *Action {
	s := r.split()
	if s == nil {
		return nil
	}
	if g := r.splitAsked(s); g != nil {
		return r.stopAt(*g)
	}
	at := len(r.Iterations)
	if act := r.wantsLook(at); act != nil {
		return act
	}
	if act := r.wantsAgreement(s, at); act != nil {
		return act
	}
	if id := r.startable(s); id != "" { // before the merges, which take time
		if !r.pushed() {
			return await
		}
		return r.spawn(s, id)
	}
	if p := r.mergeable(); p != nil {
		if p.Clashes > clashLimit {
			return r.stopAt(Guard{Name: GuardConflict, Phase: PhaseMerge, Value: int64(p.Clashes), Limit: clashLimit, About: []string{p.ID},
				Detail: fmt.Sprintf("the module %s does not fit what was merged before it: %s", p.ID, text.Clip(text.OneLine(p.Why), 300))})
		}
		return r.begin(PhaseRef{Phase: PhaseMerge, Iteration: at, Part: p.ID})
	}
	if act := r.partFailed(); act != nil {
		return act
	}
	if act := r.orphaned(s); act != nil {
		return act
	}
	for _, m := range s.Modules {
		if p := r.part(m.ID); p == nil || !p.Done() {
			return await
		}
	}
	if !slices.ContainsFunc(r.Parts, func(p module.Part) bool { return p.Merged != "" }) {
		return r.stopAt(Guard{Name: GuardParts, Phase: PhaseMerge, Value: int64(len(r.Parts)), Detail: "no module of the plan is left: " + r.Parts[0].Left})
	}
	return nil
}

// wantsAgreement is done when there is a contract, and no module waits for another one.
// Who wrote it revises it.
func (r *Run) wantsAgreement(s *module.Split, at int) *Action {
	p := r.wanting()
	ref := PhaseRef{Phase: PhaseContract, Iteration: at, Mode: ModeContract}
	switch {
	case len(s.Contract) == 0 || r.Contract != "" && p == nil:
		return nil
	case r.ContractUnable != "":
		return r.stopAt(Guard{Name: GuardUnable, Phase: PhaseContract, Detail: "The contract between the modules needs a clarification: " + r.ContractUnable})
	case r.Contract != "":
		ref.Part = p.ID
	}
	return r.begin(ref)
}

// refusal is why a module does not get the contract that it wants, "" where it can be
// revised. Its own run asks then, and the others go on.
func (r *Run) refusal(p *module.Part) string {
	switch limit := r.Config.Modules.Rounds + p.Insists; {
	case p.Denied != "":
		return "who wrote the contract says: " + p.Denied
	case p.Round >= limit:
		return fmt.Sprintf("the module has gone %s already, its limit", text.Plural(p.Round, "extra round", "extra rounds"))
	}
	return ""
}

// wanting is the first module that wants another contract, and is to have it.
func (r *Run) wanting() *module.Part {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Wants != "" && p.Rework == nil && p.Left == "" && partState(p) == StateRunning && r.refusal(p) == "" {
			return p
		}
	}
	return nil
}

// splitAsked asks whether the modules are to be built at the same time, where people
// are to decide it.
func (r *Run) splitAsked(s *module.Split) *Guard {
	if r.Config.Modules.Mode != config.ModulesAsk || r.Approved || len(r.Parts) > 0 || r.Contract != "" {
		return nil
	}
	e := s.Estimate(r.Config.Modules.Parallel)
	whole, split := s.Forecast(r.Config.Modules.Parallel)
	var names []string
	for _, m := range s.Modules {
		names = append(names, m.ID)
	}
	dollars := func(p module.Price) string { return text.USD(int64(p.USD * 1e6)) }
	limit := ""
	if most := r.CostLimit(); most > 0 {
		limit = fmt.Sprintf(" The run may cost %s, and %s.", text.USD(most), r.Total().soFar())
	}
	return &Guard{Name: GuardSplit, Phase: PhasePlan, Value: int64(e.Whole), Limit: int64(e.Serial), Unit: "units of work",
		Detail: fmt.Sprintf("The plan splits the feature into %s (%s). Built at the same time, %d units of work lie after each other instead of %d, %.0f %% less. "+
			"By a simulation in which a module of size M is a middling task for one run, it takes about %.0f minutes instead of %.0f, "+
			"and costs about %s instead of %s (%.2f times as much): each module is reviewed and tested by itself, and the whole once more.%s",
			text.Plural(len(s.Modules), "module", "modules"), strings.Join(names, ", "), e.Whole, e.Serial, 100*e.Gain,
			split.Minutes, whole.Minutes, dollars(split), dollars(whole), split.USD/whole.USD, limit)}
}

// mergeable is the module that ended first of those that wait to be merged.
func (r *Run) mergeable() *module.Part {
	var first *module.Part
	for i := range r.Parts {
		p := &r.Parts[i]
		if p.Passed() && !p.Done() && p.Rework == nil && !r.held(p) && (first == nil || p.Ended.Before(first.Ended)) {
			first = p
		}
	}
	return first
}

// held reports whether the merge of a module waits for another one, which was merged
// before and does not keep what it promised this module, or one that relies on it as well:
// what is being fixed is no reason to send that one back a second time.
func (r *Run) held(p *module.Part) bool {
	if r.breaks(p.After) {
		return !r.waitsFor(r.part(p.After), p)
	}
	return p.Merged == "" && slices.ContainsFunc(r.Parts, func(x module.Part) bool {
		return !x.Done() && r.breaks(x.After) && r.promises(x.After, p.ID) && !r.waitsFor(r.part(x.After), p)
	})
}

// breaks reports whether a module is still to be merged again, with what it promised.
func (r *Run) breaks(id string) bool {
	q := r.part(id)
	return q != nil && !q.Done()
}

// waitsFor reports whether all that a module still waits for is another one, or what waits
// for that: where two promise each other something, neither may wait forever.
func (r *Run) waitsFor(q, p *module.Part) bool {
	for range r.Parts {
		if !q.Passed() || q.Rework != nil || !r.breaks(q.After) {
			return false
		}
		if q = r.part(q.After); q == p {
			return true
		}
	}
	return false
}

// promises reports whether a module promises something to another one.
func (r *Run) promises(from, to string) bool {
	s := r.split()
	return s != nil && slices.ContainsFunc(s.Promises, func(x module.Promise) bool { return x.From == from && slices.Contains(x.To, to) })
}

// partFailed leaves out a module that was given up, with what needs it. Where its own
// guards stop it, its own run asks, unless the settings say to go on with those that passed.
func (r *Run) partFailed() *Action {
	for i := range r.Parts {
		p := &r.Parts[i]
		switch s := partState(p); {
		case p.Left == "" && p.Question != "" && s == StateWaiting && r.Config.Modules.Unasked():
			return r.leave(p, "its run asks: "+p.Question)
		case p.Left != "" || !s.Ended() || p.Passed():
			continue
		case p.By != "" && (p.How == module.Later || p.How == module.Without):
			return r.leave(p, "left out by "+p.By)
		default:
			return r.leave(p, p.Why)
		}
	}
	return nil
}

// orphaned leaves out a module that needs one that was left out before it was planned: a later
// plan may name that one again, and it never begins a second time.
func (r *Run) orphaned(s *module.Split) *Action {
	for _, m := range s.Modules {
		if r.part(m.ID) != nil {
			continue
		}
		for _, need := range m.Needs {
			if p := r.part(need); p != nil && p.Left != "" && p.Merged == "" {
				return r.leave(&module.Part{ID: m.ID}, "it needs "+need)
			}
		}
	}
	return nil
}

// room reports whether fewer modules are at work than may be at the same time.
func (r *Run) room(works func(*module.Part) bool) bool {
	n := 0
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Left == "" && works(p) {
			n++
		}
	}
	return n < max(1, r.Config.Modules.Parallel)
}

// atWork reports whether a module is built or fixed right now.
func atWork(p *module.Part) bool { return partState(p) == StateRunning && p.Rework == nil }

// startable is the next module that can begin, "" when none can, or as many are built as may be.
func (r *Run) startable(s *module.Split) string {
	if !r.room(func(p *module.Part) bool { return atWork(p) || p.Rework != nil }) {
		return ""
	}
	ready := s.Ready(func(id string) bool { return r.part(id) != nil }, func(id string) bool { p := r.part(id); return p != nil && p.Merged != "" })
	if len(ready) == 0 {
		return ""
	}
	return ready[0]
}

// contractFiles are the files of the contract: those that the plan names, and what else
// came with them outside of the modules' own paths, such as helpers of its tests.
func (r *Run) contractFiles(s *module.Split) []string {
	out := slices.Clone(s.Contract)
	for _, name := range r.ContractFiles {
		if !slices.Contains(out, name) && s.Owner(name, glob.Match) == "" {
			out = append(out, name)
		}
	}
	return out
}

// spawn begins the run that builds a module. Its key makes a repeat find it.
func (r *Run) spawn(s *module.Split, id string) *Action {
	m := s.Module(id)
	cfg := r.Config
	cfg.Mode = config.ModeAuto // a human's word lets it begin, and lets it be merged
	cost, tokens := r.PartBudget(s.Share(id))
	cfg.Limits.CostUSD, cfg.Limits.Tokens = float64(cost)/1e6, tokens
	cfg.Loop.MaxIterations = cfg.Modules.Iterations
	cfg.OnBaseMoved, cfg.Modules = "merge", r.Config.Modules
	cfg.Modules.Mode = config.ModulesOff
	cfg.Tests.Integration, cfg.Tests.System = nil, nil
	cfg.Tests.Checks = false          // the repository's own judge the whole
	cfg.Tests.KnownFailures = "allow" // what failed before is the whole's to ask about, as is what others have still to build
	contract := r.contractFiles(s)
	of := &module.Of{Run: r.ID, Module: *m, Untested: r.Untested, Tells: cfg.Upstream.Enabled, Wave: s.Wave(id), Base: r.Base, Branch: r.Repo.DefaultBranch, Contract: contract,
		Promises: s.Of(id), Probes: r.Probes(), Others: s.Foreign(id), Owners: s.Owners(id)}
	cfg.Paths.Protected = slices.Concat(cfg.Paths.Protected, contract, of.Others)
	repo := r.Repo
	repo.DefaultBranch = r.Branch // what it is for
	start := &Start{
		Kind: KindModule, Repo: repo, Task: r.Task, By: r.By, Config: cfg, Base: r.Head, Branch: r.Branch + "--" + id,
		Slug: cmp.Or(r.Slug, command.Slug) + " " + id, Part: of, Plan: r.partPlan(s, m), Holdout: r.Holdout,
	}
	if r.Tried != nil && r.Tried.Head == r.Head {
		start.Baseline = r.Tried
	}
	key := r.spawnKey(id)
	if g := r.unapproved(PhaseImplement, key, fmt.Sprintf("The next step waits for your word: the module %s begins (%s).", id, m.Title)); g != nil {
		return r.stopAt(*g)
	}
	return &Action{Key: key, Kind: ActionSpawn, Start: start,
		Events: []Event{{ID: fmt.Sprintf("run/%d/module/%s/started", r.ID, id), Type: EventModuleStarted, Source: "forge",
			Data: Data{Part: &module.Part{ID: id, Base: r.Head, Branch: start.Branch, State: string(StateRunning), Max: cfg.Loop.MaxIterations}}}}}
}

func (r *Run) spawnKey(id string) string { return fmt.Sprintf("run/%d/module/%s", r.ID, id) }

// partPlan is the part of the plan that a module is built by.
func (r *Run) partPlan(s *module.Split, m *module.Module) *Plan {
	out := &Plan{Summary: m.Title + ": " + m.Summary, Steps: m.Steps, Risks: r.Plan.Risks}
	for _, c := range r.Plan.Criteria {
		if slices.Contains(m.Criteria, c.ID) {
			out.Criteria = append(out.Criteria, c)
		}
	}
	for _, f := range r.Plan.Files {
		if s.Owner(f, glob.Match) == m.ID {
			out.Files = append(out.Files, f)
		}
	}
	return out
}

// endedBy is who ended the run by an answer, "" when nobody did.
func (r *Run) endedBy() string {
	if r.State == StateCancelled && r.GivenUpBy != "" {
		return r.GivenUpBy
	}
	if len(r.Gates) == 0 {
		return ""
	}
	answers := r.Gates[len(r.Gates)-1].Answers
	if n := len(answers); n > 0 && slices.Contains([]string{"accept", "cancel", module.Later, module.Without}, answers[n-1].Choice) {
		return answers[n-1].By.Login
	}
	return ""
}

// KnownInParts are the tests that fail in modules which were accepted with that, each
// with who did it, and the error that it was for.
func (r *Run) KnownInParts() map[string]KnownFailure {
	out := map[string]KnownFailure{}
	for _, p := range r.Parts {
		for i, test := range p.Known {
			out[test] = KnownFailure{Login: p.By, Error: p.Errors[i], Run: p.Run, Head: p.Head}
		}
	}
	return out
}

// AsPart is what the run that planned a module knows of the run that builds it.
func (r *Run) AsPart() *module.Part {
	p := &module.Part{ID: r.Part.Module.ID, Run: r.ID, Rev: r.Rev, State: string(r.State), Branch: r.Branch, Base: r.Base, Head: r.Head, Max: r.MaxIterations(),
		Why: r.Ended, How: r.How, Foreign: r.Foreign, Raised: r.Counters.Raised, MicroUSD: r.Usage.MicroUSD, Unpriced: r.Usage.Unpriced,
		Tokens: r.Usage.Input + r.Usage.Output, Millis: r.Worked(), Changed: r.Updated}
	r.tellSimpler(p)
	r.tellAsks(p)
	if r.Active != nil {
		p.Phase = string(r.Active.Phase)
	}
	if r.State.Ended() {
		p.Ended = r.Updated
	}
	if r.State == StateAccepted || r.State == StateCancelled {
		p.By = r.endedBy()
	}
	if r.State == StateAccepted {
		for _, is := range r.Failures {
			if is.State == IssueAccepted && is.Failure != nil {
				p.Known, p.Errors = append(p.Known, is.Failure.Test), append(p.Errors, is.Failure.ErrorKey())
			}
		}
	}
	p.Met = r.Met
	if r.Plan != nil {
		p.Proofs = r.partProofs()
	}
	p.Halted = r.State == StateStopped && r.Halted
	if g := r.Gate(); g != nil {
		p.Gate, p.Question = g.ID, g.Question
	}
	if it := r.Current(); it != nil {
		p.Iteration = it.Number
		if it.Impl != nil && r.BaseHead == "" {
			p.Wants, p.Insists = it.Impl.Contract, r.Insists
		}
		if it.Tests != nil {
			n := len(it.Tests.Pending) // of promises whose other side is not there
			p.Tests = fmt.Sprintf("%d of %d passed", it.Tests.Passed, it.Tests.Total-n)
			if n > 0 {
				p.Tests += fmt.Sprintf(", %d pending", n)
			}
		}
		if it.Review != nil {
			p.Findings = brief(r.unresolved(), nil)
		}
	}
	return p
}

// tellSimpler says what a person made of the module's task, once there is a plan for it.
func (r *Run) tellSimpler(p *module.Part) {
	if r.Replan || r.Plan == nil {
		return
	}
	for _, g := range r.Gates {
		for _, a := range g.Answers {
			if a.Choice == "simplify" {
				p.Simpler, p.SimplerBy = text.Clip(text.OneLine(a.Text), 300), a.By.Login
			}
		}
	}
	if p.Simpler == "" {
		return
	}
	for _, c := range r.Plan.Criteria {
		p.Criteria = append(p.Criteria, c.Text)
	}
}

// simplified takes over what a person made of a module's task: the criteria that it does
// not meet any more are left out of the plan, and its new ones come in.
func (r *Run) simplified(p *module.Part) {
	s := r.split()
	if s == nil || s.Module(p.ID) == nil {
		return
	}
	plan, split := *r.Plan, *s
	split.Modules = slices.Clone(s.Modules)
	m := split.Module(p.ID)
	own := m.Criteria
	m.Criteria, plan.Criteria, plan.Split = nil, nil, &split
	there := map[string]bool{}
	for _, c := range r.Plan.Criteria {
		switch {
		case !slices.Contains(own, c.ID):
			plan.Criteria = append(plan.Criteria, c)
		case slices.Contains(p.Criteria, c.Text):
			plan.Criteria, m.Criteria = append(plan.Criteria, c), append(m.Criteria, c.ID)
			there[c.Text] = true
		default:
			plan.LeftOut = append(slices.Clip(plan.LeftOut), c)
		}
	}
	for i, words := range p.Criteria {
		if !there[words] {
			c := Criterion{Text: words}
			for n := i + 1; c.ID == "" || plan.names(c.ID); n++ {
				c.ID = fmt.Sprintf("%s-%d", p.ID, n)
			}
			plan.Criteria, m.Criteria = append(plan.Criteria, c), append(m.Criteria, c.ID)
		}
	}
	r.Plan = &plan
}

// names reports whether a criterion has the id, one that was left out included.
func (p *Plan) names(id string) bool {
	same := func(c Criterion) bool { return c.ID == id }
	return slices.ContainsFunc(p.Criteria, same) || slices.ContainsFunc(p.LeftOut, same)
}

// applyParts handles what happens to modules.
func (r *Run) applyParts(e Event) bool {
	in := e.Data.Part
	switch e.Type {
	case EventModuleStarted, EventModuleChanged, EventModuleTold, EventModuleLeft:
	case EventModuleRefused:
		if r.Part != nil {
			r.Refused = e.Data.Note
		}
		return true
	case EventModuleOver:
		if r.Part != nil && r.State.Ended() {
			r.Over, r.Rev = true, e.Seq
		}
		return true
	default:
		return false
	}
	if in == nil || r.Part != nil {
		return true
	}
	p := r.part(in.ID)
	switch {
	case p == nil && e.Type == EventModuleTold:
		return true
	case p == nil:
		r.Parts = append(r.Parts, module.Part{ID: in.ID})
		p = &r.Parts[len(r.Parts)-1]
	}
	switch e.Type {
	case EventModuleStarted:
		if p.Rev == 0 { // else its run was quicker to tell
			left := p.Left
			*p = *in
			p.Left = left
		}
		p.Started, r.Rev = e.Time, e.Seq
	case EventModuleChanged:
		r.partChanged(p, in, e)
	case EventModuleTold:
		r.partTold(p, in)
	case EventModuleLeft:
		r.leaveOut(in)
		r.unasked(p)
		r.Rev = e.Seq
	}
	return true
}

// partChanged takes in how a module's run stands. People are shown it when its state,
// its question or its iteration is another one; the first begins with the module.
func (r *Run) partChanged(p, in *module.Part, e Event) {
	if in.Rev <= p.Rev {
		return
	}
	if in.State != p.State || max(1, in.Iteration) != max(1, p.Iteration) || in.Gate != p.Gate {
		r.Rev = e.Seq
	}
	own := *p
	*p = *in
	p.Started, p.Ended, p.Merged, p.As, p.Round, p.Clashes, p.Left = own.Started, own.Ended, own.Merged, own.As, own.Round, own.Clashes, own.Left
	if own.Left != "" {
		p.How = own.How
	}
	p.Rework, p.Tells, p.Told, p.After, p.Doubt, p.Off = own.Rework, own.Tells, own.Told, own.After, own.Doubt, own.Off
	if p.Owed, p.OwedAs = own.Owed, own.OwedAs; p.State == string(StateAccepted) {
		for i, test := range p.Owed {
			p.Know(test, p.OwedAs[i])
		}
		for i, test := range own.Known { // what was found at its merge
			if own.State == p.State && own.Head == p.Head {
				p.Know(test, own.Errors[i])
			}
		}
	}
	if p.Told == "stopped" && r.State == StateStopped && partState(p) == StateRunning { // it was let go on, which was not written down
		p.Told = ""
	}
	if p.Told == "over" && !partState(p).Ended() { // somebody lets it go on after the end: its branch comes anew
		p.Told = ""
	}
	if p.Denied = own.Denied; p.Insists > own.Insists {
		p.Denied, p.Told = "", ""
	}
	if !in.Ended.IsZero() && (in.State != own.State || own.Ended.IsZero()) { // else it only tells once more
		p.Ended = in.Ended
	}
	r.heard(p, e.Data.Upstream)
	if p.Simpler != "" && (p.Simpler != own.Simpler || !slices.Equal(p.Criteria, own.Criteria)) {
		r.simplified(p)
		r.Rev = e.Seq
	}
}

// grantParts resets what a guard about modules counts, when a human lets the run go on.
func (r *Run) grantParts(g Guard) {
	switch g.Name {
	case GuardSplit, GuardParts:
		if r.Plan == nil { // a log that does not hang together
			return
		}
		plan := *r.Plan
		plan.Split, plan.Unsplit = nil, "a human decided so"
		if g.Name == GuardParts {
			plan.Unsplit = "none of its modules was finished"
			plan.Criteria = append(slices.Clip(plan.Criteria), plan.LeftOut...)
			plan.LeftOut, r.Parts = nil, nil
		}
		r.Plan = &plan
	case GuardUnable:
		r.ContractUnable = ""
	case GuardRounds, GuardConflict:
		for _, id := range g.About {
			if p := r.part(id); p != nil {
				p.Round, p.Clashes = 0, 0
				if g.Name == GuardConflict {
					p.Rework = &module.Rework{Base: r.Head, Why: p.Why}
				}
			}
		}
	}
}

// agreed takes in the commit that holds what modules promise each other. One that was
// made because a module wants it goes to all that are at work.
func (r *Run) agreed(ref *PhaseRef, d Data) {
	if p := r.part(ref.Part); p != nil && d.Implementation.Unable != "" { // it stays as it is
		p.Denied = text.Clip(text.OneLine(d.Implementation.Unable), 300)
		return
	}
	if d.Implementation.Unable != "" {
		r.ContractUnable = d.Implementation.Unable
		return
	}
	r.Head = d.Implementation.Head
	r.Contract, r.Tried, r.Made = r.Head, d.Tests, append(r.Made, r.Head)
	r.unjudge()
	for _, name := range d.Implementation.Files {
		if !slices.Contains(r.ContractFiles, name) {
			r.ContractFiles = append(slices.Clip(r.ContractFiles), name)
		}
	}
	for i := range r.Parts {
		switch p := &r.Parts[i]; {
		case ref.Part == "" || p.Left != "" || p.Rework != nil || partState(p) != StateRunning:
		case p.ID == ref.Part:
			p.Round++
			p.Rework = &module.Rework{Base: r.Head, Why: "the contract was revised as it wants"}
		case p.Wants == "":
			p.Rework = &module.Rework{Base: r.Head, Why: "the contract was revised as the module " + ref.Part + " wants"}
		}
	}
}

// merged takes in how the merge of a module went. What conflicts, or breaks tests that
// passed before it, is the module's to solve, on what was merged before.
func (r *Run) merged(ref *PhaseRef, d Data) {
	p, u := r.part(ref.Part), d.Update
	if p == nil {
		return
	}
	if ref.Mode == ModeLook {
		r.lookedAtParts(u, d.Tests)
		return
	}
	why := ""
	var fails []string
	switch {
	case len(u.Conflicts) > 0:
		why = "it conflicts with what was merged before, in " + strings.Join(u.Conflicts, ", ")
	case d.Tests != nil && len(d.Tests.Failures) > 0:
		n := len(d.Tests.Failures)
		why = fmt.Sprintf("merged, %s %s: %s", text.Plural(n, "test", "tests"), verb(n, "fails", "fail"), d.Tests.Failures[0].Test)
		for _, f := range d.Tests.Failures[:min(len(d.Tests.Failures), maxFails)] {
			fails = append(fails, f.Test+": "+text.Clip(f.Error, 1000))
		}
	default:
		r.Head, p.Merged, p.As, p.Clashes, r.Tried = u.Head, u.Base, u.Head, 0, d.Tests
		p.Owed, p.OwedAs = nil, nil
		r.tookWith(p.ID, d.Tests)
		r.Made = append(r.Made, r.Head)
		r.unjudge()
		return
	}
	if p.Off != "" && p.Merged == "" {
		why = fmt.Sprintf("it was merged, and not on the branch any more when %s; merged again, %s", p.Off, strings.TrimPrefix(why, "merged, "))
	}
	p.Clashes++
	p.Why = why
	switch q := r.promised(p, d.Tests); {
	case p.Clashes == 1 && q != nil:
		owes(q, d.Tests)
		q.Round++
		q.Rework = &module.Rework{Base: r.Head, Why: fmt.Sprintf("what it promised the module %s does not hold: %s", p.ID, why), Fails: fails, With: p.ID}
		p.After = q.ID
	case p.Clashes <= clashLimit:
		owes(p, d.Tests)
		p.Rework = &module.Rework{Base: r.Head, Why: why, Fails: fails}
	}
}

// unjudge forgets what was said of the head that was there before: what came in while the
// whole was judged, such as a module that somebody pushed to meanwhile, is judged with it.
func (r *Run) unjudge() {
	if it := r.Current(); it != nil && it.Result == ResultInProgress {
		it.Review, it.Tests, it.Update, it.Forced = nil, nil, nil, false
	}
}

// acceptedWith is the module that a person took with what a test shows at a merge, nil when
// there is none. The module made the promise that the test is of, which could not be seen before
// both sides were there, or the test is its own, and had not run when it was taken. Another
// error of a test that the module is known by is none of that.
func (r *Run) acceptedWith(f *Failure, merging string) *module.Part {
	s := r.split()
	if s == nil {
		return nil
	}
	owner := s.Owner(f.File, glob.Match)
	for i := range r.Parts {
		p := &r.Parts[i]
		if partState(p) != StateAccepted || p.Left != "" || p.ID != merging && p.Merged == "" || slices.Contains(p.Known, f.Test) || owner != "" && owner != p.ID {
			continue
		}
		made := func(x module.Promise) bool { return x.From == p.ID && testname.Same(f.Test, x.Probe) }
		if slices.ContainsFunc(s.Promises, made) || owner == p.ID && p.ID == merging && p.Tests == "" {
			return p
		}
	}
	return nil
}

// AcceptMerge takes out of what fails at a merge what people took with a module. Modules
// that begin on the merge find it there.
func (r *Run) AcceptMerge(t *TestReport, merging string) {
	t.Failures = slices.DeleteFunc(slices.Clone(t.Failures), func(f Failure) bool {
		taken := r.acceptedWith(&f, merging) != nil
		if taken {
			t.Accepted, t.Before = append(t.Accepted, f.Test), append(slices.Clip(t.Before), f)
		}
		return taken
	})
}

// tookWith notes with the modules which tests failed at a merge, and were taken with them.
func (r *Run) tookWith(merging string, t *TestReport) {
	if t == nil {
		return
	}
	for i := range t.Before {
		f := &t.Before[i]
		if q := r.acceptedWith(f, merging); q != nil && slices.Contains(t.Accepted, f.Test) {
			q.Know(f.Test, f.ErrorKey())
		}
	}
}

// owes notes which tests a module is sent back for.
func owes(p *module.Part, tests *TestReport) {
	p.Owed, p.OwedAs = nil, nil
	if tests == nil { // a conflict
		return
	}
	for _, f := range tests.Failures {
		p.Owed, p.OwedAs = append(p.Owed, f.Test), append(p.OwedAs, f.ErrorKey())
	}
}

// promised is the merged module whose promises to another one are all that fails where
// that one is merged; nil when there is none that may be sent back to work.
func (r *Run) promised(p *module.Part, report *TestReport) *module.Part {
	s := r.split()
	if s == nil || report == nil || len(report.Failures) == 0 {
		return nil
	}
	var from *module.Part
	for _, f := range report.Failures {
		i := slices.IndexFunc(s.Promises, func(x module.Promise) bool {
			return x.From != p.ID && slices.Contains(x.To, p.ID) && testname.Same(f.Test, x.Probe)
		})
		if i < 0 {
			return nil
		}
		q := r.part(s.Promises[i].From)
		if q == nil || from != nil && q != from || q.Run == 0 || q.Left != "" || q.Merged == "" || q.Round >= r.Config.Modules.Rounds {
			return nil
		}
		from = q
	}
	return from
}

// plans are all that the run had, the present one last.
func (r *Run) plans() []Plan {
	out := slices.Clone(r.PastPlans)
	if r.Plan != nil {
		out = append(out, *r.Plan)
	}
	return out
}

// Probes are the tests of all promises, those of plans that were replaced, too: they may
// stand in the repository still.
func (r *Run) Probes() []string {
	var out []string
	for _, p := range r.plans() {
		if p.Split == nil {
			continue
		}
		for _, probe := range p.Split.Probes() {
			if !slices.Contains(out, probe) {
				out = append(out, probe)
			}
		}
	}
	return out
}

// Joins are the commits of the branch that laid down the contract or merged a module, and
// that are followed by work of the integration's own, or by nothing, oldest first. What the
// integration changes is judged by the tests as they stood there.
func (r *Run) Joins() []string {
	last := ""
	for _, sha := range slices.Backward(r.Made) {
		if sha == r.Contract || slices.ContainsFunc(r.Parts, func(p module.Part) bool { return p.As == sha }) {
			last = sha
			break
		}
	}
	if last == "" {
		return nil
	}
	var out []string
	add := func(sha string) {
		if slices.Contains(r.Made, sha) && !slices.Contains(out, sha) {
			out = append(out, sha)
		}
	}
	before := map[string]string{} // by the head that the base branch was taken in with
	for i := range r.Iterations {
		it := &r.Iterations[i]
		if u := it.Update; u != nil && u.Head != "" && u.Head != u.Parent {
			before[u.Head] = u.Parent
		}
		if own := it.Impl; own != nil && own.Head != own.Parent && !slices.Contains(r.Made, own.Head) {
			parent := own.Parent
			for before[parent] != "" {
				parent = before[parent]
			}
			add(parent)
		}
	}
	add(last)
	return out
}

// Judges reports whether files are judged by the tests as they stood at a join: those of a
// module from its last merge on, the contract's from its last revision on. owner is the
// module that they belong to, "" for none.
func (r *Run) Judges(join, owner string, contract bool) bool {
	since := ""
	if p := r.part(owner); p != nil {
		since = p.As
	} else if contract {
		since = r.Contract
	}
	return slices.Index(r.Made, since) <= slices.Index(r.Made, join)
}

// pushed reports whether the head is where every machine finds it: what a module stands
// on must not be lost with the one that made it.
func (r *Run) pushed() bool { return r.Head == r.Base || r.Published.Head == r.Head }

// unmake takes back what made the head, which the branch has gone on without: it was
// never pushed.
func (r *Run) unmake() {
	if r.Contract == r.Head {
		r.Contract, r.Tried = "", nil
	}
	for i := range r.Parts {
		if p := &r.Parts[i]; p.As == r.Head {
			p.Merged, p.As = "", ""
		}
	}
}

// maxFails is how many failing tests of a merge a module is told of.
const maxFails = 10

// owners says whose the findings and failures of a bounce are to fix, by module: by the
// file of the suggested fix, by the finding's, and by the test's. What is no module's
// stays with the integration.
func (r *Run) owners(findings []Finding, failures []Failure) map[string][]string {
	s := r.split()
	if s == nil {
		return nil
	}
	out := map[string][]string{}
	give := func(fingerprint string, files ...string) {
		for _, f := range files {
			p := r.part(s.Owner(f, glob.Match))
			if f == "" || p == nil || p.Run == 0 || p.Left != "" {
				continue
			}
			if !slices.Contains(out[p.ID], fingerprint) {
				out[p.ID] = append(out[p.ID], fingerprint)
			}
			return
		}
	}
	for _, f := range findings {
		give(f.Fingerprint, append(f.Fix.Files(), f.File)...)
	}
	for _, f := range failures {
		files := append(f.Fix.Files(), f.File)
		for _, p := range s.Promises {
			if testname.Same(f.Test, p.Probe) { // whoever promised it
				if m := s.Module(p.From); m != nil && len(m.Paths) > 0 {
					files = append(files, m.Paths[0])
				}
			}
		}
		give(f.Fingerprint, files...)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// toParts sends what modules have to fix back to them, or stops at the limit of that.
func (r *Run) toParts(b *Bounce) *Action {
	for _, id := range slices.Sorted(maps.Keys(b.Parts)) {
		if p := r.part(id); p.Round >= r.Config.Modules.Rounds && len(r.Iterations) >= r.Counters.GrantedUntil {
			return r.stopAt(Guard{Name: GuardRounds, Phase: b.Phase, Value: int64(p.Round), Limit: int64(r.Config.Modules.Rounds), About: []string{id},
				Detail: fmt.Sprintf("the integration has sent work back to the module %s %s, its limit", id, text.Plural(p.Round, "time", "times"))})
		}
	}
	b.Target = TargetModule
	return r.record(Event{Type: EventBounce, Data: Data{Bounce: b}})
}

// backToParts is what a bounce to modules does.
func (r *Run) backToParts(b *Bounce) {
	for _, id := range slices.Sorted(maps.Keys(b.Parts)) {
		if p := r.part(id); p != nil {
			p.Round++
			p.Rework = &module.Rework{Base: r.Head, Issues: b.Parts[id],
				Why: fmt.Sprintf("the integration sends back %s, found by the %s", text.Plural(len(b.Parts[id]), "issue", "issues"), b.Phase)}
		}
	}
}

// assembled is the event with which an iteration begins whose work the modules have
// done: nobody has to implement anything in it. nil where somebody has.
func (r *Run) assembled(it *Iteration) *Action {
	s := r.split()
	if s == nil {
		return nil
	}
	ref := PhaseRef{Phase: PhaseImplement, Iteration: 1, Mode: ModeWire}
	impl := Implementation{Parent: r.Base, Head: r.Head, Summary: "the modules, merged: " + r.mergedParts()}
	if it == nil {
		if len(s.Wiring) > 0 || len(s.Integration) > 0 {
			return r.begin(ref)
		}
	} else {
		b := r.lastBounce()
		if b == nil || b.Target != TargetModule || b.Iteration != it.Number {
			return nil
		}
		for _, fp := range b.Issues {
			if !slices.ContainsFunc(slices.Collect(maps.Values(b.Parts)), func(own []string) bool { return slices.Contains(own, fp) }) {
				return nil // the rest is for the integration
			}
		}
		ref.Iteration, ref.Mode = it.Number+1, fixMode(b)
		if impl.Parent = r.Base; it.Review != nil {
			impl.Parent = it.Review.Head
		}
		impl.Summary = "fixed by " + strings.Join(slices.Sorted(maps.Keys(b.Parts)), ", ")
	}
	ref.Attempt = r.Attempts[attemptKey(ref)] + 1
	return r.record(
		Event{Type: EventPhaseEntered, Data: Data{Phase: &ref, Head: r.Head}},
		Event{Type: EventPhaseCompleted, Data: Data{Phase: &ref, Implementation: &impl}})
}

func (r *Run) mergedParts() string {
	var out []string
	for i := range r.Parts {
		if r.Parts[i].Merged != "" {
			out = append(out, r.Parts[i].ID)
		}
	}
	return strings.Join(out, ", ")
}

func (r *Run) lastBounce() *Bounce {
	if n := len(r.Bounces); n > 0 {
		return &r.Bounces[n-1]
	}
	return nil
}

// Total is what the run and its modules' runs have used. Of a module's, tokens are known
// as one number, which is taken for input.
func (r *Run) Total() Usage {
	u := r.Usage
	for i := range r.Parts {
		p := &r.Parts[i]
		u.Add(Usage{Input: p.Tokens, MicroUSD: p.MicroUSD, Unpriced: p.Unpriced})
	}
	return u
}

// spent is that in micro-dollars and tokens.
func (r *Run) spent() (cost, tokens int64) {
	u := r.Total()
	return u.MicroUSD, u.Input + u.Output
}
