package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

// The buttons appear with the gate, are written once, and go with it. The press of
// one is the command that it stands for.
func TestPublishButtons(t *testing.T) {
	t.Parallel()
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
		p := &publisher{app: w.app, s: s, run: r, pub: pub, v: render.Renderer{Run: r, Web: "https://github.com", Host: "github.com", Slug: "forge"}}
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
		notice, err := delivery.Read(d.Event, d.Payload, delivery.Options{AppID: w.gh.AppID})
		w.must(err)
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %d", notice.Kind, notice.Command.Name, notice.Command.Args,
			notice.Command.Gate, notice.Trace, notice.Pull)))
	}
	want := []string{fmt.Sprintf("none     %d", n), fmt.Sprintf("none     %d", n), fmt.Sprintf("command continue 1 gate/1 trace1 %d", n),
		fmt.Sprintf("command retry   trace1 %d", n)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries of check runs (-want +got):\n%s", diff)
	}

	r.Gates[0].Closed, r.State = true, pipeline.StateRunning
	if got := show(); len(got) != 0 {
		t.Errorf("buttons of a closed gate = %v, want none", got)
	}
}
