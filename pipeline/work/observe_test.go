package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// otherPulls is where people do things with what Forge made: it shows what stands.
type otherPulls struct {
	facts  []pipeline.Signal
	err    error
	polled []int64
	while  func(run int64) // happens while somebody looks
}

func (s *otherPulls) Signals(_ context.Context, run *pipeline.Run, _ pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error) {
	if s.while != nil {
		s.while(run.ID)
	}
	var out []pipeline.Signal
	for _, f := range s.facts {
		if !slices.ContainsFunc(known, func(k pipeline.Signal) bool { return k.Key == f.Key && k.Off == f.Off }) {
			out = append(out, f)
		}
	}
	return out, s.err
}

func (s *otherPulls) Poll(ctx context.Context, run *pipeline.Run, known []pipeline.Signal) ([]pipeline.Signal, error) {
	s.polled = append(s.polled, run.ID)
	return s.Signals(ctx, run, pipeline.Notice{}, known)
}

// readFeedback is readWords with feedback: "feedback 5", and with every push.
func readFeedback(event string, payload []byte) (pipeline.Notice, error) {
	issue, found := strings.CutPrefix(string(payload), "feedback ")
	if !found {
		n, err := readWords(event, payload)
		n.Feedback = &pipeline.Feedback{Event: "push"}
		return n, err
	}
	n := pipeline.Notice{Kind: pipeline.NoticeFeedback, Repo: testRepo, Actor: maintainer, Why: "a thread was resolved by mia", Feedback: &pipeline.Feedback{Event: "pull_request_review_thread"}}
	fmt.Sscan(issue, &n.Issue)
	return n, nil
}

// dismissal is mia's, of F1.
func dismissal(off bool) pipeline.Signal {
	return pipeline.Signal{Key: "dismissed/1", Kind: pipeline.SignalDismissed, Off: off, At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Actor: maintainer, Weight: 1, Finding: "fp1"}
}

// reviewed makes a run with a finding and a pull request; ended ends it.
func reviewed(t *testing.T, k *keeper, issue int, ended bool) int64 {
	t.Helper()
	id := newRun(t, k, issue)
	run := load(t, k, id)
	events := []pipeline.Event{
		{ID: "r", Type: pipeline.EventPhaseEntered, Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}}},
		{ID: "p", Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &pipeline.Publication{Pull: &pipeline.PullRef{Number: 10 * issue}}}},
	}
	if ended {
		events = append(events, pipeline.Event{ID: "e", Type: pipeline.EventRunVerified})
	}
	for i := range events {
		events[i].Time, events[i].Source = time.Now(), "forge"
	}
	if err := k.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
	return id
}

func feedbackOf(t *testing.T, k *keeper, id int64) (out []pipeline.Signal) {
	t.Helper()
	events, err := k.Events(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Data.Signal != nil {
			out = append(out, *e.Data.Signal)
		}
	}
	return out
}

// Covers H7: what people do becomes events, once, of a run that has ended, too; the
// delivery says what it was. What has an effect of its own does not wait for it.
func TestFeedback(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, payload string
		facts         []pipeline.Signal
		err           error
		ended         bool
		state         record.DeliveryState
		want          string
		signals       int
	}{
		{"dismissed", "feedback 5", []pipeline.Signal{dismissal(false)}, nil, false, record.DeliveryDone, "run 1: dismissed by mia", 1},
		{"after the end", "feedback 5", []pipeline.Signal{dismissal(false)}, nil, true, record.DeliveryDone, "run 1: dismissed by mia", 1},
		{"taken back", "feedback 5", []pipeline.Signal{dismissal(true)}, nil, true, record.DeliveryDone, "run 1: dismissed, taken back by mia", 1},
		{"nothing", "feedback 5", nil, nil, true, record.DeliveryDone, "run 1: nothing new: a thread was resolved by mia", 0},
		{"no run", "feedback 9", nil, nil, true, record.DeliveryDone, "ignored: no run is about it", 0},
		{"on a pull request that is not Forge's", "feedback 9", []pipeline.Signal{dismissal(false)}, nil, true, record.DeliveryDone,
			"which is not Forge's: dismissed by mia", 0},
		{"GitHub is away there", "feedback 9", nil, errors.New("away"), true, record.DeliveryDead, "away", 0},
		{"GitHub is away", "feedback 5", nil, errors.New("away"), true, record.DeliveryDead, "away", 0},
		{"a push", "push forge/issue-5 cafe", []pipeline.Signal{dismissal(false)}, nil, false, record.DeliveryDone,
			"run 1: the run goes on from cafe, dismissed by mia", 1},
		{"a push while GitHub is away", "push forge/issue-5 cafe", nil, errors.New("away"), false, record.DeliveryDone, "run 1: the run goes on from cafe", 0},
		{"a push to the default branch", "base cafe", []pipeline.Signal{dismissal(false)}, nil, true, record.DeliveryDone, "run 1: dismissed by mia", 1},
		{"nothing reverted", "base cafe", nil, nil, true, record.DeliveryDone, "ignored: no run waits for it", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				id := reviewed(t, k, 5, tc.ended)
				opts := options(t)
				opts.Hub, opts.Read, opts.Observer = &fakeGitHub{}, readFeedback, &otherPulls{facts: tc.facts, err: tc.err}
				deliver(t, k, "g1", tc.payload)
				deliver(t, k, "g2", tc.payload) // what comes twice is once
				intake(t, k, opts)
				state, got := outcome(t, k, "g1")
				if tc.state == record.DeliveryDead {
					d, err := k.Deliveries(t.Context(), store.DeliveryFilter{State: record.DeliveryDead, Limit: 1})
					if err != nil || len(d) != 1 {
						t.Fatalf("dead: %+v, %v", d, err)
					}
					got = d[0].Error
				}
				if state != tc.state || !strings.Contains(got, tc.want) {
					t.Errorf("%s %q, want %s with %q", state, got, tc.state, tc.want)
				}
				if other := strings.Contains(tc.want, "not Forge's"); other != (len(k.learnt) > 0) || other && k.learnt[0].Scope != testRepo.Scope() {
					t.Errorf("learnt elsewhere: %+v", k.learnt)
				}
				list := feedbackOf(t, k, id)
				if len(list) != tc.signals {
					t.Fatalf("signals %+v, want %d", list, tc.signals)
				}
				if len(list) > 0 && (list[0].Scope != "repo:acme/shop" || list[0].Run != id) {
					t.Errorf("the signal is of %s, run %d", list[0].Scope, list[0].Run)
				}
			})
		})
	}
}

