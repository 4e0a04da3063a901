package learn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/written"
)

// What signals do to confidence, before the weight of the person's word. The
// first five are the requirements' (H1–H5).
const (
	dismissedDelta    = -0.2
	appliedDelta      = +0.1
	dismissalBase     = 0.7
	rewriteBase       = 0.8
	patternBase       = 0.7
	ignoredDelta      = -0.05 // implied by what did not happen, so weaker than a word
	fixedByHumanDelta = +0.05 // half of appliedDelta: the finding was right, but what mended it was not Forge's
	revertedBase      = 0.6
	escapedBase       = 0.7
	escapedDelta      = +0.1 // for what asks for more of the kind, and against what asks for less
	hidDelta          = -0.4 // for the dismissal that hid what then broke: more than one word against another
	weak              = 0.5  // factor for a dismissal without a reason, or implied (lessons 3)
	plainly           = 1.5  // factor for a dismissal in under 5 s: plainly wrong (H6)
	plainlyUnder      = 5e3  // ms
	consideredOver    = 60e3 // ms
	rateCentre        = 0.6  // share of applied suggestions at which nothing changes (H6)
	rateFactor        = 0.1
)

// Judgement is what one signal does to the memory of its scope. It is a whole:
// the learnings born of the signal's key that are not in it are withdrawn, and
// the evidence that the key gave before is replaced by what is in it. A learning
// in it is new or was born again: its evidence from all signals is in Evidence.
type Judgement struct {
	Learnings []pipeline.Learning
	Evidence  []pipeline.Evidence
}

// Judge says what a signal does. It is pure, and both halves look at two things
// alone — which learnings a signal bears ([Born]) and what a signal says about a
// learning ([Bears]) — so that the memory is the same in every order of arrival.
// known are the learnings of the signal's scope in every state, signals those of
// the scope that happened after it, the latest of each key (earlier ones may be
// there: they say nothing about what it bears). A signal that is Off gives an
// empty judgement: all that its key did is taken back.
func Judge(s pipeline.Signal, known []pipeline.Learning, signals []pipeline.Signal) Judgement {
	j := Judgement{Learnings: LearningsFrom(s)}
	about := topicOf(s)
	for i := range known {
		if e, ok := supports(s, &about, &known[i]); ok {
			j.Evidence = append(j.Evidence, e)
		}
	}
	for i := range j.Learnings {
		for _, other := range signals {
			if other.Key == s.Key {
				continue
			}
			if e, ok := EvidenceFrom(other, &j.Learnings[i]); ok {
				j.Evidence = append(j.Evidence, e)
			}
		}
	}
	return j
}

// LearningsFrom returns the learnings that a signal bears, none when it was taken back or
// its author's word has no weight.
func LearningsFrom(s pipeline.Signal) []pipeline.Learning {
	if silent(s) {
		return nil
	}
	switch s.Kind {
	case pipeline.SignalDismissed, pipeline.SignalRefused:
		return []pipeline.Learning{dismissal(s)}
	case pipeline.SignalRewritten:
		return preference(s, pipeline.SourceRewrite, "Forge suggested", "A person wrote instead")
	case pipeline.SignalEdited:
		return preference(s, pipeline.SourceEdit, "Forge wrote", "People made of it before they approved")
	case pipeline.SignalGap:
		return gap(s)
	case pipeline.SignalReverted:
		l := newLearning(s, pipeline.SourceRevert, "pull", pipeline.LearningEpisodic, revertedBase)
		l.Content = strings.TrimSpace(fmt.Sprintf("Pull request #%d was reverted after its merge. %s", s.Pull, tidy(s.Text, maxContent)))
		return []pipeline.Learning{l}
	case pipeline.SignalEscaped:
		return []pipeline.Learning{escaped(s)}
	}
	return nil
}

// silent reports whether a signal teaches nothing: it was taken back, its author's word has
// no weight, or what became of the code speaks against the words.
func silent(s pipeline.Signal) bool { return s.Off || s.Unsure || !(s.Weight > 0) }

