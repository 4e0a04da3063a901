package quality

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"forge/pipeline/config"
	"forge/pipeline/measure"
)

func at(f float64) *float64 { return &f }

func place(file string, line int, rule, message string) measure.Place {
	return measure.Place{File: file, Line: line, Rule: rule, Message: message}
}

// Every kind of value, and all that is none: what is no value never passes for one.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		kind, stdout, stderr string
		exit                 int
		want                 float64
		why                  string
	}{
		{kind: "number", stdout: "480000\n", want: 480000},
		{kind: "number", stdout: "built 3 files\nsize: 12.5kB\n", want: 12.5},
		{kind: "number", stdout: "480000\tdist/app2.js\n", want: 480000},
		{kind: "number", stdout: "coverage: 81.2% of statements in 3files.go", want: 81.2},
		{kind: "number", stdout: "1e3\n", want: 1000},
		{kind: "number", stdout: "-5\n", want: -5},
		{kind: "number", stdout: "", why: "printed nothing"},
		{kind: "number", stdout: "all good\n", why: "printed no number: all good"},
		{kind: "number", stdout: "7\nNaN\n", why: "NaN, which is no value"},
		{kind: "number", stdout: "7\n+Inf\n", why: "+Inf, which is no value"},
		{kind: "number", stdout: "-infinity", why: "which is no value"},
		{kind: "number", stdout: "1e999", why: "print a finite number"},
		{kind: "number", stdout: "2,500,000\n", why: "without separators"},
		{kind: "number", stdout: "5\n", stderr: "boom\n", exit: 2, why: "ended with 2: boom"},
		{kind: "json:$.violations.length", stdout: `{"violations": [{}, {}]}`, want: 2},
		{kind: "json:$.violations.length", stdout: "\n> x@1.0.0 size\n> node size.js\n\n{\"violations\": [\n1]}\n", exit: 1, want: 1},
		{kind: "json:$.files[1].size", stdout: `{"files": [{"size": 1}, {"size": 20}]}`, want: 20},
		{kind: `json:$["a b"]`, stdout: `{"a b": 3}`, want: 3},
		{kind: "json:total", stdout: `{"total": 4}`, want: 4},
		{kind: "json:$[0]", stdout: `[6]`, want: 6},
		{kind: "json:$", stdout: `6`, want: 6},
		{kind: "json:$.a", stdout: `{"a": "5"}`, why: "stands no number"},
		{kind: "json:$.a", stdout: `{"a": null}`, why: "stands no number"},
		{kind: "json:$.a", stdout: `{"b": 1}`, why: "has no $.a"},
		{kind: "json:$.a", stdout: `{"a": 1e999}`, why: "finite"},
		{kind: "json:$.a", stdout: `{"a": NaN}`, why: "no JSON"},
		{kind: "json:$.a", stdout: `{"a": 1`, why: "no JSON"},
		{kind: "json:$.a", stdout: "", why: "printed nothing"},
		{kind: "json:$.a", stderr: "no such module", exit: 1, why: "ended with 1: no such module"},
		{kind: `regex:total: (\d+)`, stdout: "total: 3\ntotal: 9\n", want: 9},
		{kind: `regex:\d+`, stdout: "a 12 b", want: 12},
		{kind: `regex:total: (\S+)`, stdout: "total: NaN", why: "no value"},
		{kind: `regex:total: (\d+)`, stdout: "nothing", why: "matches"},
		{kind: `regex:total: (\d+)`, stdout: "", why: "printed nothing"},
		{kind: `regex:\d+`, stdout: "7", exit: 1, why: "ended with 1"},
		{kind: "lines", stdout: "a\n\nb\n", want: 2},
		{kind: "lines", stdout: "a\n", exit: 1, want: 1},
		{kind: "lines", stdout: "", exit: 1, want: 0}, // grep
		{kind: "lines", stdout: "", exit: 2, why: "printed nothing"},
		{kind: "lines", stdout: "", stderr: "no such file", exit: 1, why: "no such file"},
		{kind: "exit", exit: 3, want: 3},
		{kind: "exit", exit: 0, want: 0},
		{kind: "exit", exit: 127, stderr: "sh: nope: not found", why: "not found"},
	} {
		k, err := ParseKind(c.kind)
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		r, err := k.Read(Output{Exit: c.exit, Stdout: []byte(c.stdout), Stderr: []byte(c.stderr)})
		switch {
		case c.why != "":
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s of %q, %d: %+v, %v; want %q", c.kind, c.stdout, c.exit, r, err, c.why)
			}
		case err != nil || len(r.Series) != 1 || r.Series[0].Samples[0] != c.want:
			t.Errorf("%s of %q, %d: %+v, %v; want %v", c.kind, c.stdout, c.exit, r, err, c.want)
		}
	}
}

