package github

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"forge/github/render"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

const (
	logBefore  = 5    // lines kept in front of the first error
	logAfter   = 40   // and behind it
	logLine    = 400  // characters of one line
	logExcerpt = 3000 // characters in all
)

var (
	// Colours, cursor movements, titles, and their 8-bit forms.
	ansi = lazyregexp.New("\x1b\\[[0-9;:<=>?]*[ -/]*[@-~]|\u009b[0-9;:<=>?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]")
	// GitHub Actions puts the time in front of every line.
	stampRule = lazyregexp.New(`^\x{feff}?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z) ?`)
	// The runner's own markers: ##[group]Run go test.
	marks = lazyregexp.New(`^##\[(group|section|command|warning|notice)\]`)
	// How the first line of a failure looks in the tools people use.
	errorLine = lazyregexp.New(`^\s*(?:##\[error\]|--- FAIL|FAIL\b|panic:|fatal(?: error)?:|Traceback \(most|not ok\b|E   |[✕✗✘●×] |\d+\) )|` +
		`\b(?:[A-Z]\w*)?(?:Error|Exception)\b(?:\[\w+\])?:|(?:^|[\s:])(?:error|ERROR)(?:\[\w+\]|\s+TS\d+)?:|\berror TS\d+|npm ERR!|\bFAILED\b|: undefined: |:\d+:\d+: `)
)

// cleanLog makes the lines of a job's log readable: no times, colours, progress
// bars, control characters and credentials. When times are given, only the lines
// between them are kept, if there are any: those of one step.
func cleanLog(raw []byte, from, to time.Time) []string {
	var all, step []string
	for l := range strings.SplitSeq(string(raw), "\n") {
		at, words := stamped(l)
		words, keep := cleanLine(words)
		if !keep {
			continue
		}
		all = append(all, words)
		// Steps have whole seconds: the last line may be in the one that follows.
		if !at.IsZero() && !from.IsZero() && !at.Before(from) && (to.IsZero() || at.Before(to.Add(time.Second))) {
			step = append(step, words)
		}
	}
	if len(step) > 0 {
		all = step
	}
	all = strings.Split(text.Scrub(strings.Join(all, "\n")), "\n")
	for i, l := range all {
		all[i] = render.Shorten(l, logLine)
	}
	return all
}

func stamped(l string) (time.Time, string) {
	m := stampRule.FindStringSubmatch(l)
	if m == nil {
		return time.Time{}, l
	}
	at, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil {
		return time.Time{}, l
	}
	return at, l[len(m[0]):]
}

// cleanLine reports false for a line that says nothing.
func cleanLine(l string) (string, bool) {
	l = ansi.ReplaceAllString(strings.ToValidUTF8(strings.TrimRight(l, "\r\n"), "�"), "")
	if i := strings.LastIndexByte(l, '\r'); i >= 0 { // a progress bar writes over itself
		l = l[i+1:]
	}
	l = strings.TrimRight(render.Visible(l), " \t")
	if strings.HasPrefix(l, "##[endgroup]") || strings.HasPrefix(l, "##[debug]") {
		return "", false
	}
	return marks.ReplaceAllString(l, ""), true
}

// excerpt cuts a log to the lines around the first error, and to its last lines
// when none looks like one. The error's own line comes first, without its place in
// the log, so that the failure keeps its identity when the log around it changes.
func excerpt(lines []string) string {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(lines) == 0 {
		return ""
	}
	at := slices.IndexFunc(lines, func(l string) bool { return errorLine.MatchString(l) && !exitLine.MatchString(l) })
	from, to := max(0, len(lines)-logAfter), len(lines)
	if at >= 0 {
		from, to = max(0, at-logBefore), min(len(lines), at+logAfter)
	} else {
		for at = len(lines) - 1; at > 0 && exitLine.MatchString(lines[at]); at-- { // the last words before the end
		}
	}
	first := strings.TrimSpace(strings.TrimPrefix(lines[at], "##[error]"))
	text := first
	if to-from > 1 {
		text += "\n\n" + strings.Join(lines[from:to], "\n")
	}
	if to < len(lines) {
		text += "\n…"
	}
	if utf8.RuneCountInString(text) > logExcerpt {
		text = render.Shorten(text, logExcerpt)
	}
	return text
}
