package github

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/text"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	noise := strings.Repeat("downloading a module\n", 200)
	for _, tc := range []struct{ name, log, first, has, hasNot string }{
		{"go", noise + "--- FAIL: TestA (0.00s)\n    a_test.go:3: boom\nFAIL\tshop\t0.1s\n##[error]Process completed with exit code 1.\n",
			"--- FAIL: TestA (0.00s)", "a_test.go:3: boom", ""},
		{"go build", "# shop\n./shop.go:3:2: undefined: x\n##[error]Process completed with exit code 1.", "./shop.go:3:2: undefined: x", "# shop", ""},
		{"jest", noise + "FAIL src/a.test.js\n  ● adds › two\n    expect(received)\n" + noise, "FAIL src/a.test.js", "● adds", ""},
		{"pytest", "collected 3 items\n\nE   assert 1 == 2\nFAILED tests/test_a.py::test_a", "E   assert 1 == 2", "FAILED tests", ""},
		{"python", "Traceback (most recent call last):\n  File \"a.py\"\nValueError: no", "Traceback (most recent call last):", "ValueError: no", ""},
		{"rust", "   Compiling shop\nerror[E0308]: mismatched types\n --> src/lib.rs:2:5", "error[E0308]: mismatched types", "src/lib.rs", ""},
		{"typescript", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", "", ""},
		{"runner", "ok\n##[error]The operation was canceled.\n", "The operation was canceled.", "ok", ""},
		{"tap", "ok 1 - a\nnot ok 2 - b\n", "not ok 2 - b", "ok 1", ""},
		{"nothing looks like an error", noise + "the end\n##[error]Process completed with exit code 2.\n", "the end", "exit code 2", ""},
		{"words with error in them", "ok  \tshop/errors\t0.1s\n0 errors, 0 warnings\nerror-handling is fine\nlast words", "last words", "", ""},
		{"empty", "\n\n", "", "", ""},
		{"colours and bars", "\x1b[31m\x1b[1merror:\x1b[0m it \x1b]0;title\x07broke\r\n 10%\r 50%\r100%\n", "error: it broke", "100%", "50%"},
		{"secrets", "error: push to https://bot:hunter22@git.example.com failed\nAuthorization: Bearer abcdefghijklmnop\nAKIAABCDEFGHIJKLMNOP sk-abcdefghijklmnopqrstuvwx\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nend",
			"error: push to https://bot:[secret]@git.example.com failed", "[secret]\nend", "MIIE"},
		{"a token in pieces", "error: ghp_\x1b[0m0123456789abcdefghij\u200b0123456789abcdef\n", "error: [secret]", "", "0123"},
	} {
		got := excerpt(cleanLog([]byte(tc.log), time.Time{}, time.Time{}))
		first, _, _ := strings.Cut(got, "\n")
		if first != tc.first || !strings.Contains(got, tc.has) || tc.hasNot != "" && strings.Contains(got, tc.hasNot) {
			t.Errorf("%s: excerpt = %.300q; want the first line %q, with %q, without %q", tc.name, got, tc.first, tc.has, tc.hasNot)
		}
		for _, leak := range []string{"hunter22", "abcdefghijklmnop", "AKIAABCD"} {
			if strings.Contains(got, leak) {
				t.Errorf("%s: %q is left in %q", tc.name, leak, got)
			}
		}
	}
}

// Only the failing step's lines are kept, and all of them when the times say nothing.
func TestCleanLogStep(t *testing.T) {
	t.Parallel()
	lines := func(from, to time.Time) []string { return cleanLog([]byte(goLog), from, to) }
	if got := lines(at(9), at(9)); cmp.Diff([]string{"Post job cleanup."}, got) != "" {
		t.Errorf("the last step = %q", got)
	}
	if got := lines(at(5), time.Time{}); len(got) != 7 || got[0] != "Run go test ./..." {
		t.Errorf("from 5 s on = %q", got)
	}
	if all := lines(time.Time{}, time.Time{}); len(all) != 10 || cmp.Diff(all, lines(at(30), at(40))) != "" {
		t.Errorf("%d lines, and others when no line is in the step's time; want all 10: %q", len(all), all)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var w tail
	line := strings.Repeat("x", 99) + "\n"
	for range 50_000 {
		if _, err := w.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	w.Write([]byte("end"))
	if b := w.bytes(); len(b) > maxLogKept || len(b) < maxLogKept-200 || !strings.HasSuffix(string(b), line+"end") || !strings.HasPrefix(string(b), line) {
		t.Errorf("kept %d bytes, from %.20q to %q", len(b), b, b[len(b)-20:])
	}
	var small tail
	small.Write([]byte("a\nb"))
	if got := string(small.bytes()); got != "a\nb" {
		t.Errorf("a short log = %q", got)
	}
}

// escapes is what no terminal may ever get from a log.
var escapes = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f-\u009f]")

func FuzzCleanLog(f *testing.F) {
	f.Add([]byte(goLog), int64(5), int64(7))
	f.Add([]byte("\x1b[31merror: x\x1b[0m \x1b]8;;http://x\x1b\\link\x9b1m\r\n"), int64(0), int64(0))
	f.Add([]byte("\xff\xfe-----BEGIN PRIVATE KEY-----\nabc"), int64(-1), int64(1))
	f.Add([]byte("2026-13-99T99:99:99Z not a time\nghs_aaaaaaaaaaaaaaaaaaaaaaaaaa"), int64(1), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, from, to int64) {
		lines := cleanLog(raw, time.Unix(from, 0), time.Unix(to, 0))
		for _, l := range lines {
			if utf8.RuneCountInString(l) > logLine || strings.Contains(l, "\n") {
				t.Errorf("cleanLog(%q): line %q", raw, l)
			}
		}
		got := excerpt(lines)
		if !utf8.ValidString(got) || escapes.MatchString(got) || text.Scrub(got) != got {
			t.Errorf("excerpt of %q = %q", raw, got)
		}
		if n := utf8.RuneCountInString(got); n > logExcerpt+2 {
			t.Errorf("excerpt of %d bytes has %d characters", len(raw), n)
		}
		if strings.IndexFunc(got, func(r rune) bool { return r != '\u200d' && unicode.Is(unicode.Cf, r) }) >= 0 {
			t.Errorf("excerpt of %q has invisible characters: %q", raw, got)
		}
	})
}
