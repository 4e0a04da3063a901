package feedback

import (
	"context"
	"slices"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Covers H1 and V2: words that name a refusal let what blocks stand, and are said to do so; a
// remark they refuse. What was taken for a dismissal once stays one.
func TestDoubtfulWords(t *testing.T) {
	t.Parallel()
	const words = "Works as designed."
	for _, c := range []struct {
		name      string
		severity  pipeline.Severity
		text      string
		dismissed bool
	}{
		{"an error", pipeline.SeverityError, words, false},
		{"a remark", pipeline.SeverityInfo, words, true},
		{"an error, by command", pipeline.SeverityError, "/forge dismiss by design", true},
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
	t.Parallel()
	for _, c := range []struct {
		words               string
		toForge, toSomebody bool
	}{
		{"Disagree.", true, false}, {"I disagree", true, false}, {"Nope.", false, false}, {"False positive.", true, true}, {"/forge dismiss", true, true},
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

// Covers H1, lessons 28: a dismissal that somebody else with write access lets stand alone holds in
// its run and teaches nothing, in whatever words they say so.
func TestContestedDismissals(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	say := func(who pipeline.Actor, text string, minute int) Comment {
		m := at.Add(time.Duration(minute) * time.Minute)
		return Comment{ID: int64(600 + minute), Author: who, Body: text, Created: m, Updated: m}
	}
	no := say(boss, "By design.", 1)
	for _, c := range []struct {
		name    string
		replies []Comment
		teaches bool
	}{
		{"nobody else", []Comment{no}, true},
		{"no", []Comment{no, say(alice, "No.", 2)}, false},
		{"in words that nobody has read", []Comment{no, say(alice, "Eso rompe la tienda, lo vi ayer.", 2)}, false},
		{"after a command", []Comment{say(boss, "/forge dismiss by design", 1), say(alice, "No, this is a bug.", 2)}, false},
		{"before a command", []Comment{say(alice, "Good catch.", 0), say(boss, "/forge dismiss by design", 1)}, true},
		{"before the words", []Comment{say(alice, "Good catch.", 0), no}, false},
		{"unread words before", []Comment{say(alice, "Hm, can we merge without this one.", 0), no}, true},
		{"a question", []Comment{no, say(alice, "Really?", 2)}, true},
		{"thanks", []Comment{no, say(alice, "Thanks!", 2)}, true},
		{"fine", []Comment{no, say(alice, "No.", 2), say(alice, "Thanks.", 3)}, true},
		{"the same", []Comment{no, say(alice, "False positive.", 2)}, true},
		{"a stranger", []Comment{no, say(guest, "No, this is a bug.", 2)}, true},
		{"hidden", []Comment{no, {ID: 602, Author: alice, Body: "No.", Updated: at.Add(time.Hour), Hidden: "off-topic"}}, true},
		{"a command", []Comment{no, say(alice, "/forge status", 2)}, true},
		{"agrees with somebody", []Comment{no, say(alice, "Makes sense.", 2)}, false},
		{"says more oneself", []Comment{no, say(boss, "Or is it?! Let me see.", 2)}, false},
	} {
		g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{forgeTalk("aaaa", c.replies...)}}, pipeline.Notice{})
		list, err := g.finish(context.Background(), g.all)
		i := slices.IndexFunc(list, func(s pipeline.Signal) bool { return s.Kind == pipeline.SignalDismissed })
		if err != nil || i < 0 || list[i].Unsure == c.teaches {
			t.Errorf("%s: %+v, %v; want a dismissal that teaches: %t", c.name, list, err, c.teaches)
		}
	}
	read := say(alice, "Eso no rompe nada.", 2)
	g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{forgeTalk("aaaa", no, read)}}, pipeline.Notice{}, pipeline.Signal{Key: record.ReadKey(read.ID),
		Kind: pipeline.SignalRead, Reading: &record.Reading{Meaning: record.MeaningRefuses, Digest: record.TextDigest(read.Body)}})
	list, err := g.finish(context.Background(), g.all)
	if i := slices.IndexFunc(list, func(s pipeline.Signal) bool { return s.Kind == pipeline.SignalDismissed }); err != nil || i < 0 || list[i].Unsure {
		t.Errorf("what a model reads as another refusal: %+v, %v", list, err)
	}
}

// A thumb of one person and words of another that nobody has read: which of them holds is not known.
func TestClicksAgainstWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for words, teaches := range map[string]bool{"Eso rompe la tienda, lo vi ayer.": false, "Really?": true, "Thanks!": true, "No.": false, "By design.": true} {
		th := forgeTalk("aaaa", Comment{ID: 601, Author: alice, Body: words, Created: at, Updated: at})
		th.Comments[0].Downs = []Reaction{{By: boss, At: at.Add(time.Hour)}}
		g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}, pipeline.Notice{})
		list, err := g.finish(context.Background(), g.all)
		i := slices.IndexFunc(list, func(s pipeline.Signal) bool { return s.Kind == pipeline.SignalDismissed })
		if err != nil || i < 0 || list[i].Unsure == teaches {
			t.Errorf("%q: %+v, %v; want a dismissal that teaches: %t", words, list, err, teaches)
		}
	}
}
