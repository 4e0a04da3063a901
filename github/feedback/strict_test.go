package feedback

import (
	"context"
	"slices"
	"testing"

	"forge/pipeline"
)

// Covers H1 and V2: words that name a refusal let what blocks stand, and are said to do so; a
// remark they refuse. What was taken for a dismissal once stays one.
func TestDoubtfulWords(t *testing.T) {
	const words = "By design. At least Ann has it so."
	for _, c := range []struct {
		name      string
		severity  pipeline.Severity
		text      string
		dismissed bool
	}{
		{"an error", pipeline.SeverityError, words, false},
		{"a remark", pipeline.SeverityInfo, words, true},
		{"an error, plainly", pipeline.SeverityError, "By design.", false},
		{"an error, by command", pipeline.SeverityError, "/forge dismiss by design. At least Ann has it so.", true},
	} {
		th := forgeTalk("aaaa", Comment{ID: 601, Author: alice, Body: c.text})
		look := func(known ...pipeline.Signal) []pipeline.Signal {
			g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}, pipeline.Notice{}, known...)
			g.run.Findings = []pipeline.Issue{{Phase: pipeline.PhaseReview, Finding: &pipeline.Finding{Fingerprint: "aaaa", Severity: c.severity}}}
			list, err := g.finish(context.Background(), g.all)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		list := look()
		if len(list) != 1 || (list[0].Kind == pipeline.SignalDismissed) != c.dismissed || !c.dismissed && (list[0].Kind != pipeline.SignalAnswered || !list[0].Unsure) {
			t.Errorf("%s: %+v", c.name, list)
		}
		had := pipeline.Signal{Key: keyDismissed(th.first().ID), Kind: pipeline.SignalDismissed, Actor: alice, Text: kept(c.text), Weight: 0.8, Finding: "aaaa"}
		for _, s := range look(had) {
			if s.Off {
				t.Errorf("%s: a dismissal of before is taken back: %+v", c.name, s)
			}
		}
	}
}

// Words that turn against what was said before are about the finding only as long as Forge
// alone has spoken.
func TestWordsAgainstPeople(t *testing.T) {
	for _, c := range []struct {
		words               string
		toForge, toSomebody bool
	}{
		{"Disagree.", true, false}, {"I don't agree.", true, false}, {"I disagree, it crashes for me.", true, false}, {"Nope.", true, false}, {"Not true, see the log.", true, false},
		{"不同意。", true, false}, {"Не согласен.", true, false}, {"Je ne suis pas d'accord.", true, false},
		{"Not true: this is by design.", true, true}, {"False positive.", true, true}, {"Disagree. Won't fix.", true, true}, {"/forge dismiss", true, true},
	} {
		for _, before := range [][]Comment{nil, {{ID: 600, Author: boss, Body: "Hm, can we merge without this one."}}} {
			th := forgeTalk("aaaa", append(before, Comment{ID: 601, Author: alice, Body: c.words})...)
			g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}, pipeline.Notice{})
			list, err := g.finish(context.Background(), g.all)
			if err != nil {
				t.Fatal(err)
			}
			want := c.toForge && before == nil || c.toSomebody && before != nil
			if got := slices.ContainsFunc(list, func(s pipeline.Signal) bool { return s.Kind == pipeline.SignalDismissed }); got != want {
				t.Errorf("%q, after somebody else's words: %t: dismissed %t, want %t", c.words, before != nil, got, want)
			}
		}
	}
}
