package incidents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/rollout"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Code looks up what deployments brought.
type Code interface {
	// Facts returns what is known of deployments of a repository: their commits, and who
	// changed the lines of a stack last.
	Facts(ctx context.Context, repo string, list []production.Deployment, stack []production.Frame) ([]production.Facts, error)
}

// Teller tells people, and runs.
type Teller interface {
	// Tell comments on a pull request, once for each key.
	Tell(ctx context.Context, repo string, pull int, words, key string) error
	// Ask asks people at an issue or pull request, once for each key.
	Ask(ctx context.Context, repo string, number int, q command.Question, key string) error
	// Released tells a run how a deployment of its work fares.
	Released(ctx context.Context, run int64, r rollout.Status) error
}

const (
	lookTime = time.Minute // for what one incident needs to be looked up
	mostLook = 3           // tries; then it is correlated by time and name alone
	recently = 24 * time.Hour
)

// Follow correlates the incidents that are new, and tells people.
func (s *Service) Follow(ctx context.Context) error {
	if !s.changed.Swap(false) {
		return nil
	}
	rows, err := s.DB.Incidents(ctx, store.IncidentFilter{Since: s.Now().Add(-recently), Limit: 200})
	if err != nil {
		return err
	}
	trackers := map[string]*production.Tracker{}
	var errs []error
	waits := false
	for _, row := range rows {
		if paused, err := s.DB.Paused(ctx, row.Repo); paused || err != nil { // people are told when it goes on
			errs, waits = append(errs, err), true
			continue
		}
		tracker, err := s.tracker(ctx, trackers, row.Repo)
		if err != nil {
			return err
		}
		n := slices.IndexFunc(tracker.Incidents, func(i *production.Incident) bool { return i.ID == row.ID })
		if n < 0 {
			continue
		}
		i := tracker.Incidents[n]
		if i.State.Active() && !i.Storm && i.Uncorrelated(tracker.Deployments) {
			errs = append(errs, s.correlate(ctx, tracker, i))
		}
		if s.Teller != nil && !s.Now().Before(s.untold[i.ID]) {
			delete(s.untold, i.ID)
			err := s.tell(ctx, tracker, i)
			if err != nil && ctx.Err() == nil {
				s.untold[i.ID] = s.Now().Add(tryAfter)
			}
			errs = append(errs, err)
		}
	}
	if err := s.keep(ctx, trackers, nil); err != nil {
		return errors.Join(append(errs, err)...)
	}
	s.changed.Store(waits)
	for _, err := range errs {
		if err != nil {
			s.Log.Warn("follow an incident", "error", err)
		}
	}
	return nil
}

// correlate finds what an incident may come from. What cannot be looked up is tried
// again a few times.
func (s *Service) correlate(ctx context.Context, tracker *production.Tracker, i *production.Incident) error {
	candidates := production.Candidates(i, tracker.Deployments)
	var facts []production.Facts
	for _, d := range candidates {
		facts = append(facts, production.Facts{Deployment: d})
	}
	var failed error
	if s.Code != nil && len(candidates) > 0 {
		look, cancel := context.WithTimeout(ctx, lookTime)
		more, err := s.Code.Facts(look, i.Repo, candidates, i.OwnFrames())
		cancel()
		if err != nil {
			failed = fmt.Errorf("look up what the deployments of incident %d brought: %w", i.ID, err)
			if s.failed[i.ID]++; s.failed[i.ID] < mostLook || ctx.Err() != nil {
				return failed
			}
		} else {
			facts = more
		}
	}
	delete(s.failed, i.ID)
	suspects := production.Suspects(i, facts, tracker.Incidents, nil)
	tracker.Record(i, production.EventCorrelated, production.EventData{Suspects: suspects, Weighed: i.Weigh(candidates)})
	return failed
}

// message is something that people are to be told, once for each key.
type message struct {
	number int // of the issue or pull request
	key    string
	words  string
}

