package play

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/store"
)

const renamedRepo = "acme/salute"

// inRepo waits until one of Forge's comments on an issue says something.
func (ts *testServer) inRepo(repo string, n int, words string) {
	ts.t.Helper()
	var is githubtest.Issue
	eventually(ts.t, func() bool {
		var err error
		is, err = ts.gh.Issue(repo, n)
		ts.must(err)
		for _, c := range is.Comments {
			if c.Author == "forge[bot]" && strings.Contains(c.Body, words) {
				return true
			}
		}
		return false
	}, func() string { return fmt.Sprintf("no comment in %s#%d says %q: %+v", repo, n, words, is.Comments) })
}

// A repository that gets another name in mid-run: the run goes on there, and what was
// learnt goes with it.
func TestRepositoryIsRenamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		manual bool
		when   func(*pipeline.Run, pipeline.Event) bool
	}{
		{"in plan", false, func(r *pipeline.Run, _ pipeline.Event) bool {
			return r.Active != nil && r.Active.Phase == pipeline.PhasePlan
		}},
		{"in implement", false, func(r *pipeline.Run, _ pipeline.Event) bool {
			return r.Active != nil && r.Active.Phase == pipeline.PhaseImplement
		}},
		{"while it asks", true, func(r *pipeline.Run, _ pipeline.Event) bool {
			return r.State == pipeline.StateWaiting && r.Published.Rev == r.Rev
		}},
		{"after it was verified", false, func(r *pipeline.Run, _ pipeline.Event) bool {
			return r.State == pipeline.StateVerified && r.Published.Rev == r.Rev
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			files := map[string]string{}
			if tt.manual {
				files[".github/forge.yml"] = "mode: manual\ntests:\n  commands: [sh test.sh]\n"
			}
			done := make(chan struct{})
			ts := newTestServer(t, testOptions{files: files, on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
				if tt.when(run, e) {
					once.Do(func() {
						_, err := ts.gh.As("acme").RenameRepository(greetRepo, "salute")
						ts.must(err)
						close(done)
					})
				}
			}})
			ts.comment("acme", "/forge remember Greetings have a comma.")
			ts.says("remember")
			ts.label("acme")
			<-done
			_, err := ts.gh.As("acme").Comment(renamedRepo, ts.issue, "/forge memory")
			ts.must(err)
			ts.inRepo(renamedRepo, ts.issue, "Remembered of acme/salute")
			if tt.manual {
				_, err := ts.gh.As("acme").Comment(renamedRepo, ts.issue, "/forge cancel")
				ts.must(err)
				ts.untilState(pipeline.StateCancelled)
			} else {
				ts.untilState(pipeline.StateVerified)
			}
			run := ts.until("knows the new name", func(r *pipeline.Run) bool { return r.Repo.FullName() == renamedRepo && r.Published.Rev == r.Rev })
			if e := ts.event(run.ID, pipeline.EventRepositoryRenamed); e.Data.Repo == nil || e.Data.Repo.FullName() != renamedRepo {
				t.Errorf("event %+v", e.Data)
			}
			if list := ts.remembered(); len(list) != 1 || list[0].Scope != "repo:"+renamedRepo {
				t.Errorf("remembered: %+v", list)
			}
			is, err := ts.gh.Issue(renamedRepo, ts.issue)
			ts.must(err)
			pulls, err := ts.gh.Pulls(renamedRepo)
			ts.must(err)
			if !tt.manual && (len(pulls) != 1 || pulls[0].Draft) {
				t.Errorf("pull requests: %+v", pulls)
			}
			for _, c := range is.Comments {
				if strings.Contains(c.Body, "/status -->") && strings.Contains(c.Body, greetRepo) {
					t.Errorf("a comment leads to the old name: %s", c.Body)
				}
			}
		})
	}
}

