package production

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A history is what was deployed, and what then went wrong.
type history struct {
	name   string
	right  int // the deployment that did it; 0: none
	i      *Incident
	facts  []Facts
	before []*Incident
}

func sha(n int) string { return strings.Repeat(fmt.Sprintf("%x", n%16), 40) }

// deployed is a deployment so many minutes before the incident, with one commit that
// changes these files.
func deployed(n, minutes int, files ...string) Facts {
	return Facts{
		Deployment: Deployment{ID: int64(n), Environment: "production", Commit: sha(n), At: received.Add(-time.Duration(minutes) * time.Minute), State: "success"},
		Commits:    []Commit{{ID: sha(n), Title: fmt.Sprintf("change %d (#%d)", n, 40+n), Files: files, Pull: 40 + n, Run: int64(n)}},
	}
}

func blamed(f Facts, place string) Facts {
	f.Blamed = map[string]string{place: f.Commits[0].ID}
	return f
}

func brings(f Facts, files ...string) Facts {
	n := len(f.Commits) + 8
	f.Commits = append(f.Commits, Commit{ID: sha(n), Title: "another", Files: files, Pull: 90 + n})
	return f
}

func trouble(kind Kind, change ...func(*Observation)) *Incident {
	o := Observation{Kind: kind, Repo: "acme/shop", Environment: "production", Service: "api", At: received, Severity: SeverityCritical}
	for _, c := range change {
		c(&o)
	}
	i := &Incident{ID: 9, Environment: "production", Kind: kind, First: o, Last: o, FirstSeen: o.began(), State: StateOpen}
	i.Group = GroupKey(o)
	return i
}

func stack(places ...string) func(*Observation) {
	return func(o *Observation) {
		o.Error = &Error{Type: "panic"}
		for _, p := range places {
			file, n, _ := strings.Cut(p, ":")
			o.Error.Stack = append(o.Error.Stack, Frame{File: file, Line: whole(n), InApp: true})
		}
	}
}

func metric(base, now float64) func(*Observation) {
	return func(o *Observation) { o.Anomaly = &Anomaly{Metric: "error_rate", Baseline: &base, Current: &now} }
}

func with(set func(*Observation)) func(*Observation) { return set }

func since(minutes int) func(*Observation) {
	return func(o *Observation) { o.Since = received.Add(-time.Duration(minutes) * time.Minute) }
}

