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
	owners, err := m.sharing(ctx, byScope)
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

// sharing are the repositories that share and have something to, by owner: as the newest run
// of each was set.
func (m *Learner) sharing(ctx context.Context, byScope map[string][]pipeline.Learning) (map[string][]string, error) {
	repos, err := m.o.DB.Repos(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, repo := range repos {
		owner, _, ok := strings.Cut(repo, "/")
		if !ok || len(byScope[record.ScopeOf(repo)]) == 0 {
			continue // before its newest run is read
		}
		rows, err := m.o.DB.Runs(ctx, store.Filter{Repo: repo, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
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
	known := map[string]*pipeline.Learning{}
	for i := range there {
		known[there[i].Key] = &there[i]
	}
	confirmed := map[string]bool{}
	for _, s := range learn.Sharing(list, there, org) {
		confirmed[s.Learning.Key] = true
		if err := m.keepShared(ctx, s, known[s.Learning.Key], now); err != nil {
			return err
		}
	}
	for _, l := range there {
		if !learn.Shared(&l) || l.State != pipeline.LearningActive || confirmed[l.Key] {
			continue
		}
		l.State = pipeline.LearningWithdrawn // it is told again once two confirm it
		err := m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if _, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l}); err != nil {
				return err
			}
			return m.o.DB.NoteLearning(ctx, tx, l.ID, pipeline.Actor{}, now, "withdrawn: no two repositories that share confirm it any more")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keepShared keeps what repositories have in common, unless it is told already or people took it
// out of use, and what is new of their evidence for it.
func (m *Learner) keepShared(ctx context.Context, s learn.Share, known *pipeline.Learning, now time.Time) error {
	again := known == nil || known.State == pipeline.LearningWithdrawn
	if !again {
		past, err := m.o.DB.Evidence(ctx, known.ID)
		if err != nil {
			return err
		}
		if s.Evidence = learn.Fresh(past, s.Evidence); len(s.Evidence) == 0 || known.State != pipeline.LearningActive {
			return nil
		}
	}
	s.Learning.Created, s.Learning.Touched = now, now
	err := m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if again {
			if _, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{s.Learning}); err != nil {
				return err
			}
		}
		return m.o.DB.ApplyEvidence(ctx, tx, s.Learning.Scope, s.Evidence)
	})
	if err == nil && again {
		m.o.Log.InfoContext(ctx, "two repositories have learnt the same; the others are told", "why", s.Learning.Scope+" "+s.Learning.Key)
	}
	return err
}

// shares reports whether a run is told a learning beside others: what other repositories have
// learnt only where it shares, and not what it is told by its own learning already.
func shares(run *pipeline.Run, l *pipeline.Learning, told []pipeline.Learning) bool {
	if learn.Shared(l) && !run.Config.Learn.Share {
		return false
	}
	return !slices.ContainsFunc(told, func(o pipeline.Learning) bool { return learn.Shared(&o) != learn.Shared(l) && learn.Same(&o, l) })
}
