package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/incidents"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/rollout"
	"forge/pipeline/store"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// receiver is a subscriber's own server. answer says what it answers to its nth message,
// from 0; nil: 200.
type receiver struct {
	*httptest.Server
	answer func(n int) int

	mu  sync.Mutex
	n   int
	got []Event
	bad []string
}

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		status := 200
		if r.answer != nil {
			status = r.answer(r.n)
		}
		r.n++
		if status < 300 {
			var e Event
			if err := json.Unmarshal(body, &e); err != nil {
				r.bad = append(r.bad, err.Error())
			}
			if h := req.Header; h.Get("Webhook-Signature") != Sign([]string{secret}, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body) {
				r.bad = append(r.bad, "signature of "+e.ID)
			}
			r.got = append(r.got, e)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

func openStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// newRun makes a run with so many notes in its log, besides its start.
func newRun(t *testing.T, db *store.DB, key string, notes int) *pipeline.Run {
	t.Helper()
	task := pipeline.Task{Issue: 7, Title: "Mend it, sk-secret", URL: "https://github.com/acme/shop/issues/7"}
	run, err := db.CreateRun(t.Context(), key, pipeline.Start{Repo: pipeline.Repo{ID: int64(len(key)), Owner: "acme", Name: "shop-" + key},
		Task: task, Base: "b", Branch: "forge/x"}, now, strings.Repeat("a", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	var events []pipeline.Event
	for i := range notes {
		events = append(events, pipeline.Event{ID: fmt.Sprint("n", i), Type: pipeline.EventBaseMoved, Source: "test", Time: now,
			Data: pipeline.Data{Note: "sk-note"}})
	}
	if err := db.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
	return run
}

// newSender is a service of one subscriber, which was there before all runs.
func newSender(t *testing.T, db *store.DB, sub Subscriber) *sender {
	t.Helper()
	sub.Name, sub.Secrets, sub.Private = "ci", []string{secret}, true
	s := New(Options{DB: db, Subscribers: []Subscriber{sub}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }, After: time.After,
		Hide: func(s string) string { return strings.ReplaceAll(s, "sk-secret", "…") }})
	if err := s.to[0].subscribe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.to[0]
}

// A panic over what is told is an error like others: the next attempt comes after a while,
// and the process goes on. Covers reliability 9.
func TestPanicOverAnEvent(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, nil)
	s := newSender(t, db, Subscriber{URL: r.URL})
	newRun(t, db, "a", 0)
	hide := s.o.Hide
	s.o.Hide = func(string) string { panic("a poisonous title") }
	if err := s.attempt(t.Context()); err == nil || !strings.Contains(err.Error(), "a poisonous title") {
		t.Errorf("attempt: %v", err)
	}
	s.o.Hide = hide
	if err := s.attempt(t.Context()); err != nil || len(r.got) == 0 {
		t.Errorf("afterwards: %v, %d events came", err, len(r.got))
	}
}

// Every event comes, in its order within a run, signed, and with nothing but what is
// named. Covers U7.
func TestTells(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, nil)
	before := newRun(t, db, "before", 2)
	s := newSender(t, db, Subscriber{URL: r.URL})
	run := newRun(t, db, "a", 0)
	gate := &pipeline.Gate{ID: "gate/1", Question: "Go on with sk-secret?", Choices: []pipeline.Choice{{Name: "continue", Label: "go on"}}, Opened: now}
	events := []pipeline.Event{
		{ID: "s", Type: pipeline.EventAgentIteration, Source: "test", Time: now, Data: pipeline.Data{Note: "private"}},
		{ID: "r", Type: pipeline.EventRecalled, Source: "test", Time: now},
		{ID: "f", Type: pipeline.EventFinding, Source: "test", Time: now,
			Data: pipeline.Data{Finding: &pipeline.Finding{Severity: "error", Message: "the message", Code: "the code", File: "a.go", Line: 3}}},
		{ID: "g", Type: pipeline.EventGateRequested, Source: "test", Time: now, Data: pipeline.Data{Gate: gate, Note: "a note"}},
		{ID: "h", Type: pipeline.EventShipAsked, Source: "test", Time: now, Data: pipeline.Data{Ship: &rollout.Step{Environment: "prod", Question: "Ship it?",
			Choices: map[string]string{"approve prod": "sk-secret is deployed", "stop": "nothing"}}}},
	}
	if err := db.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range r.got {
		types = append(types, fmt.Sprintf("%s %d", e.Type, e.Data.Seq))
		if e.Data.Run == before.ID {
			t.Errorf("told of what was before: %+v", e)
		}
	}
	if want := []string{"io.forge.run.started 1", "io.forge.finding.detected 4", "io.forge.gate.requested 5", "io.forge.ship.asked 6"}; !slices.Equal(types, want) || len(r.bad) > 0 {
		t.Fatalf("told %q, want %q; %q", types, want, r.bad)
	}
	g := r.got[2]
	if g.SpecVersion != "1.0" || g.ID != strings.Repeat("a", 32)+"/5" || g.Source != "/forge/acme/shop-a/runs/2" ||
		g.Subject != "acme/shop-a#7" || g.Data.Question != "Go on with …?" || g.Data.Choices["continue"] != "go on" {
		t.Errorf("%+v", g)
	}
	if d := r.got[3].Data; d.Environment != "prod" || d.Choices["approve prod"] != "… is deployed" || d.Choices["stop"] != "nothing" {
		t.Errorf("%+v", d)
	}
	raw, _ := json.Marshal(r.got)
	for _, word := range []string{"sk-secret", "the code", "the message", "a note", "private"} {
		if strings.Contains(string(raw), word) {
			t.Errorf("%q is told: %s", word, raw)
		}
	}
	if err := s.round(t.Context()); err != nil || len(r.got) != 4 {
		t.Errorf("told again: %d, %v", len(r.got), err)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		types, repos []string
		want         int
	}{
		{nil, nil, 4}, {[]string{"run.*"}, nil, 1}, {[]string{"base.moved"}, []string{"acme/*"}, 3}, {nil, []string{"other/*"}, 0},
		{[]string{"tool.executed", "gate.*"}, nil, 0}, {[]string{"io.forge.run.*"}, nil, 1}, {[]string{"base.moved"}, []string{"ACME/*"}, 3},
	} {
		db := openStore(t)
		r := newReceiver(t, nil)
		s := newSender(t, db, Subscriber{URL: r.URL, Types: tt.types, Repos: tt.repos})
		newRun(t, db, "a", 3)
		if err := s.round(t.Context()); err != nil || len(r.got) != tt.want {
			t.Errorf("%v %v: told %d, want %d, %v", tt.types, tt.repos, len(r.got), tt.want, err)
		}
	}
}

