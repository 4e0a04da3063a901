package track

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// What the score looks at. Its words are English; of a task in another language its lists,
// files and length count.
const (
	freeAsks   = 3   // asks that count as nothing
	mostAsks   = 3   // points for asks
	manyWords  = 400 // words of a long task
	smallFiles = 50  // files under which a repository is a small one
)

// Score says how much a task asks for, and what that is made of. The tree are the
// repository's files. It is never below 0.
func Score(title, body string, tree []string) (points int, reasons []string) {
	add := func(n int, format string, args ...any) {
		points += n
		reasons = append(reasons, fmt.Sprintf(format, args...))
	}
	prose := fences.ReplaceAllString(title+"\n\n"+body, "\n")
	if n := asks(prose); n > freeAsks {
		add(min(n-freeAsks, mostAsks), "%d asks", n)
	}
	if n := len(strings.Fields(prose)); n > manyWords {
		add(1, "%d words", n)
	}
	if list := folders(prose, tree); len(list) > 1 {
		add(1, "%d packages (%s)", len(list), strings.Join(list[:min(len(list), 4)], ", "))
	}
	if UI(title, body, tree) {
		add(1, "UI")
	}
	if m := quality.FindString(prose); m != "" {
		add(1, "quality (%q)", strings.ToLower(m))
	}
	if m := novelty.FindString(prose); m != "" {
		add(2, "%q", strings.ToLower(m))
	}
	if len(tree) > 0 && len(tree) < smallFiles && points > 0 {
		add(-1, "a small repository")
	}
	return points, reasons
}

var (
	fences = lazyregexp.New("(?s)```.*?(?:```|\\z)|(?:^|\n)[ \t]*~~~.*?(?:\n[ \t]*~~~|\\z)|<!--.*?(?:-->|\\z)") // what is no prose, or not to be seen
	item   = lazyregexp.New(`(?m)^\s*(?:[-*+]|\d{1,2}[.)])\s+\S`)
	must   = lazyregexp.New(`(?i)\b(?:must|should|shall|needs? to|has to|have to)\b`)
	ends   = lazyregexp.New(`[.!?]+(?:\s+|$)|\n\s*\n`)

	quality = lazyregexp.New(`(?i)\b(?:within|under|below|at most|less than) \d+(?:[.,]\d+)? ?(?:ms|s|seconds?|milliseconds?|minutes?|[kMG]i?B|bytes)\b` +
		`|\b(?:accessib(?:le|ility)|latency|throughput|scalab(?:le|ility)|WCAG|p9[59])\b`)
	novelty = lazyregexp.New(`(?i)\bnew (?:micro)?(?:service|schema|protocol|database|server|data model|file format|wire format)\b` +
		`|\b(?:schema|database) (?:change|migration)s?\b`)

	interfaceFile = lazyregexp.New(`(?i)\.(?:tsx|jsx|vue|svelte|css|scss|sass|less|html?|astro)$`)
	interfaceWord = lazyregexp.New(`(?i)\b(?:screens?|pages?|buttons?|forms?|dialogs?|modals?|layouts?|UI|UX|user interface|menus?` +
		`|tooltips?|dark mode|responsive|breakpoints?|front-?end)\b`)
	named = lazyregexp.New("[\\w.@-]+(?:/[\\w.@-]+)+/?|`[\\w.@-]+/?`|[\\w-]+\\.[A-Za-z]{1,6}\\b")
)

// asks counts what a task wants: items of lists, and sentences outside of them with a word
// such as must.
func asks(prose string) (n int) {
	var rest []string
	for line := range strings.SplitSeq(prose, "\n") {
		if item.MatchString(line) {
			n++
		} else {
			rest = append(rest, line)
		}
	}
	for _, s := range ends.Split(strings.Join(rest, "\n"), -1) {
		if must.MatchString(s) {
			n++
		}
	}
	return n
}

// folders are those of the tree that a text names, by a path in them or as a word of code.
func folders(prose string, tree []string) []string {
	dirs := map[string]bool{}
	for _, file := range tree {
		for d := path.Dir(file); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	files := map[string]bool{}
	for _, file := range tree {
		files[file] = true
	}
	var out []string
	for _, word := range named.FindAllString(prose, -1) {
		code := strings.HasPrefix(word, "`")
		word = strings.TrimRight(strings.Trim(word, "`"), "./")
		if files[word] {
			word = path.Dir(word)
		}
		if !dirs[word] && code { // the last part of one, such as a package's name
			for _, d := range sorted(dirs) {
				if path.Base(d) == word {
					word = d
					break
				}
			}
		}
		if dirs[word] && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return out
}

func sorted(set map[string]bool) []string {
	var out []string
	for s := range set {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// Seen reports whether a text speaks of what people see.
func Seen(words string) bool { return interfaceWord.MatchString(words) }

// UI reports whether a task is about what people see: it names a file of that, or speaks of
// it in a repository that has some.
func UI(title, body string, tree []string) bool {
	prose := fences.ReplaceAllString(title+"\n\n"+body, "\n")
	names := func(s string) bool { return interfaceFile.MatchString(s) }
	return slices.ContainsFunc(named.FindAllString(strings.ReplaceAll(prose, "`", " "), -1), names) ||
		interfaceWord.MatchString(prose) && slices.ContainsFunc(tree, names)
}
