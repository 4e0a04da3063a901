package github

import (
	"context"
	"errors"
	"strings"
	"testing"

	"forge/github/render"
	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/module"
	"forge/pipeline/workspace"
)

// V9: an issue keeps a module that is left for later, once, however often the attempt to
// open it is repeated, and with the report of the run that built it.
func TestLaterIsOpenedOnce(t *testing.T) {
	t.Parallel()
	srv, a, repo, _ := world(t)
	sha := strings.Repeat("8", 40)
	child := &pipeline.Run{ID: 8, Repo: repo, Branch: "forge/issue-7-retry--auth", Base: strings.Repeat("1", 40), Head: sha,
		Published: pipeline.Publication{Head: sha}}
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
	t.Parallel()
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

// V9: a kill between a push and its record leaves no branch behind: what Forge itself put
// there is deleted, wherever the record stands.
func TestDropFindsItsOwnPush(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	one, two, foreign := rendertest.SHA(1), rendertest.SHA(2), rendertest.SHA(9)
	for _, c := range []struct {
		name, recorded, branch string
		again, deleted         bool
	}{
		{"the first push was not recorded", "", two, true, true},
		{"only an earlier one got through", "", one, true, true},
		{"the last push was not recorded", one, two, true, true},
		{"nothing was ever pushed", "", "", true, true},
		{"no attempt was broken off", "", "", false, false},
		{"somebody has set it back", two, one, false, false},
		{"somebody else's commit", one, foreign, true, false},
		{"somebody else's, and no record", "", foreign, true, false},
	} {
		s := rendertest.New(t)
		s.Plan()
		s.Implement(1, 0, 1, "Try")
		s.Implement(2, 1, 2, "Try again")
		s.Run.Part, s.Run.Over, s.Run.State = &module.Of{Run: 1}, true, pipeline.StateVerified
		s.Run.Published.Head = c.recorded
		p := &testPusher{head: c.branch}
		pub, _, err := f.app(t).Publish(t.Context(), s.Run, PublishOptions{Pusher: p, Again: c.again})
		if err != nil || pub.Deleted != c.deleted || (p.head == foreign) != (c.branch == foreign) || p.head != "" && c.deleted || p.pushes > 0 {
			t.Errorf("%s: deleted %v, %v; now at %q", c.name, pub.Deleted, err, p.head)
		}
	}
}

// A push that got through and was not recorded is Forge's own: the next one goes on from it.
// Where no attempt was broken off, somebody has set the branch back, and that holds.
func TestPushGoesOnFromItsOwn(t *testing.T) {
	t.Parallel()
	f, s := newFake(t), rendertest.New(t)
	s.Plan()
	s.Implement(1, 0, 1, "Try")
	s.Implement(2, 1, 2, "Try again")
	s.Run.Part = &module.Of{Run: 1}
	p := &testPusher{head: rendertest.SHA(1)}
	_, events, err := f.app(t).Publish(t.Context(), s.Run, PublishOptions{Pusher: p})
	if err != nil || len(events) != 1 || events[0].Type != pipeline.EventBranchMoved || events[0].Data.Head != rendertest.SHA(1) || p.head != rendertest.SHA(1) {
		t.Errorf("set back: %v, events %+v; the branch is at %q", err, events, p.head)
	}
	pub, events, err := f.app(t).Publish(t.Context(), s.Run, PublishOptions{Pusher: p, Again: true})
	if err != nil || len(events) > 0 || pub.Head != rendertest.SHA(2) || p.head != rendertest.SHA(2) {
		t.Errorf("published %q, %v, events %v; the branch is at %q", pub.Head, err, events, p.head)
	}
}

// V9: of a module that is left out without a question, no question is shown.
func TestUnaskedModuleAsksNobody(t *testing.T) {
	t.Parallel()
	for failure, comments := range map[string]int{"ask": 2, "passed": 0, "without": 0} {
		f, s := newFake(t), rendertest.New(t)
		s.Plan()
		s.Implement(1, 0, 1, "Try")
		s.Gate()
		s.Run.Config.Modules.OnFailure, s.Run.Part, s.Run.Gate().Reminded = failure, &module.Of{Run: 1}, s.At
		if _, _, err := f.app(t).Publish(t.Context(), s.Run, PublishOptions{Pusher: &testPusher{}}); err != nil {
			t.Fatal(err)
		}
		if len(f.comments) != comments { // the question and its reminder
			t.Errorf("on_failure: %s: %d comments, want %d", failure, len(f.comments), comments)
		}
	}
}

// V11: the documents are one comment, and one commit, however often the attempt to write
// them is repeated.
func TestDocumentsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	srv, a, repo, _ := world(t)
	n, err := srv.As("alice").OpenIssue(repo.FullName(), "Retry", "It gives up at once.")
	if err != nil {
		t.Fatal(err)
	}
	s := rendertest.New(t)
	s.Plan()
	s.Implement(1, 0, 1, "Try again")
	s.Review(1, 1, true)
	s.Tests(1, 1)
	s.Verified()
	run := s.Run
	run.Repo, run.Published.Pull = repo, &pipeline.PullRef{Number: n}
	session, err := a.session(repo)
	if err != nil {
		t.Fatal(err)
	}
	for how, shelf := range map[string]*shelf{"comment": {}, "branch": {}} {
		run.Config.Documents, run.Published.Artefacts = how, nil
		for i := range 3 {
			p := newPublisher(a, session, run, PublishOptions{Pusher: shelf, Again: i == 1}) // the first attempt crashed before it was written down
			if err := p.documents(t.Context()); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				run.Apply(pipeline.Event{Seq: int64(i), Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &p.pub}})
			}
		}
		if want := map[string]int{"branch": 2}[how]; shelf.kept != want { // the gateway makes no commit where nothing changed
			t.Errorf("%s: the files are written %d times, want %d", how, shelf.kept, want)
		}
	}
	is, err := srv.Issue(repo.FullName(), n)
	if err != nil || len(is.Comments) != 1 || !strings.Contains(is.Comments[0].Body, "Documents") {
		t.Errorf("%v; the comments: %+v", err, is.Comments)
	}
}

