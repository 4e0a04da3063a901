package delivery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// ParseCommand reads the first line of a comment that is neither blank nor quoted: a
// quote reply or a mail quotes above the answer. It reports false when that line is no
// command: quoted lines and code blocks do not begin with the slash.
func ParseCommand(body, slug string) (command.Line, bool) {
	line, rest, lazy := firstLine(body)
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 { // an indented code block
		return command.Line{}, false
	}
	trimmed = strings.ReplaceAll(trimmed, "\u3000", " ") // the space, and the slash, of East Asian input methods
	if after, wide := strings.CutPrefix(trimmed, "／"); wide {
		trimmed = "/" + after
	}
	prefix := "/" + slug
	if len(trimmed) < len(prefix) || !strings.EqualFold(trimmed[:len(prefix)], prefix) {
		return command.Line{}, false
	}
	tail := trimmed[len(prefix):]
	if tail != "" && tail[0] != ' ' && tail[0] != '\t' {
		return command.Line{}, false
	}
	name, args := cutWord(tail)
	if bare := strings.TrimRightFunc(name, unicode.IsPunct); command.Find(name).Name == "" && command.Find(strings.ToLower(bare)).Settles {
		name, args = bare, strings.TrimSpace(name[len(bare):]+" "+args) // "/forge accept, thanks!"
	}
	c := command.Line{Name: strings.ToLower(name), Args: args, Text: strings.TrimSpace(rest)}
	if next, more := cutWord(args); command.Find(c.Name).Name == "" && command.Find(strings.ToLower(next)).Name != "" {
		c.Part, c.Name, c.Args = c.Name, strings.ToLower(next), more // "/forge auth continue 2"
	}
	if c.Name == "" {
		c.Name = "help"
	}
	if lazy {
		c.Error = fmt.Sprintf("Nothing was done: `%s` stands directly below a quotation, and GitHub shows it as a part of that. Put a blank line between them.", strings.TrimSpace(trimmed))
		return c, true
	}
	check(&c, slug)
	return c, true
}

// firstLine returns the first line of a comment that is neither blank nor quoted, and
// what follows it. It is lazy when it goes on with a quoted paragraph, as Markdown reads it.
func firstLine(body string) (line, rest string, lazy bool) {
	for rest = strings.ReplaceAll(body, "\r\n", "\n"); rest != ""; {
		line, rest, _ = strings.Cut(rest, "\n")
		t := strings.TrimSpace(line)
		switch {
		case t == "":
			lazy = false
		case t[0] == '>' && !strings.HasPrefix(line, "    "):
			lazy = strings.Trim(t, "> \t") != ""
		default:
			return line, rest, lazy
		}
	}
	return "", "", false
}

// cutWord splits a text behind its first word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// check reads what stands behind a command's name as the command takes it, and says
// what is wrong with it, in Error. Words behind that are words for the next attempt.
func check(c *command.Line, slug string) {
	known := command.Find(c.Name)
	form := "/" + slug + " " + c.Name
	first, words := cutWord(c.Args)
	if c.Error = c.Doubt(strings.TrimSpace(slug+" "+c.Part), command.Below); c.Error != "" {
		return
	}
	switch {
	case known.Name == "":
		c.Error = unknown(c.Name, slug)
		return
	case known.Takes == command.TakesChoice:
		if c.Args == "" && c.Text == "" {
			c.Error = fmt.Sprintf("`%s` takes words: `%s …`, what you choose or what may be left out.", form, form)
		}
		return // whoever asked tells the line from the words
	case known.Takes == command.TakesCount:
		if v, err := strconv.Atoi(first); first != "" && (err != nil || v < 1 || v > pipeline.MaxContinue) {
			c.Error = fmt.Sprintf("`%s` takes a number from 1 to %d, got %q. Example: `%s %s`.", form, pipeline.MaxContinue, text.Clip(first, 40), form, known.Example)
			return
		}
	case known.Takes == command.TakesLearning:
		ids, rest, plain := cutLearnings(c.Args)
		if len(ids) == 0 {
			c.Error = fmt.Sprintf("`%s` takes the number of a learning, got %q. `/%s memory` lists them. Example: `%s %s`.", form, text.Clip(first, 40), slug, form, known.Example)
			return
		}
		first, words = strings.Join(ids, " "), rest
		if !plain {
			c.Error = fmt.Sprintf("Nothing was done: the line goes on after `%s %s` with %q, which may turn it around. Write it alone, or the reason behind a colon: `%s %s: it is out of date`.",
				form, first, text.Clip(words, 100), form, first)
			return
		}
		if seen := command.TurnsAround(slug, words+"\n"+c.Text); seen != "" {
			c.Error = fmt.Sprintf("Nothing was done: the words that came with `%s %s` may take it back, because they %s. If you mean it, write it alone, "+
				"or the reason behind a colon: `%s %s: it is out of date`.", form, first, seen, form, first)
			return
		}
	case known.Takes == command.TakesAll && strings.EqualFold(first, "all"):
		first = "all"
	case c.Name == "dismiss" && handle.MatchString(first):
	case known.Takes == command.TakesArgument:
	default:
		first, words = "", c.Args
	}
	c.Args, c.Text = first, joinWords(words, c.Text)
	if known.Takes == command.TakesText && c.Text == "" {
		c.Error = fmt.Sprintf("`%s` takes words: `%s %s`", form, form, known.Example)
	}
}

// cutLearnings splits the numbers of learnings off the beginning of a line: "12", "#12",
// "9, 10 and 11: out of date", "12 because it is out of date". It is not plain where something
// else stands behind them: in what language it says not to is not told from a reason.
func cutLearnings(line string) (ids []string, rest string, plain bool) {
	m := learnings.FindStringSubmatch(line)
	if m == nil {
		return nil, line, false
	}
	for _, id := range learningID.FindAllString(m[1], -1) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	rest = strings.TrimSpace(m[3])
	return ids, rest, rest == "" || m[2] != ""
}

var (
	learnings  = lazyregexp.New(`(?i)^(#?[1-9]\d{0,17}(?:\s*(?:,|&|\band\b|\s)\s*(?:and\s+)?#?[1-9]\d{0,17})*)\b[.,;]?\s*([:：]|because\b)?(.*)$`)
	learningID = lazyregexp.New(`[1-9]\d*`)
)

// handle is the name of a finding; see pipeline.Run.Handle.
var handle = lazyregexp.New(`^[Ff][0-9]{1,4}$`)

func joinWords(a, b string) string { return strings.TrimSpace(a + "\n" + b) }

// unknown names the nearest right command, and all of them.
func unknown(name, slug string) string {
	words := fmt.Sprintf("There is no command %q.", text.Clip(name, 40))
	var names []string
	for _, c := range command.All {
		names = append(names, c.Name)
	}
	if best := text.Nearest(name, names); best != "" {
		words += fmt.Sprintf(" Did you mean `/%s %s`?", slug, best)
	}
	return words + "\n\n" + command.Help(slug)
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
