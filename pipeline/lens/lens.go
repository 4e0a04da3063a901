// Package lens names the further views that a change is reviewed from, besides the
// general one: each looks for one thing alone.
package lens

import "fmt"

// Lens is what a change is looked at for.
type Lens string

// The lenses that there are.
const (
	Security    Lens = "security"    // what an attacker, or a mistake with secrets, could do with it
	Product     Lens = "product"     // whether it does what was asked, for those who use it
	Performance Lens = "performance" // what it costs in time, memory and requests as the data grows
)

// All returns every lens, in the order in which they are told of.
func All() []Lens { return []Lens{Security, Product, Performance} }

// Names are All, as settings spell them.
func Names() []string {
	var out []string
	for _, l := range All() {
		out = append(out, string(l))
	}
	return out
}

// View is what came of one lens in a review.
type View struct {
	Lens     Lens   `json:"lens"`
	Findings int    `json:"findings,omitempty"` // those that no other view had
	Skipped  string `json:"skipped,omitempty"`  // why the change was not looked at
}

// String says it for people, "security: 1 finding".
func (v View) String() string {
	switch {
	case v.Skipped != "":
		return fmt.Sprintf("%s: not needed, %s", v.Lens, v.Skipped)
	case v.Findings == 0:
		return fmt.Sprintf("%s: nothing more", v.Lens)
	case v.Findings == 1:
		return fmt.Sprintf("%s: 1 finding more", v.Lens)
	}
	return fmt.Sprintf("%s: %d findings more", v.Lens, v.Findings)
}