// F11: documents that cannot be written keep nothing else from being shown. That is said
// in the pull request, and is over with the next attempt.
func TestDocumentsStopNothing(t *testing.T) {
	t.Parallel()
	f, s := newFake(t), rendertest.New(t)
	a := f.app(t)
	s.Plan()
	s.Implement(1, 0, 1, "Try again")
	s.Review(1, 1, true)
	s.Tests(1, 1)
	s.Verified()
	run := s.Run
	run.Published, run.Config.Documents = pipeline.Publication{}, "branch"
	full := &shelf{fails: errors.New("validation/system-1.md is there twice")}
	for i, want := range []string{"validation/system-1.md is there twice", "validation/system-1.md is there twice", ""} {
		if i == 2 {
			full.fails = nil
		}
		pub, _, err := a.Publish(t.Context(), run, PublishOptions{Pusher: full})
		if err != nil || !strings.Contains(pub.Late, want) || (pub.Late == "") != (want == "") {
			t.Fatalf("attempt %d: late %q, %v; want %q", i+1, pub.Late, err, want)
		}
		run.Apply(pipeline.Event{Seq: run.Seq + 1, Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &pub}})
		if p := run.Published.Pull; p == nil || !p.Ready || run.Published.Artefacts["check/"+run.Head].ID == 0 {
			t.Fatalf("attempt %d: the pull request is %+v, artefacts %v", i+1, p, run.Published.Artefacts)
		}
		body := render.Renderer{Run: run, Slug: "forge"}.PullBody()
		if strings.Contains(body, "could not be written") != (want != "") || strings.Contains(body, "[Documents](") != (want == "") {
			t.Errorf("attempt %d: the pull request says\n%s", i+1, body)
		}
	}
}

// shelf counts how often files are kept.
type shelf struct {
	testPusher
	kept  int
	fails error
}

func (s *shelf) Keep(context.Context, pipeline.Repo, string, string, []workspace.Change) (string, error) {
	s.kept++
	return rendertest.SHA(1), s.fails
}
