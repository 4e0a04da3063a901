package incidents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// watched is a bench whose server measures acme/shop by a check and a query.
type watched struct {
	*bench
	h      *fakeActions
	status atomic.Int64 // that the service answers
	errors atomic.Value // that the query shows since the deployment; "" for no data, "old" for none of late
	asked  atomic.Int64
	opts   Options
}

func newWatched(t *testing.T, p config.Production) *watched {
	t.Helper()
	w := &watched{bench: newBench(t), h: newFakeActions(p)}
	w.status.Store(200)
	w.errors.Store("0.01")
	shop := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(w.status.Load())) }))
	t.Cleanup(shop.Close)
	prometheus := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		value := w.errors.Load().(string)
		if end := r.FormValue("end"); end <= fmt.Sprintf("%d.000", start.Unix()) {
			value = "0.01"
		}
		if r.URL.Path != "/api/v1/query_range" || r.FormValue("query") != "sum(x)" {
			rw.WriteHeader(http.StatusBadRequest)
		}
		at, err := strconv.ParseFloat(r.FormValue("end"), 64)
		if value == "old" {
			value, at = "0.01", at-121
		}
		result := fmt.Sprintf(`{"metric":{},"values":[[%f,%q],[%f,%q],[%f,"NaN"]]}`, at-2, value, at-1, value, at)
		if err != nil {
			rw.WriteHeader(http.StatusBadRequest)
		}
		if value == "" {
			result = ""
		}
		fmt.Fprintf(rw, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, result)
	}))
	t.Cleanup(prometheus.Close)
	w.opts = Options{DB: w.DB, Hooks: w.Hooks, Log: w.Log, Now: func() time.Time { return w.now }, Code: w.h, Teller: w.h, Actions: w.h,
		Checks: []settings.HealthCheck{{Name: "shop", URL: shop.URL, Repo: "acme/shop", Expect: 200, Private: true}},
		Queries: []settings.Query{{Name: "error_rate", Prometheus: settings.Prometheus{Name: "main", URL: prometheus.URL}, Repo: "acme/shop",
			Query: "sum(x)", Max: 0.02, WorseBy: 0.5, Window: 10 * time.Minute}},
		Take: func(ctx context.Context, guid, event string, payload []byte) error {
			return w.DB.KeepDeliveries(ctx, []record.Delivery{{GUID: guid, Event: event, Received: w.now, Payload: payload, Lane: Lane}})
		}}
	w.restart()
	return w
}

// A panic over one deployment is an error, and the next look comes. Covers reliability 9.
func TestPanicOverADeployment(t *testing.T) {
	t.Parallel()
	s := New(Options{Log: slog.New(slog.DiscardHandler)})
	if err := s.guarded(t.Context(), func() error { panic("a poisonous deployment") }); err == nil || !strings.Contains(err.Error(), "a poisonous deployment") {
		t.Errorf("guarded: %v", err)
	}
}

// restart is the same server after a restart.
func (w *watched) restart() { w.Service = New(w.opts) }

// minutes lets time pass, with a look each minute, and restarts in between.
func (w *watched) minutes(n int) {
	w.t.Helper()
	for range n {
		w.now = w.now.Add(time.Minute)
		w.must(w.Bake(w.t.Context()))
		w.must(w.Round(w.t.Context()))
		w.must(w.Follow(w.t.Context()))
		w.restart()
	}
}

func (w *watched) deploy(id int64, environment string) {
	w.t.Helper()
	w.send("deployment_status", strings.ReplaceAll(deployment(id, "success", fmt.Sprint(id), w.now), `"production"`, fmt.Sprintf("%q", environment)))
}

// said lists what was said to runs, and at pull requests.
func (w *watched) said() string {
	var out []string
	for _, m := range []map[string]string{w.h.rollouts, w.h.comments} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, k+": "+m[k])
		}
	}
	return strings.Join(out, "\n")
}

