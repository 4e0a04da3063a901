package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"forge/pipeline/text"
)

// The test makes its secrets up by chance, as providers do: none is in the source,
// where others' scanners would find it.
const (
	small  = "abcdefghijklmnopqrstuvwxyz"
	big    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	word   = small + big + digits
	hexes  = "0123456789abcdef"
	b64    = word + "+/"
	b64url = word + "-_"
)

// maker draws characters; the same seed gives the same ones.
type maker struct{ *rand.Rand }

func (m maker) of(chars string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = chars[m.IntN(len(chars))]
	}
	return string(b)
}

func (m maker) pem(kind, begin string) string {
	var b strings.Builder
	b.WriteString("-----BEGIN " + kind + "-----\n" + begin + m.of(b64, 64-len(begin)) + "\n")
	for range 5 {
		b.WriteString(m.of(b64, 64) + "\n")
	}
	return b.String() + m.of(b64, 30) + "==\n-----END " + kind + "-----"
}

func (m maker) jwt() string {
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))
	body := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + m.of(small, 9) + `","exp":17` + m.of(digits, 8) + `}`))
	return head + "." + body + "." + m.of(b64url, 43)
}

// seeds makes one credential of each shape, by the rule that finds it.
func (m maker) seeds() map[string]string {
	jwt := m.jwt()
	return map[string]string{
		"github-token personal": "ghp_" + m.of(word, 36), "github-token oauth": "gho_" + m.of(word, 36), "github-token user": "ghu_" + m.of(word, 36),
		"github-token refresh": "ghr_" + m.of(word, 76), "github-token server": "ghs_" + m.of(word, 36), "github-token server, long": "ghs_" + m.jwt(),
		"github-fine-grained-token": "github_pat_" + m.of(word, 22) + "_" + m.of(word, 59),
		"gitlab-token":              "glpat-" + m.of(b64url, 20), "gitlab-token deploy": "gldt-" + m.of(word, 20), "gitlab-token runner": "glrt-" + m.of(word, 20),
		"aws-access-key": "AKIA" + m.of(big+"234567", 16), "aws-access-key temporary": "ASIA" + m.of(big+"234567", 16),
		"aws-secret-key ini": "aws_secret_access_key = " + m.of(b64, 40), "aws-secret-key code": `SecretAccessKey: "` + m.of(b64, 40) + `"`,
		"private-key RSA": m.pem("RSA PRIVATE KEY", "MIIEpAIBAAKCAQEA"), "private-key EC": m.pem("EC PRIVATE KEY", "MHcCAQEEI"),
		"private-key OpenSSH": m.pem("OPENSSH PRIVATE KEY", "b3BlbnNzaC1rZXktdjEAAAAA"), "private-key PGP": m.pem("PGP PRIVATE KEY BLOCK", ""),
		"private-key PKCS8":     m.pem("PRIVATE KEY", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
		"private-key encrypted": m.pem("ENCRYPTED PRIVATE KEY", "MIIFLTBXBgkqhkiG9w0BBQ0wSjAp"),
		"private-key in JSON":   `"private_key": "` + strings.ReplaceAll(m.pem("PRIVATE KEY", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"), "\n", `\n`) + `"`,
		"private-key in code":   `"` + strings.ReplaceAll(m.pem("RSA PRIVATE KEY", "MIIEpAIBAAKCAQEA"), "\n", "\\n\" +\n\t\t\"") + `"`,
		"private-key body":      "key = MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + m.of(b64, 60),
		"putty-key": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n" + m.of(b64, 60) +
			"\nPrivate-Lines: 1\n" + m.of(b64, 44),
		"google-api-key": "AIza" + m.of(b64url, 35), "google-oauth-secret": "GOCSPX-" + m.of(b64url, 28), "google-access-token": "ya29." + m.of(b64url, 60),
		"slack-token":     "xoxb-" + m.of(digits, 12) + "-" + m.of(digits, 13) + "-" + m.of(word, 24),
		"slack-app-token": "xapp-1-A" + m.of(big+digits, 10) + "-" + m.of(digits, 13) + "-" + m.of(hexes, 64),
		"slack-webhook":   "https://hooks.slack.com/services/T" + m.of(big+digits, 10) + "/B" + m.of(big+digits, 10) + "/" + m.of(word, 24),
		"stripe-key live": "sk_live_" + m.of(word, 24), "stripe-key restricted": "rk_live_" + m.of(word, 40), "stripe-key test": "sk_test_" + m.of(word, 24),
		"webhook-secret": "whsec_" + m.of(word, 32), "npm-token": "npm_" + m.of(word, 36),
		"npm-auth": "//registry.npmjs.org/:_authToken=" + m.of(hexes, 8) + "-" + m.of(hexes, 4) + "-4" + m.of(hexes, 3) + "-a" +
			m.of(hexes, 3) + "-" + m.of(hexes, 12),
		"pypi-token": "pypi-AgEIcHlwaS5vcmc" + m.of(b64url, 120), "openai-key old": "sk-" + m.of(word, 20) + "T3BlbkFJ" + m.of(word, 20),
		"openai-key project": "sk-proj-" + m.of(b64url, 60) + "T3BlbkFJ" + m.of(b64url, 60),
		"openai-key service": "sk-svcacct-" + m.of(b64url, 80), "openai-key compatible": "sk-" + m.of(hexes, 32),
		"anthropic-key": "sk-ant-api03-" + m.of(b64url, 93) + "AA", "openrouter-key": "sk-or-v1-" + m.of(hexes, 64), "groq-key": "gsk_" + m.of(word, 52),
		"huggingface-token": "hf_" + m.of(word, 34), "replicate-token": "r8_" + m.of(word, 37), "perplexity-key": "pplx-" + m.of(word, 48),
		"xai-key": "xai-" + m.of(word, 80),
		"jwt":     jwt, "twilio-key": "SK" + m.of(hexes, 32), "twilio-token": `TWILIO_AUTH_TOKEN="` + m.of(hexes, 32) + `"`,
		"sendgrid-key": "SG." + m.of(b64url, 22) + "." + m.of(b64url, 43), "mailgun-key": "key-" + m.of(hexes, 32), "mailchimp-key": m.of(hexes, 32) + "-us12",
		"azure-storage-key":   "DefaultEndpointsProtocol=https;AccountName=prod;AccountKey=" + m.of(b64, 86) + "==;EndpointSuffix=core.windows.net",
		"azure-access-key":    "Endpoint=sb://prod.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=" + m.of(b64, 43) + "=",
		"azure-client-secret": m.of(word, 3) + "8Q~" + m.of(word, 34),
		"azure-signature":     "https://prod.blob.core.windows.net/c?sv=2022-11-02&sig=" + url.QueryEscape(m.of(b64, 43)+"="),
		"digitalocean-token":  "dop_v1_" + m.of(hexes, 64), "heroku-key": "HRKU-AA" + m.of(b64url, 58),
		"heroku-key uuid": "HEROKU_API_KEY=" + m.of(hexes, 8) + "-" + m.of(hexes, 4) + "-4" + m.of(hexes, 3) + "-a" + m.of(hexes, 3) + "-" +
			m.of(hexes, 12),
		"docker-auth": `{"auths": {"registry.company.net": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("shop:"+m.of(word, 24))) +
			`"}}}`, "shopify-token": "shpat_" + m.of(hexes, 32), "square-token": "sq0csp-" + m.of(b64url, 43),
		"braintree-token": "access_token$production$" + m.of(small+digits, 16) + "$" + m.of(hexes, 32),
		"telegram-token":  m.of("123456789", 10) + ":AA" + m.of(b64url, 33),
		"discord-webhook": "https://discord.com/api/webhooks/" + m.of(digits, 18) + "/" + m.of(b64url, 68),
		"discord-token":   "MT" + m.of(word, 24) + "." + m.of(word, 6) + "." + m.of(word, 38),
		"newrelic-key":    "NRAK-" + m.of(big+digits, 27), "grafana-token": "glsa_" + m.of(word, 32) + "_" + m.of(hexes, 8), "vault-token": "hvs." + m.of(b64url, 90),
		"terraform-token": m.of(word, 14) + ".atlasv1." + m.of(b64url, 67), "doppler-token": "dp.pt." + m.of(word, 43), "linear-key": "lin_api_" + m.of(word, 40),
		"notion-token": "ntn_" + m.of(digits, 11) + m.of(word, 35), "airtable-token": "pat" + m.of(word, 14) + "." + m.of(hexes, 64),
		"figma-token": "figd_" + m.of(b64url, 40),
		"postman-key": "PMAK-" + m.of(hexes, 24) + "-" + m.of(hexes, 34), "databricks-token": "dapi" + m.of(hexes, 32),
		"docker-token": "dckr_pat_" + m.of(b64url, 27),
		"rubygems-key": "rubygems_" + m.of(hexes, 48), "crates-token": "cio" + m.of(word, 32), "nuget-key": "oy2" + m.of(small+digits, 43),
		"sentry-token":      "sntryu_" + m.of(hexes, 64),
		"planetscale-token": "pscale_tkn_" + m.of(b64url, 43), "supabase-token": "sbp_" + m.of(hexes, 40),
		"atlassian-token": "ATBB" + m.of(word, 32), "age-key": "AGE-SECRET-KEY-1" + m.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
		"tailscale-key": "tskey-auth-k" + m.of(word, 11) + "CNTRL-" + m.of(word, 32), "buildkite-token": "bkua_" + m.of(hexes, 40),
		"pulumi-token": "pul-" + m.of(hexes, 40), "netlify-token": "nfp_" + m.of(word, 36),
		"flyio-token": "fo1_" + m.of(b64url, 43), "resend-key": "re_" + m.of(word, 8) + "_" + m.of(word, 24),
		"artifactory-key": "AKCp" + m.of(word, 69), "alibaba-key": "LTAI" + m.of(word, 20),
		"mapbox-secret": "sk.eyJ" + m.of(word, 60) + "." + m.of(b64url, 22), "cloudflare-ca-key": "v1.0-" + m.of(hexes, 24) + "-" + m.of(hexes, 146),
		"password-in-url postgres":    "postgres://app:" + m.of(word, 10) + "1x@db.prod.internal:5432/app",
		"password-in-url mongo":       "mongodb+srv://app:" + m.of(word, 15) + "7@cluster0.ab1cd.mongodb.net",
		"password-in-url git":         "https://x:" + m.of(word, 19) + "5@git.company.net/a/b.git",
		"password-in-url redis":       "redis://:" + m.of(word, 19) + "5@cache.internal:6379",
		"authorization-header bearer": "Authorization: Bearer " + m.of(word, 48),
		"authorization-header basic":  "authorization: 'Basic " + base64.StdEncoding.EncodeToString([]byte("app:"+m.of(word, 15)+"9")) + "'",
		"netrc-password":              "machine git.company.net login bot password " + m.of(word, 20) + "8",
		"assigned-secret":             `client_secret = "` + m.of(word, 40) + `"`, "assigned-secret yaml": `  api_key: "` + m.of(word, 32) + `"`,
	}
}

// Covers S25: credentials of all shapes are found, whatever is around them, and the
// hit names the line and nothing of what is secret.
func TestSeeded(t *testing.T) {
	t.Parallel()
	found, missed := 0, 0
	names := map[string]bool{}
	for seed := range uint64(4) {
		m := maker{rand.New(rand.NewPCG(seed, 7))}
		s := New()
		for name, secret := range m.seeds() {
			rule, _, _ := strings.Cut(name, " ")
			names[name] = true
			for _, around := range []string{"%s", "x = \"%s\"\n", "first\nsecond\n\tkey: %s # why\nlast\n", "[a](%s)", "<b>%s</b>"} {
				if strings.Contains(secret, "\n") || strings.HasPrefix(rule, "netrc") || strings.HasPrefix(rule, "npm-auth") {
					around = "first\nsecond\n%s\nlast\n"
				}
				text := fmt.Sprintf(around, secret)
				hits := s.Scan("f.txt", []byte(text))
				if len(hits) == 0 {
					missed++
					if missed < 30 {
						t.Errorf("%s, seed %d: not found in %q", name, seed, text)
					}
					continue
				}
				found++
				line := 1 + strings.Count(text[:strings.Index(text, secret)], "\n")
				if h := hits[0]; h.File != "f.txt" || h.Line < line || h.Line > line+strings.Count(secret, "\n") {
					t.Errorf("%s: hit %+v; want line %d", name, h, line)
				}
				clean, told := s.Text("a comment", text)
				for _, h := range append(hits, told...) {
					if shown := strings.Split(h.Redacted, "…")[0]; len(shown) > 24 || len(secret) > 30 && strings.Contains(h.Redacted, secret[len(secret)-8:]) {
						t.Errorf("%s: %+v shows the secret", name, h)
					}
				}
				if tail := secret[max(0, len(secret)-60):][:20]; len(secret) > 80 && strings.Contains(clean, tail) &&
					!strings.Contains(name, "private-key") && !strings.Contains(name, "putty") && !strings.Contains(name, "azure") &&
					!strings.Contains(name, "slack-webhook") {
					t.Errorf("%s: Text = %q", name, clean)
				}
				if !strings.Contains(clean, Mask) {
					t.Errorf("%s: Text = %q; want the secret taken out", name, clean)
				}
				if again := s.Scan("f", []byte(clean)); len(again) > 0 {
					t.Errorf("%s: Text = %q, where %+v is found", name, clean, again)
				}
			}
		}
	}
	t.Logf("%d kinds: %d found, %d missed", len(names), found, missed)
	if len(names) < 50 {
		t.Errorf("only %d kinds", len(names))
	}
}

// A rule that no seed shows may find nothing.
func TestEveryRuleIsSeeded(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(1, 2))}
	seen := map[string]bool{}
	seeds := m.seeds()
	maps.Copy(seeds, m.named())
	for _, secret := range seeds {
		for _, h := range shapes(secret, false) {
			seen[h.rule] = true
		}
	}
	for _, r := range rules() {
		if !seen[r.Name] {
			t.Errorf("rule %s finds no seed", r.Name)
		}
		if r.Refuse != "" && r.refuse == nil {
			t.Errorf("rule %s refuses by %q, which there is not", r.Name, r.Refuse)
		}
	}
}

