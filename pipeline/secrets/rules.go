package secrets

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// rule is a shape of credentials. Its pattern's first group is what chance made of
// it, and what is judged by its looks.
type rule struct {
	name   string
	keys   []string // one of these is in every text that matches, so that most texts cost no match
	find   *lazyregexp.Regexp
	look   func(string) [][]int    // instead of a pattern: what it would find
	least  float64                 // entropy, in bits a character
	weak   bool                    // too common a shape to be looked for in what was decoded
	whole  bool                    // the group alone is the secret, not all that matched
	lines  bool                    // it can go over several lines
	after  string                  // what shortly before it says that it is made up
	refuse func(group string) bool // what else is no secret
}

// shape makes a rule of a pattern that begins with one of the keys.
func shape(name, keys, pattern string) rule {
	return rule{name: name, keys: strings.Fields(keys), find: lazyregexp.New(pattern), least: 3}
}

// hexShape is one whose characters are hexadecimal digits.
func hexShape(name, keys, pattern string) rule {
	r := shape(name, keys, pattern)
	r.least = 2.6
	return r
}

// Ends of words: RE2 has no look-around, and \b takes "-" for an end.
const (
	head = `(?:^|[^A-Za-z0-9_])`
	tail = `(?:[^A-Za-z0-9_-]|$)`
)

