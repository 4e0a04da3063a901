package feedback

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/github/render"
	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/text"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSuggested(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want []string
		ok   bool
	}{
		{"Fix:\n\n```suggestion\n\ta := 1\n```\n", []string{"\ta := 1"}, true},
		{"```suggestion\r\na\r\nb\r\n```", []string{"a", "b"}, true},
		{"````suggestion\n```\n````", []string{"```"}, true},
		{"```suggestion\n```", nil, true},
		{"```suggestion\n\n```", []string{""}, true},
		{"```go\nx\n```\n```suggestion\ny\n```", []string{"y"}, true},
		{"````md\n```suggestion\ny\n```\n````", nil, false},
		{"```suggestion\nnever closed", nil, false},
		{"`suggestion` of mine", nil, false},
		{"```diff\n-a\n+b\n```", nil, false},
	} {
		got, ok := suggested(c.body)
		if diff := cmp.Diff(c.want, got); ok != c.ok || diff != "" {
			t.Errorf("suggested(%q) = %v, want %v (-want +got):\n%s", c.body, ok, c.ok, diff)
		}
	}
}

// What Forge renders as a suggestion is read back as it was.
func TestSuggestedReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "\tb", "```", "````", "```go", "# c"}), 1, 5).Draw(t, "lines")
		got, ok := suggested("Text\n\n" + text.Fence("suggestion", strings.Join(lines, "\n")) + "\n\n<sub>x</sub>")
		if diff := cmp.Diff(strings.TrimRight(strings.Join(lines, "\n"), "\n"), strings.TrimRight(strings.Join(got, "\n"), "\n")); !ok || diff != "" {
			t.Fatalf("suggested(text.Fence(%q)) = %v (-want +got):\n%s", lines, ok, diff)
		}
	})
}

// What stands in a suggestion's place decides, not who says what.
func TestJudge(t *testing.T) {
	t.Parallel()
	const kept = pipeline.SignalKind("")
	for _, c := range []struct {
		name, old, suggest, now string
		kind                    pipeline.SignalKind
		stands                  bool
	}{
		{"untouched", "a", "b", "a", kept, true},
		{"as suggested", "a", "b", "b", pipeline.SignalApplied, false},
		{"as suggested, with more", "a", "b", "b\nc", pipeline.SignalApplied, false},
		{"another way", "a", "b", "c", pipeline.SignalRewritten, false},
		{"taken away", "a", "b", "", pipeline.SignalRewritten, false},
		{"taken away as suggested", "a", "", "", pipeline.SignalApplied, false},
		{"a line more was suggested", "a", "a\nb", "a\nb", pipeline.SignalApplied, false},
		{"a line more was suggested, and not taken", "a", "a\nb", "a", kept, true},
		{"a line less was suggested", "a\nb", "a", "a", pipeline.SignalApplied, false},
		{"a line less was suggested, and not taken", "a\nb", "a", "a\nb", kept, true},
		{"kept, with the suggestion beside it", "a", "b", "a\nb", kept, true},
		{"a part of the suggestion", "a", "b\nc", "b", pipeline.SignalRewritten, false},
	} {
		v := outcome{old: split(c.old), suggest: split(c.suggest), has: true}
		now := split(c.now)
		lines := slices.Concat([]string{"top"}, now, []string{"end"})
		at := place{1, 1 + len(now)}
		kind, stands := v.judge(lines, &at)
		if kind != c.kind || stands != c.stands {
			t.Errorf("%s: judge = %q, stands %v; want %q, %v", c.name, kind, stands, c.kind, c.stands)
		}
	}
	v := outcome{old: split("if a != nil {\n\treturn a")}
	at := place{0, 1}
	if _, stands := v.judge(split("x\ny\n\tif a != nil {\n\t\treturn a\n"), &at); !stands || at != (place{2, 4}) {
		t.Errorf("code that moved as it was: stands %v at %v, want lines 3 to 4", stands, at)
	}
}

const botID = 4242

