package githubtest

import (
	"fmt"
	"strings"
)

// Enqueue puts an open pull request into the merge queue of its base, as pressing
// "Merge when ready" does, and returns the merge group's commit: the pull request on
// top of the base, or of the group before it. Nobody merges it here.
func (p *Person) Enqueue(repo string, n int, onTopOf string) (sha string, err error) {
	err = p.onIssue("enqueue", repo, n, "write", func(a *account, i *issue) error {
		if i.pull == nil || i.pull.state != "open" || i.pull.draft {
			return fmt.Errorf("#%d is no open pull request, or a draft", n)
		}
		r, base := i.repo, i.repo.refs["refs/heads/"+i.pull.baseRef]
		if onTopOf != "" {
			base = onTopOf
		}
		tree, err := p.s.mergeTree(r, base, i.pull.headSHA)
		if err != nil {
			return err
		}
		if sha, err = p.s.commitTree(r, tree, []string{base, i.pull.headSHA}, a, fmt.Sprintf("Merge pull request #%d from %s", n, i.pull.headRef)); err != nil {
			return err
		}
		ref := fmt.Sprintf("refs/heads/gh-readonly-queue/%s/pr-%d-%s", i.pull.baseRef, n, base)
		if err := p.s.setRef(r, ref, sha, a); err != nil {
			return err
		}
		list, err := p.s.gitLog(r, "-1", sha)
		if err != nil || len(list) != 1 {
			return fmt.Errorf("read the merge group's commit: %w", err)
		}
		p.s.emit(r, "merge_group", "checks_requested", a, obj{"merge_group": obj{
			"head_sha": sha, "head_ref": ref, "base_sha": base, "base_ref": "refs/heads/" + i.pull.baseRef, "head_commit": shapeSimpleCommit(list[0]),
		}})
		return nil
	})
	return sha, err
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
