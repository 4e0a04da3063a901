package learn

import (
	"cmp"
	"slices"

	measure "forge/learn/worth"
)

// Calibrated says how well the probabilities that a repository's findings are acted on
// fit what people decided there.
type Calibrated struct {
	Reviewer   measure.Calibration `json:"reviewer"`   // the reviewer's own confidence
	Prediction measure.Calibration `json:"prediction"` // one minus [Prediction.Dismissed], of findings that block nothing
}

// calibrationParts is in how many parts, by time, decisions are cut: each is predicted
// from those before it.
const calibrationParts = 10

// Calibrations compares what was said beforehand with what people decided, for the
// decisions of one repository ([Decisions] of its stored signals). Every prediction is
// made from earlier decisions alone; the first tenth has none. Bins are for a
// reliability diagram. The order of the decisions does not matter.
func Calibrations(list []Decision) Calibrated {
	list = slices.DeleteFunc(slices.Clone(list), func(d Decision) bool { return !(d.Weight > 0) })
	slices.SortFunc(list, func(a, b Decision) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Finding.Fingerprint, b.Finding.Fingerprint), cmp.Compare(a.Actor.ID, b.Actor.ID), falseFirst(a.Dismissed, b.Dismissed))
	})
	var reviewer, predicted []measure.Judged
	for _, d := range list {
		reviewer = append(reviewer, measure.Judged{Category: d.Finding.Category, Confidence: d.Finding.Confidence, Right: !d.Dismissed})
	}
	for part := 1; part < calibrationParts; part++ {
		from, to := len(list)*part/calibrationParts, len(list)*(part+1)/calibrationParts
		if from == to {
			continue
		}
		// The target moves the cut alone, not the probabilities.
		p := NewPredictor(list[:from], 0.5, list[from].At)
		for i := from; i < to; i++ {
			f := &list[i].Finding
			if !f.Severity.Blocks() {
				predicted = append(predicted, measure.Judged{Category: f.Category, Confidence: 1 - p.Predict(f).Dismissed, Right: !list[i].Dismissed})
			}
		}
	}
	return Calibrated{measure.Calibrate(reviewer), measure.Calibrate(predicted)}
}
