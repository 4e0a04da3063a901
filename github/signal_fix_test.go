package github

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
)

const better = "\tfor i := 0; i < max(n, 1); i++ {"

// Covers H2, H3, H6: what becomes of a suggestion.
func TestSignalSuggestion(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const old = "\tfor i := 0; i != n; i++ {"
	for _, tc := range []struct {
		name string
		run  func(c *trial)
	}{
		{"the button", func(c *trial) {
			c.must(c.as("alice").CommitSuggestion("octo/repo", c.comment("aaaa")))
			got := c.news()
			c.expect("the button", got, "applied aaaa by alice 0.8 (button)")
			if got[0].Before != better || got[0].After != better || got[0].Waited < 1000 {
				t.Errorf("before %q, after %q, waited %d ms; want both %q, and the time since the comment", got[0].Before, got[0].After, got[0].Waited, better)
			}
			c.must(c.as("alice").Resolve("octo/repo", c.comment("aaaa")))
			c.expect("resolving it then", c.news())
			c.again()
			c.push("carol", better, "\tfor i := range max(n, 1) {")
			got = c.news()
			c.expect("and then rewritten", got, "rewritten aaaa by carol 0.8")
			if got[0].After != "\tfor i := range max(n, 1) {" {
				t.Errorf("after %q", got[0].After)
			}
			c.push("carol", "\tfor i := range max(n, 1) {", old)
			c.expect("and put back as it was", c.news(), "rewritten OFF aaaa by carol 0.8")
			c.again()
		}},
		{"by hand", func(c *trial) {
			c.push("carol", old, better)
			c.expect("by hand", c.news(), "applied aaaa by carol 0.8")
			c.again()
		}},
		{"by hand, among other edits", func(c *trial) {
			c.push("carol", "package upload\n", "// Package upload uploads.\npackage upload\n\nimport \"time\"\n")
			c.push("alice", old+"\n", better+"\n\t\tlog(i)\n")
			c.expect("with a line behind it", c.news(), "applied aaaa by alice 0.8")
		}},
		{"indented otherwise", func(c *trial) {
			c.push("carol", old, "\t"+better)
			c.expect("one step further in", c.news(), "applied aaaa by carol 0.8")
		}},
		{"rewritten", func(c *trial) {
			c.push("boss", old, "\tfor i := range n {")
			got := c.news()
			c.expect("another way", got, "rewritten aaaa by boss 1")
			if got[0].Before != better || got[0].After != "\tfor i := range n {" {
				t.Errorf("before %q, after %q", got[0].Before, got[0].After)
			}
			c.again()
		}},
		{"elsewhere", func(c *trial) {
			text := "package upload\n\nfunc again(n int) {\n" + better + "\n\t}\n}\n"
			name := c.dir + "/again.go"
			_, err := c.as("alice").PushFiles("octo/repo", githubtest.Push{Branch: c.s.Run.Branch, Message: "Again", Files: map[string]*string{name: &text}})
			c.must(err)
			c.expect("in another file", c.news(), "applied aaaa by alice 0.8: again.go:4")
			c.again()
		}},
		{"untouched", func(c *trial) {
			before := c.a.Calls()
			c.expect("polling", c.poll())
			if n := c.a.Calls() - before; n != 2 {
				t.Errorf("polling an untouched pull request took %d calls, want one query and one list of commits", n)
			}
			c.push("alice", "\t\tsend()\n", "\t\tsend(i)\n")
			c.expect("other lines", c.news())
		}},
		{"by Forge itself", func(c *trial) {
			head := c.commit(c.s.Run.Head, map[string]string{c.path(): strings.Replace(retryGo, old, better, 1)})
			c.s.Implemented(2, c.s.Run.Head, head, "Mended.")
			c.publish()
			c.push("alice", better, "\tfor i := range n {")
			c.expect("Forge's own fix, changed later", c.news())
			c.expect("polling", c.poll())
		}},
		{"ignored", func(c *trial) {
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.news()
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			got := c.news()
			c.expect("merged as it was", got, "dismissed OFF bbbb by boss 0.8", "ignored aaaa by boss 1", "merged by boss 1")
			for _, s := range got {
				if s.Off {
					continue // resolved just before the merge, which may have asked for it
				}
				if s.Implied != (s.Kind == pipeline.SignalIgnored) {
					t.Errorf("%s: implied %v", s.Kind, s.Implied)
				}
			}
			c.again()
		}},
		{"file deleted", func(c *trial) {
			_, err := c.as("alice").PushFiles("octo/repo", githubtest.Push{Branch: c.s.Run.Branch, Message: "Away", Files: map[string]*string{c.path(): nil}})
			c.must(err)
			c.expect("the file is gone", c.news())
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(l.begin(t)) })
	}
}

