package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/role"
)

// entered plays a script of a run on a track and returns the phases that were entered.
func entered(t *testing.T, track, script string) (*pipelinetest.Player, string) {
	t.Helper()
	cfg := config.Default()
	cfg.Track = track
	p := pipelinetest.New(cfg, Task{Issue: 1, Title: "x"})
	if err := p.Play(script); err != nil {
		t.Fatal(err)
	}
	var phases []string
	for _, e := range p.Events {
		if e.Type == EventPhaseEntered {
			phases = append(phases, string(e.Data.Phase.Phase))
		}
	}
	return p, strings.Join(phases, " ")
}

// Covers U1: on the full track roles write before the plan, in two phases; on the others
// nobody does.
func TestTracks(t *testing.T) {
	rest := "plan ok\nimplement it\nreview ok\ntest ok"
	for track, want := range map[string]string{
		"": "plan implement review test", "quick": "plan implement review test", "standard": "plan implement review test",
		"full": "analyse design plan implement review test",
	} {
		script := rest
		if track == "full" {
			script = "analyse ok\ndesign ok\n" + rest
		}
		p, got := entered(t, track, script)
		if got != want || p.Run.State != StateVerified {
			t.Errorf("track %q: %s (%s), want %s", track, got, p.Run.State, want)
		}
	}
}

// Where there is nothing to test with, a human is asked before anybody writes.
func TestRolesWaitForTests(t *testing.T) {
	p, got := entered(t, "full", "analyse untested nothing\nhuman approve\nanalyse ok\ndesign ok\nplan ok")
	if got != "analyse analyse design plan implement" || len(p.Run.Gates) != 1 || p.Run.Gates[0].Guard.Name != GuardNoTests {
		t.Errorf("%s, gates %+v", got, p.Run.Gates)
	}
}

// Who edits the task has roles write again, whatever was under way.
func TestEditedTaskIsWrittenAgain(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"analyse ok\nnotice issue_edited y\nanalyse ok\ndesign ok\nplan ok", "analyse design analyse design plan implement"},
		{"analyse ok\ndesign ok\nplan ok\nnotice issue_edited y\nimplement it\nanalyse ok\ndesign ok\nplan ok",
			"analyse design plan implement analyse design plan review"},
	} {
		p, got := entered(t, "full", c.script)
		if a := role.Of(p.Run.Artefacts, role.Analyst); got != c.want || a == nil || a.Rev != 2 || a.Stale || len(p.Run.Artefacts) != 4 {
			t.Errorf("%q: %s, want %s; %+v", c.script, got, c.want, p.Run.Artefacts)
		}
	}
}

// What roles cost belongs to no iteration, and a breakdown is tried again.
func TestRolesBreakDown(t *testing.T) {
	p, got := entered(t, "full", "cost 1000 10\nfault agent x\nanalyse ok\ndesign ok\nplan ok\nimplement it")
	if got != "analyse analyse design plan implement review" || p.Run.Current().Usage.MicroUSD != 0 || p.Run.Spent[PhaseAnalyse].MicroUSD != 1000 {
		t.Errorf("%s, spent %+v", got, p.Run.Spent)
	}
	if words := p.Run.Explain(); !strings.Contains(words, "By the designer of the user interface, revision 1: ok") {
		t.Errorf("explain says\n%s", words)
	}
}
