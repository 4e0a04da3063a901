package evaluate

import (
	"strings"
	"testing"

	"forge/lab/stream"
)

// What a comparison says is laid out in words and tables.
func TestShowLearning(t *testing.T) {
	t.Parallel()
	half := stream.Spread{Min: 0.4, Median: 0.5, Max: 0.6}
	last := stream.Block{From: 51, To: 100, Posted: 8, Dismissed: 2}
	verdict := stream.Verdict{Policy: stream.Product, Streams: 2, Halved: 1, Planted: 9, Lost: 3}
	res := &stream.Result{Repo: "shop", Files: 3, Lines: 90, Pulls: 120, Seeds: 2, Seed: 5, Verdicts: []stream.Verdict{verdict}, Models: []stream.ModelResult{{
		Model: stream.Model{Name: "base", What: "five people", People: 5, Mistakes: 0.1}, Verdicts: []stream.Verdict{verdict, {Policy: "dismissals"}},
		Summaries: []stream.Summary{{Policy: stream.Policy{Name: "memory off", What: "everything is posted"}, Rates: []stream.Spread{half, half, half}, Last: last},
			{Policy: stream.Policy{Name: stream.Product}, Rates: make([]stream.Spread, 3), Posted: stream.Spread{Median: 6}, Second: half, Last: last}}}}}
	var b strings.Builder
	if err := showLearning(&b, res); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"2 streams of 120 pull requests for each of 1 models (seeds 5 to 6), over shop: 3 files, 90 lines.",
		"memory off: everything is posted", "model memory 1–50 of them 26–50 51–100 101–120 posted useful held", "base memory off 50 % (40–60) 0 % (0–0) 50 % (40–60)",
		"all models: product 0 of 2 1 of 2 0 of 2 0.0 % 0 9 3", "base: product 0 of 2", "findings of the last 50 pull requests", "product 8 2 25.0 %",
		"base: five people 5 10.0 %"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(got, "base: dismissals") {
		t.Errorf("of one model another policy's verdict is shown:\n%s", b.String())
	}
}
