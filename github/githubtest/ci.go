package githubtest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ActionsSlug is the slug of GitHub Actions, whose check runs are jobs.
const ActionsSlug = "github-actions"

// CI is another App that checks the commits of a repository: GitHub Actions, or
// any service. Each method does what such an App does by the API, and the webhooks
// follow.
type CI struct {
	s    *Server
	app  *ciApp
	repo string
	ID   int64 // the App's
}

type ciApp struct {
	id   int64
	slug string
	bot  *account
}

// workflowRun is a run of GitHub Actions. Its jobs are the check runs of its suite.
type workflowRun struct {
	id       int64
	node     string
	number   int
	attempt  int
	name     string
	event    string
	suite    *checkSuite
	jobs     []*ciJob // of all attempts
	created  time.Time
	workflow int64
}

type ciJob struct {
	run     *workflowRun
	check   *checkRun // its id is the job's, as on GitHub
	attempt int
	steps   []Step
	log     string
}

type jobLog struct {
	text  string
	until time.Time
}

// Check is what a CI says of a commit. With a Conclusion it is completed.
type Check struct {
	Name                 string
	Status               string // queued, in_progress (the default), completed
	Conclusion           string
	Title, Summary, Text string
	DetailsURL           string
	Annotations          []Annotation
}

// Annotation is a remark of a check on a line.
type Annotation struct {
	Path           string
	Line           int
	Level          string // notice, warning, failure (the default)
	Title, Message string
}

// Workflow is a run of GitHub Actions. One that never got to its jobs has a
// Conclusion and no Jobs: startup_failure, or action_required when it waits for
// somebody's approval.
type Workflow struct {
	Name       string // "CI"
	Event      string // what started it; default push
	Jobs       []Job
	Conclusion string
}

// Job is a job of a workflow. Without a Conclusion it is still at work.
type Job struct {
	Name        string
	Conclusion  string
	Steps       []Step
	Log         string // as GitHub stores it, with times; "" when it is gone
	Annotations []Annotation
}

// Step is a step of a job.
type Step struct {
	Name, Conclusion string
	Started, Ended   time.Time // now when zero
}

// CI returns the App with a slug, which is made if new and may act on the repository.
func (s *Server) CI(repo, slug string) (*CI, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.repo(repo); err != nil {
		return nil, fmt.Errorf("let %s check %s: %w", slug, repo, err)
	}
	if slug == s.AppSlug || !nameRule.MatchString(slug) {
		return nil, fmt.Errorf("let %q check %s: give the slug of another App, for example %s", slug, repo, ActionsSlug)
	}
	app := s.ci[slug]
	if app == nil {
		app = &ciApp{id: s.id(), slug: slug, bot: s.account(slug+"[bot]", "Bot")}
		if slug == ActionsSlug {
			app.id = 15368 // as on github.com
		}
		s.ci[slug] = app
	}
	return &CI{s: s, app: app, repo: repo, ID: app.id}, nil
}

// on runs f with the repository of the CI.
func (c *CI) on(what string, f func(*repository) error) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	r, err := c.s.repo(c.repo)
	if err == nil {
		err = f(r)
	}
	c.s.touch()
	if err != nil {
		return fmt.Errorf("%s: %s in %s: %w", c.app.slug, what, c.repo, err)
	}
	return nil
}

// Start makes a check run on a commit and returns its id. A second one of the same
// name supersedes the first.
func (c *CI) Start(sha string, k Check) (id int64, err error) {
	err = c.on("start check "+k.Name, func(r *repository) error {
		su, err := c.suite(r, sha, false)
		if err != nil {
			return err
		}
		x, err := c.add(su, k)
		if err == nil {
			id = x.id
			c.s.tellCheck(x, c.app.bot, "created", "")
		}
		return err
	})
	return id, err
}

// Update changes a check run: its status, its end, its words.
func (c *CI) Update(id int64, k Check) error {
	return c.on(fmt.Sprintf("update check run %d", id), func(r *repository) error {
		x := r.findCheckRun(id)
		if x == nil || x.suite.app != c.app {
			return errors.New("it has no such check run")
		}
		before := x.status
		if err := c.fill(x, k); err != nil {
			return err
		}
		c.s.tellCheck(x, c.app.bot, "", before)
		return nil
	})
}

// Status sets a commit status: pending, success, failure or error.
func (c *CI) Status(sha, context, state, description string) error {
	return c.on("set status "+context, func(r *repository) error {
		if !slices.Contains([]string{"error", "failure", "pending", "success"}, state) {
			return fmt.Errorf("there is no state %q", state)
		}
		full, found := c.s.resolve(r, sha)
		if !found {
			return fmt.Errorf("there is no commit %s", sha)
		}
		c.s.addStatus(r, c.app.bot, commitStatus{sha: full, state: state, context: context, description: description})
		return nil
	})
}

