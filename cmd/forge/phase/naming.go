package phase

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// conventional is the first line of a commit as Conventional Commits 1.0.0 has it.
var conventional = lazyregexp.New(`^([a-z]{2,12})(\([^()]{1,40}\))?!?: \S`)

// Of so many commits of a repository so many must be conventional.
const (
	subjectsRead = 30
	subjectsLike = 0.6
)

// kinds are the words that tell what kind of commit a task asks for, in the order in
// which they are looked for; else it is a feature.
var kinds = []struct {
	kind  string
	words *lazyregexp.Regexp
}{
	{"docs", lazyregexp.New(`(?i)\b(docs?|documentation|readme|typos?|comment)\b`)},
	{"fix", lazyregexp.New(`(?i)\b(fix(es|ed)?|bugs?|crash(es|ed)?|wrong(ly)?|broken|breaks|fail(s|ed|ing|ure)?|errors?|panics?|regression|lacks|missing|leaks?|incorrect(ly)?|not work(ing)?|should)\b`)},
	{"test", lazyregexp.New(`(?i)\btests?\b`)},
	{"refactor", lazyregexp.New(`(?i)\b(refactor(ing)?|clean ?up|simplify|rename)\b`)},
	{"perf", lazyregexp.New(`(?i)\b(slow|faster|performance|speed)\b`)},
}

// kindOf is the type of a commit for a task.
func kindOf(task pipeline.Task, mode pipeline.Mode) string {
	if mode != "" && mode != pipeline.ModeFresh {
		return "fix" // it mends what came back
	}
	for _, k := range kinds {
		if k.words.MatchString(task.Title) {
			return k.kind
		}
	}
	return "feat"
}

// BranchName is the name of a run's branch by its template, under the slug, for which
// forge/ stands in a template.
func BranchName(slug, template string, task pipeline.Task) string {
	if template == "" {
		template = "forge/issue-{issue}-{slug}"
	}
	return strings.TrimRight(slug+"/"+strings.NewReplacer(
		"{issue}", strconv.Itoa(task.Issue), "{slug}", text.Slug(task.Title, 40), "{type}", kindOf(task, ""),
	).Replace(strings.TrimPrefix(template, "forge/")), "-/.")
}

// subject is the first line of a commit by its template; with none, as those of the
// repository are.
func (x *Executor) subject(ctx context.Context, run *pipeline.Run, mode pipeline.Mode, summary string) (string, error) {
	template := run.Config.CommitMessage
	if template == "" {
		like, err := x.o.Gateway.Subjects(ctx, run.Repo, run.Base, subjectsRead)
		if err != nil {
			return "", err
		}
		template = "{summary}"
		if isConventional(like) {
			template = "{type}: {summary}"
		}
	}
	return fill(template, run.Task, mode, summary), nil
}

// fill writes the first line of a commit.
func fill(template string, task pipeline.Task, mode pipeline.Mode, summary string) string {
	kind, breaking := kindOf(task, mode), false
	if m := conventional.FindStringSubmatch(summary); m != nil && strings.Contains(template, "{type}") {
		head, rest, _ := strings.Cut(summary, ": ")
		kind, summary = head, strings.TrimSpace(rest) // its author's own, with a scope
		if !strings.Contains(template, "{type}: ") {
			kind, breaking = m[1], strings.HasSuffix(head, "!")
		}
	}
	if strings.HasPrefix(template, "{type}: ") {
		summary = strings.TrimSuffix(lowered(summary), ".")
	}
	line := strings.NewReplacer("{type}", kind, "{summary}", summary, "{issue}", strconv.Itoa(task.Issue)).Replace(template)
	if breaking && conventional.MatchString(line) {
		line = strings.Replace(line, ": ", "!: ", 1)
	}
	return line
}

// lowered begins in lower case, unless the first word is a name.
func lowered(s string) string {
	first, rest, _ := strings.Cut(s, " ")
	r, n := utf8.DecodeRuneInString(first)
	if strings.ToLower(first[n:]) != first[n:] || strings.ContainsAny(first, "._()`") || rest == "" {
		return s
	}
	return string(unicode.ToLower(r)) + s[n:]
}

// isConventional reports whether a repository's commits are conventional.
func isConventional(subjects []string) bool {
	n := 0
	for _, s := range subjects {
		if conventional.MatchString(s) {
			n++
		}
	}
	return len(subjects) >= 3 && float64(n) >= subjectsLike*float64(len(subjects))
}
