package pipeline

import (
	"strings"
	"testing"
	"time"

	"forge/pipeline/text"
)

// Of two signals with one key exactly one counts, whatever the order.
func TestSupersedes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later := Signal{Key: "k", At: at.Add(time.Second), Text: "a"}
	on := Signal{Key: "k", At: at, Text: "a"}
	off := Signal{Key: "k", At: at.Add(time.Nanosecond), Off: true}
	other := Signal{Key: "k", At: at, Text: "b"}
	for i, c := range []struct{ winner, loser Signal }{{later, on}, {later, off}, {off, on}, {off, other}, {other, on}} {
		if !c.winner.Supersedes(c.loser) || c.loser.Supersedes(c.winner) {
			t.Errorf("case %d: %+v must count instead of %+v", i, c.winner, c.loser)
		}
	}
	if on.Supersedes(on) {
		t.Error("a repeat counts as new")
	}
}

// Covers S25, for what is remembered.
func TestScrub(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aB3", 14)
	for _, secret := range []string{
		"ghs_" + strings.Repeat("A1b-._", 10), "ghp_" + long, "github_pat_" + long, "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl",
		"AKIAIOSFODNN7EXAMPLE", "AIza" + strings.Repeat("x", 35), "sk-ant-" + long, "glpat-" + long, "xoxb-1234567890-abc", "npm_" + strings.Repeat("x", 36), "hf_" + long,
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIE cut off",
	} {
		if got := text.Scrub("before " + secret); got != "before [secret]" {
			t.Errorf("Scrub(%q) = %q", secret, got)
		}
	}
	for in, want := range map[string]string{
		"postgres://me:hunter2@host/db":               "postgres://me:[secret]@host/db",
		"Authorization: Bearer abcdefghij":            "Authorization: Bearer [secret]",
		`password = "correcthorse"`:                   `password = [secret]`,
		`"api_key": "0123456789"`:                     `"api_key": [secret]`,
		"TOKEN=" + long:                               "TOKEN=[secret]",
		"the token of a request is checked first":     "the token of a request is checked first",
		"token := next()":                             "token := next()",
		"see https://example.org/a:b and sk-learn":    "see https://example.org/a:b and sk-learn",
		`t.Errorf("password %q is too short", p)`:     `t.Errorf("password %q is too short", p)`,
		"commit 9edb7e8a0c1f4e5d6b7a8c9d0e1f2a3b4c5d": "commit 9edb7e8a0c1f4e5d6b7a8c9d0e1f2a3b4c5d",
	} {
		if got := text.Scrub(in); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", in, got, want)
		}
	}
}

// Covers H1 and H2: confidence is the base with all evidence on it, 0 to 1.
func TestWeigh(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		deltas       []float64
		off          int // the first ones, that were taken back
		want         float64
		pro, against int
	}{
		{nil, 0, 0.5, 0, 0}, {[]float64{0.1, 0.1, -0.2}, 0, 0.5, 2, 1}, {[]float64{-0.2, -0.2, -0.2}, 0, 0, 0, 3}, {[]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 0, 1, 6, 0},
		{[]float64{0.1, -0.2}, 1, 0.3, 0, 1}, {[]float64{0}, 0, 0.5, 0, 0},
	} {
		l := Learning{Base: 0.5, Created: at, Confidence: 9, For: 9, Against: 9}
		var evidence []Evidence
		for n, d := range c.deltas {
			evidence = append(evidence, Evidence{Delta: d, At: at.Add(time.Duration(n) * time.Hour), Off: n < c.off})
		}
		l.Weigh(evidence)
		touched := at.Add(time.Duration(max(0, l.For-1)) * time.Hour)
		if l.Confidence != c.want || l.For != c.pro || l.Against != c.against || !l.Touched.Equal(touched) {
			t.Errorf("case %d: %+v, want %v, %d for, %d against, touched %v", i, l, c.want, c.pro, c.against, touched)
		}
	}
}
