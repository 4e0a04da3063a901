package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/printing"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/pipeline/store"
)

func busCommand() *cobra.Command {
	var choice bus.Choice
	var follow bool
	var since time.Duration
	cmd := &cobra.Command{
		Use: "bus", Short: "Show who is told of events and how that goes, or follow them as JSON lines", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !follow {
				for _, name := range []string{"since", "run", "repo", "types"} {
					if cmd.Flags().Changed(name) {
						return shell.Usage("--%s chooses what --follow prints, and there is no --follow", name)
					}
				}
				return shell.WithStoreAndConfig(cmd, busRows(cmd))
			}
			if since < 0 {
				return shell.Usage("--since %s: must be a time that is over, such as 1h", since)
			}
			choice.Since = time.Now().Add(-since)
			return shell.WithStoreAndConfig(cmd, followEvents(cmd, choice))
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "print what happens, as CloudEvents, one on a line, until it is interrupted")
	f.DurationVar(&since, "since", 0, "with --follow: also what happened in the time before, such as 1h")
	f.Int64Var(&choice.Run, "run", 0, "with --follow: of this run alone")
	f.StringSliceVar(&choice.Repos, "repo", nil, "with --follow: of these repositories alone, such as acme/*")
	f.StringSliceVar(&choice.Types, "types", nil, "with --follow: of these types alone, such as run.*,gate.requested")
	cmd.AddCommand(&cobra.Command{
		Use: "test NAME", Short: "Send a subscriber a ping", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := shell.Configure(cmd)
			if err != nil {
				return err
			}
			s, err := subscriber(cfg, args[0])
			if err != nil {
				return err
			}
			if err := bus.Ping(cmd.Context(), s, time.Now()); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has taken a ping.\n", s.Name)
			return err
		},
	}, &cobra.Command{
		Use: "resume NAME", Short: "Tell a subscriber again that is paused, from where it stopped", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return shell.WithStoreAndConfig(cmd, func(db *store.DB, cfg settings.Config) error {
				s, err := subscriber(cfg, args[0])
				if err != nil {
					return err
				}
				return resume(cmd, db, s.Name)
			})
		},
	})
	return cmd
}

func followEvents(cmd *cobra.Command, choice bus.Choice) func(*store.DB, settings.Config) error {
	return func(db *store.DB, cfg settings.Config) error {
		hide, err := server.HideInEvents(cfg)
		if err != nil {
			return err
		}
		f, err := bus.NewFollower(cmd.Context(), db, choice, hide)
		if err != nil {
			return err
		}
		return f.Lines(cmd.Context(), cmd.OutOrStdout(), time.Second)
	}
}

func subscriber(cfg settings.Config, name string) (bus.Subscriber, error) {
	list := server.Subscribers(cfg)
	i := slices.IndexFunc(list, func(s bus.Subscriber) bool { return s.Name == name })
	if i < 0 {
		return bus.Subscriber{}, fmt.Errorf("there is no subscriber %q: they are under `subscribers` in the server's settings", name)
	}
	return list[i], nil
}

// resume ends the pause of a subscriber.
func resume(cmd *cobra.Command, db *store.DB, name string) error {
	state, err := db.Subscriber(cmd.Context(), bus.Cursor(name))
	says := name + " is told again."
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && state.Paused == "":
		says, err = name+" is not paused: there is nothing to resume.", nil
	case err == nil:
		err = db.SubscriberFailed(cmd.Context(), bus.Cursor(name), time.Time{}, "")
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), says)
	return err
}

// busRows prints a row for each subscriber.
func busRows(cmd *cobra.Command) func(*store.DB, settings.Config) error {
	return func(db *store.DB, cfg settings.Config) error {
		out := cmd.OutOrStdout()
		if len(cfg.Subscribers) == 0 {
			_, err := fmt.Fprintln(out, "Nobody is told of events: name programs under `subscribers` in the server's settings.")
			return err
		}
		t := printing.Table("subscriber", "types", "repositories", "state")
		for _, s := range cfg.Subscribers {
			state, err := db.Subscriber(cmd.Context(), bus.Cursor(s.Name))
			if errors.Is(err, store.ErrNotFound) {
				t.AppendRow(table.Row{s.Name, orAll(s.Types), orAll(s.Repos), "new: no server has told it anything yet"})
				continue
			}
			if err != nil {
				return err
			}
			t.AppendRow(table.Row{s.Name, orAll(s.Types), orAll(s.Repos), subscriberState(state)})
		}
		_, err := fmt.Fprintln(out, t.Render())
		return err
	}
}

func orAll(globs []string) string {
	if len(globs) == 0 {
		return "all"
	}
	return strings.Join(globs, " ")
}

func subscriberState(s store.Subscriber) string {
	switch {
	case s.Paused != "":
		return "paused: " + s.Paused
	case !s.Failed.IsZero():
		return "nothing gets through since " + s.Failed.UTC().Format(time.RFC3339)
	}
	return "is told, since " + s.Since.UTC().Format(time.RFC3339)
}
