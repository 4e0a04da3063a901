package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"forge/pipeline"
	"forge/pipeline/module"
	"forge/pipeline/record"
)

// same compares runs. An empty list and none are the same.
func same(a, b *pipeline.Run) string { return cmp.Diff(a, b, cmpopts.EquateEmpty()) }

func head(c string) string { return strings.Repeat(c, 40) }

func finding(id string, s pipeline.Severity) pipeline.Finding {
	return pipeline.Finding{ID: id, Fingerprint: "fp-" + id, Severity: s, Category: "correctness", Message: "wrong \x00 " + id, File: "a.go",
		Line: 3, Confidence: 0.9}
}

// story is a run's life: a plan, a review that bounces, a fix, a gate that a
// human answers, and the end.
func story() [][]pipeline.Event {
	ref := func(p pipeline.Phase, it, attempt int) *pipeline.PhaseRef {
		return &pipeline.PhaseRef{Phase: p, Iteration: it, Attempt: attempt, Mode: pipeline.ModeFresh}
	}
	enter := func(sec int, p pipeline.Phase, it int) pipeline.Event {
		return ev(fmt.Sprintf("enter/%s/%d", p, it), pipeline.EventPhaseEntered, sec, pipeline.Data{Phase: ref(p, it, 1)})
	}
	done := func(sec int, p pipeline.Phase, it int, d pipeline.Data) pipeline.Event {
		d.Phase = ref(p, it, 1)
		d.Phase.Millis = 1000
		return ev(fmt.Sprintf("done/%s/%d", p, it), pipeline.EventPhaseCompleted, sec, d)
	}
	impl := func(parent, to string) pipeline.Data {
		return pipeline.Data{Implementation: &pipeline.Implementation{Summary: "did it", Files: []string{"a.go"}, Parent: parent, Head: to}}
	}
	review := func(at string, f ...pipeline.Finding) pipeline.Data {
		return pipeline.Data{Review: &pipeline.Review{Head: at, Summary: "read", Findings: f, Reviewed: []string{"a.go"}}}
	}
	ann := pipeline.Actor{ID: 1, Login: "ann"}
	return [][]pipeline.Event{
		{enter(1, pipeline.PhasePlan, 0)},
		{ev("step/1", pipeline.EventAgentIteration, 2,
			pipeline.Data{Step: &pipeline.Step{Phase: pipeline.PhasePlan, Number: 1,
				Usage: pipeline.Usage{Calls: 1, Input: 100, Output: 10, MicroUSD: 1234}}}),
			ev("tool/1", pipeline.EventToolExecuted, 3, pipeline.Data{Tool: &pipeline.ToolUse{Phase: pipeline.PhasePlan, Tool: "read", OK: true, Millis: 5}})},
		{done(4, pipeline.PhasePlan, 0, pipeline.Data{
			Plan: &pipeline.Plan{Summary: "plan", Steps: []string{"one"}, Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it works"}}}})},
		{enter(5, pipeline.PhaseImplement, 1), done(6, pipeline.PhaseImplement, 1, impl(head("a"), head("b")))},
		{enter(7, pipeline.PhaseReview, 1), done(8, pipeline.PhaseReview, 1,
			review(head("b"), finding("F1", pipeline.SeverityError), finding("F2", pipeline.SeverityInfo)))},
		{ev("bounce/1", pipeline.EventBounce, 9, pipeline.Data{
			Bounce: &pipeline.Bounce{Number: 1, Phase: pipeline.PhaseReview, Iteration: 1, Count: 1, Weight: 3, Issues: []string{"fp-F1"}}})},
		{enter(10, pipeline.PhaseImplement, 2), done(11, pipeline.PhaseImplement, 2, impl(head("b"), head("c")))},
		{enter(12, pipeline.PhaseReview, 2), done(13, pipeline.PhaseReview, 2, review(head("c"), finding("F2", pipeline.SeverityWarning)))},
		{ev("publish/1", pipeline.EventPublishCompleted, 14, pipeline.Data{Publication: &pipeline.Publication{Rev: 5, Head: head("c"),
			Pull: &pipeline.PullRef{Number: 41, URL: "https://example.org/41"}, Artefacts: map[string]pipeline.Artefact{"status": {ID: 9, Hash: "h"}}}})},
		{ev("gate/1", pipeline.EventGateRequested, 15, pipeline.Data{Gate: &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateEscalation, Question: "Go on?",
			Guard: &pipeline.Guard{Name: pipeline.GuardBounces, Value: 3, Limit: 3}, Choices: []pipeline.Choice{{Name: "accept", Label: "take it"}}}})},
		{ev("comment/77", pipeline.EventGateAnswered, 16,
			pipeline.Data{Answer: &pipeline.Answer{Gate: "gate/1", Choice: "accept", Text: "fine", By: ann, Via: "comment", At: now}})},
		{ev("accepted", pipeline.EventRunAccepted, 17, pipeline.Data{Answer: &pipeline.Answer{Choice: "accept", By: ann, Via: "comment", At: now}})},
	}
}

// Covers I2, R8: a run's events can be replayed in full, and after every append
// the run in hand is the run in the log.
func TestReplayGivesTheSameRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		for i, events := range story() {
			add(t, d, run, events...)
			loaded, err := d.Load(ctx, run.ID)
			must(t, err)
			if diff := same(run, loaded); diff != "" {
				t.Fatalf("after step %d, in hand (-), loaded (+):\n%s", i, diff)
			}
		}
		want(t, "state", run.State, pipeline.StateAccepted)
		events, err := d.Events(ctx, run.ID, 0)
		must(t, err)
		for i, e := range events {
			if e.Seq != int64(i+1) || e.Run != run.ID || e.Trace != trace {
				t.Errorf("event %d: seq %d, run %d, trace %q", i, e.Seq, e.Run, e.Trace)
			}
		}
		want(t, "events", int64(len(events)), run.Seq)
		want(t, "first event's id", events[0].ID, "start/5")
		tail, err := d.Events(ctx, run.ID, run.Seq-2)
		must(t, err)
		if diff := cmp.Diff(events[len(events)-2:], tail); diff != "" {
			t.Errorf("tail: %s", diff)
		}
	})
}