// histories are scripted stories, of which it is known what did it: the last
// deployment, an earlier one, one of two within minutes, or none.
func histories() []history {
	anomaly, failure, health := KindAnomaly, KindError, KindHealth
	cart, login := "cart/cart.go", "login/login.go"
	old := func(i *Incident, hours int) *Incident {
		o := *i
		o.ID, o.FirstSeen, o.State = 3, received.Add(-time.Duration(hours)*time.Hour), StateResolved
		return &o
	}
	h := func(name string, right int, i *Incident, facts ...Facts) history {
		return history{name: name, right: right, i: i, facts: facts}
	}
	list := []history{
		// The last one did it.
		h("metric, two minutes after", 2, trouble(anomaly, metric(0.004, 0.07)), deployed(2, 2, cart), deployed(1, 300, login)),
		h("metric, ten minutes after", 2, trouble(anomaly, metric(0.004, 0.07)), deployed(2, 10, cart), deployed(1, 300, login)),
		h("metric without a baseline", 2, trouble(anomaly), deployed(2, 3, cart), deployed(1, 300, login)),
		h("latency", 2, trouble(anomaly, metric(120, 900)), deployed(2, 4, cart), deployed(1, 1500, login)),
		h("throughput falls", 2, trouble(anomaly, metric(100, 3)), deployed(2, 4, cart), deployed(1, 1500, login)),
		h("health, at once", 2, trouble(health), deployed(2, 1, cart), deployed(1, 90, login)),
		h("health, the source names it", 2, trouble(health, with(func(o *Observation) { o.Deployment = 2 })), deployed(2, 20, cart), deployed(1, 90, login)),
		h("stack in the last", 2, trouble(failure, stack("/src/cart/cart.go:12")), deployed(2, 5, cart), deployed(1, 300, login)),
		h("stack and line in the last", 2, trouble(failure, stack("/src/cart/cart.go:12")), blamed(deployed(2, 50, cart), "/src/cart/cart.go:12"),
			deployed(1, 300, login)),
		h("stack below the last's file", 2, trouble(failure, stack("lib/util.go:3", "cart/cart.go:9")), deployed(2, 15, cart), deployed(1, 300, login)),
		h("release of the last", 2, trouble(failure, stack("cart.go:1"), with(func(o *Observation) { o.Release = "shop@" + sha(2) })),
			deployed(2, 15, cart), deployed(1, 300, login)),
		h("hours later, by line", 2, trouble(failure, stack("cart/cart.go:12")), blamed(deployed(2, 300, cart), "cart/cart.go:12"), deployed(1, 600, login)),
		h("the first deployment ever", 1, trouble(anomaly, metric(0, 0.5)), deployed(1, 2, cart)),
		h("of several commits, the one in the stack", 2, trouble(failure, stack("cart/cart.go:12")), brings(deployed(2, 5, cart), login), deployed(1, 300, login)),
		h("related commit", 2, trouble(failure, with(func(o *Observation) { o.Error = &Error{Related: sha(2)[:8]} })), deployed(2, 200, cart),
			deployed(1, 500, login)),
		h("Java file by name", 2, trouble(failure, stack("Cart.java:4")), deployed(2, 8, "src/main/java/shop/Cart.java"), deployed(1, 300, login)),
		// An earlier one did it.
		h("stack in the one before", 1, trouble(failure, stack("login/login.go:7")), deployed(2, 90, cart), blamed(deployed(1, 120, login), "login/login.go:7")),
		h("stack and line in the one before", 1, trouble(failure, stack("login/login.go:7")), deployed(2, 20, cart),
			blamed(deployed(1, 60, login), "login/login.go:7")),
		h("the source names the one before", 1, trouble(anomaly, with(func(o *Observation) { o.Deployment = 1 })), deployed(2, 6, cart), deployed(1, 60, login)),
		h("related commit in the one before", 1, trouble(failure, with(func(o *Observation) { o.Error = &Error{Related: sha(1)} })),
			deployed(2, 6, cart), deployed(1, 60, login)),
		h("began before the last", 1, trouble(anomaly, metric(0.01, 0.3), since(30)), deployed(1, 35, login)),
		h("three deployments, the middle", 2, trouble(failure, stack("login/login.go:7")), deployed(3, 25, "docs/a.md"),
			blamed(deployed(2, 40, login), "login/login.go:7"), deployed(1, 80, cart)),
		h("three deployments, the oldest", 1, trouble(failure, stack("pay/pay.go:3")), deployed(3, 45, "docs/a.md"), deployed(2, 60, login),
			blamed(deployed(1, 80, "pay/pay.go"), "pay/pay.go:3")),
		h("days later, by line", 1, trouble(failure, stack("login/login.go:7")), deployed(2, 2000, cart), blamed(deployed(1, 4000, login), "login/login.go:7")),
		// Two within five minutes.
		h("two within five minutes, by the stack", 2, trouble(failure, stack("cart/cart.go:1")), deployed(3, 2, login),
			blamed(deployed(2, 5, cart), "cart/cart.go:1"), deployed(1, 300)),
		h("two within five minutes, the last by the stack", 3, trouble(failure, stack("login/login.go:1")),
			blamed(deployed(3, 2, login), "login/login.go:1"), deployed(2, 5, cart), deployed(1, 300)),
		h("two within five minutes, the source names the first", 2, trouble(health, with(func(o *Observation) { o.Deployment = 2 })),
			deployed(3, 2, login), deployed(2, 5, cart)),
		h("two within five minutes, the last one", 3, trouble(anomaly, metric(1, 9)), deployed(3, 2, login), deployed(2, 5, cart)),
		h("two within five minutes, the first one, and nothing says so", 2, trouble(anomaly, metric(1, 9)), deployed(3, 2, login), deployed(2, 5, cart)),
		// None did it.
		h("no deployment for a day", 0, trouble(anomaly, metric(1, 9)), deployed(1, 1440, cart)),
		h("four hours later, nothing points at it", 0, trouble(anomaly), deployed(1, 240, cart)),
		h("no deployment at all", 0, trouble(health)),
		h("a stack of other files, hours later", 0, trouble(failure, stack("pay/pay.go:3")), deployed(1, 200, cart)),
		h("a metric as it always was", 0, trouble(anomaly, metric(1, 1.1)), deployed(1, 60, cart)),
		h("a provider is away, hours later", 0, trouble(health), deployed(2, 180, cart), deployed(1, 400, login)),
		{name: "it comes every night", right: 0, i: trouble(anomaly), facts: []Facts{deployed(1, 10, cart)}},
		{name: "the same as yesterday", right: 0, i: trouble(health), facts: []Facts{deployed(1, 20, cart)}},
		{name: "flaps since before", right: 0, i: trouble(anomaly, metric(1, 9)), facts: []Facts{deployed(1, 30, cart)}},
		h("documents alone, an hour later", 0, trouble(failure, stack("pay/pay.go:3")), deployed(1, 61, "README.md")),
		h("a release that is old", 0, trouble(failure, with(func(o *Observation) { o.Release = sha(5); o.Error = &Error{Type: "x"} })), deployed(1, 100, cart)),
	}
	for n := range list {
		switch list[n].name {
		case "it comes every night", "the same as yesterday", "flaps since before":
			list[n].before = []*Incident{old(list[n].i, 24)}
		}
	}
	return list
}

