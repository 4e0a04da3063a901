package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	tapPoint     = lazyregexp.New(`^( *)(not ok|ok)\b(?: +\d+)?(?: +(.*))?$`)
	tapPlan      = lazyregexp.New(`^1\.\.(\d+)`)
	tapDirective = lazyregexp.New(`(?i)(?:^|[^\\])# *(skip|todo)\b`)
	tapKey       = lazyregexp.New(`^(\w+): ?(.*)$`)
	jsFrame      = lazyregexp.New(`(?m)(?:\(|at |^\s*|file://)(/[^\n():]+):(\d+):\d+\)?`)
	errorLine    = lazyregexp.New(`(?m)^\s*(?:Uncaught )?\w*(?:Error|Exception)\b.*$`)
)

// tapReader reads the Test Anything Protocol, versions 12 to 14, with subtests
// indented by four spaces.
type tapReader struct {
	r        result
	levels   []int  // of r.cases; -1 once a case belongs to its parent
	comments string // since the last test point
	planned  int    // -1: no plan seen
	points   int    // at the top level
	bail     string
	bailed   bool
}

// parseTAP reads the output of a TAP producer; other lines in it are ignored.
func parseTAP(out []byte) result {
	t := &tapReader{planned: -1}
	lines := strings.Split(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := tapPoint.FindStringSubmatch(line); m != nil {
			var diag map[string]string
			diag, i = tapDiagnostics(lines, i)
			t.point(len(m[1])/4, m[2] == "ok", m[3], diag)
			continue
		}
		switch {
		case strings.HasPrefix(line, "Bail out!"):
			t.bailed, t.bail = true, strings.TrimSpace(strings.TrimPrefix(line, "Bail out!"))
		case tapPlan.MatchString(line):
			t.planned = atoi(tapPlan.FindStringSubmatch(line)[1])
		case strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "# Subtest") && len(t.comments) < maxTestOutput:
			t.comments += line[2:] + "\n"
		}
	}
	t.finish()
	return t.r
}

// finish holds the plan against what came.
func (t *tapReader) finish() {
	switch {
	case t.bailed:
		t.r.partial = true
		t.r.add(testcase{name: "Bail out!", status: failed, whole: true, err: shorten("the tests were broken off: " + t.bail)})
	case t.planned >= 0 && t.points < t.planned:
		t.r.partial = true
	case t.planned < 0:
		t.r.partial = true
	}
}

// point takes one test point in. The points one level deeper since the last one
// on this level are its subtests: they count in its stead.
func (t *tapReader) point(level int, ok bool, text string, diag map[string]string) {
	if level == 0 {
		t.points++
	}
	c := testcase{status: passed}
	text = strings.TrimSpace(text)
	if m := tapDirective.FindStringIndex(text); m != nil {
		c.status = skipped // a TODO may fail, and is not done when it passes
		text = text[:strings.LastIndexByte(text[:m[1]], '#')]
	} else if !ok {
		c.status = failed
	}
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "- "))
	c.name = strings.NewReplacer(`\#`, "#", `\\`, `\`).Replace(text)
	if c.name == "" {
		c.name = "unnamed test"
	}
	children, broken := t.adopt(level, c.name)
	if c.status == failed && !broken {
		t.explain(&c, diag)
	} else if c.status == failed {
		c.status = carrier
	}
	if level == 0 {
		t.comments = ""
	}
	if children && c.status != failed && c.status != carrier {
		return
	}
	t.r.add(c)
	t.levels = append(t.levels, level)
}

// adopt gives the loose cases deeper than level to the test of that name.
func (t *tapReader) adopt(level int, name string) (children, broken bool) {
	for i := len(t.levels) - 1; i >= 0 && t.levels[i] > level; i-- {
		c := &t.r.cases[i]
		c.name = name + " > " + c.name
		t.levels[i] = level + 1
		children = true
		broken = broken || c.status == failed
	}
	if children {
		for i := len(t.levels) - 1; i >= 0 && t.levels[i] == level+1; i-- {
			t.levels[i] = level // they travel with their parent when it is adopted in turn
			if level == 0 {
				t.levels[i] = -1
			}
		}
	}
	return children, broken
}

// explain fills in why a test failed, and where.
func (t *tapReader) explain(c *testcase, diag map[string]string) {
	message := diag["error"]
	if message == "" {
		message = diag["message"]
	}
	if d := diag["failureType"]; message == "" && d != "" {
		message = d
	}
	if (message == "" || message == "test failed") && t.comments != "" {
		message = t.comments // a file that broke before its first test
		locateJS(c, message)
		if first := errorLine.FindString(message); first != "" {
			message = strings.TrimSpace(first) + "\n" + message
		}
	}
	if syntaxWords.MatchString(message) {
		c.cause = causeSyntax
	}
	if diag["exitCode"] != "" || strings.HasPrefix(c.name, "/") {
		c.whole, c.group = true, c.name
		t.r.partial = true
	}
	c.err = shorten(message)
	if expected, actual := diag["expected"], diag["actual"]; expected != "" && actual != "" && !strings.Contains(c.err, actual) {
		c.err = shorten(strings.TrimSpace(c.err + "\nexpected: " + expected + "\nactual: " + actual))
	}
	if stack := diag["stack"] + "\n" + diag["at"]; c.file == "" || strings.TrimSpace(stack) != "" {
		locateJS(c, stack)
	}
	if c.file == "" {
		locateJS(c, diag["location"])
	}
}

// locateJS finds the first frame of a JavaScript stack that is in the repository.
func locateJS(c *testcase, stack string) {
	for _, m := range jsFrame.FindAllStringSubmatch(stack, -1) {
		if !strings.Contains(m[1], "/node_modules/") {
			c.file, c.line = m[1], atoi(m[2])
			return
		}
	}
}

// tapDiagnostics reads the YAML block after the test point at line i, if there is
// one, and returns the index of its last line. Only top-level keys count.
func tapDiagnostics(lines []string, i int) (map[string]string, int) {
	if i+1 >= len(lines) || strings.TrimSpace(lines[i+1]) != "---" {
		return nil, i
	}
	pad := lines[i+1][:len(lines[i+1])-len(strings.TrimLeft(lines[i+1], " "))]
	out := map[string]string{}
	key := ""
	for j := i + 2; j < len(lines); j++ {
		line, inside := strings.CutPrefix(lines[j], pad)
		if !inside && strings.TrimSpace(lines[j]) != "" {
			return out, j - 1 // not closed
		}
		if line == "..." {
			return out, j
		}
		if m := tapKey.FindStringSubmatch(line); m != nil {
			key = m[1]
			out[key] = unquoteYAML(m[2])
		} else if key != "" && len(out[key]) < maxTestOutput {
			out[key] = strings.TrimPrefix(out[key]+"\n"+strings.TrimPrefix(line, "  "), "\n")
		}
	}
	return out, len(lines)
}

func unquoteYAML(s string) string {
	s = strings.TrimSpace(s)
	switch {
	case s == "~", strings.HasPrefix(s, "|"), strings.HasPrefix(s, ">"):
		return ""
	case len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'':
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	case len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"':
		return strings.NewReplacer(`\"`, `"`, `\n`, "\n", `\\`, `\`).Replace(s[1 : len(s)-1])
	}
	return s
}
