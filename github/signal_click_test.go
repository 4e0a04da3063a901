package github

import (
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers H1, H7 and lessons 28, over the protocol: the work was done, and the
// conversation resolved; a remark beside a finding is an event, and no gap.
func TestSignalDoneElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, tc := range []struct {
		name string
		run  func(c *trial)
	}{
		{"in another file", func(c *trial) {
			text, name := "package upload\n\nfunc pause(i int) int { return min(i, 9) } // for time.Sleep\n", c.dir+"/pause.go"
			_, err := c.as("alice").PushFiles("octo/repo", githubtest.Push{Branch: c.s.Run.Branch, Message: "Limit it", Files: map[string]*string{name: &text}})
			c.must(err)
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving", c.news())
			c.again()
		}},
		{"in words", func(c *trial) {
			c.must(c.as("alice").Reply("octo/repo", c.comment("bbbb"), "Done in the other file, thanks!"))
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving", c.news(), "answered bbbb by alice 0.8: Done in the other file, thanks!")
			c.again()
		}},
		{"with a guard above", func(c *trial) {
			c.push("alice", "\t\td := pause(i)", "\t\tif i > 9 {\n\t\t\treturn\n\t\t}\n\t\td := pause(i)")
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving", c.news())
			c.again()
		}},
		{"all before the merge", func(c *trial) {
			c.must(c.as("boss").Resolve("octo/repo", c.comment("aaaa")))
			c.must(c.as("boss").Resolve("octo/repo", c.comment("bbbb")))
			c.ready()
			c.must(c.as("boss").Merge("octo/repo", c.pull))
			c.news()
			for _, s := range c.known {
				if s.Kind == pipeline.SignalDismissed && !s.Off {
					c.t.Errorf("still dismissed: %+v", s)
				}
			}
			c.again()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(l.begin(t)) })
	}
}
