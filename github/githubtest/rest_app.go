package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
)

// appOps are the operations on the App itself, on users and on limits.
var appOps = map[string]handler{
	"apps/get-authenticated":                     func(c *call) answer { return ok(c.s.shapeApp()) },
	"apps/list-installations":                    listInstallations,
	"apps/create-installation-access-token":      withInstallation(createToken),
	"apps/get-repo-installation":                 getRepoInstallation,
	"apps/list-repos-accessible-to-installation": listInstallationRepos,
	"apps/get-webhook-config-for-app":            func(c *call) answer { return ok(c.s.shapeHookConfig()) },
	"apps/list-webhook-deliveries":               listDeliveries,
	"apps/get-webhook-delivery":                  getDelivery,
	"apps/redeliver-webhook-delivery":            redeliver,
	"apps/create-from-manifest":                  createFromManifest,
	"users/get-by-username":                      getUser,
}

func listInstallations(c *call) answer {
	return listing(c, c.s.installs, c.s.listedInstallation)
}

// listedInstallation is an installation in a list. GitHub's description of lists
// asks for the fields of a user and of an enterprise at once.
func (s *Server) listedInstallation(in *installation) any {
	o := s.shapeInstallation(in)
	account := o["account"].(obj)
	account["name"], account["slug"] = in.account.login, in.account.login
	account["created_at"], account["updated_at"] = stamp(in.account.created), stamp(in.account.created)
	return o
}

func withInstallation(next func(*call, *installation) answer) handler {
	return func(c *call) answer {
		for _, in := range c.s.installs {
			if in.id == c.number("installation_id") {
				return next(c, in)
			}
		}
		return notFound()
	}
}

