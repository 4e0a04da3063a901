package feedback

import (
	"slices"
	"strings"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/text"
)

// answerOf reads a person's answer in a finding's conversation: a command, or
// words. reason is what to remember of it.
func answerOf(body, slug string) (s Stance, reason string) {
	if c, ok := delivery.ParseCommand(body, slug); ok {
		if c.Name == "dismiss" {
			return Dismiss, c.Text
		}
		return None, ""
	}
	return Read(body), strings.TrimSpace(body)
}

// heard reads an answer in a conversation as what it says of the finding.
func (g *collector) heard(c *Comment) (s Stance, reason string) {
	s, reason = answerOf(c.Body, g.slug)
	if _, command := delivery.ParseCommand(c.Body, g.slug); command {
		return s, reason
	}
	if c.second && s == Dismiss && Read(without(spell(own(c.Body)), "against")) != Dismiss {
		return None, reason // it may be meant for whoever spoke before: "Disagree."
	}
	if g.assentsToRefusal(c) {
		return None, reason // it is meant for whoever refused: "Makes sense."
	}
	return s, reason
}

// stance reads an answer in a conversation. What blocks is refused by a command or a click:
// words that name a refusal can always mean the opposite ("By design: broken"), and are read
// by the model, and by people. doubt says that such words name one.
func (g *collector) stance(c *Comment) (s Stance, reason string, doubt bool) {
	s, reason = g.heard(c)
	_, command := delivery.ParseCommand(c.Body, g.slug)
	if command || !c.strict || s == Agree || s == Later {
		return s, reason, false
	}
	return None, reason, s == Dismiss || has(spell(own(c.Body)), "dismiss")
}

// assentsToRefusal reports whether all that somebody says is that the person whom they answer
// is right, who refuses the finding.
func (g *collector) assentsToRefusal(c *Comment) bool {
	return c.to != nil && !c.to.Updated.After(c.Updated) && Assents(c.Body) && g.refuses(c.to)
}

// refuses reports whether a person refuses a finding: by a command, in words that the table or
// a model knows, or by agreeing with somebody who does.
func (g *collector) refuses(c *Comment) bool {
	if Assents(c.Body) {
		return g.assentsToRefusal(c)
	}
	if s, _ := g.heard(c); s != None {
		return s == Dismiss
	}
	r := g.reading(c)
	return r != nil && r.Meaning == record.MeaningRefuses
}

// answeredBy is the comment of a person that the comment j of a conversation answers: the one that
// it quotes, the last by whom it names, else the last by another person. nil when that is Forge's.
func (g *collector) answeredBy(t *Thread, j int) *Comment {
	c := &t.Comments[j]
	var before []*Comment // newest first
	for i := j - 1; i >= 0; i-- {
		before = append(before, &t.Comments[i])
	}
	of := func(is func(o *Comment) bool) *Comment {
		i := slices.IndexFunc(before, is)
		if i < 0 || !g.human(before[i].Author) || before[i].Hidden != "" {
			return nil
		}
		return before[i]
	}
	if q := quotedLine(c.Body); q != "" {
		return of(func(o *Comment) bool { return strings.Contains(o.Body, q) })
	}
	named := func(o *Comment) bool {
		return slices.ContainsFunc(mention.FindAllString(c.Body, -1), func(m string) bool { return strings.EqualFold(m[1:], o.Author.Login) })
	}
	if slices.ContainsFunc(before, named) {
		return of(named)
	}
	return of(func(o *Comment) bool { return g.human(o.Author) && o.Author.ID != c.Author.ID && o.Hidden == "" })
}

// quotedLine is the first line that a comment quotes, without its marks.
func quotedLine(body string) string {
	for l := range strings.Lines(body) {
		if t := strings.TrimSpace(l); strings.HasPrefix(t, ">") {
			if t = strings.Trim(t, "> \t"); t != "" {
				return t
			}
		}
	}
	return ""
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
