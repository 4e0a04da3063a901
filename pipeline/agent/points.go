package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/look"
	"forge/pipeline/point"
	"forge/pipeline/testedit"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

const (
	maxPointTests = 60       // files of tests that are read
	maxPointBytes = 64 << 10 // of each
)

// question is what the reviewer has to answer about a point, whatever else it finds.
type question struct {
	id string // in the prompt, "P1"
	point.Point
	part int // which part of the change it is shown with
}

// points finds them in the job's change.
func (p *phase) points(ctx context.Context, c change.Change, now func(string) (string, bool)) []*question {
	files := productFiles(c, now)
	if len(files) == 0 || ctx.Err() != nil {
		return nil
	}
	var out []*question
	list := look.Find(files, p.baseTests(c, now))
	base, head := p.goFiles(c, now)
	for _, at := range look.Twins(base, head, files) {
		same := slices.ContainsFunc(list, func(o point.Point) bool { return o.File == at.File && o.Kind == at.Kind })
		if !same {
			list = append(list, at)
		}
	}
	for _, at := range list[:min(len(list), look.MaxPoints)] {
		out = append(out, &question{id: fmt.Sprintf("P%d", len(out)+1), Point: at})
	}
	return out
}

var buildLine = lazyregexp.New(`^//(?:go:build| \+build) `)

// goFiles are the files of Go without tests, at the base and at the head, of the directories in which the
// change adds or renames such a file, or alters what one is built for.
func (p *phase) goFiles(c change.Change, now func(string) (string, bool)) (base, head map[string]string) {
	isProduct := func(name string) bool { return path.Ext(name) == ".go" && !isTestPath(name) }
	dirs, changed := map[string]bool{}, map[string]bool{}
	for _, f := range c.Files {
		changed[f.Path], changed[f.From] = true, true
		added, _ := f.Lines()
		if isProduct(f.Path) && !f.Deleted && (f.From != f.Path || slices.ContainsFunc(added, func(l point.Line) bool { return buildLine.MatchString(l.Text) })) {
			dirs[path.Dir(f.Path)] = true
		}
	}
	base, head = map[string]string{}, map[string]string{}
	for _, f := range c.Files {
		content := ""
		if !f.Deleted {
			content, _ = now(f.Path)
		}
		if !f.Deleted && isProduct(f.Path) && dirs[path.Dir(f.Path)] {
			head[f.Path] = content
		}
		if f.From != "" && isProduct(f.From) && dirs[path.Dir(f.From)] {
			base[f.From] = f.Before(content)
		}
	}
	for _, name := range p.job.Tree {
		if dirs[path.Dir(name)] && isProduct(name) && !changed[name] {
			if content, ok := now(name); ok {
				base[name], head[name] = content, content
			}
		}
	}
	return base, head
}

// testLines are the lines of a file of the product that are compiled for tests alone.
func testLines(f *change.File, now func(string) (string, bool)) map[int]bool {
	content, _ := now(f.Path)
	spans, _ := testedit.Inside(f.Path, []byte(content))
	out := map[int]bool{}
	for _, s := range spans {
		first := 1 + strings.Count(content[:s.From], "\n")
		for n := first; n <= first+strings.Count(content[s.From:s.To], "\n"); n++ {
			out[n] = true
		}
	}
	return out
}

// productFiles are the files of a change that are no tests. What only moves is nothing new.
func productFiles(c change.Change, now func(string) (string, bool)) []look.File {
	moved := map[string]int{}
	var out []look.File
	for _, f := range c.Files {
		if f.Binary || isTestPath(f.Path) {
			continue
		}
		_, gone := f.Lines()
		for _, l := range gone {
			moved[strings.TrimSpace(l)]++
		}
	}
	for _, f := range c.Files {
		if f.Binary || f.Deleted || isTestPath(f.Path) {
			continue
		}
		file := look.File{Name: f.Path, New: f.From == ""}
		added, gone := f.Lines()
		file.Gone = gone
		file.Source, _ = now(f.Path)
		tests := testLines(f, now)
		for _, l := range added {
			if tests[l.Number] {
				continue
			}
			if key := strings.TrimSpace(l.Text); moved[key] > 0 {
				moved[key]--
				continue
			}
			file.Added = append(file.Added, l)
		}
		if len(file.Added) > 0 {
			out = append(out, file)
		}
	}
	return out
}

// isTestPath reports whether a file is of the tests, data of theirs included.
func isTestPath(name string) bool {
	if testname.IsFile(name) || path.Base(name) == "conftest.py" {
		return true
	}
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		if slices.Contains([]string{"test", "tests", "spec", "specs", "__tests__", "testdata", "fixtures", "__snapshots__"}, strings.ToLower(dir)) {
			return true
		}
	}
	return false
}