// suite finds or makes the App's suite for a commit. Each run of GitHub Actions
// has a suite of its own.
func (c *CI) suite(r *repository, sha string, fresh bool) (*checkSuite, error) {
	full, found := c.s.resolve(r, sha)
	if !found {
		return nil, fmt.Errorf("there is no commit %s", sha)
	}
	for _, su := range r.suites {
		if !fresh && su.head == full && su.app == c.app {
			return su, nil
		}
	}
	su := &checkSuite{id: c.s.id(), repo: r, app: c.app, head: full, created: c.s.now(), updated: c.s.now()}
	for ref, at := range r.refs {
		if branch, isBranch := strings.CutPrefix(ref, "refs/heads/"); isBranch && at == full && (su.branch == "" || branch < su.branch) {
			su.branch = branch
		}
	}
	su.node = c.s.register("CS", su.id, su)
	r.suites = append(r.suites, su)
	return su, nil
}

func (c *CI) add(su *checkSuite, k Check) (*checkRun, error) {
	if k.Name == "" {
		return nil, errors.New("the check has no name")
	}
	x := &checkRun{id: c.s.id(), suite: su, name: k.Name, started: c.s.now()}
	if err := c.fill(x, k); err != nil {
		return nil, err
	}
	x.node = c.s.register("CR", x.id, x)
	su.runs = append(su.runs, x)
	return x, nil
}

func (c *CI) fill(x *checkRun, k Check) error {
	switch {
	case k.Conclusion != "" && !slices.Contains(conclusions, k.Conclusion):
		return fmt.Errorf("there is no conclusion %q", k.Conclusion)
	case k.Conclusion != "":
		x.status, x.conclusion, x.completed = "completed", k.Conclusion, c.s.now()
	case k.Status == "completed":
		return errors.New("a completed check needs a conclusion")
	case k.Status != "":
		x.status, x.conclusion = k.Status, ""
	default:
		x.status, x.conclusion = "in_progress", ""
	}
	x.title, x.summary, x.text, x.detailsURL = k.Title, k.Summary, k.Text, k.DetailsURL
	x.annotations = nil
	for _, a := range k.Annotations {
		level := a.Level
		if level == "" {
			level = "failure"
		}
		x.annotations = append(x.annotations, obj{"path": a.Path, "start_line": a.Line, "end_line": a.Line, "annotation_level": level,
			"title": orNil(a.Title), "message": a.Message})
	}
	x.suite.updated = c.s.now()
	return nil
}

// Run runs a workflow of GitHub Actions on a commit and returns the run's id.
func (c *CI) Run(sha string, w Workflow) (id int64, err error) {
	err = c.on("run workflow "+w.Name, func(r *repository) error {
		if c.app.slug != ActionsSlug {
			return errors.New("only " + ActionsSlug + " has workflows")
		}
		su, err := c.suite(r, sha, true)
		if err != nil {
			return err
		}
		run := &workflowRun{id: c.s.id(), name: w.Name, event: w.Event, suite: su, attempt: 1, created: c.s.now(), workflow: c.s.id()}
		run.node = c.s.register("WFR", run.id, run)
		if run.event == "" {
			run.event = "push"
		}
		for _, other := range r.workflows {
			if other.name == w.Name {
				run.workflow, run.number = other.workflow, max(run.number, other.number)
			}
		}
		run.number++
		r.workflows = append(r.workflows, run)
		id = run.id
		c.s.tellWorkflow(run, c.app.bot, "requested")
		if len(w.Jobs) == 0 {
			if su.ended = w.Conclusion; w.Conclusion != "" {
				c.s.emit(r, "check_suite", "completed", c.app.bot, obj{"check_suite": c.s.shapeCheckSuite(su)})
				c.s.tellWorkflow(run, c.app.bot, "completed")
			}
			return nil
		}
		return c.jobs(run, w.Jobs)
	})
	return id, err
}

// Finish brings jobs of a workflow run to a new state, by their names.
func (c *CI) Finish(run int64, jobs ...Job) error {
	return c.onRun("finish jobs of", run, func(w *workflowRun) error { return c.jobs(w, jobs) })
}

// Rerun starts jobs of a workflow run again, as its next attempt.
func (c *CI) Rerun(run int64, jobs ...Job) error {
	return c.onRun("re-run", run, func(w *workflowRun) error {
		w.attempt++
		return c.jobs(w, jobs)
	})
}

