package pipeline

// Target is the phase that feedback goes to (R2).
type Target string

// The targets. What the task means comes before how it is solved, and that before
// the code.
const (
	TargetResearch  Target = "research"
	TargetPlan      Target = "plan"
	TargetImplement Target = "implement"
	TargetModule    Target = "module" // the modules whose files it is about
)

// targets says whose matter a category of findings is. What is not here says
// nothing about it.
var targets = map[Category]Target{
	CategoryRequirements: TargetResearch, CategoryUnderstanding: TargetResearch, CategoryInformation: TargetResearch,
	CategoryArchitecture: TargetPlan, CategoryDesign: TargetPlan, CategoryApproach: TargetPlan,
	CategoryCorrectness: TargetImplement, CategorySecurity: TargetImplement, CategoryPerformance: TargetImplement,
	CategoryStyle: TargetImplement, CategoryTests: TargetImplement, CategoryCompliance: TargetImplement, CategoryHuman: TargetImplement,
}

// route finds where feedback goes: to the target on which most of it weighs, by
// severity. Where two weigh the same, or the categories say nothing, the
// reviewer's own word decides; without one it is the implementer's.
func route(findings []Finding, failures []Failure, asked Target) Target {
	sums := map[Target]int{TargetImplement: len(failures) * weight(SeverityError)}
	for _, f := range findings {
		if t, known := targets[f.Category]; known {
			sums[t] += weight(f.Severity)
		}
	}
	best, most, tied := TargetImplement, sums[TargetImplement], false
	for _, t := range []Target{TargetPlan, TargetResearch} {
		switch {
		case sums[t] > most:
			best, most, tied = t, sums[t], false
		case sums[t] == most && most > 0:
			tied = true
		}
	}
	if tied || most == 0 {
		best = TargetImplement
		if asked == TargetPlan || asked == TargetResearch {
			best = asked
		}
	}
	return best
}

// back names what is entered after the bounce: the phase that must act. Research
// and planning are the planner's, which then hands over to the implementer.
func (r *Run) back(b *Bounce, it *Iteration) PhaseRef {
	switch b.Target {
	case TargetResearch:
		return PhaseRef{Phase: PhasePlan, Iteration: it.Number, Mode: ModeResearch}
	case TargetPlan:
		return PhaseRef{Phase: PhasePlan, Iteration: it.Number, Mode: ModeReplan}
	}
	return PhaseRef{Phase: PhaseImplement, Iteration: it.Number + 1, Mode: fixMode(b)}
}

// fixMode is what the implementer is asked for after a bounce.
func fixMode(b *Bounce) Mode {
	switch {
	case b.Target == TargetPlan || b.Target == TargetResearch:
		return ModeFresh // there is a new plan to carry out
	case b.Phase == PhaseReview:
		return ModeFixFindings
	}
	return ModeFixFailures
}

// rework names the next execution after the last bounce.
func (r *Run) rework() PhaseRef {
	b, it := &r.Bounces[len(r.Bounces)-1], r.Current()
	if ref := r.back(b, it); ref.Phase == PhaseImplement || r.PlanIteration < it.Number {
		return ref
	}
	return PhaseRef{Phase: PhaseImplement, Iteration: it.Number + 1, Mode: fixMode(b)}
}
