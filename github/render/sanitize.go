package render

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"forge/pipeline/lazyregexp"
)

// MaxText bounds what is written into one body, in characters. GitHub's own limit
// is 65,536 (github/README, 2.4); the rest is for marker and frame.
const MaxText = 65_000

// zwsp is a space without width. Put behind the first character of whatever
// GitHub would act on, it takes the action away and leaves the text as it reads,
// in prose and in code alike; escapes and entities would show in code.
const zwsp = "\u200b"

var (
	htmlComment = lazyregexp.New(`(?s)<!--.*?(-->|$)`)
	image       = lazyregexp.New(`!\[([^\]\n]*)\](\([^)\n]*\)|\[[^\]\n]*\])?`)
	imageTag    = lazyregexp.New(`(?i)<(img|picture|source|svg|video|audio|iframe|object|embed)\b[^>]*>?`)
	address     = lazyregexp.New(`(?i)(https?|ftp)://[^\s<]*`)
	plainURL    = lazyregexp.New(`^(?i)https?://[a-z0-9.:-]+(/[a-z0-9/_.#?=&%~+,-]*)?[)\]*_.,;:!?'"]*$`)
	www         = lazyregexp.New(`(?i)(www)\.`)
	closing     = lazyregexp.New("(?i)(c|f|r)(lose[sd]?|ix(?:e[sd])?|esolve[sd]?)(\\b[\\s:*_`~\\\\]*(?:#|gh-|[\\w.-]+/[\\w.-]+\\\\?#|https?://))")
	// A merge makes a commit message of a pull request's title and body: these keep CI from running.
	skipsCI     = lazyregexp.New(`(?i)\[((?:skip|no)[ _-]*(?:ci|actions?|checks?|pipelines?|builds?|tests?|azurepipelines|github[ -]actions)|(?:ci|actions?|azurepipelines|travis|circleci|azp|pipelines?)[ _-]*(?:skip|no))\b`)
	skipTrailer = lazyregexp.New(`(?im)^([\s>*_]*s)(kip-checks\s*:)|(\*{2,}\s*N)(O[_ -]?CI)`)
	// And this has bots make a major release.
	breaking = lazyregexp.New("(?im)^([\\s>*|_`]*b)(reaking[ -]change)")
	// Whoever ticks a box says what stands behind it: only Forge's own can be ticked.
	taskBox = lazyregexp.New(`(?m)^((?:[ \t]*(?:>|[-*+]|\d{1,9}[.)]))*[ \t]*)\[([ \t\x{a0}xX])\]`)
	// GitHub shows `> [!TIP]` as a box of its own, which people take for Forge's word.
	alert     = lazyregexp.New(`(?i)\[!(note|tip|important|warning|caution)\]`)
	reference = lazyregexp.New(`(?i)(#|gh-)(\d)`)
)

// prose makes text of a model or a person harmless on GitHub (S24): no HTML, no
// image, no mention, no closing keyword or reference, no link but to the GitHub
// host itself, nothing invisible. The patterns ask for no word boundary: markup
// can stand where a boundary is looked for.
func prose(s, host string) string {
	s = Visible(s)
	s = htmlComment.ReplaceAllString(s, "")
	s = image.ReplaceAllString(s, "[image: $1]")
	s = imageTag.ReplaceAllString(s, "[image]")
	s = closing.ReplaceAllString(s, "${1}"+zwsp+"${2}${3}")
	s = address.ReplaceAllStringFunc(s, func(u string) string {
		if allowed(u, host) {
			return u
		}
		return strings.Replace(u, "://", "://"+zwsp, 1)
	})
	s = skipsCI.ReplaceAllString(s, "["+zwsp+"${1}")
	s = skipTrailer.ReplaceAllString(s, "${1}${3}"+zwsp+"${2}${4}")
	s = breaking.ReplaceAllString(s, "${1}"+zwsp+"${2}")
	s = taskBox.ReplaceAllString(s, "${1}["+zwsp+"${2}]")
	s = alert.ReplaceAllString(s, "["+zwsp+"!${1}]")
	s = www.ReplaceAllString(s, "${1}"+zwsp+".")
	s = reference.ReplaceAllString(s, "${1}"+zwsp+"${2}")
	return breakers.Replace(s)
}

