package check

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/text"
)

// selfChecks are the assertions of a program that tests itself.
var selfChecks = regexp.MustCompile(`\bassert\b|\bassert\w*[.(]|\b(?:check|expect|must)\w*\(`)

// editedSelfTests finds assertions that the change takes out of a file of the product
// that a test command runs: they cannot be run as they stood without the product.
func (c *checker) editedSelfTests(isTest map[string]bool) []pipeline.TestChange {
	run := map[string]bool{}
	for _, s := range c.suites {
		for _, w := range pathWord.FindAllString(strings.Join(s.args, " "), -1) {
			run[path.Join(s.dir, w)] = true
		}
	}
	var out []pipeline.TestChange
	for _, f := range c.patch.files {
		if isTest[f.OldName] || !run[f.OldName] || languageOf(f.OldName) == nil {
			continue
		}
		added := map[string]int{}
		var gone []string
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				if l.Op == gitdiff.OpAdd {
					added[strings.TrimSpace(l.Line)]++
				}
			}
		}
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				code := strings.TrimSpace(l.Line)
				switch {
				case l.Op != gitdiff.OpDelete || !selfChecks.MatchString(code):
				case added[code] > 0:
					added[code]--
				default:
					gone = append(gone, code)
				}
			}
		}
		if len(gone) > 0 {
			out = append(out, pipeline.TestChange{Test: "the checks in " + f.OldName, Files: []string{f.OldName},
				Error: text.Head(fmt.Sprintf("a test command runs this file of the product, and the change takes out of it: %s", strings.Join(gone, "; ")), changedBytes)})
		}
	}
	return out
}

var (
	pythonPath  = regexp.MustCompile(`(?m)^\s*pythonpath\s*=\s*(.*(?:\n[ \t]+\S.*)*)`)
	pathEntry   = regexp.MustCompile(`[\w./-]+`)
	pathConfigs = []string{"pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini"}
)

// shadowing finds new modules of Python that the tests load in the place of another of
// their name: users would get that one.
func (c *checker) shadowing(isTest map[string]bool, read func(string) ([]byte, bool)) {
	var roots []string
	for _, name := range pathConfigs {
		data, _ := read(name)
		for _, m := range pythonPath.FindAllSubmatch(data, -1) {
			for _, w := range pathEntry.FindAllString(string(m[1]), -1) {
				roots = append(roots, path.Clean(w))
			}
		}
	}
	if !slices.Contains(roots, ".") {
		roots = append(roots, ".")
	}
	for _, f := range c.patch.files {
		dir, base := path.Split(f.NewName)
		if !f.IsNew || isTest[f.NewName] || path.Ext(base) != ".py" || !slices.Contains(roots, path.Clean(dir)) {
			continue
		}
		for _, other := range roots {
			twin := path.Join(other, base)
			if _, there := read(twin); twin == f.NewName || !there {
				continue
			}
			c.reached = append(c.reached, pipeline.Finding{Rule: ruleForges, File: f.NewName, Line: 1, Code: twin,
				Message: fmt.Sprintf("The tests may load this new module in the place of %s, which has its name: give it another, or let a human decide that it stays", twin)})
			break
		}
	}
}
