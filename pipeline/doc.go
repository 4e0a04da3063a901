// Package pipeline is Forge's domain: what a run is, what can happen to it, and
// what should happen next.
//
// Everything that happens is an [Event]. A [Run] is a fold over its events
// ([Run.Apply]); [Decide] looks at a run and says which [Action] comes next. Both
// are pure: no I/O, no clock, no randomness, and nothing but the standard
// library. That makes a run replayable, testable in every order of events, and
// indifferent to crashes, restarts and new versions of the program: what was
// decided is itself an event, so it is never decided twice.
//
// What a run does in which order is its procedure, a table with a row for each
// [Kind] of run. [Loop] is where it stands between implement, review and test. The
// state machine of a run:
//
//	            run.started
//	                │
//	             planning ◀───────────── gate answered (plan)
//	                │
//	┌────────▶ implementing ◀─────────┐
//	│               │                 │ gate answered (continue)
//	│           reviewing ──guard──▶ waiting ──▶ accepted · cancelled
//	├──findings─────┤                 ▲
//	│            testing ────guard────┘
//	└──failures─────┤
//	             verified
//
// A run can be stopped from and resumed to every state that is not an end. After
// every step whose outcome people should see, the run is published: GitHub is
// brought in line with it.
//
// The other packages import this one and none of each other; it stores nothing.
package pipeline
