package dashboard

import (
	"context"
	"testing"
	"time"
)

// Covers D2: what is wrong stands on a page with what to do about it, and those who do not
// see everything do not see it: it names paths and accounts of the server.
func TestCheckup(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.get(t, "/doctor", 404)
	has(t, s.get(t, "/", 200), `-href="/doctor"`)

	s.pages.Checkup = func(context.Context) Checkup {
		return Checkup{
			Status: "degraded", Now: []Finding{{Area: "engine", State: "ok", Says: "as it should be"}, {Area: "sandbox", State: "bad", Says: "commands cannot be run"}},
			All: []Finding{
				{Area: "disk", State: "bad", Says: "/var/lib/forge has 3 MB free", Fix: "make <room>"},
				{Area: "webhook", State: "warning", Says: "nothing yet", Fix: "label an issue"}, {Area: "git", State: "ok", Says: "git version 2.47"},
			},
			At: today.Add(-2 * time.Minute),
		}
	}
	has(t, s.get(t, "/", 200), `href="/doctor"`)
	has(t, s.get(t, "/doctor", 200), "<b>degraded</b>", "<b>1</b> to mend", "<b>1</b> to look at", "2 min ago", "commands cannot be run",
		"/var/lib/forge has 3 MB free",
		"make &lt;room&gt;", "git version 2.47", `class="state failed">bad`, `class="state waiting">warning`, `class="state done">ok`, `aria-current="page">Doctor`)

	s.viewer = person{login: "eve", repos: []string{"acme/shop"}}
	s.get(t, "/doctor", 404)
	has(t, s.get(t, "/", 200), `-href="/doctor"`)
}