// A round of the poll is bounded, goes on behind the one before, and begins again.
func TestPollRounds(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	var all []int64
	for i := range pollBatch + 3 {
		all = append([]int64{reviewed(t, k, i+1, i%2 == 0)}, all...)
	}
	fresh := dismissal(false)
	fresh.At = time.Now()
	s := &otherPulls{facts: []pipeline.Signal{fresh}}
	opts := options(t)
	opts.Observer = s
	e := newDriven(t, k, opts)
	before := int64(0)
	var sizes []int
	for range 3 {
		n := len(s.polled)
		next, err := e.pollRound(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		before = next
		sizes = append(sizes, len(s.polled)-n)
	}
	if diff := cmp.Diff([]int{pollBatch, 3, pollBatch}, sizes); diff != "" {
		t.Errorf("the rounds' sizes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, s.polled[:len(all)]); diff != "" {
		t.Errorf("what was looked at (-want +got):\n%s", diff)
	}
	for _, id := range all {
		if n := len(feedbackOf(t, k, id)); n != 1 {
			t.Errorf("run %d has %d signals", id, n)
		}
	}
}

// What a poll sees is compared with what was known when it began. When more was heard
// meanwhile, an answer that a model read, say, the next poll decides.
func TestPollIsOvertaken(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	id := reviewed(t, k, 1, true)
	read := dismissal(false)
	read.Key, read.Kind, read.At = "read/1", pipeline.SignalRead, time.Now()
	done := read
	done.Key, done.Kind = "dismissed/1", pipeline.SignalDismissed
	s := &otherPulls{facts: []pipeline.Signal{done}}
	opts := options(t)
	opts.Observer = s
	e := newDriven(t, k, opts)
	s.while = func(run int64) {
		s.while = nil
		if err := e.Record(t.Context(), run, pipeline.SignalEvents([]pipeline.Signal{read}), nil); err != nil {
			t.Error(err)
		}
	}
	for i, want := range []int{1, 2} { // what was heard; and with what the next poll saw
		if err := e.pollRun(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if n := len(feedbackOf(t, k, id)); n != want {
			t.Errorf("after %d polls the run has %d signals, want %d", i+1, n, want)
		}
	}
}

// A poll and a delivery that see the same at once, each at a moment of its own, store it once.
func TestSeenTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		payload      string
		ended, other bool // the poll saw something else
		want         int
	}{{"feedback 5", false, false, 1}, {"feedback 5", false, true, 2}, {"base cafe", true, false, 1}, {"base cafe", true, true, 2}} {
		k := openStore(t)
		synctest.Test(t, func(t *testing.T) {
			id := reviewed(t, k, 5, tc.ended)
			fact := dismissal(true)
			s := &otherPulls{facts: []pipeline.Signal{fact}}
			opts := options(t)
			opts.Read, opts.Observer = readFeedback, s
			s.while = func(run int64) {
				s.while = nil
				polled := fact
				polled.At = polled.At.Add(-879 * time.Millisecond)
				polled.Off = !tc.other
				if err := k.Append(t.Context(), load(t, k, run), pipeline.SignalEvents([]pipeline.Signal{polled}), nil); err != nil {
					t.Error(err)
				}
			}
			deliver(t, k, "1", tc.payload)
			intake(t, k, opts)
			if n := len(feedbackOf(t, k, id)); n != tc.want {
				_, words := outcome(t, k, "1")
				t.Errorf("%s, another thing %v: %d signals are stored, want %d (%s)", tc.payload, tc.other, n, tc.want, words)
			}
		})
	}
}

// What a signal is told as names the finding by its id, or the place.
func TestTell(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]pipeline.Signal{
		"dismissed F1 by ann":             {Kind: pipeline.SignalDismissed, About: &pipeline.Finding{ID: "F1"}, File: "a.go", Actor: pipeline.Actor{Login: "ann"}},
		"gap in a.go by ann":              {Kind: pipeline.SignalGap, File: "a.go", Actor: pipeline.Actor{Login: "ann"}},
		"changes requested, taken back":   {Kind: pipeline.SignalChanges, Off: true},
		"rewritten F2, taken back by bob": {Kind: pipeline.SignalRewritten, Off: true, About: &pipeline.Finding{ID: "F2"}, Actor: pipeline.Actor{Login: "bob"}},
	} {
		if got := signalText(&s); got != want {
			t.Errorf("tell(%+v) = %q, want %q", s, got, want)
		}
	}
}