// escaped is a defect that reached production. None of it are words of a monitor: these
// are anybody's.
func escaped(s pipeline.Signal) pipeline.Learning {
	l := newLearning(s, pipeline.SourceGap, "escaped", pipeline.LearningSemantic, escapedBase)
	where := "it"
	if s.File != "" {
		where = tidy(s.File, maxField)
	}
	l.Content = fmt.Sprintf("A defect in %s reached production with pull request #%d: review and tests did not see it. Look at such changes twice.", where, s.Pull)
	if f := s.About; f != nil {
		l.Content += fmt.Sprintf(" The finding %q was about this place, and was not heeded.", tidy(f.Message, maxCode))
		l.Context = tidy(f.Message, maxCode)
	}
	return l
}

func newLearning(s pipeline.Signal, source pipeline.LearningSource, part string, typ pipeline.LearningType, base float64) pipeline.Learning {
	l := pipeline.Learning{
		Key: string(source) + ":" + s.Key, Scope: s.Scope, Type: typ, Source: source, Author: s.Actor, Weight: min(1, s.Weight), Run: s.Run, Signal: s.Key,
		Base: clamp(base * min(1, s.Weight)), Created: s.At, Touched: s.At, State: pipeline.LearningActive, Category: categoryOf(s),
	}
	if part != "" {
		l.Key += "#" + part
	}
	if s.File != "" {
		l.Paths = []string{s.File}
	}
	l.Confidence = l.Base
	return l
}

// categoryOf is that of the finding that the signal is about; empty when it is
// about none.
func categoryOf(s pipeline.Signal) pipeline.Category {
	if s.About != nil {
		return s.About.Category
	}
	return ""
}

// strength is the factor of a dismissal: what was dismissed in words counts more
// than what was dismissed in silence, and at once more than after a while.
func strength(s pipeline.Signal) float64 {
	f := 1.0
	if wordless(s) {
		f = weak
	}
	if s.Waited > 0 && s.Waited < plainlyUnder {
		f *= plainly
	}
	return f
}

// wordless reports whether a dismissal is one without plain words.
func wordless(s pipeline.Signal) bool {
	return strings.TrimSpace(s.Text) == "" || s.Implied || s.Kind == pipeline.SignalRefused
}

// tagBlocks marks the dismissal of a finding that blocked a merge, TagNoReason one in
// which nobody said why, TagAsRead one whose words a model read.
const (
	tagBlocks   = "blocks"
	TagNoReason = "no_reason"
	TagAsRead   = "as_read"
)

// dismissal binds to the finding, its file and the code it is about (lessons 3).
func dismissal(s pipeline.Signal) pipeline.Learning {
	base := dismissalBase
	reason := tidy(s.Text, maxContent/2)
	if wordless(s) {
		base = dismissalBase - 0.2 // weak evidence
	}
	l := newLearning(s, pipeline.SourceDismissal, "", pipeline.LearningSemantic, base)
	l.Finding, l.Code = s.Finding, CodeDigest(s.Before)
	what := "A finding"
	if f := s.About; f != nil {
		what = fmt.Sprintf("The finding %q", tidy(f.Message, maxCode))
		l.Context = tidy(f.Message, maxCode)
		if f.Code != "" {
			l.Code = CodeDigest(f.Code)
		}
		if f.Rule != "" {
			l.Tags = append(l.Tags, ruleTag(f.Rule))
		}
		if f.Severity.Blocks() {
			l.Tags = append(l.Tags, tagBlocks)
		}
	}
	where := ""
	if s.File != "" {
		where = " on " + tidy(s.File, maxField)
	}
	l.Content = fmt.Sprintf("%s%s was dismissed", what, where)
	switch {
	case reason == "":
		l.Content += " without a reason."
		l.Tags = append(l.Tags, TagNoReason)
	case s.Kind == pipeline.SignalRefused:
		l.Content += ", as a model reads this answer: " + reason
		l.Tags = append(l.Tags, TagAsRead)
	default:
		l.Content += ": " + reason
	}
	switch {
	case s.Waited > 0 && s.Waited < plainlyUnder:
		l.Tags = append(l.Tags, "plainly_wrong")
	case s.Waited > consideredOver:
		l.Tags = append(l.Tags, "considered")
	}
	return l
}

