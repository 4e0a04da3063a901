package check

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// Tree is a work tree of its own, with one commit in it.
type Tree interface {
	workTree
	// Restore makes some paths be what they are in a commit, or not there at all.
	Restore(ctx context.Context, sha string, paths []string) error
	Write(ctx context.Context, path string, content []byte) error
	Close() error
}

// Opener makes a fresh tree of a commit. Nothing that another tree's commands left
// may be in it, build caches included: one run must not speak for the next.
type Opener func(ctx context.Context, sha string) (Tree, error)

// verdict is the judgement on one change.
type verdict struct {
	open     Opener
	o        Options
	head     *checker // the head with its own tests
	suites   []suite  // those of the head, not yet run
	tests    map[string]outcome
	edits    []edit            // files of the tests that the change touches
	isTest   map[string]bool   // those by their names
	texts    map[string][]byte // of those in Python at the head, where tests are named as proofs
	used     map[string]bool   // files by which commands run the tests
	scripts  []script          // of a shell, which are tests that passed
	helpers  []edit            // files that only tests or their commands use, by other names
	alone    [][]edit          // of those the ones that may be the product's own
	begun    map[string]bool   // files that the commands lead to; see baseView.started
	helping  bool              // those are taken back, too: where one makes a test fail, that is what is asked
	patching []string          // files of tests that change what others look at
	threads  bool              // tests of Python check in threads, or in tasks of a pool
	loose    []string          // why the change might reach the runner itself; empty: it cannot
	stood    *stood            // the base's tests on the head; nil: they are the head's own
	leaning  []leaning         // the same with helpers put back, too
	found    []pipeline.Finding
}

