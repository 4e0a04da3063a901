//go:build e2e

package incidents

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/needs"
)

// Debian's own Prometheus is asked, and answers.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "prometheus")
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE load gauge\nload{cpu=\"0\"} 2\nload{cpu=\"1\"} 4\n")
	}))
	defer shop.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: shop, static_configs: [{targets: ['%s']}]}]\n", shop.Listener.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = cmd.Wait() }()
	ask := func(query string) (*production.Window, string) {
		q := settings.Query{Prometheus: settings.Prometheus{Name: "main", URL: "http://" + at}, Query: query}
		return window(t.Context(), q, time.Now().Add(-30*time.Second), time.Now())
	}
	w, why := ask("sum(load)")
	for every := time.Tick(100 * time.Millisecond); w == nil && ctx.Err() == nil; w, why = ask("sum(load)") {
		<-every
	}
	if w == nil || w.Mean != 6 || w.Peak != 6 {
		t.Fatalf("%+v, %q", w, why)
	}
	for query, want := range map[string]string{"load": "the query has 2 results", "absent_metric": "there is no data",
		"sum(": "main answers 400: ", "sum(load)/0": "infinite"} {
		if w, why := ask(query); w != nil || !strings.Contains(why, want) {
			t.Errorf("%s: %+v, %q, want %q", query, w, why, want)
		}
	}
	stop()
	_ = cmd.Wait()
	if w, why := ask("sum(load)"); w != nil || why != "main gives no answer" {
		t.Errorf("away: %+v, %q", w, why)
	}
}
