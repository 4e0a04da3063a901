package command

import (
	"fmt"
	"strings"
)

// Question is what people are asked, and what they may answer.
type Question struct {
	Text    string   `json:"text"` // Markdown, before the choices
	Choices []Choice `json:"choices,omitempty"`
}

// Choice is an answer to a question.
type Choice struct {
	Write string `json:"write"`           // the command: "/forge ship stop"
	What  string `json:"what"`            // it does
	Typed bool   `json:"typed,omitempty"` // it has no box to tick: it needs words of one's own, or cannot be chosen now
}

// HowToAnswer stands between the text of a question and its choices.
const HowToAnswer = "Anyone with write access answers with the first line of a comment, or ticks a box:"

// String is the question for who reads it elsewhere than on GitHub.
func (q Question) String() string {
	var b strings.Builder
	b.WriteString(q.Text)
	if len(q.Choices) > 0 {
		b.WriteString("\n\n" + HowToAnswer + "\n\n")
	}
	for _, c := range q.Choices {
		fmt.Fprintf(&b, "- %s\n", c)
	}
	return b.String()
}

// String is a line of Markdown.
func (c Choice) String() string { return fmt.Sprintf("`%s` — %s", c.Write, c.What) }
