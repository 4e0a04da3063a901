package text

import (
	"regexp"
	"strings"
	"testing"
)

// Covers S24 for commit messages. Each text is acted on by GitHub, git or a CI
// system when it is committed as it is; acts says by what it is recognised.
var attacks = []struct{ text, acts string }{
	{"x\n\ncloses owner/repo#2", closing}, {"Fixes #1", closing}, {"fixed: #1", closing}, {"RESOLVES  GH-7", closing}, {"Close #1, close #2", closing},
	{"resolved https://github.com/a/b/issues/3", closing}, {"fix\towner/repo#9", closing}, {"**Closes** #4", closing},
	{"clo\u200bses #4", closing}, {"closes \u202e#4", closing},
	{"ſ clo\u017fes #4", closing},
	{"see #12", reference}, {"owner/repo#12", reference}, {"gh-12", reference}, {"GH-12", reference}, {"AB#12", `#\d`}, {"PROJ-1 #close", `#\w`}, {"＃12", `＃\d`},
	{"https://github.com/a/b/pull/3", `https://github`}, {"HTTP://github.com/a/b/issues/3", `(?i)http://github`}, {"www.github.com/a/b/issues/3", `www\.`},
	{"thanks @octocat", mention}, {"@org/team", mention}, {"a@b.example", mention}, {"＠octocat", `＠\w`}, {"@dependabot merge", mention},
	{"a/b@0123456789abcdef0123456789abcdef01234567", mention},
	{"&#64;octocat", `&#64;`}, {"&commat;octocat", `&commat;`}, {"closes &#35;2", `&#35;`}, {"&#64octocat", `&#64`},
	{"x [skip ci]", skipped}, {"x [ci skip]", skipped}, {"[no ci]", skipped}, {"[skip actions]", skipped}, {"[actions skip]", skipped}, {"[SKIP CI]", skipped},
	{"[skip  ci]", skipped}, {"[ skip ci ]", skipped}, {"[skip-ci]", `(?i)\[skip`}, {"[skip circleci]", skipped}, {"[travis skip]", skipped},
	{"[skip netlify]", skipped}, {"[skip cd]", skipped},
	{"[sk\u200bip ci]", skipped}, {"[[skip ci]]", skipped}, {"***NO_CI***", `(?i)\*NO_CI`}, {"***no_ci***", `(?i)\*NO_CI`},
	{"x\n\n\nskip-checks:true", trailer}, {"x\n\n\nskip-checks: true", trailer}, {"x\n\nSkip-Checks: true", trailer}, {"x\n\nrequest-checks: true", trailer},
	{"x\n\nCo-authored-by: a <a@example.com>", trailer}, {"x\n\nco-authored-by:a", trailer}, {"x\n\n  Co-Authored-By : a", trailer},
	{"x\n\nCo\u00ad-authored-by: a", trailer},
	{"x\n\nSigned-off-by: Linus <l@example.com>", trailer}, {"x\rSigned-off-by: a", trailer}, {"x\u2028Signed-off-by: a", trailer},
	{"x\n\nReviewed-by: a", trailer}, {"x\n\nAcked-by: a", trailer},
	{"x\n\nOn-behalf-of: @org", trailer}, {"x\n\nRelease-As: 9.0.0", trailer}, {"x\n\nChange-Id: I1", trailer}, {"x\n\nCc: stable", trailer},
	{"x\n\nForge-Run: other/1", trailer}, {"Forge-Run: other/1", trailer}, {"x\n\nforge-run: other/1", trailer},
	{"x\n\n> Forge-Run: other/1", `Forge-Run: other`}, {"x\n\nForge\u2060-Run: other/1", trailer},
	{"x\n\nBREAKING CHANGE: all", major}, {"x\n\nBREAKING-CHANGE: all", major}, {"x\n\n* breaking change in all", major}, {"Breaking changes: all", major},
	{"fixup! an earlier one", `^fixup!`}, {"squash! an earlier one", `^squash!`}, {"amend! an earlier one", `^amend!`},
}

const (
	closing   = `(?i)\b(close[sd]?|fix(e[sd])?|resolve[sd]?)[\s:*_]+(#\d|gh-\d|[\w.-]+/[\w.-]+#\d|https?://\w)`
	reference = `(?i)(#|\bgh-)\d`
	mention   = `@\w`
	skipped   = `(?i)\[\s*(skip|no|ci|actions|travis)\s+\w+\s*\]`
	major     = `(?im)^[\s|*]*breaking[ -]change`
	trailer   = `(?im)^\s*(co-authored-by|signed-off-by|reviewed-by|acked-by|on-behalf-of|release-as|change-id|cc|skip-checks|request-checks|forge-run)\s*:`
)

