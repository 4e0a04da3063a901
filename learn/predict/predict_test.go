package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/learn/impact"
	"forge/pipeline"
)

const target = 0.1

func finding(rule, file string, s pipeline.Severity, confidence float64) pipeline.Finding {
	return pipeline.Finding{Category: "style", Rule: rule, Message: "no doc comment on it", File: file, Code: "func open() {", Severity: s,
		Confidence: confidence, Fingerprint: rule + file}
}

func day(n float64) time.Time {
	return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n * 24 * float64(time.Hour)))
}

// decided are n decisions on findings of people who take turns, one after the other
// from some days ago.
func decided(n, people int, dismissed bool, f pipeline.Finding, ago float64) (out []Decision) {
	for i := range n {
		at := day(100).Add(-time.Duration(ago*24*float64(time.Hour)) - time.Duration(i)*time.Minute)
		out = append(out, Decision{Finding: f, Dismissed: dismissed, Actor: pipeline.Actor{ID: int64(i%people) + 1}, Weight: 0.8, At: at})
	}
	return out
}

// Covers H1, H2 and lessons 20: what is shown to be unwanted is held back, one
// person's word, one corner and one error do not rule everywhere.
func TestPredict(t *testing.T) {
	t.Parallel()
	f := func(file string) pipeline.Finding { return finding("doc", file, "info", 0.7) }
	acted := decided(40, 4, true, finding("other", "z/z.go", "info", 0.7), 3)
	for i := range acted {
		acted[i].Dismissed = i%8 == 0
	}
	for _, c := range []struct {
		name string
		list []Decision
		f    pipeline.Finding
		want bool
	}{
		{"nothing known", nil, f("a/x.go"), false},
		{"three people", decided(12, 3, true, f("a/x.go"), 1), f("a/y.go"), true},
		{"three people, in a folder that is new", decided(12, 3, true, f("a/x.go"), 1), f("b/c/y.go"), true},
		{"one dismissal", decided(1, 1, true, f("a/x.go"), 1), f("a/y.go"), false},
		{"one person of four", decided(4, 1, true, f("a/x.go"), 1), f("b/y.go"), false},
		{"in tests", decided(12, 3, true, f("a/x.go"), 1), finding("other", "b/y_test.go", "info", 0.7), false},
		{"half a year ago", decided(12, 3, true, f("a/x.go"), 240), f("a/y.go"), false},
		{"acted on", decided(12, 3, false, f("a/x.go"), 1), f("a/y.go"), false},
		{"an error", decided(50, 3, true, f("a/x.go"), 1), finding("doc", "a/y.go", "error", 0.1), false},
		{"errors say nothing", decided(50, 3, true, finding("doc", "a/x.go", "error", 0.7), 1), f("a/y.go"), false},
		{"another rule", decided(12, 3, true, f("a/x.go"), 1), finding("other", "z/y.go", "info", 0.7), false},
	} {
		p := New(slices.Concat(acted, c.list), target, day(100))
		c.f.Fingerprint = "not one in twenty"
		q := p.Predict(&c.f)
		if q.Suppressed != c.want || q.Suppressed != (q.Why != "") {
			t.Errorf("%s: %+v, want held %v", c.name, q, c.want)
		}
		if c.want && !strings.Contains(q.Why, "12 of 12 like it were dismissed: style (doc)") {
			t.Errorf("%s: %q", c.name, q.Why)
		}
	}
	for _, off := range []float64{0, -1, 1, math.NaN()} {
		if p := New(decided(50, 3, true, f("a/x.go"), 1), off, day(100)); p != nil {
			t.Errorf("a target of %v: %+v", off, p)
		}
	}
}

// Findings of little confidence are held back where such ones turn out wrong.
func TestPredictWrong(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var list []Decision
	for i := range 300 {
		c := rng.Float64()
		d := decided(1, 1, rng.Float64() > c, finding(fmt.Sprint("rule", i%7), "a/x.go", "info", c), float64(i)/20)
		d[0].Actor.ID = int64(i % 5)
		list = append(list, d...)
	}
	p := New(list, 0.2, day(100))
	f := func(c float64) Prediction {
		g := finding("rule1", "a/y.go", "info", c)
		return p.Predict(&g)
	}
	if low, high := f(0.1), f(0.95); !low.Suppressed || high.Suppressed || low.Wrong < 0.6 || high.Dismissed > 0.25 ||
		!strings.Contains(low.Why, "confidence of 0.10") {
		t.Errorf("of confidence 0.1: %+v, 0.95: %+v", low, high)
	}
}

