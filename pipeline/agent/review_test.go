package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"forge/pipeline"
)

// answers is a model that submits what it is told for each conversation, and keeps
// the first request of each.
type answers struct {
	submit map[string]string
	calls  map[string][]ToolCall // before it submits
	first  map[string]Request
	order  []string
}

func (m *answers) Complete(_ context.Context, r Request) (Response, error) {
	if m.first == nil {
		m.first = map[string]Request{}
	}
	if r.Step == 1 {
		m.first[r.Role] = r
		m.order = append(m.order, r.Role)
		if calls := m.calls[r.Role]; calls != nil {
			return Response{Calls: calls}, nil
		}
	}
	args, ok := m.submit[r.Role]
	if !ok {
		args = m.submit["quality"]
	}
	return Response{Calls: []ToolCall{{ID: "s", Name: "submit", Args: json.RawMessage(args)}}, Usage: pipeline.Usage{Calls: 1}}, nil
}

// newFile is the patch that adds a file.
func newFile(name, content string) string {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%d @@\n+%s\n", name, len(lines), strings.Join(lines, "\n+"))
}

// Covers T8, lessons 9: a change that is too big for one prompt is read in parts, all
// of it; what is found twice is one, open findings are ruled on with their file, and
// each part may take the steps of a phase.
func TestReviewInParts(t *testing.T) {
	t.Parallel()
	var diff strings.Builder
	files := map[string]string{}
	for i := range 9 {
		var b strings.Builder
		for k := range 1300 {
			fmt.Fprintf(&b, "file %d line %d has some thirty letters\n", i, k)
		}
		name := fmt.Sprintf("f%d.txt", i)
		files[name] = b.String()
		diff.WriteString(newFile(name, b.String()))
	}
	diff.WriteString("diff --git a/logo.png b/logo.png\nnew file mode 100644\nindex 0000000..1111111\nBinary files /dev/null and b/logo.png differ\n")
	run := newRun()
	run.Config.Limits.Steps = 2
	run.Plan = &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it is big"}}}
	run.Findings = []pipeline.Issue{{State: "open", Phase: pipeline.PhaseReview, Seen: "head6", Finding: &pipeline.Finding{Fingerprint: "aaaaaaaa00000000", Severity: "error", Message: "too long", File: "f8.txt", Line: 1}}}
	found := `{"severity":"warning","category":"style","message":"long","file":"f8.txt","line":7,"confidence":1}`
	plain := `{"summary":"ok","risk":5,"findings":[` + found + `]}`
	m := &answers{submit: map[string]string{
		"compliance": `{"criteria":[{"id":"AC1","met":true,"evidence":"all of it"}]}`,
		"quality":    plain, "qualitye": `{"summary":"last","risk":9,"send_to":"plan","findings":[` + found + `],"rulings":[{"id":"F1","verdict":"open","why":"it is"}]}`,
	}}
	a := newAgent(t, "tape:x", m)
	j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}, newWorkspace(t, files), nil)
	j.Diff = diff.String()
	got, usage, err := a.Review(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if o := strings.Join(m.order, " "); o != "compliance quality qualityb qualityc qualityd qualitye" || usage.Calls != 6 {
		t.Fatalf("the conversations are %s, of %d calls", o, usage.Calls)
	}
	all := ""
	for _, name := range m.order[1:] {
		text := m.first[name].Messages[0].Text
		if n := tokens(len(text)); n > 60_000 {
			t.Errorf("the prompt of %s has %d tokens", name, n)
		}
		all += text
	}
	for i := range 9 {
		for _, k := range []int{0, 700, 1299} {
			if line := fmt.Sprintf("+file %d line %d has", i, k); strings.Count(all, line) != 1 {
				t.Errorf("%q is shown %d times", line, strings.Count(all, line))
			}
		}
	}
	if strings.Contains(m.first["qualityc"].Messages[0].Text, "too long") || !strings.Contains(m.first["qualitye"].Messages[0].Text, "F1 [error, , aaaaaaaa] f8.txt:1: too long") {
		t.Error("the open finding is not ruled on with its file alone")
	}
	if len(got.Reviewed) != 9 || len(got.NotReviewed) != 1 || got.NotReviewed[0].Path != "logo.png" {
		t.Errorf("reviewed %v, not %v", got.Reviewed, got.NotReviewed)
	}
	if len(got.Findings) != 2 || got.Findings[0].Line != 7 || got.Summary != "ok\n\nlast" || got.Risk != 9 || got.SendTo != pipeline.TargetPlan || len(got.Rulings) != 1 {
		t.Errorf("the reviews are not one: %s", pretty(got))
	}
}

