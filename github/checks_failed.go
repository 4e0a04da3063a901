package github

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

const (
	maxLooked      = 10       // failed checks that are looked into; the others keep their output alone
	maxNotes       = 25       // failures that the annotations of one check become
	maxNotePages   = 3        // pages of annotations, of 100
	maxFailureText = 4000     // characters of one failure
	maxLogRead     = 64 << 20 // bytes of a log that are downloaded
	maxLogKept     = 1 << 20  // bytes of its end that are looked at
)

// exitLine is what GitHub Actions says of every failing step; it names no cause.
var exitLine = lazyregexp.New(`(?i)^(##\[error\])?(the )?process completed with exit code \d+\.?$`)

// checkRun judges a check run, and looks into it when it failed.
func (r *checksReader) checkRun(ctx context.Context, c *gh.CheckRun) error {
	k := Check{Name: label(c.GetName()), App: label(c.GetApp().GetSlug()), State: stateOf(c.GetStatus(), c.GetConclusion()), Conclusion: c.GetConclusion(),
		URL: c.GetHTMLURL(), Started: c.GetStartedAt().Time, Ended: c.GetCompletedAt().Time}
	if k.Conclusion != "" {
		k.Conclusion = label(k.Conclusion)
	}
	if k.State == ChecksFailed {
		list, err := r.failed(ctx, c, k)
		if err != nil {
			return err
		}
		k.Failures = failures(list...)
	}
	r.list = append(r.list, k)
	return nil
}

// failed says why a check run failed: its annotations with a file and a line, the
// failing step with its part of the log, or the words of its output.
func (r *checksReader) failed(ctx context.Context, c *gh.CheckRun, k Check) ([]pipeline.Failure, error) {
	words := strings.TrimSpace(c.GetOutput().GetTitle() + "\n" + c.GetOutput().GetSummary())
	if words == "" {
		words = fmt.Sprintf("The check ended with %q and no words.", k.Conclusion)
	}
	if r.looked++; r.looked > maxLooked {
		r.note(fmt.Sprintf("More than %d checks failed: of the others only their own words were read.", maxLooked))
		return []pipeline.Failure{{Test: k.Name, Error: words}}, nil
	}
	var out []pipeline.Failure
	notes, err := r.annotations(ctx, c)
	if err != nil {
		return nil, err
	}
	name, log := k.Name, ""
	if k.App == actionsApp {
		if name, log, err = r.job(ctx, c, k.Name); err != nil {
			return nil, err
		}
	}
	for _, a := range notes {
		out = append(out, annotated(name, a))
	}
	switch {
	case len(out) == 0 && log != "":
		out = append(out, pipeline.Failure{Test: name, Error: log})
	case len(out) == 0:
		out = append(out, pipeline.Failure{Test: name, Error: words})
	case log != "":
		out[0].Error = render.Shorten(out[0].Error, maxFailureText/2) + "\n\nFrom the log:\n" + log
	}
	return out, nil
}

// annotated makes a failure of an annotation. Its test carries the file, since the
// same words in another file are another failure.
func annotated(name string, a *gh.CheckRunAnnotation) pipeline.Failure {
	f := pipeline.Failure{Test: name, Error: a.GetMessage()}
	if t := strings.TrimSpace(a.GetTitle()); t != "" && !strings.HasPrefix(f.Error, t) {
		f.Error = t + ": " + f.Error
	}
	// Without a file, GitHub Actions gives the path .github, and a line of the log.
	if p := path.Clean(a.GetPath()); p != "." && p != ".github" && !path.IsAbs(p) && !strings.HasPrefix(p, "../") {
		f.File, f.Line = label(p), max(0, a.GetStartLine())
		f.Test += " / " + f.File
	}
	return f
}

// failures bounds and cleans failures, and gives them their identity. Two with the
// same one are one.
func failures(list ...pipeline.Failure) []pipeline.Failure {
	var out []pipeline.Failure
	for _, f := range list {
		f.Test = label(f.Test)
		f.Error = strings.TrimSpace(render.Shorten(strings.TrimSpace(render.Visible(text.Scrub(render.Head(f.Error, maxFailureText)))), maxFailureText))
		if f.Error == "" {
			f.Error = "no words"
		}
		f.Fingerprint = f.Digest()
		if len(out) < maxNotes && !slices.ContainsFunc(out, func(o pipeline.Failure) bool { return o.Fingerprint == f.Fingerprint }) {
			out = append(out, f)
		}
	}
	return out
}

// annotations returns the annotations of level failure that say something.
func (r *checksReader) annotations(ctx context.Context, c *gh.CheckRun) ([]*gh.CheckRunAnnotation, error) {
	if c.GetOutput().GetAnnotationsCount() == 0 {
		return nil, nil
	}
	var out []*gh.CheckRunAnnotation
	for o := (gh.ListOptions{PerPage: 100, Page: 1}); o.Page != 0 && o.Page <= maxNotePages && len(out) < maxNotes; {
		l, resp, err := r.api.rest.Checks.ListCheckRunAnnotations(ctx, r.repo.Owner, r.repo.Name, c.GetID(), &o)
		if err = explain(fmt.Sprintf("list the annotations of check run %d in %s", c.GetID(), r.repo.FullName()), "checks: read", err); err != nil {
			return out, r.soft("Annotations of "+label(c.GetName())+" were not read", err)
		}
		for _, a := range l {
			text := strings.TrimSpace(a.GetMessage())
			if a.GetAnnotationLevel() == "failure" && text != "" && !exitLine.MatchString(text) && len(out) < maxNotes {
				out = append(out, a)
			}
		}
		o.Page = resp.NextPage
	}
	return out, nil
}

