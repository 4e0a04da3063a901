package server

import (
	"context"
	"errors"

	"forge/github"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/store"
)

// otherPulls sees what people do in runs and, where a repository's settings switch
// it on, what they remark on pull requests that are not Forge's.
type otherPulls struct {
	*github.App
	config func(ctx context.Context, repo pipeline.Repo) (config.Config, error) // of a repository, as it is now
	db     *store.DB
}

// Signals implements work.Observer.
func (o otherPulls) Signals(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error) {
	if run != nil {
		return o.App.Signals(ctx, run, n, known)
	}
	cfg, err := o.config(ctx, n.Repo)
	var wrong *pipeline.Fault
	if err != nil && !errors.As(err, &wrong) { // settings with a mistake switch nothing on
		return nil, err
	}
	if err == nil && cfg.Learn.OtherPulls {
		return o.App.Signals(ctx, nil, n, nil)
	}
	if n.Feedback == nil || n.Feedback.Action == "created" {
		return nil, nil
	}
	// It may have been on when the comment was made: who deletes it takes it back.
	signals, err := o.App.Signals(ctx, nil, n, nil)
	var out []pipeline.Signal
	for _, s := range signals {
		if !s.Off {
			continue
		}
		had, err := o.db.HasSignal(ctx, n.Repo.Scope(), s.Key)
		if err != nil {
			return nil, err
		}
		if had {
			out = append(out, s)
		}
	}
	return out, err
}
