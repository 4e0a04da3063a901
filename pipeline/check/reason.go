package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

// reason is why a command ended with an error, as far as its output tells.
type reason struct {
	text  string // the lines that say it
	file  string
	line  int
	cause string
}

// buildMessages are the compilers' and interpreters' ways to refuse a file. Each
// names the groups file, line and text.
var buildMessages = []*lazyregexp.Regexp{
	lazyregexp.New(`^\[ERROR\] (?P<file>\S+\.(?:java|kt|scala|groovy)):\[(?P<line>\d+)(?:,\d+)?\] (?P<text>.*)`),                              // Maven
	lazyregexp.New(`^e: (?:file://)?(?P<file>/\S+\.kts?):(?: \()?(?P<line>\d+)[:,] ?\d+\)?:? ?(?P<text>.*)`),                                  // Kotlin
	lazyregexp.New(`^\s*(?P<file>\S+?)\((?P<line>\d+),\d+\): (?P<text>error [A-Z]+\d+: .*?)(?: \[[^\]]*proj\])?$`),                            // .NET, TypeScript
	lazyregexp.New(`^(?P<file>[\w./@+-]+\.tsx?):(?P<line>\d+):\d+ - (?P<text>error TS\d+: .*)`),                                               // TypeScript, pretty
	lazyregexp.New(`^(?P<file>[\w./@+-]+\.(?:java|c|cc|cpp|cxx|h|hpp|m|scala|swift)):(?P<line>\d+):(?:\d+:)? (?P<text>(?:fatal )?error: .*)`), // javac, C
	lazyregexp.New(`^(?:PHP )?(?P<text>(?:Parse|Fatal) error: .*?) in (?P<file>/\S+\.php)(?: on line |:)(?P<line>\d+)$`),                      // PHP
	lazyregexp.New(`^(?:\S*ruby\S*: )?(?P<file>[\w./@+-]+\.rb):(?P<line>\d+):(?P<text>.*(?:syntax error|SyntaxError|unexpected).*)`),          // Ruby
	lazyregexp.New(`^(?P<file>[\w./@+-]+\.\w+):(?P<line>\d+):(?:\d+:)? (?P<text>(?:syntax error|undefined:|cannot use|undeclared).*)`),        // Go and others
}

// tellingLines are other lines that say why a suite failed although its tests
// passed, or why none ran; the first kind that is found counts.
var tellingLines = []*lazyregexp.Regexp{
	lazyregexp.New(`(?m)^.*(?:Required test coverage of .* not reached|[Cc]overage .*(?:threshold|minimum).*|[Cc]overage failure: .*|ERROR: Coverage for .*).*$`),
	lazyregexp.New(`(?m)^.*(?:Segmentation fault|core dumped|SIGSEGV|SIGABRT|fatal runtime error|Out of memory|JavaScript heap out of memory).*$`),
	lazyregexp.New(`(?m)^.*WARNING: DATA RACE.*$`),
	lazyregexp.New(`(?m)^.*(?:Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|ImportError while loading conftest|INTERNALERROR> \w+).*$`),
}

var (
	tracebackLine = lazyregexp.New(`^\s*File "([^"]+)", line (\d+)`)
	conftestLine  = lazyregexp.New(`^([\w./-]+\.py):(\d+): in `)
	nodeErrorAt   = lazyregexp.New(`^(?:file://)?(/\S+\.[cm]?[jt]sx?):(\d+)$`)
)

// maxBuildErrors is how many messages of a compiler a failure repeats.
const maxBuildErrors = 10

// reasonOf looks for why a command failed in what it printed.
func reasonOf(text string) reason {
	lines := strings.Split(clean(text), "\n")
	if r := buildReason(lines); r.text != "" {
		return r
	}
	var r reason
	for _, pattern := range tellingLines {
		if r.text = strings.TrimSpace(pattern.FindString(strings.Join(lines, "\n"))); r.text != "" {
			break
		}
	}
	r.place(lines)
	for _, m := range pytestLine.FindAllStringSubmatch(strings.Join(lines, "\n"), maxBuildErrors) { // of a conftest.py
		r.text = strings.TrimSpace(r.text + "\n" + m[1])
	}
	if r.text == "" && r.file != "" {
		r.text = strings.TrimSpace(lastError(lines))
	}
	if syntaxWords.MatchString(r.text) {
		r.cause = causeSyntax
	}
	return r
}

// buildReason collects the messages of a compiler; the first one gives the place.
func buildReason(lines []string) reason {
	r := reason{}
	seen := map[string]bool{}
	var out []string
	for i, line := range lines {
		for _, pattern := range buildMessages {
			m := pattern.FindStringSubmatch(line)
			if m == nil || seen[line] || len(out) == maxBuildErrors {
				continue
			}
			seen[line] = true
			file, at := m[pattern.SubexpIndex("file")], m[pattern.SubexpIndex("line")]
			message := file + ":" + at + ": " + strings.TrimSpace(m[pattern.SubexpIndex("text")])
			for _, more := range lines[i+1:] { // what was not found, as Maven has it
				if !strings.HasPrefix(more, "  ") || !strings.Contains(more, ": ") && !strings.Contains(more, "^") {
					break
				}
				message += "\n" + more
			}
			out = append(out, message)
			if r.file == "" {
				r.file, r.line, r.cause = file, atoi(at), causeSyntax
			}
			break
		}
	}
	r.text = strings.Join(out, "\n")
	return r
}

// place finds where an interpreter gave up: the innermost frame of the last
// traceback that is not of an installed package.
func (r *reason) place(lines []string) {
	for _, line := range lines {
		for _, pattern := range []*lazyregexp.Regexp{tracebackLine, conftestLine, nodeErrorAt} {
			m := pattern.FindStringSubmatch(line)
			if m != nil && !strings.HasPrefix(m[1], "/usr/") && !strings.Contains(m[1], "-packages/") && !strings.Contains(m[1], "/node_modules/") && !strings.HasPrefix(m[1], "<") {
				r.file, r.line = m[1], atoi(m[2])
			}
		}
	}
}

// lastError is the last line that looks like an error's message.
func lastError(lines []string) string {
	out := ""
	for _, line := range lines {
		if found := errorLine.FindString(line); found != "" {
			out = found
		}
	}
	return out
}
