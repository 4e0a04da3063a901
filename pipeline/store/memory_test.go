package store

import (
	order "cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/record"
)

const site = "repo:acme/site"

var ann = pipeline.Actor{ID: 1, Login: "ann"}

func hours(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }

func learningOf(key, content string, confidence float64) pipeline.Learning {
	return pipeline.Learning{Key: key, Scope: site, Type: pipeline.LearningProcedural, Category: "correctness", Content: content, Context: "when in doubt",
		Paths: []string{"api/a.go", "b \x00.go"}, Tags: []string{"go"}, Source: "reflection", Author: ann, Weight: 0.5, Run: 1, Finding: "fp1", Code: "c0de",
		Cites: []record.Cite{{File: "api/a.go", Name: "wrap", Lines: []string{"0badc0de"}, With: []string{"3"}}}, Base: confidence, Created: now}
}

// inTx runs fn in a transaction.
func inTx(t testing.TB, d *DB, fn func(ctx context.Context, tx *sql.Tx) error) {
	t.Helper()
	must(t, d.Tx(context.Background(), fn))
}

func save(t testing.TB, d *DB, list ...pipeline.Learning) (ids []int64) {
	t.Helper()
	inTx(t, d, func(ctx context.Context, tx *sql.Tx) (err error) {
		ids, err = d.SaveLearnings(ctx, tx, list)
		return err
	})
	return ids
}

func learningAt(t testing.TB, d *DB, id int64) pipeline.Learning {
	t.Helper()
	l, err := d.Learning(t.Context(), id)
	must(t, err)
	return l
}

// Covers L3 and M3: what is saved is read back, once however often it is saved.
func TestLearnings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		l := learningOf("run/1/0", "Wrap errors", 0.7)
		ids := save(t, d, l, learningOf("run/1/1", "Close files", 0.9), func() pipeline.Learning { o := l; o.Scope = "org:acme"; return o }())
		want(t, "the same again", fmt.Sprint(save(t, d, l)), fmt.Sprint(ids[:1]))
		scopes, err := d.Scopes(ctx)
		must(t, err)
		want(t, "scopes", fmt.Sprint(scopes), "[org:acme repo:acme/site]")
		l.ID, l.Confidence, l.Touched, l.State = ids[0], 0.7, now, "active"
		l.Paths = []string{"api/a.go", "b \uFFFD.go"}
		if diff := cmp.Diff(l, learningAt(t, d, ids[0])); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, c := range []struct {
			f    MemoryFilter
			want int
		}{
			{MemoryFilter{}, 3}, {MemoryFilter{Scopes: []string{site}}, 2}, {MemoryFilter{Scopes: []string{site, "org:acme"}}, 3}, {MemoryFilter{Category: "style"}, 0},
			{MemoryFilter{Source: "reflection", Finding: "fp1", Category: "correctness"}, 3},
			{MemoryFilter{States: []pipeline.LearningState{"retired"}}, 0}, {MemoryFilter{States: []pipeline.LearningState{"*"}, Limit: 1}, 1},
			{MemoryFilter{Scopes: []string{}}, 0}, {MemoryFilter{Type: "procedural"}, 3}, {MemoryFilter{Type: "semantic"}, 0},
			{MemoryFilter{Skip: 2}, 1}, {MemoryFilter{Into: ids[0]}, 0},
		} {
			list, err := d.Learnings(ctx, c.f)
			must(t, err)
			want(t, fmt.Sprintf("learnings of %+v", c.f), len(list), c.want)
			if c.f.Limit+c.f.Skip == 0 {
				n, err := d.CountLearnings(ctx, c.f)
				must(t, err)
				want(t, fmt.Sprintf("count of %+v", c.f), n, c.want)
			}
		}
		if _, err := d.Learning(ctx, 99); !errors.Is(err, ErrNotFound) {
			t.Errorf("no such learning: %v", err)
		}
		for _, bad := range []pipeline.Learning{{}, {Key: "x", Scope: site, Type: "rumour", Created: now},
			{Key: "x", Scope: site, Type: "semantic", Base: 2, Created: now}} {
			err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				_, err := d.SaveLearnings(ctx, tx, []pipeline.Learning{bad})
				return err
			})
			if err == nil {
				t.Errorf("%+v was saved", bad)
			}
		}
	})
}

