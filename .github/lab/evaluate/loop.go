// Package evaluate has the laboratory's commands and the tables that they print. What is
// measured is in the packages that do it: simulate, stream, ranking, and Forge's own.
package evaluate

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/lab/simulate"
)

// Commands are what the laboratory measures of Forge's judgement.
func Commands() []*cobra.Command {
	return []*cobra.Command{loopCommand(), recallCommand(), learningCommand(), identityCommand(), modulesCommand(), threadsCommand(), foldCommand()}
}

func loopCommand() *cobra.Command {
	o := simulate.Options{Profiles: simulate.Profiles()}
	var asJSON, balanced bool
	cmd := &cobra.Command{
		Use: "loop", Short: "Compare the loop's guards with fixed limits, on simulated runs", Args: shell.NoArgs,
		Long: "Plays simulated runs through the loop as it is: a model of agents that mend, break and\n" +
			"misread things, of a reviewer with false and missed findings, some of which it never sees,\n" +
			"of flaky tests. Then compares where the guards stopped with where loops stop that know\n" +
			"nothing but a limit on iterations. Wasted are the iterations after the last one that left\n" +
			"fewer defects than ever before; idle are those after the last that left fewer than the one\n" +
			"before. Profiles are configurations of the loop: the defaults, and a patient one. It takes\n" +
			"about two minutes on two cores.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Runs < 1 || o.Sweep < 0 {
				return shell.Usage("--runs takes a number from 1, --sweep one from 0, got %d and %d", o.Runs, o.Sweep)
			}
			if balanced {
				o.Profiles = append(o.Profiles, simulate.Balanced())
			}
			return compare(cmd, o, asJSON)
		},
	}
	cmd.Flags().IntVar(&o.Runs, "runs", 100_000, "runs of the base model")
	cmd.Flags().IntVar(&o.Sweep, "sweep", 2_000, "runs of each other model, and five times as many of each variant of the guards; 0: none")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "the seed of all that is drawn")
	cmd.Flags().BoolVar(&balanced, "balanced", false, "play the profile balanced, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func compare(cmd *cobra.Command, o simulate.Options, asJSON bool) error {
	o.Workers = runtime.GOMAXPROCS(0)
	total := int64(o.Plays())
	show, finish := shell.Progress(cmd.ErrOrStderr())
	var played, shown atomic.Int64
	o.Done = func(n int) {
		now := played.Add(int64(n))
		if part := 100 * now / total; shown.Swap(part) != part {
			show("… %d %% of %d runs", part, total)
		}
	}
	res, err := simulate.Compare(cmd.Context(), o)
	finish()
	if err != nil {
		return err
	}
	if asJSON {
		return printing.JSON(cmd.OutOrStdout(), res)
	}
	return showLoop(cmd.OutOrStdout(), res)
}

