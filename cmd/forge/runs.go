package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/role"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// openControl is shell.WithStore for orders: the database and what takes them.
func openControl(cmd *cobra.Command) (*store.DB, server.Control, error) {
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return nil, nil, err
	}
	return server.OpenControl(cmd.Context(), cfg, log)
}

func runsCommand() *cobra.Command {
	var f store.Filter
	var asJSON bool
	cmd := &cobra.Command{
		Use: "runs", Short: "List runs, newest first", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return shell.WithStore(cmd, func(db *store.DB) error {
				rows, err := db.Runs(cmd.Context(), f)
				if err != nil {
					return err
				}
				if asJSON {
					if rows == nil {
						rows = []store.RunRow{}
					}
					return printing.JSON(cmd.OutOrStdout(), rows)
				}
				return listRuns(cmd.OutOrStdout(), rows)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&f.Active, "active", false, "only those that have not ended")
	cmd.Flags().StringVar(&f.Repo, "repo", "", "only those of OWNER/NAME")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most this many")
	cmd.Flags().BoolVar(&f.Parts, "parts", false, "with the runs that build modules of others")
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only runs with a smaller number: the next page")
	return cmd
}

func listRuns(out io.Writer, rows []store.RunRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "No runs yet. Label an issue, or try `forge demo`.")
		return err
	}
	t := printing.Table("run", "state", "phase", "iteration", "cost", "repository", "issue", "title", "started")
	for _, r := range rows {
		issue := ""
		if r.Issue > 0 {
			issue = fmt.Sprintf("#%d", r.Issue)
		}
		if r.Part != "" {
			issue = fmt.Sprintf("%d/%s", r.Parent, r.Part)
		}
		phase := string(r.Phase)
		if r.State.Ended() { // it is in none any more
			phase = "-"
		}
		if what, _, _ := strings.Cut(r.Waits, " ("); what != "" {
			phase += ", waits for " + text.Clip(what, 60)
		}
		if r.Asks > 0 {
			phase = text.Plural(r.Asks, "module asks", "modules ask")
		}
		t.AppendRow(table.Row{r.ID, r.State, phase, r.Iteration, r.Cost(), r.Repo, issue, text.Clip(text.FirstLine(r.Title), 100),
			r.Started.Local().Format("2006-01-02 15:04")})
	}
	_, err := fmt.Fprintln(out, t.Render())
	return err
}

