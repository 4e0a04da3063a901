// Package check runs a repository's tests and reads what they print: it turns
// commands, exit codes and reports into one [pipeline.TestReport].
//
// A check goes through these steps, each in a file of its own:
//
//	detect   which commands test this repository, when the configuration names none
//	suite    run one command, read its output with the parser for its format
//	rerun    run failing tests again, to tell flaky ones from broken ones
//	before   tell what failed before the work from what it broke
//	compare  set the result against earlier iterations
//	tamper   hold that no test of the base was removed, skipped or weakened
//	support  find what the tests lean on under other names
//	stood    run the base's own tests as they stood, on the new code
//	mutate   change what new and edited tests expect: one that passes all the same shows nothing
//	coverage read the coverage that the suites left behind
//
// Nothing here starts a process or opens a file: everything goes through the
// workspace that the caller hands in. The package stores nothing.
package check

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// WorkedAtBase is the value of Failure.WorkedIn for a test that passed at the
// base commit and in no iteration since: iterations count from 1.
const WorkedAtBase = -1

// maxNames caps TestReport.Names.
const maxNames = 20_000

// workTree is the work tree under test, on the far side of the sandbox. Paths
// are relative to its root and slash-separated; "." is the root.
type workTree interface {
	// List returns the entries of a directory; directories end in "/".
	List(ctx context.Context, dir string) ([]string, error)
	Read(ctx context.Context, path string) ([]byte, error)
	Run(ctx context.Context, c workspace.Command) (workspace.Result, error)
}

// Past is the test report of an earlier iteration.
type Past struct {
	Iteration int
	Report    *pipeline.TestReport
}

// Options say what to test and what to compare it with.
type Options struct {
	Config        config.Tests                     // commands, time limit, reruns
	Timeout       time.Duration                    // of one command, instead of Config's minutes; 0: those
	Head          string                           // SHA of the commit in the workspace
	Base          string                           // SHA that the change started from
	Iteration     int                              // from 1
	Patch         string                           // unified diff base..head; "" skips changed-line coverage and the assertion count
	Baseline      *pipeline.TestReport             // that of the base commit; nil while making it
	MayBeEmpty    bool                             // the change may be none
	Beside        bool                             // other tests of the same change are judged for themselves
	Earlier       []Past                           // reports of earlier iterations, to name regressions (V2)
	PlanIteration int                              // the iteration in which the plan was made: tests that came by an older one may go
	Task          Task                             // what the work is about
	Known         map[string]pipeline.KnownFailure // tests that failed before and that somebody called known
	Proofs        []string                         // tests that are named as proofs; without any, nothing is done for them
	Log           *slog.Logger                     // nil: silent
	Clock         func() time.Time                 // nil: time.Now
}

// checker is one run of the tests.
type checker struct {
	ws    workTree
	o     Options
	log   *slog.Logger
	clock func() time.Time
	begun time.Time
	patch *patch
	cover *covered
	files int // numbers the output files

	root    string     // of the work tree, as the commands see it
	modules []goModule // the Go modules of the repository
	suites  []*suite
	owner   map[string]*suite           // which suite left a report
	base    map[string]pipeline.Failure // what fails at the base commit
	stood   *stood                      // what the base's own tests say; nil: they are the head's
	edits   []edit                      // files of the tests that the change touches
	brought map[string]bool             // commands by whose files there were no tests at the base
	inside  []pipeline.TestChange       // tests that stand in files of the product, and were edited
	broke   map[*suite]broke            // see broken
	found   []pipeline.Finding          // on the change and its tests

	bare   bool                   // run to compare with another run: no coverage, nothing stops early
	narrow []string               // directories of the Go packages that are run alone; nil: all
	among  []string               // files of tests that others say nothing of, for Python's and Go's suites; nil: all
	only   func(*suite) bool      // suites that are run; nil: all
	worth  func(t *testcase) bool // failing tests that are run again; nil: all

	report pipeline.TestReport
}