// preference keeps both versions and, as a learning of its own, what kind of
// change made one of the other (H3, H4).
func preference(s pipeline.Signal, source pipeline.LearningSource, ours, theirs string) []pipeline.Learning {
	a := Analyse(s.Before, s.After)
	both := newLearning(s, source, "preference", pipeline.LearningProcedural, rewriteBase)
	pattern := newLearning(s, source, "pattern", pipeline.LearningProcedural, patternBase)
	if both.Category == "" {
		both.Category, pattern.Category = a.Category, a.Category
	}
	where := ""
	if s.File != "" {
		where = "In " + tidy(s.File, maxField) + ", "
	}
	both.Content = fmt.Sprintf("%s%s:\n%s\n%s:\n%s", where, ours, fence(s.Before), theirs, fence(s.After))
	pattern.Content = fmt.Sprintf("%swhat %s was changed by a person: the change %s.", where, ours, tidy(a.Words(), maxCode))
	out := []pipeline.Learning{both, pattern}
	for i := range out {
		out[i].Context = tidy(s.Text, maxField)
		if f := s.About; f != nil {
			out[i].Context = tidy(f.Message, maxField)
			if f.Rule != "" {
				out[i].Tags = []string{ruleTag(f.Rule)}
			}
		}
	}
	return out
}

func fence(code string) string { return "```\n" + tidyCode(code) + "\n```" }

// tidyCode is tidy for code, whose indentation counts.
func tidyCode(code string) string {
	return strings.TrimSuffix(strings.TrimPrefix(tidy("|"+strings.Trim(code, "\n")+"|", maxCode), "|"), "|")
}

// gap is something that a person saw and Forge did not (H5): the words, and which
// kind of thing it was.
func gap(s pipeline.Signal) []pipeline.Learning {
	remark := tidy(s.Text, maxContent)
	if remark == "" || s.Finding != "" || written.ByMachine(s.File) { // beside what the review said, so it missed nothing
		return nil
	}
	category := CategoryOf(remark)
	said := newLearning(s, pipeline.SourceGap, "comment", pipeline.LearningSemantic, patternBase)
	kind := newLearning(s, pipeline.SourceGap, "category", pipeline.LearningSemantic, patternBase)
	said.Category, kind.Category = category, category
	where := ""
	if s.File != "" {
		where = " on " + tidy(s.File, maxField)
	}
	said.Content = fmt.Sprintf("A person remarked%s where the review said nothing: %s", where, remark)
	said.Context = text.Within(tidyCode(s.Before), maxField)
	kind.Content = fmt.Sprintf("Reviews here miss things of the category %s%s: look for them on purpose.", category, where)
	return []pipeline.Learning{said, kind}
}

// EvidenceFrom returns what a signal says for or against a learning that was there when
// it happened; ok is false when it says nothing. It looks at nothing else.
func EvidenceFrom(s pipeline.Signal, l *pipeline.Learning) (pipeline.Evidence, bool) {
	about := topicOf(s)
	return supports(s, &about, l)
}

