package text

import (
	"forge/pipeline/lazyregexp"
)

// secrets are the forms of credentials that are known by their looks: GitHub's
// tokens (the new ones hold a JWT), JWTs, keys of cloud and model providers,
// private keys, passwords in URLs and in assignments.
var secrets = []struct {
	find *lazyregexp.Regexp
	with string
}{
	{lazyregexp.New(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|$)`), "[secret]"},
	{lazyregexp.New(`gh[a-z]_[A-Za-z0-9._-]{36,}|gh[a-z]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}`), "[secret]"},
	{lazyregexp.New(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`), "[secret]"},
	{lazyregexp.New(`\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}|\b(sk|pk|rk)[-_][A-Za-z0-9_-]{20,}|\bglpat-[A-Za-z0-9_-]{20,}|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bnpm_[A-Za-z0-9]{36}|\bhf_[A-Za-z0-9]{30,}|\bdop_v1_[a-f0-9]{64}`), "[secret]"},
	{lazyregexp.New(`\b(?:whsec|gsk|r8|dckr_[a-z]+|rubygems|pscale_[a-z]+|sbp|glc|glsa|lin_api|ntn|figd|bkua|nfp|fo1|sntry[su]|shp(?:at|ca|pa|ss)|do[opr]_v1|api_org|re_[A-Za-z0-9]{6,10})_[A-Za-z0-9+/=_.-]{20,}`), "[secret]"},
	{lazyregexp.New(`\b(?:gl(?:dt|rt|cbt|ptt|ft|soat|agent|oas|imt)|xapp|xai|pplx|pul|NRAK|PMAK|HRKU|GOCSPX|tskey|sq0[a-z]{3}|pypi|AGE-SECRET-KEY)-[A-Za-z0-9_.-]{20,}|\bkey-[0-9a-f]{32}\b`), "[secret]"},
	{lazyregexp.New(`\b(?:SG\.[A-Za-z0-9_-]{16,}\.|hv[sb]\.|ya29\.|[A-Za-z0-9]{14}\.atlasv1\.|sk\.eyJ|dp\.[a-z]{2,5}\.|v1\.0-[a-f0-9]{24}-|pat[A-Za-z0-9]{14}\.)[A-Za-z0-9._=-]{30,}`), "[secret]"},
	{lazyregexp.New(`\b\d{8,10}:AA[A-Za-z0-9_-]{30,}|\bSK[0-9a-f]{32}\b|\b[0-9a-f]{32}-us\d{1,2}\b|\bAKCp[A-Za-z0-9]{60,}|\bLTAI[A-Za-z0-9]{16,}|\bAT(?:BB|ATT3)[A-Za-z0-9_=-]{32,}|\bdapi[0-9a-f]{32}\b|\bcio[A-Za-z0-9]{32}\b|\boy2[a-z0-9]{43}\b|\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,}|\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}`), "[secret]"},
	{lazyregexp.New(`(hooks\.slack\.com/[a-z]+/|discord(?:app)?\.com/api/webhooks/\d+/|(?:Account|SharedAccess)Key\s*=\s*|[?&]sig=|access_token\$[a-z]+\$)[A-Za-z0-9+/=%$_-]{20,}`), "${1}[secret]"},
	{lazyregexp.New(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]*:)[^\s@/]+@`), "${1}[secret]@"},
	{lazyregexp.New(`(?i)\b(authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[A-Za-z0-9+/=._~-]{8,}`), "${1}[secret]"},
	{lazyregexp.New("(?i)\\b([a-z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|access[_-]?key)\"?\\s*(?::=|[:=])\\s*)(\"[^\"\\s]{8,}\"|'[^'\\s]{8,}'|`[^`\\s]{8,}`|[A-Za-z0-9+/=_-]{20,})"), "${1}[secret]"},
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
