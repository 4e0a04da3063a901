package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/role"
	"forge/pipeline/upstream"
)

// entered plays a script of a run on a track and returns the phases that were entered.
func entered(t *testing.T, track, script string, set ...func(*config.Config)) (*pipelinetest.Player, string) {
	t.Helper()
	cfg := config.Default()
	cfg.Track = track
	for _, f := range set {
		f(&cfg)
	}
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
	t.Parallel()
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
	t.Parallel()
	p, got := entered(t, "full", "analyse untested nothing\nhuman approve\nanalyse ok\ndesign ok\nplan ok")
	if got != "analyse analyse design plan implement" || len(p.Run.Gates) != 1 || p.Run.Gates[0].Guard.Name != GuardNoTests {
		t.Errorf("%s, gates %+v", got, p.Run.Gates)
	}
}

// Who edits the task has roles write again, whatever was under way.
func TestEditedTaskIsWrittenAgain(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	p, got := entered(t, "full", "cost 1000 10\nfault agent x\nanalyse ok\ndesign ok\nplan ok\nimplement it")
	if got != "analyse analyse design plan implement review" || p.Run.Current().Usage.MicroUSD != 0 || p.Run.Spent[PhaseAnalyse].MicroUSD != 1000 {
		t.Errorf("%s, spent %+v", got, p.Run.Spent)
	}
	p, _ = entered(t, "full", "analyse ok\ndesign ok\nplan ok\nnotice issue_edited y\nimplement it\ncost 1000 10\nanalyse ok\ndesign ok")
	if it := p.Run.Current(); it == nil || it.Usage.MicroUSD != 0 || p.Run.Spent[PhaseAnalyse].MicroUSD != 1000 {
		t.Errorf("what is written again costs the iteration %+v", it)
	}
	if words := p.Run.Explain(); !strings.Contains(words, "By the designer of the user interface, revision 2: ok") {
		t.Errorf("explain says\n%s", words)
	}
}

// Covers U1: nobody acts for a role that is off.
func TestWhoActs(t *testing.T) {
	t.Parallel()
	by := func(r config.Roles) func(*config.Config) { return func(c *config.Config) { c.Roles = r } }
	for _, c := range []struct {
		roles        config.Roles
		script, want string
	}{
		{config.Roles{Analyst: "off", Product: "off", Architect: "off", UX: "off"}, "plan ok", "plan implement"},
		{config.Roles{Analyst: "off"}, "analyse ok\ndesign ok\nplan ok", "analyse design plan implement"},
		{config.Roles{Architect: "off", UX: "off"}, "analyse ok\nplan ok", "analyse plan implement"},
	} {
		p, got := entered(t, "full", c.script, by(c.roles))
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.roles, got, c.want)
		}
		for _, who := range role.All() {
			if a := role.Of(p.Run.Artefacts, who); (a == nil) != (c.roles.Of(config.Role(who)) == "off") {
				t.Errorf("%+v: the %s has %+v", c.roles, who, a)
			}
		}
	}
	for _, track := range []string{"", "standard"} {
		if _, got := entered(t, track, "plan ok"); got != "plan implement" {
			t.Errorf("track %q: %s", track, got)
		}
	}
}

// Covers U2: what agents tell each other goes to the role that wrote what it is about; to
// the planner where none did.
func TestOwners(t *testing.T) {
	t.Parallel()
	plan := "analyse ok\ndesign ok\nplan ok\n"
	for _, c := range []struct{ script, want string }{
		{"implement it constraint high AC1: no sockets", "product"},
		{"implement it constraint high plan: no sockets", "architect"},
		{"implement it constraint high plan: the button has no place", "ux"},
		{"implement it\nreview uncovered it is", "analyst"},
	} {
		listens := func(r config.Roles) func(*config.Config) {
			return func(c *config.Config) { c.Upstream.Enabled, c.Roles = true, r }
		}
		p, _ := entered(t, "full", plan+c.script, listens(config.Roles{}))
		if f := p.Run.Upstream[0]; f.To != c.want || f.Reply != nil || p.Run.Active.Phase != PhaseResolve {
			t.Errorf("%q goes to the %s, want the %s; %+v", c.script, f.To, c.want, f)
		}
		p, _ = entered(t, "standard", "plan ok\n"+c.script, listens(config.Roles{}))
		if f := p.Run.Upstream[0]; f.To != "planner" {
			t.Errorf("%q on the standard track goes to the %s", c.script, f.To)
		}
		p, _ = entered(t, "full", "plan ok\n"+c.script, listens(config.Roles{Analyst: "off", Product: "off", Architect: "off", UX: "off"}))
		if f := p.Run.Upstream[0]; f.To != "planner" {
			t.Errorf("%q without roles goes to the %s", c.script, f.To)
		}
	}
}

// A decision that revises the plan revises what the role wrote, too.
func TestDecisionsKeepUp(t *testing.T) {
	t.Parallel()
	listens := func(c *config.Config) { c.Upstream.Enabled = true }
	p, _ := entered(t, "full", "analyse ok\ndesign ok\nplan ok\nimplement it constraint high plan: slow\nresolve design other", listens)
	a := role.Of(p.Run.Artefacts, role.Architect)
	if a == nil || a.Rev != 2 || !strings.Contains(a.Text(), "the plan has other steps: other") || p.Run.Upstream[0].Decision.By != "architect" {
		t.Errorf("the architect has %+v, decided %+v", a, p.Run.Upstream[0].Decision)
	}
	p, _ = entered(t, "full", "analyse ok\ndesign ok\nplan ok\nimplement it constraint high AC1: slow\nresolve limit AC1\nhuman choose a", listens)
	if a := role.Of(p.Run.Artefacts, role.Product); a == nil || a.Rev != 2 || strings.Contains(a.Text(), "AC1") {
		t.Errorf("the product manager has %+v", a)
	}
}

