package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"forge/pipeline"
)

// seed adds the recorded outputs whose name matches a pattern.
func seed(f *testing.F, pattern string) {
	files, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds for %s: %v", pattern, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".want") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// sound holds what is true of every result.
func sound(t *testing.T, r result) {
	t.Helper()
	(&checker{root: "/src"}).localise(&r, "sub")
	for i := range r.cases {
		c := &r.cases[i]
		if !utf8.ValidString(c.name) || strings.ContainsAny(c.name, "\n\x00\x1b") || len(c.name) > 500 {
			t.Errorf("name %q", c.name)
		}
		switch c.status {
		case failed:
			if f := c.failure(); f.Error == "" || len(f.Error) > maxErrorBytes+200 || !utf8.ValidString(f.Error) || f.Fingerprint == "" {
				t.Errorf("failure %+v", f)
			}
		case passed, skipped, carrier:
		default:
			t.Errorf("status %q of %q", c.status, c.name)
		}
		if filepath.IsAbs(c.file) || strings.HasPrefix(c.file, "../") {
			t.Errorf("%q lies outside of the repository: %q", c.name, c.file)
		}
	}
}

// Covers S30: every parser of open input is fuzzed.
func FuzzGo(f *testing.F) {
	seed(f, "parse/go*")
	f.Fuzz(func(t *testing.T, data []byte) {
		sound(t, parseGo(data, sampleModules))
		sound(t, parsePlainGo(data, sampleModules))
	})
}

func FuzzTAP(f *testing.F) {
	seed(f, "parse/*.tap")
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, parseTAP(data)) })
}

func FuzzJUnit(f *testing.F) {
	seed(f, "parse/*.xml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseJUnit(data); err == nil {
			sound(t, r)
		}
	})
}

func FuzzJest(f *testing.F) {
	seed(f, "parse/jest.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseJest(data); err == nil {
			sound(t, r)
		}
	})
}

func FuzzReports(f *testing.F) {
	seed(f, "parse/rspec*.json")
	seed(f, "parse/*.trx")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (result, error){parseRSpec, parseTRX} {
			if r, err := parse(data); err == nil {
				sound(t, r)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	seed(f, "parse/*.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		sound(t, parseCargo(data))
		sound(t, parseUnittest(data))
		sound(t, parseMinitest(data))
		if r := reasonOf(string(data)); r.line < 0 {
			t.Errorf("reason %+v", r)
		}
		if r, ok := sniff(data, sampleModules); ok {
			sound(t, r)
		}
	})
}

func FuzzCoverage(f *testing.F) {
	seed(f, "co*")
	seed(f, "lcov.info")
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &checker{root: "/src", modules: sampleModules, patch: &patch{}, cover: &covered{}}
		if c.addCoverage(c.cover, &suite{dir: "."}, "", data) != nil {
			return
		}
		if v := c.coverage(); v != nil && (v.Lines < 0 || v.Lines > 100) {
			t.Errorf("coverage %+v", v)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(sumPatch))
	f.Add([]byte("diff --git a/a_test.go b/b_test.go\nsimilarity index 90%\nrename from a_test.go\nrename to b_test.go\n--- a/a_test.go\n+++ b/b_test.go\n@@ -1,2 +1,2 @@\n-func TestA(t *testing.T) {\n+func TestB(t *testing.T) {\n \tt.Error(1)\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePatch(string(data))
		if err != nil {
			return
		}
		p.changed()
		c := &checker{patch: p, o: Options{Baseline: &pipeline.TestReport{Names: []string{"m.TestA"}}}}
		for _, finding := range c.tampered() {
			if finding.Message == "" || finding.Rule == "" {
				t.Errorf("finding %+v", finding)
			}
		}
	})
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"\x1b[31mred\x1b[0m \x1b]0;title\x07x\r\n", "red x"},
		{"a\x00b\x7f\xff", "ab\uFFFD"},
		{"at 0xc000012345 and 0x10", "at 0x… and 0x10"},
		{"over\rwritten", "over\nwritten"},
		{strings.Repeat("l\n", 40), strings.Repeat("l\n", maxErrorLines) + "…"},
		{strings.Repeat("é", 1500), strings.Repeat("é", 1000) + "\n…"},
	} {
		if got := shorten(c.in); got != c.want {
			t.Errorf("shorten(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := tail(strings.Repeat("é", 1500)); got != "…"+strings.Repeat("é", 1000) {
		t.Errorf("tail of a long line has %d bytes", len(got))
	}
	if got := tail("a\n" + strings.Repeat("l\n", 40)); !strings.HasPrefix(got, "…\nl") || bytes.Count([]byte(got), []byte("\n")) != maxErrorLines-1 {
		t.Errorf("tail = %q", got)
	}
}
