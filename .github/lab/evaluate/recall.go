package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/shell"
	"forge/lab/ranking"
	"forge/learn/recall"
	"forge/pipeline"
)

func recallCommand() *cobra.Command {
	var speed, scopes, queries int
	var seed uint64
	cmd := &cobra.Command{
		Use: "recall DIR", Short: "Measure which lessons are recalled for a change, and how fast", Args: shell.Args(1),
		Long: "Reads the labelled sets DIR/*.jsonl.gz and measures, for plain bm25, for what puts the change's folder first,\n" +
			"and for Forge's recall, nDCG@5, P@5 and MRR. A query sees only the learnings that were there before it.\n" +
			"It is a change (its path, functions and words), or a task that has no paths yet: its text, the files of\n" +
			"the repository, and where names of the text stand in them.\n\n" +
			"With --speed N, N learnings are made up from the words of the sets, and the time of Forge's recall is\n" +
			"compared with that of an FTS5 query (SQLite's full-text index) that holds the same learnings and looks\n" +
			"for the same 15 words in the same scope. 1,000,000 take some minutes and 2 GB of memory and disk.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if speed < 0 || scopes < 1 || queries < 1 {
				return shell.Usage("--speed must not be negative, --scopes and --queries must be at least 1")
			}
			sets, err := ranking.Load(args[0])
			if err != nil {
				return err
			}
			if speed == 0 {
				return evaluateQuality(cmd.OutOrStdout(), sets)
			}
			return evaluateSpeed(cmd.Context(), cmd.OutOrStdout(), sets, speedOptions{speed, scopes, queries, seed})
		},
	}
	cmd.Flags().IntVar(&speed, "speed", 0, "measure the speed with this many learnings, instead of the quality")
	cmd.Flags().Lookup("speed").NoOptDefVal = "100000"
	cmd.Flags().IntVar(&scopes, "scopes", 20, "with --speed: spread the learnings evenly over this many scopes")
	cmd.Flags().IntVar(&queries, "queries", 300, "with --speed: ask this many queries")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "with --speed: make up other learnings and queries")
	return cmd
}

// evaluateQuality prints a line for each set and ranking, and their means.
func evaluateQuality(out io.Writer, sets []*ranking.Set) error {
	rankings := []struct {
		name string
		make func() ranking.Ranking
	}{
		{"plain bm25", func() ranking.Ranking { return ranking.NewPlain() }},
		{"same folder first", func() ranking.Ranking { return ranking.NewFolderFirst() }},
		{"recall", func() ranking.Ranking { return ranking.NewProduct() }},
	}
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"set", "learnings", "queries", "ranking", "nDCG@5", "P@5", "MRR"})
	row := func(set string, learnings, queries any, name string, f ranking.Figures) {
		figure := func(x float64) string { return fmt.Sprintf("%.3f", x) }
		t.AppendRow(table.Row{set, learnings, queries, name, figure(f.NDCG), figure(f.P), figure(f.MRR)})
	}
	all, gains := make([][]ranking.Figures, len(rankings)), ""
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range sets {
		each := make([][]ranking.Figures, len(rankings))
		for i, r := range rankings {
			list, err := s.Each(r.make())
			if err != nil {
				return fmt.Errorf("measure %s on %s: %w", r.name, s.Name, err)
			}
			f := ranking.Mean(list)
			each[i], all[i] = list, append(all[i], f)
			row(s.Name, len(s.Learnings), len(s.Queries), r.name, f)
		}
		product := len(rankings) - 1
		for i, r := range rankings[:product] {
			mean, low, high := ranking.Gain(each[product], each[i], rng)
			gains += fmt.Sprintf("  %s, %s: %+.3f (%+.3f to %+.3f)\n", s.Name, r.name, mean, low, high)
		}
	}
	for i, r := range rankings {
		row("mean", "", "", r.name, ranking.Mean(all[i]))
	}
	t.Render()
	_, err := fmt.Fprint(out, "recall's nDCG@5 over that of the others, and where 95 % of sets of such queries would be:\n"+gains)
	return err
}

type speedOptions struct {
	learnings, scopes, queries int
	seed                       uint64
}

// recalled is how many learnings an agent is given at most.
const recalled = 10

// evaluateSpeed builds both indexes and asks both the same, in turn.
func evaluateSpeed(ctx context.Context, out io.Writer, sets []*ranking.Set, o speedOptions) (err error) {
	source, err := ranking.NewSynthetic(sets, o.scopes, o.seed)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "forge-evaluate-")
	if err != nil {
		return fmt.Errorf("make a directory for the full-text index: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fts, err := ranking.NewFullText(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fts.Close()) }()

	before := heapInUse()
	index := recall.New()
	var building, ftsBuilding time.Duration
	const batch = 10_000
	for n := 0; n < o.learnings; n += batch {
		learnings := make([]pipeline.Learning, min(batch, o.learnings-n))
		for i := range learnings {
			learnings[i] = source.Learning()
		}
		at := time.Now()
		for _, l := range learnings {
			if err := index.Put(l); err != nil {
				return err
			}
		}
		building += time.Since(at)
		at = time.Now()
		if err := fts.Add(ctx, learnings); err != nil {
			return err
		}
		ftsBuilding += time.Since(at)
	}
	at := time.Now()
	if err := fts.Optimize(ctx); err != nil {
		return err
	}
	ftsBuilding += time.Since(at)
	memory := heapInUse() - before

	ours, theirs, err := askBoth(ctx, source, index, fts, o.queries)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d learnings in %d scope(s), %d queries of 15 words\n", o.learnings, o.scopes, o.queries)
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"", "p50 ms", "p99 ms", "built in s", "memory MB"})
	line := func(name string, times []time.Duration, built time.Duration, memory string) {
		t.AppendRow(table.Row{name, millis(quantile(times, 0.5)), millis(quantile(times, 0.99)), fmt.Sprintf("%.1f", built.Seconds()), memory})
	}
	line("FTS5, scope indexed", theirs, ftsBuilding, "")
	line("recall", ours, building, fmt.Sprintf("%.0f", float64(memory)/1e6))
	t.Render()
	fmt.Fprintf(out, "recall's p99 is %.4f of FTS5's (target: 0.1 or less)\n", quantile(ours, 0.99).Seconds()/quantile(theirs, 0.99).Seconds())
	return nil
}

// askBoth asks both indexes the same queries, in turn, and returns the times that
// they took, sorted.
func askBoth(ctx context.Context, source *ranking.Synthetic, index *recall.Index, fts *ranking.FullText, queries int) (ours, theirs []time.Duration, err error) {
	for n := range queries {
		q := source.Query(recalled)
		ask := func() {
			at := time.Now()
			index.Search(q)
			ours = append(ours, time.Since(at))
		}
		if n%2 == 0 { // who comes second may find the processor warm
			ask()
		}
		at := time.Now()
		if _, err := fts.Search(ctx, q.Scopes[0], q.Words, recalled); err != nil {
			return nil, nil, err
		}
		theirs = append(theirs, time.Since(at))
		if n%2 == 1 {
			ask()
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	return ours, theirs, nil
}

// quantile of sorted times: the smallest that a share of p does not exceed.
func quantile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1e3) }

// heapInUse is the size in bytes of what is alive on the heap.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one put aside in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
