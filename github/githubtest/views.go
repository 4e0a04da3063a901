package githubtest

import "fmt"

// Issue is an issue or pull request as a person sees it.
type Issue struct {
	Number   int
	Title    string
	Body     string
	State    string // open, closed
	Author   string
	Labels   []string
	Comments []Comment
}

// Comment is a comment on an issue, or on the diff of a pull request.
type Comment struct {
	ID        int64
	Author    string
	Body      string
	Minimized bool
	Reactions []string // "+1", "eyes", …
}

// Pull is a pull request as a person sees it.
type Pull struct {
	Issue
	Draft, Merged bool
	Branch, Base  string
	Head          string // commit id
	Reviews       []PullReview
	Threads       []Thread
	Checks        []CheckRun // of the head
}

// PullReview is a submitted review without its comments.
type PullReview struct {
	ID                  int64
	Author, State, Body string
	Commit              string
}

// Thread is a conversation on the diff. Line is 0 when it is outdated or on a file.
type Thread struct {
	Node, Path         string
	Line, StartLine    int
	Resolved, Outdated bool
	Comments           []Comment
}

// CheckRun is a check run of the App, or of another.
type CheckRun struct {
	App                        string // slug of another App; "" for the App's own
	ID                         int64
	Name, Status, Conclusion   string
	ExternalID, Title, Summary string
	Actions                    []string // identifiers of its buttons
	Annotations                int
}

// Issue returns an issue or pull request as it is now.
func (s *Server) Issue(repo string, n int) (Issue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return Issue{}, err
	}
	if r.issues[n] == nil {
		return Issue{}, fmt.Errorf("%s has no issue or pull request #%d", repo, n)
	}
	return r.issues[n].view(), nil
}

func (i *issue) view() Issue {
	v := Issue{Number: i.number, Title: i.title, Body: i.body, State: i.state, Author: i.user.login}
	for _, l := range i.labels {
		v.Labels = append(v.Labels, l.name)
	}
	for _, c := range i.comments {
		v.Comments = append(v.Comments, Comment{ID: c.id, Author: c.user.login, Body: c.body, Minimized: c.minimized != "", Reactions: contents(c.reactions)})
	}
	return v
}

func contents(list []*reaction) (out []string) {
	for _, r := range list {
		out = append(out, r.content)
	}
	return out
}

// Pulls returns a repository's pull requests as they are now, the oldest first.
func (s *Server) Pulls(repo string) ([]Pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return nil, err
	}
	var out []Pull
	list := r.pulls()
	for i := len(list) - 1; i >= 0; i-- {
		out = append(out, list[i].viewPull())
	}
	return out, nil
}

func (p *pull) viewPull() Pull {
	v := Pull{Issue: p.view(), Draft: p.draft, Merged: !p.merged.IsZero(), Branch: p.headRef, Base: p.baseRef, Head: p.headSHA}
	for _, r := range p.reviews {
		v.Reviews = append(v.Reviews, PullReview{ID: r.id, Author: r.user.login, State: r.state, Body: r.body, Commit: r.commit})
	}
	for _, t := range p.threads {
		tv := Thread{Node: t.node, Path: t.path, Line: t.line, StartLine: t.startLine, Resolved: t.resolved, Outdated: t.outdated}
		for _, c := range t.comments {
			tv.Comments = append(tv.Comments, Comment{ID: c.id, Author: c.user.login, Body: c.body, Minimized: c.minimized != "", Reactions: contents(c.reactions)})
		}
		v.Threads = append(v.Threads, tv)
	}
	for _, su := range p.repo.suites {
		if su.head == p.headSHA {
			for _, c := range su.runs {
				v.Checks = append(v.Checks, c.view())
			}
		}
	}
	return v
}

func (c *checkRun) view() CheckRun {
	v := CheckRun{
		ID: c.id, Name: c.name, Status: c.status, Conclusion: c.conclusion, ExternalID: c.externalID, Title: c.title, Summary: c.summary,
		Annotations: len(c.annotations),
	}
	if c.suite.app != nil {
		v.App = c.suite.app.slug
	}
	for _, a := range c.actions {
		v.Actions = append(v.Actions, a.Identifier)
	}
	return v
}

// File returns a file's text on a branch or at a commit.
func (s *Server) File(repo, rev, path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return "", err
	}
	return s.show(r, rev, path)
}

// Head returns the id of the commit that a branch is at.
func (s *Server) Head(repo, branch string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return "", err
	}
	if sha := r.refs["refs/heads/"+branch]; sha != "" {
		return sha, nil
	}
	return "", fmt.Errorf("%s has no branch %q", repo, branch)
}
