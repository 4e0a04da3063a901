package check

import (
	"bytes"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
)

// goModule is a module of the repository.
type goModule struct {
	path  string // its import path
	dir   string // from the root; "" is the root
	apart bool   // a go.work above it does not use it
}

// goEvent is a line of `go test -json`; see `go doc cmd/test2json`. ImportPath
// and FailedBuild exist since Go 1.24.
type goEvent struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string
	FailedBuild string
}

type goTest struct {
	name   string
	ended  string // pass, fail, skip; "" when the test never ended
	output strings.Builder
}

type goPackage struct {
	path   string
	tests  []*goTest // in the order they started
	byName map[string]*goTest
	ended  string
	build  string // the build that failed
	output strings.Builder
}

// goOutput collects the events of one command.
type goOutput struct {
	packages []*goPackage
	byPath   map[string]*goPackage
	builds   []*goPackage // output of the compiler and of vet, by import path
	byBuild  map[string]*goPackage
	plain    strings.Builder // lines that are not events
	modules  []goModule
}

// maxTestOutput bounds what is kept of one test's output, in bytes.
const maxTestOutput = 64 << 10

// parseGo reads the output of `go test -json`. Modules turn import paths into
// directories.
func parseGo(out []byte, modules []goModule) result {
	g := &goOutput{byPath: map[string]*goPackage{}, byBuild: map[string]*goPackage{}, modules: modules}
	for line := range bytes.Lines(out) {
		var e goEvent
		if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil || e.Action == "" {
			keep(&g.plain, string(line))
			continue
		}
		g.event(&e)
	}
	g.plainBuilds()
	var r result
	for _, b := range g.builds {
		g.buildFailure(&r, b)
	}
	for _, p := range g.packages {
		g.packageResult(&r, p)
	}
	return r
}

func keep(b *strings.Builder, s string) {
	if b.Len() < maxTestOutput {
		b.WriteString(s)
	}
}

func (g *goOutput) event(e *goEvent) {
	if strings.HasPrefix(e.Action, "build-") {
		if b := g.build(e.ImportPath); e.Action == "build-output" {
			keep(&b.output, e.Output)
		} else if e.Action == "build-fail" {
			b.ended = "fail"
		}
		return
	}
	if e.Package == "" {
		keep(&g.plain, e.Output)
		return
	}
	p := g.pkg(e.Package)
	if e.Test == "" {
		g.packageEvent(p, e)
		return
	}
	t := p.test(e.Test)
	switch e.Action {
	case "output":
		keep(&t.output, e.Output)
	case "pass", "fail", "skip":
		t.ended = e.Action
	}
}

func (g *goOutput) packageEvent(p *goPackage, e *goEvent) {
	switch e.Action {
	case "output":
		keep(&p.output, e.Output)
	case "pass", "fail", "skip":
		p.ended, p.build = e.Action, e.FailedBuild
	}
}

func (g *goOutput) pkg(name string) *goPackage {
	p := g.byPath[name]
	if p == nil {
		p = &goPackage{path: name, byName: map[string]*goTest{}}
		g.byPath[name], g.packages = p, append(g.packages, p)
	}
	return p
}

func (g *goOutput) build(name string) *goPackage {
	b := g.byBuild[name]
	if b == nil {
		b = &goPackage{path: name}
		g.byBuild[name], g.builds = b, append(g.builds, b)
	}
	return b
}

// plainBuilds finds the compiler's messages of Go before 1.24, which are not
// events: "# import/path" and the lines after it.
func (g *goOutput) plainBuilds() {
	var at *goPackage
	for line := range strings.Lines(g.plain.String()) {
		name, ok := strings.CutPrefix(line, "# ")
		name = strings.TrimSpace(name)
		switch {
		case ok && strings.HasPrefix(name, "["): // vet repeats the name in brackets
		case ok:
			at = g.build(name)
			at.ended = "fail"
		case at != nil && buildLine.MatchString(line), at != nil && strings.HasPrefix(line, "\t"):
			keep(&at.output, line)
		default:
			at = nil
		}
	}
}

var (
	buildLine   = lazyregexp.New(`^(?:vet: )?(\S+\.\w+):(\d+)(?::\d+)?: (.*)`)
	buildColumn = lazyregexp.New(`(?m)^(\S+\.\w+:\d+):\d+: `)
	goLocation  = lazyregexp.New(`^\s+(\S+\.go):(\d+): ?(.*)`)
	goFrame     = lazyregexp.New(`^\t(/.+\.go|[A-Za-z]:.+\.go):(\d+)`)
	goCrash     = lazyregexp.New(`(?m)^(?:panic|fatal error): .*`)
	goRunning   = lazyregexp.New(`(?m)^\t+(\S+) \([\d.hms]+\)$`)
	goRepanic   = lazyregexp.New(` \[recovered(?:, repanicked)?\]`)
)

