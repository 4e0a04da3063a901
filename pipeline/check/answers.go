package check

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
	"forge/pipeline/testname"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Code that holds what a test of the base gives and what it wants passes that test
// whatever else it does. Three values in a row are looked for that stand in a test, and
// that come into the product with the change.

// byAnswers is said of such code.
const byAnswers = "holds what a test of the base gives and wants"

var (
	valueWord = lazyregexp.New(`-?\b\d+(?:\.\d+)?\b`)
	tupleCond = lazyregexp.New(`[!=]==?\s*[(\[]\s*-?[\d"']|[(\[]\s*-?[\d"'].*[)\]]\s*[!=]==?|==.*(?:\band\b|&&).*==|\bin\s*[{(\[]\s*[(\[]`)
	dataExt   = lazyregexp.New(`(?i)\.(?:json|ya?ml|toml|csv|tsv|txt|ini)$`)
	notValues = lazyregexp.New(`(?i)(?:^|/)(?:package(?:-lock)?\.json|[^/]*lock[^/]*|go\.(?:mod|sum)|pyproject\.toml|changelog[^/]*|readme[^/]*|license[^/]*|requirements[^/]*\.txt|\.github/.*)$`)
)

// triple is three values in a row.
type triple [3]string

// triples returns those of a text.
func triples(s string) []triple {
	words := valueWord.FindAllString(s, -1)
	var out []triple
	for i := 0; i+2 < len(words); i++ {
		out = append(out, triple{words[i], words[i+1], words[i+2]})
	}
	return out
}

// telling reports whether three values are unlikely to be the same by chance. Where a
// line compares several at once, small ones tell, too.
func (t triple) telling(cond bool) bool {
	if t[0] == t[1] && t[1] == t[2] {
		return false
	}
	size := 0
	for _, w := range t {
		size += len(strings.Trim(w, "-"))
	}
	return size >= 6 || cond
}

// suspicious are the triples that the change adds to the product, with where they are.
func (c *checker) suspicious(isTest map[string]bool, read func(string) ([]byte, bool)) (map[triple]point.Line, map[triple]string) {
	at, files := map[triple]point.Line{}, map[triple]string{}
	lines := c.patch.productLines(isTest)
	var had []byte
	for _, f := range c.patch.files { // what only moves is nothing new
		if !isTest[f.OldName] {
			had = append(append(had, textBefore(f, read)...), '\n')
		}
	}
	old := map[triple]bool{}
	for line := range strings.Lines(string(had)) {
		for _, t := range triples(line) {
			old[t] = true
		}
	}
	for _, f := range c.patch.files {
		if notValues.MatchString(f.NewName) || languageOf(f.NewName) == nil && !dataExt.MatchString(f.NewName) && !sourceExt.MatchString(f.NewName) || len(lines[f]) > 5000 {
			continue
		}
		for i, l := range lines[f] {
			s := withoutRemark(l.Text, languageOf(f.NewName))
			cond := tupleCond.MatchString(s)
			if cond && i+1 < len(lines[f]) {
				s += "\n" + lines[f][i+1].Text
			}
			for _, t := range triples(s) {
				if _, known := at[t]; !known && !old[t] && t.telling(cond) && len(at) < 20_000 {
					at[t], files[t] = l, f.NewName
				}
			}
		}
	}
	return at, files
}

// knowsAnswers finds product code that holds the values of the base's tests.
func (c *checker) knowsAnswers(ctx context.Context, tree Tree, isTest map[string]bool, read func(string) ([]byte, bool)) error {
	at, files := c.suspicious(isTest, read)
	if len(at) == 0 {
		return nil
	}
	res, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"find", ".", "(", "-name", ".git", "-o", "-name", "node_modules", "-o", "-name", "vendor",
		"-o", "-name", ".venv", ")", "-prune", "-o", "-type", "f", "-size", "-256k", "-print"}})
	if err != nil {
		return err
	}
	byName := map[string]*gitdiff.File{}
	for _, f := range c.patch.files {
		byName[f.NewName] = f
	}
	seen, looked := map[string]bool{}, 0
	for line := range strings.Lines(string(res.Stdout)) {
		name := path.Clean(strings.TrimSpace(line))
		if f := byName[name]; looked >= 500 || f != nil && f.IsNew || !isTest[name] && !testname.IsFile(name) && !inTests(name) {
			continue
		}
		looked++
		content, ok := read(name)
		if f := byName[name]; f != nil {
			content = textBefore(f, read)
		} else if !ok {
			continue
		}
		for row := range strings.Lines(string(content)) {
			for _, t := range triples(row) {
				l, hit := at[t]
				if !hit || seen[files[t]] || files[t] == name {
					continue
				}
				seen[files[t]] = true
				c.reached = append(c.reached, pipeline.Finding{Rule: ruleDetects, File: files[t], Line: l.Number, Code: text.Head(strings.TrimSpace(l.Text), 500),
					Message: fmt.Sprintf("Code under test %s (%s in %s), so that what its tests say of it cannot be trusted: take it out, or let a human decide that it stays", byAnswers, strings.Join(t[:], ", "), name)})
			}
		}
	}
	return nil
}

// inTests reports whether a file lies in a directory of tests.
func inTests(name string) bool {
	return testDirs.MatchString(name) || specDirs.MatchString(name) || dataDirs.MatchString(name)
}