// Of 40 histories the first suspect is right in at least 36, and none that is wrong is
// attributed: only what is may ever be acted on. Covers P2.
func TestSuspectsOfHistories(t *testing.T) {
	t.Parallel()
	list := histories()
	if len(list) != 40 {
		t.Fatalf("%d histories", len(list))
	}
	right, wronglyAttributed := 0, []string{}
	for _, h := range list {
		got := Suspects(h.i, h.facts, h.before, map[string][]string{"api": {"cart/**"}})
		first := int64(0)
		if len(got) > 0 && got[0].Score >= Suspected {
			first = got[0].Deployment
		}
		if first == int64(h.right) {
			right++
		} else {
			t.Logf("%s: suspected %d, and it was %d: %+v", h.name, first, h.right, got)
		}
		if len(got) > 0 && got[0].Score >= Attributed && got[0].Deployment != int64(h.right) {
			wronglyAttributed = append(wronglyAttributed, h.name)
		}
	}
	t.Logf("%d of %d are right; wrongly attributed: %q", right, len(list), wronglyAttributed)
	if right < 36 || len(wronglyAttributed) > 0 {
		t.Errorf("%d of %d are right, and attributed wrongly are %q", right, len(list), wronglyAttributed)
	}
}

// The reasons are said, and the commit, pull request, run, file and finding named.
func TestSuspectSaysWhy(t *testing.T) {
	t.Parallel()
	i := trouble(KindError, stack("/srv/cart/cart.go:12"))
	f := blamed(brings(deployed(2, 5, "cart/cart.go"), "x.go"), "/srv/cart/cart.go:12")
	f.Doubts = []Doubt{{Run: 2, Fingerprint: "f1", File: "cart/cart.go", Line: 11, State: "dismissed"}}
	got := Suspects(i, []Facts{f}, nil, map[string][]string{"api": {"cart/**"}})
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	s := got[0]
	if s.Commit != sha(2) || s.Pull != 42 || s.Run != 2 || s.File != "cart/cart.go" || s.Finding != "f1" || s.Score < Attributed || len(s.Why) != 5 {
		t.Errorf("%+v", s)
	}
	for n, want := range []string{"last deployment to production, 5 minutes before (0.53)", "is in the stack and was changed by",
		"line 12 of /srv/cart/cart.go", "files of the service api", "a finding at cart/cart.go:11 is dismissed"} {
		if !strings.Contains(s.Why[n], want) {
			t.Errorf("reason %q, want %q", s.Why[n], want)
		}
	}
}

