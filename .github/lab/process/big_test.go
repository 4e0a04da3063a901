package process

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// bigSize is how much a database for benchmarks holds: by 1,000,000 events 10,000
// runs, 200,000 deliveries and 20,000 learnings.
type bigSize struct{ runs, deliveries, learnings int }

const (
	bigRepos = 20
	bigDays  = 180 // two periods of 90
	bigEach  = 100 // events of a run, on average
	bigLong  = 50  // every so many runs one is long: 1,000 events and more
	bigOpen  = 20  // every so many runs one has not ended
)

// bigEvents is the size that was asked for: FORGE_BENCH_EVENTS. Without it the
// benchmark is skipped: it takes minutes to make.
func bigEvents(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("FORGE_BENCH_EVENTS"))
	if err != nil || n < 1000 {
		b.Skip("makes a big database: set FORGE_BENCH_EVENTS to its number of events, 1,000 or more (1000000 is what the targets are for)")
	}
	return n
}

// bigPath is where the SQLite database of a size is kept, to be found again:
// FORGE_BENCH_DB, or a file in the user's cache.
func bigPath(b *testing.B, name string) string {
	b.Helper()
	if path := os.Getenv("FORGE_BENCH_DB"); path != "" {
		return path + name
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		b.Skipf("no place to keep a big database at: %v; set FORGE_BENCH_DB to a path", err)
	}
	dir = filepath.Join(dir, "forge-bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(dir, fmt.Sprintf("events-%d%s.db", bigEvents(b), name))
}

// bigDB opens the big database, and makes it when it is not there. What was broken
// off is begun anew: the mark of a whole one is its last delivery. now is the noon
// after its last day.
func bigDB(b *testing.B, address string) (db *store.DB, now time.Time) {
	b.Helper()
	events := bigEvents(b)
	db, err := store.Open(b.Context(), address, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	var last, had int64
	if err := db.SQL().QueryRow(`SELECT (SELECT COALESCE(MAX(received), 0) FROM deliveries WHERE event = 'end'), (SELECT COUNT(*) FROM runs)`).Scan(&last, &had); err != nil {
		b.Fatal(err)
	}
	switch {
	case last > 0:
		return db, time.UnixMicro(last).UTC()
	case had > 0:
		b.Fatalf("the database for benchmarks at %s is not whole: delete it", address)
	}
	now = time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	f := &filler{b: b, db: db, rng: rand.New(rand.NewPCG(11, 11)), now: now, bigSize: bigSize{events / bigEach, events / 5, events / 50}}
	f.scripts()
	f.fill()
	return db, now
}

// filler makes a big database out of runs that were played through the real
// decisions.
type filler struct {
	bigSize
	b           *testing.B
	db          *store.DB
	rng         *rand.Rand
	now         time.Time
	ended, open [][]pipeline.Event // the logs of scripts that end, and of those that do not
}

func (f *filler) ok(err error) {
	f.b.Helper()
	if err != nil {
		f.b.Fatal(err)
	}
}

// scripts plays all scripts of the loop.
func (f *filler) scripts() {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "pipeline", "testdata", "loop", "*.txtar"))
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		f.ok(err)
		p, script, err := pipelinetest.Load(ar)
		f.ok(err)
		f.ok(p.Play(script))
		if p.Run.State.Ended() {
			f.ended = append(f.ended, p.Events)
		} else {
			f.open = append(f.open, p.Events)
		}
	}
	if len(f.ended) == 0 || len(f.open) == 0 {
		f.b.Fatalf("%d scripts end and %d do not", len(f.ended), len(f.open))
	}
}

func (f *filler) fill() {
	at := time.Now()
	step := func(what string) { f.b.Logf("%s: %.0f s", what, time.Since(at).Seconds()); at = time.Now() }
	if f.db.Pool() == nil {
		_, err := f.db.SQL().Exec("PRAGMA synchronous = OFF") // only to fill it
		f.ok(err)
	}
	f.keepRuns()
	step(fmt.Sprint(f.runs, " runs"))
	_, err := f.db.MeasureRuns(f.b.Context(), metrics.Of)
	f.ok(err)
	step("daily sums")
	f.keepLearnings()
	step(fmt.Sprint(f.learnings, " learnings"))
	f.keepDeliveries()
	step(fmt.Sprint(f.deliveries, " deliveries"))
	for _, q := range map[bool][]string{true: {"PRAGMA synchronous = FULL", "PRAGMA wal_checkpoint(TRUNCATE)"}, false: {"VACUUM ANALYZE"}}[f.db.Pool() == nil] {
		_, err := f.db.SQL().Exec(q)
		f.ok(err)
	}
}

func bigRepo(i int) pipeline.Repo {
	return pipeline.Repo{ID: int64(1 + i%bigRepos), Owner: "acme", Name: fmt.Sprintf("shop%02d", i%bigRepos), DefaultBranch: "main"}
}

// repoOf spreads runs over repositories: the first ones have more.
func (f *filler) repoOf() int { return int(bigRepos * math.Pow(f.rng.Float64(), 1.5)) }