// A deployment of Forge's work is measured for its whole time, across restarts, and then
// its run and its pull request are told that it is healthy. Covers V12.
func TestBakeIsHealthy(t *testing.T) {
	t.Parallel()
	w := newWatched(t, config.Production{BakeMinutes: 5})
	w.opts.Checks[0].Repo, w.opts.Queries[0].Repo = "Acme/Shop", "Acme/Shop" // letter case does not count
	w.restart()
	w.deploy(1, "production")
	w.must(w.Bake(t.Context()))
	w.deploy(2, "staging") // which is not measured, nor one that is watched
	w.minutes(8)
	want := strings.TrimSpace(`
 1/1/healthy/10:05:00: in production, healthy since 2026-03-01 10:00 UTC
 1/1/watched/10:00:00: in production since 2026-03-01 10:00 UTC, watched until 2026-03-01 10:05 UTC
acme/shop bake/1/healthy #41: **In production, healthy since 2026-03-01 10:00 UTC**

- shop: passed 6 of 6 looks
- error_rate: passed 6 of 6 looks; last 0.01, before the deployment 0.01`)
	if got := strings.TrimSpace(w.said()); got != want {
		t.Errorf("said\n%s\nwant\n%s", got, want)
	}
	if rows, err := w.DB.Incidents(t.Context(), store.IncidentFilter{}); err != nil || len(rows) != 0 {
		t.Errorf("incidents %+v, %v", rows, err)
	}
}

// A query that gets worse after the deployment is an incident that is attributed to it,
// and over when the query is as before.
func TestBakeIsUnhealthy(t *testing.T) {
	t.Parallel()
	w := newWatched(t, config.Production{BakeMinutes: 30})
	w.deploy(1, "production")
	w.minutes(2)
	w.errors.Store("0.3")
	w.minutes(4)
	i := w.incident(1)
	if i.Kind != production.KindAnomaly || i.Severity != production.SeverityCritical || i.Title != "error_rate is 0.3, over 0.02" ||
		*i.First.Anomaly.Baseline != 0.01 || i.Suspects[0].Deployment != 1 {
		t.Errorf("%+v", i)
	}
	if got := w.said(); !strings.Contains(got, "unhealthy: ") || !strings.Contains(got, "bake/1/unhealthy #41") || strings.Contains(got, "healthy since") {
		t.Errorf("said\n%s", got)
	}
	w.errors.Store("0.01")
	w.minutes(5)
	if i := w.incident(1); i.State != production.StateRecovering {
		t.Errorf("it is %s", i.State)
	}
	asked := w.asked.Load()
	w.minutes(3)
	if n := w.asked.Load() - asked; n != 0 {
		t.Errorf("%d more requests for what is over", n)
	}
}

// What showed something only in the beginning is not healthy.
func TestBakeIsBlindAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWatched(t, config.Production{BakeMinutes: 5})
	w.deploy(1, "production")
	w.minutes(4)
	w.errors.Store("old")
	w.minutes(6)
	if got := w.said(); strings.Contains(got, "healthy since") || !strings.Contains(got, "whether it is healthy is not known: error_rate showed nothing in ") ||
		!strings.Contains(got, "its last value is of 10:0") {
		t.Errorf("said\n%s", got)
	}
}

// What shows nothing is never healthy, and no incident.
func TestBakeIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWatched(t, config.Production{BakeMinutes: 5})
	w.deploy(1, "production")
	w.errors.Store("")
	w.minutes(8)
	if got := w.said(); !strings.Contains(got, "whether it is healthy is not known: error_rate showed nothing in 5 of 5 looks: there is no data") || strings.Contains(got, "healthy since") {
		t.Errorf("said\n%s", got)
	}
	if rows, _ := w.DB.Incidents(t.Context(), store.IncidentFilter{}); len(rows) != 0 {
		t.Errorf("incidents %+v", rows)
	}
}

// Nothing is looked at where the settings want nothing, or the server measures nothing.
func TestBakeIsOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings config.Production
		change   func(*watched)
		reads    int
	}{
		"by the settings":   {config.Production{}, func(*watched) {}, 1},
		"other environment": {config.Production{BakeMinutes: 5, Environments: []string{"staging"}}, func(*watched) {}, 1},
		"no measures":       {config.Production{BakeMinutes: 5}, func(w *watched) { w.opts.Checks, w.opts.Queries = nil, nil }, 0},
		"other repository":  {config.Production{BakeMinutes: 5}, func(w *watched) { w.opts.Checks[0].Repo, w.opts.Queries[0].Repo = "acme/web", "acme/web" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t, c.settings)
			c.change(w)
			w.restart()
			w.deploy(1, "production")
			for range 3 {
				w.must(w.Bake(t.Context()))
			}
			if rows, _ := w.DB.Bakes(t.Context(), store.BakeFilter{}); len(rows) != 0 || w.asked.Load() != 0 || w.h.reads != c.reads || w.said() != "" {
				t.Errorf("%d watched, %d requests, %d readings of the settings, said %q", len(rows), w.asked.Load(), w.h.reads, w.said())
			}
		})
	}
}