// What the source names speaks against what it does not name: nobody is sure then, and
// the reason is said.
func TestSourceNamesSomethingElse(t *testing.T) {
	t.Parallel()
	a := metric(1, 90)
	for _, tt := range []struct {
		name   string
		change func(*Observation)
		top    int64
		sure   bool
		why    string
	}{
		{"nothing", func(*Observation) {}, 2, true, ""},
		{"the deployment", func(o *Observation) { o.Deployment = 2 }, 2, true, ""},
		{"its commit", func(o *Observation) { o.Commit = sha(2)[:8] }, 2, true, ""},
		{"its branch as the release", func(o *Observation) { o.Release = "main" }, 2, true, ""},
		{"a version", func(o *Observation) { o.Release = "shop@1.2.3" }, 2, true, ""},
		{"a word of hexadecimal digits", func(o *Observation) { o.Release = "shop@facade" }, 2, true, ""},
		{"a deployment that nobody knows", func(o *Observation) { o.Deployment = 99999999 }, 2, false, "the source names deployment 99999999, which is not known"},
		{"the one before", func(o *Observation) { o.Deployment = 1 }, 1, true, ""},
		{"the release of the one before", func(o *Observation) { o.Release = sha(1) }, 2, false, "the source says that 1111111111 runs"},
		{"the tag of the one before", func(o *Observation) { o.Release = "v1" }, 2, false, "the source says that v1 runs"},
		{"the number of the tag of the one before", func(o *Observation) { o.Release = "shop@1" }, 2, false, "the source says that 1 runs"},
		{"the commit of the one before behind a version", func(o *Observation) { o.Release = "1.2.4+" + sha(1)[:7] }, 2, false, "the source says that 1.2.4+1111 runs"},
		{"the commit of the one before", func(o *Observation) { o.Commit = sha(1) }, 2, false, "the source says that 1111111111 runs"},
		{"an unknown commit", func(o *Observation) { o.Commit = sha(7) }, 2, false, "the source says that 7777777777 runs"},
		{"an unknown commit as related", func(o *Observation) { o.Error = &Error{Related: sha(7)} }, 2, false, "the source holds commit 7777777777 for the cause"},
	} {
		two, one := deployed(2, 2), deployed(1, 600)
		two.Deployment.Ref, one.Deployment.Ref = "main", "v1"
		for _, later := range []bool{false, true} {
			i := trouble(KindAnomaly, a, tt.change)
			if later { // it says so once, and then no more
				i = trouble(KindAnomaly, a)
				o := i.First
				tt.change(&o)
				i.Apply(Event{Seq: 5, Type: EventAnomalyDetected, At: received, Data: EventData{Observation: &o, Group: i.Group}})
				o = i.First
				i.Apply(Event{Seq: 6, Type: EventAnomalyDetected, At: received, Data: EventData{Observation: &o, Group: i.Group}})
			}
			got := Suspects(i, []Facts{two, one}, nil, nil)
			if got[0].Deployment != tt.top || (got[0].Score >= Attributed) != tt.sure || !strings.Contains(strings.Join(got[0].Why, "\n"), tt.why) {
				t.Errorf("%s, later %t: %+v", tt.name, later, got)
			}
			i.Suspects, i.Severity = got, SeverityCritical
			if why := (Scene{Now: received}).certain(i); (why == "") != tt.sure || !strings.Contains(why, tt.why) {
				t.Errorf("%s, later %t: certain says %q", tt.name, later, why)
			}
		}
	}
}

// A release names a deployment by its tag or its commit, as people write them.
func TestReleased(t *testing.T) {
	t.Parallel()
	d := Deployment{Commit: "abcdef0" + strings.Repeat("1", 33), Ref: "v1.2.3"}
	for release, want := range map[string]bool{
		"v1.2.3": true, "1.2.3": true, "shop@1.2.3": true, "V1.2.3": true, "1.2.3+build.7": true, "ABCDEF01": true, "2.0.0+abcdef01": true, "abcdef0": true,
		"1.2.4": false, "abcdef": false, "1.2.4+abcdef": false, "": false, "v": false, "+": false, "shop@": false,
	} {
		if got := (Named{Release: release}).released(d); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
	if (Named{Release: "vega"}).released(Deployment{Ref: "ega"}) {
		t.Error("a v that belongs to a word")
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	i := trouble(KindHealth)
	d := func(id int64, env string, minutes int) Deployment {
		return Deployment{ID: id, Environment: env, At: received.Add(-time.Duration(minutes) * time.Minute)}
	}
	var ids []int64
	for _, c := range Candidates(i, []Deployment{d(1, "production", 60), d(2, "staging", 5), d(3, "production", -1), d(4, "production", 10),
		{ID: 5, Environment: "production"}, d(6, "production", 60*24*8)}) {
		ids = append(ids, c.ID)
	}
	if fmt.Sprint(ids) != "[4 1]" {
		t.Errorf("candidates %v", ids)
	}
}

func TestSameFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		frame, file string
		want        bool
	}{
		{"/src/cart/cart.go", "cart/cart.go", true}, {"cart/cart.go", "cart/cart.go", true}, {"Cart.java", "src/Cart.java", true},
		{`C:\shop\cart\cart.go`, "cart/cart.go", true},
		{"/src/xcart/cart.go", "cart/cart.go", false}, {"art.go", "cart.go", false}, {"", "cart.go", false}, {"login/cart.go", "cart/cart.go", false},
	} {
		if got := SameFile(tt.frame, tt.file); got != tt.want {
			t.Errorf("SameFile(%q, %q) = %t", tt.frame, tt.file, got)
		}
	}
}

