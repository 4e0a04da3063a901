//go:build e2e

package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"forge/pipeline/needs"
)

// policy is what the server lets pages do.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"

// probe is a script that a test adds to a page: it walks along the first chart by
// keys, and leaves what the legends say in attributes of the body.
const probe = `addEventListener("load", () => {
	const plot = document.querySelector("#chart-success .plot");
	const legends = () => [...document.querySelectorAll("#chart-success .legend, #chart-cost .legend")].map((l) => l.textContent).join(" | ");
	const note = (name) => { document.body.dataset[name] = legends(); };
	const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
	if (!plot) return;
	note("first");
	plot.focus();
	press("Home"); press("ArrowRight"); note("second");
	press("End"); note("last");
});`

// browse loads a page in a browser with the probe, and returns what became of it and
// what the browser complained of.
func (s *site) browse(t *testing.T, path string) (dom, complaints string) {
	t.Helper()
	needs.Tools(t, "chromium")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		if r.URL.Path == "/probe.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, probe)
			return
		}
		rec := httptest.NewRecorder()
		s.router.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.WriteHeader(rec.Code)
		w.Write(bytes.Replace(rec.Body.Bytes(), []byte("</head>"), []byte(`<script src="/probe.js" defer></script></head>`), 1)) //nolint:errcheck // the browser has gone
	}))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--enable-logging=stderr",
		"--virtual-time-budget=3000", "--window-size=1280,3000", "--dump-dom", srv.URL+path)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, errs.String())
	}
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, "CONSOLE") {
			complaints += line
		}
	}
	return out.String(), complaints
}

// Covers M2: charts are drawn under the policy, and say their numbers when one moves
// along them by keys, all charts together. The page on learning draws under it, too.
func TestChartsInBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.measure(t, 1, 60)
	dom, complaints := s.browse(t, "/insights?days=30&tab=all")
	if complaints != "" {
		t.Errorf("the browser says\n%s", complaints)
	}
	if plots, drawn := strings.Count(dom, `class="plot"`), strings.Count(dom, "<canvas"); plots != 12 || drawn != plots {
		t.Errorf("%d charts, %d drawn; want 12", plots, drawn)
	}
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`data-(first|second|last)="([^"]*)"`).FindAllStringSubmatch(dom, -1) {
		said[m[1]] = html.UnescapeString(m[2])
	}
	for name, day := range map[string]string{"second": "3 Mar", "last": "31 Mar"} {
		parts := strings.Split(said[name], " | ")
		if len(parts) != 2 || !strings.HasPrefix(parts[0], day+"success ") || !strings.HasPrefix(parts[1], day+"cost ") {
			t.Errorf("%s: the legends say %q, want %s in both", name, said[name], day)
		}
	}
	if said["first"] == "" || said["first"] == said["second"] {
		t.Errorf("at first the legends say %q", said["first"])
	}
	s = newSite(t)
	s.fill(t, "clean")
	s.learns(200, "acme/shop")
	dom, complaints = s.browse(t, "/insights/learning")
	if complaints != "" || strings.Count(dom, "<canvas") != 1 {
		t.Errorf("%d charts are drawn on learning; the browser says\n%s", strings.Count(dom, "<canvas"), complaints)
	}
}
