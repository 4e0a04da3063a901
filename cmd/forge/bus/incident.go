package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"time"

	"forge/cmd/forge/incidents"
	"forge/learn/production"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// untold are the types of an incident's events that nobody else needs: what is counted, told,
// learnt, or tried again.
var untold = []production.EventType{production.EventJoined, production.EventCounted, production.EventTold, production.EventTaught, production.EventFailed}

// wantsOf reports whether an event of an incident is for it.
func (s Subscriber) wantsOf(t production.EventType, repo string) bool {
	return !slices.Contains(untold, t) && matches(s.Types, string(t)) && matches(s.Repos, repo)
}

// newIncidentEvent makes what is told of an incident's event.
func newIncidentEvent(i *production.Incident, e *production.Event, hide func(string) string) Event {
	d := Data{Repo: i.Repo, Incident: i.ID, Seq: e.Seq, Title: hide(text.Clip(i.Title, mostTitle)), State: string(i.State), Severity: string(i.Severity),
		Environment: i.Environment, Answer: string(e.Data.Answer), Actor: e.Data.By, Why: hide(text.Clip(e.Data.Why, mostText))}
	if a := i.Act(production.AnswerIssue); a != nil && a.State == production.ActDone {
		d.Issue = int(a.Number)
	}
	if len(i.Suspects) > 0 && i.Suspects[0].Score >= production.Suspected {
		d.Deployment, d.Pull = i.Suspects[0].Deployment, i.Suspects[0].Pull
	}
	if q := e.Data.Question; q != nil {
		d.Question, d.Choices = hide(text.Clip(q.Text, mostText)), map[string]string{}
		for _, c := range q.Choices {
			d.Choices[c.Write] = hide(text.Clip(c.What, mostText))
		}
	}
	return Event{
		SpecVersion: "1.0", ID: fmt.Sprintf("incident-%d-%d/%d", i.Opened.Unix(), i.ID, e.Seq),
		Source: (&url.URL{Path: path.Join("/forge", i.Repo, "incidents", fmt.Sprint(i.ID))}).EscapedPath(), Subject: fmt.Sprintf("%s incident %d", i.Repo, i.ID),
		Type: typePrefix + string(e.Type), Time: e.At.UTC(), DataContentType: "application/json", Data: d,
	}
}

// tellIncident tells an incident's events behind the cursor, in their order.
func (s *sender) tellIncident(ctx context.Context, id int64) error {
	from, err := s.o.DB.IncidentCursor(ctx, s.cursor(), id)
	if err != nil {
		return err
	}
	i, events, err := incidentOf(ctx, s.o.DB, id)
	if errors.Is(err, store.ErrNotFound) { // it is too old to be kept
		return nil
	}
	if err != nil {
		return err
	}
	wanted := func(yield func(Event) bool) {
		for n := range events {
			if e := &events[n]; e.Seq > from && s.wantsOf(e.Type, i.Repo) && !yield(newIncidentEvent(i, e, s.o.Hide)) {
				return
			}
		}
	}
	return s.tell(ctx, wanted, i.Seq, func(seq int64) error { return s.o.DB.PassIncident(ctx, s.cursor(), id, seq) })
}

// incidentOf reads an incident and what of its log belongs to it as it was read.
func incidentOf(ctx context.Context, db *store.DB, id int64) (*production.Incident, []production.Event, error) {
	row, err := db.Incident(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	i, err := incidents.Folded(row)
	if err != nil {
		return nil, nil, err
	}
	events, err := incidents.Log(ctx, db, id)
	return i, slices.DeleteFunc(events, func(e production.Event) bool { return e.Seq > i.Seq }), err
}

// nextIncidents hands tell what has come to incidents since the last call, and stops at its
// error: that event comes again. It returns when the newest changed.
func (f *Follower) nextIncidents(ctx context.Context, tell func(Event) error) (newest time.Time, err error) {
	if f.Run != 0 {
		return newest, nil
	}
	rows, err := f.db.ChangedIncidents(ctx, f.from)
	if err != nil {
		return newest, err
	}
	for _, row := range rows {
		if row.Updated.After(newest) {
			newest = row.Updated
		}
		if row.Seq <= f.incidents[row.ID] || !matches(f.Repos, row.Repo) || f.Sees != nil && !f.Sees(row.Repo) {
			continue
		}
		if err := f.tellIncident(ctx, row.ID, tell); err != nil {
			return newest, err
		}
	}
	return newest, nil
}

func (f *Follower) tellIncident(ctx context.Context, id int64, tell func(Event) error) error {
	i, events, err := incidentOf(ctx, f.db, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := range events {
		e := &events[n]
		if e.Seq <= f.incidents[id] {
			continue
		}
		if !slices.Contains(untold, e.Type) && matches(f.Types, string(e.Type)) && !e.At.Before(f.Since) {
			if err := tell(newIncidentEvent(i, e, f.hide)); err != nil {
				return err
			}
		}
		f.incidents[id] = e.Seq
	}
	return nil
}
