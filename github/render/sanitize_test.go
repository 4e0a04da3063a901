package render

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/text"
)

// What GitHub acts on, and must not be able to act on after prose.
var dangers = map[string]*regexp.Regexp{
	"a mention":                  regexp.MustCompile(`[@＠][A-Za-z0-9]`),
	"a tag or comment":           regexp.MustCompile(`<[A-Za-z/!?]`),
	"an image":                   regexp.MustCompile(`!\[`),
	"a link":                     regexp.MustCompile(`\]\(|\]\[|\]:`),
	"an entity":                  regexp.MustCompile(`&[A-Za-z#]`),
	"a reference":                regexp.MustCompile(`(?i)(#|gh-)\d`),
	"a closing keyword":          regexp.MustCompile(`(?i)(close[sd]?|fix(e[sd])?|resolve[sd]?)\b[\s:*_]*(#|gh-|https?://|[\w.-]+/[\w.-]+#)`),
	"an automatic www link":      regexp.MustCompile(`(?i)www\.`),
	"an invisible letter":        regexp.MustCompile(`[\x{202a}-\x{202e}\x{2066}-\x{2069}\x{e0000}-\x{e007f}\x{feff}\x{00ad}\x00-\x08\x{7f}]`),
	"a box to tick":              regexp.MustCompile(`(?m)^(?:[\s>*+-]|\d+[.)])*\[[ xX]\]`),
	"an alert":                   regexp.MustCompile(`(?i)\[!(note|tip|important|warning|caution)\]`),
	"a major release":            regexp.MustCompile(`(?im)^[\s|*]*breaking[ -]change`),
	"what keeps CI from running": regexp.MustCompile(`(?i)\[(?:skip|no)[ -](?:ci|actions)|\[ci skip|\*\*\*NO_CI|(?m)^skip-checks:`),
}

var anyURL = regexp.MustCompile(`(?i)(https?|ftp)://([^\s]*)`)

func danger(s string) string {
	for name, re := range dangers {
		if m := re.FindString(s); m != "" {
			return name + ": " + m
		}
	}
	for _, m := range anyURL.FindAllStringSubmatch(s, -1) {
		if !strings.HasPrefix(m[2], zwsp) && (m[1] == "ftp" ||
			!regexp.MustCompile(`^(?i)github\.com(/[^@\\]*)?$`).MatchString(strings.TrimRight(m[2], `)]*_.,;:!?'"`))) {
			return "a link to another host: " + m[0]
		}
	}
	return ""
}

// Covers S24: each line of the fixtures is a text that would make GitHub act.
func TestProse(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	n, harmless := 0, 0
	for l := range strings.Lines(string(raw)) {
		l = strings.NewReplacer(`\n`, "\n", `\u202e`, "\u202e", `\u200b`, "\u200b", `\u00ad`, "\u00ad", `\0`, "\x00", `\tag`,
			"\U000e0041").Replace(strings.TrimSuffix(l, "\n"))
		if l == "" {
			continue
		}
		n++
		if danger(l) == "" {
			harmless++
			t.Errorf("the fixture %q holds nothing dangerous: the test would not fail", l)
		}
		for name, got := range map[string]string{"prose": prose(l, "github.com"), "line": Line(l, "github.com", 500),
			"cell": cell(l, "github.com", 500), "block": Block(l, "github.com", 500)} {
			if d := danger(got); d != "" {
				t.Errorf("%s(%q) = %q still holds %s", name, l, got, d)
			}
		}
	}
	if n < 100 {
		t.Errorf("fixtures: %d, want at least 100", n)
	}
}

