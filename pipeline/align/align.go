// Package align reads facts out of plain texts (rules, tasks, plans, contracts) by a table
// of kinds, and says which facts of two texts contradict each other. It is pure and asks no
// model. A contradiction that is none costs more than one that is overlooked: what is not
// said plainly is no fact.
package align

import (
	"fmt"
	"slices"
	"strings"
)

// Fact is what one sentence says about one matter.
type Fact struct {
	Kind  string // "viewport", "browser", "runtime", …
	Key   string // which of the kind: "go", "time", …; facts of different keys are never compared
	Quote string // the sentence
	Value string // what is said, normalised: "320 px"

	scope
	has, not  []string // of several that exclude each other, those that are wanted, and those that are not
	rule, use bool     // it holds for all; it is something that is done
	about     []string // words for what it is said of
	next      map[string]string
	role      string // what the number or version is: "cap", "loose", "support", "need", …
	low, high version
	number    float64
}

// Contradiction is two facts that cannot both hold.
type Contradiction struct {
	Kind, Key string
	A, B      string // the words of both sides
	Values    [2]string
}

func (c Contradiction) String() string { return fmt.Sprintf("%q against %q", c.A, c.B) }

// Same reports whether two are the same contradiction, however it is worded on the side
// that was written anew.
func (c Contradiction) Same(o Contradiction) bool {
	return c.Kind == o.Kind && c.Key == o.Key && c.A == o.A && c.Values == o.Values
}

// kind is a kind of facts: how they are read, and when two contradict each other. Peers
// says that neither of them was there first.
type kind struct {
	name  string
	read  func(s *sentence) []Fact
	clash func(x, y *Fact, peers bool) bool
}

// kinds is the table. The order is that in which contradictions are named.
func kinds() []kind {
	out := []kind{
		{"viewport", readViewport, clashViewport},
		{"browser", readBrowser, clashBrowser},
		{"runtime", readRuntime, clashRuntime},
		{"limit", readLimit, clashLimit},
		{"port", readPort, clashPort},
		{"dependencies", readDependencies, clashDependencies},
		{"call", readCall, clashCall},
	}
	for i := range choices {
		c := &choices[i]
		out = append(out, kind{c.kind, c.read, c.clash})
	}
	return out
}

func factsOf(k kind, list []sentence) []Fact {
	var out []Fact
	for i := range list {
		s := &list[i]
		for _, f := range k.read(s) {
			f.Kind, f.Quote, f.scope = k.name, s.text, s.scope
			out = append(out, f)
		}
	}
	return out
}

// Against returns where what is said cannot be with what is fixed already: at most one
// contradiction for each kind and key. What is stricter fits.
func Against(fixed, said string) []Contradiction { return compare(fixed, said, false) }

// Between returns where two texts of which neither goes before the other contradict each other.
func Between(a, b string) []Contradiction { return compare(a, b, true) }

func compare(a, b string, peers bool) []Contradiction {
	var out []Contradiction
	ours, theirs := sentences(a), sentences(b)
	for _, k := range kinds() {
		x, y := factsOf(k, ours), factsOf(k, theirs)
		seen := map[string]bool{}
		for i := range y {
			for j := range x {
				key := x[j].Key
				if seen[key] || key != y[i].Key || agreed(x, &y[i]) || agreed(y, &x[j]) || !k.clash(&x[j], &y[i], peers) {
					continue
				}
				seen[key] = true
				out = append(out, Contradiction{Kind: k.name, Key: key, A: x[j].Quote, B: y[i].Quote, Values: [2]string{x[j].Value, y[i].Value}})
			}
		}
	}
	return out
}

// agreed reports whether a text says elsewhere just what a fact says: it knows both, so
// they are of different things.
func agreed(facts []Fact, f *Fact) bool {
	return slices.ContainsFunc(facts, func(o Fact) bool {
		return o.Key == f.Key && o.Value == f.Value && o.role == f.role && o.use == f.use && strings.Join(o.not, " ") == strings.Join(f.not, " ")
	})
}