// Run runs the repository's tests and reports on them.
//
// The counts add up: Total = Passed + Failed + Skipped + len(Before). A flaky test
// counts as passed. A test that fails at the base commit, too, is listed in Before
// instead of Failures, unless the task is about it.
//
// A failing test is never an error. An error is a *pipeline.Fault when the tests
// could not be run (no sandbox, a missing tool), the context's error, or whatever
// else the workspace returned.
func Run(ctx context.Context, ws workTree, o Options) (pipeline.TestReport, error) {
	c, err := newChecker(ws, o)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	if c.suites, err = c.detect(ctx); err != nil {
		return pipeline.TestReport{}, err
	}
	if err := c.runAll(ctx); err != nil {
		return pipeline.TestReport{}, err
	}
	if err := c.measure(ctx); err != nil {
		return pipeline.TestReport{}, err
	}
	c.summarise()
	return c.report, nil
}

func newChecker(ws workTree, o Options) (*checker, error) {
	c := &checker{ws: ws, o: o, log: o.Log, clock: o.Clock, owner: map[string]*suite{}, base: baseFailures(o.Baseline)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	c.begun = c.clock()
	c.report.Head = o.Head
	var err error
	c.patch, err = parsePatch(o.Patch)
	return c, err
}

// runAll runs every suite, then its failing tests again.
func (c *checker) runAll(ctx context.Context) error {
	if len(c.suites) == 0 {
		return nil
	}
	if err := c.prepareScratch(ctx); err != nil {
		return err
	}
	defer c.removeScratch(context.WithoutCancel(ctx)) // also after a stop: the work tree is to be left as it was
	for _, s := range c.suites {
		if s.done.NotRun != "" || c.bare && !c.concerns(s) {
			continue
		}
		if err := c.runSuite(ctx, s); err != nil {
			return err
		}
		if !c.bare {
			c.readCoverage(ctx, s)
		}
		if err := c.rerunFailing(ctx, s); err != nil {
			return err
		}
	}
	return cmp.Or(ctx.Err(), c.nothingRan())
}

// summarise makes the report of what the suites found.
func (c *checker) summarise() {
	r := &c.report
	for _, s := range c.suites {
		r.Suites = append(r.Suites, s.done)
		for i := range s.result.cases {
			c.count(s, &s.result.cases[i])
		}
	}
	r.Total = r.Passed + r.Failed + r.Skipped + len(r.Before)
	if len(c.suites) == 0 {
		r.None = nothingFound
	} else if ended := c.ended(); r.Total == 0 && len(ended) > 0 {
		r.None = "no test was reported: " + strings.Join(ended, "; ")
	} else if r.Total == 0 {
		r.None = "the test commands ran and ended well, but no test was run by: " + strings.Join(c.commands(), "; ") + ". " + howToName
	}
	r.Unclean = c.unclean()
	slices.Sort(r.Names)
	r.Names = slices.Compact(r.Names)
	if len(r.Names) > maxNames {
		r.Names = slices.Clip(r.Names[:maxNames])
	}
	slices.Sort(r.Skips)
	r.Skips = slices.Compact(r.Skips)
	c.nameRegressions()
	r.Changed = c.changed()
	r.Tampered = c.tampered()
	c.log.Info("tests done", "head", r.Head, "iteration", c.o.Iteration, "suites", len(r.Suites), "passed", r.Passed, "failed", r.Failed,
		"skipped", r.Skipped, "before", len(r.Before), "flaky", len(r.Flaky), "changed", len(r.Changed), "tampered", len(r.Tampered), "ms", c.clock().Sub(c.begun).Milliseconds())
}

// count adds one test to the report.
func (c *checker) count(s *suite, t *testcase) {
	r := &c.report
	switch t.status {
	case passed, flaky:
		r.Passed++
		r.Names = append(r.Names, t.name)
		if t.status == flaky {
			r.Flaky = append(r.Flaky, t.name)
		}
	case skipped:
		r.Skipped++
		if len(c.o.Proofs) > 0 && len(r.Skips) < maxNames {
			r.Skips = append(r.Skips, t.name)
		}
	case failed:
		c.fails(s, t)
	}
}

// ended says of the suites that were ended from outside how.
func (c *checker) ended() []string {
	var out []string
	for _, s := range c.suites {
		if s.ended != "" {
			out = append(out, s.ended)
		}
	}
	return out
}

func (c *checker) commands() []string {
	var out []string
	for _, s := range c.suites {
		out = append(out, s.done.Command)
	}
	return out
}
