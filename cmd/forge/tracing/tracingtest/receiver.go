// Package tracingtest is a collector of OpenTelemetry traces on this machine, for
// tests: OTLP over HTTP, decoded as the protocol buffers that it is.
package tracingtest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver takes traces at URL.
type Receiver struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]string
	headers  http.Header
}

// New starts a receiver for the time of a test.
func New(t *testing.T) *Receiver {
	r := &Receiver{t: t, resource: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

// Spans are all that have arrived.
func (r *Receiver) Spans() []*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Resource is an attribute of the last sender.
func (r *Receiver) Resource(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resource[key]
}

// Header is one of the last request's.
func (r *Receiver) Header(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers.Get(key)
}

func (r *Receiver) take(w http.ResponseWriter, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			r.t.Errorf("a request that says it is compressed: %v", err)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	var in collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(data, &in)
	}
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
		r.t.Errorf("a request to %s with %s: %v", req.URL.Path, req.Header.Get("Content-Type"), err)
		http.Error(w, "not what a collector takes", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = req.Header
	for _, rs := range in.ResourceSpans {
		for _, a := range rs.Resource.GetAttributes() {
			r.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
}
