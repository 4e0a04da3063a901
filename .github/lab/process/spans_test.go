package process

import (
	"encoding/hex"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// checkSpans holds that spans are one whole trace with at least so many spans of
// some names, and that no word of an issue, a prompt, code or a path is in it.
func checkSpans(t *testing.T, spans []*otlp.Span, atLeast map[string]int, never ...string) {
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