// What the log and the database hold is scrubbed by the same knowledge.
func TestScrubKnowsTheShapes(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(3, 4))}
	for name, secret := range m.seeds() {
		if strings.HasSuffix(name, " body") || strings.HasPrefix(name, "netrc") || strings.HasPrefix(name, "putty") || name == "docker-auth" ||
			name == "heroku-key uuid" {
			continue // without a frame: found by the scanner alone
		}
		if got := text.Scrub("a " + secret + " b"); !strings.Contains(got, Mask) {
			t.Errorf("Scrub leaves %s: %q", name, got)
		}
	}
}

// Covers S25: in UTF-16.
func TestUTF16(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(6, 7))}
	for _, name := range []string{"github-token personal", "aws-access-key", "anthropic-key", "stripe-key live", "npm-token"} {
		var little, large bytes.Buffer
		little.Write([]byte{0xff, 0xfe})
		for _, u := range utf16.Encode([]rune("first line\ntoken = " + m.seeds()[name] + "\n")) {
			little.Write([]byte{byte(u), byte(u >> 8)})
			large.Write([]byte{byte(u >> 8), byte(u)})
		}
		for form, content := range map[string]string{"small end first": little.String(), "large end first": large.String()} {
			if hits := New().Scan("f", []byte(content)); len(hits) == 0 || hits[0].Line != 2 {
				t.Errorf("%s, %s: %+v; want it found in line 2", name, form, hits)
			}
		}
	}
}

