package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/github/delivery"
	"forge/github/feedback"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/written"
)

// Signals says what people did with what Forge said or made in a run (H1–H7). It
// is level-triggered, as publishing is: the notice only says that somebody did
// something. What they did is judged by what stands on GitHub now, and what is
// returned is the difference to known, the run's signals so far
// (pipeline.KnownSignals). So deliveries may come twice and in any order: what
// holds already gives nothing, and what holds no longer comes once more, Off.
//
// The notice is a feedback, a push to the run's branch or the default one, or a
// closed pull request. A push to the default branch belongs to no run by itself: it
// may revert any that was merged, and is to be shown to each. Without a run only a
// comment on the diff of a pull request that is not Forge's gives something: a gap
// (Options.Gaps). What no delivery tells — reactions, hidden comments — is found on
// the way, and by Poll.
func (a *App) Signals(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error) {
	if run == nil {
		return a.otherPull(ctx, n)
	}
	f := n.Feedback
	if f == nil || run.Published.Pull == nil || n.Actor.Bot || n.Repo.ID != run.Repo.ID {
		return nil, nil
	}
	g, err := a.gather(ctx, run, n, known)
	if err != nil {
		return nil, err
	}
	if f.Event == "push" && n.Branch == run.Repo.DefaultBranch {
		return g.finish(ctx, g.reverted)
	}
	return g.finish(ctx, g.all)
}

// Poll finds what no delivery tells: 👎, hidden comments, and what was missed. It
// takes one GraphQL call for a pull request on which nobody has done anything, and
// one more call to list commits once somebody pushed or it has suggestions or
// resolved conversations.
func (a *App) Poll(ctx context.Context, run *pipeline.Run, known []pipeline.Signal) ([]pipeline.Signal, error) {
	if run.Published.Pull == nil {
		return nil, nil
	}
	g, err := a.gather(ctx, run, pipeline.Notice{Kind: pipeline.NoticeNone, Repo: run.Repo}, known)
	if err != nil {
		return nil, err
	}
	return g.finish(ctx, g.all)
}

// collector collects the signals of one run at one moment.
type collector struct {
	app   *App
	s     *session
	run   *pipeline.Run
	n     pipeline.Notice
	f     pipeline.Feedback // of n, empty for a poll
	known map[string]pipeline.Signal
	now   time.Time
	bot   pipeline.Actor
	st    *pullState

	facts   []pipeline.Signal // that hold now
	gone    []string          // keys that hold no longer
	weights map[int64]float64
	history history
}

func (a *App) gather(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) (*collector, error) {
	s, err := a.session(run.Repo)
	if err != nil {
		return nil, err
	}
	g := &collector{app: a, s: s, run: run, n: n, known: map[string]pipeline.Signal{}, now: a.opts.Clock().UTC(), weights: map[int64]float64{}}
	if n.Feedback != nil {
		g.f = *n.Feedback
	}
	for _, k := range known {
		if had, ok := g.known[k.Key]; !ok || !k.At.Before(had.At) {
			g.known[k.Key] = k
		}
	}
	if g.bot, err = a.self(ctx); err != nil {
		return nil, err
	}
	if g.st, err = a.pullState(ctx, s, run.Repo, run.Published.Pull.Number); err != nil {
		return nil, err
	}
	g.history = history{g: g, files: map[string][]string{}, patches: map[string][]change{}, names: map[string]map[string]string{}}
	return g, nil
}

// finish collects, and returns the difference to what is known.
func (g *collector) finish(ctx context.Context, collect func(context.Context) error) ([]pipeline.Signal, error) {
	if err := collect(ctx); err != nil {
		return nil, err
	}
	var out []pipeline.Signal
	for _, s := range g.facts {
		s.Pull = g.st.number
		s.At = s.At.UTC().Truncate(time.Millisecond)
		had, ok := g.known[s.Key]
		if ok && !had.Off && alike(&had, &s) {
			continue
		}
		var err error
		if s.Weight == 0 {
			if s.Weight, err = g.weigh(ctx, s.Actor); err != nil {
				return nil, err
			}
		}
		if ok && !s.At.After(had.At) {
			s.At = had.At.Add(time.Millisecond)
		}
		out = append(out, s)
	}
	for _, key := range g.gone {
		had, ok := g.known[key]
		if !ok || had.Off || slices.ContainsFunc(g.facts, func(s pipeline.Signal) bool { return s.Key == key }) {
			continue
		}
		s := had
		s.Off, s.At = true, g.now.Truncate(time.Millisecond)
		if g.about(&s) {
			s.Actor, s.At = g.n.Actor, g.when()
		}
		if !s.At.After(had.At) {
			s.At = had.At.Add(time.Millisecond)
		}
		out = append(out, s)
	}
	g.app.log.Debug("signals", "run", g.run.ID, "pull", g.st.number, "facts", len(g.facts), "news", len(out), "calls", g.s.calls.Load())
	return out, nil
}

