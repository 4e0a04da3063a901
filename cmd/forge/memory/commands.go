package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// Store is what changes of the memory need of the store; T is its
// transaction.
type Store[T any] interface {
	Tx(ctx context.Context, fn func(ctx context.Context, tx T) error) error
	SaveLearnings(ctx context.Context, tx T, learnings []pipeline.Learning) ([]int64, error)
	ApplyEvidence(ctx context.Context, tx T, scope string, evidence []pipeline.Evidence) error
	EditLearning(ctx context.Context, tx T, id int64, by pipeline.Actor, at time.Time, change func(*pipeline.Learning) error) error
	ForgetLearning(ctx context.Context, tx T, id int64, by pipeline.Actor, at time.Time, why string) error
	NoteLearning(ctx context.Context, tx T, id int64, by pipeline.Actor, at time.Time, what string) error
}

const (
	// Everything is a limit that lists all there is.
	Everything = math.MaxInt32

	maxListed = 40 // learnings in an answer

	// rememberBase is the confidence that a plain word of a maintainer begins with:
	// more than what is derived from a rewrite (0.8), and not certain.
	rememberBase = 0.9
	// rememberDelta is what a second person does to it who says the same.
	rememberDelta = 0.1
)

// Commands answers the slash commands about what is remembered of a repository.
// It sees and changes what is of that repository alone: who may write there has no
// say in what is remembered of the organisation.
type Commands struct {
	DB     *store.DB
	Weight func(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (float64, error) // of a person's word, 0 to 1
	Now    func() time.Time
	Record Record // nil: nothing is written into runs
	Slug   string // what commands begin with; "": command.Slug
}

// typed is a command as people type it.
func (m *Commands) typed(words string) string { return "`" + command.Write(m.Slug, words) + "`" }

// change changes the memory and says so in the run at which it was asked for, if
// any, in one transaction.
func (m *Commands) change(ctx context.Context, w work.Word, typ pipeline.EventType, d pipeline.Data, change func(context.Context, *store.Tx) error) error {
	if w.Run == 0 || m.Record == nil {
		return m.DB.Tx(ctx, change)
	}
	d.Actor = &w.Actor
	e := pipeline.Event{ID: w.Cause + "/" + string(typ), Type: typ, Source: "human:" + w.Actor.Login, Data: d}
	return m.Record(ctx, w.Run, []pipeline.Event{e}, change)
}

// Memory implements work.Memory.
func (m *Commands) Memory(ctx context.Context, repo pipeline.Repo, words string) (string, error) {
	scope, now := repo.Scope(), m.Now()
	all, err := m.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{scope}, Limit: Everything})
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return fmt.Sprintf("Nothing is remembered of %s yet. Forge learns from its own runs and from what people do with its findings and suggestions, "+
			"and %s tells it something.", repo.FullName(), m.typed("remember WORDS")), nil
	}
	ByConfidence(all, now)
	list, about := all, ""
	if words != "" {
		about = " about these words"
		hits, err := m.DB.SearchMemories(ctx, words, []string{scope}, maxListed)
		if err != nil {
			return "", err
		}
		list = nil
		for _, h := range hits {
			list = append(list, h.Learning)
		}
		if len(list) == 0 {
			return fmt.Sprintf("Nothing that is remembered of %s is about these words. %s alone lists all of it.", repo.FullName(), m.typed("memory")), nil
		}
	}
	var b strings.Builder
	shown := list[:min(maxListed, len(list))]
	fmt.Fprintf(&b, "Remembered of %s%s: %d of %d learning(s), with their confidence from 0 to 1. %s takes one out of use.\n\n",
		repo.FullName(), about, len(shown), len(all), m.typed("forget ID"))
	if slices.ContainsFunc(shown, reflected) {
		fmt.Fprintf(&b, "What is marked as a run's own view is told to reviewers once somebody here says %s.\n\n", m.typed("remember ID"))
	}
	for _, l := range shown {
		kind := KindOf(l)
		if reflected(l) {
			kind += ", a run's own view"
			if learn.Unchecked(&l) {
				kind += " that could not be looked up"
			}
		}
		fmt.Fprintf(&b, "- **%d** (%.2f, %s): %s\n", l.ID, learn.Effective(l, now), kind, strings.ReplaceAll(OneLine(l.Content, 240), "`", "'"))
	}
	return b.String(), nil
}

