package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// scratch is where suites leave their reports, relative to the root of the work
// tree. The go tool skips directories that start with a dot.
const scratch = ".forge-check"

// maxOutput bounds what is read of one command's output, in bytes.
const maxOutput = 64 << 20

// format names the parser for a suite's output.
type format string

const (
	formatGo       format = "go test -json"
	formatJUnit    format = "JUnit XML"
	formatTAP      format = "TAP"
	formatJest     format = "Jest JSON"
	formatCargo    format = "cargo test"
	formatUnittest format = "unittest"
	formatRSpec    format = "RSpec JSON"
	formatMinitest format = "minitest"
	formatReports  format = "report files" // JUnit XML or TRX files, wherever the tool leaves them
	formatAny      format = ""             // recognised from the output, else the exit code alone
)

// suite is one command that runs tests.
type suite struct {
	dir       string // relative to the root of the work tree; "." is the root
	args      []string
	env       []string
	format    format
	pytest    bool         // takes node ids
	report    []string     // arguments that make it write its report to a file, "{}"
	alone     bool         // args can be narrowed to single tests
	optional  bool         // holds no test: that it cannot run leaves nothing unverified
	cover     string       // the coverage file that it writes, from the root; "" is none
	measure   *measurement // how it measures coverage when asked to, but for go test
	measuring bool         // the result was had while measuring
	lacks     []lack       // how its tools say that something is missing around the tests
	own       []string     // what a Python suite imports of the repository itself; nil: not known
	done      pipeline.Suite
	result    result
	left      []string // reports that it left in the work tree, from the root
	ended     string   // how it was ended from outside; "" when it ended by itself
	blamed    bool     // something in it fails that did not fail before the work
}

// plain reports whether a suite is a command that may run anything: its files are tests by what
// it says alone.
func (s *suite) plain() bool { return s.format == formatAny && s.report == nil && !s.pytest }

// prepareScratch makes an empty directory for reports and learns the root's path
// as the commands see it.
func (c *checker) prepareScratch(ctx context.Context) error {
	// The pause is longer than the tick of the kernel's file times: what is written after the stamp is newer than it.
	const script = `rm -rf -- "$1" && mkdir -- "$1" && : >"$1/stamp" && sleep 0.02 && pwd -P`
	res, err := c.ws.Run(ctx, workspace.Command{Args: []string{"sh", "-c", script, "sh", scratch}, Timeout: time.Minute})
	if err != nil {
		return err
	}
	if res.Exit != 0 {
		return &pipeline.Fault{Class: pipeline.FaultEnvironment, Message: fmt.Sprintf(
			"the work tree cannot be written to, so no test can run: making %s in it ended with exit code %d: %s. Check the free space and the owner of the state directory.",
			scratch, res.Exit, tail(string(res.Stderr)))}
	}
	c.root = strings.TrimSpace(string(res.Stdout))
	return nil
}

func (c *checker) removeScratch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := c.ws.Run(ctx, workspace.Command{Args: []string{"rm", "-rf", "--", scratch}, Timeout: 10 * time.Second}); err != nil {
		c.log.Debug("remove the tests' reports", "error", err)
	}
}

// scratchFile returns a new file's path from the root, and from a directory.
func (c *checker) scratchFile(dir, ext string) (fromRoot, fromDir string) {
	c.files++
	fromRoot = path.Join(scratch, strconv.Itoa(c.files)+ext)
	if dir = path.Clean(dir); dir == "." {
		return fromRoot, fromRoot
	}
	return fromRoot, strings.Repeat("../", strings.Count(dir, "/")+1) + fromRoot
}

func (c *checker) timeout() time.Duration {
	if c.o.Timeout > 0 {
		return c.o.Timeout
	}
	if c.o.Config.TimeoutMinutes <= 0 {
		return 10 * time.Minute
	}
	return time.Duration(c.o.Config.TimeoutMinutes) * time.Minute
}

// runSuite runs a suite for the first time and judges how it ended.
func (c *checker) runSuite(ctx context.Context, s *suite) error {
	c.log.Debug("run tests", "command", s.done.Command, "dir", s.dir)
	r, res, out, err := c.executeFor(ctx, s)
	if err != nil {
		return err
	}
	s.result = r
	s.done.Exit, s.done.Millis, s.done.TimedOut = res.Exit, res.Duration.Milliseconds(), res.Class == "timeout"
	c.judge(s, &res, out)
	c.localise(&s.result, s.dir) // what it added
	c.log.Info("suite done", "command", s.done.Command, "exit", res.Exit, "tests", s.result.ran(), "failed", s.result.failing(), "ms", s.done.Millis)
	return nil
}

