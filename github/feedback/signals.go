package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/written"
)

// Input is what Signals starts from.
type Input struct {
	Run    *pipeline.Run
	Notice pipeline.Notice   // a feedback, a push, a closed pull request, or of no kind
	Known  []pipeline.Signal // the run's signals so far (pipeline.KnownSignals)
	Pull   *Pull             // as it stands now
	Bot    pipeline.Actor    // who Forge is there
	Slug   string            // of Forge's commands
	Reads  bool              // a model reads what people answer, before a phrase counts
	Now    time.Time
}

// Signals says what people did with what Forge said or made in a run (H1–H7). It
// is level-triggered, as publishing is: the notice only says that somebody did
// something. What they did is judged by what stands on GitHub now, and what is
// returned is the difference to what is known. So deliveries may come twice and in any
// order: what holds already gives nothing, and what holds no longer comes once more, Off.
//
// A push to the default branch may revert a merged pull request; it is looked at for
// nothing else.
func Signals(ctx context.Context, src Source, in Input) ([]pipeline.Signal, error) {
	g := newCollector(src, in)
	if g.f.Event == "push" && g.n.Branch == g.run.Repo.DefaultBranch {
		return g.finish(ctx, g.reverted)
	}
	return g.finish(ctx, g.all)
}

// collector collects the signals of one run at one moment.
type collector struct {
	src   Source
	slug  string
	reads bool
	run   *pipeline.Run
	n     pipeline.Notice
	f     pipeline.Feedback // of n, empty for a poll
	known map[string]pipeline.Signal
	now   time.Time
	bot   pipeline.Actor
	st    *Pull

	facts   []pipeline.Signal // that hold now
	gone    []string          // keys that hold no longer
	weights map[int64]float64
	history history
}

func newCollector(src Source, in Input) *collector {
	g := &collector{src: src, slug: in.Slug, reads: in.Reads, run: in.Run, n: in.Notice, known: map[string]pipeline.Signal{}, now: in.Now.UTC(), bot: in.Bot,
		st: in.Pull, weights: map[int64]float64{}}
	if g.n.Feedback != nil {
		g.f = *g.n.Feedback
	}
	for _, k := range in.Known {
		if had, ok := g.known[k.Key]; !ok || !k.At.Before(had.At) {
			g.known[k.Key] = k
		}
	}
	g.history = history{g: g, files: map[string][]string{}, patches: map[string][]change{}, names: map[string]map[string]string{}}
	return g
}

// finish collects, and returns the difference to what is known.
func (g *collector) finish(ctx context.Context, collect func(context.Context) error) ([]pipeline.Signal, error) {
	if err := collect(ctx); err != nil {
		return nil, err
	}
	var out []pipeline.Signal
	for _, s := range g.facts {
		s.Pull = g.st.Number
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
	return out, nil
}

// alike reports whether two signals say the same of a fact, whenever it was found.
func alike(a, b *pipeline.Signal) bool {
	return a.Kind == b.Kind && a.Actor.ID == b.Actor.ID && a.Text == b.Text && a.After == b.After && a.Where == b.Where && a.Unsure == b.Unsure
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
	w, err := g.src.Weight(ctx, actor)
	if err == nil {
		g.weights[actor.ID] = w
	}
	return w, err
}

// human reports whether somebody is a person with an account, as far as names tell.
func (g *collector) human(a pipeline.Actor) bool {
	return a.ID != 0 && !a.Bot && a.ID != g.bot.ID && !Machine(a.Login)
}

// blocks reports whether a finding of the run keeps it from being verified.
func (g *collector) blocks(fingerprint string) bool {
	return g.run != nil && slices.ContainsFunc(g.run.Findings, func(is pipeline.Issue) bool {
		return is.Finding != nil && is.Fingerprint() == fingerprint && is.Finding.Severity.Blocks()
	})
}

func (g *collector) fact(s pipeline.Signal) { g.facts = append(g.facts, s) }

// all collects everything but reverts.
func (g *collector) all(ctx context.Context) error {
	for i := range g.st.Threads {
		t := &g.st.Threads[i]
		if fp := g.finding(t.first()); fp != "" {
			for j := range t.Comments {
				c := &t.Comments[j]
				c.strict = g.blocks(fp)
				c.second = slices.ContainsFunc(t.Comments[:j], func(had Comment) bool { return g.human(had.Author) && had.Author.ID != c.Author.ID && had.Hidden == "" })
			}
			if err := g.thread(ctx, t, fp); err != nil {
				return err
			}
		} else if err := g.gap(ctx, t); err != nil {
			return err
		}
	}
	g.deleted()
	g.lost()
	if err := g.reviews(ctx); err != nil {
		return err
	}
	return g.ending(ctx)
}

// finding returns the fingerprint of the finding that a comment of Forge's tells
// of in this run, or "".
func (g *collector) finding(c *Comment) string {
	if c.Author.ID != g.bot.ID {
		return ""
	}
	return g.marked(c.Body)
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

func keyDismissed(comment int64) string    { return fmt.Sprintf("dismissed/%d", comment) }
func keySuggestion(comment int64) string   { return fmt.Sprintf("suggestion/%d", comment) }
func keyFixedByHuman(comment int64) string { return fmt.Sprintf("mended/%d", comment) }
func keyGap(comment int64) string          { return fmt.Sprintf("gap/%d", comment) }
func keyReview(id int64) string            { return fmt.Sprintf("review/%d", id) }
func keyEdit(sha, path string) string      { return fmt.Sprintf("edit/%.12s/%s", sha, path) }
func (g *collector) keyPull(what string) string {
	return fmt.Sprintf("pull/%s/%s", g.st.Node, what)
}

// Gap takes a comment on a pull request that is not Forge's: there, Forge had nothing
// to say at all. What is deleted, or edited into something that says nothing, is taken
// back; an edit's words take the place of those before. The signal has no weight yet.
func Gap(n pipeline.Notice, slug string, now time.Time) (pipeline.Signal, bool) {
	f := n.Feedback
	if f == nil || f.Event != "pull_request_review_comment" || len(f.Comments) != 1 || f.ReplyTo != 0 || f.Author.Bot ||
		Machine(f.Author.Login) || written.ByMachine(f.Path) {
		return pipeline.Signal{}, false
	}
	s := pipeline.Signal{Key: keyGap(f.Comments[0]), Kind: pipeline.SignalGap, At: f.At, Actor: f.Author, Pull: n.Pull, File: f.Path,
		Line: f.Line, Comment: f.Comments[0]}
	if s.At.IsZero() {
		s.At = now.UTC()
	}
	_, command := delivery.ParseCommand(f.Body, slug)
	if s.Off = f.Action == "deleted" || Read(f.Body) != None || Idle(f.Body) || command; s.Off {
		return s, f.Action != "created"
	}
	s.Text = kept(f.Body)
	return s, true
}