// A subscriber that fails at random, and servers that die at random, leave none out and
// none out of order. Covers U7.
func TestNoneIsLost(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, func(n int) int { return []int{200, 200, 503, 200, 429, 200, 500}[n%7] })
	s := newSender(t, db, Subscriber{URL: r.URL})
	for _, key := range []string{"a", "bb", "ccc"} {
		newRun(t, db, key, 40)
	}
	for try := 0; ; try++ {
		err := s.round(t.Context())
		if err == nil {
			break
		}
		if try > 1000 {
			t.Fatal(err)
		}
		if try%5 == 4 { // another server goes on, after the first one's time is over
			now := s.o.Now().Add(time.Duration(try) * 2 * holdTime)
			s = New(Options{DB: db, Subscribers: []Subscriber{s.Subscriber}, Log: s.o.Log, Now: func() time.Time { return now }, After: time.After,
				Hide: s.o.Hide}).to[0]
		}
	}
	last := map[int64]int64{}
	for _, e := range r.got {
		switch seen := last[e.Data.Run]; {
		case e.Data.Seq == seen+1:
			last[e.Data.Run]++
		case e.Data.Seq > seen+1:
			t.Fatalf("run %d: %d comes after %d", e.Data.Run, e.Data.Seq, seen)
		}
	}
	if len(last) != 3 || last[1] != 41 || last[2] != 41 || last[3] != 41 || len(r.bad) > 0 {
		t.Errorf("told up to %v; %q", last, r.bad)
	}
}

// running is a service that looks again at once, as often as said, each time a minute later
// than it waits; it returns how long it waited each time.
func running(t *testing.T, db *store.DB, sub Subscriber, looks int) (waits []time.Duration) {
	t.Helper()
	newSender(t, db, sub) // makes it known
	sub.Name, sub.Secrets, sub.Private = "ci", []string{secret}, true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at := now
	s := New(Options{DB: db, Subscribers: []Subscriber{sub}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at }, Hide: hide,
		After: func(d time.Duration) <-chan time.Time {
			if waits = append(waits, d); len(waits) == looks {
				stop()
			}
			at = at.Add(d + time.Minute)
			next := make(chan time.Time, 1)
			next <- at
			return next
		}})
	s.Run(ctx)
	return waits
}

// A subscriber that answers 410 is told nothing more, however often the server looks; one
// that fails while another server may hold it stays failing.
func TestStaysPaused(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, func(int) int { return 410 })
	newSender(t, db, Subscriber{URL: r.URL})
	newRun(t, db, "a", 1)
	running(t, db, Subscriber{URL: r.URL}, 6)
	state, err := db.Subscriber(t.Context(), Cursor("ci"))
	if err != nil || state.Paused != errGone.Error() || state.Failed.IsZero() || r.n != 1 {
		t.Errorf("asked %d times, then %+v, %v", r.n, state, err)
	}
}

