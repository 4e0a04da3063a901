package main

import (
	"encoding/hex"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"forge/cmd/forge/tracing/tracingtest"
	"forge/pipeline"
)

// checkTrace holds that spans are one whole trace with at least so many spans of
// some names, and that no word of an issue, a prompt, code or a path is in it.
func checkTrace(t *testing.T, spans []*otlp.Span, atLeast map[string]int, never ...string) {
	t.Helper()
	ids, traces, names := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, s := range spans {
		ids[hex.EncodeToString(s.SpanId)] = true
		traces[hex.EncodeToString(s.TraceId)] = true
		names[s.Name]++
	}
	if len(traces) != 1 || len(ids) != len(spans) {
		t.Errorf("%d traces, %d ids of %d spans", len(traces), len(ids), len(spans))
	}
	for name, n := range atLeast {
		if names[name] < n {
			t.Errorf("%d spans %q, want at least %d: %v", names[name], name, n, names)
		}
	}
	for _, s := range spans {
		if p := hex.EncodeToString(s.ParentSpanId); p != "" && !ids[p] {
			t.Errorf("the parent of %s is missing", s.Name)
		}
		texts := []string{s.Name, s.Status.GetMessage()}
		attributes := s.Attributes
		for _, e := range s.Events {
			texts, attributes = append(texts, e.Name), append(attributes, e.Attributes...)
		}
		for _, a := range attributes {
			if a.Key != "vcs.repository.name" {
				texts = append(texts, a.Value.GetStringValue())
			}
		}
		for _, text := range texts {
			for _, word := range never {
				if strings.Contains(text, word) {
					t.Errorf("%q is in the span %s: %q", word, s.Name, text)
				}
			}
		}
	}
}

// A run of the real server arrives at a collector as one trace.
func TestServerTrace(t *testing.T) {
	r := tracingtest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	of := newOffice(t, officeOptions{})
	of.label("acme")
	run := of.untilState(pipeline.StateVerified)
	of.s.traces.Close(t.Context()) // all that is finished is there now
	spans := r.Spans()
	checkTrace(t, spans, map[string]int{"run": 1, "phase plan": 1, "phase implement": 1, "phase review": 1, "phase test": 1, "chat tape": 5, "execute_tool edit": 1,
		"execute_tool submit": 4, "publish": 2}, "greet", "comma", "hello", "tape.txtar", "/")
	if len(spans) > 0 && hex.EncodeToString(spans[0].TraceId) != run.Trace {
		t.Errorf("the trace is %x, the run's own %s", spans[0].TraceId, run.Trace)
	}
	if got := of.s.traces.Stats(); got.Exported != int64(len(spans)) || got.Failed+got.Dropped > 0 {
		t.Errorf("Stats() = %+v, %d spans received", got, len(spans))
	}
}