// buildFailure reports a package that did not compile, or that vet refused.
func (g *goOutput) buildFailure(r *result, b *goPackage) {
	if b.ended != "fail" {
		return
	}
	pkg, _, _ := strings.Cut(b.path, " [")
	dir := g.moduleDir(pkg)
	t := testcase{name: pkg + " [build]", group: pkg, status: failed, cause: causeSyntax, whole: true}
	var lines []string
	for line := range strings.Lines(b.output.String()) {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		if m := buildLine.FindStringSubmatch(line); m != nil && t.file == "" {
			t.file, t.line = path.Join(dir, m[1]), atoi(m[2])
		}
		lines = append(lines, line)
	}
	// Coverage rewrites the source before the compiler sees it: the columns are not the file's.
	t.err = shorten(buildColumn.ReplaceAllString(strings.Join(lines, ""), "$1: "))
	if t.err == "" {
		t.err = "the build failed without a message"
	}
	r.lose(pkg)
	r.add(t)
}

// packageResult reports the tests of one package.
func (g *goOutput) packageResult(r *result, p *goPackage) {
	guilty := g.unfinished(p)
	failing := map[string]bool{}
	for _, t := range p.tests {
		if t.ended == "fail" || guilty[t] {
			for name := t.name; ; {
				i := strings.LastIndexByte(name, '/')
				if i < 0 {
					break
				}
				name = name[:i]
				failing[name] = true
			}
		}
	}
	any := false
	for _, t := range p.tests {
		if t.ended == "" || t.ended == "fail" && goCrash.MatchString(t.output.String()) {
			r.lose(p.path) // the tests after it were never started
		}
		c := testcase{name: p.path + "." + t.name, group: p.path, again: t.name}
		switch {
		case t.ended == "pass":
			c.status = passed
		case t.ended == "skip":
			c.status = skipped
		case t.ended == "" && !guilty[t]:
			r.lose(p.path) // broken off by another test's crash
			continue
		case failing[t.name]:
			c.status, any = carrier, true
		default:
			any = true
			g.explain(&c, p, t)
		}
		r.add(c)
	}
	if p.ended == "" {
		r.partial = true // so did the packages after it
	}
	if p.ended == "fail" && !any {
		g.packageFailure(r, p)
	}
}

// packageFailure reports a package that failed though none of its tests did.
func (g *goOutput) packageFailure(r *result, p *goPackage) {
	if p.build != "" && g.byBuild[p.build] != nil || g.brokenBuild(p) {
		r.lose(p.path)
		if b := g.byBuild[p.build]; b != nil && b.ended == "fail" {
			if r.unbuilt == nil {
				r.unbuilt = map[string]bool{}
			}
			r.unbuilt[p.path] = true
		}
		return // reported once, with the build
	}
	var lines []string
	for line := range strings.Lines(p.output.String()) {
		if !strings.HasPrefix(line, "FAIL") && !strings.HasPrefix(line, "coverage: ") && strings.TrimSpace(line) != "PASS" {
			lines = append(lines, line)
		}
	}
	c := testcase{name: p.path, group: p.path, status: failed, whole: true, cause: causeRuntime, err: shorten(strings.Join(lines, ""))}
	if strings.Contains(p.output.String(), "[setup failed]") {
		c.cause = causeSyntax
		c.err = strings.TrimSpace(c.err + "\n" + tail(g.plain.String()))
	}
	if c.err == "" {
		c.err = "the package failed, though none of its tests did"
	}
	g.locateCrash(&c, p.output.String(), "")
	r.lose(p.path)
	r.add(c)
}

// brokenBuild reports whether a package's own build is among those that failed.
func (g *goOutput) brokenBuild(p *goPackage) bool {
	for _, b := range g.builds {
		name, _, _ := strings.Cut(b.path, " [")
		if b.ended == "fail" && strings.TrimSuffix(name, "_test") == p.path {
			return true
		}
	}
	return false
}

// unfinished returns the tests that never ended and are to blame for it: those
// that a time-out names as running, else those that crashed, else all of them
// but the ones that merely wait for a subtest.
func (g *goOutput) unfinished(p *goPackage) map[*goTest]bool {
	blame := map[*goTest]bool{}
	var open, crashed []*goTest
	inside := map[string]bool{}
	for _, t := range p.tests {
		if t.ended == "" {
			open = append(open, t)
			if i := strings.LastIndexByte(t.name, '/'); i > 0 {
				inside[t.name[:i]] = true
			}
		}
		if goCrash.MatchString(t.output.String()) && t.ended != "pass" {
			crashed = append(crashed, t)
		}
	}
	for _, t := range crashed {
		if _, list, ok := strings.Cut(t.output.String(), "\trunning tests:\n"); ok {
			list, _, _ = strings.Cut(list, "\n\n")
			for _, m := range goRunning.FindAllStringSubmatch(list, -1) {
				if at := p.byName[m[1]]; at != nil && at.ended == "" {
					blame[at] = true
				}
			}
		}
	}
	switch {
	case len(blame) > 0:
	case len(crashed) > 0:
		for _, t := range crashed {
			blame[t] = t.ended == ""
		}
	default:
		for _, t := range open {
			blame[t] = !inside[t.name]
		}
	}
	return blame
}

