package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

func deliveriesCommand() *cobra.Command {
	var f store.DeliveryFilter
	var dead, asJSON, retry bool
	cmd := &cobra.Command{
		Use: "deliveries [GUID]", Short: "Show what became of webhook deliveries, or let one be handled again",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return shell.Usage("deliveries takes one GUID at most, got %q", args)
			case retry && len(args) == 0:
				return shell.Usage("--retry needs the GUID of a delivery: `forge deliveries --dead` lists those that were given up")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if retry {
				return retryDelivery(cmd, args[0])
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				out := cmd.OutOrStdout()
				if len(args) == 1 {
					d, err := db.Delivery(cmd.Context(), args[0])
					if err != nil {
						return err
					}
					return showDelivery(out, d, asJSON)
				}
				if dead {
					f.State = record.DeliveryDead
				}
				list, err := db.Deliveries(cmd.Context(), f)
				if err != nil {
					return err
				}
				return listDeliveries(out, list, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&dead, "dead", false, "only those that were given up after five attempts")
	cmd.Flags().BoolVar(&retry, "retry", false, "let the delivery be handled again, with all its attempts")
	cmd.Flags().StringVar(&f.Repo, "repo", "", "only those of OWNER/NAME")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most this many")
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only older ones than the one with this number: the next page")
	return cmd
}

// retryDelivery lets a server on the same database handle a delivery again.
func retryDelivery(cmd *cobra.Command, guid string) error {
	db, e, err := openControl(cmd)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := e.Redrive(cmd.Context(), "delivery/"+guid); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Delivery %s waits to be handled again.\n", guid)
	return err
}

// deliveryView is a delivery without its payload, which may hold anything.
type deliveryView struct {
	ID       int64  `json:"id"`
	GUID     string `json:"guid"`
	Event    string `json:"event"`
	Action   string `json:"action,omitempty"`
	Repo     string `json:"repo,omitempty"`
	Received string `json:"received"`
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	Outcome  string `json:"outcome,omitempty"`
	Error    string `json:"error,omitempty"`
}

func viewOf(d *record.Delivery) deliveryView {
	return deliveryView{ID: d.ID, GUID: d.GUID, Event: d.Event, Action: d.Action, Repo: d.Repo, Received: d.Received.Format("2006-01-02T15:04:05Z07:00"),
		State: string(d.State), Attempts: d.Attempts, Outcome: d.Outcome, Error: d.Error}
}

func showDelivery(out io.Writer, d *record.Delivery, asJSON bool) error {
	v := viewOf(d)
	if asJSON {
		return printing.JSON(out, v)
	}
	_, err := fmt.Fprintf(out, "%s  %s.%s  %s  %s\nreceived %s, %d attempt(s)\noutcome: %s\n", v.GUID, v.Event, v.Action, v.Repo, v.State,
		v.Received, v.Attempts, v.Outcome)
	if err == nil && v.Error != "" {
		_, err = fmt.Fprintf(out, "last error: %s\n", v.Error)
	}
	return err
}

func listDeliveries(out io.Writer, list []record.Delivery, asJSON bool) error {
	views := []deliveryView{}
	for i := range list {
		views = append(views, viewOf(&list[i]))
	}
	if asJSON {
		return printing.JSON(out, views)
	}
	if len(views) == 0 {
		_, err := fmt.Fprintln(out, "No deliveries. Is the App's webhook set to this server's address, with the path /webhook?")
		return err
	}
	t := printing.Table("number", "received", "delivery", "event", "repository", "state", "outcome")
	for _, v := range views {
		event, what := v.Event, v.Outcome
		if v.Action != "" {
			event += "." + v.Action
		}
		if what == "" {
			what = v.Error
		}
		t.AppendRow(table.Row{v.ID, v.Received, v.GUID, event, v.Repo, v.State, text.Clip(text.FirstLine(what), 100)})
	}
	_, err := fmt.Fprintln(out, t.Render())
	return err
}
