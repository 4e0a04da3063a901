package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/record"
)

// Covers V7: what the integration did before a module came back must not become what that
// module's tests, or others', are held to.
func TestJoins(t *testing.T) {
	t.Parallel()
	run := &Run{Contract: "contract", Made: []string{"contract", "c1", "a1", "a2"},
		Parts: []module.Part{{ID: "a", As: "a2"}, {ID: "c", As: "c1"}},
		Loop:  Loop{Iterations: []Iteration{{Impl: &Implementation{Parent: "a1", Head: "wired"}}, {Impl: &Implementation{Parent: "a1", Head: "a2"}}}}}
	if d := cmp.Diff([]string{"a1", "a2"}, run.Joins()); d != "" {
		t.Errorf("joins (-want +got):\n%s", d)
	}
	for owner, want := range map[string]bool{"a": false, "c": true, "": true} {
		if got := run.Judges("a1", owner, owner == ""); got != want {
			t.Errorf("the join before the integration's work judges %q: %v, want %v", owner, got, want)
		}
	}
	run.Iterations = []Iteration{{Update: &Update{Parent: "a1", Head: "updated"}, Impl: &Implementation{Parent: "updated", Head: "wired"}}}
	if d := cmp.Diff([]string{"a1", "a2"}, run.Joins()); d != "" {
		t.Errorf("joins where the base was taken in between (-want +got):\n%s", d)
	}
	run.Iterations = nil
	if d := cmp.Diff([]string{"a2"}, run.Joins()); d != "" {
		t.Errorf("joins without work of the integration's own (-want +got):\n%s", d)
	}
}

// Covers V9: a failure that was accepted with a module is that one, not whatever the test
// shows later.
func TestAcceptedIsOneError(t *testing.T) {
	t.Parallel()
	cosmetic := Failure{Test: "test_c", Error: "assert 'C' == 'c'"}
	run := &Run{Parts: []module.Part{{ID: "c", By: "ann", Known: []string{"test_c"}, Errors: []string{cosmetic.ErrorKey()}}}}
	for _, f := range []Failure{cosmetic, {Test: "test_c", Error: "assert 500 == 3"}} {
		r := TestReport{Failures: []Failure{f}, Failed: 1}
		r.Accept(run.KnownInParts())
		if got, want := len(r.Accepted) == 1, f.Error == cosmetic.Error; got != want {
			t.Errorf("%s: accepted %v, want %v", f.Error, got, want)
		}
	}
}

// Covers M3: a run and the modules that it builds work with memory, or without it.
func TestModuleHasItsParentsHoldout(t *testing.T) {
	t.Parallel()
	run := &Run{Plan: split("a"), Branch: "forge/x", Holdout: &record.Holdout{Share: 0.1, Out: true}}
	if got := run.spawn(run.Plan.Split, "a").Start.Holdout; got != run.Holdout {
		t.Errorf("the module has %+v, its parent %+v", got, run.Holdout)
	}
}

func split(ids ...string) *Plan {
	plan := &Plan{Split: &module.Split{}}
	for _, id := range append(ids, "whole") {
		plan.Criteria = append(plan.Criteria, Criterion{ID: "AC-" + id, Text: id + " works"})
		if id != "whole" {
			plan.Split.Modules = append(plan.Split.Modules, module.Module{ID: id, Criteria: []string{"AC-" + id}})
		}
	}
	plan.Split.Integration = []string{"AC-whole"}
	return plan
}

func texts(list []Criterion) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Text)
	}
	return strings.Join(out, ", ")
}

