package sandbox

import (
	"context"
	"errors"
	"slices"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// Refused is asked what a repository is called now, and for another token than the one
// that its remote did not take.
type Refused func(ctx context.Context, repo pipeline.Repo, token string) (pipeline.Repo, string, error)

// OnRefused sets who is asked when a remote does not take a call; nobody is at first.
func (g *Gateway) OnRefused(f Refused) { g.refused.Store(&f) }

// elsewhere matches what git says when the token has ended, or the repository is not where
// it was: renamed, or another one has its name.
var elsewhere = lazyregexp.New(`Authentication failed|could not read Username|error: 40[134]|error: 30[1278]|redirect|not found|not our ref|couldn't find remote ref`)

// call talks to a remote. One that does not take it is asked a second time, with another
// token or at another address, when there is one.
func (g *Gateway) call(ctx context.Context, repo pipeline.Repo, c gitCall) ([]byte, error) {
	out, err := g.git(repo).run(ctx, c)
	var failed *gitError
	ask := g.refused.Load()
	if ask == nil || c.token == "" || !errors.As(err, &failed) || !elsewhere.MatchString(failed.stderr) {
		return out, err
	}
	now, token, askErr := (*ask)(ctx, repo, c.token)
	if fault := (*pipeline.Fault)(nil); errors.As(askErr, &fault) {
		return nil, fault
	}
	if askErr != nil || token == c.token && now.CloneURL == repo.CloneURL {
		g.log.DebugContext(ctx, "a remote refuses a call, and nothing else is known of it", "repo", repo.FullName(), "error", askErr)
		return out, err
	}
	again, address, remoteErr := g.remote(now, token)
	if remoteErr != nil {
		return out, err
	}
	again.max, again.args = c.max, slices.Clone(c.args)
	if i := slices.Index(again.args, c.remote.String()); i >= 0 {
		again.args[i] = address
	}
	return g.git(repo).run(ctx, again)
}