// Covers H1 and H2 in the database: one row of evidence for a key, the latest.
func TestApplyEvidence(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		id := save(t, d, learningOf("a", "Wrap errors", 0.5))[0]
		apply := func(e pipeline.Evidence) {
			inTx(t, d, func(ctx context.Context, tx *sql.Tx) error {
				return d.ApplyEvidence(ctx, tx, site, []pipeline.Evidence{e})
			})
		}
		apply(pipeline.Evidence{Of: "a", Key: "k", Delta: 0.1, Why: "used", Actor: ann, Run: 3, At: hours(1)})
		apply(pipeline.Evidence{Learning: id, Key: "k", Delta: 0.1, Why: "used", Actor: ann, Run: 3, At: hours(1)})
		apply(pipeline.Evidence{Learning: id, Key: "l", Delta: -0.2, Why: "no", At: hours(2)})
		l := learningAt(t, d, id)
		want(t, "confidence", l.Confidence, 0.4)
		want(t, "evidence", fmt.Sprint(l.For, l.Against, l.Touched.Equal(hours(1))), "1 1 true")
		apply(pipeline.Evidence{Learning: id, Key: "l", Delta: -0.2, At: hours(3), Off: true})
		want(t, "confidence after taking back", learningAt(t, d, id).Confidence, 0.6)
		list, err := d.Evidence(t.Context(), id)
		must(t, err)
		if diff := cmp.Diff([]pipeline.Evidence{{Learning: id, Of: "a", Key: "l", Delta: -0.2, At: hours(3), Off: true},
			{Learning: id, Of: "a", Key: "k", Delta: 0.1, Why: "used", Actor: ann, Run: 3, At: hours(1)}}, list); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		err = d.Tx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return d.ApplyEvidence(ctx, tx, site, []pipeline.Evidence{{Of: "nothing", Key: "k", At: now}})
		})
		if err == nil || !strings.Contains(err.Error(), "nothing") {
			t.Errorf("evidence on what is not there: %v", err)
		}
	})
}

func judge(s pipeline.Signal, known []pipeline.Learning, later []pipeline.Signal) ([]pipeline.Learning, []pipeline.Evidence) {
	j := learn.Judge(s, known, later)
	return j.Learnings, j.Evidence
}

func take(t testing.TB, d *DB, s pipeline.Signal) (changed bool) {
	t.Helper()
	inTx(t, d, func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = d.LearnSignal(ctx, tx, s, judge)
		return err
	})
	return changed
}

// signalsFrom draws signals with few keys, so that they meet.
func signalsFrom(rng *rand.Rand, n int) []pipeline.Signal {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	var out []pipeline.Signal
	for range n {
		s := pipeline.Signal{
			Scope: pick(site, site, "repo:acme/other"), Key: pick("thread/1", "thread/2", "suggestion/1", "comment/1"), Off: rng.IntN(4) == 0,
			Kind: pipeline.SignalKind(pick("dismissed", "applied", "rewritten", "gap", "edited", "ignored")), At: hours(rng.IntN(5) - 1), Actor: ann,
			Weight: float64(1 + rng.IntN(2)),
			Text:   pick("", "wrap the errors here", "nil \x00"), File: pick("", "api/a.go"), Finding: pick("", "fp1"), Before: pick("a", "b"),
			After: pick("b", "c"), Run: 1,
		}
		if rng.IntN(2) == 0 {
			s.About = &pipeline.Finding{Category: pipeline.Category(pick("correctness", "style")), Message: "wrap the errors in doubt"}
		}
		out = append(out, s)
	}
	return out
}