func showCommand() *cobra.Command {
	var why, report, scratchpad, progress, events, inner, upstream, artefacts, asJSON bool
	cmd := &cobra.Command{
		Use: "show RUN[/MODULE]", Short: "Show a run: its report, scratchpad, progress or events", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, part, err := runOrModule(args[0])
			if err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				run, err := loadRunOrPart(cmd.Context(), db, id, part)
				if err != nil {
					return err
				}
				id = run.ID
				out := cmd.OutOrStdout()
				switch {
				case upstream || artefacts:
					return showWritten(out, run, upstream, artefacts, asJSON)
				case events:
					return showEvents(cmd.Context(), out, db, id, asJSON)
				case inner:
					return showInner(cmd.Context(), out, db, id, asJSON)
				case progress:
					return printing.JSON(out, run.Progress())
				case scratchpad:
					_, err = io.WriteString(out, typed(run, run.Scratchpad()))
				case why:
					_, err = io.WriteString(out, typed(run, run.Explain()))
				case report:
					showReports(out, run)
				case asJSON:
					return printing.JSON(out, run)
				default:
					err = showRun(out, run)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&why, "why", false, "why it stands where it stands: every guard with its numbers")
	cmd.Flags().BoolVar(&report, "report", false, "the validation report of every iteration")
	cmd.Flags().BoolVar(&scratchpad, "scratchpad", false, "what was tried, iteration by iteration")
	cmd.Flags().BoolVar(&progress, "progress", false, "the progress record, as JSON")
	cmd.Flags().BoolVar(&inner, "inner", false, "what each phase took, and how the agents' tools fared")
	cmd.Flags().BoolVar(&upstream, "upstream", false, "what agents told each other, and what was decided")
	cmd.Flags().BoolVar(&artefacts, "artefacts", false, "what roles have written: requirements, criteria, design, user interface")
	cmd.Flags().BoolVar(&events, "events", false, "every event, in order")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// showWritten prints what agents told each other, and what roles have written.
func showWritten(out io.Writer, run *pipeline.Run, told, written, asJSON bool) error {
	shown := map[string]any{}
	var words string
	if told {
		shown["upstream"] = run.Upstream
		words += listed(run.Upstream, toldText, "Agents have told each other nothing.\n")
	}
	if written {
		shown["artefacts"] = run.Artefacts
		words += listed(run.Artefacts, writtenText, "No role has written anything: the run is not on the full track, or has not begun.\n")
	}
	if asJSON {
		return printing.JSON(out, shown)
	}
	_, err := io.WriteString(out, words)
	return err
}

// listed are the texts of a list's items, or the words for an empty one.
func listed[T any](list []T, words func(*T) string, none string) string {
	if len(list) == 0 {
		return none
	}
	var b strings.Builder
	for i := range list {
		b.WriteString(words(&list[i]))
	}
	return b.String()
}

func toldText(f *upstream.Feedback) string {
	words := fmt.Sprintf("%s (%s, %s → %s, %s)\n  %s\n", f.ID, f.Kind, f.From, f.To, f.State, f)
	if f.Why != "" {
		words += fmt.Sprintf("  A human was asked, because %s.\n", f.Why)
	}
	return words
}

func writtenText(a *role.Artefact) string {
	return fmt.Sprintf("%s, revision %d\n  %s\n", a.Role, a.Rev, strings.ReplaceAll(a.Text(), "\n", "\n  "))
}

// loadRun loads a run, and says where to find one when there is none of this number.
func loadRun(ctx context.Context, db *store.DB, id int64) (*pipeline.Run, error) {
	run, err := db.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("there is no run %d; `forge runs` lists them", id)
	}
	return run, err
}

func runNumber(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		return 0, shell.Usage("%q is not a run's number: `forge runs` lists them", s)
	}
	return id, nil
}

// runOrModule reads a run's number, or one with the name of its module: 7/auth.
func runOrModule(s string) (id int64, part string, err error) {
	number, part, named := strings.Cut(s, "/")
	if id, err = runNumber(number); err == nil && named && part == "" {
		return 0, "", shell.Usage("%q names no module: write %d alone for the run, or %[2]d/NAME", s, id)
	}
	return id, strings.ToLower(part), err
}

// loadRunOrPart loads a run, or where a module is named the one that builds it.
func loadRunOrPart(ctx context.Context, db *store.DB, id int64, part string) (*pipeline.Run, error) {
	run, err := loadRun(ctx, db, id)
	if err == nil && part != "" {
		return loadPart(ctx, db, run, part)
	}
	return run, err
}

// loadPart loads the run that builds a module of another one.
func loadPart(ctx context.Context, db *store.DB, run *pipeline.Run, name string) (*pipeline.Run, error) {
	var names []string
	for i := range run.Parts {
		p := &run.Parts[i]
		if p.ID == name && p.Run != 0 {
			return loadRun(ctx, db, p.Run)
		}
		names = append(names, p.ID)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("run %d is built in one piece: it has no modules", run.ID)
	}
	return nil, fmt.Errorf("run %d has no module %q; it has %s", run.ID, name, strings.Join(names, ", "))
}

// listParts shows the modules of a run.
func listParts(run *pipeline.Run) string {
	if run.Plan == nil || run.Plan.Split == nil {
		return ""
	}
	t := printing.Table("module", "state", "wave", "iteration", "tests", "findings", "cost", "run")
	rows := run.Plan.Split.Rows(run.Parts)
	for i := range rows {
		r := &rows[i]
		t.AppendRow(table.Row{r.Module.ID, r.Status(run.Parts, run.State.Ended()), r.Wave, r.Iteration, r.Tests, r.Findings,
			pipeline.Usage{MicroUSD: r.MicroUSD, Unpriced: r.Unpriced}.Cost(), r.Part.Run})
	}
	return t.Render() + "\n"
}