// Covers S25: in base64 and in hexadecimal.
func TestEncoded(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(5, 6))}
	for _, name := range []string{"github-token personal", "github-token server, long", "github-fine-grained-token", "aws-access-key",
		"anthropic-key", "openai-key project", "slack-token",
		"stripe-key live", "npm-token", "pypi-token", "sendgrid-key", "private-key RSA", "azure-storage-key", "google-api-key", "telegram-token"} {
		for range 10 {
			secret := m.seeds()[name]
			for form, text := range map[string]string{
				"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(secret)),
				"base64 within more": base64.StdEncoding.EncodeToString([]byte("user=x\ntoken=" + secret + "\nend")),
				"base64 in lines":    wrap(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("some text before it\n", 9)+secret+"\n")), 76),
				"hexadecimal":        hex.EncodeToString([]byte(secret)), "HEXADECIMAL": strings.ToUpper(hex.EncodeToString([]byte(secret))),
			} {
				if hits := New().Scan("f", []byte("data: \""+text+"\"\n")); len(hits) == 0 {
					t.Errorf("%s in %s is not found: %s", name, form, text)
				}
			}
		}
	}
}

func wrap(s string, n int) string {
	var lines []string
	for len(s) > n {
		lines, s = append(lines, s[:n]), s[n:]
	}
	return strings.Join(append(lines, s), "\n")
}

