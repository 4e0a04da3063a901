package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/lens"
	"forge/pipeline/testname"
)

// view reads the change through a lens, part by part; parts that hold nothing for it are
// left to the general view, which reads them all.
func (p *phase) view(ctx context.Context, l lens.Lens) (pipeline.Review, error) {
	now, stop := p.head(ctx)
	read := change.Read(p.job.Diff)
	v := &reviewing{p: p, change: read, reading: read.Divide(wholeChange, now)}
	if err := stop(); err != nil {
		return pipeline.Review{}, err
	}
	review := pipeline.Review{Head: p.job.Run.Head}
	for i, part := range v.reading.Parts {
		if ok, _ := Needed(l, part.Files); !ok {
			continue
		}
		p.limit += p.steps - v.begun
		v.begun = p.steps
		q, err := v.through(ctx, l, i)
		if err != nil {
			return pipeline.Review{}, err
		}
		if err := p.restore(ctx); err != nil {
			return pipeline.Review{}, err
		}
		if err := v.take(ctx, &review, q); err != nil {
			return pipeline.Review{}, err
		}
	}
	review.Findings = identify(review.Findings)
	return review, nil
}

// through is one conversation: a part of the change, looked at for one thing.
func (v *reviewing) through(ctx context.Context, l lens.Lens, i int) (judgement, error) {
	p := v.p
	w := v.prompt(i)
	w.data("Dismissed by maintainers; not to be reported again unless the code changed", dismissed(p.job.Run)).recall().lastFault()
	w.data("Reported before and still open; known, not to be reported again", reported(p.job.Run))
	w.say("%s", promptText("view_"+string(l))).say("%s", promptText("view")).say("%s", promptText("findings"))
	if n := len(v.reading.Parts); n > 1 {
		w.say("This is part %d of %d: report what you find in the files of this part.", i+1, n)
	}
	s := w.spec(string(l), roleReviewer, system("reviewer"))
	s.tools, s.result, s.forms, s.other = p.examining(), viewSchema, p.reviewForms(), submitCriteria
	if i > 0 { // a conversation of its own
		s.name += letters(i)
	}
	var out judgement
	s.accept = func(args json.RawMessage) (problems []string) {
		out, problems = checkJudgement(args)
		return problems
	}
	return out, p.converse(ctx, s)
}

// reported lists the findings of earlier reviews that are open.
func reported(run *pipeline.Run) string {
	var b strings.Builder
	for _, is := range run.Findings {
		if is.Finding != nil && is.State == pipeline.IssueOpen && is.Phase == pipeline.PhaseReview {
			fmt.Fprintf(&b, "%s%s %s\n", is.Finding.Category, where(is.Finding.File, is.Finding.Line, is.Finding.EndLine), is.Finding.Message)
		}
	}
	return b.String()
}

// prose and data are read by people, or by programs as figures and words: neither runs.
var (
	prose = []string{".md", ".markdown", ".rst", ".adoc", ".txt", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf"}
	data  = []string{".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".lock", ".sum", ".mod", ".csv", ".xml", ".properties"}
)

// Needed reports whether a change of these files is worth the look, and why not. Tests
// alone are for the general view. Security reads settings and lists of dependencies, too,
// performance neither; the words that users read are the product.
func Needed(l lens.Lens, files []string) (ok bool, why string) {
	why = "only tests change"
	for _, file := range files {
		ext := strings.ToLower(path.Ext(file))
		switch {
		case testname.IsFile(file):
		case l != lens.Product && slices.Contains(prose, ext):
			why = "only documents and tests change"
		case l == lens.Performance && slices.Contains(data, ext):
			why = "only settings, documents and tests change"
		default:
			return true, ""
		}
	}
	if len(files) == 0 {
		why = "no file changes"
	}
	return false, why
}