func showRun(out io.Writer, run *pipeline.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", run.Task.Title, summary(run))
	fmt.Fprintf(&b, "repository %s, branch %s, head %.12s\n", run.Repo.FullName(), run.Branch, run.Head)
	if p := run.Published.Pull; p != nil {
		fmt.Fprintf(&b, "pull request %s\n", p.URL)
	}
	b.WriteString(listParts(run))
	for _, line := range waitingParts(run) {
		fmt.Fprintln(&b, line)
	}
	for _, it := range run.Iterations {
		fmt.Fprintf(&b, "iteration %d (%s): %s", it.Number, it.Mode, it.Result)
		if it.Brief != "" {
			fmt.Fprintf(&b, ", %s", it.Brief)
		}
		b.WriteString("\n")
	}
	for _, w := range append(run.Shown(), waived(run)...) {
		fmt.Fprintln(&b, w)
	}
	if run.Fault != nil {
		fmt.Fprintf(&b, "last fault: %s\n", run.Fault)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func showReports(out io.Writer, run *pipeline.Run) {
	none := true
	for i := range run.Iterations {
		if text := run.Report(i + 1); text != "" {
			none = false
			fmt.Fprintln(out, typed(run, text))
		}
	}
	if none {
		fmt.Fprintln(out, "No iteration has been reviewed or tested yet.")
	}
}

func showEvents(ctx context.Context, out io.Writer, db *store.DB, id int64, asJSON bool) error {
	events, err := db.Events(ctx, id, 0)
	if err != nil {
		return err
	}
	for _, e := range events {
		data, err := json.Marshal(e.Data)
		if asJSON {
			data, err = json.Marshal(e)
		}
		if err != nil {
			return fmt.Errorf("show event %d of run %d: %w", e.Seq, id, err)
		}
		if !asJSON {
			if len(data) > 160 {
				data = append([]byte(strings.ToValidUTF8(string(data[:159]), "")), "…"...)
			}
			fmt.Fprintf(out, "%5d  %s  %-26s %-18s %s\n", e.Seq, e.Time.Format("15:04:05.000"), e.Type, e.Source, data)
			continue
		}
		fmt.Fprintf(out, "%s\n", data)
	}
	return nil
}

// showInner shows the figures of the inner loop.
func showInner(ctx context.Context, out io.Writer, db *store.DB, id int64, asJSON bool) error {
	events, err := db.Events(ctx, id, 0)
	if err != nil {
		return err
	}
	in := learn.Measure(events)
	if asJSON {
		return printing.JSON(out, in)
	}
	if len(in.Phases) == 0 {
		_, err := fmt.Fprintln(out, "No agent has done anything yet.")
		return err
	}
	phases, tools := printing.Table("phase", "executions", "turns", "time", "cost"), printing.Table("tool", "calls", "success", "mean time", "mean cost")
	for _, p := range in.Phases {
		phases.AppendRow(table.Row{p.Name, p.Runs, p.Turns, text.Clock(time.Duration(p.Millis) * time.Millisecond), cost(float64(p.MicroUSD), p.Unpriced > 0)})
	}
	for _, t := range in.Tools {
		tools.AppendRow(table.Row{t.Name, t.Calls, fmt.Sprintf("%.0f %%", 100*t.Success), fmt.Sprintf("%.0f ms", t.MeanMS), cost(t.MicroUSD, t.Unpriced > 0)})
	}
	_, err = fmt.Fprintf(out, "%s\n\n%s\n", phases.Render(), tools.Render())
	return err
}

// cost shows small sums in micro-dollars.
func cost(micros float64, unpriced bool) string {
	if unpriced {
		return "unknown"
	}
	return fmt.Sprintf("$%.4f", micros/1e6)
}

func answerCommand() *cobra.Command {
	var words string
	cmd := &cobra.Command{
		Use: "answer RUN[/MODULE] CHOICE [ARGUMENT…]", Short: "Answer a run that waits, or stop, resume or cancel it",
		Example: "  forge answer 7 continue 2 --words \"look at the caller first\"\n  forge answer 7 accept\n  forge answer 7/auth accept\n  forge answer 7 stop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return shell.Usage("answer takes a run's number and a choice: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id, part, err := runOrModule(args[0])
			if err != nil {
				return err
			}
			return answer(cmd, id, command.Line{Name: args[1], Args: strings.Join(args[2:], " "), Text: words, Part: part})
		},
	}
	cmd.Flags().StringVar(&words, "words", "", "words for the next attempt")
	return cmd
}

// resetCommand lets the guards of a run count from the beginning (R9).
func resetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reset RUN", Short: "Let a run's guards count from the beginning, and go on", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := runNumber(args[0])
			if err != nil {
				return err
			}
			return answer(cmd, id, command.Line{Name: "reset"})
		},
	}
}

