package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	goPlainLine   = lazyregexp.New(`(?m)^(?:ok  |FAIL)\t\S+(?:\t| \[build failed\]| \[setup failed\])`)
	goPlainResult = lazyregexp.New(`^ *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)`)
	goPlainRun    = lazyregexp.New(`^=== (?:RUN|CONT|NAME) +(\S+)\s*$`)
	goPlainEnd    = lazyregexp.New(`^(ok  |FAIL)\t(\S+)(?:\t| \[(build|setup) failed\])`)
)

// parsePlainGo reads `go test` without -json, as a Makefile calls it, by turning
// its lines into events. Without -v a package that passed counts as one test.
func parsePlainGo(out []byte, modules []goModule) result {
	g := &goOutput{byPath: map[string]*goPackage{}, byBuild: map[string]*goPackage{}, modules: modules}
	var lines []string
	for line := range strings.Lines(clean(string(out))) {
		m := goPlainEnd.FindStringSubmatch(line)
		if m == nil {
			lines = append(lines, line)
			continue
		}
		g.plainPackage(m[2], strings.TrimSpace(m[1]) == "ok", m[3] != "", lines)
		lines = nil
	}
	g.plainBuilds()
	var r result
	for _, b := range g.builds {
		g.buildFailure(&r, b)
	}
	for _, p := range g.packages {
		if len(p.tests) == 0 && p.ended == "pass" {
			r.add(testcase{name: p.path, group: p.path, status: passed})
			continue
		}
		g.packageResult(&r, p)
	}
	return r
}

// plainPackage takes in the lines that came before a package's last one.
func (g *goOutput) plainPackage(name string, ok, build bool, lines []string) {
	p := g.pkg(name)
	p.ended = map[bool]string{true: "pass", false: "fail"}[ok]
	var at *goTest
	for _, line := range lines {
		if strings.HasPrefix(line, "# ") {
			build = true // of any package: the compilers run beside the tests
		}
		if build && (strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "\t") || buildLine.MatchString(line)) {
			keep(&g.plain, line)
			continue
		}
		build = false
		if m := goPlainRun.FindStringSubmatch(line); m != nil {
			at = p.test(m[1])
			continue
		}
		if m := goPlainResult.FindStringSubmatch(line); m != nil {
			at = p.test(m[2])
			at.ended = strings.ToLower(m[1])
			continue
		}
		if at != nil && at.ended != "pass" && at.ended != "skip" {
			keep(&at.output, line)
		} else {
			keep(&p.output, line)
		}
	}
	if dump := p.output.String(); !ok && strings.Contains(dump, "panic: test timed out") { // without -v it is not said under the test
		for _, m := range goRunning.FindAllStringSubmatch(dump, -1) {
			keep(&p.test(m[1]).output, dump)
		}
	}
}

// test returns a test of the package, which it makes when it is new.
func (p *goPackage) test(name string) *goTest {
	t := p.byName[name]
	if t == nil {
		t = &goTest{name: name}
		p.byName[name], p.tests = t, append(p.tests, t)
	}
	return t
}
