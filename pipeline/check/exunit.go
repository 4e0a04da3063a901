package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	exModule  = lazyregexp.New(`^(\S+) \[(\S+\.exs)\]$`)
	exTest    = lazyregexp.New(`\* (\w+ .+?) \((skipped|excluded|[\d.]+ms)\) \[L#(\d+)\]`)
	exFailure = lazyregexp.New(`^\s+\d+\) (.+) \(([\w.]+)\)$`)
	exPlace   = lazyregexp.New(`^\s+(\S+\.exs?):(\d+)(?::|$)`)
	exEnd     = lazyregexp.New(`^(?:Finished in |\s*\* \w|\S+ \[\S+\.exs\]$|Randomized with seed)`)
)

// parseExUnit reads what `mix test --trace` prints. A test's name is
// "Module.test name".
func parseExUnit(out []byte) result {
	var r result
	module, file := "", ""
	index := map[string]int{}
	lines := strings.Split(clean(string(out)), "\n")
	ended := false
	for i, line := range lines {
		ended = ended || strings.HasPrefix(line, "Finished in ")
		if m := exModule.FindStringSubmatch(line); m != nil {
			module, file = m[1], m[2]
			continue
		}
		if m := exTest.FindStringSubmatch(line); m != nil {
			c := testcase{name: module + "." + m[1], group: module, status: passed, file: file, line: atoi(m[3])}
			if !strings.HasSuffix(m[2], "ms") {
				c.status = skipped
			}
			index[c.name] = len(r.cases)
			r.add(c)
			continue
		}
		if m := exFailure.FindStringSubmatch(line); m != nil {
			if k, ok := index[m[2]+"."+m[1]]; ok {
				explainExUnit(&r.cases[k], lines[i+1:])
			} else { // ExUnit names a test before or after its result, by version
				c := testcase{name: m[2] + "." + m[1], group: m[2], status: failed}
				explainExUnit(&c, lines[i+1:])
				index[c.name] = len(r.cases)
				r.add(c)
			}
		}
	}
	r.partial = !ended
	return r
}

// explainExUnit reads the section of a failing test.
func explainExUnit(c *testcase, lines []string) {
	c.status = failed
	var text []string
	stack := false
	for i, line := range lines {
		if exEnd.MatchString(line) || exFailure.MatchString(line) {
			break
		}
		if m := exPlace.FindStringSubmatch(line); m != nil && !strings.HasPrefix(strings.TrimSpace(line), "(") {
			c.file, c.line = m[1], atoi(m[2])
			if i == 0 || stack {
				continue
			}
		}
		if strings.TrimSpace(line) == "stacktrace:" {
			stack = true
			continue
		}
		if !stack {
			text = append(text, strings.TrimPrefix(line, "     "))
		}
	}
	c.err = shorten(strings.TrimSpace(strings.Join(text, "\n")))
}
