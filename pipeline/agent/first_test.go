package agent

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

// historied is a workspace with all that a role's tools may ask of one.
type historied struct{ *dirWorkspace }

func (historied) Log(context.Context, string, int) (string, error)        { return "", nil }
func (historied) Blame(context.Context, string, int, int) (string, error) { return "", nil }
func (historied) Diff(context.Context, string, string) (string, error)    { return "", nil }
func (historied) Symbols(context.Context, string, int) (string, error)    { return "", nil }

// medium is a repository of some 400 files, and a run on it with all that prompts hold.
func medium(t *testing.T) (*pipeline.Run, Job) {
	var tree []string
	for _, dir := range []string{"cmd/uploader", "internal/api", "internal/client", "internal/config", "internal/queue", "internal/retry", "internal/store", "web/src", "docs"} {
		for i := range 44 {
			tree = append(tree, fmt.Sprintf("%s/part%02d.go", dir, i))
		}
	}
	code := "package client\n\nimport \"net/http\"\n\n// Upload sends a file once.\nfunc Upload(c *http.Client, r *http.Request) (*http.Response, error) {\n\treturn c.Do(r)\n}\n"
	tree = append(tree, "AGENTS.md", "go.mod", "internal/client/upload.go", "internal/client/upload_test.go")
	run := newRun()
	run.Base, run.Head = "base0", "head1"
	run.Task = pipeline.Task{Title: "Retry failed uploads", Body: "An upload that fails with a 5xx is lost. Try it three times, with growing pauses.\n\nA refusal (4xx) must not be tried again."}
	run.Notes = []string{"ann: keep the pauses under ten seconds"}
	run.Plan = &pipeline.Plan{Summary: "Upload retries in the client, where every caller gets it.", Steps: []string{"internal/client/upload.go: try three times", "internal/client/upload_test.go: test both"},
		Criteria: []pipeline.Criterion{{ID: "AC1", Text: "A failed upload is tried three times"}, {ID: "AC2", Text: "A refusal is not retried"}},
		Files:    []string{"internal/client/upload.go", "internal/client/upload_test.go"}, Risks: []string{"callers wait longer"}}
	ws := newWorkspace(t, map[string]string{"internal/client/upload.go": code, "internal/client/upload_test.go": "package client\n"})
	j := job(run, pipeline.PhaseRef{}, historied{ws}, nil)
	j.Tree = tree
	j.Instructions = []Doc{{Path: "AGENTS.md", Text: "# How we work\n\nRun `go test ./...` before you commit. Errors are wrapped with %w. Tests stand beside the code."}}
	j.Comments = []Comment{{By: "ben", Text: "The server answers 503 while it restarts."}}
	j.Learnings = "[L3] Tests of internal/client use httptest, never the network."
	j.Baseline = &pipeline.TestReport{Passed: 212, Failed: 1, Suites: []pipeline.Suite{{Command: "go test ./..."}},
		Failures: []pipeline.Failure{{Test: "TestSlow", Error: "timed out"}}}
	j.Diff = "diff --git a/internal/client/upload.go b/internal/client/upload.go\n--- a/internal/client/upload.go\n+++ b/internal/client/upload.go\n@@ -5,4 +5,4 @@\n // Upload sends a file once.\n func Upload(c *http.Client, r *http.Request) (*http.Response, error) {\n-\treturn http.DefaultClient.Do(r)\n+\treturn c.Do(r)\n }\n"
	return run, j
}