func TestStaysFailed(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, nil)
	first := newSender(t, db, Subscriber{URL: r.URL})
	newRun(t, db, "a", 1)
	if held, err := db.HoldSubscriber(t.Context(), first.cursor(), "other", now, now.Add(1000*time.Hour)); !held || err != nil {
		t.Fatal(held, err)
	}
	first.note(t.Context(), now, "")
	running(t, db, Subscriber{URL: r.URL}, 3)
	if state, err := db.Subscriber(t.Context(), first.cursor()); err != nil || !state.Failed.Equal(now) || r.n != 0 {
		t.Errorf("asked %d times, then %+v, %v; want it to fail since %v", r.n, state, err, now)
	}
}

// What gets through sets back since when nothing does, and how long is waited.
func TestFailsNowAndThen(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, func(n int) int { return []int{500, 500, 200}[n%3] })
	newSender(t, db, Subscriber{URL: r.URL})
	newRun(t, db, "a", 4)
	waits := running(t, db, Subscriber{URL: r.URL}, 8)
	want := []time.Duration{pauses[0], pauses[1], pauses[0], pauses[1], pauses[0], pauses[1], pauses[0], pauses[1]}
	if !slices.Equal(waits, want) {
		t.Errorf("waited %v, want %v", waits, want)
	}
	state, err := db.Subscriber(t.Context(), Cursor("ci"))
	if since := state.Failed.Sub(now); err != nil || since < 3*time.Minute {
		t.Errorf("fails since %v after the beginning, %v; want since the last that got through", since, err)
	}
}

// Two servers do not tell one subscriber at the same time.
func TestOneServerTells(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, nil)
	first := newSender(t, db, Subscriber{URL: r.URL})
	second := newSender(t, db, Subscriber{URL: r.URL})
	if held, err := first.hold(t.Context()); !held || err != nil {
		t.Fatal(held, err)
	}
	newRun(t, db, "a", 1)
	if err := second.round(t.Context()); err != nil || len(r.got) != 0 {
		t.Errorf("the second told %d, %v", len(r.got), err)
	}
	if err := first.round(t.Context()); err != nil || len(r.got) != 2 {
		t.Errorf("the first told %d, %v", len(r.got), err)
	}
}

