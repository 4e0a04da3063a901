package pipeline

import (
	"slices"
	"time"
)

// signalEvents says as which event a kind of signal is stored.
var signalEvents = map[SignalKind]EventType{
	SignalDismissed: EventDismissed, SignalFixedByHuman: EventFixedByHuman,
	SignalApplied: EventFixApplied, SignalRewritten: EventFixRewritten, SignalIgnored: EventFixIgnored,
	SignalGap: EventCommentAdded, SignalEdited: EventHumanEdited,
	SignalApproved: EventPullReviewed, SignalChanges: EventPullReviewed,
	SignalMerged: EventPullClosed, SignalClosed: EventPullClosed, SignalReverted: EventPullClosed,
	SignalAnswered: EventAnswered, SignalRead: EventAnswerRead, SignalRefused: EventRefused,
	SignalEscaped: EventEscaped,
}

// ghost is whom GitHub shows where it does not say who it was.
const ghost = "ghost"

// SignalEvents turns signals into events of their run (H7). An event's id is made
// of the signal's key, kind and moment: the same signal found twice is one event.
// An unknown kind gives none.
func SignalEvents(signals []Signal) []Event {
	var out []Event
	for _, s := range signals {
		t, known := signalEvents[s.Kind]
		if !known {
			continue
		}
		state := "on"
		if s.Off {
			state = "off"
		}
		source := "github" // it does not say who it was
		switch {
		case s.Kind == SignalEscaped:
			source = "forge"
		case s.Kind == SignalRead:
			source = "agent:reader"
		case s.Actor.Login != "":
			source = "human:" + s.Actor.Login
		}
		e := Event{
			ID:   "signal/" + digest(s.Key, string(s.Kind), state, s.At.UTC().Format(time.RFC3339Nano)),
			Type: t, Source: source, Time: s.At, Data: Data{Signal: &s},
		}
		if s.Kind == SignalDismissed {
			by := s.Actor
			if by.Login == "" {
				by.Login = ghost
			}
			e.Data.Actor = &by
		}
		out = append(out, e)
	}
	return out
}

// KnownSignals returns the signals that a run's events hold: the latest of each
// key, in the order of the keys. Of two of the same moment the later event counts.
func KnownSignals(events []Event) []Signal {
	latest := map[string]Signal{}
	var keys []string
	for _, e := range events {
		s := e.Data.Signal
		if s == nil {
			continue
		}
		had, seen := latest[s.Key]
		if !seen {
			keys = append(keys, s.Key)
		}
		if !seen || !s.At.Before(had.At) {
			latest[s.Key] = *s
		}
	}
	slices.Sort(keys)
	var out []Signal
	for _, k := range keys {
		out = append(out, latest[k])
	}
	return out
}
