package render

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/pipelinetest"

	"golang.org/x/tools/txtar"
)

// Covers T7, V4, R7 and lessons 4: for each script of the loop, what people see:
// every question when it is asked, and in the end the status, the check run and
// what is left behind.
func TestRenderLoop(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(filepath.Join("..", "..", "pipeline", "testdata", "loop", "*.txtar"))
	if len(files) < 60 {
		t.Fatalf("%d scripts", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, script, err := pipelinetest.Load(ar)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Play(script); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("loop", name), shown(p.Events))
		})
	}
}

// shown replays events and collects what GitHub shows at each question and in the end.
func shown(events []pipeline.Event) string {
	var r pipeline.Run
	var b strings.Builder
	part := func(title, text string) { fmt.Fprintf(&b, "==== %s\n%s\n", title, strings.TrimSpace(text)) }
	for _, e := range events {
		r.Apply(e)
		if r.Head != r.Base && r.Published.Pull == nil {
			r.Published.Pull = &pipeline.PullRef{Number: 8, Node: "PR_8", URL: "https://github.com/acme/shop/pull/8"}
		}
		switch g := r.Gate(); {
		case g == nil:
		case e.Type == pipeline.EventGateRequested:
			part("the question "+g.ID, testView(&r).Gate(g))
		case e.Type == pipeline.EventGateReminded:
			part("a reminder", testView(&r).Reminder(g.ID+"/reminder", g))
		}
	}
	v := testView(&r)
	part("the status", v.Status())
	st := v.Check()
	part("the check run", strings.TrimSpace(st.Status+" "+st.Conclusion)+": "+st.Title)
	if r.State == pipeline.StateAccepted && len(v.Left(1)) > 0 {
		title, body := v.Debt()
		part("the issue for what is left", title+"\n\n"+body)
	}
	return b.String()
}
