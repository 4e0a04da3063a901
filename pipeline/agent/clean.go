package agent

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// maxUntrusted caps text of people that goes into a prompt, in bytes.
const maxUntrusted = 64 << 10

var (
	htmlComment = lazyregexp.New(`(?s)<!--.*?(-->|$)`)
	htmlOther   = lazyregexp.New(`(?s)<[!?][^>]*(>|$)`)
	// An element that GitHub or a browser does not show.
	htmlHidden = lazyregexp.New(`(?is)<(script|style|template|noscript|title|object|iframe|svg|math)\b[^>]*>.*?(</(script|style|template|noscript|title|object|iframe|svg|math)\s*>|$)`)
	htmlUnseen = lazyregexp.New(`(?is)<([a-z][a-z0-9]*)\b[^>]*(\shidden\b|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0|color\s*:\s*(white|#fff|transparent))[^>]*>.*?(</[a-z][a-z0-9]*\s*>|$)`)
	htmlImage  = lazyregexp.New(`(?is)<img\b[^>]*>`)
	htmlTag    = lazyregexp.New(`(?s)<(/?[a-zA-Z][a-zA-Z0-9-]*)\s[^<>]*>`)
	mdImage    = lazyregexp.New(`!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])`)
	mdTitle    = lazyregexp.New(`(\]\([^)\s]*)\s+(?:"[^"]*"|'[^']*'|\([^)]*\))\s*\)`)
	mdRefTitle = lazyregexp.New(`(?m)^( {0,3}\[[^\]\n]+\]:\s*\S+)[ \t]+\S.*$`)
	mdRefNote  = lazyregexp.New(`(?m)^ {0,3}\[(//|comment|_|#)\]:.*$`)
	// Entities other than those of the characters that have a meaning in HTML.
	entity = lazyregexp.New(`&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)
)

// Clean takes out of a text what people do not see when GitHub shows it and a
// model would read: HTML comments, hidden elements, attributes, images with their
// alt texts, titles of links, entities, and characters without a width or with an
// effect on the direction of writing, among them the tag characters. What was
// words leaves a mark in brackets, so that nothing vanishes silently (S21). The
// result has at most 64 KiB.
func Clean(s string) string {
	most := 4 * maxUntrusted // of which what is hidden is taken out
	cut := len(s) > most
	s = strings.ReplaceAll(strings.ToValidUTF8(s[:min(len(s), most)], "\uFFFD"), "\r\n", "\n")
	s = strings.Map(text.Visible, s)
	for range 3 { // an entity may hide another
		next := strings.Map(text.Visible, entity.ReplaceAllStringFunc(s, decodeEntity))
		if next == s {
			break
		}
		s = next
	}
	s = htmlComment.ReplaceAllString(s, "[hidden comment removed]")
	s = htmlHidden.ReplaceAllString(s, "[hidden element removed]")
	s = htmlUnseen.ReplaceAllString(s, "[hidden element removed]")
	s = htmlImage.ReplaceAllString(s, "[image removed]")
	s = mdImage.ReplaceAllString(s, "[image removed]")
	s = htmlOther.ReplaceAllString(s, "[hidden comment removed]")
	s = htmlTag.ReplaceAllString(s, "<$1>")
	s = mdTitle.ReplaceAllString(s, "$1)")
	s = mdRefNote.ReplaceAllString(s, "[hidden comment removed]")
	s = mdRefTitle.ReplaceAllString(s, "$1")
	if cut || len(s) > maxUntrusted {
		n := min(len(s), maxUntrusted)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "\n[the rest was cut off]"
	}
	return s
}

// decodeEntity shows what an entity stands for, except markup, which stays quoted.
func decodeEntity(e string) string {
	d := html.UnescapeString(e)
	if d == "<" || d == ">" {
		return e
	}
	return d
}

// escaped shows characters of code that are not seen, that turn the direction of writing, or
// that end a line where none is seen to end, by their number: a model would read other code
// than runs.
func escaped(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t' || s[i:] == "\r" || strings.HasPrefix(s[i:], "\r\n"):
			b.WriteRune(r)
		case !unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
