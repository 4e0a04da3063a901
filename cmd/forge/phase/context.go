package phase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
)

// maxInstructionFiles caps how many of a repository's instructions are read.
const maxInstructionFiles = 12

// planning are the phases that go before the work.
var planning = []pipeline.Phase{pipeline.PhaseAnalyse, pipeline.PhaseDesign, pipeline.PhasePlan}

// orient gives a job what every role is told: the files of the base, the repository's
// instructions as they stand there, and what people with write access said on the
// issue. A plan that is made again is for the work as it stands, with its files.
func (x *Executor) orient(ctx context.Context, run *pipeline.Run, job *agent.Job) error {
	if err := x.fetch(ctx, run, run.Base); err != nil {
		return err
	}
	var err error
	if job.Tree, err = x.o.Gateway.Files(ctx, run.Repo, run.Base); err != nil {
		return err
	}
	if job.Instructions, err = x.trusted(ctx, run, job.Tree); err != nil {
		return err
	}
	if job.Skills, job.SkillsLeft, err = x.skills(ctx, run, job.Tree); err != nil {
		return err
	}
	if from := planned(run); slices.Contains(planning, job.Ref.Phase) && from != run.Base {
		if job.Tree, err = x.o.Gateway.Files(ctx, run.Repo, from); err != nil {
			return err
		}
		job.TreeAt = "the head of the work"
	}
	job.Comments, err = x.comments(ctx, run, job.Ref.Phase)
	return err
}

// touched are the files that a run's work is about, as far as that is known.
func touched(run *pipeline.Run) []string {
	var out []string
	if run.Plan != nil {
		out = append(out, run.Plan.Files...)
	}
	for _, it := range run.Iterations {
		if it.Impl != nil {
			out = append(out, it.Impl.Files...)
		}
	}
	return out
}

// trusted reads the repository's own instructions, from the base: what the work under
// review changes of them does not count. The base of a module holds such work already,
// that of the run which planned it does not.
func (x *Executor) trusted(ctx context.Context, run *pipeline.Run, tree []string) ([]agent.Doc, error) {
	base, tree, err := x.trustedTree(ctx, run, tree)
	if err != nil {
		return nil, err
	}
	return x.instructions(ctx, run, base, tree)
}

// trustedTree is the commit that instructions and skills are read from, with its files;
// tree are those of the run's base.
func (x *Executor) trustedTree(ctx context.Context, run *pipeline.Run, tree []string) (string, []string, error) {
	if run.Part == nil {
		return run.Base, tree, nil
	}
	base := run.Part.Base
	if err := x.fetch(ctx, run, base); err != nil {
		return "", nil, err
	}
	tree, err := x.o.Gateway.Files(ctx, run.Repo, base)
	return base, tree, err
}

// skills are the repository's own, and those of Forge that its settings name; of one name
// the repository's.
func (x *Executor) skills(ctx context.Context, run *pipeline.Run, tree []string) (out []agent.Skill, left []string, err error) {
	base, tree, err := x.trustedTree(ctx, run, tree)
	if err != nil {
		return nil, nil, err
	}
	paths, left := agent.SkillPaths(tree)
	files, err := x.o.Gateway.ReadFiles(ctx, run.Repo, base, paths)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range paths {
		if s := agent.ReadSkill(p, files[p]); s.Text != "" {
			out = append(out, s)
		} else {
			left = append(left, fmt.Sprintf("%q, because it has no text", p))
		}
	}
	own, err := agent.Builtin(run.Config.Skills)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range own {
		if !slices.ContainsFunc(out, func(o agent.Skill) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out, left, nil
}

func (x *Executor) instructions(ctx context.Context, run *pipeline.Run, base string, tree []string) ([]agent.Doc, error) {
	var out []agent.Doc
	paths := agent.InstructionPaths(tree, touched(run))
	for _, p := range paths[:min(len(paths), maxInstructionFiles)] {
		text, err := x.o.Gateway.File(ctx, run.Repo, base, p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// Often one is a symbolic link to another, whose content is that one's path.
		if to := path.Join(path.Dir(p), string(text)); len(text) < 200 && !strings.Contains(string(text), "\n") && slices.Contains(tree, to) {
			if slices.Contains(paths, to) {
				continue
			}
			if text, err = x.o.Gateway.File(ctx, run.Repo, base, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		out = append(out, agent.Doc{Path: p, Text: string(text)})
	}
	return out, nil
}

// comments reads what was said on the issue and the pull request: anew when a plan, an
// iteration or a review begins, so that all who work on that know the same.
func (x *Executor) comments(ctx context.Context, run *pipeline.Run, p pipeline.Phase) ([]agent.Comment, error) {
	pull := 0
	if run.Published.Pull != nil {
		pull = run.Published.Pull.Number
	}
	if x.o.Comments == nil || run.Task.Issue == 0 && pull == 0 {
		return nil, nil
	}
	x.mu.Lock()
	known, ok := x.said[run.ID]
	x.mu.Unlock()
	whole := p == pipeline.PhaseReview && run.Part == nil // what a module's review does not hear, that of all will
	if ok && p != pipeline.PhaseImplement && !whole && !slices.Contains(planning, p) {
		return known, nil
	}
	list, err := x.o.Comments(ctx, run.Repo, run.Task.Issue, pull)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.said[run.ID] = list
	return list, nil
}
