package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// concerns reports whether a suite is part of a narrowed run.
func (c *checker) concerns(s *suite) bool {
	if c.only != nil && !c.only(s) {
		return false
	}
	return c.narrow == nil || s.format == formatGo && (s.args[len(s.args)-1] != "./..." || len(c.inModule(s)) > 0)
}

// inModule returns the packages of a narrowed run that a suite tests, as its
// command names them.
func (c *checker) inModule(s *suite) []string {
	var out []string
	for _, dir := range c.narrow {
		rest, ok := strings.CutPrefix("./"+dir+"/", "./"+strings.TrimPrefix(s.dir+"/", "./"))
		deeper := slices.ContainsFunc(c.modules, func(m goModule) bool { // the package is a nested module's
			at := strings.Trim(m.dir, "/")
			return len(at) > len(strings.Trim(s.dir, "./")) && strings.HasPrefix(dir+"/", at+"/")
		})
		if ok && !deeper {
			out = append(out, "./"+strings.TrimSuffix(rest, "/"))
		}
	}
	return out
}

// bareArgs is a suite's command for a run that is only compared: nothing stops it
// early, and only what may differ is run.
func (c *checker) bareArgs(s *suite) []string {
	args := slices.Clone(s.args)
	switch {
	case s.format == formatGo:
		if n := len(args) - 1; c.narrow != nil && args[n] == "./..." {
			args = append(args[:n], c.inModule(s)...)
		}
		args = slices.DeleteFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "failfast" })
		if c.often > 0 {
			args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(strings.TrimLeft(a, "-"), "count=") })
			args = withGoFlags(args, fmt.Sprintf("-count=%d", c.often))
		}
	case s.pytest:
		args = append(args, "--maxfail=0", "--continue-on-collection-errors")
	case s.format == formatJest:
		args = append(args, "--bail=0")
	case s.format == formatUnittest:
		args = slices.DeleteFunc(args, func(a string) bool { return a == "-f" || a == "--failfast" })
	}
	return args
}

// proveHead runs the head's own tests once more with tests among them that must
// fail, where the change touches what decides over passing: the base's tests say
// nothing of those that are new.
func (v *verdict) proveHead(ctx context.Context) error {
	if !v.head.patch.runnerEdited(v.edits) {
		return nil
	}
	var p *planting
	if _, err := v.run(ctx, treeRun{sha: v.o.Head, plants: &p, plan: true}); err != nil {
		if _, mine := environment(err); !mine {
			return err
		}
		return nil
	}
	return v.mustFail(ctx, p, false, nil)
}

// mustFail holds that the planted tests were reported as failing. Those that were
// not are planted at the base, too: where they do not show there either, it is the
// suite's way, and not the change's doing.
func (v *verdict) mustFail(ctx context.Context, p *planting, back bool, kept map[string]string) error {
	if p == nil || len(p.list) == 0 {
		return nil
	}
	if slices.ContainsFunc(p.list, func(one planted) bool { return one.any }) {
		if _, err := v.run(ctx, treeRun{sha: v.o.Head, back: back, kept: kept, plants: &p, whole: true}); err != nil {
			if _, mine := environment(err); !mine {
				return err
			}
		}
	}
	hidden := p.missing()
	if len(hidden) == 0 {
		return nil
	}
	sure := slices.DeleteFunc(slices.Clone(hidden), func(one planted) bool { return !p.alive[one.file] || v.atBase(one) })
	again := &planting{word: p.word, list: slices.DeleteFunc(slices.Clone(hidden), func(one planted) bool { return !v.atBase(one) }), seen: map[string]bool{}, alive: map[string]bool{}, lost: map[string]bool{}}
	for _, whole := range []bool{false, true} {
		if !slices.ContainsFunc(again.list, func(one planted) bool { return one.any == whole }) {
			continue
		}
		if _, err := v.run(ctx, treeRun{sha: v.o.Base, plants: &again, whole: whole, all: true}); err != nil {
			if _, mine := environment(err); !mine {
				return err
			}
		}
	}
	for _, one := range again.list {
		if slices.ContainsFunc(one.words, func(w string) bool { return again.seen[w] && !p.seen[w] }) {
			sure = append(sure, one)
		}
	}
	if len(sure) > 0 {
		v.hide(sure, p.word)
	}
	return nil
}

// atBase reports whether the base has what a planted test stands beside.
func (v *verdict) atBase(one planted) bool {
	for _, e := range v.edits {
		if e.name == one.file {
			return !e.added
		}
	}
	return !slices.ContainsFunc(v.head.patch.files, func(f *gitdiff.File) bool { return f.IsNew && f.NewName == one.file })
}

// hide makes the finding that failures do not show.
func (v *verdict) hide(sure []planted, word string) {
	var at []string
	for _, one := range sure {
		name := one.file
		if one.own {
			name = strings.TrimSuffix(strings.ReplaceAll(name, "zz"+word+"_test.go", ""), "/")
			if name == "" {
				name = "."
			}
		}
		at = append(at, name)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	why := slices.Clone(v.loose)
	for _, e := range v.edits {
		if e.role == runner || e.role == testSource {
			why = append(why, e.name)
		}
	}
	slices.Sort(why)
	why = slices.Compact(why)
	f := pipeline.Finding{Rule: ruleForges, Code: strings.Join(at, "\n"),
		Message: fmt.Sprintf("With this change failing tests are not reported as failing: a test that must fail was put into %s for a trial, and did not show. What the change touches and what can do this: %s",
			strings.Join(at[:min(len(at), 5)], ", "), strings.Join(why[:min(len(why), 10)], ", "))}
	if len(why) > 0 {
		f.File = why[0]
	}
	v.found = append(v.found, f)
}