func createToken(c *call, in *installation) answer {
	var req struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if !in.suspended.IsZero() {
		return fail(http.StatusForbidden, "This installation has been suspended")
	}
	var repos map[int64]bool
	if len(req.Repositories)+len(req.RepositoryIDs) > 0 {
		repos = map[int64]bool{}
	}
	for _, r := range in.list() {
		byName := slices.ContainsFunc(req.Repositories, func(n string) bool { return strings.EqualFold(n, r.name) })
		if byName || slices.Contains(req.RepositoryIDs, r.id) {
			repos[r.id] = true
		}
	}
	if repos != nil && len(repos) < max(len(req.Repositories), len(req.RepositoryIDs)) {
		return fail(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
	}
	perms := map[string]string{}
	for k, v := range c.s.app.Permissions {
		perms[k] = v
	}
	if len(req.Permissions) > 0 {
		for name, level := range req.Permissions {
			if levelRank[level] == 0 || levelRank[level] > levelRank[perms[name]] && name != "metadata" {
				return fail(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			}
		}
		perms = req.Permissions
		perms["metadata"] = "read"
	}
	t := c.s.newToken(in, repos, perms)
	body := obj{"token": t.text, "expires_at": stamp(t.expires), "permissions": perms, "repository_selection": "selected"}
	if repos != nil {
		rows := []any{}
		for _, r := range in.list() {
			if repos[r.id] {
				rows = append(rows, c.s.shapeRepo(r))
			}
		}
		body["repositories"] = rows
	}
	return created(body)
}

func getRepoInstallation(c *call) answer {
	if in := c.s.installationFor(c.repo); in != nil {
		return ok(c.s.shapeInstallation(in))
	}
	return notFound()
}

func listInstallationRepos(c *call) answer {
	if c.id.tok == nil {
		return fail(http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation.")
	}
	var list []*repository
	for _, r := range c.id.tok.inst.list() {
		if c.id.tok.covers(r) {
			list = append(list, r)
		}
	}
	a := counted(c, "repositories", list, func(r *repository) any { return c.s.shapeRepo(r) })
	a.body.(obj)["repository_selection"] = "selected"
	return a
}

func (s *Server) shapeHookConfig() obj {
	return obj{"url": s.hooks.getURL(), "content_type": "json", "insecure_ssl": "0", "secret": "********"}
}

func listDeliveries(c *call) answer {
	list := c.s.hooks.list()
	slices.Reverse(list)
	failed := c.r.URL.Query().Get("status") == "failure"
	cursor, per := c.r.URL.Query().Get("cursor"), c.queryInt("per_page", 30, 100)
	rows, next := []any{}, ""
	for _, d := range list {
		if cursor != "" && d.ID > cursorID(cursor) || failed && (d.StatusCode < 400 || d.StatusCode > 599) {
			continue
		}
		if len(rows) == per {
			next = fmt.Sprint("v1_", d.ID)
			break
		}
		rows = append(rows, shapeDelivery(d))
	}
	a := ok(rows)
	if next != "" {
		u := *c.r.URL
		q := u.Query()
		q.Set("cursor", next)
		u.RawQuery = q.Encode()
		a.header = http.Header{"Link": {fmt.Sprintf("<%s%s>; rel=\"next\"", c.s.URL, u.RequestURI())}}
	}
	return a
}

func cursorID(text string) (id int64) {
	_, _ = fmt.Sscanf(text, "v1_%d", &id) // zero when it is no cursor
	return id
}

func shapeDelivery(d Delivery) obj {
	return obj{
		"id": d.ID, "guid": d.GUID, "delivered_at": stamp(d.At), "redelivery": d.Redelivery, "duration": d.Duration.Seconds(),
		"status": d.Status, "status_code": d.StatusCode, "event": d.Event, "action": orNil(d.Action),
		"installation_id": idOrNil(d.Installation), "repository_id": idOrNil(d.Repository), "throttled_at": nil,
	}
}

func getDelivery(c *call) answer {
	for _, d := range c.s.hooks.list() {
		if d.ID == c.number("delivery_id") {
			o := shapeDelivery(d)
			o["url"] = c.s.hooks.getURL()
			o["request"] = obj{"headers": d.headers, "payload": json.RawMessage(d.Payload)}
			o["response"] = obj{"headers": obj{}, "payload": d.response}
			return ok(o)
		}
	}
	return notFound()
}

func redeliver(c *call) answer {
	if !c.s.hooks.redeliver(c.number("delivery_id")) {
		return notFound()
	}
	return answer{status: http.StatusAccepted, body: obj{}}
}

func getUser(c *call) answer {
	a := c.s.accounts[strings.ToLower(c.vars["username"])]
	if a == nil {
		return notFound()
	}
	return ok(c.s.shapeProfile(a))
}

func (s *Server) shapeProfile(a *account) obj {
	o := s.shapeUser(a).(obj)
	for _, k := range []string{"name", "company", "location", "email", "hireable", "bio", "twitter_username"} {
		o[k] = nil
	}
	o["user_view_type"] = "public"
	o["blog"], o["public_repos"], o["public_gists"], o["followers"], o["following"] = "", 0, 0, 0, 0
	o["created_at"], o["updated_at"] = stamp(a.created), stamp(a.created)
	return o
}

// shapeApp is the App as an integration.
func (s *Server) shapeApp() obj {
	events := append([]string{}, s.app.Events...)
	sort.Strings(events)
	return obj{
		"id": s.AppID, "slug": s.AppSlug, "node_id": fmt.Sprintf("A_kwDO%08x", s.AppID), "owner": s.shapeUser(s.owner), "name": s.app.Name,
		"description": s.app.Description, "external_url": s.app.URL, "html_url": s.URL + "/apps/" + s.AppSlug,
		"created_at": stamp(s.created), "updated_at": stamp(s.created), "permissions": s.app.Permissions, "events": events,
		"installations_count": len(s.installs),
	}
}

func (s *Server) shapeInstallation(in *installation) obj {
	o := obj{
		"id": in.id, "account": s.shapeUser(in.account), "repository_selection": "selected",
		"access_tokens_url": fmt.Sprintf("%sapp/installations/%d/access_tokens", s.APIURL(), in.id),
		"repositories_url":  s.APIURL() + "installation/repositories", "html_url": fmt.Sprintf("%s/settings/installations/%d", s.URL, in.id),
		"app_id": s.AppID, "app_slug": s.AppSlug, "target_id": in.account.id, "target_type": in.account.kind,
		"permissions": s.app.Permissions, "events": s.app.Events, "created_at": stamp(in.created), "updated_at": stamp(in.updated),
		"single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []any{}, "suspended_by": nil, "suspended_at": nil,
	}
	if !in.suspended.IsZero() {
		o["suspended_by"], o["suspended_at"] = s.shapeUser(in.by), stamp(in.suspended)
	}
	return o
}

// stamp writes a time as GitHub does.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func stampOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func idOrNil(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
