// Package servers has the commands that show the servers on a database, and drain one.
// They read and write the list that servers keep of themselves.
package servers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Command returns the command that lists servers, with the one that drains.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "servers", Short: "List the servers on the database, with what each works on", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return shell.WithStore(cmd, func(db *store.DB) error { return list(cmd, db) })
		},
	}
	cmd.Flags().Bool("json", false, "as JSON")
	cmd.AddCommand(&cobra.Command{
		Use: "drain ID", Short: "Let a server begin nothing any more, and hand over its runs", Args: shell.Args(1),
		Long: "Within five seconds the server stops what it works on, as when it is ended: other servers on the\n" +
			"database go on with it. It still takes in webhooks, and /readyz answers 503, so that a proxy asks\n" +
			"another. It works again when it is started again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return shell.WithStore(cmd, func(db *store.DB) error { return drain(cmd, db, args[0]) })
		},
	})
	return cmd
}

func drain(cmd *cobra.Command, db *store.DB, id string) error {
	if err := db.Drain(cmd.Context(), id); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no server %q here: `forge servers` lists them", id)
	} else if err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "Server %s begins nothing any more; `forge servers` shows what it still works on.\n", id)
	return err
}

func list(cmd *cobra.Command, db *store.DB) error {
	now, out := time.Now(), cmd.OutOrStdout()
	peers, err := db.Peers(cmd.Context(), now)
	if err != nil {
		return err
	}
	if asJSON, err := cmd.Flags().GetBool("json"); err != nil || asJSON {
		if peers == nil {
			peers = []store.Peer{}
		}
		return errors.Join(err, printing.JSON(out, peers))
	}
	if len(peers) == 0 {
		_, err := fmt.Fprintln(out, "No server runs on this database.")
		return err
	}
	t := printing.Table("id", "server", "state", "works on", "load", "seen")
	for _, p := range peers {
		var runs []string
		for _, id := range p.Runs {
			runs = append(runs, strconv.FormatInt(id, 10))
		}
		t.AppendRow(table.Row{p.ID, p.Process, p.State(now), text.Clip(strings.Join(runs, " "), 40),
			fmt.Sprintf("%.1f of %d", p.Load, p.Processors), text.Clock(now.Sub(p.Seen)) + " ago"})
	}
	_, err = fmt.Fprintln(out, t.Render())
	return err
}
