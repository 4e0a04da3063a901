package feedback

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// unlinked is a pull request whose commits after Forge's have an address that GitHub does
// not know. Each changes what stands in the fourth line.
type unlinked struct {
	Source
	lines []string // after each commit
	mails []string
}

func (u *unlinked) sha(i int) string { return string(rune('p' + i)) }

func (u *unlinked) Commits(context.Context) ([]Commit, error) {
	out := []Commit{{SHA: "c0", Author: pipeline.Actor{ID: botID, Bot: true}, Parents: 1}}
	for i := range u.lines {
		out = append(out, Commit{SHA: u.sha(i), AuthorMail: u.mails[i], Message: "Fix", Parents: 1,
			At: time.Date(2026, 3, 2, 9, i, 0, 0, time.UTC)})
	}
	return out, nil
}

func (u *unlinked) text(line string) string { return "one\ntwo\nthree\n" + line + "\nfive\nsix\n" }

func (u *unlinked) File(_ context.Context, sha, _ string) (string, error) {
	for i, l := range u.lines {
		if u.sha(i) == sha {
			return u.text(l), nil
		}
	}
	return u.text("line four"), nil
}

func (u *unlinked) Patch(_ context.Context, sha string) ([]Patch, error) {
	before := "line four"
	for i, l := range u.lines {
		if u.sha(i) == sha && l != before {
			return []Patch{{Path: "retry.go", Hunks: fmt.Sprintf("@@ -4,%d +4,%d @@\n-%s\n+%s\n", 1+strings.Count(before, "\n"), 1+strings.Count(l, "\n"),
				strings.ReplaceAll(before, "\n", "\n-"), strings.ReplaceAll(l, "\n", "\n+"))}}, nil
		}
		before = l
	}
	return []Patch{{Path: "README.md", Hunks: "@@ -1 +1 @@\n-a\n+b\n"}}, nil
}

func (u *unlinked) Weight(_ context.Context, a pipeline.Actor) (float64, error) {
	return map[int64]float64{7: 0.8, 8: 1}[a.ID], nil
}

// A suggestion that somebody applied or rewrote stays theirs, whoever pushes next: GitHub
// knows no account for the commit's address, so that only its own push says who it was.
func TestSuggestionsKeepTheirPerson(t *testing.T) {
	t.Parallel()
	th := forgeTalk("aaaa")
	th.Comments[0].Body += "\n```suggestion\nbetter line four\n```"
	st := &Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}
	push := func(who pipeline.Actor, head string) pipeline.Notice {
		return pipeline.Notice{Actor: who, Head: head, Feedback: &pipeline.Feedback{Event: "pull_request", Action: "synchronize"}}
	}
	const anna, other = "anna@corp.example", "bob@corp.example"
	for _, c := range []struct {
		name  string
		src   unlinked
		looks []pipeline.Notice
		kind  pipeline.SignalKind
		who   pipeline.Actor
		n     int // signals stored in all
	}{
		{"applied, then another's push", unlinked{lines: []string{"better line four", "better line four"}, mails: []string{anna, other}},
			[]pipeline.Notice{push(alice, "p"), push(boss, "q"), {}}, pipeline.SignalApplied, alice, 1},
		{"rewritten, then their own", unlinked{lines: []string{"my line four", "my line four"}, mails: []string{anna, anna}},
			[]pipeline.Notice{push(alice, "p"), push(alice, "q"), {}}, pipeline.SignalRewritten, alice, 1},
		{"applied, then rewritten by another", unlinked{lines: []string{"better line four", "the best line"}, mails: []string{anna, other}},
			[]pipeline.Notice{push(alice, "p"), push(boss, "q"), {}}, pipeline.SignalRewritten, boss, 2},
		{"two commits in one push", unlinked{lines: []string{"better line four", "better line four"}, mails: []string{anna, anna}},
			[]pipeline.Notice{push(alice, "q"), {}}, pipeline.SignalApplied, alice, 1},
		{"two commits of two addresses", unlinked{lines: []string{"better line four", "better line four"}, mails: []string{anna, other}},
			[]pipeline.Notice{push(alice, "q"), {}}, pipeline.SignalApplied, pipeline.Actor{}, 1},
	} {
		var all []pipeline.Signal
		for i, n := range c.looks {
			src := c.src
			if i < len(src.lines) && i+1 < len(c.looks)-1 { // what is pushed later is not there yet
				src.lines = src.lines[:i+1]
			}
			g := tester(st, n, all...)
			g.src, g.history.loaded = &src, false
			got, err := g.finish(context.Background(), g.all)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got...)
		}
		last := pipeline.Signal{}
		if len(all) > 0 {
			last = all[len(all)-1]
		}
		if len(all) != c.n || last.Kind != c.kind || last.Actor != c.who || last.Off || (last.Weight > 0) != (c.who.ID != 0) {
			t.Errorf("%s: %d signals, the last %s by %q with weight %v; want %d, %s by %q:\n%+v", c.name, len(all), last.Kind, last.Actor.Login, last.Weight,
				c.n, c.kind, c.who.Login, all)
		}
	}
}

// Of two suggested lines a person wrote one, and left the old line: that is neither applied
// nor left out. Taken back, it is left out as it was.
func TestHalfApplied(t *testing.T) {
	t.Parallel()
	th := forgeTalk("aaaa")
	th.Comments[0].Body += "\n```suggestion\nconst part = rate * 3;\nconst total = base + part;\n```"
	const half = "const part = rate * 3;\nline four"
	for name, c := range map[string]struct {
		lines []string
		want  pipeline.SignalKind
	}{
		"half":                {[]string{half}, ""},
		"half, and more":      {[]string{half + "\nconst other = 1;"}, ""},
		"half, taken back":    {[]string{half, "line four"}, pipeline.SignalIgnored},
		"half, then whole":    {[]string{half, "const part = rate * 3;\nconst total = base + part;"}, pipeline.SignalApplied},
		"nothing":             {[]string{"line four"}, pipeline.SignalIgnored},
		"something else":      {[]string{"const other = 1;\nline four"}, pipeline.SignalIgnored},
		"no word of old code": {[]string{"const part = rate * 3;"}, pipeline.SignalRewritten},
	} {
		src := &unlinked{lines: c.lines}
		for range c.lines {
			src.mails = append(src.mails, "anna@corp.example")
		}
		st := &Pull{State: "MERGED", Number: 8, Merger: alice, Threads: []Thread{th}}
		g := tester(st, pipeline.Notice{Actor: alice, Head: src.sha(len(c.lines) - 1), Feedback: &pipeline.Feedback{Event: "pull_request", Action: "closed"}})
		g.src, g.history.loaded = src, false
		got, err := g.finish(context.Background(), g.all)
		kind := pipeline.SignalKind("")
		for _, s := range got {
			if s.Key == keySuggestion(501) {
				kind = s.Kind
			}
		}
		if err != nil || kind != c.want {
			t.Errorf("%s: %q, %v; want %q", name, kind, err, c.want)
		}
	}
}
