package evaluate

import (
	"fmt"
	"runtime"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/lab/simulate"
)

func modulesCommand() *cobra.Command {
	o := simulate.ModulesOptions{Sizes: []float64{1, 2, 4}, Parallel: 3}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "modules", Short: "When does it pay to split a feature into modules, on simulated runs", Args: shell.NoArgs,
		Long: "Draws features of two to six modules, some of which need others, and plays each in one\n" +
			"piece and as modules, by the model of agents of \"loop\": a larger task has more\n" +
			"defects, modules make mistakes about each other that only the integration sees, and merges\n" +
			"conflict. Rows are by the share of time that the plan's own sizes promise to save, which is\n" +
			"what modules.min_gain is compared with.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Features < 1 {
				return shell.Usage("--features takes a number from 1, got %d", o.Features)
			}
			if o.Parallel < 1 {
				return shell.Usage("--parallel takes a number from 1, got %d", o.Parallel)
			}
			o.Workers = runtime.GOMAXPROCS(0)
			res, err := simulate.CompareModules(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return printing.JSON(cmd.OutOrStdout(), res)
			}
			t := printing.Table("module M", "promised", "features", "time saved", "faster", "cost", "unasked", "in one piece")
			for i, r := range res.Rows {
				if i > 0 && r.Size != res.Rows[i-1].Size {
					t.AppendSeparator()
				}
				promised := fmt.Sprintf("from %.0f %%", 100*r.From)
				if r.From < 0 {
					promised = "less than none"
				}
				t.AppendRow(table.Row{fmt.Sprintf("× %g", r.Size), promised, r.Features, percent(r.Gain), percent(r.Faster),
					fmt.Sprintf("× %.2f", r.Cost), percent(r.Alone), percent(r.OnePiece)})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d simulated features (seed %d), each in one piece and as modules, %d at once.\n\n%s\n",
				res.Features, res.Seed, o.Parallel, t.Render())
			return err
		},
	}
	cmd.Flags().IntVar(&o.Features, "features", 20_000, "features for each size")
	cmd.Flags().IntVar(&o.Parallel, "parallel", 3, "modules at the same time")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "the seed of all that is drawn")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
