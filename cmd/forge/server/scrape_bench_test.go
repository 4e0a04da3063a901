package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"forge/cmd/forge/monitoring"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// A scrape with 10,000 runs, and the sums of every metric for each day of a year.
func BenchmarkScrape(b *testing.B) {
	const runs = 10_000
	log := slog.New(slog.DiscardHandler)
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "forge.db"), log)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now := time.Now().UTC()
	for i := range runs {
		_, err := db.CreateRun(b.Context(), fmt.Sprint("run", i), pipeline.Start{Repo: pipeline.Repo{ID: int64(i%50 + 1), Owner: "acme", Name: fmt.Sprint("shop", i%50), DefaultBranch: "main"},
			Task: pipeline.Task{Issue: i + 1, Title: "Do it"}, Config: config.Default(), Base: "base", Branch: "forge/it"}, now.Add(-time.Duration(i)*time.Minute), "", nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	rows := 0
	_, err = db.MeasureRuns(b.Context(), func(events []pipeline.Event) (out []record.MetricRow) {
		if events[0].Run != 1 {
			return nil
		}
		for day := range 365 {
			for _, d := range metrics.Catalogue() {
				labels := []string{""}
				if d.By != "" {
					labels = []string{"plan", "implement", "review", "test"}
				}
				for _, label := range labels {
					for bucket := range 1 + 9*number(d.Dist) {
						out = append(out, record.MetricRow{Day: metrics.DayOf(now.AddDate(0, 0, -day)), Metric: d.Key, Label: label, Bucket: 60 + 8*bucket, N: 3, Total: 2})
					}
				}
			}
		}
		rows = len(out)
		return out
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		sums *sums
	}{{"first in a minute", nil}, {"further", &sums{}}} {
		b.Run(c.name, func(b *testing.B) {
			s := scrape{db: db, log: log, sums: c.sums, process: monitoring.Process()}
			benchScrape(b, s)
			b.ReportMetric(float64(rows), "daily-sums")
		})
	}
}

func benchScrape(b *testing.B, s scrape) {
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
	r.RemoteAddr = "127.0.0.1:1"
	for b.Loop() {
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
	}
}

func number(ok bool) int {
	if ok {
		return 1
	}
	return 0
}
