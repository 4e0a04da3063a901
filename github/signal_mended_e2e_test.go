package github

import (
	"context"
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers H6, H7: a finding without a suggestion whose code a person changed is acted
// on, once that is settled; nothing else is.
func TestSignalMended(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const old, own = "\t\ttime.Sleep(d)\n", "\t\tsleep(ctx, d)\n"
	for _, tc := range []struct {
		name string
		run  func(c *trial)
	}{
		{"resolved", func(c *trial) {
			c.push("carol", old, own)
			c.expect("the change alone", c.news())
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			got := c.news()
			c.expect("resolving it", got, "mended bbbb by carol 0.8")
			s := got[0]
			if want := "\t\td := pause(i)\n\t\ttime.Sleep(d)\n\t\tsend()"; s.Before != want || s.After != "\t\td := pause(i)\n\t\tsleep(ctx, d)\n\t\tsend()" || s.Line != 7 || s.Waited < 1000 {
				t.Errorf("at line %d after %d ms: %q became %q", s.Line, s.Waited, s.Before, s.After)
			}
			c.again()
			c.must(c.as("boss").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("opening it again", c.news(), "mended OFF bbbb by boss 0.8")
			c.again()
			c.must(c.as("boss").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving it again", c.news(), "mended bbbb by carol 0.8")
			c.push("alice", own, old)
			c.expect("putting it back", c.news(), "mended OFF bbbb by alice 0.8")
			c.again()
		}},
		{"merged", func(c *trial) {
			c.push("carol", old, "")
			c.push("alice", "\t\tsend()\n", "\t\tsend(i)\n")
			c.news()
			c.ready()
			c.must(c.as("boss").Squash("octo/repo", c.pull))
			c.expect("merging", c.news(), "edited by alice 0.8", "edited by carol 0.8", "ignored aaaa by boss 1", "mended bbbb by carol 0.8", "merged by boss 1")
			c.again()
		}},
		{"put back before the merge", func(c *trial) {
			c.push("carol", old, own)
			c.push("carol", own, old)
			c.news()
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			c.expect("merging", c.news(), "edited by carol 0.8", "edited by carol 0.8", "ignored aaaa by boss 1", "merged by boss 1")
			c.again()
		}},
		{"left alone", func(c *trial) {
			c.push("carol", "package upload\n", "// Package upload uploads.\npackage upload\n")
			c.news()
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			c.expect("merging", c.news(), "edited by carol 0.8", "ignored aaaa by boss 1", "merged by boss 1")
			c.again()
		}},
		{"resolved by Forge, which no longer finds it", func(c *trial) {
			c.push("carol", old, own)
			head, err := c.gh.Head("octo/repo", c.s.Run.Branch)
			c.must(err)
			c.s.Add(pipeline.EventBranchMoved, pipeline.Data{Head: head, Actor: &pipeline.Actor{ID: 9, Login: "carol"}})
			c.s.Phase(pipeline.PhaseReview, 1, pipeline.Data{Review: &pipeline.Review{Head: head, Summary: "All is well.", Reviewed: []string{c.path()}}})
			c.publish()
			if id := c.comment("bbbb"); !c.resolved(id) {
				c.t.Fatalf("Forge did not resolve its conversation %d", id)
			}
			c.deliveries()
			c.expect("polling, without the deliveries", c.poll(), "mended bbbb by carol 0.8")
			c.expect("polling again", c.poll())
		}},
		{"by Forge itself", func(c *trial) {
			head := c.g.commit(c.repo, c.path(), strings.Replace(retryGo, old, own, 1))
			c.s.Implemented(2, c.s.Run.Head, head, "Mended.")
			c.publish()
			c.push("alice", own, "\t\tpauseFor(ctx, d)\n")
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("Forge's own fix, changed later", c.news())
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			got := c.news()
			for _, s := range got {
				if s.Kind == pipeline.SignalMended {
					t.Errorf("merging: %v", c.told(got))
				}
			}
		}},
		{"refused in words", func(c *trial) {
			c.push("carol", old, own)
			c.must(c.as("mallory").Reply("octo/repo", c.comment("bbbb"), "False positive."))
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("a stranger's word", c.news(), "dismissed bbbb by mallory 0: False positive.", "mended bbbb by carol 0.8")
			c.must(c.as("carol").Reply("octo/repo", c.comment("bbbb"), "By design."))
			c.expect("the word of one who belongs here", c.news(), "dismissed bbbb by carol 0.8: By design.", "mended OFF bbbb by carol 0.8")
			c.again()
		}},
		{"deleted afterwards", func(c *trial) {
			c.push("carol", old, own)
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving it", c.news(), "mended bbbb by carol 0.8")
			c.must(c.as("alice").DeleteComment("octo/repo", c.comment("bbbb")))
			c.expect("deleting the comment", c.news(), "dismissed bbbb by alice 0.8: deleted", "mended OFF bbbb by alice 0.8")
			c.again()
		}},
		{"file deleted", func(c *trial) {
			_, err := c.as("alice").PushFiles("octo/repo", githubtest.Push{Branch: c.s.Run.Branch, Message: "Away", Files: map[string]*string{c.path(): nil}})
			c.must(err)
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("the file is gone", c.news())
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(l.begin(t)) })
	}
}

// resolved reports whether the conversation of a comment is.
func (c *trial) resolved(id int64) bool {
	c.t.Helper()
	pulls, err := c.gh.Pulls("octo/repo")
	c.must(err)
	for _, th := range pulls[len(pulls)-1].Threads {
		if th.Comments[0].ID == id {
			return th.Resolved
		}
	}
	return false
}

// After a forced push the head alone does not tell who changed the lines.
func TestMendedForced(t *testing.T) {
	file := func(line string) []string { return []string{"one", "two", "three", line, "five"} }
	person, forge := step{sha: "p", by: alice}, step{sha: "f", forge: true}
	last := step{sha: "q", by: boss}
	for _, c := range []struct {
		name  string
		steps []step
		patch map[string][]change
		want  string
	}{
		{"a person's commit took the line", []step{forge, person, last}, map[string][]change{"p": {{path: "retry.go", before: []string{"line four"}, after: []string{"x line"}}}, "q": {{path: "retry.go", before: []string{"five"}}}}, "alice"},
		{"Forge's commit did", []step{forge, last}, map[string][]change{"f": {{path: "retry.go", before: []string{"line four"}}}, "q": {{path: "retry.go", before: []string{"five"}}}}, ""},
		{"all in one commit", []step{last}, map[string][]change{"q": {{path: "retry.go", after: file("x line")}}}, ""},
		{"in another file", []step{person}, map[string][]change{"p": {{path: "retry.go", after: []string{"x line"}}, {path: "other.go", before: []string{"line four"}}}}, ""},
	} {
		th := forgeTalk("aaaa")
		th.resolved, th.resolver = true, boss
		g := tester(&pullState{state: "OPEN", threads: []conversation{th}}, pipeline.Notice{})
		g.history.steps = c.steps
		g.history.files["c0:retry.go"], g.history.files[c.steps[len(c.steps)-1].sha+":retry.go"] = file("line four"), file("x line")
		g.history.patches = c.patch
		got, err := g.finish(context.Background(), g.all)
		who := ""
		for _, s := range got {
			who += s.Actor.Login
		}
		if err != nil || who != c.want || len(got) == 1 && got[0].Kind != pipeline.SignalMended {
			t.Errorf("%s: %+v, %v; want a mend by %q", c.name, got, err, c.want)
		}
	}
}

// Whose address GitHub does not know is vouched for by who settled it, whoever the
// delivery is of.
func TestMendedByUnknown(t *testing.T) {
	for _, c := range []struct {
		name string
		st   pullState
		by   step
		want pipeline.Actor
	}{
		{"resolved", pullState{state: "OPEN"}, step{sha: "p"}, boss},
		{"resolved, told by another", pullState{state: "OPEN"}, step{sha: "p", by: alice, vouched: true}, boss},
		{"merged", pullState{state: "MERGED", merger: alice}, step{sha: "p"}, alice},
	} {
		th := forgeTalk("aaaa")
		if c.st.state == "OPEN" {
			th.resolved, th.resolver = true, boss
		}
		c.st.threads = []conversation{th}
		g := tester(&c.st, pipeline.Notice{})
		g.history.steps = []step{{sha: "c0", forge: true}, c.by}
		g.history.files["c0:retry.go"], g.history.files["p:retry.go"] = []string{"one", "two", "three", "line four"}, []string{"one", "two", "three", "x line"}
		g.history.patches["p"] = []change{{path: "retry.go"}}
		if err := g.thread(context.Background(), &g.st.threads[0], "aaaa"); err != nil || len(g.facts) != 1 || g.facts[0].Actor != c.want {
			t.Errorf("%s: %+v, %v; want a mend by %s", c.name, g.facts, err, c.want.Login)
		}
	}
}
