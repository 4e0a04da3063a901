package feedback

import (
	"context"
	"testing"

	"forge/pipeline"
)

// Covers H1 and V2: what blocks is let pass by words that can mean nothing else. Whoever
// tells what they or somebody else once thought, asks, or goes on with a "but" names a
// refusal, too.
func TestPlain(t *testing.T) {
	for _, text := range []string{
		"By design.", "This is intentional.", "Won't fix, thanks!", "No, false positive.", "I think this is by design: the callers quote it.",
		"Not a bug, because the loader has checked it.", "Sorry, out of scope here. Thanks!", "False positive - the value comes from us",
		"Das ist Absicht.", "Das ist Absicht, weil der Aufrufer prüft", "Es intencional", "C'est voulu.", "Так задумано", "这是误报", "仕様です。", "Not a bug. Won't fix.",
	} {
		if !Plain(text) {
			t.Errorf("%q leaves doubt", text)
		}
	}
	for _, text := range []string{
		"", "Thanks!", "Is this by design?", "is it intentional", "Ann says it is by design. Strange.", "Whoever calls this a false positive has not run it.",
		"By design, I believed, until it crashed.", "This was by design, but the design is broken.", "By design? It loses data.", "It is a hole; the audit that has it as a false positive is wrong.",
		"By design. I ran it, and it crashes.", "Not a bug: you are right, it is one.", "Won't fix was the wrong label.", "Either by design or a bug.", "Intentional until now",
		"If it is by design, say so.", "Not by design.", "I doubt that it is a false positive.", "Ich hielt das für Absicht, zu Unrecht.", "Parecía un falso positivo", "Не ложное срабатывание", "这不是误报", "我原以为是误报",
		"仕様ではありません", "The test that was out of scope fails now.", "Later: out of scope here, in #12", "Nothing here is by design",
	} {
		if Plain(text) {
			t.Errorf("%q leaves no doubt", text)
		}
	}
}

// Words that only name a refusal let what blocks stand, and are said to do so; a remark they
// refuse. What was taken for a dismissal once stays one.
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
		{"an error, plainly", pipeline.SeverityError, "By design.", true},
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