// ready takes the pull request out of draft, as Forge does at the end.
func (c *trial) ready() {
	c.t.Helper()
	head := c.s.Run.Head
	c.s.Reviewed(len(c.s.Run.Iterations), head, true)
	c.s.Tested(len(c.s.Run.Iterations), head)
	c.s.Verified()
	c.publish()
}

// Covers H4, H5, H7: what people say about the pull request, change in it, and how
// it ends.
func TestSignalPull(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, tc := range []struct {
		name string
		run  func(c *trial)
	}{
		{"approved", func(c *trial) {
			c.must(c.as("alice").Review("octo/repo", c.pull, githubtest.Review{Event: "APPROVE", Body: "Good."}))
			c.expect("approving", c.news(), "approved by alice 0.8: Good.")
			c.again()
			c.must(c.as("boss").Dismiss("octo/repo", c.pull, c.review("alice"), "Too early"))
			c.expect("dismissing the approval", c.news(), "approved OFF by boss 0.8: Good.")
			c.again()
		}},
		{"changes requested", func(c *trial) {
			c.must(c.as("carol").Review("octo/repo", c.pull, githubtest.Review{Event: "REQUEST_CHANGES", Body: "Not yet."}))
			c.expect("asking for changes", c.news(), "changes_requested by carol 0.8: Not yet.")
			c.must(c.as("carol").Review("octo/repo", c.pull, githubtest.Review{Event: "APPROVE"}))
			c.expect("approving later", c.news(), "approved by carol 0.8")
			c.again()
		}},
		{"only a comment", func(c *trial) {
			c.must(c.as("carol").Review("octo/repo", c.pull, githubtest.Review{Event: "COMMENT", Body: "Hm."}))
			_, err := c.as("carol").Comment("octo/repo", c.pull, "By design?")
			c.must(err)
			c.expect("saying something", c.news())
		}},
		{"approved with edits", func(c *trial) {
			c.must(c.as("alice").CommitSuggestion("octo/repo", c.comment("aaaa")))
			c.push("carol", "\t\tsend()\n", "\t\tif send() {\n\t\t\treturn\n\t\t}\n")
			got := c.news()
			c.expect("the commits alone", got, "applied aaaa by alice 0.8 (button)")
			c.must(c.as("boss").Review("octo/repo", c.pull, githubtest.Review{Event: "APPROVE"}))
			got = c.news()
			c.expect("approving them", got, "edited by carol 0.8")
			if s := got[0]; s.Before != "\t\tsend()" || s.After != "\t\tif send() {\n\t\t\treturn\n\t\t}" || s.File != c.path() || s.Line != 7 {
				t.Errorf("edit of %s:%d: %q to %q", s.File, s.Line, s.Before, s.After)
			}
			c.again()
		}},
		{"merged with edits", func(c *trial) {
			c.push("carol", "\t\tsend()\n", "\t\tsend(i)\n")
			c.push("alice", "\tfor i := 0; i != n; i++ {", "\tfor i := range n {")
			c.news()
			c.ready()
			c.must(c.as("alice").Squash("octo/repo", c.pull))
			c.expect("merging", c.news(), "edited by carol 0.8", "mended bbbb by carol 0.8", "merged by alice 0.8")
			c.again()
		}},
		{"gap", func(c *trial) {
			c.must(c.as("carol").Review("octo/repo", c.pull,
				githubtest.Review{Event: "COMMENT", Body: "One thing.", Path: c.dir + "/other.go", Line: 2, Comment: "This has no test."}))
			got := c.news()
			c.expect("where Forge said nothing", got, "gap by carol 0.8: This has no test.")
			if got[0].Line != 2 || got[0].Before != "// two" {
				t.Errorf("gap at %d %q", got[0].Line, got[0].Before)
			}
			c.must(c.as("carol").Review("octo/repo", c.pull,
				githubtest.Review{Event: "COMMENT", Body: "More.", Path: c.path(), Line: 8, Comment: "This brace looks odd."}))
			c.expect("next to a finding", c.news(), "gap bbbb by carol 0.8: This brace looks odd.")
			c.must(c.as("carol").Review("octo/repo", c.pull, githubtest.Review{Event: "COMMENT", Body: "More.", Path: c.dir + "/other.go", Line: 1, Comment: "Nice!"}))
			c.expect("praise", c.news())
			c.again()
			c.must(c.as("alice").Hide("octo/repo", got[0].Comment, "OFF_TOPIC"))
			c.expect("hiding it", c.poll(), "gap OFF by carol 0.8: This has no test.")
			c.must(c.as("alice").Hide("octo/repo", got[0].Comment, ""))
			c.expect("showing it", c.poll(), "gap by carol 0.8: This has no test.")
			c.must(c.as("carol").DeleteComment("octo/repo", got[0].Comment))
			c.expect("deleting it", c.news(), "gap OFF by carol 0.8: This has no test.")
			c.again()
		}},
		{"closed", func(c *trial) {
			c.must(c.as("alice").Close("octo/repo", c.pull))
			c.expect("closing", c.news(), "closed by alice 0.8")
			c.again()
			c.must(c.as("alice").Close("octo/repo", c.pull))
			c.expect("opening again", c.news(), "closed OFF by alice 0.8")
			c.must(c.as("boss").Close("octo/repo", c.pull))
			c.deliveries()
			c.expect("closing, unheard", c.poll(), "closed by boss 1")
		}},
		{"reverted", func(c *trial) {
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			c.expect("merging", c.news(), "ignored aaaa by boss 1", "merged by boss 1")
			n, err := c.as("carol").Revert("octo/repo", c.pull)
			c.must(err)
			c.expect("asking for the revert", c.news())
			c.must(c.as("carol").Merge("octo/repo", n))
			got := c.news()
			if len(got) != 1 || got[0].Kind != pipeline.SignalReverted || got[0].Actor.Login != "carol" {
				t.Fatalf("reverting: %v", c.told(got))
			}
			c.again()
			again, err := c.as("boss").Revert("octo/repo", n)
			c.must(err)
			c.must(c.as("boss").Merge("octo/repo", again))
			if got := c.news(); len(got) != 1 || !got[0].Off ||
				got[0].Key != c.known[slices.IndexFunc(c.known, func(s pipeline.Signal) bool { return s.Kind == pipeline.SignalReverted })].Key {
				t.Errorf("reverting the revert: %v", c.told(got))
			}
		}},
		{"reverted by hand", func(c *trial) {
			c.ready()
			c.must(c.as("boss").Squash("octo/repo", c.pull))
			c.news()
			merge, err := c.gh.Head("octo/repo", "main")
			c.must(err)
			one := retryGo + "\n// more\n"
			_, err = c.as("alice").PushFiles("octo/repo",
				githubtest.Push{Branch: "main", Message: "Revert \"Retry\"\n\nThis reverts commit " + merge + ".",
					Files: map[string]*string{c.path(): &one}})
			c.must(err)
			c.expect("a commit that only says so", c.news())
			_, err = c.as("alice").PushFiles("octo/repo",
				githubtest.Push{Branch: "main", Message: "Tidy up", Files: map[string]*string{c.path(): nil, c.dir + "/other.go": nil}})
			c.must(err)
			c.expect("a commit that does it without a word", c.news(), "reverted by alice 0.8: Tidy up")
		}},
		{"reverted for the greater part", func(c *trial) {
			c.ready()
			c.must(c.as("boss").Squash("octo/repo", c.pull))
			c.news()
			merge, err := c.gh.Head("octo/repo", "main")
			c.must(err)
			message := "Undo\n\nThis reverts commit " + merge + "."
			_, err = c.as("alice").PushFiles("octo/repo", githubtest.Push{Branch: "main", Message: message, Files: map[string]*string{c.path(): nil}})
			c.must(err)
			c.expect("most of it, and it says so", c.news(), "reverted by alice 0.8: "+message)
			c.again()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(l.begin(t)) })
	}
}

