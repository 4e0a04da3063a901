package shipping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
)

// Answer implements work.Outside: it takes in what a person with write access says of
// how a run's work is shipped. What they agree to they name, so that an answer to another
// question, or of before, agrees to nothing.
func (v *Service) Answer(ctx context.Context, w work.Word) (string, error) {
	for try := 0; ; try++ {
		row, err := v.DB.Ship(ctx, w.Run)
		if errors.Is(err, store.ErrNotFound) {
			return "Nothing is shipped here: `ship.enabled` in `.github/forge.yml`, and a run whose work is verified, are what it takes.", nil
		}
		if err != nil {
			return "", err
		}
		s, err := shipOf(row)
		if err != nil {
			return "", err
		}
		if w.Cause != "" && s.Heard.Cause == w.Cause { // it was taken in, and then the server was killed
			return s.Heard.Words, nil
		}
		words, changed := s.answer(w, v.now())
		if !changed {
			return words, nil
		}
		s.Heard = Heard{w.Cause, words}
		if err = v.save(ctx, row, s); errors.Is(err, store.ErrConflict) {
			if try < 5 {
				continue
			}
			return "Nothing was done: something else of this repository is on its way, or this has just changed. Try again once it is through.", nil
		}
		v.Wake(0, false)
		return words, err
	}
}

// answer does what a person says.
func (s *Ship) answer(w work.Word, now time.Time) (words string, changed bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(w.Text), " ")
	choice, about, by := strings.ToLower(first), strings.Trim(plain(rest), "`"), w.Actor.Login
	if s.more(choice, about) || own(w.Notes) && (choice == "approve" || choice == "pass") {
		return fmt.Sprintf("Nothing was done: `%s` or its notes say more than the command, which may turn it around. If you mean it, write it alone.", text.Clip(choice+" "+about, 60)), false
	}
	switch q := s.Question; {
	case choice == "stop" && about == "" && s.State == Merging:
		s.to(Leaving, now, by, "%s stopped it", by)
		return fmt.Sprintf("Shipping is being stopped, as %s chose. Whether it is merged by now is looked up; out of a merge queue it is taken.", by), true
	case choice == "stop" && about == "" && s.State != Done && s.State != Stopped && s.State != Leaving:
		s.stop(now, by, "%s stopped it", by)
		return fmt.Sprintf("Shipping is stopped, as %s chose.", by), true
	case choice == "again" && about == "" && s.State == Stopped:
		s.again(now, by)
		return fmt.Sprintf("Shipping goes on, as %s chose.", by), true
	case !slices.Contains([]string{"approve", "pass", "wait"}, choice):
		return s.how(), false
	case q == nil || choice != q.choice() || !strings.EqualFold(about, plain(q.About)):
		return s.how(), false
	}
	switch q := s.Question; {
	case q.Wait:
		s.to(Rolling, now, by, "%s waits on for %s", by, q.About)
		return fmt.Sprintf("Forge waits on for %s, as %s chose.", about, by), true
	case q.Pass:
		s.arrived(now, s.record().State, by, fmt.Sprintf("%s went on: %s", by, q.Why))
		return fmt.Sprintf("%s is taken as it is, as %s chose.", about, by), true
	case s.Merged == "":
		s.AgreedAt = now
		s.to(Agreed, now, by, "%s agreed to merge it at %s", by, about)
		return fmt.Sprintf("Forge is going to merge it%s at %s, as %s chose, unless it has changed by then.", s.into(), about, by), true
	default:
		s.begin(now, by)
		s.to(Deploying, now, by, "%s agreed to deploy it to %s", by, about)
		return fmt.Sprintf("Forge is going to make a deployment to %s, as %s chose.", about, by), true
	}
}

// plain has one space between words, and nothing invisible, as comes with what is copied
// from a question.
func plain(s string) string { return text.OneLine(strings.Map(text.Visible, s)) }

// more reports whether more is said than a choice takes. Environments may have spaces in
// their names.
func (s *Ship) more(choice, about string) bool {
	if choice == "stop" || choice == "again" {
		return about != ""
	}
	if q := s.Question; q != nil && strings.EqualFold(about, plain(q.About)) {
		return false
	}
	return strings.Contains(about, " ")
}

// own reports whether a note has words that are not quoted.
func own(note string) bool {
	for l := range strings.Lines(note) {
		if t := strings.TrimSpace(l); t != "" && !strings.HasPrefix(t, ">") {
			return true
		}
	}
	return false
}

// choice is the word that agrees.
func (q *Question) choice() string {
	switch {
	case q.Wait:
		return "wait"
	case q.Pass:
		return "pass"
	}
	return "approve"
}

// again goes on after a stop; people are asked first.
func (s *Ship) again(now time.Time, by string) {
	switch {
	case s.Merged == "":
		s.to(Unverified, now, by, "%s goes on", by)
	case s.deploys():
		s.ask(Question{About: s.environment(), Why: "once more, as " + by + " chose"}, now)
	default:
		s.begin(now, by)
		s.to(Rolling, now, by, "%s goes on", by)
	}
}

// how says where it stands, and what may be said of it.
func (s *Ship) how() string {
	form := func(words string) string { return "`" + command.Write(s.Slug, "ship "+words) + "`" }
	words := fmt.Sprintf("Nothing was done. Shipping is at: %s (%s). ", s.State, s.Why)
	switch {
	case s.Question != nil:
		return words + fmt.Sprintf("The question takes %s or %s.", form(s.Question.choice()+" "+s.Question.About), form("stop"))
	case s.State == Done:
		return words + "It is over."
	case s.State == Stopped:
		return words + fmt.Sprintf("%s goes on.", form("again"))
	}
	return words + fmt.Sprintf("%s stops it.", form("stop"))
}