// Covers M3, B8, H7: what is listed follows from the events.
func TestProjections(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		for _, events := range story() {
			add(t, d, run, events...)
		}
		rows, err := d.Runs(ctx, Filter{})
		must(t, err)
		wantRow := RunRow{ID: run.ID, RepoID: repoID, Repo: "acme/site", Issue: 5, Title: "Add a thing", Branch: "forge/issue-5", Pull: 41,
			State: pipeline.StateAccepted, Phase: pipeline.PhaseReview, Iteration: 2, MicroUSD: 1234, Started: now, Updated: run.Updated}
		if diff := cmp.Diff([]RunRow{wantRow}, rows); diff != "" {
			t.Errorf("Runs: %s", diff)
		}
		bounces, err := d.Bounces(ctx, run.ID)
		must(t, err)
		if diff := cmp.Diff(run.Bounces, bounces); diff != "" || len(bounces) != 1 || !bounces[0].Resolved {
			t.Errorf("Bounces: %v %s", bounces, diff)
		}
		want(t, "fixed findings", count(t, d, `SELECT count(*) FROM findings WHERE run = $1 AND fingerprint = 'fp-F1' AND state = 'fixed' AND fixed_in = $2`, run.ID, head("c")), 1)
		want(t, "accepted findings", count(t, d, `SELECT count(*) FROM findings WHERE fingerprint = 'fp-F2' AND state = 'accepted' AND severity = 'warning' AND times = 2 AND last_seen = 2`), 1)
		want(t, "closed gates", count(t, d, `SELECT count(*) FROM gates WHERE id = 'gate/1' AND guard = 'bounces' AND actor = 'ann' AND choice = 'accept' AND NOT (closed = (1=0))`), 1)
		want(t, "feedback", count(t, d, `SELECT count(*) FROM feedback_events WHERE run = $1 AND actor_id = 1 AND choice = 'accept'`, run.ID), 2)
		want(t, "feedback on the gate", count(t, d,
			`SELECT count(*) FROM feedback_events WHERE gate = 'gate/1' AND text = 'fine' AND via = 'comment' AND at = $1`, micros(now)+16_000_000), 1)
	})
}