func TestProseKeeps(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain `code` and **bold**":                "plain `code` and **bold**",
		"see https://github.com/octo/repo/pull/3.": "see https://github.com/octo/repo/pull/3.",
		"a\tb\r\nc":                               "a\tb\nc",
		"Grüße, 世界 👩‍💻":                           "Grüße, 世界 👩‍💻",
		"x < 3":                                   "x <" + zwsp + " 3",
		"![a cat](https://x.example/cat.png)":     "[image: a cat]",
		"before <!-- forge:abab/status --> after": "before  after",
		"<img src=x onerror=alert(1)> there":      "[image] there",
		"fixes #3":                                "f" + zwsp + "ixes #" + zwsp + "3",
		"the fix is good, closes the file, resolve the DNS": "the fix is good, closes the file, resolve the DNS",
	} {
		if got := prose(in, "github.com"); got != want {
			t.Errorf("prose(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBlockClosesFences(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\n```go\nx":        "a\n```go\nx\n```",
		"```\nx\n```\nb":     "```\nx\n```\nb",
		"````\n```\nx":       "````\n```\nx\n````",
		"~~~\n```":           "~~~\n```\n~~~",
		"```not`a fence\nx":  "```not`a fence\nx",
		"```\nx\n``` not it": "```\nx\n``` not it\n```",
	} {
		if got := Block(in, "", 1000); got != want {
			t.Errorf("block(%q) = %q, want %q", in, got, want)
		}
	}
	long := Block("```\n"+strings.Repeat("x\n", 9000), "", 1000)
	if utf8.RuneCountInString(long) > 1010 || !strings.HasSuffix(long, "\n```") || !strings.Contains(long, "cut here") {
		t.Errorf("a long block: %d characters, end %q", utf8.RuneCountInString(long), long[len(long)-60:])
	}
}

func TestLineAndCode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\n\n# b": "a # b", "## head": "head", "```x": "'''x", "one ` tick": "one ' tick", "> quote": "quote", "~~~": "",
	} {
		if got := Line(in, "", 100); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
	if got := cell("a|b", "", 100); got != `a\|b` {
		t.Errorf("cell = %q", got)
	}
	if got := code("a`b\n@x"); got != "`a'b @x`" {
		t.Errorf("code = %q", got)
	}
	if got := text.Fence("suggestion", "a\n````\nb"); got != "`````suggestion\na\n````\nb\n`````" {
		t.Errorf("fence = %q", got)
	}
	if got := text.Fence("suggestion", ""); got != "```suggestion\n```" {
		t.Errorf("an empty fence = %q", got)
	}
}

// No text is longer than GitHub takes, and none loses its marker.
func TestLongRun(t *testing.T) {
	t.Parallel()
	s := rendertest.New(t)
	s.Bounced()
	huge := strings.Repeat("word @x <b> ``` ", 5000)
	s.Run.Plan.Summary, s.Run.Plan.Risks = huge, []string{huge, huge}
	for range 100 {
		s.Run.Plan.Steps = append(s.Run.Plan.Steps, huge)
		s.Run.Findings = append(s.Run.Findings, pipeline.Issue{
			Finding: &pipeline.Finding{Message: huge, Severity: pipeline.SeverityError, Fix: &pipeline.Fix{Description: huge}}, State: "open", First: 1,
			Last: 1})
		s.Run.Iterations[0].Review.Findings = append(s.Run.Iterations[0].Review.Findings, *s.Run.Findings[len(s.Run.Findings)-1].Finding)
	}
	s.Run.Iterations[0].Impl.Summary, s.Run.Iterations[0].Review.Summary = huge, huge
	s.Gate()
	v := testView(s.Run)
	d := v.Review(&s.Run.Iterations[0], s.Run.Iterations[0].Review.Findings, nil)
	f := s.Run.Findings[0].Finding
	f.Message, f.Fix = huge, &pipeline.Fix{Description: huge, Diff: huge}
	for name, body := range map[string]string{"status": v.Status(), "pull": v.PullBody(), "gate": v.Gate(&s.Run.Gates[0]), "history": v.History("history/1"),
		"review": d.Body, "comment": v.comment(f, anchor{}), "check": "<!-- forge:" + v.Check().Summary} {
		body := Parts(body)[0] // of the others, Parts has a test of its own
		if n := utf8.RuneCountInString(body); n > 65_500 || !strings.HasPrefix(body, "<!-- forge:") {
			t.Errorf("%s: %d characters, begins with %.30q", name, n, body)
		}
	}
	if len(v.PullTitle()) > 256 || len(v.Check().Title) > 255 {
		t.Error("a title is too long")
	}
}

func FuzzProse(f *testing.F) {
	raw, _ := os.ReadFile("testdata/hostile.txt")
	for l := range strings.Lines(string(raw)) {
		f.Add(strings.TrimSpace(l))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{prose(s, "github.com"), Line(s, "github.com", 200), Block(s, "github.com", 200)} {
			if d := danger(got); d != "" {
				t.Errorf("%q became %q, which holds %s", s, got, d)
			}
			if !utf8.ValidString(got) {
				t.Errorf("%q became %q, which is no UTF-8", s, got)
			}
		}
		if once := prose(s, "github.com"); strings.Contains(once, "<!-- forge:") {
			t.Errorf("%q carries a marker: %q", s, once)
		}
	})
}
