package check

import (
	"context"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/proof"
	"forge/pipeline/testname"
)

// A test shows a change where it fails without it. That is seen on the product code of the
// base with the head's tests on it: by its name alone a renamed test is new, one without an
// assertion, too, and one that the change extends is old.

// trial says how the tests that are named as proofs do without the change; nil where none
// is, or where something fails anyway.
func (v *verdict) trial(ctx context.Context, r *pipeline.TestReport) (*proof.Trial, error) {
	names := v.named()
	if len(names) == 0 || v.o.Base == "" || len(r.Failures)+len(r.Tampered) > 0 || r.Unclean != "" {
		return nil, nil
	}
	out := &proof.Trial{}
	s := &stood{}
	if paths := v.ahead(); len(paths) > 0 {
		if len(paths) == len(v.edits) {
			s.narrow = v.packages()
		}
		c, err := v.run(ctx, treeRun{sha: v.o.Base, ahead: paths, narrow: s.narrow, names: names})
		if why, mine := environment(err); mine {
			out.Why = why
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for _, suite := range c.suites {
			if suite.ended != "" {
				out.Why = suite.ended
			}
		}
		s.take(c, false)
		s.tests = outcomes(s.cases)
	}
	for _, name := range names {
		known, fails := v.failsBefore(s, name, out.Why != "")
		if known && fails {
			out.Fails = append(out.Fails, name)
		} else if known {
			out.Passes = append(out.Passes, name)
		}
	}
	return out, nil
}

// named are the tests that passed and that the names of proofs may stand for.
func (v *verdict) named() []string {
	var out []string
	for name, o := range v.tests {
		if o.ok() && slices.ContainsFunc(v.o.Proofs, func(p string) bool { return testname.Same(name, p) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// ahead are the files that the tests of the head consist of, where the change touches them.
func (v *verdict) ahead() []string {
	var out []string
	for _, e := range v.edits {
		out = append(out, e.name)
	}
	if len(out) == 0 {
		return nil
	}
	for _, f := range v.head.patch.files { // what the tests need of others
		if base := path.Base(f.NewName); (base == "go.mod" || base == "go.sum") && !slices.Contains(out, f.NewName) {
			out = append(out, f.NewName)
		}
	}
	return out
}

// failsBefore reports whether a test of the head fails on the product code of the base, and
// whether that is known. s is what ran there.
func (v *verdict) failsBefore(s *stood, name string, broken bool) (known, fails bool) {
	_, failedThen := v.head.base[name]
	passedThen := v.o.Baseline != nil && slices.Contains(v.o.Baseline.Names, name)
	if s.tests == nil || !s.covers(v.head, name) { // nothing of it was touched
		isGo := slices.ContainsFunc(v.head.modules, func(m goModule) bool { return strings.HasPrefix(name, m.path) })
		inside := slices.ContainsFunc(v.head.inside, func(c pipeline.TestChange) bool { return c.Test == name })
		return (passedThen || failedThen || isGo) && !inside, !passedThen
	}
	o, there := s.tests[name]
	switch {
	case o.ok():
		return true, false
	case o.status == failed, o.status == carrier:
		return true, true
	case there, broken:
		return false, false
	case v.lost(s, name):
		if !passedThen {
			return true, true
		}
		return v.rewritten(name)
	}
	return false, false
}

// lost reports whether a test did not run because what it stands in failed: its package,
// its file, or the test that it is a case of.
func (v *verdict) lost(s *stood, name string) bool {
	id := testname.Parse(name)
	if of := strings.TrimSuffix(name, id.Param); s.tests[of].status == failed {
		return true
	}
	return s.reason(name) != "" || slices.ContainsFunc(s.cases, func(t testcase) bool {
		return t.status == failed && (strings.HasPrefix(name, t.name+"::") || strings.HasPrefix(name, t.name+" > "))
	})
}

// rewritten reports whether the change edits the text of a test that passes at the base,
// and whether that can be told.
func (v *verdict) rewritten(name string) (known, is bool) {
	id := testname.Parse(name)
	for _, e := range v.edits {
		var was, now string
		switch path.Ext(e.name) {
		case ".go":
			if dir := path.Dir(e.name); dir != "." && !strings.HasSuffix(id.Container, dir) {
				continue
			}
			before, _ := goParts(e.before)
			after, _ := goParts(e.now)
			was, now = before[id.Base], after[id.Base]
		case ".py":
			was, now = string(pythonTest(e.before, id.Base)), string(pythonTest(v.texts[e.name], id.Base))
		default:
			continue
		}
		if now != "" {
			return true, was != now
		}
	}
	return false, false
}
