package production

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline/rollout"
)

// What comes of a deployment that is watched for ten minutes: each letter is a look at a
// measure, P for pass, F for fail, "." for no value, one a minute. Covers P1, V12.
func TestBake(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	d := Deployment{ID: 2, Repo: "acme/shop", Environment: "production", Commit: "bbb", Previous: "aaa", At: at}
	blamed := func(state State, score float64) *Incident {
		return &Incident{ID: 9, Repo: d.Repo, Environment: d.Environment, State: state, Suspects: []Suspect{{Deployment: 2, Score: score}}}
	}
	for _, c := range []struct {
		name      string
		looks     []string
		incidents []*Incident
		later     []Deployment
		want      string
		says      string // of the query
	}{
		{name: "all pass", looks: []string{"PPPPPPPPPP", "PPPPPPPPPP"}, want: "healthy after 10"},
		{name: "before its time", looks: []string{"PPPPP"}, want: "watched"},
		{name: "a query fails", looks: []string{"PPPPPPPPPP", "PPPFFFFFFF"}, want: "unhealthy after 6: query is 1", says: "firing after 6"},
		{name: "a check fails", looks: []string{"PPFFF", "PPPPP"}, want: "unhealthy after 5: check is 1"},
		{name: "two failures are none", looks: []string{"PPPFFPPPPP", "PPPPPPFFPP"}, want: "healthy after 10"},
		{name: "it fails at the end", looks: []string{"PPPPPPPPPFFF"}, want: "unhealthy after 12: check is 1"},
		{name: "it fails at the end and passes again", looks: []string{"PPPPPPPPFFP"}, want: "healthy after 11"},
		{name: "it wavers at the end", looks: []string{"PPPPPPPPPFPFPFPFPFPF", "PPPPPPPPPFPFPFPFPFPF"}, want: "healthy after 11"},
		{name: "two that waver in turn", looks: []string{"PPPPPPPPPFPFPFPFPFPF", "PPPPPPPPFPFPFPFPFPFPF"},
			want: "unknown after 20: check passes and fails in turn: it is 1"},
		{name: "no value at the end", looks: []string{"PPPPPPPPP..."}, want: "unknown after 12: check showed nothing in 3 of 12 looks: no data"},
		{name: "no value for most of it", looks: []string{".......PPP"}, want: "unknown after 10: check showed nothing in 7 of 10 looks: no value"},
		{name: "never a value", looks: []string{"PPPPPPPPPPPP", "............"}, want: "unknown after 10: query showed nothing in 10 of 10 looks: no data"},
		{name: "nothing is measured", looks: []string{""}, want: "unknown after 10: nothing was measured"},
		{name: "an incident is attributed", looks: []string{"PPPPPPPPPP"}, incidents: []*Incident{blamed(StateOpen, Attributed)},
			want: "unhealthy after 1: incident 9"},
		{name: "one that is over", looks: []string{"PPPPPPPPPP"}, incidents: []*Incident{blamed(StateResolved, 0.9)}, want: "unhealthy after 1: incident 9"},
		{name: "one that was dismissed", looks: []string{"PPPPPPPPPP"}, incidents: []*Incident{blamed(StateDismissed, 0.9)}, want: "healthy after 10"},
		{name: "one that is only suspected", looks: []string{"PPPPPPPPPP"}, incidents: []*Incident{blamed(StateOpen, Suspected)}, want: "healthy after 10"},
		{name: "another deployment", looks: []string{"PPPPPPPPPP"},
			later: []Deployment{{ID: 3, Environment: "production", Commit: "ccc", At: minute(4)}},
			want:  "replaced after 4: deployment 3 came 4m0s after it"},
		{name: "another one in the same second", looks: []string{"PPPP"},
			later: []Deployment{{ID: 3, Environment: "production", Commit: "ccc", At: at}}, want: "replaced after 1: deployment 3 came 0s after it"},
		{name: "the one before in the same second", looks: []string{"PPPPPPPPPP"},
			later: []Deployment{{ID: 1, Environment: "production", Commit: "ccc", At: at}}, want: "healthy after 10"},
		{name: "elsewhere", looks: []string{"PPPPPPPPPP"}, later: []Deployment{{ID: 3, Environment: "staging", Commit: "ccc", At: minute(4)}},
			want: "healthy after 10"},
		{name: "another one that failed", looks: []string{"PPPPPPPPPP"}, later: []Deployment{{ID: 3, Environment: "production", Commit: "ccc"}},
			want: "healthy after 10"},
		{name: "another one later", looks: []string{"PPPPPPPPPPPP"},
			later: []Deployment{{ID: 3, Environment: "production", Commit: "ccc", At: minute(12)}}, want: "healthy after 10"},
		{name: "a roll-back", looks: []string{"PPPP"},
			later: []Deployment{{ID: 3, Environment: "production", Commit: "000", Task: TaskRollBack, At: minute(4)}},
			want:  "rolled back after 4: deployment 3 brought 000 back"},
		{name: "what ran before, much later", looks: []string{"PPPPPPPPPPPP"},
			later: []Deployment{{ID: 3, Environment: "production", Commit: "aaa", At: minute(12)}},
			want:  "rolled back after 12: deployment 3 brought aaa back"},
		{name: "a query that recovers", looks: []string{"PPPPPPPPPPPP", "PFFFPPPPPPPP"}, want: "unhealthy after 4: query is 1",
			says: "firing after 4, resolved after 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBake(d, nil, 10*time.Minute)
			var says []string
			most := 10
			if c.want == "watched" {
				most = 5
			}
			for _, l := range c.looks {
				most = max(most, len(l))
			}
			state := ""
			for n := 1; n <= most; n++ {
				var list []Sample
				for k, l := range c.looks {
					if n <= len(l) {
						s := map[byte]Sample{'P': {Result: Pass}, 'F': {Result: Fail, Why: "is 1"}, '.': {Result: NoValue, Why: "no data"}}[l[n-1]]
						s.Name = []string{"check", "query"}[k]
						list = append(list, s)
					}
				}
				if b.Open(minute(n)) {
					for _, o := range b.Take(list, []Query{{Name: "query"}}, minute(n)) {
						says = append(says, fmt.Sprintf("%s after %d", o.Status, n))
					}
				}
				seen := slices.DeleteFunc(slices.Clone(c.later), func(l Deployment) bool { return l.At.After(minute(n)) })
				before := b.State
				b.Judge(c.incidents, seen, minute(n))
				if b.State != before {
					state = strings.TrimSuffix(fmt.Sprintf("%s after %d: %s", b.State, n, b.Why), ": ")
				}
			}
			if state == "" {
				state = string(b.State)
			}
			if got := strings.Join(says, ", "); state != c.want || got != c.says {
				t.Errorf("%s, says %q\nwant %s, says %q", state, got, c.want, c.says)
			}
		})
	}
}

