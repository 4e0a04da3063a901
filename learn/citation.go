package learn

import (
	"path"
	"slices"
	"strings"

	"forge/learn/cite"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/record"
)

var (
	quoted   = lazyregexp.New("`([^`\n]+)`")
	cited    = lazyregexp.New(`^[A-Za-z_][\w.:]*[\w](?:\(\))?$`)
	number   = lazyregexp.New(`\b[0-9]+(?:[,_][0-9]{3})*(?:\.[0-9]+)?\b`)
	lastName = lazyregexp.New(`[A-Za-z_]\w*$`)

	wordOrNumber = lazyregexp.New(`[A-Za-z_]\w*|[0-9][0-9_,]*[0-9](?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?`)
)

// Cites returns the files that a learning is about, and the names in them that it tells
// of; none when it is general. What it advises against is not among the names: that it is
// not there is as it should be. A dismissal is bound to its code in another way, so that it
// has no names.
func Cites(l *pipeline.Learning) (files, names []string) {
	for _, p := range l.Paths {
		if !strings.ContainsAny(p, "*?[{") && path.Ext(p) != "" {
			files = append(files, p)
		}
	}
	if len(files) == 0 || l.Source == pipeline.SourceDismissal || l.Source == pipeline.SourceRevert {
		return files, nil
	}
	names, _ = tells(l, false)
	return files, slices.DeleteFunc(names, func(n string) bool { return len(n) < 4 || slices.Contains(files, n) })
}

// What is quoted like a name, and stands in code under another one, or under none: values
// and types that every language has, and files.
var (
	everywhere = set(`nil null undefined none true false nan void string number int integer float boolean bool array object error exception promise`)
	fileName   = lazyregexp.New(`\.(?:go|mod|sum|[mc]?[jt]sx?|py|rb|java|kts?|rs|c|h|cc|cpp|hpp|cs|php|sh|ya?ml|json|toml|md|txt|sql|html?|s?css|xml|lock|env|ini|cfg|conf|proto|` +
		`lua|pl|exs?|swift|dart|scala)$`)
)