// Covers H1–H6: the database comes to the same memory as the pure one, in every
// order and with repeats.
func TestLearnSignal(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range 12 {
			for _, table := range []string{"evidence", "memory_history", "memory_terms", "signals", "memories"} {
				if _, err := d.SQL().Exec("DELETE FROM " + table); err != nil {
					t.Fatal(err)
				}
			}
			seed := learningOf("seed", "Wrap errors", 0.6)
			seed.Paths = seed.Paths[:1]
			save(t, d, seed)
			pure := learn.NewMemory(seed)
			list := signalsFrom(rng, 8)
			for _, s := range list {
				pure.Take(s)
			}
			again := append(slices.Clone(list), list[:rng.IntN(len(list))]...)
			rng.Shuffle(len(again), func(i, k int) { again[i], again[k] = again[k], again[i] })
			for _, s := range again {
				take(t, d, s)
			}
			got, err := d.Learnings(ctx, MemoryFilter{})
			must(t, err)
			byKey := cmpopts.SortSlices(func(a, b pipeline.Learning) bool { return a.Scope+a.Key < b.Scope+b.Key })
			if diff := cmp.Diff(pure.Learnings(), got, byKey, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(pipeline.Learning{}, "ID")); diff != "" {
				t.Fatalf("round %d (-pure +stored):\n%s\nsignals: %+v", round, diff, again)
			}
			for _, l := range got {
				evidence, err := d.Evidence(ctx, l.ID)
				must(t, err)
				evidence = slices.DeleteFunc(evidence, func(e pipeline.Evidence) bool { return e.Off })
				byEvidence := cmpopts.SortSlices(func(a, b pipeline.Evidence) bool { return a.Key < b.Key })
				if diff := cmp.Diff(pure.Evidence(l.Scope, l.Key), evidence, byEvidence, cmpopts.EquateEmpty(),
					cmpopts.IgnoreFields(pipeline.Evidence{}, "Learning")); diff != "" {
					t.Fatalf("round %d, evidence on %s (-pure +stored):\n%s", round, l.Key, diff)
				}
			}
			stored, err := d.Signals(ctx, site)
			must(t, err)
			want(t, "signals", len(stored), len(slices.DeleteFunc(pure.Signals(), func(s pipeline.Signal) bool { return s.Scope != site })))
		}
	})
}

func TestPutSignal(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		s := pipeline.Signal{Scope: site, Key: "pull/1/merged", Kind: pipeline.SignalMerged, At: hours(1), Actor: ann, Text: "a \x00 b"}
		put := func(s pipeline.Signal) (changed bool, err error) {
			err = d.Tx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				changed, err = d.PutSignal(ctx, tx, s)
				return err
			})
			return changed, err
		}
		for i, c := range []struct {
			change func(*pipeline.Signal)
			want   bool
		}{
			{func(*pipeline.Signal) {}, true}, {func(*pipeline.Signal) {}, false}, {func(s *pipeline.Signal) { s.At = hours(0) }, false},
			{func(s *pipeline.Signal) { s.At = hours(2) }, true},
			{func(s *pipeline.Signal) { s.At, s.Off = hours(2), true }, true}, {func(s *pipeline.Signal) { s.At = hours(2) }, false},
			{func(s *pipeline.Signal) { s.Scope = "repo:acme/other" }, true},
		} {
			next := s
			c.change(&next)
			changed, err := put(next)
			must(t, err)
			want(t, fmt.Sprintf("change %d", i), changed, c.want)
		}
		if _, err := put(pipeline.Signal{Key: "x"}); err == nil || !strings.Contains(err.Error(), "not complete") {
			t.Errorf("an incomplete signal: %v", err)
		}
	})
}

