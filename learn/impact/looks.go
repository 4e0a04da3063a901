package impact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Taught is a learning of a look back, by what became of it.
type Taught struct {
	Key   string // "reflection:TRACE/TRIGGER#1"
	Given bool   // to a run at least
	Used  bool   // an agent named it
	Wrong bool   // more speaks against it than for it, or it was taken out of use
}

// Look is what became of what looks back at runs taught, by what asked for them.
type Look struct {
	Trigger   string  `json:"trigger"`
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

// Looks counts learnings from looks back by what asked for them, as their keys say; most
// learnings first. Other learnings are passed over.
func Looks(learnings []Taught) []Look {
	by := map[string]*Look{}
	for _, l := range learnings {
		_, rest, ok := strings.Cut(l.Key, "/")
		if !ok || !strings.HasPrefix(l.Key, "reflection:") {
			continue
		}
		trigger := TriggerKind(rest)
		at := by[trigger]
		if at == nil {
			at = &Look{Trigger: trigger}
			by[trigger] = at
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
	slices.SortFunc(out, func(a, b Look) int { return cmp.Or(b.Learnings-a.Learnings, cmp.Compare(a.Trigger, b.Trigger)) })
	return out
}

// TriggerKind is the kind of a trigger: "override" of "override/2".
func TriggerKind(id string) string {
	return id[:strings.IndexAny(id+"/", "/#")]
}

// ShareOf is the share of its budget that a look back with the trigger has.
func ShareOf(looks []Look, trigger string) float64 {
	if i := slices.IndexFunc(looks, func(l Look) bool { return l.Trigger == TriggerKind(trigger) }); i >= 0 {
		return looks[i].Share
	}
	return 1
}

// LooksText shows them for people; "" without any.
func LooksText(looks []Look) string {
	if len(looks) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Looks back at runs, by what asked for them:\n")
	for _, l := range looks {
		fmt.Fprintf(&b, "  %-14s %d learnings; of %d that runs were given %d were useful; %d wrong; %.0f %% of the budget\n",
			l.Trigger, l.Learnings, l.Given, l.Used, l.Wrong, 100*l.Share)
	}
	return b.String() + "\n"
}