// Covers V9: no criterion goes without a word: neither one that a revised plan does not
// name, nor one of a module that a person made simpler.
func TestCriteriaDoNotVanish(t *testing.T) {
	t.Parallel()
	run := &Run{Plan: split("a", "b"), Without: []string{"a"}, Parts: []module.Part{{ID: "a", Left: "by ann"}}}
	got := run.revised(&Plan{Summary: "without a", Criteria: []Criterion{{ID: "AC-b", Text: "b works"}}})
	if texts(got.Criteria) != "b works" || texts(got.LeftOut) != "a works, whole works" {
		t.Errorf("revised without a: %s; left out: %s", texts(got.Criteria), texts(got.LeftOut))
	}
	run = &Run{State: StateRunning, Plan: split("a", "b"), Parts: []module.Part{{ID: "b", State: "running"}}}
	run.Apply(Event{Seq: 2, Type: EventModuleChanged,
		Data: Data{Part: &module.Part{ID: "b", Rev: 3, State: "running", Simpler: "no rounding", SimplerBy: "ann",
			Criteria: []string{"b is there"}}}})
	if texts(run.Plan.Criteria) != "a works, whole works, b is there" || texts(run.Plan.LeftOut) != "b works" {
		t.Errorf("made simpler: %s; left out: %s", texts(run.Plan.Criteria), texts(run.Plan.LeftOut))
	}
	if w := run.leftOut(); len(w) != 1 || w[0].By.Login != "ann" || !strings.Contains(w[0].What, "no rounding") {
		t.Errorf("what people are told: %+v", w)
	}
	if own := split("a", "b"); !run.Plan.Split.Has("b-1") || own.Split.Has("b-1") {
		t.Error("the new criterion has no owner")
	}
}

// Covers V9: a question of the run itself about a module can leave that one out; the run
// cannot be taken as it is while modules are missing.
func TestModuleOfAQuestionIsLeftOut(t *testing.T) {
	t.Parallel()
	run := &Run{ID: 7, State: StateRunning, Base: "base", Head: "head", Plan: split("a", "b"),
		Parts: []module.Part{{ID: "a", State: "verified", Merged: "x", Head: "x"}, {ID: "b", State: "verified", Head: "y", Run: 9}}}
	gate := &Gate{ID: "g", Kind: GateEscalation, Guard: &Guard{Name: GuardConflict, Phase: PhaseMerge, About: []string{"b"}}}
	gate.Choices = run.choices(gate.Kind, *gate.Guard)
	if gate.accepts("accept") {
		t.Error("the run can be accepted without the module b")
	}
	run.State, run.Gates = StateWaiting, []Gate{*gate}
	events, wrong := run.Answer(command.Line{Name: module.Later}, Actor{Login: "ann"}, "comment", 1, time.Unix(9, 0))
	if wrong != "" || len(events) != 2 {
		t.Fatalf("later: %d events, %q", len(events), wrong)
	}
	for _, e := range events {
		run.Apply(e)
	}
	if p := run.part("b"); p.Left == "" || p.How != module.Later || p.By != "ann" || p.Rework != nil {
		t.Errorf("the module is %+v", p)
	}
	run.Parts[0].Raised = 5_000_000
	if got := run.CostLimit(); got != 5_000_000 {
		t.Errorf("a module's raised budget raises the run's to %d, want 5000000", got)
	}
}