// Covers lessons 20: people can edit and forget, it is kept who did, and no signal
// undoes it.
func TestPeopleChangeLearnings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		gap := pipeline.Signal{Scope: site, Key: "comment/1", Kind: pipeline.SignalGap, At: hours(1), Actor: ann, Weight: 1, Text: "wrap the errors", Run: 1}
		take(t, d, gap)
		list, err := d.Learnings(ctx, MemoryFilter{Source: "gap"})
		must(t, err)
		want(t, "learnings of a gap", len(list), 2)
		edited, gone := list[0].ID, list[1].ID
		bob := pipeline.Actor{ID: 2, Login: "bob"}
		must(t, d.EditLearning(ctx, nil, edited, bob, hours(2), func(l *pipeline.Learning) error { l.Content, l.Base = "Wrap errors at the edge", 0.9; return nil }))
		must(t, d.ForgetLearning(ctx, nil, gone, bob, hours(3), "nonsense"))
		gap.At, gap.Text = hours(4), "wrap all errors"
		if !take(t, d, gap) {
			t.Error("a later comment changed nothing")
		}
		l := learningAt(t, d, edited)
		want(t, "edited", fmt.Sprint(l.Content, l.Confidence, l.State), "Wrap errors at the edge0.9active")
		want(t, "forgotten", learningAt(t, d, gone).State, "forgotten")
		history, err := d.History(ctx, gone)
		must(t, err)
		if len(history) != 1 || history[0].By != bob || history[0].What != "forgotten: nonsense" || !history[0].At.Equal(hours(3)) ||
			!strings.Contains(history[0].Before, `"active"`) || !strings.Contains(history[0].After, `"forgotten"`) {
			t.Errorf("history: %+v", history)
		}
		if err := d.EditLearning(ctx, nil, edited, bob, now, func(*pipeline.Learning) error { return errors.New("no") }); err == nil {
			t.Error("no error for a refused change")
		}
		if err := d.ForgetLearning(ctx, nil, 999, bob, now, ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("forget what is not there: %v", err)
		}
		gap.At, gap.Off = hours(5), true
		take(t, d, gap)
		want(t, "taken back", learningAt(t, d, edited).State+" "+learningAt(t, d, gone).State, "withdrawn forgotten")
	})
}

// A list can be ordered by what decay leaves of confidence, as it is when it is read.
func TestFade(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		var list []pipeline.Learning
		rnd := rand.New(rand.NewPCG(1, 2))
		for i, kind := range []pipeline.LearningType{"episodic", "semantic", "procedural", "semantic", "episodic", "procedural", "episodic", "semantic"} {
			l := learningOf(fmt.Sprint("run/1/", i), "Wrap errors", [...]float64{0.9, 0.9, 0.9, 0, 0.3, 0.31, 1, 0.001}[i])
			l.Type, l.Created = kind, now.Add(-time.Duration(rnd.IntN(400*24))*time.Hour)
			l.Scope = fmt.Sprintf("repo:acme/%d", i%2)
			list = append(list, l)
		}
		list[6].Created = now.AddDate(-3000, 0, 0) // older than any double can tell of 2^-age
		list[5].Created = hours(100)               // to come
		save(t, d, list...)
		got, err := d.Learnings(t.Context(), MemoryFilter{Decay: &Decay{At: now, HalfLives: learn.HalfLives(), Least: learn.AgeLeaves}, Skip: 1, Limit: 6})
		must(t, err)
		all, err := d.Learnings(t.Context(), MemoryFilter{})
		must(t, err)
		slices.SortFunc(all, func(a, b pipeline.Learning) int {
			return order.Or(-order.Compare(learn.Effective(a, now), learn.Effective(b, now)), order.Compare(a.ID, b.ID))
		})
		ids := func(list []pipeline.Learning) (out []int64) {
			for _, l := range list {
				out = append(out, l.ID)
			}
			return out
		}
		if diff := cmp.Diff(ids(all)[1:7], ids(got)); diff != "" {
			t.Errorf("%d learnings (-want +got):\n%s", len(got), diff)
		}
	})
}

// People who change a learning at the same time do so one after the other: each sees
// what the other made of it.
func TestChangeAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		id := save(t, d, learningOf("a", "", 0.5))[0]
		errs := make(chan error)
		for range 8 {
			go func() {
				errs <- d.EditLearning(t.Context(), nil, id, ann, now, func(l *pipeline.Learning) error { l.Content += "x"; return nil })
			}()
		}
		for range 8 {
			must(t, <-errs)
		}
		want(t, "words", learningAt(t, d, id).Content, "xxxxxxxx")
	})
}

