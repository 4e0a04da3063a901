package feedback

import (
	"strings"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
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

// stance reads an answer in a conversation. What blocks is refused by a command or a click:
// words that name a refusal can always mean the opposite ("By design: broken"), and are read
// by the model, and by people. doubt says that such words name one.
func (g *collector) stance(c *Comment) (s Stance, reason string, doubt bool) {
	s, reason = answerOf(c.Body, g.slug)
	_, command := delivery.ParseCommand(c.Body, g.slug)
	if !command && c.second && s == Dismiss && Read(without(spell(own(c.Body)), "against")) != Dismiss {
		return None, reason, false // it may be meant for whoever spoke before: "Disagree."
	}
	if command || !c.strict || s == Agree || s == Later {
		return s, reason, false
	}
	return None, reason, s == Dismiss || has(spell(own(c.Body)), "dismiss")
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