// tell tells people what they were not told yet.
func (s *Service) tell(ctx context.Context, tracker *production.Tracker, i *production.Incident) error {
	if s.Now().Before(i.Muted) {
		return nil
	}
	list, err := s.ofSuspect(ctx, tracker, i)
	if err != nil {
		return err
	}
	list = append(list, ofActs(i, tracker.Deployments)...)
	late, ok := reminder(i, s.Now())
	if ok {
		list = append(list, late)
	}
	for _, m := range list {
		if slices.Contains(i.Told, m.key) {
			continue
		}
		err := s.Teller.Tell(ctx, i.Repo, m.number, m.words, m.key)
		reminded := err == nil && m.key == late.key
		data := production.EventData{Key: m.key}
		var fault *pipeline.Fault
		if errors.As(err, &fault) && fault.Final { // such as where the conversation is locked
			data.Why, err = text.Clip(text.OneLine(fault.Message), 500), nil
			s.Log.Warn("nobody can be told of an incident", "error", fmt.Errorf("%s: %w", m.key, fault))
		}
		if err != nil {
			return fmt.Errorf("tell of incident %d: %w", i.ID, err)
		}
		if reminded { // who is told of events is, too
			tracker.Record(i, production.EventAsked, production.EventData{Number: int64(m.number), Question: &command.Question{Text: m.words}})
		}
		tracker.Record(i, production.EventTold, data)
	}
	return nil
}

// ofSuspect is for the people of the pull request that is suspected, when it is Forge's
// work or the settings say so: once when it is, once when it is over.
func (s *Service) ofSuspect(ctx context.Context, tracker *production.Tracker, i *production.Incident) ([]message, error) {
	if len(i.Suspects) == 0 || i.Storm || i.Suspects[0].Pull == 0 {
		return nil, nil
	}
	top := i.Suspects[0]
	key := fmt.Sprintf("incident/%d/pull/%d", i.ID, top.Pull)
	told := slices.Contains(i.Told, key)
	switch {
	case i.State.Active() && !told && top.Score >= production.Suspected:
		if top.Run == 0 {
			if p, err := s.settings(ctx, i.Repo); err != nil || !p.Tell || !p.Covers(i.Environment) {
				return nil, err
			}
		}
		return []message{{top.Pull, key, suspicion(i, top, tracker.Deployments)}}, nil
	case !i.State.Active() && told:
		return []message{{top.Pull, key + "/end", ending(i)}}, nil
	}
	return nil, nil
}

// ofActs is for those who are told what was done: where the incident is talked about, at
// its issue or where people were asked, where an answer was chosen, and what was taken back also at the pull request
// and the issue of the run that it came from.
func ofActs(i *production.Incident, list []production.Deployment) (out []message) {
	place := 0
	for _, a := range []production.Answer{production.AnswerIssue, production.AnswerAsk} {
		if x := i.Act(a); x != nil && x.State == production.ActDone && place == 0 {
			place = int(x.Number)
		}
	}
	at := func(number int, key, words string) {
		if number == 0 {
			return
		}
		key = fmt.Sprintf("incident/%d/%s", i.ID, key)
		if number != place {
			key += fmt.Sprintf("/at/%d", number)
		}
		if !slices.ContainsFunc(out, func(m message) bool { return m.key == key }) {
			out = append(out, message{number, key, words})
		}
	}
	for _, a := range i.Acts {
		for _, said := range ofAct(i, a, list) {
			at(place, said.key, said.words)
			at(int(a.Said), said.key, said.words)
			if a.Answer != production.AnswerRun {
				for _, number := range touched(i, a) {
					at(number, said.key, said.words)
				}
			}
		}
	}
	if d := i.Declined; d != nil {
		words := fmt.Sprintf("Incident %d: there is no %s now, as %s chose: %s.", i.ID, nameOf[d.Answer], d.By, d.Why)
		for _, number := range []int{place, int(d.Issue)} {
			at(number, fmt.Sprintf("declined/%d", d.Seq), words)
		}
	}
	if !i.State.Active() {
		at(place, "end", ending(i))
	}
	return out
}

// remindAfter is how long nobody answers until people are asked once more.
const remindAfter = 15 * time.Minute

