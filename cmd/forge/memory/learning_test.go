package memory

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// bare is a memory on a database of its own, with one run.
func bare(t *testing.T, models agent.Model) (*Learner, *pipeline.Run) {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir()+"/forge.db", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := New(Options{DB: db, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at }, Reflection: true})
	m.o.Record = func(ctx context.Context, id int64, events []pipeline.Event, also func(context.Context, *store.Tx) error) error {
		run, err := db.Load(ctx, id)
		if err != nil {
			return err
		}
		for i := range events {
			events[i].Time = at
		}
		return db.Append(ctx, run, events, also)
	}
	if m.o.Reflector, err = agent.New(agent.Options{Models: map[config.Role]string{"": "tape:x"},
		Open: func(string) (agent.Model, error) { return models, nil }}); err != nil {
		t.Fatal(err)
	}
	repo := pipeline.Repo{ID: 1, Owner: "acme", Name: "greet", DefaultBranch: "main"}
	run, err := db.CreateRun(t.Context(), "k", pipeline.Start{Repo: repo, Task: pipeline.Task{Issue: 1, Title: "Change the greeting"},
		Config: config.Default(), Base: "b", Branch: "forge/x"}, at, strings.Repeat("a", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m, run
}

func types(t *testing.T, m *Learner, run int64) (out []pipeline.EventType) {
	t.Helper()
	events, err := m.o.DB.Events(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[1:] {
		out = append(out, e.Type)
	}
	return out
}

// Covers L1, L4: what bounced twice is looked back at once, once, for the run that is
// going on; nonsense stores nothing, and says so.
func TestRetrospectiveAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer    string
		learnings int
		refused   string
	}{
		"good": {`{"learnings": [{"type": "semantic", "category": "style", "content": "All sums go through ` + "`addAll`" +
			`.", "paths": ["sum.go"], "confidence": 0.6}]}`, 1, ""},
		"nonsense": {"It went well.", 0, "not the JSON that was asked for"},
		"one is made up": {`{"learnings": [{"type": "semantic", "category": "style", "content": "All sums go through ` + "`addAll`" +
			`.", "paths": ["sum.go"], "confidence": 0.6}, {"type": "semantic", "category": "style", "content": "` + "`addAll` asks `lookUp`" +
			`.", "paths": ["sum.go"], "confidence": 0.6}]}`, 1, ""},
		"the file is made up": {`{"learnings": [{"type": "semantic", "category": "style", "content": "All sums go through ` + "`addAll`" +
			`.", "paths": ["other.go"], "confidence": 0.6}]}`, 0, "addAll is nowhere in other.go"},
		"all is made up": {`{"learnings": [{"type": "semantic", "category": "style", "content": "` + "`addAll` adds at most 500" +
			`.", "paths": ["sum.go"], "confidence": 0.6}]}`, 0, "500 is nowhere in sum.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tape, err := agent.ReadTape([]byte("-- reflector 0/1 --\n@expect review sent the work back twice\n" + tc.answer + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			m, run := bare(t, tape)
			m.o.File = func(_ context.Context, repo pipeline.Repo, sha, path string) ([]byte, error) {
				if path == "other.go" {
					return nil, fs.ErrNotExist
				}
				if sha != run.Head || path != "sum.go" || repo.Name != "greet" {
					t.Errorf("asked for %s of %s at %s", path, repo.Name, sha)
				}
				return []byte("package sum\n\nfunc addAll(list []int) int {\n\treturn fold(list)\n}\n"), nil
			}
			bounce := func(n int) pipeline.Event {
				return pipeline.Event{ID: fmt.Sprint("b", n), Type: pipeline.EventBounce,
					Data: pipeline.Data{Bounce: &pipeline.Bounce{Number: n, Phase: pipeline.PhaseReview, Iteration: n, Count: 1}}}
			}
			for n := range 2 {
				m.ReflectNow(t.Context(), run.ID) // nothing asks for it yet
				if err := m.o.Record(t.Context(), run.ID, []pipeline.Event{bounce(n + 1)}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time it is done
				m.ReflectNow(t.Context(), run.ID)
			}
			if diff := cmp.Diff([]pipeline.EventType{pipeline.EventBounce, pipeline.EventBounce, pipeline.EventAgentIteration,
				pipeline.EventReflection}, types(t, m, run.ID)); diff != "" {
				t.Fatalf("events (-want +got):\n%s", diff)
			}
			list, err := m.o.DB.Reflections(t.Context(), run.ID)
			if err != nil || len(list) != 1 || !list[0].Now || len(list[0].Learnings) != tc.learnings ||
				!strings.Contains(list[0].Refused, tc.refused) || (list[0].Refused == "") != (tc.refused == "") {
				t.Errorf("reflections %+v, %v", list, err)
			}
			if tc.learnings > 0 {
				l, err := m.o.DB.Learning(t.Context(), list[0].Learnings[0])
				if err != nil || len(l.Cites) != 1 || l.Cites[0].File != "sum.go" || l.Cites[0].Name != "addAll" || len(l.Cites[0].Lines) != 2 {
					t.Errorf("it cites %+v, %v", l.Cites, err)
				}
			}
			if m.index.Len() != tc.learnings {
				t.Errorf("%d learnings can be recalled at once, want %d", m.index.Len(), tc.learnings)
			}
		})
	}
}

