package production

import (
	"strings"
	"testing"
	"time"
)

// A check says that it fails after some failures in a row, and that it is well once; a
// look that shows nothing changes nothing. Covers P1.
func TestWatch(t *testing.T) {
	t.Parallel()
	ok, bad, lacks, none, unknown := Probe{Status: 200}, Probe{Status: 503}, Probe{Status: 200, Lacks: "ok"}, Probe{Why: "refused"}, Probe{Unknown: "no network"}
	for _, tt := range []struct {
		name   string
		probes []Probe
		want   string // a letter for each look: r resolved, f firing, - nothing
	}{
		{"well", []Probe{ok, ok, ok}, "r--"},
		{"one failure", []Probe{ok, bad, ok, bad, ok}, "r----"},
		{"three failures", []Probe{ok, bad, none, lacks, bad, ok, ok}, "r--ffr-"},
		{"nothing known between", []Probe{ok, bad, unknown, bad, unknown, bad, unknown, ok}, "r----f-r"},
		{"nothing known alone", []Probe{unknown, unknown, unknown, unknown}, "----"},
		{"down from the start", []Probe{none, none, none, none}, "--ff"},
	} {
		w := Watch{Check: Check{Name: "shop", URL: "https://shop.example.com/healthz", Repo: "acme/shop"}}
		var got strings.Builder
		for n, p := range tt.probes {
			p.At = received.Add(time.Duration(n) * time.Minute)
			switch o := w.Take(p); {
			case o == nil:
				got.WriteString("-")
			default:
				got.WriteString(string(o.Status[0]))
				if o.Environment != "production" || o.Title == "" || o.Health.Expected != 200 {
					t.Errorf("%s: %+v", tt.name, o)
				}
			}
		}
		if got.String() != tt.want {
			t.Errorf("%s: said %s, want %s", tt.name, got.String(), tt.want)
		}
	}
}