// Covers V10: a list of runs says what one waits for, and until when, as long as it does.
func TestRunsWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		ref := &pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
		at := now.Add(time.Minute)
		look := func(want string) {
			t.Helper()
			rows, err := d.Runs(t.Context(), Filter{})
			must(t, err)
			if len(rows) != 1 || rows[0].Waits != want || strings.Contains(run.Summary(), "and waits for "+want) != (want != "") {
				t.Errorf("it waits for %q, want %q: %s", rows[0].Waits, want, run.Summary())
			}
		}
		next := func(typ pipeline.EventType, after time.Duration, data pipeline.Data) {
			data.Phase = ref
			add(t, d, run, pipeline.Event{ID: fmt.Sprint("w", run.Seq), Time: at.Add(after), Source: "forge", Type: typ, Data: data})
		}
		next(pipeline.EventPhaseEntered, 0, pipeline.Data{})
		look("")
		const away = "the model's provider until 12:04 UTC (HTTP 529)"
		next(pipeline.EventPhaseWaiting, 0, pipeline.Data{Await: &pipeline.Await{Model: true, What: away, Next: at.Add(time.Minute), Until: at.Add(time.Hour)}})
		look(away)
		next(pipeline.EventAgentIteration, 2*time.Minute, pipeline.Data{Step: &pipeline.Step{Phase: pipeline.PhasePlan}}) // it has answered
		look("")
		next(pipeline.EventPhaseWaiting, 3*time.Minute, pipeline.Data{Await: &pipeline.Await{What: "the check lint", Next: at.Add(4 * time.Minute), Until: at.Add(time.Hour)}})
		look("the check lint, until " + at.Add(time.Hour).UTC().Format("15:04 UTC") + " at most")
		next(pipeline.EventPhaseCompleted, 5*time.Minute, pipeline.Data{})
		look("")
	})
}

func TestFeedbackOnAFinding(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		f := finding("F1", pipeline.SeverityError)
		add(t, d, run, ev("dismiss/1", "feedback.finding_dismissed", 1, pipeline.Data{Finding: &f, Actor: &pipeline.Actor{ID: 3, Login: "bob"}, Note: "not so"}))
		want(t, "feedback", count(t, d, `SELECT count(*) FROM feedback_events WHERE finding = 'fp-F1' AND actor = 'bob' AND text = 'not so'`), 1)
	})
}

// Covers lessons 11: one run for an issue.
func TestOneActiveRunForAnIssue(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		first := begin(t, d, 5)
		_, err := d.CreateRun(ctx, "other", startOf(5), now, trace, nil)
		var act *ActiveError
		if !errors.As(err, &act) || act.Run != first.ID || !errors.Is(err, ErrActive) {
			t.Fatalf("second run of an issue: %v, want ErrActive of %d", err, first.ID)
		}
		local := startOf(5)
		local.Repo = pipeline.Repo{Name: "here"}
		one, err := d.CreateRun(ctx, "local/1", local, now, trace, nil)
		must(t, err)
		if _, err := d.CreateRun(ctx, "local/2", local, now, trace, nil); !errors.As(err, &act) || act.Run != one.ID {
			t.Errorf("second run of a local issue: %v", err)
		}
		local.Repo.Name = "there"
		_, err = d.CreateRun(ctx, "local/3", local, now, trace, nil)
		must(t, err)
		for i := range 2 { // tasks in words have no issue: any number of them
			_, err := d.CreateRun(ctx, fmt.Sprintf("words/%d", i), startOf(0), now, trace, nil)
			must(t, err)
		}
		add(t, d, first, ev("cancel", pipeline.EventRunCancelled, 1, pipeline.Data{Note: "enough"}))
		second, err := d.CreateRun(ctx, "again", startOf(5), now, trace, nil)
		must(t, err)
		if second.ID <= first.ID {
			t.Errorf("second run has number %d, the first %d", second.ID, first.ID)
		}
	})
}

