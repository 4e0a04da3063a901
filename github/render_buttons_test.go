package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func buttonNames(v view) []string {
	var out []string
	for _, b := range v.buttons() {
		out = append(out, b.Identifier+" "+b.Label)
	}
	return out
}

func TestButtons(t *testing.T) {
	gate := func(guard pipeline.GuardName, choices ...pipeline.Choice) view {
		return testView(&pipeline.Run{State: pipeline.StateWaiting, Gates: []pipeline.Gate{{ID: "gate/1", Closed: true},
			{ID: "gate/2", Guard: &pipeline.Guard{Name: guard}, Choices: choices}}})
	}
	n, accept, history, cancel := pipeline.Choice{Name: "continue", Arg: "N"}, pipeline.Choice{Name: "accept"}, pipeline.Choice{Name: "history"}, pipeline.Choice{Name: "cancel"}
	for _, c := range []struct {
		name string
		v    view
		want []string
	}{
		{"escalation", gate(pipeline.GuardBounces, n, accept, history, cancel), []string{"continue:1@2 Continue", "accept@2 Accept", "cancel@2 Cancel"}},
		{"breakdown", gate(pipeline.GuardFaults, n, history, cancel), []string{"continue:1@2 Try again", "cancel@2 Cancel", "history@2 History"}},
		{"approval", gate(pipeline.GuardPlan, pipeline.Choice{Name: "approve"}, cancel), []string{"approve@2 Approve", "cancel@2 Cancel"}},
		{"question", gate(pipeline.GuardPlan, pipeline.Choice{Name: "choose", Arg: "ANSWER"}, pipeline.Choice{Name: "choose", Arg: "the cache"}, history, cancel),
			[]string{"cancel@2 Cancel", "history@2 History"}},
		{"a choice to come", gate(pipeline.GuardBudget, pipeline.Choice{Name: "raise", Arg: "N"}, pipeline.Choice{Name: "defer", Label: "ask again tomorrow, when there is more to say"}),
			[]string{"raise:1@2 Raise the budget", "defer@2 Defer"}},
		{"no gate", testView(&pipeline.Run{State: pipeline.StateRunning}), nil},
	} {
		if diff := cmp.Diff(c.want, buttonNames(c.v)); diff != "" {
			t.Errorf("buttons of %s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Whatever a gate offers, GitHub takes the buttons, and Forge reads their names.
func TestButtonsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := pipeline.Gate{ID: fmt.Sprintf("gate/%d", rapid.IntRange(1, 999_999).Draw(t, "gate"))}
		for range rapid.IntRange(0, 6).Draw(t, "choices") {
			g.Choices = append(g.Choices, pipeline.Choice{Name: rapid.OneOf(rapid.SampledFrom(commands), rapid.StringN(0, 30, -1)).Draw(t, "name"),
				Arg: rapid.SampledFrom([]string{"", "N", "OPTION"}).Draw(t, "arg"), Label: rapid.StringN(0, 80, -1).Draw(t, "label")})
		}
		list := testView(&pipeline.Run{State: pipeline.StateWaiting, Gates: []pipeline.Gate{g}}).buttons()
		if len(list) > 3 {
			t.Fatalf("%d buttons", len(list))
		}
		for _, b := range list {
			if len(b.Label) > 20 || len(b.Description) > 40 || len(b.Identifier) > 20 || b.Label == "" || b.Description == "" || !identifier.MatchString(b.Identifier) {
				t.Fatalf("button %+v", b)
			}
		}
	})
}

// The buttons appear with the gate, are written once, and go with it. The press of
// one is the command that it stands for.
func TestPublishButtons(t *testing.T) {
	w := newCIWorld(t)
	ctx := t.Context()
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	w.gh.SetHook(hook.URL)
	alice := w.gh.As("alice")
	n, err := alice.OpenPull("octo/repo", "forge/issue-1-x", "X")
	w.must(err)
	r := &pipeline.Run{ID: 1, Trace: "trace1", State: pipeline.StateWaiting, Repo: w.repo, Head: w.sha, Base: "b", Branch: "forge/issue-1-x",
		Gates: []pipeline.Gate{{ID: "gate/1", Guard: &pipeline.Guard{Name: pipeline.GuardBounces}, Question: "What now?",
			Choices: []pipeline.Choice{{Name: "continue", Arg: "N"}, {Name: "accept"}, {Name: "history"}, {Name: "cancel"}}}},
		Published: pipeline.Publication{Head: w.sha, Pull: &pipeline.PullRef{Number: n}, Artefacts: map[string]pipeline.Artefact{}}}
	s, err := w.app.session(w.repo)
	w.must(err)
	pub := pipeline.Publication{Artefacts: map[string]pipeline.Artefact{}}
	show := func() []string {
		t.Helper()
		p := &publisher{app: w.app, s: s, run: r, pub: pub, v: testView(r)}
		w.must(p.checks(ctx))
		pulls, err := w.gh.Pulls("octo/repo")
		w.must(err)
		return pulls[0].Checks[0].Actions
	}
	if got, want := show(), []string{"continue:1@1", "accept@1", "cancel@1"}; cmp.Diff(want, got) != "" {
		t.Errorf("buttons = %v, want %v", got, want)
	}
	writes := func() int { m := w.gh.Mutations(); return m["checks/create"] + m["checks/update"] }
	if before := writes(); before != 1 || len(show()) != 3 || writes() != before {
		t.Errorf("%d writes, then %d; want one in all", before, writes())
	}

	pulls, err := w.gh.Pulls("octo/repo")
	w.must(err)
	w.must(alice.Press("octo/repo", pulls[0].Checks[0].ID, "continue:1@1"))
	w.must(alice.Rerequest("octo/repo", pulls[0].Checks[0].ID))
	w.must(w.gh.Settle(ctx))
	var got []string
	for _, d := range w.gh.Deliveries() {
		if d.Event != "check_run" {
			continue
		}
		notice, err := Read(d.Event, d.Payload, ReadOptions{AppID: w.gh.AppID})
		w.must(err)
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %d", notice.Kind, notice.Command.Name, notice.Command.Args, notice.Command.Gate, notice.Trace, notice.Pull)))
	}
	want := []string{fmt.Sprintf("none     %d", n), fmt.Sprintf("none     %d", n), fmt.Sprintf("command continue 1 gate/1 trace1 %d", n), fmt.Sprintf("command retry   trace1 %d", n)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries of check runs (-want +got):\n%s", diff)
	}

	r.Gates[0].Closed, r.State = true, pipeline.StateRunning
	if got := show(); len(got) != 0 {
		t.Errorf("buttons of a closed gate = %v, want none", got)
	}
}
