package github

import (
	"context"
	"fmt"
	"net/http"
	"sort"
	"strings"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

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
	if err := p.check(ctx, key, r.Head, p.v.Check()); err != nil {
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
		st := render.CheckState{Status: "completed", Conclusion: "neutral", Title: "Superseded by " + text.ShortSHA(r.Head),
			Summary: "A newer commit is being judged instead."}
		if err := p.check(ctx, k, strings.TrimPrefix(k, "check/"), st); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) check(ctx context.Context, key, sha string, st render.CheckState) error {
	r := p.run
	parts := []string{st.Status, st.Conclusion, st.Title, st.Summary}
	for _, b := range st.Buttons {
		parts = append(parts, b.Identifier, b.Label, b.Description)
	}
	// GitHub adds annotations to those that there are: a check gets them once.
	notes := "notes/" + sha
	if len(st.Notes) > 0 {
		parts = append(parts, "annotated")
	}
	if p.artefact(notes).Hash != "" {
		st.Notes = nil
	}
	have, want := p.artefact(key), render.Hash(parts...)
	if st.Status == "completed" {
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
	out := &gh.CheckRunOutput{Title: &st.Title, Summary: &st.Summary, Annotations: st.Notes}
	var conclusion, details *string
	if st.Conclusion != "" {
		conclusion = &st.Conclusion
	}
	if u := r.Published.Pull.URL; u != "" {
		details = &u
	}
	name := p.app.opts.Slug
	var run *gh.CheckRun
	var err error
	if have.ID != 0 {
		run, err = p.updateCheck(ctx, have.ID, st.Buttons, gh.UpdateCheckRunOptions{
			Name: name, Status: &st.Status, Conclusion: conclusion, DetailsURL: details, ExternalID: &external, Output: out})
	} else {
		run, _, err = p.s.rest.Checks.CreateCheckRun(ctx, r.Repo.Owner, r.Repo.Name, gh.CreateCheckRunOptions{
			Name: name, HeadSHA: sha, Status: &st.Status, Conclusion: conclusion, DetailsURL: details, ExternalID: &external, Output: out, Actions: st.Buttons})
	}
	if err = explain(fmt.Sprintf("show the check run of %s in %s", text.ShortSHA(sha), r.Repo.FullName()), permChecks, err); err != nil {
		return missing(err, "the commit is gone, or the App lost its access")
	}
	if len(st.Notes) > 0 {
		p.made(notes, pipeline.Artefact{ID: run.GetID(), Hash: "annotated"})
	}
	p.made(key, pipeline.Artefact{ID: run.GetID(), Node: run.GetNodeID(), URL: run.GetHTMLURL(), Hash: want})
	return nil
}

// updateCheck changes a check run, its buttons included: the library would leave an
// empty list of them out, and those of a gate that is closed would stay.
func (p *publisher) updateCheck(ctx context.Context, id int64, buttons []*gh.CheckRunAction, o gh.UpdateCheckRunOptions) (*gh.CheckRun, error) {
	body := struct {
		gh.UpdateCheckRunOptions
		Actions []*gh.CheckRunAction `json:"actions"`
	}{o, append([]*gh.CheckRunAction{}, buttons...)}
	req, err := p.s.rest.NewRequest(http.MethodPatch, fmt.Sprintf("repos/%s/%s/check-runs/%d", p.run.Repo.Owner, p.run.Repo.Name, id), body)
	if err != nil {
		return nil, err // unreachable: the address and the body are well formed
	}
	run := new(gh.CheckRun)
	_, err = p.s.rest.Do(ctx, req, run)
	return run, err
}

// findCheck looks a check run up by its external id.
func (p *publisher) findCheck(ctx context.Context, sha, external string) (int64, error) {
	r := p.run
	opts := &gh.ListCheckRunsOptions{CheckName: gh.String(p.app.opts.Slug), AppID: gh.Int64(p.app.opts.AppID),
		Filter: gh.String("all"), ListOptions: gh.ListOptions{PerPage: 100}}
	list, _, err := p.s.rest.Checks.ListCheckRunsForRef(ctx, r.Repo.Owner, r.Repo.Name, sha, opts)
	if err = explain("list the check runs of "+text.ShortSHA(sha), "checks: read", err); err != nil {
		return 0, err
	}
	for _, c := range list.CheckRuns {
		if c.GetExternalID() == external {
			return c.GetID(), nil
		}
	}
	return 0, nil
}
