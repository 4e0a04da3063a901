package learn

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// Decision is what a person decided on a finding that was posted.
type Decision struct {
	Finding   pipeline.Finding // as the reviewer gave it
	Dismissed bool             // else people acted on it
	Actor     pipeline.Actor   //
	Weight    float64          // of the word, 0 to 1: by the person's role, and less for what was said without a reason
	At        time.Time        //
}

// Decisions returns what the latest signals of each key say about findings: a
// dismissal, or a suggestion that was merged around, against it; a suggestion that
// was applied or rewritten for it.
func Decisions(signals []pipeline.Signal) []Decision {
	var out []Decision
	for _, s := range signals {
		if s.Off || !(s.Weight > 0) || s.About == nil || s.Actor.Bot {
			continue
		}
		d := Decision{Finding: *s.About, Actor: s.Actor, Weight: min(1, s.Weight), At: s.At}
		switch s.Kind {
		case pipeline.SignalDismissed:
			d.Dismissed, d.Weight = true, min(1, d.Weight*strength(s))
		case pipeline.SignalIgnored:
			d.Dismissed, d.Weight = true, d.Weight*weak
		case pipeline.SignalApplied, pipeline.SignalRewritten:
		default:
			continue
		}
		out = append(out, d)
	}
	return out
}

// Habits say what people here do with findings of a kind in a place, from what they
// decided before. Two findings are of one kind when they have the same category
// and rule (the same words, where one has no rule), are both about tests or both
// not, both about names that others can see or both not, and both of a severity
// that blocks or both not.
type Habits struct {
	now    time.Time
	kinds  map[kind][]*decided
	people map[int64]bool      // who ever decided on something
	words  map[string][]string // of messages, once they are asked for
}

type kind struct {
	category, shown string
	tests, blocking bool
}

type decided struct {
	Decision
	dir    string
	weight float64 // with what age leaves of it
}

// NewHabits learns from the decisions of one repository. What is older counts less,
// as a fact that is not confirmed does: half after 120 days.
func NewHabits(list []Decision, now time.Time) *Habits {
	h := &Habits{now: now, kinds: map[kind][]*decided{}, people: map[int64]bool{}, words: map[string][]string{}}
	for _, d := range list {
		if !(d.Weight > 0) || d.At.After(now) {
			continue
		}
		h.people[d.Actor.ID] = true
		age := float64(now.Sub(d.At)) / float64(halfLives[pipeline.LearningSemantic])
		k := kindOf(&d.Finding)
		w := &decided{d, path.Dir(d.Finding.File), d.Weight * math.Exp2(-age)}
		h.kinds[k] = append(h.kinds[k], w)
	}
	return h
}

func kindOf(f *pipeline.Finding) kind {
	return kind{f.Category, visibility(f.Code), isTest(f.File), f.Severity.Blocks()}
}

var (
	testFile = regexp.MustCompile(`(^|/)(tests?|__tests__|spec|specs)/|(^|/)test_|[._-](test|tests|spec)\.|(^|/)conftest\.py$|Tests?\.(java|kt|cs|swift)$`)
	declares = regexp.MustCompile(`^\s*(?:func\s+(?:\([^)]*\)\s*)?|type\s+|var\s+|const\s+)([A-Za-z_]\w*)`)
	outside  = regexp.MustCompile(`^\s*(export|pub|public)\b`)
	inside   = regexp.MustCompile(`^\s*((private|protected|internal)\b|def\s+_|class\s+_)`)
)

func isTest(file string) bool { return testFile.MatchString(file) }

// visibility says whether the first of some lines declares something that others
// can see: "shown", "hidden", or "" when it does not tell.
func visibility(code string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(code), "\n")
	switch {
	case outside.MatchString(first):
		return "shown"
	case inside.MatchString(first):
		return "hidden"
	}
	if m := declares.FindStringSubmatch(first); m != nil {
		if c := m[1][0]; c >= 'A' && c <= 'Z' {
			return "shown"
		}
		return "hidden"
	}
	return ""
}

// Habit is what people did with findings of a kind in a place.
type Habit struct {
	Place     string  // a folder, "." for the whole repository
	Dismissed int     // findings
	Acted     int     // findings
	People    int     // different people who dismissed
	Low, High float64 // bounds of the share that is dismissed, each at 90 %
	Last      bool    // the last decision was a dismissal
}

