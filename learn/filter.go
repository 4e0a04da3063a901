package learn

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"forge/learn/nearest"
	"forge/pipeline"
	"forge/pipeline/text"
)

// Suppressed is a finding that is not posted, and why.
type Suppressed struct {
	Finding  pipeline.Finding //
	Why      string           // for people
	Learning int64            // because of which one; 0: of what is near to it
	Key      string           // of the learning
	By       pipeline.Actor   // of a dismissal: whose
	At       time.Time        // and when
	Signal   string           // key of the signal that it was
}

// Filter says which findings are posted. What people dismissed does not come
// back for the same code: a dismissal binds to the finding's fingerprint, its
// file and the digest of its code, and holds for the same thing in other words
// too, but a remark's never for what blocks, nor what only a model read in an answer; when the code changed, the finding is
// posted again (lessons 3). What is nearer to what people here refused than to anything that
// they acted on is held back, too, unless it blocks a merge. What blocks is held back in a named person's name alone;
// what is critical, or about security and blocks, is always posted. Filter
// is deterministic, and keeps the findings' order.
func Filter(findings []pipeline.Finding, memory []pipeline.Learning, refusals *nearest.Refusals) (kept []pipeline.Finding, held []Suppressed) {
	var dismissals []*pipeline.Learning
	for i := range memory {
		if l := &memory[i]; l.Source == pipeline.SourceDismissal && l.State == pipeline.LearningActive && l.Weight > 0 && l.Confidence > 0 {
			dismissals = append(dismissals, l)
		}
	}
	slices.SortFunc(dismissals, func(a, b *pipeline.Learning) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.Key, b.Key))
	})
	for _, f := range findings {
		h, asked := judge(&f, dismissals, refusals)
		if h != nil {
			h.Finding = f
			held = append(held, *h)
			continue
		}
		f.Asked = asked
		kept = append(kept, f)
	}
	return kept, held
}

func judge(f *pipeline.Finding, dismissals []*pipeline.Learning, refusals *nearest.Refusals) (held *Suppressed, asked float64) {
	blocks := f.Severity.Blocks()
	if blocks && (f.Severity != pipeline.SeverityError || f.Category == pipeline.CategorySecurity) {
		return nil, 0
	}
	for _, l := range dismissals {
		read := slices.Contains(l.Tags, TagAsRead)
		if same(f, l) && !(blocks && (read || l.Author.Login == "")) {
			why := fmt.Sprintf("%s dismissed it for this code on %s", who(l), l.Created.Format("2006-01-02"))
			if read {
				why += ", as a model reads the answer"
			}
			return &Suppressed{Why: why, Learning: l.ID, Key: l.Key,
				By: l.Author, At: l.Created, Signal: l.Signal}, 0
		}
	}
	why, asked := refusals.Held(f)
	if why != "" {
		return &Suppressed{Why: why}, 0
	}
	return nil, asked
}

// same reports whether a finding is what was dismissed, for the same code.
func same(f *pipeline.Finding, l *pipeline.Learning) bool {
	if len(l.Paths) > 0 && f.File != "" && !slices.Contains(l.Paths, f.File) {
		return false
	}
	code := CodeDigest(f.Code)
	if f.Fingerprint != "" && f.Fingerprint == l.Finding {
		// Where one side knows no code, the fingerprint stands for it: it covers the
		// code, or the file where there is none.
		return l.Code == "" || code == "" || code == l.Code
	}
	if code == "" || code != l.Code || f.Category != l.Category {
		return false
	}
	if f.Severity.Blocks() { // an error is one thing: neither a remark on these lines nor another error of the same rule says anything about it
		return slices.Contains(l.Tags, tagBlocks) && text.Alike(text.KeyWords(f.Message), text.KeyWords(l.Context))
	}
	return ruled(f, l) || text.Alike(text.KeyWords(f.Message), text.KeyWords(l.Context))
}

func ruled(f *pipeline.Finding, l *pipeline.Learning) bool {
	return f.Rule != "" && slices.Contains(l.Tags, ruleTag(f.Rule))
}

// ruleTag is the tag of what was learnt of findings of a rule.
func ruleTag(rule string) string { return "rule:" + tidy(rule, maxField) }

func who(l *pipeline.Learning) string {
	if l.Author.Login == "" {
		return "a person"
	}
	return l.Author.Login
}
