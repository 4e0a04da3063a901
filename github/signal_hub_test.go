package github

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/github/delivery"
	"forge/github/githubtest"
	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/config"

	"github.com/google/go-cmp/cmp"
	gh "github.com/google/go-github/v62/github"
)

// lab is a GitHub where people judge what Forge did. Its clock goes on with each act.
type lab struct {
	t      *testing.T
	gh     *githubtest.Server
	a      *App
	repo   pipeline.Repo
	base   string
	bot    pipeline.Actor
	offset *atomic.Int64
	read   int // deliveries that were read
	made   int // runs
}

// trial is one run with a reviewed pull request, and the signals so far.
type trial struct {
	*lab
	s     *rendertest.Story
	pull  int
	known []pipeline.Signal
	past  []pipeline.Notice
	dir   string
}

const retryGo = "package upload\n\nfunc retry(n int) {\n\tfor i := 0; i != n; i++ {\n\t\td := pause(i)\n\t\ttime.Sleep(d)\n\t\tsend()\n\t}\n}\n"

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, offset: &atomic.Int64{}}
	clock := func() time.Time { return time.Now().Add(time.Duration(l.offset.Load())) }
	l.gh, l.a, l.repo, _ = world(t, func(o *githubtest.Options) { o.Clock = clock }, func(o *Options) { o.Clock, o.Gaps = clock, true })
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	t.Cleanup(hook.Close)
	l.gh.SetHook(hook.URL)
	for login, role := range map[string]string{"boss": "maintain", "carol": "write", "tom": "triage"} {
		l.must(l.gh.SetPermission("octo/repo", login, role))
	}
	var err error
	l.base, err = l.a.BranchHead(context.Background(), l.repo, "main")
	l.must(err)
	l.bot, err = l.a.BotUser(context.Background())
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// pause lets GitHub's clock go on: it counts in whole seconds.
func (l *lab) pause() { l.offset.Add(int64(time.Second)) }

// begin makes a run whose pull request was reviewed: aaaa has a suggestion on line
// 4, bbbb is about lines 5 to 7.
func (l *lab) begin(t *testing.T) *trial {
	t.Helper()
	l.made++
	l.t = t
	c := &trial{lab: l, s: &rendertest.Story{T: t, Run: &pipeline.Run{}, At: time.Now()}}
	c.dir = fmt.Sprintf("up%d", l.made)
	path := c.dir + "/retry.go"
	c.s.Add(pipeline.EventRunStarted, pipeline.Data{
		Start: &pipeline.Start{Repo: l.repo, By: pipeline.Actor{ID: 7, Login: "alice"}, Config: config.Default(), Base: l.base,
			Task: pipeline.Task{Title: "Retry"}, Branch: fmt.Sprintf("forge/retry-%d", l.made)}})
	c.s.Run.Trace = fmt.Sprintf("%032d", l.made)
	c.s.Plan()
	head := c.commit(l.base, map[string]string{path: retryGo, c.dir + "/other.go": "package upload\n// two\n"})
	c.s.Implemented(1, l.base, head, "Retries.")
	var list []pipeline.Finding
	for _, f := range rendertest.FirstFindings()[1:] {
		f.File, f.Severity = path, pipeline.SeverityWarning // what blocks is not refused in words
		list = append(list, f)
	}
	c.s.Reviewed(1, head, false, list...)
	c.publish()
	c.publish()
	pulls, err := l.gh.Pulls("octo/repo")
	l.must(err)
	c.pull = pulls[len(pulls)-1].Number
	c.deliveries()
	return c
}

// commit makes a commit of Forge's on top of another one, over the API: it is quicker
// than a clone and a push.
func (c *trial) commit(parent string, files map[string]string) string {
	c.t.Helper()
	ctx := context.Background()
	s, err := c.a.session(c.repo)
	c.must(err)
	var entries []*gh.TreeEntry
	for path, text := range files {
		entries = append(entries, &gh.TreeEntry{Path: &path, Mode: gh.String("100644"), Type: gh.String("blob"), Content: &text})
	}
	tree, _, err := s.rest.Git.CreateTree(ctx, c.repo.Owner, c.repo.Name, parent, entries)
	c.must(err)
	who := &gh.CommitAuthor{Name: gh.String("f"), Email: gh.String("f@example.com")}
	made, _, err := s.rest.Git.CreateCommit(ctx, c.repo.Owner, c.repo.Name,
		&gh.Commit{Message: gh.String("Change"), Tree: tree, Parents: []*gh.Commit{{SHA: &parent}}, Author: who, Committer: who}, nil)
	c.must(err)
	return made.GetSHA()
}

