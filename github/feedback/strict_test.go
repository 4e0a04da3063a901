package feedback

import (
	"context"
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
