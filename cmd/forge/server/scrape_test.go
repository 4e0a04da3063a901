package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Covers M2: the metrics go to who has the token, or to this machine alone, and
// never through a proxy.
func TestScrapeAccess(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, c := range []struct {
		name, token, from, header, value string
		want                             int
	}{
		{"this machine", "", "127.0.0.1:999", "", "", http.StatusOK},
		{"this machine, IPv6", "", "[::1]:999", "", "", http.StatusOK},
		{"elsewhere", "", "192.0.2.7:999", "", "", http.StatusForbidden},
		{"nowhere", "", "what", "", "", http.StatusForbidden},
		{"a proxy", "", "127.0.0.1:999", "X-Forwarded-For", "192.0.2.7", http.StatusForbidden},
		{"a proxy, RFC 7239", "", "127.0.0.1:999", "Forwarded", "for=192.0.2.7", http.StatusForbidden},
		{"a proxy that says nothing", "", "127.0.0.1:999", "Host", "forge.example", http.StatusForbidden},
		{"nginx, which says nothing", "", "127.0.0.1:999", "Proto", "HTTP/1.0", http.StatusForbidden},
		{"token through a proxy that says nothing", "s3cret", "127.0.0.1:999", "Authorization", "Bearer s3cret", http.StatusOK},
		{"token", "s3cret", "192.0.2.7:999", "Authorization", "Bearer s3cret", http.StatusOK},
		{"token through a proxy", "s3cret", "127.0.0.1:999", "Authorization", "Bearer s3cret", http.StatusOK},
		{"wrong token", "s3cret", "127.0.0.1:999", "Authorization", "Bearer s3cre", http.StatusForbidden},
		{"no token", "s3cret", "127.0.0.1:999", "", "", http.StatusForbidden},
		{"empty token", "", "192.0.2.7:999", "Authorization", "Bearer ", http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/metrics", nil)
		r.RemoteAddr = c.from
		switch c.header {
		case "":
		case "Host":
			r.Host = c.value
		case "Proto":
			r.ProtoMajor, r.ProtoMinor = 1, 0
		default:
			r.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		scrape{db: db, token: c.token, log: slog.New(slog.DiscardHandler)}.ServeHTTP(w, r)
		if w.Code != c.want || (w.Code == http.StatusOK) != strings.Contains(w.Body.String(), "# HELP forge_runs ") {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body.String())
		}
	}
}

// What is measured is what the database is given.
func TestMeasured(t *testing.T) {
	at := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	events := []pipeline.Event{{ID: "a", Run: 1, Seq: 1, Type: pipeline.EventPublishFailed, Time: at}}
	want := []record.MetricRow{{Day: 20260308, Metric: metrics.PublishFailure, N: 1, Total: 1}}
	if diff := cmp.Diff(want, metrics.Of(events)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
