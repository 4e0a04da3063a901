package text

import (
	"fmt"
	"strings"
)

// Leak is a place where a text holds what looks like a secret. It never holds the
// secret.
type Leak struct {
	File     string `json:"file"`           // or what else it is in: "the commit message"
	Line     int    `json:"line"`           // from 1
	Rule     string `json:"rule"`           // "github-token"
	Redacted string `json:"redacted"`       // what may be shown of it: "ghp_… (40 characters)"
	Name     string `json:"name,omitempty"` // by which somebody can let it pass; empty for Forge's own secrets, which nobody can
}

// MaxLeaks is how many leaks are named.
const MaxLeaks = 20

// Leaks says where leaks are, for people: "config.yml:3 (github-token, ghp_… (40 characters))".
func Leaks(list []Leak) string {
	var b strings.Builder
	for i, l := range list {
		if i == MaxLeaks {
			fmt.Fprintf(&b, "; and %d places more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s:%d (%s, %s)", l.File, l.Line, l.Rule, l.Redacted)
	}
	return b.String()
}