// Covers U2, U5: what architect and designer of the user interface contradict each other in is
// settled before the plan, by both of them; where they would still contradict, people settle
// it. Nothing is planned before.
func TestClashIsSettledBeforeThePlan(t *testing.T) {
	t.Parallel()
	drafts := "analyse ok\ndesign ok clash base is 640 px / base is 320 px\n"
	for _, c := range []struct{ script, phases, design, ui, why string }{
		{drafts + "resolve settle ux: begins at 320 px\nplan ok", "analyse design resolve plan implement", "begins at 320 px", "base is 320 px", ""},
		{drafts + "resolve settle architect: begins at 640 px\nplan ok", "analyse design resolve plan implement", "base is 640 px", "begins at 640 px", ""},
		{drafts + "resolve settle ux: the base is 640 px, as base is 640 px", "analyse design resolve", "base is 640 px", "base is 320 px", "they would still contradict each other"},
		{drafts + "resolve fix go on", "analyse design resolve", "base is 640 px", "base is 320 px", "they would still contradict each other"},
		{drafts + "resolve settle nobody: x", "analyse design resolve", "base is 640 px", "base is 320 px", "the answer does not hold"},
		{drafts + "resolve settle nobody: x\nhuman choose b\nplan ok", "analyse design resolve plan implement", "base is 320 px", "base is 320 px", "the answer does not hold"},
		{drafts + "resolve settle nobody: x\nhuman choose a\nplan ok", "analyse design resolve plan implement", "base is 640 px", "base is 640 px", "the answer does not hold"},
		{drafts + "resolve settle nobody: x\nhuman choose both, by the device\nplan ok", "analyse design resolve plan implement", "base is 640 px", "base is 320 px", "the answer does not hold"},
		{drafts + "fault agent! broken", "analyse design resolve", "base is 640 px", "base is 320 px", "the architect, ux could not answer: broken"},
	} {
		p, got := entered(t, "full", c.script)
		f := p.Run.Upstream[0]
		design, ui := role.Of(p.Run.Artefacts, role.Architect), role.Of(p.Run.Artefacts, role.UX)
		if got != c.phases || len(p.Run.Upstream) != 1 || f.Kind != upstream.Inconsistency || !strings.Contains(f.Why, c.why) || (f.Why == "") != (c.why == "") ||
			design.Items[1].Text != c.design || ui.Items[1].Text != c.ui {
			t.Errorf("%q: %s, design %q, user interface %q, %+v", c.script, got, design.Items[1].Text, ui.Items[1].Text, p.Run.Upstream)
		}
		if planned := strings.Contains(got, "plan"); planned == f.State.Open() {
			t.Errorf("%q: %s, with %s %s", c.script, got, f.ID, f.State)
		}
	}
}

// Covers U2, U3: what the architect says cannot be is the product manager's, before the plan; a
// weaker criterion is a human's; the design is made again, and says so twice at most.
func TestInfeasibleIsRevisedBeforeThePlan(t *testing.T) {
	t.Parallel()
	drafts := "analyse ok\ndesign ok infeasible X1: the network alone takes 400 ms\n"
	for _, c := range []struct{ script, phases, why, criterion string }{
		{drafts + "resolve fix keep a copy\ndesign ok\nplan ok", "analyse design resolve design plan implement", "", "ok"},
		{drafts + "resolve limit X1", "analyse design resolve", "it takes something away", "ok"},
		{drafts + "resolve limit X1\nhuman choose a\ndesign ok\nplan ok", "analyse design resolve design plan implement", "it takes something away", ""},
		{drafts + "resolve clarify X1: within a second", "analyse design resolve", "may ask for less", "ok"},
		{drafts + "resolve clarify X1: within a second\nhuman choose a\ndesign ok\nplan ok", "analyse design resolve design plan implement", "may ask for less", "within a second"},
		{drafts + "resolve design other", "analyse design resolve", "there is no plan yet", "ok"},
		{drafts + "resolve fix keep a copy\ndesign ok infeasible X1: the network takes 400 ms alone", "analyse design resolve design", "the same was decided before", "ok"},
		{drafts + "resolve limit X1\nhuman choose ask fewer servers\ndesign ok infeasible X1: the network takes 400 ms alone\nplan ok",
			"analyse design resolve design plan implement", "it takes something away", "ok"},
		{drafts + "notice issue_edited y\nresolve limit X1\nanalyse ok\ndesign ok\nplan ok", "analyse design resolve analyse design plan implement", "", "ok"},
	} {
		p, got := entered(t, "full", c.script)
		f := p.Run.Upstream[len(p.Run.Upstream)-1]
		text := ""
		for _, i := range role.Items(p.Run.Artefacts, role.Product) {
			text += i.Text
		}
		if got != c.phases || f.Kind != upstream.Infeasible || f.To != "product" || !strings.Contains(f.Why, c.why) || (f.Why == "") != (c.why == "") || text != c.criterion {
			t.Errorf("%q: %s, criteria %q, %+v", c.script, got, text, p.Run.Upstream)
		}
	}
	p, _ := entered(t, "full", drafts+"resolve limit X1\nhuman choose a\ndesign ok\nplan ok")
	if left := p.Run.Plan.LeftOut; len(left) != 1 || left[0] != (Criterion{ID: "X1", Text: "ok", By: "ann"}) {
		t.Errorf("left out is %+v", left)
	}
}
