package evaluate

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/shell"
	"forge/learn/impact"
	"forge/learn/nearest"
	"forge/pipeline"
)

// folded are findings of one kind: of how many it was said beforehand that they are not wanted.
type folded struct{ held, all int }

func (f folded) String() string {
	low, high := impact.Wilson(f.held, f.all, 1.96)
	return fmt.Sprintf("%d of %d, %.1f %% (%.1f–%.1f)", f.held, f.all, 100*float64(f.held)/float64(max(1, f.all)), 100*low, 100*high)
}

func foldCommand() *cobra.Command {
	return &cobra.Command{
		Use: "fold COMMENTS.csv LABELS.csv", Short: "Measure what is held back for being near to refusals, on comments that people addressed or not", Args: cobra.ExactArgs(2),
		Long: "Reads the comments of AI reviewers (Comment_ID, an address of GitHub's API; Cleaned_Body) and whether the code was changed for each\n" +
			"(Comment_ID, Change_Label), such as those of AIReviewActionAnalysis, and plays each repository in order of time.",
		RunE: func(cmd *cobra.Command, args []string) error {
			comments, err := columns(args[0], "Comment_ID", "Cleaned_Body")
			if err != nil {
				return err
			}
			labels, err := columns(args[1], "Comment_ID", "Change_Label")
			if err != nil {
				return err
			}
			addressed := map[string]bool{}
			for _, l := range labels {
				addressed[l[0]] = l[1] == "1"
			}
			by := map[string][]nearest.Decision{}
			for i, c := range comments {
				done, known := addressed[c[0]]
				id, _, _ := strings.Cut(path.Base(c[0]), "-") // of one part of a comment
				number, err := strconv.ParseInt(id, 10, 64)
				if repo, _, ok := strings.Cut(strings.TrimPrefix(c[0], "https://api.github.com/repos/"), "/comments/"); ok && known && err == nil {
					f := pipeline.Finding{Severity: pipeline.SeverityInfo, Message: c[1], Fingerprint: fmt.Sprint(i)}
					by[path.Dir(repo)] = append(by[path.Dir(repo)], nearest.Decision{Finding: f, Dismissed: !done, Weight: 1, At: time.Unix(number, 0)})
				}
			}
			var done, not folded
			for _, list := range by {
				slices.SortFunc(list, func(a, b nearest.Decision) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
				for i, d := range list {
					of := &done
					if d.Dismissed {
						of = &not
					}
					of.all++
					if why, asked := nearest.New(list[:i], d.At).Held(&d.Finding); why != "" || asked > 0 {
						of.held++
					}
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d repositories. Held back of what was addressed: %v; of the others: %v\n", len(by), done, not)
			return nil
		},
	}
}

// columns reads two columns of a file by their names.
func columns(file, first, second string) (out [][2]string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	a, b := slices.Index(head, first), slices.Index(head, second)
	if a < 0 || b < 0 {
		return nil, shell.Usage("%s has no columns %s and %s", file, first, second)
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, [2]string{row[a], row[b]})
	}
}