// around is a size near another: half of them within a factor of two.
func (f *filler) around(median float64) int64 { return int64(median * math.Exp(f.rng.NormFloat64())) }

// keepRuns keeps the runs through the store's own ways: each as its first event and
// the others at once.
func (f *filler) keepRuns() {
	ctx := f.b.Context()
	for i := range f.runs {
		logs := f.ended
		if i%bigOpen == 0 {
			logs = f.open
		}
		events, want := logs[f.rng.IntN(len(logs))], 40+f.rng.IntN(80)
		if i%bigLong == 0 {
			want = 1000 + f.rng.IntN(200)
		}
		from := f.now.Add(-time.Duration(float64(bigDays*24*time.Hour) * (1 - float64(i)/float64(f.runs))))
		start := *events[0].Data.Start
		start.Repo = bigRepo(f.repoOf())
		start.Task.Issue, start.Task.Title = i+1, fmt.Sprintf("%s of %s, case %d", start.Task.Title, start.Repo.Name, i)
		start.Branch = fmt.Sprintf("forge/issue-%d", i+1)
		run, err := f.db.CreateRun(ctx, fmt.Sprint("start/", i), start, from, fmt.Sprintf("%032x", i+1), nil)
		f.ok(err)
		f.ok(f.db.Append(ctx, run, f.pad(events[1:], events[0].Time, from, want), nil))
	}
	_, err := f.db.SQL().Exec(`UPDATE runs SET due = 0`) // nobody works on them
	f.ok(err)
}

// pad fills up a log with what agents do in its phases, and moves it in time. What
// took its time takes another one in each run.
func (f *filler) pad(events []pipeline.Event, was, at time.Time, want int) (out []pipeline.Event) {
	phases := 0
	for _, e := range events {
		if e.Type == pipeline.EventPhaseEntered {
			phases++
		}
	}
	add := func(e pipeline.Event, took time.Duration) {
		at = at.Add(max(took, time.Millisecond))
		e.ID, e.Time = fmt.Sprint("e", len(out)), at
		if at.After(f.now) {
			e.Time = f.now
		}
		out = append(out, e)
	}
	for _, e := range events {
		took := e.Time.Sub(was)
		was = e.Time
		if e.Type == pipeline.EventPhaseCompleted {
			ref := *e.Data.Phase
			ref.Millis = f.around(60_000)
			e.Data.Phase = &ref
		}
		if strings.HasPrefix(string(e.Type), "feedback.") || e.Data.Answer != nil {
			took += time.Duration(f.around(3_600_000)) * time.Millisecond
		}
		add(e, took)
		if e.Type != pipeline.EventPhaseEntered {
			continue
		}
		for n := range max(0, want-len(events)-1) / phases {
			e := f.work(e.Data.Phase, n)
			add(e, time.Duration(f.around(4000))*time.Millisecond)
		}
	}
	return out
}

// work is one of an agent's steps: three uses of tools, then a call of the model.
func (f *filler) work(ref *pipeline.PhaseRef, n int) pipeline.Event {
	if n%4 == 3 {
		return pipeline.Event{Type: pipeline.EventAgentIteration, Source: "agent",
			Data: pipeline.Data{Step: &pipeline.Step{Phase: ref.Phase, Iteration: ref.Iteration, Number: n/4 + 1, Model: "anthropic/some",
				Usage:  pipeline.Usage{Calls: 1, Input: f.around(8000), CachedInput: 2000, Output: f.around(500), MicroUSD: f.around(9000)},
				Millis: f.around(4000), Call: 3000, Progress: f.rng.IntN(5) > 0}}}
	}
	tool := []string{"read", "search", "edit", "run", "list"}[f.rng.IntN(5)]
	return pipeline.Event{Type: pipeline.EventToolExecuted, Source: "agent",
		Data: pipeline.Data{Tool: &pipeline.ToolUse{Phase: ref.Phase, Iteration: ref.Iteration, Step: n/4 + 1, Tool: tool,
			Subject: fmt.Sprintf("internal/part%d/handler.go", f.rng.IntN(30)), OK: f.rng.IntN(10) > 0, Millis: f.around(30),
			Bytes: int(f.around(2000)), Digest: strings.Repeat("d", 64)}}}
}

// text is some words, of which few are frequent.
func (f *filler) text(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", int(math.Pow(f.rng.Float64(), 3)*5000))
	}
	return strings.Join(words, " ")
}

