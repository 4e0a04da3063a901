package incidents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// a bench is a service with a database and a clock.
type bench struct {
	t *testing.T
	*Service
	now  time.Time
	sent int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &bench{t: t, now: start}
	b.Service = New(Options{DB: db, Hooks: Hooks(hooks()), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now }})
	return b
}

func hooks() []settings.Hook {
	return []settings.Hook{{Name: "prom", Kind: "alertmanager", Repo: "acme/shop", Secret: settings.NewSecret("0123456789abcdef")}}
}

func alerts(status, name string) string {
	return fmt.Sprintf(`{"version":"4","groupKey":"of %s","status":%q,"alerts":[{"status":%q,"labels":{"alertname":%q,"severity":"critical","job":"api"},"annotations":{"summary":"%s is high"},"startsAt":"2026-03-01T09:59:00Z"}]}`, name, status, status, name, name)
}

// send keeps deliveries as the receiver does, and handles them.
func (b *bench) send(event string, bodies ...string) (outcomes []string) {
	b.t.Helper()
	var list []record.Delivery
	for _, body := range bodies {
		b.sent++
		list = append(list, record.Delivery{GUID: fmt.Sprint("d", b.sent), Event: event, Received: b.now, Payload: []byte(body), Lane: Lane})
	}
	b.must(b.DB.KeepDeliveries(b.t.Context(), list))
	b.must(b.Round(b.t.Context()))
	for _, d := range list {
		got, err := b.DB.Delivery(b.t.Context(), d.GUID)
		b.must(err)
		if got.State != record.DeliveryDone {
			b.t.Errorf("delivery %s is %s: %s", d.GUID, got.State, got.Error)
		}
		outcomes = append(outcomes, got.Outcome)
	}
	return outcomes
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) incident(id int64) *production.Incident {
	b.t.Helper()
	row, err := b.DB.Incident(b.t.Context(), id)
	b.must(err)
	i, err := Folded(row)
	b.must(err)
	return i
}

func deployment(id int64, state, sha string, at time.Time) string {
	return fmt.Sprintf(`{"deployment":{"id":%d,"sha":%q,"ref":"main","task":"deploy","environment":"production","created_at":%q,"creator":{"login":"ann"}},"deployment_status":{"state":%q,"created_at":%q},"repository":{"full_name":"acme/shop"}}`,
		id, strings.Repeat(sha, 40), at.Format(time.RFC3339), state, at.Format(time.RFC3339))
}

// What a monitor says becomes an incident, with a log of the three events' names.
// Covers P1, P2, M4.
func TestAlertsBecomeIncidents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := b.send("hook/prom", alerts("firing", "Errors"), alerts("firing", "Errors"), alerts("resolved", "Other"), "nonsense")
	want := []string{"incident 1: opened", "incident 1: seen again", "over, and nothing was known of it",
		"not understood: it cannot be read: the body is not JSON"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("outcome %q, want %q", got[i], want[i])
		}
	}
	i := b.incident(1)
	if i.State != production.StateOpen || i.Count != 2 || i.Severity != production.SeverityCritical || i.Title != "Errors is high" {
		t.Errorf("%+v", i)
	}
	log, err := Log(t.Context(), b.DB, 1)
	b.must(err)
	if len(log) != 3 || log[1].Type != production.EventAnomalyDetected || log[1].Data.Observation.Anomaly.Metric != "Errors" {
		t.Errorf("log %+v", log)
	}
	again := &production.Incident{ID: 1}
	for _, e := range log {
		again.Apply(e)
	}
	if diff := cmp.Diff(i, again); diff != "" {
		t.Errorf("the log folds to something else:\n%s", diff)
	}
	b.now = b.now.Add(time.Minute)
	if got := b.send("hook/prom", alerts("resolved", "Errors")); got[0] != "incident 1: over, as it seems" {
		t.Errorf("outcome %q", got)
	}
	b.now = b.now.Add(9 * time.Minute)
	b.must(b.Tick(t.Context()))
	if i := b.incident(1); i.State != production.StateRecovering {
		t.Errorf("it is %s after nine minutes", i.State)
	}
	b.now = b.now.Add(time.Minute)
	b.must(b.Tick(t.Context()))
	if i := b.incident(1); i.State != production.StateResolved {
		t.Errorf("it is %s after ten minutes", i.State)
	}
	b.now = b.now.Add(time.Hour)
	b.send("hook/prom", alerts("firing", "Errors"))
	if i := b.incident(2); i.Previous != 1 || i.Times != 2 {
		t.Errorf("it came again: %+v", i)
	}
}

// GitHub's deployments are kept, whoever makes them; one that fails is an incident
// until one succeeds.
func TestDeploymentsAreKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := b.send("deployment_status", deployment(1, "success", "a", start), deployment(2, "in_progress", "b", start.Add(time.Minute)))
	if got[0] != "deployment 1 to production is success" {
		t.Errorf("outcome %q", got[0])
	}
	b.now = b.now.Add(3 * time.Minute)
	if got := b.send("deployment_status", deployment(2, "failure", "b", b.now)); got[0] != "incident 1: opened; deployment 2 to production is failure" {
		t.Errorf("outcome %q", got[0])
	}
	b.now = b.now.Add(time.Minute)
	b.send("deployment_status", strings.Replace(deployment(3, "success", "c", b.now), "production", "PRODUCTION", 1)) // the same one at GitHub
	if i := b.incident(1); i.State != production.StateRecovering || i.Kind != production.KindHealth {
		t.Errorf("%+v", i)
	}
	list, err := b.DB.Deployments(t.Context(), store.DeploymentFilter{})
	b.must(err)
	if len(list) != 3 || list[0].ID != 3 || list[0].Environment != "production" || list[0].Previous != strings.Repeat("a", 40) {
		t.Errorf("%+v", list)
	}
}

