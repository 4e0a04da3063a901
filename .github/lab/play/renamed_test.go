package play

import (
	"fmt"
	"forge/cmd/forge/server/servertest"
	"strings"
	"sync"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
)

const renamedRepo = "acme/salute"

// inRepo waits until one of Forge's comments on an issue says something.
func inRepo(ts *servertest.Server, repo string, n int, words string) {
	ts.T.Helper()
	var is githubtest.Issue
	servertest.Eventually(ts.T, func() bool {
		var err error
		is, err = ts.GitHub.Issue(repo, n)
		ts.Must(err)
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
			ts := newServer(t, servertest.Options{Files: files, On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
				if tt.when(run, e) {
					once.Do(func() {
						_, err := ts.GitHub.As("acme").RenameRepository(servertest.Repo, "salute")
						ts.Must(err)
						close(done)
					})
				}
			}})
			ts.Comment("acme", "/forge remember Greetings have a comma.")
			ts.Says("remember")
			ts.Label("acme")
			<-done
			_, err := ts.GitHub.As("acme").Comment(renamedRepo, ts.Issue, "/forge memory")
			ts.Must(err)
			inRepo(ts, renamedRepo, ts.Issue, "Remembered of acme/salute")
			if tt.manual {
				_, err := ts.GitHub.As("acme").Comment(renamedRepo, ts.Issue, "/forge cancel")
				ts.Must(err)
				ts.UntilState(pipeline.StateCancelled)
			} else {
				ts.UntilState(pipeline.StateVerified)
			}
			run := ts.Until("knows the new name", func(r *pipeline.Run) bool { return r.Repo.FullName() == renamedRepo && r.Published.Rev == r.Rev })
			if e := ts.Event(run.ID, pipeline.EventRepositoryRenamed); e.Data.Repo == nil || e.Data.Repo.FullName() != renamedRepo {
				t.Errorf("event %+v", e.Data)
			}
			if list := ts.Remembered(); len(list) != 1 || list[0].Scope != "repo:"+renamedRepo {
				t.Errorf("remembered: %+v", list)
			}
			is, err := ts.GitHub.Issue(renamedRepo, ts.Issue)
			ts.Must(err)
			pulls, err := ts.GitHub.Pulls(renamedRepo)
			ts.Must(err)
			if !tt.manual && (len(pulls) != 1 || pulls[0].Draft) {
				t.Errorf("pull requests: %+v", pulls)
			}
			for _, c := range is.Comments {
				if strings.Contains(c.Body, "/status -->") && strings.Contains(c.Body, servertest.Repo) {
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
		move func(ts *servertest.Server)
		ends bool
	}{
		{"to where the App is", func(ts *servertest.Server) {
			_, err := ts.GitHub.As("acme").TransferRepository(servertest.Repo, "bob", true)
			ts.Must(err)
		}, false},
		{"to where it is not", func(ts *servertest.Server) {
			_, err := ts.GitHub.As("acme").TransferRepository(servertest.Repo, "carol", false)
			ts.Must(err)
		}, true},
		{"deleted", func(ts *servertest.Server) { ts.Must(ts.GitHub.As("acme").DeleteRepository(servertest.Repo)) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			ts := newServer(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
				if run.Active != nil && run.Active.Phase == pipeline.PhaseImplement {
					once.Do(func() { tt.move(ts) })
				}
			}})
			for _, owner := range []string{"bob", "carol"} {
				_, err := ts.GitHub.AddRepo(owner, "other", nil)
				ts.Must(err)
			}
			_, err := ts.GitHub.Install("bob/other")
			ts.Must(err)
			ts.Label("acme")
			if tt.ends {
				var run *pipeline.Run // nothing can be shown of it
				servertest.Eventually(t, func() bool {
					run = ts.Run()
					return run != nil && run.State.Ended()
				}, func() string { return fmt.Sprintf("the run goes on: %+v", run) })
				if run.State != pipeline.StateCancelled || !strings.Contains(run.Ended, "Install the App there") {
					t.Errorf("it ended as %s with %q", run.State, run.Ended)
				}
				for _, repo := range []string{"bob/other", "carol/other"} {
					if pulls, err := ts.GitHub.Pulls(repo); err != nil || len(pulls) != 0 {
						t.Errorf("%s: %+v, %v", repo, pulls, err)
					}
				}
				return
			}
			ts.UntilState(pipeline.StateVerified)
			run := ts.Until("knows its new owner", func(r *pipeline.Run) bool { return r.Published.Rev == r.Rev })
			pulls, err := ts.GitHub.Pulls("bob/greet")
			ts.Must(err)
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
	ts := newServer(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		if run.Active != nil && run.Active.Phase == pipeline.PhaseImplement {
			once.Do(func() {
				_, err := ts.GitHub.As("acme").RenameRepository(servertest.Repo, "salute")
				ts.Must(err)
				_, err = ts.GitHub.AddRepo("acme", "greet", nil)
				ts.Must(err)
				_, err = ts.GitHub.Install(servertest.Repo)
				ts.Must(err)
				close(done)
			})
		}
	}})
	ts.Comment("acme", "/forge remember Greetings have a comma.")
	ts.Says("remember")
	ts.Label("acme")
	<-done
	n, err := ts.GitHub.As("acme").OpenIssue(servertest.Repo, "Another thing", "It is another repository's.")
	ts.Must(err)
	_, err = ts.GitHub.As("acme").Comment(servertest.Repo, n, "/forge memory")
	ts.Must(err)
	inRepo(ts, servertest.Repo, n, "Nothing is remembered")
	ts.UntilState(pipeline.StateVerified)
	run := ts.Until("shows it", func(r *pipeline.Run) bool { return r.Published.Rev == r.Rev })
	taken, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	pulls, err := ts.GitHub.Pulls(renamedRepo)
	ts.Must(err)
	if len(taken) != 0 || len(pulls) != 1 || run.Repo.FullName() != renamedRepo {
		t.Errorf("run of %s; pull requests of the new repository %+v, of the run's %+v", run.Repo.FullName(), taken, pulls)
	}
	if list := ts.Remembered(); len(list) != 1 || list[0].Scope != "repo:"+renamedRepo {
		t.Errorf("remembered: %+v", list)
	}
}

// Tokens that end between two steps are replaced: people see nothing of it.
func TestTokenEndsInMidRun(t *testing.T) {
	t.Parallel()
	ended := 0
	ts := newServer(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		switch e.Type {
		case pipeline.EventPhaseEntered, pipeline.EventPhaseCompleted, pipeline.EventPublishStarted:
			ended += ts.GitHub.EndTokens()
		}
	}})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	if len(pulls) != 1 || ended < 5 || run.Counters.Faults != 0 {
		t.Errorf("pull requests %+v; %d tokens ended, %d faults", pulls, ended, run.Counters.Faults)
	}
	for _, typ := range []pipeline.EventType{pipeline.EventPhaseFailed, pipeline.EventPublishFailed} {
		list, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
		ts.Must(err)
		for _, e := range list {
			if e.Type == typ {
				t.Errorf("%s: %+v", typ, e.Data.Fault)
			}
		}
	}
}
