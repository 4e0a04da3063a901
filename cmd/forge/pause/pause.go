// Package pause is the kill switch: its commands write to the database that servers
// look at before everything they begin, and twice a second while they work.
package pause

import (
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Commands returns the commands that stop all work and let it go on.
func Commands() []*cobra.Command {
	return []*cobra.Command{pauseCommand(), unpauseCommand(), pausesCommand()}
}

func pauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause [REASON]", Short: "Stop all work at once, of all repositories or one, until `forge unpause`",
		Long: "Stop all work at once: no phase, no call of a model and no publication begins, and what is under\n" +
			"way is cut off within a second. Webhooks are still taken in and kept. It holds for all servers on\n" +
			"the database, whether one runs or not, until `forge unpause`; then everything goes on from there.",
		RunE: func(cmd *cobra.Command, args []string) error { return set(cmd, true, strings.Join(args, " ")) },
	}
	cmd.Flags().String("repo", "", "only the work of OWNER/NAME")
	return cmd
}

func unpauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unpause", Short: "Let the work go on that `forge pause` has stopped", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return set(cmd, false, "") },
	}
	cmd.Flags().String("repo", "", "the work of OWNER/NAME, which was paused by itself")
	return cmd
}

// set writes the word down.
func set(cmd *cobra.Command, paused bool, reason string) error {
	repo, err := cmd.Flags().GetString("repo")
	if err != nil {
		return err
	}
	if owner, name, ok := strings.Cut(repo, "/"); cmd.Flags().Changed("repo") && (!ok || owner == "" || name == "" || strings.Contains(name, "/")) {
		return shell.Usage("--repo %q: must be OWNER/NAME", repo)
	}
	by := "the operator"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	return shell.WithStore(cmd, func(db *store.DB) error {
		ctx, out := cmd.Context(), cmd.OutOrStdout()
		p := store.Pause{At: time.Now(), Actor: by, Repo: strings.ToLower(repo), Paused: paused, Reason: text.Scrub(text.Clip(text.FirstLine(reason), 500))}
		err := db.SetPaused(ctx, p)
		switch {
		case errors.Is(err, store.ErrNoChange) && paused:
			_, err = fmt.Fprintf(out, "The work of %s is paused already.\n", Of(p))
			return err
		case errors.Is(err, store.ErrNoChange):
			return fmt.Errorf("the work of %s is not paused: `forge pauses` lists what is", Of(p))
		case err != nil:
			return err
		case paused:
			_, err = fmt.Fprintf(out, "The work of %s is paused. `forge unpause` lets it go on.\n", Of(p))
			return err
		}
		if _, err = fmt.Fprintf(out, "The work of %s goes on.\n", Of(p)); err != nil {
			return err
		}
		left, err := db.Pauses(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		_, err = fmt.Fprintf(out, "Still paused: %s.\n", list(left))
		return err
	})
}

func pausesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "pauses", Short: "List what is paused, since when, by whom and why", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return shell.WithStore(cmd, func(db *store.DB) error {
				rows, err := db.Pauses(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printing.JSON(cmd.OutOrStdout(), views(rows))
				}
				if len(rows) == 0 {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), "Nothing is paused.")
					return err
				}
				t := printing.Table("repository", "since", "by", "reason")
				for _, p := range rows {
					t.AppendRow(table.Row{Of(p), p.At.UTC().Format(time.RFC3339), p.Actor, text.Clip(p.Reason, 80)})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Render())
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

type view struct {
	Repo   string `json:"repo"` // "": all
	Since  string `json:"since"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

func views(rows []store.Pause) []view {
	out := []view{}
	for _, p := range rows {
		out = append(out, view{Repo: p.Repo, Since: p.At.UTC().Format(time.RFC3339), By: p.Actor, Reason: p.Reason})
	}
	return out
}

// Of names whose work a pause stops.
func Of(p store.Pause) string {
	if p.Repo == "" {
		return "all repositories"
	}
	return p.Repo
}

func list(rows []store.Pause) string {
	var names []string
	for _, p := range rows {
		names = append(names, Of(p))
	}
	return strings.Join(names, ", ")
}