func TestCommitMessageNeutralises(t *testing.T) {
	const ours = "Forge-Run: 7f3a/2"
	for _, tt := range attacks {
		acts := regexp.MustCompile(tt.acts)
		if !acts.MatchString(visible(tt.text)) && !strings.Contains(tt.text, "ſ") {
			t.Errorf("%q is not recognised by %s: the test shows nothing", tt.text, tt.acts)
		}
		got := CommitMessage(tt.text, ours)
		text, found := strings.CutSuffix(got, "\n\n"+ours+"\n")
		if !found {
			t.Errorf("CommitMessage(%q) = %q; want it to end with the trailer", tt.text, got)
		}
		if acts.MatchString(text) {
			t.Errorf("CommitMessage(%q) = %q; still acted on: %s", tt.text, got, tt.acts)
		}
		if n := len(regexp.MustCompile(`(?im)^\s*forge-run\s*:`).FindAllString(got, -1)); n != 1 {
			t.Errorf("CommitMessage(%q) = %q; has %d Forge-Run trailers", tt.text, got, n)
		}
		if read, want := strings.ReplaceAll(text, zwsp, ""), strings.TrimSpace(squeeze(visible(tt.text))); read != want {
			t.Errorf("CommitMessage(%q) reads %q; want %q", tt.text, read, want)
		}
		if again := CommitMessage(text, ours); again != got {
			t.Errorf("CommitMessage twice = %q, once %q", again, got)
		}
	}
}

func squeeze(s string) string { return regexp.MustCompile(`\n{3,}`).ReplaceAllString(s, "\n\n") }

func TestCommitMessageKeeps(t *testing.T) {
	for in, want := range map[string]string{
		"Round half to even\n\nThe total was wrong: 1.5 became 1.\n- see total.go": "Round half to even\n\nThe total was wrong: 1.5 became 1.\n- see total.go\n\nForge-Run: a/1\n",
		"one line": "one line\n\nForge-Run: a/1\n", "  \n\n  spaces \t\n\n\n\nbody  \n\n": "spaces\n\nbody\n\nForge-Run: a/1\n",
		"use [no-op] & a<b, x[1], C# and F#": "use [" + zwsp + "no-op] & a<b, x[1], C# and F#\n\nForge-Run: a/1\n",
		"note: fixes a bug":                  "note: fixes a bug\n\nForge-Run: a/1\n", "": "", " \x00\u200b\n": "",
		"👩‍💻 emoji": "👩‍💻 emoji\n\nForge-Run: a/1\n",
	} {
		if got := CommitMessage(in, "Forge-Run: a/1"); got != want {
			t.Errorf("CommitMessage(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CommitMessage("x", "A: 1\nB: 2", "C: 3"); got != "x\n\nA: 1 B: 2\nC: 3\n" {
		t.Errorf("trailers = %q", got)
	}
	if got := CommitMessage("x"); got != "x\n" {
		t.Errorf("without trailers = %q", got)
	}
	long := CommitMessage(strings.Repeat("äöü ", 40_000), "Forge-Run: a/1")
	if len(long) > maxMessage+100 || !strings.HasSuffix(long, "…\n\nForge-Run: a/1\n") || strings.ContainsRune(long, '\uFFFD') {
		t.Errorf("a long message has %d bytes and ends in %q", len(long), long[len(long)-40:])
	}
}

func FuzzCommitMessage(f *testing.F) {
	for _, a := range attacks {
		f.Add(a.text)
	}
	acts := []*regexp.Regexp{regexp.MustCompile(closing), regexp.MustCompile(reference), regexp.MustCompile(mention),
		regexp.MustCompile(trailer), regexp.MustCompile(`(?i)\[(skip|no) (ci|actions)\]|\[(ci|actions) skip\]`)}
	f.Fuzz(func(t *testing.T, s string) {
		got := CommitMessage(s, "X: 1")
		if got == "" {
			return
		}
		text, found := strings.CutSuffix(got, "\n\nX: 1\n")
		if !found {
			t.Fatalf("CommitMessage(%q) = %q", s, got)
		}
		for _, re := range acts {
			if m := re.FindString(text); m != "" {
				t.Errorf("CommitMessage(%q) = %q holds %q", s, got, m)
			}
		}
	})
}
