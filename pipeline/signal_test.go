package pipeline

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Covers H7: every signal is an event with who, what and when.
func TestSignalEvents(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	alice := Actor{ID: 7, Login: "alice"}
	kinds := map[SignalKind]EventType{
		SignalDismissed: "feedback.finding_dismissed", SignalFixedByHuman: "feedback.finding_mended", SignalApplied: "feedback.fix_applied",
		SignalRewritten: "feedback.fix_rewritten",
		SignalIgnored:   "feedback.fix_ignored", SignalGap: "feedback.human_comment_added", SignalEdited: "feedback.human_edited",
		SignalApproved: "feedback.pull_reviewed", SignalChanges: "feedback.pull_reviewed", SignalMerged: "feedback.pull_closed",
		SignalClosed: "feedback.pull_closed", SignalReverted: "feedback.pull_closed",
		SignalAnswered: "feedback.finding_answered", SignalRefused: "feedback.finding_refused",
	}
	ids := map[string]bool{}
	for kind, want := range kinds {
		on := Signal{Key: "k", Kind: kind, At: at, Actor: alice}
		off, later := on, on
		off.Off, later.At = true, at.Add(time.Millisecond)
		got := SignalEvents([]Signal{on, on, off, later})
		if len(got) != 4 || got[0].Type != want || got[0].Source != "human:alice" || !got[0].Time.Equal(at) || *got[0].Data.Signal != on {
			t.Fatalf("SignalEvents(%s) = %+v, want 4 events, the first %s by human:alice", kind, got, want)
		}
		if got[0].ID != got[1].ID {
			t.Errorf("the same %s twice has the ids %s and %s, want one", kind, got[0].ID, got[1].ID)
		}
		for _, e := range []Event{got[0], got[2], got[3]} {
			if ids[e.ID] {
				t.Errorf("%s: the id %s is taken", kind, e.ID)
			}
			ids[e.ID] = true
		}
	}
	if got := SignalEvents([]Signal{{Key: "k", Kind: "danced", At: at}, {Key: "k", Kind: SignalDismissed, At: at}}); len(got) != 1 || got[0].Source != "github" {
		t.Errorf("SignalEvents of an unknown kind and an unknown actor = %+v, want one event from github", got)
	}
}

// The order in which events arrive does not matter: the latest moment counts.
func TestKnownSignals(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		want := map[string]Signal{}
		var list []Signal
		for i := range n {
			s := Signal{Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), Kind: SignalDismissed, Off: rapid.Bool().Draw(t, "off"), At: at.Add(time.Duration(i) * time.Second)}
			list, want[s.Key] = append(list, s), s
		}
		events := append(SignalEvents(rapid.Permutation(list).Draw(t, "order")), Event{Type: EventRunVerified})
		got := KnownSignals(events)
		if len(got) != len(want) {
			t.Fatalf("KnownSignals = %+v, want %+v", got, want)
		}
		for i, s := range got {
			if s != want[s.Key] || i > 0 && got[i-1].Key >= s.Key {
				t.Fatalf("KnownSignals = %+v, want %+v", got, want)
			}
		}
	})
	tie := []Event{{Data: Data{Signal: &Signal{Key: "a", At: at}}}, {Data: Data{Signal: &Signal{Key: "a", At: at, Off: true}}}}
	if got := KnownSignals(tie); len(got) != 1 || !got[0].Off {
		t.Errorf("KnownSignals of two of the same moment = %+v, want the later event", got)
	}
}
