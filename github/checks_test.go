package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/mergeable"

	"github.com/google/go-cmp/cmp"
)

// ciWorld is a repository with CI, and a commit on a branch of Forge's.
type ciWorld struct {
	t    *testing.T
	gh   *githubtest.Server
	app  *App
	repo pipeline.Repo
	act  *githubtest.CI // GitHub Actions
	ext  *githubtest.CI // another service
	sha  string
}

func newCIWorld(t *testing.T, change ...func(string) string) *ciWorld {
	t.Helper()
	var changes []any
	for _, f := range change {
		changes = append(changes, f)
	}
	gh, a, repo, _ := world(t, changes...)
	w := &ciWorld{t: t, gh: gh, app: a, repo: repo}
	var err error
	w.act, err = gh.CI("octo/repo", githubtest.ActionsSlug)
	w.must(err)
	w.ext, err = gh.CI("octo/repo", "circle")
	w.must(err)
	w.sha = w.push("forge/issue-1-x", "a.txt", "a\n")
	return w
}

func (w *ciWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *ciWorld) push(branch, file, text string) string {
	w.t.Helper()
	sha, err := w.gh.As("alice").PushFiles("octo/repo", githubtest.Push{Branch: branch, Message: "Change", Files: map[string]*string{file: &text}})
	w.must(err)
	return sha
}

func (w *ciWorld) read() Checks {
	w.t.Helper()
	c, err := w.app.Checks(context.Background(), w.repo, w.sha, time.Time{})
	w.must(err)
	return c
}

func (w *ciWorld) run(name string, jobs ...githubtest.Job) int64 {
	w.t.Helper()
	id, err := w.act.Run(w.sha, githubtest.Workflow{Name: name, Jobs: jobs})
	w.must(err)
	return id
}

func (w *ciWorld) start(k githubtest.Check) int64 {
	w.t.Helper()
	id, err := w.ext.Start(w.sha, k)
	w.must(err)
	return id
}

// brief lists checks as "name state".
func checkList(c Checks) []string {
	var out []string
	for _, k := range c.List {
		out = append(out, k.Name+" "+string(k.State))
	}
	return out
}

