package check

import "testing"

// A build tool that finds its target up to date has run no test, whatever its exit code.
func TestRanNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"make: 'test' is up to date.\n":          true,
		"make: `test' is up to date.\n":          true,
		"make: Nothing to be done for 'test'.\n": true,
		"make: Entering directory '/w'\nmake: Nothing to be done for 'check'.\nmake: Leaving directory '/w'\n": true,
		"ninja: no work to do.\n":                true,
		"":                                       false, // a command that tells nothing has its exit code
		"ok\n":                                   false,
		"3 cases\nmake: 'test' is up to date.\n": false,
		"make: 'lib.o' is up to date.\n./run_tests: ok\n": false,
	} {
		if got := ranNothing(text); got != want {
			t.Errorf("ranNothing(%q) = %v", text, got)
		}
	}
}