func someDecisions(t *rapid.T) []Decision {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Decision {
		f := finding(rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "rule"),
			rapid.SampledFrom([]string{"x.go", "a/x.go", "a/x_test.go", "a/b/c.go"}).Draw(t, "file"),
			rapid.SampledFrom([]pipeline.Severity{"info", "warning", "error"}).Draw(t, "severity"), float64(rapid.IntRange(0, 10).Draw(t, "confidence"))/10)
		f.Category = rapid.SampledFrom([]pipeline.Category{"style", "tests"}).Draw(t, "category")
		f.Message = rapid.SampledFrom([]string{"no doc comment on it", "it has no doc comment", "this allocates memory always"}).Draw(t, "message")
		return Decision{Finding: f, Dismissed: rapid.Bool().Draw(t, "dismissed"), Actor: pipeline.Actor{ID: rapid.Int64Range(1, 4).Draw(t, "person")},
			Weight: rapid.SampledFrom([]float64{0.4, 0.8, 1}).Draw(t, "weight"), At: day(rapid.Float64Range(0, 99).Draw(t, "day"))}
	}), 0, 60).Draw(t, "decisions")
}

// What holds for whatever people decided: the order does not matter, nor do people
// without a word; a dismissal more of a kind does not make it likelier to be posted; what
// blocks is posted; numbers are probabilities.
func TestPredictProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := someDecisions(t)
		p := New(list, target, day(100))
		other := slices.Clone(list)
		for i := range rapid.IntRange(0, 3).Draw(t, "strangers") {
			other = append(other, Decision{Finding: finding("a", "x.go", "info", 0.5), Dismissed: i%2 == 0, Actor: pipeline.Actor{ID: 99}, At: day(50)})
		}
		q := New(rapid.Permutation(other).Draw(t, "order"), target, day(100))
		f := someFinding(t)
		a, b := p.Predict(&f), q.Predict(&f)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("in another order, with strangers: %s", diff)
		}
		if a.Suppressed && f.Severity.Blocks() || !(a.Dismissed >= 0 && a.Dismissed <= 1) || a.Dismissed+1e-12 < max(a.Unwanted, a.Wrong) {
			t.Fatalf("%+v: %+v", f, a)
		}
		// One or two can lower it a little: what little is known is divided anew among the causes.
		more := decided(rapid.IntRange(3, 8).Draw(t, "more"), 3, true, f, 0.5)
		if c := New(append(list, more...), target, day(100)).Predict(&f); c.Dismissed < a.Dismissed-tolerance {
			t.Fatalf("%.4f, and after %d dismissals more %.4f", a.Dismissed, len(more), c.Dismissed)
		}
	})
}

const tolerance = 0.01 // of the fit, which ends when effects hardly change any more

func someFinding(t *rapid.T) pipeline.Finding {
	return finding(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of rule"), rapid.SampledFrom([]string{"x.go", "a/x_test.go", "d/y.go"}).Draw(t, "of file"),
		rapid.SampledFrom([]pipeline.Severity{"info", "warning", "critical"}).Draw(t, "of severity"), rapid.Float64Range(0, 1).Draw(t, "of confidence"))
}

// Where probabilities are right, what is posted is dismissed at the target's rate, and
// most of what is wanted is posted.
func TestTargetIsKept(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		draw := func(i int) (Decision, bool) {
			rate := []float64{0.02, 0.05, 0.05, 0.9, 0.9, 0.97}[i%6]
			f := finding(fmt.Sprint("rule", i%6), fmt.Sprintf("d%d/x.go", i%3), "info", 0.7)
			f.Fingerprint = fmt.Sprint(seed, i)
			return Decision{Finding: f, Dismissed: rng.Float64() < rate, Actor: pipeline.Actor{ID: int64(i % 4)}, Weight: 1, At: day(60 + float64(i)/40)}, rate < 0.3
		}
		var list []Decision
		for i := range 900 {
			d, _ := draw(i)
			list = append(list, d)
		}
		p := New(list, target, day(100))
		posted, dismissed, wanted, lost := 0, 0, 0, 0
		for i := range 3000 {
			d, good := draw(i)
			held := p.Predict(&d.Finding).Suppressed
			if good {
				wanted++
			}
			switch {
			case held && good:
				lost++
			case !held:
				posted++
				if d.Dismissed {
					dismissed++
				}
			}
		}
		if rate := float64(dismissed) / float64(posted); rate > target || lost > wanted/20 {
			t.Errorf("seed %d: of %d posted %.3f were dismissed, %d of %d wanted held back", seed, posted, rate, lost, wanted)
		}
	}
}

