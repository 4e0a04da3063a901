// Package rendertest tells runs step by step, for tests of what GitHub shows of them.
package rendertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
)

// Repo is the repository that the story happens in.
func Repo() pipeline.Repo {
	return pipeline.Repo{ID: 99, Owner: "octo", Name: "repo", DefaultBranch: "main", CloneURL: "https://github.com/octo/repo.git", Installation: 5}
}

// SHA is a commit id made of one digit.
func SHA(n int) string { return strings.Repeat(fmt.Sprint(n), 40) }

// Story is a run that grows by events, as in life.
type Story struct {
	T   *testing.T
	Run *pipeline.Run
	At  time.Time // of the last event
	N   int       // events so far
}

// New returns the story of a run that has just been started.
func New(t *testing.T) *Story {
	s := &Story{T: t, Run: &pipeline.Run{}, At: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	s.Add(pipeline.EventRunStarted, pipeline.Data{Start: &pipeline.Start{
		Repo: Repo(), By: pipeline.Actor{ID: 7, Login: "alice"}, Config: config.Default(), Base: SHA(0), Branch: "forge/issue-7-retry",
		Task: pipeline.Task{Issue: 7, Title: "Retry failed uploads", Body: "Uploads fail on a bad line. @bob fixes #3",
			Author: pipeline.Actor{ID: 7, Login: "alice"}, URL: "https://github.com/octo/repo/issues/7"}}})
	return s
}

func (s *Story) Add(typ pipeline.EventType, d pipeline.Data) {
	s.N++
	s.At = s.At.Add(30 * time.Second)
	s.Run.Apply(pipeline.Event{ID: fmt.Sprint(s.N), Run: 1, Seq: s.Run.Seq + 1, Type: typ, Source: "forge", Trace: strings.Repeat("ab", 16), Time: s.At, Data: d})
}

func (s *Story) Phase(p pipeline.Phase, iteration int, d pipeline.Data) {
	s.T.Helper()
	mode := pipeline.Mode("")
	if p == pipeline.PhaseImplement {
		mode = pipeline.ModeFresh
		if iteration > 1 {
			mode = pipeline.ModeFixFindings
		}
	}
	ref := pipeline.PhaseRef{Phase: p, Iteration: iteration, Attempt: 1, Mode: mode}
	s.Add(pipeline.EventPhaseEntered, pipeline.Data{Phase: &ref})
	done := ref
	done.Millis = 95_000
	d.Phase = &done
	s.Add(pipeline.EventAgentIteration, pipeline.Data{Step: &pipeline.Step{Phase: p, Iteration: iteration, Number: 1,
		Usage: pipeline.Usage{Calls: 3, Input: 9000, Output: 800, MicroUSD: 120_000}}})
	s.Add(pipeline.EventPhaseCompleted, d)
}

func (s *Story) Plan() {
	s.Phase(pipeline.PhasePlan, 0, pipeline.Data{Plan: &pipeline.Plan{
		Summary:  "Wrap the upload in a retry with growing pauses.\n\nOnly errors of the network are tried again.",
		Steps:    []string{"Add `retry.go` with the loop", "Use it in `upload.go`", "Test time-outs and refusals"},
		Criteria: []pipeline.Criterion{{ID: "AC1", Text: "A failed upload is tried three times"}, {ID: "AC2", Text: "A refusal (4xx) is not tried again"}},
		Files:    []string{"retry.go", "upload.go", "retry_test.go"}, Risks: []string{"An upload could arrive twice <script>alert(1)</script>"}}})
}

func (s *Story) Implement(iteration, from, to int, summary string) {
	s.Implemented(iteration, SHA(from), SHA(to), summary)
}

func (s *Story) Implemented(iteration int, from, to, summary string) {
	s.Phase(pipeline.PhaseImplement, iteration, pipeline.Data{Implementation: &pipeline.Implementation{
		Summary: summary, Files: []string{"retry.go", "upload.go"}, Parent: from, Head: to}})
}

// Finding makes a finding of category correctness.
func Finding(id, fp string, sev pipeline.Severity, file string, line, end int, msg string) pipeline.Finding {
	return pipeline.Finding{ID: id, Fingerprint: fp, Severity: sev, Category: pipeline.CategoryCorrectness, Message: msg, File: file,
		Line: line, EndLine: end, Confidence: 0.9}
}

// FirstFindings are one with a suggestion, one on a range, and one outside the diff.
func FirstFindings() []pipeline.Finding {
	a := Finding("F1", "aaaa", pipeline.SeverityCritical, "retry.go", 4, 0, "The loop never ends when `n` is negative, says @carol.")
	with := "\tfor i := 0; i < max(n, 1); i++ {"
	a.Code = "\tfor i := 0; i != n; i++ {"
	a.Fix = &pipeline.Fix{Description: "Count upwards from zero.", Replacement: &with}
	b := Finding("F2", "bbbb", pipeline.SeverityError, "retry.go", 5, 7, "The pause ignores the context.")
	b.Fix = &pipeline.Fix{Description: "Select on `ctx.Done()`.", Diff: "-\ttime.Sleep(d)\n+\tselect {}"}
	c := Finding("F3", "cccc", pipeline.SeverityWarning, "README.md", 12, 0, "The README does not speak of retries.")
	return []pipeline.Finding{c, b, a}
}

func (s *Story) Review(iteration, head int, met bool, findings ...pipeline.Finding) {
	s.Reviewed(iteration, SHA(head), met, findings...)
}

func (s *Story) Reviewed(iteration int, head string, met bool, findings ...pipeline.Finding) {
	s.Phase(pipeline.PhaseReview, iteration, pipeline.Data{Review: &pipeline.Review{
		Head: head, Summary: "The change does what the issue asks for.", Findings: findings, Risk: 34,
		Compliance: []pipeline.Compliance{{Criterion: "AC1", Met: true, Evidence: "TestRetryThreeTimes"}, {Criterion: "AC2", Met: met, Evidence: "TestRefusal"}},
		Reviewed:   []string{"retry.go", "upload.go", "README.md"}}})
}

func (s *Story) Bounce(iteration, count int) {
	s.Add(pipeline.EventBounce, pipeline.Data{Bounce: &pipeline.Bounce{Number: 1, Phase: pipeline.PhaseReview, Target: pipeline.TargetImplement, Iteration: iteration,
		Count: count, Weight: 15, Issues: []string{"aaaa", "bbbb"}}})
}

func (s *Story) Tests(iteration, head int, failures ...pipeline.Failure) {
	s.Tested(iteration, SHA(head), failures...)
}

func (s *Story) Tested(iteration int, head string, failures ...pipeline.Failure) {
	s.Phase(pipeline.PhaseTest, iteration, pipeline.Data{Tests: &pipeline.TestReport{
		Head: head, Total: 42, Passed: 42 - len(failures), Failed: len(failures), Failures: failures, Names: []string{"TestRetryThreeTimes", "TestRefusal"},
		Flaky: []string{"TestSlow"}, Suites: []pipeline.Suite{{Name: "go test", Command: "go test ./...", Millis: 4000}},
		Coverage: &pipeline.Coverage{Lines: 81.4, Branches: -1, Changed: 93}}})
}

func (s *Story) Verified() { s.Add(pipeline.EventRunVerified, pipeline.Data{}) }

func (s *Story) Gate() {
	s.Add(pipeline.EventGateRequested, pipeline.Data{Gate: &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateEscalation,
		Guard:    &pipeline.Guard{Name: pipeline.GuardSameFinding, Phase: pipeline.PhaseReview, Value: 3, Limit: 3, Detail: "the same finding"},
		Question: "The same finding came back 3 times. How should it go on?",
		Choices: []pipeline.Choice{{Name: "continue", Arg: "N", Label: "go on for N more iterations"},
			{Name: "accept", Label: "take it as it is; what is left is written down as known issues"},
			{Name: "history", Label: "show everything that was tried"}, {Name: "cancel", Label: "give it up"}}}})
}

func (s *Story) Answer(choice string, n int, text string) {
	s.Add(pipeline.EventGateAnswered, pipeline.Data{
		Answer: &pipeline.Answer{Gate: "gate/1", Choice: choice, N: n, Text: text, By: pipeline.Actor{ID: 7, Login: "alice"}, Via: "comment",
			At: s.At}})
}

// Bounced tells a run up to the commit that fixes the first review's findings.
func (s *Story) Bounced() {
	s.Plan()
	s.Implement(1, 0, 1, "Retries with growing pauses.")
	s.Review(1, 1, false, FirstFindings()...)
	s.Bounce(1, 2)
}

// Diff is what the story changes: FirstFindings are about it.
const Diff = `diff --git a/retry.go b/retry.go
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
