package check

import (
	"context"
	"errors"
	"path"
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
	open   Opener
	o      Options
	head   *checker // the head with its own tests
	suites []suite  // those of the head, not yet run
	tests  map[string]outcome
	edits  []edit            // files of the tests that the change touches
	isTest map[string]bool   // those by their names
	unsure []edit            // files that may be the tests' or the product's, by plain commands
	direct []string          // those of edits that plain commands name themselves
	texts  map[string][]byte // of those at the head
	stood  *stood            // the base's tests on the head; nil: they are the head's own
	found  []pipeline.Finding
}

// Verify judges a change. It runs the head's tests and, where the change touches
// anything that tests consist of, the base's own tests as they stood, on the new
// code, in a tree of its own. A test that passes only as the change edited it is in
// Changed; each needs the reviewer's reason, and is a finding until [Justify] brings
// one. And the tests that the change adds or edits run with their expectations changed:
// one that passes all the same is a finding.
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
		if err := v.spare(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.settle(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.runBaseTests(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
		if err := v.mutate(ctx); err != nil {
			return pipeline.TestReport{}, err
		}
	}
	if o.Base != "" && len(v.head.patch.files) == 0 && !o.MayBeEmpty && !o.Beside {
		v.found = append(v.found, pipeline.Finding{Rule: "change.empty", Code: o.Head,
			Message: "The work changes nothing: the branch holds the same as its base, so that review and tests show nothing of what was asked for"})
	}
	v.head.stood, v.head.edits, v.head.found = v.stood, v.edits, v.found
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
	v.edits = c.patch.edits(read, used, makes)
	v.isTest = map[string]bool{}
	for _, e := range v.edits {
		v.isTest[e.name] = true
	}
	b := &baseView{v: v, read: read, used: used, makes: makes, files: map[string]bool{}, texts: map[string][]byte{}}
	for _, e := range c.insideEdits(v.isTest, read) {
		v.edits, v.isTest[e.name] = append(v.edits, e), !e.inProduct()
	}
	if err := v.supports(ctx, tree, b); err != nil {
		return err
	}
	c.brought = b.bringsScripts()
	c.inside = append(c.inside, c.editedInside(v.isTest, read)...)
	v.texts = map[string][]byte{}
	for _, e := range v.edits {
		v.texts[e.name], _ = read(e.name)
	}
	if err := c.runAll(ctx); err != nil {
		return err
	}
	return c.measure(ctx)
}

var (
	makeCommand    = lazyregexp.New(`(?:^|[\s;&|])(?:make|just|task|rake)\b`)
	packageCommand = lazyregexp.New(`(?:^|[\s;&|])(?:npm|pnpm|yarn)\b`)
)

// usedByCommands returns the files by which the tests are run although no command starts them,
// and whether the commands go through make.
func (c *checker) usedByCommands(read func(string) ([]byte, bool)) (used map[string]bool, makes bool) {
	used = map[string]bool{}
	for _, s := range c.suites {
		makes = makes || makeCommand.MatchString(strings.Join(s.args, " "))
		if data, ok := read(path.Join(s.dir, "package.json")); ok {
			makes = makes || strings.Contains(string(data), "make ")
		}
		for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
			data, _ := read(path.Join(s.dir, name))
			for _, m := range makeInclude.FindAllStringSubmatch(string(data), -1) {
				for _, w := range strings.Fields(m[1]) {
					used[path.Join(s.dir, w)] = makes
				}
			}
		}
	}
	for _, name := range []string{"pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini"} { // documents whose examples are tests
		data, _ := read(name)
		for _, m := range docTests.FindAllSubmatch(data, -1) {
			for _, f := range c.patch.files {
				if ok, err := path.Match(string(m[1]), path.Base(f.OldName)); err == nil && ok {
					used[f.OldName] = true
				}
			}
		}
	}
	return used, makes
}

// docTests is how pytest is told of documents whose examples are tests.
var docTests = lazyregexp.New(`doctest[-_]glob[=\s]+["']?([^\s"',\]]+)`)

// environment tells a fault that ends the verdict from one that is only this run's:
// the head's own tests ran, so what the base's tests lack they lack by the change.
func environment(err error) (string, bool) {
	var f *pipeline.Fault
	if errors.As(err, &f) && f.Class == pipeline.FaultEnvironment {
		return f.Message, true
	}
	return "", false
}