// restoringWorkspace can be put back.
type restoringWorkspace struct {
	*dirWorkspace
	restored []string
	files    map[string]string
}

func (w *restoringWorkspace) Checkout(ctx context.Context, sha string) error {
	w.restored = append(w.restored, sha)
	for p, content := range w.files {
		if err := w.Write(ctx, p, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// Covers T8: the reviewer runs commands; what they change is thrown away before
// anybody reads the files again, and it has no tool that edits.
func TestReviewerTries(t *testing.T) {
	t.Parallel()
	files := map[string]string{"calc.go": "package calc\n\nvar a = 1\n"}
	ws := &restoringWorkspace{dirWorkspace: newWorkspace(t, files), files: files}
	run := newRun()
	run.Plan = &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it is there"}}}
	spoil := []ToolCall{{ID: "1", Name: "run", Args: json.RawMessage(`{"command":"echo spoiled > calc.go; cat calc.go"}`)}, {ID: "2", Name: "write", Args: json.RawMessage(`{"path":"calc.go","content":"x"}`)}}
	m := &answers{calls: map[string][]ToolCall{"compliance": spoil, "quality": spoil}, submit: map[string]string{
		"compliance": `{"criteria":[{"id":"AC1","met":true,"evidence":"seen"}]}`,
		"quality":    `{"summary":"ok","risk":5,"findings":[{"severity":"error","category":"style","message":"one","file":"calc.go","line":3,"confidence":1}]}`,
	}}
	log := &eventLog{}
	j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}, ws, log)
	j.Diff = newFile("calc.go", files["calc.go"])
	got, _, err := newAgent(t, "tape:x", m).Review(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(ws.restored, " ") != "head7 head7" || got.Findings[0].Code != "var a = 1" || ws.dirWorkspace.files(t)["calc.go"] != files["calc.go"] {
		t.Errorf("put back to %v; the finding is about %q", ws.restored, got.Findings[0].Code)
	}
	if !strings.Contains(log.String(), `run "echo spoiled > calc.go; cat calc.go" ok=true`) || !strings.Contains(log.String(), `write "" ok=false error="there is no tool \"write\"`) {
		t.Errorf("events:\n%s", log)
	}
}

// Both stages of a review begin alike, up to the end of the change, and so do the
// reviews of two iterations, up to the plan: the provider's cache serves them.
func TestStagesBeginAlike(t *testing.T) {
	t.Parallel()
	run := newRun()
	run.Plan = &pipeline.Plan{Summary: "plan", Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it is there"}}}
	m := &answers{submit: map[string]string{"compliance": `{"criteria":[{"id":"AC1","met":true,"evidence":"seen"}]}`, "quality": `{"summary":"ok","risk":5,"findings":[]}`}}
	a := newAgent(t, "tape:x", m)
	j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}, newWorkspace(t, map[string]string{"a.txt": "one\n"}), nil)
	j.Diff = newFile("a.txt", "one\n")
	if _, _, err := a.Review(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	one, two := m.first["compliance"], m.first["quality"]
	if one.System != two.System || pretty(one.Tools) != pretty(two.Tools) {
		t.Error("system prompt or tools differ")
	}
	begin := func(r Request, mark int) string { return r.Messages[0].Text[:r.Messages[0].Marks[mark]] }
	if begin(one, 1) != begin(two, 1) || !strings.Contains(begin(one, 1), "+one") {
		t.Errorf("the stages begin with\n%s\nand\n%s", begin(one, 1), begin(two, 1))
	}
	run.Iterations = []pipeline.Iteration{{Number: 1, Impl: &pipeline.Implementation{Summary: "s"}}}
	j.Key, j.Ref.Iteration, j.Diff = "run/7/iter/2/review", 2, newFile("a.txt", "two\n")
	if _, _, err := a.Review(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if next := m.first["quality"]; begin(next, 0) != begin(two, 0) || !strings.Contains(begin(next, 0), "it is there") || begin(next, 1) == begin(two, 1) {
		t.Error("the reviews of two iterations do not begin alike")
	}
}

// The second agent in a phase has events of its own.
func TestJustifyEvents(t *testing.T) {
	t.Parallel()
	log := &eventLog{}
	m := &answers{submit: map[string]string{"tester": `{"failures":[{"id":"T1","cause":"logic","analysis":"x","confidence":1}]}`, "justify": `{"tests":[{"id":"T1","must_change":false,"reason":"x"}]}`}}
	a := newAgent(t, "tape:x", m)
	j := job(newRun(), pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1, Attempt: 1}, newWorkspace(t, nil), log)
	j.Failures = []pipeline.Failure{{Test: "TestA", Error: "e"}}
	if _, _, err := a.Analyse(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	got, _, err := a.JustifyTests(t.Context(), j, []pipeline.TestChange{{Test: "TestB", Reason: "of the test phase's own"}})
	if err != nil || got[0].Reason != "" {
		t.Fatalf("%+v, %v; want no reason", got, err)
	}
	if len(log.events) != 4 || log.twice != 0 {
		t.Errorf("%d events, %d of them twice:\n%s", len(log.events), log.twice, log)
	}
}

// A commit that is not known here any more: code that still stands has not changed.
// A workspace that breaks ends the review, and is nobody's verdict.
func TestClaimsWithoutHistory(t *testing.T) {
	t.Parallel()
	run := newRun()
	issue := func(code string) pipeline.Issue {
		return pipeline.Issue{State: "open", Phase: pipeline.PhaseReview, Seen: "gone", Finding: &pipeline.Finding{Severity: "error", Message: code, File: "a.go", Line: 2, Code: code}}
	}
	run.Findings = []pipeline.Issue{issue("\tx := 1"), issue("\ty := 1"), {State: "open", Phase: pipeline.PhaseReview, Finding: &pipeline.Finding{Message: "never seen"}}}
	j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 2}, newWorkspace(t, map[string]string{"a.go": "one\n\n  x := 1\n"}), nil)
	j.Since = func(context.Context, string) (string, error) { return "", fmt.Errorf("no such commit") }
	p := newAgent(t, "tape:x", nil).phase(j, pipeline.PhaseReview)
	list, _, err := p.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if list[0].changed() || !list[1].changed() || list[2].changed() {
		t.Errorf("changed: %v %v %v, want only the second", list[0].changed(), list[1].changed(), list[2].changed())
	}
	fault := &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "gone"}
	j.Since = func(context.Context, string) (string, error) { return "", fault }
	if _, _, err := newAgent(t, "tape:x", nil).phase(j, pipeline.PhaseReview).claims(t.Context()); err != fault {
		t.Errorf("error %v, want the fault", err)
	}
}

