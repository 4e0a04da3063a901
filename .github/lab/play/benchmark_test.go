package play

import (
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

const slowTape = `
-- planner 0/1 --
>>> submit
summary: Put a comma after hello
steps: [Edit words/words.go]
criteria: [{id: AC1, text: A comma follows hello}]
-- implementer 1/1 --
>>> edit
path: words/words.go
old: |
  func Greet(name string) string { return "hello " + name }
new: |
  func Greet(name string) string {
  	out := "hello, "
  	for range 200 {
  		out = string(append([]byte{}, out...))
  	}
  	return out + name
  }
-- implementer 1/2 --
>>> submit
summary: Put a comma after hello
` + servertest.Approved + `-- tester 1/1 --
@expect quality/speed
@expect words/words.go
>>> submit
failures:
  - {id: T1, cause: logic, analysis: "The copies in words/words.go are not needed", confidence: 0.9, fix: {description: "Copy nothing"}}
-- implementer 2/1 --
@expect Copy nothing
>>> write
path: words/words.go
content: "package words\n\nfunc Greet(name string) string { return \"hello, \" + name }\n"
-- implementer 2/2 --
>>> submit
summary: Copy nothing
addressed: [{id: T1, what: nothing is copied}]
`

// Covers U6: a change that slows a benchmark goes back with the file that it is in, and is
// verified once it is measured again and as quick as the base.
func TestBenchmarkGetsSlower(t *testing.T) {
	long(t)
	files := goFiles("  - {name: speed, use: go-bench, command: \"go test -run=^$ -bench=. -benchtime=20ms ./words\", worse_by: 30%}\n")
	files["words/words_test.go"] = "package words\n\nimport \"testing\"\n\nvar sink string\n\nfunc BenchmarkGreet(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tsink = Greet(\"Ann\")\n\t}\n}\n"
	ts := newServer(t, servertest.Options{Tape: slowTape, Files: files})
	ts.Label("acme")
	run, ok := ts.Within(5*time.Minute, func(r *pipeline.Run) bool {
		return r.State == pipeline.StateVerified || r.State == pipeline.StateWaiting
	})
	if !ok || run.State != pipeline.StateVerified || len(run.Iterations) != 2 || run.Counters.TestBounces != 1 {
		t.Fatalf("%s, %d iterations\n%s", run.State, len(run.Iterations), ts.Comments())
	}
	first, last := run.Iterations[0].Tests, run.Iterations[1].Tests
	if len(first.Failures) != 1 || first.Failures[0].Cause != pipeline.CauseQuality || !strings.Contains(first.Failures[0].Error+first.Failures[0].Analysis, "Greet") {
		t.Errorf("the first time: %+v", first.Failures)
	}
	if len(last.Measures) != 1 || !last.Measures[0].OK || last.Measures[0].Base == nil {
		t.Errorf("measured again: %+v", last.Measures)
	}
	t.Logf("%+v", first.Failures)
}
