package play

import (
	"fmt"
	"forge/cmd/forge/server"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/store"
)

// Many alerts at once, of 500 groups, 30 % of them repeats, shuffled, come in by the
// door and end in few incidents, one of them a storm, and in few writes to GitHub. Runs of
// other repositories begin meanwhile as they do else. FORGE_ALERTS sets how many.
// Covers P2.
func TestStormOfAlerts(t *testing.T) {
	long(t)
	total := 500
	if n, err := strconv.Atoi(os.Getenv("FORGE_ALERTS")); err == nil {
		total = n
	}
	began := make(chan time.Time, 1)
	on := func(_ *servertest.Server, r *pipeline.Run, e pipeline.Event) {
		if r.Repo.FullName() == "acme/other" && e.Type == pipeline.EventPhaseEntered {
			select {
			case began <- time.Now():
			default:
			}
		}
	}
	ts := newServer(t, servertest.Options{On: on, Deploys: true, Files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] +
		"production: {tell: true, ask: true, issue: true, roll_back: true, revert: true}\n"}, Wire: func(o *server.Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 100_000}}
	}})
	_, err := ts.GitHub.AddRepo("acme", "other", servertest.Greeter())
	ts.Must(err)
	_, err = ts.GitHub.Install("acme/other")
	ts.Must(err)
	issue, err := ts.GitHub.As("acme").OpenIssue("acme/other", "The greeting lacks its comma", "It prints `hello Ann`.")
	ts.Must(err)
	order := make([]int, total)
	for i := range order {
		order[i] = i % (total * 7 / 10)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(total, func(i, j int) { order[i], order[j] = order[j], order[i] })
	work := make(chan int)
	took := make([][]time.Duration, 16)
	refused := make([]int, 16)
	var all sync.WaitGroup
	for w := range took {
		all.Go(func() {
			for n := range work {
				body := fmt.Sprintf(`{"groupKey":"g%d","n":%d,"alerts":[{"status":"firing","labels":{"alertname":"A%d","severity":"critical"},"startsAt":"2026-03-01T09:59:00Z"}]}`, n%500, n, n%500)
				for {
					begun := time.Now()
					req, _ := http.NewRequest(http.MethodPost, ts.Forge.URL+"/hooks/prom", strings.NewReader(body))
					req.Header.Set("Authorization", "Bearer "+promToken)
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode == http.StatusAccepted {
						took[w] = append(took[w], time.Since(begun))
						break
					}
					refused[w]++ // too many wait: it is sent again, as Alertmanager does
					<-time.After(20 * time.Millisecond)
				}
			}
		})
	}
	begun := time.Now()
	var asked time.Time
	for k, n := range order {
		if work <- n; k == total/2 {
			asked = time.Now()
			ts.Must(ts.GitHub.As("acme").Label("acme/other", issue, "forge"))
		}
	}
	close(work)
	all.Wait()
	sent := time.Since(begun)
	servertest.Eventually(t, func() bool {
		waiting, err := ts.Forge.DB.WaitingOf(t.Context(), "production")
		ts.Must(err)
		return len(waiting) == 0
	}, func() string { return "alerts still wait" })
	var waited time.Duration
	select {
	case at := <-began:
		waited = at.Sub(asked)
	case <-time.After(time.Minute):
		t.Fatal("a run of another repository never began")
	}
	writes := 0
	for _, c := range ts.GitHub.Calls() {
		if c.Effect && c.Mutation && strings.Contains(c.Path, "/"+servertest.Repo+"/") {
			writes++
		}
	}
	times := slices.Concat(took...)
	slices.Sort(times)
	rows, err := ts.Forge.DB.Incidents(t.Context(), store.IncidentFilter{})
	ts.Must(err)
	storms := 0
	for _, r := range rows {
		if strings.HasSuffix(r.Group, "/storm") {
			storms++
		}
	}
	n := 0
	for _, r := range refused {
		n += r
	}
	t.Logf("%d alerts in %s, p99 %s, %d refused and sent again; %d incidents, %d of them storms; %d writes to GitHub; a run of another repository began after %s",
		total, sent.Round(time.Millisecond), times[len(times)*99/100].Round(time.Microsecond), n, len(rows), storms, writes, waited.Round(time.Millisecond))
	if writes > 30 || waited > 20*time.Second { // 2 s on a quiet machine
		t.Errorf("%d writes to GitHub; a run of another repository began after %s", writes, waited)
	}
	if storms != 1 || len(rows) > 21 {
		t.Errorf("%d incidents, %d of them storms", len(rows), storms)
	}
}