// A repository that belongs to somebody else: where the App is installed, the run goes on;
// where it is not, or when the repository was deleted, the run ends, and says why.
func TestRepositoryIsTransferred(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		move func(ts *testServer)
		ends bool
	}{
		{"to where the App is", func(ts *testServer) {
			_, err := ts.gh.As("acme").TransferRepository(greetRepo, "bob", true)
			ts.must(err)
		}, false},
		{"to where it is not", func(ts *testServer) {
			_, err := ts.gh.As("acme").TransferRepository(greetRepo, "carol", false)
			ts.must(err)
		}, true},
		{"deleted", func(ts *testServer) { ts.must(ts.gh.As("acme").DeleteRepository(greetRepo)) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
				if run.Active != nil && run.Active.Phase == pipeline.PhaseImplement {
					once.Do(func() { tt.move(ts) })
				}
			}})
			for _, owner := range []string{"bob", "carol"} {
				_, err := ts.gh.AddRepo(owner, "other", nil)
				ts.must(err)
			}
			_, err := ts.gh.Install("bob/other")
			ts.must(err)
			ts.label("acme")
			if tt.ends {
				var run *pipeline.Run // nothing can be shown of it
				eventually(t, func() bool {
					ts.mu.Lock()
					defer ts.mu.Unlock()
					run = ts.run
					return run != nil && run.State.Ended()
				}, func() string { return fmt.Sprintf("the run goes on: %+v", run) })
				if run.State != pipeline.StateCancelled || !strings.Contains(run.Ended, "Install the App there") {
					t.Errorf("it ended as %s with %q", run.State, run.Ended)
				}
				for _, repo := range []string{"bob/other", "carol/other"} {
					if pulls, err := ts.gh.Pulls(repo); err != nil || len(pulls) != 0 {
						t.Errorf("%s: %+v, %v", repo, pulls, err)
					}
				}
				return
			}
			ts.untilState(pipeline.StateVerified)
			run := ts.until("knows its new owner", func(r *pipeline.Run) bool { return r.Published.Rev == r.Rev })
			pulls, err := ts.gh.Pulls("bob/greet")
			ts.must(err)
			if run.Repo.FullName() != "bob/greet" || len(pulls) != 1 || pulls[0].Draft {
				t.Errorf("run of %+v, pull requests %+v", run.Repo, pulls)
			}
		})
	}
}

// Another repository takes the name before anybody has noticed that it is free: nothing of
// the run goes there, and what was learnt does not, either.
func TestNameIsTakenAgain(t *testing.T) {
	t.Parallel()
	var once sync.Once
	done := make(chan struct{})
	ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		if run.Active != nil && run.Active.Phase == pipeline.PhaseImplement {
			once.Do(func() {
				_, err := ts.gh.As("acme").RenameRepository(greetRepo, "salute")
				ts.must(err)
				_, err = ts.gh.AddRepo("acme", "greet", nil)
				ts.must(err)
				_, err = ts.gh.Install(greetRepo)
				ts.must(err)
				close(done)
			})
		}
	}})
	ts.comment("acme", "/forge remember Greetings have a comma.")
	ts.says("remember")
	ts.label("acme")
	<-done
	n, err := ts.gh.As("acme").OpenIssue(greetRepo, "Another thing", "It is another repository's.")
	ts.must(err)
	_, err = ts.gh.As("acme").Comment(greetRepo, n, "/forge memory")
	ts.must(err)
	ts.inRepo(greetRepo, n, "Nothing is remembered")
	ts.untilState(pipeline.StateVerified)
	run := ts.until("shows it", func(r *pipeline.Run) bool { return r.Published.Rev == r.Rev })
	taken, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	pulls, err := ts.gh.Pulls(renamedRepo)
	ts.must(err)
	if len(taken) != 0 || len(pulls) != 1 || run.Repo.FullName() != renamedRepo {
		t.Errorf("run of %s; pull requests of the new repository %+v, of the run's %+v", run.Repo.FullName(), taken, pulls)
	}
	if list := ts.remembered(); len(list) != 1 || list[0].Scope != "repo:"+renamedRepo {
		t.Errorf("remembered: %+v", list)
	}
}

// Tokens that end between two steps are replaced: people see nothing of it.
func TestTokenEndsInMidRun(t *testing.T) {
	t.Parallel()
	ended := 0
	ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		switch e.Type {
		case pipeline.EventPhaseEntered, pipeline.EventPhaseCompleted, pipeline.EventPublishStarted:
			ended += ts.gh.EndTokens()
		}
	}})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	pulls, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	if len(pulls) != 1 || ended < 5 || run.Counters.Faults != 0 {
		t.Errorf("pull requests %+v; %d tokens ended, %d faults", pulls, ended, run.Counters.Faults)
	}
	for _, typ := range []pipeline.EventType{pipeline.EventPhaseFailed, pipeline.EventPublishFailed} {
		list, err := ts.s.DB.Events(t.Context(), run.ID, 0)
		ts.must(err)
		for _, e := range list {
			if e.Type == typ {
				t.Errorf("%s: %+v", typ, e.Data.Fault)
			}
		}
	}
}

// remembered lists what the test's server remembers, in every state.
func (ts *testServer) remembered() []pipeline.Learning {
	ts.t.Helper()
	list, err := ts.s.DB.Learnings(ts.t.Context(), store.MemoryFilter{States: []pipeline.LearningState{"*"}})
	if err != nil {
		ts.t.Fatal(err)
	}
	return list
}