// Of what would be held back, one in twenty is posted, and says so.
func TestPeopleAreAskedAgain(t *testing.T) {
	t.Parallel()
	p := New(decided(60, 3, true, finding("doc", "a/x.go", "info", 0.7), 1), target, day(100))
	posted := 0
	for i := range 5000 {
		f := finding("doc", "a/y.go", "info", 0.7)
		f.Fingerprint = fmt.Sprint(i)
		q := p.Predict(&f)
		if !q.Suppressed {
			posted++
		}
		if q.Suppressed == (q.Asked > 0) {
			t.Fatalf("held %v, asked %v", q.Suppressed, q.Asked)
		}
	}
	if posted < 200 || posted > 300 {
		t.Errorf("%d of 5000 posted, want some 250", posted)
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	f := pipeline.Finding{Category: "style", Message: "x"}
	signal := func(kind pipeline.SignalKind, change func(*pipeline.Signal)) pipeline.Signal {
		s := pipeline.Signal{Key: "k", Kind: kind, At: day(1), Actor: pipeline.Actor{ID: 1}, Weight: 0.8, About: &f}
		change(&s)
		return s
	}
	same := func(*pipeline.Signal) {}
	for _, c := range []struct {
		s         pipeline.Signal
		n         int
		dismissed bool
	}{
		{signal(pipeline.SignalDismissed, same), 1, true},
		{signal(pipeline.SignalApplied, same), 1, false},
		{signal(pipeline.SignalRewritten, same), 1, false},
		{signal(pipeline.SignalFixedByHuman, same), 1, false},
		{signal(pipeline.SignalIgnored, same), 0, false},
		{signal(pipeline.SignalApproved, same), 0, false},
		{signal(pipeline.SignalDismissed, func(s *pipeline.Signal) { s.Weight = 0 }), 0, false},
		{signal(pipeline.SignalDismissed, func(s *pipeline.Signal) { s.Off = true }), 0, false},
		{signal(pipeline.SignalDismissed, func(s *pipeline.Signal) { s.Actor.Bot = true }), 0, false},
		{signal(pipeline.SignalDismissed, func(s *pipeline.Signal) { s.About = nil }), 0, false},
	} {
		got := Decisions([]pipeline.Signal{c.s})
		weight := 0.8
		if c.s.Kind == pipeline.SignalDismissed { // without a word
			weight = 0.4
		}
		if len(got) != c.n || c.n == 1 && (got[0].Dismissed != c.dismissed || got[0].Weight != weight) {
			t.Errorf("%+v: %+v", c.s, got)
		}
	}
}

// Predictions are measured on decisions that they had not seen, and are better than the
// reviewer's confidence where people have tastes.
func TestFeedback(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	var list []Decision
	for i := range 400 {
		c := 0.5 + rng.Float64()/2
		d := decided(1, 1, i%4 == 0 || rng.Float64() > c, finding(fmt.Sprint("rule", i%4), "a/x.go", "info", c), float64(400-i)/20)
		d[0].Actor.ID = int64(i % 5)
		list = append(list, d...)
	}
	got := Feedback(list, time.Time{})
	calibrate := func(list []impact.Decided) impact.Calibration {
		var judged []impact.Judged
		for _, d := range list {
			judged = append(judged, d.Judged)
		}
		return impact.Calibrate(judged)
	}
	reviewer, prediction := calibrate(got.Decided), calibrate(got.Predicted)
	if reviewer.Count != 400 || prediction.Count != 400-400/calibrationParts || prediction.Brier > 0.8*reviewer.Brier {
		t.Errorf("reviewer %+v, prediction %+v", reviewer, prediction)
	}
	for _, b := range prediction.Bins {
		if b.Count >= 40 && math.Abs(b.Said-b.Right) > 0.2 {
			t.Errorf("said %.2f, was %.2f of %d", b.Said, b.Right, b.Count)
		}
	}
	if none := Feedback(nil, time.Time{}); len(none.Decided)+len(none.Predicted) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
	if diff := cmp.Diff(got, Feedback(slices.Concat(list[200:], list[:200]), time.Time{})); diff != "" {
		t.Errorf("in another order: %s", diff)
	}
	late := Feedback(list, list[300].At)
	if diff := cmp.Diff(impact.Feedback{Decided: got.Decided[300:], Predicted: got.Predicted[len(got.Predicted)-100:]}, late); diff != "" {
		t.Errorf("of the last hundred: %s", diff)
	}
}

// What one person does not want to hear is held back for them, not for others; what is
// said in some words, or about some name, by those.
func TestPredictTextAndPerson(t *testing.T) {
	t.Parallel()
	acted := decided(40, 4, false, finding("other", "z/z.go", "info", 0.7), 3)
	p := New(append(acted, decided(12, 1, true, finding("doc", "a/x.go", "info", 0.7), 1)...), target, day(100))
	f := finding("doc", "a/y.go", "info", 0.7)
	if one, other, anybody := p.For(1).Predict(&f), p.For(3).Predict(&f),
		p.Predict(&f); !(one.Dismissed > anybody.Dismissed && one.Dismissed > other.Dismissed) || p.For(0) != p {
		t.Errorf("for who dismissed it %.2f, for another %.2f, for anybody %.2f", one.Dismissed, other.Dismissed, anybody.Dismissed)
	}
	say := func(message, code string) pipeline.Finding {
		g := finding("", "a/x.go", "info", 0.7)
		g.Message, g.Code, g.Fingerprint = message, code, message+code
		return g
	}
	var list []Decision
	for i := range 24 {
		list = append(list, decided(1, 1, i%2 == 0,
			say([]string{"consider extracting part %d into helpers", "result of call %d gets lost"}[i%2], fmt.Sprintf("	x%d := run()", i)),
			float64(i))...)
		list = append(list, decided(1, 1, i%2 == 0,
			say(fmt.Sprintf("thing %d may be nil", i), []string{"legacyTable.load()", "freshTable.load()"}[i%2]), float64(i))...)
		list[len(list)-1].Actor.ID, list[len(list)-2].Actor.ID = int64(i%5), int64(i%4)
	}
	q := New(list, target, day(100))
	of := func(message, code string) float64 { g := say(message, code); return q.Predict(&g).Dismissed }
	if a, b := of("consider extracting all of it into helpers", "y := start()"), of("result of this gets lost", "y := start()"); a < b+0.2 {
		t.Errorf("by its words %.2f and %.2f", a, b)
	}
	if a, b := of("this is odd", "legacyTable.store()"), of("this is odd", "freshTable.store()"); a < b+0.05 {
		t.Errorf("by the name in its code %.2f and %.2f", a, b)
	}
}

// Clicks without a word are weak, and those of who does nothing else hardly count.
func TestSilentDecisions(t *testing.T) {
	t.Parallel()
	f := finding("doc", "a/x.go", "info", 0.7)
	var list []pipeline.Signal
	for i := range 12 {
		list = append(list, pipeline.Signal{Key: fmt.Sprint("dismissed/", i), Kind: pipeline.SignalDismissed, At: day(float64(i)),
			Actor: pipeline.Actor{ID: 1}, Weight: 1, About: &f})
	}
	list = append(list, pipeline.Signal{Key: "dismissed/20", Kind: pipeline.SignalDismissed, At: day(20), Actor: pipeline.Actor{ID: 2}, Weight: 1, About: &f},
		pipeline.Signal{Key: "dismissed/21", Kind: pipeline.SignalDismissed, At: day(21), Actor: pipeline.Actor{ID: 2}, Weight: 1, About: &f, Text: "noise"})
	got := Decisions(list)
	if got[0].Weight != silentWeight*tidyWeight || got[12].Weight != silentWeight || got[13].Weight != 1 {
		t.Errorf("weights %v, %v and %v", got[0].Weight, got[12].Weight, got[13].Weight)
	}
}

// What is held back is known by what is posted all the same: each stands for many, and
// where people want it no less than the rest, nothing is held back.
func TestAsked(t *testing.T) {
	t.Parallel()
	of := func(dismissed, acted int, asked float64, rule string) (out []Decision) {
		f := finding(rule, "a/x.go", "info", 0.7)
		f.Asked = asked
		out = append(decided(dismissed, 3, true, f, 1), decided(acted, 3, false, f, 1)...)
		for i := range out {
			out[i].Asked = asked
		}
		return out
	}
	f := finding("doc", "a/y.go", "info", 0.7)
	f.Fingerprint = "not one in twenty"
	before := slices.Concat(of(40, 2, 0, "doc"), of(2, 40, 0, "nil"))
	for _, c := range []struct {
		name             string
		dismissed, acted int
		held, worse      bool
	}{
		{"never asked", 0, 0, true, false},
		{"asked, and still unwanted", 10, 1, true, false},
		{"asked, and wanted", 1, 11, false, true},
	} {
		list := append(slices.Clone(before), of(c.dismissed, c.acted, 0.05, "doc")...)
		asked := AskedOf(list, day(100))
		if q := New(list, target, day(100)).Predict(&f); q.Suppressed != c.held || asked.Worse() != c.worse {
			t.Errorf("%s: held %v, worse %v (%v)", c.name, q.Suppressed, asked.Worse(), asked)
		}
	}
}

// What is known of those who decided so long ago that nothing is left of it is nothing, and a number.
func TestDecisionsOfLongAgo(t *testing.T) {
	t.Parallel()
	f := finding("doc", "a/x.go", "info", 0.7)
	q := New(decided(12, 3, true, f, 1), target, day(100).AddDate(8, 0, 0)).Predict(&f)
	if !(q.Dismissed > 0 && q.Dismissed < 1) || q.Suppressed {
		t.Errorf("%+v, want a probability, and nothing held back", q)
	}
}