// Covers lessons 9 and 13: what did not run, or has not ended, has not passed.
func TestChecksStates(t *testing.T) {
	t.Parallel()
	job := func(name, conclusion string) githubtest.Job {
		return githubtest.Job{Name: name, Conclusion: conclusion}
	}
	for _, tc := range []struct {
		name  string
		make  func(*ciWorld)
		state ChecksState
		list  []string
		none  string // in the report's None
		ok    bool
	}{
		{"nothing", func(w *ciWorld) {}, ChecksNone, nil, "no check started on ", false},
		{"own check runs are no CI", func(w *ciWorld) {
			s, err := w.app.session(w.repo)
			w.must(err)
			req, err := s.rest.NewRequest("POST", "repos/octo/repo/check-runs",
				map[string]string{"name": "forge", "head_sha": w.sha, "status": "completed", "conclusion": "success"})
			w.must(err)
			_, err = s.rest.Do(context.Background(), req, nil)
			w.must(err)
		}, ChecksNone, nil, "no check started on ", false},
		{"running", func(w *ciWorld) {
			w.run("CI", job("lint", "failure"), job("test", ""))
		}, ChecksRunning, []string{"lint failed", "test running"}, "checks still run: test", false},
		{"pending status", func(w *ciWorld) {
			w.run("CI", job("test", "success"))
			w.must(w.ext.Status(w.sha, "deploy", "pending", ""))
		}, ChecksRunning, []string{"deploy running", "test passed"}, "checks still run: deploy", false},
		{"passed", func(w *ciWorld) {
			w.run("CI", job("test", "success"), job("docs", "skipped"))
			w.must(w.ext.Status(w.sha, "cov", "failure", "low"))
			w.must(w.ext.Status(w.sha, "cov", "success", "90 %"))
		}, ChecksPassed, []string{"cov passed", "docs skipped", "test passed"}, "", true},
		{"only skipped", func(w *ciWorld) {
			w.run("CI", job("test", "skipped"))
			w.start(githubtest.Check{Name: "info", Conclusion: "neutral"})
		}, ChecksSkipped, []string{"info skipped", "test skipped"}, "nothing ran: info, test", false},
		{"every failing conclusion", func(w *ciWorld) {
			for _, c := range []string{"failure", "timed_out", "action_required", "cancelled", "success"} {
				w.start(githubtest.Check{Name: c, Conclusion: c})
			}
			w.must(w.ext.Status(w.sha, "st", "error", "broken"))
		}, ChecksFailed, []string{"action_required failed", "cancelled failed", "failure failed", "st failed", "success passed", "timed_out failed"}, "", false},
		{"a later check run of the same App supersedes", func(w *ciWorld) {
			w.start(githubtest.Check{Name: "build", Conclusion: "failure"})
			w.start(githubtest.Check{Name: "build", Conclusion: "success"})
		}, ChecksPassed, []string{"build passed"}, "", true},
		{"a re-run supersedes its first attempt", func(w *ciWorld) {
			id := w.run("CI", job("test", "failure"), job("lint", "success"))
			w.must(w.act.Rerun(id, job("test", "")))
		}, ChecksRunning, []string{"lint passed", "test running"}, "checks still run: test", false},
		{"a later run of the same workflow supersedes", func(w *ciWorld) {
			w.run("CI", job("test", "failure"), job("gone", "failure"))
			w.run("CI", job("test", "success"))
		}, ChecksPassed, []string{"test passed"}, "", true},
		{"a skipped run supersedes nothing", func(w *ciWorld) {
			w.run("CI", job("test", "failure"))
			w.run("CI", job("test", "skipped"))
		}, ChecksFailed, []string{"test failed"}, "", false},
		{"a job of the same name in another workflow hides nothing", func(w *ciWorld) {
			w.run("CI", job("test", "failure"))
			w.run("Nightly", job("test", "success"))
		}, ChecksFailed, []string{"test failed", "test passed"}, "", false},
		{"the same workflow for another event hides nothing", func(w *ciWorld) {
			w.run("CI", job("test", "failure"))
			_, err := w.act.Run(w.sha, githubtest.Workflow{Name: "CI", Event: "pull_request", Jobs: []githubtest.Job{job("test", "success")}})
			w.must(err)
		}, ChecksFailed, []string{"test failed", "test passed"}, "", false},
		{"a workflow that cannot start", func(w *ciWorld) {
			_, err := w.act.Run(w.sha, githubtest.Workflow{Name: "CI", Conclusion: "startup_failure"})
			w.must(err)
		}, ChecksFailed, []string{"CI failed"}, "", false},
		{"a workflow that waits for approval", func(w *ciWorld) {
			w.run("Other", job("x", "success"))
			_, err := w.act.Run(w.sha, githubtest.Workflow{Name: "CI", Conclusion: "action_required"})
			w.must(err)
		}, ChecksFailed, []string{"CI failed", "x passed"}, "", false},
		{"a workflow that has just begun", func(w *ciWorld) {
			_, err := w.act.Run(w.sha, githubtest.Workflow{Name: "CI"})
			w.must(err)
		}, ChecksRunning, []string{"CI running"}, "checks still run: CI", false},
		{"many pages", func(w *ciWorld) {
			for i := range 130 {
				w.start(githubtest.Check{Name: fmt.Sprintf("c%03d", i), Conclusion: "success"})
				w.must(w.ext.Status(w.sha, fmt.Sprintf("s%03d", i), map[bool]string{true: "failure", false: "success"}[i == 0], ""))
			}
			w.start(githubtest.Check{Name: "last", Conclusion: "failure"})
		}, ChecksFailed, nil, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newCIWorld(t)
			tc.make(w)
			c := w.read()
			if c.State != tc.state {
				t.Errorf("state = %s, want %s", c.State, tc.state)
			}
			if tc.name == "many pages" {
				if len(c.List) != 261 || !slices.Equal(c.Of(ChecksFailed), []string{"last", "s000"}) {
					t.Errorf("%d checks, failed %v; want 261, [last s000]", len(c.List), c.Of(ChecksFailed))
				}
			} else if diff := cmp.Diff(tc.list, checkList(c)); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
			rep := c.Report(w.sha)
			if !strings.HasPrefix(rep.None, tc.none) || (rep.None == "") != (tc.none == "") || rep.OK() != tc.ok {
				t.Errorf("report: none %q, ok %v; want %q, %v", rep.None, rep.OK(), tc.none, tc.ok)
			}
			if rep.Passed+rep.Failed+rep.Skipped != rep.Total || rep.Total != len(c.List) || rep.Failed > 0 != (len(rep.Failures) > 0) {
				t.Errorf("report counts %d = %d + %d + %d, %d failures", rep.Total, rep.Passed, rep.Failed, rep.Skipped, len(rep.Failures))
			}
		})
	}
}

