package quality

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"forge/pipeline/config"
	"forge/pipeline/measure"
)

// The presets.
const (
	Coverage        = "coverage"
	CoverageChanged = "coverage-changed"
	GoVet           = "go-vet"
	GoBench         = "go-bench"
	BinarySize      = "binary-size"
	UseSARIF        = "sarif"
	Licences        = "licences"
	Axe             = "axe"
)

// Presets returns the names of all of them.
func Presets() []string {
	return []string{Coverage, CoverageChanged, GoVet, GoBench, BinarySize, UseSARIF, Licences, Axe}
}

// Gate is a gate as it is meant, with what its preset brings.
type Gate struct {
	config.Quality
	Kind   Kind
	Higher bool // is better
	Gone   bool // what the base measured may be missing here: it is looked at in another way
}

// Of fills in what a gate's settings leave open.
func Of(q config.Quality) Gate {
	g := Gate{Quality: q}
	g.Name = cmp.Or(q.Name, q.Use)
	packages := cmp.Or(q.Package, "./...")
	none := q.Max == nil && q.Min == nil && q.WorseBy == ""
	zero := 0.0
	switch q.Use {
	case Coverage, CoverageChanged:
		g.Unit, g.Better = "%", "higher"
	case GoVet:
		g.Command, g.Unit = "go vet -json "+packages, "findings"
	case GoBench:
		g.Command, g.Unit = cmp.Or(q.Command, "go test -run '^$' -bench . -benchtime 300ms -count 3 "+packages), "ns/op"
		g.Repeats = cmp.Or(q.Repeats, 6)
		if none {
			g.WorseBy = "10%"
		}
	case BinarySize:
		g.Unit = "bytes"
		g.Command = `d=$(mktemp -d) && go build -buildvcs=false -o "$d/" ` + packages
	case UseSARIF:
		g.Unit = cmp.Or(q.Unit, "findings")
	case Licences:
		g.Unit = "new dependencies"
	case Axe:
		g.Unit = cmp.Or(q.Unit, "elements")
	}
	if none && (q.Use == GoVet || q.Use == UseSARIF || q.Use == Licences || q.Use == Axe) {
		g.Max = &zero
	}
	g.Kind, _ = ParseKind(q.Value) // the settings were checked
	if g.Kind.Name == Size && g.Unit == "" {
		g.Unit = "bytes"
	}
	g.Higher = g.Better == "higher" || g.Better == "" && g.Min != nil && g.Max == nil
	return g
}

// Bounded reports whether anything is asked of the value.
func (g Gate) Bounded() bool { return g.Max != nil || g.Min != nil || g.WorseBy != "" }

// NeedsBase reports whether the value is held against the base's: also to say of one that
// is missed whether it was missed before.
func (g Gate) NeedsBase() bool { return g.Use != CoverageChanged && g.Use != Licences }

// Bound says for people what is asked.
func (g Gate) Bound() string {
	var out []string
	if g.Max != nil {
		out = append(out, "at most "+measure.Show(*g.Max, g.Unit))
	}
	if g.Min != nil {
		out = append(out, "at least "+measure.Show(*g.Min, g.Unit))
	}
	if g.WorseBy != "" {
		by := string(g.WorseBy)
		if share, percent := strings.CutSuffix(by, "%"); percent {
			by = strings.TrimSpace(share) + " %"
		} else if n, err := strconv.ParseFloat(by, 64); err == nil {
			by = measure.Show(n, g.Unit)
		}
		out = append(out, fmt.Sprintf("at most %s %s than at the base", by, map[bool]string{true: "less", false: "more"}[g.Higher]))
	}
	return strings.Join(out, ", ")
}

// Unmeasured is a gate that has no value, and why.
func (g Gate) Unmeasured(why string) measure.Result {
	m := g.blank()
	m.Error = why
	return m
}

func (g Gate) blank() measure.Result {
	return measure.Result{Name: g.Name, Unit: g.Unit, Bound: g.Bound(), Block: g.Blocks(), Owner: g.Owner}
}

// Read reads the value that a command printed, in the gate's unit, or in bytes or
// milliseconds where the gate has none and the command does.
func (g Gate) Read(o Output) (measure.Reading, error) {
	if g.Kind.Name != Number || o.Exit != 0 {
		return g.Kind.Read(o)
	}
	v, printed, err := lastNumber(string(o.Stdout))
	unit := g.Unit
	switch {
	case err != nil:
	case unit == "":
		v, unit, err = g.plain(v, printed)
	default:
		v, err = convert(v, printed, unit)
	}
	if u, known := unitOf(unit); err == nil && v == 0 && known && u.size && u.per == "" && g.Min == nil {
		err = fmt.Errorf("0 %s: what is measured is not there; where that is right, say so with min: 0", unit)
	}
	r, err := one(v, err)
	if g.Unit == "" && err == nil {
		r.Unit = unit
	}
	return r, err
}

// plain turns what was printed with a unit into bytes or milliseconds, for a gate that has no
// unit: 900 kB and 1.2 MB are compared as what they are. A bound that is a plain number can be
// meant in any unit, so that nothing is held against it.
func (g Gate) plain(v float64, printed string) (float64, string, error) {
	u, known := unitOf(printed)
	switch {
	case !known && (unitWord(printed) != "" || scale[printed]):
		return 0, "", fmt.Errorf("the command printed the unit %s, and the gate has none: print bytes, milliseconds or a plain number, or set unit: %[1]s", printed)
	case !known:
		return v, "", nil
	case g.Max != nil && *g.Max != 0, g.Min != nil && *g.Min != 0, g.WorseBy != "" && !strings.HasSuffix(strings.TrimSpace(string(g.WorseBy)), "%"):
		return 0, "", fmt.Errorf("the command printed the unit %s, and the gate has none: set unit to that which its bounds are meant in, such as unit: %[1]s", printed)
	}
	unit, per := "bytes", u.factor
	if !u.size {
		unit, per = "ms", u.factor/1e6
	}
	if u.per != "" {
		unit += "/" + u.per
	}
	return v * per, unit, nil
}
