package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/glob"
	"forge/pipeline/module"
	"forge/pipeline/testname"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// contract lays down what the modules promise each other. A revision that a module wants
// and that cannot be had after the attempts that a phase has is a refusal: the module is
// told, and the others go on.
func (x *Executor) contract(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	data, err := x.layDown(ctx, run, job)
	var fault *pipeline.Fault
	if job.Ref.Part == "" || !errors.As(err, &fault) || fault.Class != pipeline.FaultAgent || run.Counters.Faults+1 < run.Config.Loop.Faults {
		return data, err
	}
	x.Close(run.ID) // what was written in vain
	unable := fmt.Sprintf("%s of a revision failed, the last one so: %s", text.Plural(run.Config.Loop.Faults, "attempt", "attempts"), fault.Message)
	return pipeline.Data{Implementation: &pipeline.Implementation{Head: run.Head, Parent: run.Head, Unable: unable}}, nil
}

// layDown lets the implementer write the contract. The project must build with it, and
// its tests pass as before; what shows a promise may fail until its modules are there.
func (x *Executor) layDown(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	data, err := x.implement(ctx, run, job)
	if err != nil || data.Implementation.Unable != "" {
		return data, err
	}
	head, split := data.Implementation.Head, run.Plan.Split
	files, err := x.o.Gateway.Files(ctx, run.Repo, head)
	if err != nil {
		return data, err
	}
	for _, name := range split.Contract {
		if !slices.Contains(files, name) {
			return data, &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf("the contract's file %s was not written", name)}
		}
	}
	for _, name := range data.Implementation.Files {
		if p := module.Find(run.Parts, split.Owner(name, glob.Match)); p != nil && p.Left == "" {
			return data, &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf("%s is the module %s's, which has begun: "+
				"change the contract's own files alone, and leave it to the module to follow", name, p.ID)}
		}
	}
	report, err := x.tryHead(ctx, run, head)
	if err != nil {
		return data, err
	}
	if err := x.keepsPromises(ctx, run, head); err != nil {
		return data, err
	}
	merged := func(id string) bool { p := module.Find(run.Parts, id); return p != nil && p.Merged != "" }
	broken, err := x.withLost(ctx, run, head, &report, broken(run, report, merged))
	if err != nil {
		return data, err
	}
	if len(broken) > 0 {
		return data, &pipeline.Fault{Class: pipeline.FaultAgent,
			Message: "with the contract, the project does not build or its tests do not pass as before: " + failing(broken)}
	}
	for _, p := range split.Promises {
		if !ranAs(&report, p.Probe, func(string) bool { return false }) {
			return data, &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf("the test %s, which is to show what %s promises to %s, does not run with the contract: "+
				"write a test of this name, which may fail until both are there and is not skipped", p.Probe, p.From, strings.Join(p.To, ", "))}
		}
		if !mergedPart(run, p.From) && passes(&report, p.Probe) {
			return data, &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf("the test %s passes although the module %s, which promises what it is to show (%s), is not there: "+
				"it shows nothing; let it fail until the promise is kept", p.Probe, p.From, p.Text)}
		}
	}
	data.Tests = &report
	return data, nil
}

// keepsPromises refuses a revision of the contract that edits the test of a promise which
// a merged module has kept: that module was verified against it.
func (x *Executor) keepsPromises(ctx context.Context, run *pipeline.Run, head string) error {
	if run.Contract == "" {
		return nil
	}
	for _, p := range run.Plan.Split.Promises {
		if q := module.Find(run.Parts, p.From); q == nil || q.Merged == "" {
			continue
		}
		for _, name := range run.Plan.Split.Contract {
			was, err := x.o.Gateway.File(ctx, run.Repo, run.Head, name)
			if err != nil {
				continue // it is new
			}
			now, err := x.o.Gateway.File(ctx, run.Repo, head, name)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if base := testname.Parse(p.Probe).Base; check.TestText(name, was, base) != check.TestText(name, now, base) {
				return &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf("the test %s in %s shows what the module %s promises, which is merged and was verified against it (%s): "+
					"leave this test as it is; what is new can have a test of its own", p.Probe, name, p.From, p.Text)}
			}
		}
	}
	return nil
}