const goLog = "\ufeff2026-03-01T10:00:00.0000000Z ##[group]Run setup\n" +
	"2026-03-01T10:00:00.1000000Z error: this belongs to another step\n" +
	"2026-03-01T10:00:00.2000000Z ##[endgroup]\n" +
	"2026-03-01T10:00:05.0000000Z ##[group]Run go test ./...\n" +
	"2026-03-01T10:00:05.1000000Z \x1b[36;1mgo test ./...\x1b[0m\n" +
	"2026-03-01T10:00:06.0000000Z ok  \tshop/errors\t0.1s\n" +
	"2026-03-01T10:00:07.0000000Z --- FAIL: TestPrice (0.00s)\n" +
	"2026-03-01T10:00:07.1000000Z     shop_test.go:7: got 3, want 4, key ghp_0123456789abcdefghij0123456789abcdef\n" +
	"2026-03-01T10:00:07.2000000Z ##[error]Process completed with exit code 1.\n" +
	"2026-03-01T10:00:09.0000000Z Post job cleanup.\n"

func at(sec int) time.Time { return time.Date(2026, 3, 1, 10, 0, sec, 0, time.UTC) }

func failingJob() githubtest.Job {
	return githubtest.Job{Name: "test", Conclusion: "failure", Log: goLog, Steps: []githubtest.Step{
		{Name: "setup", Conclusion: "success", Started: at(0), Ended: at(5)},
		{Name: "go test", Conclusion: "failure", Started: at(5), Ended: at(7)},
		{Name: "cleanup", Conclusion: "success", Started: at(9), Ended: at(9)},
	}}
}

func (w *ciWorld) failures() []pipeline.Failure {
	w.t.Helper()
	list := w.read().Report(w.sha).Failures
	for _, f := range list {
		if g := f.Digest(); f.Fingerprint != g || f.Fingerprint == "" {
			w.t.Errorf("fingerprint of %s = %q, want %q", f.Test, f.Fingerprint, g)
		}
	}
	return list
}

func TestChecksLog(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	w.run("CI", failingJob())
	got := w.failures()
	want := "--- FAIL: TestPrice (0.00s)\n\nRun go test ./...\ngo test ./...\nok  \tshop/errors\t0.1s\n--- FAIL: TestPrice (0.00s)\n" +
		"    shop_test.go:7: got 3, want 4, key [secret]\n##[error]Process completed with exit code 1."
	if len(got) != 1 || got[0].Test != "CI / test / go test" {
		t.Fatalf("failures = %+v", got)
	}
	if diff := cmp.Diff(want, got[0].Error); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	for _, c := range w.gh.Calls() {
		if strings.Contains(c.Path, "/-/logs/") && c.Status != 200 {
			t.Errorf("the log's store answered %d", c.Status)
		}
	}
}

func TestChecksAnnotations(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	j := failingJob()
	j.Annotations = []githubtest.Annotation{
		{Path: ".github", Line: 12, Message: "Process completed with exit code 1."},
		{Path: "shop.go", Line: 3, Level: "warning", Message: "unused"},
		{Path: "shop_test.go", Line: 7, Message: "got 3, want 4"},
		{Path: "shop_test.go", Line: 9, Message: "got 5, want 6"}, // the same but for its numbers
		{Path: "../../etc/passwd", Line: 1, Title: "Lint", Message: "outside"},
	}
	w.run("CI", j)
	for i := range 130 {
		j.Annotations = append(j.Annotations, githubtest.Annotation{Path: "b.go", Line: i, Level: "notice", Message: "x"})
	}
	var many []githubtest.Annotation
	for i := range 120 {
		many = append(many, githubtest.Annotation{Path: "b.go", Line: i, Level: "notice", Message: "x"})
	}
	many = append(many, githubtest.Annotation{Path: "late.go", Line: 2, Title: "vet", Message: "on the second page"})
	w.start(githubtest.Check{Name: "vet", Conclusion: "failure", Title: "1 problem", Annotations: many})
	got := w.failures()
	var lines []string
	for _, f := range got {
		first, _, _ := strings.Cut(f.Error, "\n")
		lines = append(lines, fmt.Sprintf("%s|%s|%d|%s", f.Test, f.File, f.Line, first))
	}
	want := []string{
		"CI / test / go test / shop_test.go|shop_test.go|7|got 3, want 4",
		"CI / test / go test||0|Lint: outside",
		"vet / late.go|late.go|2|vet: on the second page",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if !strings.Contains(got[0].Error, "From the log:\n--- FAIL: TestPrice") {
		t.Errorf("the first failure has no part of the log: %q", got[0].Error)
	}
}

func TestChecksHostileOutput(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	w.start(githubtest.Check{Name: "evil\x1b[31m\n@all", Conclusion: "failure", Title: "T\u202e ghs_" + strings.Repeat("a", 40),
		Summary: strings.Repeat("x", 60_000)})
	for i := range 14 {
		w.start(githubtest.Check{Name: fmt.Sprintf("n%02d", i), Conclusion: "failure"})
	}
	c := w.read()
	f := c.Report(w.sha).Failures
	if len(f) != 15 || strings.ContainsAny(f[0].Test, "\n\x1b") || strings.Contains(f[0].Error, "ghs_") ||
		strings.Contains(f[0].Error, "\u202e") || len([]rune(f[0].Error)) > maxFailureText {
		t.Errorf("failures: %d, first %.200q", len(f), fmt.Sprint(f))
	}
	if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "More than 10 checks failed") {
		t.Errorf("notes = %q", c.Notes)
	}
}

