package check

import (
	"path"
	"regexp"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
)

// takesAway is how a task asks that tests go, up to the name of one: by themselves, or into
// another test.
const takesAway = `(?i:\b(?:delete|remove|drop|merge|combine)\s+(?:(?:the|test|tests|file|files|function|functions|flaky|obsolete|old|and)\s+|[\w./-]*test[\w./-]*(?:\s*,\s*|\s+(?:and|with)\s+)|` + "[`'\"])*)"

// notAsked is what turns such words around.
var notAsked = lazyregexp.New(`(?i)\b(?:not|never|without|cannot)\b|n't\b`)

// takes reports whether the task asks for a test, or a file of tests, to go.
func (k Task) takes(name string) bool {
	if len(name) < 3 || !strings.Contains(strings.ToLower(name), "test") {
		return false // an everyday word
	}
	re := regexp.MustCompile(takesAway + regexp.QuoteMeta(name) + "(?:[^\\w/.-]|\\.?$|\\.\\s)")
	for line := range strings.Lines(k.Text) {
		if at := re.FindStringIndex(line); at != nil && !notAsked.MatchString(line[:at[0]]) {
			return true
		}
	}
	return false
}

// askedGone reports whether the task asks that a missing test goes: by its name, or by that
// of its file, which the change deletes.
func (t *tampering) askedGone(id testname.ID) bool {
	if t.c.o.Task.takes(id.Base) {
		return true
	}
	file, _, _ := strings.Cut(id.Container, "::")
	for _, b := range t.removed {
		if b.name == id.Base && (b.file == file || path.Ext(file) == "") && t.askedFile(b.file) {
			return true
		}
	}
	return false
}

// askedFile reports whether the change deletes a file, and the task asks for it.
func (t *tampering) askedFile(name string) bool {
	for _, f := range t.c.patch.files {
		if f.IsDelete && f.OldName == name {
			return t.c.o.Task.takes(path.Base(name)) || t.c.o.Task.takes(name)
		}
	}
	return false
}