// One that wants no more, or that nothing gets through to for three days, is paused, and
// goes on where it stopped when it is resumed.
func TestPaused(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	status := http.StatusInternalServerError
	r := newReceiver(t, func(int) int { return status })
	s := newSender(t, db, Subscriber{URL: r.URL})
	at := now
	s.o.Now = func() time.Time { return at }
	newRun(t, db, "a", 2)
	fails := func(want string) {
		t.Helper()
		s.failed(t.Context(), s.round(t.Context()), time.Second)
		state, err := db.Subscriber(t.Context(), s.cursor())
		if err != nil || !strings.Contains(state.Paused, want) || (want == "") != (state.Paused == "") || !state.Failed.Equal(now) {
			t.Errorf("%+v, %v, want paused %q", state, err, want)
		}
	}
	fails("")
	at = now.Add(patience)
	fails("nothing got through since 2026-07-01T12:00:00Z: it answers 500")
	status = 200
	if err := s.round(t.Context()); err != nil || len(r.got) != 0 {
		t.Errorf("told %d though it is paused, %v", len(r.got), err)
	}
	if err := db.SubscriberFailed(t.Context(), s.cursor(), time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.round(t.Context()); err != nil || len(r.got) != 3 {
		t.Errorf("told %d after it was resumed, %v", len(r.got), err)
	}
	newRun(t, db, "bb", 0)
	status = http.StatusGone
	if err := s.round(t.Context()); !errors.Is(err, errGone) {
		t.Errorf("410: %v", err)
	}
	s.failed(t.Context(), errGone, time.Second)
	if state, err := db.Subscriber(t.Context(), s.cursor()); err != nil || !strings.Contains(state.Paused, "410") {
		t.Errorf("%+v, %v", state, err)
	}
	if err := db.SubscriberFailed(t.Context(), "bus/nobody", time.Time{}, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

// A slow subscriber holds up nobody.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	hold := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer slow.Close()
	defer close(hold)
	told := make(chan struct{}, 10)
	quick := newReceiver(t, func(int) int { told <- struct{}{}; return 200 })
	s := New(Options{DB: db, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }, After: time.After, Hide: func(s string) string { return s },
		Subscribers: []Subscriber{{Name: "slow", URL: slow.URL, Private: true}, {Name: "quick", URL: quick.URL, Secrets: []string{secret}, Private: true}}})
	for _, to := range s.to {
		if err := to.subscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { s.Run(ctx) })
	newRun(t, db, "a", 1)
	s.OnEvents()
	for range 2 {
		<-told
	}
	stop()
	all.Wait()
}

// An address that is not public is refused, whatever its name says, and no redirect is
// followed.
func TestWhereItGoes(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	if err := Ping(t.Context(), Subscriber{URL: r.URL, Secrets: []string{secret}}, now); err == nil || !strings.Contains(err.Error(), "not a public one") {
		t.Errorf("a private address: %v", err)
	}
	away := httptest.NewServer(http.RedirectHandler(r.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	if err := Ping(t.Context(), Subscriber{URL: away.URL, Secrets: []string{secret}, Private: true}, now); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("a redirect: %v", err)
	}
	if err := Ping(t.Context(), Subscriber{URL: r.URL, Secrets: []string{secret}, Private: true}, now); err != nil || len(r.got) != 1 ||
		r.got[0].Type != "io.forge.ping" || len(r.bad) > 0 {
		t.Errorf("%v, %+v, %q", err, r.got, r.bad)
	}
}

// The signature is that of Standard Webhooks' own example, and one for each secret.
func TestSign(t *testing.T) {
	t.Parallel()
	got := Sign([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "another secret"}, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if first, second, _ := strings.Cut(got, " "); first != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" || !strings.HasPrefix(second, "v1,") {
		t.Errorf("got %s", got)
	}
}

// What happens to incidents is told, too, with what people are asked, and without what a
// monitor says beyond the title; to who wants it, and once.
func TestTellsOfIncidents(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	r := newReceiver(t, nil)
	s := newSender(t, db, Subscriber{URL: r.URL, Types: []string{"production.*"}})
	tracker := &production.Tracker{Now: now}
	tracker.Take(production.Observation{Kind: production.KindAnomaly, Source: "prom", Repo: "acme/shop", Environment: "production", Group: "g",
		Severity: production.SeverityCritical, Status: production.StatusFiring, At: now, Title: "Too slow, sk-secret", Text: "the text"})
	i := tracker.Incidents[0]
	tracker.Record(i, production.EventTold, production.EventData{Key: "private"})
	tracker.Record(i, production.EventAsked, production.EventData{Number: 7, Question: &command.Question{Text: "What now, sk-secret?",
		Choices: []command.Choice{{Write: "/forge incident 1 run", What: "start a run"}}}})
	tracker.Record(i, production.EventDismissed, production.EventData{By: "ann", Why: "a test"})
	if err := incidents.Keep(t.Context(), db, tracker); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(got []Event) {
		t.Helper()
		var types []string
		for _, e := range got {
			types = append(types, strings.TrimPrefix(e.Type, typePrefix))
			if strings.Contains(string(e.bytes()), "sk-secret") || strings.Contains(string(e.bytes()), "the text") {
				t.Errorf("told too much: %s", e.bytes())
			}
		}
		want := []string{"production.incident_opened", "production.anomaly_detected", "production.asked", "production.incident_dismissed"}
		if !slices.Equal(types, want) || len(r.bad) > 0 {
			t.Fatalf("told %q, %q, want %q", types, r.bad, want)
		}
		if d := got[2].Data; d.Incident != 1 || d.Repo != "acme/shop" || d.Question != "What now, …?" || d.Choices["/forge incident 1 run"] != "start a run" || d.Severity != "critical" {
			t.Errorf("asked %+v", d)
		}
		if d := got[3].Data; d.Actor != "ann" || d.Why != "a test" || d.State != "dismissed" {
			t.Errorf("dismissed %+v", d)
		}
	}
	check(r.got)
	if s.Repos = []string{"acme/other"}; s.wantsOf(production.EventAsked, "acme/shop") {
		t.Error("a subscriber of one repository is told of another")
	}
	follow := func(c Choice) (got []Event, from time.Time) {
		t.Helper()
		f, err := NewFollower(t.Context(), db, c, s.o.Hide)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := f.Next(t.Context(), func(e Event) error { got = append(got, e); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		return got, f.from
	}
	followed, from := follow(Choice{Since: now.Add(-time.Hour)})
	check(followed)
	if !from.Equal(now.Add(-overlap)) {
		t.Errorf("it looks again at all since %s", from)
	}
	run := newRun(t, db, "a", 0)
	for name, c := range map[string]Choice{
		"may not be seen":         {Types: s.Types, Sees: func(repo string) bool { return repo != "acme/shop" }},
		"is of another":           {Types: s.Types, Repos: []string{"acme/other"}},
		"was before":              {Types: s.Types, Since: now.Add(time.Nanosecond)},
		"is not the run's":        {Types: s.Types, Run: run.ID},
		"is of a type not wanted": {Types: []string{"run.verified"}},
	} {
		if got, _ := follow(c); len(got) > 0 {
			t.Errorf("what %s is told: %+v", name, got)
		}
	}
}
