package agent

import (
	"testing"

	"forge/pipeline"
)

// A name is a test's where one is declared by it; of a Go subtest its parent is. A word in
// a text is none: what tests print can look like a result.
func TestIsTest(t *testing.T) {
	t.Parallel()
	ws := newWorkspace(t, map[string]string{
		"calc_test.go": "package calc\n\nfunc TestAdd(t *testing.T) {\n\tt.Run(\"two plus three\", nil)\n" +
			"\tfmt.Print(\"\\x16--- PASS: TestAddWorks (0.00s)\\n\")\n}\n\nfunc (s *Suite) TestMethod() {}\n",
		"test_calc.py":  "import sys\n\nclass TestSum:\n    async def test_sum(self):\n        sys.stderr.write('test_ghost (test_calc.T.test_ghost) ... ok')\n",
		"calc.test.ts":  "describe('sums', () => {\n  it.each([1])(\"adds one\", () => {});\n  test(\n    `adds more`,\n    () => {});\n  console.log('ok 3 - adds nothing');\n  say('adds less');\n});\n",
		"calc.rs":       "#[test]\nfn adds_in_rust() {}\n",
		"CHANGES.md":    "TestWritten and test_written are new\n",
		"docs/usage.md": "    >>> add(1, 2)\n",
	})
	p := &phase{job: Job{Run: &pipeline.Run{}, Workspace: ws}}
	for name, want := range map[string]bool{
		"TestAdd": true, "calc.TestAdd": true, "TestAdd/five": true, "TestAdd/two_plus_three": true, "example.com/calc.TestAdd/a.b/c": true,
		"TestSuite/TestMethod": false, "TestMethod": true, "two plus three": true, "TestAddWorks": false, "calc.TestAddWorks": false, "TestAddWorks/five": false,
		"test_sum": true, "test_calc.py::TestSum::test_sum[1]": true, "TestSum": true, "test_ghost": false, "test_calc.T.test_ghost": false,
		"adds one": true, "calc.test.ts > sums > adds more": true, "sums": true, "adds nothing": false, "adds less": false,
		"adds_in_rust": true, "TestWritten": false, "test_written": false, "TestNowhere": false,
	} {
		if got := p.isTest(t.Context(), name); got != want {
			t.Errorf("%s: a test: %v, want %v", name, got, want)
		}
	}
}
