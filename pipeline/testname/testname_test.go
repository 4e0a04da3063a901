package testname

import "testing"

func TestParse(t *testing.T) {
	for name, want := range map[string]ID{
		"a.b/c.TestX":                     {"a.b/c", "TestX", ""},
		"a.b/c.TestX/sub/with.dot":        {"a.b/c", "TestX", "/sub/with.dot"},
		"t/test_a.py::TestC::test_x[1-2]": {"t/test_a.py::TestC", "test_x", "[1-2]"},
		"t.m.C.test_x (i=1)":              {"t.m.C", "test_x", " (i=1)"},
		"a.js > group > adds 1.5 things":  {"a.js > group", "adds 1.5 things", ""},
		"adds 1.5 things":                 {"", "adds 1.5 things", ""},
		"crate::tests::adds":              {"crate::tests", "adds", ""},
		"make test":                       {"", "make test", ""},
	} {
		if got := Parse(name); got != want {
			t.Errorf("Parse(%q) = %+v, want %+v", name, got, want)
		}
	}
}
