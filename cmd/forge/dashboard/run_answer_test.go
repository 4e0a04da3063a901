package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
)

var keyField = regexp.MustCompile(`name="key" value="([^"]+)"`)

// form is a form of the run's page, filled in.
func (s *site) form(t testing.TB, of string, fields ...string) string {
	t.Helper()
	m := keyField.FindStringSubmatch(s.get(t, of, 200))
	if m == nil {
		t.Fatalf("no form on %s", of)
	}
	v := url.Values{"key": {m[1]}}
	for i := 0; i < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	return v.Encode()
}

// answers has Tell do what the engine does: ask the run and append.
func (s *site) answers(t testing.TB) {
	s.pages.Tell = func(ctx context.Context, id int64, key string, cmd command.Line, by pipeline.Actor, via string) (string, error) {
		run, err := s.db.Load(ctx, id)
		if err != nil {
			return "", err
		}
		events, text := run.Answer(cmd, by, via, 0, today)
		for i := range events {
			events[i].ID = key + "/" + events[i].ID
		}
		s.told = append(s.told, fmt.Sprintf("%s %q %q by %s via %s: %d events", cmd.Name, cmd.Args, cmd.Text, by.Login, via, len(events)))
		return text, s.db.Append(ctx, run, events, nil)
	}
}

// add keeps a run that a script made and returns its number.
func (s *site) add(t testing.TB, script string) (id int64, at string) {
	t.Helper()
	s.runs++
	s.keep(t, play(t, pipeline.Task{Issue: s.runs, Title: "x"}, script).Events, shopRepo, s.runs, today.Add(-time.Hour))
	return int64(s.runs), fmt.Sprintf("/runs/%d", s.runs)
}

// waiting is a site with a run that waits for an answer.
func waiting(t testing.TB) *site {
	s := newSite(t)
	s.answers(t)
	s.add(t, stuck)
	return s
}

const (
	asksPlan   = "plan which? | a | b"
	asksMoney  = "plan ok\ncost 20000000 1"
	asksReview = "plan ok\nimplement a\nreview human look at it"
	goesOn     = "plan ok\nimplement a"
	isStopped  = "plan ok\nimplement a\nhuman stop"
)

// Covers T7, V4, V5: every answer can be given on the page, and does what it does in
// a comment.
func TestAnswer(t *testing.T) {
	t.Parallel()
	s := waiting(t)
	for _, c := range []struct{ name, script, choice, field, value, told, state string }{
		{"continue", stuck, "continue", "n", "3", `continue "3" "look at\nthe caller" by ann via dashboard: 1 events`, "running"},
		{"continue without a number", stuck, "continue", "n", "", `continue "" "look at\nthe caller"`, "running"},
		{"accept", stuck, "accept", "", "", `accept ""`, "accepted"},
		{"cancel", stuck, "cancel", "", "", `cancel ""`, "cancelled"},
		{"take over", stuck, "take-over", "", "", `take-over ""`, "stopped"},
		{"simplify", stuck, "simplify", "", "", `simplify "" "look at\nthe caller"`, "running"},
		{"reset", stuck, "reset", "", "", `reset ""`, "running"},
		{"retry", stuck, "retry", "", "", `retry ""`, "running"},
		{"choose", asksPlan, "choose b", "", "", `choose "b"`, "running"},
		{"choose in words", asksPlan, "choose", "", "", `choose "" "look at\nthe caller"`, "running"},
		{"raise", asksMoney, "raise", "usd", "30", `raise "30"`, "running"},
		{"approve", asksReview, "approve", "", "", `approve ""`, "running"},
		{"stop", goesOn, "stop", "", "", `stop ""`, "stopped"},
		{"cancel at any time", goesOn, "cancel", "", "", `cancel ""`, "cancelled"},
		{"resume", isStopped, "resume", "", "", `resume ""`, "running"},
		{"retry what was stopped", isStopped, "retry", "", "", `retry ""`, "running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.told = nil
			id, at := s.add(t, c.script)
			form := s.form(t, at, "choice", c.choice, "text", "look at\r\nthe caller", c.field, c.value)
			if to := s.post(t, at+"/answer", form, 303); to != at {
				t.Errorf("leads to %q, want the run", to)
			}
			if len(s.told) != 1 || !strings.HasPrefix(s.told[0], c.told) {
				t.Errorf("told %q, want %q", s.told, c.told)
			}
			run, err := s.db.Load(t.Context(), id)
			if err != nil || string(run.State) != c.state {
				t.Errorf("the run is %s (%v), want %s", run.State, err, c.state)
			}
			// Sent again, as by a double click, it is the same answer.
			if s.post(t, at+"/answer", form, 303); len(s.told) != 1 {
				t.Errorf("told twice: %q", s.told)
			}
			if run.State.Ended() {
				has(t, s.get(t, "/runs/1", 200), `-action=at+"/answer"`)
			}
		})
	}
}

