package githubtest

import (
	"errors"
	"fmt"
	"strings"
)

// SetDraft turns a pull request into a draft, or marks it as ready.
func (p *Person) SetDraft(repo string, n int, draft bool) error {
	return p.onIssue("change the draft state of", repo, n, "author", func(a *account, i *issue) error {
		switch {
		case i.pull == nil:
			return errors.New("it is no pull request")
		case i.state != "open":
			return errors.New("it is closed")
		case i.pull.draft == draft:
			return errors.New("it is in that state already")
		}
		p.s.setDraft(i.pull, a, draft)
		return nil
	})
}

// Retarget lets a pull request go into another branch.
func (p *Person) Retarget(repo string, n int, base string) error {
	return p.onIssue("change the base of", repo, n, "author", func(a *account, i *issue) error {
		sha := i.repo.refs["refs/heads/"+base]
		switch {
		case i.pull == nil:
			return errors.New("it is no pull request")
		case sha == "":
			return fmt.Errorf("there is no branch %q", base)
		case i.pull.baseRef == base || i.pull.headRef == base:
			return fmt.Errorf("it cannot go into %s", base)
		}
		changes := obj{"base": obj{"ref": obj{"from": i.pull.baseRef}, "sha": obj{"from": i.pull.baseSHA}}}
		i.pull.baseRef, i.pull.baseSHA, i.updated = base, sha, p.s.now()
		p.s.emitPull(i.pull, "edited", a, obj{"changes": changes})
		return nil
	})
}

// DeleteBranch deletes a branch, which closes its pull requests.
func (p *Person) DeleteBranch(repo, branch string) error {
	return p.act("delete branch "+branch, repo, func(a *account, r *repository) error {
		ref := "refs/heads/" + branch
		old := r.refs[ref]
		switch {
		case !r.can(a, "write"):
			return fmt.Errorf("this needs the role write, %s has %s", a.login, r.role(a))
		case old == "" || strings.TrimSpace(branch) == "":
			return errors.New("there is no such branch")
		case branch == r.defaultBranch:
			return errors.New("it is the default branch")
		}
		for _, rule := range r.rules {
			if rule.Type == "deletion" && rule.matches(branch) {
				return errors.New("a rule forbids it")
			}
		}
		if err := p.s.writeRef(r, ref, zeroSHA, old); err != nil {
			return err
		}
		p.s.refMoved(r, ref, old, zeroSHA, a)
		return nil
	})
}

// Rerequest asks the App to run a check of its own again.
func (p *Person) Rerequest(repo string, run int64) error {
	return p.act(fmt.Sprintf("re-run check run %d", run), repo, func(a *account, r *repository) error {
		c := r.findCheckRun(run)
		switch {
		case c == nil || c.suite.app != nil:
			return errors.New("the App has no such check run")
		case !r.can(a, "write"):
			return fmt.Errorf("this needs the role write, %s has %s", a.login, r.role(a))
		}
		p.s.emit(r, "check_run", "rerequested", a, obj{"check_run": p.s.shapeCheckRunHook(c)})
		return nil
	})
}