// Without actions: read, the failure is told all the same, and the notes say why it
// has no log.
func TestChecksWithoutActions(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t, func(m string) string { return strings.Replace(m, "  actions: read", "  # actions: read", 1) })
	j := failingJob()
	j.Annotations = []githubtest.Annotation{{Path: "shop_test.go", Line: 7, Message: "got 3"}}
	w.run("CI", j)
	c := w.read()
	if c.State != ChecksFailed || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "actions: read") {
		t.Errorf("state %s, notes %q; want failed, and a note about actions: read", c.State, c.Notes)
	}
	if f := c.Report(w.sha).Failures; len(f) != 1 || f[0].Test != "test / shop_test.go" || f[0].Error != "got 3" {
		t.Errorf("failures = %+v", f)
	}
}

// Without the permission for statuses nothing can be said: a failing one would be missed.
func TestChecksWithoutStatuses(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t, func(m string) string { return strings.Replace(m, "  statuses: read", "  # statuses: read", 1) })
	w.run("CI", githubtest.Job{Name: "test", Conclusion: "success"})
	_, err := w.app.Checks(context.Background(), w.repo, w.sha, time.Time{})
	var fault *pipeline.Fault
	if !errors.As(err, &fault) || !fault.Final || !strings.Contains(fault.Message, "statuses: read") {
		t.Errorf("error = %v, want a final fault that names statuses: read", err)
	}
}

// A log that is gone, or that lies elsewhere, loses nothing else.
func TestChecksLogGone(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	j := failingJob()
	j.Log = ""
	w.run("CI", j)
	c := w.read()
	if f := c.Report(w.sha).Failures; len(f) != 1 || f[0].Test != "CI / test / go test" || f[0].Error != `The check ended with "failure" and no words.` {
		t.Errorf("failures = %+v", f)
	}
	if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "410") {
		t.Errorf("notes = %q, want one about 410", c.Notes)
	}
}

// What may go away by itself is an error, so that it is tried again.
func TestChecksTransient(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	w.run("CI", failingJob())
	w.app.opts.Sleep = func(context.Context, time.Duration) error { return nil }
	w.gh.AddFault(githubtest.Fault{Operation: "actions/list-jobs-for-workflow-run", Kind: githubtest.FaultErrorBefore})
	if c, err := w.app.Checks(context.Background(), w.repo, w.sha, time.Time{}); status(err) != 502 {
		t.Errorf("Checks with a failing server = %v, %v; want its error", c.State, err)
	}
}

func TestChecksNoneSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 12, 0, 0, time.UTC)
	c := Checks{Head: "1234567890", State: ChecksNone, Since: now.Add(-12 * time.Minute), Read: now}
	if got := c.Report("1234567890").None; !strings.HasPrefix(got, "no check started on 1234567 within 12m0s") {
		t.Errorf("None = %q", got)
	}
	c.State, c.List = ChecksPassed, []Check{{Name: "a", State: ChecksPassed}}
	if r := c.Report("another0"); r.OK() || !strings.Contains(r.None, "those of 1234567, not of another") {
		t.Errorf("a report on another head: ok %v, none %q", r.OK(), r.None)
	}
}

