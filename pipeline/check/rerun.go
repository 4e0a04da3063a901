package check

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
)

// aloneMax is up to how many failing tests are run again one by one. More of them
// are run again together: with so many, flakiness is not the likely cause.
const aloneMax = 8

// rerunFailing runs the failing tests of a suite again, up to Config.Reruns
// times, and marks those that pass once as flaky. Not run again are builds and
// crashes, tests that hung, and tests that failed before the work. The time
// for it all is that of one command.
func (c *checker) rerunFailing(ctx context.Context, s *suite) error {
	begun := c.clock()
	rounds := c.o.Config.Reruns
	if s.measuring {
		rounds = max(rounds, 1) // once without measuring
	}
	for round := 1; round <= rounds; round++ {
		todo := c.worthRerunning(s)
		if len(todo) == 0 {
			return nil
		}
		for _, batch := range s.batches(todo) {
			if c.clock().Sub(begun) > c.timeout() {
				c.log.Info("no time to run more failing tests again", "command", s.done.Command, "round", round)
				return nil
			}
			if err := c.again(ctx, s, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) worthRerunning(s *suite) []*testcase {
	var out []*testcase
	for i := range s.result.cases {
		t := &s.result.cases[i]
		if t.status != failed || t.whole || t.stuck {
			continue
		}
		if _, before := c.failedBefore(t); !before && (c.worth == nil || c.worth(t)) {
			out = append(out, t)
		}
	}
	if !s.alone && s.done.TimedOut {
		return nil // it would take as long again
	}
	return out
}

// batches says which tests are run again by one command.
func (s *suite) batches(todo []*testcase) [][]*testcase {
	if !s.alone {
		return [][]*testcase{todo}
	}
	groups := map[string][]*testcase{}
	var order []string
	for _, t := range todo {
		key := t.name
		if s.format == formatGo {
			key = t.group + "." + topLevel(t.again)
		}
		if len(todo) > aloneMax {
			key = t.group
			if s.format != formatGo {
				key = ""
			}
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	var out [][]*testcase
	for _, key := range order {
		out = append(out, groups[key])
	}
	return out
}

func topLevel(test string) string {
	top, _, _ := strings.Cut(test, "/")
	return top
}

// again runs some failing tests once more. A test counts as passed only when the
// output says so.
func (c *checker) again(ctx context.Context, s *suite, batch []*testcase) error {
	r, res, _, err := c.execute(ctx, s, s.narrowed(batch))
	if err != nil {
		return err
	}
	ok := map[string]bool{}
	for _, t := range r.cases {
		if t.status == passed {
			ok[t.name] = true
		}
	}
	if s.format == formatAny && len(r.cases) == 0 && res.Exit == 0 {
		ok[s.done.Name] = true
	}
	for _, t := range batch {
		if ok[t.name] {
			t.status = flaky
			c.log.Info("flaky test", "test", t.name, "command", s.done.Command)
		}
	}
	return nil
}

// narrowed returns the command for some tests alone.
func (s *suite) narrowed(batch []*testcase) []string {
	if !s.alone {
		return s.args
	}
	var ids []string
	for _, t := range batch {
		if t.again == "" {
			return s.args
		}
		ids = append(ids, t.again)
	}
	switch s.format {
	case formatGo:
		var tops []string
		for _, id := range ids {
			if top := regexp.QuoteMeta(topLevel(id)); !slices.Contains(tops, top) {
				tops = append(tops, top)
			}
		}
		args := slices.Clone(s.args)
		if i := slices.Index(args, "./..."); i == len(args)-1 {
			args[i] = batch[0].group // the one package
		}
		return withGoFlags(args, "-run=^("+strings.Join(tops, "|")+")$")
	case formatUnittest:
		return append([]string{"python3", "-m", "unittest", "-v"}, ids...)
	case formatCargo:
		return append(append(slices.Clone(s.args), "--", "--exact"), ids...)
	}
	return append(slices.Clone(s.args), ids...)
}

const (
	freshRounds = 8 // runs in fresh checkouts by which a test is judged that failed and then passed
	slowRounds  = 3 // of a command that takes longer than quickEnds
	baseRounds  = 2 // times as many are needed of the base to say that a test never fails there
	quickEnds   = 20 * time.Second
)

// newlyFlaky judges the tests that are flaky on the new code and were not seen so at the
// base: what ran before may have left something behind by which they pass when run again,
// or the code goes by chance. One that fails in a fresh checkout again fails, unless it
// fails so at the base, too; one that is new with the change has no such excuse.
func (v *verdict) newlyFlaky(ctx context.Context) error {
	b := v.o.Baseline
	if b == nil || v.o.Base == "" {
		return nil
	}
	list, once, rounds := v.unsteady()
	if len(list) == 0 {
		return nil
	}
	now, err := v.failsFresh(ctx, treeRun{sha: v.o.Head, once: once}, list, rounds)
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(slices.Clone(list), func(t *testcase) bool { return !now[t.name] || !slices.Contains(b.Names, t.name) })
	before := map[string]bool{}
	if len(old) > 0 {
		if before, err = v.failsFresh(ctx, treeRun{sha: v.o.Base, once: once}, old, baseRounds*rounds); err != nil {
			return err
		}
	}
	for _, t := range list {
		if !now[t.name] || before[t.name] && slices.Contains(b.Names, t.name) {
			continue
		}
		t.status = failed
		t.err += "\nFlaky since this change: it passed when it was run again in the same work tree, and failed again in a fresh checkout."
		if slices.Contains(b.Names, t.name) {
			t.err += " In fresh checkouts of the base it does not fail."
		}
	}
	return nil
}

// unsteady lists the tests that are flaky at the head and were not seen so at the base,
// the commands that run them, and how often these are to be run.
func (v *verdict) unsteady() (list []*testcase, once map[string]bool, rounds int) {
	once, rounds = map[string]bool{}, freshRounds
	for _, s := range v.head.suites {
		for i := range s.result.cases {
			t := &s.result.cases[i]
			if t.status != flaky || slices.Contains(v.o.Baseline.Flaky, t.name) {
				continue
			}
			list, once[s.done.Command] = append(list, t), true
			if s.done.Millis > quickEnds.Milliseconds() {
				rounds = slowRounds
			}
		}
	}
	return list, once, rounds
}

// failsFresh tells which of some tests fail in one of several fresh checkouts.
func (v *verdict) failsFresh(ctx context.Context, r treeRun, list []*testcase, rounds int) (map[string]bool, error) {
	out := map[string]bool{}
	for range rounds {
		c, err := v.run(ctx, r)
		if _, mine := environment(err); err != nil && !mine {
			return nil, err
		}
		for name, o := range outcomes(c.cases()) {
			out[name] = out[name] || o.status == failed || o.status == flaky // run again without measuring
		}
		if !slices.ContainsFunc(list, func(t *testcase) bool { return !out[t.name] }) {
			break
		}
	}
	return out, nil
}
