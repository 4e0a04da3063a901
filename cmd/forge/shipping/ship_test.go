package shipping

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/work"
)

var at = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

const head = "0123456789abcdef0123456789abcdef01234567"

func asked(s config.Ship) *Ship {
	out := &Ship{Run: 7, Pull: 12, Settings: s}
	out.askMerge(head, "", at)
	return out
}

// said is what people were told last.
func said(s *Ship) string { return s.Say[len(s.Say)-1].String() }

// A panic over one run is its error, so that others are shipped and the server goes on.
// Covers reliability 9.
func TestPanicOverARun(t *testing.T) {
	v := &Service{Options: Options{Log: slog.New(slog.DiscardHandler)}} // without a database
	if err := v.ship(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "shipping a run panicked") {
		t.Errorf("ship: %v", err)
	}
}

// Only what names the question's own matter, alone, agrees to it.
func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		words, notes string
		state        State
		says         string
	}{
		{"approve 0123456", "", Agreed, "Forge is going to merge it at 0123456, as ann chose, unless it has changed by then."},
		{"APPROVE 0123456", "> as you asked\n", Agreed, ""},
		{"approve", "", Asking, "The question takes `/forge ship approve 0123456` or `/forge ship stop`"},
		{"approve 7654321", "", Asking, "Nothing was done"},
		{"approve staging", "", Asking, "Nothing was done"},
		{"approve 0123456 not", "", Asking, "may turn it around"},
		{"approve 0123456", "but on Monday", Asking, "may turn it around"},
		{"pass 0123456", "", Asking, "Nothing was done"},
		{"wait 0123456", "", Asking, "Nothing was done"},
		{"again", "", Asking, "Nothing was done"},
		{"sink", "", Asking, "Nothing was done"},
		{"stop", "for now", Stopped, "Shipping is stopped, as ann chose."},
		{"stop it not", "", Asking, "may turn it around"},
	} {
		s := asked(config.Ship{Environments: []string{"staging"}})
		words, _ := s.answer(work.Word{Actor: pipeline.Actor{Login: "ann"}, Text: tt.words, Notes: tt.notes}, at)
		if s.State != tt.state || !strings.Contains(words, tt.says) {
			t.Errorf("%q, %q: %s, %q; want %s, %q", tt.words, tt.notes, s.State, words, tt.state, tt.says)
		}
	}
}

// An environment may have spaces in its name, and its letter case does not count.
func TestAnswerAboutSpaces(t *testing.T) {
	for answer, want := range map[string]State{
		"approve Prod EU/west": Deploying, "approve  Prod   EU/west": Deploying, "approve prod eu/WEST": Deploying, "approve `Prod EU/west`": Deploying, "approve Prod": Asking,
		"approve Prod EU/west not": Asking, "approve EU/west": Asking, "stop": Stopped,
	} {
		s := asked(config.Ship{Environments: []string{"Prod EU/west"}, Ask: []string{"Prod EU/west"}})
		s.Merged = head
		s.next(at, "")
		if words, _ := s.answer(work.Word{Actor: pipeline.Actor{Login: "ann"}, Text: answer}, at); s.State != want {
			t.Errorf("%q: %s, %q; want %s", answer, s.State, words, want)
		}
	}
}

// A question says all that will happen until the next one.
func TestQuestion(t *testing.T) {
	s := asked(config.Ship{Via: "watch", Environments: []string{"staging", "production"}, BakeMinutes: 1})
	for _, want := range []string{"(merge)", "the repository's own deployment to staging is waited for, and it is watched for 1 minute; then the repository's own deployment to production"} {
		if !strings.Contains(said(s), want) {
			t.Errorf("no %q in\n%s", want, said(s))
		}
	}
	s = asked(config.Ship{Environments: []string{"staging", "production"}, Ask: []string{"Staging", "production"}})
	if q := said(s); !strings.Contains(q, "; then you are asked about staging\n") {
		t.Errorf("it says more than what will happen:\n%s", q)
	}
	s.Merged = head
	s.next(at, "")
	if q := said(s); s.State != Asking || !strings.Contains(q, "follows; then you are asked about production\n") {
		t.Errorf("%s\n%s", s.State, q)
	}
}

// The question says for how long an environment is watched.
func TestWatched(t *testing.T) {
	s := config.Ship{BakeMinutes: 10, Environments: []string{"staging", "production"}}
	if q := said(asked(s)); !strings.Contains(q, "watched for 10 minutes; then a deployment to production") {
		t.Errorf("%s", q)
	}
}
