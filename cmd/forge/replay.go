package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/store"
)

func replayCommand() *cobra.Command {
	var tape string
	cmd := &cobra.Command{
		Use: "replay RUN", Short: "Run a past run again, offline, from its tape", Args: shell.Args(1),
		Long: "Replays a run: its model calls are played back from the tape, everything else is done again in a\n" +
			"database of its own, from the mirror of the repository that this machine keeps. Nothing is shown on\n" +
			"GitHub. With --tape FILE the tape is only written to FILE, to be read, edited or used as a model.\n" +
			"A run with modules cannot be replayed: what their agents said is on the tapes of their own runs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := runNumber(args[0])
			if err != nil {
				return err
			}
			return replay(cmd, id, tape)
		},
	}
	cmd.Flags().StringVar(&tape, "tape", "", "write the run's tape to this file and do nothing else")
	return cmd
}

func replay(cmd *cobra.Command, id int64, file string) error {
	var past *pipeline.Run
	var entries []store.TapeEntry
	err := shell.WithStore(cmd, func(db *store.DB) (err error) {
		if past, err = loadRun(cmd.Context(), db, id); err != nil {
			return err
		}
		entries, err = db.TapeAll(cmd.Context(), id)
		return err
	})
	if err != nil {
		return err
	}
	if err := unplayable(past); err != nil && file == "" {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("replay run %d: it has no tape: no model was called, or it ended longer ago than tapes are kept (keep_tapes_days)", id)
	}
	var calls [][]byte
	for _, e := range entries {
		calls = append(calls, e.Data)
	}
	tape := agent.WriteTape(calls...)
	if file != "" {
		return os.WriteFile(file, tape, 0o600)
	}
	return replayOffline(cmd, past, tape)
}

// unplayable is why a run cannot be replayed whatever is on its tape, nil where it can.
func unplayable(past *pipeline.Run) error {
	if past.Part != nil {
		return fmt.Errorf("replay run %d: it builds the module %s of run %d, and is not replayed without that", past.ID, past.Part.Module.ID, past.Part.Run)
	}
	for _, p := range past.Parts {
		if p.Run != 0 {
			return fmt.Errorf("replay run %d: a run with modules cannot be replayed, because what their agents said is on the tapes of their own runs; "+
				"`forge replay %d --tape FILE` writes that of the run itself, `forge replay %d --tape FILE` that of the module %s", past.ID, past.ID, p.Run, p.ID)
		}
	}
	return nil
}

// replayOffline carries the run out again in a database of its own.
func replayOffline(cmd *cobra.Command, past *pipeline.Run, tape []byte) (err error) {
	ctx := cmd.Context()
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	dir, err := demo.TempDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	model := filepath.Join(dir, "tape.txtar")
	if err := os.WriteFile(model, tape, 0o600); err != nil {
		return err
	}
	cfg.Run.Models = map[config.Role]string{"": "tape:" + model}
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	a, err := server.New(ctx, wired(ctx, server.Options{Config: cfg, Log: log, Local: true, Silent: true, Database: filepath.Join(dir, "replay.db"), OnEvents: d.onEvents}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	start := pipeline.Start{Repo: past.Repo, Task: past.Task, By: past.By, Config: past.Config, Base: past.Base, Branch: past.Branch}
	// Only a model that the server itself names may be a tape.
	start.Config.Models = cfg.Run.Models
	now := time.Now().UTC().Truncate(time.Microsecond)
	run, err := a.DB.CreateRun(ctx, "replay", start, now, past.Trace, nil)
	if err != nil {
		return err
	}
	if err := a.Engine.Migrate(ctx); err != nil { // what people answered is told as an order
		return err
	}
	again, err := driveAgain(ctx, a, past, run.ID)
	d.done()
	if err != nil {
		return err
	}
	d.say("\nthen:  %s\nagain: %s", past.Summary(), again.Summary())
	if again.State != past.State {
		return fmt.Errorf("the replay of run %d ended as %s; the run itself is %s", past.ID, again.State, past.State)
	}
	// The commits have other dates, so it is their content that must be the same.
	diff, err := a.Gateway.Diff(ctx, past.Repo, past.Head, again.Head)
	if err != nil {
		return err
	}
	if diff != "" {
		return fmt.Errorf("the replay of run %d made something else than the run itself:\n%s", past.ID, diff)
	}
	d.say("The replay made the same change.")
	return nil
}

// driveAgain carries a replay on, past what people answered in the run itself.
func driveAgain(ctx context.Context, a *server.App, past *pipeline.Run, id int64) (*pipeline.Run, error) {
	for {
		if err := a.Engine.Drive(ctx, id); err != nil {
			return nil, err
		}
		run, err := a.DB.Load(context.WithoutCancel(ctx), id)
		if err != nil {
			return nil, err
		}
		answer := answerOf(past, run)
		if answer == nil {
			return run, nil
		}
		cmd := command.Line{Name: answer.Choice, Text: answer.Text}
		switch {
		case answer.Choice == "continue" && answer.N > 0:
			cmd.Args = fmt.Sprint(answer.N)
		case answer.Choice == "approve" && answer.N < 0:
			cmd.Args = "all"
		case answer.Micros > 0:
			cmd.Args = fmt.Sprintf("%.2f", float64(answer.Micros)/1e6)
		}
		reply, err := a.Engine.Tell(ctx, id, "replay/"+answer.Gate, cmd, answer.By, "replay")
		if err != nil {
			return nil, err
		}
		after, err := a.DB.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		if after.Seq == run.Seq {
			return nil, fmt.Errorf("the replay of run %d does not take the answer %q that %s gave to %s: %s", past.ID, answer.Choice,
				answer.By.Login, answer.Gate, reply)
		}
	}
}

// answerOf is what people answered in the past run to the question that the replay
// waits for; nil when it does not wait, or nobody answered.
func answerOf(past, run *pipeline.Run) *pipeline.Answer {
	open := run.Gate()
	if open == nil {
		return nil
	}
	for i := range past.Gates {
		g := &past.Gates[i]
		if g.ID != open.ID || g.Kind != open.Kind || len(g.Answers) == 0 {
			continue
		}
		return &g.Answers[len(g.Answers)-1]
	}
	return nil
}
