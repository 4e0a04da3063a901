package tracing

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"forge/cmd/forge/tracing/tracingtest"
)

func oneSpan() []*otlp.ResourceSpans {
	return []*otlp.ResourceSpans{{ScopeSpans: []*otlp.ScopeSpans{{Spans: []*otlp.Span{{Name: "a span"}}}}}}
}

func environment(vars map[string]string) func(string) string {
	return func(key string) string { return vars[key] }
}

func TestClientCompresses(t *testing.T) {
	t.Parallel()
	r := tracingtest.New(t)
	c, err := newClient(environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL + "/", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
		"OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=one, authorization=Bearer%20abc", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-tenant=two"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.UploadTraces(t.Context(), oneSpan()); err != nil {
		t.Fatal(err)
	}
	if got := r.Spans(); len(got) != 1 || got[0].Name != "a span" {
		t.Errorf("received %v", got)
	}
	for name, want := range map[string]string{"Content-Encoding": "gzip", "X-Tenant": "two", "Authorization": "Bearer abc"} {
		if got := r.Header(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A collector that is busy is asked again, after the time that it names at the least;
// one that refuses is not.
func TestClientRetries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answers []int
		asked   int
		waits   []time.Duration
		fails   string
	}{
		{answers: []int{200}, asked: 1},
		{answers: []int{503, 429, 200}, asked: 3, waits: []time.Duration{7 * time.Second, 7 * time.Second}},
		{answers: []int{502, 504, 503, 200}, asked: 4, waits: []time.Duration{7 * time.Second, 7 * time.Second, 8 * time.Second}},
		{answers: []int{400}, asked: 1, fails: "400 Bad Request: what it says"},
	} {
		asked, path := 0, ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status := c.answers[asked]
			asked, path = asked+1, r.URL.Path
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			if status >= 300 {
				w.Write([]byte("what it says\n"))
			}
		}))
		x, err := newClient(environment(map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": s.URL + "/in/here"}))
		if err != nil {
			t.Fatal(err)
		}
		var waits []time.Duration
		x.after = func(d time.Duration) <-chan time.Time {
			waits = append(waits, d)
			now := make(chan time.Time, 1)
			now <- time.Time{}
			return now
		}
		err = x.UploadTraces(t.Context(), oneSpan())
		s.Close()
		if asked != c.asked || path != "/in/here" || len(waits) != len(c.waits) {
			t.Errorf("%v: asked %d times at %s, waited %v; want %d and %v", c.answers, asked, path, waits, c.asked, c.waits)
		}
		for i := range waits {
			if waits[i] != c.waits[i] {
				t.Errorf("%v: waited %v, want %v", c.answers, waits, c.waits)
			}
		}
		if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%v: %v, want %q", c.answers, err, c.fails)
		}
	}
}

// The SDK gives a batch its time: a collector that is away does not hold it for longer.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c, err := newClient(environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.after = func(time.Duration) <-chan time.Time {
		cancel()
		return nil
	}
	if err := c.UploadTraces(ctx, oneSpan()); err == nil {
		t.Error("nobody took the spans, and there was no error")
	}
}

// A collector with a certificate of its own is believed by the file that is named.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newClient(environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": file}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.UploadTraces(t.Context(), oneSpan()); err != nil {
		t.Error(err)
	}
}

func TestClientSettings(t *testing.T) {
	t.Parallel()
	const at = "OTEL_EXPORTER_OTLP_ENDPOINT"
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{at: "localhost:4318"}, at + " is no address such as"},
		{map[string]string{at: "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": Forge speaks http/protobuf`},
		{map[string]string{at: "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "TRACES_PROTOCOL"},
		{map[string]string{at: "http://c:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, `OTEL_EXPORTER_OTLP_TIMEOUT is "10s", want milliseconds`},
		{map[string]string{at: "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "zstd"}, "want gzip or none"},
		{map[string]string{at: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=b,topsecret"}, "OTEL_EXPORTER_OTLP_HEADERS: part 2 is not name=value"},
		{map[string]string{at: "https://c:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE": empty}, "holds no certificate in PEM"},
		{map[string]string{at: "https://c:4318", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": empty}, "CLIENT_CERTIFICATE and …CLIENT_KEY"},
	} {
		_, err := newClient(environment(c.vars))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%v: %v, want %q", c.vars, err, c.want)
		}
	}
}