// A run that ends while work is paused is looked back at when it goes on: a model is asked.
func TestPausedLearner(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	run.State = pipeline.StateVerified
	pause := func(paused bool) {
		t.Helper()
		if err := m.o.DB.SetPaused(t.Context(), store.Pause{At: m.o.Now(), Actor: "mia", Repo: "acme/greet", Paused: paused}); err != nil {
			t.Fatal(err)
		}
	}
	m.OnEvents(run, []pipeline.Event{{Type: pipeline.EventRunVerified}})
	pause(true)
	for range 2 {
		if ready := m.takeEnds(t.Context()); len(ready) > 0 {
			t.Errorf("while work is paused, runs %d are looked back at", ready)
		}
	}
	pause(false)
	if ready := m.takeEnds(t.Context()); !slices.Equal(ready, []int64{run.ID}) {
		t.Errorf("then runs %d are, want %d", ready, run.ID)
	}
	if ready := m.takeEnds(t.Context()); len(ready) > 0 {
		t.Errorf("runs %d are looked back at twice", ready)
	}
}

// Covers H1: a crash between learning and writing it down leaves the rest to the next
// time, and nothing is done twice.
func TestLearnAfterCrash(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	at := m.o.Now().Add(time.Hour)
	err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{
			{Key: "test", Scope: "repo:acme/greet", Type: pipeline.LearningProcedural, Category: "style", Source: pipeline.SourceReflection,
				Content: "Quote what the shell expands.", Paths: []string{"greet.sh"}, Weight: 1, Base: 0.5, Created: m.o.Now()}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := pipeline.Signal{Key: "dismissed/1", Kind: pipeline.SignalDismissed, At: at, Actor: pipeline.Actor{ID: 1, Login: "ann"}, Weight: 1,
		Finding: "fp", File: "greet.sh", Text: "no",
		Scope: "repo:acme/greet", Run: run.ID, About: &pipeline.Finding{ID: "F1", Category: "style", Message: "Quote it for the shell"}}
	if err := m.o.Record(t.Context(), run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil); err != nil {
		t.Fatal(err)
	}
	crash := fmt.Errorf("crash")
	record := m.o.Record
	m.o.Record = func(context.Context, int64, []pipeline.Event, func(context.Context, *store.Tx) error) error {
		return crash
	}
	if err := m.learn(t.Context()); err == nil || !strings.Contains(err.Error(), "crash") {
		t.Fatalf("the crash is lost: %v", err)
	}
	m.o.Record = record
	for range 2 {
		if err := m.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]pipeline.EventType{pipeline.EventDismissed, pipeline.EventLess}, types(t, m, run.ID)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if l, err := m.o.DB.Learning(t.Context(), 1); err != nil || l.Confidence != 0.3 || l.Against != 1 {
		t.Errorf("the learning is %+v, %v; want 0.5 − 0.2, once", l, err)
	}
	if m.index.Len() != 2 {
		t.Errorf("%d learnings can be recalled, want 2", m.index.Len())
	}
}

// Covers reliability 9: what people did that cannot be learnt from, because it panics, is
// passed over with its cause in the log, and holds up nothing that comes after it.
func TestPoisonousFeedback(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	var log strings.Builder
	m.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	for n := range 2 {
		about := &pipeline.Finding{ID: fmt.Sprint("F", n), Category: "style", Message: fmt.Sprint("Quote it for the shell ", n)}
		err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{{Key: fmt.Sprint("test", n), Scope: "repo:acme/greet", Type: pipeline.LearningProcedural,
				Category: "style", Source: pipeline.SourceReflection, Content: about.Message, Paths: []string{"greet.sh"}, Weight: 1, Base: 0.5, Created: m.o.Now()}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s := pipeline.Signal{Key: fmt.Sprint("dismissed/", n), Kind: pipeline.SignalDismissed, At: m.o.Now().Add(time.Hour), Actor: pipeline.Actor{ID: 1, Login: "ann"},
			Weight: 1, Finding: fmt.Sprint("fp", n), File: "greet.sh", Text: "no", Scope: "repo:acme/greet", Run: run.ID, About: about}
		if err := m.o.Record(t.Context(), run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil); err != nil {
			t.Fatal(err)
		}
	}
	record, calls := m.o.Record, 0
	m.o.Record = func(ctx context.Context, id int64, events []pipeline.Event, also func(context.Context, *store.Tx) error) error {
		if calls++; calls == 1 {
			panic("a poisonous signal")
		}
		return record(ctx, id, events, also)
	}
	for range 2 {
		if err := m.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := types(t, m, run.ID); !slices.Contains(got, pipeline.EventLess) || calls < 2 {
		t.Errorf("after %d calls there are %v; nothing was learnt from what came behind", calls, got)
	}
	if left, err := m.o.DB.Unlearned(t.Context(), cursorLearn, 0); err != nil || len(left) != 0 {
		t.Errorf("%d events wait, %v", len(left), err)
	}
	if !strings.Contains(log.String(), "a poisonous signal") || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("the log: %s", log.String())
	}
}

// Covers L5: a phase that is carried out again recalls the same, whatever was learnt,
// forgotten or edited in between; what is withheld is not told.
func TestRecallIsTheSameAgain(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	m.o.Withhold = 0.5
	db, at := m.o.DB, m.o.Now()
	save := func(n int) {
		err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			var list []pipeline.Learning
			for i := range n {
				list = append(list, pipeline.Learning{Key: fmt.Sprint(n, i), Scope: "repo:acme/greet", Type: pipeline.LearningSemantic, Source: "reflection",
					Weight: 1, Base: 0.8, Created: at,
					Content: fmt.Sprintf("The greeting number %d of %d\nis in file%d.go", i, n, i)})
			}
			_, err := db.SaveLearnings(ctx, tx, list)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	save(8)
	emit := func(ctx context.Context, events ...pipeline.Event) error {
		for i := range events {
			events[i].Time = at
		}
		return db.Append(ctx, run, events, nil)
	}
	tell := func() string {
		j := agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}}
		if err := m.Recall(t.Context(), &j, "planner", emit); err != nil {
			t.Fatal(err)
		}
		return j.Learnings
	}
	once := tell()
	recalls, err := db.Recalls(t.Context(), run.ID)
	if err != nil || len(recalls) != 1 || len(recalls[0].Given) == 0 || len(recalls[0].Withheld) == 0 || len(recalls[0].Given)+len(recalls[0].Withheld) != 8 {
		t.Fatalf("recalled %+v, %v; want some of 8 given and some withheld", recalls, err)
	}
	if n := strings.Count(once, "\n"); n != len(recalls[0].Given) {
		t.Errorf("%d lines for %d learnings:\n%s", n, len(recalls[0].Given), once)
	}
	for _, id := range recalls[0].Withheld {
		if strings.Contains(once, fmt.Sprintf("L%d ", id)) {
			t.Errorf("%d was withheld, and told:\n%s", id, once)
		}
	}
	if err := db.ForgetLearning(t.Context(), nil, recalls[0].Given[0], pipeline.Actor{}, at, ""); err != nil {
		t.Fatal(err)
	}
	save(3)
	if again := tell(); again != once {
		t.Errorf("once it says\n%s\nthen\n%s", once, again)
	}
}

// A run is given a learning in all its phases or in none, so that what it is worth can
// be told; over runs and learnings it is chance, each by itself.
func TestSplit(t *testing.T) {
	t.Parallel()
	m := New(Options{Withhold: 0.1})
	ids := make([]int64, 50)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	const runs = 800
	withheld, both := 0, 0
	for i := range runs {
		run := &pipeline.Run{ID: int64(i + 1), Trace: fmt.Sprintf("%032x", i)}
		given, w := m.split(run, ids)
		out := map[int64]bool{}
		for _, id := range w {
			out[id] = true
		}
		for _, id := range w {
			if out[id+1] {
				both++
			}
		}
		withheld += len(w)
		if len(given)+len(w) != len(ids) {
			t.Fatalf("%d given and %d withheld of %d", len(given), len(w), len(ids))
		}
		// Another phase recalls other learnings, in another order.
		other := slices.Clone(ids[10:40])
		slices.Reverse(other)
		given, _ = m.split(run, other)
		for _, id := range given {
			if out[id] {
				t.Fatalf("run %d is given learning %d in one phase and not in another", run.ID, id)
			}
		}
	}
	// 40,000 draws at 0.1, and 39,200 pairs of neighbours at 0.01: within some four
	// standard deviations.
	if share := float64(withheld) / (runs * 50); share < 0.094 || share > 0.106 {
		t.Errorf("%.4f of the learnings are withheld, want 0.1", share)
	}
	if share := float64(both) / (runs * 49); share < 0.008 || share > 0.012 {
		t.Errorf("%.4f of the neighbours are both withheld, want 0.01", share)
	}
}

// Covers M3: a run that works without memory is told what people said in words, and what
// it has taught itself, and nothing else.
func TestHeldOut(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	list := map[string]pipeline.Learning{
		"reflection":  {Source: pipeline.SourceReflection},
		"own":         {Source: pipeline.SourceReflection, Run: run.ID},
		"remembered":  {Source: pipeline.SourceHuman, Author: pipeline.Actor{ID: 1, Login: "ann"}},
		"with reason": {Source: pipeline.SourceDismissal, Author: pipeline.Actor{ID: 1, Login: "ann"}},
		"no reason":   {Source: pipeline.SourceDismissal, Author: pipeline.Actor{ID: 1, Login: "ann"}, Tags: []string{learn.TagNoReason}},
		"edited":      {Source: pipeline.SourceEdit, Author: pipeline.Actor{ID: 1, Login: "ann"}},
	}
	keys := map[int64]string{}
	for i, key := range slices.Sorted(maps.Keys(list)) {
		l := list[key]
		l.Key, l.Scope, l.Type, l.Weight, l.Base, l.Created = key, "repo:acme/greet", pipeline.LearningSemantic, 1, 0.8, m.o.Now()
		l.Content = fmt.Sprintf("The greeting number %d is made in file%d of the folder", i, i)
		err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			ids, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			if err == nil {
				keys[ids[0]] = key
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		holdout *record.Holdout
		want    string
	}{
		{nil, "edited, no reason, own, reflection, remembered, with reason"},
		{&record.Holdout{Share: 0.1}, "edited, no reason, own, reflection, remembered, with reason"},
		{&record.Holdout{Share: 0.1, Out: true}, "own, remembered, with reason"},
	} {
		run.Holdout = c.holdout
		r, err := m.choose(t.Context(), &agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
		if err != nil {
			t.Fatal(err)
		}
		var given []string
		for _, id := range r.Given {
			given = append(given, keys[id])
		}
		slices.Sort(given)
		if got := strings.Join(given, ", "); got != c.want || len(r.Withheld) > 0 {
			t.Errorf("%+v: given %s, withheld %v; want %s", c.holdout, got, r.Withheld, c.want)
		}
	}
	run.Holdout = &record.Holdout{Share: 0.1, Out: true}
	if o := outcomeOf(run); o.Holdout == nil || !o.Holdout.Out {
		t.Errorf("what became of the run does not say so: %+v", o)
	}
}

// What several remarks on a file bear in the same words is known once, and each remark stays.
func TestGapsOfOneKindAreOne(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	for i, text := range []string{"This panics when the list is nil", "You forgot to handle the error here", "The map is read without its lock: a race"} {
		s := pipeline.Signal{Key: fmt.Sprint("gap/", i), Kind: pipeline.SignalGap, Scope: run.Repo.Scope(), Run: run.ID, Actor: pipeline.Actor{ID: 3, Login: "ann"},
			Weight: 1, At: m.o.Now().Add(time.Duration(i) * time.Second), File: "sum.go", Comment: int64(i), Text: text}
		if err := m.o.Record(t.Context(), run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := m.o.DB.Learnings(t.Context(), store.MemoryFilter{Source: pipeline.SourceGap})
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, l := range list {
		said[l.Content]++
	}
	for words, n := range said {
		if n != 1 {
			t.Errorf("known %d times: %s", n, words)
		}
	}
	if len(list) != 4 {
		t.Errorf("%d learnings of three remarks, want each and their category: %+v", len(list), said)
	}
}

// A person sees in a learning's history, at once and once, that others dismiss what it asks for.
func TestDismissedWordsAreQuestioned(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	l := pipeline.Learning{Key: "gap:1", Scope: run.Repo.Scope(), Type: pipeline.LearningSemantic, Source: pipeline.SourceGap, Weight: 1, Base: 0.9,
		Author: pipeline.Actor{ID: 3, Login: "ann"}, Content: "Reviews must ask for a zero guard before division.", Created: m.o.Now(), State: pipeline.LearningActive}
	ids, err := m.save(t.Context(), []pipeline.Learning{l})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		s := pipeline.Signal{Key: fmt.Sprint("dismissed/", i), Kind: pipeline.SignalDismissed, Scope: run.Repo.Scope(), Run: run.ID, Actor: pipeline.Actor{ID: 4, Login: "bob"},
			Weight: 1, At: m.o.Now().Add(time.Duration(i+1) * time.Second), File: "sum.go", Comment: int64(i + 1), Text: "we do not want guards",
			About: &pipeline.Finding{Category: "correctness", Message: "There is no zero guard before the division", File: "sum.go"}}
		if err := m.o.Record(t.Context(), run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil); err != nil {
			t.Fatal(err)
		}
		if err := m.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.o.DB.Learning(t.Context(), ids[0])
	past, failed := m.o.DB.History(t.Context(), ids[0])
	if err != nil || failed != nil || got.Confidence != 0.7 || got.Against != 4 || len(past) != 1 || !strings.HasPrefix(past[0].What, questionedBy) {
		t.Errorf("confidence %v after %d, history %+v, %v, %v; want 0.7, and questioned once", got.Confidence, got.Against, past, err, failed)
	}
}
