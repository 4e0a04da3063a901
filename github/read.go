package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// Permission returns what the actor may do in the repository, now: "admin",
// "write", "read" or "none". Maintain counts as write and triage as read, as
// GitHub has it. The login is only how GitHub is asked: when it belongs to
// another account than the actor's id by now, that is an error.
func (a *App) Permission(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (string, error) {
	l, err := a.level(ctx, repo, actor)
	if err != nil {
		return "", err
	}
	switch p := l.GetPermission(); p {
	case "admin", "write", "read", "none":
		return p, nil
	default:
		return "", fmt.Errorf("ask what %s may do in %s: GitHub answered with the unknown permission %q", actor.Login, repo.FullName(), p)
	}
}

// renamedError says that a login belongs to another account by now.
type renamedError struct {
	op      string
	is, was int64
}

func (e *renamedError) Error() string {
	return fmt.Sprintf("%s: the login belongs to account %d now, not to %d", e.op, e.is, e.was)
}

// level asks what the actor may do; "none" when there is no such account.
func (a *App) level(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (*gh.RepositoryPermissionLevel, error) {
	op := fmt.Sprintf("ask what %s may do in %s", actor.Login, repo.FullName())
	if actor.Login == "" || actor.ID == 0 {
		return nil, fmt.Errorf("%s: the actor has no login or no id", op)
	}
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	l, _, err := s.rest.Repositories.GetPermissionLevel(ctx, repo.Owner, repo.Name, actor.Login)
	if err = explain(op, "metadata: read", err); err != nil {
		if gone(err) {
			return &gh.RepositoryPermissionLevel{Permission: gh.String("none")}, nil
		}
		return nil, err
	}
	if id := l.GetUser().GetID(); id != actor.ID {
		return nil, &renamedError{op: op, is: id, was: actor.ID}
	}
	return l, nil
}

// weights is how much a person's word counts by their role (lessons 20). Everybody
// else's counts nothing.
var weights = map[string]float64{"admin": 1, "maintain": 1, "write": 0.8}

// Weight is how much the actor's word counts here, 0 to 1, by their role at this
// moment. Bots and strangers count nothing.
func (a *App) Weight(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (float64, error) {
	if actor.Bot || actor.ID == 0 || actor.Login == "" {
		return 0, nil
	}
	l, err := a.level(ctx, repo, actor)
	var renamed *renamedError
	if errors.As(err, &renamed) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	role := l.GetUser().GetRoleName() // finer than the permission, which has maintain as write
	if _, known := weights[role]; !known {
		role = l.GetPermission() // a role of the organisation's own
	}
	return weights[role], nil
}

// Repo looks a repository up by its name.
func (a *App) Repo(ctx context.Context, installation int64, owner, name string) (pipeline.Repo, error) {
	repo := pipeline.Repo{Owner: owner, Name: name, Installation: installation}
	s, err := a.session(repo)
	if err != nil {
		return pipeline.Repo{}, err
	}
	r, _, err := s.rest.Repositories.Get(ctx, owner, name)
	if err = explain("read the repository "+repo.FullName(), "metadata: read", err); err != nil {
		return pipeline.Repo{}, err
	}
	return pipeline.Repo{ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(),
		DefaultBranch: r.GetDefaultBranch(), CloneURL: r.GetCloneURL(), Installation: installation}, nil
}

// Locate finds a repository by its id, which stays what its name may not: what it is called
// now, and by which installation the App may act there. Not found where it was deleted, or
// belongs to an account where the App is not installed on it.
func (a *App) Locate(ctx context.Context, id int64) (repo pipeline.Repo, found bool, err error) {
	op := fmt.Sprintf("find the repository with the id %d", id)
	var inst struct {
		ID int64 `json:"id"`
	}
	_, err = a.readAsApp(ctx, fmt.Sprintf("repositories/%d/installation", id), &inst)
	if err = a.asApp(op, err); gone(err) {
		return repo, false, nil
	} else if err != nil {
		return repo, false, err
	}
	s, err := a.session(pipeline.Repo{ID: id, Installation: inst.ID})
	if err != nil {
		return repo, false, err
	}
	r, _, err := s.rest.Repositories.GetByID(ctx, id)
	if err = explain(op, "metadata: read", err); gone(err) {
		return repo, false, nil
	} else if err != nil {
		return repo, false, err
	}
	return pipeline.Repo{ID: id, Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(),
		CloneURL: r.GetCloneURL(), Installation: inst.ID}, true, nil
}

// Closed says what of a repository is shut, so that no run can work there.
func (a *App) Closed(ctx context.Context, repo pipeline.Repo) ([]string, error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	r, _, err := s.rest.Repositories.Get(ctx, repo.Owner, repo.Name)
	if err = explain("read the repository "+repo.FullName(), "metadata: read", err); err != nil {
		return nil, err
	}
	return closed(r), nil
}

func closed(r *gh.Repository) (why []string) {
	if r.GetArchived() {
		why = append(why, "it is archived, and takes no push, comment or pull request")
	}
	if r.GetDisabled() {
		why = append(why, "it is disabled by GitHub")
	}
	if r.HasIssues != nil && !*r.HasIssues {
		why = append(why, "its issues are switched off, and Forge works on labelled ones")
	}
	return why
}

// Issue returns issue n as a task. A pull request is no task.
func (a *App) Issue(ctx context.Context, repo pipeline.Repo, n int) (task pipeline.Task, labels []string, err error) {
	op := fmt.Sprintf("read issue #%d of %s", n, repo.FullName())
	s, err := a.session(repo)
	if err != nil {
		return task, nil, err
	}
	i, _, err := s.rest.Issues.Get(ctx, repo.Owner, repo.Name, n)
	if err = explain(op, "issues: read", err); err != nil {
		return task, nil, err
	}
	if i.IsPullRequest() {
		return task, nil, final("%s#%d is a pull request: give the number of an issue.", repo.FullName(), n)
	}
	for _, l := range i.Labels {
		labels = append(labels, l.GetName())
	}
	return pipeline.Task{Issue: i.GetNumber(), Title: i.GetTitle(), Body: i.GetBody(), Author: actorOf(i.GetUser()), URL: i.GetHTMLURL()}, labels, nil
}

func actorOf(u *gh.User) pipeline.Actor {
	return pipeline.Actor{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot" || strings.HasSuffix(u.GetLogin(), "[bot]")}
}

// BranchHead returns the SHA that a branch points to, "" when there is no such branch.
func (a *App) BranchHead(ctx context.Context, repo pipeline.Repo, branch string) (string, error) {
	s, err := a.session(repo)
	if err != nil {
		return "", err
	}
	ref, _, err := s.rest.Git.GetRef(ctx, repo.Owner, repo.Name, "heads/"+branch)
	if err = explain(fmt.Sprintf("read branch %s of %s", branch, repo.FullName()), "contents: read", err); err != nil {
		if gone(err) {
			return "", nil
		}
		return "", err
	}
	return ref.GetObject().GetSHA(), nil
}

// File returns a file's content at a ref, up to 1 MB; nil when there is none.
func (a *App) File(ctx context.Context, repo pipeline.Repo, path, ref string) ([]byte, error) {
	op := fmt.Sprintf("read %s of %s at %s", path, repo.FullName(), ref)
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	f, _, _, err := s.rest.Repositories.GetContents(ctx, repo.Owner, repo.Name, path, &gh.RepositoryContentGetOptions{Ref: ref})
	if err = explain(op, "contents: read", err); err != nil {
		if gone(err) {
			return nil, nil
		}
		return nil, err
	}
	if f == nil || f.GetType() != "file" {
		return nil, fmt.Errorf("%s: it is a folder or a link, not a file", op)
	}
	text, err := f.GetContent()
	if err != nil {
		return nil, fmt.Errorf("%s: GitHub sends no content; files over 1 MB are not read: %v", op, err)
	}
	return append([]byte{}, text...), nil
}

// Files lists the files of a commit, by path; whole is false of one so large that GitHub leaves some out.
func (a *App) Files(ctx context.Context, repo pipeline.Repo, ref string) (files []string, whole bool, err error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, false, err
	}
	tree, _, err := s.rest.Git.GetTree(ctx, repo.Owner, repo.Name, ref, true)
	if err := explain(fmt.Sprintf("list the files of %s at %s", repo.FullName(), ref), "contents: read", err); err != nil {
		return nil, false, err
	}
	for _, e := range tree.Entries {
		if e.GetType() == "blob" {
			files = append(files, e.GetPath())
		}
	}
	return files, !tree.GetTruncated(), nil
}

// FindInstallation returns the App's installation that covers a repository.
func (a *App) FindInstallation(ctx context.Context, owner, name string) (int64, error) {
	i, resp, err := a.jwt.Apps.FindRepositoryInstallation(ctx, owner, name)
	if err != nil && resp != nil && resp.StatusCode == http.StatusNotFound {
		return 0, final("The App is not installed on %s/%s, or there is no such repository. Install it on the repository from the App's page.", owner, name)
	}
	if err := a.asApp(fmt.Sprintf("find the installation for %s/%s", owner, name), err); err != nil {
		return 0, err
	}
	return i.GetID(), nil
}

// asApp explains an error of a call that the App itself signed.
func (a *App) asApp(op string, err error) error {
	if err = explain(op, "", err); status(err) == http.StatusUnauthorized {
		return final("GitHub does not accept the App's signature (%s). Check the App id %d, its private key, and this machine's clock.", op, a.opts.AppID)
	}
	return err
}

// BotUser returns the user that the App acts as, slug[bot]. Its id is that of the
// comments' and commits' author, and not the App's id.
func (a *App) BotUser(ctx context.Context) (pipeline.Actor, error) {
	app, _, err := a.jwt.Apps.Get(ctx, "")
	if err = a.asApp("read the App", err); err != nil {
		return pipeline.Actor{}, err
	}
	login := app.GetSlug() + "[bot]"
	c, err := a.anyClient(ctx)
	if err != nil {
		return pipeline.Actor{}, err
	}
	u, _, err := c.Users.Get(ctx, strings.NewReplacer("[", "%5B", "]", "%5D").Replace(login))
	if err = explain("read the user "+login, "metadata: read", err); err != nil {
		return pipeline.Actor{}, err
	}
	return pipeline.Actor{ID: u.GetID(), Login: u.GetLogin(), Bot: true}, nil
}

// anyClient returns a client that may ask for users, which the App itself may not:
// that of some installation, or a nameless one as long as there is none.
func (a *App) anyClient(ctx context.Context) (*gh.Client, error) {
	list, _, err := a.jwt.Apps.ListInstallations(ctx, &gh.ListOptions{PerPage: 100})
	if err = a.asApp("list the App's installations", err); err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.SuspendedAt == nil {
			in := a.installation(i.GetID())
			sign, err := in.sign(pipeline.Repo{}, scope{"meta", "metadata: read", &gh.InstallationPermissions{Metadata: gh.String("read")}})
			if err != nil {
				return nil, err
			}
			return a.client(&transport{app: a, next: sign, lim: in.lim, want: "metadata: read"}), nil
		}
	}
	return a.client(&transport{app: a, next: a.base, lim: newLimiter()}), nil
}