const sarif = `{"version": "2.1.0", "runs": [{"results": [
 {"ruleId": "G1", "level": "error", "message": {"text": "bad"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "file:///work/repo/a/b.go"}, "region": {"startLine": 7}}}]},
 {"ruleId": "G2", "message": {"text": "worse"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "c.go"}}}]},
 {"ruleId": "G3", "level": "none", "message": {"text": "silent"}},
 {"ruleId": "G4", "kind": "pass", "message": {"text": "fine"}},
 {"ruleId": "G5", "message": {"text": "known"}, "suppressions": [{"kind": "inSource"}]},
 {"ruleId": "G6", "message": {"text": "nowhere"}, "suppressions": [{"status": "rejected"}]}]}]}`

func TestReadSARIF(t *testing.T) {
	r, err := ReadSARIF([]byte(sarif), "/work/repo")
	want := []measure.Place{place("a/b.go", 7, "G1", "bad"), place("c.go", 0, "G2", "worse"), place("", 0, "G6", "nowhere")}
	if err != nil || !slices.Equal(r.Places, want) || r.Series[0].Samples[0] != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", "[]", "{}", `{"runs": []}`, `{"runs": null}`, "not json"} {
		if r, err := ReadSARIF([]byte(bad), ""); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

// What the base misses already is told from what the change misses, and what is worse
// from what is not.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name       string
		q          config.Quality
		head       float64
		base       *float64
		ok, before bool
		err, says  string
	}{
		{"within", config.Quality{Max: at(500000), Unit: "bytes"}, 480000, at(470000), true, false, "", "480 kB, at most 500 kB; 470 kB at the base"},
		{"over", config.Quality{Max: at(500000), Unit: "bytes"}, 2500000, at(480000), false, false, "", "2.5 MB, at most 500 kB; 480 kB at the base"},
		{"over before, the same", config.Quality{Max: at(5)}, 9, at(9), false, true, "", "9, at most 5; 9 at the base"},
		{"over before, better", config.Quality{Max: at(5)}, 8, at(9), false, true, "", ""},
		{"over before, and worse", config.Quality{Max: at(5)}, 10, at(9), false, false, "", ""},
		{"over before, worse by less than is allowed", config.Quality{Max: at(5), WorseBy: "20%"}, 10, at(9), false, true, "", "10, at most 5, at most 20 % more than at the base; 9 at the base"},
		{"over before, worse by more", config.Quality{Max: at(5), WorseBy: "20%"}, 11, at(9), false, false, "", ""},
		{"exactly at the bound", config.Quality{Max: at(5), WorseBy: "0"}, 5, at(5), true, false, "", ""},
		{"under a minimum", config.Quality{Min: at(80), Unit: "%"}, 79.9, at(81), false, false, "", "79.9 %, at least 80 %; 81 % at the base"},
		{"under it before", config.Quality{Min: at(80), Unit: "%"}, 70, at(70), false, true, "", ""},
		{"worse in per cent", config.Quality{WorseBy: "5%"}, 106, at(100), false, false, "", ""},
		{"worse by just that", config.Quality{WorseBy: "5%"}, 105, at(100), true, false, "", ""},
		{"worse by a number", config.Quality{WorseBy: "10"}, 111, at(100), false, false, "", "111, at most 10 more than at the base; 100 at the base"},
		{"higher is better", config.Quality{WorseBy: "5%", Better: "higher"}, 94, at(100), false, false, "", "94, at most 5 % less than at the base; 100 at the base"},
		{"higher is better, and is", config.Quality{WorseBy: "5%", Better: "higher"}, 900, at(100), true, false, "", ""},
		{"from nothing", config.Quality{WorseBy: "5%"}, 1, at(0), false, false, "", ""},
		{"no base, absolute", config.Quality{Max: at(5)}, 4, nil, true, false, "", "4, at most 5"},
		{"no base, relative", config.Quality{Max: at(5), WorseBy: "5%"}, 4, nil, false, false, "there is no value at the base: it broke", ""},
		{"negative", config.Quality{Max: at(5)}, -1, at(1), false, false, "values under 0 are not expected", ""},
		{"over it, and under another bound before", config.Quality{Min: at(3), Max: at(5)}, 7, at(0), false, false, "", ""},
		{"under it, and over another bound before", config.Quality{Min: at(3), Max: at(5)}, 0, at(7), false, false, "", ""},
		{"under a lower bound before, and worse", config.Quality{Min: at(3), Max: at(5)}, 1, at(2), false, false, "", ""},
		{"under a lower bound before, and better", config.Quality{Min: at(3), Max: at(5)}, 2, at(1), false, true, "", ""},
		{"negative, as is meant", config.Quality{Min: at(-5)}, -1, at(1), true, false, "", ""},
	} {
		var base *measure.Reading
		if c.base != nil {
			r := measure.One(*c.base)
			base = &r
		}
		m := Of(c.q).Judge(measure.One(c.head), base, "it broke")
		if m.OK != c.ok || m.Before != c.before || !strings.Contains(m.Error, c.err) || c.err == "" && m.Error != "" || c.says != "" && m.Says() != c.says {
			t.Errorf("%s: %+v says %q", c.name, m, m.Says())
		}
	}
}

