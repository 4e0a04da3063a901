// Package point holds what a reviewer is asked about a place of a change, because no test can
// show that it is right; package look finds such places.
package point

import "fmt"

// Kind says what there is to look at in a place of a change.
type Kind string

// The kinds of points.
const (
	Place   Kind = "place"   // code turns on what is around its process, on the time, on what was before or on chance
	Hidden  Kind = "hidden"  // code reaches something by a name that is put together, or by the language's insides
	Ends    Kind = "ends"    // code ends the program, thread, iteration or block of its caller
	Compare Kind = "compare" // code settles how its values compare, convert or contain, or what its errors are caught as
	Values  Kind = "values"  // code knows values, of a test of the base or by their digest
	Data    Kind = "data"    // a constant or data changes that tests of the base look at, or functions that they hold against each other
)

var questions = map[Kind]string{
	Place:   "It turns on what is around its process, on the time, on what was before or on chance. Does it do for a user just what it does in a test?",
	Hidden:  "It reaches something by a name that is put together, or by the insides of the language. What, and why not by its name?",
	Ends:    "It ends the program, the thread, the iteration or the block of its caller, so that a test which checks there can pass unchecked. When does it, and does the task ask for it?",
	Compare: "It settles how values compare, convert, contain or round, or what errors are caught as. Is a value equal only to what it is equal to, and does a check take only what it is for?",
	Values:  "It knows values, some of which a test of the base has, too. Is it right for other values as well?",
	Data:    "Tests of the base compare with this, so that they pass whatever it says. Does the task ask for the new value?",
}

// Line is a line that a change adds, by its number at the head from 1.
type Line struct {
	Number int
	Text   string
}

// Point is a place in a change at which the reviewer has to look, because no test can show
// that it is right.
type Point struct {
	File string `json:"file"`
	Line int    `json:"line"`           // the first of its kind in the file
	More int    `json:"more,omitempty"` // further ones
	Kind Kind   `json:"kind"`
	Code string `json:"code"`           // of that line
	Test string `json:"test,omitempty"` // the file of tests that it is about
	Said string `json:"said,omitempty"` // the reviewer, of why it is right
	Open bool   `json:"open,omitempty"` // the reviewer was asked and gave no reason
}

// Question is what the reviewer is asked.
func (p Point) Question() string { return questions[p.Kind] }

// At names the place, in a few words.
func (p Point) At() string {
	if p.More > 0 {
		return fmt.Sprintf("%s:%d and %d more lines", p.File, p.Line, p.More)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}