// breakers takes the meaning from what begins a tag, a mention, an entity, an
// image, or the target of a link.
var breakers = strings.NewReplacer("<", "<"+zwsp, "@", "@"+zwsp, "＠", "＠"+zwsp, "&", "&"+zwsp,
	"![", "!"+zwsp+"[", "](", "]"+zwsp+"(", "][", "]"+zwsp+"[", "]:", "]"+zwsp+":")

// allowed reports whether an address is a plain one on the GitHub host.
func allowed(raw, host string) bool {
	if !plainURL.MatchString(raw) {
		return false
	}
	u, err := url.Parse(strings.TrimRight(raw, `)]*_.,;:!?'"`))
	return err == nil && strings.EqualFold(u.Host, host)
}

// Visible drops what people cannot see but programs act on: control characters,
// zero-width and bidirectional ones, tag blocks, and bytes that are no UTF-8.
func Visible(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u200d' || r == '\ufe0f': // inside emoji
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r >= 0xE0000 && r <= 0xE0FFF, r == 0x2028 || r == 0x2029:
			return -1
		}
		return r
	}, s)
}

// Line is prose in one line, at most n characters, whose backticks are paired.
func Line(s, host string, n int) string {
	s = Shorten(strings.Join(strings.Fields(prose(Head(s, n), host)), " "), n)
	if strings.Count(s, "`")%2 != 0 {
		s = strings.ReplaceAll(s, "`", "'")
	}
	if t := strings.TrimLeft(s, "~#>"); t != s { // no fence, heading or quote
		s = strings.TrimSpace(t)
	}
	return s
}

// cell is a line that may stand in a table.
func cell(s, host string, n int) string { return strings.ReplaceAll(Line(s, host, n), "|", `\|`) }

// Block is prose in several lines, at most n characters, whose code blocks are closed.
func Block(s, host string, n int) string {
	s = Cut(prose(strings.TrimSpace(Head(s, n)), host), n)
	open := ""
	for l := range strings.Lines(s) {
		t := strings.TrimSpace(l)
		run := len(t) - len(strings.TrimLeft(t, "`"))
		if run < 3 {
			run = len(t) - len(strings.TrimLeft(t, "~"))
		}
		switch {
		case run < 3:
		case open == "":
			if t[0] == '~' || !strings.Contains(t[run:], "`") {
				open = t[:run]
			}
		case t[0] == open[0] && run >= len(open) && t == t[:run]:
			open = ""
		}
	}
	if open != "" {
		s = strings.TrimRight(s, "\n") + "\n" + open
	}
	return s
}

// Head drops what a text of n characters cannot show anyway, before any work is
// spent on it: a model can write without end.
func Head(s string, n int) string {
	if limit := 4*n + 1000; len(s) > limit { // 4 bytes are the longest character
		return strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// Cut shortens a long text to n characters, and says so.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	const note = "\n\n(cut here: too long for a comment)"
	return string([]rune(s)[:max(0, n-utf8.RuneCountInString(note))]) + note
}

// Shorten cuts a line to n characters with an ellipsis.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}

// code shows a name, a path or a command as it is.
func code(s string) string {
	s = strings.Join(strings.Fields(Visible(s)), " ")
	s = strings.ReplaceAll(s, "`", "'")
	if s == "" {
		return ""
	}
	return "`" + Shorten(s, 300) + "`"
}

// Folded hides a text behind a heading to click on. The heading is Forge's own.
func Folded(heading, text string) string {
	return "<details><summary>" + heading + "</summary>\n\n" + text + "\n\n</details>"
}
