package production

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// The forms of a stack's lines.
var (
	frameGo     = lazyregexp.New(`^\s+(\S+\.go):(\d{1,7})(?: \+0x[0-9a-f]+)?\s*$`)
	framePython = lazyregexp.New(`^\s*File "([^"]+)", line (\d{1,7})(?:, in (\S+))?`)
	frameCall   = lazyregexp.New(`^\s*at (?:async )?(.+?) ?\(([^()]+?):(\d{1,7})(?::\d+)?\)(?: \{)?\s*$`) // JavaScript, Java
	frameBare   = lazyregexp.New(`^\s*at (?:async )?([^()\s]+?):(\d{1,7})(?::\d+)?(?: \{)?\s*$`)
	frameRuby   = lazyregexp.New("^\\s*(?:from )?(\\S+\\.rb):(\\d{1,7}):in [`']([^']+)'")
	causedBy    = lazyregexp.New(`^\s*(?:Caused by|\[cause\]): `)
	suppressed  = lazyregexp.New(`^\s+Suppressed: `)
)

// maxStack is how much of a stack's text is read, in bytes.
const maxStack = 64 << 10

// Frames reads a stack of Go, Python, JavaScript, Java or Ruby as it is printed. The
// innermost frame comes first: that of what caused it all.
func Frames(stack string) []Frame {
	var out, caused []Frame // of the error that is being read, and of those that it caused
	python, above, aside := false, "", -1
	for l := range strings.Lines(text.Head(stack, maxStack)) {
		l = strings.TrimRight(l, "\r\n")
		indent := len(l) - len(strings.TrimLeft(l, " \t"))
		if aside >= 0 && indent > aside { // what failed while an error was dealt with is not its cause
			continue
		}
		aside = -1
		switch {
		case suppressed.MatchString(l):
			aside = indent
		case causedBy.MatchString(l):
			out, caused = nil, append(out, caused...)
		case frameGo.MatchString(l):
			m := frameGo.FindStringSubmatch(l)
			function := goFunction(above)
			if out = append(out, newFrame(m[1], whole(m[2]), function)); function == "panic" {
				out = nil // what is above it is what recovered
			}
		case framePython.MatchString(l):
			m := framePython.FindStringSubmatch(l)
			python = true
			out = append(out, newFrame(m[1], whole(m[2]), m[3]))
		case frameCall.MatchString(l):
			m := frameCall.FindStringSubmatch(l)
			out = append(out, newFrame(m[2], whole(m[3]), m[1]))
		case frameBare.MatchString(l):
			m := frameBare.FindStringSubmatch(l)
			out = append(out, newFrame(m[1], whole(m[2]), ""))
		case frameRuby.MatchString(l):
			m := frameRuby.FindStringSubmatch(l)
			out = append(out, newFrame(m[1], whole(m[2]), m[3]))
		}
		above = l
	}
	if python { // whose most recent call is last
		slices.Reverse(out)
	}
	out = append(out, caused...)
	return out[:min(len(out), maxFrames)]
}

// goFunction is the function of the line that stands above a frame of Go.
func goFunction(l string) string {
	l = strings.TrimPrefix(strings.TrimSpace(l), "created by ")
	if i := strings.LastIndexByte(l, '('); i > 0 {
		l = l[:i]
	}
	return l
}

// elsewhere are parts of paths of code that a program builds on.
var elsewhere = []string{"/node_modules/", "node:", "/site-packages/", "/dist-packages/", "/lib/python", "/usr/lib/", "/usr/local/go/",
	"/go/pkg/mod/", "/vendor/", "/gems/",
	"<frozen ", "<anonymous>", "internal/process/", "/libexec/"}

// newFrame cleans a frame, and judges by its path whether it is of the program itself.
func newFrame(file string, n int, function string) Frame {
	f := Frame{File: strings.TrimPrefix(name(file), "file://"), Line: n, Function: name(function)}
	padded := "/" + strings.TrimLeft(f.File, "/")
	f.InApp = f.File != "" && !slices.ContainsFunc(elsewhere, func(s string) bool { return strings.Contains(padded, s) })
	for _, p := range []string{"java.", "javax.", "jdk.", "sun.", "org.springframework.", "runtime.", "runtime/", "net/http."} {
		f.InApp = f.InApp && !strings.HasPrefix(f.Function, p)
	}
	return f
}