// explain fills in why a test failed, and where.
func (g *goOutput) explain(c *testcase, p *goPackage, t *goTest) {
	c.status = failed
	out := t.output.String()
	if t.ended == "" && !goCrash.MatchString(out) {
		if dump := g.timeoutDump(p); dump != "" { // the dump went to another test that was running
			out = dump
		}
	}
	if at := goCrash.FindStringIndex(out); at != nil {
		c.cause = causeRuntime
		text := goRepanic.ReplaceAllString(out[at[0]:], "")
		if c.stuck = strings.HasPrefix(text, "panic: test timed out"); c.stuck {
			text, _, _ = strings.Cut(text, "\n\n")
		}
		c.err = shorten(g.ownFrames(text))
		g.locateCrash(c, out, "."+topLevel(t.name))
		if c.file == "" {
			g.locateCrash(c, out, "")
		}
		return
	}
	g.message(c, p, goMessage(out))
	if t.ended == "" {
		c.cause, c.stuck = causeRuntime, true
		c.err = strings.TrimSpace("the test did not finish: it hung, or its process was ended\n" + c.err)
	}
}

// message takes the last message that names a line as the error: what came before
// it may be no more than the test's log.
func (g *goOutput) message(c *testcase, p *goPackage, lines []string) {
	last := -1
	for i, line := range lines {
		if goLocation.MatchString(line) {
			last = i
		}
	}
	for i, line := range lines {
		if i == last {
			m := goLocation.FindStringSubmatch(line)
			c.file, c.line = path.Join(g.moduleDir(p.path), g.inModule(p.path), m[1]), atoi(m[2])
			line = m[3]
		}
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(line, "    "), "    ")
	}
	text := strings.Join(lines[max(last, 0):], "\n")
	if last > 0 {
		text += "\nbefore that:\n" + strings.Join(lines[:last], "\n")
	}
	c.err = shorten(text)
}

// goMessage returns the lines that a test itself wrote.
func goMessage(out string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(out, "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "=== ") || strings.HasPrefix(trimmed, "--- ") || strings.HasPrefix(line, "coverage: ") || trimmed == "FAIL" {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func (g *goOutput) timeoutDump(p *goPackage) string {
	for _, t := range p.tests {
		if strings.Contains(t.output.String(), "panic: test timed out") {
			return t.output.String()
		}
	}
	return ""
}

// locateCrash finds the first frame of a stack that is in the repository and whose
// function's name contains a text.
func (g *goOutput) locateCrash(c *testcase, stack, function string) {
	var fn string
	for line := range strings.Lines(stack) {
		m := goFrame.FindStringSubmatch(line)
		if m == nil {
			fn = strings.TrimPrefix(strings.TrimSpace(line), "created by ")
			continue
		}
		for _, mod := range g.modules {
			rest, ok := strings.CutPrefix(fn, mod.path)
			if !ok || rest == "" || rest[0] != '.' && rest[0] != '/' {
				continue
			}
			slash := strings.LastIndexByte(rest, '/') + 1
			dot := strings.IndexByte(rest[slash:], '.')
			if dot < 0 || !strings.Contains(rest, function) {
				continue
			}
			c.file, c.line = path.Join(mod.dir, strings.TrimPrefix(strings.TrimSuffix(rest[:slash+dot], "_test"), "/"), path.Base(m[1])), atoi(m[2])
			return
		}
	}
}

// ownFrames leaves the frames of a stack out that are not the repository's.
func (g *goOutput) ownFrames(text string) string {
	message, stack, ok := strings.Cut(text, "\n\n")
	if !ok {
		return text
	}
	var out []string
	fn := ""
	for line := range strings.SplitSeq(stack, "\n") {
		if !goFrame.MatchString(line) {
			fn = line
			continue
		}
		for _, m := range g.modules {
			if strings.Contains(fn, m.path+".") || strings.Contains(fn, m.path+"/") {
				out = append(out, fn, line)
				break
			}
		}
	}
	if len(out) == 0 {
		return text
	}
	return message + "\n\n" + strings.Join(out, "\n")
}

// module returns the innermost module that holds a package.
func (g *goOutput) module(pkg string) goModule {
	var best goModule
	for _, m := range g.modules {
		if (pkg == m.path || strings.HasPrefix(pkg, m.path+"/")) && len(m.path) > len(best.path) {
			best = m
		}
	}
	return best
}

func (g *goOutput) moduleDir(pkg string) string { return g.module(pkg).dir }

// inModule returns a package's directory within its module.
func (g *goOutput) inModule(pkg string) string {
	m := g.module(pkg)
	if m.path == "" {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(pkg, m.path), "/")
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
