package server

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"forge/cmd/forge/dashboard/access"
	"forge/pipeline/record"

	"forge/cmd/forge/monitoring"
	"forge/learn/impact"
	"forge/learn/metrics"
	"forge/pipeline/store"
)

// scrape answers a monitor in Prometheus' formats. Numbers of runs and money are
// nobody else's business: it answers to who has the token, and without one to this
// machine alone.
type scrape struct {
	db    *store.DB
	token string // "": none is set
	log   *slog.Logger

	now     func() time.Time                            // nil: time.Now
	more    func(context.Context, *monitoring.Snapshot) // adds what is not in the database; may be nil
	sums    *sums                                       // nil: read each time
	process prometheus.Gatherer                         // of the Go runtime; may be nil
}

func (s scrape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.allows(r) {
		http.Error(w, "metrics are shown to this machine alone; to read them from elsewhere set metrics_token_file and send the token: Authorization: Bearer TOKEN", http.StatusForbidden)
		return
	}
	snap, err := s.snapshot(r.Context())
	if err != nil {
		s.log.Error("count for a monitor", "error", err)
		http.Error(w, "the database does not answer; see the log", http.StatusServiceUnavailable)
		return
	}
	forge := prometheus.NewRegistry()
	forge.MustRegister(snap)
	all := prometheus.Gatherers{forge}
	if s.process != nil {
		all = append(all, s.process)
	}
	promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError)}).ServeHTTP(w, r)
}

// sums are what is read of the daily sums. They change every five minutes, and to
// add up a year of them is most of the work, so they are kept for a minute.
type sums struct {
	mu      sync.Mutex
	at      time.Time
	counted []record.MetricRow
	figures metrics.Report
	memory  impact.Whole
}

// keepSums is how long sums are good for.
const keepSums = time.Minute

// into fills a snapshot with them, and brings them up to date when they are old.
func (c *sums) into(ctx context.Context, db *store.DB, snap *monitoring.Snapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := snap.At.Sub(c.at); c.at.IsZero() || age < 0 || age >= keepSums {
		counted, err := db.Sums(ctx, monitoring.Counted...)
		if err != nil {
			return err
		}
		figures, err := ReportMetrics(ctx, db, metrics.Options{Days: monitoring.FigureDays, Now: snap.At}, "")
		if err != nil {
			return err
		}
		drawn, err := db.Drawn(ctx, "")
		if err != nil {
			return err
		}
		c.at, c.counted, c.figures, c.memory = snap.At, counted, figures, impact.WholeOf(drawn)
	}
	snap.Sums, snap.Figures, snap.Memory = c.counted, c.figures, c.memory
	return nil
}

// snapshot counts. It makes four queries, whatever there is to count, and once a
// minute three more.
func (s scrape) snapshot(ctx context.Context) (*monitoring.Snapshot, error) {
	now := time.Now
	if s.now != nil {
		now = s.now
	}
	snap := &monitoring.Snapshot{At: now(), Version: Version()}
	var err error
	if snap.Gauges, err = s.db.Gauges(ctx, snap.At); err != nil {
		return nil, err
	}
	kept := s.sums
	if kept == nil {
		kept = &sums{}
	}
	if err := kept.into(ctx, s.db, snap); err != nil {
		return nil, err
	}
	if s.more != nil {
		s.more(ctx, snap)
	}
	return snap, nil
}

// allows reports whether a request may read the metrics.
func (s scrape) allows(r *http.Request) bool {
	if s.token != "" {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return ok && subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) == 1
	}
	return access.ThisMachine(r)
}
