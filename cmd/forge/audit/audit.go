// Package audit exports who asked Forge for what: a line for each start, command,
// answer, change of what is remembered and pause, out of the log of events, and for what
// somebody was refused, out of the deliveries.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/cmd/forge/shipping"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
)

// Entry is a line of the record. Its form is stable; fields are only added.
type Entry struct {
	At    time.Time `json:"at"`
	Actor string    `json:"actor"`              // login on GitHub, or user of the machine
	ID    int64     `json:"actor_id,omitempty"` // GitHub's; 0 for a user of the machine
	What  string    `json:"what"`               // the event's type, or "pause", "unpause", "ship" and "refused"
	Via   string    `json:"via,omitempty"`      // comment, box, button, cli, label, edit, incident, module
	Repo  string    `json:"repo,omitempty"`     // "": all
	Run   int64     `json:"run,omitempty"`
	About int64     `json:"incident,omitempty"`
	Seq   int64     `json:"seq,omitempty"` // the position in the log of that, or the pause's number
	Issue int       `json:"issue,omitempty"`
	Pull  int       `json:"pull,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	Says  string    `json:"says,omitempty"` // the choice and their words, without what looks like a secret
}

// types are the events that a person stands behind.
var types = []pipeline.EventType{
	pipeline.EventRunStarted, pipeline.EventRunStopped, pipeline.EventRunResumed, pipeline.EventRunAccepted, pipeline.EventRunCancelled,
	pipeline.EventRunReset, pipeline.EventRunReopened, pipeline.EventRunClosed, pipeline.EventModuleRefused, pipeline.EventGateAnswered,
	pipeline.EventGateOverride, pipeline.EventBranchMoved, pipeline.EventBranchDeleted, pipeline.EventRetargeted, pipeline.EventChangesAsked,
	pipeline.EventChangesEdited, pipeline.EventIssueEdited, pipeline.EventDismissed, pipeline.EventPullReviewed, pipeline.EventRemembered, pipeline.EventForgotten,
}

// Read returns the record since a time, oldest first. Twice read, it is the same.
func Read(ctx context.Context, db *store.DB, since time.Time, repo string) ([]Entry, error) {
	list := []Entry{}
	err := db.Orders(ctx, since, types, func(o store.Order) error {
		if e, ok := entryOf(o); ok {
			list = append(list, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	pauses, err := db.PauseLog(ctx, since)
	if err != nil {
		return nil, err
	}
	for _, p := range pauses {
		what := "unpause"
		if p.Paused {
			what = "pause"
		}
		list = append(list, Entry{At: p.At, Actor: p.Actor, What: what, Via: "cli", Repo: p.Repo, Seq: p.Seq, Says: tidy(p.Reason)})
	}
	beside, err := afterwards(ctx, db, since)
	if err != nil {
		return nil, err
	}
	list = append(list, beside...)
	denied, err := refused(ctx, db, since)
	if err != nil {
		return nil, err
	}
	list = append(list, denied...)
	list = slices.DeleteFunc(list, func(e Entry) bool { return repo != "" && e.Repo != "" && !strings.EqualFold(e.Repo, repo) })
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Run, b.Run), cmp.Compare(a.About, b.About), cmp.Compare(a.Seq, b.Seq))
	})
	return list, nil
}

// afterwards is what people ordered of what comes after a run: how its work is shipped,
// and what is done about incidents.
func afterwards(ctx context.Context, db *store.DB, since time.Time) (list []Entry, err error) {
	ships, err := shipping.All(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, s := range ships {
		for i, e := range s.Log {
			if e.By != "" && !e.At.Before(since) {
				list = append(list, Entry{At: e.At, Actor: tidy(e.By), What: "ship", Repo: s.Repo, Run: s.Run, Seq: int64(i + 1), Pull: s.Pull, Says: tidy(e.What)})
			}
		}
	}
	orders, err := db.IncidentOrders(ctx, since, []string{string(production.EventDismissed), string(production.EventMuted), string(production.EventChosen)})
	if err != nil {
		return nil, err
	}
	for _, o := range orders {
		var d production.EventData
		if err := json.Unmarshal(o.Data, &d); err != nil {
			return nil, fmt.Errorf("event %d of incident %d: %w", o.Seq, o.Incident, err)
		}
		says := cmp.Or(string(d.Answer), d.Why)
		if !d.Until.IsZero() {
			says = "until " + d.Until.Format(time.RFC3339)
		}
		list = append(list, Entry{At: o.At, Actor: tidy(d.By), What: o.Type, Repo: o.Repo, About: o.Incident, Seq: o.Seq, Says: tidy(says)})
	}
	return list, nil
}

// refused is what people asked for without the right to.
func refused(ctx context.Context, db *store.DB, since time.Time) (list []Entry, err error) {
	var of []string
	err = db.Answered(ctx, since, func(d *record.Delivery) error {
		if _, _, ok := work.Refused(d.Outcome); ok {
			of = append(of, d.GUID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, guid := range of {
		d, err := db.Delivery(ctx, guid)
		if err != nil {
			return nil, err
		}
		e, err := refusal(d)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// refusal is the entry of a delivery that was refused, with what is left of its payload:
// payloads are not kept forever.
func refusal(d *record.Delivery) (Entry, error) {
	var p struct {
		Sender struct {
			ID int64 `json:"id"`
		} `json:"sender"`
		Issue struct {
			Number int `json:"number"`
		} `json:"issue"`
		Comment struct {
			Body string `json:"body"`
		} `json:"comment"`
	}
	if len(d.Payload) > 0 {
		if err := json.Unmarshal(d.Payload, &p); err != nil {
			return Entry{}, fmt.Errorf("delivery %s: %w", d.GUID, err)
		}
	}
	who, why, _ := work.Refused(d.Outcome)
	e := Entry{At: d.Received, Actor: tidy(who), ID: p.Sender.ID, What: "refused", Via: vias[d.Event], Repo: d.Repo, Issue: p.Issue.Number, Says: why}
	if d.Action == "edited" && d.Event == "issues" {
		e.Via = "edit"
	}
	if p.Comment.Body != "" {
		e.Says += ": " + p.Comment.Body
	}
	e.Says = tidy(e.Says)
	return e, nil
}

// vias are the ways by which what GitHub tells of was asked for.
var vias = map[string]string{
	"issues": "label", "pull_request": "label", "check_run": "button",
	"issue_comment": "comment", "pull_request_review_comment": "comment", "pull_request_review": "comment",
}

// began says how a run was started.
func began(o store.Order) string {
	way, _, _ := strings.Cut(o.Event.ID, "/")
	switch {
	case o.Event.Data.Start.Part != nil:
		return "module"
	case way == "cli" || way == "incident":
		return way
	}
	return vias[o.Cause]
}

// entryOf is the line of an event; not ok when no person stands behind it.
func entryOf(o store.Order) (Entry, bool) {
	d := &o.Event.Data
	e := Entry{At: o.Event.Time, What: string(o.Event.Type), Repo: o.Repo, Run: o.Run, Seq: o.Event.Seq, Issue: o.Issue, Pull: o.Pull}
	var by pipeline.Actor
	switch {
	case d.Answer != nil:
		a := d.Answer
		by, e.Via, e.Gate, e.Says = a.By, a.Via, a.Gate, a.Choice
		if a.N != 0 {
			e.Says += " " + strconv.Itoa(a.N)
		}
		if a.Micros != 0 {
			e.Says += " " + text.USD(a.Micros)
		}
		if a.Text != "" {
			e.Says += ": " + a.Text
		}
		if d.Config != nil {
			e.Says += " (with the repository's settings, read again)"
		}
	case d.Start != nil:
		by, e.Via, e.Says = d.Start.By, began(o), d.Start.Task.Title
	case d.Actor != nil:
		by, e.Says = *d.Actor, cmp.Or(d.Note, d.Head)
		if d.Learning != nil {
			e.Says = strings.TrimPrefix(d.Learning.Content+": "+d.Note, ": ")
		}
	}
	login, ok := strings.CutPrefix(o.Event.Source, "human:")
	if !ok {
		login, ok = strings.CutPrefix(o.Event.Source, "cli:")
	}
	if ok {
		by.Login = cmp.Or(by.Login, login)
	}
	e.Actor, e.ID, e.Says = tidy(by.Login), by.ID, tidy(e.Says)
	return e, by.Login != ""
}

// maxSays is how much of somebody's words a line has.
const maxSays = 500

// tidy makes a text one line that holds nothing that looks like a secret, and nothing
// that a terminal obeys.
func tidy(s string) string {
	s = text.Scrub(strings.Join(strings.Fields(s), " "))
	return text.Clip(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, s), maxSays)
}

// Write writes the record, an entry a line.
func Write(out io.Writer, list []Entry, asJSON bool) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, e := range list {
		if asJSON {
			if err := enc.Encode(e); err != nil {
				return err
			}
			continue
		}
		row := e.At.Format("2006-01-02T15:04:05.000000Z") + "  " + e.Actor + "  " + e.What
		for _, f := range []struct{ name, value string }{
			{"via", e.Via}, {"repo", e.Repo}, {"run", number(e.Run)}, {"incident", number(e.About)}, {"issue", number(int64(e.Issue))}, {"pull", number(int64(e.Pull))}, {"gate", e.Gate},
		} {
			if f.value != "" {
				row += "  " + f.name + "=" + f.value
			}
		}
		if e.Says != "" {
			row += "  " + strconv.Quote(e.Says)
		}
		if _, err := fmt.Fprintln(out, row); err != nil {
			return err
		}
	}
	return nil
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
