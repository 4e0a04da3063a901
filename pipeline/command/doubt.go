package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Alone is the rule about words that come with a command which settles something, for the help.
const Alone = "What ends something or lets it pass (accept, approve, cancel, later, without, raise, reset) is done only when nothing else stands on its line. " +
	"Notes go below; those that ask something or hold another command are asked about."

// Below is where a note goes in a comment.
const Below = "on the lines below"

// Doubt says why a command that settles something is not carried out with the words
// that came with it; "" when nothing speaks against it. Words on its line may turn it
// around in any language, so that none are taken there but its argument. notes says where a
// note goes.
func (l Line) Doubt(slug, notes string) string {
	known := Find(l.Name)
	if !known.Settles {
		return ""
	}
	form, words := l.Name, strings.TrimSpace(l.Args)
	if first, rest := cutWord(words); known.Takes == TakesArgument || known.Takes == TakesAll && strings.EqualFold(first, "all") {
		form, words = l.Name+" "+first, rest
	}
	form = "`" + Write(slug, form) + "`"
	if strings.Trim(words, ".!") != "" {
		return fmt.Sprintf("Nothing was done: the line goes on after %s with %.100q, which may turn it around. If you mean it, write it alone; notes go %s.",
			form, words, notes)
	}
	if seen := TurnsAround(slug, l.Text); seen != "" {
		return fmt.Sprintf("Nothing was done: the words that came with %s may take it back, because they %s. If you mean it, give it without them.", form, seen)
	}
	return ""
}

// cutWord splits a text behind its first word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// TurnsAround says by what a note seems to take its command back: it asks something, or holds
// another command; "" for all else. What is quoted is not its writer's.
func TurnsAround(slug, note string) string {
	first, _ := cutWord(slug)
	slash := "/" + cmp.Or(strings.ToLower(first), Slug)
	for l := range strings.Lines(strings.ToLower(note)) {
		if strings.HasPrefix(strings.TrimSpace(l), ">") {
			continue
		}
		switch words := strings.Fields(l); {
		case Asks(l):
			return "ask something"
		case slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, "`*_\"'(),.:;!") == slash }):
			return "hold another command"
		}
	}
	return ""
}

// Asks reports whether a text has a question mark that ends something: in an address letters
// follow it.
func Asks(s string) bool {
	last := false // the letter before was a question mark
	for _, r := range s {
		if last && !unicode.IsLetter(r) {
			return true
		}
		if last = strings.ContainsRune("?？؟", r); last && r != '?' {
			return true
		}
	}
	return last
}
