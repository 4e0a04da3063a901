package learn

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline"
)

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	cited    = regexp.MustCompile(`^[A-Za-z_][\w.:]*[\w](?:\(\))?$`)
	lastName = regexp.MustCompile(`[A-Za-z_]\w*$`)
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
