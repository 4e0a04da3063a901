package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/shipping"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

func openStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Covers S30: who asked for what, each once, in the order of its time, without secrets
// and without lines or colours of people's own making. What Forge does by itself is not there.
func TestRecord(t *testing.T) {
	ctx := t.Context()
	db := openStore(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mia, joe := pipeline.Actor{ID: 7, Login: "mia"}, pipeline.Actor{ID: 8, Login: "joe"}
	start := func(issue int, repo string) *pipeline.Run {
		run, err := db.CreateRun(ctx, fmt.Sprint(repo, issue), pipeline.Start{
			Repo: pipeline.Repo{ID: int64(len(repo)), Owner: "acme", Name: repo, DefaultBranch: "main"}, By: mia, Config: config.Default(), Base: "b", Branch: "forge/x",
			Task: pipeline.Task{Issue: issue, Title: "Add a total\nto the \x1b[31mcart", Author: joe},
		}, at.Add(time.Duration(issue)*time.Second), "00000000000000000000000000000000", nil)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	add := func(run *pipeline.Run, seconds int, typ pipeline.EventType, source string, d pipeline.Data) {
		t.Helper()
		ev := pipeline.Event{ID: fmt.Sprint(typ, seconds), Type: typ, Source: source, Time: at.Add(time.Duration(seconds) * time.Second), Data: d}
		if err := db.Append(ctx, run, []pipeline.Event{ev}, nil); err != nil {
			t.Fatal(err)
		}
	}
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	shop, site := start(1, "shop"), start(2, "site")
	add(shop, 20, pipeline.EventRunStopped, "human:joe", pipeline.Data{Answer: &pipeline.Answer{Choice: "stop", Text: "wait, " + token + " leaks", By: joe, Via: "comment"}})
	add(site, 10, pipeline.EventIssueEdited, "github", pipeline.Data{Actor: &mia, Task: &pipeline.Task{Title: "new"}})
	add(shop, 30, pipeline.EventRunResumed, "cli:root", pipeline.Data{Answer: &pipeline.Answer{Choice: "resume", By: pipeline.Actor{Login: "root"}, Via: "cli"}})
	add(shop, 31, pipeline.EventBaseMoved, "github", pipeline.Data{Head: "abc"})
	for i, paused := range []bool{true, false} {
		if err := db.SetPaused(ctx, store.Pause{At: at.Add(time.Duration(25+i) * time.Second), Actor: "root", Paused: paused, Reason: "look\n" + token}); err != nil {
			t.Fatal(err)
		}
	}
	export := func(since time.Time, repo string, asJSON bool) string {
		t.Helper()
		list, err := Read(ctx, db, since, repo)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Write(&b, list, asJSON); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const want = `2026-03-01T12:00:01.000000Z  mia  run.started  repo=acme/shop  run=1  issue=1  "Add a total to the [31mcart"
2026-03-01T12:00:02.000000Z  mia  run.started  repo=acme/site  run=2  issue=2  "Add a total to the [31mcart"
2026-03-01T12:00:10.000000Z  mia  issue.edited  repo=acme/site  run=2  issue=2
2026-03-01T12:00:20.000000Z  joe  run.stopped  via=comment  repo=acme/shop  run=1  issue=1  "stop: wait, [secret] leaks"
2026-03-01T12:00:25.000000Z  root  pause  via=cli  "look [secret]"
2026-03-01T12:00:26.000000Z  root  unpause  via=cli  "look [secret]"
2026-03-01T12:00:30.000000Z  root  run.resumed  via=cli  repo=acme/shop  run=1  issue=1  "resume"
`
	if got := export(time.Time{}, "", false); got != want {
		t.Errorf("the record is\n%s\nwant\n%s", got, want)
	}
	rows := export(time.Time{}, "", true)
	if again := export(time.Time{}, "", true); again != rows || strings.Count(rows, "\n") != 7 || strings.Contains(rows, token) ||
		!strings.Contains(rows, `"at":"2026-03-01T12:00:20Z","actor":"joe","actor_id":8,"what":"run.stopped","via":"comment","repo":"acme/shop","run":1,"seq":2,"issue":1,"says":"stop: wait, [secret] leaks"`) {
		t.Errorf("as JSON: %s", rows)
	}
	if got := export(at.Add(26*time.Second), "ACME/shop", false); strings.Count(got, "\n") != 2 || !strings.Contains(got, "unpause") {
		t.Errorf("since then, of one repository: %s", got)
	}
	for _, s := range []string{"2026-03-01", "2026-03-01T00:00:00Z", "12h"} {
		if m, err := moment(s, at); err != nil || !m.Equal(at.Add(-12*time.Hour)) {
			t.Errorf("%s is %v, %v", s, m, err)
		}
	}
	if _, err := moment("yesterday", at); err == nil {
		t.Error("yesterday is a time")
	}
}

// How a run was started, and what somebody was refused, is there, too; also when the
// payload of that delivery is no longer kept.
func TestRecordOfStartsAndRefusals(t *testing.T) {
	ctx := t.Context()
	db := openStore(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	keep := func(guid, event, payload, outcome string, after time.Duration) {
		t.Helper()
		event, action, _ := strings.Cut(event, ".")
		d := record.Delivery{GUID: guid, Event: event, Action: action, Repo: "acme/shop", Received: at.Add(after), Payload: []byte(payload)}
		if err := db.KeepDeliveries(ctx, []record.Delivery{d}); err != nil {
			t.Fatal(err)
		}
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := db.FinishDelivery(ctx, tx, guid, outcome, false, at.Add(after))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	keep("g1", "issues", `{}`, "run 1 started by mia", 0)
	keep("g2", "issue_comment", `{"sender":{"id":66},"issue":{"number":1},"comment":{"body":"/forge accept\nsince `+token+`"}}`,
		"ignored: eve may not command Forge (needs write)", time.Second)
	keep("g3", "issues.edited", ``, "run 1: not taken in: eve may not change the task (needs write)", 2*time.Second)
	keep("g4", "issue_comment", `{"sender":{"id":9},"comment":{"body":"/forge run"}}`, "ignored: dep[bot] is a bot, and bots start nothing", 3*time.Second)
	keep("g5", "issue_comment", `{"comment":{"body":"Nice"}}`, "ignored: no command", 4*time.Second)
	for i, key := range []string{"g1", "cli/17", "incident/3/run"} {
		start := pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop"}, By: pipeline.Actor{ID: 7, Login: "mia"}, Config: config.Default(), Base: "b", Branch: "forge/x",
			Task: pipeline.Task{Issue: i + 1, Title: "A total"}}
		if _, err := db.CreateRun(ctx, key, start, at.Add(time.Duration(10+i)*time.Second), "00000000000000000000000000000000", nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Read(ctx, db, at, "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, list, false); err != nil {
		t.Fatal(err)
	}
	const want = `2026-03-01T12:00:01.000000Z  eve  refused  via=comment  repo=acme/shop  issue=1  "may not command Forge (needs write): /forge accept since [secret]"
2026-03-01T12:00:02.000000Z  eve  refused  via=edit  repo=acme/shop  "may not change the task (needs write)"
2026-03-01T12:00:03.000000Z  dep[bot]  refused  via=comment  repo=acme/shop  "is a bot, and bots start nothing: /forge run"
2026-03-01T12:00:10.000000Z  mia  run.started  via=label  repo=acme/shop  run=1  issue=1  "A total"
2026-03-01T12:00:11.000000Z  mia  run.started  via=cli  repo=acme/shop  run=2  issue=2  "A total"
2026-03-01T12:00:12.000000Z  mia  run.started  via=incident  repo=acme/shop  run=3  issue=3  "A total"
`
	if got := b.String(); got != want || list[0].ID != 66 {
		t.Errorf("the record is\n%s\nwant\n%s (%d)", got, want, list[0].ID)
	}
}

// What people said of shipping and of incidents is there, too; what Forge did of that is not.
func TestRecordOfProduction(t *testing.T) {
	ctx := t.Context()
	db := openStore(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	data, err := json.Marshal(shipping.Ship{Run: 1, Pull: 5, Log: []shipping.Entry{
		{At: at, What: "a person is asked"},
		{At: at.Add(2 * time.Second), What: "mia agreed to merge it at abc", By: "mia"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SaveShip(ctx, &store.Ship{Run: 1, Repo: "acme/shop", Data: data}); err != nil {
		t.Fatal(err)
	}
	var events []store.IncidentEvent
	for i, d := range []production.EventData{
		{Answer: production.AnswerRollBack, By: "joe"},
		{Answer: production.AnswerRollBack, By: "joe"},
		{By: "joe", Until: at.Add(time.Hour)},
		{By: "mia", Why: "a drill"},
	} {
		kind := []production.EventType{production.EventChosen, production.EventBegun, production.EventMuted, production.EventDismissed}[i]
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, store.IncidentEvent{Seq: int64(i + 1), Type: string(kind), At: at.Add(time.Duration(i) * time.Second), Data: raw})
	}
	row := &store.Incident{Seq: 4, Repo: "acme/shop", Environment: "production", Kind: "error", Group: "g", State: "open", Severity: "critical", Opened: at, Updated: at, Data: []byte("{}")}
	if err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return db.SaveIncident(ctx, tx, row, 0, events) }); err != nil {
		t.Fatal(err)
	}
	for since, want := range map[time.Duration]string{
		0: `2026-03-01T12:00:00.000000Z  joe  production.answer_chosen  repo=acme/shop  incident=1  "rollback"
2026-03-01T12:00:02.000000Z  joe  production.incident_muted  repo=acme/shop  incident=1  "until 2026-03-01T13:00:00Z"
2026-03-01T12:00:02.000000Z  mia  ship  repo=acme/shop  run=1  pull=5  "mia agreed to merge it at abc"
2026-03-01T12:00:03.000000Z  mia  production.incident_dismissed  repo=acme/shop  incident=1  "a drill"
`,
		3 * time.Second: `2026-03-01T12:00:03.000000Z  mia  production.incident_dismissed  repo=acme/shop  incident=1  "a drill"
`,
	} {
		list, err := Read(ctx, db, at.Add(since), "")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Write(&b, list, false); err != nil || b.String() != want {
			t.Errorf("the record since %s is\n%s\nwant\n%s (%v)", since, b.String(), want, err)
		}
	}
}