// alike reports whether two signals say the same of a fact, whenever it was found.
func alike(a, b *pipeline.Signal) bool {
	return a.Kind == b.Kind && a.Actor.ID == b.Actor.ID && a.Text == b.Text && a.After == b.After && a.Where == b.Where
}

// about reports whether the notice is of what a signal tells; else the signal's
// change was only found on the way.
func (g *collector) about(s *pipeline.Signal) bool {
	if !g.human(g.n.Actor) {
		return false
	}
	switch g.f.Event {
	case "pull_request_review_thread", "pull_request_review_comment":
		return s.Comment != 0 && (g.f.ReplyTo == s.Comment || slices.Contains(g.f.Comments, s.Comment))
	case "pull_request_review":
		return s.Key == keyReview(g.f.Review)
	case "pull_request", "push":
		return true // its code changed
	}
	return false
}

// when is the moment of what the notice tells, or now.
func (g *collector) when() time.Time {
	if !g.f.At.IsZero() {
		return g.f.At.UTC().Truncate(time.Millisecond)
	}
	return g.now.Truncate(time.Millisecond)
}

func (g *collector) weigh(ctx context.Context, actor pipeline.Actor) (float64, error) {
	if w, ok := g.weights[actor.ID]; ok {
		return w, nil
	}
	w, err := g.app.Weight(ctx, g.run.Repo, actor)
	if err == nil {
		g.weights[actor.ID] = w
	}
	return w, err
}

// human reports whether somebody is a person with an account, as far as names tell.
func (g *collector) human(a pipeline.Actor) bool {
	return a.ID != 0 && !a.Bot && a.ID != g.bot.ID && !feedback.Machine(a.Login)
}

func (g *collector) fact(s pipeline.Signal) { g.facts = append(g.facts, s) }

// all collects everything but reverts.
func (g *collector) all(ctx context.Context) error {
	for i := range g.st.threads {
		t := &g.st.threads[i]
		if fp := g.finding(t.first()); fp != "" {
			if err := g.thread(ctx, t, fp); err != nil {
				return err
			}
		} else {
			g.gap(t)
		}
	}
	g.deleted()
	g.lostGaps()
	if err := g.reviews(ctx); err != nil {
		return err
	}
	return g.ending(ctx)
}

// finding returns the fingerprint of the finding that a comment of Forge's tells
// of in this run, or "".
func (g *collector) finding(c *remarked) string {
	if c.author.ID != g.bot.ID {
		return ""
	}
	return g.marked(c.body)
}

func (g *collector) marked(body string) string {
	for i := range g.run.Findings {
		fp := g.run.Findings[i].Fingerprint()
		if strings.Contains(body, render.Marker(g.run.Trace, render.FindingKey(fp))) {
			return fp
		}
	}
	return ""
}

func keyDismissed(comment int64) string  { return fmt.Sprintf("dismissed/%d", comment) }
func keySuggestion(comment int64) string { return fmt.Sprintf("suggestion/%d", comment) }
func keyMended(comment int64) string     { return fmt.Sprintf("mended/%d", comment) }
func keyGap(comment int64) string        { return fmt.Sprintf("gap/%d", comment) }
func keyReview(id int64) string          { return fmt.Sprintf("review/%d", id) }
func keyEdit(sha, path string) string    { return fmt.Sprintf("edit/%.12s/%s", sha, path) }
func (g *collector) keyPull(what string) string {
	return fmt.Sprintf("pull/%s/%s", g.st.node, what)
}

// otherPull takes a comment on a pull request that is not Forge's: there, Forge
// had nothing to say at all. What is deleted, or edited into something that says
// nothing, is taken back; an edit's words take the place of those before.
func (a *App) otherPull(ctx context.Context, n pipeline.Notice) ([]pipeline.Signal, error) {
	f := n.Feedback
	if !a.opts.Gaps || f == nil || f.Event != "pull_request_review_comment" || len(f.Comments) != 1 || f.ReplyTo != 0 || f.Author.Bot || feedback.Machine(f.Author.Login) || written.ByMachine(f.Path) {
		return nil, nil
	}
	s := pipeline.Signal{Key: keyGap(f.Comments[0]), Kind: pipeline.SignalGap, At: f.At, Actor: f.Author, Pull: n.Pull, File: f.Path, Line: f.Line, Comment: f.Comments[0]}
	if s.At.IsZero() {
		s.At = a.opts.Clock().UTC()
	}
	_, command := delivery.ParseCommand(f.Body, a.opts.Slug)
	if s.Off = f.Action == "deleted" || feedback.Chatter(f.Body) || command; s.Off {
		if f.Action == "created" {
			return nil, nil
		}
		return []pipeline.Signal{s}, nil
	}
	var err error
	if s.Weight, err = a.Weight(ctx, n.Repo, f.Author); err != nil || !(s.Weight > 0) {
		return nil, err
	}
	s.Text = kept(f.Body)
	return []pipeline.Signal{s}, nil
}
