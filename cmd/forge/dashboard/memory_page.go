package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// What the page of a learning shows of lists that may be long.
const (
	evidenceShown = 100
	stepsShown    = 100
	usesShown     = 50
	usesRead      = 2000 // for the chart and the sums
	touchedShown  = 50
)

// learningData is all that is known of a learning.
type learningData struct {
	memoryRow
	Now      float64 // what is left of its confidence
	Chart    template.HTML
	Steps    []step // the latest first
	Evidence []pipeline.Evidence
	History  []changeView // the latest first
	Uses     []store.Use
	Given    int     // uses that the viewer sees, by kind
	Helped   int     //
	Withheld int     // withheld
	HelpedIn []int64 // runs that used it
	Into     int64   // the learning that it was merged into, 0: none
	From     []pipeline.Learning
	Reviews  []reviewView // that it held findings back in
	Seen     []store.Seen // the finding that it is about, where runs have it

	MoreSteps, MoreEvidence, MoreUses int
}

// changeView is one change of a learning, with what was before.
type changeView struct {
	store.MemoryChange
	Fields []fieldChange
}

type fieldChange struct{ Name, Was, Is string }

// reviewView is a review that a learning changed, with the lines that say so.
type reviewView struct {
	store.Summary
	Lines []string
}

func (p *Pages) learningPage(w http.ResponseWriter, r *http.Request, v Viewer) error {
	ctx := r.Context()
	l, err := p.learning(ctx, v, mux.Vars(r)["id"])
	if err != nil {
		return err
	}
	d := learningData{memoryRow: p.rowOf(l)}
	evidence, err := p.DB.Evidence(ctx, l.ID)
	if err != nil {
		return err
	}
	history, err := p.DB.History(ctx, l.ID)
	if err != nil {
		return err
	}
	uses, err := p.DB.Uses(ctx, l.ID, usesRead)
	if err != nil {
		return err
	}
	steps, line := confidenceHistory(l, evidence, history, uses, p.Now())
	d.Chart = drawCourse(line, steps, l.Created, p.Now())
	slices.Reverse(steps)
	d.Steps, d.MoreSteps = head(steps, stepsShown)
	d.Evidence, d.MoreEvidence = head(evidence, evidenceShown)
	for _, c := range slices.Backward(history) {
		d.History = append(d.History, changeView{c, fieldChanges(c)})
	}
	d.use(v, uses)
	if err := p.touched(ctx, &d, history); err != nil {
		return err
	}
	return p.render(w, r, v, "memory_one.html", page{Title: fmt.Sprintf("Learning %d", l.ID), Nav: "/memory", Live: "memory", Data: d})
}

// head is the beginning of a list, and how many there are besides.
func head[T any](list []T, n int) ([]T, int) {
	return list[:min(n, len(list))], max(0, len(list)-n)
}

// use sums up where the learning was recalled: in runs that the viewer sees.
func (d *learningData) use(v Viewer, uses []store.Use) {
	uses = slices.DeleteFunc(uses, func(u store.Use) bool { return !Sees(v, u.Repo) })
	for _, u := range uses {
		switch {
		case u.Withheld:
			d.Withheld++
			continue
		case u.Used:
			d.Helped++
			if !slices.Contains(d.HelpedIn, u.Run) && len(d.HelpedIn) < touchedShown {
				d.HelpedIn = append(d.HelpedIn, u.Run)
			}
		}
		d.Given++
	}
	d.Uses, d.MoreUses = head(uses, usesShown)
}

// touched finds what the learning changed beside prompts: learnings that went into it,
// findings that it is about or held back.
func (p *Pages) touched(ctx context.Context, d *learningData, history []store.MemoryChange) (err error) {
	if d.State == pipeline.LearningMerged {
		for _, c := range slices.Backward(history) {
			if n, _ := fmt.Sscanf(c.What, "merged into %d", &d.Into); n == 1 {
				break
			}
		}
	}
	if d.From, err = p.DB.Learnings(ctx, store.MemoryFilter{Into: d.ID, States: []pipeline.LearningState{"*"}, Limit: touchedShown}); err != nil {
		return err
	}
	repo, ok := record.CutScope(d.Scope)
	if !ok {
		return nil // findings are held back by what people dismissed in the same repository
	}
	if d.Finding != "" {
		if d.Seen, err = p.DB.SeenFindings(ctx, repo, d.Finding, touchedShown); err != nil {
			return err
		}
	}
	if d.Source != pipeline.SourceDismissal {
		return nil
	}
	name := fmt.Sprintf("(learning %d)", d.ID)
	list, err := p.DB.Summaries(ctx, repo, d.Created, name, touchedShown)
	for _, s := range list {
		view := reviewView{Summary: s}
		for line := range strings.SplitSeq(s.Text, "\n") {
			if strings.Contains(line, name) {
				view.Lines = append(view.Lines, line)
			}
		}
		d.Reviews = append(d.Reviews, view)
	}
	return err
}

// fieldChanges says what a change changed, and from what.
func fieldChanges(c store.MemoryChange) (out []fieldChange) {
	var was, is pipeline.Learning
	if json.Unmarshal([]byte(c.Before), &was) != nil || json.Unmarshal([]byte(c.After), &is) != nil {
		return nil // unreachable: the store writes both
	}
	for _, f := range []fieldChange{
		{"words", was.Content, is.Content}, {"when it matters", was.Context, is.Context}, {"type", string(was.Type), string(is.Type)},
		{"category", string(was.Category), string(is.Category)},
		{"paths", strings.Join(was.Paths, "\n"), strings.Join(is.Paths, "\n")}, {"tags", strings.Join(was.Tags, "\n"), strings.Join(is.Tags, "\n")},
		{"base", fmt.Sprintf("%.2f", was.Base), fmt.Sprintf("%.2f", is.Base)}, {"state", string(was.State), string(is.State)},
	} {
		if f.Was != f.Is {
			out = append(out, f)
		}
	}
	return out
}
