package play

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/server/servertest"
	"forge/lab/browsertest"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/store"
)

// Covers M2: every page, as people see it who like it light, dark or narrow: nothing that
// axe-core objects to, nothing on the console, nothing wider than the window. Charts are drawn.
func TestBrowserEveryPage(t *testing.T) {
	ts := newServer(t, servertest.Options{Tape: servertest.FailingTape})
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)
	ts.Comment("acme", "/forge continue")
	ts.UntilState(pipeline.StateVerified)
	labelInRound(ts, 1, "The greeting lacks its comma")
	ts.Until("of the second issue", func(r *pipeline.Run) bool { return r.Task.Issue == ts.Issue && r.State == pipeline.StateWaiting })
	_, err := ts.Forge.DB.MeasureRuns(t.Context(), metrics.Of) // which the server does every few minutes
	ts.Must(err)
	var deliveries []string
	ts.Must(ts.Forge.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := ts.Forge.DB.SaveLearnings(ctx, tx, []pipeline.Learning{{Key: "k", Scope: "repo:" + servertest.Repo, Type: pipeline.LearningSemantic,
			Source: pipeline.SourceReflection, Content: "Greet with a comma", Context: "in scripts", Base: 0.7, Weight: 1, Created: time.Now(), State: pipeline.LearningActive}})
		return err
	}))
	list, err := ts.Forge.DB.Deliveries(t.Context(), store.DeliveryFilter{Repo: servertest.Repo})
	ts.Must(err)
	for _, d := range list {
		deliveries = append(deliveries, d.GUID)
	}
	if len(deliveries) == 0 {
		t.Fatal("there is no delivery")
	}
	b := browsertest.New(t)
	b.Open(access.Entry(ts.Forge.PagesURL+"/", ts.Forge.PagesKey))
	b.Until("the key is taken", `location.pathname === "/" && document.querySelector("nav") !== null`)
	for _, page := range []struct{ name, path string }{
		{"runs", "/"}, {"runs-verified", "/runs?state=verified"},
		{"run-verified", "/runs/1"}, {"run-waiting", "/runs/2"}, {"events", "/runs/1/events"}, {"tape", "/runs/1/tape"},
		{"insights", "/insights"}, {"insights-90", "/insights?days=90&tab=rework"}, {"insights-all", "/insights?tab=all"}, {"learning", "/insights/learning"},
		{"memory", "/memory"}, {"memory-search", "/memory?q=comma"}, {"memory-one", "/memory/1"}, {"memory-edit", "/memory/1/edit"}, {"memory-forget", "/memory/1/forget"},
		{"deliveries", "/deliveries"}, {"delivery", "/deliveries/" + deliveries[0]},
	} {
		for i, scheme := range []string{"light", "dark"} {
			width := []int64{1280, 400}[i]
			name := fmt.Sprintf("%s-%s", page.name, scheme)
			b.Scheme(scheme, width)
			b.Open(ts.Forge.PagesURL + page.path)
			b.Check(name)
			if b.Overflows() {
				t.Errorf("%s is wider than a window of %d", name, width)
			}
			b.Picture(name)
			if page.name == "insights-all" {
				charts(t, b)
			}
		}
	}
}

// charts looks at a page of charts: each is drawn, and all say their numbers when one moves
// along the first by keys.
func charts(t *testing.T, b *browsertest.Browser) {
	t.Helper()
	if plots, drawn := browsertest.Evaluate[int](b, `document.querySelectorAll(".plot").length`), browsertest.Evaluate[int](b, `document.querySelectorAll(".plot canvas").length`); plots == 0 || drawn != plots {
		t.Errorf("%d charts, %d drawn", plots, drawn)
	}
	at := func(key string) string {
		return browsertest.Evaluate[string](b, fmt.Sprintf(`(() => {
			const plot = document.querySelector("#chart-success .plot")
			plot.focus()
			plot.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))
			return [...document.querySelectorAll("#chart-success .legend, #chart-cost .legend")].map((l) => l.textContent).join(" | ")
		})()`, key))
	}
	first, last := at("Home"), at("End")
	success, cost, two := strings.Cut(last, " | ")
	if day, _, _ := strings.Cut(success, "success "); first == last || !two || !strings.HasPrefix(cost, day+"cost ") {
		t.Errorf("the legends say %q, and then %q", first, last)
	}
}
