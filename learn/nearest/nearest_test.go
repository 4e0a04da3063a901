package nearest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"forge/pipeline"
)

func finding(message string, s pipeline.Severity) pipeline.Finding {
	return pipeline.Finding{Category: "style", Message: message, File: "a/x.go", Severity: s, Confidence: 0.7, Fingerprint: "of " + message}
}

func day(n float64) time.Time {
	return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n * 24 * float64(time.Hour)))
}

// decisions are n decisions on findings that say much the same, one after the other.
func decisions(n int, dismissed bool, message string) (out []Decision) {
	for i := range n {
		f := finding(fmt.Sprintf("%s of part%d", message, i), pipeline.SeverityInfo)
		out = append(out, Decision{Finding: f, Dismissed: dismissed, Actor: pipeline.Actor{ID: int64(i%3) + 1}, Weight: 0.8, Pull: i + 1, At: day(float64(i) / 10)})
	}
	return out
}

// asIs is a finding that is not one of those that are posted all the same.
func asIs(message string, s pipeline.Severity) *pipeline.Finding {
	f := finding(message, s)
	f.Fingerprint = "not one in twenty"
	return &f
}

// Covers H1, H2: what is nearer to several refusals than to anything that people acted on is
// held back, with the refusals named; not before there are decisions enough, and never what
// blocks a merge or is about security.
func TestHeld(t *testing.T) {
	t.Parallel()
	const doc, leak = "exported function has no doc comment", "response body is never closed"
	acted := decisions(100, true, "variable shadows another one")
	for i := range acted {
		acted[i].Dismissed = i%2 == 0
	}
	secure := asIs(doc, pipeline.SeverityInfo)
	secure.Category = pipeline.CategorySecurity
	again := decisions(1, true, doc)[0]
	for _, c := range []struct {
		name string
		list []Decision
		f    *pipeline.Finding
		want bool
	}{
		{"nothing known", nil, asIs(doc, pipeline.SeverityInfo), false},
		{"refused often", decisions(8, true, doc), asIs(doc+" in main", pipeline.SeverityInfo), true},
		{"refused by a click or two", decisions(2, true, doc), asIs(doc+" in main", pipeline.SeverityInfo), false},
		{"one finding, refused again and again", slices.Repeat([]Decision{again}, 9), asIs(doc, pipeline.SeverityInfo), false},
		{"acted on once, in these very words", append(decisions(8, true, doc), decisions(1, false, doc+" in main")...), asIs(doc+" in main", pipeline.SeverityInfo), false},
		{"acted on", decisions(8, false, doc), asIs(doc, pipeline.SeverityInfo), false},
		{"something else", decisions(8, true, doc), asIs(leak, pipeline.SeverityInfo), false},
		{"in words that nobody has used", decisions(8, true, doc), asIs("quux", pipeline.SeverityInfo), false},
		{"an error", decisions(8, true, doc), asIs(doc, pipeline.SeverityError), false},
		{"about security", decisions(8, true, doc), secure, false},
	} {
		list := slices.Concat(acted, c.list)
		why, asked := New(list, day(100)).Held(c.f)
		if (why != "") != c.want || asked != 0 {
			t.Errorf("%s: %q, %v; want held %v", c.name, why, asked, c.want)
		}
		if c.want && !strings.Contains(why, "people refused 8 like it, and acted on none that is nearer: “exported function has no doc comment of part7” (#8)") {
			t.Errorf("%s: %q", c.name, why)
		}
		if few := New(list[max(0, len(list)-90):], day(100)); few != nil {
			t.Errorf("%s: of 90 decisions: %+v", c.name, few)
		}
	}
}

// What holds for whatever people decided: the order does not matter, what blocks says nothing of
// others, and a finding that people acted on keeps all that says the same from being held back.
func TestHeldProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"lock", "close", "file", "name", "unused", "slow", "query", "loop"}), 1, 4)
		message := rapid.Custom(func(t *rapid.T) string { return strings.Join(words.Draw(t, "words"), " ") })
		var list []Decision
		for i := range rapid.IntRange(100, 160).Draw(t, "decided") {
			f := finding(message.Draw(t, "message"), rapid.SampledFrom([]pipeline.Severity{"info", "warning", "error"}).Draw(t, "severity"))
			f.Fingerprint = fmt.Sprint(i % 40)
			list = append(list, Decision{Finding: f, Dismissed: rapid.IntRange(0, 3).Draw(t, "dismissed") > 0, Actor: pipeline.Actor{ID: int64(i % 4)}, Weight: 1, At: day(float64(i))})
		}
		f := asIs(message.Draw(t, "new"), pipeline.SeverityInfo)
		why, _ := New(list, day(200)).Held(f)
		mixed := slices.Clone(list)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if other, _ := New(mixed, day(200)).Held(f); other != why {
			t.Fatalf("in another order %q, not %q", other, why)
		}
		took := Decision{Finding: *f, Actor: pipeline.Actor{ID: 9}, Weight: 1, At: day(150)}
		if why, _ := New(append(slices.Clone(list), took), day(200)).Held(f); why != "" {
			t.Fatalf("what people acted on is held back: %s", why)
		}
	})
}

// Of what would be held back, one in twenty is posted, and says so.
func TestPeopleAreAskedAgain(t *testing.T) {
	t.Parallel()
	p := New(decisions(120, true, "exported function has no doc comment"), day(100))
	posted := 0
	for i := range 5000 {
		f := finding("exported function has no doc comment", pipeline.SeverityInfo)
		f.Fingerprint = fmt.Sprint(i)
		why, asked := p.Held(&f)
		if why == "" {
			posted++
		}
		if (why != "") == (asked > 0) {
			t.Fatalf("held %q, asked %v", why, asked)
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

// Clicks without a word are weak, and those of who does nothing else hardly count.
func TestSilentDecisions(t *testing.T) {
	t.Parallel()
	f := finding("doc", "info")
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

// What is held back is known by what is posted all the same: where people want it no less than
// the rest, nothing is held back.
func TestAsked(t *testing.T) {
	t.Parallel()
	const doc = "exported function has no doc comment"
	before := append(decisions(80, true, doc), decisions(40, false, "variable shadows another one")...)
	for _, c := range []struct {
		name             string
		dismissed, acted int
		held, worse      bool
	}{
		{"never asked", 0, 0, true, false},
		{"asked, and still unwanted", 11, 0, true, false},
		{"asked, and wanted", 1, 11, false, true},
	} {
		list := slices.Clone(before)
		for i, d := range slices.Concat(decisions(c.dismissed, true, "another thing"), decisions(c.acted, false, "another thing")) {
			d.Asked, d.At = askAgain, day(50+float64(i))
			list = append(list, d)
		}
		asked := AskedOf(list, day(100))
		if why, _ := New(list, day(100)).Held(asIs(doc, "info")); (why != "") != c.held || asked.Worse() != c.worse {
			t.Errorf("%s: held %q, worse %v (%v)", c.name, why, asked.Worse(), asked)
		}
	}
}
