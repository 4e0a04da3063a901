package learn

import (
	"cmp"
	"fmt"
	"slices"

	"forge/pipeline"
)

// FilterOptions say how findings are filtered. The zero value has the defaults.
type FilterOptions struct {
	Like      int                // different people who dismissed like things before a finding is lowered; 0: 3, under 0: never
	HoldLike  bool               // hold it back instead of lowering it by one severity
	Threshold map[string]float64 // confidence under which a finding is held back, by category; "" for the others

	// Habits are what people here do with findings of a kind. With them a finding is
	// held back where its kind is dismissed, instead of lowered because of like things,
	// and neither a habit nor a threshold holds back what blocks a merge (error and
	// critical): both speak of kinds, and an error is one thing.
	Habits *Habits
	Predictor *Predictor
}

// Held is a finding that is not posted, or posted with a lower severity, and why.
type Held struct {
	Finding  pipeline.Finding  // as it came
	Why      string            // for people
	Learning int64             // because of which one; 0: the threshold, or a habit
	Key      string            // of the learning
	Lowered  pipeline.Severity // to which it was lowered; empty: it was held back
}

// Filter says which findings are posted. What people dismissed does not come
// back for the same code: a dismissal binds to the finding's fingerprint, its
// file and the digest of its code, and holds for the same thing in other words
// too; when the code changed, the finding is posted again (lessons 3). What is
// like things that three different people dismissed is lowered by one severity,
// or held back when it cannot be lowered. A finding under the threshold of its
// category is held back. With [Habits] a finding of a kind that people here dismiss
// is held back instead, and nothing that blocks is but by its own dismissal. A critical finding about security is always posted as
// it is. Filter is deterministic, and keeps the findings' order.
func Filter(findings []pipeline.Finding, memory []pipeline.Learning, o FilterOptions) (kept []pipeline.Finding, held []Held) {
	if o.Like == 0 {
		o.Like = 3
	}
	var dismissals []*pipeline.Learning
	for i := range memory {
		if l := &memory[i]; l.Source == SourceDismissal && l.State == Active && l.Weight > 0 && l.Confidence > 0 {
			dismissals = append(dismissals, l)
		}
	}
	slices.SortFunc(dismissals, func(a, b *pipeline.Learning) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.Key, b.Key))
	})
	for _, f := range findings {
		h := judge(f, dismissals, o)
		if h != nil {
			h.Finding = f
			held = append(held, *h)
			if h.Lowered == "" {
				continue
			}
			f.Severity = h.Lowered
		}
		kept = append(kept, f)
	}
	return kept, held
}

func judge(f pipeline.Finding, dismissals []*pipeline.Learning, o FilterOptions) *Held {
	if f.Severity == pipeline.SeverityCritical && f.Category == "security" {
		return nil
	}
	for _, l := range dismissals {
		if same(f, l) {
			return &Held{Why: fmt.Sprintf("%s dismissed it for this code on %s", who(l), l.Created.Format("2006-01-02")), Learning: l.ID, Key: l.Key}
		}
	}
	if (o.Habits != nil || o.Predictor != nil) && f.Severity.Blocks() {
		return nil
	}
	if o.Predictor != nil {
		if p, ok := o.Predictor.Holds(&f); ok {
			return &Held{Why: fmt.Sprint(p)}
		}
		return nil
	}
	if least, ok := threshold(o, f.Category); ok && f.Confidence < least {
		return &Held{Why: fmt.Sprintf("its confidence %.2f is under %.2f, the threshold of %s here", f.Confidence, least, f.Category)}
	}
	if o.Habits != nil {
		if b, ok := o.Habits.Dismisses(&f, o.Like); ok && o.Like > 0 {
			return &Held{Why: b.why()}
		}
		return nil
	}
	if o.Like < 0 {
		return nil
	}
	people := map[int64]bool{}
	var first *pipeline.Learning
	for _, l := range dismissals {
		if like(f, l) && !l.Author.Bot {
			people[l.Author.ID] = true
			if first == nil {
				first = l
			}
		}
	}
	if len(people) < o.Like {
		return nil
	}
	h := &Held{Why: fmt.Sprintf("%d different people dismissed things like it", len(people)), Learning: first.ID, Key: first.Key}
	if !o.HoldLike {
		h.Lowered = lower(f.Severity)
	}
	return h
}

func threshold(o FilterOptions, category string) (float64, bool) {
	if t, ok := o.Threshold[category]; ok {
		return t, true
	}
	t, ok := o.Threshold[""]
	return t, ok
}

// same reports whether a finding is what was dismissed, for the same code.
func same(f pipeline.Finding, l *pipeline.Learning) bool {
	if len(l.Paths) > 0 && f.File != "" && !slices.Contains(l.Paths, f.File) {
		return false
	}
	code := CodeDigest(f.Code)
	if f.Fingerprint != "" && f.Fingerprint == l.Finding {
		// Where one side knows no code, the fingerprint stands for it: it covers the
		// code, or the file where there is none.
		return l.Code == "" || code == "" || code == l.Code
	}
	return code != "" && code == l.Code && f.Category == l.Category && (ruled(f, l) || alike(f.Message, l.Context))
}

// like reports whether a finding says the same as one that was dismissed, of
// whatever code.
func like(f pipeline.Finding, l *pipeline.Learning) bool {
	return f.Category == l.Category && (ruled(f, l) || alike(f.Message, l.Context))
}

func ruled(f pipeline.Finding, l *pipeline.Learning) bool {
	return f.Rule != "" && slices.Contains(l.Tags, "rule:"+tidy(f.Rule, maxField))
}

// lower returns the next lower severity; empty under info: there is none.
func lower(s pipeline.Severity) pipeline.Severity {
	switch s {
	case pipeline.SeverityCritical:
		return pipeline.SeverityError
	case pipeline.SeverityError:
		return pipeline.SeverityWarning
	case pipeline.SeverityWarning:
		return pipeline.SeverityInfo
	}
	return ""
}

func who(l *pipeline.Learning) string {
	if l.Author.Login == "" {
		return "a person"
	}
	return l.Author.Login
}