func TestCreateRunIsIdempotent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		var seen []int64
		note := func(_ context.Context, _ *sql.Tx, id int64) error { seen = append(seen, id); return nil }
		first, err := d.CreateRun(ctx, "guid", startOf(5), now, trace, note)
		must(t, err)
		add(t, d, first, story()[0]...)
		second, err := d.CreateRun(ctx, "guid", startOf(5), now, trace, note)
		must(t, err)
		if diff := same(first, second); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int64{first.ID, first.ID}, seen); diff != "" {
			t.Errorf("also: %s", diff)
		}
		boom := errors.New("boom")
		_, err = d.CreateRun(ctx, "other", startOf(6), now, trace, func(context.Context, *sql.Tx, int64) error { return boom })
		if !errors.Is(err, boom) {
			t.Errorf("also failed: got %v", err)
		}
		want(t, "runs", count(t, d, `SELECT count(*) FROM runs`), 1)
		if _, err := d.CreateRun(ctx, "", startOf(6), now, trace, nil); err == nil {
			t.Error("no error without a key")
		}
	})
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		add(t, d, run, story()[0]...)
		stale, err := d.Load(ctx, run.ID)
		must(t, err)
		add(t, d, run, ev("x", pipeline.EventIssueEdited, 2, pipeline.Data{Task: &pipeline.Task{Title: "Other"}}))
		boom := errors.New("boom")
		missing := &pipeline.Run{ID: 99, Seq: 3}
		good := ev("y", pipeline.EventRunStopped, 3, pipeline.Data{})
		for _, c := range []struct {
			name   string
			run    *pipeline.Run
			events []pipeline.Event
			also   InTx
			is     error
		}{
			{name: "someone was faster", run: stale, events: []pipeline.Event{good}, is: ErrConflict},
			{name: "someone was faster, repeat", run: stale, events: []pipeline.Event{ev("x", pipeline.EventIssueEdited, 2, pipeline.Data{})}, is: ErrConflict},
			{name: "someone was faster, nothing new", run: stale, is: ErrConflict},
			{name: "no such run", run: missing, events: []pipeline.Event{good}, is: ErrNotFound},
			{name: "no such run, no events", run: missing, is: ErrNotFound},
			{name: "also fails", run: run, events: []pipeline.Event{good}, also: func(context.Context, *sql.Tx) error { return boom }, is: boom},
			{name: "no id", run: run, events: []pipeline.Event{good, {Type: "x", Time: now}}},
			{name: "no type", run: run, events: []pipeline.Event{{ID: "z", Time: now}}},
			{name: "no time", run: run, events: []pipeline.Event{{ID: "z", Type: "x"}}},
			{name: "bad number", run: run, events: []pipeline.Event{ev("nan", pipeline.EventFinding, 1, pipeline.Data{Finding: &pipeline.Finding{Confidence: nan()}})}},
		} {
			before, _ := json.Marshal(c.run)
			err := d.Append(ctx, c.run, c.events, c.also)
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: got error %v, want %v", c.name, err, c.is)
			}
			if after, _ := json.Marshal(c.run); string(after) != string(before) {
				t.Errorf("%s: the run changed: %s", c.name, cmp.Diff(before, after))
			}
		}
		want(t, "events", count(t, d, `SELECT count(*) FROM events`), 3)
		want(t, "title", count(t, d, `SELECT count(*) FROM runs WHERE title = 'Other' AND state = 'running'`), 1)
		if _, err := d.Load(ctx, 99); !errors.Is(err, ErrNotFound) {
			t.Errorf("Load of nothing: %v", err)
		}
	})
}

func nan() float64 { var z float64; return z / z }

// Covers lessons 11: what is delivered twice happens once.
func TestAppendSkipsRepeats(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		a, b, c := ev("a", "note.a", 1, pipeline.Data{}), ev("b", "note.b", 2, pipeline.Data{}), ev("c", "note.c", 3, pipeline.Data{})
		also := 0
		put := func(events ...pipeline.Event) {
			t.Helper()
			must(t, d.Append(t.Context(), run, events, func(context.Context, *sql.Tx) error { also++; return nil }))
		}
		put(a, a)
		put(a, b)
		put(b, c, a)
		put(a, b, c)
		put()
		want(t, "calls of also", also, 5)
		events, err := d.Events(t.Context(), run.ID, 1)
		must(t, err)
		var ids []string
		for _, e := range events {
			ids = append(ids, fmt.Sprint(e.Seq, e.ID))
		}
		want(t, "events", strings.Join(ids, " "), "2a 3b 4c")
		want(t, "run's seq", run.Seq, 4)
		other := begin(t, d, 6)
		add(t, d, other, a) // the id is unique within a run only
		want(t, "other run's seq", other.Seq, 2)
	})
}

// An event's data is the log's own: the caller may change what it handed in.
func TestAppendSharesNoMemory(t *testing.T) {
	t.Parallel()
	d := openFile(t)
	run := begin(t, d, 5)
	for _, events := range story()[:3] {
		add(t, d, run, events...)
	}
	events := story()[3]
	add(t, d, run, events...)
	events[1].Data.Implementation.Files[0] = "changed"
	before := clone(run)
	add(t, d, run, story()[4]...)
	add(t, d, run, story()[5]...)
	want(t, "file", run.Iterations[0].Impl.Files[0], "a.go")
	if before.Iterations[0].Review != nil || before.Iterations[0].Result != "in_progress" || before.Steps["review"] != 0 {
		t.Errorf("an older copy changed: %+v", before.Iterations[0])
	}
}

