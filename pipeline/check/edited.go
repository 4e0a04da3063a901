package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testedit"
	"forge/pipeline/testname"
)

// maxEdited caps TestReport.Edited.
const maxEdited = 100

// editedParts lists what of the base's tests the change edits. A test that passes both as
// it stood and as the change has it may hold less than it did all the same.
func (v *verdict) editedParts(read func(name string) ([]byte, bool)) []testedit.Edit {
	if v.o.Base == "" {
		return nil
	}
	byName := map[string]edit{}
	for _, e := range slices.Concat(v.helpers, v.edits) {
		byName[e.name] = e
	}
	var files []testedit.File
	for _, f := range v.head.patch.files {
		file := testedit.File{}
		if _, tests := byName[f.OldName]; tests && !f.IsNew && !f.IsCopy {
			file.Old, file.Was = f.OldName, textBefore(f, read)
		}
		if e, tests := byName[f.NewName]; tests && !f.IsDelete {
			file.New = f.NewName
			file.Is, _ = read(f.NewName)
			file.Applies = v.applies(e)
		}
		if file.Old != "" || file.New != "" {
			files = append(files, file)
		}
	}
	return testedit.Compare(files)
}

// applies reports whether tests of the base run with a file of the tests that is new.
func (v *verdict) applies(e edit) bool {
	dir, base := path.Dir(e.name), path.Base(e.name)
	switch {
	case e.role != runner && path.Ext(e.name) != ".go", v.o.Baseline == nil:
		return e.role == runner
	case base != "conftest.py" && path.Ext(e.name) != ".go":
		return true
	}
	return slices.ContainsFunc(v.o.Baseline.Names, func(name string) bool {
		if path.Ext(e.name) == ".go" {
			return testname.Parse(name).Container == v.head.packageOf(dir)
		}
		return dir == "." || strings.HasPrefix(name, dir+"/") || strings.HasPrefix(name, strings.ReplaceAll(dir, "/", ".")+".")
	})
}

// howEditedStood fills in how the edited tests did as they stood at the base.
func (c *checker) howEditedStood() {
	list := c.report.Edited
	for i := range list {
		if list[i].Test {
			list[i].Stood = c.stoodSo(&list[i])
		}
	}
	if more := len(list) - maxEdited; more > 0 {
		list = append(list[:maxEdited-1:maxEdited-1], testedit.Edit{File: fmt.Sprintf("%d more parts of the tests", more+1)})
	}
	c.report.Edited = list
}

func (c *checker) stoodSo(e *testedit.Edit) string {
	for _, change := range c.report.Changed {
		if change.Test == e.File || c.isPart(change.Test, e) && change.Since == 0 {
			return testedit.Fails
		}
	}
	if c.stood == nil {
		return ""
	}
	out := ""
	for name, o := range c.stood.tests {
		switch {
		case !c.isPart(name, e):
		case o.ok():
			out = testedit.Passes
		default:
			return testedit.Fails
		}
	}
	return out
}

// isPart reports whether a test's name stands for a part of a file.
func (c *checker) isPart(name string, e *testedit.Edit) bool {
	if e.Part == "" {
		return ofFile(name, e.File)
	}
	id := testname.Parse(name)
	class, base, member := strings.Cut(e.Part, ".")
	if !member || strings.Contains(e.Part, " ") {
		class, base = "", e.Part
	}
	switch languageOf(e.File) {
	case &goLang:
		return id.Base == base && id.Container == c.packageOf(path.Dir(e.File)) || class != "" && strings.HasSuffix(id.Param, "/"+base)
	case &pyLang:
		module := strings.TrimRight(strings.TrimSuffix(id.Container, class), ":.")
		dotted := strings.ReplaceAll(strings.TrimSuffix(e.File, ".py"), "/", ".")
		return id.Base == base && strings.HasSuffix(id.Container, class) && (module == e.File || module == dotted || strings.HasSuffix(dotted, "."+module))
	}
	if path.Ext(e.File) == ".rs" {
		return rustPart(name, e.File, e.Part)
	}
	return name == e.Part || strings.HasSuffix(name, " > "+e.Part) || strings.HasSuffix(name, "/"+e.Part)
}

// notInNames is what stands between the parts of a test's name.
var notInNames = lazyregexp.New(`[#:.\\/> ]+`)

// ofFile reports whether a test's name is of one of a file that is named as a whole: it has the
// file's path, or a class of the file's name ("CalcTest#test_sum" of test/calc_test.rb).
func ofFile(name, file string) bool {
	if strings.Contains(name, file) {
		return true
	}
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	stem := plain(strings.TrimSuffix(path.Base(file), path.Ext(file)))
	return slices.ContainsFunc(notInNames.Split(name, -1), func(part string) bool { return plain(part) == stem })
}
