package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// actionsApp is the slug of GitHub Actions, on github.com and on servers.
const actionsApp = "github-actions"

// maxCheckPages bounds every list of 100 that is read for a commit's checks.
const maxCheckPages = 20

// ChecksState says how the checks of a commit stand, or a single one.
type ChecksState string

// The states.
const (
	ChecksNone    ChecksState = "none"    // nothing started at all
	ChecksRunning ChecksState = "running" // not all have completed
	ChecksPassed  ChecksState = "passed"  // all completed, none failed, and one at least succeeded
	ChecksFailed  ChecksState = "failed"  // all completed, and one at least failed
	ChecksSkipped ChecksState = "skipped" // all completed, and nothing ran: they were skipped, or neutral
)

// Check is one check of the repository's own CI on a commit.
type Check struct {
	Name       string
	App        string // slug of the App whose check run it is; "" for a commit status
	State      ChecksState
	Conclusion string // GitHub's word
	URL        string
	Started    time.Time          // zero for a commit status
	Ended      time.Time          // zero while it runs
	Failures   []pipeline.Failure // of a failed one, at least one
}

// Checks is what the repository's own CI says of a commit: the latest check runs of
// all Apps but Forge's own, and the latest commit statuses.
type Checks struct {
	Head  string
	State ChecksState
	List  []Check // by name
	Since time.Time
	Read  time.Time // when it was read
	Notes []string  // what could not be read of what failed, and why
}

// Of returns the names of the checks in a state.
func (c Checks) Of(state ChecksState) []string {
	var out []string
	for _, k := range c.List {
		if k.State == state {
			out = append(out, k.Name)
		}
	}
	return out
}

// Checks reads the state of the repository's own CI on a commit. since is when the
// commit was pushed, for the words of "no check started"; it leaves nothing out.
//
// Of a check that ran more than once the latest run counts: by name and App, and
// for GitHub Actions by workflow, event and job, so that two workflows with a job
// of the same name do not hide each other. What failed is looked into: output,
// annotations, the failing step, and its part of the log. What of that cannot be
// read is said in Notes and loses nothing else.
func (a *App) Checks(ctx context.Context, repo pipeline.Repo, sha string, since time.Time) (Checks, error) {
	r := &checksReader{app: a, repo: repo, sha: sha, jobs: map[int64][]*gh.WorkflowJob{}}
	out := Checks{Head: sha, Since: since, Read: a.opts.Clock()}
	var err error
	if r.api, err = a.session(repo); err != nil {
		return out, err
	}
	for _, read := range []func(context.Context) error{r.readRuns, r.readSuites, r.readWorkflows, r.readStatuses} {
		if err := read(ctx); err != nil {
			return out, err
		}
	}
	if err := r.judge(ctx); err != nil {
		return out, err
	}
	slices.SortStableFunc(r.list, func(a, b Check) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.App, b.App)) })
	out.List, out.Notes, out.State = r.list, r.notes, overall(r.list)
	return out, nil
}

func overall(list []Check) ChecksState {
	n := map[ChecksState]int{}
	for _, c := range list {
		n[c.State]++
	}
	switch {
	case len(list) == 0:
		return ChecksNone
	case n[ChecksRunning] > 0:
		return ChecksRunning
	case n[ChecksFailed] > 0:
		return ChecksFailed
	case n[ChecksPassed] > 0:
		return ChecksPassed
	}
	return ChecksSkipped
}

// stateOf reads a status and a conclusion. A conclusion that is not known is a
// failure: what cannot be judged has not passed.
func stateOf(status, conclusion string) ChecksState {
	if status != "completed" {
		return ChecksRunning
	}
	switch conclusion {
	case "success":
		return ChecksPassed
	case "neutral", "skipped":
		return ChecksSkipped
	}
	return ChecksFailed
}

// checksReader reads the checks of one commit.
type checksReader struct {
	app  *App
	repo pipeline.Repo
	sha  string
	api  *session // checks
	act  *session // GitHub Actions; nil until needed, and when not permitted

	runs      []*gh.CheckRun
	suites    []*gh.CheckSuite
	workflows map[int64]*gh.WorkflowRun // by their suite
	statuses  []*gh.RepoStatus
	jobs      map[int64][]*gh.WorkflowJob // by workflow run
	list      []Check
	looked    int // failed checks that were looked into
	notes     []string
}

