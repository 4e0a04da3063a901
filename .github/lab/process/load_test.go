package process

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// reading is what a server's own metrics say at one moment.
type reading struct{ memory, heap, goroutines, files float64 }

// read asks a server.
func readMetrics(t *testing.T, url string) (r reading) {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	of := map[string]*float64{"process_resident_memory_bytes": &r.memory, "go_memstats_heap_inuse_bytes": &r.heap,
		"go_goroutines": &r.goroutines, "process_open_fds": &r.files}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if to := of[name]; to != nil {
			*to, _ = strconv.ParseFloat(value, 64)
		}
	}
	if r.memory == 0 || r.goroutines == 0 || r.files == 0 {
		t.Fatalf("the metrics lack the process: %+v", r)
	}
	return r
}

var pagesField = regexp.MustCompile(`pages=(\S+)`)

// Covers reliability 23: a server under load (runs one after the other, comments, a person
// who looks at every page) needs no more memory, goroutines and open files in the last
// quarter than in the second, and keeps no work tree of a run that is over. FORGE_SOAK is
// how long it lasts; default 1m.
func TestSoak(t *testing.T) {
	long(t)
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("FORGE_SOAK"), "1m"))
	if err != nil {
		t.Fatalf("FORGE_SOAK: %v", err)
	}
	l := onGreeter(t)
	p := l.serve()
	pages := pagesField.FindStringSubmatch(p.text())
	if pages == nil {
		t.Fatalf("no address of the pages: %s", p.text())
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var load sync.WaitGroup
	var runs, comments, seen atomic.Int64
	for range 2 {
		load.Go(func() { l.soakRuns(ctx, &runs, &comments) })
	}
	load.Go(func() { soakPages(t, ctx, pages[1], &seen) })
	var series []reading
	tick := time.NewTicker(lasts / 40)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			series = append(series, readMetrics(t, p.url))
		case <-ctx.Done():
		}
	}
	load.Wait()
	t.Logf("%s: %d runs, %d comments, %d pages, %d deliveries", lasts, runs.Load(), comments.Load(), seen.Load(), len(l.gh.Deliveries()))
	if runs.Load() == 0 {
		t.Errorf("no run came to its end: %+v", l.issueNow())
	}
	flat(t, series)
	l.noTrees()
}

// soakRuns has one run after the other made, talked about, and closed.
func (l *labTest) soakRuns(ctx context.Context, runs, comments *atomic.Int64) {
	for ctx.Err() == nil {
		issue, err := l.gh.As("acme").OpenIssue(e2eRepo, "The greeting lacks its comma", "It prints `hello Ann`.")
		if err == nil {
			err = l.gh.As("acme").Label(e2eRepo, issue, "forge")
		}
		if err != nil {
			l.t.Error(err)
			return
		}
		pull := 0
		for ctx.Err() == nil && pull == 0 {
			if _, err := l.gh.As("acme").Comment(e2eRepo, issue, "How is it going?"); err != nil {
				l.t.Error(err)
				return
			}
			comments.Add(1)
			wait(200)
			pulls, err := l.gh.Pulls(e2eRepo)
			if err != nil {
				l.t.Error(err)
				return
			}
			for _, p := range pulls {
				if !p.Draft && p.State == "open" && branchOf(issue).MatchString(p.Branch) {
					pull = p.Number
				}
			}
		}
		if pull == 0 { // the time is over
			if _, err := l.gh.As("acme").Comment(e2eRepo, issue, "/forge cancel"); err != nil {
				l.t.Error(err)
			}
			return
		}
		if err := l.gh.As("acme").Close(e2eRepo, pull); err != nil {
			l.t.Error(err)
			return
		}
		runs.Add(1)
	}
}

// branchOf is how the branch for an issue is called.
func branchOf(issue int) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`^forge/(issue-)?%d\b`, issue))
}

// soakPages looks at the pages, one after the other.
func soakPages(t *testing.T, ctx context.Context, pages string, seen *atomic.Int64) {
	for n := 0; ctx.Err() == nil; n++ {
		path := []string{"/", "/runs", "/runs/1", "/runs/1/events", "/memory", "/deliveries", "/insights", "/insights/learning", "/servers"}[n%9]
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, pages+path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if seen.Add(1); resp.StatusCode >= 500 {
				t.Errorf("GET %s: %s", path, resp.Status)
			}
		} else if ctx.Err() == nil {
			t.Errorf("GET %s: %v", path, err)
		}
		wait(100)
	}
}

// flat prints a series and wants the medians of its last quarter to be no more than those
// of its second, up to what one run more or less at work makes.
func flat(t *testing.T, series []reading) {
	t.Helper()
	for i, r := range series {
		t.Logf("%2d: %5.1f MiB, heap %5.1f MiB, %3.0f goroutines, %3.0f files", i, r.memory/(1<<20), r.heap/(1<<20), r.goroutines, r.files)
	}
	n := len(series) / 4
	if n == 0 {
		t.Fatalf("only %d readings", len(series))
	}
	median := func(of []reading, value func(reading) float64) float64 {
		var list []float64
		for _, r := range of {
			list = append(list, value(r))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	for _, c := range []struct {
		name        string
		value       func(reading) float64
		share, more float64
	}{
		{"bytes of memory", func(r reading) float64 { return r.memory }, 1.10, 8 << 20},
		{"bytes of heap", func(r reading) float64 { return r.heap }, 1.10, 8 << 20},
		{"goroutines", func(r reading) float64 { return r.goroutines }, 1.05, 10},
		{"open files", func(r reading) float64 { return r.files }, 1.05, 10},
	} {
		before, after := median(series[n:2*n], c.value), median(series[len(series)-n:], c.value)
		t.Logf("%s: %.0f, then %.0f", c.name, before, after)
		if after > before*c.share+c.more {
			t.Errorf("%s grow: from %.0f to %.0f", c.name, before, after)
		}
	}
}

// noTrees wants no work tree to be left soon after the last run is over.
func (l *labTest) noTrees() {
	l.t.Helper()
	var trees []string
	for begun := time.Now(); time.Since(begun) < time.Minute; wait(500) {
		var err error
		if trees, err = filepath.Glob(filepath.Join(l.dir, "state", "work", "trees", "*")); err != nil {
			l.t.Fatal(err)
		}
		if len(trees) == 0 {
			return
		}
	}
	l.t.Errorf("work trees stay: %q", trees)
}
