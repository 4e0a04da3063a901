package feedback

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// reads is what a model read in an answer, as the run knows it.
func reads(c Comment, m record.Meaning) pipeline.Signal {
	said := kept(unquoted(c.Body))
	return pipeline.Signal{Key: record.ReadKey(c.ID), Kind: pipeline.SignalRead, Actor: c.Author, At: c.Updated, Comment: c.ID,
		Reading: &record.Reading{Meaning: m, Digest: record.TextDigest(said)}}
}

// Covers H7: what people answer in words that are no phrase is told, once, and
// taken back when they say it plainly, hide it or delete it.
func TestAnswered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	say := func(who pipeline.Actor, text string, minute int) Comment {
		m := at.Add(time.Duration(minute) * time.Minute)
		return Comment{ID: int64(600 + minute), Author: who, Body: text, Created: m, Updated: m}
	}
	hidden := say(alice, "The loader has dealt with that.", 1)
	hidden.Hidden = "off-topic"
	const words = "The loader has dealt with that since 2019."
	for _, c := range []struct {
		name    string
		replies []Comment
		want    string
	}{
		{"words of their own", []Comment{say(alice, words, 1)}, "alice: " + words},
		{"two of them", []Comment{say(alice, words, 1), say(boss, "Callers hand a copy in.", 2)}, "boss: Callers hand a copy in.; alice: " + words},
		{"and agreement with one of them", []Comment{say(boss, words, 1), say(alice, "Agreed.", 2)}, "alice: Agreed.; boss: " + words},
		{"of a stranger", []Comment{say(guest, words, 1)}, "guest: " + words},
		{"quoted words and code", []Comment{say(alice, "> By design.\n\nThe `loader` does it.\n```\nnot a bug\n```", 1)}, "alice: The `loader` does it."},
		{"plain", []Comment{say(alice, "By design.", 1)}, ""},
		{"a command", []Comment{say(alice, "/forge dismiss the loader does it", 1)}, ""},
		{"a question", []Comment{say(alice, "Where would that come from?", 1)}, ""},
		{"a question in Chinese", []Comment{say(alice, "这里为什么？", 1)}, ""},
		{"a question and more", []Comment{say(alice, "Where from? The loader fills it.", 1)}, "alice: Where from? The loader fills it."},
		{"chatter", []Comment{say(alice, "Thanks!", 1), say(boss, "+1", 2)}, ""},
		{"a machine", []Comment{say(pipeline.Actor{ID: 50, Login: "acme-ci"}, words, 1)}, ""},
		{"Forge", []Comment{say(pipeline.Actor{ID: botID, Bot: true}, words, 1)}, ""},
		{"hidden", []Comment{hidden}, ""},
		{"plainly afterwards", []Comment{say(alice, words, 1), say(alice, "Not a bug.", 2)}, ""},
		{"plainly before", []Comment{say(alice, "Not a bug.", 1), say(alice, words, 2)}, "alice: " + words},
		{"another plainly afterwards", []Comment{say(alice, words, 1), say(boss, "Not a bug.", 2)}, "alice: " + words},
	} {
		told := func(replies []Comment, known ...pipeline.Signal) (got []pipeline.Signal) {
			g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{forgeTalk("aaaa", replies...)}}, pipeline.Notice{}, known...)
			list, err := g.finish(context.Background(), g.all)
			if err != nil {
				t.Fatal(err)
			}
			return slices.DeleteFunc(list, func(s pipeline.Signal) bool { return s.Kind != pipeline.SignalAnswered })
		}
		list := told(c.replies)
		var got []string
		for _, s := range list {
			got = append(got, s.Actor.Login+": "+s.Text)
			if s.Finding != "aaaa" || s.Comment < 600 || s.Weight != map[string]float64{"alice": 0.8, "boss": 1}[s.Actor.Login] {
				t.Errorf("%s: %+v", c.name, s)
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if again := told(c.replies, list...); len(again) != 0 {
			t.Errorf("%s: a second time it tells %+v", c.name, again)
		}
		if gone := told(nil, list...); len(gone) != len(list) || len(gone) > 0 && !gone[0].Off {
			t.Errorf("%s: when all answers are deleted it tells %+v", c.name, gone)
		}
	}
}

