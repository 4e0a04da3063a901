package pipeline

import (
	"fmt"
	"strings"

	"forge/pipeline/text"
)

// Explain says why the run stands where it stands: what it does or waits for, what
// each guard has counted against its limit, and how it came there.
func (r *Run) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Summary())
	r.explainState(&b)
	b.WriteString("| guard | counted | limit |\n| --- | --- | --- |\n")
	c, cfg := r.Counters, r.Config
	row := func(name GuardName, counted, limit any) { fmt.Fprintf(&b, "| %s | %v | %v |\n", name, counted, limit) }
	n := 0
	if it := r.Current(); it != nil {
		n = it.Number
	}
	row(GuardIterations, n, r.MaxIterations())
	row(GuardBounces+" of review", c.ReviewBounces, cfg.Loop.ReviewBounces)
	row(GuardBounces+" of test", c.TestBounces, cfg.Loop.TestBounces)
	row(GuardSameFinding, most(r.Findings), cfg.Loop.SameFinding)
	row(GuardSameFailure, most(r.Failures), cfg.Loop.SameFailure)
	if cfg.Loop.Doubts > 0 {
		row(GuardDoubts, len(r.signs()), cfg.Loop.Doubts)
	}
	if cfg.Breaker.Enabled {
		row(GuardBreaker, max(c.ReviewInARow, c.TestInARow), cfg.Breaker.MaxIterations)
	}
	_, tokens := r.spent()
	row(GuardBudget, r.Total().Cost(), text.USD(r.CostLimit()))
	row(GuardBudget+" of tokens", tokens, r.TokenLimit())
	row(GuardWall+" in minutes", r.Worked()/60_000, r.WallLimit()/60_000)
	row(GuardFaults, c.Faults, cfg.Loop.Faults)
	row(GuardNoProgress, c.EmptyRounds, staleLimit)
	row(GuardMoved, c.Moved, movedLimit)
	if n > 0 && c.GrantedUntil > n {
		fmt.Fprintf(&b, "\nThe guards of the loop hold still up to iteration %d: a human said so.\n", c.GrantedUntil)
	}
	r.explainMeasures(&b)
	r.explainHistory(&b)
	if r.Track != nil {
		fmt.Fprintf(&b, "\nIts track is %s.\n", r.Track)
	}
	if r.Fit != nil {
		fmt.Fprintf(&b, "\nIts limits are %s.\n", r.Fit)
	}
	r.explainRoles(&b)
	if len(r.Instructions) > 0 {
		fmt.Fprintf(&b, "\nThe agents were given the repository's instructions, as they stand at the base: %s.\n", strings.Join(r.Instructions, ", "))
	}
	for i := range r.Upstream {
		f := &r.Upstream[i]
		fmt.Fprintf(&b, "\nFeedback between agents, %s: %s\n", f.State, f)
	}
	if len(r.Skills) > 0 {
		fmt.Fprintf(&b, "\nSkills that agents read: %s.\n", strings.Join(r.Skills, ", "))
	}
	if len(r.SkillsLeft) > 0 {
		fmt.Fprintf(&b, "\nSkills of the repository that agents do not get: %s.\n", text.Clip(strings.Join(r.SkillsLeft, "; "), 1000))
	}
	if it := r.Current(); it != nil && it.Review != nil {
		for _, view := range it.Review.Views {
			fmt.Fprintf(&b, "\nThe last review looked besides for %s.\n", view)
		}
	}
	if it := r.Current(); it != nil && it.Review != nil && len(it.Review.Suppressed) > 0 {
		b.WriteString("\nFindings of the last review that were held back, because of what people did before:\n\n")
		for _, h := range it.Review.Suppressed {
			fmt.Fprintf(&b, "- %s\n", h)
		}
	}
	return b.String()
}

func (r *Run) explainState(b *strings.Builder) {
	switch g := r.Gate(); {
	// else it is about what another step would take
	case g != nil && g.Guard != nil && g.Guard.Limit > 0 && (g.Guard.Name != GuardBudget || g.Guard.Value >= g.Guard.Limit):
		fmt.Fprintf(b, "The guard **%s** stopped it at %s: %s\n\n", g.Guard.Name, g.Guard.reached(), g.Guard.Detail)
	case g != nil && g.Guard != nil:
		fmt.Fprintf(b, "It waits because of **%s**: %s\n\n", g.Guard.Name, g.Guard.Detail)
	case r.Awaits() != "" && r.Await.Model: // else it is said
		fmt.Fprintf(b, "Where that lasts until %s, a human is asked.\n\n", r.Await.Until.UTC().Format("15:04 UTC"))
	case r.State == StateStopped:
		fmt.Fprintf(b, "%s stopped it.\n\n", r.StoppedBy.Login)
	case r.Fault != nil:
		fmt.Fprintf(b, "Its last step broke down (%s): %s\n\n", r.Fault.Class, text.Clip(text.OneLine(r.Fault.Message), faultShown))
	}
	if end := r.Deadline(); !end.IsZero() {
		who := r.StoppedBy.Login
		if g := r.Gate(); g != nil {
			who = g.For.Login
		}
		fmt.Fprintf(b, "It waits for %s, or anyone with write access, until %s; then it is cancelled.\n\n", who, end.UTC().Format("2006-01-02 15:04 UTC"))
	}
}

// reached is how far the guard's figure was of its limit.
func (g *Guard) reached() string {
	switch g.Unit {
	case "":
		return fmt.Sprintf("%d of %d", g.Value, g.Limit)
	case "micro-USD":
		return text.USD(g.Value) + " of " + text.USD(g.Limit)
	}
	return fmt.Sprintf("%d of %d %s", g.Value, g.Limit, g.Unit)
}

// most is how often the issue came back that came back most often.
func most(list []Issue) int {
	n := 0
	for _, is := range list {
		if is.State == IssueOpen {
			n = max(n, is.Times)
		}
	}
	return n
}

func (r *Run) explainHistory(b *strings.Builder) {
	for _, bounce := range r.Bounces {
		resolved := "not resolved"
		if bounce.Resolved {
			resolved = "resolved"
		}
		fmt.Fprintf(b, "\n- Iteration %d: %s sent it back to %s with %s, weighing %d: %s.", bounce.Iteration, bounce.Phase, bounce.To(),
			text.Plural(bounce.Count, "issue", "issues"), bounce.Weight, resolved)
	}
	for _, g := range r.Gates {
		for _, a := range g.Answers {
			fmt.Fprintf(b, "\n- %s: %s answered `%s`.", g.ID, a.By.Login, a.Choice)
		}
	}
	for _, why := range r.Reopened {
		fmt.Fprintf(b, "\n- It had ended and went on: %s.", why)
	}
	for _, w := range r.Waivers {
		fmt.Fprintf(b, "\n- Let pass by %s on %s: %s.", w.By.Login, text.ShortSHA(w.Head), w.What)
	}
	if len(r.Bounces)+len(r.Gates)+len(r.Reopened)+len(r.Waivers) > 0 {
		b.WriteString("\n")
	}
}