// job finds the job that a check run of GitHub Actions stands for: its failing
// step, put behind the name, and that step's part of the log around the first error.
func (r *checksReader) job(ctx context.Context, c *gh.CheckRun, name string) (where, log string, err error) {
	w := r.workflows[c.GetCheckSuite().GetID()]
	if w == nil {
		return name, "", nil
	}
	jobs, err := r.jobsOf(ctx, w.GetID())
	if err != nil {
		return name, "", r.soft("The jobs of "+label(w.GetName())+" were not read", err)
	}
	i := slices.IndexFunc(jobs, func(j *gh.WorkflowJob) bool {
		return strings.HasSuffix(j.GetCheckRunURL(), "/check-runs/"+strconv.FormatInt(c.GetID(), 10))
	})
	if i < 0 {
		return name, "", nil
	}
	where = label(w.GetName()) + " / " + name
	var step *gh.TaskStep
	for _, s := range jobs[i].Steps {
		if stateOf(s.GetStatus(), s.GetConclusion()) == ChecksFailed && s.GetConclusion() != "cancelled" {
			step = s
			where += " / " + label(s.GetName())
			break
		}
	}
	raw, err := r.log(ctx, jobs[i].GetID())
	if err != nil {
		return where, "", r.soft("The log of "+label(name)+" was not read", err)
	}
	lines := cleanLog(raw, step.GetStartedAt().Time, step.GetCompletedAt().Time)
	return where, excerpt(lines), nil
}

func (r *checksReader) jobsOf(ctx context.Context, run int64) ([]*gh.WorkflowJob, error) {
	if l, known := r.jobs[run]; known {
		return l, nil
	}
	var out []*gh.WorkflowJob
	err := r.each("list the jobs", "actions: read", func(o gh.ListOptions) (*gh.Response, error) {
		l, resp, err := r.act.rest.Actions.ListWorkflowJobs(ctx, r.repo.Owner, r.repo.Name, run, &gh.ListWorkflowJobsOptions{Filter: "latest", ListOptions: o})
		if err == nil {
			out = append(out, l.Jobs...)
		}
		return resp, err
	})
	if err == nil {
		r.jobs[run] = out
	}
	return out, err
}

// log returns the end of a job's log. GitHub answers with a redirect to a store,
// which gets no credentials, and which must be one of those that are allowed.
func (r *checksReader) log(ctx context.Context, job int64) ([]byte, error) {
	op := fmt.Sprintf("get the log of job %d in %s", job, r.repo.FullName())
	req, err := r.act.rest.NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/%s/actions/jobs/%d/logs", r.repo.Owner, r.repo.Name, job), nil)
	if err != nil {
		return nil, err // unreachable: the address is well formed
	}
	c := r.act.rest.Client() // a copy
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := c.Do(req.WithContext(ctx))
	if err != nil {
		return nil, explain(op, "actions: read", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		if err := gh.CheckResponse(resp); err != nil {
			return nil, explain(op, "actions: read", err)
		}
		return nil, final("%s: GitHub answered %d where a redirect to the log was expected.", op, resp.StatusCode)
	}
	at, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !r.app.logHost(at) {
		return nil, final("%s: it lies on a host that logs are not fetched from (%s). Add the host to those of logs, if it is your server's.", op, hostOf(at))
	}
	return r.app.download(ctx, op, at)
}

func hostOf(u *url.URL) string {
	if u == nil {
		return "none"
	}
	return render.Shorten(render.Visible(u.Host), 200)
}

// logStores are where github.com and ghe.com keep the logs of jobs: hosts that
// their own documentation names for runners.
var logStores = []string{".actions.githubusercontent.com", ".blob.core.windows.net"}

// logHost reports whether a job's log may be fetched from an address.
func (a *App) logHost(u *url.URL) bool {
	own := u.Host == a.web.Host || u.Host == a.rest.Host
	switch {
	case u.User != nil || u.Hostname() == "":
		return false
	case u.Scheme != "https":
		return own && u.Scheme == a.web.Scheme // http is for loopback alone: see setURLs
	case own:
		return true
	}
	allowed := a.opts.LogHosts
	if a.web.Host == "github.com" || strings.HasSuffix(a.web.Host, ".ghe.com") {
		allowed = append(slices.Clone(allowed), logStores...)
	}
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc(allowed, func(h string) bool {
		h = strings.ToLower(h)
		return host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h)
	})
}

// download fetches the end of a text, without credentials and without following
// another redirect.
func (a *App) download(ctx context.Context, op string, at *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, final("%s: its address is not well formed.", op)
	}
	req.Header.Set("User-Agent", a.opts.UserAgent)
	// The address carries a signature, so no error may show it.
	resp, err := a.opts.Base.RoundTrip(req)
	if err != nil {
		if parent := context.Cause(ctx); parent != nil && ctx.Err() == context.Canceled {
			return nil, parent
		}
		return nil, final("%s: %s could not be reached.", op, hostOf(at))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, final("%s: %s answered %d.", op, hostOf(at), resp.StatusCode)
	}
	var t tail
	if _, err := io.Copy(&t, io.LimitReader(resp.Body, maxLogRead)); err != nil && len(t.kept) == 0 {
		return nil, final("%s: the connection to %s broke.", op, hostOf(at))
	}
	return t.bytes(), nil
}

// tail keeps the end of what is written to it.
type tail struct {
	kept    []byte
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*maxLogKept {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-maxLogKept:]...)
		t.dropped = true
	}
	return len(p), nil
}

// bytes returns what was kept, from the beginning of a line on.
func (t *tail) bytes() []byte {
	b := t.kept
	if len(b) > maxLogKept {
		b, t.dropped = b[len(b)-maxLogKept:], true
	}
	if t.dropped {
		if _, rest, found := strings.Cut(string(b), "\n"); found {
			return []byte(rest)
		}
	}
	return b
}
