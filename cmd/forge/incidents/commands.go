package incidents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/learn/production"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Commands returns the commands about production.
func Commands() []*cobra.Command { return commands(shell.WithStoreAndConfig) }

// opener opens the database and the configuration for a command.
type opener func(cmd *cobra.Command, f func(db *store.DB, cfg settings.Config) error) error

func commands(with opener) []*cobra.Command {
	return []*cobra.Command{incidentsCommand(with), incidentCommand(with), deploymentsCommand(with), hooksCommand(with)}
}

func incidentsCommand(with opener) *cobra.Command {
	var f store.IncidentFilter
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "incidents", Short: "List what goes wrong in production", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(db *store.DB, _ settings.Config) error {
				f.Active = !all
				list, err := Read(cmd.Context(), db, f)
				if err != nil {
					return err
				}
				if asJSON {
					return printing.JSON(cmd.OutOrStdout(), list)
				}
				return printIncidents(cmd.OutOrStdout(), list, f)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that have ended, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&f.Repo, "repo", "", "only those of OWNER/NAME")
	cmd.Flags().StringVar(&f.Environment, "env", "", "only those of an environment")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most this many")
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only older ones than the one with this number: the next page")
	return cmd
}

func printIncidents(out io.Writer, list []*production.Incident, f store.IncidentFilter) error {
	if len(list) == 0 {
		known := "known"
		words := "No incident was ever seen. Do monitors send to a hook of this server? See hooks: in forge.yml."
		if f.Active {
			known = "open"
			words = "Nothing goes wrong in production, as far as is known. `forge incidents --all` lists what did."
		}
		if of := among(" of ", f.Repo) + among(" in ", f.Environment); of != "" {
			words = fmt.Sprintf("No incident%s is %s. Without --repo and --env all are listed.", of, known)
		}
		_, err := fmt.Fprintln(out, words)
		return err
	}
	t := printing.Table("incident", "since", "repository", "environment", "severity", "state", "seen", "what")
	for _, i := range list {
		t.AppendRow(table.Row{i.ID, i.FirstSeen.Format("2006-01-02T15:04Z07:00"), i.Repo, text.Clip(i.Environment, 30), i.Severity, i.State,
			i.Count, text.Clip(i.Title, 80)})
	}
	_, err := fmt.Fprintln(out, t.Render())
	return err
}

// among says what a list is of; "" for all.
func among(how, what string) string {
	if what == "" {
		return ""
	}
	return how + text.Clip(text.OneLine(what), 100)
}

