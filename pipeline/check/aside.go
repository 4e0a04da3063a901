package check

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Runs of the base's tests with a file changed, in which they are to come to the same.

const maxPatching = 50 // files of tests that are looked at

var (
	// What Python's tests do to modules that others test, too.
	patchLine = `^\s*[[:alnum:]_]+(\.[[:alnum:]_]+)+\s*=[^=]|setattr\(|sys\.modules\[|\.start\(\)`
	attribute = lazyregexp.New(`(?m)^\s*(\w+)(?:\.\w+)+\s*=[^=]|\bsetattr\(\s*(\w+)`)
	imported  = lazyregexp.New(`(?m)^\s*(?:import|from\s+\S+\s+import)\s+\(?([^#\n]+)`)
	forAll    = lazyregexp.New(`(?m)\bsys\.modules\[[^\]]*\]\s*=|\bpatch\b.*\.start\(\)`)
	ownNames  = lazyregexp.New(`^(?:self|cls|sys|os|pytest|logging|warnings|monkeypatch)$`)
)

// patchesOthers reports whether a Python file puts something into a module that it imports.
func patchesOthers(source []byte) bool {
	if forAll.Match(source) {
		return true
	}
	names := map[string]bool{}
	for _, m := range imported.FindAllSubmatch(source, -1) {
		for part := range strings.SplitSeq(string(m[1]), ",") {
			words := strings.Fields(strings.Trim(part, " ()\\\r"))
			if len(words) > 0 { // "import a.b as c" gives c, "import a.b" gives a
				first, _, _ := strings.Cut(words[len(words)-1], ".")
				names[first] = true
			}
		}
	}
	return slices.ContainsFunc(attribute.FindAllSubmatch(source, -1), func(m [][]byte) bool {
		name := string(m[1]) + string(m[2])
		return names[name] && !ownNames.MatchString(name)
	})
}

// threadLine is a line of a test that checks where an error is nobody's.
const threadLine = `\b(threading|Thread|ThreadPool\w*|concurrent|to_thread|run_in_executor)\b`

// pythonWith lists the files of Python that have a line of a kind.
func pythonWith(ctx context.Context, tree Tree, pattern string) (names []string, err error) {
	res, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"sh", "-c",
		`grep -rlE --include='*.py' --exclude-dir='.?*' --exclude-dir=node_modules -e "$1" . | head -n 1000`, "sh", pattern}})
	for line := range strings.Lines(string(res.Stdout)) {
		names = append(names, strings.TrimPrefix(strings.TrimSpace(line), "./"))
	}
	return names, err
}