func TestMergeAndRetire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		ids := save(t, d, learningOf("a", "Wrap errors", 0.5), learningOf("b", "Wrap the errors", 0.5), learningOf("c", "Close files", 0.5))
		inTx(t, d, func(ctx context.Context, tx *sql.Tx) error {
			return d.ApplyEvidence(ctx, tx, site, []pipeline.Evidence{{Of: "a", Key: "x", Delta: 0.1, At: hours(1)},
				{Of: "b", Key: "x", Delta: 0.1, At: hours(1)}, {Of: "b", Key: "y", Delta: 0.1, At: hours(2)}})
		})
		into := learningAt(t, d, ids[0])
		into.Tags = []string{"go", "more"}
		inTx(t, d, func(ctx context.Context, tx *sql.Tx) error {
			return d.MergeLearnings(ctx, tx, into, ids[1:2], hours(3))
		})
		inTx(t, d, func(ctx context.Context, tx *sql.Tx) error {
			return d.RetireLearning(ctx, tx, ids[2], hours(3), "of no use")
		})
		l := learningAt(t, d, ids[0])
		want(t, "merged", fmt.Sprint(l.Confidence, l.For, l.Tags), "0.7 2 [go more]")
		want(t, "states", learningAt(t, d, ids[1]).State+" "+learningAt(t, d, ids[2]).State, "merged retired")
		history, err := d.History(ctx, ids[0])
		must(t, err)
		want(t, "history", history[0].What, fmt.Sprintf("merged from %d", ids[1]))
		from, err := d.Learnings(ctx, MemoryFilter{Into: ids[0], States: []pipeline.LearningState{"*"}})
		must(t, err)
		want(t, "sources", fmt.Sprint(len(from), from[0].ID), fmt.Sprint(1, ids[1]))
	})
}

// Covers L5: words find what is active in their scopes, weighed by confidence.
func TestSearchMemories(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		other := learningOf("o", "Wrap errors of the parser", 0.9)
		other.Scope = "repo:acme/other"
		ids := save(t, d, learningOf("a", "Wrap errors of parseURL with their operation", 0.9), learningOf("b", "Wrap errors of parseURL with their operation!", 0.3),
			learningOf("c", "Keep names short, it's nicer", 0.9), learningOf("d", "Naïve Grüße: don't", 0.9), other)
		find := func(query string, scopes ...string) string {
			hits, err := d.SearchMemories(ctx, query, scopes, 0)
			must(t, err)
			var keys []string
			for _, h := range hits {
				keys = append(keys, h.Key)
				if h.Score <= 0 {
					t.Errorf("search %q: %s has the score %v", query, h.Key, h.Score)
				}
			}
			return strings.Join(keys, " ")
		}
		for _, c := range []struct{ query, want string }{
			{"url", "a b"}, {"ParseURL errors", "a b"}, {"names", "c"}, {"nothing like it", ""}, {"what its name is not", "c"}, {"", ""},
			{"'\"() & | ! :* NEAR(", ""}, {"GRÜSSE grüße", "d"}, {scopeTerm(site), ""}, {strings.Repeat("wrap zebra1 ", 50), "a b"},
		} {
			want(t, fmt.Sprintf("search %.30q", c.query), find(c.query, site), c.want)
		}
		want(t, "in two scopes", len(strings.Fields(find("wrap", site, other.Scope))), 3)
		want(t, "in no scope", find("wrap"), "")
		must(t, d.EditLearning(ctx, nil, ids[1], ann, now, func(l *pipeline.Learning) error { l.Content = "Something else"; return nil }))
		must(t, d.ForgetLearning(ctx, nil, ids[2], ann, now, ""))
		want(t, "after an edit", find("url", site), "a")
		want(t, "after an edit, new words", find("something", site), "b")
		want(t, "forgotten", find("names", site), "")
	})
}

