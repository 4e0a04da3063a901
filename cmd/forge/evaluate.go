package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"forge/pipeline"
	"forge/pipeline/simulate"
)

func evaluateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "evaluate", Short: "Measure how well Forge does what it does", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(evaluateLoopCommand(), evaluateRecallCommand(), evaluateLearningCommand())
	return cmd
}

func evaluateLoopCommand() *cobra.Command {
	o := simulate.Options{Config: pipeline.DefaultConfig()}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "loop", Short: "Compare the loop's guards with fixed limits, on simulated runs", Args: noArgs,
		Long: "Plays simulated runs through the loop as it is: a model of agents that mend, break and\n" +
			"misread things, of a reviewer with false and missed findings, of flaky tests. Then compares\n" +
			"where the guards stopped with where loops stop that know nothing but a limit on iterations.\n" +
			"Defaults take a minute or two on two cores.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Runs < 1 || o.Sweep < 0 {
				return usage("--runs takes a number from 1, --sweep one from 0, got %d and %d", o.Runs, o.Sweep)
			}
			return evaluateLoop(cmd, o, asJSON)
		},
	}
	cmd.Flags().IntVar(&o.Runs, "runs", 100_000, "runs of the base model")
	cmd.Flags().IntVar(&o.Sweep, "sweep", 2_000, "runs of each other model and each variant of the guards; 0: none")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "the seed of all that is drawn")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func evaluateLoop(cmd *cobra.Command, o simulate.Options, asJSON bool) error {
	o.Workers = runtime.GOMAXPROCS(0)
	d, total := newDisplay(cmd.ErrOrStderr(), time.Now()), int64(o.Plays())
	var played, shown atomic.Int64
	o.Done = func(n int) {
		now := played.Add(int64(n))
		if part := 100 * now / total; d.live && shown.Swap(part) != part {
			d.progress("… %d %% of %d runs", part, total)
		}
	}
	res, err := simulate.Compare(cmd.Context(), o)
	d.done()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), res)
	}
	return showLoop(cmd.OutOrStdout(), res)
}

// progress shows how far a command is, on a terminal.
func (d *display) progress(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status = fmt.Sprintf(format, args...)
	d.redraw()
}