// each asks for the pages of a list one after the other.
func (r *checksReader) each(op, permission string, page func(gh.ListOptions) (*gh.Response, error)) error {
	o := gh.ListOptions{PerPage: 100, Page: 1}
	for range maxCheckPages {
		resp, err := page(o)
		if err = explain(fmt.Sprintf("%s of %s in %s", op, text.ShortSHA(r.sha), r.repo.FullName()), permission, err); err != nil {
			return err
		}
		if resp.NextPage == 0 {
			return nil
		}
		o.Page = resp.NextPage
	}
	return final("%s of %s in %s: there are more than %d, and what is not read cannot be judged.", op, text.ShortSHA(r.sha), r.repo.FullName(), maxCheckPages*100)
}

func (r *checksReader) readRuns(ctx context.Context) error {
	return r.each("list the check runs", "checks: read", func(o gh.ListOptions) (*gh.Response, error) {
		l, resp, err := r.api.rest.Checks.ListCheckRunsForRef(ctx, r.repo.Owner, r.repo.Name, r.sha,
			&gh.ListCheckRunsOptions{Filter: gh.String("latest"), ListOptions: o})
		if err != nil {
			return resp, err
		}
		for _, c := range l.CheckRuns {
			if c.GetApp().GetID() != r.app.opts.AppID {
				r.runs = append(r.runs, c)
			}
		}
		return resp, nil
	})
}

// readSuites reads the check suites: one whose workflow could not even start has no
// check run, and neither has one that waits for approval or has just begun.
func (r *checksReader) readSuites(ctx context.Context) error {
	return r.each("list the check suites", "checks: read", func(o gh.ListOptions) (*gh.Response, error) {
		l, resp, err := r.api.rest.Checks.ListCheckSuitesForRef(ctx, r.repo.Owner, r.repo.Name, r.sha, &gh.ListCheckSuiteOptions{ListOptions: o})
		if err != nil {
			return resp, err
		}
		for _, s := range l.CheckSuites {
			if s.GetApp().GetID() != r.app.opts.AppID {
				r.suites = append(r.suites, s)
			}
		}
		return resp, nil
	})
}

// readWorkflows reads which workflow run each suite of GitHub Actions belongs to.
// Without the permission, each suite stands for itself: none supersedes another.
func (r *checksReader) readWorkflows(ctx context.Context) error {
	if !slices.ContainsFunc(r.suites, func(s *gh.CheckSuite) bool { return s.GetApp().GetSlug() == actionsApp }) {
		return nil
	}
	act, err := r.app.sessionFor(r.repo, scopeActions)
	if err != nil {
		return err
	}
	found := map[int64]*gh.WorkflowRun{}
	err = r.each("list the workflow runs", "actions: read", func(o gh.ListOptions) (*gh.Response, error) {
		l, resp, err := act.rest.Actions.ListRepositoryWorkflowRuns(ctx, r.repo.Owner, r.repo.Name, &gh.ListWorkflowRunsOptions{HeadSHA: r.sha, ListOptions: o})
		if err != nil {
			return resp, err
		}
		for _, w := range l.WorkflowRuns {
			found[w.GetCheckSuiteID()] = w
		}
		return resp, nil
	})
	if err != nil {
		return r.soft("Jobs and logs of GitHub Actions were not read", err)
	}
	r.act, r.workflows = act, found
	return nil
}

func (r *checksReader) readStatuses(ctx context.Context) error {
	s, err := r.app.sessionFor(r.repo, scopeStatuses)
	if err != nil {
		return err
	}
	return r.each("list the commit statuses", "statuses: read", func(o gh.ListOptions) (*gh.Response, error) {
		l, resp, err := s.rest.Repositories.GetCombinedStatus(ctx, r.repo.Owner, r.repo.Name, r.sha, &o)
		if err == nil {
			r.statuses = append(r.statuses, l.Statuses...)
		}
		return resp, err
	})
}

// soft keeps an error that trying again cannot mend as a note, and returns others.
func (r *checksReader) soft(what string, err error) error {
	var fault *pipeline.Fault
	switch code := status(err); {
	case errors.As(err, &fault):
		r.note(what + ": " + fault.Message)
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusUnauthorized:
		r.note(what + ": " + err.Error())
	default:
		return err
	}
	return nil
}

func (r *checksReader) note(words string) {
	if words = render.Line(text.Scrub(words), "", 400); !slices.Contains(r.notes, words) && len(r.notes) < 20 {
		r.notes = append(r.notes, words)
	}
}

