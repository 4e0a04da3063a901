package impact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Taught is a learning of a look back, by what became of it.
type Taught struct {
	Key   string // "reflection:TRACE/TRIGGER@MODEL#1"
	Given bool   // to a run at least
	Used  bool   // an agent named it
	Wrong bool   // more speaks against it than for it, or it was taken out of use
}

// Look is what became of what looks back at runs taught, by what asked for them or by
// the model that looked.
type Look struct {
	Trigger   string  `json:"trigger,omitempty"`
	Model     string  `json:"model,omitempty"`
	Learnings int     `json:"learnings"`
	Given     int     `json:"given"` // of them, to a run at least
	Used      int     `json:"used"`  // of those given: an agent named it, and no more speaks against it than for it
	Wrong     int     `json:"wrong"` // more speaks against it, or it was taken out of use
	Share     float64 `json:"share"` // of what such a look back may cost otherwise
}

// The budget of looks back follows what they are worth: all of it where a fifth of what is
// given is useful, a quarter at least, so that it is seen when that changes.
const (
	lookedEnough = 20 // learnings given before anything follows
	lookedUsed   = 0.2
	lookedLeast  = 0.25
)

// LookKey is what the keys of the learnings of a look back begin with.
func LookKey(trace, trigger, model string) string {
	return "reflection:" + trace + "/" + trigger + "@" + lookModel(model)
}

// lookModel is a model's name as keys have it: of a tape, the rest is a path of this machine.
func lookModel(name string) string {
	if strings.HasPrefix(name, "tape:") {
		return "tape"
	}
	return strings.ReplaceAll(name, "#", "")
}

// Looks counts learnings from looks back, as their keys say: by what asked for them, then by
// the model that looked; most learnings first. Other learnings are passed over.
func Looks(learnings []Taught) []Look {
	return append(lookedBy(learnings, func(id string) Look { return Look{Trigger: TriggerKind(id)} }),
		lookedBy(learnings, func(id string) Look {
			_, model, _ := strings.Cut(id, "@")
			model, _, _ = strings.Cut(model, "#")
			return Look{Model: model}
		})...)
}

// lookedBy counts learnings by what their keys say.
func lookedBy(learnings []Taught, kind func(id string) Look) []Look {
	by := map[Look]*Look{}
	for _, l := range learnings {
		_, rest, ok := strings.Cut(l.Key, "/")
		of := kind(rest)
		if !ok || !strings.HasPrefix(l.Key, "reflection:") || of == (Look{}) {
			continue
		}
		at := by[of]
		if at == nil {
			at = &Look{Trigger: of.Trigger, Model: of.Model}
			by[of] = at
		}
		at.Learnings++
		if l.Wrong {
			at.Wrong++
		}
		if l.Given {
			if at.Given++; l.Used && !l.Wrong {
				at.Used++
			}
		}
	}
	out := make([]Look, 0, len(by))
	for _, at := range by {
		at.Share = 1
		if at.Given >= lookedEnough {
			at.Share = max(lookedLeast, min(1, float64(at.Used)/float64(at.Given)/lookedUsed))
		}
		out = append(out, *at)
	}
	slices.SortFunc(out, func(a, b Look) int {
		return cmp.Or(b.Learnings-a.Learnings, cmp.Compare(a.Trigger, b.Trigger), cmp.Compare(a.Model, b.Model))
	})
	return out
}

// TriggerKind is the kind of a trigger: "override" of "override/2".
func TriggerKind(id string) string {
	return id[:strings.IndexAny(id+"/", "/#@")]
}

// ShareOf is the share of its budget that a look back has which the trigger asks for and
// the model makes: the smaller one of both.
func ShareOf(looks []Look, trigger, model string) float64 {
	share := 1.0
	for _, l := range looks {
		if l.Trigger != "" && l.Trigger == TriggerKind(trigger) || l.Model != "" && l.Model == lookModel(model) {
			share = min(share, l.Share)
		}
	}
	return share
}

// LooksText shows them for people, by trigger and by model; "" without any.
func LooksText(looks []Look) string {
	var b strings.Builder
	part := func(heading string, name func(Look) string) {
		for _, l := range looks {
			if name(l) == "" {
				continue
			}
			if heading != "" {
				b.WriteString(heading + ":\n")
				heading = ""
			}
			l.show(&b, name(l))
		}
	}
	part("Looks back at runs, by what asked for them", func(l Look) string { return l.Trigger })
	part("By the model that looked", func(l Look) string { return l.Model })
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "\n"
}

func (l Look) show(b *strings.Builder, name string) {
	fmt.Fprintf(b, "  %-14s %d learnings; of %d that runs were given %d were useful; %d wrong; %.0f %% of the budget\n",
		name, l.Learnings, l.Given, l.Used, l.Wrong, 100*l.Share)
}