// executeFor runs a suite as the run asks: to compare with another, or to measure.
func (c *checker) executeFor(ctx context.Context, s *suite) (result, workspace.Result, []byte, error) {
	if c.bare {
		return c.execute(ctx, s, c.bareArgs(s))
	}
	return c.executeMeasured(ctx, s)
}

// execute runs a command of a suite and parses what it prints or leaves.
func (c *checker) execute(ctx context.Context, s *suite, args []string) (result, workspace.Result, []byte, error) {
	var report, file string
	switch {
	case s.report != nil:
		report, file = c.scratchFile(s.dir, ".report")
		args = slices.Clone(args)
		for _, a := range s.report {
			args = append(args, strings.ReplaceAll(a, "{}", file))
		}
	case s.format != formatAny:
		// The sandbox keeps little of what a command prints, and go test -json prints much.
		report, file = c.scratchFile(s.dir, ".out")
		into := `out=$1; shift; exec "$@" >"$out" 2>&1`
		if s.format == formatTAP {
			into = `out=$1; shift; exec "$@" >"$out"`
		}
		args = append([]string{"sh", "-c", into, "sh", file}, args...)
	}
	res, err := c.ws.Run(ctx, workspace.Command{Args: args, Dir: s.dir, Env: s.env, Timeout: c.timeout()})
	if err != nil {
		return result{}, res, nil, runError(s, err)
	}
	var data []byte
	if report != "" {
		if data, err = c.readReport(ctx, report); err != nil {
			return result{}, res, nil, err
		}
	}
	out := bytes.Join([][]byte{res.Stdout, res.Stderr}, []byte("\n"))
	if s.format != formatAny && s.report == nil {
		out = append(append([]byte{}, data...), out...)
	}
	s.left = c.leftBehind(ctx, s)
	r, err := c.parse(ctx, s, data, out)
	if err != nil {
		return result{}, res, nil, err
	}
	r.cut = r.cut || res.Truncated && s.format == formatAny || len(data) >= maxOutput
	c.localise(&r, s.dir)
	s.inDirectory(&r)
	return r, res, out, nil
}

// runError passes on what ended a run that could not even start; a missing
// program is told as such.
func runError(s *suite, err error) error {
	var f *pipeline.Fault
	if errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("run %s: %w", s.done.Command, err)
}

// readReport reads a file that a suite wrote; a file that is not there is empty.
func (c *checker) readReport(ctx context.Context, name string) ([]byte, error) {
	data, err := c.ws.Read(ctx, name)
	if err == nil {
		return data, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// Missing, or larger than the workspace hands out at once: take it in pieces.
	const piece = 512 << 10
	data = nil
	for len(data) < maxOutput {
		res, err := c.ws.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"sh", "-c",
			`test -f "$1" && tail -c "+$2" -- "$1" | head -c "$3"`, "sh", name, strconv.Itoa(len(data) + 1), strconv.Itoa(piece)}})
		if err != nil {
			return nil, err
		}
		data = append(data, res.Stdout...)
		if len(res.Stdout) < piece {
			break
		}
	}
	return data, nil
}

// reportNames are the files in which test tools leave results and coverage.
var reportNames = []string{"lcov.info", "*.lcov", "coverage.xml", "cobertura*.xml", "cover.out", "coverage.out", "c.out",
	"jacoco*.xml", "junit*.xml", "TEST-*.xml", "test-results.xml", "test-report.xml", "*.trx"}

// leftBehind lists the reports that were written since the tests began. What is
// older was committed with the repository, and proves nothing.
func (c *checker) leftBehind(ctx context.Context, s *suite) []string {
	if s.format == formatGo || s.format == formatCargo || s.format == formatUnittest || s.format == formatMinitest {
		return nil
	}
	args := []string{"find", ".", "(", "-name", ".git", "-o", "-name", "node_modules", "-o", "-name", scratch, ")", "-prune", "-o",
		"-type", "f", "-newer", scratch + "/stamp", "("}
	for i, n := range reportNames {
		if i > 0 {
			args = append(args, "-o")
		}
		args = append(args, "-name", n)
	}
	res, err := c.ws.Run(ctx, workspace.Command{Args: append(args, ")", "-print"), Timeout: time.Minute})
	if err != nil || res.Exit != 0 {
		c.log.Debug("look for reports of the tests", "error", err, "exit", res.Exit, "stderr", string(res.Stderr))
		return nil
	}
	var out []string
	for line := range strings.Lines(string(res.Stdout)) {
		name := path.Clean(strings.TrimSpace(line))
		if c.owner[name] == nil {
			c.owner[name] = s
		}
		if c.owner[name] == s && len(out) < 500 {
			out = append(out, name)
		}
	}
	return out
}

