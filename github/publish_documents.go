package github

import (
	"context"
	"errors"
	"fmt"
	"path"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// documentsKey is what the documents of a run are known by.
const documentsKey = "documents"

// keeper appends files to a branch that holds nothing else. It is the server's git gateway.
type keeper interface {
	// Keep commits files to a branch, which is made when it is not there, without a
	// parent, and returns the commit. One with the method Rejected() string carries
	// GitHub's words for why it does not take it.
	Keep(ctx context.Context, repo pipeline.Repo, branch, message string, files []workspace.Change) (string, error)
}

// late writes the documents when all else is made, so that they keep nothing from being
// shown. What goes wrong with them is said in the pull request and tried again by itself,
// unless it may have landed: then the whole attempt is looked at again.
func (p *publisher) late(ctx context.Context) error {
	r := p.run
	had, was := p.artefact(documentsKey).URL, r.Published.Late
	err := p.documents(ctx)
	var unsure interface{ Ambiguous() bool }
	switch {
	case err == nil:
	case ctx.Err() != nil || errors.As(err, &unsure) && unsure.Ambiguous():
		return err
	default:
		p.app.log.Warn("the documents are not written: they are tried again", "run", r.ID, "repo", r.Repo.FullName(), "error", err)
		p.pub.Late = text.Clip(text.Scrub(text.OneLine(err.Error())), 300)
	}
	if r.Published.Late = p.pub.Late; r.Published.Pull == nil || p.artefact(documentsKey).URL == had && (was == "") == (p.pub.Late == "") {
		return nil
	}
	return p.pull(ctx) // it links them, or says that they are not there
}

// documents shows what the run leaves in writing (V11): in one comment on the pull
// request, or as files of a branch of their own where the settings say so.
func (p *publisher) documents(ctx context.Context) error {
	r := p.run
	how := r.Config.Documents
	if how == "" || how == "off" || r.Published.Pull == nil {
		return nil
	}
	var family []*pipeline.Run
	if len(r.Parts) > 0 && p.opts.Family != nil {
		var err error
		if family, err = p.opts.Family(ctx); err != nil {
			return fmt.Errorf("write the documents of run %d: %w", r.ID, err)
		}
	}
	docs := render.DocumentsOf(r, family)
	if k, ok := p.opts.Pusher.(keeper); ok && how == "branch" && p.artefact(documentsKey).ID == 0 {
		taken, err := p.keep(ctx, k, docs)
		if taken || err != nil {
			return err
		}
	}
	if len(docs) < 2 { // the plan alone stands in the pull request
		return nil
	}
	return p.comment(ctx, documentsKey, r.Published.Pull.Number, p.v.Documents(docs))
}

// keep writes the documents to their branch; false: GitHub does not take them.
func (p *publisher) keep(ctx context.Context, k keeper, docs []render.Document) (bool, error) {
	r, files := p.run, []workspace.Change{}
	branch, all := p.app.opts.Slug+"/documents", ""
	for _, d := range docs {
		words := p.v.DocumentFile(d)
		if finder := p.app.opts.Secrets; finder != nil {
			words, _ = finder.Text(d.Path, words)
		}
		files = append(files, workspace.Change{Path: path.Join(r.Branch, d.Path), Content: []byte(words)})
		all += d.Path + "\n" + words
	}
	have, want := p.artefact(documentsKey), render.Hash(all)
	if len(files) == 0 || have.Hash == want {
		return true, nil
	}
	sha, err := k.Keep(ctx, r.Repo, branch, fmt.Sprintf("Document %s\n\nRun %d.", r.Branch, r.ID), files)
	var rejected interface{ Rejected() string }
	if errors.As(err, &rejected) {
		p.app.log.Warn("the documents' branch is refused: they become a comment", "run", r.ID, "repo", r.Repo.FullName(), "error", err)
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("write documents to %s of %s: %w", branch, r.Repo.FullName(), err)
	}
	p.made(documentsKey, pipeline.Artefact{URL: p.v.Tree(sha, r.Branch), Hash: want})
	return true, nil
}
