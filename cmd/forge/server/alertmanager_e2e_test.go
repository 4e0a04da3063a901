//go:build e2e

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/needs"
)

// A service whose requests begin to fail is an incident within ten seconds after the
// alert fires, and over when Alertmanager says so: Debian's Prometheus and
// Alertmanager, and nothing made up between. Covers P1, P2.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "prometheus", "prometheus-alertmanager")
	ts := newTestServer(t, testOptions{wire: func(o *Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 600}}
	}})
	var failed, all atomic.Int64
	var broken atomic.Bool
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served := all.Add(10) // requests that were served between two looks
		if broken.Load() {
			failed.Add(1 + served%7) // another rate each time: the same body within a minute is a retry
		}
		fmt.Fprintf(w, "# TYPE http_requests_total counter\nhttp_requests_total %d\n# TYPE http_errors_total counter\nhttp_errors_total %d\n", all.Load(), failed.Load())
	}))
	defer shop.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		ts.must(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	alertAt, promAt := freeAddress(t), freeAddress(t)
	manager := file("alertmanager.yml", fmt.Sprintf("route: {receiver: forge, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 5s}\nreceivers:\n"+
		"  - name: forge\n    webhook_configs: [{url: '%s/hooks/prom', http_config: {authorization: {credentials_file: %s}}}]\n", ts.s.URL, file("token", promToken)))
	rules := file("rules.yml", `groups:
  - name: shop
    rules:
      - alert: ErrorRate
        expr: rate(http_errors_total[5s]) / rate(http_requests_total[5s]) > 0.02
        for: 2s
        labels: {severity: critical, service: shop}
        annotations: {summary: Requests fail, metric: error_rate, baseline: "0.004", value: "{{ $value }}"}
`)
	config := file("prometheus.yml", fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nalerting: {alertmanagers: [{static_configs: [{targets: ['%s']}]}]}\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: ['%s']}]}]\n", rules, alertAt, shop.Listener.Addr()))
	started(t, "prometheus-alertmanager", "--config.file="+manager, "--storage.path="+filepath.Join(dir, "am"), "--web.listen-address="+alertAt, "--cluster.listen-address=")
	started(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "prom"), "--web.listen-address="+promAt, "--rules.alert.resend-delay=1s")
	answers(t, "http://"+alertAt+"/-/ready")
	answers(t, "http://"+promAt+"/-/ready")
	broken.Store(true)
	i := ts.incident(1, func(i *production.Incident) bool { return i.State == production.StateOpen })
	took := i.Opened.Sub(i.FirstSeen) // the alert's startsAt is when it fired
	t.Logf("an incident %s after the alert fired", took)
	if took > 10*time.Second || i.Severity != production.SeverityCritical || i.Title != "Requests fail" || i.First.Service != "shop" || i.First.Anomaly.Metric != "error_rate" || i.First.Anomaly.Current == nil {
		t.Errorf("after %s: %+v", took, i)
	}
	ts.incident(1, func(i *production.Incident) bool { return i.Count >= 2 }) // it is told of again
	broken.Store(false)
	ts.incident(1, func(i *production.Incident) bool { return i.State == production.StateRecovering })
}

// freeAddress is an address of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// started runs a program until the test ends.
func started(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
}

// answers waits until an address answers.
func answers(t *testing.T, url string) {
	t.Helper()
	var err error
	eventually(t, func() bool {
		var resp *http.Response
		if resp, err = http.Get(url); err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, func() string { return fmt.Sprintf("%s does not answer: %v", url, err) })
}