// baseTests are the texts of the base's tests, those first that lie near the change.
func (p *phase) baseTests(c change.Change, now func(string) (string, bool)) map[string]string {
	byName := map[string]*change.File{}
	dirs := map[string]bool{}
	for _, f := range c.Files {
		byName[f.Path] = f
		dirs[path.Dir(f.Path)] = true
	}
	var names []string
	for _, name := range p.job.Tree {
		if isTestPath(name) && (byName[name] == nil || byName[name].From != "") {
			names = append(names, name)
		}
	}
	for name, f := range byName { // a tree that is not known
		if isTestPath(name) && f.From != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		near := func(s string) int {
			if dirs[path.Dir(s)] {
				return 0
			}
			return 1
		}
		if d := near(a) - near(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	out := map[string]string{}
	for _, name := range names[:min(len(names), maxPointTests)] {
		content, ok := now(name)
		if f := byName[name]; f != nil {
			content, ok = f.Before(content), true
		}
		if ok && len(content) <= maxPointBytes {
			out[name] = content
		}
	}
	return out
}

// pointList shows points to the reviewer.
func pointList(list []*question) string {
	var b strings.Builder
	for _, at := range list {
		fmt.Fprintf(&b, "%s %s [%s]\n%s\n", at.id, at.At(), at.Kind, indent(text.ClipBytes(at.Code, 300)))
		if at.Test != "" {
			fmt.Fprintf(&b, "   the test: %s\n", at.Test)
		}
		fmt.Fprintf(&b, "   %s\n", at.Question())
	}
	return b.String()
}

var pointsSchema = listOf(object(
	"id", typed("string", "of the point to look at, P1"),
	"right", typed("boolean", "whether the code there is right for everybody who runs it, and not for the tests alone"),
	"why", typed("string", "what shows it, in the code or the task; or what is wrong"),
), "one for each point to look at that was listed")

// withPoints is a form that asks for the points, too.
func withPoints(form map[string]any, required bool) map[string]any {
	out := maps.Clone(form)
	properties := maps.Clone(form["properties"].(map[string]any))
	properties["points"] = pointsSchema
	out["properties"] = properties
	if required {
		out["required"] = append(slices.Clone(form["required"].([]string)), "points")
	}
	return out
}

// looking takes what the reviewer says of the points that it was shown.
type looking struct {
	list  []*question
	asked int
	wrong map[*question]string
}

// take reads the answers. What is missing is asked for again, twice; what still lacks an
// answer then is left to a human.
func (k *looking) take(args json.RawMessage) []string {
	if len(k.list) == 0 {
		return nil
	}
	var in struct {
		Points []struct {
			ID    string
			Right *bool
			Why   string
		}
	}
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	k.wrong = map[*question]string{}
	var bad []string
	for _, at := range k.list {
		at.Said, at.Open = "", true
	}
	for _, a := range in.Points {
		i := slices.IndexFunc(k.list, func(at *question) bool {
			return strings.EqualFold(at.id, strings.Trim(strings.TrimSpace(a.ID), "[]()"))
		})
		if i < 0 {
			continue
		}
		at, why := k.list[i], strings.TrimSpace(a.Why)
		switch {
		case a.Right == nil:
			bad = append(bad, fmt.Sprintf("points: %s says not whether it is right", at.id))
		case why == "":
			bad = append(bad, fmt.Sprintf("points: %s has no why (%q): name the code or the task that shows it", at.id, text.ClipBytes(why, 40)))
		case *a.Right:
			at.Said, at.Open = why, false
		default:
			at.Said, at.Open, k.wrong[at] = why, false, why
		}
	}
	for _, at := range k.list {
		if at.Open && !slices.ContainsFunc(bad, func(s string) bool { return strings.Contains(s, " "+at.id+" ") }) {
			bad = append(bad, fmt.Sprintf("points: %s (%s) is not answered: %s", at.id, at.At(), at.Question()))
		}
	}
	if len(bad) > 0 {
		if k.asked++; k.asked > maxAsked {
			return nil
		}
	}
	return bad
}

// settle puts the answers into the review: what is wrong is a finding, where none of the
// review's says so already, and what has no answer is a human's to look at.
func (k *looking) settle(review *pipeline.Review, q *judgement) {
	for _, at := range k.list {
		review.Points = append(review.Points, at.Point)
		if at.Open {
			review.NeedsHuman = firstOf(review.NeedsHuman, fmt.Sprintf("the reviewer gives no reason at %s: %s", at.At(), at.Question()))
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(k.wrong), func(a, b *question) int { return strings.Compare(a.id, b.id) }) {
		told := slices.ContainsFunc(q.Findings, func(f pipeline.Finding) bool { return f.File == at.File && f.Severity.Blocks() })
		if !told {
			q.Findings = append(q.Findings, pipeline.Finding{Severity: pipeline.SeverityError, Category: pipeline.CategoryCorrectness, Rule: "tests." + string(at.Kind),
				Message: text.Clip(k.wrong[at], 600), File: at.File, Line: at.Line, Confidence: 0.9, Fixable: true})
		}
	}
}
