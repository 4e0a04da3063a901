package github

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Registered is an App that GitHub has just made. It holds secrets.
type Registered struct {
	ID            int64
	Slug, URL     string // its page, for people
	ClientID      string
	ClientSecret  string
	WebhookSecret string
	PrivateKey    string // PEM
}

// ErrCodeUsed says that GitHub does not take the code of a registration: it was used,
// or is older than an hour.
var ErrCodeUsed = errors.New("GitHub does not know the code of the registration: it was used, or is over an hour old")

var registrationCode = lazyregexp.New(`^[A-Za-z0-9_-]{1,200}$`)

// Register turns the code with which GitHub ends the manifest flow into the App. A
// code works once, within an hour. base is as in [Options.BaseURL].
func Register(ctx context.Context, base, code string) (Registered, error) {
	const op = "read the registered App from GitHub"
	at, err := addressesOf(base)
	if err != nil {
		return Registered{}, err
	}
	if !registrationCode.MatchString(code) {
		return Registered{}, ErrCodeUsed
	}
	client := &http.Client{
		Transport:     timeout{next: http.DefaultTransport, d: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c := gh.NewClient(client)
	c.BaseURL, c.UserAgent = at.rest, "forge"
	app, resp, err := c.Apps.CompleteAppManifest(ctx, code)
	switch {
	case err != nil && resp != nil && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusUnprocessableEntity):
		return Registered{}, ErrCodeUsed
	case err != nil: // its text would hold the address, and with it the code
		return Registered{}, &apiError{op: op, status: status(err), msg: text.Scrub(strings.ReplaceAll(cause(err).Error(), code, "[code]"))}
	case app.GetID() == 0 || app.GetPEM() == "":
		return Registered{}, &apiError{op: op, msg: "GitHub's answer holds no App"}
	}
	return Registered{ID: app.GetID(), Slug: app.GetSlug(), URL: app.GetHTMLURL(), ClientID: app.GetClientID(), ClientSecret: app.GetClientSecret(),
		WebhookSecret: app.GetWebhookSecret(), PrivateKey: app.GetPEM()}, nil
}

// Redeliver has GitHub send a delivery again.
func (a *App) Redeliver(ctx context.Context, id int64) error {
	_, _, err := a.jwt.Apps.RedeliverHookDelivery(ctx, id)
	var accepted *gh.AcceptedError // 202: done
	if errors.As(err, &accepted) {
		return nil
	}
	return a.asApp("have a delivery sent again", err)
}

// Repos lists the repositories of an installation.
func (a *App) Repos(ctx context.Context, installation int64) ([]pipeline.Repo, error) {
	in := a.installation(installation)
	sign, err := in.sign(pipeline.Repo{}, scope{"meta", "metadata: read", &gh.InstallationPermissions{Metadata: gh.String("read")}})
	if err != nil {
		return nil, err
	}
	c := a.client(&transport{app: a, next: sign, lim: in.lim, want: "metadata: read"})
	var out []pipeline.Repo
	page := &gh.ListOptions{PerPage: 100}
	for {
		list, resp, err := c.Apps.ListRepos(ctx, page)
		if err = explain("list the installation's repositories", "metadata: read", err); err != nil {
			return nil, err
		}
		for _, r := range list.Repositories {
			if !r.GetArchived() {
				out = append(out, pipeline.Repo{ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(),
					CloneURL: r.GetCloneURL(), Installation: installation})
			}
		}
		if resp.NextPage == 0 {
			return out, nil
		}
		page.Page = resp.NextPage
	}
}

// EnsureLabel makes a label in a repository, and reports whether it was not there.
func (a *App) EnsureLabel(ctx context.Context, repo pipeline.Repo, name, colour, description string) (made bool, err error) {
	s, err := a.session(repo)
	if err != nil {
		return false, err
	}
	_, _, err = s.rest.Issues.GetLabel(ctx, repo.Owner, repo.Name, name)
	if err = explain("read the label "+name, "issues: read", err); err == nil || status(err) != http.StatusNotFound {
		return false, err
	}
	_, _, err = s.rest.Issues.CreateLabel(ctx, repo.Owner, repo.Name, &gh.Label{Name: &name, Color: &colour, Description: &description})
	return err == nil, explain("make the label "+name+" in "+repo.FullName(), "issues: write", err)
}
