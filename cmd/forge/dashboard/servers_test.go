package dashboard

import (
	"testing"
	"time"

	"forge/pipeline/store"
)

// The servers stand on a page with how they are, for those who see everything.
func TestServersPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	has(t, s.get(t, "/servers", 200), "No server is on the list")
	for i, p := range []store.Peer{
		{ID: "aaa", Process: "process 1 on <one>", Seen: today, Load: 1.52, Processors: 2, FreeDisk: 3 << 29},
		{ID: "bbb", Process: "process 2 on two", Seen: today.Add(-time.Hour)},
	} {
		p.Started = today.Add(time.Duration(i-9) * time.Hour)
		if _, err := s.db.Beat(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Drain(t.Context(), "aaa"); err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, "/servers", 200), "<b>2</b> on this database", "process 1 on &lt;one&gt;", `class="state waiting">drained`, "1.5 of 2", "1.5 GB", `class="state failed">away`,
		"forge servers drain ID", "<h1>Servers")
	s.viewer = person{login: "eve", repos: []string{"acme/shop"}}
	s.get(t, "/servers", 404)
}
