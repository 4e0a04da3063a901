package github

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"forge/github/delivery"
	"forge/github/githubtest"
	"forge/pipeline"
)

// An answer to a command stands where the command was given, once however often it
// is sent: in the conversation on the diff, or as a comment when that is gone.
func TestReplyWhereAsked(t *testing.T) {
	t.Parallel()
	c := newLab(t).begin(t)
	ctx, finding := context.Background(), c.comment("bbbb")
	read := func() pipeline.Notice {
		t.Helper()
		sent := c.gh.Deliveries()
		d := sent[len(sent)-1]
		n, err := delivery.Read(d.Event, d.Payload, delivery.Options{BotID: c.bot.ID})
		c.must(err)
		return n
	}
	show := func() (comments []githubtest.Comment, thread []githubtest.Comment, top int) {
		t.Helper()
		pulls, err := c.gh.Pulls("octo/repo")
		c.must(err)
		p := pulls[len(pulls)-1]
		for _, th := range p.Threads {
			if th.Comments[0].ID == finding {
				thread = th.Comments
			}
		}
		return p.Comments, thread, len(p.Threads)
	}
	twice := func(n pipeline.Notice, text, key string) {
		t.Helper()
		for range 2 {
			c.must(c.a.Reply(ctx, n, text, key))
		}
	}
	comments, thread, threads := show()

	c.must(c.as("carol").Reply("octo/repo", finding, "/forge status"))
	c.must(c.gh.Settle(ctx))
	c.must(c.as("boss").Reply("octo/repo", finding, "/forge explain"))
	c.must(c.gh.Settle(ctx))
	explain := read()
	if explain.Thread != finding || explain.Comment == finding {
		t.Fatalf("the command is read as %+v", explain)
	}
	twice(explain, "It runs, @boss.", "guid-1")
	twice(explain, "And so on.", "guid-2")
	gotComments, got, n := show()
	if len(gotComments) != len(comments) || n != threads || len(got) != len(thread)+4 {
		t.Fatalf("%d comments, %d conversations, %d in this one; want %d, %d, %d", len(gotComments), n, len(got), len(comments), threads, len(thread)+4)
	}
	if last := got[len(got)-2]; !strings.HasSuffix(last.Body, "\nIt runs, @"+"\u200b"+"boss.") || last.Author != c.bot.Login {
		t.Errorf("the answer is %+v", last)
	}

	c.must(c.as("boss").DeleteComment("octo/repo", finding))
	twice(explain, "Nobody is there.", "guid-3")
	if gotComments, _, _ = show(); len(gotComments) != len(comments)+1 || !strings.Contains(gotComments[len(comments)].Body, "Nobody is there.") {
		t.Errorf("with the conversation gone, the pull request has %+v", gotComments[len(comments):])
	}

	_, err := c.as("carol").Comment("octo/repo", c.pull, "/forge status")
	c.must(err)
	c.must(c.gh.Settle(ctx))
	twice(read(), "In the open.", "guid-4")
	gotComments, _, _ = show()
	if last := gotComments[len(gotComments)-1]; len(gotComments) != len(comments)+3 ||
		!strings.Contains(last.Body, "In reply to [this comment](") || !strings.HasSuffix(last.Body, "In the open.") {
		t.Errorf("an answer in the open is %+v of %d", last, len(gotComments))
	}
}

// An answer is never longer than GitHub takes.
func TestLongReply(t *testing.T) {
	t.Parallel()
	text := replyText(strings.Repeat("word @x <b> ``` ", 5000), "github.com")
	if n := utf8.RuneCountInString(text); n > 65_500 {
		t.Errorf("%d characters", n)
	}
}