// review returns the id of somebody's last review.
func (c *trial) review(login string) (id int64) {
	c.t.Helper()
	pulls, err := c.gh.Pulls("octo/repo")
	c.must(err)
	for _, p := range pulls {
		for _, r := range p.Reviews {
			if p.Number == c.pull && r.Author == login {
				id = r.ID
			}
		}
	}
	if id == 0 {
		c.t.Fatalf("%s has no review of #%d", login, c.pull)
	}
	return id
}

// Covers H5: with the option, remarks on other pull requests are gaps too.
func TestSignalElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	text := "package x\n"
	_, err := l.gh.As("alice").PushFiles("octo/repo", githubtest.Push{Branch: "feature", Message: "x", Files: map[string]*string{"x.go": &text}})
	l.must(err)
	n, err := l.gh.As("alice").OpenPull("octo/repo", "feature", "X")
	l.must(err)
	c := &trial{lab: l}
	c.deliveries()
	l.must(l.gh.As("carol").Review("octo/repo", n, githubtest.Review{Event: "COMMENT", Body: "Hm.", Path: "x.go", Line: 1, Comment: "No doc comment."}))
	var got []string
	for _, n := range c.deliveries() {
		list, err := l.a.Signals(t.Context(), nil, n, nil)
		l.must(err)
		for _, s := range list {
			got = append(got, fmt.Sprintf("%s by %s %g on #%d %s:%d: %s", s.Kind, s.Actor.Login, s.Weight, s.Pull, s.File, s.Line, s.Text))
		}
	}
	if want := []string{fmt.Sprintf("gap by carol 0.8 on #%d x.go:1: No doc comment.", n)}; !slices.Equal(got, want) {
		t.Errorf("signals = %q, want %q", got, want)
	}
}
