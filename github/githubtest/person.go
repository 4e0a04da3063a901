package githubtest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"forge/github/githubtest/markdown"
	"forge/pipeline/lazyregexp"
)

// Person is somebody who uses this GitHub in a browser. Each method does what a
// button there does, with the person's rights, and the webhooks follow.
type Person struct {
	s     *Server
	Login string
	ID    int64
	Token string // a personal access token, for git and REST
}

// As returns the person with a login, who joins if new. Names of bots are not
// allowed: they act through the API.
func (s *Server) As(login string) *Person {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(login, "User")
	return &Person{s: s, Login: a.login, ID: a.id, Token: a.token}
}

var nameRule = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)

// AddRepo makes a repository, public until SetPrivate, with a first commit of the
// given files on the branch main. Its owner joins if new. It returns the full name,
// "owner/name".
func (s *Server) AddRepo(owner, name string, files map[string]string) (string, error) {
	if !nameRule.MatchString(owner) || !nameRule.MatchString(name) || restRoots[owner] || owner == "api" {
		return "", fmt.Errorf("add repository %s/%s: use letters, digits, dots, hyphens and underscores, and no name of the API", owner, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	full := owner + "/" + name
	if s.repos[strings.ToLower(full)] != nil {
		return "", fmt.Errorf("add repository %s: it exists already", full)
	}
	r := &repository{
		id: s.id(), owner: s.account(owner, "User"), name: name, defaultBranch: "main", roles: map[string]string{},
		refs: map[string]string{}, verified: map[string]bool{}, issues: map[int]*issue{}, created: s.now(), pushed: s.now(),
	}
	r.dir = s.repoDir(r)
	if err := s.initRepo(r); err != nil {
		return "", err
	}
	texts := map[string]*string{}
	for path, text := range files {
		texts[path] = &text
	}
	if len(texts) == 0 {
		text := "# " + name + "\n"
		texts["README.md"] = &text
	}
	sha, err := s.commit(r, commitRequest{message: "Initial commit\n", author: r.owner, files: texts})
	if err != nil {
		return "", fmt.Errorf("add repository %s: %w", full, errors.Join(err, os.RemoveAll(r.dir)))
	}
	r.node = s.register("R", r.id, r)
	s.repos[strings.ToLower(full)] = r
	delete(s.former, strings.ToLower(full))
	return full, s.setRef(r, "refs/heads/main", sha, r.owner)
}

// AddRepoFromFS makes a repository of the files in a tree, without its .git.
func (s *Server) AddRepoFromFS(owner, name string, tree fs.FS) (string, error) {
	files := map[string]string{}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			text, err := fs.ReadFile(tree, path)
			files[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("add repository %s/%s: %w", owner, name, err)
	}
	return s.AddRepo(owner, name, files)
}

// SetPermission gives somebody a role in a repository: admin, maintain, write,
// triage, read or none. They join if new.
func (s *Server) SetPermission(repo, login, role string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return fmt.Errorf("set the role of %s: %w", login, err)
	}
	if _, known := roleRank[role]; !known || role == "" {
		return fmt.Errorf("set the role of %s in %s: %q is none; use admin, maintain, write, triage, read or none", login, repo, role)
	}
	s.account(login, "User")
	r.roles[strings.ToLower(login)] = role
	s.touch()
	return nil
}

// SetPrivate makes a repository private, or public again. A private one exists
// only for its owner, for people with a role in it, and for the App where it is
// installed.
func (s *Server) SetPrivate(repo string, private bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return fmt.Errorf("make it private: %w", err)
	}
	r.private = private
	s.touch()
	return nil
}

// SetDefaultBranch gives the default branch another name.
func (s *Server) SetDefaultBranch(repo, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return fmt.Errorf("rename the default branch: %w", err)
	}
	old := "refs/heads/" + r.defaultBranch
	if err := s.setRef(r, "refs/heads/"+name, r.refs[old], r.owner); err != nil {
		return err
	}
	r.defaultBranch = name
	if err := os.WriteFile(filepath.Join(r.dir, "HEAD"), []byte("ref: refs/heads/"+name+"\n"), 0o644); err != nil {
		return err
	}
	return s.setRef(r, old, zeroSHA, r.owner)
}

// Rule guards branches, as a ruleset's rule does.
type Rule struct {
	Type    string // one of ruleTypes
	Pattern string // of branch names, with *; "main"
	Value   string // what names must begin with, the glob of restricted files, or the name of the required check
	App     int64  // of required_status_checks: whose check it must be; 0: anybody's
}

