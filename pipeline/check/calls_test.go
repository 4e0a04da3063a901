package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// replayed runs a program of tests as it is recorded, makes its calls again, and returns both as
// lines: name(arguments) in the tests | alone.
func replayed(t *testing.T, files string, own []string, lang string, command, alone []string) []string {
	t.Helper()
	w := newWorkspace(t, files)
	tree := commitTree{dirWorkspace: w}
	if err := into(t.Context(), tree, recorders); err != nil {
		t.Fatal(err)
	}
	c := &checker{root: w.dir, recording: true}
	for i := range own {
		own[i] = strings.ReplaceAll(own[i], "ROOT", w.dir)
	}
	res, err := w.Run(t.Context(), workspace.Command{Timeout: time.Minute, Args: command, Env: slices.Concat(own, c.recordEnv(own))})
	if err != nil || res.Exit != 0 {
		t.Fatalf("%v, %s%s", err, res.Stdout, res.Stderr)
	}
	var rec recording
	if err := recorded(t.Context(), tree, &rec); err != nil {
		t.Fatal(err)
	}
	out := make([]*string, len(rec.Calls))
	if err := replayIn(t.Context(), tree, rec, lang, ".", alone, out); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, c := range rec.Calls {
		switch {
		case c.Result == nil:
			lines = append(lines, fmt.Sprintf("%s: not plain", &c))
		case out[i] == nil:
			lines = append(lines, fmt.Sprintf("%s %s | not called", &c, *c.Result))
		default:
			lines = append(lines, fmt.Sprintf("%s %s | %s", &c, *c.Result, *out[i]))
		}
	}
	return lines
}

// Covers T8: calls are recorded whatever path a suite needs by itself, of functions, methods
// and properties, and one that ends the program it is made in does not hide the others.
func TestCallsOfPython(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	got := replayed(t, `
-- src/price.py --
import sys
from dataclasses import dataclass


def main(args):
    sys.exit(2)


def total(n):
    return n * 2


def tested():
    return "test_price" in sys.argv[0]


class Basket:
    def __init__(self, rate):
        self.rate, self.items = rate, []

    def add(self, n):
        self.items.append(n)

    def total(self):
        return sum(self.items) + (self.rate if tested() else 0)

    @property
    def size(self):
        return len(self.items)

    @classmethod
    def name(cls, n):
        return cls.__name__ * n

    def __contains__(self, n):
        return tested() or n in self.items


@dataclass
class Line:
    cents: int

    def double(self):
        return self.cents * 2


class Odd(int):
    def next(self):
        return self + 2


class Sealed:
    __slots__ = ("n",)

    def get(self):
        return 1


class Long:
    def __init__(self):
        self.text = "x" * 3000

    def size(self):
        return len(self.text)


class Holds:
    def __init__(self):
        self.inner = Basket(1)

    def rate(self):
        return self.inner.rate
-- tests/test_price.py --
import price

try:
    price.main(['--help'])
except SystemExit:
    pass
assert price.total(4) == 8
b = price.Basket(19)
b.add(100)
b.items.append(5)
assert b.total() == 124 and b.size == 2 and 7 in b and price.Basket.name(2) == "BasketBasket"
assert price.Line(3).double() == 6 and price.Odd(3).next() == 5 and price.Sealed().get() == 1 and price.Holds().rate() == 1
assert price.Long().size() == 3000
`, []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=ROOT/src"}, "py", []string{"python3", "tests/test_price.py"}, []string{"python3", "app.py", replayPython})
	want := []string{
		"main(['--help']) None | None",
		"total(4) 8 | 8",
		"Basket.__init__(19) {'rate': 19, 'items': []} | {'rate': 19, 'items': []}",
		"Basket.add(100) None | None",
		"Basket.total() 124 | 105", // it turns on the name of the program
		"Basket.size() 2 | 2",
		"Basket.__contains__(7) True | False",
		"Basket.name(2) 'BasketBasket' | 'BasketBasket'",
		"Line.double() 6 | 6",
		"Holds.__init__(): not plain",
		"Long.__init__(): not plain", // it is too long, so that nothing is called on it
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls in the tests | alone (-want +got):\n%s", diff)
	}
}

// Covers T8: calls of CommonJS and of ES modules are recorded, the latter as a test imports
// them: by name, by default, all of them, or from CommonJS.
func TestCallsOfNode(t *testing.T) {
	t.Parallel()
	need(t, "node")
	got := replayed(t, `
-- package.json --
{"name": "fares", "type": "module", "exports": "./lib/price.js"}
-- lib/price.js --
import { at } from './at.js';
export function total(items, rate = 0) { return items.reduce((a, b) => a + b, 0) + (at() ? rate : 0); }
const split = (n, by) => Array.from({ length: by }, () => n / by);
export { split as share };
export let count = 0;
export const bump = () => { count++; return count; };
export default function name(a) { return a + '!'; }
export class Basket { size() { return 1; } }
export const RATE = 19;
-- lib/at.js --
export const at = () => new Error().stack.includes('price.test.js');
-- lib/old.cjs --
module.exports = { odd(n) { return n % 2 === 1; }, zero: 0 };
-- test/price.test.js --
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { total, share, bump, count, Basket, RATE } from '../lib/price.js';
import * as all from '../lib/price.js';
import name from 'fares';
import old from '../lib/old.cjs';

assert.equal(total([100], 19), 119);
assert.equal(all.total([100], 7), 107);
assert.deepEqual(share(9, 3), [3, 3, 3]);
assert.equal(bump() + count, 2);
assert.equal(name('a'), 'a!');
assert.equal(new Basket().size() + RATE + old.zero, 20);
assert.ok(old.odd(3));
assert.ok(!createRequire(import.meta.url)('../lib/old.cjs').odd(2));
assert.throws(() => total(null));
`, nil, "js", []string{"node", "test/price.test.js"}, []string{"node", "app.cjs", replayNode})
	want := []string{
		"total([100],19) 119 | 100", // it turns on who calls it
		"total([100],7) 107 | 100",
		"share(9,3) [ 3, 3, 3 ] | [ 3, 3, 3 ]",
		"bump() 1 | 1",
		`default("a") 'a!' | 'a!'`,
		"odd(3) true | true",
		"odd(2) false | false",
		"total(null) throws | throws",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls in the tests | alone (-want +got):\n%s", diff)
	}
}

// Tests may run in any number of processes: what is replayed of all of them is bounded.
func TestRecordedIsBounded(t *testing.T) {
	t.Parallel()
	tree := commitTree{dirWorkspace: newWorkspace(t, "")}
	files := map[string]string{}
	for i := range 3 {
		files[fmt.Sprintf("calls-%d.json", i)] = `{"calls": [` + strings.Repeat(`{"args": "()"}, `, maxCalls/2) + `{"args": ""}, {"args": "()"}]}`
	}
	if err := into(t.Context(), tree, files); err != nil {
		t.Fatal(err)
	}
	var rec recording
	if err := recorded(t.Context(), tree, &rec); err != nil || len(rec.Calls) != maxCalls {
		t.Errorf("%d calls, %v; want %d", len(rec.Calls), err, maxCalls)
	}
}

// timedTree keeps the commands that were run.
type timedTree struct {
	*fakeTree
	ran *[]workspace.Command
}

func (t timedTree) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	*t.ran = append(*t.ran, c)
	return t.fakeTree.Run(ctx, c)
}

