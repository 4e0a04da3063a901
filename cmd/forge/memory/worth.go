package memory

import (
	"context"
	"slices"
	"time"

	"forge/learn/impact"
	"forge/learn/nearest"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// ReportWorth reports what learning is worth in repositories together, "" being all
// of them.
func ReportWorth(ctx context.Context, db *store.DB, o impact.Options, repos ...string) (impact.Report, error) {
	outcomes, err := outcomesOf(ctx, db, o, repos)
	if err != nil {
		return impact.Report{}, err
	}
	heard, err := feedbackIn(ctx, db, o, repos)
	if err != nil {
		return impact.Report{}, err
	}
	rep := impact.Of(outcomes, heard, o)
	var drawn []record.Outcome
	for _, repo := range repos {
		list, err := db.Drawn(ctx, repo)
		if err != nil {
			return impact.Report{}, err
		}
		drawn = append(drawn, list...)
	}
	rep.Memory = impact.WholeOf(drawn)
	if rep.Looks, err = looked(ctx, db, repos...); err != nil {
		return impact.Report{}, err
	}
	ids := make([]int64, len(rep.Learnings))
	for i, r := range rep.Learnings {
		ids[i] = r.Learning
	}
	said, err := db.LearningTexts(ctx, ids)
	if err != nil {
		return impact.Report{}, err
	}
	for i := range rep.Learnings {
		r := &rep.Learnings[i]
		l := said[r.Learning]
		r.Scope, r.Content, r.State = l.Scope, l.Content, l.State
	}
	return rep, nil
}

// looked is what became of what looks back taught in repositories, "" being all of them.
func looked(ctx context.Context, db *store.DB, repos ...string) ([]impact.Look, error) {
	f := store.MemoryFilter{Source: pipeline.SourceReflection, States: []pipeline.LearningState{"*"}, Limit: Everything}
	if !slices.Contains(repos, "") {
		for _, repo := range repos {
			f.Scopes = append(f.Scopes, record.ScopeOf(repo))
		}
		if len(f.Scopes) == 0 {
			return impact.Looks(nil), nil
		}
	}
	list, err := db.Learnings(ctx, f)
	taught := make([]impact.Taught, len(list))
	for i := range list {
		l := &list[i]
		taught[i] = impact.Taught{Key: l.Key, Given: l.Recalled > 0, Used: l.Used > 0,
			Wrong: l.Against > l.For || l.State == pipeline.LearningRetired || l.State == pipeline.LearningForgotten}
	}
	return impact.Looks(taught), err
}

// feedbackIn is what became of findings in repositories, "" being all of them.
func feedbackIn(ctx context.Context, db *store.DB, o impact.Options, repos []string) (out impact.Feedback, err error) {
	for _, repo := range repos {
		held, err := db.SuppressedFindings(ctx, repo, o.Since())
		if err != nil {
			return out, err
		}
		for _, h := range held {
			out.Suppressed = append(out.Suppressed, h.At)
		}
	}
	if slices.Contains(repos, "") {
		if repos, err = db.Repos(ctx); err != nil {
			return out, err
		}
	}
	for _, repo := range repos {
		signals, err := db.Signals(ctx, record.ScopeOf(repo))
		if err != nil {
			return out, err
		}
		for _, d := range nearest.Decisions(signals) {
			if !d.At.Before(o.Since()) {
				out.Decided = append(out.Decided, impact.Decided{At: d.At, Dismissed: d.Dismissed})
			}
		}
	}
	return out, nil
}

// Asked says, by repository, what became of findings that were posted to see what is held
// back there for being near to refusals. Repositories where none was have no entry.
func Asked(ctx context.Context, db *store.DB, now time.Time) (map[string]nearest.Asked, error) {
	repos, err := db.Repos(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]nearest.Asked{}
	for _, repo := range repos {
		signals, err := db.Signals(ctx, record.ScopeOf(repo))
		if err != nil {
			return nil, err
		}
		if a := nearest.AskedOf(nearest.Decisions(signals), now); a.Findings > 0 {
			out[repo] = a
		}
	}
	return out, nil
}

// AskedFix says what to do where what is held back is no less wanted than the rest.
const AskedFix = "nothing is held back there for being near to what was refused until that changes"

func outcomesOf(ctx context.Context, db *store.DB, o impact.Options, repos []string) (out []record.Outcome, err error) {
	for _, repo := range repos {
		list, err := db.Outcomes(ctx, repo, o.Since())
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}
