package production

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// A keeper is what a database does for a tracker.
type keeper struct {
	incidents []*Incident
	logs      map[int64][]Event
	now       time.Time
	deployed  []Deployment
	ignore    []string
}

func newKeeper() *keeper { return &keeper{logs: map[int64][]Event{}, now: received} }

// tracker gives a tracker what it needs to know, as it would be read from a database.
func (k *keeper) tracker() *Tracker {
	d := &Tracker{Deployments: k.deployed, Ignore: k.ignore, Now: k.now}
	for _, i := range k.incidents {
		if i.State.Active() || k.now.Sub(i.Ended) < recent {
			d.Incidents = append(d.Incidents, i)
		}
	}
	return d
}

// keep keeps what happened: it checks that the log, written and read again, folds to
// the same incident.
func (k *keeper) keep(t *testing.T, d *Tracker) {
	t.Helper()
	for _, c := range d.Changes() {
		if c.ID == 0 {
			c.ID = int64(len(k.incidents) + 1)
			k.incidents = append(k.incidents, c.Incident)
		}
		for n, e := range c.Events {
			if e.Seq != c.Before+int64(n)+1 {
				t.Errorf("incident %d: event %d has the number %d", c.ID, n, e.Seq)
			}
			data, err := json.Marshal(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			read := Event{Seq: e.Seq, Type: e.Type, At: e.At}
			if err := json.Unmarshal(data, &read.Data); err != nil {
				t.Fatal(err)
			}
			k.logs[c.ID] = append(k.logs[c.ID], read)
		}
		folded := &Incident{ID: c.ID}
		for _, e := range k.logs[c.ID] {
			folded.Apply(e)
		}
		if diff := cmp.Diff(c.Incident, folded); diff != "" {
			t.Errorf("incident %d folds to something else:\n%s", c.ID, diff)
		}
	}
}

func anomaly(environment, group string, at time.Time, critical bool) Observation {
	o := Observation{Kind: KindAnomaly, Source: "prom", Repo: "acme/shop", Environment: environment, Group: group, Severity: SeverityWarning,
		Status: StatusFiring, At: at, Title: group, Anomaly: &Anomaly{Metric: group}}
	if critical {
		o.Severity = SeverityCritical
	}
	return o
}

// Stories of alerts, and the incidents that they make. See testdata/tracker/README.md.
// Covers P2.
func TestTracker(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/tracker/*.txtar")
	if len(files) == 0 {
		t.Fatal("no stories")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(a.Files[0].Data))
			want := ""
			if len(a.Files) > 1 {
				want = string(a.Files[1].Data)
			}
			if *update {
				a.Files = []txtar.File{a.Files[0], {Name: "want", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// play plays a story.
func play(t *testing.T, script string) string {
	k := newKeeper()
	var b strings.Builder
	for l := range strings.Lines(script) {
		f := strings.Fields(l)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") {
			continue
		}
		at, err := time.ParseDuration(f[0])
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		k.now = received.Add(at)
		d := k.tracker()
		var said []Note
		switch args := f[2:]; f[1] {
		case "fire", "resolve":
			o := anomaly(args[0], args[1], k.now, slices.Contains(args, "critical"))
			if args[1] == "deployment" {
				o.Kind, o.Source = KindHealth, sourceGitHub
			}
			if f[1] == "resolve" {
				o.Status = StatusResolved
			}
			n := 1
			if last := args[len(args)-1]; strings.HasPrefix(last, "x") && len(args) > 2 {
				n, _ = strconv.Atoi(last[1:])
			}
			for range n {
				said = []Note{d.Take(o)}
			}
		case "many": // ENVIRONMENT N: that many groups
			n, _ := strconv.Atoi(args[1])
			for g := range n {
				said = []Note{d.Take(anomaly(args[0], fmt.Sprint("g", g), k.now, false))}
			}
		case "deploy":
			k.deployed = append(k.deployed, Deployment{ID: int64(len(k.deployed) + 1), Environment: args[0], At: k.now, State: "success"})
		case "ignore":
			k.ignore = args
		case "dismiss":
			id, _ := strconv.Atoi(args[0])
			d.Record(k.incidents[id-1], EventDismissed, EventData{By: "ann", Why: strings.Join(args[1:], " ")})
		case "tick":
			d.Tick()
		default:
			t.Fatalf("there is no %s", f[1])
		}
		k.keep(t, d)
		fmt.Fprintln(&b, strings.TrimSpace(l))
		for _, n := range said {
			fmt.Fprintln(&b, "    ", n)
		}
		for _, c := range d.Changes() {
			var types []string
			for _, e := range c.Events {
				types = append(types, strings.TrimPrefix(string(e.Type), "production."))
			}
			if len(types) > 6 {
				types = append(types[:5], fmt.Sprintf("and %d more", len(types)-5))
			}
			i := c.Incident
			fmt.Fprintf(&b, "    %d %s %s ×%d: %s\n", i.ID, i.State, i.Severity, i.Count, strings.Join(types, ", "))
		}
	}
	for _, i := range k.incidents {
		fmt.Fprintf(&b, "%d %s %s ×%d joined %d time %d after %d: %s\n", i.ID, i.Group, i.State, i.Count, len(i.Joined), i.Times, i.Previous, i.Why)
	}
	return b.String()
}

// 10,000 alerts within a minute, of 500 groups, 30 % of them repeats, in any order:
// at most 20 incidents and one storm, whatever the batches.
func TestStorm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		k := newKeeper()
		total := 0
		for total < 10_000 {
			d := k.tracker()
			for range 1 + rng.IntN(300) {
				o := anomaly("production", fmt.Sprint("g", rng.IntN(500)), k.now, rng.IntN(10) == 0)
				if rng.IntN(10) == 0 {
					o.Status = StatusResolved
				}
				d.Take(o)
				total++
			}
			k.keep(t, d)
			k.now = k.now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		storms, events := 0, 0
		for _, i := range k.incidents {
			if i.Storm {
				storms++
			}
			events += len(k.logs[i.ID])
		}
		if storms != 1 || len(k.incidents) > 21 {
			t.Errorf("seed %d: %d incidents, %d of them storms", seed, len(k.incidents), storms)
		}
		if events > 2000 {
			t.Errorf("seed %d: %d events of %d alerts", seed, events, total)
		}
	}
}

// A hook that is used to do harm opens few incidents, whatever it claims.
func TestLimitOfIncidents(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	for n := range 600 { // within an hour
		k.now = k.now.Add(6 * time.Second)
		d := k.tracker()
		o := anomaly(fmt.Sprint("env", n), fmt.Sprint("g", n), k.now, true)
		d.Take(o)
		o.Status = StatusResolved
		d.Take(o)
		k.keep(t, d)
		d = k.tracker()
		d.Now = d.Now.Add(time.Second)
		d.Tick()
		k.keep(t, d)
	}
	if n := len(k.incidents); n > perHour+worsePerHour+1 {
		t.Errorf("%d incidents", n)
	}
}

// Nor do storms in one environment after the other open more.
func TestLimitOfStorms(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	for n := range 2100 { // 22 groups in each, within 35 minutes
		k.now = k.now.Add(time.Second)
		d := k.tracker()
		d.Take(anomaly(fmt.Sprint("env", n/22), fmt.Sprint("g", n), k.now, true))
		k.keep(t, d)
	}
	if n := len(k.incidents); n > perHour+worsePerHour+1 {
		t.Errorf("%d incidents", n)
	}
}

func TestGroupKey(t *testing.T) {
	t.Parallel()
	base := Observation{Kind: KindError, Repo: "a/b", Environment: "p", Title: "boom",
		Error: &Error{Type: "E", Stack: []Frame{{File: "x.go", Line: 3, Function: "f", InApp: true}, {File: "lib.go"}}}}
	other := func(change func(*Observation)) Observation {
		o := base
		e := *base.Error
		e.Stack = slices.Clone(e.Stack)
		o.Error = &e
		change(&o)
		return o
	}
	for _, tt := range []struct {
		name string
		o    Observation
		same bool
	}{
		{"another line", other(func(o *Observation) { o.Error.Stack[0].Line = 4 }), true},
		{"another message", other(func(o *Observation) { o.Title = "bang" }), true},
		{"another library", other(func(o *Observation) { o.Error.Stack[1].File = "z.go" }), true},
		{"another function", other(func(o *Observation) { o.Error.Stack[0].Function = "g" }), false},
		{"another type", other(func(o *Observation) { o.Error.Type = "F" }), false},
		{"another environment", other(func(o *Observation) { o.Environment = "q" }), false},
		{"another repository", other(func(o *Observation) { o.Repo = "a/c" }), false},
		{"a group of the source's", other(func(o *Observation) { o.Group = "g" }), false},
	} {
		if got := GroupKey(base) == GroupKey(tt.o); got != tt.same {
			t.Errorf("%s: same %t, want %t: %s", tt.name, got, tt.same, GroupKey(tt.o))
		}
	}
}

// status is what GitHub says of a deployment.
func status(id int64, state string, at time.Time) (Deployment, *Observation) {
	body := fmt.Sprintf(`{"deployment":{"id":%d,"sha":%q,"environment":"production","created_at":%q},"deployment_status":{"state":%q,"created_at":%q},"repository":{"full_name":"acme/shop"}}`,
		id, sha(int(id)), at.Add(-time.Minute).Format(time.RFC3339), state, at.Format(time.RFC3339))
	d, o, _, err := ReadDeployment("deployment_status", []byte(body))
	if err != nil {
		panic(err)
	}
	return d, o
}

// What GitHub says late of a deployment, after something newer, says nothing.
func TestLateStatus(t *testing.T) {
	t.Parallel()
	d := &Tracker{Now: received}
	for _, s := range []struct {
		state string
		at    time.Time
	}{{"success", received}, {"failure", received.Add(-10 * time.Second)}} {
		v, o := status(7, s.state, s.at)
		d.Deployed(v)
		d.Take(*o)
	}
	if len(d.Incidents) != 0 || d.Deployments[0].State != "success" {
		t.Errorf("%d incidents, the deployment is %s", len(d.Incidents), d.Deployments[0].State)
	}
	d = &Tracker{Now: received}
	for _, s := range []struct {
		state string
		at    time.Time
	}{{"inactive", received}, {"success", received.Add(-time.Hour)}} {
		v, _ := status(7, s.state, s.at)
		d.Deployed(v)
	}
	if v := d.Deployments[0]; v.State != "inactive" || !v.At.Equal(received.Add(-time.Hour)) {
		t.Errorf("it is not known to have run: %+v", v)
	}
}

// A deployment that fails while something goes on is another matter: it may be the cure,
// and names no cause of that.
func TestFailedHotfix(t *testing.T) {
	t.Parallel()
	for _, minutes := range []int{2, 20} {
		d := &Tracker{Now: received}
		bad, _ := status(1, "success", received)
		d.Deployed(bad)
		d.Take(anomaly("production", "errors", received.Add(time.Minute), true))
		at := received.Add(time.Duration(minutes) * time.Minute)
		d.Now = at
		for _, state := range []string{"failure", "success"} {
			v, o := status(2, state, at)
			d.Deployed(v)
			d.Take(*o)
			at = at.Add(10 * time.Second)
		}
		if len(d.Incidents) != 2 || len(d.Incidents[0].Named) != 0 || len(d.Incidents[0].Joined) != 0 {
			t.Fatalf("after %d minutes: %+v", minutes, d.Incidents)
		}
		if list := Candidates(d.Incidents[0], d.Deployments); len(list) != 1 || list[0].ID != 1 {
			t.Errorf("after %d minutes it may come from %+v", minutes, list)
		}
	}
}

// Nor does what goes wrong after a failed deployment belong to that, and where the two are
// one incident all the same, such as in a storm, the failed deployment is not named by it.
func TestFailedDeploymentBefore(t *testing.T) {
	t.Parallel()
	d := &Tracker{Now: received.Add(2 * time.Minute)}
	ran, _ := status(1, "success", received)
	failed, o := status(2, "failure", received.Add(time.Minute))
	d.Deployed(ran)
	d.Deployed(failed)
	d.Take(*o)
	d.Take(anomaly("production", "errors", received.Add(2*time.Minute), true))
	if len(d.Incidents) != 2 || len(d.Incidents[0].Joined) != 0 {
		t.Fatalf("%+v", d.Incidents)
	}
	i := d.Incidents[1]
	if i.Last = *o; len(i.names()) != 0 || i.newName(*o) {
		t.Errorf("it names %+v", i.names())
	}
}

// What an incident had deployed is not what it comes from.
func TestOwnRollBackIsNoSuspect(t *testing.T) {
	t.Parallel()
	i := trouble(KindAnomaly, with(func(o *Observation) { o.Deployment = 3 }))
	i.Acts = []Act{{Answer: AnswerRollBack, State: ActDone, Number: 3}}
	back := deployed(3, 0).Deployment
	back.At = i.FirstSeen.Add(time.Minute)
	if list := Candidates(i, []Deployment{back, deployed(2, 3).Deployment}); len(list) != 1 || list[0].ID != 2 {
		t.Errorf("candidates %+v", list)
	}
}
