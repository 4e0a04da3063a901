package github

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// Facts are what GitHub says of the App, for whoever looks for what is wrong with it.
type Facts struct {
	Slug          string
	URL           string            // its page, for people
	Permissions   map[string]string // that it asks for: name → read or write
	Events        []string          // that it is sent
	Skew          time.Duration     // how far this machine's clock is ahead of GitHub's
	HookURL       string
	HookInsecure  bool // certificates are not checked
	HookForm      bool // deliveries come as forms, which Forge does not read
	Installations []Installation
	Deliveries    []Delivered // the newest first, 30 at most
}

// Installation is the App on one account.
type Installation struct {
	ID          int64
	Account     string
	URL         string // its settings, for people
	Suspended   bool
	Permissions map[string]string // that its owner has approved
}

// Delivered is a webhook as GitHub remembers sending it.
type Delivered struct {
	ID     int64
	Event  string
	At     time.Time
	Status int // that the server answered; 0: it did not
	Text   string
}

// Facts asks GitHub for all that it says of the App.
func (a *App) Facts(ctx context.Context) (*Facts, error) {
	app, res, err := a.jwt.Apps.Get(ctx, "")
	if err = a.asApp("read the App", err); err != nil {
		return nil, err
	}
	f := &Facts{Slug: app.GetSlug(), URL: app.GetHTMLURL(), Permissions: permissionsOf(app.GetPermissions()), Events: app.Events}
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		f.Skew = a.opts.Clock().Sub(at)
	}
	hook, _, err := a.jwt.Apps.GetHookConfig(ctx)
	if err = a.asApp("read the App's webhook", err); err != nil {
		return f, err
	}
	f.HookURL, f.HookInsecure, f.HookForm = hook.GetURL(), hook.GetInsecureSSL() == "1", hook.GetContentType() == "form"
	if f.Installations, err = a.allInstallations(ctx); err != nil {
		return f, err
	}
	list, _, err := a.jwt.Apps.ListHookDeliveries(ctx, &gh.ListCursorOptions{PerPage: 30})
	if err = a.asApp("list the App's deliveries", err); err != nil {
		return f, err
	}
	for _, d := range list {
		f.Deliveries = append(f.Deliveries, Delivered{ID: d.GetID(), Event: d.GetEvent(), At: d.GetDeliveredAt().Time, Status: d.GetStatusCode(), Text: d.GetStatus()})
	}
	return f, nil
}

func (a *App) allInstallations(ctx context.Context) ([]Installation, error) {
	var out []Installation
	opts := &gh.ListOptions{PerPage: 100}
	for {
		list, res, err := a.jwt.Apps.ListInstallations(ctx, opts)
		if err = a.asApp("list the App's installations", err); err != nil {
			return out, err
		}
		for _, i := range list {
			out = append(out, Installation{ID: i.GetID(), Account: i.GetAccount().GetLogin(), URL: i.GetHTMLURL(), Suspended: i.SuspendedAt != nil, Permissions: permissionsOf(i.GetPermissions())})
		}
		if res.NextPage == 0 {
			return out, nil
		}
		opts.Page = res.NextPage
	}
}

// permissionsOf makes a map of what the library has as fields.
func permissionsOf(p *gh.InstallationPermissions) map[string]string {
	out := map[string]string{}
	if text, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(text, &out)
	}
	return out
}
