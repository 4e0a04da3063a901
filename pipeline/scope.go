package pipeline

import "strings"

// The scopes of what is remembered are a repository or all of an owner's.
const (
	repoScope = "repo:"
	orgScope  = "org:"
)

// Scope names what is remembered of a repository: "repo:OWNER/NAME".
func (r Repo) Scope() string {
	if r.ID == 0 && r.Owner == "" { // a folder: two may have the same name
		return repoScope + r.CloneURL
	}
	return repoScope + r.FullName()
}

// ScopeOf is the scope of a repository, "OWNER/NAME", or of an owner.
func ScopeOf(name string) string {
	if strings.Contains(name, "/") {
		return repoScope + name
	}
	return orgScope + name
}

// CutScope returns the repository that a scope is of, false when it is an owner's.
func CutScope(scope string) (repo string, ok bool) { return strings.CutPrefix(scope, repoScope) }
