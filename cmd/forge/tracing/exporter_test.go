package tracing

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"forge/cmd/forge/tracing/tracingtest"
	"forge/pipeline"
)

// Spans arrive over HTTP as they were derived, with the ids and times of the
// events, under the name and headers that the standard variables give.
func TestExporter(t *testing.T) {
	r := tracingtest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
	t.Setenv("OTEL_SERVICE_NAME", "forge-test")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	events := play(t, "faults.txtar", func(n int) int { return n - 1 })
	x, err := New(t.Context(), Options{Version: "v1", Events: func(_ context.Context, run, after int64) ([]pipeline.Event, error) {
		return events[after:], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	x.OnEvents(7, events)
	x.Close(t.Context())
	want := map[string]Span{}
	for _, s := range spansOf(events) {
		want[s.ID.String()] = s
	}
	if got := x.Stats(); got != (Stats{Exported: int64(len(want))}) {
		t.Errorf("Stats() = %+v, want %d exported", got, len(want))
	}
	for _, s := range r.Spans() {
		w, ok := want[hex.EncodeToString(s.SpanId)]
		delete(want, hex.EncodeToString(s.SpanId))
		parent := ""
		if w.Parent.IsValid() {
			parent = w.Parent.String()
		}
		if !ok || s.Name != w.Name || hex.EncodeToString(s.TraceId) != w.Trace.String() || hex.EncodeToString(s.ParentSpanId) != parent ||
			int64(s.StartTimeUnixNano) != w.Start.UnixNano() || int64(s.EndTimeUnixNano) != w.End.UnixNano() || len(s.Attributes) != len(w.Attributes) ||
			len(s.Events) != len(w.Marks) || (s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR) != w.Failed || len(s.Links) != 0 != w.Link.IsValid() {
			t.Errorf("received %+v, want %+v", s, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("not received: %v", want)
	}
	if got := r.Header("Authorization"); got != "Bearer abc" {
		t.Errorf("the header of OTEL_EXPORTER_OTLP_HEADERS arrived as %q", got)
	}
	for key, want := range map[string]string{"service.name": "forge-test", "service.version": "v1", "deployment.environment.name": "staging",
		"telemetry.sdk.language": "go"} {
		if got := r.Resource(key); got != want {
			t.Errorf("resource %s = %q, want %q", key, got, want)
		}
	}
}

// stuck is a collector that answers when it is told to.
type stuck struct {
	asked  chan struct{}
	answer chan error
}

func (s stuck) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	select {
	case err := <-s.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s stuck) Shutdown(context.Context) error { return nil }

// A collector that does not answer costs spans, and nothing else: the queue is
// bounded, what does not fit is counted, and the log says so once a minute.
func TestSlowCollector(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	s := stuck{asked: make(chan struct{}, 1), answer: make(chan error)}
	x, err := New(t.Context(), Options{Exporter: s, Queue: 10, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now },
		Events: func(context.Context, int64, int64) ([]pipeline.Event, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	spans := spansOf(play(t, "faults.txtar", plain))
	for _, at := range []time.Duration{0, 30 * time.Second, 61 * time.Second} {
		now = now.Add(at)
		for range 100 {
			x.emit(spans[0]) // returns at once although nobody answers
		}
	}
	if got := x.Stats(); got != (Stats{Dropped: 290}) {
		t.Errorf("Stats() = %+v, want 10 of 300 in the queue and the others dropped", got)
	}
	if n := strings.Count(log.String(), "traces are lost"); n != 2 {
		t.Errorf("the log tells of it %d times in 91 s, want 2:\n%s", n, log.String())
	}
	close(s.answer) // nil from here on
	x.Close(t.Context())
	if got := x.Stats(); got != (Stats{Exported: 10, Dropped: 290}) {
		t.Errorf("after the collector answered: %+v", got)
	}
}

// A collector that refuses is counted, too.
func TestRefusedSpans(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := stuck{asked: make(chan struct{}, 1), answer: make(chan error, 1)}
	s.answer <- io.ErrUnexpectedEOF
	events := play(t, "clean.txtar", plain)
	x, err := New(t.Context(), Options{Exporter: s, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Events: func(_ context.Context, _, after int64) ([]pipeline.Event, error) { return events[after:], nil }})
	if err != nil {
		t.Fatal(err)
	}
	x.OnEvents(7, events)
	x.Close(t.Context())
	if got := x.Stats(); got != (Stats{Failed: int64(len(spansOf(events)))}) || !strings.Contains(log.String(), "unexpected EOF") {
		t.Errorf("Stats() = %+v, the log: %s", got, log.String())
	}
}

func TestEnabled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, false},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		if got := Enabled(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("Enabled(%v) = %v", c.env, got)
		}
	}
}

// Without an exporter everything is a no-op.
func TestNilExporter(t *testing.T) {
	t.Parallel()
	var x *Exporter
	x.OnEvents(1, []pipeline.Event{{Seq: 1}})
	x.Close(t.Context())
	if diff := cmp.Diff(Stats{}, x.Stats()); diff != "" {
		t.Error(diff)
	}
}

// spansOf returns the finished spans of a run, given all its events in order.
func spansOf(events []pipeline.Event) []Span {
	var f Fold
	var out []Span
	for _, e := range events {
		out = append(out, f.Apply(e)...)
	}
	return out
}