// Covers H1 and lessons 28: a model's reading is a refusal only when the matter is settled
// and nothing that became of the code, and no other word, speaks against it.
func TestRefusedAsRead(t *testing.T) {
	t.Parallel()
	file := func(lines ...string) []string {
		return slices.Concat([]string{"package a", "func one() {", "}"}, lines, []string{"five()", "six()", "seven()"})
	}
	const line = "	load(userTable)"
	at := time.Date(2026, 3, 2, 8, 59, 30, 0, time.UTC)
	say := func(id int64, who pipeline.Actor, text string) Comment {
		return Comment{ID: id, Author: who, Body: text, Created: at, Updated: at}
	}
	refusal := say(700, alice, "The loader has dealt with that since 2019.")
	robot := pipeline.Actor{ID: 60, Bot: true}
	for _, c := range []struct {
		name    string
		more    []Comment
		reads   map[int64]record.Meaning
		change  []change
		now     []string
		pull    Pull
		open    bool   // the conversation is
		edited  string // the answer's words since they were read
		whole   bool   // the comment is about the file
		resolve pipeline.Actor
		want    string
	}{
		{name: "refuses", want: "refused"},
		{name: "not read", reads: map[int64]record.Meaning{}},
		{name: "agrees", reads: map[int64]record.Meaning{700: record.MeaningAgrees}},
		{name: "unclear", reads: map[int64]record.Meaning{700: record.MeaningUnclear}},
		{name: "question", reads: map[int64]record.Meaning{700: record.MeaningQuestion}},
		{name: "words that were edited", edited: "The loader has dealt with that, hasn't it."},
		{name: "not settled", open: true},
		{name: "merged", open: true, pull: Pull{State: "MERGED", Merger: boss, Ended: at.Add(time.Hour)}, want: "refused"},
		{name: "closed", open: true, pull: Pull{State: "CLOSED"}},
		{name: "about a file", whole: true},
		{name: "the lines were changed", change: []change{{path: "retry.go", line: 4, before: []string{line}, after: []string{"	store()"}}}, now: file("	store()")},
		{name: "what is next to them", change: []change{{path: "retry.go", line: 5, after: []string{"	check()"}}}, now: file(line, "	check()")},
		{name: "something else", change: []change{{path: "README.md", after: []string{"words"}}}},
		{name: "another agrees", more: []Comment{say(701, boss, "Good catch.")}},
		{name: "another puts it off", more: []Comment{say(701, boss, "In a follow-up.")}},
		{name: "another agrees, as read", more: []Comment{say(701, boss, "That one bites us weekly.")},
			reads: map[int64]record.Meaning{700: record.MeaningRefuses, 701: record.MeaningAgrees}},
		{name: "done elsewhere, as read", more: []Comment{say(701, boss, "The loader has it now.")},
			reads: map[int64]record.Meaning{700: record.MeaningRefuses, 701: record.MeaningElsewhere}},
		{name: "another refuses plainly", more: []Comment{say(701, boss, "By design.")}, want: "dismissed"},
		{name: "a click says so as well", resolve: boss, want: "dismissed"},
	} {
		first := refusal
		if c.edited != "" {
			first.Body = c.edited
		}
		th := forgeTalk("aaaa", append([]Comment{first}, c.more...)...)
		th.Whole, th.Resolved, th.Resolver = c.whole, !c.open, robot // whose click says nothing
		if c.resolve.ID != 0 {
			th.Resolver = c.resolve
		}
		st := c.pull
		if st.State == "" {
			st.State = "OPEN"
		}
		st.Number, st.Threads = 8, []Thread{th}
		if c.reads == nil {
			c.reads = map[int64]record.Meaning{700: record.MeaningRefuses}
		}
		known := []pipeline.Signal{{Key: "pull//closed", Actor: boss, At: at}}
		for _, r := range append([]Comment{refusal}, c.more...) {
			if m := c.reads[r.ID]; m != "" {
				known = append(known, reads(r, m))
			}
		}
		g := tester(&st, pipeline.Notice{}, known...)
		g.history.steps = []step{{sha: "c0", forge: true}}
		g.history.files["c0:retry.go"] = file(line)
		if c.change != nil {
			g.history.steps, g.history.patches["p"] = append(g.history.steps, step{sha: "p", by: alice, at: at}), c.change
			if g.history.files["p:retry.go"] = c.now; c.now == nil {
				g.history.files["p:retry.go"] = file(line)
			}
		}
		list, err := g.finish(context.Background(), g.all)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			if s.Kind == pipeline.SignalRefused || s.Kind == pipeline.SignalDismissed {
				got = append(got, string(s.Kind))
			}
			if s.Kind == pipeline.SignalRefused && (s.Reading == nil || s.Key != "refused/501" || s.Before != line) {
				t.Errorf("%s: %+v", c.name, s)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Covers H1: where a model reads answers, what it reads goes before a phrase, which it is shown, too.
func TestModelGoesFirst(t *testing.T) {
	t.Parallel()
	answer := Comment{ID: 700, Author: alice, Body: "By design."}
	for m, want := range map[record.Meaning]string{"": "answered dismissed", record.MeaningAgrees: "answered", record.MeaningQuestion: "answered",
		record.MeaningRefuses: "answered dismissed", record.MeaningUnclear: "answered dismissed"} {
		var known []pipeline.Signal
		if m != "" {
			known = append(known, reads(answer, m))
		}
		g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{forgeTalk("aaaa", answer)}}, pipeline.Notice{}, known...)
		g.reads = true
		list, err := g.finish(context.Background(), g.all)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			got = append(got, string(s.Kind))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("read as %q: %q, want %q", m, got, want)
		}
	}
}

