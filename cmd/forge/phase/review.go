package phase

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
)

// review shows the whole change to the reviewer.
func (x *Executor) review(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, err
	}
	if job.Diff, err = x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	job.Since = func(ctx context.Context, from string) (string, error) {
		if err := x.fetch(ctx, run, from); err != nil {
			return "", err
		}
		return x.o.Gateway.Diff(ctx, run.Repo, from, run.Head)
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.o.Memory.Recall(ctx, &job, config.RoleReviewer, job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	views := x.startViews(ctx, run, &job)
	review, err := x.reviews(ctx, job)
	if err = views.add(&review, err); err != nil {
		return pipeline.Data{}, err
	}
	if err = x.recognise(ctx, run, &review); err != nil {
		return pipeline.Data{}, err
	}
	x.o.Memory.Filter(ctx, run, &review)
	return pipeline.Data{Review: &review, Instructions: job.InstructionsUsed()}, nil
}

// recognise gives the review's findings the fingerprints under which the run knows
// them. Those that were ruled open are known; what is one of them in other words is
// said once.
func (x *Executor) recognise(ctx context.Context, run *pipeline.Run, review *pipeline.Review) (err error) {
	ruled := map[string]bool{}
	for _, r := range review.Rulings {
		ruled[r.Finding] = r.Verdict == pipeline.VerdictOpen
	}
	var known, found []pipeline.Finding
	for _, f := range review.Findings {
		if ruled[f.Fingerprint] && !slices.ContainsFunc(known, func(k pipeline.Finding) bool { return k.Fingerprint == f.Fingerprint }) {
			known = append(known, f)
		} else {
			found = append(found, f)
		}
	}
	if found, err = x.resolve(ctx, run, pipeline.PhaseReview, found); err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(f pipeline.Finding) bool {
		return slices.ContainsFunc(known, func(k pipeline.Finding) bool { return k.Fingerprint == f.Fingerprint })
	})
	review.Findings = append(known, found...)
	run.KeepSeverity(review)
	for i := range review.Findings {
		review.Findings[i].ID = fmt.Sprintf("F%d", i+1)
	}
	return nil
}

// reviews asks every reviewer and makes one review of theirs.
func (x *Executor) reviews(ctx context.Context, job agent.Job) (pipeline.Review, error) {
	var all pipeline.Review
	if len(x.o.Reviewers) == 0 {
		return all, fmt.Errorf("review %s: there is no reviewer, and what nobody reviewed is not approved", job.Key)
	}
	for i, r := range x.o.Reviewers {
		one, _, err := r.Review(ctx, job)
		if err != nil {
			return pipeline.Review{}, err
		}
		if i == 0 {
			all = one
			continue
		}
		addReview(&all, one)
	}
	return all, nil
}

// addReview adds what a further reviewer says of the same head. The first one's word
// holds for where the work goes; the greater risk counts.
func addReview(all *pipeline.Review, more pipeline.Review) {
	all.Summary = strings.TrimSpace(all.Summary + "\n\n" + more.Summary)
	all.Compliance = append(slices.Clone(all.Compliance), more.Compliance...)
	all.Uncovered = append(slices.Clip(all.Uncovered), more.Uncovered...)
	all.Findings = united(all.Findings, more.Findings)
	all.Rulings = strictest(*all, more)
	all.Ruled = all.Ruled || more.Ruled
	all.Back = slices.Compact(slices.Sorted(slices.Values(slices.Concat(all.Back, more.Back))))
	all.Risk = max(all.Risk, more.Risk)
	all.NeedsHuman = cmp.Or(all.NeedsHuman, more.NeedsHuman)
	all.SendTo = cmp.Or(all.SendTo, more.SendTo)
	all.Reviewed = append(slices.Clone(all.Reviewed), more.Reviewed...)
	slices.Sort(all.Reviewed)
	all.Reviewed = slices.Compact(all.Reviewed)
	all.NotReviewed = append(slices.Clone(all.NotReviewed), more.NotReviewed...)
	all.NotReviewed = slices.DeleteFunc(all.NotReviewed, func(s pipeline.Skipped) bool { return slices.Contains(all.Reviewed, s.Path) })
}

// strictest makes one list of the rulings of two reviews: of two on one finding, the
// one counts that lets less pass. Who was asked and said nothing lets nothing pass
// either: what the other one then calls gone has no ruling, and stays open.
func strictest(a, b pipeline.Review) []pipeline.Ruling {
	var out []pipeline.Ruling
	for _, r := range slices.Concat(a.Rulings, b.Rulings) {
		if slices.ContainsFunc(out, func(o pipeline.Ruling) bool { return o.Finding == r.Finding }) {
			continue
		}
		ofA, ofB := strictestOn(r.Finding, a), strictestOn(r.Finding, b)
		silent := ofA == nil && a.Ruled || ofB == nil && b.Ruled
		if ofA == nil || ofB != nil && strictness(*ofB) > strictness(*ofA) {
			ofA = ofB
		}
		if !silent || strictness(*ofA) >= stays {
			out = append(out, *ofA)
		}
	}
	return out
}

func strictestOn(finding string, v pipeline.Review) (found *pipeline.Ruling) {
	for i := range v.Rulings {
		if r := &v.Rulings[i]; r.Finding == finding && (found == nil || strictness(*r) > strictness(*found)) {
			found = r
		}
	}
	return found
}

// stays is the strictness from which on a ruling leaves a finding open.
const stays = 2

// strictness orders rulings: still there, gone without what shows it, fixed, and
// withdrawn, which is words alone.
func strictness(r pipeline.Ruling) int {
	switch {
	case r.Verdict == pipeline.VerdictFixed && r.Changed:
		return 1
	case r.Verdict == pipeline.VerdictWithdrawn && strings.TrimSpace(r.Why) != "":
		return 0
	case r.Verdict == pipeline.VerdictOpen:
		return stays + 1
	}
	return stays
}
