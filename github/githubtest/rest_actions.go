package githubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// actionsOps are the operations on workflow runs and their jobs.
var actionsOps = map[string]handler{
	"actions/list-workflow-runs-for-repo":        listWorkflowRuns,
	"actions/get-workflow-run":                   withWorkflow(func(c *call, w *workflowRun) answer { return ok(c.s.shapeWorkflowRun(w)) }),
	"actions/list-jobs-for-workflow-run":         withWorkflow(listJobs),
	"actions/get-job-for-workflow-run":           withJob(func(c *call, j *ciJob) answer { return ok(c.s.shapeJob(j)) }),
	"actions/download-job-logs-for-workflow-run": withJob(downloadLog),
}

func withWorkflow(next func(*call, *workflowRun) answer) handler {
	return func(c *call) answer {
		if w := c.repo.findWorkflowRun(c.number("run_id")); w != nil {
			return next(c, w)
		}
		return notFound()
	}
}

func withJob(next func(*call, *ciJob) answer) handler {
	return func(c *call) answer {
		for _, w := range c.repo.workflows {
			for _, j := range w.jobs {
				if j.check.id == c.number("job_id") {
					return next(c, j)
				}
			}
		}
		return notFound()
	}
}

func listWorkflowRuns(c *call) answer {
	q := c.r.URL.Query()
	list := slices.DeleteFunc(slices.Clone(c.repo.workflows), func(w *workflowRun) bool {
		return q.Get("head_sha") != "" && q.Get("head_sha") != w.suite.head || q.Get("event") != "" && q.Get("event") != w.event ||
			q.Get("check_suite_id") != "" && q.Get("check_suite_id") != strconv.FormatInt(w.suite.id, 10)
	})
	slices.Reverse(list)
	return counted(c, "workflow_runs", list, func(w *workflowRun) any { return c.s.shapeWorkflowRun(w) })
}

func listJobs(c *call, w *workflowRun) answer {
	list := w.jobs
	if c.r.URL.Query().Get("filter") != "all" {
		list = slices.DeleteFunc(slices.Clone(list), func(j *ciJob) bool {
			return slices.ContainsFunc(w.jobs, func(k *ciJob) bool { return k.check.name == j.check.name && k.attempt > j.attempt })
		})
	}
	return counted(c, "jobs", list, func(j *ciJob) any { return c.s.shapeJob(j) })
}

// downloadLog leads to a place that holds the log for a minute.
func downloadLog(c *call, j *ciJob) answer {
	if j.log == "" {
		return fail(http.StatusGone, "Server Error: the logs for this job are no longer available")
	}
	key := randomHex(16)
	c.s.logs[key] = jobLog{text: j.log, until: c.s.now().Add(time.Minute)}
	return answer{status: http.StatusFound, header: http.Header{"Location": {c.s.URL + "/-/logs/" + key}}}
}

func (w *workflowRun) path() string {
	return ".github/workflows/" + strings.ToLower(strings.ReplaceAll(w.name, " ", "-")) + ".yml"
}

func (s *Server) shapeWorkflowRun(w *workflowRun) obj {
	su, r := w.suite, w.suite.repo
	status, conclusion := su.summary()
	api, by := fmt.Sprintf("%s/actions/runs/%d", s.api(r), w.id), s.shapeUser(s.ci[ActionsSlug].bot)
	previous := any(nil)
	if w.attempt > 1 {
		previous = fmt.Sprintf("%s/attempts/%d", api, w.attempt-1)
	}
	o := obj{
		"id": w.id, "node_id": w.node, "name": w.name, "display_title": w.name, "path": w.path(), "run_number": w.number, "run_attempt": w.attempt,
		"event": w.event, "status": status, "conclusion": orNil(conclusion), "workflow_id": w.workflow, "check_suite_id": su.id, "check_suite_node_id": su.node,
		"head_sha": su.head, "head_branch": orNil(su.branch), "head_commit": nil, "repository": s.shapeRepo(r), "head_repository": s.shapeRepo(r),
		"head_repository_id": r.id, "pull_requests": s.pullsWithHead(r, su.head), "actor": by, "triggering_actor": by, "referenced_workflows": []any{},
		"url": api, "html_url": fmt.Sprintf("%s/actions/runs/%d", s.html(r), w.id), "jobs_url": api + "/jobs", "logs_url": api + "/logs",
		"check_suite_url": fmt.Sprintf("%s/check-suites/%d", s.api(r), su.id), "artifacts_url": api + "/artifacts", "cancel_url": api + "/cancel",
		"rerun_url": api + "/rerun", "previous_attempt_url": previous, "workflow_url": fmt.Sprintf("%s/actions/workflows/%d", s.api(r), w.workflow),
		"created_at": stamp(w.created), "updated_at": stamp(su.updated), "run_started_at": stamp(w.created),
	}
	if at, err := s.commitAt(r, su.head); err == nil {
		o["head_commit"] = shapeSimpleCommit(at)
	}
	return o
}

func (s *Server) shapeJob(j *ciJob) obj {
	x, r := j.check, j.run.suite.repo
	api, steps := fmt.Sprintf("%s/actions/jobs/%d", s.api(r), x.id), []any{}
	for i, st := range j.steps {
		status, from, to := "completed", st.Started, st.Ended
		if st.Conclusion == "" {
			status = "in_progress"
		}
		if from.IsZero() {
			from = x.started
		}
		if to.IsZero() {
			to = x.completed
		}
		steps = append(steps, obj{"name": st.Name, "status": status, "conclusion": orNil(st.Conclusion), "number": i + 1,
			"started_at": stamp(from), "completed_at": stampOrNil(to)})
	}
	return obj{
		"id": x.id, "node_id": x.node, "run_id": j.run.id, "run_url": fmt.Sprintf("%s/actions/runs/%d", s.api(r), j.run.id), "run_attempt": j.attempt,
		"head_sha": x.suite.head, "head_branch": orNil(x.suite.branch), "workflow_name": j.run.name, "name": x.name, "url": api, "html_url": x.detailsURL,
		"status": x.status, "conclusion": orNil(x.conclusion), "created_at": stamp(x.started), "started_at": stamp(x.started),
		"completed_at": stampOrNil(x.completed),
		"steps":        steps, "check_run_url": fmt.Sprintf("%s/check-runs/%d", s.api(r), x.id), "labels": []string{"ubuntu-latest"},
		"runner_id": 1, "runner_name": "runner-1", "runner_group_id": 1, "runner_group_name": "GitHub Actions",
	}
}

func (s *Server) appID(su *checkSuite) int64 {
	if su.app != nil {
		return su.app.id
	}
	return s.AppID
}

// shapeAppOf is the App that a suite belongs to.
func (s *Server) shapeAppOf(su *checkSuite) obj {
	o := s.shapeApp()
	o["events"] = without(o["events"], "merge_group")
	if a := su.app; a != nil {
		o["id"], o["slug"], o["name"], o["node_id"] = a.id, a.slug, a.slug, fmt.Sprintf("A_kwDO%08x", a.id)
		o["description"], o["external_url"], o["html_url"] = "", s.URL+"/apps/"+a.slug, s.URL+"/apps/"+a.slug
		o["events"], o["permissions"] = []string{}, map[string]string{"checks": "write"}
	}
	return o
}
