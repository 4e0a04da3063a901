package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	pyTest    = lazyregexp.New(`^ *(\w+) \(([\w.]+)\)((?: [\[(].*[\])])?)(?: \.\.\. ?(.*))?$`)
	pyStatus  = lazyregexp.New(`(?:^|\.\.\. |[^\w])(ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)$`)
	pySection = lazyregexp.New(`^(FAIL|ERROR): (\w+) \(([\w.]+)\)((?: [\[(].*[\])])?)$`)
	pyFrame   = lazyregexp.New(`^\s+File "([^"]+)", line (\d+)`)
	pyRan     = lazyregexp.New(`^Ran \d+ tests? in `)
)

// unittestReader reads what `python3 -m unittest -v` prints.
type unittestReader struct {
	r       result
	index   map[string]int
	pending string // a test whose status has not come yet
}

// parseUnittest reads the verbose text of Python's unittest. A test's name is its
// dotted id; a subtest adds its parameters: "mod.Class.test (i=1)".
func parseUnittest(out []byte) result {
	u := &unittestReader{index: map[string]int{}}
	lines := strings.Split(clean(string(out)), "\n")
	ended := false
	for i, line := range lines {
		if m := pySection.FindStringSubmatch(line); m != nil {
			u.section(m, lines[i+1:])
			continue
		}
		if pyRan.MatchString(line) {
			ended = true
		}
		if strings.HasPrefix(line, "=====") {
			u.pending = ""
		}
		u.line(line)
	}
	if u.r.partial = !ended; !ended && u.pending != "" {
		u.r.add(testcase{name: u.pending, group: u.pending, status: failed, cause: causeRuntime, stuck: true,
			err: "the test did not finish: it hung, or its process was ended"})
	}
	return u.r
}

func (u *unittestReader) line(line string) {
	if m := pyTest.FindStringSubmatch(line); m != nil {
		u.pending = pyName(m[1], m[2], m[3])
		if m[4] != "" {
			u.status(m[4])
		}
		return
	}
	if u.pending != "" {
		if m := pyStatus.FindStringSubmatch(line); m != nil {
			u.status(m[1])
		}
	}
}

func (u *unittestReader) status(text string) {
	m := pyStatus.FindStringSubmatch(text)
	if m == nil {
		return // the test wrote something of its own first
	}
	c := testcase{name: u.pending, group: u.pending, again: u.pending, status: passed}
	if i := strings.LastIndexByte(strings.SplitN(c.name, " ", 2)[0], '.'); i > 0 {
		c.group = c.name[:i]
	}
	switch word, _, _ := strings.Cut(m[1], " "); word {
	case "FAIL", "ERROR", "unexpected":
		c.status, c.err = failed, "the test failed: "+m[1]
	case "skipped", "expected":
		c.status = skipped
	}
	if i := strings.Index(c.again, " "); i > 0 {
		c.again = c.again[:i]
	}
	u.index[c.name] = len(u.r.cases)
	u.r.add(c)
	u.pending = ""
}

// section reads why a test failed; fixtures and subtests appear only here.
func (u *unittestReader) section(m, lines []string) {
	name := pyName(m[2], m[3], m[4])
	if whole := pyName(m[2], m[3], ""); m[4] != "" {
		if _, known := u.index[whole]; !known { // unittest says nothing of a test whose subtests failed
			u.index[whole] = len(u.r.cases)
			u.r.add(testcase{name: whole, group: m[3], status: carrier})
		}
	}
	k, ok := u.index[name]
	if !ok {
		k = len(u.r.cases)
		u.index[name] = k
		u.r.add(testcase{name: name, group: m[3], status: failed})
	}
	c := &u.r.cases[k]
	if strings.Contains(name, "_FailedTest") || m[2] == "setUpClass" || m[2] == "setUpModule" {
		c.whole, c.again = true, ""
		if _, mod, ok := strings.Cut(name, "_FailedTest."); ok {
			c.name, c.group = mod, mod
		}
		u.r.lose(c.group)
	}
	var message []string
	for _, line := range lines {
		if strings.HasPrefix(line, "=====") || pyRan.MatchString(line) {
			break
		}
		if f := pyFrame.FindStringSubmatch(line); f != nil {
			if !strings.Contains(f[1], "/lib/python") && !strings.Contains(f[1], "site-packages") {
				c.file, c.line = f[1], atoi(f[2])
			}
			message = nil
			continue
		}
		if strings.HasPrefix(line, "    ") && len(message) == 0 || strings.HasPrefix(line, "-----") {
			continue // the frame's source
		}
		message = append(message, line)
	}
	if text := shorten(strings.TrimSpace(strings.Join(message, "\n"))); text != "" {
		c.err = text
	}
	if syntaxWords.MatchString(c.err) {
		c.cause = causeSyntax
	}
}

// pyName is a test's dotted id. Before Python 3.11 the part in brackets lacked
// the method.
func pyName(method, id, params string) string {
	if !strings.HasSuffix(id, "."+method) {
		id += "." + method
	}
	return id + params
}
