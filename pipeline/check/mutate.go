package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
)

// A test that asserts nothing passes whatever it expects. So the tests that the change
// adds or edits run once more with other values in the place of those that they expect,
// which makes each of them fail. Only what is an expectation by its looks alone is changed:
// a test without such is not judged.

// ruleMutation is the rule of a test that passes with its expectations changed.
const ruleMutation = "tests.mutation"

const (
	mutateAtMost  = 5 * time.Minute // of tests whose run takes longer, nobody waits for another
	maxMutations  = 20              // findings
	mutatedNumber = "7"             // goes before a number: too far off for any tolerance
	mutatedText   = "~mutated"      // goes to the end of a text
)

// literal is a value that a test compares with.
const literal = `[-+]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\b\d+(?:\.\d+)?\b)`

// expectations are how tests write down what they expect. The group is the literal.
var expectations = map[*language][]*lazyregexp.Regexp{
	&goLang: {
		lazyregexp.New(`^\s*(?:\} else )?if [^&]*!= (` + literal + `) \{`),
		lazyregexp.New(`\b(?:assert|require)\.Equalf?\(t, (` + literal + `), `),
		lazyregexp.New(`\b(?:assert|require)\.Equalf?\(t, .*, (` + literal + `)\)`),
		lazyregexp.New(`\bwant\w*(?::| :=) (` + literal + `)`),
	},
	&pyLang: {
		lazyregexp.New(`^\s*assert [^!]*== *(` + literal + `)`),
		lazyregexp.New(`\bself\.assertEqual\(.*, *(` + literal + `)\)`),
		lazyregexp.New(`\bself\.assertEqual\((` + literal + `),`),
		lazyregexp.New(`\b(?:want|expected) = (` + literal + `)$`),
	},
	&jsLang: {
		lazyregexp.New(`\bexpect\(.*\)(?:\.resolves)?\.(?:toBe|toEqual|toStrictEqual)\((` + literal + `)\)`),
		lazyregexp.New(`\bassert\.(?:equal|strictEqual|deepEqual|deepStrictEqual)\(.*, (` + literal + `)\)`),
		lazyregexp.New(`\bif \(.* !==? (` + literal + `)\) throw\b`),
		lazyregexp.New(`\b(?:want|expected)(?::| =) (` + literal + `)`),
	},
	&rubyLang: {
		lazyregexp.New(`\bassert_equal[ (](` + literal + `),`),
		lazyregexp.New(`\.to eq[ (](` + literal + `)`),
		lazyregexp.New(`\.must_equal[ (](` + literal + `)`),
	},
}

// mutation is a test of which every expectation that is known is changed.
type mutation struct {
	name, file string
	line       int // of its declaration
}

// mutate finds the tests of the change that pass with their expectations changed.
func (v *verdict) mutate(ctx context.Context) error {
	var ms int64
	for _, s := range v.head.suites {
		ms += s.done.Millis
	}
	if v.o.Beside || time.Duration(ms)*time.Millisecond > mutateAtMost {
		return nil
	}
	files, tests := map[string][]byte{}, []mutation(nil)
	for _, f := range v.head.patch.files {
		source := v.texts[f.NewName]
		if changed, list := mutated(f, source); len(list) > 0 {
			files[f.NewName] = changed
			tests = append(tests, list...)
		}
	}
	tests = slices.DeleteFunc(tests, func(m mutation) bool {
		if v.stood != nil {
			if ok, there := passes(v.stood.tests, m.name); there && !ok {
				return true // it is told as changed
			}
		}
		ok, _ := passes(v.tests, m.name)
		return !ok
	})
	if len(tests) == 0 {
		return nil
	}
	c, err := v.run(ctx, treeRun{sha: v.o.Head, narrow: v.packages(), among: slices.Sorted(maps.Keys(files)), write: files})
	if _, mine := environment(err); mine {
		return nil
	}
	if err != nil {
		return err
	}
	now := outcomes(c.cases())
	for _, m := range tests {
		if ok, _ := passes(now, m.name); ok && len(v.found) < maxMutations {
			v.found = append(v.found, pipeline.Finding{Rule: ruleMutation, File: m.file, Line: m.line, Code: m.name,
				Message: fmt.Sprintf("`%s` passes whatever it expects: with other values in the place of those that it compares with, "+
					"it passes all the same. Make it fail where the code is wrong", m.name)})
		}
	}
	return nil
}

// passes reports whether all tests of a bare name pass, and whether there is one.
func passes(tests map[string]outcome, name string) (ok, there bool) {
	for test, o := range tests {
		if testname.Parse(test).Base == name || strings.HasSuffix(test, " > "+name) {
			if !o.ok() {
				return false, true
			}
			there = true
		}
	}
	return there, there
}

// mutated returns a file of tests with other values in the place of those that the tests
// expect which the change adds or edits, and these tests.
func mutated(f *gitdiff.File, source []byte) (changed []byte, tests []mutation) {
	lang := languageOf(f.NewName)
	if f.IsDelete || !testname.IsFile(f.NewName) || expectations[lang] == nil || len(source) == 0 {
		return nil, nil
	}
	touched := touchedLines(f)
	lines := strings.SplitAfter(string(source), "\n")
	found := map[mutation]bool{}
	for i := 0; i < len(lines); {
		name, end := lang.test(lines[i]), i+1
		for name != "" && end < len(lines) && !lang.ends(lines[i], lines[end]) {
			end++
		}
		is := name != "" && slices.ContainsFunc(touched, func(n int) bool { return n > i && n <= end })
		for k := i; is && k < end; k++ {
			next := ""
			if k+1 < end {
				next = lines[k+1]
			}
			if other := lang.mutate(lines[k], next); other != lines[k] {
				lines[k] = other
				found[mutation{name, f.NewName, i + 1}] = true
			}
		}
		i = end
	}
	tests = slices.SortedFunc(maps.Keys(found), func(a, b mutation) int { return a.line - b.line })
	return []byte(strings.Join(lines, "")), tests
}

// touchedLines are the lines of a file at the head that the change adds, and those at which
// it takes something out.
func touchedLines(f *gitdiff.File) (out []int) {
	for _, frag := range f.TextFragments {
		n := int(frag.NewPosition)
		for _, l := range frag.Lines {
			if l.Op != gitdiff.OpContext {
				out = append(out, n)
			}
			if l.New() {
				n++
			}
		}
	}
	return out
}

// ends reports whether a line is the first behind a test that was declared by another.
func (l *language) ends(decl, line string) bool {
	text := strings.TrimSpace(line)
	return l.test(line) != "" || text != "" && indentOf(line) <= indentOf(decl) && strings.IndexByte(")}]", text[0]) < 0
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// mutate changes what a line expects, which the next one may say. A condition of Go holds
// something where a test fails by it.
func (l *language) mutate(line, next string) string {
	if strings.HasPrefix(strings.TrimSpace(line), l.remark) {
		return line
	}
	for i, re := range expectations[l] {
		if l == &goLang && i == 0 && !l.assert.MatchString(next) {
			continue
		}
		if at := re.FindStringSubmatchIndex(line); at != nil {
			value := line[at[2]:at[3]]
			if quote := value[len(value)-1]; quote == '"' || quote == '\'' {
				value = value[:len(value)-1] + mutatedText + value[len(value)-1:]
			} else {
				sign := len(value) - len(strings.TrimLeft(value, "+-"))
				value = value[:sign] + mutatedNumber + value[sign:]
			}
			return line[:at[2]] + value + line[at[3]:]
		}
	}
	return line
}