// reflected reports whether a learning is what a run taught itself, as far as it is listed.
func reflected(l pipeline.Learning) bool { return l.Source == pipeline.SourceReflection }

// ByConfidence sorts by scope, then by what decay leaves of confidence.
func ByConfidence(list []pipeline.Learning, now time.Time) {
	slices.SortStableFunc(list, func(a, b pipeline.Learning) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(learn.Effective(b, now), learn.Effective(a, now)), cmp.Compare(a.ID, b.ID))
	})
}

// KindOf is the type of a learning and its category, if it has one.
func KindOf(l pipeline.Learning) string {
	if l.Category == "" {
		return string(l.Type)
	}
	return string(l.Type) + ", " + string(l.Category)
}

// OneLine is a text in one line of at most n characters.
func OneLine(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		return strings.TrimSpace(string(r[:n-1])) + "…"
	}
	return string(r)
}

// Remember implements work.Memory.
func (m *Commands) Remember(ctx context.Context, w work.Word) (string, error) {
	if w.Was == "" {
		return m.take(ctx, w)
	}
	back, err := m.takeBack(ctx, w)
	if err != nil || strings.TrimSpace(w.Text) == "" {
		return back, err
	}
	said, err := m.take(ctx, w)
	return strings.TrimSpace(back + "\n" + said), err
}

// takenBack is why what a comment said is not remembered any more.
const takenBack = "its comment was edited or deleted"

// takeBack takes the effect of a comment back that its writer edited or deleted: what others
// said, too, stays.
func (m *Commands) takeBack(ctx context.Context, w work.Word) (string, error) {
	content := learn.Tidy(w.Was, learn.MaxWords)
	w.Cause += "/back"
	if ids := numbers(content); len(ids) > 0 {
		return m.unvouch(ctx, w, ids)
	}
	l, err := m.said(ctx, w.Repo.Scope(), content)
	if err != nil {
		return "", err
	}
	if l == nil || l.State != pipeline.LearningActive {
		return "What this comment said is not remembered: nothing was done.", nil
	}
	evidence, err := m.DB.Evidence(ctx, l.ID)
	if err != nil {
		return "", err
	}
	var other *pipeline.Evidence // the first who said the same
	for i, e := range evidence {
		switch {
		case !learn.IsWord(e):
		case e.Key == learn.WordKey(w.Actor):
			return fmt.Sprintf("Learning %d is %s's word, and no longer yours.", l.ID, l.Author.Login), m.takeWord(ctx, w, *l, e)
		case other == nil || e.At.Before(other.At):
			other = &evidence[i]
		}
	}
	switch {
	case l.Author.ID != w.Actor.ID:
		return fmt.Sprintf("Learning %d is %s's word: nothing was done.", l.ID, l.Author.Login), nil
	case other != nil:
		return fmt.Sprintf("Learning %d stays: %s said the same.", l.ID, other.Actor.Login), m.handOver(ctx, w, *l, *other)
	}
	now := m.Now().UTC().Truncate(time.Microsecond)
	err = m.change(ctx, w, pipeline.EventForgotten, pipeline.Data{Learning: known(*l), Note: takenBack}, func(ctx context.Context, tx *store.Tx) error {
		err := m.DB.EditLearning(ctx, tx, l.ID, w.Actor, now, func(l *pipeline.Learning) error {
			l.State = pipeline.LearningWithdrawn
			return nil
		})
		if err != nil {
			return err
		}
		return m.DB.NoteLearning(ctx, tx, l.ID, w.Actor, now, "withdrawn: "+takenBack)
	})
	return fmt.Sprintf("Learning %d is withdrawn, because %s: no run is given it any more.", l.ID, takenBack), err
}

// takeWord takes a person's word for a learning back.
func (m *Commands) takeWord(ctx context.Context, w work.Word, l pipeline.Learning, e pipeline.Evidence) error {
	e.Off, e.At = true, m.Now().UTC().Truncate(time.Microsecond)
	return m.change(ctx, w, pipeline.EventForgotten, pipeline.Data{Learning: known(l), Note: takenBack}, func(ctx context.Context, tx *store.Tx) error {
		return m.DB.ApplyEvidence(ctx, tx, l.Scope, []pipeline.Evidence{e})
	})
}

