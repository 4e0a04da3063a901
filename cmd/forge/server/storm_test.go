package server

import (
	"fmt"
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

	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

// Many alerts at once, of 500 groups, 30 % of them repeats, shuffled, come in by the
// door and end in few incidents, one of them a storm. FORGE_ALERTS sets how many.
// Covers P2.
func TestStormOfAlerts(t *testing.T) {
	total := 500
	if n, err := strconv.Atoi(os.Getenv("FORGE_ALERTS")); err == nil {
		total = n
	}
	ts := newTestServer(t, testOptions{wire: func(o *Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 100_000}}
	}})
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
					req, _ := http.NewRequest(http.MethodPost, ts.s.URL+"/hooks/prom", strings.NewReader(body))
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
	for _, n := range order {
		work <- n
	}
	close(work)
	all.Wait()
	sent := time.Since(begun)
	eventually(t, func() bool {
		waiting, err := ts.s.DB.WaitingOf(t.Context(), "production")
		ts.must(err)
		ts.s.incidents.Wake()
		return len(waiting) == 0
	}, func() string { return "alerts still wait" })
	times := slices.Concat(took...)
	slices.Sort(times)
	rows, err := ts.s.DB.Incidents(t.Context(), store.IncidentFilter{})
	ts.must(err)
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
	t.Logf("%d alerts in %s, p99 %s, %d refused and sent again; %d incidents, %d of them storms", total, sent.Round(time.Millisecond), times[len(times)*99/100].Round(time.Microsecond), n, len(rows), storms)
	if storms != 1 || len(rows) > 21 {
		t.Errorf("%d incidents, %d of them storms", len(rows), storms)
	}
}
