package feedback

import (
	"context"
	"fmt"
	"strings"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/text"
)

func keyAnswer(reply int64) string    { return fmt.Sprintf("answer/%d", reply) }
func keyRefused(comment int64) string { return fmt.Sprintf("refused/%d", comment) }

// stance reads an answer in a finding's conversation: a command, else as a model has read it,
// else as one of the phrases. reason is what to remember of it. What blocks is refused by a
// command or a click alone; doubt says that a phrase would.
func (g *collector) stance(c *Comment) (s Stance, reason string, doubt bool) {
	if l, ok := delivery.ParseCommand(c.Body, g.slug); ok {
		if l.Name == "dismiss" {
			return Dismiss, l.Text, false
		}
		return None, "", false
	}
	s, reason = Read(c.Body), strings.TrimSpace(c.Body)
	if c.second && toSpeaker[plain(c.Body)] {
		s = None
	}
	if r := g.reading(c); r != nil {
		switch r.Meaning {
		case record.MeaningAgrees, record.MeaningElsewhere:
			s = Agree
		case record.MeaningPostponed:
			s = Later
		case record.MeaningQuestion:
			s = None
		case record.MeaningRefuses:
			if s != Dismiss {
				s = None // it counts less: see refused
			}
		}
	}
	switch {
	case s == Nothing:
		s = None
	case s == Dismiss && c.strict:
		return None, reason, true
	}
	return s, reason, false
}

// unclear returns the words of an answer that a model is to read; "" where there is nothing to
// read: a command, a question, what says nothing, and a phrase where no model reads answers.
func (g *collector) unclear(c *Comment) string {
	_, command := delivery.ParseCommand(c.Body, g.slug)
	if command || !g.human(c.Author) || c.Hidden != "" || Idle(c.Body) || asks(c.Body) {
		return ""
	}
	if s := Read(c.Body); s != None && !g.reads && !c.strict && !(c.second && toSpeaker[plain(c.Body)]) {
		return ""
	}
	return kept(unquoted(c.Body))
}

// answered records what people answered to a finding in words that a model is to read (H7),
// as long as they do not say it plainly afterwards.
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

// unread reports whether nobody knows what a person's words say.
func (g *collector) unread(c *Comment) bool {
	s, _, _ := g.stance(c)
	if s != None || g.unclear(c) == "" {
		return false
	}
	r := g.reading(c)
	return r == nil || r.Meaning != record.MeaningRefuses && r.Meaning != record.MeaningQuestion
}

// readRefusal is the last answer in a conversation that a model read as a refusal; nil when
// somebody agrees in it, or puts it off.
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

// agreed reports whether an answer says that the finding is right, is done or put off.
func (g *collector) agreed(c *Comment) bool {
	st, _, _ := g.stance(c)
	return g.human(c.Author) && c.Hidden == "" && (st == Agree || st == Later)
}

// refused records that a person refuses a finding in words that a model read. That is less
// than a word that is plain: it counts when the matter is settled, and only where the code
// stands as it was commented and no person has committed anything since.
func (g *collector) refused(ctx context.Context, t *Thread, s pipeline.Signal, v outcome, settled bool) error {
	s.Key, s.Kind = keyRefused(t.first().ID), pipeline.SignalRefused
	c := g.readRefusal(t)
	holds := c != nil && settled && v.known && v.stands && !v.ever && v.kind == ""
	if holds {
		people, err := g.history.people(ctx, t.first().Commit)
		if err != nil {
			return err
		}
		holds = !people
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

// maxReason limits what is kept of a person's words and code, in bytes.
const maxReason = 4000

func kept(words string) string {
	return render.Shorten(strings.TrimSpace(text.Scrub(words)), maxReason)
}

// asCode keeps the indentation.
func asCode(lines []string) string { return render.Shorten(strings.Join(lines, "\n"), maxReason) }

// weightHidden is the weight of a comment's being hidden: GitHub does not say by
// whom, only that it takes the role triage or more.
const weightHidden = 0.4

// silent are the reasons for hiding a comment that do not refuse what it says.
var silent = map[string]bool{"outdated": true, "resolved": true}

func nobody(a pipeline.Actor) bool { return a.ID == 0 }