// handOver makes a learning the word of who said the same, when who said it first takes it back:
// it is as sure as if they alone had said it.
func (m *Commands) handOver(ctx context.Context, w work.Word, l pipeline.Learning, to pipeline.Evidence) error {
	weight := to.Delta / rememberDelta
	to.Off = true
	return m.change(ctx, w, pipeline.EventForgotten, pipeline.Data{Learning: known(l), Note: takenBack}, func(ctx context.Context, tx *store.Tx) error {
		err := m.DB.EditLearning(ctx, tx, l.ID, w.Actor, m.Now(), func(l *pipeline.Learning) error {
			l.Author, l.Weight, l.Base = to.Actor, weight, rememberBase*min(1, weight)
			return nil
		})
		if err != nil {
			return err
		}
		return m.DB.ApplyEvidence(ctx, tx, l.Scope, []pipeline.Evidence{to})
	})
}

// take keeps the words of a person.
func (m *Commands) take(ctx context.Context, w work.Word) (string, error) {
	content := learn.Tidy(w.Text, learn.MaxWords)
	if content == "" {
		return "There is nothing in these words that could be remembered.", nil
	}
	weight, err := m.Weight(ctx, w.Repo, w.Actor)
	if err != nil {
		return "", err
	}
	if !(weight > 0) {
		return "Forge remembers the words of people with write access to this repository.", nil
	}
	if ids := numbers(content); len(ids) > 0 {
		return m.again(ctx, w, ids, weight)
	}
	at := m.Now().UTC().Truncate(time.Microsecond)
	base := rememberBase * min(1, weight)
	l := pipeline.Learning{
		Key: saidKey(content), Scope: w.Repo.Scope(), Type: pipeline.LearningSemantic, Content: content, Source: pipeline.SourceHuman,
		Author: w.Actor, Weight: weight, Run: w.Run, Base: base, Confidence: base, Created: at, Touched: at, State: pipeline.LearningActive,
	}
	known, err := m.said(ctx, l.Scope, content)
	if err != nil {
		return "", err
	}
	if l.ID, err = m.keep(ctx, w, l, known); err != nil {
		return "", err
	}
	if l, err = m.DB.Learning(ctx, l.ID); err != nil {
		return "", err
	}
	text := fmt.Sprintf("Remembered as learning **%d**, with a confidence of %.2f. %s takes it out of use.", l.ID, l.Confidence,
		m.typed(fmt.Sprintf("forget %d", l.ID)))
	if strings.Contains(content, "[secret]") && !strings.Contains(w.Text, "[secret]") {
		text += " What looks like a credential was left out: if it is one, revoke it, because it stands in a comment now."
	}
	if len(w.Text) > learn.MaxWords {
		text += fmt.Sprintf(" It is long: at most %d bytes of it are kept.", learn.MaxWords)
	}
	against, err := m.against(ctx, l)
	return text + against, err
}

// against says which learnings of the same scope say the opposite; "" for none.
func (m *Commands) against(ctx context.Context, l pipeline.Learning) (string, error) {
	list, err := m.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{l.Scope}, Limit: Everything})
	if err != nil {
		return "", err
	}
	var out string
	for _, c := range learn.Contradictions(list, m.Now()) {
		other := c.Weaker
		if other.ID == l.ID {
			other = c.Stronger
		}
		if c.Weaker.ID == l.ID || c.Stronger.ID == l.ID {
			out += fmt.Sprintf("\n\nIt says the opposite of learning **%d** (%.2f): %s Runs are given %d alone; %s takes the other out of use.", other.ID,
				learn.Effective(other, m.Now()), strings.ReplaceAll(OneLine(other.Content, 240), "`", "'"), c.Stronger.ID, m.typed(fmt.Sprintf("forget %d", c.Weaker.ID)))
		}
	}
	return out, nil
}

