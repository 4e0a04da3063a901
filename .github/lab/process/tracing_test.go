package process

import (
	"testing"

	"forge/cmd/forge/tracing/tracingtest"
)

// The demo's run with its two bounces arrives at a collector as one trace. It
// compiles the demo's repository from nothing, which is what takes long.
func TestDemoTrace(t *testing.T) {
	long(t)
	r := tracingtest.New(t)
	if out, err := forge(t.Context(), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL}, "demo"); err != nil {
		t.Fatalf("forge demo: %v\n%s", err, out)
	}
	checkSpans(t, r.Spans(), map[string]int{"run": 1, "phase plan": 1, "phase implement": 3, "phase review": 3, "phase test": 2, "chat tape": 8,
		"execute_tool read": 1, "execute_tool edit": 3, "execute_tool submit": 5, "publish": 3}, "cart", "discount", "Total", "tape.txtar", "/")
}
