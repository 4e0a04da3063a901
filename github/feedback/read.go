package feedback

import (
	"context"
	"fmt"
	"strings"

	"forge/github/delivery"
	"forge/pipeline"
	"forge/pipeline/record"
)

func keyAnswer(reply int64) string    { return fmt.Sprintf("answer/%d", reply) }
func keyRefused(comment int64) string { return fmt.Sprintf("refused/%d", comment) }

// unclear returns the words of an answer whose meaning the table of phrases does not
// know; "" where it does, and where there is nothing to know: a command, chatter, what only
// asks, and a word that agrees with whoever spoke before.
func (g *collector) unclear(c *Comment) string {
	st, _, _ := g.stance(c)
	if !g.human(c.Author) || c.Hidden != "" || st != None || Chatter(c.Body) || asks(c.Body) || c.to != nil && Assents(c.Body) {
		return ""
	}
	if _, command := delivery.ParseCommand(c.Body, g.slug); command {
		return ""
	}
	return kept(unquoted(c.Body))
}

// asks reports whether all that somebody says are questions.
func asks(body string) bool {
	for _, s := range sentences.FindAllString(own(body), -1) {
		if !strings.ContainsAny(s, "?？") && len(words(s)) > 0 {
			return false
		}
	}
	return true
}

// answered records what people answered to a finding in words that say nothing plainly
// (H7), as long as they do not say it plainly afterwards.
func (g *collector) answered(t *Thread, s pipeline.Signal) {
	plain := map[int64]bool{} // whoever says it plainly further down
	for i := len(t.Comments) - 1; i > 0; i-- {
		c := &t.Comments[i]
		s.Key, s.Comment = keyAnswer(c.ID), c.ID
		said := g.unclear(c)
		if said == "" || plain[c.Author.ID] {
			st, _, _ := g.stance(c)
			plain[c.Author.ID] = plain[c.Author.ID] || g.human(c.Author) && c.Hidden == "" && st != None
			g.gone = append(g.gone, s.Key)
			continue
		}
		a := s
		a.Kind, a.Actor, a.At, a.Text, a.Before = pipeline.SignalAnswered, c.Author, c.Updated, said, ""
		a.Waited = waited(a.At, t.first().Created)
		_, _, a.Unsure = g.stance(c)
		g.fact(a)
	}
}

// reading returns what a model read in an answer, nil when none has read these words.
func (g *collector) reading(c *Comment) *record.Reading {
	s, ok := g.known[record.ReadKey(c.ID)]
	if !ok || s.Off || s.Reading == nil {
		return nil
	}
	if said := g.unclear(c); said == "" || s.Reading.Digest != record.TextDigest(said) {
		return nil
	}
	return s.Reading
}

// readRefusal is the last answer in a conversation that a model read as a refusal; nil when
// somebody agrees in it, or puts it off, by the table or as a model read it.
func (g *collector) readRefusal(t *Thread) (last *Comment) {
	for i := range t.Comments[1:] {
		c := &t.Comments[1+i]
		if g.agreed(c) {
			return nil
		}
		if r := g.reading(c); r != nil && r.Meaning == record.MeaningRefuses {
			last = c
		}
	}
	return last
}

// agreed reports whether an answer says that the finding is right, is done or put off, or takes
// back what was said against it. Of a "yes and no" that is enough, unless a model knows better.
func (g *collector) agreed(c *Comment) bool {
	if !g.human(c.Author) || c.Hidden != "" {
		return false
	}
	if st, _, _ := g.stance(c); st == Agree || st == Later || retracts(c.Body) {
		return true
	}
	if r := g.reading(c); r != nil {
		return r.Meaning == record.MeaningAgrees || r.Meaning == record.MeaningElsewhere || r.Meaning == record.MeaningPostponed
	}
	if _, command := delivery.ParseCommand(c.Body, g.slug); command {
		return false
	}
	no, yes, later := signs(c.Body)
	return no && (yes || later)
}

// refused records that a person refuses a finding in words that a model read. That is less
// than a word that is plain: it counts when the matter is settled, and only where the code
// stands as it was commented and nobody changed what may have been meant.
func (g *collector) refused(ctx context.Context, t *Thread, s pipeline.Signal, v outcome, settled bool) error {
	s.Key, s.Kind = keyRefused(t.first().ID), pipeline.SignalRefused
	c := g.readRefusal(t)
	holds := c != nil && settled && v.known && v.stands && !v.ever && v.kind == ""
	if holds {
		other, err := g.doneElsewhere(ctx, t, v)
		if err != nil {
			return err
		}
		holds = !other
	}
	if !holds {
		g.gone = append(g.gone, s.Key)
		return nil
	}
	s.Actor, s.At, s.Text, s.Reading = c.Author, c.Updated, kept(unquoted(c.Body)), g.reading(c)
	s.Waited = waited(s.At, t.first().Created)
	g.fact(s)
	return nil
}