// Killed at any moment, what is to be said is said once.
func TestBakeAfterKill(t *testing.T) {
	t.Parallel()
	for after := range 8 {
		w := newWatched(t, config.Production{BakeMinutes: 2})
		w.deploy(1, "production")
		points, died := 0, errors.New("killed")
		w.h.at = func(string) error {
			if points++; points == after {
				return died
			}
			return nil
		}
		for range 6 {
			w.now = w.now.Add(time.Minute)
			if err := w.Bake(t.Context()); err != nil && !errors.Is(err, died) {
				t.Fatal(err)
			}
			w.restart()
		}
		if n := len(w.h.rollouts); n == 0 || n > 2 || len(w.h.comments) != 1 || !strings.Contains(w.said(), "/healthy/") {
			t.Errorf("killed at %d: said\n%s", after, w.said())
		}
	}
}

// What Prometheus may answer that shows nothing, and why.
func TestReadWindow(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`<html>`: "answers 200, and not as Prometheus does",
		`{"status":"error","error":"parse error: x"}`:                                                                                                  "main answers 200: parse error: x",
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`:                                                                              "there is no data",
		`{"status":"success","data":{"resultType":"matrix","result":[{},{}]}}`:                                                                         "the query has 2 results: make it one",
		`{"status":"success","data":{"resultType":"scalar","result":[]}}`:                                                                              "make it one",
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"NaN"],[2,"NaN"],[3,"1"],[4,7]]}]}}`:                                "too little data",
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"0"],[2,"+Inf"],[3,"1"],[4,"1"]]}]}}`:                               "infinite",
		`{"status":"success","warnings":["store 2 is away"],"data":{"resultType":"matrix","result":[{"values":[[1,"2"],[2,"4"]]}]}}`:                   "in part: store 2 is away",
		`{"status":"success","warnings":["PromQL info: it may be no counter"],"data":{"resultType":"matrix","result":[{"values":[[1,"2"],[3,"4"]]}]}}`: "",
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"2"],[2,"NaN"],[3,"4"]],"metric":{"a":1}}]}}`:                       "",
	} {
		w, why := readWindow(200, []byte(body), "main")
		if !strings.Contains(why, want) || (why == "") != (want == "") || (w == nil) == (want == "") {
			t.Errorf("%s: %+v, %q, want %q", body, w, why, want)
		}
		if w != nil && (w.Mean != 3 || w.Peak != 4 || w.Points != 2 || w.Last.Unix() != 3) {
			t.Errorf("%+v", w)
		}
	}
}

// A deployment that was not to be watched is, once the settings say so; watches of one
// round look at a health check once.
func TestBakeIsSwitchedOn(t *testing.T) {
	t.Parallel()
	w := newWatched(t, config.Production{})
	w.deploy(1, "production")
	w.must(w.Bake(t.Context()))
	w.h.settings = config.Production{BakeMinutes: 60}
	w.now = w.now.Add(2 * time.Minute)
	w.must(w.Bake(t.Context()))
	if rows, _ := w.DB.Bakes(t.Context(), store.BakeFilter{}); len(rows) != 0 {
		t.Errorf("%d watched at once", len(rows))
	}
	w.now = w.now.Add(9 * time.Minute)
	w.must(w.Bake(t.Context()))
	if rows, _ := w.DB.Bakes(t.Context(), store.BakeFilter{}); len(rows) != 1 {
		t.Errorf("%d watched", len(rows))
	}
	looks, shared := 0, answers{}
	for range 3 {
		shared.probe("shop", func() production.Probe { looks++; return production.Probe{Status: 200} })
	}
	from := w.now.Add(-time.Minute)
	before := w.asked.Load()
	for range 3 {
		if got, why := shared.window(t.Context(), w.opts.Queries[0], from, w.now); got == nil {
			t.Error(why)
		}
	}
	if n := w.asked.Load() - before; looks != 1 || n != 1 {
		t.Errorf("%d looks, %d requests", looks, n)
	}
}
