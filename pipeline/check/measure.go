package check

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// measurement is how a suite is made to leave its coverage behind.
type measurement struct {
	command func(args []string, to string) []string // the suite's own, measuring; nil: the same
	report  func(to string) []string                // writes the file afterwards; nil: the command does
	file    string                                  // its name, where to is a directory
	env     []string                                // instead of the suite's
}

// measured returns how to measure a suite, if the settings ask for it.
func (c *checker) measured(s *suite) *measurement {
	if c.o.Config.Coverage <= 0 || s.cover != "" {
		return nil
	}
	if s.format == formatGo && !hasFlag(s.args, "-cover") {
		return &measurement{command: func(args []string, to string) []string { return withGoFlags(args, "-coverprofile="+to) }}
	}
	return s.measure
}

// executeMeasured runs a suite, and has it measure its coverage where it can. What
// it finds then counts only if measuring cannot have had a part in it: else the
// suite runs again without.
func (c *checker) executeMeasured(ctx context.Context, s *suite) (result, workspace.Result, []byte, error) {
	m := c.measured(s)
	if m == nil {
		return c.execute(ctx, s, s.args)
	}
	cover, to := c.scratchFile(s.dir, ".cover")
	args, env := s.args, s.env
	if m.command != nil {
		args = m.command(slices.Clone(args), to)
	}
	if m.env != nil {
		s.env = m.env
	}
	r, res, out, err := c.execute(ctx, s, args)
	s.env = env
	if err != nil {
		return r, res, out, err
	}
	if s.spoiled(&r, &res, out) {
		c.log.Info("measuring coverage may have broken the tests: they run again without", "command", s.done.Command, "exit", res.Exit)
		if r.ran() > 0 && r.failing() == 0 { // all were run: what they covered holds
			s.cover = path.Join(cover, m.file)
		}
		return c.execute(ctx, s, s.args)
	}
	s.measuring = true
	s.cover = path.Join(cover, m.file)
	if m.report != nil {
		if res, err := c.ws.Run(ctx, workspace.Command{Args: m.report(to), Dir: s.dir, Env: s.env, Timeout: time.Minute}); err != nil || res.Exit != 0 {
			c.log.Info("the coverage could not be written", "command", s.done.Command, "error", err, "exit", res.Exit, "stderr", tail(string(res.Stderr)))
		}
	}
	return r, res, out, ctx.Err()
}

// aboutCoverage finds words on coverage in an output, but for the figures that go
// test prints.
var aboutCoverage = lazyregexp.New(`(?mi)\b(?:cover|covdata|coverage|pytest_cov|pytest-cov)\b`)

var coverageFigure = lazyregexp.New(`(?m)^.*coverage: (?:[\d.]+% of statements|\[no statements\]).*$`)

// spoiled reports whether a suite that was measured ended in a way that measuring
// can have caused: with an error that no failing test explains, or with one that
// speaks of coverage. A test that fails is looked at when failing tests run again,
// without measuring.
func (s *suite) spoiled(r *result, res *workspace.Result, out []byte) bool {
	switch {
	case res.Exit == 0, res.Class == "timeout": // a suite that hangs would hang again
		return false
	case res.Class != "":
		return true
	case r.ran() == 0 && s.cannotRun(res.Exit, string(out)) != "":
		return false
	}
	plain := true // a failure that is a test's, with nothing else wrong
	for i := range r.cases {
		plain = plain && (r.cases[i].status != failed || !r.cases[i].whole)
	}
	if r.failing() > 0 && plain {
		return false
	}
	return r.failing() == 0 && !nothingCollected(s, res.Exit, string(out)) || aboutCoverage.Match(coverageFigure.ReplaceAll(out, nil))
}

