package check

import "testing"

// A suite of pytest that hangs is told with the test that it hung in, as far as its
// progress says that.
func TestPytestAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ out, want string }{
		{"collected 3 items\n\ntests/test_a.py .F", "test 3 of tests/test_a.py"},
		{"collected 3 items\n\ntests/test_a.py ", "test 1 of tests/test_a.py"},
		{"tests/test_a.py::test_one PASSED [ 50%]\ntests/test_a.py::test_two ", "tests/test_a.py::test_two"},
		{"tests/test_a.py ...        [100%]\n\n3 passed", ""},
		{"", ""},
	} {
		if got := pytestAt(c.out); got != c.want {
			t.Errorf("%q: %q, want %q", c.out, got, c.want)
		}
	}
}

// Where nothing but a hanging suite is left of a run, it does not say that the
// commands ended well.
func TestEndedIsTold(t *testing.T) {
	t.Parallel()
	c, err := newChecker(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.suites = []*suite{{ended: "`x` did not end and was stopped after 1m0s"}}
	if c.summarise(); c.report.None != "no test was reported: `x` did not end and was stopped after 1m0s" {
		t.Error(c.report.None)
	}
}
