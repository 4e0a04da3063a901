package learn

import (
	"path"
	"slices"
	"strings"

	"forge/learn/cite"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

var (
	quoted   = lazyregexp.New("`([^`\n]+)`")
	cited    = lazyregexp.New(`^[A-Za-z_][\w.:]*[\w](?:\(\))?$`)
	number   = lazyregexp.New(`\b[0-9]+(?:\.[0-9]+)?\b`)
	lastName = lazyregexp.New(`[A-Za-z_]\w*$`)
)

// Cites returns the files that a learning is about, and the names in them that it tells
// of; none when it is general. What it advises against is not among the names: that it is
// not there is as it should be. A dismissal is bound to its code in another way.
func Cites(l *pipeline.Learning) (files, names []string) {
	if l.Source == pipeline.SourceDismissal || l.Source == pipeline.SourceRevert {
		return nil, nil
	}
	for _, p := range l.Paths {
		if !strings.ContainsAny(p, "*?[{") && path.Ext(p) != "" {
			files = append(files, p)
		}
	}
	if len(files) == 0 || l.Type == pipeline.LearningProcedural || Stands(l) == StandAvoid {
		return files, nil
	}
	for s := range advices(strings.ReplaceAll(l.Content, ".", "\x00")) { // names hold points
		s = strings.ReplaceAll(s, "\x00", ".")
		if slices.ContainsFunc(plainWords(quoted.ReplaceAllString(s, " ")), func(w string) bool { return negative[w] }) {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(s, -1) {
			if n := strings.TrimSuffix(m[1], "()"); cited.MatchString(m[1]) && len(lastName.FindString(n)) >= 4 && !slices.Contains(files, n) {
				names = append(names, lastName.FindString(n))
			}
		}
	}
	return files, names
}

// mostCites is how many definitions a learning cites.
const mostCites = 8

// Quote notes the code that a learning is about as it is now, when it is learnt: of what
// it names, the definitions in its files, with the other names and the numbers that it
// tells of. One that names nothing is known by its paths alone.
func Quote(l *pipeline.Learning, read func(path string) (text string, there bool)) {
	files, names := Cites(l)
	told := slices.Clone(names)
	for _, n := range number.FindAllString(l.Content, -1) {
		if n != "0" && n != "1" { // they stand everywhere
			told = append(told, n)
		}
	}
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
