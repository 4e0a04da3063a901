package play

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/lab/browsertest"
	"forge/pipeline"
	"forge/pipeline/store"
)

// visit signs a person in to the web pages, by clicking from Forge to GitHub and
// back, and leaves them at a page.
func visit(ts *servertest.Server, login, path string) *browsertest.Browser {
	ts.T.Helper()
	b := browsertest.New(ts.T)
	b.Open(ts.Forge.PagesURL + path)
	b.Check("sign-in")
	b.Click("a.button")
	b.Until("GitHub asks", `document.title.includes("Authorize") || document.querySelector("h1").innerText.includes("Authorize")`)
	b.Click(fmt.Sprintf(`button[value=%q]`, login))
	b.Until("they are back", fmt.Sprintf(`location.origin === %q && document.readyState === "complete" && document.querySelector(".who")?.innerText.includes(%q)`, ts.Forge.PagesURL, login))
	return b
}

// Covers M2, R7, S19 for the web pages: people sign in with GitHub, see the repositories that they
// can read there and no other; a question is answered on the page, and the page
// follows the run to its end without being loaded again.
func TestBrowserAnswer(t *testing.T) {
	ts := newServer(t, servertest.Options{Tape: servertest.FailingTape, SignIn: true})
	ts.Must(ts.GitHub.SetPrivate(servertest.Repo, true))
	ts.Must(ts.GitHub.SetPermission(servertest.Repo, "rita", "read"))
	if _, err := ts.GitHub.AddRepo("carl", "own", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ts.GitHub.Install("carl/own"); err != nil {
		t.Fatal(err)
	}
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)

	owner := visit(ts, "acme", "/")
	if text := owner.Text("main"); !strings.Contains(text, "The greeting lacks its comma") || !strings.Contains(text, "for acme with write access") {
		t.Errorf("the first page reads\n%s", text)
	}
	owner.Click("article.gate a.button")
	owner.Until("the run's page", `location.pathname === "/runs/1"`)
	owner.Check("run")
	owner.Picture("real-run-waiting")
	owner.Write("textarea[name=text]", "It is spelt hello.")
	owner.Click(`button[value="continue"]`)
	owner.Until("the answer is heard", `document.querySelector(".said") !== null`)
	owner.Until("the page follows the run", `document.querySelector(".state.verified") !== null`)
	owner.Check("run")
	owner.Picture("real-run-verified")
	run := ts.UntilState(pipeline.StateVerified)
	if a := run.Gates[0].Answers; len(a) != 1 || a[0].Via != "dashboard" || a[0].By.Login != "acme" || a[0].By.ID == 0 || a[0].Text != "It is spelt hello." {
		t.Errorf("the answer is %+v", a)
	}

	stranger := visit(ts, "carl", "/runs")
	if text := stranger.Text("main"); strings.Contains(text, "greet") {
		t.Errorf("somebody without access reads\n%s", text)
	}
	if text := stranger.Open(ts.Forge.PagesURL + "/runs/1"); !strings.Contains(text, "no run 1") || strings.Contains(text, "greet") {
		t.Errorf("somebody without access reads\n%s", text)
	}
	if status := browsertest.Evaluate[int](stranger, `fetch("/runs/1/events").then(r => r.status)`); status != http.StatusNotFound {
		t.Errorf("the events are a %d", status)
	}
}

// Covers H7 for the web pages: a learning is edited and forgotten on its page by who may write, with
// who they are; who may only read is told so and changes nothing.
func TestBrowserEditLearning(t *testing.T) {
	ts := newServer(t, servertest.Options{SignIn: true})
	ts.Must(ts.GitHub.SetPermission(servertest.Repo, "rita", "read"))
	ts.Label("acme")
	ts.UntilState(pipeline.StateVerified)
	var id int64
	ts.Must(ts.Forge.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		ids, err := ts.Forge.DB.SaveLearnings(ctx, tx, []pipeline.Learning{{Key: "k", Scope: "repo:" + servertest.Repo, Type: pipeline.LearningSemantic, Source: pipeline.SourceReflection,
			Content: "Greet with a comma", Base: 0.7, Weight: 1, Created: time.Now(), State: pipeline.LearningActive}})
		if err == nil {
			id = ids[0]
		}
		return err
	}))
	at := fmt.Sprintf("/memory/%d", id)

	reader := visit(ts, "rita", at)
	reader.Open(ts.Forge.PagesURL + at + "/edit")
	if l, err := ts.Forge.DB.Learning(t.Context(), id); err != nil || l.Content != "Greet with a comma" {
		t.Fatalf("%+v, %v", l, err)
	}
	reader.Until("a reader is told", `document.querySelector("main").innerText.includes("write access")`)

	writer := visit(ts, "acme", at+"/edit")
	writer.Write("textarea[name=content]", "Greet with a comma and a full stop")
	writer.Click("main form button")
	writer.Until("it is saved", fmt.Sprintf(`location.pathname === %q && document.querySelector("main").innerText.includes("full stop")`, at))
	writer.Check("learning")
	l, err := ts.Forge.DB.Learning(t.Context(), id)
	ts.Must(err)
	history, err := ts.Forge.DB.History(t.Context(), id)
	ts.Must(err)
	if l.Content != "Greet with a comma and a full stop" || len(history) == 0 || history[len(history)-1].By.Login != "acme" || history[len(history)-1].By.ID == 0 {
		t.Errorf("%q, history %+v", l.Content, history)
	}
}
