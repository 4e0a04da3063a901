// Package measure is what was measured of the work: values with their bounds, what they
// consist of, and how they are written for people. How a value is read and judged is
// forge/pipeline/quality's.
package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Caps on what is kept of a reading.
const (
	maxParts  = 100
	maxPlaces = 200
)

// Result is one gate's value at one commit, and what is held of it.
type Result struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit,omitempty"`
	Value float64  `json:"value"`
	Base  *float64 `json:"base,omitempty"` // nil: not measured there
	Bound string   `json:"bound"`          // for people: "at most 500 kB"
	OK    bool     `json:"ok"`
	Block bool     `json:"block"`
	Owner []string `json:"owner,omitempty"`

	Error  string   `json:"error,omitempty"`  // why there is no value; then it is not OK
	Before bool     `json:"before,omitempty"` // it is missed at the base, too, and is not worse here
	Note   string   `json:"note,omitempty"`   // what else there is to say
	Parts  []Part   `json:"parts,omitempty"`  // what grew, biggest first
	Places []Place  `json:"places,omitempty"` // of findings
	More   int      `json:"more,omitempty"`   // how many more of these there are
	Millis int64    `json:"ms,omitempty"`
	Kept   *Reading `json:"kept,omitempty"` // of the base, for later measures of the same work
}

// Part is a part of a value, at both sides.
type Part struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Base  float64 `json:"base,omitempty"`
}

// Place is a finding of a tool, and where it is.
type Place struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Message string `json:"message"`
}

// Reading is what was read at one commit.
type Reading struct {
	Key    string   `json:"key,omitempty"`  // of the commit and of how it was measured; see Key
	Unit   string   `json:"unit,omitempty"` // "bytes" or "ms", of a gate that has none, whose command printed one
	Series []Series `json:"series"`
	Parts  []Part   `json:"parts,omitempty"`
	Places []Place  `json:"places,omitempty"`
}

// Series are the measures of one thing, in their order.
type Series struct {
	Name    string    `json:"name,omitempty"` // of a benchmark
	Samples []float64 `json:"samples"`
}

// One returns a reading of a single value.
func One(v float64) Reading { return Reading{Series: []Series{{Samples: []float64{v}}}} }

// Add takes in what was measured once more.
func (r *Reading) Add(more Reading) {
	r.Unit = cmp.Or(r.Unit, more.Unit)
	for _, s := range more.Series {
		i := slices.IndexFunc(r.Series, func(o Series) bool { return o.Name == s.Name })
		if i < 0 {
			r.Series = append(r.Series, s)
			continue
		}
		r.Series[i].Samples = append(r.Series[i].Samples, s.Samples...)
	}
	if r.Parts == nil {
		r.Parts = more.Parts
	}
	if r.Places == nil {
		r.Places = more.Places
	}
}

// Show writes a value with its unit for people.
func Show(v float64, unit string) string {
	switch unit {
	case "":
		return plain(v)
	case "bytes", "byte", "B":
		for _, s := range []struct {
			over float64
			name string
		}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
			if math.Abs(v) >= s.over {
				return plain(v/s.over) + " " + s.name
			}
		}
		return plain(v) + " bytes"
	case "ns/op", "ns":
		for _, s := range []struct {
			over float64
			name string
		}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
			if math.Abs(v) >= s.over {
				return plain(v/s.over) + " " + s.name + strings.TrimPrefix(unit, "ns")
			}
		}
	case "%", "per cent", "percent":
		return plain(v) + " %"
	}
	return plain(v) + " " + unit
}

// plain writes a number with at most three places that say something.
func plain(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	places := 2
	for x := math.Abs(v); x < 1 && places < 6; places++ {
		x *= 10
	}
	s := strconv.FormatFloat(v, 'f', places, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// Cut leaves out of a reading what is over the caps, for keeping it.
func (r Reading) Cut() *Reading {
	parts := slices.Clone(r.Parts)
	slices.SortStableFunc(parts, func(a, b Part) int {
		if a.Value > b.Value {
			return -1
		}
		return 1
	})
	r.Parts = slices.Clip(parts[:min(len(parts), maxParts)])
	r.Places = slices.Clip(r.Places[:min(len(r.Places), maxPlaces)])
	return &r
}

// Says is the measure in a line: "2.5 MB, at most 500 kB; 480 kB at the base".
func (m Result) Says() string {
	if m.Error != "" {
		return "not measured: " + m.Error
	}
	line := Show(m.Value, m.Unit)
	if m.Bound != "" {
		line += ", " + m.Bound
	}
	if m.Base != nil {
		line += "; " + Show(*m.Base, m.Unit) + " at the base"
	}
	if m.Note != "" {
		line += " (" + m.Note + ")"
	}
	return line
}

// Cause lists what the value consists of that grew, and where its findings are.
func (m Result) Cause() string {
	var b strings.Builder
	for _, p := range m.Parts[:min(len(m.Parts), 10)] {
		fmt.Fprintf(&b, "%s: %s, %s at the base, so %s more\n", p.Name, Show(p.Value, m.Unit), Show(p.Base, m.Unit), Show(p.Value-p.Base, m.Unit))
	}
	for _, p := range m.Places[:min(len(m.Places), 10)] {
		b.WriteString(p.String() + "\n")
	}
	if more := max(len(m.Places)-10, 0) + m.More; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// String is the finding in a line.
func (p Place) String() string {
	out := p.Message
	if p.Rule != "" {
		out = p.Rule + ": " + out
	}
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, out)
	case p.File != "":
		return p.File + ": " + out
	}
	return out
}

// Mark is the measure's state as a sign.
func (m Result) Mark() string {
	switch {
	case m.Error != "":
		return "⚠️"
	case m.OK:
		return "✅"
	case m.Block && !m.Before:
		return "❌"
	}
	return "⚠️"
}