// tester is a collector over a state written down.
func tester(st *Pull, n pipeline.Notice, known ...pipeline.Signal) *collector {
	run := &pipeline.Run{ID: 1, Trace: "t", Repo: rendertest.Repo()}
	for _, f := range rendertest.FirstFindings() {
		f.Severity = pipeline.SeverityWarning // words do not refuse what blocks
		run.Findings = append(run.Findings, pipeline.Issue{Finding: &f, State: "open"})
	}
	g := newCollector(nil, Input{Run: run, Notice: n, Known: known, Pull: st, Slug: "forge", Now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
		Bot: pipeline.Actor{ID: botID, Login: "forge[bot]", Bot: true}})
	g.weights, g.history.loaded = map[int64]float64{0: 0, 7: 0.8, 8: 1, 9: 0, 10: 0.8}, true
	return g
}

func forgeTalk(fp string, replies ...Comment) Thread {
	first := Comment{ID: 501, Author: pipeline.Actor{ID: botID, Bot: true}, Body: render.Marker("t", render.FindingKey(fp)) + "\nA finding",
		Line: 4, Start: 4, Commit: "c0", Review: 61,
		Created: time.Date(2026, 3, 2, 8, 59, 0, 0, time.UTC)}
	return Thread{Node: "PRRT_1", Path: "retry.go", Line: 4, Comments: append([]Comment{first}, replies...)}
}

var (
	alice = pipeline.Actor{ID: 7, Login: "alice"}
	boss  = pipeline.Actor{ID: 8, Login: "boss"}
	guest = pipeline.Actor{ID: 9, Login: "guest"}
	carol = pipeline.Actor{ID: 10, Login: "carol"}
)

