package phase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// implement lets the implementer edit, and makes one commit of what changed.
func (x *Executor) implement(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	if job.Diff, err = x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.o.Memory.Recall(ctx, &job, config.RoleImplementer, job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	locks := &locking{x: x, run: run, ws: ws}
	if x.o.Dependencies.Registries != nil && run.Config.Setup.Installs() {
		job.Lock, job.Install = locks.bring, locks.install
	}
	impl, _, err := x.o.Implementer.Implement(ctx, job)
	if err != nil {
		return pipeline.Data{}, err
	}
	wrong, err := locks.bring(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	if len(wrong) > 0 && impl.Unable == "" {
		return pipeline.Data{}, &pipeline.Fault{Class: pipeline.FaultAgent, Message: strings.Join(wrong, "\n")}
	}
	changes, err := ws.Changes(ctx)
	if err != nil {
		return pipeline.Data{}, asAgentFault(err)
	}
	bot, err := x.o.Identity(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	taken, err := x.takenFrom(ctx, run)
	if err != nil {
		return pipeline.Data{}, err
	}
	impl.Parent, impl.Files, impl.Locked = run.Head, nil, locks.files
	for _, c := range changes {
		impl.Files = append(impl.Files, c.Path)
	}
	message, err := x.commitMessage(ctx, run, job.Ref.Mode, impl)
	if err != nil {
		return pipeline.Data{}, err
	}
	impl.Head, err = x.o.Gateway.Commit(ctx, run.Repo, workspace.CommitOptions{
		Parent: run.Head, Message: message, Signoff: run.Config.Signoff, Run: fmt.Sprintf("%s/%d", run.Trace, job.Ref.Iteration),
		Author: bot.Name, Email: bot.Email,
		Time: commitTime(run), Changes: changes, Protected: run.Config.Paths.Protected, Owners: ownersOf(run), Taken: taken,
		Cleared: slices.Sorted(maps.Keys(run.Cleared)),
	})
	if err != nil {
		return pipeline.Data{}, asAgentFault(err)
	}
	if impl.Head, err = x.signed(ctx, run, impl.Head); err != nil {
		return pipeline.Data{}, err
	}
	impl.Anew = impl.Head == impl.Parent && impl.Unable == "" && impl.Contract == "" && run.Anew()
	return pipeline.Data{Implementation: &impl, Instructions: job.InstructionsUsed()}, nil
}

// signed returns what the remote makes of a new head, where it is to sign it.
func (x *Executor) signed(ctx context.Context, run *pipeline.Run, head string) (string, error) {
	if x.o.Commit == nil || head == run.Head {
		return head, nil
	}
	return x.o.Commit(ctx, run, head)
}

// commitTime is when the iteration began, so that a phase that is carried out
// again after a crash makes the very same commit.
func commitTime(run *pipeline.Run) time.Time {
	if it := run.Current(); it != nil {
		return it.Started
	}
	return run.Started
}

// asAgentFault turns a refused change (a protected path, a symbolic link) into
// the implementer's fault: it is told, and tries again.
func asAgentFault(err error) error {
	var f *pipeline.Fault
	if errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return err
	}
	return &pipeline.Fault{Class: pipeline.FaultAgent, Message: err.Error()}
}

// commitMessage says what the commit does and, for a fix, what it is for. What it is
// for are others' words, which the implementer cannot change: a secret in them is
// masked, while one in its own words asks a human.
func (x *Executor) commitMessage(ctx context.Context, run *pipeline.Run, mode pipeline.Mode, impl pipeline.Implementation) (string, error) {
	subject, rest, _ := strings.Cut(strings.TrimSpace(impl.Summary), "\n")
	if subject == "" {
		subject = run.Task.Title
	}
	subject, err := x.subject(ctx, run, mode, subject)
	if err != nil {
		return "", err
	}
	if r := []rune(subject); len(r) > 72 {
		rest = subject + "\n" + rest
		subject = string(r[:71]) + "…"
	}
	var b strings.Builder
	b.WriteString(subject + "\n")
	if rest = strings.TrimSpace(rest); rest != "" {
		b.WriteString("\n" + rest + "\n")
	}
	if len(impl.Addressed) > 0 {
		b.WriteString("\n")
		for _, a := range impl.Addressed {
			b.WriteString("- " + x.o.Gateway.Mask(strings.Join(strings.Fields(a), " ")) + "\n")
		}
	}
	return b.String(), nil
}