func supports(s pipeline.Signal, about *topic, l *pipeline.Learning) (e pipeline.Evidence, ok bool) {
	if silent(s) || s.Scope != l.Scope || l.Signal == s.Key && s.Key != "" || !s.At.After(l.Created) {
		return e, false
	}
	hid := s.Kind == pipeline.SignalEscaped && l.Source == pipeline.SourceDismissal && s.Finding != "" && s.Finding == l.Finding
	if hid {
		return pipeline.Evidence{Learning: l.ID, Of: l.Key, Key: s.Key, Delta: round(hidDelta * min(1, s.Weight)),
			Why: "what was dismissed broke in production", Actor: s.Actor, Run: s.Run, At: s.At}, true
	}
	if l.Source == pipeline.SourceDismissal || !moving(s.Kind) { // a dismissal is bound to its code
		return e, false
	}
	if !related(s, about, l) {
		return e, false
	}
	delta, why := effect(s, l, direction(l))
	if delta == 0 || delta < 0 && s.Kind == pipeline.SignalRefused && said(l) { // a model's reading takes nothing from what a person said
		return e, false
	}
	e = pipeline.Evidence{Learning: l.ID, Of: l.Key, Key: s.Key, Delta: round(delta * min(1, s.Weight)), Why: why, Actor: s.Actor, Run: s.Run, At: s.At}
	if s.Kind == pipeline.SignalDismissed && strings.TrimSpace(s.Text) == "" || s.Kind == pipeline.SignalRefused {
		e = e.Quiet()
	}
	return e, true
}

// dismisses reports whether signals of a kind say that a finding is not wanted.
func dismisses(k pipeline.SignalKind) bool {
	return k == pipeline.SignalDismissed || k == pipeline.SignalRefused
}

// moving reports whether signals of a kind say something about what was known before.
func moving(k pipeline.SignalKind) bool {
	switch k {
	case pipeline.SignalDismissed, pipeline.SignalRefused, pipeline.SignalApplied, pipeline.SignalIgnored, pipeline.SignalFixedByHuman, pipeline.SignalEscaped:
		return true
	}
	return false
}

// effect is what a signal about a finding does to a related learning which wants the
// same (1), the opposite (-1), or of which that is not known (0).
func effect(s pipeline.Signal, l *pipeline.Learning, wants int) (delta float64, why string) {
	if dismisses(s.Kind) {
		switch {
		case wants == 0:
			return 0, ""
		case wants < 0:
			delta, why = appliedDelta*strength(s), "a finding was dismissed that should not be made by this"
		default:
			delta, why = dismissedDelta*strength(s), pipeline.WhyDismissed
		}
		return delta, why
	}
	if s.Kind == pipeline.SignalEscaped {
		switch {
		case s.About == nil || wants == 0:
			return 0, ""
		case wants < 0:
			return -escapedDelta, "what should not be asked for by this broke in production"
		}
		return escapedDelta, "a related defect reached production"
	}
	switch {
	case wants == 0:
		return 0, ""
	case s.Kind == pipeline.SignalIgnored && wants > 0:
		return ignoredDelta, "a related suggestion was left out"
	case s.Kind == pipeline.SignalIgnored: // what did not happen speaks for nothing
		return 0, ""
	case s.Kind == pipeline.SignalApplied && wants > 0:
		return appliedDelta, "a related suggestion was applied as it was"
	case s.Kind == pipeline.SignalApplied:
		return -appliedDelta, "a suggestion was applied that should not be made by this"
	case wants > 0:
		return fixedByHumanDelta, "a person mended a related finding"
	}
	return -fixedByHumanDelta, "a person fixed what should not be asked for by this"
}

// Rate is the share of suggestions that were applied as they were (H6).
type Rate struct {
	Scope     string            `json:"scope"`
	Category  pipeline.Category `json:"category"`
	Applied   int               `json:"applied"`
	Suggested int               `json:"suggested"` // applied, rewritten, ignored or dismissed
	Rate      float64           `json:"rate"`      // 0 to 1
}

// suggestion names one: by its comment, where that is known.
type suggestion struct {
	scope   string
	comment int64
	index   int
}

// Rated reports whether a signal says what became of a suggestion. A dismissed finding
// had one when its fix was a replacement.
func Rated(s pipeline.Signal) bool {
	switch s.Kind {
	case pipeline.SignalApplied, pipeline.SignalRewritten, pipeline.SignalIgnored:
		return true
	case pipeline.SignalDismissed:
		return s.About != nil && s.About.Fix != nil && s.About.Fix.Replacement != nil
	}
	return false
}

