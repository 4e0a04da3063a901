package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// numbers are the ids of learnings, when the words are nothing else: "9", "#9, 10 and 11".
func numbers(words string) (ids []int64) {
	for _, w := range strings.Fields(words) {
		id, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimRight(w, ",;."), "#"), 10, 64)
		switch {
		case err == nil && id > 0:
			ids = append(ids, id)
		case w != "and" && w != "&":
			return nil
		}
	}
	return ids
}

// again is a person's word for learnings by their numbers: those that people have forgotten are
// in use again, and what a run taught itself holds from now on, because somebody here says so.
func (m *Commands) again(ctx context.Context, w work.Word, ids []int64, weight float64) (string, error) {
	var said []string
	for i, id := range ids {
		each := w
		if i > 0 {
			each.Cause += fmt.Sprintf("/%d", id)
		}
		l, err := m.DB.Learning(ctx, id)
		words := ""
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && l.Scope != w.Repo.Scope():
			words, err = fmt.Sprintf("There is no learning %d of %s. %s lists what there is.", id, w.Repo.FullName(), m.typed("memory")), nil
		case err != nil:
		case l.State == pipeline.LearningActive && l.Source == pipeline.SourceReflection:
			words, err = m.vouch(ctx, each, l, weight)
		case l.State != pipeline.LearningForgotten:
			words = fmt.Sprintf("Learning %d is not forgotten (it is %s): nothing was done.", id, l.State)
		default:
			err = m.change(ctx, each, pipeline.EventRemembered, pipeline.Data{Learning: known(l)}, func(ctx context.Context, tx *store.Tx) error {
				return m.DB.EditLearning(ctx, tx, id, w.Actor, m.Now(), func(l *pipeline.Learning) error {
					l.State = pipeline.LearningActive
					return nil
				})
			})
			words = fmt.Sprintf("Learning %d is in use again: %s", id, OneLine(l.Content, 120))
		}
		if err != nil {
			return "", err
		}
		said = append(said, words)
	}
	return strings.Join(said, "\n"), nil
}

// vouch makes a person's word of what a run taught itself: it is as sure as if they had said it.
func (m *Commands) vouch(ctx context.Context, w work.Word, l pipeline.Learning, weight float64) (string, error) {
	e := pipeline.Evidence{Learning: l.ID, Of: l.Key, Key: learn.WordKey(w.Actor), Delta: max(rememberDelta, rememberBase-l.Base) * min(1, weight),
		Why: "a person said that it holds", Actor: w.Actor, Run: w.Run, At: m.Now().UTC().Truncate(time.Microsecond)}
	evidence, err := m.DB.Evidence(ctx, l.ID)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(evidence, func(had pipeline.Evidence) bool { return had.Key == e.Key && !had.Off }) {
		err := m.change(ctx, w, pipeline.EventRemembered, pipeline.Data{Learning: known(l)}, func(ctx context.Context, tx *store.Tx) error {
			return m.bear(ctx, tx, l, e, cmp.Or(l.Author, w.Actor), w.Actor)
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Learning %d holds, by your word: reviewers are told it, too. %s", l.ID, OneLine(l.Content, 120)), nil
}

// bear keeps a person's word for what a run taught itself, and whose it is by that.
func (m *Commands) bear(ctx context.Context, tx *store.Tx, l pipeline.Learning, e pipeline.Evidence, whose, by pipeline.Actor) error {
	err := m.DB.EditLearning(ctx, tx, l.ID, by, m.Now(), func(l *pipeline.Learning) error {
		l.Author = whose
		return nil
	})
	if err != nil {
		return err
	}
	return m.DB.ApplyEvidence(ctx, tx, l.Scope, []pipeline.Evidence{e})
}

// unvouch takes a person's word for learnings back that they gave by their numbers.
func (m *Commands) unvouch(ctx context.Context, w work.Word, ids []int64) (string, error) {
	for i, id := range ids {
		each := w
		if i > 0 {
			each.Cause += fmt.Sprintf("/%d", id)
		}
		l, err := m.DB.Learning(ctx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && (l.Scope != w.Repo.Scope() || l.Source != pipeline.SourceReflection) {
			continue
		}
		if err != nil {
			return "", err
		}
		evidence, err := m.DB.Evidence(ctx, id)
		if err != nil {
			return "", err
		}
		mine := slices.IndexFunc(evidence, func(e pipeline.Evidence) bool { return learn.IsWord(e) && e.Key == learn.WordKey(w.Actor) })
		if mine < 0 {
			continue
		}
		e, whose := evidence[mine], pipeline.Actor{}
		if i := slices.IndexFunc(evidence, func(o pipeline.Evidence) bool { return learn.IsWord(o) && o.Key != e.Key }); i >= 0 {
			whose = evidence[i].Actor
		}
		e.Off, e.At = true, m.Now().UTC().Truncate(time.Microsecond)
		err = m.change(ctx, each, pipeline.EventForgotten, pipeline.Data{Learning: known(l), Note: takenBack}, func(ctx context.Context, tx *store.Tx) error {
			return m.bear(ctx, tx, l, e, whose, w.Actor)
		})
		if err != nil {
			return "", err
		}
	}
	return "What this comment said of these learnings is taken back, as far as it was yours.", nil
}
