package githubtest

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"
)

// actions is GitHub Actions on the world's repository.
func (w *world) actions() *CI {
	w.t.Helper()
	c, err := w.s.CI(w.repo, ActionsSlug)
	w.must(err)
	return c
}

// A workflow of GitHub Actions, as an App sees it: webhooks, check runs, jobs, and
// the log behind its redirect. The contract holds every shape.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	head := pr.GetHead().GetSHA()
	w.settle()
	w.hook.names()
	ci := w.actions()
	run, err := ci.Run(head, Workflow{Name: "CI", Jobs: []Job{{Name: "test"}, {Name: "lint", Conclusion: "success"}}})
	w.must(err)
	w.must(ci.Finish(run, Job{
		Name: "test", Conclusion: "failure", Log: "2026-01-01T00:00:00.0000000Z boom\n",
		Steps:       []Step{{Name: "Set up", Conclusion: "success"}, {Name: "go test", Conclusion: "failure"}},
		Annotations: []Annotation{{Path: "shop.go", Line: 5, Message: "boom"}},
	}))
	w.settle()
	want := []string{"workflow_run.requested", "check_run.created", "check_run.created", "check_run.completed", "check_run.completed",
		"check_suite.completed", "workflow_run.completed"}
	if got := w.hook.names(); !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}
	runs, _, err := w.gh.Actions.ListRepositoryWorkflowRuns(w.ctx, "acme", "shop", &github.ListWorkflowRunsOptions{HeadSHA: head})
	w.must(err)
	if runs.GetTotalCount() != 1 || runs.WorkflowRuns[0].GetConclusion() != "failure" || runs.WorkflowRuns[0].GetHeadBranch() != "forge/issue-1" {
		t.Errorf("workflow runs = %v", runs)
	}
	_, _, err = w.gh.Actions.GetWorkflowRunByID(w.ctx, "acme", "shop", run)
	w.must(err)
	jobs, _, err := w.gh.Actions.ListWorkflowJobs(w.ctx, "acme", "shop", run, &github.ListWorkflowJobsOptions{Filter: "latest"})
	w.must(err)
	if len(jobs.Jobs) != 2 || jobs.Jobs[0].GetConclusion() != "failure" || len(jobs.Jobs[0].Steps) != 2 {
		t.Fatalf("jobs = %v", jobs)
	}
	job := jobs.Jobs[0].GetID()
	_, _, err = w.gh.Actions.GetWorkflowJobByID(w.ctx, "acme", "shop", job)
	w.must(err)
	notes, _, err := w.gh.Checks.ListCheckRunAnnotations(w.ctx, "acme", "shop", job, nil)
	w.must(err)
	if len(notes) != 1 || notes[0].GetMessage() != "boom" {
		t.Errorf("annotations of the job's check run = %v", notes)
	}
	at, _, err := w.gh.Actions.GetWorkflowJobLogs(w.ctx, "acme", "shop", job, 0)
	w.must(err)
	if status, text := w.do("GET", at.Path, "", ""); status != 200 || !strings.HasSuffix(text, " boom\n") {
		t.Errorf("log = %d %q", status, text)
	}
	if status, _ := w.do("GET", at.Path, w.token(), ""); status != 400 {
		t.Errorf("log asked for with a token = %d, want 400 as of GitHub's store", status)
	}

	w.must(ci.Rerun(run, Job{Name: "test", Conclusion: "success"}))
	list, _, err := w.gh.Checks.ListCheckRunsForRef(w.ctx, "acme", "shop", head, nil)
	w.must(err)
	if list.GetTotal() != 2 || list.CheckRuns[1].GetConclusion() != "success" || list.CheckRuns[0].GetApp().GetSlug() != ActionsSlug {
		t.Errorf("newest check runs after a re-run: %d %v", list.GetTotal(), list.CheckRuns)
	}
	all, _, err := w.gh.Checks.ListCheckRunsForRef(w.ctx, "acme", "shop", head, &github.ListCheckRunsOptions{Filter: github.String("all"), AppID: &ci.ID})
	w.must(err)
	if all.GetTotal() != 3 {
		t.Errorf("all check runs = %d, want 3", all.GetTotal())
	}
	if _, _, err := w.gh.Checks.UpdateCheckRun(w.ctx, "acme", "shop", job, github.UpdateCheckRunOptions{Name: "test"}); err == nil ||
		!strings.Contains(err.Error(), "403") {
		t.Errorf("changing another App's check run: %v, want 403", err)
	}
}