func (c *CI) onRun(what string, id int64, f func(*workflowRun) error) error {
	return c.on(fmt.Sprintf("%s workflow run %d", what, id), func(r *repository) error {
		if w := r.findWorkflowRun(id); w != nil {
			return f(w)
		}
		return errors.New("there is no such run")
	})
}

// jobs makes or changes the jobs of the newest attempt, and tells when all ended.
func (c *CI) jobs(w *workflowRun, list []Job) error {
	ended, _ := w.suite.summary()
	for _, j := range list {
		job := w.job(j.Name)
		k := Check{Name: j.Name, Conclusion: j.Conclusion, Annotations: j.Annotations}
		before := ""
		if job == nil {
			x, err := c.add(w.suite, k)
			if err != nil {
				return err
			}
			job = &ciJob{run: w, check: x, attempt: w.attempt}
			w.jobs = append(w.jobs, job)
			c.s.emit(w.suite.repo, "check_run", "created", c.app.bot, obj{"check_run": c.s.shapeCheckRunHook(x)})
		} else {
			before = job.check.status
			if err := c.fill(job.check, k); err != nil {
				return err
			}
		}
		job.check.detailsURL = fmt.Sprintf("%s/actions/runs/%d/job/%d", c.s.html(w.suite.repo), w.id, job.check.id)
		job.steps, job.log = j.Steps, j.Log
		if job.check.status == "completed" && before != "completed" {
			c.s.emit(w.suite.repo, "check_run", "completed", c.app.bot, obj{"check_run": c.s.shapeCheckRunHook(job.check)})
		}
	}
	if status, _ := w.suite.summary(); status == "completed" && (ended != "completed" || w.attempt > 1) {
		c.s.emit(w.suite.repo, "check_suite", "completed", c.app.bot, obj{"check_suite": c.s.shapeCheckSuite(w.suite)})
		c.s.tellWorkflow(w, c.app.bot, "completed")
	}
	return nil
}

func (w *workflowRun) job(name string) *ciJob {
	for _, j := range w.jobs {
		if j.check.name == name && j.attempt == w.attempt {
			return j
		}
	}
	return nil
}

func (r *repository) findWorkflowRun(id int64) *workflowRun {
	for _, w := range r.workflows {
		if w.id == id {
			return w
		}
	}
	return nil
}

func (s *Server) tellWorkflow(w *workflowRun, by *account, action string) {
	r := w.suite.repo
	url := s.api(r) + "/actions/workflows/" + strconv.FormatInt(w.workflow, 10)
	s.emit(r, "workflow_run", action, by, obj{"workflow_run": s.shapeWorkflowRun(w), "workflow": obj{
		"id": w.workflow, "node_id": "W_" + strconv.FormatInt(w.workflow, 10), "name": w.name, "path": w.path(), "state": "active", "url": url,
		"html_url": s.html(r) + "/blob/main/" + w.path(), "badge_url": s.html(r) + "/workflows/" + strconv.FormatInt(w.workflow, 10) + "/badge.svg",
		"created_at": stamp(r.created), "updated_at": stamp(r.created),
	}})
}

// addStatus keeps a commit status and tells of it.
func (s *Server) addStatus(r *repository, by *account, st commitStatus) *commitStatus {
	st.id, st.user, st.at = s.id(), by, s.now()
	st.node = s.register("SC", st.id, &st)
	r.statuses = append(r.statuses, &st)
	branches := []any{}
	for ref, at := range r.refs {
		if branch, isBranch := strings.CutPrefix(ref, "refs/heads/"); isBranch && s.isAncestor(r, st.sha, at) {
			branches = append(branches, obj{"name": branch, "commit": obj{"sha": at, "url": s.api(r) + "/commits/" + at}, "protected": false})
		}
	}
	o := obj{
		"id": st.id, "sha": st.sha, "name": r.fullName(), "context": st.context, "description": orNil(st.description), "state": st.state,
		"target_url": orNil(st.target), "branches": branches, "created_at": stamp(st.at), "updated_at": stamp(st.at),
	}
	if at, err := s.commitAt(r, st.sha); err == nil {
		o["commit"] = s.shapeCommit(r, at)
	}
	s.emit(r, "status", "", by, o)
	return &st
}

// serveLog is the store that the address of a log leads to. Like the one of
// GitHub, it takes no credentials: the address is enough, for a minute.
func (s *Server) serveLog(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	l, known := s.logs[r.PathValue("key")]
	now := s.now()
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "":
		http.Error(w, "InvalidAuthenticationInfo", http.StatusBadRequest)
	case !known || now.After(l.until):
		http.Error(w, "AuthenticationFailed", http.StatusForbidden)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(l.text))
	}
}