// Covers H1, lessons 20: whose word counts when several people dismiss a finding.
func TestDismissedBy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	say := func(who pipeline.Actor, text string, minute int) Comment {
		m := at.Add(time.Duration(minute) * time.Minute)
		return Comment{ID: int64(600 + minute), Author: who, Body: text, Created: m, Updated: m}
	}
	robot := pipeline.Actor{ID: 50, Login: "robot[bot]", Bot: true}
	hidden := say(boss, "By design.", 3)
	hidden.Hidden = "spam"
	for _, c := range []struct {
		name    string
		replies []Comment
		downs   []Reaction
		want    string // "WHO: words"; "" for not dismissed
	}{
		{"nobody", nil, nil, ""},
		{"a bot", []Comment{say(robot, "False positive.", 1)}, nil, ""},
		{"Forge itself", []Comment{say(pipeline.Actor{ID: botID, Bot: true}, "By design.", 1)}, nil, ""},
		{"a hidden answer", []Comment{hidden}, nil, ""},
		{"a deleted account", []Comment{say(pipeline.Actor{}, "By design.", 1)}, nil, ""},
		{"the first of two", []Comment{say(alice, "By design.", 1), say(pipeline.Actor{ID: 7, Login: "alice"}, "Out of scope.", 2)}, nil, "alice: Out of scope."},
		{"the weightier of two", []Comment{say(alice, "By design.", 1), say(boss, "Out of scope.", 2)}, nil, "boss: Out of scope."},
		{"a stranger alone", []Comment{say(guest, "By design.", 1)}, nil, "guest: By design."},
		{"a stranger first", []Comment{say(guest, "By design.", 1), say(alice, "Not a bug.", 2)}, nil, "alice: Not a bug."},
		{"a thumb before a word", []Comment{say(alice, "Not a bug.", 2)}, []Reaction{{alice, at}}, "alice: Not a bug."},
		{"a bot's thumb", nil, []Reaction{{robot, at}}, ""},
		{"a thumb", nil, []Reaction{{alice, at}}, "alice: "},
		{"taken back, then said again", []Comment{say(alice, "By design.", 1), say(alice, "You are right.", 2), say(alice, "Not a bug.", 3)},
			nil, "alice: Not a bug."},
		{"taken back", []Comment{say(alice, "By design.", 1), say(alice, "You are right.", 2)}, nil, ""},
	} {
		th := forgeTalk("aaaa", c.replies...)
		th.Comments[0].Downs = c.downs
		g := tester(&Pull{State: "OPEN", Number: 8}, pipeline.Notice{})
		on, err := g.dismissed(context.Background(), &th, pipeline.Signal{}, outcome{})
		got := ""
		if on {
			got = g.facts[0].Actor.Login + ": " + g.facts[0].Text
		}
		if err != nil || got != c.want {
			t.Errorf("%s: dismissed by %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// A review of Forge's that is dismissed dismisses what it found. GitHub says by
// whom in the delivery alone, so that is kept.
func TestReviewOfForgeDismissed(t *testing.T) {
	t.Parallel()
	st := &Pull{State: "OPEN", Number: 8, Threads: []Thread{forgeTalk("aaaa")},
		Reviews: []Review{{ID: 61, State: "DISMISSED", Author: pipeline.Actor{ID: botID, Bot: true}}}}
	n := pipeline.Notice{Kind: pipeline.NoticeFeedback, Actor: alice, Feedback: &pipeline.Feedback{Event: "pull_request_review", Action: "dismissed", Review: 61,
		At: time.Date(2026, 3, 2, 9, 0, 5, 0, time.UTC)}}
	g := tester(st, n)
	got, err := g.finish(context.Background(), g.all)
	if err != nil || len(got) != 1 || got[0].Kind != pipeline.SignalDismissed || got[0].Actor != alice || got[0].Waited != 65_000 || got[0].Weight != 0.8 {
		t.Fatalf("signals = %+v, %v; want a dismissal by alice after 65 s", got, err)
	}
	g = tester(st, pipeline.Notice{}, got[0])
	if got, err := g.finish(context.Background(), g.all); err != nil || len(got) != 0 {
		t.Errorf("polling then = %+v, %v; want nothing", got, err)
	}
	g = tester(st, pipeline.Notice{})
	if got, err := g.finish(context.Background(), g.all); err != nil || len(got) != 0 {
		t.Errorf("polling without having heard of it = %+v, %v; want nothing: nobody is known to have done it", got, err)
	}
}

// Taking back, and saying again, always comes later than what was said.
func TestMomentsGrow(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	th := forgeTalk("aaaa")
	th.Comments[0].Downs = []Reaction{{alice, at}}
	with, without := &Pull{State: "OPEN", Threads: []Thread{th}}, &Pull{State: "OPEN", Threads: []Thread{forgeTalk("aaaa")}}
	var known []pipeline.Signal
	last := time.Time{}
	for i := range 6 {
		g := tester([]*Pull{with, without}[i%2], pipeline.Notice{}, known...)
		g.now = at // a clock that stands still
		got, err := g.finish(context.Background(), g.all)
		if err != nil || len(got) != 1 || got[0].Off != (i%2 == 1) || !got[0].At.After(last) {
			t.Fatalf("round %d: %+v, %v; want one signal, off %v, after %s", i, got, err, i%2 == 1, last)
		}
		known, last = got, got[0].At
	}
}

// Whose commit changed the lines decides what it means.
func TestFollowed(t *testing.T) {
	t.Parallel()
	file := func(lines ...string) []string {
		return slices.Concat([]string{"one", "two", "three"}, lines, []string{"five", "six"})
	}
	person, other := step{sha: "p", by: alice}, step{sha: "q", by: boss}
	forge, merge := step{sha: "f", forge: true}, step{sha: "m", by: alice, merge: true}
	robot := step{sha: "r", by: pipeline.Actor{ID: 50, Bot: true}}
	const body = "```suggestion\nbetter line four\n```"
	for _, c := range []struct {
		name  string
		steps []step
		now   [][]string // the file after each step; nil for not there
		kind  pipeline.SignalKind
		by    string
		want  outcome
	}{
		{"nobody", nil, nil, "", "", outcome{stands: true}},
		{"a person, as suggested", []step{person}, [][]string{file("better line four")}, pipeline.SignalApplied, "p", outcome{people: true, ever: true}},
		{"a person, then another", []step{person, other}, [][]string{file("better line four"), file("best line four")}, pipeline.SignalRewritten,
			"q", outcome{people: true, ever: true}},
		{"a person, then back", []step{person, other}, [][]string{file("x line"), file("line four")}, "", "", outcome{stands: true, ever: true}},
		{"Forge", []step{forge}, [][]string{file("better line four")}, "", "", outcome{closed: true}},
		{"Forge, then a person", []step{forge, person}, [][]string{file("better line four"), file("x line")}, "", "", outcome{closed: true}},
		{"a person, then Forge, then another", []step{person, forge, other}, [][]string{file("better line four"), file("f line"), file("x line")},
			pipeline.SignalApplied, "p", outcome{people: true, ever: true, closed: true}},
		{"a merge", []step{merge}, [][]string{file("x line")}, "", "", outcome{closed: true}},
		{"a bot", []step{robot}, [][]string{file("better line four")}, "", "", outcome{closed: true}},
		{"Forge elsewhere, then a person", []step{forge, person},
			[][]string{slices.Concat([]string{"zero"}, file("line four")), slices.Concat([]string{"zero"}, file("better line four"))},
			pipeline.SignalApplied, "p", outcome{people: true, ever: true}},
		{"a person takes the file away", []step{person}, [][]string{nil}, "", "", outcome{people: true, ever: true, closed: true}},
	} {
		for _, forced := range []bool{false, true} {
			g := tester(&Pull{State: "OPEN"}, pipeline.Notice{})
			g.history.files["c0:retry.go"] = file("line four")
			g.history.steps = append([]step{{sha: "c0", forge: true}}, c.steps...)
			for i, s := range c.steps {
				g.history.files[s.sha+":retry.go"], g.history.patches[s.sha] = c.now[i], []change{{path: "retry.go"}}
			}
			if forced { // the commented commit is not part of the pull request any more: only its head can be compared
				if len(c.steps) != 1 {
					continue
				}
				g.history.steps = c.steps
			}
			th := forgeTalk("aaaa")
			th.Comments[0].Body += "\n" + body
			v, err := g.follow(context.Background(), &th)
			got := outcome{stands: v.stands, people: v.people, ever: v.ever, closed: v.closed}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(outcome{}, step{})); err != nil || !v.known || v.kind != c.kind || v.by.sha != c.by || diff != "" {
				t.Errorf("%s, forced %v: %q by %q, %v; want %q by %q (-want +got):\n%s", c.name, forced, v.kind, v.by.sha, err, c.kind, c.by, diff)
			}
		}
	}
}

// Covers H4: an edit is one signal for each file, without what was suggested.
func TestEditsByFile(t *testing.T) {
	t.Parallel()
	g := tester(&Pull{}, pipeline.Notice{})
	g.fact(pipeline.Signal{Key: "suggestion/1", Kind: pipeline.SignalApplied, File: "a.go", After: "better\nlines"})
	got := g.byFile(&step{sha: strings.Repeat("ab", 20), by: alice}, []change{
		{path: "a.go", line: 3, before: []string{"x"}, after: []string{"y"}},
		{path: "a.go", line: 9, before: []string{"old"}, after: []string{"better", "lines"}},
		{path: "a.go", line: 20, after: []string{"\tz"}},
		{path: "b.go", line: 1, before: []string{"better"}},
	})
	var text []string
	for _, s := range got {
		text = append(text, s.Key+" "+s.File+": "+s.Before+" > "+s.After)
	}
	want := []string{"edit/abababababab/a.go a.go: x\n…\n > y\n…\n\tz", "edit/abababababab/b.go b.go: better > "}
	if !slices.Equal(text, want) {
		t.Errorf("byFile = %q, want %q", text, want)
	}
}

// What is only found on the way is not laid at the door of who happened to come by.
func TestTakenBackBy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st := &Pull{State: "OPEN", Threads: []Thread{forgeTalk("aaaa")}}
	known := pipeline.Signal{Key: keyDismissed(501), Kind: pipeline.SignalDismissed, Actor: alice, Comment: 501, At: at}
	for _, c := range []struct {
		name string
		f    pipeline.Feedback
		want pipeline.Actor
	}{
		{"its conversation", pipeline.Feedback{Event: "pull_request_review_thread", Action: "unresolved", Comments: []int64{501, 502}}, boss},
		{"a deleted answer", pipeline.Feedback{Event: "pull_request_review_comment", Action: "deleted", Comments: []int64{502}, ReplyTo: 501}, boss},
		{"a push", pipeline.Feedback{Event: "push"}, boss},
		{"another conversation", pipeline.Feedback{Event: "pull_request_review_thread", Action: "resolved", Comments: []int64{601}}, alice},
		{"a review", pipeline.Feedback{Event: "pull_request_review", Action: "submitted", Review: 70}, alice},
		{"a remark", pipeline.Feedback{Event: "issue_comment", Action: "created", Comments: []int64{71}}, alice},
	} {
		g := tester(st, pipeline.Notice{Actor: boss, Feedback: &c.f}, known)
		got, err := g.finish(context.Background(), g.all)
		if err != nil || len(got) != 1 || !got[0].Off || got[0].Actor != c.want {
			t.Errorf("%s: %+v, %v; want it taken back by %s", c.name, got, err, c.want.Login)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	g := tester(&Pull{}, pipeline.Notice{Actor: alice, Head: "pushed"})
	g.run.Trace = "abc"
	g.run.Iterations = []pipeline.Iteration{{Impl: &pipeline.Implementation{Parent: "p", Head: "known"}}}
	mail := "4242+forge[bot]@users.noreply.github.com"
	commit := func(sha, mail, committer, message string, by int64, parents int) Commit {
		c := Commit{SHA: sha, AuthorMail: mail, CommitterMail: committer, Message: message, Parents: parents}
		if by != 0 {
			c.Author = pipeline.Actor{ID: by, Login: "someone"}
		}
		return c
	}
	for _, c := range []struct {
		name   string
		commit Commit
		want   step
	}{
		{"a person's", commit("x", "a@b", "a@b", "Apply suggestion", 7, 1), step{by: pipeline.Actor{ID: 7, Login: "someone"}}},
		{"the bot's", commit("x", "q@b", "q@b", "Fix", botID, 1), step{forge: true, by: pipeline.Actor{ID: botID, Login: "someone"}}},
		{"the bot's by its address", commit("x", mail, mail, "Fix", 0, 1), step{forge: true}},
		{"one that the run knows", commit("known", "f@b", "f@b", "Fix", 0, 1), step{forge: true}},
		{"one with the run's trailer", commit("x", "f@b", "f@b", "Fix\n\nForge-Run: abc/2", 0, 1), step{forge: true}},
		{"a person's with the trailer", commit("x", "a@b", "a@b", "Fix\n\nForge-Run: abc/2", 7, 1), step{by: pipeline.Actor{ID: 7, Login: "someone"}}},
		{"the button", commit("x", "a@b", webFlow, "Update x\n\nCo-authored-by: forge[bot] <"+mail+">", 7, 1),
			step{by: pipeline.Actor{ID: 7, Login: "someone"}, button: true}},
		{"the button's words by hand", commit("x", "a@b", "a@b", "Update x\n\nCo-authored-by: forge[bot] <"+mail+">", 7, 1),
			step{by: pipeline.Actor{ID: 7, Login: "someone"}}},
		{"the web with another co-author", commit("x", "a@b", webFlow, "Update x\n\nCo-authored-by: bob <b@b>", 7, 1),
			step{by: pipeline.Actor{ID: 7, Login: "someone"}}},
		{"a merge", commit("x", "a@b", webFlow, "Merge", 7, 2), step{by: pipeline.Actor{ID: 7, Login: "someone"}, merge: true}},
		{"an unknown address", commit("x", "a@b", "a@b", "Fix", 0, 1), step{}},
		{"an unknown address, just pushed", commit("pushed", "a@b", "a@b", "Fix", 0, 1), step{by: alice, vouched: true}},
	} {
		got := g.step(&c.commit)
		got.at, c.want.sha = time.Time{}, c.commit.SHA
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// However people change their minds, and however late, doubled or disordered it is
// heard of, in the end the same holds as for one who looks for the first time.
func TestSignalsConverge(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		st := &Pull{State: "OPEN", Node: "PR_8", Number: 8, Head: "c0", Threads: []Thread{forgeTalk("aaaa"), forgeTalk("bbbb")}}
		st.Threads[1].Node, st.Threads[1].Comments[0].ID = "PRRT_2", 502
		people := rapid.SampledFrom([]pipeline.Actor{alice, boss, guest})
		var known []pipeline.Signal
		var heard []pipeline.Notice
		look := func(n pipeline.Notice, known []pipeline.Signal) []pipeline.Signal {
			g := tester(st, n, known...)
			g.now = at
			g.history.files["c0:retry.go"] = split(strings.Repeat("line\n", 9))
			g.history.steps = []step{{sha: "c0", forge: true}}
			got, err := g.finish(context.Background(), g.all)
			if err != nil {
				t.Fatal(err)
			}
			return pipeline.KnownSignals(append(pipeline.SignalEvents(known), pipeline.SignalEvents(got)...))
		}
		for range rapid.IntRange(1, 20).Draw(t, "acts") {
			at = at.Add(time.Second)
			who := people.Draw(t, "who")
			th := &st.Threads[rapid.IntRange(0, 1).Draw(t, "thread")]
			n := pipeline.Notice{Kind: pipeline.NoticeFeedback, Repo: rendertest.Repo(), Actor: who, Head: "c0", Feedback: &pipeline.Feedback{At: at, Thread: th.Node}}
			switch rapid.IntRange(0, 4).Draw(t, "act") {
			case 0:
				th.Resolved, th.Resolver = !th.Resolved, who
				n.Feedback.Event, n.Feedback.Action = "pull_request_review_thread", map[bool]string{true: "resolved", false: "unresolved"}[th.Resolved]
			case 1:
				words := rapid.SampledFrom([]string{"By design.", "You are right.", "Hm.", "/forge dismiss so"}).Draw(t, "words")
				th.Comments = append(th.Comments, Comment{ID: int64(1000 + len(heard)), Author: who, Body: words, Created: at, Updated: at})
				n.Feedback.Event, n.Feedback.Action = "pull_request_review_comment", "created"
			case 2:
				first := th.first()
				if i := slices.IndexFunc(first.Downs, func(v Reaction) bool { return v.By == who }); i >= 0 {
					first.Downs = slices.Delete(slices.Clone(first.Downs), i, i+1)
				} else {
					first.Downs = append(slices.Clone(first.Downs), Reaction{who, at})
				}
				n.Feedback = nil // nobody is told
			case 3:
				th.first().Hidden = map[bool]string{true: "spam"}[th.first().Hidden == ""]
				n.Feedback = nil
			case 4:
				st.Reviews = append(st.Reviews, Review{ID: int64(len(heard) + 70), State: "APPROVED", Author: who, At: at})
				if i := rapid.IntRange(0, len(st.Reviews)-1).Draw(t, "review"); i < len(st.Reviews)-1 {
					st.Reviews[i].State = "DISMISSED"
				}
				n.Feedback.Event, n.Feedback.Action = "pull_request_review", "submitted"
			}
			if n.Feedback != nil {
				heard = append(heard, n)
			}
			for range rapid.IntRange(0, 2).Draw(t, "handled") {
				known = look(rapid.SampledFrom(append(heard, pipeline.Notice{})).Draw(t, "which"), known)
			}
		}
		known = look(pipeline.Notice{}, known)
		holds := func(list []pipeline.Signal) []string {
			var out []string
			for _, s := range list {
				if !s.Off {
					out = append(out, s.Key+" "+string(s.Kind)+" "+s.Actor.Login+" "+s.Text)
				}
			}
			return out
		}
		if diff := cmp.Diff(holds(look(pipeline.Notice{}, nil)), holds(known)); diff != "" {
			t.Fatalf("what holds (-first look +grown):\n%s", diff)
		}
		if again := look(pipeline.Notice{}, known); !cmp.Equal(again, known) {
			t.Fatalf("looking again changes what is known:\n%s", cmp.Diff(known, again))
		}
	})
}
