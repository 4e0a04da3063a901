package text

import (
	"fmt"
	"strings"
)

// Leak is a place where a text holds what looks like a secret. It never holds the
// secret.
type Leak struct {
	File     string `json:"file"`     // or what else it is in: "the commit message"
	Line     int    `json:"line"`     // from 1
	Rule     string `json:"rule"`     // "github-token"
	Redacted string `json:"redacted"` // what may be shown of it: "ghp_… (40 characters)"
}

// maxLeaksTold is how many leaks an error names.
const maxLeaksTold = 10

// LeakError says that something does not leave because of what it holds.
type LeakError struct{ Leaks []Leak }

func (e *LeakError) Error() string {
	var b strings.Builder
	b.WriteString("there is what looks like a secret in ")
	for i, l := range e.Leaks {
		if i == maxLeaksTold {
			fmt.Fprintf(&b, " and %d places more", len(e.Leaks)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s, line %d (%s)", l.File, l.Line, l.Rule)
	}
	b.WriteString(": take it out; a value that is made up should say so (\"example\", \"xxxx\")")
	return b.String()
}
