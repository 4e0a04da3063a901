package check

import (
	"fmt"
	"slices"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
	"forge/pipeline/testname"
)

// exit is where a process of the tests was ended as if all were well, before it came to its
// end. A script of tests shows by its exit code alone that it passes: what stands behind that
// was not reached.
type exit struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Main string `json:"main"` // the script of the process
}

// exiting is what can end a process in JavaScript, by whatever name. What is around a process
// is asked about anyway.
var exiting = lazyregexp.New(`\b(?:process|exit|reallyExit|globalThis|global|constructor|Reflect|eval|Function)\b|` +
	`\bthis\s*\[|\b(?:import|require)\s*\(\s*[^'"\s]`)

// mayExit reports whether the change has JavaScript of the product that may end a process.
func (v *verdict) mayExit() bool {
	for f, lines := range v.head.patch.productLines(v.isTest) {
		if languageOf(f.NewName) == &jsLang && slices.ContainsFunc(lines, func(l point.Line) bool { return exiting.MatchString(l.Text) }) {
			return true
		}
	}
	return false
}

// endsProcess finds code of the product that ends the process of a test, and did not at the base.
// A program that a test starts may end as it likes.
func (v *verdict) endsProcess(now, before []exit) {
	told := map[string]bool{}
	for _, e := range now {
		test := v.isTest[e.Main] || testname.IsFile(e.Main)
		product := roleOf(e.File) == product && !v.isTest[e.File] && !testname.IsFile(e.File)
		was := slices.ContainsFunc(before, func(b exit) bool { return b.File == e.File })
		if !test || !product || was || told[e.File] || len(told) == maxBent {
			continue
		}
		told[e.File] = true
		v.found = append(v.found, pipeline.Finding{Rule: ruleEnds, File: e.File, Line: e.Line, Code: e.Main, Message: fmt.Sprintf(
			"Code under test ends the process of %s as if all were well, before it comes to its end; at the base it did not. What stands behind that is not reached. "+
				"Let it return, or throw what the test sees, or let a human decide that it stays", e.Main)})
	}
}