// Of many writers that saw the same run, one wins each round (R8).
func TestAppendRace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		const writers, each = 4, 10
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for n := range each {
					for {
						mine, err := d.Load(t.Context(), run.ID)
						if err == nil {
							err = d.Append(t.Context(), mine, []pipeline.Event{ev(fmt.Sprintf("%d/%d", w, n), pipeline.EventRecalled, 1, pipeline.Data{})}, nil)
						}
						if err == nil {
							break
						}
						if !errors.Is(err, ErrConflict) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		last, err := d.Load(t.Context(), run.ID)
		must(t, err)
		want(t, "seq", last.Seq, writers*each+1)
		want(t, "events", count(t, d, `SELECT count(*) FROM events`), writers*each+1)
	})
}

// Of many who start the same issue, one makes the run.
func TestCreateRunRace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids, refused := map[int64]bool{}, 0
		for i := range 8 {
			wg.Go(func() {
				run, err := d.CreateRun(t.Context(), fmt.Sprintf("key/%d", i/2), startOf(5), now, trace, nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					ids[run.ID] = true
				case errors.Is(err, ErrActive):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want(t, "runs", len(ids), 1)
		want(t, "refused", refused, 6)
	})
}

func TestRunsAndFind(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		one, two, three := begin(t, d, 1), begin(t, d, 2), begin(t, d, 3)
		add(t, d, two, ev("end", pipeline.EventRunVerified, 1, pipeline.Data{}))
		add(t, d, one, ev("pub", pipeline.EventPublishCompleted, 1, pipeline.Data{Publication: &pipeline.Publication{Pull: &pipeline.PullRef{Number: 41}}}))
		for _, c := range []struct {
			name string
			f    Filter
			want []int64
		}{
			{"all", Filter{}, []int64{three.ID, two.ID, one.ID}},
			{"page", Filter{Limit: 1, Before: three.ID}, []int64{two.ID}},
			{"state", Filter{State: pipeline.StateVerified}, []int64{two.ID}},
			{"active", Filter{Active: true}, []int64{three.ID, one.ID}},
			{"repo", Filter{Repo: "acme/site", Limit: 1}, []int64{three.ID}},
			{"another repo", Filter{Repo: "acme/other"}, nil},
		} {
			rows, err := d.Runs(ctx, c.f)
			must(t, err)
			var got []int64
			for _, r := range rows {
				got = append(got, r.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Runs %s: %s", c.name, diff)
			}
		}
		again, err := d.CreateRun(ctx, "again", startOf(2), now, trace, nil)
		must(t, err)
		add(t, d, again, ev("end", pipeline.EventRunFailed, 1, pipeline.Data{Guard: &pipeline.Guard{Detail: "no"}}))
		for _, c := range []struct {
			name        string
			repo        int64
			issue, pull int
			branch      string
			want        int64
		}{
			{"issue", repoID, 1, 0, "", one.ID},
			{"pull", repoID, 0, 41, "", one.ID},
			{"branch", repoID, 0, 0, "forge/issue-3", three.ID},
			{"newest of the ended", repoID, 2, 0, "", again.ID},
			{"active before newer", repoID, 2, 41, "", one.ID},
			{"newest of the active", repoID, 1, 0, "forge/issue-3", three.ID},
			{"another repository", 8, 1, 41, "forge/issue-3", 0},
			{"nothing asked", repoID, 0, 0, "", 0},
		} {
			got, err := d.Find(ctx, c.repo, c.issue, c.pull, c.branch)
			if got != c.want || errors.Is(err, ErrNotFound) != (c.want == 0) {
				t.Errorf("Find %s: got %d, %v; want %d", c.name, got, err, c.want)
			}
		}
	})
}

