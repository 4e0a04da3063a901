package text

import (
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// maxMessage bounds a commit message, in bytes.
const maxMessage = 16 << 10

// zwsp is a space without width. Put behind the first character of whatever GitHub,
// git or a CI system would act on, it takes the action away and leaves the text as
// it reads.
const zwsp = "\u200b"

// breaks are what is acted on in a commit message, each with what is put in its
// place. They are applied in this order.
var breaks = []struct {
	find *lazyregexp.Regexp
	with string
}{
	// Trailers that credit or sign for somebody, that GitHub, Gerrit and release-please
	// obey, or that are Forge's own, wherever they stand and however they are indented.
	{lazyregexp.New(`(?im)^([\s>*_` + "`" + `]*)([a-z])([a-z]*-?(?:[a-z]+-)*by|orge-[a-z-]+|n-behalf-of|kip-checks|equest-checks|elease-as|hange-id|c|it-svn-id)([\s*_` + "`" + `]*:)`), "${1}${2}" + zwsp + "${3}${4}"},
	// A major release, for bots that make them of commit messages.
	{lazyregexp.New(`(?im)^([\s>*|_` + "`" + `]*b)(reaking[ -]change)`), "${1}" + zwsp + "${2}"},
	// [skip ci], [ci skip], [no ci], [skip actions] and their like; ***NO_CI*** is Azure's.
	{lazyregexp.New(`(?i)\[([^\[\]\n]{0,80}\b(?:skip|no|only)\b)`), "[" + zwsp + "${1}"},
	{lazyregexp.New(`(?i)(\*{2,}\s*N)(O[_ -]?CI)`), "${1}" + zwsp + "${2}"},
	// Closing keywords before a reference; references; mentions, commits of others.
	{lazyregexp.New("(?i)(c|f|r)(lose[sd]?|ix(?:e[sd])?|esolve[sd]?)(\\b[\\s:*_`~\\\\]*(?:#|gh-|[\\w.-]+/[\\w.-]+\\\\?#|https?://))"),
		"${1}" + zwsp + "${2}${3}"},
	{lazyregexp.New(`(?i)(gh-)(\d)`), "${1}" + zwsp + "${2}"},
	{lazyregexp.New(`([#＃])([^\s#])`), "${1}" + zwsp + "${2}"}, // also Jira's #close and AB#12
	{lazyregexp.New(`([@＠])`), "${1}" + zwsp},
	// An address of an issue is a reference to it; entities can spell any of the above.
	{lazyregexp.New(`(?i)((?:https?|ftp)://)`), "${1}" + zwsp},
	{lazyregexp.New(`(?i)(www)\.`), "${1}" + zwsp + "."},
	{lazyregexp.New(`&(#?\w+;?)`), "&" + zwsp + "${1}"},
	// What a later rebase --autosquash would fold into another commit.
	{lazyregexp.New(`^((?:fixup|squash|amend))!`), "${1}" + zwsp + "!"},
}

// CommitMessage makes a commit message of text that nobody vouches for, and trailers
// that the caller does ("Forge-Run: 7f3a/2"). Nothing in the text is acted on: it
// closes and mentions nothing, skips no checks, and has no trailers of its own. The
// message ends with the trailers as they were given, in a paragraph of their own,
// and is empty when the text is.
func CommitMessage(message string, trailers ...string) string {
	message = visible(message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue // at the start, or one more empty line
		}
		lines = append(lines, line)
	}
	message = strings.TrimSpace(strings.Join(lines, "\n"))
	for _, b := range breaks {
		message = b.find.ReplaceAllString(message, b.with)
	}
	if message == "" {
		return ""
	}
	message += "\n"
	for i, t := range trailers {
		if i == 0 {
			message += "\n"
		}
		message += strings.Join(strings.Fields(visible(t)), " ") + "\n"
	}
	return message
}

// visible drops what people cannot see but programs act on: control characters,
// zero-width and bidirectional ones, tag blocks, and bytes that are no UTF-8.
func visible(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r', r == '\v', r == '\f', r == 0x85, r == 0x2028, r == 0x2029: // ends of lines, to somebody
			return '\n'
		case r == '\u200d', r == '\ufe0f': // inside emoji
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r >= 0xE0000 && r <= 0xE0FFF:
			return -1
		}
		return r
	}, s)
}
