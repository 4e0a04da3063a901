package github

import (
	"context"
	"strings"
	"testing"

	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/module"
)

// V9: an issue keeps a module that is left for later, once, however often the attempt to
// open it is repeated, and with the report of the run that built it.
func TestLaterIsOpenedOnce(t *testing.T) {
	srv, a, repo, _ := world(t, nil)
	sha := strings.Repeat("8", 40)
	child := &pipeline.Run{ID: 8, Repo: repo, Branch: "forge/issue-7-retry--auth", Base: strings.Repeat("1", 40), Head: sha, Published: pipeline.Publication{Head: sha}}
	run := &pipeline.Run{ID: 7, Trace: "cafe", Repo: repo, State: pipeline.StateRunning, Rev: 1,
		Parts: []module.Part{{ID: "auth", Run: 8, State: "cancelled", Left: "cancelled by ann", How: module.Later}, {ID: "api", Left: "it needs auth"}}}
	asked := 0
	opts := PublishOptions{Family: func(context.Context) ([]*pipeline.Run, error) { asked++; return []*pipeline.Run{child}, nil }}
	for i := range 3 {
		opts.Again = i == 1 // the first attempt crashed before it was written down
		pub, _, err := a.Publish(t.Context(), run, opts)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			run.Apply(pipeline.Event{Seq: int64(i), Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &pub}})
		}
	}
	var bodies []string
	for n := 1; n < 9; n++ {
		if is, err := srv.Issue(repo.FullName(), n); err == nil && strings.HasPrefix(is.Title, "Later: ") {
			bodies = append(bodies, is.Body)
		}
	}
	if len(bodies) != 1 || !strings.Contains(bodies[0], "forge/issue-7-retry--auth") || asked != 2 {
		t.Errorf("%d issues, the modules were asked for %d times; want one issue that names the branch:\n%s", len(bodies), asked, strings.Join(bodies, "\n"))
	}
}

// A branch that somebody else has moved stays, and what is gone already is no error.
func TestDropLeavesWhatOthersPushed(t *testing.T) {
	f := newFake(t)
	for head, deleted := range map[string]bool{rendertest.SHA(1): true, "": true, rendertest.SHA(2): false} {
		a, p, s := f.app(t), &testPusher{head: head}, rendertest.New(t)
		s.Run.Part, s.Run.Over, s.Run.State, s.Run.Head = &module.Of{Run: 1}, true, pipeline.StateVerified, rendertest.SHA(1)
		s.Run.Published.Head = rendertest.SHA(1)
		pub, _, err := a.Publish(t.Context(), s.Run, PublishOptions{Pusher: p})
		if err != nil || pub.Deleted != deleted || (p.head == "") != deleted || p.pushes > 0 {
			t.Errorf("branch at %q: deleted %v, %v; now at %q", head, pub.Deleted, err, p.head)
		}
	}
}
