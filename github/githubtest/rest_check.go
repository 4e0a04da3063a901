package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// checkOps are the operations on check runs and suites.
var checkOps = map[string]handler{
	"checks/create":              createCheck,
	"checks/update":              withCheck(updateCheck),
	"checks/list-annotations":    withCheck(listAnnotations),
	"checks/list-for-ref":        listChecks,
	"checks/list-suites-for-ref": listSuites,
}

func stampID(n int64) string { return strconv.FormatInt(n, 10) }

func withCheck(next func(*call, *checkRun) answer) handler {
	return func(c *call) answer {
		if x := c.repo.findCheckRun(c.number("check_run_id")); x != nil {
			return next(c, x)
		}
		return notFound()
	}
}

type checkRequest struct {
	Name        *string
	HeadSHA     string  `json:"head_sha"`
	ExternalID  *string `json:"external_id"`
	DetailsURL  *string `json:"details_url"`
	Status      *string
	Conclusion  *string
	StartedAt   *time.Time     `json:"started_at"`
	CompletedAt *time.Time     `json:"completed_at"`
	Actions     *[]checkAction `json:"actions"`
	Output      *struct {
		Title       *string
		Summary     *string
		Text        *string
		Annotations []obj
	}
}

var conclusions = []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}

// check holds a request against the limits that GitHub's description names.
func (q *checkRequest) check() *answer {
	refuse := func(field, message string) *answer {
		a := invalidField("CheckRun", field, "invalid", message)
		return &a
	}
	switch {
	case q.Conclusion != nil && !slices.Contains(conclusions, *q.Conclusion):
		return refuse("conclusion", "")
	case q.Status != nil && !slices.Contains([]string{"queued", "in_progress", "completed", "waiting", "requested", "pending"}, *q.Status):
		return refuse("status", "")
	case q.Status != nil && *q.Status == "completed" && q.Conclusion == nil:
		return refuse("conclusion", "For 'properties/status', completed needs a conclusion.")
	}
	if q.Actions != nil {
		if len(*q.Actions) > 3 {
			return refuse("actions", "Only 3 actions are allowed.")
		}
		for _, a := range *q.Actions {
			if len(a.Label) > 20 || len(a.Description) > 40 || len(a.Identifier) > 20 || a.Label == "" || a.Description == "" || a.Identifier == "" {
				return refuse("actions", "label 1 to 20, description 1 to 40, identifier 1 to 20 characters")
			}
		}
	}
	if o := q.Output; o != nil {
		switch {
		case o.Summary == nil:
			return refuse("output.summary", "summary wasn't supplied.")
		case len(*o.Summary) > 65535 || o.Text != nil && len(*o.Text) > 65535:
			return refuse("output", "Only 65535 characters are allowed")
		case o.Title != nil && len(*o.Title) > 255:
			return refuse("output.title", "Only 255 characters are allowed")
		case len(o.Annotations) > 50:
			return refuse("output.annotations", "No more than 50 items are allowed; "+strconv.Itoa(len(o.Annotations))+" were supplied.")
		}
	}
	return nil
}

func (q *checkRequest) apply(s *Server, x *checkRun) {
	set := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	set(&x.name, q.Name)
	set(&x.externalID, q.ExternalID)
	set(&x.detailsURL, q.DetailsURL)
	set(&x.status, q.Status)
	if q.Conclusion != nil {
		x.status, x.conclusion = "completed", *q.Conclusion
	} else if q.Status != nil {
		x.conclusion, x.completed = "", time.Time{}
	}
	if q.StartedAt != nil {
		x.started = *q.StartedAt
	}
	if x.started.IsZero() {
		x.started = s.now()
	}
	if x.status == "completed" && x.completed.IsZero() {
		x.completed = s.now()
	}
	if q.CompletedAt != nil {
		x.completed = *q.CompletedAt
	}
	if q.Actions != nil {
		x.actions = *q.Actions
	}
	if o := q.Output; o != nil {
		set(&x.title, o.Title)
		set(&x.summary, o.Summary)
		set(&x.text, o.Text)
		x.annotations = append(x.annotations, o.Annotations...)
	}
	x.suite.updated = s.now()
}