// An incident that is attributed after all went well, and that was nothing, changes what
// was said of the deployment twice.
func TestBakeAfterwards(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	b := NewBake(Deployment{ID: 2, Repo: "acme/shop", Environment: "production", At: at}, nil, time.Minute)
	for n := range inARow {
		b.Take([]Sample{{Name: "check", Result: Pass}}, nil, at.Add(time.Duration(n)*time.Minute))
	}
	i := &Incident{ID: 9, Environment: "production", State: StateOpen, Suspects: []Suspect{{Deployment: 2, Score: 1}}}
	for n, want := range []rollout.State{rollout.Healthy, rollout.Unhealthy, rollout.Unhealthy, rollout.Healthy} {
		var list []*Incident
		if n > 0 {
			list = append(list, i)
		}
		i.State = []State{StateOpen, StateOpen, StateResolved, StateDismissed}[n]
		b.Judge(list, nil, at.Add(time.Duration(n+1)*time.Hour))
		if b.State != want {
			t.Errorf("step %d: %s %s, want %s", n, b.State, b.Why, want)
		}
	}
}

// Also what is watched for a minute alone is looked at three times before it is healthy.
func TestShortBake(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for looks, want := range []string{"unknown: nothing was measured", "unknown: check was only looked at 1 time", "unknown: check was only looked at 2 times", "healthy: "} {
		b := NewBake(Deployment{ID: 2, Repo: "acme/shop", Environment: "production", At: at}, nil, time.Minute)
		for n := range looks {
			b.Take([]Sample{{Name: "check", Result: Pass}}, nil, at.Add(time.Duration(n)*time.Minute))
			if b.Judge(nil, nil, at.Add(time.Duration(n)*time.Minute)); n+1 < inARow && b.State != rollout.Watched {
				t.Errorf("it is %s after %d looks", b.State, n+1)
			}
		}
		b.Judge(nil, nil, at.Add(time.Hour))
		if got := string(b.State) + ": " + b.Why; got != want {
			t.Errorf("after %d looks %s, want %s", looks, got, want)
		}
	}
}

// A query is judged by its bounds, and by the time before the deployment.
func TestQuery(t *testing.T) {
	t.Parallel()
	w := func(mean, peak float64) *Window { return &Window{Mean: mean, Peak: peak, Points: 10} }
	for _, c := range []struct {
		q           Query
		now, before *Window
		want        Result
		why         string
	}{
		{Query{Max: 0.02}, w(0.01, 0.5), nil, Pass, ""},
		{Query{Max: 0.02}, w(0.03, 0.5), nil, Fail, "is 0.03, over 0.02"},
		{Query{Min: 10}, w(9, 50), nil, Fail, "is 9, under 10"},
		{Query{WorseBy: 0.5}, w(0.3, 0.3), w(0.1, 0.2), Fail, "is 0.3, and was 0.1 before the deployment"},
		{Query{WorseBy: 0.5}, w(0.14, 0.3), w(0.1, 0.1), Pass, ""},
		{Query{WorseBy: 0.5}, w(0.3, 0.9), w(0.1, 0.4), Pass, ""}, // it was as high before
		{Query{WorseBy: 0.5}, w(0.3, 0.3), w(0, 0), Fail, "is 0.3, and was 0 before the deployment"},
		{Query{WorseBy: 0.5}, w(-1, -1), w(-2, -2), Pass, ""},
		{Query{WorseBy: 0.5}, w(0.3, 0.3), nil, NoValue, "it had no value before the deployment"},
		{Query{WorseBy: 0.5, Max: 1}, w(0.3, 0.3), nil, Pass, ""},
		{Query{WorseBy: 0.5, Max: 1}, nil, w(1, 1), NoValue, "away"},
	} {
		why := ""
		if c.now == nil {
			why = "away"
		}
		if s := c.q.Judge(c.now, c.before, why); s.Result != c.want || s.Why != c.why {
			t.Errorf("%+v: %+v, want %s %q", c.q, s, c.want, c.why)
		}
	}
}
