package record

import "strings"

// The scopes of what is remembered are a repository or all of an owner's.
const (
	repoScope = "repo:"
	orgScope  = "org:"
)

// ScopeOf is the scope of a repository, "OWNER/NAME", or of an owner.
func ScopeOf(name string) string {
	if strings.Contains(name, "/") {
		return RepoScope(name)
	}
	return orgScope + name
}

// RepoScope is the scope of a repository, which a folder's address may name, too.
func RepoScope(name string) string { return repoScope + name }

// CutScope returns the repository that a scope is of, false when it is an owner's.
func CutScope(scope string) (repo string, ok bool) { return strings.CutPrefix(scope, repoScope) }
