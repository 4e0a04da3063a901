package github

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	a := &App{insts: map[int64]*installation{}, opts: Options{Clock: func() time.Time { return now }}}
	head := func(resource, limit, remaining, reset string) http.Header {
		h := http.Header{}
		h.Set("X-RateLimit-Resource", resource)
		h.Set("X-RateLimit-Limit", limit)
		h.Set("X-RateLimit-Remaining", remaining)
		h.Set("X-RateLimit-Reset", reset)
		return h
	}
	if got := a.Limits(); got != nil {
		t.Errorf("before any call: %v", got)
	}
	a.installation(9).lim.hear(head("core", "5000", "4999", "1700000600"))
	a.installation(9).lim.hear(head("core", "5000", "4998", "1700000600"))
	a.installation(9).lim.hear(head("graphql", "5000", "17", "1700000300"))
	a.installation(3).lim.hear(head("core", "12500", "12000", "1699999999")) // over: it is whole again
	for _, h := range []http.Header{head("made up", "1", "1", "1"), head("core", "", "1", "1"), head("core", "1", "x", "1"), head("core", "1", "1", ""), {}} {
		a.installation(9).lim.hear(h)
	}
	want := []Limit{
		{3, "core", 12500, 12500, time.Unix(1699999999, 0)},
		{9, "core", 5000, 4998, time.Unix(1700000600, 0)},
		{9, "graphql", 5000, 17, time.Unix(1700000300, 0)},
	}
	if diff := cmp.Diff(want, a.Limits()); diff != "" {
		t.Errorf("Limits() (-want +got)\n%s", diff)
	}
}

// What GitHub calls secondary limits is kept before it says so: 80 things made in a
// minute, 500 in an hour. Reads and changes of what is there are not among them.
func TestContentIsLimited(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	start, l := now, newLimiter()
	o := Options{MinWriteInterval: time.Second, Clock: func() time.Time { return now }}
	post := httptest.NewRequest(http.MethodPost, "/repos/a/b/issues/1/comments", nil)
	made := 0
	for now.Sub(start) < 3*time.Hour {
		if d := l.content(post, o); d > 0 {
			now = now.Add(d)
			continue
		}
		made++
		now = now.Add(200 * time.Millisecond)
		in := func(d time.Duration) (n int) {
			for _, at := range l.made {
				if now.Sub(at) < d {
					n++
				}
			}
			return n
		}
		if m, h := in(time.Minute), in(time.Hour); m > 80 || h > 500 {
			t.Fatalf("after %s: %d in a minute, %d in an hour", now.Sub(start), m, h)
		}
	}
	if made < 3*contentHour-contentHour/2 || made > 4*contentHour {
		t.Errorf("%d were made in three hours", made)
	}
	for range 1000 {
		if d := l.content(httptest.NewRequest(http.MethodPatch, "/x", nil), o); d > 0 {
			t.Fatal("a change of what is there waits")
		}
	}
}
