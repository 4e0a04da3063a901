package pipeline

import "regexp"

// secrets are the forms of credentials that are known by their looks: GitHub's
// tokens (the new ones hold a JWT), JWTs, keys of cloud and model providers,
// private keys, passwords in URLs and in assignments.
var secrets = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|$)`), "[secret]"},
	{regexp.MustCompile(`gh[a-z]_[A-Za-z0-9._-]{36,}|gh[a-z]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}`), "[secret]"},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`), "[secret]"},
	{regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}|\b(sk|pk|rk)[-_][A-Za-z0-9_-]{20,}|\bglpat-[A-Za-z0-9_-]{20,}|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bnpm_[A-Za-z0-9]{36}|\bhf_[A-Za-z0-9]{30,}|\bdop_v1_[a-f0-9]{64}`), "[secret]"},
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]*:)[^\s@/]+@`), "${1}[secret]@"},
	{regexp.MustCompile(`(?i)\b(authorization\s*:\s*(?:bearer|basic|token)\s+)[A-Za-z0-9+/=._~-]{8,}`), "${1}[secret]"},
	{regexp.MustCompile("(?i)\\b([a-z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|access[_-]?key)\"?\\s*(?::=|[:=])\\s*)(\"[^\"\\s]{8,}\"|'[^'\\s]{8,}'|`[^`\\s]{8,}`|[A-Za-z0-9+/=_-]{20,})"), "${1}[secret]"},
}

// Scrub takes out of a text what looks like a credential and leaves "[secret]"
// in its place. What has no known form is not found: Scrub is the last line
// behind not reading secrets at all.
func Scrub(s string) string {
	for _, p := range secrets {
		s = p.find.ReplaceAllString(s, p.with)
	}
	return s
}