// Rates computes the rates of the 30 days before now, by scope and category,
// from the latest signal of each key.
func Rates(signals []pipeline.Signal, now time.Time) []Rate {
	type group struct {
		scope    string
		category pipeline.Category
	}
	sums, last := map[group]*Rate{}, map[suggestion]pipeline.Signal{}
	for i, s := range signals {
		if !Rated(s) || silent(s) || categoryOf(s) == "" || s.At.After(now) || now.Sub(s.At) > 30*24*time.Hour {
			continue
		}
		of := suggestion{s.Scope, s.Comment, 0}
		if s.Comment == 0 {
			of.index = i + 1
		}
		// A suggestion that was refused and yet applied was applied.
		if had, ok := last[of]; !ok || had.Kind == pipeline.SignalDismissed || s.Kind == pipeline.SignalApplied {
			last[of] = s
		}
	}
	for of, s := range last {
		k := group{of.scope, categoryOf(s)}
		if sums[k] == nil {
			sums[k] = &Rate{Scope: k.scope, Category: k.category}
		}
		sums[k].Suggested++
		if s.Kind == pipeline.SignalApplied {
			sums[k].Applied++
		}
	}
	var out []Rate
	for _, r := range sums {
		r.Rate = float64(r.Applied) / float64(r.Suggested)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Category, b.Category))
	})
	return out
}

// Evidence returns what the rate says about procedural learnings of its scope and
// category. There is one piece for each, under the key "rate/CATEGORY": computed
// again, it replaces the one before.
func (r Rate) Evidence(known []pipeline.Learning, now time.Time) []pipeline.Evidence {
	var out []pipeline.Evidence
	for _, l := range known {
		if l.Scope != r.Scope || l.Category != r.Category || l.Type != pipeline.LearningProcedural || l.State != pipeline.LearningActive || Stands(&l) == StandAvoid {
			continue
		}
		out = append(out, pipeline.Evidence{Learning: l.ID, Of: l.Key, Key: "rate/" + string(r.Category), Delta: round((r.Rate - rateCentre) * rateFactor), At: now,
			Why: fmt.Sprintf("%d of %d suggestions of the category %s were applied in 30 days", r.Applied, r.Suggested, r.Category)})
	}
	return out
}

func clamp(x float64) float64 { return max(0, min(1, x)) }

// round keeps millionths: what is computed twice is equal.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// halfLives say how long it takes until half is gone of what age takes from a learning's
// confidence when nothing confirms it and nothing uses it: what happened is stale sooner
// than a fact, a fact sooner than a way of doing things. It always leaves [AgeLeaves]:
// in public histories (figures.md) lessons of the last six weeks matter 1.6 times as often as
// any, those of half a year and of many years 0.7 to 0.9 times, and none of those ages less.
var halfLives = map[pipeline.LearningType]time.Duration{
	pipeline.LearningEpisodic:   45 * 24 * time.Hour,
	pipeline.LearningSemantic:   120 * 24 * time.Hour,
	pipeline.LearningProcedural: 180 * 24 * time.Hour,
}

// AgeLeaves is the share of a confidence that no age takes.
const AgeLeaves = 0.5

// Effective is what decay leaves of a learning's confidence: a quarter of it is gone 45 days
// (episodic), 120 days (semantic) or 180 days (procedural) after it was last
// confirmed or of use, and never more than half. It is computed from the base values when it
// is read, and never written back (lessons 20).
func Effective(l pipeline.Learning, now time.Time) float64 {
	half, ok := halfLives[l.Type]
	if !ok {
		half = halfLives[pipeline.LearningEpisodic]
	}
	age := now.Sub(l.Touched)
	if age <= 0 {
		return l.Confidence
	}
	return l.Confidence * (AgeLeaves + (1-AgeLeaves)*math.Exp2(-float64(age)/float64(half)))
}
