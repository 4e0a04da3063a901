package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/text"
)

// spawn begins the run of a module, and writes down that it did. Done again after a
// crash, it finds the run by its key.
func (e *Engine) spawn(ctx context.Context, f *leased, act pipeline.Action) error {
	child, err := e.store.CreateRun(ctx, act.Key, *act.Start, e.now(), e.Trace(), func(ctx context.Context, tx *Tx, id int64) error {
		if _, driven := e.driven.Load(f.id); driven {
			return nil
		}
		return e.enqueue(ctx, tx, id, laneNew, true)
	})
	if err != nil {
		return fmt.Errorf("begin the run of a module: %w", err)
	}
	events := slices.Clone(act.Events)
	for i := range events {
		part := *events[i].Data.Part
		part.Run = child.ID
		events[i].Data.Part = &part
	}
	if err := e.append(ctx, f.run, events, nil); err != nil {
		return err
	}
	if child.Seq == 1 { // nothing has happened to it yet
		begun, err := e.store.Events(ctx, child.ID, 0)
		if err != nil {
			return fmt.Errorf("read the run of a module: %w", err)
		}
		e.OnEvents(child, begun[:1])
	}
	if fam, driven := e.driven.Load(f.id); driven {
		e.driven.Store(child.ID, fam)
		fam.(*family).call(child.ID)
	}
	return nil
}

// tell appends to the run of a module what its parent wants of it, and writes down
// that it did. The ids of the events make a repeat change nothing.
func (e *Engine) tell(ctx context.Context, f *leased, act pipeline.Action) error {
	child, err := e.store.Load(ctx, act.To)
	if err != nil {
		return fmt.Errorf("tell the run of a module: %w", err)
	}
	if _, err := e.appendIf(ctx, child, nil, func(*pipeline.Run) ([]pipeline.Event, error) { return act.Tell, nil }); err != nil {
		return fmt.Errorf("tell run %d: %w", act.To, err)
	}
	_, err = e.appendResult(ctx, f, act.Events, func(*pipeline.Run) bool { return true }) // it was told, whatever has happened since
	return err
}

// partShown tells the parent of a module's run how that stands, whatever became of
// showing it. Of one that has ended nothing is left to show that GitHub refuses for good.
func (e *Engine) partShown(ctx context.Context, run *pipeline.Run, err error) error {
	var f *pipeline.Fault
	if run.State.Ended() && errors.As(err, &f) && f.Final {
		e.Logger.WarnContext(ctx, "showing a module that has ended", logRun, run.ID, logError, err)
		err = nil
	}
	return errors.Join(err, e.report(ctx, run))
}

// report tells the parent of a module's run how that stands. It is done with each
// publication, so that one that was lost is made up for by the next look at the run.
func (e *Engine) report(ctx context.Context, run *pipeline.Run) error {
	part := run.AsPart()
	err := e.Record(ctx, run.Part.Run, []pipeline.Event{{
		ID: fmt.Sprintf("part/%d/rev/%d", run.ID, part.Rev), Type: pipeline.EventModuleChanged, Source: "forge",
		Data: pipeline.Data{Part: part, Upstream: run.AsksParent()},
	}}, nil)
	if err != nil {
		return fmt.Errorf("report to run %d: %w", run.Part.Run, err)
	}
	return nil
}

// Addressed is the run that a command to a run is for, as addressed says.
func (e *Engine) Addressed(ctx context.Context, id int64, cmd command.Line) (to int64, words string, err error) {
	run, err := e.store.Load(ctx, id)
	if err == nil {
		run, words, err = e.addressed(ctx, run, cmd)
	}
	if err != nil {
		return 0, "", fmt.Errorf("find whom a command to run %d is for: %w", id, err)
	}
	return idOf(run), words, nil
}

// addressed is the run that a command is for: that of the module which it names, or the
// only one that asks where the command is an answer and the run itself asks nothing.
// words are for people, where it is not clear which.
func (e *Engine) addressed(ctx context.Context, run *pipeline.Run, cmd command.Line) (to *pipeline.Run, words string, err error) {
	var names []string
	var asking []*module.Part
	if words, err = e.misnamed(ctx, run, cmd); words != "" || err != nil {
		return nil, words, err
	}
	id := int64(0)
	for i := range run.Parts {
		p := &run.Parts[i]
		if p.Run == 0 {
			continue
		}
		if names = append(names, p.ID); p.ID == cmd.Part {
			id = p.Run
		}
		if p.Question != "" && p.Left == "" {
			asking = append(asking, p)
		}
	}
	switch {
	case run.Part != nil:
		words, err := e.settled(ctx, nil, run, cmd)
		return run, words, err
	case cmd.Part == "" && (len(asking) == 0 || run.Gate() != nil || run.State.Ended() || !command.Find(cmd.Name).Answers || forAllSteps(run, cmd)):
		return run, "", nil
	case cmd.Part == "" && len(asking) > 1:
		words, err = e.asked(ctx, run, asking)
		return nil, words, err
	case cmd.Part == "":
		id = asking[0].Run
	case id == 0 && run.Unbegun(cmd.Part) != "":
		return run, "", nil // which can leave it out
	case id == 0 && len(names) == 0:
		return nil, fmt.Sprintf("%q is neither a command nor a module here. `%s` lists the commands.", cmd.Part, command.Write(run.Slug, "help")), nil
	case id == 0:
		return nil, fmt.Sprintf("There is no module %q at work here; there are %s.", cmd.Part, strings.Join(names, ", ")), nil
	}
	if to, err = e.store.Load(ctx, id); err != nil {
		return nil, "", fmt.Errorf("load the run of the module %s: %w", cmd.Part, err)
	}
	if cmd.Name == "resume" && run.State == pipeline.StateStopped {
		return nil, fmt.Sprintf("Run %d is stopped with all its modules, so the module %s stays stopped, too. `%s` lets all of them go on.",
			run.ID, cmd.Part, command.Write(run.Slug, "resume")), nil
	}
	if to.State.Ended() && !run.State.Ended() && slices.Contains([]string{"cancel", module.Later, module.Without}, cmd.Name) && run.Unbegun(cmd.Part) != "" {
		return run, "", nil // its own run has nothing to do with that: it waits to be merged
	}
	words, err = e.settled(ctx, run, to, cmd)
	return to, words, err
}

