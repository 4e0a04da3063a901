package check

import (
	"strings"
	"testing"
)

// A planted test whose package was not built, because what it imports was not, did not
// fail to show: the build's failure is what is reported.
func TestPlantedWhereNothingIsBuilt(t *testing.T) {
	t.Parallel()
	modules := []goModule{{path: "example.com/x"}}
	unbuilt := `{"ImportPath":"example.com/dep","Action":"build-output","Output":"# example.com/x\n"}
{"ImportPath":"example.com/dep","Action":"build-output","Output":"x.go:3:8: missing go.sum entry for module providing package example.com/dep\n"}
{"ImportPath":"example.com/dep","Action":"build-fail"}
{"Action":"start","Package":"example.com/x"}
{"Action":"output","Package":"example.com/x","Output":"FAIL\texample.com/x [setup failed]\n"}
{"Action":"fail","Package":"example.com/x","FailedBuild":"example.com/dep"}
`
	for name, c := range map[string]struct {
		output string
		hidden int
	}{
		"nothing is built": {unbuilt, 0},
		"all passes":       {`{"Action":"pass","Package":"example.com/x","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"example.com/x"}` + "\n", 1},
		"another is not built": {strings.ReplaceAll(unbuilt, `"Package":"example.com/x"`, `"Package":"example.com/x/b"`) +
			`{"Action":"pass","Package":"example.com/x"}` + "\n", 1},
	} {
		p := newPlanting([]testFile{{name: "x_test.go", pkg: "x"}}, "word")
		p.look(&checker{modules: modules, suites: []*suite{{format: formatGo, result: parseGo([]byte(c.output), modules)}}})
		if got := p.missing(); len(got) != c.hidden {
			t.Errorf("%s: %d planted tests are said to hide, want %d", name, len(got), c.hidden)
		}
	}
}