func TestLogHost(t *testing.T) {
	t.Parallel()
	app := func(base string, more ...string) *App {
		a := &App{opts: Options{LogHosts: more}}
		if err := a.setURLs(base); err != nil {
			t.Fatal(err)
		}
		return a
	}
	com, ent, dev := app(""), app("https://git.example.com", "logs.example.com", ".store.example.com"), app("http://127.0.0.1:3000")
	for _, tc := range []struct {
		a    *App
		url  string
		want bool
	}{
		{com, "https://productionresultssa1.blob.core.windows.net/x?sig=1", true},
		{com, "https://pipelines.actions.githubusercontent.com/x", true},
		{com, "https://api.github.com/x", true},
		{com, "http://productionresultssa1.blob.core.windows.net/x", false},
		{com, "https://blob.core.windows.net.evil.example/x", false},
		{com, "https://evilblob.core.windows.net/x", false},
		{com, "https://user@api.github.com/x", false},
		{com, "https://169.254.169.254/latest", false},
		{com, "http://127.0.0.1/x", false},
		{com, "file:///etc/passwd", false},
		{com, "/relative", false},
		{ent, "https://git.example.com/_services/x", true},
		{ent, "https://logs.example.com/x", true},
		{ent, "https://a.store.example.com/x", true},
		{ent, "https://store.example.com/x", false},
		{ent, "https://sa.blob.core.windows.net/x", false},
		{ent, "http://git.example.com/x", false},
		{dev, "http://127.0.0.1:3000/-/logs/x", true},
		{dev, "http://127.0.0.1:3001/x", false},
	} {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := tc.a.logHost(u); got != tc.want {
			t.Errorf("logHost(%s) of %s = %v, want %v", tc.url, tc.a.web, got, tc.want)
		}
	}
}

func TestMergeable(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	ctx := context.Background()
	n, err := w.gh.As("alice").OpenPull("octo/repo", "forge/issue-1-x", "X")
	w.must(err)
	expect := func(want mergeable.State) {
		t.Helper()
		if got, err := w.app.Mergeable(ctx, w.repo, n); err != nil || got != want {
			t.Errorf("Mergeable = %+v, %v; want %+v", got, err, want)
		}
	}
	base := func() string {
		sha, err := w.app.BranchHead(ctx, w.repo, "main")
		w.must(err)
		return sha
	}
	expect(mergeable.State{Base: base()})
	w.push("main", "b.txt", "b\n")
	expect(mergeable.State{Base: base(), Behind: 1})
	w.push("main", "a.txt", "other\n")
	expect(mergeable.State{Base: base(), Behind: 2, Conflict: true})
	anew := "x\n"
	_, err = w.gh.As("alice").PushFiles("octo/repo", githubtest.Push{Branch: "forge/issue-1-x", Message: "Begin anew", Orphan: true, Files: map[string]*string{"a.txt": &anew}})
	w.must(err)
	expect(mergeable.State{Base: base(), Conflict: true})
	w.must(w.gh.As("alice").Close("octo/repo", n))
	expect(mergeable.State{Unknown: true})
	if _, err := w.app.Mergeable(ctx, w.repo, 99); status(err) != 404 {
		t.Errorf("Mergeable of nothing: %v, want 404", err)
	}
}

// store stands between the App and GitHub: it leads logs to another host, and is
// that host.
type store struct {
	base  http.RoundTripper
	asked []string // "Authorization" headers that the store got
}

func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "logs.example.com" {
		s.asked = append(s.asked, r.Header.Get("Authorization"))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(goLog)), Request: r}, nil
	}
	resp, err := s.base.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/logs") {
		resp.Header.Set("Location", "https://logs.example.com/job?sig=secret")
	}
	return resp, err
}

// A log is fetched from the hosts that are allowed alone, and never with credentials.
func TestChecksLogElsewhere(t *testing.T) {
	t.Parallel()
	w := newCIWorld(t)
	w.run("CI", failingJob())
	for _, hosts := range [][]string{nil, {"logs.example.com"}} {
		s := &store{base: http.DefaultTransport}
		var err error
		w.app, err = New(Options{BaseURL: w.gh.URL, AppID: w.gh.AppID, PrivateKey: w.gh.PrivateKey, Base: s, LogHosts: hosts})
		w.must(err)
		c := w.read()
		text := c.Report(w.sha).Failures[0].Error
		if hosts == nil {
			if len(s.asked) != 0 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "logs.example.com") || strings.Contains(c.Notes[0], "secret") {
				t.Errorf("a host that is not allowed was asked %d times, notes %q", len(s.asked), c.Notes)
			}
		} else if len(s.asked) != 1 || s.asked[0] != "" || !strings.HasPrefix(text, "--- FAIL: TestPrice") {
			t.Errorf("an allowed host was asked %q, error %q; want once, without credentials", s.asked, text)
		}
	}
}
