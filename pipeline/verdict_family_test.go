package pipeline_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"
)

// goodOutcomes bring a phase on; those of outcomes come between them.
var goodOutcomes = map[Phase]string{
	PhaseImplement: "implement it", PhaseUpdate: "update ok", PhaseReview: "review ok", PhaseContract: "contract it", PhaseMerge: "merge ok", PhaseTest: "test ok",
}

// meanwhile is what people do in the run or in a module while work goes on.
var meanwhile = []string{
	"notice push h%d", "notice push h%d", "notice push h%d", "notice base_moved h%d", "notice reviewed changes_requested more %d",
	"human stop", "human continue 2", "human continue // more %d", "human accept", "human without", "dismiss a", "notice branch_deleted", "human take-over",
}

// Covers T8, V6, V8: a family that mostly gets on, so that many are verified, and into
// which people push and speak at any moment: what is verified was reviewed and tested on
// its very head, with each module in it as it is by then, or left out.
func TestVerifiedFamilyIsTrue(t *testing.T) {
	t.Parallel()
	verified, n := 0, flag.Lookup("rapid.checks").Value.(flag.Getter).Get().(int)
	for seed := range uint64(n) {
		f := family{t: t, rng: rand.New(rand.NewPCG(seed, 13))}
		if f.play(); f.verified {
			verified++
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, f.p.Trace.String())
		}
	}
	if 4*verified < n {
		t.Errorf("%d of %d families were verified: the test says little", verified, n)
	}
}

// family is a run with its modules, of one seed.
type family struct {
	t        *testing.T
	rng      *rand.Rand
	p        *pipelinetest.Player
	verified bool
}

func (f *family) chance(percent int) bool { return f.rng.IntN(100) < percent }

func (f *family) play() {
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: "auto", Max: 6, Parallel: 1 + f.rng.IntN(3), Iterations: 3, Rounds: 2, OnFailure: "ask"}
	cfg.OnBaseMoved = []string{"merge", "ignore"}[f.rng.IntN(2)]
	f.p = pipelinetest.New(cfg, Task{Issue: 1, Title: "x"})
	plans := []string{"split a, b", "split a, b needs a; contract api.go", "split a, b, c needs a b", "split a, b, c; promise a b TestX; promise c a TestY"}
	quiet := 5 * f.rng.IntN(3) // out of a hundred steps in which people do something
	for n := range 150 {
		busy := f.p.Busy()
		if it := f.p.Run.Current(); it != nil && it.Result == ResultInProgress && (it.Review != nil && it.Review.Head != f.p.Run.Head || it.Tests != nil && it.Tests.Head != f.p.Run.Head) {
			f.t.Errorf("what is shown of %s was said of another commit", f.p.Run.Head)
			return
		}
		if was := f.verified; f.p.Run.State == StateVerified {
			if f.verified = true; !was {
				f.audit()
			}
		}
		all := []*pipelinetest.Player{f.p}
		for _, id := range slices.Sorted(maps.Keys(f.p.Parts)) {
			all = append(all, f.p.Parts[id])
		}
		who := all[f.rng.IntN(len(all))]
		ref, working := busy[who]
		line := ""
		switch g := who.Run.Gate(); {
		case f.chance(quiet):
			line = meanwhile[f.rng.IntN(len(meanwhile))]
		case g != nil:
			line = "human " + g.Choices[f.rng.IntN(len(g.Choices))].Name
		case !working:
			continue
		case ref.Phase == PhasePlan && who != f.p && ref.Iteration == 0:
			line = "plan given"
		case ref.Phase == PhasePlan:
			line = "plan " + plans[f.rng.IntN(len(plans))]
		case f.chance(90):
			line = goodOutcomes[ref.Phase]
		default:
			line = outcomes[ref.Phase][f.rng.IntN(len(outcomes[ref.Phase]))]
		}
		if line == "human cancel" {
			continue
		}
		if strings.HasSuffix(line, "%d") {
			line = fmt.Sprintf(line, n)
		}
		verb, rest, _ := cut(line)
		if f.verified = f.verified && f.p.Run.State == StateVerified; !who.Human(verb, rest) {
			who.Outcome(verb, rest, ref, working)
		}
	}
}

// audit holds the verdict against the logs: what was said of this very head, and how the
// modules stand by now.
func (f *family) audit() {
	run := &f.p.Run
	var reviewed, tested bool
	for i := range f.p.Events {
		if e := &f.p.Events[i]; e.Type == EventPhaseCompleted {
			reviewed = reviewed || e.Data.Review != nil && e.Data.Review.Head == run.Head
			tested = tested || e.Data.Tests != nil && e.Data.Phase.Phase == PhaseTest && e.Data.Tests.Head == run.Head
		}
	}
	if !reviewed || !tested {
		f.t.Errorf("verified on %s, which was reviewed: %t, tested: %t", run.Head, reviewed, tested)
	}
	if run.Plan.Split == nil {
		return
	}
	for _, m := range run.Plan.Split.Modules {
		part, known := f.p.Parts[m.ID], module.Find(run.Parts, m.ID)
		switch {
		case known == nil || known.Left != "":
			continue
		case part == nil || !part.Run.State.Ended():
			f.t.Errorf("verified while the module %s is at work", m.ID)
		case known.Merged != part.Run.Head:
			f.t.Errorf("verified with the module %s at %s, which is at %s", m.ID, known.Merged, part.Run.Head)
		}
	}
}
