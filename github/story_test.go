package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

func sha(n int) string { return strings.Repeat(fmt.Sprint(n), 40) }

// story is a run that grows by events, as in life.
type story struct {
	t   *testing.T
	run *pipeline.Run
	at  time.Time
	n   int
}

func newStory(t *testing.T) *story {
	s := &story{t: t, run: &pipeline.Run{}, at: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	s.add(pipeline.EventRunStarted, pipeline.Data{Start: &pipeline.Start{
		Repo: fakeRepo(), By: pipeline.Actor{ID: 7, Login: "alice"}, Config: pipeline.DefaultConfig(), Base: sha(0), Branch: "forge/issue-7-retry",
		Task: pipeline.Task{Issue: 7, Title: "Retry failed uploads", Body: "Uploads fail on a bad line. @bob fixes #3", Author: pipeline.Actor{ID: 7, Login: "alice"}, URL: "https://github.com/octo/repo/issues/7"}}})
	return s
}

func (s *story) add(typ pipeline.EventType, d pipeline.Data) {
	s.n++
	s.at = s.at.Add(30 * time.Second)
	s.run.Apply(pipeline.Event{ID: fmt.Sprint(s.n), Run: 1, Seq: s.run.Seq + 1, Type: typ, Source: "forge", Trace: strings.Repeat("ab", 16), Time: s.at, Data: d})
}

func (s *story) phase(p pipeline.Phase, iteration int, d pipeline.Data) {
	s.t.Helper()
	mode := pipeline.Mode("")
	if p == pipeline.PhaseImplement {
		mode = pipeline.ModeFresh
		if iteration > 1 {
			mode = pipeline.ModeFixFindings
		}
	}
	ref := pipeline.PhaseRef{Phase: p, Iteration: iteration, Attempt: 1, Mode: mode}
	s.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: &ref})
	done := ref
	done.Millis = 95_000
	d.Phase = &done
	s.add(pipeline.EventAgentIteration, pipeline.Data{Step: &pipeline.Step{Phase: p, Iteration: iteration, Number: 1,
		Usage: pipeline.Usage{Calls: 3, Input: 9000, Output: 800, MicroUSD: 120_000}}})
	s.add(pipeline.EventPhaseCompleted, d)
}

func (s *story) plan() {
	s.phase(pipeline.PhasePlan, 0, pipeline.Data{Plan: &pipeline.Plan{
		Summary:  "Wrap the upload in a retry with growing pauses.\n\nOnly errors of the network are tried again.",
		Steps:    []string{"Add `retry.go` with the loop", "Use it in `upload.go`", "Test time-outs and refusals"},
		Criteria: []pipeline.Criterion{{ID: "AC1", Text: "A failed upload is tried three times"}, {ID: "AC2", Text: "A refusal (4xx) is not tried again"}},
		Files:    []string{"retry.go", "upload.go", "retry_test.go"}, Risks: []string{"An upload could arrive twice <script>alert(1)</script>"}}})
}

func (s *story) implement(iteration, from, to int, summary string) {
	s.implemented(iteration, sha(from), sha(to), summary)
}

func (s *story) implemented(iteration int, from, to, summary string) {
	s.phase(pipeline.PhaseImplement, iteration, pipeline.Data{Implementation: &pipeline.Implementation{
		Summary: summary, Files: []string{"retry.go", "upload.go"}, Parent: from, Head: to}})
}

func finding(id, fp string, sev pipeline.Severity, file string, line, end int, msg string) pipeline.Finding {
	return pipeline.Finding{ID: id, Fingerprint: fp, Severity: sev, Category: "correctness", Message: msg, File: file, Line: line, EndLine: end, Confidence: 0.9}
}

// firstFindings are one with a suggestion, one on a range, and one outside the diff.
func firstFindings() []pipeline.Finding {
	a := finding("F1", "aaaa", pipeline.SeverityCritical, "retry.go", 4, 0, "The loop never ends when `n` is negative, says @carol.")
	with := "\tfor i := 0; i < max(n, 1); i++ {"
	a.Code = "\tfor i := 0; i != n; i++ {"
	a.Fix = &pipeline.Fix{Description: "Count upwards from zero.", Replacement: &with}
	b := finding("F2", "bbbb", pipeline.SeverityError, "retry.go", 5, 7, "The pause ignores the context.")
	b.Fix = &pipeline.Fix{Description: "Select on `ctx.Done()`.", Diff: "-\ttime.Sleep(d)\n+\tselect {}"}
	c := finding("F3", "cccc", pipeline.SeverityWarning, "README.md", 12, 0, "The README does not speak of retries.")
	return []pipeline.Finding{c, b, a}
}