// answer carries out a choice. Who has this machine's database
// may answer: there is nobody else to ask. A server on the same database goes on
// with the run; a local run goes on right here, and with the run of a module the one
// that planned it.
func answer(cmd *cobra.Command, id int64, choice command.Line) error {
	run, changed, err := tell(cmd, id, choice)
	switch {
	case err != nil || run == nil:
		return err
	case !changed && (choice.Name == "status" || choice.Name == "help"):
		return nil
	case !changed:
		return &shell.ExitError{Code: shell.Failed}
	}
	fmt.Fprintln(cmd.OutOrStdout(), summary(run))
	family := run.Part != nil || len(run.Parts) > 0 // others have to hear of it
	if run.Repo.ID != 0 || run.State != pipeline.StateRunning && !family {
		return byHand(cmd, run)
	}
	err = driveLocal(cmd, run.ID)
	var exit *shell.ExitError
	if errors.As(err, &exit) && (run.State == pipeline.StateStopped || run.Part == nil && run.State.Ended()) {
		return nil // as was asked for
	}
	return err
}

// byHand says how somebody who has stopped a local run goes on with it.
func byHand(cmd *cobra.Command, run *pipeline.Run) error {
	if run.Repo.ID == 0 && run.State == pipeline.StateStopped {
		fmt.Fprintln(cmd.OutOrStdout(), goOn(run.Branch, run.ID))
	}
	return nil
}

// tell gives the choice to the run, or to its module that it is for, and shows the
// reply. It returns that run as it is then, nil when there is no more to say, and
// whether the choice changed it.
func tell(cmd *cobra.Command, id int64, choice command.Line) (run *pipeline.Run, changed bool, err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	db, e, err := openControl(cmd)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	before, err := loadRun(ctx, db, id)
	if err != nil {
		return nil, false, err
	}
	to, words, err := e.Addressed(ctx, id, choice)
	if err != nil {
		return nil, false, err
	}
	if words != "" {
		fmt.Fprintln(out, typed(before, words))
		return before, false, nil
	}
	if to != id {
		if before, err = loadRun(ctx, db, to); err != nil {
			return nil, false, err
		}
		fmt.Fprintf(out, "For the module %s, which is run %d.\n", before.Part.Module.ID, to)
	}
	switch {
	case choice.Name == "history": // shown right here, not on GitHub
		_, err = io.WriteString(out, typed(before, before.Scratchpad()))
		return nil, false, err
	case choice.Name == "help" && before.Repo.ID == 0:
		_, err = io.WriteString(out, help(before))
		return nil, false, err
	}
	reply, err := e.Tell(ctx, to, fmt.Sprintf("cli/%d", time.Now().UnixMicro()), choice, server.OSUser(), "cli")
	if err != nil {
		return nil, false, err
	}
	if reply != "" {
		fmt.Fprintln(out, typed(before, reply))
	}
	run, err = db.Load(ctx, to)
	return run, err == nil && run.Seq > before.Seq, err
}
