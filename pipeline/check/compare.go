package check

import (
	"slices"
	"strings"
)

// nameRegressions sets WorkedIn on the failures whose test passed before: the
// latest such iteration, else WorkedAtBase. A build that broke, or a suite that
// crashed, worked when any of its tests passed (V2).
func (c *checker) nameRegressions() {
	past := slices.Clone(c.o.Earlier)
	slices.SortFunc(past, func(a, b Past) int { return b.Iteration - a.Iteration })
	if c.o.Baseline != nil {
		past = append(past, Past{Iteration: WorkedAtBase, Report: c.o.Baseline})
	}
	groups := map[string]string{}
	for _, s := range c.suites {
		for i := range s.result.cases {
			if t := &s.result.cases[i]; t.whole && t.group != "" {
				groups[t.name] = t.group
			}
		}
	}
	for i := range c.report.Failures {
		f := &c.report.Failures[i]
		for _, p := range past {
			if p.Report == nil || p.Iteration >= c.o.Iteration && p.Iteration > 0 && c.o.Iteration > 0 {
				continue
			}
			if slices.Contains(p.Report.Names, f.Test) || groups[f.Test] != "" && slices.ContainsFunc(p.Report.Names, within(groups[f.Test])) {
				f.WorkedIn = p.Iteration
				break
			}
		}
	}
}

// within returns whether a test's name lies in a group: "pkg.Test", "file::test",
// "file > test".
func within(group string) func(string) bool {
	return func(name string) bool {
		rest, ok := strings.CutPrefix(name, group)
		return ok && rest != "" && strings.ContainsRune(".: ", rune(rest[0]))
	}
}