// Covers lessons 17: what model calls cost is summed by day, whoever's run it was.
func TestSpent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		at := time.Date(2026, 3, 31, 23, 59, 0, 0, time.UTC)
		cost := func(id string, when time.Time, micros int64) pipeline.Event {
			return pipeline.Event{ID: id, Type: pipeline.EventAgentIteration, Source: "agent", Time: when,
				Data: pipeline.Data{Step: &pipeline.Step{Phase: pipeline.PhasePlan, Usage: pipeline.Usage{MicroUSD: micros}}}}
		}
		must(t, d.Append(ctx, run, []pipeline.Event{cost("a", at.AddDate(0, 0, -1), 5), cost("b", at, 7), cost("c", at, 11), cost("free", at, 0),
			cost("d", at.Add(2*time.Minute), 100)}, nil))
		must(t, d.Append(ctx, run, []pipeline.Event{cost("b", at, 7)}, nil)) // a repeat costs nothing
		day, month, err := d.Spent(ctx, at)
		must(t, err)
		want(t, "day", day, 18)
		want(t, "month", month, 23)
		day, month, err = d.Spent(ctx, at.Add(2*time.Minute))
		must(t, err)
		want(t, "first of April", day, 100)
		want(t, "April", month, 100)
		ids, err := d.Active(ctx, run.Repo.ID)
		must(t, err)
		if len(ids) != 1 || ids[0] != run.ID {
			t.Errorf("Active = %v", ids)
		}
	})
}

// Covers M3: whether a run works without memory is drawn once, when it is created, and is
// in its log; a module has its parent's, and a run that is replayed that of the past.
func TestHoldoutIsDrawn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		create := func(key string, issue int, change func(*pipeline.Start)) *pipeline.Run {
			t.Helper()
			start := startOf(issue)
			change(&start)
			run, err := d.CreateRun(t.Context(), key, start, now, trace, nil)
			must(t, err)
			events, err := d.Events(t.Context(), run.ID, 0)
			must(t, err)
			if diff := cmp.Diff(run.Holdout, events[0].Data.Start.Holdout); diff != "" {
				t.Errorf("%s (-run +log):\n%s", key, diff)
			}
			return run
		}
		out := 0
		for i := range 60 {
			key := fmt.Sprint("run", i)
			run := create(key, i+1, func(s *pipeline.Start) { s.Config.Learn.Holdout = 0.5 })
			if run.Holdout == nil || run.Holdout.Share != 0.5 {
				t.Fatalf("%s: %+v", key, run.Holdout)
			}
			if run.Holdout.Out {
				out++
			}
			if again := create(key, i+1, func(s *pipeline.Start) { s.Config.Learn.Holdout = 0 }); again.ID != run.ID || *again.Holdout != *run.Holdout {
				t.Errorf("%s again: %+v", key, again.Holdout)
			}
		}
		if out < 15 || out > 45 {
			t.Errorf("%d of 60 work without", out)
		}
		if run := create("off", 100, func(s *pipeline.Start) { s.Config.Learn.Holdout = 0 }); run.Holdout != nil {
			t.Errorf("without a share: %+v", run.Holdout)
		}
		past := &record.Holdout{Share: 0.1, Out: true}
		parent := create("replayed", 101, func(s *pipeline.Start) { s.Holdout = past })
		child := create("module", 101, func(s *pipeline.Start) {
			s.Kind, s.Part, s.Branch = pipeline.KindModule, &module.Of{Run: parent.ID, Module: module.Module{ID: "api"}}, "forge/api"
		})
		if parent.Holdout == nil || *parent.Holdout != *past || child.Holdout != nil {
			t.Errorf("replayed %+v, a module of one for which nothing was drawn %+v", parent.Holdout, child.Holdout)
		}
	})
}

// A run is found by its trace in its own repository, and in no other: whoever can write a
// commit can put another's trace into it.
func TestRunOfTrace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 1)
		id, err := d.RunOfTrace(t.Context(), run.Repo.ID, run.Trace)
		must(t, err)
		want(t, "the run", id, run.ID)
		for _, of := range []struct {
			repo  int64
			trace string
		}{{run.Repo.ID + 1, run.Trace}, {run.Repo.ID, "ffff"}} {
			if id, err := d.RunOfTrace(t.Context(), of.repo, of.trace); !errors.Is(err, ErrNotFound) {
				t.Errorf("repository %d, trace %s: run %d, %v", of.repo, of.trace, id, err)
			}
		}
	})
}

// Covers reliability 21: a type of event that nobody knows is an error that names it.
func TestUnknownEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 1)
		add(t, d, run, ev("x", "of.the.future", 1, pipeline.Data{}))
		if _, err := d.Load(t.Context(), run.ID); err == nil || !strings.Contains(err.Error(), `there is no type "of.the.future"`) {
			t.Errorf("Load: %v", err)
		}
	})
}
