package delivery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/github/render"
	"forge/pipeline"
)

// commands are the words after the slash; pipeline.Help says what they do.
var commands = []string{"run", "status", "stop", "resume", "retry", "approve", "continue", "accept", "history", "cancel", "choose", "dismiss", "help",
	"explain", "raise", "take-over", "simplify", "reset", "memory", "remember", "forget"}

// ParseCommand reads the first line of a comment. It reports false when that line
// is no command: quoted lines and code blocks do not begin with the slash.
func ParseCommand(body, slug string) (pipeline.SlashCommand, bool) {
	body = strings.TrimLeft(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	line, rest, _ := strings.Cut(body, "\n")
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 { // an indented code block
		return pipeline.SlashCommand{}, false
	}
	prefix := "/" + slug
	if len(trimmed) < len(prefix) || !strings.EqualFold(trimmed[:len(prefix)], prefix) {
		return pipeline.SlashCommand{}, false
	}
	tail := trimmed[len(prefix):]
	if tail != "" && tail[0] != ' ' && tail[0] != '\t' {
		return pipeline.SlashCommand{}, false
	}
	name, args := cutWord(tail)
	c := pipeline.SlashCommand{Name: strings.ToLower(name), Args: args, Text: strings.TrimSpace(rest)}
	if c.Name == "" {
		c.Name = "help"
	}
	check(&c, slug)
	return c, true
}

// cutWord splits a text behind its first word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// check says what is wrong with a command, in Error. Words behind a command that
// takes none are words for the next attempt.
func check(c *pipeline.SlashCommand, slug string) {
	known := slices.Contains(commands, c.Name)
	switch {
	case !known:
		c.Error = unknown(c.Name, slug)
	case c.Name == "continue":
		n, words := cutWord(c.Args)
		if v, err := strconv.Atoi(n); n != "" && (err != nil || v < 1 || v > pipeline.MaxContinue) {
			c.Error = fmt.Sprintf("`/%s continue` takes a number from 1 to %d, got %q. Example: `/%s continue 3`.", slug, pipeline.MaxContinue, render.Shorten(n, 40), slug)
			return
		}
		c.Args, c.Text = n, joinWords(words, c.Text)
	case c.Name == "choose" || c.Name == "simplify":
		if c.Args == "" && c.Text == "" {
			c.Error = fmt.Sprintf("`/%s %s` takes words: `/%s %s …`, what you choose or what may be left out.", slug, c.Name, slug, c.Name)
		}
	case c.Name == "remember":
		if c.Text, c.Args = joinWords(c.Args, c.Text), ""; c.Text == "" {
			c.Error = fmt.Sprintf("`/%s remember` takes words: `/%s remember Errors are wrapped with the activity and its inputs.`", slug, slug)
		}
	case c.Name == "forget":
		id, words := cutWord(c.Args)
		if v, err := strconv.ParseInt(strings.TrimPrefix(id, "#"), 10, 64); err != nil || v < 1 {
			c.Error = fmt.Sprintf("`/%s forget` takes the number of a learning, got %q. `/%s memory` lists them. Example: `/%s forget 12 it is out of date`.", slug, render.Shorten(id, 40), slug, slug)
			return
		}
		c.Args, c.Text = strings.TrimPrefix(id, "#"), joinWords(words, c.Text)
	case c.Name == "raise":
		amount, words := cutWord(c.Args)
		c.Args, c.Text = amount, joinWords(words, c.Text)
	case c.Name == "approve":
		if word, words := cutWord(c.Args); strings.EqualFold(word, "all") {
			c.Args, c.Text = "all", joinWords(words, c.Text)
			return
		}
		c.Text, c.Args = joinWords(c.Args, c.Text), ""
	default:
		c.Text, c.Args = joinWords(c.Args, c.Text), ""
	}
}

func joinWords(a, b string) string { return strings.TrimSpace(a + "\n" + b) }

// unknown names the nearest right command, and all of them.
func unknown(name, slug string) string {
	text := fmt.Sprintf("There is no command %q.", render.Shorten(name, 40))
	if best := pipeline.Nearest(name, commands); best != "" {
		text += fmt.Sprintf(" Did you mean `/%s %s`?", slug, best)
	}
	return text + "\n\n" + pipeline.Help()
}

// ticked returns the command in the one task-list box that went from [ ] to [x]
// between two versions of a comment; "" when none or several did.
func ticked(from, to string) string {
	was, is := strings.Split(from, "\n"), strings.Split(to, "\n")
	if len(was) != len(is) {
		return ""
	}
	found := ""
	for i := range is {
		a, b := strings.TrimSpace(was[i]), strings.TrimSpace(is[i])
		if a == b {
			continue
		}
		old, ok1 := strings.CutPrefix(a, "- [ ] `")
		now, ok2 := strings.CutPrefix(strings.Replace(b, "- [X] ", "- [x] ", 1), "- [x] `")
		if !ok1 || !ok2 || old != now || found != "" {
			return ""
		}
		found, _, _ = strings.Cut(now, "`")
	}
	return found
}
