package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/workspace/workspacetest"
)

// verifiedServer is a server in this process that has carried a run to its end on a
// local GitHub, which delivers what happens with faults.
func verifiedServer(t *testing.T, faults githubtest.DeliveryFaults, more map[string]string) (*server.Server, *githubtest.Server) {
	t.Helper()
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	env, err := demo.Environment(gh, dir, []byte(servertest.GreeterTape))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(env, more)
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan pipeline.State, 1)
	s, err := server.Listen(t.Context(), server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Settle: 10 * time.Millisecond,
		Workspaces: workspacetest.New(t, nil), HostTool: noTool, OnEvents: func(run *pipeline.Run, _ []pipeline.Event) {
			if run.State != pipeline.StateRunning && run.Published.Rev >= run.Rev {
				select {
				case ended <- run.State:
				default:
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), server.DrainTime)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	gh.SetHook(s.URL + "/webhook")
	gh.SetDeliveryFaults(faults)
	repo, err := gh.AddRepo("acme", "greet", servertest.Greeter())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gh.Install(repo); err != nil {
		t.Fatal(err)
	}
	n, err := gh.As("acme").OpenIssue(repo, "The greeting lacks its comma", "It prints `hello Ann` where `hello, Ann` is right.")
	if err != nil {
		t.Fatal(err)
	}
	if err := gh.As("acme").Label(repo, n, "forge"); err != nil {
		t.Fatal(err)
	}
	select {
	case state := <-ended:
		if state != pipeline.StateVerified {
			t.Fatalf("the run is %s", state)
		}
	case <-time.After(time.Minute):
		t.Fatal("no run has ended after a minute")
	}
	return s, gh
}

// Covers lessons 11, 18: doubled and shuffled deliveries make no difference.
func TestDeliveriesInDisorder(t *testing.T) {
	t.Parallel()
	_, gh := verifiedServer(t, githubtest.DeliveryFaults{Duplicate: 1, Shuffle: 0.5}, nil)
	came := map[string]int{}
	for _, d := range gh.Deliveries() {
		came[d.GUID]++
	}
	if n := len(gh.Deliveries()) - len(came); n < 3 {
		t.Fatalf("%d deliveries came twice", n)
	}
	pulls, err := gh.Pulls(greetRepo)
	if err != nil || len(pulls) != 1 || len(pulls[0].Checks) != 1 {
		t.Fatalf("%v, %+v; want one pull request with one check", err, pulls)
	}
	issue, err := gh.Issue(greetRepo, 1)
	if err != nil {
		t.Fatal(err)
	}
	for where, comments := range map[string][]githubtest.Comment{"issue": issue.Comments, "pull request": pulls[0].Comments} {
		seen := map[string]bool{}
		for _, c := range comments {
			_, mark, _ := strings.Cut(c.Body, "<!-- forge:")
			if seen[mark] {
				t.Errorf("twice on the %s: %s", where, c.Body)
			}
			seen[mark] = true
		}
		if where == "issue" && len(seen) == 0 {
			t.Errorf("nothing is said on the %s", where)
		}
	}
	twice := map[string]int{}
	for _, d := range gh.Deliveries() {
		twice[d.GUID]++
	}
}