// Verify judges a change. It runs the head's tests and, where the change touches
// anything that tests consist of, the base's own tests as they stood, on the new
// code, in a tree of its own. A test that passes only as the change edited it is in
// Changed; each needs the reviewer's reason, and is a finding until [Justify] brings
// one. Where the change could reach the runner itself, tests that must fail are
// planted: one that is not reported as failing tells that failures do not show. And the
// base's tests run with their expectations changed: one that passes all the same, and
// fails so at the base, is a finding.
//
// See [Run] for the counts and for errors.
func Verify(ctx context.Context, open Opener, o Options) (pipeline.TestReport, error) {
	v := &verdict{open: open, o: o}
	if err := v.runHead(ctx); err != nil {
		return pipeline.TestReport{}, err
	}
	if err := v.newlyFlaky(ctx); err != nil {
		return pipeline.TestReport{}, err
	}
	v.tests = outcomes(v.head.cases())
	if o.Base != "" && len(v.head.suites) > 0 {
		if err := v.runBaseTests(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runWithHelpers(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runAside(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.askedEqual(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.proveHead(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runElsewhere(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runAlone(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runOften(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runSpoiled(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runToEnd(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
	}
	if err := v.writesTests(ctx); err != nil {
		return pipeline.TestReport{}, err
	}
	if o.Base != "" && len(v.head.patch.files) == 0 && !o.MayBeEmpty && !o.Beside {
		v.found = append(v.found, pipeline.Finding{Rule: "change.empty", Code: o.Head,
			Message: "The work changes nothing: the branch holds the same as its base, so that review and tests show nothing of what was asked for"})
	}
	v.head.stood, v.head.leaning = v.stood, v.leaning
	v.head.reached = slices.Concat(v.head.reached, v.head.asked, v.found)
	v.head.edits = v.edits
	v.head.summarise()
	var err error
	v.head.report.Trial, err = v.trial(ctx, &v.head.report)
	return v.head.report, err
}

// runHead looks at the change while its tree is clean, then runs the head's tests.
func (v *verdict) runHead(ctx context.Context) error {
	tree, err := v.open(ctx, v.o.Head)
	if err != nil {
		return err
	}
	defer tree.Close()
	c, err := newChecker(tree, v.o)
	if err != nil {
		return err
	}
	v.head = c
	if c.suites, err = c.detect(ctx); err != nil {
		return err
	}
	for _, s := range c.suites {
		v.suites = append(v.suites, *s)
	}
	read := func(name string) ([]byte, bool) {
		data, err := tree.Read(ctx, name)
		return data, err == nil
	}
	used, makes := c.usedByCommands(read)
	v.edits, v.used = c.patch.edits(read, used, makes), used
	v.isTest = map[string]bool{}
	v.texts = map[string][]byte{}
	for _, e := range v.edits {
		v.isTest[e.name] = true
		if len(v.o.Proofs) > 0 && path.Ext(e.name) == ".py" {
			v.texts[e.name], _ = read(e.name)
		}
	}
	b := &baseView{v: v, read: read, used: used, makes: makes, files: map[string]bool{}, texts: map[string][]byte{}}
	for _, e := range c.insideEdits(v.isTest, read) {
		v.edits, v.isTest[e.name] = append(v.edits, e), !e.inProduct()
	}
	c.direct, c.brought = b.direct(), b.bringsScripts()
	v.loose = c.patch.loose(v.isTest)
	c.inside = slices.Concat(c.inside, c.editedInside(v.isTest, read), c.editedSelfTests(v.isTest))
	if !v.o.Beside {
		if err := v.looksAt(ctx, tree, read); err != nil {
			return err
		}
	}
	if err := v.supports(ctx, tree, b); err != nil {
		return err
	}
	if err := v.goSupports(ctx, tree, b); err != nil {
		return err
	}
	c.report.Edited = v.editedParts(read)
	if err := v.findPatching(ctx, tree); err != nil {
		return err
	}
	if err := c.runAll(ctx); err != nil {
		return err
	}
	v.findScripts(b)
	c.wrote = written(ctx, tree)
	return c.measure(ctx)
}

// looksAt finds what the change itself says, whatever tests run on it.
func (v *verdict) looksAt(ctx context.Context, tree Tree, read func(string) ([]byte, bool)) error {
	c := v.head
	c.disguised(v.isTest, read)
	c.reachesRunner(v.isTest)
	c.turnsAround(v.isTest)
	c.loadsPlugins(read)
	if err := c.knowsAnswers(ctx, tree, v.isTest, read); err != nil {
		return err
	}
	c.shadowing(v.isTest, read)
	return nil
}

var (
	pathWord   = lazyregexp.New(`[\w.@/-]*[\w-]`)
	runnerWord = lazyregexp.New(`(?i)test|spec|check|verify|(?:^|/)ci\b|(?:e2e|end[-_]?to[-_]?end|smoke|acceptance|integration|system|scenarios?)[^/]*$`)
)

var (
	makeCommand    = lazyregexp.New(`(?:^|[\s;&|])(?:make|just|task|rake)\b`)
	packageCommand = lazyregexp.New(`(?:^|[\s;&|])(?:npm|pnpm|yarn)\b`)
)

// usedByCommands returns the files by which the commands run the tests, and
// whether they go through make. A file that is not named for it may be the product
// itself, run by its own test.
func (c *checker) usedByCommands(read func(string) ([]byte, bool)) (used map[string]bool, makes bool) {
	used = map[string]bool{}
	words := func(dir, text string) {
		for _, w := range pathWord.FindAllString(text, -1) {
			if runnerWord.MatchString(w) && strings.ContainsAny(w, "./") {
				used[path.Join(dir, w)] = true
			}
		}
	}
	for _, s := range c.suites {
		command := strings.Join(s.args, " ")
		words(s.dir, command)
		makes = makes || makeCommand.MatchString(command)
		if data, ok := read(path.Join(s.dir, "package.json")); ok {
			words(s.dir, string(data))
			makes = makes || strings.Contains(string(data), "make ")
		}
		for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
			if data, ok := read(path.Join(s.dir, name)); ok && makes {
				words(s.dir, string(data))
				for _, m := range makeInclude.FindAllStringSubmatch(string(data), -1) {
					for _, w := range strings.Fields(m[1]) {
						used[path.Join(s.dir, w)] = true
					}
				}
			}
		}
	}
	for _, name := range pathConfigs { // documents whose examples are tests
		data, _ := read(name)
		for _, m := range docTests.FindAllSubmatch(data, -1) {
			for _, f := range c.patch.files {
				if ok, err := path.Match(string(m[1]), path.Base(f.OldName)); err == nil && ok {
					used[f.OldName] = true
				}
			}
		}
	}
	for _, f := range c.patch.files { // what they named before
		if base := path.Base(f.OldName); base == "package.json" || makes && makeNames.MatchString(base) {
			words(path.Dir(f.OldName), string(textBefore(f, read)))
		}
	}
	return used, makes
}

// environment tells a fault that ends the verdict from one that is only this run's:
// the head's own tests ran, so what the base's tests lack they lack by the change.
func environment(err error) (string, bool) {
	var f *pipeline.Fault
	if errors.As(err, &f) && f.Class == pipeline.FaultEnvironment {
		return f.Message, true
	}
	return "", false
}