// ruleTypes are the rules that are known here. What a required check and a merge queue
// ask for is shown to who asks; merging is left to people.
var ruleTypes = []string{
	"update", "pull_request", "creation", "deletion", "non_fast_forward", "required_signatures", "branch_name_pattern", "file_path_restriction",
	"required_status_checks", "merge_queue",
}

// SetRules replaces a repository's branch rules. Pushes against them are refused
// with GH013; GitHub's own merges are not.
func (s *Server) SetRules(repo string, rules ...Rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.repo(repo)
	if err != nil {
		return fmt.Errorf("set rules: %w", err)
	}
	var text strings.Builder
	for _, rule := range rules {
		if !slices.Contains(ruleTypes, rule.Type) {
			return fmt.Errorf("set rules of %s: there is no rule %q here", repo, rule.Type)
		}
		if rule.Pattern == "" || strings.ContainsAny(rule.Pattern+rule.Value, " \n\t$`\"'\\();&|<>") {
			return fmt.Errorf("set rules of %s: %q with %q is no pattern", repo, rule.Pattern, rule.Value)
		}
		fmt.Fprintf(&text, "%s %s %s\n", rule.Type, rule.Pattern, rule.Value)
	}
	r.rules = slices.Clone(rules)
	return os.WriteFile(r.dir+"/forge-rules", []byte(text.String()), 0o644)
}

// act runs f with the person's account and a repository.
func (p *Person) act(what, repo string, f func(*account, *repository) error) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	r, err := p.s.repo(repo)
	if a := p.s.account(p.Login, "User"); err == nil && !r.shownTo(a) {
		err = errors.New("it is private, and they have no role in it")
	} else if err == nil {
		err = f(a, r)
	}
	p.s.touch()
	if err != nil {
		return fmt.Errorf("%s: %s in %s: %w", p.Login, what, repo, err)
	}
	return nil
}

// onIssue runs f on an issue or pull request, if the person has the role.
func (p *Person) onIssue(what, repo string, n int, role string, f func(*account, *issue) error) error {
	return p.act(fmt.Sprintf("%s #%d", what, n), repo, func(a *account, r *repository) error {
		i := r.issues[n]
		if i == nil {
			return fmt.Errorf("there is no issue or pull request #%d", n)
		}
		if !r.can(a, role) && !(role == "author" && (a == i.user || r.can(a, "write"))) {
			return fmt.Errorf("this needs the role %s, %s has %s", role, a.login, r.role(a))
		}
		return f(a, i)
	})
}

// OpenIssue opens an issue and returns its number.
func (p *Person) OpenIssue(repo, title, body string) (n int, err error) {
	err = p.act("open an issue", repo, func(a *account, r *repository) error {
		if strings.TrimSpace(title) == "" {
			return errors.New("the title is empty")
		}
		n = p.s.openIssue(r, a, title, body, nil).number
		return nil
	})
	return n, err
}

// Relate makes an issue part of another, and one that waits for it.
func (p *Person) Relate(repo string, n, parent int, blocks bool) error {
	return p.onIssue("relate an issue", repo, n, "triage", func(_ *account, i *issue) error {
		above := i.repo.issues[parent]
		if above == nil || above == i {
			return fmt.Errorf("#%d is no other issue", parent)
		}
		i.parent, above.subs = above, append(above.subs, i)
		if blocks {
			above.blockedBy = append(above.blockedBy, i)
		}
		return nil
	})
}

// SetType gives an issue a type.
func (p *Person) SetType(repo string, n int, kind string) error {
	return p.onIssue("set an issue's type", repo, n, "triage", func(_ *account, i *issue) error {
		i.kind = kind
		return nil
	})
}

// Label puts a label on an issue or pull request. The role triage is needed.
func (p *Person) Label(repo string, n int, label string) error {
	return p.onIssue("label", repo, n, "triage", func(a *account, i *issue) error {
		if strings.TrimSpace(label) == "" {
			return errors.New("the label is empty")
		}
		p.s.addLabel(i, a, label)
		return nil
	})
}

// Unlabel takes a label away.
func (p *Person) Unlabel(repo string, n int, label string) error {
	return p.onIssue("unlabel", repo, n, "triage", func(a *account, i *issue) error {
		if !p.s.removeLabel(i, a, label) {
			return fmt.Errorf("it has no label %q", label)
		}
		return nil
	})
}

