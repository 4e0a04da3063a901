package check

import "testing"

// Covers T8: a call that returned at the base and ends the thread or the iteration of the test that
// makes it is told, where the tests do not fail by it.
func TestEndsCallers(t *testing.T) {
	t.Parallel()
	result := "57"
	was := call{Lang: "py", Module: "sums", Name: "total", Args: "([7, 50],)", Named: "{}", Result: &result, File: "sums.py", Line: 4}
	is := was
	is.Raises, is.Ends = true, "SystemExit"
	for what, c := range map[string]struct {
		before, now call
		fails       bool
		want        int
	}{
		"ended":                 {was, is, false, 1},
		"it raised before, too": {is, is, false, 0},
		"it returns":            {was, was, false, 0},
		"a test fails":          {was, is, true, 0},
		"the test sees it":      {was, call{Module: is.Module, Name: is.Name, Args: is.Args, Named: is.Named, Raises: true}, false, 0},
		"another call":          {call{Module: "sums", Name: "total", Args: "([8],)", Named: "{}", Result: &result}, is, false, 0},
	} {
		v := &verdict{tests: map[string]outcome{"a": {status: passed}}}
		if c.fails {
			v.tests["b"] = outcome{status: failed}
		}
		if v.endsCallers([]call{c.now}, []call{c.before}); len(v.found) != c.want {
			t.Errorf("%s: %+v, want %d", what, v.found, c.want)
		}
	}
}
