package deps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/modfile"

	"forge/pipeline/text"
	"forge/pipeline/untrusted"
)

// unreadable are the manifests that a change has made unreadable: those who install would
// pass over them without a word. What could not be read before is not the change's.
func unreadable(e Edit) ([]*Lock, error) {
	var out []*Lock
	for _, name := range e.Changed {
		managed := map[string]string{"go.mod": "go", "package.json": "node"}[path.Base(name)]
		if managed == "" || foreign(name) {
			continue
		}
		now, before, err := e.Both(name)
		if err != nil {
			return nil, err
		}
		why := manifestFault(name, now)
		if now == nil || why == "" || before != nil && manifestFault(name, before) != "" || before == nil && isTemplate(now) {
			continue
		}
		l := &Lock{Manager: managed, Dir: path.Dir(name), Refused: why + "\nNothing can be installed by it. Mend it"}
		switch {
		case before == nil:
			l.Refused += ", or put it beneath testdata or fixtures where it is a test's"
		case managed == "go":
			l.Refused += ": name a version that is one (v1.2.3), or import the package and leave go.mod alone, and the go command takes the latest"
		}
		out = append(out, l)
	}
	return out, nil
}

// manifestFault is why a manifest cannot be read, in the words of who reads it.
func manifestFault(name string, content []byte) string {
	if path.Base(name) == "go.mod" {
		file, err := modfile.Parse(name, content, nil)
		if err == nil && file.Module == nil {
			return name + ": no module declaration"
		}
		if err == nil {
			return ""
		}
		return text.Clip(strings.TrimSpace(err.Error()), 800)
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	var v any
	err := untrusted.JSON(content, &v)
	if err == nil {
		return ""
	}
	at := len(content)
	if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
		at = min(at, int(s.Offset))
	}
	return fmt.Sprintf("%s:%d: %v", name, 1+bytes.Count(content[:at], []byte("\n")), err)
}

// isTemplate reports whether a file is to be filled in before anybody reads it.
func isTemplate(content []byte) bool {
	return bytes.Contains(content, []byte("{{")) || bytes.Contains(content, []byte("<%"))
}