// superseded tells the suites of workflow runs after which the same workflow ran
// again for the same event. A run that was skipped as a whole supersedes none.
func (r *checksReader) superseded() map[int64]bool {
	out, newest := map[int64]bool{}, map[string]*gh.WorkflowRun{}
	for suite, w := range r.workflows {
		key := fmt.Sprintf("%d/%s", w.GetWorkflowID(), w.GetEvent())
		old := newest[key]
		if old == nil {
			newest[key] = w
			continue
		}
		if newer(old, w) {
			newest[key] = w
			suite = old.GetCheckSuiteID()
		}
		out[suite] = true
	}
	return out
}

// newer reports whether workflow run b stands for a as well.
func newer(a, b *gh.WorkflowRun) bool {
	if x, y := a.GetConclusion() == "skipped", b.GetConclusion() == "skipped"; x != y {
		return x
	}
	return b.GetID() > a.GetID()
}

// judge makes the list of checks.
func (r *checksReader) judge(ctx context.Context) error {
	stale, latest, seen := r.superseded(), map[string]*gh.CheckRun{}, map[int64]bool{}
	var keys []string
	for _, c := range r.runs {
		suite := c.GetCheckSuite().GetID()
		seen[suite] = true
		if stale[suite] {
			continue
		}
		key := fmt.Sprintf("%d/%s", c.GetApp().GetID(), c.GetName())
		if c.GetApp().GetSlug() == actionsApp {
			key = fmt.Sprintf("suite/%d/%s", suite, c.GetName())
		}
		if latest[key] == nil {
			keys = append(keys, key)
		}
		if latest[key] == nil || c.GetID() > latest[key].GetID() {
			latest[key] = c
		}
	}
	for _, k := range keys {
		if err := r.checkRun(ctx, latest[k]); err != nil {
			return err
		}
	}
	for _, s := range r.suites {
		if !seen[s.GetID()] && !stale[s.GetID()] {
			r.suite(s)
		}
	}
	for _, s := range r.statuses {
		r.status(s)
	}
	return nil
}

// suite judges a suite without check runs. Those of Apps that never began are
// queued for ever, or become stale after two weeks: they say nothing.
func (r *checksReader) suite(s *gh.CheckSuite) {
	state, actions := stateOf(s.GetStatus(), s.GetConclusion()), s.GetApp().GetSlug() == actionsApp
	switch {
	case s.GetConclusion() == "stale", state == ChecksPassed, state == ChecksRunning && !actions:
		return
	}
	c := Check{Name: "check suite", App: label(s.GetApp().GetSlug()), State: state, Conclusion: label(s.GetConclusion()), Started: s.GetCreatedAt().Time}
	if w := r.workflows[s.GetID()]; w != nil {
		c.Name, c.URL = label(w.GetName()), w.GetHTMLURL()
	}
	if state != ChecksRunning {
		c.Ended = s.GetUpdatedAt().Time
	}
	if state == ChecksFailed {
		why := map[string]string{
			"startup_failure": "The workflow could not start: its file has a mistake, or it may not run here.",
			"action_required": "It waits for somebody's approval before it starts.",
		}[c.Conclusion]
		if why == "" {
			why = fmt.Sprintf("It ended before a check started: %s.", c.Conclusion)
		}
		c.Failures = failures(pipeline.Failure{Test: c.Name, Error: why})
	}
	r.list = append(r.list, c)
}

func (r *checksReader) status(s *gh.RepoStatus) {
	c := Check{Name: label(s.GetContext()), Conclusion: label(s.GetState()), URL: s.GetTargetURL(), Ended: s.GetUpdatedAt().Time}
	switch s.GetState() {
	case "pending":
		c.State, c.Ended = ChecksRunning, time.Time{}
	case "success":
		c.State = ChecksPassed
	default:
		c.State = ChecksFailed
		text := s.GetDescription()
		if strings.TrimSpace(text) == "" {
			text = "The commit status is " + s.GetState() + "."
		}
		c.Failures = failures(pipeline.Failure{Test: c.Name, Error: text})
	}
	r.list = append(r.list, c)
}

// label is a name that others gave, in one line.
func label(s string) string {
	s = render.Shorten(strings.Join(strings.Fields(render.Visible(text.Scrub(render.Head(s, 200)))), " "), 200)
	if s == "" {
		return "(no name)"
	}
	return s
}
