package incidents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/learn/production"
	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
)

// report takes in what a person says goes wrong.
func report(ctx context.Context, db *store.DB, o production.Observation) (production.Note, error) {
	o = o.ByPerson()
	for try := 0; ; try++ {
		tracker, err := newTracker(ctx, db, o.Repo, o.At)
		if err != nil {
			return production.Note{}, err
		}
		note := tracker.Take(o)
		err = Keep(ctx, db, tracker)
		if !errors.Is(err, store.ErrConflict) || try == 5 {
			return note, err
		}
	}
}

// reported takes in that a person writes what goes wrong: "open WORDS".
func (s *Service) reported(ctx context.Context, w work.Word, words string) (string, error) {
	if words == "" {
		return fmt.Sprintf("Say what goes wrong: `%s`.", command.Write(s.Slug, "incident open WORDS")), nil
	}
	p, err := s.settings(ctx, w.Repo.FullName())
	if err != nil {
		return "", err
	}
	environment := "production"
	if len(p.Environments) > 0 {
		environment = p.Environments[0]
	}
	note, err := report(ctx, s.DB, production.Observation{Repo: w.Repo.FullName(), Environment: environment, Source: w.Actor.Login, Title: words, Text: w.Notes,
		Group: w.Cause, At: s.Now()})
	if err != nil || note.Incident == nil {
		return s.said(err, "No incident was opened: %s.", note)
	}
	return s.said(nil, "Incident %d in %s: %s. `%s` ends it when it is nothing.", note.Incident.ID, note.Incident.Environment, note.What,
		command.Write(s.Slug, fmt.Sprintf("incident %d dismiss WHY", note.Incident.ID)))
}

func openCommand(with opener) *cobra.Command {
	var o production.Observation
	cmd := &cobra.Command{
		Use: "open WORDS", Short: "Open an incident for what goes wrong, as a monitor would", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Title = strings.TrimSpace(args[0])
			if owner, name, ok := strings.Cut(o.Repo, "/"); o.Title == "" || !ok || owner == "" || name == "" || strings.Contains(name, "/") {
				return shell.Usage(`say what goes wrong, and where: forge incident open --repo OWNER/NAME "WORDS"`)
			}
			return with(cmd, func(db *store.DB, _ settings.Config) error {
				o.Source, o.At = operator(), time.Now()
				o.Group = o.At.UTC().Format(time.RFC3339Nano)
				note, err := report(cmd.Context(), db, o)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), text.OneLine(note.String()))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&o.Repo, "repo", "", "OWNER/NAME")
	cmd.Flags().StringVar(&o.Environment, "env", "production", "the environment in which it goes wrong")
	return cmd
}
