package predict

import (
	"cmp"
	"slices"
	"time"

	"forge/learn/impact"
)

// calibrationParts is in how many parts, by time, decisions are cut: each is predicted
// from those before it.
const calibrationParts = 10

// Feedback puts beside what people decided what was said of it beforehand, for the
// decisions of one repository ([Decisions] of its stored signals): the reviewer's
// confidence, and of findings that block nothing the probability, one minus
// [Prediction.Dismissed], that people act on it. Every prediction is made from earlier
// decisions alone; the first tenth has none. What was decided before since is learnt from,
// and left out. The order of the decisions does not matter.
func Feedback(list []Decision, since time.Time) (h impact.Feedback) {
	list = slices.DeleteFunc(slices.Clone(list), func(d Decision) bool { return !(d.Weight > 0) })
	slices.SortFunc(list, func(a, b Decision) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Finding.Fingerprint, b.Finding.Fingerprint), cmp.Compare(a.Actor.ID, b.Actor.ID),
			falseFirst(a.Dismissed, b.Dismissed))
	})
	said := func(d *Decision, confidence float64) impact.Decided {
		return impact.Decided{At: d.At, Judged: impact.Judged{Category: string(d.Finding.Category), Confidence: confidence, Right: !d.Dismissed}}
	}
	first := len(list)
	for i := len(list) - 1; i >= 0 && !list[i].At.Before(since); i-- {
		first = i
	}
	for i := first; i < len(list); i++ {
		h.Decided = append(h.Decided, said(&list[i], list[i].Finding.Confidence))
	}
	for part := 1; part < calibrationParts; part++ {
		from, to := len(list)*part/calibrationParts, len(list)*(part+1)/calibrationParts
		if max(from, first) >= to {
			continue
		}
		// The target moves the cut alone, not the probabilities.
		p := New(list[:from], 0.5, list[from].At)
		for i := max(from, first); i < to; i++ {
			if f := &list[i].Finding; !f.Severity.Blocks() {
				h.Predicted = append(h.Predicted, said(&list[i], 1-p.Predict(f).Dismissed))
			}
		}
	}
	return h
}