// Where a habit begins: how sure it must be, and how many of a folder's parts must
// have shown it before it holds for the others, that showed nothing.
const (
	habitShare = 0.5
	habitParts = 3
	habitZ     = 1.2815515655446004 // one-sided 90 % quantile of the normal distribution
	habitAsks  = 30 * 24 * time.Hour
)

// Dismisses reports whether people here dismiss findings of f's kind in f's place,
// and how it is known. It looks at f's own folder first, then at those above it: the
// nearest that tells decides. Dismissing is told when at least people (or, in a
// smaller team, everybody who ever decided on a finding) dismissed such findings,
// surely more than half of them, and the last of them too; acting, when surely less
// than half were dismissed. A folder above tells only what three of its parts
// showed: what is dismissed in one corner says nothing about the others. After 30
// days without a decision on this kind people are asked again: minds change.
func (h *Habits) Dismisses(f *pipeline.Finding, people int) (Habit, bool) {
	people = min(people, max(1, len(h.people)))
	kin := h.kin(f)
	if len(kin) == 0 {
		return Habit{}, false
	}
	own := path.Dir(f.File)
	for place := own; ; place = path.Dir(place) {
		b, parts := tally(kin, place)
		switch {
		case place != own && parts < habitParts:
		case b.Low > habitShare && b.People >= people:
			return b, b.Last && slices.ContainsFunc(kin, func(d *decided) bool { return h.now.Sub(d.At) < habitAsks })
		case b.High < habitShare:
			return b, false
		}
		if place == "." || place == "/" {
			return Habit{}, false
		}
	}
}

// kin are the decisions on findings of f's kind.
func (h *Habits) kin(f *pipeline.Finding) (out []*decided) {
	for _, d := range h.kinds[kindOf(f)] {
		if d.Finding.Rule != "" && d.Finding.Rule == f.Rule || (d.Finding.Rule == "" || f.Rule == "") && alikeWords(h.about(&d.Finding), h.about(f)) {
			out = append(out, d)
		}
	}
	return out
}

// about are the key words of a finding's message without those of its code: a name
// says where, not what.
func (h *Habits) about(f *pipeline.Finding) []string {
	at := f.Message + "\x00" + f.Code
	w, ok := h.words[at]
	if !ok {
		code := keyWords(f.Code)
		w = slices.DeleteFunc(keyWords(f.Message), func(w string) bool { _, in := slices.BinarySearch(code, w); return in })
		h.words[at] = w
	}
	return w
}

func tally(kin []*decided, place string) (b Habit, parts int) {
	var last time.Time
	b.Place = place
	people, children := map[int64]bool{}, map[string]bool{}
	var against, all, squares float64
	for _, d := range kin {
		rest, ok := under(d.dir, place)
		if !ok {
			continue
		}
		child, _, _ := strings.Cut(rest, "/")
		children[child] = true
		all += d.weight
		squares += d.weight * d.weight
		if d.Dismissed {
			against += d.weight
			b.Dismissed++
			people[d.Actor.ID] = true
		} else {
			b.Acted++
		}
		// Of the same moment, acting counts as the later: it keeps findings.
		if d.At.After(last) || d.At.Equal(last) && !d.Dismissed {
			last, b.Last = d.At, d.Dismissed
		}
	}
	b.People = len(people)
	b.Low, b.High = 0, 1
	if all > 0 {
		b.Low, b.High = shareBounds(against/all, all*all/squares)
	}
	return b, len(children)
}

// under returns where dir is under place.
func under(dir, place string) (rest string, ok bool) {
	switch {
	case dir == place:
		return "", true
	case place == ".":
		return dir, true
	}
	return strings.CutPrefix(dir, place+"/")
}

// shareBounds is Wilson's score interval of a weighted share p, with Kish's effective
// size n = (Σw)²/Σw² (Survey Sampling, 1965): weights say whose word counts more
// than whose, not how many words there were.
func shareBounds(p, n float64) (low, high float64) {
	const z = habitZ
	centre := p + z*z/(2*n)
	half := z * math.Sqrt(max(0, p*(1-p)/n+z*z/(4*n*n)))
	return max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n))
}

func (b Habit) why() string {
	where := "here"
	if b.Place != "." {
		where = "in " + b.Place
	}
	return fmt.Sprintf("%d of %d findings of its kind %s were dismissed, by %d different people", b.Dismissed, b.Dismissed+b.Acted, where, b.People)
}