// Comment writes a comment on an issue or pull request and returns its id.
func (p *Person) Comment(repo string, n int, body string) (id int64, err error) {
	err = p.onIssue("comment on", repo, n, "read", func(a *account, i *issue) error {
		if strings.TrimSpace(body) == "" {
			return errors.New("the comment is empty")
		}
		id = p.s.addComment(i, a, body).id
		return nil
	})
	return id, err
}

// EditIssue changes the title and body of an issue or pull request; an empty
// title leaves it.
func (p *Person) EditIssue(repo string, n int, title, body string) error {
	return p.onIssue("edit", repo, n, "author", func(a *account, i *issue) error {
		if title == "" {
			title = i.title
		}
		p.s.editIssue(i, a, &title, &body)
		return nil
	})
}

// onEither runs one of both on a comment, of an issue or of a review, that the person
// may change: it is theirs, or they have write access.
func (p *Person) onEither(what, repo string, id int64, onIssue func(*account, *comment) error, onReview func(*account, *reviewComment) error) error {
	return p.act(fmt.Sprintf("%s %d", what, id), repo, func(a *account, r *repository) error {
		may := func(author *account) error {
			if author == a || r.can(a, "write") {
				return nil
			}
			return fmt.Errorf("the comment is %s's; this needs the role write", author.login)
		}
		if c := r.findComment(id); c != nil {
			if err := may(c.user); err != nil {
				return err
			}
			return onIssue(a, c)
		}
		if c := r.findReviewComment(id); c != nil {
			if err := may(c.user); err != nil {
				return err
			}
			return onReview(a, c)
		}
		return errors.New("there is no such comment")
	})
}

// onComment runs f on a comment, of an issue or of a review, that the person may edit.
func (p *Person) onComment(what, repo string, id int64, f func(a *account, body string, save func(string)) error) error {
	return p.onEither(what, repo, id, func(a *account, c *comment) error {
		return f(a, c.body, func(text string) { p.s.editComment(c, a, text) })
	}, func(a *account, c *reviewComment) error {
		return f(a, c.body, func(text string) { p.s.editReviewComment(c, a, text) })
	})
}

// EditComment replaces the text of a comment, of an issue or of a review.
func (p *Person) EditComment(repo string, id int64, body string) error {
	return p.onComment("edit comment", repo, id, func(_ *account, _ string, save func(string)) error {
		save(body)
		return nil
	})
}

// TickBox ticks, or unticks, the nth task-list box in a comment, from 0.
func (p *Person) TickBox(repo string, id int64, nth int) error {
	return p.onComment("tick a box in comment", repo, id, func(_ *account, body string, save func(string)) error {
		text, err := toggleBox(body, nth)
		if err == nil {
			save(text)
		}
		return err
	})
}

func toggleBox(body string, nth int) (string, error) {
	at := markdown.Boxes(body)
	if nth < 0 || nth >= len(at) {
		return "", fmt.Errorf("there are %d boxes, numbered from 0; %d is none", len(at), nth)
	}
	mark := "x"
	if body[at[nth]] != ' ' {
		mark = " "
	}
	return body[:at[nth]] + mark + body[at[nth]+1:], nil
}

// Push is a commit that a person pushes.
type Push struct {
	Branch  string             // made from the default branch if it is new
	Message string             //
	Files   map[string]*string // whole new contents by path; nil deletes a file
	Merge   string             // a branch that the commit merges; Files settle what differs
	Force   bool               // what was on the branch is dropped: it begins anew
	From    string             // the branch at which it begins, if not the default one
	Orphan  bool               // so is its history: the commit has no parent
}

// PushFiles commits and pushes files. It returns the commit's id.
func (p *Person) PushFiles(repo string, c Push) (sha string, err error) {
	err = p.act("push to "+c.Branch, repo, func(a *account, r *repository) error {
		if !r.can(a, "write") {
			return fmt.Errorf("this needs the role write, %s has %s", a.login, r.role(a))
		}
		parent := r.refs["refs/heads/"+c.Branch]
		if parent == "" || c.Force {
			parent = r.refs["refs/heads/"+cmp.Or(c.From, r.defaultBranch)]
		}
		if c.Orphan {
			parent = ""
		}
		if sha, err = p.s.commit(r, commitRequest{parent: parent, merged: r.refs["refs/heads/"+c.Merge], message: c.Message + "\n", author: a,
			files: c.Files}); err != nil {
			return err
		}
		return p.s.setRef(r, "refs/heads/"+c.Branch, sha, a)
	})
	return sha, err
}

