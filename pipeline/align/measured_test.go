package align

import "testing"

func TestOver(t *testing.T) {
	t.Parallel()
	ms := func(name string, n float64) Measured { return Measured{Name: name, Number: n} }
	kb := func(name string, n float64) Measured { return Measured{Name: name, Size: true, Number: n * 1e3} }
	for _, c := range []struct {
		m       Measured
		written string
		over    bool
	}{
		{ms("search-p95", 720), "The search answers within 500 ms", true},
		{ms("search-p95", 500), "The search answers within 500 ms", false},
		{ms("search-p95", 720), "p95 of the search is at most 500 ms.", true},
		{ms("search-p99", 720), "p95 of the search is at most 500 ms.", false}, // another figure
		{ms("search", 720), "p95 of the search is at most 500 ms.", false},     // who knows which
		{ms("search-p95", 720), "The search takes less than 0.5 s", true},
		{ms("search-p95", 720), "search-p95 is at most 500 ms", true},
		{ms("latency-p95", 720), "latency-p95 stays under 500 ms", true},
		{ms("latency-p95", 720), "The search answers within 500 ms", false},
		{ms("page", 720), "A page answers within 500 ms", false}, // says nothing
		{ms("checkout-page", 720), "The checkout page answers within 500 ms", true},
		{ms("search-p95", 720), "A cached search answers within 500 ms", false},
		{ms("search-p95", 720), "The search answers within 500 ms, or within 2 s for big tenants", false},
		{ms("search-p95", 720), "The search gives up after a timeout of at most 500 ms", false},
		{ms("search-p95", 720), "Today the search takes 400 ms", false},
		{ms("search-p95", 720), "Should the search answer within 500 ms?", false},
		{ms("search-p95", 720), "The search is fast", false},
		{kb("bundle", 620), "The bundle is at most 500 kB", true},
		{kb("bundle", 480), "The bundle is at most 500 kB", false},
		{kb("bundle", 620), "The bundle loads within 500 ms", false},
		{kb("bundle-gzip", 620), "The bundle is smaller than 500 kB gzipped", true},
		{kb("bundle-memory", 620), "The bundle is at most 500 kB", false},
	} {
		if got := c.m.Over(c.written); (got != "") != c.over {
			t.Errorf("%s of %g, %q: %q, want over: %v", c.m.Name, c.m.Number, c.written, got, c.over)
		}
	}
}