// findPatching looks for files of tests that change what the tests of other files look
// at: one process runs all of Python's. It sees whether tests check in threads, too.
func (v *verdict) findPatching(ctx context.Context, tree Tree) error {
	python := slices.ContainsFunc(v.head.suites, func(s *suite) bool { return s.pytest || s.format == formatUnittest })
	code := slices.ContainsFunc(v.head.patch.changedNames(), func(name string) bool { return languageOf(name) == &pyLang && !v.isTest[name] })
	if !python || !code || v.o.Baseline == nil {
		return nil
	}
	threaded, err := pythonWith(ctx, tree, threadLine)
	if err != nil {
		return err
	}
	v.threads = slices.ContainsFunc(threaded, func(name string) bool { return testname.IsFile(name) || inTests(name) })
	names, err := pythonWith(ctx, tree, patchLine)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !testname.IsFile(name) || strings.HasSuffix(name, "conftest.py") || len(v.patching) == maxPatching {
			continue
		}
		if data, err := tree.Read(ctx, name); err == nil && patchesOthers(data) {
			v.patching = append(v.patching, name)
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// runAside runs the base's tests without the files of tests that put something in the
// place of what others test: what those say is to be true of the code.
func (v *verdict) runAside(ctx context.Context) error {
	if len(v.patching) == 0 {
		return nil
	}
	var out []edit
	for _, name := range v.patching {
		out = append(out, edit{name: name, role: testSource, merged: []byte("\n")})
	}
	passes := v.asTheyStood()
	now, err := v.instead(ctx, v.o.Head, out)
	if err != nil {
		return err
	}
	var hidden []string
	for name, o := range now {
		file, _, _ := strings.Cut(name, "::")
		if o.status == failed && passes(name) && !slices.Contains(v.patching, file) && !flakyAt(v.o.Baseline, name) {
			hidden = append(hidden, name)
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	w := *v
	w.edits, w.stood = nil, nil
	before, err := w.instead(ctx, v.o.Base, out)
	if err != nil {
		return err
	}
	hidden = slices.DeleteFunc(hidden, func(name string) bool { return !before[name].ok() }) // they need what is put there
	slices.Sort(hidden)
	for _, name := range hidden[:min(len(hidden), maxBent)] {
		v.found = append(v.found, pipeline.Finding{Rule: ruleForges, File: now[name].file, Code: name, Message: fmt.Sprintf(
			"`%s` passes only beside what %s puts in the place of what it tests. Without, it passes on the base's code and fails on this (%s): make the code right, and have no test change what another looks at",
			name, strings.Join(v.patching[:min(len(v.patching), 3)], ", "), text.Clip(text.OneLine(now[name].err), 200))})
	}
	return nil
}

// asTheyStood tells of a test of the base whether it passes as it stood.
func (v *verdict) asTheyStood() func(name string) bool {
	tests := v.tests
	if v.stood != nil {
		tests = v.stood.tests
	}
	return func(name string) bool { return tests[name].ok() && slices.Contains(v.o.Baseline.Names, name) }
}

// instead runs the base's tests with some files written anew.
func (v *verdict) instead(ctx context.Context, sha string, files []edit) (map[string]outcome, error) {
	w := *v
	w.edits = slices.DeleteFunc(slices.Clone(v.edits), func(e edit) bool {
		return slices.ContainsFunc(files, func(f edit) bool { return f.name == e.name })
	})
	w.edits = append(w.edits, files...)
	kept := map[string]string{}
	if v.stood != nil {
		for name, why := range v.stood.kept {
			if !slices.ContainsFunc(files, func(f edit) bool { return f.name == name }) {
				kept[name] = why
			}
		}
	}
	c, err := w.run(ctx, treeRun{sha: sha, back: true, kept: kept, all: sha == v.o.Base})
	if _, mine := environment(err); mine {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return outcomes(c.cases()), nil
}

// asCode is how a task names something of the code, and no word of a sentence.
var asCode = lazyregexp.New(`^(?:[A-Z][A-Z0-9_]{2,}|[A-Za-z]\w*(?:_\w|[a-z][A-Z])\w*)$`)

// askedEqual lets through an object that is equal to everything where the task names it,
// and the base's tests come to the same without.
func (v *verdict) askedEqual(ctx context.Context) error {
	at := slices.IndexFunc(v.head.reached, func(f pipeline.Finding) bool { return strings.Contains(f.Message, equalToAll) })
	if at < 0 || v.o.Task.Text == "" || v.o.Baseline == nil {
		return nil
	}
	f := v.head.reached[at]
	tree, err := v.open(ctx, v.o.Head)
	if err != nil {
		return err
	}
	source, err := tree.Read(ctx, f.File)
	if closed := tree.Close(); closed != nil {
		return closed
	}
	lines := strings.Split(string(source), "\n")
	if err != nil || strings.Count(string(source), "__eq__") != 1 || f.Line < 1 || f.Line > len(lines) || !v.o.Task.namesClass(lines, f.Line-1) {
		return nil
	}
	lines[f.Line-1] = strings.Replace(lines[f.Line-1], "__eq__", "_equal_to_all", 1)
	now, err := v.instead(ctx, v.o.Head, []edit{{name: f.File, role: testSource, merged: []byte(strings.Join(lines, "\n"))}})
	if err != nil || len(now) == 0 {
		return err
	}
	passes := v.asTheyStood()
	for _, name := range v.o.Baseline.Names {
		if passes(name) && !now[name].ok() {
			return nil
		}
	}
	v.head.reached = slices.Delete(slices.Clone(v.head.reached), at, at+1)
	return nil
}

var pythonClass = lazyregexp.New(`^(\s*)class\s+(\w+)`)

// namesClass reports whether the task names the class that a line is in, or an object of it.
func (k Task) namesClass(lines []string, at int) bool {
	for i := at; i >= 0; i-- {
		m := pythonClass.FindStringSubmatch(lines[i])
		if m == nil || len(m[1]) >= indentOf(lines[at]) {
			continue
		}
		names := []string{m[2]}
		object := regexp.MustCompile(`^\s*(\w+)\s*(?::\s*\w+\s*)?=\s*` + m[2] + `\(\s*\)`)
		for _, line := range lines {
			if o := object.FindStringSubmatch(line); o != nil {
				names = append(names, o[1])
			}
		}
		return slices.ContainsFunc(names, func(name string) bool {
			word := regexp.QuoteMeta(name)
			return asCode.MatchString(name) && regexp.MustCompile(`\b`+word+`\b`).MatchString(k.Text) || strings.Contains(k.Text, "`"+name+"`")
		})
	}
	return false
}
