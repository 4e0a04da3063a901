package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"forge/learn"
	"forge/pipeline"
)

// maxForm is the most that a form may send, in bytes: far more than is taken, so that
// what is too long comes back to whoever wrote it.
const maxForm = 1 << 20

// readForm reads the form that was sent.
func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return badInput("The form could not be read: it is not whole, or larger than 1 MB.")
	}
	return nil
}

// editData is the form to edit a learning.
type editData struct {
	pipeline.Learning                                 // as it is now
	Categories                    []pipeline.Category //
	Category                      pipeline.Category   // as the form has it
	Content, Context, Paths, Tags string              // likewise
	Version                       string              // of what the form was made from
	Problem                       string              // why it was not taken
	Conflict                      bool                // somebody changed it meanwhile
	By                            pipeline.Actor      // who
}

func editOf(l pipeline.Learning) editData {
	d := editData{Learning: l, Categories: pipeline.Categories(), Content: l.Content, Context: l.Context, Category: l.Category,
		Paths: strings.Join(l.Paths, "\n"), Tags: strings.Join(l.Tags, "\n"), Version: version(&l)}
	if !slices.Contains(d.Categories, l.Category) && l.Category != "" {
		d.Categories = append(slices.Clone(d.Categories), l.Category)
	}
	return d
}

// changeable finds the learning that an address names, for a viewer who may change it now.
func (p *Pages) changeable(r *http.Request, v Viewer) (pipeline.Learning, error) {
	l, err := p.learning(r.Context(), v, mux.Vars(r)["id"])
	if err != nil {
		return l, err
	}
	return l, p.mayChange(r.Context(), v, l.Scope)
}

func (p *Pages) editPage(w http.ResponseWriter, r *http.Request, v Viewer) error {
	l, err := p.changeable(r, v)
	if err != nil {
		return err
	}
	if l.State == pipeline.LearningForgotten {
		return &problem{http.StatusConflict, "It is forgotten: what people forget is out of use for good."}
	}
	return p.showEdit(w, r, v, editOf(l))
}

func (p *Pages) showEdit(w http.ResponseWriter, r *http.Request, v Viewer, d editData) error {
	return p.render(w, r, v, "memory_edit.html", page{Title: fmt.Sprintf("Edit learning %d", d.ID), Nav: "/memory", Data: d})
}

var (
	errConflict = errors.New("somebody else changed it meanwhile")
	errSame     = errors.New("nothing was changed")
)

func (p *Pages) edit(w http.ResponseWriter, r *http.Request, v Viewer) error {
	l, err := p.changeable(r, v)
	if err == nil {
		err = readForm(w, r)
	}
	if err != nil {
		return err
	}
	d := editOf(l)
	d.Content, d.Context, d.Category = r.PostForm.Get("content"), r.PostForm.Get("context"), pipeline.Category(r.PostForm.Get("category"))
	d.Paths, d.Tags, d.Version = r.PostForm.Get("paths"), r.PostForm.Get("tags"), r.PostForm.Get("version")
	err = p.change(r, v, l.ID, &d)
	switch {
	case err != nil:
		return err
	case d.Conflict:
		return p.showEdit(&statusWriter{w, http.StatusConflict}, r, v, d)
	case d.Problem == errSame.Error():
		done(w, r, fmt.Sprintf("/memory/%d", l.ID), "Nothing was changed: that is what it says already.")
	case d.Problem != "":
		return p.showEdit(&statusWriter{w, http.StatusUnprocessableEntity}, r, v, d)
	default:
		p.notifyScope(r.Context(), l.Scope)
		done(w, r, fmt.Sprintf("/memory/%d", l.ID), fmt.Sprintf("Learning %d is changed.", l.ID))
	}
	return nil
}

// change edits a learning as a form says, or notes in the form why not.
func (p *Pages) change(r *http.Request, v Viewer, id int64, d *editData) error {
	content, context := lines(d.Content), lines(d.Context)
	paths, tags := strings.Split(lines(d.Paths), "\n"), strings.Split(lines(d.Tags), "\n")
	edit := learn.Edit{Content: &content, Context: &context, Category: &d.Category, Paths: &paths, Tags: &tags}
	refused := edit.Check()
	if refused == nil {
		err := p.DB.EditLearning(r.Context(), nil, id, v.Actor(), p.Now(), func(l *pipeline.Learning) error {
			d.Learning = *l
			before := version(l)
			if before != d.Version {
				refused = errConflict
			} else if refused = edit.Apply(l, nil); refused == nil && version(l) == before {
				refused = errSame
			}
			return refused
		})
		if refused == nil {
			return err
		}
	}
	d.Problem = refused.Error()
	if !errors.Is(refused, errConflict) {
		return nil
	}
	d.Conflict, d.Version = true, version(&d.Learning) // sent again, the form is meant for what is there now
	history, err := p.DB.History(r.Context(), id)
	if n := len(history); n > 0 {
		d.By = history[n-1].By
	}
	return err
}

// lines are a form's lines as they are kept: browsers end them with two characters.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// forgetData is the question whether to forget a learning.
type forgetData struct {
	memoryRow
	Why, Version, Problem string
}

func (p *Pages) forgetPage(w http.ResponseWriter, r *http.Request, v Viewer) error {
	l, err := p.changeable(r, v)
	if err != nil {
		return err
	}
	if l.State == pipeline.LearningForgotten {
		return &problem{http.StatusConflict, "It is forgotten already: its page says by whom."}
	}
	return p.showForget(w, r, v, forgetData{memoryRow: p.rowOf(l), Version: version(&l)})
}

func (p *Pages) showForget(w http.ResponseWriter, r *http.Request, v Viewer, d forgetData) error {
	return p.render(w, r, v, "memory_forget.html", page{Title: fmt.Sprintf("Forget learning %d?", d.ID), Nav: "/memory", Data: d})
}

func (p *Pages) forget(w http.ResponseWriter, r *http.Request, v Viewer) error {
	l, err := p.changeable(r, v)
	if err == nil {
		err = readForm(w, r)
	}
	if err != nil {
		return err
	}
	d := forgetData{memoryRow: p.rowOf(l), Why: r.PostForm.Get("why"), Version: version(&l)}
	status, to := http.StatusUnprocessableEntity, fmt.Sprintf("/memory/%d", l.ID)
	switch why := lines(d.Why); {
	case l.State == pipeline.LearningForgotten:
		done(w, r, to, fmt.Sprintf("Learning %d was forgotten before.", l.ID))
		return nil
	case r.PostForm.Get("version") != d.Version:
		status, d.Problem = http.StatusConflict, "Somebody else changed it meanwhile. This is what it says now."
	case len(why) > learn.MaxWords:
		d.Problem = fmt.Sprintf("This reason has %d bytes, over %d: say it shorter.", len(why), learn.MaxWords)
	default:
		if err := p.DB.ForgetLearning(r.Context(), nil, l.ID, v.Actor(), p.Now(), learn.Tidy(why, learn.MaxWords)); err != nil {
			return err
		}
		p.notifyScope(r.Context(), l.Scope)
		done(w, r, to, fmt.Sprintf("Learning %d is forgotten: no run is given it any more, and no signal brings it back.", l.ID))
		return nil
	}
	return p.showForget(&statusWriter{w, status}, r, v, d)
}
