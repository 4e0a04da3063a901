package check

import (
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

var (
	heldToken  = lazyregexp.New(doubled + `|` + single + `|` + number + `|[=!]==?|[<>]=?|\b(?i:assert|expect|require|equal|should|raise|throw)\w*`)
	comparison = lazyregexp.New(`[=!]==?|\b(?i:assert|expect|require|equal|should)\w*`)
	operand    = lazyregexp.New(`[\pL_][\pL\pN_]*(?:\s*\()?`) // with the bracket: what is called
	anyWord    = lazyregexp.New(`[\pL\pN_]+`)
	sentence   = lazyregexp.New(`(?mi)(?:^|[.!?:;]\s)\W*(?:add|get|set|put|make|create|remove|delete|change|update|move|write|read|use|new)\s`)
)

// everyday are words of tests that say nothing about what they test.
var everyday = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range text.KeyWords(`test tests testing spec check assert asserts equal equals expect expected require should want got result actual
		import def func function return true false none null nil self case cases name value values pytest unit const let var data row rows string number int float
		list fatal error errorf fatalf new class param params parametrize describe raises throws`) {
		out[w] = true
	}
	return out
}()

// The two ways of JavaScript to load a module.
var (
	jsRequire = lazyregexp.New(`^(?:(?:const|let|var)\s+(?:\w+|\{[^{}]*\})\s*=\s*)?require\(\s*(?:'([^']+)'|"([^"]+)")\s*\)$`)
	jsImport  = lazyregexp.New(`^import\s+(?:[\w*{}\s,$]+\s+from\s+)?(?:'([^']+)'|"([^"]+)")$`)
)

// loads is the module that a statement of JavaScript loads, without what differs
// between require and import; "" where it does anything else.
func loads(statement string) string {
	for _, re := range []*lazyregexp.Regexp{jsRequire, jsImport} {
		if m := re.FindStringSubmatch(statement); m != nil {
			name := strings.TrimPrefix(m[1]+m[2], "node:")
			if jsKinds.MatchString(path.Ext(name)) {
				name = strings.TrimSuffix(name, path.Ext(name))
			}
			return strings.TrimSuffix(name, "/index")
		}
	}
	return ""
}

// statements takes a line apart where it loads modules: each may come to stand on a
// line of its own. "use strict" is no value.
func statements(file, line string) []string {
	if languageOf(file) != &jsLang || !strings.Contains(line, "require") && !strings.Contains(line, "import") && !strings.Contains(line, "use strict") {
		return []string{line}
	}
	var out, rest []string
	for _, s := range strings.Split(line, ";") {
		if s = strings.TrimSpace(s); loads(s) != "" {
			out = append(out, s)
		} else if s != "'use strict'" && s != `"use strict"` {
			rest = append(rest, s)
		}
	}
	return append(out, strings.Join(rest, ";"))
}

// held is what a statement of a test or its data holds: its values and how they are
// compared, and with what. What is called may go by another name.
func held(file, line string) []string {
	line = strings.TrimSpace(line)
	if languageOf(file) == &jsLang {
		if name := loads(strings.TrimSuffix(line, ";")); name != "" {
			return []string{"load " + name}
		}
	}
	if remark := languageOf(file).remark; line == "" || strings.HasPrefix(line, remark) && !testname.IsData(file) {
		return nil
	}
	if testname.IsData(file) {
		return anyWord.FindAllString(line, -1)
	}
	out := heldToken.FindAllString(line, -1)
	if comparison.MatchString(line) {
		for _, w := range operand.FindAllString(heldToken.ReplaceAllString(line, " "), -1) {
			if !strings.HasSuffix(w, "(") {
				out = append(out, w)
			}
		}
	}
	return out
}

// lost returns the lines of some files that the change removes, or changes so that
// they do not hold what they held.
func (p *patch) lost(files []string) []string {
	var now [][]string
	type line struct {
		text  string
		holds []string
	}
	var gone []line
	for _, f := range p.files {
		for _, frag := range f.TextFragments {
			n := int(frag.OldPosition) - 1
			for _, l := range frag.Lines {
				if l.Old() {
					n++
				}
				switch inside, part := p.insideBase[f.OldName]; {
				case l.Op == gitdiff.OpDelete && part && !inside.hold(n): // of the product beside the tests
				case l.Op == gitdiff.OpAdd:
					for _, s := range statements(f.NewName, l.Line) {
						now = append(now, held(f.NewName, s))
					}
				case l.Op == gitdiff.OpDelete && slices.Contains(files, f.OldName) && !notValues.MatchString(f.OldName):
					for _, s := range statements(f.OldName, l.Line) {
						if holds := held(f.OldName, s); len(holds) > 0 {
							gone = append(gone, line{strings.TrimSpace(l.Line), holds})
						}
					}
				}
			}
		}
	}
	var out []string
	for _, g := range gone {
		i := slices.IndexFunc(now, func(has []string) bool { return includes(has, g.holds) })
		if i < 0 {
			out = append(out, g.text)
			continue
		}
		now = slices.Delete(now, i, i+1) // one line stands for one
	}
	return out
}

// includes reports whether has holds all of want, as often.
func includes(has, want []string) bool {
	has = slices.Clone(has)
	for _, w := range want {
		i := slices.Index(has, w)
		if i < 0 {
			return false
		}
		has = slices.Delete(has, i, i+1)
	}
	return true
}

// names reports whether the task's words name a test, or a function or a value in
// some of its lines. A verb that begins a sentence names no function.
func (k Task) names(test string, lines []string) bool {
	if k.about(test) {
		return true
	}
	task := text.KeyWords(sentence.ReplaceAllString(k.Text+"\n"+k.Criteria, " "))
	for _, w := range text.KeyWords(testname.Parse(test).Base + "\n" + strings.Join(lines, "\n")) {
		short := len(w) < 3 && !valueWord.MatchString(w)
		if _, there := slices.BinarySearch(task, w); there && !short && !everyday[w] {
			return true
		}
	}
	return false
}

// unasked marks the tests whose assertions or rows the change took away although
// the task names nothing of them. That they fail as they stood is then no sign that
// the task wants it so, whatever a model says.
func (c *checker) unasked(list []pipeline.TestChange) []pipeline.TestChange {
	if c.o.Task.Text == "" {
		return list // not known
	}
	for i := range list {
		t := &list[i]
		if slices.Contains(t.Files, t.Test) || slices.ContainsFunc(c.inside, func(o pipeline.TestChange) bool { return o.Test == t.Test }) {
			continue // not known to fail as it stood
		}
		if lost := c.patch.lost(t.Files); len(lost) > 0 && !c.o.Task.names(t.Test, lost) {
			t.Unasked = text.Clip(text.OneLine(lost[0]), 100)
		}
	}
	return list
}