// What cannot be done is said, changes nothing, and loses no words.
func TestRefusedAnswer(t *testing.T) {
	t.Parallel()
	const said = "my long <words>"
	s := waiting(t)
	for _, c := range []struct {
		name, script string
		fields       []string
		status       int
		want         []string
	}{
		{"no number", stuck, []string{"choice", "continue", "n", "many"}, 400,
			[]string{"takes a number from 1 to 20", "my long &lt;words&gt;</textarea>", `value="many"`, `role="alert"`, `-data-live`}},
		{"too many", stuck, []string{"choice", "continue", "n", "21"}, 400, []string{"takes a number from 1 to 20"}},
		{"no money", asksMoney, []string{"choice", "raise", "usd", "-1"}, 400, []string{"takes dollars from 0.01", `value="-1"`, "my long &lt;words&gt;"}},
		{"no words", asksPlan, []string{"choice", "choose", "text", " "}, 400, []string{"takes words"}},
		{"not a choice here", stuck, []string{"choice", "approve"}, 400, []string{"is not one of the choices here"}},
		{"unknown", stuck, []string{"choice", "explode"}, 400, []string{"There is no choice"}},
		{"not for pages", stuck, []string{"choice", "history"}, 400, []string{"There is no choice"}},
		{"nothing", stuck, nil, 400, []string{"There is no choice"}},
		{"no key", stuck, []string{"choice", "accept", "key", ""}, 400, []string{"has no key"}},
		{"much", stuck, []string{"choice", "continue", "text", strings.Repeat("a", wordBytes+1)}, 400, []string{"at most 20000", "aaaa</textarea>"}},
		{"another gate", stuck, []string{"choice", "accept", "gate", "gate/9"}, 409, []string{"has never asked"}},
		{"no gate", goesOn, []string{"choice", "continue"}, 409, []string{"Nothing waits", "You wrote, and nobody was told", "my long &lt;words&gt;"}},
		{"ended", "plan ok\nhuman cancel", []string{"choice", "stop"}, 409, []string{"has ended", "my long &lt;words&gt;"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, at := s.add(t, c.script)
			before, err := s.db.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			form := url.Values{"key": {"0123456789abcdef"}, "text": {said}}
			for i := 0; i < len(c.fields); i += 2 {
				form.Set(c.fields[i], c.fields[i+1])
			}
			page := s.send(t, at+"/answer", form.Encode(), c.status)
			has(t, page, c.want...)
			after, err := s.db.Load(t.Context(), id)
			if err != nil || after.Seq != before.Seq || len(s.told) != 0 {
				t.Errorf("something changed: %d events before, %d after, told %q, %v", before.Seq, after.Seq, s.told, err)
			}
		})
	}
}

// An answer to a question that somebody else has answered meanwhile changes nothing,
// and says who was faster.
func TestAnsweredMeanwhile(t *testing.T) {
	t.Parallel()
	s := waiting(t)
	mine := s.form(t, "/runs/1", "choice", "continue", "gate", "gate/1", "text", "look at the caller")
	s.viewer = person{login: "bob"}
	s.post(t, "/runs/1/answer", s.form(t, "/runs/1", "choice", "take-over", "gate", "gate/1"), 303)
	s.viewer = person{login: "ann"}
	has(t, s.send(t, "/runs/1/answer", mine, 409), "was answered already: bob said `take-over`", "look at the caller")
	if len(s.told) != 1 {
		t.Errorf("told %q, want bob's answer alone", s.told)
	}
}

// Between looking and telling somebody may be faster: then the engine's word counts.
func TestAnsweredAtTheSameMoment(t *testing.T) {
	t.Parallel()
	s := waiting(t)
	s.pages.Tell = func(context.Context, int64, string, command.Line, pipeline.Actor, string) (string, error) {
		return "Thank you, but that question was answered already.", nil
	}
	w := s.reply(t, "/runs/1/answer", s.form(t, "/runs/1", "choice", "accept"))
	if cookie, _ := url.QueryUnescape(w.Header().Get("Set-Cookie")); w.Code != 303 || !strings.Contains(cookie, "answered already") {
		t.Errorf("%d, %s", w.Code, cookie)
	}
}

// An answer that cannot be passed on is not lost.
func TestAnswerThatFails(t *testing.T) {
	t.Parallel()
	s := waiting(t)
	s.pages.Tell = func(context.Context, int64, string, command.Line, pipeline.Actor, string) (string, error) {
		return "", errors.New("disk full")
	}
	has(t, s.send(t, "/runs/1/answer", s.form(t, "/runs/1", "choice", "continue", "text", "look at the caller"), 500), "send it again",
		"look at the caller</textarea>", "-disk full")
}

func FuzzReadAnswer(f *testing.F) {
	f.Add("choice=continue&n=3&key=0123456789abcdef&gate=gate/1&text=a%0D%0Ab")
	f.Add("choice=choose+a+b&key=01234567&choice=stop")
	f.Add("choice=+&text=%ff")
	f.Fuzz(func(t *testing.T, body string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		cmd, key, wrong := readAnswer(form)
		if wrong == "" && (!slices.Contains(commandWords, cmd.Name) || !keyForm.MatchString(key) || len(cmd.Text) > wordBytes || strings.Contains(cmd.Text, "\r\n")) {
			t.Fatalf("readAnswer(%q) = %+v, %q", body, cmd, key)
		}
	})
}

// Who may only read changes nothing, and who does not see a run learns nothing of it.
func TestWhoMayAnswer(t *testing.T) {
	t.Parallel()
	s := waiting(t)
	form := s.form(t, "/runs/1", "choice", "accept")
	s.viewer = person{login: "eve", repos: []string{"acme/shop"}, writes: []string{}}
	has(t, s.send(t, "/runs/1/answer", form, 403), "it takes write access to acme/shop")
	s.viewer = person{login: "eve", repos: []string{}}
	has(t, s.send(t, "/runs/1/answer", form, 404), "There is no run 1")
	s.get(t, "/runs/1/answer", 404)
	if len(s.told) != 0 {
		t.Errorf("told %q", s.told)
	}
	s.viewer = person{}
	s.get(t, "/runs/1/answer", 303)
	s.send(t, "/runs/1/answer", "key="+strings.Repeat("a", formBytes), 400)
}
