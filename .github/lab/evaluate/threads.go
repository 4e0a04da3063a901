package evaluate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/github/feedback"
)

// thread is a conversation about a review comment, with what became of the comment.
type thread struct {
	Repo    string `json:"repo"` // owner/name
	Pull    int    `json:"pr"`
	Label   string `json:"label"` // accepted, dismissed, later, question, unknown
	Replies []struct {
		By   string `json:"by"`
		Text string `json:"text"`
	} `json:"replies"`
}

// labels are what may become of a comment.
var labels = []string{"accepted", "dismissed", "later", "question", "unknown"}

// threadFigures are those of one half of the threads.
type threadFigures struct {
	Half      string         `json:"half"`
	Threads   int            `json:"threads"`
	Refused   map[string]int `json:"refused"` // that are read as refused, by what became of them
	All       map[string]int `json:"all"`     // by what became of them
	Precision float64        `json:"precision"`
	Recall    float64        `json:"recall"`
}

func threadsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "threads FILE...", Short: "Measure how answers to review comments are read",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return shell.Usage("give the files with threads")
			}
			return nil
		},
		Long: "Reads conversations about review comments, one JSON object a line, also compressed with gzip: the \"repo\"\n" +
			"(owner/name), the number of the pull request (\"pr\"), the \"replies\" (\"by\", \"text\") and the \"label\", what\n" +
			"became of the comment: " + strings.Join(labels, ", ") + ". Prints how many are read as refused,\n" +
			"by words alone: what became of the code, and clicks, are not in them.\n\n" +
			"The half that is held out are the pull requests whose SHA-256 of owner/name/pull/number begins with 8 to f.",
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := readAll(args, "threads", func(n int, t *thread) error {
				if !slices.Contains(labels, t.Label) || strings.Count(t.Repo, "/") != 1 || t.Pull <= 0 {
					return fmt.Errorf("thread %d needs a repo (owner/name), a pr and a label (%s)", n, strings.Join(labels, ", "))
				}
				return nil
			})
			if err != nil {
				return err
			}
			halves := []threadFigures{measureThreads("to choose by", list, false), measureThreads("held out", list, true)}
			if asJSON {
				return printing.JSON(cmd.OutOrStdout(), halves)
			}
			return showThreads(cmd.OutOrStdout(), halves)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// heldOut reports whether a thread is in the half that nothing is chosen by.
func (t *thread) heldOut() bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/pull/%d", t.Repo, t.Pull))
	return hex.EncodeToString(sum[:1]) >= "80"
}

// refused reports whether the last plain word of somebody refuses the comment.
func (t *thread) refused() bool {
	refuse := map[string]bool{}
	for _, r := range t.Replies {
		switch feedback.Read(r.Text) {
		case feedback.Dismiss:
			refuse[r.By] = true
		case feedback.Agree:
			delete(refuse, r.By)
		}
	}
	return len(refuse) > 0
}

func measureThreads(half string, list []thread, heldOut bool) threadFigures {
	f := threadFigures{Half: half, Refused: map[string]int{}, All: map[string]int{}}
	refused := 0
	for i := range list {
		t := &list[i]
		if t.heldOut() != heldOut {
			continue
		}
		f.Threads++
		f.All[t.Label]++
		if t.refused() {
			f.Refused[t.Label]++
			refused++
		}
	}
	right := f.Refused["dismissed"]
	f.Precision, f.Recall = float64(right)/float64(max(1, refused)), float64(right)/float64(max(1, f.All["dismissed"]))
	return f
}

func showThreads(out io.Writer, halves []threadFigures) error {
	header := []any{"half", "threads", "precision", "recall"}
	for _, l := range labels {
		header = append(header, l)
	}
	t := numberTable(header...)
	for _, f := range halves {
		row := table.Row{f.Half, f.Threads, fmt.Sprintf("%.2f", f.Precision), fmt.Sprintf("%.2f", f.Recall)}
		for _, l := range labels {
			row = append(row, fmt.Sprintf("%d of %d", f.Refused[l], f.All[l]))
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintf(out, "%s\n\nUnder each label: how many are read as refused, by words alone.\n", t.Render())
	return err
}
