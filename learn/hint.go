package learn

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// keyWord begins the key of the evidence that is a person's word for a learning.
const keyWord = "remember/"

// WordKey makes a person's word for a learning one piece of evidence.
func WordKey(a pipeline.Actor) string { return fmt.Sprint(keyWord, a.ID) }

// IsWord reports whether a piece of evidence is a person's word, and holds.
func IsWord(e pipeline.Evidence) bool { return !e.Off && strings.HasPrefix(e.Key, keyWord) }

// Borne reports whether a person with write access said that what a run taught itself holds: it
// is their word since.
func Borne(l *pipeline.Learning) bool {
	return l.Source == pipeline.SourceReflection && l.Author.ID != 0
}

// TagUnchecked is on what a run taught itself of which something could not be looked up.
// uncheckedMost is how sure of that it may be at most.
const (
	TagUnchecked  = "unchecked"
	uncheckedMost = 0.25
)

// Unchecked reports whether nobody but the model of one run answers for a learning: something of
// it could not be looked up, and no person said that it holds.
func Unchecked(l *pipeline.Learning) bool {
	return l.Source == pipeline.SourceReflection && slices.Contains(l.Tags, TagUnchecked) && !Borne(l)
}

// Told reports whether whoever plans, makes or judges a change is told a learning. What a run
// says of itself is a model's reading of texts that may be anybody's, in whatever words: those
// who judge are told it only when a person with write access has said so, however many runs
// say the same, and of a run whose task nobody with write access wrote, nobody is told before.
// What could not be looked up nobody is told before another run has taught it, too.
func Told(l *pipeline.Learning, judges bool) bool {
	if l.Source != pipeline.SourceReflection || Borne(l) {
		return true
	}
	return l.Weight > 0 && !judges && (!Unchecked(l) || l.For > 0)
}

// MarkUnchecked marks what a run taught itself where a sentence of it names nothing that stands in
// the texts: the record of the run, and the files that it is about. Of a fact all that a
// sentence names has to stand there, of advice one thing, because it may name what is not there
// yet. A number counts where it stands in the files: small ones stand in every record.
func MarkUnchecked(l *pipeline.Learning, record, files string) {
	fact, all := Stands(l) == StandFact, record+"\n"+files
	for _, s := range sentenceEnd.Split(shortForms.Replace(l.Content), -1) {
		if len(letter.FindAllString(s, 4)) < 4 { // "e.g."
			continue
		}
		named, missing := 0, 0
		look := func(w, in string) {
			if standsIn(w, in) {
				named++
			} else {
				missing++
			}
		}
		for _, w := range namesIn(s) {
			look(w, all)
		}
		for _, n := range numbersIn(quoted.ReplaceAllString(s, " ")) {
			if len(n) > 1 {
				look(n, separators.Replace(files))
			}
		}
		if named == 0 || fact && missing > 0 {
			l.Tags = append(slices.Clone(l.Tags), TagUnchecked)
			l.Base, l.Confidence = min(uncheckedMost, l.Base), min(uncheckedMost, l.Confidence)
			return
		}
	}
}

var (
	shortForms  = strings.NewReplacer("e.g.", "", "i.e.", "", "etc.", "")
	letter      = lazyregexp.New(`\pL`)
	sentenceEnd = lazyregexp.New(`[.!?;]\s+|[。！？；]|\n`)
	pathName    = lazyregexp.New(`\b[\w-]+(?:/[\w.-]*\w)+|\b[\w-]+(?:\.[\w-]+)*\.(?:go|mod|[mc]?[jt]sx?|py|rb|java|kt|rs|` +
		`c|h|cc|cpp|cs|php|sh|ya?ml|json|toml|md|txt|sql|html|css|xml|proto)\b`)
)

// namesIn are the names in a sentence that can be looked up: in backquotes, of files, and what is
// spelt as code is.
func namesIn(s string) (out []string) {
	for _, m := range quoted.FindAllStringSubmatch(s, -1) {
		out = append(out, strings.TrimSuffix(strings.TrimSpace(m[1]), "()"))
	}
	s = quoted.ReplaceAllString(s, " ")
	out = append(out, pathName.FindAllString(s, -1)...)
	for _, m := range codeName.FindAllString(pathName.ReplaceAllString(s, " "), -1) {
		if m, _, _ = strings.Cut(m, "("); !products[strings.ToLower(m)] {
			out = append(out, m)
		}
	}
	return out
}

// standsIn reports whether a name stands in a text as a word, or its last part does.
func standsIn(name, text string) bool {
	for _, n := range []string{name, lastName.FindString(name)} {
		if n == "" || !strings.Contains(text, n) {
			continue
		}
		if regexp.MustCompile(`(?:^|[^\pL\pN_])` + regexp.QuoteMeta(n) + `(?:$|[^\pL\pN_])`).MatchString(text) {
			return true
		}
	}
	return false
}
