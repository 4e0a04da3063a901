package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"forge/pipeline"
	"forge/pipeline/fence"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Push sets a branch to a commit, if it is still at the old one. Only branches under
// the gateway's prefix, and only forward: the old one must be an ancestor. A branch
// that is at the commit already is a success. Errors are *MovedError, *RejectedError or
// *pipeline.Fault; its class is secret when one of the commits looks like it holds one.
func (g *Gateway) Push(ctx context.Context, repo pipeline.Repo, token string, o workspace.PushOptions) error {
	branch, sha, old := o.Branch, o.SHA, o.Old
	ref, err := g.target(branch, sha)
	if err != nil {
		return err
	}
	call, address, err := g.remote(repo, token)
	if err != nil {
		return &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error(), Final: true}
	}
	lock := g.lock(repo)
	lock.Lock()
	defer lock.Unlock()
	if old != "" {
		if err := g.checkForward(ctx, repo, branch, sha, old); err != nil {
			return err
		}
	}
	if err := g.checkPush(ctx, g.git(repo), o); err != nil {
		return err
	}
	if err := fence.Check(ctx); err != nil {
		return err
	}
	push := call
	push.args = []string{"push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
		"--force-with-lease=" + ref + ":" + old, address, sha + ":" + ref}
	if _, err = g.call(ctx, repo, push); err != nil {
		err = g.pushFailed(ctx, repo, pushAttempt{call: call, address: address, branch: branch, ref: ref, sha: sha, old: old}, err)
	}
	if err != nil {
		return err
	}
	// What was pushed needs no fetch; a failure here costs just that fetch.
	if _, err := g.git(repo).run(ctx, gitCall{args: []string{"update-ref", keptRef(ref), sha}}); err != nil {
		g.log.Debug("remember pushed branch", "repo", repo.FullName(), "branch", branch, "error", err)
	}
	return nil
}

// Delete deletes a branch if it is still at the old commit; one that is gone already is a
// success. Its errors are Push's.
func (g *Gateway) Delete(ctx context.Context, repo pipeline.Repo, token, branch, old string) error {
	ref, err := g.target(branch, old)
	if err != nil {
		return err
	}
	call, address, err := g.remote(repo, token)
	if err != nil {
		return &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error(), Final: true}
	}
	lock := g.lock(repo)
	lock.Lock()
	defer lock.Unlock()
	if err := fence.Check(ctx); err != nil {
		return err
	}
	push := call
	push.args = []string{"push", "--porcelain", "--no-verify", "--force-with-lease=" + ref + ":" + old, address, ":" + ref}
	if _, err = g.call(ctx, repo, push); err != nil {
		return g.pushFailed(ctx, repo, pushAttempt{call: call, address: address, branch: branch, ref: ref, old: old}, err)
	}
	if _, err := g.git(repo).run(ctx, gitCall{args: []string{"update-ref", "-d", keptRef(ref)}}); err != nil {
		g.log.Debug("forget a deleted branch", "repo", repo.FullName(), "branch", branch, "error", err)
	}
	return nil
}

// target is the ref of a branch that may be changed. sha is a commit of the change.
func (g *Gateway) target(branch, sha string) (string, error) {
	ref, err := fullRef(branch)
	if err == nil {
		err = g.checkBranch(branch)
	}
	if err == nil {
		err = checkOIDs(sha)
	}
	return ref, err
}

// checkBranch refuses branches that are not Forge's own.
func (g *Gateway) checkBranch(branch string) error {
	if _, err := fullRef(branch); err != nil {
		return err
	}
	if !strings.HasPrefix(branch, g.prefix) || branch == g.prefix {
		return fmt.Errorf("push to branch %q: only branches under %s may be pushed", branch, g.prefix)
	}
	return nil
}

// checkForward refuses a push that would take commits away.
func (g *Gateway) checkForward(ctx context.Context, repo pipeline.Repo, branch, sha, old string) error {
	if err := checkOIDs(old); err != nil {
		return err
	}
	switch there, err := g.git(repo).holds(ctx, sha, old); {
	case err != nil:
		return fmt.Errorf("push %s to %s: %w", sha, branch, err)
	case !there:
		return fmt.Errorf("push %s to %s: the branch's head %s is not among its ancestors, commits would be lost", sha, branch, old)
	}
	return nil
}

// pushAttempt is what a failed push tried.
type pushAttempt struct {
	call                           gitCall
	address, branch, ref, sha, old string
}

var remoteRefused = lazyregexp.New(`GH0\d\d|pre-receive hook declined|protected branch|hook declined|refusing to|denied by|prohibited|cannot be created|push declined`)

// pushFailed finds out why a push failed, and whether it did.
func (g *Gateway) pushFailed(ctx context.Context, repo pipeline.Repo, a pushAttempt, err error) error {
	var failed *gitError
	if !errors.As(err, &failed) {
		return remoteFault("push", repo, err)
	}
	if remoteRefused.MatchString(failed.stderr + failed.stdout) {
		return &workspace.RejectedError{Branch: a.branch, Reason: refusal(failed)}
	}
	rejected := strings.Contains(failed.stdout, "[rejected]") || strings.Contains(failed.stdout, "[remote rejected]") ||
		strings.Contains(failed.stdout, "[remote failure]")
	if !rejected {
		return remoteFault("push", repo, err)
	}
	look := a.call
	look.args = []string{"ls-remote", "--refs", a.address, a.ref}
	out, lsErr := g.call(ctx, repo, look)
	if lsErr != nil {
		return remoteFault("push", repo, lsErr)
	}
	head, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	switch head {
	case a.sha:
		return nil
	case a.old:
		return &workspace.RejectedError{Branch: a.branch, Reason: refusal(failed)}
	}
	return &workspace.MovedError{Branch: a.branch, Head: head}
}

// refusal is what the remote said, without git's own talk.
func refusal(failed *gitError) string {
	var words []string
	for l := range strings.SplitSeq(failed.stderr, "\n") {
		if rest, ok := strings.CutPrefix(l, "remote:"); ok && strings.TrimSpace(rest) != "" {
			words = append(words, strings.TrimSpace(rest))
		}
	}
	for l := range strings.SplitSeq(failed.stdout, "\n") {
		if strings.HasPrefix(l, "!") {
			if _, why, ok := strings.Cut(l, "["); ok {
				words = append(words, "["+why)
			}
		}
	}
	said := strings.Join(words, " ")
	if said == "" {
		said = lastLine(failed.stderr)
	}
	return text.Within(said, 1000)
}
