package github

import (
	"context"
	"fmt"
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
	var app struct {
		Slug        string            `json:"slug"`
		URL         string            `json:"html_url"`
		Permissions map[string]string `json:"permissions"` // the library lacks the newer ones
		Events      []string          `json:"events"`
	}
	res, err := a.readAsApp(ctx, "app", &app)
	if err = a.asApp("read the App", err); err != nil {
		return nil, err
	}
	f := &Facts{Slug: app.Slug, URL: app.URL, Permissions: app.Permissions, Events: app.Events}
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
		f.Deliveries = append(f.Deliveries, Delivered{ID: d.GetID(), Event: d.GetEvent(), At: d.GetDeliveredAt().Time, Status: d.GetStatusCode(),
			Text: d.GetStatus()})
	}
	return f, nil
}

// readAsApp reads an address as the App itself.
func (a *App) readAsApp(ctx context.Context, path string, into any) (*gh.Response, error) {
	req, err := a.jwt.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err // unreachable: the address is well formed
	}
	return a.jwt.Do(ctx, req, into)
}

func (a *App) allInstallations(ctx context.Context) ([]Installation, error) {
	var out []Installation
	for page := 1; page > 0; {
		var list []struct {
			ID      int64 `json:"id"`
			Account struct {
				Login string `json:"login"`
			} `json:"account"`
			URL         string            `json:"html_url"`
			SuspendedAt *string           `json:"suspended_at"`
			Permissions map[string]string `json:"permissions"`
		}
		res, err := a.readAsApp(ctx, fmt.Sprintf("app/installations?per_page=100&page=%d", page), &list)
		if err = a.asApp("list the App's installations", err); err != nil {
			return out, err
		}
		for _, i := range list {
			out = append(out, Installation{ID: i.ID, Account: i.Account.Login, URL: i.URL, Suspended: i.SuspendedAt != nil, Permissions: i.Permissions})
		}
		page = res.NextPage
	}
	return out, nil
}