// rules are the shapes by provider, from their own documentation.
var rules = []rule{
	shape("github-token", "ghp_ gho_ ghu_ ghr_ ghs_", `gh[pousr]_([A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|[A-Za-z0-9]{30,255})`),
	shape("github-fine-grained-token", "github_pat_", `github_pat_([A-Za-z0-9_]{36,})`),
	shape("gitlab-token", "gl", `\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt|ffct)-([A-Za-z0-9_.-]{20,})`),
	{name: "aws-access-key", keys: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, find: lazyregexp.New(`\b(?:AKIA|ASIA|ABIA|ACCA)([A-Z2-7]{16})\b`), least: 2.8},
	{name: "aws-secret-key", keys: []string{"aws", "AWS", "Aws", "ecret"}, weak: true, whole: true, least: 4.2, refuse: notMixed,
		find: lazyregexp.New(`(?i:aws.{0,30}?(?:secret|key|token)|secret_?-?access_?-?key|secret_?-?key|secretkey)["'` + "`" +
			`]?\s{0,3}(?::=|=>|[:=,])?\s{0,3}["'` + "`" + `]?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`)},
	shape("google-api-key", "AIza", `\bAIza([0-9A-Za-z_-]{35})`+tail),
	shape("google-oauth-secret", "GOCSPX-", `GOCSPX-([A-Za-z0-9_-]{28})`),
	shape("google-access-token", "ya29.", `\bya29\.([0-9A-Za-z_-]{30,})`),
	shape("slack-token", "xox", `\bxox[abeoprs](?:\.xox[bp])?-(?:[0-9]+-)+([0-9A-Za-z-]{10,})`),
	shape("slack-app-token", "xapp-", `\bxapp-\d-[A-Z0-9]+-\d+-([a-z0-9]{30,})`),
	shape("slack-webhook", "hooks.slack.com", `hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,})`),
	shape("stripe-key", "k_live_ k_test_ k_prod_", `\b[srp]?[rsk]k_(?:live|test|prod)_([0-9A-Za-z]{16,})`),
	shape("webhook-secret", "whsec_", `\bwhsec_([A-Za-z0-9+/=]{24,})`),
	shape("npm-token", "npm_", `\bnpm_([A-Za-z0-9]{36})\b`),
	{name: "npm-auth", keys: []string{"_authToken", "_auth"}, find: lazyregexp.New(`_auth(?:Token)?\s*=\s*["']?([A-Za-z0-9+/=_-]{30,})`),
		least: 3, whole: true},
	shape("pypi-token", "pypi-", `\bpypi-(AgE[A-Za-z0-9_-]{50,})`),
	shape("openai-key", "sk-", head+`sk-(?:(?:proj|svcacct|admin|None)-)?([A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,})`),
	shape("openai-key", "sk-", head+`sk-((?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{48}|[a-f0-9]{32})`+tail),
	shape("anthropic-key", "sk-ant-", `\bsk-ant-[a-z]+[0-9]*-([A-Za-z0-9_-]{40,})`),
	hexShape("openrouter-key", "sk-or-", `\bsk-or-v1-([0-9a-f]{64})`),
	shape("groq-key", "gsk_", `\bgsk_([A-Za-z0-9]{50,})`),
	shape("xai-key", "xai-", `\bxai-([A-Za-z0-9]{70,})`),
	shape("huggingface-token", "hf_ api_org_", `\b(?:hf|api_org)_([A-Za-z0-9]{34})\b`),
	shape("replicate-token", "r8_", `\br8_([A-Za-z0-9]{37})\b`),
	shape("perplexity-key", "pplx-", `\bpplx-([A-Za-z0-9]{40,})`),
	{name: "jwt", keys: []string{"eyJ"}, find: lazyregexp.New(`\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,})`),
		least: 4, refuse: notJWT},
	hexShape("twilio-key", "SK", head+`SK([0-9a-f]{32})\b`),
	{name: "twilio-token", keys: []string{"wilio", "WILIO"}, weak: true, whole: true, least: 3,
		find: lazyregexp.New(`(?i:twilio).{0,40}?["'\x60=:\s]([0-9a-f]{32})(?:[^0-9A-Za-z]|$)`)},
	shape("sendgrid-key", "SG.", `\bSG\.([A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})`+tail),
	hexShape("mailgun-key", "key-", head+`key-([0-9a-f]{32})\b`),
	hexShape("mailchimp-key", "-us", `\b([0-9a-f]{32})-us\d{1,2}\b`),
	shape("azure-storage-key", "AccountKey", `AccountKey\s*=\s*([A-Za-z0-9+/]{86}==)`),
	shape("azure-access-key", "SharedAccessKey", `SharedAccessKey\s*=\s*([A-Za-z0-9+/]{40,}={0,2})`),
	shape("azure-client-secret", "Q~", `\b([A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34})`),
	shape("azure-signature", "sig=", `[?&;]sig=([A-Za-z0-9%/+]{40,}(?:%3D|=))`),
	hexShape("digitalocean-token", "_v1_", `\bdo[oprt]_v1_([a-f0-9]{64})`),
	shape("heroku-key", "HRKU-", `\bHRKU-([0-9A-Za-z_-]{36,})`),
	{name: "heroku-key", keys: []string{"eroku", "EROKU"}, weak: true, whole: true, least: 3,
		find: lazyregexp.New(`(?i:heroku).{0,30}?["'\x60=:\s]([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:[^0-9A-Za-z]|$)`)},
	hexShape("shopify-token", "shp", `\bshp(?:at|ca|pa|ss)_([a-fA-F0-9]{32})`),
	shape("square-token", "sq0", `\bsq0(?:atp|csp|idp)-([0-9A-Za-z_-]{22,43})`),
	shape("braintree-token", "access_token$", `access_token\$(?:production|sandbox)\$([0-9a-z]{16}\$[0-9a-f]{32})`),
	shape("telegram-token", ":AA", `\b\d{8,10}:AA([A-Za-z0-9_-]{33})`+tail),
	shape("discord-webhook", "api/webhooks/", `discord(?:app)?\.com/api/webhooks/\d+/([A-Za-z0-9_-]{60,})`),
	shape("discord-token", "MT Mj Mz ND NT Nj Nz OD OT", head+`([MNO][A-Za-z\d_-]{23,25}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,38})`+tail),
	shape("newrelic-key", "NRAK-", `\bNRAK-([A-Z0-9]{27})`),
	shape("grafana-token", "glc_ glsa_", `\bgl(?:c_|sa_)([A-Za-z0-9+/=_]{32,})`),
	shape("vault-token", "hvs. hvb.", `\bhv[sb]\.([A-Za-z0-9_-]{60,})`),
	shape("terraform-token", ".atlasv1.", `\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,})`),
	shape("doppler-token", "dp.", `\bdp\.(?:pt|st|ct|sa|scim|audit)\.([A-Za-z0-9._-]{40,})`),
	shape("linear-key", "lin_api_", `\blin_api_([A-Za-z0-9]{40})`),
	shape("notion-token", "ntn_", `\bntn_([A-Za-z0-9]{40,50})`),
	shape("airtable-token", "pat", `\bpat([A-Za-z0-9]{14}\.[a-f0-9]{64})`),
	shape("figma-token", "figd_", `\bfigd_([A-Za-z0-9_-]{40})`),
	shape("postman-key", "PMAK-", `\bPMAK-([a-f0-9]{24}-[a-f0-9]{34})`),
	hexShape("databricks-token", "dapi", `\bdapi([a-f0-9]{32})\b`),
	shape("docker-token", "dckr_", `\bdckr_(?:pat|oat)_([A-Za-z0-9_-]{27,})`),
	{name: "docker-auth", keys: []string{`"auth"`}, weak: true, whole: true, least: 3, refuse: notBasic,
		find: lazyregexp.New(`"auth"\s*:\s*"([A-Za-z0-9+/=_-]{16,})"`)},
	hexShape("rubygems-key", "rubygems_", `\brubygems_([a-f0-9]{48})`),
	shape("crates-token", "cio", head+`cio([A-Za-z0-9]{32})`+tail),
	shape("nuget-key", "oy2", head+`oy2([a-z0-9]{43})`+tail),
	shape("sentry-token", "sntry", `\bsntry[su]_([A-Za-z0-9_=+/.-]{60,})`),
	shape("planetscale-token", "pscale_", `\bpscale_(?:tkn|oauth|pw)_([A-Za-z0-9_.-]{32,})`),
	hexShape("supabase-token", "sbp_", `\bsbp_([a-f0-9]{40})`),
	shape("atlassian-token", "ATATT3 ATBB", `\bAT(?:ATT3[A-Za-z0-9_=-]{100,}|BB([A-Za-z0-9]{32}))`),
	shape("age-key", "AGE-SECRET-KEY-1", `AGE-SECRET-KEY-1([QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58})`),
	shape("tailscale-key", "tskey-", `\btskey-[a-z]+-([A-Za-z0-9]+-[A-Za-z0-9]{20,})`),
	hexShape("buildkite-token", "bkua_", `\bbkua_([a-f0-9]{40})`),
	hexShape("pulumi-token", "pul-", `\bpul-([a-f0-9]{40})`),
	shape("netlify-token", "nfp_", `\bnfp_([A-Za-z0-9]{36})`),
	shape("flyio-token", "fo1_ FlyV1", `\b(?:fo1_|FlyV1 fm\d_)([A-Za-z0-9_+/=-]{40,})`),
	shape("resend-key", "re_", head+`re_([A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,})`+tail),
	shape("artifactory-key", "AKCp", `\bAKCp([A-Za-z0-9]{60,})`),
	shape("alibaba-key", "LTAI", `\bLTAI([A-Za-z0-9]{16,24})\b`),
	shape("mapbox-secret", "sk.eyJ", `\bsk\.(eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,})`),
	shape("cloudflare-ca-key", "v1.0-", `\bv1\.0-([a-f0-9]{24}-[a-f0-9]{146})`),

	shape("google-refresh-token", "1//0", `\b1//0([0-9A-Za-z_-]{40,})`),
	shape("dropbox-token", "sl.", head+`sl\.(?:u\.)?([A-Za-z0-9_-]{130,})`),
	{name: "aws-session-token", keys: []string{"ession_token", "ession-token", "essionToken", "ESSION_TOKEN"}, weak: true, whole: true, least: 4.2,
		find: lazyregexp.New(`(?i:session[_-]?token)["'\x60]?\s{0,4}(?::=|=>|[:=,>])\s{0,4}["'\x60]?([A-Za-z0-9+/]{100,}={0,2})`), refuse: notMixed},
	{name: "django-secret-key", keys: []string{"django-insecure-"}, least: 3, find: lazyregexp.New(`django-insecure-([a-z0-9!@#$%^&*(\-_=+)]{40,})`)},
	{name: "jwk-private", keys: []string{`"kty"`}, weak: true, whole: true, lines: true, least: 4,
		find: lazyregexp.New(`"kty"[^{}]*?"(?:d|p|k)"\s*:\s*"([A-Za-z0-9_-]{40,})"`)},
	{name: "jwk-private", keys: []string{`"kty"`}, weak: true, whole: true, lines: true, least: 4,
		find: lazyregexp.New(`"(?:d|p|k)"\s*:\s*"([A-Za-z0-9_-]{40,})"[^{}]*?"kty"`)},
	{name: "session-cookie", keys: []string{"ookie", "OOKIE"}, weak: true, whole: true, least: 4, refuse: notMixed,
		find: lazyregexp.New(`(?i:\bcookie)["'\x60]?\s{0,4}[:=,]\s{0,4}["'\x60]?(?i:[^"'\x60\n]{0,200}?[\w.-]{0,40}(?:sess|sid|auth|token)[\w.-]{0,40})=([A-Za-z0-9%+/=_.~-]{32,})`)},
	{name: "pgpass", keys: []string{":5432:", ":*:"}, weak: true, whole: true, least: 2.75, refuse: notPassword,
		find: lazyregexp.New(`(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w.*-]+:[\w.*@-]+:([^\s:"']{8,})\s*$`)},
	{name: "htpasswd", keys: []string{":$apr1$", ":$2y$", ":$2a$", ":$2b$", ":$6$", ":$5$", ":{SHA}"}, weak: true, whole: true, least: 3,
		find: lazyregexp.New(`(?m)^[\w.@-]+:(\$apr1\$[./\w]{8}\$[./\w]{22}|\$2[aby]\$\d\d\$[./\w]{53}|\$[56]\$[./\w$=]{40,}|\{SHA\}[A-Za-z0-9+/]{27}=)`)},
	{name: "mnemonic", keys: []string{"nemonic", "NEMONIC", "hrase", "HRASE"}, weak: true, whole: true, least: 2.5, refuse: notMnemonic,
		find: lazyregexp.New(`(?i:mnemonic|(?:seed|recovery)[_-]?phrase)["'\x60]?\s{0,4}(?::=|=>|[:=,])\s{0,4}["'\x60]?((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?:["'\x60\s]|$)`)},

	// Keys in PEM, and the bodies that such keys have where the frame is missing.
	{name: "private-key", keys: []string{"PRIVATE KEY"}, find: pem, least: 4, lines: true},
	{name: "private-key", keys: []string{"IBADAN", "IBAAK", "MHcCAQEEI", "MIGHAgEA", "MIG2AgEA", "MIGkAgEB", "MC4CAQAw", "b3BlbnNzaC1rZXk"},
		least: 4, lines: true, after: "TESTING KEY",
		find: lazyregexp.New(`\b(MII[A-Za-z0-9+/]{3}IBADANBgkqhkiG9w0BAQEFAASC[A-Za-z0-9+/]{20,}|MII[A-Za-z0-9+/]{3}IBAAK[BC][A-Za-z0-9+/]{40,}|(?:MHcCAQEEI|MIGHAgEAMBMGByqGSM49|MIG2AgEAMBAGByqGSM49|MIGkAgEBBD|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{30,})`)},
	{name: "putty-key", keys: []string{"Private-Lines"}, find: lazyregexp.New(`Private-Lines: \d+\s+([A-Za-z0-9+/=]{30,})`), least: 4, lines: true},

	// Passwords in addresses, headers and assignments.
	{name: "password-in-url", keys: []string{"://"}, weak: true, whole: true, least: 2.75, refuse: notPassword,
		find: lazyregexp.New(`\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@"'<>{}()|\\` + "`" + `]*:([^\s/@"'<>` + "`" +
			`]{8,200})@(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+`)},
	{name: "authorization-header", keys: []string{"uthorization", "UTHORIZATION"}, weak: true, whole: true, least: 3.7, refuse: notMixed,
		find: lazyregexp.New(`(?i:authorization)["'` + "`" + `]?\s*[:=,]\s*["'` + "`" + `]?(?i:bearer|token)\s+([A-Za-z0-9+/=._~-]{24,})`)},
	{name: "authorization-header", keys: []string{"uthorization", "UTHORIZATION"}, weak: true, whole: true, least: 3, refuse: notBasic,
		find: lazyregexp.New(`(?i:authorization)["'` + "`" + `]?\s*[:=,]\s*["'` + "`" + `]?(?i:basic)\s+([A-Za-z0-9+/=_-]{16,})`)},
	{name: "netrc-password", keys: []string{"machine "}, weak: true, whole: true, lines: true, least: 2.75, refuse: notPassword,
		find: lazyregexp.New(`\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S{8,})`)},
	{name: assignedRule, weak: true, whole: true, least: 2.5, look: assigned, keys: []string{"ecret", "ECRET", "ass", "ASS", "wd", "WD", "oken", "OKEN",
		"key", "Key", "KEY", "redential", "REDENTIAL", "auth", "AUTH", "Auth"}},
}