func TestRankTest(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0 / 70},
		{[]float64{1, 3, 5}, []float64{2, 4, 6}, 0.7},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1},
		// scipy.stats.mannwhitneyu(method='exact') of both.
		{[]float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}, 0.1111111111},
		{[]float64{1, 2, 3, 4, 5, 6}, []float64{7, 8, 9, 10, 11, 12}, 0.00216450216},
		{nil, []float64{1}, 1},
	} {
		if got := RankTest(c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("RankTest(%v, %v) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
	if got, want := smallest(6, 6), RankTest([]float64{1, 2, 3, 4, 5, 6}, []float64{7, 8, 9, 10, 11, 12}); math.Abs(got-want) > 1e-12 {
		t.Errorf("smallest = %v, want %v", got, want)
	}
}

// Benchmarks that nothing changed are blamed for nothing: 20,000 comparisons of noise as
// benchmarks have it (skewed, with bursts that last for several measures) with the bound
// of 10 %, and what is 30 % slower is found all the same.
func TestNoFalseAlarm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(slower float64, burst *int) float64 {
		v := 1000 * slower * (1 + 0.03*math.Abs(rng.NormFloat64()))
		if *burst == 0 && rng.Float64() < 0.05 {
			*burst = 1 + rng.IntN(4)
		}
		if *burst > 0 {
			*burst--
			v *= 1.2 + rng.Float64()
		}
		return v
	}
	alarms := func(runs, benchmarks int, slower float64) (n int) {
		g := Of(config.Quality{Use: GoBench})
		for range runs {
			var head, base measure.Reading
			bursts := make([]int, benchmarks)
			for i := range g.Repeats {
				for side := range 2 {
					for b := range benchmarks {
						to, by := &head, slower
						if (i+side)%2 == 0 {
							to, by = &base, 1
						}
						to.Add(measure.Reading{Series: []measure.Series{{Name: string(rune('A' + b)), Samples: []float64{noise(by, &bursts[b])}}}})
					}
				}
			}
			if m := g.Judge(head, &base, ""); !m.OK {
				n++
			}
		}
		return n
	}
	if n := alarms(20_000, 1, 1); n > 20 {
		t.Errorf("%d false alarms in 20,000 runs of one benchmark, want under one in a thousand", n)
	}
	if n := alarms(2_000, 10, 1); n > 4 {
		t.Errorf("%d false alarms in 2,000 runs of ten benchmarks", n)
	}
	if n := alarms(1_000, 1, 1.5); n < 800 {
		t.Errorf("%d of 1,000 benchmarks that are 50 %% slower are found", n)
	}
}

// Too few measures for what is compared are said, not passed.
func TestTooFewMeasures(t *testing.T) {
	g := Of(config.Quality{Use: GoBench})
	var head measure.Reading
	for i := range 30 {
		head.Series = append(head.Series, measure.Series{Name: string(rune('A' + i)), Samples: []float64{1, 2, 3, 4, 5, 6}})
	}
	base := head
	if m := g.Judge(head, &base, ""); m.OK || !strings.Contains(m.Error, "set repeats to 7") {
		t.Errorf("%+v", m)
	}
	if m := g.Judge(measure.Reading{}, &base, ""); m.OK || !strings.Contains(m.Error, "is not there any more") {
		t.Errorf("benchmarks that are gone: %+v", m)
	}
	if m := g.Judge(measure.Reading{}, &measure.Reading{}, ""); m.OK || !strings.Contains(m.Error, "no benchmark ran") {
		t.Errorf("no benchmark at all: %+v", m)
	}
}

func TestCause(t *testing.T) {
	head, base := measure.One(1500), measure.One(100)
	head.Parts = []measure.Part{{Name: "a", Value: 100}, {Name: "new", Value: 400}, {Name: "big", Value: 1000}}
	base.Parts = []measure.Part{{Name: "a", Value: 100}, {Name: "big", Value: 10}, {Name: "gone", Value: 5}}
	m := Of(config.Quality{Name: "s", Max: at(10), Unit: "bytes"}).Judge(head, &base, "")
	if want := "big: 1 kB, 10 bytes at the base, so 990 bytes more\nnew: 400 bytes, 0 bytes at the base, so 400 bytes more"; m.Cause() != want {
		t.Errorf("%s", m.Cause())
	}
	head, base = measure.One(3), measure.One(1)
	head.Places = []measure.Place{place("a.go", 9, "R", "old"), place("b.go", 1, "R", "one"), place("b.go", 2, "R", "two")}
	base.Places = []measure.Place{place("a.go", 3, "R", "old")}
	m = Of(config.Quality{Name: "s", Max: at(0)}).Judge(head, &base, "")
	if m.Places[0].File != "b.go" || m.Places[2].File != "a.go" || m.Note != "2 of them new" {
		t.Errorf("%+v", m)
	}
}

func TestKey(t *testing.T) {
	a := config.Quality{Name: "s", Command: "x", Value: "number", Max: at(1)}
	b := a
	b.Max, b.Owner = at(9), []string{"qa"}
	if Key("sha", "go1", a) != Key("sha", "go1", b) || Key("sha", "go1", a) == Key("other", "go1", a) || Key("sha", "go1", a) == Key("sha", "go2", a) {
		t.Error("a measure is of a commit, whatever is held against it")
	}
	if b.Command = "y"; Key("sha", "go1", a) == Key("sha", "go1", b) {
		t.Error("another command measures another thing")
	}
}

// A number is read in the gate's unit: 600kB is not 600 bytes, and no bytes at all are
// nothing that was measured.
func TestUnits(t *testing.T) {
	zero := 0.0
	for _, c := range []struct {
		out, unit string
		want      float64
		say       string
	}{
		{"600kB", "bytes", 600_000, ""},
		{"4.5 MB", "bytes", 4_500_000, ""},
		{"4 MiB\n", "bytes", 4 << 20, ""},
		{"in all 12K dist.", "bytes", 12 << 10, ""},
		{"2s", "ms", 2000, ""},
		{"took 1.5 min.", "s", 90, ""},
		{"900 dist/app.js", "bytes", 900, ""},
		{"900", "", 900, ""},
		{"4.5 MB", "", 4_500_000, ""},
		{"12 findings", "findings", 12, ""},
		{"600kB", "ms", 0, "printed the unit kB where the gate's is ms"},
		{"3s", "bytes", 0, "printed the unit s where the gate's is bytes"},
		{"0", "bytes", 0, "0 bytes: what is measured is not there"},
		{"0", "kB", 0, "0 kB: what is measured is not there"},
		{"0 bytes", "MiB", 0, "0 MiB: what is measured is not there"},
		{"1\u202f234\u202f567", "bytes", 0, "print numbers without separators"},
		{"1\u00a0234\u00a0567 bytes", "bytes", 0, "print numbers without separators"},
		{"12\u2009345", "bytes", 0, "print numbers without separators"},
		{"500\u00a0kB", "bytes", 500_000, ""},
		{"5 megabytes", "bytes", 5_000_000, ""},
		{"5 mebibytes", "bytes", 5 << 20, ""},
		{"5 MiB", "kibibytes", 5 << 10, ""},
		{"5 TB", "bytes", 5e12, ""},
		{"5 MBytes", "bytes", 5_000_000, ""},
		{"5 Mo", "bytes", 5_000_000, ""},
		{"5 hours", "ms", 5 * 3600e3, ""},
		{"5 μs", "ms", 0.005, ""}, // the Greek letter
		{"5 ms", "ns/op", 5_000_000, ""},
		{"5 ms/op", "ns/op", 5_000_000, ""},
		{"5 ms/item", "ns/op", 0, "printed the unit ms/item where the gate's is ns/op"},
		{"5 GB", "kilobytes", 5_000_000, ""},
		{"900 s", "milliseconds", 900_000, ""},
		{"120 kB", "kB gzipped", 120, ""},
		{"5 Mbits", "bytes", 0, "printed the unit Mbits where the gate's is bytes"},
		{"5 M", "bytes", 0, "printed the unit M where the gate's is bytes"},
		{"5 fortnight-seconds", "ms", 0, "printed the unit fortnight-seconds where the gate's is ms"},
		{"12 findings in 3 s", "findings", 0, "printed the unit s where the gate's is findings"},
		{"500 req/s", "req/s", 500, ""},
		{"98 %", "%", 98, ""},
		{"5 Mbits", "Mbits", 5, ""},
		{"0", "findings", 0, ""},
	} {
		r, err := Of(config.Quality{Name: "x", Command: "y", Value: "number", Unit: c.unit}).Read(Output{Stdout: []byte(c.out)})
		switch {
		case c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)):
			t.Errorf("%q in %q: %v, want %q", c.out, c.unit, err, c.say)
		case c.say == "" && (err != nil || r.Series[0].Samples[0] != c.want):
			t.Errorf("%q in %q: %v, %v, want %v", c.out, c.unit, r, err, c.want)
		}
	}
	if _, err := Of(config.Quality{Name: "x", Command: "y", Value: "number", Unit: "bytes", Min: &zero}).Read(Output{Stdout: []byte("0\n")}); err != nil {
		t.Errorf("0 bytes with min: 0: %v", err)
	}
}