func createCheck(c *call) answer {
	var req checkRequest
	if a := c.decode(&req); a != nil {
		return *a
	}
	if req.Name == nil || *req.Name == "" || req.HeadSHA == "" {
		return invalidField("CheckRun", "name", "missing_field", "name and head_sha are needed")
	}
	if !c.commitExists(req.HeadSHA) {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+req.HeadSHA)
	}
	if a := req.check(); a != nil {
		return *a
	}
	branch := ""
	for _, b := range c.branches() {
		if c.repo.refs["refs/heads/"+b] == req.HeadSHA {
			branch = b
		}
	}
	x := &checkRun{id: c.s.id(), suite: c.s.suite(c.repo, req.HeadSHA, branch), status: "queued"}
	x.node = c.s.register("CR", x.id, x)
	req.apply(c.s, x)
	x.suite.runs = append(x.suite.runs, x)
	c.s.tellCheck(x, c.actor, "created", "")
	return created(c.s.shapeCheckRun(x))
}

// tellCheck tells of a check run that was made or has ended.
func (s *Server) tellCheck(x *checkRun, by *account, action, before string) {
	r := x.suite.repo
	if action != "" {
		s.emit(r, "check_run", action, by, obj{"check_run": s.shapeCheckRunHook(x)})
	}
	if x.status == "completed" && before != "completed" {
		s.emit(r, "check_run", "completed", by, obj{"check_run": s.shapeCheckRunHook(x)})
		if status, _ := x.suite.summary(); status == "completed" {
			s.emit(r, "check_suite", "completed", by, obj{"check_suite": s.shapeCheckSuite(x.suite)})
		}
	}
}

func updateCheck(c *call, x *checkRun) answer {
	var req checkRequest
	if a := c.decode(&req); a != nil {
		return *a
	}
	if a := req.check(); a != nil {
		return *a
	}
	if x.suite.app != nil && c.id.kind == identInstallation {
		return fail(http.StatusForbidden, fmt.Sprintf("Invalid app_id `%d` - check run can only be modified by the GitHub App that created it.", x.suite.app.id))
	}
	before := x.status
	req.apply(c.s, x)
	c.s.tellCheck(x, c.actor, "", before)
	return ok(c.s.shapeCheckRun(x))
}

func listAnnotations(c *call, x *checkRun) answer {
	return listing(c, x.annotations, func(a obj) any {
		o := obj{"start_column": nil, "end_column": nil, "title": nil, "raw_details": nil, "blob_href": c.s.html(c.repo) + "/blob/" + x.suite.head + "/"}
		for k, v := range a {
			o[k] = v
		}
		return o
	})
}

func (c *call) checkList(list []*checkRun) answer {
	q := c.r.URL.Query()
	app, _ := json.Number(q.Get("app_id")).Int64()
	list = slices.DeleteFunc(slices.Clone(list), func(x *checkRun) bool {
		return q.Get("check_name") != "" && q.Get("check_name") != x.name || q.Get("status") != "" && q.Get("status") != x.status || app != 0 &&
			app != c.s.appID(x.suite)
	})
	if q.Get("filter") != "all" { // the newest of each name
		list = slices.DeleteFunc(slices.Clone(list), func(x *checkRun) bool {
			return slices.ContainsFunc(list, func(y *checkRun) bool { return y.name == x.name && y.suite == x.suite && y.id > x.id })
		})
	}
	return counted(c, "check_runs", list, func(x *checkRun) any { return c.s.shapeCheckRun(x) })
}

func listChecks(c *call) answer {
	sha, found := c.at(c.vars["ref"])
	if !found {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.vars["ref"])
	}
	var list []*checkRun
	for _, su := range c.repo.suites {
		if su.head == sha {
			list = append(list, su.runs...)
		}
	}
	return c.checkList(list)
}

func listSuites(c *call) answer {
	sha, found := c.at(c.vars["ref"])
	if !found {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.vars["ref"])
	}
	list := slices.DeleteFunc(slices.Clone(c.repo.suites), func(su *checkSuite) bool { return su.head != sha })
	return counted(c, "check_suites", list, func(su *checkSuite) any { return c.s.shapeCheckSuite(su) })
}