// reminder asks once more about something critical that goes on, to which nobody has said
// anything.
func reminder(i *production.Incident, now time.Time) (message, bool) {
	ask := i.Act(production.AnswerAsk)
	heard := i.Chosen != nil || i.Declined != nil || slices.ContainsFunc(i.Acts, func(a production.Act) bool { return a.By != "" })
	critical := i.State == production.StateOpen && i.Severity == production.SeverityCritical
	if heard || !critical || ask == nil || ask.State != production.ActDone || now.Sub(ask.At) < remindAfter {
		return message{}, false
	}
	words := fmt.Sprintf("Incident %d (%s) in %s goes on, and nobody has answered for %d minutes. The question is above.",
		i.ID, i.Severity, i.Environment, int(remindAfter.Minutes()))
	return message{int(ask.Number), fmt.Sprintf("incident/%d/reminded", i.ID), words}, true
}

// touched are the pull request and the issue of what an answer takes back.
func touched(i *production.Incident, a production.Act) []int {
	if len(i.Suspects) == 0 || i.Suspects[0].Pull != a.Aim.Pull {
		return []int{a.Aim.Pull}
	}
	return []int{a.Aim.Pull, i.Suspects[0].Issue}
}

// ofAct is what people are told of one answer.
func ofAct(i *production.Incident, a production.Act, list []production.Deployment) (out []message) {
	say := func(key, format string, args ...any) {
		out = append(out, message{key: key, words: fmt.Sprintf(format, args...)})
	}
	switch {
	case a.Answer == production.AnswerIssue || a.Answer == production.AnswerAsk || a.State == production.ActBegun:
	case a.State == production.ActRefused:
		say(string(a.Answer)+"/refused", "Incident %d: there is no %s: %s.", i.ID, nameOf[a.Answer], a.Why)
	case a.Answer == production.AnswerRun:
		say("run/done", "Incident %d: run %d works on this%s.", i.ID, a.Number, by(a.By))
	case a.Answer == production.AnswerRevert:
		say("revert/done", "Incident %d: #%d takes back what it may come from%s. It is a draft: look at it, and merge it if it is right.", i.ID, a.Number, by(a.By))
	case a.Answer == production.AnswerRollBack:
		say("rollback/done", "Incident %d: deployment %d of %s, which ran in %s before, was asked for%s.", i.ID, a.Number,
			text.Head(a.Aim.To, 10), i.Environment, by(a.By))
		n := slices.IndexFunc(list, func(d production.Deployment) bool { return d.ID == a.Number })
		if n >= 0 && slices.Contains([]string{"success", "failure", "error"}, list[n].State) {
			say("rollback/"+list[n].State, "Incident %d: the roll-back is deployed: %s.", i.ID, list[n].State)
		}
	}
	return out
}

func suspicion(i *production.Incident, top production.Suspect, list []production.Deployment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**Incident %d** (%s) in %s: %s\n\n", i.ID, i.Severity, i.Environment, i.Title)
	verdict := "may be"
	if top.Score >= production.Attributed {
		verdict = "is most likely"
	}
	fmt.Fprintf(&b, "It began at %s, and this pull request %s what it comes from (%.0f %%):\n\n",
		i.FirstSeen.UTC().Format("2006-01-02 15:04 MST"), verdict, 100*top.Score)
	for _, w := range top.Why {
		fmt.Fprintf(&b, "- %s\n", text.Clip(w, 300))
	}
	if n := slices.IndexFunc(list, func(d production.Deployment) bool { return d.ID == top.Deployment }); n >= 0 && list[n].Previous != "" {
		fmt.Fprintf(&b, "\nBefore it, %s ran there.\n", text.Head(list[n].Previous, 10))
	}
	fmt.Fprintf(&b, "\nForge changes nothing by itself, unless `production` in `.github/forge.yml` says so. `forge incident %d` on the server shows all that is known, and `--dismiss` says that it is nothing.", i.ID)
	return b.String()
}

func ending(i *production.Incident) string {
	if i.State == production.StateDismissed {
		return fmt.Sprintf("Incident %d was dismissed%s: %s", i.ID, by(i.By), i.Why)
	}
	return fmt.Sprintf("Incident %d is over: %s. It was seen %s, from %s to %s.", i.ID, i.Why, text.Plural(i.Count, "time", "times"),
		i.FirstSeen.UTC().Format("2006-01-02 15:04 MST"), i.LastSeen.UTC().Format("2006-01-02 15:04 MST"))
}