// within does something n times, hundreds of them in a transaction.
func (f *filler) within(n int, do func(ctx context.Context, tx *sql.Tx, i int) error) {
	const at = 500
	for from := 0; from < n; from += at {
		f.ok(f.db.Tx(f.b.Context(), func(ctx context.Context, tx *sql.Tx) error {
			for i := from; i < min(n, from+at); i++ {
				if err := do(ctx, tx, i); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// keepLearnings keeps learnings with two pieces of evidence each, as many signals,
// and of each run what it recalled and what became of it.
func (f *filler) keepLearnings() {
	day := func(i, n int) time.Time {
		return f.now.Add(-time.Duration(float64(bigDays*24*time.Hour) * (1 - float64(i)/float64(n))))
	}
	ann := pipeline.Actor{ID: 5, Login: "ann"}
	var ids []int64
	f.within(f.learnings, func(ctx context.Context, tx *sql.Tx, i int) error {
		scope, finding := "repo:"+bigRepo(f.repoOf()).FullName(), fmt.Sprintf("%016x", i)
		about := pipeline.Finding{Fingerprint: finding, Category: pipeline.Categories()[i%len(pipeline.Categories())],
			Confidence: 0.5 + f.rng.Float64()/2, Message: f.text(10), File: "a.go"}
		l := pipeline.Learning{Scope: scope, Key: fmt.Sprint("dismissed/", i), Type: pipeline.LearningSemantic, Category: about.Category,
			Content: f.text(30), Context: f.text(10),
			Source: pipeline.SourceDismissal, Author: ann, Weight: 1, Finding: finding, Base: 0.4 + f.rng.Float64()/2, Created: day(i, f.learnings)}
		one, err := f.db.SaveLearnings(ctx, tx, []pipeline.Learning{l})
		if err != nil {
			return err
		}
		ids = append(ids, one[0])
		var evidence []pipeline.Evidence
		for n := range 2 {
			evidence = append(evidence, pipeline.Evidence{Learning: one[0], Key: fmt.Sprint("signal/", i, "/", n), Delta: 0.1, Why: "seen again",
				Actor: ann, At: l.Created.Add(time.Hour)})
		}
		if err := f.db.ApplyEvidence(ctx, tx, scope, evidence); err != nil {
			return err
		}
		_, err = f.db.PutSignal(ctx, tx, pipeline.Signal{Scope: scope, Key: fmt.Sprint("dismissed/", i),
			Kind: []pipeline.SignalKind{pipeline.SignalDismissed, pipeline.SignalApplied}[i%2],
			At:   l.Created, Actor: ann, Weight: 1, Finding: finding, About: &about, Text: "no"})
		return err
	})
	f.within(f.runs, func(ctx context.Context, tx *sql.Tx, i int) error {
		// Runs came in the order of time, so that a run knows what was learnt before it.
		known := max(1, i*f.learnings/f.runs)
		r := pipeline.Recall{Phase: pipeline.PhaseImplement, Iteration: 1, Role: "implementer"}
		picks := map[int64]bool{}
		for range 6 {
			picks[ids[int(float64(known)*math.Pow(f.rng.Float64(), 3))]] = true
		}
		for n, id := range slices.Sorted(maps.Keys(picks)) {
			if n == 0 {
				r.Withheld = append(r.Withheld, id)
			} else {
				r.Given = append(r.Given, id)
			}
		}
		if err := f.db.RecordRecall(ctx, tx, int64(i+1), r, day(i, f.runs)); err != nil {
			return err
		}
		return f.db.PutOutcome(ctx, tx, record.Outcome{Run: int64(i + 1), FirstPass: f.rng.IntN(2) == 0, Bounces: f.rng.IntN(3),
			Findings: f.rng.IntN(6), MicroUSD: f.around(200_000), At: day(i, f.runs)})
	})
}

// keepDeliveries keeps deliveries, most of them handled, the older ones without
// their payloads; the last one is the mark of a whole database.
func (f *filler) keepDeliveries() {
	ctx := f.b.Context()
	when := func(i int) time.Time {
		return f.now.Add(-time.Duration(float64(bigDays*24*time.Hour) * (1 - float64(i)/float64(f.deliveries))))
	}
	guid := func(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i) }
	for from := 0; from < f.deliveries; from += 500 {
		var list []record.Delivery
		for i := from; i < min(f.deliveries, from+500); i++ {
			d := record.Delivery{GUID: guid(i), Event: []string{"issue_comment", "push", "pull_request", "check_run"}[i%4], Action: "created",
				Repo:     bigRepo(f.repoOf()).FullName(),
				Received: when(i), Payload: []byte(`{"action":"created","body":"` + f.text(200) + `"}`)}
			list = append(list, d)
		}
		f.ok(f.db.KeepDeliveries(ctx, list))
	}
	f.within(f.deliveries, func(ctx context.Context, tx *sql.Tx, i int) error {
		if i%1000 == 0 { // 200 are dead
			return nil
		}
		_, err := f.db.FinishDelivery(ctx, tx, guid(i), "nothing to do: "+f.text(3), true, when(i).Add(time.Second))
		return err
	})
	for i := 0; i < f.deliveries; i += 1000 {
		for range 5 {
			f.ok(f.db.FailDelivery(ctx, guid(i), "GitHub did not answer", when(i).Add(time.Minute)))
		}
	}
	_, err := f.db.PruneDeliveries(ctx, f.now.AddDate(0, 0, -30))
	f.ok(err)
	f.ok(f.db.KeepDeliveries(ctx, []record.Delivery{{GUID: "end", Event: "end", Received: f.now, Payload: []byte("{}")}}))
}

// millisAt is the time that a share of some calls did not exceed, in milliseconds.
func millisAt(times []time.Duration, share float64) float64 {
	slices.Sort(times)
	return float64(times[min(int(share*float64(len(times))), len(times)-1)].Microseconds()) / 1000
}