// Criteria that people write for a module get ids that no other one has, also when they
// do so again.
func TestSimplifiedTwice(t *testing.T) {
	t.Parallel()
	m := module.Module{ID: "c", Criteria: []string{"AC1"}}
	run := &Run{Plan: &Plan{Criteria: []Criterion{{ID: "AC1", Text: "all"}, {ID: "c-2", Text: "of another"}}, Split: &module.Split{Modules: []module.Module{m}}}}
	for _, words := range []string{"less", "still less"} {
		run.simplified(&module.Part{ID: "c", Criteria: []string{words}})
	}
	var got []string
	for _, c := range slices.Concat(run.Plan.Criteria, run.Plan.LeftOut) {
		got = append(got, c.ID+" "+c.Text)
	}
	if want := []string{"c-2 of another", "c-3 still less", "AC1 all", "c-1 less"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where only a module asks, an answer without its name is told how to give it.
func TestAnswerNamesTheModuleThatAsks(t *testing.T) {
	t.Parallel()
	run := &Run{ID: 7, Slug: "forge", State: StateRunning, Plan: split("a", "b"), Parts: []module.Part{{ID: "a"}, {ID: "b", Gate: "gate/1"}}}
	_, wrong := run.Answer(command.Line{Name: "accept"}, Actor{Login: "ann"}, "comment", 1, time.Unix(9, 0))
	if want := "its module b does: answer with its name, as in `/forge b accept`"; !strings.Contains(wrong, want) {
		t.Errorf("%q, want %q", wrong, want)
	}
}

// Covers V7: who gets work back is told by name.
func TestBounceNamesModules(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Bounce{
		"implement":                            {Target: TargetImplement, Issues: []string{"x"}},
		"plan":                                 {Target: TargetPlan, Issues: []string{"x"}},
		"the module tax":                       {Target: TargetModule, Issues: []string{"x"}, Parts: map[string][]string{"tax": {"x"}}},
		"the modules a, b and the integration": {Target: TargetModule, Issues: []string{"x", "y", "z"}, Parts: map[string][]string{"b": {"x"}, "a": {"y"}}},
	} {
		if got := b.To(); got != want {
			t.Errorf("%+v goes to %q, want %q", b, got, want)
		}
	}
}

// Covers V9: what is said of a module names it: people know no numbers of runs.
func TestModuleIsNamed(t *testing.T) {
	t.Parallel()
	run := &Run{ID: 8, Slug: "forge a", State: StateRunning, Part: &module.Of{Run: 7, Module: module.Module{ID: "a"}}}
	say := func(name string) string {
		_, words := run.Answer(command.Line{Name: name, Part: "a"}, Actor{Login: "ann"}, "comment", 1, time.Unix(9, 0))
		return words
	}
	if got := say("status"); !strings.HasPrefix(got, "The module a (run 8) is running") {
		t.Errorf("status: %q", got)
	}
	run.State = StateStopped
	if got := say("resume"); got != "The module a (run 8) goes on where it was stopped." {
		t.Errorf("resume: %q", got)
	}
}

// Covers V9: a module that has not begun can be left out, with what needs it; what else is
// said to it is answered with why nothing works on it, and never meant for the whole run.
func TestUnbegunModule(t *testing.T) {
	t.Parallel()
	at := func(change func(*Run)) *Run {
		run := &Run{ID: 7, Slug: "forge", State: StateRunning, Base: "base", Head: "head", Plan: split("a", "b", "c", "d"), Parts: []module.Part{{ID: "a", Run: 8, State: "running"}}}
		run.Plan.Split.Modules[1].Needs, run.Plan.Split.Modules[2].Needs = []string{"a"}, []string{"b"}
		change(run)
		return run
	}
	for name, tt := range map[string]struct {
		change func(*Run)
		cmd    string
		part   string
		left   string // the modules that are left out then
		words  string
	}{
		"cancel":      {func(*Run) {}, "cancel", "b", "b c", "b is left out before it has begun, and so is what needs it: c."},
		"later":       {func(*Run) {}, "later", "d", "d", "d is left out"},
		"without":     {func(*Run) {}, "without", "d", "d", "d is left out"},
		"continue":    {func(*Run) {}, "continue", "b", "", "The module b has not begun: it needs a. So `continue` changes nothing. It can be left out: `/forge b cancel`"},
		"stop":        {func(*Run) {}, "stop", "d", "", "The module d has not begun. So"},
		"twice":       {func(r *Run) { r.leaveOut(&module.Part{ID: "b", Left: "by ann"}) }, "cancel", "b", "b c", "b is left out: by ann. So `cancel` changes nothing."},
		"begun since": {func(*Run) {}, "cancel", "a", "", "by now there is a run for the module a"},
		"verified":    {func(r *Run) { r.Parts[0].State = "verified" }, "later", "a", "a b c", "a is left out before it is merged, and so is what needs it: b, c."},
		"fixed later": {func(r *Run) { r.Parts[0] = module.Part{ID: "a", Run: 8, State: "verified", Head: "x", Merged: "y"} }, "cancel", "a", "a b c",
			"a is left out; what of it is merged stays, and"},
		"merged": {func(r *Run) { r.Parts[0] = module.Part{ID: "a", Run: 8, State: "verified", Head: "x", Merged: "x"} }, "cancel", "a", "", "by now there is a run"},
		"ended":  {func(r *Run) { r.State, r.Ended = StateVerified, "all passed" }, "cancel", "d", "", "Run 7 has ended (verified: all passed)"},
		"not agreed": {func(r *Run) {
			r.State, r.Gates, r.Parts = StateWaiting, []Gate{{ID: "g", Guard: &Guard{Name: GuardSplit}, Choices: []Choice{{Name: "approve"}}}}, nil
		}, "cancel", "b", "", "whether there are modules at all waits for your word"},
	} {
		run := at(tt.change)
		was := run.State
		events, words := run.Answer(command.Line{Name: tt.cmd, Part: tt.part}, Actor{Login: "ann"}, "comment", 1, time.Unix(9, 0))
		for _, e := range events {
			run.Apply(e)
		}
		var left []string
		for _, p := range run.Parts {
			if p.Left != "" {
				left = append(left, p.ID)
			}
		}
		if got := strings.Join(left, " "); got != tt.left || !strings.Contains(words, tt.words) || run.State != was {
			t.Errorf("%s: left out %q, said %q, the run is %s; want %q, %q", name, got, words, run.State, tt.left, tt.words)
		}
		if p := run.part("d"); p != nil && p.How != map[string]string{"later": "later", "without": "without"}[tt.cmd] {
			t.Errorf("%s: d goes %q", name, p.How)
		}
	}
}

// Covers V9: a module that is left out while it is merged, or while its merge waits for a
// word, is not merged: what works on that stops, and nothing is left to answer.
func TestLeftOutBeforeItsMerge(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cancel", "later", "without"} {
		for _, waits := range []Guard{{}, {Name: GuardManual, Step: "its merge"}, {Name: GuardConflict, About: []string{"a"}}, {Name: GuardConflict, About: []string{"b"}}} {
			run := &Run{ID: 7, Slug: "forge", State: StateRunning, Base: "base", Head: "head", Plan: split("a", "b"),
				Parts: []module.Part{{ID: "a", Run: 8, State: "verified"}, {ID: "b", Run: 9, State: "verified"}}}
			merge := PhaseRef{Phase: PhaseMerge, Part: "a", Attempt: 1}
			if run.Active = &merge; waits.Name != "" {
				if run.Active = nil; waits.Step != "" {
					waits.Step = run.Key(PhaseRef{Phase: PhaseMerge, Part: "a"})
				}
				run.Gates = []Gate{{ID: "g", Guard: &waits, Choices: []Choice{{Name: "continue"}}}}
				run.State = StateWaiting
			}
			events, _ := run.Answer(command.Line{Name: name, Part: "a"}, Actor{Login: "ann"}, "comment", 1, time.Unix(9, 0))
			for _, e := range events {
				run.Apply(e)
			}
			others := len(waits.About) > 0 && waits.About[0] == "b"
			if run.Active != nil || run.part("a").Left == "" || (run.State == StateWaiting) != others || (run.Gate() != nil) != others || run.Counters != (Counters{}) {
				t.Errorf("%s at %+v: the run is %s, in %+v, asks %+v, counts %+v", name, waits, run.State, run.Active, run.Gate(), run.Counters)
			}
		}
	}
}

// Covers V7: the test of a promise that fails, and then passes when it is run again, has
// shown nothing where its other side is missing: it is pending, neither passed nor failed.
func TestFlakyPromiseIsPending(t *testing.T) {
	t.Parallel()
	r := &TestReport{Passed: 3, Failed: 1, Names: []string{"pkg.TestOwn", "pkg.TestPair", "pkg.TestShaky"}, Flaky: []string{"pkg.TestPair", "pkg.TestShaky"},
		Failures: []Failure{{Test: "pkg.TestOther"}}}
	r.Defer(func(test string) bool { return test == "pkg.TestPair" || test == "pkg.TestOther" })
	want := &TestReport{Passed: 2, Names: []string{"pkg.TestOwn", "pkg.TestShaky"}, Flaky: []string{"pkg.TestShaky"}, Failures: []Failure{},
		Pending: []string{"pkg.TestOther", "pkg.TestPair"}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Covers V6: modules divide what the run does not keep, and no more than is left of it; a
// small one has what it takes to be reviewed and tested by itself.
func TestPartBudget(t *testing.T) {
	t.Parallel()
	s := &module.Split{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		s.Modules = append(s.Modules, module.Module{ID: id, Size: "L"})
	}
	s.Modules[0].Size = "S"
	r := &Run{Config: config.Config{Loop: config.Loop{MaxIterations: 5}, Limits: config.Limits{CostUSD: 10, Tokens: 1_000_000}}}
	spread := func() (cost, tokens, least int64) {
		for _, m := range s.Modules {
			c, n := r.PartBudget(s.Share(m.ID))
			cost, tokens = cost+c, tokens+n
			if m.ID == "a" {
				least = n
			}
		}
		return cost, tokens, least
	}
	check := func(what string, wantCost, wantTokens, wantLeast int64) {
		t.Helper()
		near := func(got, want int64) bool { return got > want-10 && got <= want } // of six numbers, each cut off
		if cost, tokens, least := spread(); !near(cost, wantCost) || !near(tokens, wantTokens) || !near(least, wantLeast) {
			t.Errorf("%s: %d micro-dollars and %d tokens, %d for the small one; want %d, %d, %d", what, cost, tokens, least, wantCost, wantTokens, wantLeast)
		}
	}
	check("at first", 7_000_000, 700_000, 56_322) // by size alone 33,333
	r.Usage = Usage{Input: 400_000, MicroUSD: 1_000_000}
	check("after a long plan", 7_000_000, 600_000, 48_276)
	r.Counters.Raised = 10_000_000
	check("raised", 14_000_000, 1_400_000, 112_644)
	r.Config.Limits.Tokens, r.Usage.MicroUSD = 0, 30_000_000
	check("spent, and without a cap on tokens", 6, 0, 0)
}

// Covers V6, V10: a module ends once each time that its work ends; that its run tells of it
// again, as it does when the whole has ended, moves nothing.
func TestModuleEndsOnce(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 7, 1, 12, minute, 0, 0, time.UTC) }
	child := &Run{ID: 8, Part: &module.Of{Run: 7, Module: module.Module{ID: "a"}}}
	parent := &Run{ID: 7, State: StateRunning, Plan: split("a")}
	for i, step := range []struct {
		state State
		want  int
	}{
		{StateRunning, -1}, {StateVerified, 1}, {StateVerified, 1}, {StateRunning, 1}, {StateVerified, 4}, {StateVerified, 4},
		{StateCancelled, 6}, {StateCancelled, 6},
	} {
		child.Rev, child.State, child.Updated = int64(i+1), step.state, at(i)
		parent.Apply(Event{Type: EventModuleChanged, Seq: int64(i + 1), Time: at(i), Data: Data{Part: child.AsPart()}})
		want := time.Time{}
		if step.want >= 0 {
			want = at(step.want)
		}
		if got := parent.part("a").Ended; !got.Equal(want) {
			t.Errorf("told %d: %s ended at %v, want %v", i, step.state, got, want)
		}
	}
}

// Covers R3 for modules: a server dies between what it tells a module and the record of that.
// What the module is told next is never taken for a repeat of it, and one that was let go on
// meanwhile is stopped again with its parent.
func TestToldAndNotRecorded(t *testing.T) {
	t.Parallel()
	run := &Run{ID: 1, State: StateStopped, Plan: split("a"), Parts: []module.Part{{ID: "a", Run: 2, Rev: 1, State: string(StateRunning)}}}
	stop := run.tell()
	run.State, run.Parts[0].Halted = StateRunning, true // a person lets it go on, and the module says that it stands
	resume := run.tell()
	if stop == nil || resume == nil || stop.Tell[0].ID == resume.Tell[0].ID {
		t.Fatalf("told %+v, then %+v: the second would be passed over", stop, resume)
	}
	if again := run.tell(); again.Tell[0].ID != resume.Tell[0].ID {
		t.Errorf("a repeat is %q, not %q", again.Tell[0].ID, resume.Tell[0].ID)
	}

	run.State, run.Parts[0].Told, run.Parts[0].Halted = StateStopped, "stopped", false
	if act := run.tell(); act != nil {
		t.Errorf("one that stands is told %+v", act)
	}
	run.Apply(Event{Seq: 9, Type: EventModuleChanged, Data: Data{Part: &module.Part{ID: "a", Run: 2, Rev: 2, State: string(StateRunning)}}})
	if act := run.tell(); act == nil || act.Tell[0].Type != EventRunStopped {
		t.Errorf("one that was let go on is told %+v", act)
	}
}