// Push, Diff and Delete make a trial a pusher of its own commits.
func (c *trial) Push(ctx context.Context, repo pipeline.Repo, branch, sha, old string) error {
	s, err := c.a.session(repo)
	if err != nil {
		return err
	}
	ref := &gh.Reference{Ref: gh.String("refs/heads/" + branch), Object: &gh.GitObject{SHA: &sha}}
	if old == "" {
		_, _, err = s.rest.Git.CreateRef(ctx, repo.Owner, repo.Name, ref)
		return err
	}
	if head, err := c.a.BranchHead(ctx, repo, branch); err != nil || head != old {
		return errors.Join(movedError{head}, err)
	}
	_, _, err = s.rest.Git.UpdateRef(ctx, repo.Owner, repo.Name, ref, true)
	return err
}

func (c *trial) Diff(_ context.Context, _ pipeline.Repo, from, to string) (string, error) {
	if from != c.base {
		return "", fmt.Errorf("the diff from %s is not known", from)
	}
	var out strings.Builder
	for _, path := range []string{c.dir + "/other.go", c.path()} { // both are new
		text, err := c.gh.File("octo/repo", to, path)
		if err != nil {
			return "", err
		}
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		fmt.Fprintf(&out, "diff --git a/%s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%d @@\n+%s\n", path, len(lines), strings.Join(lines, "+"))
	}
	return out.String(), nil
}

func (c *trial) Delete(context.Context, pipeline.Repo, string, string) error {
	return errors.New("nothing is deleted here")
}

func (c *trial) publish() {
	c.t.Helper()
	pub, _, err := c.a.Publish(context.Background(), c.s.Run, PublishOptions{Pusher: c})
	c.must(err)
	c.s.Add(pipeline.EventPublishCompleted, pipeline.Data{Publication: &pub})
}

// deliveries reads what has come since the last time.
func (c *trial) deliveries() []pipeline.Notice {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c.must(c.gh.Settle(ctx))
	list := c.gh.Deliveries()
	var out []pipeline.Notice
	for _, d := range list[c.read:] {
		n, err := delivery.Read(d.Event, d.Payload, delivery.Options{BotID: c.bot.ID, Other: true})
		c.must(err)
		if n.Feedback != nil {
			out = append(out, n)
		}
	}
	c.read = len(list)
	return out
}

// news handles what has come, as the engine does, and returns the new signals.
func (c *trial) news() []pipeline.Signal {
	c.t.Helper()
	var out []pipeline.Signal
	for _, n := range c.deliveries() {
		c.past = append(c.past, n)
		out = append(out, c.handle(n)...)
	}
	return out
}

func (c *trial) handle(n pipeline.Notice) []pipeline.Signal {
	c.t.Helper()
	list, err := c.a.Signals(context.Background(), c.s.Run, n, c.known)
	c.must(err)
	return c.keep(list)
}

func (c *trial) keep(list []pipeline.Signal) []pipeline.Signal {
	var events []pipeline.Event
	events = append(events, pipeline.SignalEvents(c.known)...)
	c.known = pipeline.KnownSignals(append(events, pipeline.SignalEvents(list)...))
	return list
}

func (c *trial) poll() []pipeline.Signal {
	c.t.Helper()
	list, err := c.a.Poll(context.Background(), c.s.Run, c.known)
	c.must(err)
	return c.keep(list)
}

func (c *trial) as(login string) *githubtest.Person { c.pause(); return c.gh.As(login) }

// comment returns the id of Forge's comment on a finding.
func (c *trial) comment(fp string) int64 {
	c.t.Helper()
	id := c.s.Run.Published.Artefacts["finding/"+fp].ID
	if id == 0 {
		c.t.Fatalf("Forge's comment on %s is not known: %+v", fp, c.s.Run.Published.Artefacts)
	}
	return id
}

func (c *trial) path() string { return c.dir + "/retry.go" }

// push replaces text in the pull request's file, as a person.
func (c *trial) push(login, old, with string) {
	c.t.Helper()
	text, err := c.gh.File("octo/repo", c.s.Run.Branch, c.path())
	c.must(err)
	now := strings.Replace(text, old, with, 1)
	if now == text {
		c.t.Fatalf("%q is not in the file:\n%s", old, text)
	}
	_, err = c.as(login).PushFiles("octo/repo", githubtest.Push{Branch: c.s.Run.Branch, Message: "Apply suggestion from code review",
		Files: map[string]*string{c.path(): &now}})
	c.must(err)
}

