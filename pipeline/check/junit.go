package check

import (
	"errors"
	"fmt"
	"strings"

	"github.com/joshdk/go-junit"

	"forge/pipeline/lazyregexp"
)

var (
	sourceLine  = lazyregexp.New(`(?m)^\s*(?:at \S* ?\(?)?((?:[\w.@+-]+/|/)*[\w.@+-]+\.(?:py|js|mjs|cjs|ts|tsx|jsx|java|kt|rb|php|cs|go|rs|swift|c|cc|cpp)):(\d+)`)
	pytestLine  = lazyregexp.New(`(?m)^E {3}(.*)$`)
	syntaxWords = lazyregexp.New(`\b(?:SyntaxError|IndentationError|TabError)\b`)
)

// parseJUnit reads a JUnit XML report. A test's name is "file::class::name" where
// the report names files as pytest does, else "class.name".
func parseJUnit(data []byte) (result, error) {
	suites, err := junit.Ingest(data)
	if err != nil {
		return result{}, fmt.Errorf("read JUnit report: %w", err)
	}
	var r result
	var walk func([]junit.Suite)
	walk = func(list []junit.Suite) {
		for _, s := range list {
			for i := range s.Tests {
				r.add(junitCase(&s.Tests[i]))
			}
			walk(s.Suites)
		}
	}
	walk(suites)
	for i := range r.cases {
		r.partial = r.partial || r.cases[i].whole
	}
	return r, nil
}

func junitCase(t *junit.Test) testcase {
	c := testcase{group: t.Classname, status: passed}
	c.name = strings.TrimPrefix(t.Classname+"."+t.Name, ".")
	if file := t.Properties["file"]; file != "" {
		c.name, c.group = nodeID(file, t.Classname, t.Name), file
		c.file, c.line = file, atoi(t.Properties["line"])
		if strings.HasSuffix(file, ".py") {
			c.line++ // pytest counts from 0
			c.again = c.name
		}
	}
	switch t.Status {
	case junit.StatusSkipped:
		c.status = skipped
	case junit.StatusFailed, junit.StatusError:
		c.status = failed
		explainJUnit(&c, t)
	}
	return c
}

func explainJUnit(c *testcase, t *junit.Test) {
	body := ""
	var e junit.Error
	if errors.As(t.Error, &e) {
		body = e.Body
	}
	message := t.Message
	if message == "collection failure" {
		c.whole, c.again = true, ""
		c.group = c.name
		message = ""
	}
	if syntaxWords.MatchString(message + body) {
		c.cause = causeSyntax
	}
	if message == "" {
		var lines []string
		for _, m := range pytestLine.FindAllStringSubmatch(body, -1) {
			lines = append(lines, m[1])
		}
		if message = strings.Join(lines, "\n"); message == "" {
			message = body
		}
	}
	c.err = shorten(message)
	if found := sourceLine.FindAllStringSubmatch(body, -1); found != nil {
		at := found[len(found)-1] // the innermost frame comes last
		c.file, c.line = at[1], atoi(at[2])
	}
}

// nodeID joins a file, a dotted class name that repeats the file's path, and a
// name as pytest does: "tests/test_a.py::TestGroup::test_x".
func nodeID(file, class, name string) string {
	module := strings.ReplaceAll(strings.TrimSuffix(file, ".py"), "/", ".")
	rest, ok := strings.CutPrefix(class, module)
	if !ok {
		rest = class
	}
	parts := []string{file}
	for p := range strings.SplitSeq(rest, ".") {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(append(parts, name), "::")
}
