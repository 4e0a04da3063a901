// Package servertest is what tests of a whole Forge work on: a repository whose tests
// take no time, and the tape of a model that does what its issue asks for.
package servertest

// Greeter is a repository whose tests take no time: a script that prints TAP.
func Greeter() map[string]string {
	return map[string]string{
		"greet.sh":          "echo hello $1\n",
		"test.sh":           "echo TAP version 13\necho 1..1\nif [ \"$(sh greet.sh Ann)\" = \"hello, Ann\" ] || [ \"$(sh greet.sh Ann)\" = \"hello Ann\" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi\n",
		".github/forge.yml": "tests:\n  commands: [sh test.sh]\n",
	}
}

// GreeterTape does what the greeter's issue asks for, at the first attempt.
const GreeterTape = `
-- planner 0/1 --
>>> submit
summary: Put a comma after hello
steps: [Edit greet.sh]
criteria: [{id: AC1, text: A comma follows hello}]
-- implementer */1 --
>>> edit
path: greet.sh
old: "echo hello $1"
new: "echo hello, $1"
-- implementer */2 --
>>> submit
summary: Put a comma after hello
` + Approved

// Approved are the sections of a tape in which every review approves.
const Approved = `
-- compliance */1 --
>>> submit
criteria: [{id: AC1, met: true, evidence: test.sh}]
-- quality */1 --
>>> submit
summary: Small and right.
risk: 1
findings: []
`

// FailingTape is GreeterTape with a first attempt whose test fails, and an analysis
// that has no confident fix.
const FailingTape = `
-- planner 0/1 --
>>> submit
summary: Put a comma after hello
steps: [Edit greet.sh]
criteria: [{id: AC1, text: A comma follows hello}]
-- implementer 1/1 --
>>> edit
path: greet.sh
old: "echo hello $1"
new: "echo hullo, $1"
-- implementer 1/2 --
>>> submit
summary: Put a comma after hello
` + Approved + `-- tester */1 --
>>> submit
failures: [{id: T1, cause: logic, analysis: It says hullo., confidence: 0.2}]
-- implementer 2/1 --
>>> edit
path: greet.sh
old: "echo hullo, $1"
new: "echo hello, $1"
-- implementer 2/2 --
>>> submit
summary: Say hello
addressed: [{id: T1, what: it says hello}]
`