// What a tool that did not look leaves is no "no findings".
func TestSARIFOfAToolThatFailed(t *testing.T) {
	for _, c := range []struct {
		sarif, say string
		want       float64
	}{
		{`{"runs": [{"invocations": [{"executionSuccessful": false}], "results": []}]}`, "did not end well", 0},
		{`{"runs": [{"tool": {}}]}`, "no list of results", 0},
		{"\ufeff" + `{"runs": [{"invocations": [{"executionSuccessful": true}], "results": [{"ruleId": "a"}, {"ruleId": "b", "baselineState": "absent"}]}]}`, "", 1},
	} {
		r, err := ReadSARIF([]byte(c.sarif), "/work")
		if c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)) || c.say == "" && (err != nil || r.Series[0].Samples[0] != c.want) {
			t.Errorf("%s: %v, %v, want %q", c.sarif, r, err, c.say)
		}
	}
	r, err := ReadSARIF([]byte(`{"runs": [{"results": [{"locations": [{"physicalLocation": {"artifactLocation": {"uri": "../../etc/passwd"}, "region": {"startLine": -3}}}]}]}]}`), "/work")
	if err != nil || r.Places[0].File != "" || r.Places[0].Line != 0 {
		t.Errorf("a place outside: %+v, %v", r.Places, err)
	}
}