// tells returns the names and the numbers that a learning says to be in the code that it is
// about: nothing when it is advice. Of a sentence that says that something is not there
// only when all is asked for.
func tells(l *pipeline.Learning, all bool) (names, numbers []string) {
	if l.Type == pipeline.LearningProcedural || Stands(l) == StandAvoid {
		return nil, nil
	}
	for s := range advices(strings.ReplaceAll(l.Content, ".", "\x00")) { // names hold points
		s = strings.ReplaceAll(s, "\x00", ".")
		bare := quoted.ReplaceAllString(s, " ")
		if !all && slices.ContainsFunc(plainWords(bare), func(w string) bool { return negative[w] }) {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(s, -1) {
			if cited.MatchString(m[1]) && !everywhere[strings.ToLower(m[1])] && !fileName.MatchString(m[1]) {
				names = append(names, lastName.FindString(strings.TrimSuffix(m[1], "()")))
			}
		}
		numbers = append(numbers, numbersIn(bare)...)
	}
	return names, numbers
}

var separators = strings.NewReplacer("_", "", ",", "")

// numbersIn are the numbers of a text, without what separates thousands.
func numbersIn(s string) (out []string) {
	for _, n := range number.FindAllString(s, -1) {
		out = append(out, separators.Replace(n))
	}
	return out
}

// What is no name in backquotes, but spelt as code is: a call, a_name, aName, AName or a.name;
// products that are spelt so, too; and numbers of what is not code.
var (
	codeName = lazyregexp.New(`[A-Za-z_][\w.]*\([^()\n]*\)|\b[A-Za-z]\w*_\w+|\b[a-z][a-z\d]*[A-Z]\w*` +
		`|\b[A-Z][a-z\d]+(?:[A-Z][a-z\d]+)+\b|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+`)
	plural   = lazyregexp.New(`\(e?s\)`)
	products = set(`github gitlab bitbucket javascript typescript postgresql mysql sqlite graphql openapi websocket oauth ios macos ipados grpc jquery
		iphone ebay youtube linkedin wordpress`)
	outside = lazyregexp.New(`https?://\S+|#\d+|\b[A-Z]{2,}-\d+\b|\b(?:RFC|ISO|HTTP) \d+\b|\b(?:in|since|from|until|before|after|of) (?:19|20)\d\d\b`)
)

// spelled returns the names of code and the numbers in what a fact tells without backquotes,
// of a sentence that does not say that something is not there.
func spelled(l *pipeline.Learning) (names, numbers []string) {
	if Stands(l) != StandFact {
		return nil, nil
	}
	bare := plural.ReplaceAllString(outside.ReplaceAllString(quoted.ReplaceAllString(l.Content, " "), " "), "")
	for s := range advices(strings.ReplaceAll(bare, ".", "\x00")) { // names hold points
		s = strings.ReplaceAll(s, "\x00", ".")
		if slices.ContainsFunc(plainWords(s), func(w string) bool { return negative[w] }) {
			continue
		}
		numbers = append(numbers, numbersIn(s)...)
		for _, m := range codeName.FindAllString(s, -1) {
			m, _, _ = strings.Cut(m, "(")
			if !fileName.MatchString(m) && !everywhere[strings.ToLower(m)] && !products[strings.ToLower(m)] {
				names = append(names, lastName.FindString(m))
			}
		}
	}
	return names, numbers
}

// Unfounded returns what a fact tells of that is in none of its files when it is learnt: names in backquotes or spelt as code is, and numbers. Nothing for what
// tells of no code, and where none of the files can be read.
func Unfounded(l *pipeline.Learning, read func(path string) (text string, there bool)) (out []string) {
	files, cites := Cites(l)
	names, numbers := tells(l, false)
	if len(cites) == 0 {
		names, numbers = nil, nil
	}
	more, amounts := spelled(l)
	names = slices.Concat(names, more)
	if numbers = append(numbers, amounts...); len(names)+len(numbers) == 0 {
		return nil
	}
	have, any := map[string]bool{}, false
	for _, f := range files {
		text, ok := read(f)
		any = any || ok
		have[f], have[path.Base(f)] = true, true
		for d := range strings.SplitSeq(f, "/") {
			have[d] = true
		}
		for _, w := range wordOrNumber.FindAllString(text, -1) {
			have[w], have[separators.Replace(w)] = true, true
		}
	}
	for _, w := range append(names, numbers...) {
		if any && w != "0" && w != "1" && !have[w] && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// Checked reports whether all that a learning tells of stands in what it cites: only then
// is it confirmed by the code. That something is not there nobody has looked for.
func Checked(l *pipeline.Learning, list []record.Cite) bool {
	names, numbers := tells(l, true)
	return !slices.ContainsFunc(append(names, numbers...), func(w string) bool {
		return !slices.ContainsFunc(list, func(c record.Cite) bool { return c.Name == w || slices.Contains(c.With, w) })
	})
}

// mostCites is how many definitions a learning cites.
const mostCites = 8

// Quote notes the code that a learning is about as it is now, when it is learnt: of what
// it names, the definitions in its files, with the other names and the numbers that it
// tells of. One that names nothing is known by its paths alone.
func Quote(l *pipeline.Learning, read func(path string) (text string, there bool)) {
	files, names := Cites(l)
	more, numbers := tells(l, false)
	told := slices.Concat(more, numbers)
	slices.Sort(told)
	told = slices.Compact(told)
	for _, f := range files {
		if len(names) == 0 {
			return
		}
		if text, ok := read(f); ok {
			l.Cites = append(l.Cites, cite.Of(f, text, names, told)...)
		}
	}
	l.Cites = l.Cites[:min(len(l.Cites), mostCites)]
}