// misnamed is what is said to a line that begins with a module's name and has no command
// behind that: how the module stands, and which word is none; "" for other lines.
func (e *Engine) misnamed(ctx context.Context, run *pipeline.Run, cmd command.Line) (string, error) {
	if run == nil || cmd.Part != "" || command.Find(cmd.Name).Name != "" {
		return "", nil
	}
	p := module.Find(run.Parts, cmd.Name)
	if p == nil || p.Run == 0 {
		return "", nil
	}
	part, err := e.store.Load(ctx, p.Run)
	if err != nil {
		return "", fmt.Errorf("load the run of the module %s: %w", p.ID, err)
	}
	words := part.Summary()
	if args := strings.Fields(cmd.Args); len(args) > 0 {
		var names []string
		for _, c := range command.All {
			names = append(names, c.Name)
		}
		none := fmt.Sprintf("Nothing was done: %q is no command.", text.Clip(args[0], 40))
		if best := text.Nearest(args[0], names); best != "" {
			none += fmt.Sprintf(" Did you mean `%s`?", command.Write(run.Slug, p.ID+" "+best))
		}
		words = none + " " + words
	}
	return words, nil
}

// forAllSteps reports whether a command lets all later steps of a run begin, which no
// question of a module is about.
func forAllSteps(run *pipeline.Run, cmd command.Line) bool {
	return run.Config.Mode == config.ModeManual && cmd.Name == "approve" && cmd.Args == "all"
}

// settled says why a module that has ended does not go on by a command, "" where its own run
// answers: begun again without a word of what is wrong, one that has passed would only be
// judged and merged once more, and after its parent's end nobody would merge it.
func (e *Engine) settled(ctx context.Context, parent, run *pipeline.Run, cmd command.Line) (words string, err error) {
	spec := command.Find(cmd.Name)
	if run.Part == nil || !spec.GoesOn && !spec.Answers && !spec.Settles && cmd.Name != "stop" {
		return "", nil
	}
	if parent == nil {
		if parent, err = e.store.Load(ctx, run.Part.Run); err != nil {
			return "", fmt.Errorf("load the run that planned the module %s: %w", run.Part.Module.ID, err)
		}
	}
	p, over := module.Find(parent.Parts, run.Part.Module.ID), parent.State.Ended()
	switch {
	case p == nil, !over && !spec.GoesOn, over && !p.Passed() && !run.State.Ended():
		return "", nil
	case !over && (!p.Passed() || p.Rework != nil || cmd.Text != ""):
		return "", nil
	}
	how, none := "has ended ("+string(run.State)+")", fmt.Sprintf("`%s` changes nothing", cmd.Name)
	if p.Passed() {
		how = p.Settled()
	}
	if spec.GoesOn {
		none = fmt.Sprintf("there is nothing for `%s` to go on with", cmd.Name)
	}
	words = fmt.Sprintf("The module %s %s, so %s. ", p.ID, how, none)
	switch {
	case over && !parent.Reopenable():
		return words + fmt.Sprintf("Run %d, which planned it, has ended (%s).", parent.ID, parent.Ended), nil
	case over:
		return words + fmt.Sprintf("Run %d, which planned it, has ended: `%s` with words on further lines makes that one go on.",
			parent.ID, command.Write(parent.Slug, "continue")), nil
	}
	return words + fmt.Sprintf("`%s` with words on further lines sends it back to work.", command.Write(parent.Slug, p.ID+" continue")), nil
}

// asked says what each of several modules asks, with its choices, for somebody whose answer
// names none.
func (e *Engine) asked(ctx context.Context, run *pipeline.Run, asking []*module.Part) (string, error) {
	var names, lines []string
	for _, p := range asking {
		part, err := e.store.Load(ctx, p.Run)
		if err != nil {
			return "", fmt.Errorf("load the run of the module %s: %w", p.ID, err)
		}
		names = append(names, p.ID)
		line := fmt.Sprintf("- %s: %s", p.ID, text.Clip(text.OneLine(p.Question), 200))
		if g := part.Gate(); g != nil {
			var choices []string
			for _, c := range g.Choices {
				choices = append(choices, "`"+c.Command(cmp.Or(run.Slug, command.Slug)+" "+p.ID)+"`")
			}
			line += " Choices: " + strings.Join(choices, ", ") + "."
		}
		lines = append(lines, line)
	}
	return fmt.Sprintf("%d modules ask, so it is not clear which one this answers: %s. Name it:\n\n%s",
		len(asking), strings.Join(names, ", "), strings.Join(lines, "\n")), nil
}
