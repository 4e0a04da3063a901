package evaluate

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/lab/identify"
)

func identityCommand() *cobra.Command {
	var train string
	var asJSON, model bool
	cmd := &cobra.Command{
		Use: "identity FILE...", Short: "Measure how findings are recognised that are said in other words",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !(model && train != "") {
				return shell.Usage("give the files with pairs of comments")
			}
			return nil
		},
		Long: "Reads pairs of review comments, one JSON object a line, also compressed with gzip: \"a\", \"b\", whether\n" +
			"they are about the \"same\" problem, the \"kind\" of pair, and the \"pull\" request (owner/name/pull/number).\n" +
			"Prints for each kind the precision and the recall of what a run makes of such a pair. The pairs have no\n" +
			"places: both comments are given the same file, line and code. What the run knows besides are the other\n" +
			"comments on the pull request in the same FILE; a row of its own shows the pair alone.\n\n" +
			"Beside it stands the cosine of idf-weighted words, whose limit is fitted\n" +
			"as Forge's is.\n\n" +
			"Without --train, the weights are measured that Forge ships. With it, they are fitted on that file, and no\n" +
			"pair is judged by a model that saw a pair of its repository: that repository is left out of the fit, forks\n" +
			"included (by the first word of the name: discourse-graphite is discourse). So the training file can be\n" +
			"measured itself, leaving one repository out each time: lab identity FILE --train FILE.",
		RunE: func(cmd *cobra.Command, args []string) error {
			pairs, err := readPairs(args)
			if err != nil {
				return err
			}
			var fit []identify.Pair
			if train != "" {
				if fit, err = readPairs([]string{train}); err != nil {
					return err
				}
			}
			if model {
				return printing.JSON(cmd.OutOrStdout(), identify.Fit(fit))
			}
			rows, err := identify.Measure(pairs, fit)
			if err != nil {
				return err
			}
			if asJSON {
				return printing.JSON(cmd.OutOrStdout(), struct {
					Sets   []identify.Figures `json:"sets"`
					Beside []identify.Row     `json:"beside"`
				}{rows[0].Sets, rows[1:]})
			}
			return showIdentity(cmd.OutOrStdout(), rows, train)
		},
	}
	cmd.Flags().StringVar(&train, "train", "", "fit the weights on the pairs of this file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&model, "model", false, "print the weights that are fitted on all of --train, as Forge ships them")
	return cmd
}

// readPairs reads files of pairs.
func readPairs(files []string) ([]identify.Pair, error) {
	return readAll(files, "pairs", func(n int, p *identify.Pair) error {
		if p.A == "" || p.B == "" {
			return fmt.Errorf("pair %d has no a or no b", n)
		}
		return nil
	})
}

func showIdentity(out io.Writer, rows []identify.Row, train string) error {
	header := []any{"method"}
	for _, f := range rows[0].Sets {
		header = append(header, fmt.Sprintf("%s (%d): precision", f.Kind, f.Pairs), "recall")
	}
	t := numberTable(header...)
	for _, r := range rows {
		row := table.Row{r.Method}
		for _, f := range r.Sets {
			row = append(row, fmt.Sprintf("%.3f", f.Precision), fmt.Sprintf("%.3f", f.Recall))
		}
		t.AppendRow(row)
	}
	how := "The weights are those that Forge ships."
	if train != "" {
		how = "Fitted on " + train + ", each repository judged by the others alone."
	}
	_, err := fmt.Fprintf(out, "%s\n\n%s Both comments of a pair are given the same place.\n", t.Render(), how)
	return err
}