func (s *story) review(iteration, head int, met bool, findings ...pipeline.Finding) {
	s.reviewed(iteration, sha(head), met, findings...)
}

func (s *story) reviewed(iteration int, head string, met bool, findings ...pipeline.Finding) {
	s.phase(pipeline.PhaseReview, iteration, pipeline.Data{Review: &pipeline.Review{
		Head: head, Summary: "The change does what the issue asks for.", Findings: findings, Risk: 34,
		Compliance: []pipeline.Compliance{{Criterion: "AC1", Met: true, Evidence: "TestRetryThreeTimes"}, {Criterion: "AC2", Met: met, Evidence: "TestRefusal"}},
		Reviewed:   []string{"retry.go", "upload.go", "README.md"}}})
}

func (s *story) bounce(iteration, count int) {
	s.add(pipeline.EventBounce, pipeline.Data{Bounce: &pipeline.Bounce{Number: 1, Phase: pipeline.PhaseReview, Iteration: iteration, Count: count, Weight: 15, Issues: []string{"aaaa", "bbbb"}}})
}

func (s *story) tests(iteration, head int, failures ...pipeline.Failure) {
	s.tested(iteration, sha(head), failures...)
}

func (s *story) tested(iteration int, head string, failures ...pipeline.Failure) {
	s.phase(pipeline.PhaseTest, iteration, pipeline.Data{Tests: &pipeline.TestReport{
		Head: head, Total: 42, Passed: 42 - len(failures), Failed: len(failures), Failures: failures, Names: []string{"TestRetryThreeTimes", "TestRefusal"},
		Flaky: []string{"TestSlow"}, Suites: []pipeline.Suite{{Name: "go test", Command: "go test ./...", Millis: 4000}},
		Coverage: &pipeline.Coverage{Lines: 81.4, Branches: -1, Changed: 93}}})
}

func (s *story) verified() { s.add(pipeline.EventRunVerified, pipeline.Data{}) }

func (s *story) gate() {
	s.add(pipeline.EventGateRequested, pipeline.Data{Gate: &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateEscalation,
		Guard:    &pipeline.Guard{Name: pipeline.GuardSameFinding, Phase: pipeline.PhaseReview, Value: 3, Limit: 3, Detail: "the same finding"},
		Question: "The same finding came back 3 times. How should it go on?",
		Choices: []pipeline.Choice{{Name: "continue", Arg: "N", Label: "go on for N more iterations"}, {Name: "accept", Label: "take it as it is; what is left is written down as known issues"},
			{Name: "history", Label: "show everything that was tried"}, {Name: "cancel", Label: "give it up"}}}})
}

func (s *story) answer(choice string, n int, text string) {
	s.add(pipeline.EventGateAnswered, pipeline.Data{Answer: &pipeline.Answer{Gate: "gate/1", Choice: choice, N: n, Text: text, By: pipeline.Actor{ID: 7, Login: "alice"}, Via: "comment", At: s.at}})
}

// bounced tells a run up to the commit that mends the first review's findings.
func (s *story) bounced() {
	s.plan()
	s.implement(1, 0, 1, "Retries with growing pauses.")
	s.review(1, 1, false, firstFindings()...)
	s.bounce(1, 2)
}

const testDiff = `diff --git a/retry.go b/retry.go
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/retry.go
@@ -0,0 +1,9 @@
+package upload
+
+func retry(n int) {
+	for i := 0; i != n; i++ {
+		d := pause(i)
+		time.Sleep(d)
+		send()
+	}
+}
diff --git a/upload.go b/upload.go
index 2222222..3333333 100644
--- a/upload.go
+++ b/upload.go
@@ -10,3 +10,3 @@ func upload() {
 	open()
-	send()
+	retry(3)
 	close()
`
