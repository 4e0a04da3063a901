package pipeline

import (
	"forge/pipeline/text"
	"slices"
)

// spent is Cost with what is known in its place where no cost is.
func (u Usage) spent() string {
	if u.Unpriced > 0 && u.MicroUSD == 0 {
		return text.Plural(int(u.Input+u.Output), "token", "tokens") + " of unknown cost"
	}
	return u.Cost()
}

// Cost is what the calls cost, for people: "$1.25", "cost unknown" where no call's
// model has a price, "$1.25 + cost unknown" where some have none.
func (u Usage) Cost() string {
	switch known := text.USD(u.MicroUSD); {
	case u.Unpriced == 0:
		return known
	case u.MicroUSD == 0:
		return "cost unknown"
	default:
		return known + " + cost unknown"
	}
}

// soFar is Cost as the end of a sentence.
func (u Usage) soFar() string {
	switch known := text.USD(u.MicroUSD); {
	case u.Unpriced == 0:
		return "has cost " + known + " so far"
	case u.MicroUSD == 0:
		return "what it has cost so far is unknown"
	default:
		return "has cost " + known + " so far, and what is unknown"
	}
}

// ToolSkill is the tool by which agents read a skill; its subject is the skill's name.
const ToolSkill = "skill"

// skill notes that an agent has read one.
func (r *Run) skill(t *ToolUse) {
	if t.Tool == ToolSkill && t.Subject != "" && !slices.Contains(r.Skills, t.Subject) {
		r.Skills = append(r.Skills, t.Subject)
	}
}
