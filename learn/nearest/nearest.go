// Package nearest says which findings people have refused before in other words: it compares a new one with what they
// decided on, and holds back what is nearer to several refusals than to anything that they acted on. It is pure and
// stores nothing: it is made anew from the signals of a repository.
package nearest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Decision is what a person decided on a finding that was posted.
type Decision struct {
	Finding   pipeline.Finding // as the reviewer gave it
	Dismissed bool             // else people acted on it
	Actor     pipeline.Actor   //
	Asked     float64          // share of findings like it that is posted; 0: all of them
	Weight    float64          // of the person's word by their role, 0 to 1
	Pull      int              // the pull request
	At        time.Time        //
}

// How decisions count; numbers were chosen on 3,879 comments in 44 repositories (`fold` of the laboratory).
const (
	enoughDecisions = 100  // of a repository, before anything is held back
	enoughRefusals  = 4    // distinct ones, nearer than anything that people acted on
	mostDecisions   = 1000 // the newest: what is older hardly says anything of today
	leastWeight     = 0.1  // of a refusal that counts
	askAgain        = 0.05 // share of what would be held back that is posted all the same: minds change, and nothing else tells what it is
	leastAsked      = 10
	silentWeight    = 0.5 // of a dismissal without a word
	tidyFrom        = 10  // of them, by one person
	tidyShare       = 2.0 / 3
	tidyWeight      = 0.05
)

// Decisions returns what the latest signals of each key say about findings: a dismissal against it; for it a suggestion
// that was applied or rewritten, or code that a person fixed in their own way. A dismissal without a word, or as a
// model read it, is weak, and counts half. Where the code speaks against the words neither is known. What was left as it
// is without a word says neither.
func Decisions(signals []pipeline.Signal) []Decision {
	var out []Decision
	quiet, silent, of := map[int]bool{}, map[int64]float64{}, map[int64]float64{}
	for _, s := range signals {
		if s.Off || s.Unsure || !(s.Weight > 0) || s.About == nil || s.Actor.Bot {
			continue
		}
		switch s.Kind {
		case pipeline.SignalDismissed, pipeline.SignalRefused, pipeline.SignalApplied, pipeline.SignalRewritten, pipeline.SignalFixedByHuman:
			read := s.Kind == pipeline.SignalRefused
			d := Decision{Finding: *s.About, Dismissed: read || s.Kind == pipeline.SignalDismissed, Actor: s.Actor, Asked: s.About.Asked, Pull: s.Pull,
				Weight: min(1, s.Weight), At: s.At}
			if read {
				d.Weight *= silentWeight
			} else if d.Dismissed && strings.TrimSpace(s.Text) == "" {
				d.Weight *= silentWeight
				quiet[len(out)] = true
				silent[d.Actor.ID]++
			}
			of[d.Actor.ID]++
			out = append(out, d)
		}
	}
	for i := range out {
		// Who hardly ever does anything else tidies up, and has not looked at each.
		if who := out[i].Actor.ID; quiet[i] && silent[who] >= tidyFrom && silent[who] > tidyShare*of[who] {
			out[i].Weight *= tidyWeight
		}
	}
	return out
}

// Refusals are what people decided on in one repository. Nil holds nothing back.
type Refusals struct {
	list []decided
	idf  map[string]float64
}

type decided struct {
	Decision
	words []string
	norm  float64
}

// New takes the decisions of one repository. Those on findings that block a merge say nothing
// of others. Their order does not matter. It is nil where nothing is to be held back.
func New(list []Decision, now time.Time) *Refusals {
	list = newest(list, now)
	if AskedOf(list, now).Worse() {
		return nil
	}
	r := &Refusals{idf: map[string]float64{}}
	for _, d := range list {
		if d.Finding.Severity.Blocks() || d.Weight < leastWeight {
			continue
		}
		one := decided{Decision: d, words: text.KeyWords(d.Finding.Message)}
		for _, w := range one.words {
			r.idf[w]++
		}
		r.list = append(r.list, one)
	}
	if len(r.list) < enoughDecisions {
		return nil
	}
	for w, in := range r.idf {
		r.idf[w] = math.Log(1 + float64(len(r.list))/in)
	}
	for i := range r.list {
		r.list[i].norm = r.norm(r.list[i].words)
	}
	slices.SortFunc(r.list, func(a, b decided) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Finding.Fingerprint, b.Finding.Fingerprint), cmp.Compare(a.Actor.ID, b.Actor.ID))
	})
	return r
}

func (r *Refusals) norm(words []string) (sum float64) {
	for _, w := range words {
		sum += r.idf[w] * r.idf[w]
	}
	return math.Sqrt(sum)
}

