package pipeline_test

import (
	"fmt"

	. "forge/pipeline"
	"forge/pipeline/config"
)

// A run is the fold over its events; Decide says what follows from it. Here a run has
// just begun: its plan is next, and is entered by an event.
func ExampleDecide() {
	var run Run
	run.Apply(Event{Run: 7, Seq: 1, Type: EventRunStarted, Data: Data{Start: &Start{
		Repo: Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main"}, Task: Task{Issue: 1, Title: "Sum is wrong"},
		Config: config.Default(), Base: "base000", Branch: "forge/issue-1-sum-is-wrong",
	}}})
	act := Decide(&run)
	fmt.Println(act.Key, act.Kind, act.Events[0].Type, act.Events[0].Data.Phase.Phase)

	entered := act.Events[0]
	entered.Run, entered.Seq = 7, 2
	run.Apply(entered)
	run.Published.Rev = run.Rev // people see it
	act = Decide(&run)
	fmt.Println(act.Key, act.Kind)
	// Output:
	// run/7/seq/1 record phase.entered plan
	// run/7/iter/0/plan work
}
