package github

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

const (
	permChecks = "checks: write"
	checkDone  = "done:" // before the hash of a check run that is completed
)

// checks shows the run's verdict on its newest commit. A check run belongs to one
// commit, so a new head gets a new one, and none is left running behind it.
func (p *publisher) checks(ctx context.Context) error {
	r := p.run
	if !p.hasCommit() || r.Published.Head != r.Head || r.Published.Pull == nil {
		return nil
	}
	key := "check/" + r.Head
	if err := p.check(ctx, key, r.Head, p.v.check()); err != nil {
		return err
	}
	var old []string
	for k, a := range r.Published.Artefacts {
		if strings.HasPrefix(k, "check/") && k != key && !strings.HasPrefix(a.Hash, checkDone) {
			old = append(old, k)
		}
	}
	sort.Strings(old)
	for _, k := range old {
		st := checkState{"completed", "neutral", "Superseded by " + short(r.Head), "A newer commit is being judged instead."}
		if err := p.check(ctx, k, strings.TrimPrefix(k, "check/"), st); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) check(ctx context.Context, key, sha string, st checkState) error {
	r := p.run
	have, want := p.artefact(key), hash(st.status, st.conclusion, st.title, st.summary)
	if st.status == "completed" {
		want = checkDone + want
	}
	if have.Hash == want {
		return nil
	}
	external := r.Trace + "/" + key
	if have.ID == 0 && p.opts.Again {
		id, err := p.findCheck(ctx, sha, external)
		if err != nil {
			return err
		}
		have.ID = id
	}
	out := &gh.CheckRunOutput{Title: &st.title, Summary: &st.summary}
	var conclusion, details *string
	if st.conclusion != "" {
		conclusion = &st.conclusion
	}
	if u := r.Published.Pull.URL; u != "" {
		details = &u
	}
	name := p.app.opts.Slug
	var run *gh.CheckRun
	var err error
	if have.ID != 0 {
		run, _, err = p.s.rest.Checks.UpdateCheckRun(ctx, r.Repo.Owner, r.Repo.Name, have.ID, gh.UpdateCheckRunOptions{
			Name: name, Status: &st.status, Conclusion: conclusion, DetailsURL: details, ExternalID: &external, Output: out})
	} else {
		run, _, err = p.s.rest.Checks.CreateCheckRun(ctx, r.Repo.Owner, r.Repo.Name, gh.CreateCheckRunOptions{
			Name: name, HeadSHA: sha, Status: &st.status, Conclusion: conclusion, DetailsURL: details, ExternalID: &external, Output: out})
	}
	if err = explain(fmt.Sprintf("show the check run of %s in %s", short(sha), r.Repo.FullName()), permChecks, err); err != nil {
		return missing(err, "the commit is gone, or the App lost its access")
	}
	p.made(key, pipeline.Artefact{ID: run.GetID(), Node: run.GetNodeID(), URL: run.GetHTMLURL(), Hash: want})
	return nil
}

// findCheck looks a check run up by its external id.
func (p *publisher) findCheck(ctx context.Context, sha, external string) (int64, error) {
	r := p.run
	opts := &gh.ListCheckRunsOptions{CheckName: gh.String(p.app.opts.Slug), AppID: gh.Int64(p.app.opts.AppID),
		Filter: gh.String("all"), ListOptions: gh.ListOptions{PerPage: 100}}
	list, _, err := p.s.rest.Checks.ListCheckRunsForRef(ctx, r.Repo.Owner, r.Repo.Name, sha, opts)
	if err = explain("list the check runs of "+short(sha), "checks: read", err); err != nil {
		return 0, err
	}
	for _, c := range list.CheckRuns {
		if c.GetExternalID() == external {
			return c.GetID(), nil
		}
	}
	return 0, nil
}