// pytestMeasured asks pytest-cov, or else coverage.py, for a Cobertura file. The
// project's own threshold counts only where its own configuration measures.
func pytestMeasured(config string, has map[string]bool) *measurement {
	switch {
	case has["pytest_cov"]:
		return &measurement{command: func(args []string, to string) []string {
			args = append(args, "--cov-report=xml:"+to)
			if !strings.Contains(config, "--cov") {
				args = append(args, strings.TrimSuffix("--cov="+coverageSource(config), "="), "--cov-branch", "--cov-fail-under=0")
			}
			return args
		}}
	case has["coverage"]:
		return coveragePy(config)
	}
	return nil
}

// coverageConfig finds the sections in which a project says what is to be measured.
var coverageConfig = lazyregexp.New(`(?m)^\s*(?:source|source_pkgs|include)\s*=`)

// coverageSource is what coverage.py is to measure: "" where the project says so
// itself, else all in its directory, and nothing that is installed.
func coverageSource(config string) string {
	if coverageConfig.MatchString(config) {
		return ""
	}
	return "."
}

// coveragePy runs "python3 -m X" under coverage.py.
func coveragePy(config string) *measurement {
	return &measurement{
		command: func(args []string, to string) []string {
			at := slices.Index(args, "-m")
			if at < 0 {
				return args
			}
			run := []string{"-m", "coverage", "run", "--branch", "--data-file=" + to + ".data"}
			if source := coverageSource(config); source != "" {
				run = append(run, "--source="+source)
			}
			return slices.Insert(args, at, run...)
		},
		report: func(to string) []string {
			return []string{"python3", "-m", "coverage", "xml", "-q", "--data-file=" + to + ".data", "-o", to, "--fail-under=0"}
		},
	}
}

// nodeMeasured asks a runner of JavaScript for LCOV: Jest and Vitest where the
// package is set up for coverage, c8 and nyc for what they have measured anyway,
// and Node's own runner where the script is nothing but it.
func nodeMeasured(s *suite, script, config string, deps func(string) bool, extra func([]string, ...string) []string) *measurement {
	runner := runnerOf(script[strings.LastIndex(script, "&")+1:])
	own := strings.Contains(script, "--coverage") || strings.Contains(config, "collectCoverage: true") || strings.Contains(config, `"collectCoverage": true`)
	switch {
	case strings.Contains(script, "c8 "), strings.Contains(script, "nyc "):
		if strings.Contains(script, "nyc ") {
			return &measurement{file: "lcov.info", report: func(to string) []string {
				return []string{"node_modules/.bin/nyc", "report", "--reporter=lcovonly", "--report-dir=" + to}
			}}
		}
		return &measurement{file: "lcov.info", report: func(to string) []string {
			return []string{"node_modules/.bin/c8", "report", "--reporter=lcovonly", "--reports-dir=" + to}
		}}
	case s.format == formatJest && runner == "jest" && (own || strings.Contains(config, "overage")):
		return &measurement{file: "lcov.info", command: func(args []string, to string) []string {
			args = extra(args, "--coverageReporters=lcovonly", "--coverageDirectory="+to)
			if !own {
				args = append(args, "--coverage", "--coverageThreshold={}")
			}
			return args
		}}
	case s.format == formatJest && runner == "vitest" && (deps("@vitest/coverage-v8") || deps("@vitest/coverage-istanbul")):
		return &measurement{file: "lcov.info", command: func(args []string, to string) []string {
			return extra(args, "--coverage.enabled", "--coverage.reporter=lcovonly", "--coverage.reportsDirectory="+to)
		}}
	case strings.TrimSpace(script) == "node --test":
		env := slices.DeleteFunc(slices.Clone(s.env), func(e string) bool { return strings.HasPrefix(e, "NODE_OPTIONS=") })
		return &measurement{env: env, command: func(args []string, to string) []string {
			return extra(args, "--experimental-test-coverage", "--test-reporter=tap", "--test-reporter-destination=stdout",
				"--test-reporter=lcov", "--test-reporter-destination="+to)
		}}
	}
	return nil
}
