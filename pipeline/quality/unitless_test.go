package quality

import (
	"strings"
	"testing"

	"forge/pipeline/config"
)

// Without the setting unit, a size or a time that is printed with one is compared in bytes
// or milliseconds, and against a plain number it is no value.
func TestNoUnitOfTheGate(t *testing.T) {
	share := config.Quality{Name: "x", Command: "y", Value: "number", WorseBy: "5%"}
	for _, c := range []struct {
		base, head string
		ok         bool
		says       string
	}{
		{"bundle: 900 kB", "bundle: 1.2 MB", false, "1.2 MB"},
		{"bundle: 1.2MB", "bundle: 900kB", true, "900 kB"},
		{"took 900 ms", "took 1.2 s", false, "1200 ms"},
		{"1.2 GB/s", "900 MB/s", true, "bytes/s"},
		{"900", "950", false, "950"},
		{"81.2%", "81.1%", true, "81.1"},
		{"0", "0 kB/s", true, ""},
		{"900", "1.2 MB", false, "here in bytes, at the base without a unit"},
		{"900 kB", "1.2 s", false, "here in ms, at the base in bytes"},
		{"900 kB", "2", false, "here without a unit, at the base in bytes"},
		{"900K", "1.2M", false, "printed the unit M"},
		{"900 kbps", "1.2 mbps", false, "printed the unit"},
	} {
		g := Of(share)
		base, err1 := g.Read(Output{Stdout: []byte(c.base)})
		head, err := g.Read(Output{Stdout: []byte(c.head)})
		if err1 != nil || err != nil {
			if c.ok || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q, %q: %v, %v, want %q", c.base, c.head, err1, err, c.says)
			}
			continue
		}
		r := g.Judge(head, &base, "")
		if said := r.Says() + r.Error; r.OK != c.ok || !strings.Contains(said, c.says) {
			t.Errorf("%q, %q: OK is %v, says %q, want %v, %q", c.base, c.head, r.OK, said, c.ok, c.says)
		}
	}
	bound := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		gate config.Quality
		out  string
		ok   bool
	}{
		{config.Quality{Max: bound(500000)}, "1.2 MB", false},
		{config.Quality{Min: bound(2)}, "1.2 s", false},
		{config.Quality{WorseBy: "1000"}, "1.2 MB", false},
		{config.Quality{Max: bound(500000)}, "1200", true},
		{config.Quality{Max: bound(0)}, "1.2 s", true}, // nothing is nothing in each unit
		{config.Quality{Max: bound(90)}, "81.2 %", true},
		{config.Quality{Max: bound(90)}, "12 findings", true},
	} {
		c.gate.Name, c.gate.Command, c.gate.Value = "x", "y", "number"
		_, err := Of(c.gate).Read(Output{Stdout: []byte(c.out)})
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "set unit") {
			t.Errorf("%+v, %q: %v", c.gate, c.out, err)
		}
	}
}
