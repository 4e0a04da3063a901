package github

import (
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers H6, H7: a finding without a suggestion whose code a person changed is acted
// on, once that is settled; nothing else is.
func TestSignalFixedByHuman(t *testing.T) {
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
			if want := "\t\td := pause(i)\n\t\ttime.Sleep(d)\n\t\tsend()"; s.Before != want ||
				s.After != "\t\td := pause(i)\n\t\tsleep(ctx, d)\n\t\tsend()" || s.Line != 7 || s.Waited < 1000 {
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
			head := c.commit(c.s.Run.Head, map[string]string{c.path(): strings.Replace(retryGo, old, own, 1)})
			c.s.Implemented(2, c.s.Run.Head, head, "Mended.")
			c.publish()
			c.push("alice", own, "\t\tpauseFor(ctx, d)\n")
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("Forge's own fix, changed later", c.news())
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			got := c.news()
			for _, s := range got {
				if s.Kind == pipeline.SignalFixedByHuman {
					t.Errorf("merging: %v", c.told(got))
				}
			}
		}},
		{"refused in words", func(c *trial) {
			c.push("carol", old, own)
			c.must(c.as("mallory").Reply("octo/repo", c.comment("bbbb"), "False positive."))
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("a stranger's word", c.news(), "dismissed bbbb by mallory 0: False positive. (unsure)", "mended bbbb by carol 0.8")
			c.must(c.as("carol").Reply("octo/repo", c.comment("bbbb"), "By design."))
			c.expect("the word of one who belongs here", c.news(), "dismissed bbbb by carol 0.8: By design. (unsure)", "mended OFF bbbb by carol 0.8")
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