func showLoop(out io.Writer, r *simulate.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d simulated runs (seed %d); every policy gets the same tasks and the same luck.\n\n", r.Runs, r.Seed)
	b.WriteString(policyTable(&r.Base).Render())
	e := r.Base.Equal
	fmt.Fprintf(&b, "\n\nAgainst the fixed limit that verifies the same share (%.2f: a mixture of two limits): %s wasted iterations, %s stuck ones, %s cost.\n\n",
		e.Limit, fewer(e.Reduction), fewer(e.StuckLess), fewer(1-r.Base.Forge.CostPerRun()/e.CostUSD))
	b.WriteString(guardTable(&r.Base.Forge).Render())
	if r.Sweep > 0 {
		fmt.Fprintf(&b, "\n\nThe guards, with one thing changed (%d runs each):\n\n%s", r.Sweep, variantTable(r).Render())
		fmt.Fprintf(&b, "\n\nOther models (%d runs each). Over %d models with all parameters drawn from their ranges, at the same verified share:\n", r.Sweep, len(r.Draws))
		fmt.Fprintf(&b, "wasted iterations: %s (median; from %s to %s); stuck ones: %s (from %s to %s).\n", fewer(r.Reduction.Median), fewer(r.Reduction.Min), fewer(r.Reduction.Max),
			fewer(r.StuckLess.Median), fewer(r.StuckLess.Min), fewer(r.StuckLess.Max))
		fmt.Fprintf(&b, "One parameter at a time; the last two columns are the wasted iterations at the optimistic and the pessimistic end:\n\n%s", modelTable(r).Render())
	} else {
		fmt.Fprintf(&b, "\n\nThe model:\n\n%s", modelTable(r).Render())
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}

// policyTable compares the policies that people know by name, and the fixed limit
// that is as good as the guards.
func policyTable(c *simulate.Comparison) table.Writer {
	t := numberTable("policy", "verified", "sound", "iterations", "wasted", "stuck", "cost", "escalated", "right")
	row := func(name string, a *simulate.Tally) {
		t.AppendRow(table.Row{name, share(a.VerifiedShare()), share(a.SoundShare()), fmt.Sprintf("%.2f", a.IterationsPerRun()), fmt.Sprintf("%.3f", a.WastedPerRun()),
			fmt.Sprintf("%.3f", a.StuckPerRun()), dollars(a.CostPerRun()), share(a.EscalatedShare()), share(a.RightShare())})
	}
	row("forge", &c.Forge)
	for _, n := range []int{3, 5} {
		row(fmt.Sprintf("limit %d", n), &c.Limits[n-1])
	}
	row(fmt.Sprintf("none (ends at %d)", len(c.Limits)), &c.Limits[len(c.Limits)-1])
	e := c.Equal
	t.AppendRow(table.Row{fmt.Sprintf("limit %.2f", e.Limit), share(e.Verified), "", "", fmt.Sprintf("%.3f", e.Wasted), fmt.Sprintf("%.3f", e.Stuck), dollars(e.CostUSD), share(1 - e.Verified), ""})
	return t
}

func guardTable(a *simulate.Tally) table.Writer {
	t := numberTable("guard", "fired", "right", "wasted before it", "else verified after")
	for _, name := range a.GuardNames() {
		g := a.Guards[name]
		later := "–"
		if g.Right < g.Fired {
			later = fmt.Sprintf("%.1f more", g.LaterMean())
		}
		t.AppendRow(table.Row{name, share(float64(g.Fired) / float64(a.Runs)), share(g.RightShare()), fmt.Sprintf("%.2f", g.WastedMean()), later})
	}
	return t
}

func variantTable(r *simulate.Result) table.Writer {
	t := numberTable("guards", "verified", "wasted", "stuck", "right", "same share at limit", "wasted, against it", "stuck, against it")
	for _, v := range r.Variants {
		f := &v.Forge
		t.AppendRow(table.Row{v.Name, share(f.VerifiedShare()), fmt.Sprintf("%.3f", f.WastedPerRun()), fmt.Sprintf("%.3f", f.StuckPerRun()), share(f.RightShare()),
			fmt.Sprintf("%.2f", v.Equal.Limit), fewer(v.Equal.Reduction), fewer(v.Equal.StuckLess)})
	}
	return t
}

func modelTable(r *simulate.Result) table.Writer {
	if r.Sweep == 0 {
		t := numberTable("parameter", "base", "from", "to", "source")
		for _, p := range simulate.Parameters() {
			t.AppendRow(table.Row{p.Name, p.Base, p.Optimistic, p.Pessimistic, p.Source})
		}
		return t
	}
	t := numberTable("parameter", "base", "from", "to", "optimistic", "pessimistic")
	for _, s := range r.Sensitivity {
		t.AppendRow(table.Row{s.Name, s.Base, s.Optimistic, s.Pessimistic, fewer(s.Better.Equal.Reduction), fewer(s.Worse.Equal.Reduction)})
	}
	t.AppendRow(table.Row{"all of them", "", "", "", fewer(r.Optimistic.Equal.Reduction), fewer(r.Pessimistic.Equal.Reduction)})
	return t
}

// numberTable is a plain table whose columns but the first hold numbers.
func numberTable(header ...any) table.Writer {
	t := plainTable(header...)
	var columns []table.ColumnConfig
	for i := 2; i <= len(header); i++ {
		if header[i-1] != "source" {
			columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(columns)
	return t
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func dollars(v float64) string { return fmt.Sprintf("$%.2f", v) }

// fewer says a reduction in words: 0.4 is "40 % fewer".
func fewer(v float64) string {
	if v < 0 {
		return fmt.Sprintf("%.0f %% more", -100*v)
	}
	return fmt.Sprintf("%.0f %% fewer", 100*v)
}
