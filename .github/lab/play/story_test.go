package play

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shipping"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/agent/agenttest"
	"forge/pipeline/needs"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// ahead answers for a Prometheus to a server whose clock is before it: what is newest there
// is of now.
func ahead(t *testing.T, address string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		end, _ := strconv.ParseFloat(q.Get("end"), 64)
		by := max(0, end-float64(time.Now().UnixMilli())/1000)
		resp, err := http.Get("http://" + address + r.URL.Path + "?" + q.Encode())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		var answer struct {
			Status string `json:"status"`
			Error  string `json:"error,omitempty"`
			Data   struct {
				Type   string `json:"resultType"`
				Result []struct {
					Values [][2]any `json:"values"`
				} `json:"result"`
			} `json:"data"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		for _, series := range answer.Data.Result {
			for n := range series.Values {
				at, _ := series.Values[n][0].(float64)
				series.Values[n][0] = at + by
			}
		}
		w.WriteHeader(resp.StatusCode)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// chapter is a model's part at one issue of the story, whose words its requests have in
// them, and no request of a chapter behind it.
type chapter struct{ words, tape string }

// chapters plays them.
func chapters(t *testing.T, list ...chapter) (url string) {
	t.Helper()
	var behind []http.Handler
	for _, c := range list {
		s, err := agenttest.NewServer([]byte(c.tape))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		behind = append(behind, httputil.NewSingleHostReverseProxy(mustURL(t, s.URL)))
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		for n, c := range list {
			if bytes.Contains(body, []byte(c.words)) {
				behind[n].ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "no chapter", http.StatusBadRequest)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// deployer does for a repository what its own program for deployments does: it builds the
// commit of each deployment, runs it in the place of what ran before, and says how it went.
type deployer struct {
	ts      *servertest.Server
	dir     string
	address string
	env     []string

	mu      sync.Mutex
	service *exec.Cmd
	sha     string // that runs
}

func (d *deployer) follow(ctx context.Context) {
	done := map[int64]bool{}
	for {
		var next githubtest.Deployed
		if d.ts.GitHub.Wait(ctx, func() bool {
			list := d.ts.GitHub.Deployments(servertest.Repo)
			n := slices.IndexFunc(list, func(o githubtest.Deployed) bool { return !done[o.ID] })
			if n >= 0 {
				next = list[n]
			}
			return n >= 0
		}) != nil {
			return
		}
		done[next.ID] = true
		state, words := "success", "it runs"
		d.say(next.ID, "in_progress", "it is built")
		if err := d.deploy(ctx, next.SHA); err != nil {
			state, words = "failure", text.Clip(err.Error(), 100)
			if ctx.Err() == nil {
				d.ts.T.Errorf("deploy %s: %v", next.SHA, err)
			}
		}
		d.say(next.ID, state, words)
	}
}

func (d *deployer) say(id int64, state, words string) {
	if err := d.ts.GitHub.As("acme").DeploymentStatus(servertest.Repo, id, state, words); err != nil {
		d.ts.T.Error(err)
	}
}

func (d *deployer) deploy(ctx context.Context, sha string) error {
	src := filepath.Join(d.dir, sha)
	for _, name := range []string{"go.mod", "main.go", "price/price.go"} {
		body, err := d.ts.GitHub.File(servertest.Repo, sha, name)
		if err != nil {
			return err
		}
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", "shop.bin", ".")
	build.Dir = src
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	d.stop()
	service := exec.Command(filepath.Join(src, "shop.bin"))
	service.Env = append(os.Environ(), append([]string{"LISTEN=" + d.address, "RELEASE=" + sha}, d.env...)...)
	if err := service.Start(); err != nil {
		return err
	}
	d.mu.Lock()
	d.service, d.sha = service, sha
	d.mu.Unlock()
	for range 200 {
		if resp, err := http.Get("http://" + d.address + "/healthz"); err == nil {
			resp.Body.Close()
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("it does not answer")
}

func (d *deployer) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.service != nil {
		_ = d.service.Process.Kill()
		_ = d.service.Wait()
		d.service = nil
	}
}

func (d *deployer) runs() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sha
}

// customers come until ctx ends.
func customers(ctx context.Context, address string, served, failed *atomic.Int64) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; ; n++ {
		if resp, err := client.Get(fmt.Sprintf("http://%s/buy?customer=%d", address, n)); err == nil {
			resp.Body.Close()
			served.Add(1)
			if resp.StatusCode >= 500 {
				failed.Add(1)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// The whole way round, with Debian's Prometheus and Alertmanager, a service in Go, and a
// program that deploys it: work of Forge's is verified, shipped and healthy; the next
// breaks a fifth of the requests, is an incident within ten seconds after the alert
// fires, attributed to its deployment, pull request, run and file, and rolled back; the
// service is healthy, the run behind it has learnt, and a run that fixes it is verified,
// shipped and healthy. Covers P1, P2, V12.
func TestProductionStory(t *testing.T) {
	long(t)
	t.Parallel()
	needs.Tools(t, "prometheus", "prometheus-alertmanager")
	data, err := os.ReadFile("testdata/story.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, parts := map[string]string{"greet.sh": "", "test.sh": ""}, map[string]string{}
	for _, f := range txtar.Parse(data).Files {
		if name, ok := strings.CutPrefix(f.Name, "repo/"); ok {
			files[name] = string(f.Data)
		} else {
			parts[f.Name] = strings.ReplaceAll(string(f.Data), "\n== ", "\n-- ")
		}
	}
	const good, bad, mended = "Regulars pay less", "Every fourth visit brings a gift", "Something goes wrong in production"
	model := chapters(t, chapter{mended, parts["mended"]}, chapter{bad, parts["bad"]}, chapter{good, parts["good"]})
	var later atomic.Int64
	shopAt, alertAt, promAt, forgeAt := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	const reports = "0123456789abcdef-reports"
	ts := servertest.New(t, servertest.Options{Deploys: true, Files: files, Title: good, Body: "Who has been here before pays 90.",
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
		Env: map[string]string{"FORGE_MODEL": "openai/tape", "OPENAI_BASE_URL": model + "/v1", "OPENAI_API_KEY": "sk-test-0123456789abcdef", "FORGE_LISTEN": forgeAt},
		Wire: func(o *server.Options) {
			o.Config.Hooks = []settings.Hook{
				{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 600},
				{Name: "reports", Kind: "generic", Secret: settings.NewSecret(reports), Repo: servertest.Repo, PerMinute: 600}}
			o.Config.HealthChecks = []settings.HealthCheck{{Name: "shop", URL: "http://" + shopAt + "/healthz", Repo: servertest.Repo, Expect: 200,
				Every: time.Hour, Fails: 3, Private: true}}
			o.Config.Queries = []settings.Query{{Name: "error_rate", Repo: servertest.Repo, Max: 0.02, Window: 10 * time.Minute,
				Query:      "sum(rate(http_errors_total[5s])) / sum(rate(http_requests_total[5s]))",
				Prometheus: settings.Prometheus{Name: "main", URL: ahead(t, promAt)}}}
		}})
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	d := &deployer{ts: ts, dir: dir, address: shopAt, env: []string{"REPORT=http://" + forgeAt + "/hooks/reports", "SECRET=" + reports}}
	t.Cleanup(func() { stop(); beside.Wait(); d.stop() })
	defer func() {
		if t.Failed() {
			for _, e := range log(ts, 1) {
				t.Logf("%s %s: %s", e.At.Format(time.TimeOnly), e.Type, incidents.EventLine(e))
			}
		}
	}()
	var served, failed atomic.Int64
	beside.Go(func() { d.follow(ctx) })
	beside.Go(func() { customers(ctx, shopAt, &served, &failed) })
	monitors(t, dir, alertAt, promAt, shopAt, ts.Forge.URL)

	_, err = ts.GitHub.As("acme").Deploy(servertest.Repo, "production", "main")
	ts.Must(err)
	ts.Deployed(1)
	minutes := func(n int) {
		t.Helper()
		for range n {
			later.Add(int64(time.Minute))
			ts.Must(ts.Forge.Incidents.Bake(t.Context()))
			ts.Must(ts.Forge.Shipping.Round(t.Context()))
		}
	}
	// ships brings a run's work into production, and waits until it is deployed.
	ships := func(run *pipeline.Run, deployments int) {
		t.Helper()
		state := func(want shipping.State) {
			t.Helper()
			for deadline := time.Now().Add(2 * time.Minute); ; {
				s, err := shipping.Of(t.Context(), ts.Forge.DB, run.ID)
				if err == nil && s.State == want {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("run %d is never %s on its way: %+v %v\n%s", run.ID, want, s, err, ts.Comments())
				}
				<-time.After(50 * time.Millisecond)
			}
		}
		state(shipping.Asking)
		_, err := ts.GitHub.As("acme").Comment(servertest.Repo, run.Published.Pull.Number, "/forge ship approve "+text.ShortSHA(run.Head))
		ts.Must(err)
		ts.Deployed(deployments)
		state(shipping.Watching)
	}
	// healthy waits until the watch over a run's work says so.
	healthy := func(run *pipeline.Run) {
		t.Helper()
		for range 10 {
			minutes(1)
			s, err := shipping.Of(t.Context(), ts.Forge.DB, run.ID)
			ts.Must(err)
			if s.State == shipping.Done {
				return
			}
			<-time.After(2 * time.Second) // Prometheus looks every second
		}
		s, _ := shipping.Of(t.Context(), ts.Forge.DB, run.ID)
		t.Fatalf("run %d is never healthy in production: %+v, %+v", run.ID, s, s.Question)
	}
	verified := func(issue int) *pipeline.Run {
		t.Helper()
		run, _ := ts.Within(5*time.Minute, func(r *pipeline.Run) bool {
			return r.Task.Issue == issue && (r.State.Ended() || r.State == pipeline.StateWaiting)
		})
		if run == nil || run.State != pipeline.StateVerified {
			t.Fatalf("run on #%d: %+v:\n%s", issue, run, ts.Comments())
		}
		return run
	}

	ts.Label("acme")
	first := verified(ts.Issue)
	ships(first, 2)
	healthy(first)
	ts.Says("; in production, healthy since ")
	before := d.runs()
	later.Store(0) // from here on time is Prometheus' time

	ts.Issue, err = ts.GitHub.As("acme").OpenIssue(servertest.Repo, bad, "A gift for each visit, four kinds in turn.")
	ts.Must(err)
	ts.Label("acme")
	second := verified(ts.Issue)
	ships(second, 3)
	broken := d.runs()
	at := time.Now()
	var heard time.Time
	i := ts.Incident(1, func(i *production.Incident) bool {
		if heard.IsZero() && slices.ContainsFunc(append(i.Joined, i.Group), func(g string) bool { return strings.Contains(g, "/anomaly/") }) {
			heard = time.Now()
		}
		return !heard.IsZero() && i.Act(production.AnswerRollBack) != nil && i.Act(production.AnswerRollBack).State == production.ActDone
	})
	fired := i.Last.Since
	for _, e := range log(ts, 1) {
		if o := e.Data.Observation; o != nil && o.Kind == production.KindAnomaly {
			fired = o.Since
			break
		}
	}
	t.Logf("deployed; the alert fired after %s, and was heard of %s later", fired.Sub(at).Round(time.Millisecond), heard.Sub(fired).Round(time.Millisecond))
	if heard.Sub(fired) > 10*time.Second {
		t.Errorf("the alert was heard of %s after it fired", heard.Sub(fired))
	}
	deployments := ts.GitHub.Deployments(servertest.Repo)
	s := i.Suspects[0]
	t.Logf("suspected: %s: %s", incidents.SuspectLine(s), strings.Join(s.Why, "; "))
	if s.Deployment != deployments[2].ID || s.Pull != second.Published.Pull.Number || s.Run != second.ID ||
		s.File != "price/price.go" || s.Score < production.Attributed {
		t.Errorf("suspect %+v; want deployment %d, pull request %d, run %d", s, deployments[2].ID, second.Published.Pull.Number, second.ID)
	}
	ts.Deployed(4)
	if deployments = ts.GitHub.Deployments(servertest.Repo); len(deployments) != 4 || deployments[3].SHA != before ||
		deployments[3].Task != "rollback" || d.runs() != before || before == broken {
		t.Fatalf("rolled back to %s: %+v; want %s", d.runs(), deployments, before)
	}
	had := failed.Load()
	ts.Incident(1, func(i *production.Incident) bool { // the alert is over
		return !slices.ContainsFunc(i.Firing, func(g string) bool { return strings.Contains(g, "/anomaly/") })
	})
	if n := failed.Load() - had; n > 0 {
		t.Errorf("%d requests fail after the roll-back", n)
	}

	issue := int(ts.Incident(1, func(i *production.Incident) bool {
		return i.Act(production.AnswerRun) != nil && i.Act(production.AnswerRun).State == production.ActDone
	}).Act(production.AnswerIssue).Number)
	third := verified(issue)
	if third.ID != ts.Incident(1, func(*production.Incident) bool { return true }).Act(production.AnswerRun).Number {
		t.Errorf("run %d is another one", third.ID)
	}
	for n := 0; n < 8 && ts.Incident(1, func(*production.Incident) bool { return true }).State.Active(); n++ {
		later.Add(int64(15 * time.Minute))
		ts.Must(ts.Forge.Incidents.Tick(t.Context()))
	}
	ts.Incident(1, func(i *production.Incident) bool { return i.State == production.StateResolved })
	ts.Forge.Incidents.Wake()
	ts.Learnings("what escaped", func(list []pipeline.Learning) bool {
		return slices.ContainsFunc(list, func(l pipeline.Learning) bool {
			return l.Source == pipeline.SourceGap && l.State == pipeline.LearningActive && strings.Contains(l.Content, "price/price.go")
		})
	})
	later.Store(0)
	ships(third, 5)
	healthy(third)
	if after := d.runs(); after == before || after == broken {
		t.Errorf("%s runs", after)
	}
	resp, err := http.Get("http://" + shopAt + "/buy?customer=4") // whom the second failed
	ts.Must(err)
	resp.Body.Close()
	rows, err := ts.Forge.DB.Incidents(t.Context(), store.IncidentFilter{})
	ts.Must(err)
	if resp.StatusCode != http.StatusOK || len(rows) != 1 {
		t.Errorf("customer 4: %d; %d incidents", resp.StatusCode, len(rows))
	}
	t.Logf("%d requests served, %d failed", served.Load(), failed.Load())
}

// log is the log of an incident.
func log(ts *servertest.Server, id int64) []production.Event {
	ts.T.Helper()
	list, err := incidents.Log(ts.T.Context(), ts.Forge.DB, id)
	ts.Must(err)
	return list
}

// monitors starts Prometheus, which looks at the service each second, and Alertmanager,
// which tells Forge.
func monitors(t *testing.T, dir, alertAt, promAt, shopAt, forge string) {
	t.Helper()
	file := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	manager := file("alertmanager.yml", fmt.Sprintf(
		"route: {receiver: forge, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 5s}\nreceivers:\n"+
			"  - name: forge\n    webhook_configs: [{url: '%s/hooks/prom', http_config: {authorization: {credentials_file: %s}}}]\n", forge, file("token", promToken)))
	rules := file("rules.yml", `groups:
  - name: shop
    rules:
      - alert: ErrorRate
        expr: sum(rate(http_errors_total[5s])) / sum(rate(http_requests_total[5s])) > 0.02
        for: 2s
        labels: {severity: critical, service: shop}
        annotations: {summary: Requests fail, metric: error_rate, baseline: "0", value: "{{ $value }}"}
`)
	config := file("prometheus.yml", fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\n"+
		"alerting: {alertmanagers: [{static_configs: [{targets: ['%s']}]}]}\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: ['%s']}]}]\n", rules, alertAt, shopAt))
	started(t, "prometheus-alertmanager", "--config.file="+manager, "--storage.path="+filepath.Join(dir, "am"),
		"--web.listen-address="+alertAt, "--cluster.listen-address=")
	started(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "prom"),
		"--web.listen-address="+promAt, "--rules.alert.resend-delay=1s")
	answers(t, "http://"+alertAt+"/-/ready")
	answers(t, "http://"+promAt+"/-/ready")
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
	servertest.Eventually(t, func() bool {
		var resp *http.Response
		if resp, err = http.Get(url); err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, func() string { return fmt.Sprintf("%s does not answer: %v", url, err) })
}