// What brought nothing is not what it comes from, such as when people deploy again what
// ran before.
func TestBroughtNothing(t *testing.T) {
	t.Parallel()
	back, bad := deployed(3, 2), deployed(2, 25)
	back.Commits, back.Nothing = nil, true
	i := trouble(KindAnomaly, metric(0.004, 0.07))
	got := Suspects(i, []Facts{back, bad, deployed(1, 180)}, nil, nil)
	if len(got) == 0 || got[0].Score >= Attributed || !strings.Contains(got[0].Against, "it brought nothing that did not run there before") {
		t.Errorf("%+v", got)
	}
	back.Nothing, back.Back = false, "it takes back “x” and does nothing else"
	if got := Suspects(i, []Facts{back, bad}, nil, nil); got[0].Score >= Attributed || got[0].Back == "" {
		t.Errorf("what only takes back: %+v", got)
	}
	back.Back = ""
	if got := Suspects(i, []Facts{back, bad}, nil, nil); got[0].Score < Attributed {
		t.Errorf("what is not known to have brought nothing: %+v", got)
	}
}

// Of several commits nothing is taken back at which nothing points; those of one pull
// request are one.
func TestSuspectOfSeveralCommits(t *testing.T) {
	t.Parallel()
	two := brings(deployed(2, 2, "cart/cart.go"), "pay/pay.go")
	both := brings(deployed(2, 2, "cart/cart.go"), "cart/cart.go")
	one := brings(deployed(2, 2, "cart/cart.go"), "pay/pay.go")
	one.Commits[1].Pull, one.Commits[1].Run = one.Commits[0].Pull, one.Commits[0].Run
	for _, tt := range []struct {
		name   string
		i      *Incident
		f      Facts
		commit string
		pull   int
	}{
		{"one commit", trouble(KindAnomaly, metric(0.004, 0.07)), deployed(2, 2, "a.go"), sha(2), 42},
		{"two, and nothing says which", trouble(KindAnomaly, metric(0.004, 0.07)), two, "", 0},
		{"two, and the stack says which", trouble(KindError, stack("cart/cart.go:12")), two, sha(2), 42},
		{"two that the stack does not tell apart", trouble(KindError, stack("cart/cart.go:12")), both, "", 0},
		{"two of one pull request", trouble(KindAnomaly, metric(0.004, 0.07)), one, sha(2), 42},
		{"not looked up", trouble(KindAnomaly, metric(0.004, 0.07)), Facts{Deployment: deployed(2, 2).Deployment}, "", 0},
	} {
		got := Suspects(tt.i, []Facts{tt.f}, nil, nil)
		if len(got) != 1 || got[0].Commit != tt.commit || got[0].Pull != tt.pull || got[0].Score < Attributed {
			t.Errorf("%s: %+v, want commit %.10s of #%d", tt.name, got, tt.commit, tt.pull)
		}
		i, s := stage()
		i.Suspects = got
		if aim, why := s.mayRevert(i, false); (why == "") != (tt.commit != "") {
			t.Errorf("%s: reverts %+v, %q", tt.name, aim, why)
		}
	}
}

// A deployment that failed is what its own incident comes from, and not the one before.
func TestFailedDeploymentIsItsOwnSuspect(t *testing.T) {
	t.Parallel()
	i := trouble(KindHealth, with(func(o *Observation) { o.Source, o.Deployment, o.Commit = "github", 3, sha(3) }))
	runs, failed := deployed(2, 20).Deployment, deployed(3, 0).Deployment
	failed.At, failed.State, failed.Created = time.Time{}, "failure", received.Add(-time.Minute)
	list := Candidates(i, []Deployment{runs, failed})
	if len(list) != 1 || list[0].ID != 3 || list[0].Previous != runs.Commit {
		t.Fatalf("candidates %+v", list)
	}
	f := deployed(3, 0)
	f.Deployment = list[0]
	if got := Suspects(i, []Facts{f}, nil, nil); len(got) != 1 || got[0].Deployment != 3 || got[0].Pull != 43 || got[0].Against != "" || got[0].Score < Attributed {
		t.Errorf("%+v", got)
	}
	failed.State = "in_progress"
	if list := Candidates(i, []Deployment{runs, failed}); len(list) != 1 || list[0].ID != 2 {
		t.Errorf("candidates %+v", list)
	}
}
