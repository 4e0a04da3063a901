package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// Covers H1 and lessons 28: a click means that a finding is not wanted only where nothing
// else may have been its reason.
func TestClicks(t *testing.T) {
	t.Parallel()
	file := func(lines ...string) []string {
		return slices.Concat([]string{"package a", "func one() {", "}"}, lines, []string{"five()", "six()", "seven()"})
	}
	const line = "	load(userTable)"
	at := time.Date(2026, 3, 2, 8, 59, 30, 0, time.UTC)
	say := func(who pipeline.Actor, text string) Comment {
		return Comment{ID: 700, Author: who, Body: text, Created: at, Updated: at}
	}
	person := func(list ...change) (step, []change) { return step{sha: "p", by: alice, at: at}, list }
	for _, c := range []struct {
		name    string
		replies []Comment
		change  []change // of a person's commit after the comment; nil for none
		now     []string // the file then
		merged  time.Duration
		others  int // further findings that the same person resolved
		want    string
	}{
		{name: "nothing else", want: "dismissed"},
		{name: "a commit to another file", change: []change{{path: "README.md", after: []string{"words"}}}},
		{name: "fixed in another file", change: []change{
			{path: "store.go", before: []string{"func load(t table) {"}, after: []string{"func load(t table) error {", "	check(userTable)"}}}},
		{name: "a guard directly above", change: []change{{path: "retry.go", line: 4, after: []string{"	if bad() {", "		return", "	}"}}},
			now: file("	if bad() {", "		return", "	}", line)},
		{name: "a guard two lines below", change: []change{{path: "retry.go", line: 6, after: []string{"	check()"}}},
			now: slices.Concat(file(line)[:5], []string{"	check()"}, file(line)[5:])},
		{name: "done elsewhere, in words", replies: []Comment{say(alice, "Done in the other file, thanks!")}},
		{name: "an issue was opened", replies: []Comment{say(alice, "I opened #99 for it")}},
		{name: "put off", replies: []Comment{say(boss, "Let's do it in a follow-up.")}},
		{name: "words that nobody has read", replies: []Comment{say(alice, "Hm.")}},
		{name: "thanks", replies: []Comment{say(alice, "Thanks!")}, want: "dismissed"},
		{name: "refused in words all the same", replies: []Comment{say(alice, "By design.")},
			change: []change{{path: "retry_test.go", after: []string{"x"}}}, want: "dismissed"},
		{name: "a machine agrees", replies: []Comment{say(pipeline.Actor{ID: 51, Login: "acme-ci"}, "Fixed.")}, want: "dismissed"},
		{name: "resolved before the merge", merged: time.Minute},
		{name: "resolved long before the merge", merged: time.Hour, want: "dismissed"},
		{name: "one of three", others: 2},
		{name: "one of two", others: 1, want: "dismissed dismissed"},
		{name: "all before the merge", others: 1, merged: time.Hour},
	} {
		th := forgeTalk("aaaa", c.replies...)
		th.Resolved, th.Resolver = true, boss
		st := &Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}
		for i := range c.others {
			o := forgeTalk("bbbb")
			o.Comments[0].ID, o.Node, o.Resolved, o.Resolver = int64(510+i), fmt.Sprint("PRRT_", i+2), true, boss
			st.Threads = append(st.Threads, o)
		}
		var known []pipeline.Signal
		for _, t := range st.Threads {
			known = append(known, pipeline.Signal{Key: keyDismissed(t.first().ID), Kind: pipeline.SignalDismissed, Actor: boss, At: at})
		}
		if c.merged > 0 {
			st.State, st.Ended, st.Merger = "MERGED", at.Add(c.merged), pipeline.Actor{ID: 60, Bot: true}
		}
		for _, heard := range []bool{true, false} {
			if !heard && c.merged > 0 {
				continue // when it was resolved is not known
			}
			var g *collector
			if heard {
				g = tester(st, pipeline.Notice{}, known...)
			} else {
				g = tester(st, pipeline.Notice{})
			}
			g.history.steps = []step{{sha: "c0", forge: true}}
			g.history.files["c0:retry.go"] = file(line)
			if c.change != nil {
				s, list := person(c.change...)
				g.history.steps, g.history.patches["p"] = append(g.history.steps, s), list
				if g.history.files["p:retry.go"] = c.now; c.now == nil {
					g.history.files["p:retry.go"] = file(line)
				}
			}
			if err := g.all(context.Background()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range g.facts {
				if f.Kind == pipeline.SignalDismissed {
					got = append(got, string(f.Kind))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s, heard %v: %q, want %q", c.name, heard, got, c.want)
			}
		}
	}
}

// Covers H2, H3 and lessons 28: what a commit only carries along is not rewritten, and
// what Forge did itself is not applied by who squashed it.
func TestCarried(t *testing.T) {
	t.Parallel()
	const body = "```suggestion\n	store(ctx, userTable)\n```"
	file := func(lines ...string) []string {
		return slices.Concat([]string{"package a", "", "func one() {"}, lines, []string{"}", "", "func two() {", "	two()", "}"})
	}
	old := file("	load(ctx)", "	store(userTable)", "	done()")
	renamed := []change{{path: "retry.go", line: 5, before: []string{"	store(userTable)"}, after: []string{"	store(accounts)"}},
		{path: "b.go", before: []string{"	find(userTable)"}, after: []string{"	find(accounts)"}},
		{path: "c.go", before: []string{"var userTable = 1"}, after: []string{"var accounts = 1"}}}
	for _, c := range []struct {
		name   string
		now    []string
		change []change
		names  map[string]string // of renamed files
		forced []string          // the file as Forge last published it; the commented commit is gone
		kind   pipeline.SignalKind
		stands bool
	}{
		{"rewritten", file("	load(ctx)", "	save(userTable)", "	done()"), []change{{path: "retry.go"}}, nil, nil, pipeline.SignalRewritten, false},
		{"renamed everywhere", file("	load(ctx)", "	store(accounts)", "	done()"), renamed, nil, nil, "", true},
		{"renamed here alone", file("	load(ctx)", "	store(accounts)", "	done()"), renamed[:1], nil, nil, pipeline.SignalRewritten, false},
		{"reformatted", file("	load(ctx)", "	store(", "		userTable,", "	)", "	done()"), []change{{path: "retry.go"}}, nil, nil, "", true},
		{"the function was deleted", slices.Concat(old[:2], old[7:]), []change{{path: "retry.go"}}, nil, nil, "", false},
		{"only the line was deleted", file("	load(ctx)", "	done()"), []change{{path: "retry.go"}}, nil, nil, pipeline.SignalRewritten, false},
		{"moved to another file", file("	load(ctx)", "	done()"),
			[]change{{path: "retry.go"}, {path: "b.go", after: []string{"func three() {", "		store(userTable)", "}"}}}, nil, nil, "", true},
		{"the file was renamed", old, []change{{path: "again.go"}}, map[string]string{"retry.go": "again.go"}, nil, "", true},
		{"the file was renamed, and the suggestion applied", file("	load(ctx)", "	store(ctx, userTable)", "	done()"),
			[]change{{path: "again.go"}}, map[string]string{"retry.go": "again.go"}, nil, pipeline.SignalApplied, false},
		{"squashed, and Forge had done it", file("	load(ctx)", "	store(ctx, userTable)", "	done()"), []change{{path: "retry.go"}}, nil,
			file("	load(ctx)", "	store(ctx, userTable)", "	done()"), "", false},
		{"squashed, and a person did it", file("	load(ctx)", "	store(ctx, userTable)", "	done()"), []change{{path: "retry.go"}}, nil, old,
			pipeline.SignalApplied, false},
	} {
		g := tester(&Pull{State: "OPEN"}, pipeline.Notice{})
		g.history.files["c0:retry.go"] = old
		g.history.steps = []step{{sha: "c0", forge: true}, {sha: "p", by: alice}}
		g.history.patches["p"], g.history.files["p:retry.go"] = c.change, c.now
		if c.names != nil {
			g.history.names["p"] = c.names
			g.history.files["p:retry.go"], g.history.files["p:again.go"] = nil, c.now
		}
		if c.forced != nil {
			g.run.Published.Head, g.history.files["f1:retry.go"] = "f1", c.forced
			g.history.steps = g.history.steps[1:]
		}
		th := forgeTalk("aaaa")
		th.Comments[0].Line, th.Comments[0].Start = 5, 5
		th.Comments[0].Body += "\n" + body
		v, err := g.follow(context.Background(), &th)
		if err != nil || v.kind != c.kind || v.stands != c.stands {
			t.Errorf("%s: %q, stands %v, %v; want %q, %v", c.name, v.kind, v.stands, err, c.kind, c.stands)
		}
	}
}

// Covers H4 and H5: what machines write and what says nothing teaches nothing.
func TestNothingLearnt(t *testing.T) {
	t.Parallel()
	g := tester(&Pull{}, pipeline.Notice{})
	var list []change
	for i := range 41 {
		list = append(list, change{path: []string{"go.sum", "web/yarn.lock", fmt.Sprintf("api/v%d.pb.go", i), "vendor/x/y.go", "ui/app.min.js",
			"a/__snapshots__/b.snap"}[i%6], after: []string{"x"}})
	}
	if got := g.byFile(&step{sha: strings.Repeat("ab", 20), by: alice},
		append(list, change{path: "a.go", after: []string{"y"}})); len(got) != 1 || got[0].File != "a.go" {
		t.Errorf("%d edits of 42 files: %+v, want the one that a person made", len(got), got)
	}
	for _, body := range []string{"+1", "Done", "@carol", "LGTM"} {
		th := Thread{Path: "b.go", Line: 90, Comments: []Comment{{ID: 9, Author: boss, Body: body, Line: 90, Start: 90}}}
		if err := g.gap(t.Context(), &th); err != nil || len(g.facts) > 0 {
			t.Errorf("%q is taken for a gap: %+v", body, g.facts)
		}
	}
	th := Thread{Path: "b.go", Line: 90, Comments: []Comment{
		{ID: 9, Author: pipeline.Actor{ID: 70, Login: "lint-bot"}, Body: "This leaks the handle.", Line: 90, Start: 90}}}
	if err := g.gap(t.Context(), &th); err != nil || len(g.facts) > 0 {
		t.Errorf("a machine's word is taken for a gap: %+v", g.facts)
	}
	th.Comments[0].Author, th.Comments[0].Commit = boss, "c1"
	for top, want := range map[string]int{"// Code generated by tool. DO NOT EDIT.": 0, "// Package a is one.": 1} {
		g := tester(&Pull{}, pipeline.Notice{})
		g.history.files["c1:b.go"] = split(top + "\npackage a\n")
		if err := g.gap(t.Context(), &th); err != nil || len(g.facts) != want {
			t.Errorf("a remark on a file that begins with %q: %+v, %v; want %d", top, g.facts, err, want)
		}
	}
}
