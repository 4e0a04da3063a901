package render

import (
	"fmt"
	"strings"
	"testing"

	"forge/pipeline"
	"unicode/utf8"
)

// What fits stays as it is; what does not is split between lines, into parts that each
// fit, close what they open, and together hold every line once.
func TestParts(t *testing.T) {
	t.Parallel()
	short := "<!-- forge:x -->\nshort\n"
	if got := Parts(short); len(got) != 1 || got[0] != short {
		t.Errorf("Parts of a short body = %q", got)
	}
	full := "<!-- forge:x -->\n" + strings.Repeat("ä", MaxText) + "\n"
	if got := Parts(full); len(got) != 1 || got[0] != full {
		t.Errorf("a body that just fits is %d parts", len(got))
	}
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %05d äöü %s\n", i, strings.Repeat("x", 40))
		}
		return b.String()
	}
	for _, c := range []struct{ name, text string }{
		{"plain", lines(5000)},
		{"fold", Folded("History", lines(5000))},
		{"code", "```go\n" + lines(5000) + "```\n"},
		{"code of tildes with backticks in it", "~~~~\n```\n" + lines(5000) + "~~~\n~~~~\n"},
		{"code in folds", "<details><summary>Outer</summary>\n\n" + Folded("Inner", "```\n"+lines(3000)+"```") + "\n</details>\n" + lines(1000)},
	} {
		parts := Parts("<!-- forge:x -->\n" + c.text + "\n")
		if len(parts) < 3 || !strings.HasPrefix(parts[0], "<!-- forge:x -->\n") {
			t.Errorf("%s: %d parts, the first begins %.20q", c.name, len(parts), parts[0])
		}
		var all []string
		for i, p := range parts {
			if n := utf8.RuneCountInString(p); n > MaxText {
				t.Errorf("%s: part %d has %d characters", c.name, i+1, n)
			}
			var open frame
			for l := range strings.Lines(p) {
				open.pass(l)
				if strings.HasPrefix(l, "line ") {
					all = append(all, l)
				}
			}
			if open.fence != "" || len(open.folds) != 0 || strings.Count(p, "<details>") != strings.Count(p, "</details>") {
				t.Errorf("%s: part %d leaves open: %+v", c.name, i+1, open)
			}
		}
		if want := strings.Count(c.text, "line "); len(all) != want || strings.Join(all, "") != lines(5000)[:len(strings.Join(all, ""))] &&
			c.name != "code in folds" {
			t.Errorf("%s: the parts hold %d lines, want %d in their order", c.name, len(all), want)
		}
	}
	huge := Parts("<!-- forge:x -->\n" + strings.Repeat("y", 20*MaxText) + "\n")
	if len(huge) > maxParts || !strings.Contains(huge[len(huge)-1], "cut here") {
		t.Errorf("a text without end is %d parts, the last ends %q", len(huge), huge[len(huge)-1][len(huge[len(huge)-1])-60:])
	}
}

// What an iteration says of its findings stays when they come back later, and what a human let pass in it is not open.
func TestFindingsOfAnIteration(t *testing.T) {
	t.Parallel()
	f := pipeline.Finding{Fingerprint: "a", File: "a.go"}
	issue := func(s pipeline.IssueState, first, last int) pipeline.Issue {
		return pipeline.Issue{Finding: &f, Phase: pipeline.PhaseReview, State: s, First: first, Last: last}
	}
	listed, silent := []pipeline.Finding{f}, []pipeline.Finding(nil)
	for _, c := range []struct {
		want   string
		is     pipeline.Issue
		listed [3][]pipeline.Finding // by the reviews
		about  int
	}{
		{"1 new", issue(pipeline.IssueOpen, 2, 2), [3][]pipeline.Finding{silent, listed}, 2},
		{"none", issue(pipeline.IssueOpen, 2, 2), [3][]pipeline.Finding{silent, listed}, 1},
		{"1 still open", issue(pipeline.IssueOpen, 1, 2), [3][]pipeline.Finding{listed, listed}, 2},
		{"1 let pass", issue(pipeline.IssueDismissed, 1, 2), [3][]pipeline.Finding{listed, listed}, 2},
		{"1 fixed", issue(pipeline.IssueFixed, 1, 1), [3][]pipeline.Finding{listed, silent}, 2},
		{"1 fixed", issue(pipeline.IssueOpen, 1, 3), [3][]pipeline.Finding{listed, silent, listed}, 2},
		{"1 back again", issue(pipeline.IssueOpen, 1, 3), [3][]pipeline.Finding{listed, silent, listed}, 3},
		{"1 new", issue(pipeline.IssueOpen, 1, 3), [3][]pipeline.Finding{listed, silent, listed}, 1},
		{"none", issue(pipeline.IssueFixed, 1, 1), [3][]pipeline.Finding{listed, silent, silent}, 3},
	} {
		run := &pipeline.Run{}
		run.Findings = []pipeline.Issue{c.is}
		for i, list := range c.listed {
			run.Iterations = append(run.Iterations, pipeline.Iteration{Number: i + 1, Review: &pipeline.Review{Findings: list, Reviewed: []string{"a.go"}}})
		}
		if got := testView(run).findingsCell(&run.Iterations[c.about-1]); got != c.want {
			t.Errorf("iteration %d of %+v is shown as %q, want %q", c.about, c.is, got, c.want)
		}
	}
}