// Covers S25: one's own secrets are found exactly, in all forms, in part, and
// whatever they look like.
func TestOwn(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(8, 9))}
	word20, weak, key := m.of(word, 20), "example-test-password", m.pem("RSA PRIVATE KEY", "MIIEpAIBAAKCAQEA")
	body := strings.Split(key, "\n")
	joined := strings.Join(body[1:len(body)-1], "")
	raw, err := base64.StdEncoding.DecodeString(joined)
	if err != nil {
		t.Fatal(err)
	}
	s := New(word20, weak, key, "postgres://forge:"+"pass word/9x"+"@localhost/db", "postgres:///db?host=/run&password=sharedword1", "short77", "", "12345678")
	for name, text := range map[string]string{
		"plain": word20, "weak": weak, "hex": hex.EncodeToString([]byte(word20)),
		"HEX":    strings.ToUpper(hex.EncodeToString([]byte(word20))),
		"base64": base64.StdEncoding.EncodeToString([]byte(word20)), "base64+1": base64.StdEncoding.EncodeToString([]byte("a" + word20 + "b")),
		"base64+2":           base64.StdEncoding.EncodeToString([]byte("ab" + word20 + "cd")),
		"base64 of a header": base64.StdEncoding.EncodeToString([]byte("x-access-token:" + word20)), "in part": word20[:18],
		"the other part": word20[3:], "in two": word20[:16] + "\" + \"" + word20[16:],
		"weak in base64": base64.URLEncoding.EncodeToString([]byte("--" + weak)), "a line of the key": body[3], "the key in one line": joined,
		"the key's bytes":       hex.EncodeToString(raw)[200:260],
		"the password of a URL": "sharedword1", "a short one": "x12345678y", "escaped": url.QueryEscape(weak),
	} {
		if hits := s.Scan("f", []byte("first\nbefore "+text+" after\n")); len(hits) != 1 && name != "in two" || hits[0].Rule != "forge-secret" || hits[0].Line != 2 {
			t.Errorf("%s: %+v; want it found in line 2", name, hits)
		}
		if clean, _ := s.Text("t", "before "+text+" after"); strings.Contains(clean, text) {
			t.Errorf("%s: Text = %q", name, clean)
		}
	}
	for _, text := range []string{"short77", "-----BEGIN RSA PRIVATE KEY-----", "postgres://forge:", "@localhost/db", word20[:15], "0000000000000000000000"} {
		if hits := s.Scan("f", []byte(text)); len(hits) > 0 {
			t.Errorf("Scan(%q) = %+v", text, hits)
		}
	}
	if hits := New("0000000000000000000000", "aaaaaaaaaaaaaaaaaa").Scan("f", []byte("0000000000000000000000 aaaaaaaaaaaaaaaaaaaaaaaa")); len(hits) > 0 {
		t.Errorf("a value of one character is found everywhere: %+v", hits)
	}
}