// Held says why a finding is held back, "" where it is not: at least four findings that people
// refused are nearer to it than any that they acted on, by the words of their messages (cosine,
// each word by how rare it is there). What blocks a merge, or is about security, is not. One in
// twenty, which its fingerprint chooses, is posted all the same: asked is that share.
func (r *Refusals) Held(f *pipeline.Finding) (why string, asked float64) {
	if r == nil || f.Severity.Blocks() || f.Category == pipeline.CategorySecurity {
		return "", 0
	}
	words := text.KeyWords(f.Message)
	norm := r.norm(words)
	likeness := make([]float64, len(r.list))
	acted := 0.0 // how near the nearest is that people acted on
	for i := range r.list {
		d := &r.list[i]
		likeness[i] = r.common(words, d.words) / max(1e-9, norm*d.norm)
		if !d.Dismissed {
			acted = max(acted, likeness[i])
		}
	}
	var near []*decided
	for i := range r.list {
		d := &r.list[i]
		same := func(o *decided) bool { return o.Finding.Fingerprint == d.Finding.Fingerprint }
		if d.Dismissed && likeness[i] > acted && !slices.ContainsFunc(near, same) {
			near = append(near, d)
		}
	}
	if len(near) < enoughRefusals {
		return "", 0
	}
	if draw(f.Fingerprint) < askAgain {
		return "", askAgain
	}
	return "probably not wanted here: " + named(near), 0
}

// common is what two sorted lists of words have in common.
func (r *Refusals) common(a, b []string) (sum float64) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		c := cmp.Compare(a[i], b[k])
		if c == 0 {
			sum += r.idf[a[i]] * r.idf[a[i]]
		}
		if c <= 0 {
			i++
		}
		if c >= 0 {
			k++
		}
	}
	return sum
}

// named names refusals: how many, and the newest.
func named(near []*decided) string {
	var pulls []string
	for _, d := range near[:min(enoughRefusals, len(near))] {
		one := "“" + text.Clip(text.FirstLine(d.Finding.Message), 60) + "”"
		if d.Pull > 0 {
			one += fmt.Sprintf(" (#%d)", d.Pull)
		}
		pulls = append(pulls, one)
	}
	return fmt.Sprintf("people refused %d like it, and acted on none that is nearer: %s", len(near), strings.Join(pulls, ", "))
}

// Asked is what became of findings that were posted although they would have been held
// back: what is held back is like them, and nobody sees it.
type Asked struct {
	Findings  int     `json:"findings"`
	Dismissed int     `json:"dismissed"`
	Base      float64 `json:"base"` // share of the others that was dismissed
}

// Worse reports whether what is held back is, by more than chance, dismissed no more often
// than what is posted: then the prediction is worth nothing here, and holds back nothing.
func (a Asked) Worse() bool {
	if a.Findings < leastAsked {
		return false
	}
	_, high := shareBounds(float64(a.Dismissed)/float64(a.Findings), float64(a.Findings))
	return high <= a.Base
}

// String says it for people.
func (a Asked) String() string {
	return fmt.Sprintf("of findings that would be held back, and were posted to see, %d of %d were dismissed; of the others %.0f %%",
		a.Dismissed, a.Findings, 100*a.Base)
}

// AskedOf counts what was posted to see what is held back, of the decisions that count.
func AskedOf(list []Decision, now time.Time) (a Asked) {
	list = newest(list, now)
	others, dismissed := 0, 0
	for i := range list {
		d := &list[i]
		n := 0
		if d.Dismissed {
			n = 1
		}
		switch {
		case d.Finding.Severity.Blocks():
		case d.Asked > 0:
			a.Findings, a.Dismissed = a.Findings+1, a.Dismissed+n
		default:
			others, dismissed = others+1, dismissed+n
		}
	}
	a.Base = float64(dismissed) / float64(max(1, others))
	return a
}

// newest are the newest decisions that count.
func newest(list []Decision, now time.Time) []Decision {
	out := make([]Decision, 0, len(list))
	for _, d := range list {
		if d.Weight > 0 && !d.At.After(now) {
			out = append(out, d)
		}
	}
	if len(out) <= mostDecisions {
		return out
	}
	times := make([]int64, len(out))
	for i, d := range out {
		times[i] = d.At.UnixMicro()
	}
	slices.Sort(times)
	least := times[len(times)-mostDecisions] // and all of that moment
	return slices.DeleteFunc(out, func(d Decision) bool { return d.At.UnixMicro() < least })
}

// shareBounds is Wilson's score interval of a share p of n, each bound at 90 %.
func shareBounds(p, n float64) (low, high float64) {
	const z = 1.2815515655446004 // one-sided 90 % quantile of the normal distribution
	centre := p + z*z/(2*n)
	half := z * math.Sqrt(max(0, p*(1-p)/n+z*z/(4*n*n)))
	return max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n))
}

// draw gives a number from 0 to 1 that belongs to a fingerprint (FNV-1a, mixed as in MurmurHash3).
func draw(s string) float64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11) / (1 << 53)
}