// firstRequests are what each role of a run is asked first.
func firstRequests(t *testing.T) map[string]Request {
	out := map[string]Request{}
	note := ""
	a := newAgent(t, "tape:x", modelFunc(func(_ context.Context, r Request) (Response, error) {
		if name := r.Role + note; out[name].System == "" {
			out[name] = r
		}
		if r.Role == "compliance" {
			return Response{Stop: StopTools, Calls: []ToolCall{{ID: "1", Name: "submit", Args: json.RawMessage(`{"criteria": [
				{"id": "AC1", "met": true, "evidence": "internal/client/upload.go:7"}, {"id": "AC2", "met": true, "evidence": "internal/client/upload.go:7"}]}`)}}}, nil
		}
		return Response{}, &pipeline.Fault{Class: pipeline.FaultProvider, Message: "that is enough"}
	}))
	do := func(ph pipeline.Phase, iterations int, mod func(*pipeline.Run, *Job)) {
		run, j := medium(t)
		for i := range iterations {
			it := pipeline.Iteration{Number: i + 1, Mode: pipeline.ModeFresh}
			if i+1 < iterations {
				it.Impl = &pipeline.Implementation{Head: "head1", Summary: "Upload tries three times."}
			}
			run.Iterations = append(run.Iterations, it)
		}
		j.Ref = pipeline.PhaseRef{Phase: ph, Iteration: iterations, Attempt: 1}
		if mod != nil {
			mod(run, &j)
		}
		if _, _, err := perform(t, a, j, nil); err == nil {
			t.Fatalf("the phase %s did not ask the model", ph)
		}
	}
	do(pipeline.PhasePlan, 0, func(r *pipeline.Run, _ *Job) { r.Plan = nil })
	do(pipeline.PhaseImplement, 1, nil)
	do(pipeline.PhaseReview, 1, nil)
	do(pipeline.PhaseTest, 1, func(_ *pipeline.Run, j *Job) {
		j.Failures = []pipeline.Failure{{Test: "TestUpload", Error: "upload_test.go:20: got 1 try, want 3", Fingerprint: "eeeeeeee00000000"}}
	})
	note = "_back"
	do(pipeline.PhaseImplement, 3, func(r *pipeline.Run, j *Job) {
		j.Ref.Mode = pipeline.ModeFixFindings
		r.Findings = []pipeline.Issue{{State: pipeline.IssueOpen, Phase: pipeline.PhaseReview, Times: 2, Ruling: "a 503 is still not tried again", Finding: &pipeline.Finding{
			Fingerprint: "aaaaaaaa00000000", Severity: pipeline.SeverityError, Category: pipeline.CategoryCorrectness, Message: "Upload gives up at the first 503", File: "internal/client/upload.go", Line: 7}}}
	})
	return out
}

// shownRequest writes a request as a person reads it, with what its parts take.
func shownRequest(r Request) string {
	var b, parts strings.Builder
	part := func(name string, n int) { fmt.Fprintf(&parts, "%6d %s\n", tokens(n), name) }
	part("system", len(r.System))
	all := len(r.System)
	for _, tool := range r.Tools {
		schema, _ := json.MarshalIndent(tool.Schema, "", " ")
		compact, _ := json.Marshal(tool.Schema)
		fmt.Fprintf(&b, "=== tool %s ===\n%s\n%s\n", tool.Name, tool.Description, schema)
		n := len(tool.Name) + len(tool.Description) + len(compact) + len(`{"type":"function","function":{"name":"","description":"","parameters":}},`)
		part("tool "+tool.Name, n)
		all += n
	}
	text := r.Messages[0].Text
	for i, p := range strings.Split(text, "\n## ") {
		heading := "opening"
		if i > 0 {
			heading, _, _ = strings.Cut(p, "\n")
		}
		part(heading, len(p))
	}
	all += len(text)
	return fmt.Sprintf("%6d tokens in all\n%s\n=== system ===\n%s\n%s=== first message ===\n%s\n", tokens(all), parts.String(), r.System, b.String(), text)
}

// What each role is told and given to begin with stands in testdata/first, to be read as
// prose; `go test ./pipeline/agent -run First -update` writes it.
// Covers I1, T5.
func TestFirstRequests(t *testing.T) {
	t.Parallel()
	requests := firstRequests(t)
	if got, want := slices.Sorted(maps.Keys(requests)), []string{"compliance", "implementer", "implementer_back", "planner", "quality", "tester"}; !slices.Equal(got, want) {
		t.Fatalf("the roles that were asked are %q, want %q", got, want)
	}
	for name, r := range requests {
		file, got := filepath.Join("testdata", "first", name+".txt"), shownRequest(r)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
	}
	if a, b := pretty(requests["compliance"].Tools), pretty(requests["quality"].Tools); a != b || requests["compliance"].System != requests["quality"].System {
		t.Error("the stages of a review do not begin alike, so that the provider keeps nothing of the first for the second")
	}
}

// The texts that models read have none of the words that nobody uses so.
func TestWordsOfPrompts(t *testing.T) {
	t.Parallel()
	said := map[string]string{}
	for dir, texts := range map[string]embed.FS{"prompts": promptTexts, "tools": toolTexts} {
		entries, err := texts.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Fatalf("%d texts in %s: %v", len(entries), dir, err)
		}
		for _, e := range entries {
			text, err := texts.ReadFile(dir + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			said[e.Name()] = string(text)
		}
	}
	for name, r := range firstRequests(t) {
		said["first/"+name] = shownRequest(r)
	}
	for name, text := range said {
		words := " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }), " ") + " "
		for _, banned := range []string{"mend", "mends", "mended", "besides", "by itself", "goes on", "is none", "let pass"} {
			if strings.Contains(words, " "+banned+" ") {
				t.Errorf("%s says %q", name, banned)
			}
		}
	}
}
