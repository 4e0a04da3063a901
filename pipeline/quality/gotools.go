package quality

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// ReadVet reads what go vet -json printed. Root is the repository's folder as go saw it.
func ReadVet(o Output, root string) (measure.Reading, error) {
	if o.Exit != 0 {
		return measure.Reading{}, failed(o)
	}
	var doc bytes.Buffer
	for line := range bytes.Lines(slices.Concat(o.Stdout, []byte("\n"), o.Stderr)) {
		if !bytes.HasPrefix(line, []byte("#")) {
			doc.Write(line)
		}
	}
	var places []measure.Place
	for d := json.NewDecoder(&doc); ; {
		var packages map[string]map[string]json.RawMessage
		if err := d.Decode(&packages); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return measure.Reading{}, fmt.Errorf("what go vet printed cannot be read: %w", err)
		}
		for _, analyzers := range packages {
			for rule, raw := range analyzers {
				var list []struct{ Posn, Message string }
				if json.Unmarshal(raw, &list) != nil {
					return measure.Reading{}, fmt.Errorf("go vet's %s ended with an error: %s", rule, text.Clip(string(raw), 200))
				}
				for _, f := range list {
					p := measure.Place{Rule: rule, Message: text.Clip(text.OneLine(f.Message), 300)}
					at := strings.Split(f.Posn, ":")
					p.File = localName(at[0], root)
					if len(at) > 1 {
						p.Line, _ = strconv.Atoi(at[1])
					}
					places = append(places, p)
				}
			}
		}
	}
	SortPlaces(places)
	places = slices.Compact(places) // a file is looked at with its tests, too
	r := measure.One(float64(len(places)))
	r.Places = places
	return r, nil
}

// SortPlaces orders findings by where they are.
func SortPlaces(list []measure.Place) {
	slices.SortFunc(list, func(a, b measure.Place) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
}

var benchLine = lazyregexp.New(`(?m)^(Benchmark\S*?)(?:-\d+)?\s+\d+\s+(\S+) ns/op`)

// ReadBench reads what go test -bench printed: a series for each benchmark. Of one that
// ran several times the fastest counts: what else the machine does makes it slower, never
// faster.
func ReadBench(o Output) (measure.Reading, error) {
	if o.Exit != 0 {
		return measure.Reading{}, failed(o)
	}
	var r measure.Reading
	pkg := ""
	for line := range strings.Lines(string(o.Stdout)) {
		if name, is := strings.CutPrefix(line, "pkg: "); is {
			pkg = strings.TrimSpace(name) + "."
		}
		m := benchLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		v, err := parseNumber(m[2])
		if err != nil {
			return r, err
		}
		i := slices.IndexFunc(r.Series, func(o measure.Series) bool { return o.Name == pkg+m[1] })
		if i < 0 {
			r.Add(measure.Reading{Series: []measure.Series{{Name: pkg + m[1], Samples: []float64{v}}}})
		} else {
			r.Series[i].Samples[0] = min(r.Series[i].Samples[0], v)
		}
	}
	return r, nil
}

// ReadSizes reads the sizes of programs, "S size name", and of their packages, "P size name".
func ReadSizes(o Output) (measure.Reading, error) {
	if o.Exit != 0 {
		return measure.Reading{}, failed(o)
	}
	total, programs := 0.0, 0
	var parts []measure.Part
	for line := range strings.Lines(string(o.Stdout)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		v, err := parseNumber(f[1])
		switch {
		case err != nil:
		case f[0] == "S":
			total, programs = total+v, programs+1
		case f[0] == "P":
			parts = append(parts, measure.Part{Name: strings.Join(f[2:], " "), Value: v})
		}
	}
	if programs == 0 {
		return measure.Reading{}, errors.New("no program was built: there is no package main")
	}
	r := measure.One(total)
	r.Parts = parts
	return r, nil
}