// Covers L5: what was given, withheld and used, counted once.
func TestRecalls(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		ids := save(t, d, learningOf("a", "A", 0.5), learningOf("b", "B", 0.5), learningOf("c", "C", 0.5))
		first := pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: 1, Role: "reviewer", Given: ids[:2], Withheld: ids[2:]}
		second := pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: 2, Role: "reviewer", Given: ids[1:]}
		used := pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: 1, Role: "reviewer", Used: ids[:1]}
		for i, r := range []pipeline.Recall{first, first, second, used, used} {
			inTx(t, d, func(ctx context.Context, tx *sql.Tx) error { return d.RecordRecall(ctx, tx, run.ID, r, hours(i)) })
		}
		a, c := learningAt(t, d, ids[0]), learningAt(t, d, ids[2])
		want(t, "a", fmt.Sprint(a.Recalled, a.Used, a.Touched.After(now) || a.Touched.Equal(now)), "1 1 true")
		want(t, "c", fmt.Sprint(c.Recalled, c.Used), "1 0")
		got, err := d.Recalls(ctx, run.ID)
		must(t, err)
		first.Used = ids[:1]
		if diff := cmp.Diff([]pipeline.Recall{first, second}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		uses, err := d.Uses(ctx, ids[1], 0)
		must(t, err)
		use := Use{Run: run.ID, Repo: "acme/site", State: pipeline.StateRunning, Phase: pipeline.PhaseReview, Iteration: 2, Role: "reviewer", At: hours(2)}
		again := use
		again.Iteration, again.At = 1, hours(0)
		if diff := cmp.Diff([]Use{use, again}, uses); diff != "" {
			t.Errorf("uses of b (-want +got):\n%s", diff)
		}
		if uses, err = d.Uses(ctx, ids[2], 1); err != nil || len(uses) != 1 || uses[0].Iteration != 2 {
			t.Errorf("the last use of c: %+v, %v", uses, err)
		}
		if uses, err = d.Uses(ctx, ids[0], 0); err != nil || len(uses) != 1 || !uses[0].Used {
			t.Errorf("uses of a: %+v, %v", uses, err)
		}
		o := record.Outcome{Run: run.ID, FirstPass: true, Caught: true, Bounces: 1, Findings: 4, Dismissed: 2, MicroUSD: 77, At: hours(9),
			Holdout: &record.Holdout{Share: 0.25, Out: true}}
		must(t, d.PutOutcome(ctx, nil, record.Outcome{Run: run.ID, At: hours(8)}))
		must(t, d.PutOutcome(ctx, nil, o))
		for _, repo := range []string{"", "acme/site", "acme/other"} {
			drawn, err := d.Drawn(ctx, repo)
			must(t, err)
			if repo == "acme/other" {
				want(t, "drawn in "+repo, len(drawn), 0)
			} else if diff := cmp.Diff([]record.Outcome{{Run: o.Run, FirstPass: true, At: o.At, Holdout: o.Holdout}}, drawn); diff != "" {
				t.Errorf("drawn in %q (-want +got):\n%s", repo, diff)
			}
		}
		o.Given, o.Holdout = ids, nil
		planned := pipeline.Recall{Phase: pipeline.PhasePlan, Role: "planner", Given: ids[1:2]}
		inTx(t, d, func(ctx context.Context, tx *sql.Tx) error { return d.RecordRecall(ctx, tx, run.ID, planned, hours(9)) })
		o.Reviewers = map[int64]bool{ids[0]: true, ids[1]: false, ids[2]: true}
		list, err := d.Outcomes(ctx, "acme/site", now)
		must(t, err)
		if diff := cmp.Diff([]record.Outcome{o}, list); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		h := pipeline.SuppressedFinding{Finding: pipeline.Finding{Fingerprint: "f1", Message: "x"}, Why: "nobody wants it"}
		other := pipeline.SuppressedFinding{Finding: pipeline.Finding{Fingerprint: "f2"}, Learning: 3}
		for i, list := range [][]pipeline.SuppressedFinding{{h}, {h, other}, nil} {
			must(t, d.Append(ctx, run, []pipeline.Event{{ID: fmt.Sprint("held", i), Type: pipeline.EventPhaseCompleted, Time: hours(i), Source: "forge",
				Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1}, Review: &pipeline.Review{Suppressed: list}}}}, nil))
		}
		held, err := d.SuppressedFindings(ctx, "acme/site", now)
		must(t, err)
		if diff := cmp.Diff([]Suppressed{{run.ID, hours(0), h}, {run.ID, hours(1), other}}, held); diff != "" {
			t.Errorf("held back (-want +got):\n%s", diff)
		}
		for repo, since := range map[string]time.Time{"acme/other": now, "acme/site": hours(10)} {
			list, err := d.Outcomes(ctx, repo, since)
			must(t, err)
			want(t, "outcomes of "+repo, len(list), 0)
			held, err := d.SuppressedFindings(ctx, repo, since)
			must(t, err)
			want(t, "held back in "+repo, len(held), 0)
		}
	})
}