// told is a signal in short: "dismissed aaaa by alice 0.8: words".
func (c *trial) told(list []pipeline.Signal) []string {
	out := []string{}
	for _, s := range list {
		text := string(s.Kind)
		if s.Off {
			text += " OFF"
		}
		if s.Finding != "" {
			text += " " + s.Finding
		}
		who := s.Actor.Login
		if who == "" {
			who = "somebody"
		}
		text += fmt.Sprintf(" by %s %g", who, s.Weight)
		for _, x := range []string{s.Where, s.Text} {
			if x != "" {
				text += ": " + strings.ReplaceAll(x, c.dir+"/", "")
			}
		}
		if s.Button {
			text += " (button)"
		}
		if s.Unsure {
			text += " (unsure)"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func (c *trial) expect(what string, got []pipeline.Signal, want ...string) {
	c.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, c.told(got)); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	for _, s := range got {
		if s.At.IsZero() || s.Pull != c.pull || s.Waited < 0 {
			c.t.Errorf("%s: a signal without its moment or its pull request: %+v", what, s)
		}
	}
}

// again handles everything that came once more, in any order and twice: nothing
// new may come of it, and to one who knows nothing it means the same.
func (c *trial) again() {
	c.t.Helper()
	for _, n := range c.past {
		if got := c.handle(n); len(got) > 0 {
			c.t.Errorf("a duplicate of %q brings news: %v", n.Why, c.told(got))
		}
	}
	want := effects(c.known)
	r := rand.New(rand.NewPCG(1, uint64(len(c.past))))
	rounds := 1
	if thorough {
		rounds = 2
	}
	for range rounds {
		list := append(slices.Clone(c.past), c.past...)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		was := c.known
		c.known = nil
		for _, n := range list {
			c.handle(n)
		}
		if diff := cmp.Diff(want, effects(c.known)); diff != "" {
			c.t.Errorf("out of order, twice (-in order +shuffled):\n%s", diff)
		}
		c.known = was
	}
}

// effects are the facts that hold, by key.
func effects(list []pipeline.Signal) map[string]string {
	out := map[string]string{}
	for _, s := range list {
		if !s.Off {
			out[s.Key] = fmt.Sprintf("%s by %s %g %q %q", s.Kind, s.Actor.Login, s.Weight, s.After, s.Text)
		}
	}
	return out
}

// Covers H1, H6, H7: the ways to dismiss a finding, and to take that back.
func TestSignalDismissed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, tc := range []struct {
		name string
		run  func(c *trial)
	}{
		{"resolved as it is", func(c *trial) {
			c.must(c.as("alice").Resolve("octo/repo", c.comment("aaaa")))
			got := c.news()
			c.expect("resolving", got, "dismissed aaaa by alice 0.8")
			if w := got[0].Waited; w < 1000 || w > 60_000 {
				t.Errorf("Waited = %d ms, want the time since the comment", w)
			}
			if want := "\tfor i := 0; i != n; i++ {"; got[0].Before != want || got[0].File != c.path() || got[0].Line != 4 {
				t.Errorf("about %s:%d %q, want %q", got[0].File, got[0].Line, got[0].Before, want)
			}
			c.again()
			c.must(c.as("carol").Resolve("octo/repo", c.comment("aaaa")))
			c.expect("unresolving", c.news(), "dismissed OFF aaaa by carol 0.8")
			c.again()
			c.must(c.as("boss").Resolve("octo/repo", c.comment("aaaa")))
			c.expect("resolving again", c.news(), "dismissed aaaa by boss 1")
		}},
		{"resolved after the fix", func(c *trial) {
			c.push("alice", "d := pause(i)", "d := wait(i)")
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving what was mended", c.news(), "mended bbbb by alice 0.8")
			c.again()
		}},
		{"resolved, then mended", func(c *trial) {
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving", c.news(), "dismissed bbbb by alice 0.8")
			c.push("alice", "d := pause(i)", "d := wait(i)")
			c.expect("the fix", c.news(), "dismissed OFF bbbb by alice 0.8", "mended bbbb by alice 0.8")
			c.again()
		}},
		{"resolved after a person's commit", func(c *trial) {
			c.push("alice", "package upload\n", "// Package upload uploads.\npackage upload\n")
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving", c.news())
		}},
		{"in words", func(c *trial) {
			c.must(c.as("carol").Reply("octo/repo", c.comment("bbbb"), "Hm, let me see."))
			c.expect("thinking", c.news(), "answered bbbb by carol 0.8: Hm, let me see.")
			c.must(c.as("carol").Reply("octo/repo", c.comment("bbbb"), "Won't fix."))
			c.expect("refusing", c.news(), "answered OFF bbbb by carol 0.8: Hm, let me see.", "dismissed bbbb by carol 0.8: Won't fix.")
			c.must(c.as("boss").Reply("octo/repo", c.comment("bbbb"), "Good catch!"))
			c.expect("somebody else's consent", c.news(), "dismissed bbbb by carol 0.8: Won't fix. (unsure)")
			c.again()
			c.must(c.as("carol").Reply("octo/repo", c.comment("bbbb"), "Will fix."))
			c.expect("consent", c.news(), "dismissed OFF bbbb by carol 0.8: Won't fix. (unsure)")
			c.again()
		}},
		{"by command", func(c *trial) {
			c.must(c.as("boss").Reply("octo/repo", c.comment("aaaa"), "/forge dismiss n comes from a constant"))
			c.expect("the command", c.news(), "dismissed aaaa by boss 1: n comes from a constant")
			pulls, err := c.gh.Pulls("octo/repo")
			c.must(err)
			var reply int64
			for _, th := range pulls[len(pulls)-1].Threads {
				if th.Comments[0].ID == c.comment("aaaa") {
					reply = th.Comments[1].ID
				}
			}
			c.must(c.as("boss").EditComment("octo/repo", reply, "Never mind."))
			c.expect("an edit that takes it back", c.news(), "answered aaaa by boss 1: Never mind.", "dismissed OFF aaaa by boss 1: n comes from a constant")
			c.must(c.as("boss").EditComment("octo/repo", reply, "By design."))
			c.expect("an edit that says it", c.news(), "answered OFF aaaa by boss 1: Never mind.", "dismissed aaaa by boss 1: By design.")
			c.must(c.as("boss").DeleteComment("octo/repo", reply))
			c.expect("deleting the words", c.news(), "dismissed OFF aaaa by boss 1: By design.")
			c.again()
		}},
		{"by a thumb", func(c *trial) {
			c.must(c.as("carol").React("octo/repo", c.comment("aaaa"), "-1"))
			c.must(c.as("carol").React("octo/repo", c.comment("bbbb"), "+1"))
			c.expect("deliveries of reactions", c.news())
			c.expect("polling", c.poll(), "dismissed aaaa by carol 0.8")
			c.expect("polling again", c.poll())
			c.must(c.as("carol").React("octo/repo", c.comment("aaaa"), "-1"))
			c.expect("the thumb is gone", c.poll(), "dismissed OFF aaaa by carol 0.8")
		}},
		{"hidden", func(c *trial) {
			c.must(c.as("tom").Hide("octo/repo", c.comment("bbbb"), "OUTDATED"))
			c.expect("hidden as outdated", c.poll())
			c.must(c.as("tom").Hide("octo/repo", c.comment("bbbb"), "OFF_TOPIC"))
			c.expect("hidden as off-topic", c.poll(), "dismissed bbbb by somebody 0.4: hidden as off_topic")
			c.expect("polling again", c.poll())
			c.must(c.as("tom").Hide("octo/repo", c.comment("bbbb"), ""))
			c.expect("shown again", c.poll(), "dismissed OFF bbbb by somebody 0.4: hidden as off_topic")
		}},
		{"deleted", func(c *trial) {
			c.must(c.as("alice").DeleteComment("octo/repo", c.comment("aaaa")))
			c.expect("deleting", c.news(), "dismissed aaaa by alice 0.8: deleted")
			c.expect("polling after it", c.poll())
			c.again()
		}},
		{"deleted, unheard", func(c *trial) {
			c.must(c.as("alice").DeleteComment("octo/repo", c.comment("aaaa")))
			c.deliveries()
			c.expect("polling", c.poll(), "dismissed aaaa by somebody 0.4: deleted")
			c.expect("polling again", c.poll())
		}},
		{"by a stranger", func(c *trial) {
			c.must(c.as("mallory").Reply("octo/repo", c.comment("aaaa"), "False positive."))
			c.expect("a stranger's word", c.news(), "dismissed aaaa by mallory 0: False positive.")
			c.must(c.as("alice").Reply("octo/repo", c.comment("aaaa"), "Not a bug."))
			c.expect("a writer's word counts more", c.news(), "dismissed aaaa by alice 0.8: Not a bug.")
			c.again()
		}},
		{"fixed by Forge", func(c *trial) {
			head := c.commit(c.s.Run.Head, map[string]string{c.path(): strings.Replace(retryGo, "time.Sleep(d)", "sleep(ctx, d)", 1)})
			c.s.Implemented(2, c.s.Run.Head, head, "Mended.")
			c.publish()
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			c.expect("resolving what Forge mended", c.news())
		}},
		{"dismissed while Forge was mending it", func(c *trial) {
			c.must(c.as("alice").Resolve("octo/repo", c.comment("bbbb")))
			head := c.commit(c.s.Run.Head, map[string]string{c.path(): strings.Replace(retryGo, "time.Sleep(d)", "sleep(ctx, d)", 1)})
			c.s.Implemented(2, c.s.Run.Head, head, "Mended.")
			c.publish()
			c.expect("what was resolved before", c.news(), "dismissed bbbb by alice 0.8")
			c.expect("polling", c.poll())
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(l.begin(t)) })
	}
}
