// Package agent is the inner loop of Forge: a model and its tools, step by step.
//
// A [Job] is one phase of a run. The agent builds a prompt for the phase's role,
// lets the model act through tools on a [Workspace], and ends when the model
// submits a result that passes validation in Go. What the model says is a
// proposal: verdicts, severities, anchors and suggested fixes are computed or
// tried here before they leave the package.
//
// One phase holds one or more conversations, each with a name of its own:
//
//	plan       planner
//	implement  implementer
//	review     compliance (are the criteria met?), then quality (is it good, and what
//	           has become of what was found before?), with qualityb, qualityc, … for
//	           the further parts of a change that is too big for one prompt
//	test       tester (why did these tests fail?), justify (why did these tests of the
//	           base have to change?)
//
// and each may be helped once by its reflection ("implementer.reflection") when it
// stops making progress.
//
// A sixth role, the reflector, looks back at a whole run in one call ([Agent.Reflect]).
//
// A model behind HTTP is a provider's: one call at a time goes to a provider that is
// away ([Providers]), and what passes is waited for; [Check] says beforehand what
// does not.
//
// Reading order: model.go (what a model is), provider.go, circuit.go and exchange.go
// (models behind HTTP), anthropic.go and openai.go (what each wants), fault.go (what
// goes wrong), tape.go (a scripted model), recorder.go (what is kept of every call),
// budget.go, output.go (how long answers are), decode.go (what is taken of them),
// tools.go, memory.go, loop.go and calls.go, prompt.go and project.go (what the roles
// are told), and one file per role: plan.go, implement.go, review.go with findings.go
// and rulings.go, analyse.go, justify.go. How a patch is read is in the package change.
//
// The package stores nothing itself. Every model call is put on the [Tape], which
// the store keeps, so that a phase that is run again after a crash plays back what
// was already paid for.
package agent
