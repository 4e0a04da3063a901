package pipeline_test

import (
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/module"
)

// A commit that GitHub makes for a run is told of before the run knows it: it is nobody
// else's push while the run makes one, and only then.
func TestPushOfWhatIsMade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		phase pipeline.Phase
		own   bool
		made  string
		moved bool
	}{
		{"while it is made", pipeline.PhaseImplement, true, "cafe", false},
		{"while the base is taken in", pipeline.PhaseUpdate, true, "cafe", false},
		{"later", pipeline.PhaseReview, true, "cafe", true},
		{"of another run", pipeline.PhaseImplement, true, "beef", true},
		{"of nobody's", pipeline.PhaseImplement, true, "", true},
		{"with another token", pipeline.PhaseImplement, false, "cafe", true},
	} {
		r := pipeline.Run{ID: 7, Trace: "cafe", State: pipeline.StateRunning, Branch: "forge/x", Base: "base", Head: "base", Execution: pipeline.Execution{Active: &pipeline.PhaseRef{Phase: c.phase}}}
		events, why := r.Notice(pipeline.Notice{Kind: pipeline.NoticePush, Branch: "forge/x", Head: "h1", Own: c.own, Made: c.made}, time.Unix(1, 0))
		if moved := len(events) == 1 && events[0].Type == pipeline.EventBranchMoved; moved != c.moved {
			t.Errorf("%s: %v (%s), moved should be %v", c.name, events, why, c.moved)
		}
	}
}

// What the run made or judged may be told of late. Whoever has Forge's token and sets the
// branch back to it from where the run is has moved it.
func TestPushOfWhatIsOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, head, before string
		moved              bool
	}{
		{"late", "h1", "base", false}, {"set back", "h1", "h2", true}, {"set back to the base", "base", "h2", true},
		{"the head again", "h2", "h1", false},
	} {
		for _, state := range []pipeline.State{pipeline.StateRunning, pipeline.StateVerified} {
			r := pipeline.Run{ID: 7, State: state, Branch: "forge/x", Base: "base", Head: "h2", Made: []string{"h1", "h2"}}
			r.Published.Pull = &pipeline.PullRef{Number: 1}
			events, why := r.Notice(pipeline.Notice{Kind: pipeline.NoticePush, Branch: "forge/x", Head: c.head, Before: c.before, Own: true}, time.Unix(1, 0))
			if moved := len(events) > 0; moved != c.moved {
				t.Errorf("%s, %s: %v (%s), moved should be %v", c.name, state, events, why, c.moved)
			}
		}
	}
}

// A commit that went with the machine that made it is made again. Nobody has pushed: the
// branch of a module is Forge's own as before, and goes when nobody needs it any more.
func TestLostIsNoPush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, published, from string
	}{{"before the first push", "", "base"}, {"later", "h1", "h1"}} {
		r := pipeline.Run{ID: 7, State: pipeline.StateRunning, Branch: "forge/x--a", Base: "base", Head: "h2", Part: &module.Of{Run: 6}}
		r.Published.Head = c.published
		push := r
		r.Apply(pipeline.Event{Seq: 1, Type: pipeline.EventBranchMoved, Data: r.LostHead()})
		if r.Head != c.from || r.Foreign || r.Counters.Moved != 0 {
			t.Errorf("%s: lost, the run is at %s, foreign %t, moved %d times", c.name, r.Head, r.Foreign, r.Counters.Moved)
		}
		push.Apply(pipeline.Event{Seq: 1, Type: pipeline.EventBranchMoved, Data: pipeline.Data{Head: "h3"}})
		if push.Head != "h3" || !push.Foreign || push.Counters.Moved != 1 {
			t.Errorf("%s: pushed, the run is at %s, foreign %t, moved %d times", c.name, push.Head, push.Foreign, push.Counters.Moved)
		}
	}
}
