// Command forge is a GitHub App that turns labelled issues into reviewed, tested
// pull requests.
//
// # The house
//
//	               GitHub                                   people, at a terminal
//	                 │ ▲                                              │
//	      deliveries │ │ comments, checks, commits                    │ commands
//	                 ▼ │                                              ▼
//	┌─ cmd/forge/server ──────────────────────────────┐  ┌─ cmd/forge ────────────┐
//	│ webhook ──▶ pipeline/store ◀── pipeline/work    │◀─│ serve, run, demo, …    │
//	│             the event log      the engine       │  │ and what they print    │
//	│ github ◀── publishes ─────────────┘  │          │  └────────────────────────┘
//	│ dashboard, metrics, traces           │ phases   │
//	└──────────────────────────────────────┼──────────┘
//	                                       ▼
//	              ┌─ cmd/forge/phase ───────────┐     ┌─ cmd/forge/memory ───────┐
//	              │ plan, implement, review,    │────▶│ recalls, filters,        │
//	              │ test, update                │     │ learns, looks back       │
//	              └──┬──────────┬──────────┬────┘     └──────────┬───────────────┘
//	                 ▼          ▼          ▼                     ▼
//	          pipeline/agent  pipeline/  pipeline/             learn
//	          models, tools   check      sandbox               (pure)
//	                          tests      processes, git
//
//	Below all of them is pipeline, which is pure: what a run is (a fold over its
//	events), and what should happen next (Decide).
//
// # To read it from the bottom up
//
//  1. forge/pipeline: what a run is, and what should happen next. Pure.
//  2. forge/pipeline/store: the event log and what is folded from it. SQL.
//  3. forge/pipeline/sandbox: where a repository's files and commands are. Processes.
//  4. forge/pipeline/agent and forge/pipeline/check: what phases are done with.
//  5. forge/pipeline/work: the engine that carries runs from event to event.
//  6. forge/webhook and forge/github: how GitHub speaks to Forge, and Forge to GitHub.
//  7. forge/learn: what people do, and what runs teach, made into a memory. Pure.
//  8. forge/cmd/forge/phase: one file for each phase. What carries them out (a
//     Planner, an Implementer, Reviewers, a Tester) and the Memory that they ask are
//     interfaces there.
//  9. forge/cmd/forge/memory: the way from people and runs back to agents.
//  10. forge/cmd/forge/server: New puts everything together; Listen serves it.
//  11. forge/cmd/forge/shell: what all commands share. forge/cmd/forge/learnings is
//     `forge memory`.
//  12. this package: the other commands, and what they print.
//
// # What happens to an issue
//
// A label is set, and GitHub sends a delivery. forge/webhook keeps it in the store and
// answers. The engine takes it in: delivery.Read makes a notice of it, the server's
// githubClient reads the repository's settings, and a run is created, which is one
// event. From then on the engine loads the run, asks pipeline.Decide for the next
// action, carries it out, and appends what came of it, until Decide has nothing more
// to say. An action is a phase, which phase.Executor carries out, or a publication,
// by which githubClient brings GitHub in line with the run. What people do on GitHub
// comes in as further deliveries; memory.Learner makes learnings of it, and the next
// run's phases are given those that matter.
//
// # Rules of the house
//
// Siblings do not import each other: the server's adapters stand between them, and
// phase and memory do not know one another. All SQL is in the store, all processes
// are started by the sandbox, and the clock is given to whoever needs one.
// rules_test.go checks what of this can be checked. The texts that commands print are
// kept under testdata/golden.
//
// forge/github/githubtest is a GitHub on this machine, for the demo and the tests;
// forge/cmd/forge/demo has the repository that they work on.
package main
