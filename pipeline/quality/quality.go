// Package quality judges measured values: it reads a value out of what a command left,
// holds it against its bounds and against the base's value, and says what grew. It runs
// nothing: who runs the commands is forge/pipeline/check.
package quality

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/config"
	"forge/pipeline/measure"
)

// maxPlaces caps the findings that are kept of one measure: of more, the number is said.
const maxPlaces = 50

// Key names a measure of a commit: the same commit measured in the same way, with the same
// tools, has the same.
func Key(sha, tools string, q config.Quality) string {
	q.Max, q.Min, q.WorseBy, q.Block, q.Owner, q.Better = nil, nil, "", nil, nil, "" // these are held against it
	data, err := json.Marshal(q)
	if err != nil {
		return "" // unreachable: texts and numbers
	}
	sum := sha256.Sum256(append([]byte(sha+"\n"+tools+"\n"), data...))
	return hex.EncodeToString(sum[:8])
}

// Allowance returns how far a value may be from the base's.
func Allowance(a config.Amount, base float64) (float64, error) {
	text, percent := strings.CutSuffix(strings.TrimSpace(string(a)), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, fmt.Errorf("is %q; it must be a share of the base's value such as 5%%, or a number such as 1000", string(a))
	}
	if percent {
		return math.Abs(base) * n / 100, nil
	}
	return n, nil
}

// Median returns the middle of some values; 0 of none.
func Median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	switch n := len(s); {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	default:
		return s[n/2-1]/2 + s[n/2]/2
	}
}

// grown returns the parts that are bigger than at the base, those that grew most first.
// Without a base all are, the biggest first.
func grown(head, base []measure.Part) []measure.Part {
	was := map[string]float64{}
	for _, p := range base {
		was[p.Name] += p.Value
	}
	var out []measure.Part
	for _, p := range head {
		p.Base = was[p.Name]
		if p.Value > p.Base {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b measure.Part) int {
		return cmp.Or(cmp.Compare(b.Value-b.Base, a.Value-a.Base), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// fresh puts the places first that the base does not have.
func fresh(head, base []measure.Place) (out []measure.Place, isNew int) {
	left := map[measure.Place]int{}
	for _, p := range base {
		p.Line = 0
		left[p]++
	}
	var known []measure.Place
	for _, p := range head {
		at := p
		at.Line = 0
		if left[at] > 0 {
			left[at]--
			known = append(known, p)
			continue
		}
		out = append(out, p)
	}
	return append(out, known...), len(out)
}
