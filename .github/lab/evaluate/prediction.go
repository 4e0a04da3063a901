package evaluate

import (
	"fmt"

	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/learn/predict"
)

func predictionCommand() *cobra.Command {
	var train string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "prediction FILE...", Short: "Measure how well the judgement of people on review comments is predicted",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return shell.Usage("give the files with judged comments")
			}
			return nil
		},
		Long: "Reads review comments that people judged, one JSON object a line, also compressed with gzip: whether it was\n" +
			"\"valid\", its \"text\", \"path\", \"line\", \"end\", \"category\", \"context\", \"language\", who it is \"by\", and the\n" +
			"\"pull\" request (owner/name/pull/number).\n\n" +
			"A comment is predicted by what was learnt on other repositories: those of --train, or of the same files,\n" +
			"each repository left out in its turn. Prints the area under the curve, the Brier score beside that of the\n" +
			"base rate, and of what would be posted how many invalid ones fewer, for how many valid ones lost. Nothing\n" +
			"is held back unless the training data show, taken apart by repository, that predictions beat the base rate.",
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := readComments(args)
			if err != nil {
				return err
			}
			var fit []predict.Comment
			if train != "" {
				if fit, err = readComments([]string{train}); err != nil {
					return err
				}
			}
			f := predict.MeasureJudged(list, fit)
			if asJSON {
				return printing.JSON(cmd.OutOrStdout(), f)
			}
			valid := 0
			for _, c := range list {
				if c.Valid {
					valid++
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d comments, %d valid.\nAUC %.3f (0.5 is chance). Brier score %.4f, of the base rate %.4f: %+.1f %%.\n"+
				"Held back: %.1f %% of the invalid ones, %.1f %% of the valid ones.\n",
				len(list), valid, f.AUC, f.Brier, f.BaseBrier, 100*(f.Brier/f.BaseBrier-1), 100*f.InvalidLess, 100*f.ValidLost)
			return err
		},
	}
	cmd.Flags().StringVar(&train, "train", "", "learn from the comments of this file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// readComments reads files of judged comments.
func readComments(files []string) ([]predict.Comment, error) {
	return readAll(files, "comments", func(n int, c *predict.Comment) error {
		if c.Text == "" || c.Pull == "" {
			return fmt.Errorf("comment %d has no text or no pull", n)
		}
		return nil
	})
}