// passes reports whether a test of this name passed, and none failed.
func passes(report *pipeline.TestReport, name string) bool {
	named := func(test string) bool { return testname.Same(test, name) }
	return name != "" && slices.ContainsFunc(report.Names, named) &&
		!slices.ContainsFunc(slices.Concat(report.Failures, report.Before), func(f pipeline.Failure) bool { return named(f.Test) })
}

// ranAs reports whether a test of this name passed or failed, or may have been kept from
// it by what does not build; others of the same name do not count.
func ranAs(report *pipeline.TestReport, name string, other func(test string) bool) bool {
	named := func(test string) bool { return testname.Same(test, name) && !other(test) }
	failed := func(f pipeline.Failure) bool { return f.Whole || named(f.Test) }
	return name == "" || slices.ContainsFunc(slices.Concat(report.Names, report.Accepted), named) || slices.ContainsFunc(report.Failures, failed) || slices.ContainsFunc(report.Before, failed)
}

// merge takes a module into the run's branch. The tests run on the merge before it becomes
// the head, even where its tree is the one that the module's run verified: what breaks
// them, keeps others from running, or shows a promise broken that is whole only now, goes
// back to a module.
func (x *Executor) merge(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	part := module.Find(run.Parts, job.Ref.Part)
	if part == nil {
		return pipeline.Data{}, fmt.Errorf("merge %s: the run has no module of this name", job.Ref.Part)
	}
	if job.Ref.Mode == pipeline.ModeLook {
		return x.lookForParts(ctx, run)
	}
	u := pipeline.Update{Base: part.Head, Parent: run.Head}
	if err := x.fetch(ctx, run, u.Base); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.fetch(ctx, run, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	bot, err := x.o.Identity(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	merged, err := x.o.Gateway.Merge(ctx, run.Repo, u.Base, workspace.CommitOptions{
		Parent: run.Head, Author: bot.Name, Email: bot.Email, Time: part.Ended, Signoff: run.Config.Signoff,
		Message: "Merge module " + part.ID, Run: fmt.Sprintf("%s/%d", run.Trace, job.Ref.Iteration),
	})
	if err != nil {
		return pipeline.Data{}, err
	}
	u.Head, u.Conflicts = merged.SHA, merged.Conflicts
	data := pipeline.Data{Update: &u}
	if len(u.Conflicts) > 0 {
		return data, nil
	}
	if tellsNews(run, part, u.Head) {
		report, err := x.tryHead(ctx, run, u.Head)
		if err != nil {
			return pipeline.Data{}, err
		}
		all := report.Failures
		report.Failures = broken(run, report, there(run, part.ID))
		known := accepted(run)
		for _, f := range all { // modules that begin on the merge find them there
			if known(f) {
				report.Before = append(report.Before, f)
			}
		}
		run.AcceptMerge(&report, part.ID)
		if report.Failures, err = x.withLost(ctx, run, u.Head, &report, report.Failures); err != nil {
			return pipeline.Data{}, err
		}
		data.Tests = &report
	}
	if u.Head, err = x.signed(ctx, run, u.Head); err != nil {
		return pipeline.Data{}, err
	}
	return data, nil
}

// tellsNews reports whether the tests of a merge may show what those of the head before did
// not: one of a module that was accepted brings its promises to the test, though it has no commit.
func tellsNews(run *pipeline.Run, part *module.Part, merged string) bool {
	return merged != run.Head || pipeline.State(part.State) == pipeline.StateAccepted
}

// lookForParts says which merged modules are not on the branch any more, and how its tests
// do where another module is still to be merged: what fails there is not that one's doing.
func (x *Executor) lookForParts(ctx context.Context, run *pipeline.Run) (pipeline.Data, error) {
	if err := x.fetch(ctx, run, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	gone, err := x.gone(ctx, run)
	if err != nil {
		return pipeline.Data{}, err
	}
	reverted, err := x.reverted(ctx, run, gone)
	if err != nil {
		return pipeline.Data{}, err
	}
	data := pipeline.Data{Update: &pipeline.Update{Parent: run.Head, Head: run.Head, Gone: gone, Reverted: reverted}}
	if len(gone)+len(reverted) > 0 || slices.ContainsFunc(run.Parts, func(p module.Part) bool { return !p.Done() }) {
		report, err := x.tryHead(ctx, run, run.Head)
		if err != nil {
			return pipeline.Data{}, err
		}
		data.Tests = &report
	}
	return data, nil
}

// gone are the modules that are in doubt, and whose commits the head does not have.
func (x *Executor) gone(ctx context.Context, run *pipeline.Run) (out []string, err error) {
	for i := range run.Parts {
		p := &run.Parts[i]
		if p.Doubt == "" {
			continue
		}
		there, err := x.o.Gateway.Holds(ctx, run.Repo, run.Head, p.Merged)
		if err != nil {
			return nil, err
		}
		if !there {
			out = append(out, p.ID)
		}
	}
	return out, nil
}

// reverted are the modules that are in doubt and not gone, but all of whose files are on the
// head as they were before the work.
func (x *Executor) reverted(ctx context.Context, run *pipeline.Run, gone []string) (out []string, err error) {
	if run.Plan == nil || run.Plan.Split == nil {
		return nil, nil
	}
	now, err := x.o.Gateway.Changed(ctx, run.Repo, run.Base, run.Head)
	if err != nil {
		return nil, err
	}
	stays := func(name string) bool { return slices.Contains(now, name) }
	for i := range run.Parts {
		p := &run.Parts[i]
		if p.Doubt == "" || slices.Contains(gone, p.ID) {
			continue
		}
		brought, err := x.o.Gateway.Changed(ctx, run.Repo, run.Base, p.Merged)
		if err != nil {
			return nil, err
		}
		brought = slices.DeleteFunc(brought, func(name string) bool { return run.Plan.Split.Owner(name, glob.Match) != p.ID })
		if len(brought) > 0 && !slices.ContainsFunc(brought, stays) {
			out = append(out, p.ID)
		}
	}
	return out, nil
}

// withLost adds to the failures of a commit the tests that passed on the run's head, and
// that do not run there although nobody took them away.
func (x *Executor) withLost(ctx context.Context, run *pipeline.Run, sha string, report *pipeline.TestReport, failures []pipeline.Failure) ([]pipeline.Failure, error) {
	before := cmp.Or(run.Tried, run.Baseline)
	if before == nil {
		return failures, nil
	}
	patch, err := x.o.Gateway.Diff(ctx, run.Repo, run.Head, sha)
	if err != nil {
		return nil, err
	}
	for _, test := range check.Lost(before, report, patch) {
		f := pipeline.Failure{Test: test, Error: "it passed before and does not run any more, although it is not taken away: it is hidden, skipped, or not found"}
		f.Fingerprint = f.Digest()
		failures = append(failures, f)
	}
	return failures, nil
}

// tryHead runs the tests of a commit as they are, once, to tell whether it may become
// the head of the work.
func (x *Executor) tryHead(ctx context.Context, run *pipeline.Run, sha string) (pipeline.TestReport, error) {
	ws, err := x.at(ctx, run, sha)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	report, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: sha, Baseline: run.Baseline, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	return report, x.explain(run.ID, sha, err)
}

// keepsModules judges what the integration itself has changed by the tests as they stood
// when the modules were merged: those of the contract and of the modules are not the
// base's. A module's by its own last merge, since what the integration did before a later
// one must not become the yardstick. And the test of each promise must have run.
func (x *Executor) keepsModules(ctx context.Context, run *pipeline.Run, trees *trees, opts check.Options, report *pipeline.TestReport) error {
	joins := run.Joins()
	if len(joins) == 0 || report.None != "" {
		return nil
	}
	aside := func(r *pipeline.TestReport) {
		r.Defer(func(test string) bool { return oneSided(run, test) })
		r.Accept(run.KnownInParts())
	}
	aside(report)
	for _, join := range joins {
		if len(report.Failures)+len(report.Tampered) > 0 {
			break // it goes back as it is
		}
		got, before, err := x.sinceJoin(ctx, run, join, join == joins[len(joins)-1], trees, opts)
		if err != nil {
			return err
		}
		notOfBase(got, before, report.Before)
		aside(got)
		report.Add(got)
	}
	for _, f := range unshown(run, report) {
		report.Add(&pipeline.TestReport{Failures: []pipeline.Failure{f}})
	}
	return nil
}

// notOfBase takes out of what fails since a join what failed before the work, too, and did not
// pass at the join: the base branch has brought it since, where the two could not be merged.
func notOfBase(got, before *pipeline.TestReport, known []pipeline.Failure) {
	got.Failures = slices.DeleteFunc(slices.Clone(got.Failures), func(f pipeline.Failure) bool {
		return !slices.Contains(before.Names, f.Test) &&
			slices.ContainsFunc(known, func(k pipeline.Failure) bool { return k.Test == f.Test && k.ErrorKey() == f.ErrorKey() })
	})
}

// sinceJoin judges what was changed since a join, all of it since the last one, and says how
// the tests did there.
func (x *Executor) sinceJoin(ctx context.Context, run *pipeline.Run, join string, last bool, trees *trees, opts check.Options) (got, before *pipeline.TestReport, err error) {
	none := &pipeline.TestReport{}
	if join == run.Head {
		return none, none, nil
	}
	if opts.Base, err = x.withBase(ctx, run, join); err != nil {
		return nil, nil, err
	}
	if opts.Patch, err = x.o.Gateway.Diff(ctx, run.Repo, opts.Base, run.Head); err != nil || opts.Patch == "" {
		return none, none, err
	}
	tried, err := x.tryHead(ctx, run, opts.Base)
	if err != nil {
		return nil, nil, err
	}
	opts.Baseline, opts.Proofs = &tried, nil
	since, err := check.Verify(ctx, trees.open, opts)
	got = &since
	if err != nil || last {
		return got, &tried, err
	}
	split := run.Plan.Split
	check.Restrict(got, func(file string) bool { // others are judged at a later join
		return run.Judges(join, split.Owner(file, glob.Match), slices.Contains(split.Contract, file))
	})
	return got, &tried, nil
}

// withBase is a commit of the branch with what of the base branch was taken in since.
// Where the two conflict it is the commit itself.
func (x *Executor) withBase(ctx context.Context, run *pipeline.Run, sha string) (string, error) {
	merged, err := x.o.Gateway.Merge(ctx, run.Repo, run.Base, workspace.CommitOptions{
		Parent: sha, Author: "forge", Email: "forge@localhost", Time: run.Started, Message: "Compare with this", Run: run.Trace,
	})
	if err != nil || merged.SHA == "" {
		return sha, err
	}
	return merged.SHA, nil
}

// ofModule reports whether a test that is named by its file stands in a module's own: it
// is not the contract's, whatever it is called.
func ofModule(s *module.Split, test string) bool {
	if file, _, ok := strings.Cut(test, "::"); ok && path.Ext(file) != "" {
		return s.Owner(file, glob.Match) != ""
	}
	id := testname.Parse(test)
	if !strings.Contains(id.Container, "/") || strings.Contains(test, " > ") {
		return false
	}
	for dir := id.Container; dir != ""; _, dir, _ = strings.Cut(dir, "/") { // a Go package, by the end of its path
		if slices.ContainsFunc(s.Contract, func(name string) bool { return path.Dir(name) == dir }) {
			return false
		}
		if s.Owner(dir+"/x_test.go", glob.Match) != "" {
			return true
		}
	}
	return false
}

// partsOf are the modules as the run of one of them knows them: whose paths are whose.
func partsOf(of *module.Of) *module.Split {
	s := &module.Split{Contract: of.Contract, Modules: []module.Module{of.Module}}
	for _, glob := range slices.Sorted(maps.Keys(of.Owners)) {
		s.Modules = append(s.Modules, module.Module{ID: of.Owners[glob], Paths: []string{glob}})
	}
	return s
}

// there tells which modules are there where one is merged. What is left to the integration
// is not, until the whole is judged.
func there(run *pipeline.Run, merging string) func(module string) bool {
	return func(id string) bool {
		p := module.Find(run.Parts, id)
		return id == merging || p != nil && p.Merged != ""
	}
}

// mergedPart reports whether a module of the run is there: merged, or built by the
// integration in its place.
func mergedPart(run *pipeline.Run, id string) bool {
	p := module.Find(run.Parts, id)
	return p != nil && (p.Merged != "" || p.How == module.Wired)
}

// oneSided reports whether a test shows promises alone of which a side was left out.
func oneSided(run *pipeline.Run, test string) bool {
	if run.Plan == nil || run.Plan.Split == nil {
		return false
	}
	for _, p := range run.Plan.Split.Promises {
		if testname.Same(test, p.Probe) && mergedPart(run, p.From) && slices.ContainsFunc(p.To, func(to string) bool { return mergedPart(run, to) }) {
			return false
		}
	}
	return !ofModule(run.Plan.Split, test) && slices.ContainsFunc(run.Probes(), func(probe string) bool { return testname.Same(test, probe) })
}

// unshown are the promises between merged modules whose test neither passed nor failed:
// it was skipped, or there is none.
func unshown(run *pipeline.Run, report *pipeline.TestReport) (out []pipeline.Failure) {
	if run.Plan == nil || run.Plan.Split == nil {
		return nil
	}
	merged := func(id string) bool { return mergedPart(run, id) }
	split := run.Plan.Split
	for _, p := range split.Promises {
		if !merged(p.From) || !slices.ContainsFunc(p.To, merged) || ranAs(report, p.Probe, func(test string) bool { return ofModule(split, test) }) {
			continue
		}
		f := pipeline.Failure{Test: p.Probe, Error: fmt.Sprintf("the test of what %s promises to %s did not run: it was skipped, or no test has this name, so that nothing shows it: %s",
			p.From, strings.Join(p.To, ", "), p.Text)}
		f.Fingerprint = f.Digest()
		out = append(out, f)
	}
	return out
}

// broken are the failures of a report that neither the base had nor the run has open,
// and that show no promise of which a side is missing. A suite that does not end well,
// and did at the base, is one.
func broken(run *pipeline.Run, report pipeline.TestReport, there func(module string) bool) []pipeline.Failure {
	failures := slices.Clone(report.Failures)
	if report.Unclean != "" && (run.Baseline == nil || run.Baseline.Unclean == "") {
		failures = append(failures, pipeline.Failure{Test: "the test suite", Error: report.Unclean})
	}
	known := accepted(run)
	return slices.DeleteFunc(failures, func(f pipeline.Failure) bool {
		if known(f) {
			return true
		}
		if already(run, &f) && !slices.ContainsFunc(run.Plan.Split.Probes(), func(probe string) bool { return testname.Same(f.Test, probe) }) {
			return true
		}
		open := slices.ContainsFunc(run.Failures, func(is pipeline.Issue) bool { return is.State == pipeline.IssueOpen && is.Failure.Test == f.Test })
		named := func(probe string) bool { return testname.Same(f.Test, probe) && !ofModule(run.Plan.Split, f.Test) }
		former := slices.ContainsFunc(run.Probes(), named) && !slices.ContainsFunc(run.Plan.Split.Probes(), named) // of a plan that was replaced
		return open || former || slices.ContainsFunc(run.Plan.Split.Promises, func(p module.Promise) bool {
			all := there(p.From) && !slices.ContainsFunc(p.To, func(to string) bool { return !there(to) })
			return named(p.Probe) && !all
		})
	})
}

// already reports whether a test failed so on the head, before anything was merged into it:
// somebody has pushed that.
func already(run *pipeline.Run, f *pipeline.Failure) bool {
	t := run.Tried
	return t != nil && t.Head == run.Head && slices.ContainsFunc(t.Failures, func(x pipeline.Failure) bool { return x.Test == f.Test && x.ErrorKey() == f.ErrorKey() })
}

// accepted tells which failures people took with a module.
func accepted(run *pipeline.Run) func(pipeline.Failure) bool {
	known := run.KnownInParts()
	return func(f pipeline.Failure) bool {
		k, taken := known[f.Test]
		return taken && k.SameError(&f)
	}
}

// setPending takes the tests of promises out of what fails in the run of a module: their
// other side is not there. The run that planned it tests them at the merge.
func setPending(run *pipeline.Run, report *pipeline.TestReport) {
	if run.Part == nil {
		return
	}
	split := partsOf(run.Part)
	report.Defer(func(test string) bool {
		return !ofModule(split, test) && slices.ContainsFunc(run.Part.Probes, func(probe string) bool { return testname.Same(test, probe) })
	})
}

// failing names failures with their errors.
func failing(list []pipeline.Failure) string {
	var out []string
	for _, f := range list[:min(len(list), 5)] {
		out = append(out, fmt.Sprintf("%s: %s", f.Test, strings.TrimSpace(f.Error)))
	}
	return strings.Join(out, "\n")
}