func TestReflections(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		r := pipeline.Reflection{Trigger: "run_ended", Learnings: []int64{1, 2}, Usage: pipeline.Usage{MicroUSD: 12}}
		refused := pipeline.Reflection{Trigger: "bounced_twice", Now: true, Refused: "over budget"}
		for range 2 {
			inTx(t, d, func(ctx context.Context, tx *sql.Tx) error {
				return errors.Join(d.RecordReflection(ctx, tx, run.ID, "1", r, hours(1)), d.RecordReflection(ctx, tx, run.ID, "2", refused, hours(2)))
			})
		}
		got, err := d.Reflections(t.Context(), run.ID)
		must(t, err)
		if diff := cmp.Diff([]pipeline.Reflection{r, refused}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Covers H7, and that a crash loses no feedback: what was not passed comes again.
func TestUnlearned(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		one, two := begin(t, d, 5), begin(t, d, 6)
		feedback := func(key string, sec int) pipeline.Event {
			return ev("signal/"+key, pipeline.EventDismissed, sec,
				pipeline.Data{Signal: &pipeline.Signal{Key: key, Kind: pipeline.SignalDismissed, At: now, Actor: ann, Finding: "fp1", Text: "no"}})
		}
		add(t, d, one, feedback("a", 1), ev("other", "note", 2, pipeline.Data{}), feedback("b", 3))
		add(t, d, two, feedback("c", 4))
		keys := func() string {
			list, err := d.Unlearned(ctx, "learn", 0)
			must(t, err)
			var keys []string
			for _, e := range list {
				keys = append(keys, e.Data.Signal.Key)
				want(t, "trace", e.Trace, trace)
			}
			return strings.Join(keys, " ")
		}
		want(t, "at first", keys(), "a b c")
		must(t, d.AdvanceCursor(ctx, nil, "learn", one.ID, 2))
		want(t, "after the first", keys(), "b c")
		must(t, d.AdvanceCursor(ctx, nil, "learn", two.ID, two.Seq))
		must(t, d.AdvanceCursor(ctx, nil, "learn", one.ID, one.Seq))
		must(t, d.AdvanceCursor(ctx, nil, "learn", one.ID, 1))
		want(t, "after all", keys(), "")
		seq, err := d.Cursor(ctx, "learn", one.ID)
		must(t, err)
		want(t, "cursor", seq, one.Seq)
		seq, err = d.Cursor(ctx, "nobody", one.ID)
		must(t, err)
		want(t, "no cursor", seq, 0)
		add(t, d, one, feedback("d", 9))
		want(t, "a late one", keys(), "d")
		want(t, "who, what, on which finding", count(t, d,
			`SELECT count(*) FROM feedback_events WHERE actor = 'ann' AND finding = 'fp1' AND text = 'no' AND choice = 'dismissed'`), 4)
	})
}

// Covers M3: the dismissal trend of a category.
func TestDismissalTrend(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		for i, at := range []int{1, 2, 30, 31, 49} {
			s := pipeline.Signal{Scope: site, Key: fmt.Sprint("thread/", i), Kind: pipeline.SignalDismissed, At: hours(at), Weight: 1, Off: i == 3,
				About: &pipeline.Finding{Category: "style"}}
			take(t, d, s)
		}
		got, err := d.DismissalTrend(t.Context(), site, "style", now, 24*time.Hour)
		must(t, err)
		if diff := cmp.Diff([]Trend{{now, 2}, {hours(24), 1}, {hours(48), 1}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got, err = d.DismissalTrend(t.Context(), site, "security", now, 24*time.Hour)
		must(t, err)
		want(t, "of another category", len(got), 0)
		if _, err := d.DismissalTrend(t.Context(), site, "", now, 0); err == nil {
			t.Error("no error for no step")
		}
	})
}
