package server

import (
	"encoding/hex"
	"testing"

	"forge/cmd/forge/tracing/tracingtest"
	"forge/pipeline"
)

// A run of the real server arrives at a collector as one trace.
func TestServerTrace(t *testing.T) {
	r := tracingtest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	ts.s.traces.Close(t.Context()) // all that is finished is there now
	spans := r.Spans()
	tracingtest.Check(t, spans, map[string]int{"run": 1, "phase plan": 1, "phase implement": 1, "phase review": 1, "phase test": 1, "chat tape": 5, "execute_tool edit": 1,
		"execute_tool submit": 4, "publish": 2}, "greet", "comma", "hello", "tape.txtar", "/")
	if len(spans) > 0 && hex.EncodeToString(spans[0].TraceId) != run.Trace {
		t.Errorf("the trace is %x, the run's own %s", spans[0].TraceId, run.Trace)
	}
	if got := ts.s.traces.Stats(); got.Exported != int64(len(spans)) || got.Failed+got.Dropped > 0 {
		t.Errorf("Stats() = %+v, %d spans received", got, len(spans))
	}
}
