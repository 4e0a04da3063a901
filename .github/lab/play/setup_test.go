package play

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/setup"
	"forge/github/githubtest"
	"forge/lab/browsertest"
	"forge/pipeline"
	"forge/pipeline/sandbox/sandboxtest"
)

// Covers D1: a person with a browser comes from an empty folder to a verified pull
// request: they answer, register the App, install it, label an issue. GitHub cannot
// reach the server, and the model is a script.
func TestBrowserFromNothing(t *testing.T) {
	begun := time.Now()
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest(), Empty: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	tape := filepath.Join(dir, "tape.txtar")
	if err := os.WriteFile(tape, []byte(servertest.GreeterTape), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gh.AddRepo("acme", "hello", servertest.Greeter()); err != nil {
		t.Fatal(err)
	}
	issue, err := gh.As("acme").OpenIssue("acme/hello", "The greeting lacks its comma", "It prints `hello Ann` where `hello, Ann` is right.")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"FORGE_STATE_DIR": filepath.Join(dir, "state"), "FORGE_LISTEN": "127.0.0.1:0",
		"FORGE_DASHBOARD_LISTEN": "127.0.0.1:0", "FORGE_WRITE_INTERVAL": "0s", "FORGE_CALL_TIMEOUT": "1s"}
	pages, ended := make(chan string, 1), make(chan error, 1)
	o := setup.Options{Dir: filepath.Join(dir, "forge"), In: strings.NewReader(""), Out: io.Discard, Now: time.Now, Every: time.Second,
		Getenv: func(name string) string { return env[name] }, Ready: func(page, _ string) { pages <- page }}
	go func() { ended <- setup.Run(t.Context(), o) }()
	var page string
	select {
	case page = <-pages:
	case err := <-ended:
		t.Fatalf("the set-up ended: %v", err)
	}

	b := browsertest.New(t)
	b.Open(page)
	b.Check("settle")
	b.Picture("setup-settle")
	b.Write("#github", gh.URL)
	b.Write("#model", "tape:"+tape)
	b.Click("input[name=poll]")
	b.Click("#next")
	b.Until("the App is offered", `document.querySelector("form[action*='/settings/apps/new']") !== null`)
	b.Check("register")
	b.Click("#github")
	b.Until("GitHub shows the App", `document.querySelector("#register") !== null`)
	b.Click("#register")
	b.Until("the App is registered", `document.querySelector("#install") !== null`)
	b.Check("install")
	b.Picture("setup-install")
	b.Open(gh.URL + "/apps/forge/installations/new")
	b.Click(`input[value="acme/hello"]`)
	b.Click("#install")
	b.Until("it is installed", `document.querySelector("h1").innerText.includes("is installed")`)
	b.Open(page[:strings.Index(page, "/start/")] + "/")
	b.Until("all is set up", `document.querySelector("#end") !== null`)
	b.Check("end")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	t.Logf("set up after %s", time.Since(begun).Round(time.Millisecond))

	cfg, err := settings.Server(filepath.Join(o.Dir, "forge.yml"), o.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	verified := make(chan *pipeline.Run, 1)
	s, err := server.Listen(t.Context(), server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler), HookEvery: 100 * time.Millisecond,
		Settle: 10 * time.Millisecond, Worker: sandboxtest.Worker(t),
		OnEvents: func(run *pipeline.Run, _ []pipeline.Event) {
			if run.State != pipeline.StateRunning && run.Published.Rev >= run.Rev {
				select {
				case verified <- run:
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
			t.Error(err)
		}
	})
	b.Open(fmt.Sprintf("%s/acme/hello/issues/%d", gh.URL, issue))
	b.Write(`form input[name="label"]`, "forge")
	b.Click(`form:has(input[name="label"]) button`)
	select {
	case run := <-verified:
		if run.State != pipeline.StateVerified {
			t.Fatalf("the run is %s: %s", run.State, run.Summary())
		}
		text := b.Open(run.Published.Pull.URL)
		if !strings.Contains(text, "open") || !strings.Contains(text, "forge") {
			t.Errorf("the pull request reads\n%s", text)
		}
		b.Picture("setup-pull")
	case <-time.After(2 * time.Minute):
		t.Fatal("not verified after two minutes")
	}
	t.Logf("verified after %s", time.Since(begun).Round(time.Millisecond))
}
