package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// share tells all repositories of an owner that want it (learn.share) what two of them have
// learnt, and ends that when no two confirm it any more. byScope are the active learnings.
func (m *Learner) share(ctx context.Context, byScope map[string][]pipeline.Learning, now time.Time) error {
	owners, err := m.sharing(ctx)
	if err != nil {
		return err
	}
	for org := range byScope { // what was shared ends, too, where nobody shares any more
		if owner, ok := strings.CutPrefix(org, "org:"); ok && owners[owner] == nil {
			owners[owner] = []string{}
		}
	}
	for owner, repos := range owners {
		var list []pipeline.Learning
		for _, repo := range repos {
			list = append(list, byScope[record.ScopeOf(repo)]...)
		}
		if err := m.shareIn(ctx, record.ScopeOf(owner), list, now); err != nil {
			return err
		}
	}
	return nil
}

// sharing are the repositories that share, by owner: as the newest run of each was set.
func (m *Learner) sharing(ctx context.Context) (map[string][]string, error) {
	repos, err := m.o.DB.Repos(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, repo := range repos {
		rows, err := m.o.DB.Runs(ctx, store.Filter{Repo: repo, Limit: 1})
		if err != nil {
			return nil, err
		}
		owner, _, ok := strings.Cut(repo, "/")
		if len(rows) == 0 || !ok {
			continue
		}
		run, err := m.o.DB.Load(ctx, rows[0].ID)
		if err != nil {
			return nil, err
		}
		if run.Config.Learn.Share {
			out[owner] = append(out[owner], repo)
		}
	}
	return out, nil
}

// shareIn keeps what an organisation's repositories have in common. What people took out of
// use stays so.
func (m *Learner) shareIn(ctx context.Context, org string, list []pipeline.Learning, now time.Time) error {
	there, err := m.o.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{org}, States: []pipeline.LearningState{"*"}, Limit: Everything})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, l := range there {
		known[l.Key] = true
	}
	confirmed := map[string]bool{}
	for _, s := range learn.Sharing(list, org) {
		confirmed[s.Learning.Key] = true
		if known[s.Learning.Key] {
			continue
		}
		s.Learning.Created, s.Learning.Touched = now, now
		err := m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if _, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{s.Learning}); err != nil {
				return err
			}
			return m.o.DB.ApplyEvidence(ctx, tx, org, s.Evidence)
		})
		if err != nil {
			return err
		}
		m.o.Log.InfoContext(ctx, "two repositories have learnt the same; the others are told", "why", org+" "+s.Learning.Key)
	}
	for _, l := range there {
		if !learn.Shared(&l) || l.State != pipeline.LearningActive || confirmed[l.Key] {
			continue
		}
		err := m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return m.o.DB.RetireLearning(ctx, tx, l.ID, now, "no two repositories that share confirm it any more")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shares reports whether a run is told what other repositories have learnt.
func shares(run *pipeline.Run, l *pipeline.Learning, told []pipeline.Learning) bool {
	if !learn.Shared(l) {
		return true
	}
	return run.Config.Learn.Share && !slices.ContainsFunc(told, func(o pipeline.Learning) bool { return o.Content == l.Content })
}