// saidKey makes the same words one learning, whoever says them and however they are
// punctuated.
func saidKey(content string) string {
	sum := sha256.Sum256([]byte(learn.Worded(content)))
	return fmt.Sprintf("%s:%x", pipeline.SourceHuman, sum[:12])
}

// said finds what people said in these words, or what says the same since it was edited; nil if
// there is none.
func (m *Commands) said(ctx context.Context, scope, content string) (*pipeline.Learning, error) {
	key := saidKey(content)
	list, err := m.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{scope}, States: []pipeline.LearningState{"*"},
		Source: pipeline.SourceHuman, Limit: Everything})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(list, func(l pipeline.Learning) bool { return l.Key == key || saidKey(l.Content) == key }); i >= 0 {
		return &list[i], nil
	}
	return nil, nil
}

// keep keeps what a person said, unless they have said so before.
func (m *Commands) keep(ctx context.Context, w work.Word, l pipeline.Learning, known *pipeline.Learning) (int64, error) {
	if known != nil {
		l.ID, l.Key = known.ID, known.Key
		evidence, err := m.DB.Evidence(ctx, known.ID)
		if err != nil {
			return 0, err
		}
		said := known.Author.ID == w.Actor.ID || slices.ContainsFunc(evidence, func(e pipeline.Evidence) bool { return e.Key == learn.WordKey(w.Actor) && !e.Off })
		if said && known.State == pipeline.LearningActive {
			return known.ID, nil
		}
	}
	id := int64(0)
	err := m.change(ctx, w, pipeline.EventRemembered, pipeline.Data{Learning: &l}, func(ctx context.Context, tx *store.Tx) (err error) {
		id, err = remember(ctx, tx, m.DB, l, known)
		return err
	})
	return id, err
}

// remember keeps what a person said. When it is known already, another person's
// word is evidence for it; and who says it again after it was taken out of use
// wants it back.
func remember[T any](ctx context.Context, tx T, st Store[T], l pipeline.Learning, known *pipeline.Learning) (id int64, err error) {
	if known == nil {
		ids, err := st.SaveLearnings(ctx, tx, []pipeline.Learning{l})
		if err != nil {
			return 0, err
		}
		return ids[0], nil
	}
	alone := known.State == pipeline.LearningWithdrawn // whoever said it has taken it back: it is this person's word alone
	if known.State != pipeline.LearningActive {
		err := st.EditLearning(ctx, tx, known.ID, l.Author, l.Created, func(old *pipeline.Learning) error {
			old.State = pipeline.LearningActive
			if alone {
				old.Author, old.Weight, old.Base = l.Author, l.Weight, l.Base
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if alone || known.Author.ID == l.Author.ID {
		return known.ID, nil
	}
	return known.ID, st.ApplyEvidence(ctx, tx, l.Scope, []pipeline.Evidence{{Learning: known.ID, Of: l.Key, Key: learn.WordKey(l.Author),
		Delta: rememberDelta * min(1, l.Weight), Why: "another person said the same", Actor: l.Author, Run: l.Run, At: l.Created}})
}

// Forget implements work.Memory.
func (m *Commands) Forget(ctx context.Context, w work.Word, id int64) (string, error) {
	l, err := m.DB.Learning(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && l.Scope != w.Repo.Scope() {
		return fmt.Sprintf("There is no learning %d of %s. %s lists what there is.", id, w.Repo.FullName(), m.typed("memory")), nil
	}
	if err == nil && l.State != pipeline.LearningForgotten {
		why := learn.Tidy(w.Text, learn.MaxWords)
		err = m.change(ctx, w, pipeline.EventForgotten, pipeline.Data{Learning: known(l), Note: why}, func(ctx context.Context, tx *store.Tx) error {
			return m.DB.ForgetLearning(ctx, tx, id, w.Actor, m.Now(), why)
		})
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Learning %d is forgotten: no run is given it any more, and no signal brings it back. %s does.", id, m.typed(fmt.Sprintf("remember %d", id))), nil
}

// known is a learning as an event names it.
func known(l pipeline.Learning) *pipeline.Learning {
	return &pipeline.Learning{ID: l.ID, Key: l.Key, Scope: l.Scope, Type: l.Type, Source: l.Source}
}
