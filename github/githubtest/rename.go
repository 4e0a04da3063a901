package githubtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// RenameRepository gives a repository another name. The old one leads to it until
// somebody makes a repository of that name. It returns the full name.
func (p *Person) RenameRepository(repo, name string) (full string, err error) {
	err = p.act("rename it to "+name, repo, func(a *account, r *repository) error {
		if !nameRule.MatchString(name) {
			return errors.New("that is no name of a repository")
		}
		from := r.name
		full, err = p.s.move(a, r, r.owner, name)
		if err == nil {
			p.s.emit(r, "repository", "renamed", a, obj{"changes": obj{"repository": obj{"name": obj{"from": from}}}})
		}
		return err
	})
	return full, err
}

// TransferRepository gives a repository to another account. The App sees it there when
// it is installed on all of that account's repositories: those that are named in all.
func (p *Person) TransferRepository(repo, to string, all bool) (full string, err error) {
	err = p.act("transfer it to "+to, repo, func(a *account, r *repository) error {
		before, old := r.owner, p.s.installationFor(r)
		owner := p.s.account(to, "User")
		if full, err = p.s.move(a, r, owner, r.name); err != nil {
			return err
		}
		if old != nil {
			delete(old.repos, r.id)
			p.s.emitInstallationRepos(old, "removed", []*repository{r})
		}
		if in := p.s.installationOf(owner); in != nil && all {
			in.repos[r.id] = r
			p.s.emitInstallationRepos(in, "added", []*repository{r})
		}
		p.s.emit(r, "repository", "transferred", a, obj{"changes": obj{"owner": obj{"from": obj{"user": p.s.shapeUser(before)}}}})
		return nil
	})
	return full, err
}

// DeleteRepository deletes a repository. Nothing leads to it any more.
func (p *Person) DeleteRepository(repo string) error {
	return p.act("delete it", repo, func(a *account, r *repository) error {
		if !r.can(a, "admin") {
			return fmt.Errorf("this needs the role admin, %s has %s", a.login, r.role(a))
		}
		p.s.emit(r, "repository", "deleted", a, obj{})
		delete(p.s.repos, strings.ToLower(r.fullName()))
		for name, at := range p.s.former {
			if at == r {
				delete(p.s.former, name)
			}
		}
		for node, thing := range p.s.nodes {
			if repoOf(thing) == r {
				delete(p.s.nodes, node)
			}
		}
		if in := p.s.installationFor(r); in != nil {
			delete(in.repos, r.id)
			p.s.emitInstallationRepos(in, "removed", []*repository{r})
		}
		return nil
	})
}

// move gives a repository another full name. s.mu is held.
func (s *Server) move(by *account, r *repository, owner *account, name string) (string, error) {
	old, full := r.fullName(), owner.login+"/"+name
	switch {
	case !r.can(by, "admin"):
		return "", fmt.Errorf("this needs the role admin, %s has %s", by.login, r.role(by))
	case s.repos[strings.ToLower(full)] != nil:
		return "", fmt.Errorf("there is a repository %s", full)
	}
	delete(s.repos, strings.ToLower(old))
	delete(s.former, strings.ToLower(full))
	r.owner, r.name = owner, name
	s.repos[strings.ToLower(full)], s.former[strings.ToLower(old)] = r, r
	return full, nil
}

// named finds a repository by the name that it has, or had. s.mu is held.
func (s *Server) named(full string) *repository {
	if r := s.repos[strings.ToLower(full)]; r != nil {
		return r
	}
	return s.former[strings.ToLower(full)]
}

// byID turns a path that names a repository by its id into the one that names it. s.mu
// is held.
func (s *Server) byID(r *http.Request) *http.Request {
	prefix, rest, found := strings.Cut(r.URL.EscapedPath(), "/repositories/")
	if !found || prefix != "" && prefix != "/api/v3" {
		return r
	}
	number, rest, _ := strings.Cut(rest, "/")
	id, err := strconv.ParseInt(number, 10, 64)
	for _, repo := range s.repos {
		if err == nil && repo.id == id {
			u := *r.URL
			u.RawPath = strings.TrimSuffix(prefix+"/repos/"+repo.fullName()+"/"+rest, "/")
			if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
				return r
			}
			out := r.Clone(r.Context())
			out.URL = &u
			return out
		}
	}
	return r
}

// movedTo is what a call by a name that a repository had is told; nil when there is none.
// What reads may be sent on as something else that reads; what writes is to stay as it is.
func (c *call) movedTo(full string) *answer {
	r := c.s.former[strings.ToLower(full)]
	if r == nil || !c.s.reaches(c.id, r) {
		return nil
	}
	_, rest, _ := strings.Cut(c.r.URL.EscapedPath(), "/repos/")
	parts := strings.SplitN(rest, "/", 3)
	to := fmt.Sprintf("%srepositories/%d", c.s.APIURL(), r.id)
	if len(parts) == 3 {
		to += "/" + parts[2]
	}
	if c.r.URL.RawQuery != "" {
		to += "?" + c.r.URL.RawQuery
	}
	status := http.StatusTemporaryRedirect
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		status = http.StatusMovedPermanently
	}
	return &answer{status: status, header: http.Header{"Location": {to}},
		body: obj{"message": "Moved Permanently", "url": to, "documentation_url": docsURL + "/guides/best-practices-for-using-the-rest-api#follow-redirects"}}
}
