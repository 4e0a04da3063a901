package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forge/pipeline"
)

// inThread reads "NUMBER THREAD" as a command with a mistake by somebody who may write: each
// such delivery is answered.
func inThread(_ string, payload []byte) (pipeline.Notice, error) {
	n, err := readWords("", []byte("command 7 wrong"))
	if err == nil {
		_, err = fmt.Sscan(string(payload), &n.Pull, &n.Thread)
		n.Issue = 0
	}
	return n, err
}

// Covers S20: what talks to itself through Forge comes to an end. Somebody's program answers
// whatever Forge says with a command that has a mistake, in an issue and in conversations.
func TestAnswersComeToAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send    func(i int) string
		limit   string // what it says
		answers int
	}{
		"issue":            {func(int) string { return "7 0" }, "Forge has answered 5 times in this place within an hour, and is quiet here until ", 5},
		"one conversation": {func(int) string { return "7 1" }, "Forge has answered 3 times in this conversation within an hour, and is quiet here until ", 3},
		"conversations":    {func(i int) string { return fmt.Sprintf("7 %d", 1+i/2) }, "Forge has answered 5 times in this place within an hour, and is quiet here until ", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k, hub := openStore(t), &fakeGitHub{}
				opts := options(t)
				opts.Read, opts.Hub, opts.Answers, opts.ThreadAnswers = inThread, hub, 5, 3
				for range 2 { // an hour, and the next
					before := len(hub.said())
					for i := range 12 {
						deliver(t, k, fmt.Sprint(before, "-", i), c.send(i))
						intake(t, k, opts)
					}
					said := hub.said()[before:]
					quiet := map[string]bool{}
					for _, s := range said[c.answers:] {
						quiet[s] = true // what has the same key is posted once
					}
					if len(quiet) != 1 || !strings.Contains(said[c.answers], c.limit) {
						t.Errorf("said\n%s\nwant %d answers, and once that it is quiet", strings.Join(said, "\n"), c.answers)
					}
					deliver(t, k, fmt.Sprint(before, "-elsewhere"), "8 0")
					intake(t, k, opts)
					if now := hub.said(); len(now) != before+len(said)+1 || !strings.HasPrefix(now[len(now)-1], "#8 ") {
						t.Errorf("elsewhere it said %q", now[before+len(said):])
					}
					time.Sleep(turnWindow)
				}
			})
		})
	}
}

// countedPulls counts how often people's remarks are looked at.
type countedPulls struct {
	otherPulls
	looks int
}

func (s *countedPulls) Signals(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error) {
	s.looks++
	return s.otherPulls.Signals(ctx, run, n, known)
}

// A flood of remarks costs no flood of calls to GitHub. What a person said among them is
// found by the next poll.
func TestRemarksAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := openStore(t)
		run := reviewed(t, k, 5, false)
		observer := &countedPulls{}
		opts := options(t)
		opts.Read, opts.Hub, opts.Observer, opts.Remarks = readFeedback, &fakeGitHub{}, observer, 4
		for i := range 12 {
			deliver(t, k, fmt.Sprint(i), "feedback 5")
			deliver(t, k, fmt.Sprint("other-", i), "feedback 6") // no run is about it
		}
		intake(t, k, opts)
		if observer.looks != 8 {
			t.Errorf("%d looks, want 8", observer.looks)
		}
		for guid, want := range map[string]string{"11": "left to the next look", "other-11": "ignored"} {
			if _, words := outcome(t, k, guid); words != want+": over 4 remarks there within an hour" {
				t.Errorf("outcome of %s: %q", guid, words)
			}
		}
		observer.facts = []pipeline.Signal{dismissal(false)}
		if _, err := newDriven(t, k, opts).pollRound(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		events, err := k.Events(t.Context(), run, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := pipeline.KnownSignals(events); len(got) != 1 || got[0].Kind != pipeline.SignalDismissed {
			t.Errorf("signals %+v", got)
		}
	})
}

// A limit that could not be told of, because GitHub was away, is told by the next delivery.
func TestLimitIsToldLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := openStore(t)
		opts := options(t)
		opts.Hub, opts.Read, opts.Answers = &fakeGitHub{}, readWords, 1
		e := newDriven(t, k, opts)
		n, err := readWords("", []byte("command 7 wrong"))
		if err != nil {
			t.Fatal(err)
		}
		p := &inbound{notice: n}
		var told []string
		for range 6 {
			_, words, key, err := e.answers(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, key)
			if (words == "") != (key == "") {
				t.Errorf("words %q with the key %q", words, key)
			}
		}
		if told[0] != "" || told[1] == "" || told[2] != told[1] || told[5] != "" {
			t.Errorf("keys %q", told)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		if may, _, _, err := e.answers(t.Context(), p); may || err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("without a database: %v, %v", may, err)
		}
	})
}
