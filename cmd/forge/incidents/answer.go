package incidents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/learn/production"
	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
)

// maxMute is how long nobody is told of an incident at most.
const maxMute = 7 * 24 * time.Hour

// Dismiss ends an incident, because a person says that it is nothing.
func Dismiss(ctx context.Context, db *store.DB, id int64, by, why string, now time.Time) error {
	return answer(ctx, db, id, now, func(d *production.Tracker, i *production.Incident) error {
		if i.State == production.StateDismissed || !i.State.Active() && !i.Taught && i.Lesson() == "" {
			return &refusal{fmt.Sprintf("Incident %d is %s already.", id, i.State)}
		}
		d.Record(i, production.EventDismissed, production.EventData{By: by, Why: text.Clip(text.OneLine(why), 500)})
		return nil
	})
}

// Mute stops messages about an incident for a while.
func Mute(ctx context.Context, db *store.DB, id int64, by string, d time.Duration, now time.Time) error {
	if d <= 0 || d > maxMute {
		return fmt.Errorf("an incident can be muted for up to %d hours", int(maxMute.Hours()))
	}
	return answer(ctx, db, id, now, func(tracker *production.Tracker, i *production.Incident) error {
		if !i.State.Active() {
			return &refusal{fmt.Sprintf("Incident %d is %s: there is nothing to mute.", id, i.State)}
		}
		tracker.Record(i, production.EventMuted, production.EventData{By: by, Until: now.Add(d).UTC().Truncate(time.Second)})
		return nil
	})
}

// Answer implements work.Incidents: it takes in what a person with write access to the
// incident's repository says of it.
func (s *Service) Answer(ctx context.Context, w work.Word) (string, error) {
	if first, rest, _ := strings.Cut(strings.TrimSpace(w.Text), " "); strings.EqualFold(first, "open") {
		return s.reported(ctx, w, strings.TrimSpace(rest))
	}
	id, choice, words := cutAnswer(w.Text)
	row, err := s.DB.Incident(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !strings.EqualFold(row.Repo, w.Repo.FullName()) {
		number, _, _ := strings.Cut(strings.TrimSpace(w.Text), " ")
		return fmt.Sprintf("There is no incident %q in this repository. Write the number of one, and then what you choose.", text.Clip(number, 20)), nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case choice == "dismiss" && words == "":
		return fmt.Sprintf("Say why incident %d is nothing: `%s`.", id, command.Write(s.Slug, fmt.Sprintf("incident %d dismiss WHY", id))), nil
	case choice == "dismiss":
		err = Dismiss(ctx, s.DB, id, w.Actor.Login, words, s.Now())
		return s.said(err, "Incident %d was dismissed. For a day the same opens no other, unless it gets worse or something is deployed there.", id)
	case choice == "":
		return fmt.Sprintf("Say what you choose about incident %d: issue, run, revert, rollback, dismiss or mute.", id), nil
	case choice == "mute" && words == "":
		return fmt.Sprintf("Say for how long: `%s`.", command.Write(s.Slug, fmt.Sprintf("incident %d mute 2h", id))), nil
	case choice == "mute":
		d, wrong := time.ParseDuration(words)
		if wrong != nil || d <= 0 || d > maxMute {
			return fmt.Sprintf("%q is no time of up to %d hours, such as 2h.", text.Clip(words, 20), int(maxMute.Hours())), nil
		}
		return s.said(Mute(ctx, s.DB, id, w.Actor.Login, d, s.Now()), "Nobody is told of incident %d, and nothing is done about it by itself, for %s.", id, d)
	}
	if words != "" { // in some language they may say that it is not to be done
		form := command.Write(s.Slug, fmt.Sprintf("incident %d %s", id, choice))
		return fmt.Sprintf("Nothing was done: the line goes on after `%s` with %q, which may turn it around. If you mean it, write it alone.", form, text.Clip(words, 100)), nil
	}
	return s.choose(ctx, row, production.Answer(choice), w)
}

// said wakes what follows up an answer, and says that it was taken.
func (s *Service) said(err error, format string, args ...any) (string, error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
		return no.Error(), nil
	case err != nil:
		return "", err
	}
	s.changed.Store(true)
	s.Wake()
	return fmt.Sprintf(format, args...), nil
}

// cutAnswer takes "12 rollback words" apart.
func cutAnswer(line string) (id int64, choice, words string) {
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	choice, words, _ = strings.Cut(strings.TrimSpace(rest), " ")
	id, _ = strconv.ParseInt(strings.TrimPrefix(first, "#"), 10, 64)
	return id, strings.ToLower(choice), strings.TrimSpace(words)
}

// choose writes down what a person chose, if it is allowed now.
func (s *Service) choose(ctx context.Context, row *store.Incident, a production.Answer, w work.Word) (string, error) {
	if s.Actions == nil {
		return "This server does nothing about incidents.", nil
	}
	i, err := Folded(row)
	if err != nil {
		return "", err
	}
	scene, err := s.scene(ctx, i.Repo)
	if err != nil {
		return "", err
	}
	list := scene.Judge(i)
	n := slices.IndexFunc(list, func(v production.Verdict) bool { return v.Answer == a })
	switch {
	case n < 0:
		return fmt.Sprintf("%q is no answer to an incident: choose issue, run, revert, rollback, dismiss or mute.", text.Clip(string(a), 20)), nil
	case list[n].Why != "":
		return fmt.Sprintf("Incident %d: there is no %s now: %s.", i.ID, nameOf[a], list[n].Why), nil
	}
	err = answer(ctx, s.DB, i.ID, s.Now(), func(d *production.Tracker, i *production.Incident) error {
		d.Record(i, production.EventChosen, production.EventData{Answer: a, By: w.Actor.Login, Number: int64(w.Issue)})
		return nil
	})
	return s.said(err, "Incident %d: %s, as %s chose.", i.ID, list[n].Line(), w.Actor.Login)
}

// refusal is why an incident cannot be answered so, for people.
type refusal struct{ words string }

func (r *refusal) Error() string { return r.words }

// answer changes an incident, again when somebody else was first.
func answer(ctx context.Context, db *store.DB, id int64, now time.Time, change func(*production.Tracker, *production.Incident) error) error {
	for try := 0; ; try++ {
		row, err := db.Incident(ctx, id)
		if err != nil {
			return err
		}
		i, err := Folded(row)
		if err != nil {
			return err
		}
		tracker := &production.Tracker{Incidents: []*production.Incident{i}, Now: now.UTC().Truncate(time.Microsecond)}
		if err := change(tracker, i); err != nil {
			return err
		}
		err = Keep(ctx, db, tracker)
		if !errors.Is(err, store.ErrConflict) || try == 5 {
			return err
		}
	}
}
