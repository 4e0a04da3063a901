package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// FirstLine returns the first line of a text that says something.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// OneLine makes one line of a text: every run of white space is one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Join puts the members of an enumeration into one text.
func Join[S ~string](list []S, separator string) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// Clip cuts a text to at most n characters; an ellipsis shows that it did.
func Clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n-1)]) + "…"
}

// Head returns at most the first n bytes of a text, without half a character at the end.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ClipBytes returns a text of at most n bytes as it is, and of a longer one its first
// n bytes with an ellipsis behind them.
func ClipBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + "…"
}

// Within cuts a text to at most n bytes, the ellipsis included.
func Within(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(Head(s, n-len("…"))) + "…"
}

// ShortSHA is a commit as people name it.
func ShortSHA(sha string) string { return sha[:min(len(sha), 7)] }

// Plural says a number of things: "1 run", "3 runs".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Size says a number of bytes, in powers of ten.
func Size(n int64) string {
	switch {
	case n < 1e3:
		return Plural(int(n), "byte", "bytes")
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// USD says an amount of money, given in millionths of a dollar, to the cent.
func USD(micro int64) string { return fmt.Sprintf("$%.2f", float64(micro)/1e6) }

// USDExact says an amount of money, given in millionths of a dollar, to a hundredth of
// a cent: single calls of a model cost little.
func USDExact(micro int64) string { return fmt.Sprintf("$%.4f", float64(micro)/1e6) }

// Fence puts a text into a Markdown code block, whose fence is longer than any run of
// backticks inside.
func Fence(lang, s string) string {
	longest, run := 2, 0
	for _, c := range s {
		if c == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	f := strings.Repeat("`", longest+1)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return f + lang + "\n" + s + f
}
