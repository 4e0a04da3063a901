package play

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

// hangs is a test suite that reports one test, starts a process in the background
// and never ends.
const hangs = "echo TAP version 13\necho 1..2\necho ok 1 - begins\nsleep 1000001 &\nsleep 1000001\n"

// Tests that never end, at the base neither: nothing is called verified because
// another test passed; people read which command, how long and what to do; nothing
// goes on running.
func TestSuiteHangs(t *testing.T) {
	t.Parallel()
	ts := newServer(t, servertest.Options{Files: map[string]string{"test.sh": hangs}, TestTimeout: 300 * time.Millisecond})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate().Guard; g.Name != pipeline.GuardUnclean || len(run.Iterations) != 1 || run.Head == run.Base {
		t.Errorf("guard %+v in iteration %d, head %s", g, len(run.Iterations), run.Head)
	}
	ts.Says("`sh test.sh` did not end and was stopped after 300ms")
	ts.Says("tests.timeout_minutes in .github/forge.yml")
	if pids := left(t, "sleep", "1000001"); len(pids) > 0 {
		t.Errorf("the tests' processes %v are still there", pids)
	}
	ts.Comment("acme", "/forge accept")
	ts.UntilState(pipeline.StateAccepted)
}

// A change that makes the tests hang goes back like any other failure, and is lost
// neither.
func TestChangeHangs(t *testing.T) {
	long(t)
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, `-- implementer */1 --`, `-- implementer 1/1 --
>>> edit
path: greet.sh
old: "echo hello $1"
new: "sleep 1000002 & sleep 1000002"
-- tester 1/1 --
@expect did not end and was stopped after 3s
>>> submit
failures:
  - {id: T1, cause: logic, analysis: "greet.sh sleeps", confidence: 0.9, fix: {description: "Print instead of sleeping"}}
-- implementer 2/1 --
@expect Print instead of sleeping
>>> edit
path: greet.sh
old: "sleep 1000002 & sleep 1000002"
new: "echo hello, $1"
-- implementer 2/2 --
>>> submit
summary: Print instead of sleeping
addressed: [{id: T1, what: it prints}]
-- implementer 9/1 --`, 1)
	ts := newServer(t, servertest.Options{Tape: tape, TestTimeout: 3 * time.Second})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if len(run.Iterations) != 2 || !run.Iterations[0].Tests.Suites[0].TimedOut {
		t.Errorf("iterations: %+v", run.Iterations)
	}
	if pids := left(t, "sleep", "1000002"); len(pids) > 0 {
		t.Errorf("the tests' processes %v are still there", pids)
	}
}

// A model that never answers is given up after the server's limit, as the
// provider's fault.
func TestModelTimesOut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
	go silent.Serve(l)
	defer silent.Close()
	var skipped atomic.Int64
	after := func(d time.Duration) <-chan time.Time {
		if d < time.Second { // the call's own limit
			return time.After(d)
		}
		skipped.Add(int64(d))
		return time.After(0)
	}
	ts := newServer(t, servertest.Options{
		Now:   func() time.Time { return time.Now().Add(time.Duration(skipped.Load())) },
		Wire:  func(o *server.Options) { o.After = after },
		Files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "loop: {faults: 1}\n"},
		Env: map[string]string{"FORGE_MODEL": "openai/silent", "OPENAI_BASE_URL": "http://" + l.Addr().String() + "/v1",
			"OPENAI_API_KEY": "sk-test-0000000000", "FORGE_MODEL_TIMEOUT": "100ms"},
	})
	ts.Label("acme")
	run := ts.Until("waits for the provider", func(r *pipeline.Run) bool { return r.Await != nil && r.Await.Model })
	if run.State != pipeline.StateRunning || run.Counters.Faults != 0 || run.Await.Next.IsZero() || len(run.Iterations) != 0 {
		t.Errorf("it waits as %+v in state %s with %d faults", run.Await, run.State, run.Counters.Faults)
	}
	ts.Comment("acme", "/forge cancel")
	ts.UntilState(pipeline.StateCancelled)
}