// Other services: check runs, statuses, suites that end before a check starts.
func TestOtherCI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ci, err := w.s.CI(w.repo, "build-kite")
	w.must(err)
	head := w.mainHead()
	id, err := ci.Start(head, Check{Name: "build", Title: "Building"})
	w.must(err)
	w.must(ci.Update(id, Check{Name: "build", Conclusion: "timed_out", Title: "Too slow"}))
	w.must(ci.Status(head, "ci/lint", "pending", "waiting"))
	w.must(ci.Status(head, "ci/lint", "success", "done"))
	w.settle()
	if got := w.hook.last("status"); got == nil || got["state"] != "success" || got["sha"] != head {
		t.Errorf("status = %v", got)
	}
	want := []string{"check_run.created", "check_run.completed", "check_suite.completed", "status", "status"}
	if got := w.hook.names(); !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}
	_, err = w.actions().Run(head, Workflow{Name: "Broken", Conclusion: "startup_failure"})
	w.must(err)
	suites, _, err := w.gh.Checks.ListCheckSuitesForRef(w.ctx, "acme", "shop", head, nil)
	w.must(err)
	var ends []string
	for _, su := range suites.CheckSuites {
		ends = append(ends, su.GetApp().GetSlug()+" "+su.GetConclusion())
	}
	if want := []string{"build-kite timed_out", "github-actions startup_failure"}; !slices.Equal(ends, want) {
		t.Errorf("suites = %q, want %q", ends, want)
	}
	for name, err := range map[string]error{
		"a check of another App": ci.Update(1, Check{Conclusion: "success"}),
		"no such state":          ci.Status(head, "x", "green", ""),
		"no such commit":         ci.Status(strings.Repeat("0", 40), "x", "success", ""),
		"no such run":            ci.Finish(1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := ci.Run(head, Workflow{Name: "CI"}); err == nil {
		t.Error("another service has workflows")
	}
	if _, err := w.s.CI(w.repo, w.s.AppSlug); err == nil {
		t.Error("the App itself is a CI")
	}
}

// Base branches, drafts and deleted branches, by methods and by the page's buttons.
func TestBranchesAndDrafts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	n := pr.GetNumber()
	text := "other\n"
	_, err := w.al.PushFiles(w.repo, Push{Branch: "next", Message: "Next", Files: map[string]*string{"next.txt": &text}})
	w.must(err)
	w.settle()
	w.hook.names()
	w.must(w.al.SetDraft(w.repo, n, false))
	w.must(w.al.SetDraft(w.repo, n, true))
	w.must(w.al.Retarget(w.repo, n, "next"))
	w.must(w.al.Close(w.repo, n))
	w.must(w.al.Close(w.repo, n))
	id, _, err := w.gh.Checks.CreateCheckRun(w.ctx, "acme", "shop", github.CreateCheckRunOptions{
		Name: "forge", HeadSHA: pr.GetHead().GetSHA(), Conclusion: github.String("action_required"), Status: github.String("completed"),
		Actions: []*github.CheckRunAction{{Label: "Continue", Description: "One more", Identifier: "continue:1@1"}},
	})
	w.must(err)
	w.must(w.al.Rerequest(w.repo, id.GetID()))
	if err := w.s.As("mallory").DeleteBranch(w.repo, "forge/issue-1"); err == nil {
		t.Error("a stranger deleted a branch")
	}
	w.must(w.al.DeleteBranch(w.repo, "next"))

	page := func(path string) string {
		resp, err := http.Get(w.s.URL + path)
		w.must(err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		w.must(err)
		return string(b)
	}
	path := "/acme/shop/pull/2"
	for _, want := range []string{"Ready for review", "Delete branch", `value="continue:1@1"`, "Re-run"} {
		if !strings.Contains(page(path), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, form := range []url.Values{{"do": {"press"}, "id": {stampID(id.GetID())}, "button": {"continue:1@1"}},
		{"do": {"draft"}, "n": {"2"}, "button": {"no"}}, {"do": {"delete-branch"}, "button": {"forge/issue-1"}}} {
		form.Set("back", path)
		resp, err := http.PostForm(w.s.URL+"/acme/shop/-/do", form)
		w.must(err)
		resp.Body.Close()
		if strings.Contains(resp.Request.URL.RawQuery, "error") {
			t.Errorf("%v: %s", form, resp.Request.URL.RawQuery)
		}
	}
	w.settle()
	want := []string{
		"pull_request.ready_for_review", "pull_request.converted_to_draft", "pull_request.edited", "pull_request.closed", "pull_request.reopened",
		"check_run.created", "check_run.completed", "check_suite.completed", "check_run.rerequested", "push", "delete",
		"check_run.requested_action", "pull_request.ready_for_review", "push", "delete", "pull_request.closed",
	}
	if got := w.hook.names(); !slices.Equal(got, want) {
		t.Errorf("webhooks:\n got %v\nwant %v", got, want)
	}
}