// pem is a private key in its frame. Between frame and body may stand what a string
// in a program, a comment or an encrypted key puts there.
var pem = lazyregexp.New(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----` +
	`(?:[\s"'` + "`" + `+,;|>#*/]|\\[nrt]|\\\\[nrt]|Proc-Type:[^\n\\]*|DEK-Info:[^\n\\]*|Version:[^\n\\]*|Comment:[^\n\\]*){0,60}([A-Za-z0-9+/=]{30,})`)

// notMixed refuses what has not letters of both cases and digits, or is a path, a
// name or words rather than characters drawn by chance.
func notMixed(v string) bool {
	lower, upper, digit, _ := classes(v)
	if !lower || !upper || !digit {
		return true
	}
	return strings.Count(v, "/") > 2 && strings.Count(v, "/")*8 > len(v) || strings.Count(v, ".") > 2 || words(v)
}

// words reports whether most of a value is made of words: runs of small letters, as
// in a name of many parts. Chance makes short ones, too, but not that many.
func words(v string) bool {
	share := 4 // quarters of the value, without anything between its parts three of them
	if strings.ContainsAny(v, "-_./") {
		share = 6
	}
	in, run := 0, 0
	for i := range len(v) + 1 {
		if i < len(v) && v[i] >= 'a' && v[i] <= 'z' {
			run++
			continue
		}
		if run >= 4 {
			in += run
		}
		run = 0
	}
	return in*share >= 3*len(v)
}

// notPassword refuses what stands for a password.
func notPassword(v string) bool {
	if strings.ContainsAny(v, "<>{}$()[]*") || strings.Contains(v, "%s") || strings.Contains(v, "%v") || strings.Contains(v, "...") {
		return true
	}
	if plain, err := url.PathUnescape(v); err == nil {
		v = plain
	}
	letters := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, v)
	for _, w := range []string{"password", "passwd", "passord", "mypass", "secret", "postgres", "mysql", "token", "username", "hunter", "opensesame"} {
		if strings.Contains(letters, w) || strings.Contains(strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "@", "a", "$", "s", "5",
			"s").Replace(strings.ToLower(v)), w) {
			return true
		}
	}
	if words(v) {
		return true
	}
	small, upper, digit, other := classes(v)
	kinds := 0
	for _, has := range []bool{small, upper, digit, other} {
		if has {
			kinds++
		}
	}
	return kinds < 2 || !digit && !other
}

// notBasic refuses what is not a name and a password that could be somebody's.
func notBasic(v string) bool {
	user, password, ok := strings.Cut(unbase64(strings.TrimRight(v, "=")), ":")
	return !ok || !legible(user+password) || len(password) < 8 || notPassword(password) || !plausible(password, 2.75)
}

// notJWT refuses what is no JWT, and the one of which everybody's examples are made.
func notJWT(v string) bool {
	part := strings.Split(v, ".")
	head, err := base64.RawURLEncoding.DecodeString(part[0])
	if err != nil || !strings.Contains(string(head), `"alg"`) {
		return true
	}
	body, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil {
		return true
	}
	for _, w := range []string{"John Doe", "1234567890", "example.com", `"admin":true`, "joe\"", "foo", `"bar"`, `"payload"`, `"iss":"test"`} {
		if strings.Contains(string(body), w) {
			return true
		}
	}
	return false
}

// notMnemonic refuses words among which some are there too often: of 2048, chance draws
// few twice; those that documentation shows are mostly one word.
func notMnemonic(v string) bool {
	all := strings.Fields(v)
	once := map[string]bool{}
	for _, w := range all {
		once[w] = true
	}
	return len(all)%3 != 0 || len(once) < len(all)-1
}

// shapes returns what in a text has the shape of a credential; strong alone without
// those that are too common.
func shapes(block string, strong bool) []match {
	var found []match
	for i := range rules {
		if r := &rules[i]; !strong || !r.weak {
			found = append(found, r.match(block)...)
		}
	}
	return found
}

// match returns what in a text has the rule's shape and could be real.
func (r *rule) match(block string) []match {
	if r.lines {
		if !containsAny(block, r.keys) {
			return nil
		}
		return r.matchIn(block, 0, nil)
	}
	var found []match
	next := make([]int, len(r.keys)) // where each key is, from at on
	for i := range next {
		next[i] = -1
	}
	start, end := 0, 0 // of the line
	for at := 0; ; {
		key := len(block)
		for i, k := range r.keys {
			if next[i] < at {
				if n := strings.Index(block[at:], k); n >= 0 {
					next[i] = at + n
				} else {
					next[i] = len(block)
				}
			}
			key = min(key, next[i])
		}
		if key == len(block) {
			break
		}
		if key >= end { // in another line than the one before
			start, end = strings.LastIndexByte(block[:key], '\n')+1, len(block)
			if i := strings.IndexByte(block[key:], '\n'); i >= 0 {
				end = key + i
			}
		}
		if end-start > longLine {
			found, at = r.matchNear(block, key, start, end, found)
		} else {
			found = r.matchIn(block[start:end], start, found)
			at = end + 1
		}
		if at >= len(block) {
			break
		}
	}
	return found
}

// Of a line that is longer than longLine, as minifiers make it, only what is near a key
// is looked at: so much before it, and after it more where a match goes on.
const (
	longLine    = 4 << 10
	reachBefore = 200
	reachAfter  = 600
	mostReach   = 64 << 10
)

// matchNear adds the matches near a key in a long line, and returns where to go on.
func (r *rule) matchNear(block string, key, start, end int, found []match) ([]match, int) {
	from := max(start, key-reachBefore)
	if len(found) > 0 {
		from = max(from, found[len(found)-1].end)
	}
	for reach := reachAfter; ; reach *= 4 {
		to := min(end, key+reach)
		near := r.matchIn(block[from:to], from, nil)
		if to < end && reach < mostReach && len(near) > 0 && near[len(near)-1].end == to { // cut off
			continue
		}
		next := min(end, key+reach-reachBefore) // what begins in the last part is looked at whole
		if to == end {
			next = end
		}
		for _, m := range near {
			next = max(next, m.end)
		}
		return append(found, near...), max(next, key+1)
	}
}

// matchIn adds the matches in a part of a text that begins at offset.
func (r *rule) matchIn(part string, offset int, found []match) []match {
	all := r.look
	if all == nil {
		all = func(s string) [][]int { return r.find.FindAllStringSubmatchIndex(s, -1) }
	}
	for _, m := range all(part) {
		start, end := m[0], m[1]
		group := part[start:end]
		if len(m) > 3 && m[2] >= 0 {
			group = part[m[2]:m[3]]
		}
		if r.refuse != nil && r.refuse(group) || !plausible(group, r.least) {
			continue
		}
		if r.after != "" && strings.Contains(part[max(0, start-100):start], r.after) {
			continue
		}
		shown := ""
		if r.whole {
			start, end = m[2], m[3]
		} else if len(m) > 3 && m[2] > start {
			shown = strings.Trim(part[start:min(m[2], start+12)], " \t\r\n\"'`=:([{,")
		}
		found = append(found, match{rule: r.name, shown: shown, start: offset + start, end: offset + end})
	}
	return found
}

func containsAny(block string, keys []string) bool {
	for _, k := range keys {
		if strings.Contains(block, k) {
			return true
		}
	}
	return false
}