// OpenPull opens a pull request of a branch against the default branch.
func (p *Person) OpenPull(repo, branch, title string) (n int, err error) {
	err = p.act("open a pull request of "+branch, repo, func(a *account, r *repository) error {
		if text := p.s.refusePull(r, branch, r.defaultBranch); text != "" {
			return errors.New(text)
		}
		n = p.s.openPull(r, a, title, "", branch, r.defaultBranch, false).number
		return nil
	})
	return n, err
}

// Close closes an issue or pull request, or opens it again when it is closed.
func (p *Person) Close(repo string, n int) error {
	return p.onIssue("close", repo, n, "author", func(a *account, i *issue) error {
		if i.state == "closed" {
			if i.pull != nil && !i.pull.merged.IsZero() {
				return errors.New("it is merged")
			}
			p.s.setState(i, a, "open", "")
			return nil
		}
		p.s.setState(i, a, "closed", "")
		return nil
	})
}

// Merge merges a pull request with a merge commit.
func (p *Person) Merge(repo string, n int) error { return p.merge(repo, n, "merge") }

func (p *Person) merge(repo string, n int, method string) error {
	return p.onIssue("merge", repo, n, "write", func(a *account, i *issue) error {
		switch {
		case i.pull == nil:
			return errors.New("it is no pull request")
		case i.state != "open":
			return errors.New("it is closed")
		case i.pull.draft:
			return errors.New("it is still a draft")
		}
		_, err := p.s.mergePull(i.pull, a, method, "", "")
		return err
	})
}

// Review is what a person says about a pull request.
type Review struct {
	Event    string // COMMENT, APPROVE or REQUEST_CHANGES
	Body     string
	Path     string // if set, Line and Comment make one comment on the diff
	Line     int
	Comment  string
	CommitID string // the head when empty
}

// Review submits a review of a pull request.
func (p *Person) Review(repo string, n int, rv Review) error {
	return p.onIssue("review", repo, n, "read", func(a *account, i *issue) error {
		if i.pull == nil {
			return errors.New("it is no pull request")
		}
		var anchors []anchor
		if rv.Path != "" {
			anchors = []anchor{{Path: rv.Path, Line: rv.Line, Body: rv.Comment}}
		}
		_, err := p.s.review(i.pull, a, rv.Event, rv.Body, rv.CommitID, anchors)
		return err
	})
}

// onThread runs f on the conversation that a review comment belongs to.
func (p *Person) onThread(what, repo string, id int64, f func(*account, *reviewComment) error) error {
	return p.act(fmt.Sprintf("%s %d", what, id), repo, func(a *account, r *repository) error {
		c := r.findReviewComment(id)
		if c == nil {
			return errors.New("there is no such review comment")
		}
		return f(a, c)
	})
}

// Reply answers a review comment.
func (p *Person) Reply(repo string, id int64, body string) error {
	return p.onThread("reply to review comment", repo, id, func(a *account, c *reviewComment) error {
		_, err := p.s.reply(c.thread, a, body)
		return err
	})
}

// Resolve resolves the conversation that a review comment belongs to, or opens it
// again.
func (p *Person) Resolve(repo string, id int64) error {
	return p.onThread("resolve the conversation of", repo, id, func(a *account, c *reviewComment) error {
		if !c.thread.pull.mayResolve(a) {
			return errors.New("only the pull request's author and people with write access can")
		}
		p.s.setResolved(c.thread, a, !c.thread.resolved)
		return nil
	})
}

// CommitSuggestion commits the suggestions of review comments of one pull
// request in one commit.
func (p *Person) CommitSuggestion(repo string, ids ...int64) error {
	return p.act("commit suggestions", repo, func(a *account, r *repository) error {
		var list []*reviewComment
		for _, id := range ids {
			c := r.findReviewComment(id)
			if c == nil || len(list) > 0 && c.thread.pull != list[0].thread.pull {
				return fmt.Errorf("%d is no review comment of the pull request", id)
			}
			list = append(list, c)
		}
		if len(list) == 0 {
			return errors.New("name at least one review comment")
		}
		_, err := p.s.commitSuggestions(list, a)
		return err
	})
}

// Press presses a button of a check run.
func (p *Person) Press(repo string, run int64, identifier string) error {
	return p.act(fmt.Sprintf("press %s of check run %d", identifier, run), repo, func(a *account, r *repository) error {
		c := r.findCheckRun(run)
		if c == nil || !slices.ContainsFunc(c.actions, func(x checkAction) bool { return x.Identifier == identifier }) {
			return errors.New("there is no such button")
		}
		p.s.emit(r, "check_run", "requested_action", a, obj{"check_run": p.s.shapeCheckRunHook(c), "requested_action": obj{"identifier": identifier}})
		return nil
	})
}