func showLoop(out io.Writer, r *simulate.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d simulated runs (seed %d); every policy gets the same tasks and the same luck.\n\n", r.Runs, r.Seed)
	b.WriteString(policyTable(r).Render())
	b.WriteString("\n\nWhat a verified run costs, and one in which no defect was left, with what people's time is worth for each question:\n\n")
	b.WriteString(priceTable(r).Render())
	b.WriteString("\n\nA fixed limit knows rounds alone: it does not hear when the implementer says that it cannot.\n")
	for i := range r.Profiles {
		p := &r.Profiles[i]
		e := p.Equal
		fmt.Fprintf(&b, "\n%s, against the fixed limit that verifies the same share (%.2f: a mixture of two limits): %s wasted iterations, %s idle ones, %s cost.\n\n",
			p.Name, e.Limit, fewer(e.Reduction), fewer(e.IdleLess), fewer(1-p.Forge.CostPerRun()/e.CostUSD))
		b.WriteString(guardTable(&p.Forge).Render() + "\n")
		if r.Sweep > 0 {
			fmt.Fprintf(&b, "\nWith one thing changed (%d runs each):\n\n%s\n", p.Variants[0].Forge.Runs, variantTable(p).Render())
		}
	}
	b.WriteString("\nThe model:\n\n" + modelTable().Render())
	if r.Sweep > 0 {
		fmt.Fprintf(&b, "\n\nOther models (%d runs each). Over %d models with all parameters drawn from their ranges, at the same verified share:\n", r.Sweep, len(r.Draws))
		for _, p := range r.Profiles {
			fmt.Fprintf(&b, "%s: wasted iterations %s (median; from %s to %s); idle ones %s (from %s to %s).\n", p.Name,
				fewer(p.Reduction.Median), fewer(p.Reduction.Min), fewer(p.Reduction.Max), fewer(p.IdleLess.Median), fewer(p.IdleLess.Min), fewer(p.IdleLess.Max))
		}
		fmt.Fprintf(&b, "One parameter at a time, at the optimistic and at the pessimistic end of its range; wasted iterations:\n\n%s", sensitivityTable(r).Render())
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}

// policyTable compares the policies that people know by name, and the fixed limits
// that are as good as the guards.
func policyTable(r *simulate.Result) table.Writer {
	t := numberTable("policy", "verified", "sound", "iterations", "wasted", "idle", "cost", "escalated", "right")
	row := func(name string, a *simulate.Tally) {
		t.AppendRow(table.Row{name, share(a.VerifiedShare()), share(a.SoundShare()), fmt.Sprintf("%.2f", a.IterationsPerRun()), fmt.Sprintf("%.3f", a.WastedPerRun()),
			fmt.Sprintf("%.3f", a.IdlePerRun()), dollars(a.CostPerRun()), share(a.EscalatedShare()), share(a.RightShare())})
	}
	for i := range r.Profiles {
		p := &r.Profiles[i]
		e := p.Equal
		row("forge, "+p.Name, &p.Forge)
		t.AppendRow(table.Row{fmt.Sprintf("limit %.2f", e.Limit), share(e.Verified), "", "", fmt.Sprintf("%.3f", e.Wasted),
			fmt.Sprintf("%.3f", e.Idle), dollars(e.CostUSD), share(1 - e.Verified), ""})
	}
	for _, n := range []int{3, 5, 8, 12} {
		row(fmt.Sprintf("limit %d", n), &r.Limits[n-1])
	}
	row(fmt.Sprintf("none (ends at %d)", len(r.Limits)), &r.Limits[len(r.Limits)-1])
	return t
}

// priceTable says what the policies cost when people's time has a price.
func priceTable(r *simulate.Result) table.Writer {
	t := numberTable("policy", "verified, $0", "$5", "$10", "sound, $0", "$5", "$10")
	row := func(name string, a *simulate.Tally) {
		cells := table.Row{name}
		for _, cost := range []func(float64) float64{a.CostPerVerified, a.CostPerSound} {
			for _, question := range []float64{0, 5, 10} {
				cells = append(cells, dollars(cost(question)))
			}
		}
		t.AppendRow(cells)
	}
	for i := range r.Profiles {
		row("forge, "+r.Profiles[i].Name, &r.Profiles[i].Forge)
	}
	for _, n := range []int{3, 5, 8, 12} {
		row(fmt.Sprintf("limit %d", n), &r.Limits[n-1])
	}
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

func variantTable(p *simulate.ProfileResult) table.Writer {
	t := numberTable("guards", "verified", "wasted", "idle", "right", "same share at limit", "wasted, against it", "idle, against it")
	for _, v := range p.Variants {
		f := &v.Forge
		t.AppendRow(table.Row{v.Name, share(f.VerifiedShare()), fmt.Sprintf("%.3f", f.WastedPerRun()), fmt.Sprintf("%.3f", f.IdlePerRun()), share(f.RightShare()),
			fmt.Sprintf("%.2f", v.Equal.Limit), fewer(v.Equal.Reduction), fewer(v.Equal.IdleLess)})
	}
	return t
}

func modelTable() table.Writer {
	t := numberTable("parameter", "base", "from", "to", "source")
	for _, p := range simulate.Parameters() {
		t.AppendRow(table.Row{p.Name, p.Base, p.Optimistic, p.Pessimistic, p.Source})
	}
	return t
}

// sensitivityTable has two columns for each profile: both ends of the range.
func sensitivityTable(r *simulate.Result) table.Writer {
	header := []any{"parameter"}
	for _, p := range r.Profiles {
		header = append(header, p.Name+", optimistic", "pessimistic")
	}
	t := numberTable(header...)
	row := func(name string, better, worse *simulate.Setting) {
		cells := table.Row{name}
		for i := range better.Profiles {
			cells = append(cells, fewer(better.Profiles[i].Equal.Reduction), fewer(worse.Profiles[i].Equal.Reduction))
		}
		t.AppendRow(cells)
	}
	row("(the base)", r.Middle, r.Middle)
	for i := range r.Sensitivity {
		s := &r.Sensitivity[i]
		row(s.Name, &s.Better, &s.Worse)
	}
	row("all of them", r.Optimistic, r.Pessimistic)
	return t
}

// numberTable is a plain table whose columns but the first hold numbers.
func numberTable(header ...any) table.Writer {
	t := printing.Table(header...)
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
