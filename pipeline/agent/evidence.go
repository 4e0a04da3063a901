package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/proof"
)

// What a reviewer names as evidence that a criterion is met is looked for: a test, a
// file or a line that is not there shows nothing.

var (
	namedFile = lazyregexp.New(`[\w][\w./-]*\.(?:go|py|pyi|[cm]?[jt]sx?|rb|rs|java|kt|kts|cs|fs|php|ex|exs|swift|scala|c|cc|cpp|h|hpp|sh|bash|sql|html|css|scss|vue|svelte|json|ya?ml|toml|md|txt|proto|tf|mod)\b(?::(\d+))?`)
	namedTest = lazyregexp.New(`\b(?:Test[A-Z]\w*|Example[A-Z]\w*|Benchmark[A-Z]\w*|Fuzz[A-Z]\w*|test_\w+|test[A-Z]\w*|\w+_test)\b`)
	namedCode = lazyregexp.New("`([^`]+)`|\\b([A-Za-z_]\\w*(?:\\.[A-Za-z_]\\w*)*)\\(|\\b([A-Za-z]\\w*(?:_\\w+|[a-z][A-Z]\\w*))\\b|[\"'“]([^\"'“”]{3,})[\"'”]|\\b([A-Z]\\w{2,})\\b")
)

// shown looks for what a text names as evidence: what of it is missing, and whether any
// of it is there.
func (p *phase) shown(evidence string, now func(string) (string, bool)) (missing []string, some bool) {
	note := func(name string, there bool) {
		if there {
			some = true
		} else if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	rest := evidence
	var files []string
	for _, m := range namedFile.FindAllStringSubmatch(evidence, -1) {
		name, _, _ := strings.Cut(m[0], ":")
		content, there := now(name)
		if !there && !strings.Contains(name, "/") && strings.Contains(p.job.Diff, "/"+name+"\n") { // by its last part
			there, content = true, strings.Repeat("\n", 1<<20)
		}
		n, err := strconv.Atoi(m[1])
		note(m[0], there && (m[1] == "" || err == nil && n > 0 && n <= len(splitLines(content))))
		rest = strings.ReplaceAll(rest, m[0], " ")
		files = append(files, content)
	}
	known := p.job.Diff
	if b := p.job.Run.Baseline; b != nil {
		known += "\n" + strings.Join(b.Names, "\n")
	}
	known += "\n" + strings.Join(files, "\n")
	for _, name := range namedTest.FindAllString(rest, -1) {
		note(name, proof.Mentions(known, name))
	}
	for _, m := range namedCode.FindAllStringSubmatch(rest, -1) {
		for _, name := range m[1:] {
			some = some || len(name) > 2 && strings.Contains(known, name)
		}
	}
	return missing, some
}

// unshown notes of the criteria that are called met what their evidence lacks.
func (p *phase) unshown(ctx context.Context, list []pipeline.Compliance) {
	now, _ := p.head(ctx)
	for i := range list {
		c := &list[i]
		if !c.Met || c.Evidence == "" {
			continue
		}
		missing, some := p.shown(c.Evidence, now)
		switch {
		case len(missing) > 0:
			c.Unshown = strings.Join(missing[:min(len(missing), 5)], ", ") + map[bool]string{true: " is not there", false: " are not there"}[len(missing) == 1]
		case !some:
			c.Unshown = "it names no test, file or line"
		case p.wasSo(c):
			c.Unshown = "all that it names was there before this change, which does not touch it"
		}
	}
}

// keeps tells by a criterion's words that it asks for what is so already.
var keeps = lazyregexp.New(`(?i)\b(?:keeps?|stays?|still|remains?|unchanged|existing|continues?|as before|today|compatib\w+|not|never|no|without|passe?s?)\b`)

// wasSo reports whether what a criterion's evidence names, tests that passed at the base and
// files, is untouched by the change: it shows nothing of what the change is for.
func (p *phase) wasSo(c *pipeline.Compliance) bool {
	run := p.job.Run
	if run.Baseline == nil || run.Plan == nil || slices.ContainsFunc(run.Plan.Criteria, func(k pipeline.Criterion) bool { return k.ID == c.Criterion && keeps.MatchString(k.Text) }) {
		return false
	}
	rest, named := c.Evidence, 0
	for _, m := range namedFile.FindAllString(c.Evidence, -1) {
		name, _, _ := strings.Cut(m, ":")
		if strings.Contains(p.job.Diff, name) {
			return false
		}
		rest = strings.ReplaceAll(rest, m, " ")
		named++
	}
	for _, name := range namedTest.FindAllString(rest, -1) {
		if !slices.ContainsFunc(run.Baseline.Names, func(n string) bool { return proof.Mentions(n, name) }) || proof.Mentions(p.job.Diff, name) {
			return false
		}
		rest = strings.ReplaceAll(rest, name, " ")
		named++
	}
	for _, m := range namedCode.FindAllStringSubmatch(rest, -1) {
		if slices.ContainsFunc(m[1:], func(name string) bool { return len(name) > 2 && strings.Contains(p.job.Diff, name) }) {
			return false
		}
	}
	return named > 0
}
