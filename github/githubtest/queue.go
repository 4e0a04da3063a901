package githubtest

import (
	"fmt"
	"strings"
)

// RequireQueue lets a branch be merged into by a merge queue alone.
func (s *Server) RequireQueue(repo, branch string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err == nil {
		r.queues = map[string]bool{branch: true}
	}
	return err
}

// Enqueue puts an open pull request into the merge queue of its base, as pressing
// "Merge when ready" does, and returns the merge group's commit: the pull request on
// top of the base, or of the group before it. Nobody merges it by itself here: see
// LeaveQueue.
func (p *Person) Enqueue(repo string, n int, onTopOf string) (sha string, err error) {
	err = p.onIssue("enqueue", repo, n, "write", func(a *account, i *issue) error {
		if i.pull == nil {
			return fmt.Errorf("#%d is no pull request", n)
		}
		sha, err = p.s.enqueue(i.pull, a, onTopOf)
		return err
	})
	return sha, err
}

// LeaveQueue takes a pull request out of the merge queue, merged or given back.
func (p *Person) LeaveQueue(repo string, n int, merged bool) error {
	return p.onIssue("take out of the queue", repo, n, "write", func(a *account, i *issue) error {
		if i.pull == nil || !i.pull.queued {
			return fmt.Errorf("#%d is not in the merge queue", n)
		}
		i.pull.queued = false
		if !merged {
			p.s.emitPull(i.pull, "dequeued", a, obj{"reason": "CI_FAILURE"})
			return nil
		}
		_, err := p.s.mergePull(i.pull, a, "merge", "", "")
		return err
	})
}

// Queued reports whether a pull request is in the merge queue.
func (p *Person) Queued(repo string, n int) bool {
	var in bool
	err := p.onIssue("see the queue of", repo, n, "read", func(_ *account, i *issue) error {
		in = i.pull != nil && i.pull.queued
		return nil
	})
	return err == nil && in
}

func (s *Server) enqueue(p *pull, a *account, onTopOf string) (sha string, err error) {
	if p.state != "open" || p.draft {
		return "", fmt.Errorf("#%d is no open pull request, or a draft", p.number)
	}
	r, base := p.repo, p.repo.refs["refs/heads/"+p.baseRef]
	if onTopOf != "" {
		base = onTopOf
	}
	tree, err := s.mergeTree(r, base, p.headSHA)
	if err != nil {
		return "", err
	}
	if sha, err = s.commitTree(r, tree, []string{base, p.headSHA}, a, fmt.Sprintf("Merge pull request #%d from %s", p.number, p.headRef)); err != nil {
		return "", err
	}
	ref := fmt.Sprintf("refs/heads/gh-readonly-queue/%s/pr-%d-%s", p.baseRef, p.number, base)
	if err := s.setRef(r, ref, sha, a); err != nil {
		return "", err
	}
	c, err := s.commitAt(r, sha)
	if err != nil {
		return "", fmt.Errorf("read the merge group's commit: %w", err)
	}
	p.queued = true
	s.emit(r, "merge_group", "checks_requested", a, obj{"merge_group": obj{
		"head_sha": sha, "head_ref": ref, "base_sha": base, "base_ref": "refs/heads/" + p.baseRef, "head_commit": shapeSimpleCommit(c),
	}})
	return sha, nil
}

// enqueueGQL is the mutation enqueuePullRequest.
func (c *call) enqueueGQL(in map[string]any) (obj, error) {
	thing, err := c.find(in["pullRequestId"])
	if err != nil {
		return nil, err
	}
	p, isPull := thing.(*pull)
	switch want := in["expectedHeadOid"]; {
	case !isPull:
		return nil, noNode(fmt.Sprint(in["pullRequestId"]))
	case !p.repo.queues[p.baseRef]:
		return nil, unprocessable("A merge queue is not enabled for this branch")
	case want != nil && want != p.headSHA:
		return nil, unprocessable("Head branch was modified. Review and try the merge again.")
	case p.queued:
		return nil, unprocessable("Pull request is already in the queue")
	}
	if _, err := c.s.enqueue(p, c.actor, ""); err != nil {
		return nil, unprocessable("Pull request " + err.Error())
	}
	return obj{"mergeQueueEntry": fields{"MergeQueueEntry", obj{"id": "MQE_" + p.pullNode, "position": 1}}}, nil
}

// dequeueGQL is the mutation dequeuePullRequest.
func (c *call) dequeueGQL(in map[string]any) (obj, error) {
	thing, err := c.find(in["id"])
	if err != nil {
		return nil, err
	}
	p, isPull := thing.(*pull)
	switch {
	case !isPull:
		return nil, noNode(fmt.Sprint(in["id"]))
	case !p.queued:
		return nil, unprocessable("Pull request is not in the queue")
	}
	p.queued = false
	c.s.emitPull(p, "dequeued", c.actor, obj{"reason": "MANUAL"})
	return obj{"mergeQueueEntry": fields{"MergeQueueEntry", obj{"id": "MQE_" + p.pullNode, "position": 1}}}, nil
}

// ChecksOf returns the App's check runs on a commit.
func (s *Server) ChecksOf(repo, sha string) ([]CheckRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return nil, err
	}
	var out []CheckRun
	for _, su := range r.suites {
		if su.app != nil || !strings.EqualFold(su.head, sha) {
			continue
		}
		for _, c := range su.runs {
			out = append(out, c.view())
		}
	}
	return out, nil
}