// Covers T8: a comment closes no finding about a requirement or a test either, except where
// nobody knows what is code.
func TestCommentClosesNoWish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		category pipeline.Category
		file     string
		changed  bool
	}{
		{pipeline.CategoryRequirements, "a.py", false}, {pipeline.CategoryTests, "test_a.py", false}, {pipeline.CategoryCorrectness, "a.py", false},
		{pipeline.CategoryStyle, "a.py", true}, {pipeline.CategoryRequirements, "a.md", true},
	} {
		run := newRun()
		run.Findings = []pipeline.Issue{{State: "open", Phase: pipeline.PhaseReview, Seen: "old",
			Finding: &pipeline.Finding{Severity: "error", Category: c.category, Message: "sums overflow", File: c.file, Line: 1, Code: "return a + b"}}}
		j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 2}, newWorkspace(t, map[string]string{c.file: "# a note\nreturn a + b\n"}), nil)
		j.Since = func(context.Context, string) (string, error) {
			return "diff --git a/" + c.file + " b/" + c.file + "\n--- a/" + c.file + "\n+++ b/" + c.file + "\n@@ -1 +1,2 @@\n+# a note\n return a + b\n", nil
		}
		list, _, err := newAgent(t, "tape:x", nil).phase(j, pipeline.PhaseReview).claims(t.Context())
		if err != nil || list[0].changed() != c.changed {
			t.Errorf("%s in %s: changed %v, want %v; %v", c.category, c.file, list[0].changed(), c.changed, err)
		}
	}
}