// parse picks the parser.
func (c *checker) parse(ctx context.Context, s *suite, data, out []byte) (result, error) {
	switch s.format {
	case formatGo:
		return parseGo(data, c.modules), nil
	case formatTAP:
		return parseTAP(data), nil
	case formatCargo:
		return parseCargo(data), nil
	case formatUnittest:
		return parseUnittest(data), nil
	case formatMinitest:
		return parseMinitest(data), nil
	case formatReports:
		return c.parseLeft(ctx, s)
	case formatJUnit, formatJest, formatRSpec:
		if len(bytes.TrimSpace(data)) == 0 {
			return result{partial: true}, nil // it broke before it wrote a report; the exit code decides
		}
		parser := map[format]func([]byte) (result, error){formatJUnit: parseJUnit, formatJest: parseJest, formatRSpec: parseRSpec}[s.format]
		r, err := parser(data)
		if err != nil {
			c.log.Warn("the report of the tests is unreadable; their exit code decides", "command", s.done.Command, "error", err)
			return result{partial: true}, nil
		}
		return r, nil
	}
	if r, ok := sniff(out, c.modules); ok {
		return r, nil
	}
	return c.parseLeft(ctx, s)
}

// parseLeft reads the reports of tests that a command left behind.
func (c *checker) parseLeft(ctx context.Context, s *suite) (result, error) {
	var r result
	for _, name := range s.left {
		parser := parseJUnit
		if path.Ext(name) == ".trx" {
			parser = parseTRX
		} else if !junitName.MatchString(path.Base(name)) {
			continue // coverage
		}
		data, err := c.readReport(ctx, name)
		if err != nil {
			return r, err
		}
		one, err := parser(data)
		if err != nil {
			c.log.Debug("skip a report", "file", name, "error", err)
			continue
		}
		r.cases = append(r.cases, one.cases...)
		r.partial = r.partial || one.partial
	}
	return r, nil
}

var (
	goJSONLine  = lazyregexp.New(`(?m)^\{.*"Action":"(?:run|pass|fail|output|start|skip|build-output)"`)
	tapHeader   = lazyregexp.New(`(?m)^TAP version 1[234]\s*$`)
	tapLoose    = lazyregexp.New(`(?m)^(?:not )?ok \d+\b`)
	tapLoosePln = lazyregexp.New(`(?m)^1\.\.\d+`)
	cargoHeader = lazyregexp.New(`(?m)^test result: (?:ok|FAILED)\.|^error: could not compile `)
)

// sniff recognises the format of an output.
func sniff(out []byte, modules []goModule) (result, bool) {
	switch {
	case goJSONLine.Match(out):
		return parseGo(out, modules), true
	case tapHeader.Match(out), tapLoose.Match(out) && tapLoosePln.Match(out):
		return parseTAP(out), true
	case cargoHeader.Match(out):
		return parseCargo(out), true
	case goPlainLine.Match(out):
		return parsePlainGo(out, modules), true
	}
	for line := range bytes.Lines(out) {
		if pyRan.Match(line) {
			r := parseUnittest(out)
			return r, len(r.cases) > 0
		}
	}
	return result{}, false
}

// localise makes paths relative to the root of the work tree, in names too: the
// tree may lie elsewhere the next time.
func (c *checker) localise(r *result, dir string) {
	here := regexp.MustCompile(`(^|[^\w./@+-])(?:file://)?` + regexp.QuoteMeta(c.root+"/"))
	short := func(s string) string { return here.ReplaceAllString(s, "$1") }
	if c.root == "" || c.root == "/" {
		short = func(s string) string { return s }
	}
	for i := range r.cases {
		t := &r.cases[i]
		t.name, t.group, t.err, t.file = oneLine(short(t.name)), short(t.group), short(t.err), short(t.file)
		if path.IsAbs(t.file) || strings.HasPrefix(t.file, "../") {
			t.file, t.line = "", 0 // outside the repository
		} else if t.file != "" && dir != "." && !strings.HasPrefix(t.file, dir+"/") {
			t.file = path.Join(dir, t.file)
		}
	}
	for group := range r.lost {
		r.lost[short(group)] = true
	}
}

// inDirectory tells tests of the same name in several directories apart. Go's
// names say already where they are, and so do Jest's.
func (s *suite) inDirectory(r *result) {
	if s.dir == "." || s.format == formatGo || s.format == formatJest {
		return
	}
	prefix := s.dir + " > "
	if s.pytest {
		prefix = s.dir + "/"
	}
	full := func(name string) string {
		if name == "" || strings.HasPrefix(name, s.dir+"/") {
			return name
		}
		return prefix + name
	}
	for i := range r.cases {
		r.cases[i].name, r.cases[i].group = full(r.cases[i].name), full(r.cases[i].group)
	}
	lost := map[string]bool{}
	for group := range r.lost {
		lost[full(group)] = true
	}
	r.lost = lost
}