// What is plainly made up, or nothing secret, is passed over.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"ghp_" + strings.Repeat("0", 36),
		"ghp_1234567890abcdefghijklmnopqrstuvwxyz", "GITHUB_TOKEN=ghp_YOUR_TOKEN_HERE_PLEASE_REPLACE_IT_NOW",
		"sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-ant-api03-your-key-goes-here-your-key-goes-here-your-key",
		"postgres://user:password@localhost:5432/db", "postgres://postgres:postgres@db/app", "mysql://root:${DB_PASSWORD}@db/app",
		"https://user:{{ .Password }}@git.company.net", "https://user:<password>@git.company.net",
		"redis://:p4ssw0rd@cache:6379", "http://alice:s3cr3t@proxy", "Authorization: Bearer $TOKEN_FROM_THE_ENVIRONMENT_123",
		"Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l",
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
		`"access_token":"2YotnFZFEjr1zCsicMWpAA"`, "Authorization: Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW", // RFC 6749's, in every library
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzb21lIjoicGF5bG9hZCJ9.4twFt5NiznN84AWoo1d7KO1T_yoc0Z6XOpOVswacPZg",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "const header = \"-----BEGIN RSA PRIVATE KEY-----\"",
		"-----BEGIN PRIVATE KEY-----\nYOUR KEY HERE\n-----END PRIVATE KEY-----",
		"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo\n",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2Yy0ZPXpK8oEZcGmC8rvYr7QdyH5mRbC0mZ7p2m9uN me@host",
		"golang.org/x/sync v0.22.0 h1:MC8NvJvIIVXfCfOKyhVsNWxTnSLQrkZkXPY1KM37mzI=",
		`"integrity": "sha512-vqfBcJf0Q1dMYHVxjU1n0rDnWcjKfQ1aKpQ3l2ZsJb3yLrZ0nXc7kY5y9Q1sD8tM2w6g4h3f5v7b9n1m3k5j7g=="`,
		"commit 5f0c2b7e9d1a3c4f6b8e0d2a4c6f8b1e3d5a7c9f", "uuid: 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
		"password := os.Getenv(\"DATABASE_PASSWORD_FOR_PRODUCTION\")", "secret: ${{ secrets.DEPLOY_TOKEN_FOR_PRODUCTION }}",
		`password: "correct-horse-battery-staple"`, `token := "this-is-a-long-name-of-a-thing-2"`, `apiKey: "application/vnd.github.v3+json"`,
		"SKIP_THIS_TEST_0123456789", "task-0123456789abcdef0123456789abcdef",
		"github_pat_11AAAAAAA0aaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "glossary-of-terms-and-their-meanings",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"var LocalhostKey = testingKey(`-----BEGIN RSA TESTING KEY-----\nMIICXQIBAAKBgQC6b6qGvc+/n/LvXJRgeG/oE/LRlm/N2TJuIjfOQfnKXSms4Sfa\n",
	} {
		if hits := New().Scan("f", []byte(text)); len(hits) > 0 {
			t.Errorf("Scan(%q) = %+v", text, hits)
		}
		if clean, hits := New().Text("f", text); clean != text || len(hits) > 0 {
			t.Errorf("Text(%q) = %q", text, clean)
		}
	}
}

// Only what is added counts: what a file had, or what moved within it, was there.
func TestAdded(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(10, 11))}
	one, two, key := "ghp_"+m.of(word, 36), "npm_"+m.of(word, 36), m.pem("RSA PRIVATE KEY", "MIIEpAIBAAKCAQEA")
	before := "a\nold = " + one + "\nb\r\n" + key + "\nc\n"
	s := New()
	for name, tt := range map[string]struct {
		now  string
		want []int
	}{
		"nothing new": {before, nil}, "moved": {"b\n" + key + "\na\nold = " + one + "\nc\n", nil}, "another line": {"new\n" + before + "more\n", nil},
		"one more": {"a\nold = " + one + "\nnew = " + two + "\n", []int{3}}, "the same in another line": {"a\nb\nagain = " + one + "\n", []int{3}},
		"line ends": {strings.ReplaceAll(before, "\n", "\r\n"), nil},
		"a key":     {before + m.pem("EC PRIVATE KEY", "MHcCAQEEI") + "\n", []int{1 + strings.Count(before, "\n")}},
		"two":       {"x\n" + one + "\ny\n" + two + "\n", []int{2, 4}}, "removed": {"", nil},
	} {
		var got []int
		for _, h := range s.Added("f", []byte(tt.now), []byte(before)) {
			got = append(got, h.Line)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: lines %v, want %v", name, got, tt.want)
		}
	}
	if hits := s.Scan("f", []byte(strings.Repeat(one+"\n", 1000))); len(hits) != maxHits {
		t.Errorf("%d hits; want no more than %d", len(hits), maxHits)
	}
}

func FuzzText(f *testing.F) {
	m := maker{rand.New(rand.NewPCG(12, 13))}
	for _, secret := range m.seeds() {
		f.Add("x " + secret + " y")
	}
	s := New("Zq7mW2xK9vB4tN8r")
	f.Fuzz(func(t *testing.T, text string) {
		clean, hits := s.Text("t", text)
		if (clean == text) != (len(hits) == 0) && !strings.Contains(text, Mask) {
			t.Errorf("Text(%q) = %q with %d hits", text, clean, len(hits))
		}
		for _, h := range hits {
			if h.Line < 1 || h.Line > 1+strings.Count(text, "\n") {
				t.Errorf("Text(%q): hit %+v", text, h)
			}
		}
		s.Added("t", []byte(text), []byte(clean))
	})
}

// Covers S25: a text that was neutralised for GitHub, or has Markdown's backslashes,
// is looked through as people read it.
func TestTextAsRead(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(14, 15))}
	token, password := "ghp_"+m.of(word, 36), m.of(word, 18)+"7"
	for name, text := range map[string]string{
		"a mark in an address": "see postgres://\u200bapp:" + password + "@\u200bdb.prod.internal/app, please",
		"a mark in a token":    "it is " + token[:9] + "\u200b" + token[9:] + " é",
		"a backslash":          "`ü` ghp\\_" + token[4:] + "\\!", "a broken rune": "\xff" + token[:9] + "\u2060" + token[9:],
	} {
		clean, hits := New().Text("a comment", text)
		if len(hits) != 1 || strings.Contains(clean, token[12:]) || strings.Contains(clean, password) {
			t.Errorf("%s: Text = %q, %+v", name, clean, hits)
		}
	}
	if text := "a\u200bb \\_ c"; !cleanAs(New(), text) {
		t.Errorf("Text changes %q", text)
	}
}

func cleanAs(s *Scanner, text string) bool {
	clean, hits := s.Text("t", text)
	return clean == text && len(hits) == 0
}

// In a long line, as minifiers make it, every secret is found, wherever it is, as often
// as it is there, and whole.
func TestLongLine(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(16, 17))}
	for name, secret := range m.seeds() {
		if strings.Contains(secret, "\n") {
			continue
		}
		var b strings.Builder
		for i := range 12 {
			b.WriteString(strings.Repeat("x=f(key,pat,gl);", 60+i*3) + " " + secret + " ;")
		}
		clean, hits := New().Text("a.js", b.String())
		if left := strings.Count(clean, secret); left > 0 || len(hits) == 0 {
			t.Errorf("%s: %d of 12 are left, %d hits", name, left, len(hits))
		}
	}
	long := "ghs_" + m.jwt() + m.of(word, 9_000)
	if clean, _ := New().Text("a.js", strings.Repeat("a b ", 3_000)+long+strings.Repeat(" c d", 3_000)); strings.Contains(clean, long[len(long)-20:]) {
		t.Error("the end of a long token is left")
	}
}