func incidentCommand(with opener) *cobra.Command {
	var asJSON bool
	var dismiss string
	var mute time.Duration
	cmd := &cobra.Command{
		Use: "incident ID", Short: "Show an incident, dismiss it, or let nobody be told of it for a while", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 1 {
				return shell.Usage("%q is no incident: `forge incidents` lists them", args[0])
			}
			return with(cmd, func(db *store.DB, _ settings.Config) error {
				ctx, by := cmd.Context(), operator()
				switch {
				case cmd.Flags().Changed("dismiss") && strings.TrimSpace(dismiss) == "":
					return shell.Usage("say why it is nothing: --dismiss REASON")
				case cmd.Flags().Changed("dismiss"):
					err = Dismiss(ctx, db, id, by, dismiss, time.Now())
				case cmd.Flags().Changed("mute"):
					err = Mute(ctx, db, id, by, mute, time.Now())
				}
				if err != nil {
					return err
				}
				row, err := db.Incident(ctx, id)
				if err != nil {
					return err
				}
				return showIncident(ctx, cmd.OutOrStdout(), db, row, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with its log")
	cmd.Flags().StringVar(&dismiss, "dismiss", "", "it is nothing, for this reason; for a day the same does not open another")
	cmd.Flags().DurationVar(&mute, "mute", 0, "tell nobody of it for this long, such as 2h")
	cmd.AddCommand(openCommand(with))
	return cmd
}

// operator is who types a command, as far as the system knows.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "the operator"
}

func showIncident(ctx context.Context, out io.Writer, db *store.DB, row *store.Incident, asJSON bool) error {
	i, err := Folded(row)
	if err != nil {
		return err
	}
	log, err := Log(ctx, db, i.ID)
	if err != nil {
		return err
	}
	if asJSON {
		type event struct {
			Seq  int64                `json:"seq"`
			Type production.EventType `json:"type"`
			At   time.Time            `json:"at"`
			Data production.EventData `json:"data"`
		}
		events := []event{}
		for _, e := range log {
			events = append(events, event(e))
		}
		return printing.JSON(out, map[string]any{"incident": i, "events": events})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Incident %d  %s  %s  %s\n%s\n", i.ID, i.State, i.Severity, i.Kind, i.Title)
	fmt.Fprintf(&b, "%s, %s; seen %s from %s to %s\n", i.Repo, i.Environment, text.Plural(i.Count, "time", "times"),
		i.FirstSeen.Format(time.RFC3339), i.LastSeen.Format(time.RFC3339))
	if i.Why != "" {
		fmt.Fprintf(&b, "ended %s: %s%s\n", i.Ended.Format(time.RFC3339), i.Why, by(i.By))
	}
	if i.Last.Text != "" {
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(i.Last.Text, "\n", "\n  "))
	}
	if i.Last.URL != "" {
		fmt.Fprintf(&b, "\nsource: %s\n", i.Last.URL)
	}
	if i.Previous != 0 {
		fmt.Fprintf(&b, "it came before: incident %d; this is time %d\n", i.Previous, i.Times)
	}
	if len(i.Joined) > 0 {
		fmt.Fprintf(&b, "taken for the same thing: %s\n", text.Clip(strings.Join(i.Joined, ", "), 500))
	}
	for n, s := range i.Suspects {
		if n == 0 {
			b.WriteString("\nIt may come from:\n")
		}
		fmt.Fprintf(&b, "  %s\n", SuspectLine(s))
		for _, w := range s.Why {
			fmt.Fprintf(&b, "    %s\n", w)
		}
	}
	b.WriteString("\n")
	t := printing.Table("number", "at", "event", "what")
	for _, e := range log {
		t.AppendRow(table.Row{e.Seq, e.At.Format(time.RFC3339), e.Type, text.Clip(EventLine(e), 100)})
	}
	_, err = fmt.Fprintf(out, "%s%s\n", b.String(), t.Render())
	return err
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " (" + who + ")"
}

// SuspectLine says who is suspected, and how much.
func SuspectLine(s production.Suspect) string {
	what := fmt.Sprintf("deployment %d", s.Deployment)
	if s.Commit != "" {
		what += ", commit " + text.Head(s.Commit, 10)
	}
	if s.Pull != 0 {
		what += fmt.Sprintf(", pull request #%d", s.Pull)
	}
	if s.Run != 0 {
		what += fmt.Sprintf(", run %d", s.Run)
	}
	return fmt.Sprintf("%.0f %%  %s", 100*s.Score, what)
}

// EventLine says what happened, in one line.
func EventLine(e production.Event) string {
	d := e.Data
	switch {
	case e.Type == production.EventCounted:
		return fmt.Sprintf("seen %s more", text.Plural(d.Count, "time", "times"))
	case e.Type == production.EventJoined:
		return d.Group
	case e.Type == production.EventMuted:
		return fmt.Sprintf("until %s%s", d.Until.Format(time.RFC3339), by(d.By))
	case e.Type == production.EventCorrelated && len(d.Suspects) == 0:
		return "nothing is suspected"
	case e.Type == production.EventCorrelated:
		return SuspectLine(d.Suspects[0])
	case e.Type == production.EventAsked:
		return fmt.Sprintf("at #%d", d.Number)
	case e.Type == production.EventTold && d.Why != "":
		return d.Key + " could not be said: " + d.Why
	case e.Type == production.EventTold:
		return d.Key
	case d.Observation != nil:
		return d.Observation.Title
	case d.Answer != "":
		return actLine(d.Answer, d.Number, d.Why, d.By)
	}
	return d.Why + by(d.By)
}

// actLine says of an answer its name, what was made, why not, and by whom.
func actLine(a production.Answer, number int64, why, who string) string {
	s := nameOf[a]
	if number != 0 {
		s += fmt.Sprintf(" %d", number)
	}
	if why != "" {
		s += ": " + why
	}
	return s + by(who)
}

// ActLine says how far an answer is.
func ActLine(a production.Act) string { return actLine(a.Answer, a.Number, a.Why, a.By) }

func deploymentsCommand(with opener) *cobra.Command {
	var f store.DeploymentFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use: "deployments", Short: "List what was deployed where, by whomever", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(db *store.DB, _ settings.Config) error {
				list, err := Deployments(cmd.Context(), db, f)
				if err != nil {
					return err
				}
				if asJSON {
					return printing.JSON(cmd.OutOrStdout(), list)
				}
				if len(list) == 0 {
					of := among(" of ", f.Repo) + among(" to ", f.Environment)
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "No deployments%s are known. "+
						"GitHub tells of them when the App is subscribed to deployment and deployment_status.\n", of)
					return err
				}
				t := printing.Table("deployment", "created", "repository", "environment", "commit", "state", "watched", "by")
				for _, d := range list {
					t.AppendRow(table.Row{d.ID, d.Created.Format("2006-01-02T15:04Z07:00"), d.Repo, text.Clip(d.Environment, 30), text.Head(d.Commit, 10),
						d.State, text.Clip(d.Fares(), 60), d.Creator})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Render())
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&f.Repo, "repo", "", "only those of OWNER/NAME")
	cmd.Flags().StringVar(&f.Environment, "env", "", "only those to an environment")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most this many")
	return cmd
}

func hooksCommand(with opener) *cobra.Command {
	cmd := &cobra.Command{Use: "hooks", Short: "About hooks, by which monitors say what goes wrong", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var resource string
	test := &cobra.Command{
		Use: "test NAME FILE", Short: "Show what a message would become if the hook NAME got it; nothing is kept", Args: shell.Args(2),
		Long: "Reads a message from a file (- for the standard input) as the hook NAME of forge.yml would,\nand shows what would be made of it, with the incidents as they are now. Nothing is kept.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := readBody(cmd.InOrStdin(), args[1])
			if err != nil {
				return shell.Usage("%w", err)
			}
			return with(cmd, func(db *store.DB, cfg settings.Config) error {
				hooks := Hooks(cfg.Hooks)
				if _, ok := hooks[args[0]]; !ok {
					names := slices.Sorted(maps.Keys(hooks))
					return shell.Usage("there is no hook %q in the configuration; it has %s", args[0], cmp.Or(strings.Join(names, ", "), "none"))
				}
				return tryHook(cmd.Context(), cmd.OutOrStdout(), db, hooks, args[0], resource, body)
			})
		},
	}
	test.Flags().StringVar(&resource, "resource", "", "of Sentry: what the header Sentry-Hook-Resource would say")
	cmd.AddCommand(test)
	return cmd
}

// mostBody is what a hook takes, in bytes.
const mostBody = 1 << 20

func readBody(in io.Reader, file string) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, mostBody+1))
	if err == nil && len(body) > mostBody {
		err = fmt.Errorf("%s is larger than 1 MiB, the most that a hook takes", file)
	}
	return body, err
}

// tryHook shows what would become of a message.
func tryHook(ctx context.Context, out io.Writer, db *store.DB, hooks map[string]production.Hook, name, resource string, body []byte) error {
	s := New(Options{DB: db, Hooks: hooks, Now: time.Now})
	list, why, err := production.Read(hooks[name], production.Message{Resource: resource, Body: body, Received: time.Now()})
	if err != nil {
		return fmt.Errorf("the message is not understood: %w", err)
	}
	trackers := map[string]*production.Tracker{}
	for _, o := range list {
		tracker, err := s.tracker(ctx, trackers, o.Repo)
		if err != nil {
			return err
		}
		n := tracker.Take(o)
		if err := printing.JSON(out, o); err != nil {
			return err
		}
		words := n.String()
		if n.Incident != nil && n.Incident.ID == 0 {
			words = "a new incident: " + n.What
		}
		if _, err := fmt.Fprintf(out, "%s → %s\n", o.Kind.Event(), words); err != nil {
			return err
		}
	}
	if why != "" {
		_, err = fmt.Fprintf(out, "Left out: %s.\n", why)
	}
	return err
}