// A click is no refusal where a model reads that the finding is right, done or put off, nor where
// nobody has read what was said.
func TestReadingVetoesClicks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 8, 59, 30, 0, time.UTC)
	answer := Comment{ID: 700, Author: alice, Body: "That one bites us weekly.", Created: at, Updated: at}
	for m, want := range map[record.Meaning]bool{"": false, record.MeaningAgrees: false, record.MeaningElsewhere: false, record.MeaningPostponed: false,
		record.MeaningQuestion: true, record.MeaningUnclear: false} {
		th := forgeTalk("aaaa", answer)
		th.Resolved, th.Resolver = true, boss
		g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}, pipeline.Notice{}, reads(answer, m))
		g.history.steps = []step{{sha: "c0", forge: true}}
		g.history.files["c0:retry.go"] = []string{"one", "two", "three", "	load(userTable)"}
		if err := g.all(context.Background()); err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(g.facts, func(s pipeline.Signal) bool { return s.Kind == pipeline.SignalDismissed })
		if got != want {
			t.Errorf("read as %q: dismissed %v, want %v", m, got, want)
		}
	}
}

// Words that refuse, and a change of the very lines by a person: which of both is meant is
// not known. A command is meant.
func TestWordsAgainstCode(t *testing.T) {
	t.Parallel()
	file := func(line string) []string { return []string{"one", "two", "three", line, "five"} }
	for _, c := range []struct {
		words, now string
		unsure     bool
	}{
		{"By design.", "	other()", true},
		{"By design.", "	load(userTable)", false},
		{"/forge dismiss by design", "	other()", false},
	} {
		th := forgeTalk("aaaa", Comment{ID: 700, Author: alice, Body: c.words})
		th.Resolved, th.Resolver = true, boss
		g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}, pipeline.Notice{})
		g.history.steps = []step{{sha: "c0", forge: true}, {sha: "p", by: alice}}
		g.history.files["c0:retry.go"], g.history.files["p:retry.go"] = file("	load(userTable)"), file(c.now)
		g.history.patches["p"] = []change{{path: "retry.go"}}
		got, err := g.finish(context.Background(), g.all)
		if err != nil || len(got) != 1 || got[0].Kind != pipeline.SignalDismissed || got[0].Unsure != c.unsure {
			t.Errorf("%q and %q: %+v, %v; want a dismissal, unsure %v", c.words, c.now, got, err, c.unsure)
			continue
		}
		sure := got[0]
		sure.Unsure = !sure.Unsure // what an earlier look had found
		g = tester(g.st, pipeline.Notice{}, sure)
		g.history.steps = []step{{sha: "c0", forge: true}, {sha: "p", by: alice}}
		g.history.files["c0:retry.go"], g.history.files["p:retry.go"] = file("	load(userTable)"), file(c.now)
		g.history.patches["p"] = []change{{path: "retry.go"}}
		if got, err := g.finish(context.Background(), g.all); err != nil || len(got) != 1 || got[0].Unsure != c.unsure {
			t.Errorf("%q and %q, looked at again: %+v, %v", c.words, c.now, got, err)
		}
	}
}