// Two servers that handle the same deliveries make one incident of them.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.DB.KeepDeliveries(t.Context(), []record.Delivery{
		{GUID: "x", Event: "hook/prom", Received: b.now, Payload: []byte(alerts("firing", "Errors")), Lane: Lane}}))
	list, err := b.DB.WaitingIn(t.Context(), Lane, b.now, 10)
	b.must(err)
	b.must(b.handle(t.Context(), list))
	if err := b.handle(t.Context(), list); err == nil {
		t.Error("the second one notices nothing")
	}
	if i := b.incident(1); i.Count != 1 {
		t.Errorf("seen %d times", i.Count)
	}
	rows, err := b.DB.Incidents(t.Context(), store.IncidentFilter{})
	b.must(err)
	if len(rows) != 1 {
		t.Errorf("%d incidents", len(rows))
	}
}

func TestDismissAndMute(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.send("hook/prom", alerts("firing", "Errors"))
	b.must(Mute(t.Context(), b.DB, 1, "ann", 2*time.Hour, b.now))
	if i := b.incident(1); !i.Muted.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("muted until %s", i.Muted)
	}
	if err := Mute(t.Context(), b.DB, 1, "ann", 1000*time.Hour, b.now); err == nil {
		t.Error("it can be muted for good")
	}
	b.must(Dismiss(t.Context(), b.DB, 1, "ann", "a test", b.now))
	if err := Dismiss(t.Context(), b.DB, 1, "ann", "a test", b.now); err == nil {
		t.Error("it can be dismissed twice")
	}
	if got := b.send("hook/prom", alerts("firing", "Errors")); got[0] != "incident 1: not opened again: ann dismissed it within the day" {
		t.Errorf("outcome %q", got)
	}
}

// run runs a command on the bench's database.
func (b *bench) run(args ...string) (string, error) {
	root := &cobra.Command{Use: "forge", SilenceUsage: true, SilenceErrors: true}
	with := func(_ *cobra.Command, f func(*store.DB, settings.Config) error) error {
		return f(b.DB, settings.Config{Hooks: hooks()})
	}
	root.AddCommand(commands(with)...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetIn(strings.NewReader(alerts("firing", "Latency")))
	root.SetArgs(args)
	err := root.ExecuteContext(b.t.Context())
	return out.String(), err
}

func TestCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	says := func(want string, args ...string) {
		t.Helper()
		got, err := b.run(args...)
		if err != nil {
			got += "error: " + err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("forge %s:\n%s\nwant %q", strings.Join(args, " "), got, want)
		}
	}
	says("Nothing goes wrong", "incidents")
	says("No deployments are known", "deployments")
	says("a new incident: opened", "hooks", "test", "prom", "-")
	says("production.anomaly_detected", "hooks", "test", "prom", "-")
	says("it has prom", "hooks", "test", "nobody", "-")
	says("no such file", "hooks", "test", "prom", "/nowhere")
	b.send("hook/prom", alerts("firing", "Errors"))
	b.send("deployment_status", deployment(7, "success", "a", start))
	says("Errors is high", "incidents")
	says("Errors is high", "incidents", "--env", "PRODUCTION")
	says("No incident of acme/nope is open", "incidents", "--repo", "acme/nope")
	says("No incident of acme/shop in staging is known", "incidents", "--all", "--repo", "acme/shop", "--env", "staging")
	says("Incident 1  open  critical  anomaly", "incident", "1")
	says("say why it is nothing", "incident", "1", "--dismiss", "")
	says("say why it is nothing", "incident", "1", "--dismiss", "  ")
	says("up to 168 hours", "incident", "1", "--mute", "0s")
	says("production.incident_opened", "incident", "1")
	says("7", "deployments", "--env", "Production")
	says("No deployments to staging are known", "deployments", "--env", "staging")
	says("not found", "incident", "9")
	says("is no incident", "incident", "x")
	says("dismissed", "incident", "1", "--dismiss", "a test")
	says("Incident 1 is dismissed: there is nothing to mute", "incident", "1", "--mute", "2h")
	says("Nothing goes wrong", "incidents")
	says("Errors is high", "incidents", "--all")
	says("forge incident open --repo OWNER/NAME", "incident", "open", "The shop is down")
	says("forge incident open --repo OWNER/NAME", "incident", "open", "--repo", "acme/shop", " ")
	out, err := b.run("incident", "1", "--json")
	var v map[string]any
	if err != nil || json.Unmarshal([]byte(out), &v) != nil || v["incident"] == nil || len(v["events"].([]any)) != 3 {
		t.Errorf("%v: %s", err, out)
	}
	rows, err := b.DB.Incidents(t.Context(), store.IncidentFilter{})
	b.must(err)
	if len(rows) != 1 {
		t.Errorf("trying a hook out has kept something: %d incidents", len(rows))
	}
	says("incident 2: opened", "incident", "open", "--repo", "acme/shop", "The shop is down")
	says("The shop is down", "incidents", "--env", "production")
}
