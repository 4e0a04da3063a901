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

// What a human let pass in an iteration is not open in it.
func TestFindingsOfAnIteration(t *testing.T) {
	issue := func(s pipeline.IssueState, first, last int) pipeline.Issue {
		return pipeline.Issue{Finding: &pipeline.Finding{}, State: s, First: first, Last: last}
	}
	for want, is := range map[string]pipeline.Issue{
		"1 new":        issue(pipeline.IssueOpen, 2, 2),
		"1 still open": issue(pipeline.IssueOpen, 1, 2),
		"1 let pass":   issue(pipeline.IssueDismissed, 1, 2),
		"1 fixed":      issue(pipeline.IssueFixed, 1, 1),
	} {
		run := &pipeline.Run{}
		run.Findings = []pipeline.Issue{is}
		if got := testView(run).findingsCell(&pipeline.Iteration{Number: 2, Review: &pipeline.Review{}}); got != want {
			t.Errorf("%+v is shown as %q, want %q", is, got, want)
		}
	}
}
