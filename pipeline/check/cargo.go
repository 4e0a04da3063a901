package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	cargoBinary  = lazyregexp.New(`^\s+Running .*\((?:.*/)?([\w-]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)$`)
	cargoDoc     = lazyregexp.New(`^\s+Doc-tests (\S+)`)
	cargoTest    = lazyregexp.New(`^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b`)
	cargoLine    = lazyregexp.New(` \(line \d+\)$`) // of a doc test: it moves with every edit above it
	cargoSection = lazyregexp.New(`^---- (.+) stdout ----$`)
	cargoPanic   = lazyregexp.New(`^thread '.*' (?:\(\d+\) )?panicked at (?:'(.*)', )?([^\s:]+):(\d+):\d+:?$`)
	cargoError   = lazyregexp.New(`^error(?:\[E\d+\])?: (.*)`)
	cargoArrow   = lazyregexp.New(`^\s*--> ([^:]+):(\d+):\d+`)
	cargoSummary = lazyregexp.New(`^error: (?:test failed|doctest failed|\d+ targets? failed|could not compile|aborting due to|build failed)`)
)

// parseCargo reads the text of `cargo test`, standard error mixed in where it can
// be had: only there stands which binary a test belongs to. A test's name is
// "crate::module::test".
func parseCargo(out []byte) result {
	var r result
	binary := ""
	lines := strings.Split(clean(string(out)), "\n")
	at := map[string]int{} // where the failing tests of this binary are
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := cargoBinary.FindStringSubmatch(line); m != nil {
			binary, at = m[1]+"::", map[string]int{}
		} else if m := cargoDoc.FindStringSubmatch(line); m != nil {
			binary, at = m[1]+"::doc::", map[string]int{}
		} else if m := cargoTest.FindStringSubmatch(line); m != nil {
			c := testcase{name: binary + cargoLine.ReplaceAllString(m[1], ""), group: strings.TrimSuffix(binary, "::"), status: passed, again: m[1]}
			switch m[2] {
			case "FAILED":
				c.status, c.err = failed, "the test failed without a message"
				at[m[1]] = len(r.cases)
			case "ignored":
				c.status = skipped
			}
			r.add(c)
		} else if m := cargoSection.FindStringSubmatch(line); m != nil {
			if k, ok := at[m[1]]; ok {
				explainCargo(&r.cases[k], lines[i+1:])
			}
		} else if m := cargoError.FindStringSubmatch(line); m != nil && !cargoSummary.MatchString(line) {
			cargoBuild(&r, m[1], lines[i:])
		}
	}
	return r
}

// explainCargo reads the section of a failing test.
func explainCargo(c *testcase, lines []string) {
	var text []string
	for _, line := range lines {
		if cargoSection.MatchString(line) || line == "failures:" || strings.HasPrefix(line, "stack backtrace:") || strings.HasPrefix(line, "note: ") {
			break
		}
		if m := cargoPanic.FindStringSubmatch(line); m != nil {
			c.file, c.line = m[2], atoi(m[3])
			text = nil // what the test printed before it failed
			if m[1] != "" {
				text = append(text, m[1])
			}
			continue
		}
		text = append(text, line)
	}
	if s := shorten(strings.TrimSpace(strings.Join(text, "\n"))); s != "" {
		c.err = s
	}
}

// cargoBuild takes in a compiler error once, however many targets it breaks.
func cargoBuild(r *result, message string, lines []string) {
	c := testcase{name: "cargo build", status: failed, cause: causeSyntax, whole: true}
	var text []string
	for i, line := range lines {
		if i > 0 && (strings.TrimSpace(line) == "" || i > maxErrorLines) {
			break
		}
		if m := cargoArrow.FindStringSubmatch(line); m != nil && c.file == "" {
			c.file, c.line = m[1], atoi(m[2])
		}
		text = append(text, line)
	}
	text[0] = message
	c.err = shorten(strings.Join(text, "\n"))
	r.partial = true
	for i := range r.cases {
		if r.cases[i].whole && r.cases[i].err == c.err {
			return
		}
	}
	r.add(c)
}
