package check

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the .want files anew; look at the difference before committing")

// sampleModules is the module of the recorded Go samples.
var sampleModules = []goModule{{path: "example.com/m", dir: ""}}

func parseFile(t testing.TB, name string, data []byte) (result, error) {
	t.Helper()
	switch {
	case strings.HasPrefix(name, "gotest"):
		return parseGo(data, sampleModules), nil
	case strings.HasPrefix(name, "goplain"):
		return parsePlainGo(data, sampleModules), nil
	case strings.HasPrefix(name, "cargo"):
		return parseCargo(data), nil
	case strings.HasPrefix(name, "unittest"):
		return parseUnittest(data), nil
	case strings.HasSuffix(name, ".tap"):
		return parseTAP(data), nil
	case strings.HasPrefix(name, "minitest"):
		return parseMinitest(data), nil
	case strings.HasPrefix(name, "rspec"):
		return parseRSpec(data)
	case strings.HasSuffix(name, ".trx"):
		return parseTRX(data)
	case strings.HasSuffix(name, ".json"):
		return parseJest(data)
	case strings.HasSuffix(name, ".xml"):
		return parseJUnit(data)
	}
	if r, ok := sniff(data, sampleModules); ok { // by what it looks like, as the output of a command of the settings
		return r, nil
	}
	t.Fatalf("no parser for %s: let sniff in suite.go recognise it, or name the parser here", name)
	return result{}, nil
}

// Covers B4 and V1: every format's recorded output gives the right tests. The
// .want files list them; `go test -run TestParse -update` writes them anew.
func TestParse(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/parse/*")
	if err != nil || len(files) < 12 {
		t.Fatalf("recorded outputs: %d, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := parseFile(t, name, data)
			if err != nil {
				t.Fatal(err)
			}
			(&checker{root: "/src"}).localise(&r, ".")
			got := describe(&r)
			if *update {
				if err := os.WriteFile(file+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		})
	}
}

// describe writes a result as text, a line for each test and its error below.
func describe(r *result) string {
	var b strings.Builder
	for i := range r.cases {
		t := &r.cases[i]
		fmt.Fprintf(&b, "%s %s", t.status, t.name)
		if t.file != "" {
			fmt.Fprintf(&b, " [%s:%d]", t.file, t.line)
		}
		for _, mark := range []struct {
			on   bool
			word string
		}{{t.cause != "", t.cause}, {t.whole, "whole"}, {t.stuck, "stuck"}} {
			if mark.on {
				b.WriteString(" " + mark.word)
			}
		}
		b.WriteString("\n")
		if t.status == failed {
			t.failure() // fills in what has no message
		}
		if t.err != "" {
			b.WriteString("    " + strings.ReplaceAll(t.err, "\n", "\n    ") + "\n")
		}
	}
	fmt.Fprintf(&b, "partial: %v\nlost: %s\n", r.partial, strings.Join(slices.Sorted(maps.Keys(r.lost)), ", "))
	return b.String()
}