// Covers U6: elements with faults are counted with page and rule, of one page or a list; what
// is no result of axe, or of no page, gives no value.
func TestReadAxe(t *testing.T) {
	one := `{"url":"file:///tree/a.html","violations":[{"id":"image-alt","help":"Images need text","nodes":[{"html":"<img src=a>"},{"html":"<img src=b>"}]},{"id":"lang","help":"A language","nodes":[]}]}`
	for _, c := range []struct {
		out   string
		exit  int
		want  float64
		place string
		bad   string
	}{
		{one, 0, 3, "a.html: image-alt: Images need text: <img src=a>", ""},
		{one, 1, 3, "a.html: image-alt: Images need text: <img src=a>", ""}, // axe --exit
		{"[" + one + "," + one + "]", 0, 6, "a.html: image-alt: Images need text: <img src=a>", ""},
		{`{"url":"http://localhost/x","violations":[]}`, 0, 0, "", ""},
		{"[]", 0, 0, "", "no page was looked at"},
		{`{"url":"x"}`, 0, 0, "", "no list of violations"},
		{"null", 0, 0, "", "no list of violations"},
		{"oops", 0, 0, "", "no result of axe"},
		{"oops", 1, 0, "", "ended with"},
		{one, 127, 0, "", "ended with"},
	} {
		r, err := ReadAxe(Output{Stdout: []byte(c.out), Exit: c.exit}, "/tree")
		switch {
		case c.bad != "":
			if err == nil || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%q: %v, want %q", c.out, err, c.bad)
			}
		case err != nil || r.Series[0].Samples[0] != c.want || c.place != "" && r.Places[0].String() != c.place:
			t.Errorf("%q: %+v, %v", c.out, r, err)
		}
	}
}
