package learn

import (
	"testing"

	"forge/pipeline"
)

// A remark that asks for nothing is no gap of the review.
func TestRemarksThatAskForNothing(t *testing.T) {
	t.Parallel()
	for remark, nothing := range map[string]bool{
		"I learned something here, thanks":                     true,
		"Never mind, this is correct as it is.":                true,
		"generated, ignore":                                    true,
		"Nice, I like this!":                                   true,
		"This is fine.":                                        true,
		"Ah, I misread this. All good.":                        true,
		"Today I learned that maps are not ordered":            false, // it may be a hint
		"TIL, great trick":                                     true,
		"Didn't know that one, neat":                           true,
		"Looks right to me":                                    true,
		"Danke, passt so":                                      true,
		"Merci, c'est bon":                                     true,
		"ありがとうございます":                                           true,
		"Nice, but what if the list is empty?":                 false,
		"Thanks. Please add a test for the empty list.":        false,
		"This is an SQL injection: escape the untrusted input": false,
		"Great idea, though this leaks the file":               false,
		"This is correct only for positive numbers":            false,
		"Please use the generated client":                      false,
		"Never mind the name, the lock is missing":             false,
		"This panics when the list is nil":                     false,
		"The total is in cents everywhere else":                false,
		"Why is this right?":                                   false,
		"Danke, aber hier fehlt ein Test":                      false,
	} {
		if got := AsksForNothing(remark); got != nothing {
			t.Errorf("AsksForNothing(%q) = %v", remark, got)
		}
		s := pipeline.Signal{Kind: pipeline.SignalGap, Key: "gap/1", Scope: scope, Weight: 1, At: day(1), File: "a.go", Text: remark}
		if born := LearningsFrom(s); (len(born) == 0) != nothing {
			t.Errorf("%q bears %d learnings", remark, len(born))
		}
	}
}