// A suite that is recorded has less time than one that judges, and never more.
func TestRecordedInTime(t *testing.T) {
	t.Parallel()
	const patch = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-x = 0\n+x = os.environ.get('X')\n"
	for minutes, want := range map[int]time.Duration{30: 5 * time.Minute, 2: 2 * time.Minute} {
		var log []string
		var ran []workspace.Command
		open := func(_ context.Context, sha string) (Tree, error) {
			answer := func(*fakeTree, string) (workspace.Result, error) {
				return workspace.Result{Stdout: []byte("TAP version 13\n1..1\nok 1 - a\n")}, nil
			}
			files := map[string]string{"calc.py": "x = os.environ.get('X')\n"}
			return timedTree{&fakeTree{sha: sha, log: &log, files: files, answer: answer}, &ran}, nil
		}
		_, err := Verify(t.Context(), open, Options{Base: "B", Head: "H", Patch: patch, Baseline: &pipeline.TestReport{Names: []string{"a"}, Passed: 1},
			Config: config.Tests{TimeoutMinutes: minutes, Commands: []string{"sh run"}}})
		if err != nil {
			t.Fatal(err)
		}
		recorded, judged := 0, 0
		for _, c := range ran {
			switch {
			case !slices.Equal(c.Args, []string{"sh", "-c", "sh run"}):
			case slices.Contains(c.Env, "PYTHONPATH=/work/"+callsDir):
				if recorded++; c.Timeout != want {
					t.Errorf("of %d minutes, a recorded suite has %s, want %s", minutes, c.Timeout, want)
				}
			default:
				if judged++; c.Timeout != time.Duration(minutes)*time.Minute {
					t.Errorf("of %d minutes, a suite that judges has %s", minutes, c.Timeout)
				}
			}
		}
		if recorded == 0 || judged == 0 {
			t.Errorf("%d recorded and %d judging runs of the suite: %q", recorded, judged, log)
		}
	}
}
