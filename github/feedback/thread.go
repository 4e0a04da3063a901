package feedback

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/record"
)

// outcome is what became of the lines that a comment is about.
type outcome struct {
	known   bool     // the lines could be read at all
	old     []string // as they were commented
	after   []string // what stands in their place now
	stands  bool     // they are still there
	stood   bool     // they were still there at the notice's head
	touched bool     // a person had changed them, or what is next to them, by then
	people  bool     // they are as a person changed them
	ever    bool     // a person changed them at some time
	closed  bool     // Forge or a merge changed them: there is nothing left to follow
	kind    pipeline.SignalKind
	by      step   // the commit that decided kind
	mender  step   // the commit by a person since which the lines are other than they were
	forced  bool   // the commented commit is no longer part of the pull request
	where   string // of an applied suggestion: "" in its place
	partly  bool   // they stand, with a part of the suggestion beside them
	suggest []string
	has     bool // it has a suggestion
}

// suggested finds the first suggestion in a comment, as GitHub would apply it. One
// inside another block is only shown.
func suggested(body string) ([]string, bool) {
	lines := strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	open, first := "", -1
	for i, l := range lines {
		t := strings.TrimSpace(l)
		marks := t[:len(t)-len(strings.TrimLeft(t, "`"))]
		switch info := strings.TrimSpace(t[len(marks):]); {
		case open == "" && len(marks) >= 3 && !strings.Contains(info, "`"):
			open = marks
			if info == "suggestion" {
				first = i + 1
			}
		case open != "" && len(marks) >= len(open) && info == "":
			if first >= 0 {
				return split(strings.Join(append(slices.Clone(lines[first:i]), ""), "\n")), true
			}
			open = ""
		}
	}
	return nil, false
}

// follow judges by content, commit by commit, what became of a comment's lines.
func (g *collector) follow(ctx context.Context, t *Thread) (outcome, error) {
	c := t.first()
	v := outcome{}
	v.suggest, v.has = suggested(c.Body)
	if c.Line == 0 || t.Whole {
		return v, nil
	}
	cur, err := g.history.file(ctx, c.Commit, t.Path)
	if err != nil || c.Start < 1 || c.Line > len(cur) {
		return v, err
	}
	steps, err := g.history.since(ctx, c.Commit)
	if err != nil {
		return v, err
	}
	if v.forced = len(steps) > 0 && !g.history.has(c.Commit); v.forced {
		if steps, err = g.withForge(ctx, steps, c.Commit, t.Path); err != nil {
			return v, err
		}
	}
	at := place{c.Start - 1, c.Line}
	v.old, v.known, v.stands = at.of(cur), true, true
	v.after = v.old
	seen := g.n.Head == c.Commit
	v.stood = seen
	path := t.Path
	for i := range steps {
		s := &steps[i]
		if path, err = g.history.renamed(ctx, s, path); err != nil {
			return v, err
		}
		if cur, at, err = g.advance(ctx, &v, path, cur, at, s); err != nil {
			return v, err
		}
		if s.sha == g.n.Head {
			seen, v.stood, v.touched = true, v.stands, v.ever
		}
		if v.closed {
			break
		}
	}
	if !seen {
		v.stood, v.touched = v.stands, v.ever
	}
	return v, nil
}

// withForge puts what Forge itself last published before the only commit that is left
// after a forced push: what is in it was made by nobody else.
func (g *collector) withForge(ctx context.Context, steps []step, commented, path string) ([]step, error) {
	head := g.run.Published.Head
	if head == "" || head == commented || slices.ContainsFunc(steps, func(s step) bool { return s.sha == head }) {
		return steps, nil
	}
	lines, err := g.history.file(ctx, head, path)
	if err != nil || lines == nil {
		return steps, err
	}
	return append([]step{{sha: head, forge: true}}, steps...), nil
}

// advance follows the lines through one commit.
func (g *collector) advance(ctx context.Context, v *outcome, path string, cur []string, at place, s *step) ([]string, place, error) {
	touched, err := g.history.touches(ctx, s, path)
	if err != nil {
		return cur, at, err
	}
	if touched || v.forced { // the head stands for commits that are not looked at
		next, err := g.history.file(ctx, s.sha, path)
		if err != nil {
			return cur, at, err
		}
		to := follow(cur, next, at)
		kind, stands := v.judge(next, &to)
		moved := !slices.Equal(to.of(next), at.of(cur))
		if moved && !stands && kind != pipeline.SignalApplied && next != nil && s.person() {
			same, err := g.carried(ctx, v, s, path, cur, next, at, to)
			if err != nil || same {
				return next, to, err
			}
		}
		switch {
		case next == nil: // gone, or too big
			v.stands, v.people, v.ever, v.closed = false, s.person(), s.person(), true
		case !moved:
		case s.person():
			v.stands, v.after, v.where = stands, to.of(next), ""
			v.people, v.ever = !stands, true
			if v.kind, v.by = kind, *s; kind == "" {
				v.by = step{}
			}
			switch { // a change next to it later is not told from one of it
			case stands:
				v.mender = step{}
			case v.mender.sha == "":
				v.mender = *s
			}
		default: // what a person did before stays as it was
			v.stands, v.closed = stands, true
		}
		cur, at = next, to
	}
	if v.has && v.kind != pipeline.SignalApplied && s.person() && telling(v.suggest) {
		list, err := g.history.patch(ctx, s.sha)
		if err != nil {
			return cur, at, err
		}
		for _, c := range list {
			if i := index(c.after, v.suggest); i >= 0 && index(c.before, v.suggest) < 0 {
				v.kind, v.by, v.where = pipeline.SignalApplied, *s, fmt.Sprintf("%s:%d", c.path, c.line+i)
			}
		}
	}
	return cur, at, nil
}

// judge compares what stands in the place now with the lines as they were and with
// the suggestion, and narrows the place to what it found.
func (v *outcome) judge(lines []string, at *place) (kind pipeline.SignalKind, stands bool) {
	now := at.of(lines)
	narrow := func(i, n int) { at.first, at.last = at.first+i, at.first+i+n }
	old, sug := index(now, v.old), index(now, v.suggest)
	v.partly = false
	if v.has && same(now, v.suggest) {
		return pipeline.SignalApplied, false
	}
	if v.has && sug >= 0 && (old < 0 || index(v.suggest, v.old) >= 0) {
		narrow(sug, len(v.suggest))
		return pipeline.SignalApplied, false
	}
	if old >= 0 {
		if v.partly = v.has && partOf(now, v.suggest, v.old); !v.partly {
			narrow(old, len(v.old))
		}
		return "", true
	}
	if reformatted(now, v.old) {
		return "", true
	}
	if i := index(lines, v.old); i >= 0 && telling(v.old) { // moved as they were
		at.first, at.last = i, i+len(v.old)
		return "", true
	}
	if v.has {
		return pipeline.SignalRewritten, false
	}
	return "", false
}

// partOf reports whether a line that a suggestion adds to the old ones stands among lines.
func partOf(lines, suggest, old []string) bool {
	bare := func(list []string) map[string]bool {
		out := map[string]bool{}
		for _, l := range list {
			out[strings.TrimSpace(l)] = true
		}
		return out
	}
	had, now := bare(old), bare(lines)
	return slices.ContainsFunc(suggest, func(l string) bool {
		l = strings.TrimSpace(l)
		return now[l] && !had[l] && telling([]string{l})
	})
}

// thread judges one of Forge's findings: whether it was dismissed, what became of
// its suggestion, and of one without whether a person mended it.
func (g *collector) thread(ctx context.Context, t *Thread, fp string) error {
	c := t.first()
	_, has := suggested(c.Body)
	var v outcome
	settled := t.Resolved || g.st.State == "MERGED"
	need := has && g.holds(keySuggestion(c.ID)) || g.human(t.Resolver) && t.Resolved || settled && (has && g.st.State == "MERGED" || g.readRefusal(t) != nil)
	if !need && (has || settled) {
		var err error
		if need, err = g.history.people(ctx, c.Commit); err != nil {
			return err
		}
	}
	if need {
		var err error
		if v, err = g.follow(ctx, t); err != nil {
			return err
		}
	}
	about := pipeline.Signal{Finding: fp, File: t.Path, Line: c.Line, Comment: c.ID, Before: asCode(v.old)}
	dismissed, err := g.dismissed(ctx, t, about, v)
	if err != nil {
		return err
	}
	g.answered(t, about)
	if err := g.refused(ctx, t, about, v, settled && !dismissed); err != nil {
		return err
	}
	if has {
		return g.suggestion(ctx, t, about, v, dismissed)
	}
	refused := slices.ContainsFunc(g.facts, func(f pipeline.Signal) bool { return f.Key == keyDismissed(c.ID) && f.Weight > 0 })
	return g.fixedByHuman(ctx, t, about, v, settled && !refused)
}

// fixedByHuman records that a person changed what a finding without a suggestion is about,
// and that it was settled so: its conversation was resolved, by whomever, or the pull
// request merged. Until then it may be half of a change. The word of somebody here
// that it is wrong counts more than a change that may have another reason.
func (g *collector) fixedByHuman(ctx context.Context, t *Thread, s pipeline.Signal, v outcome, settled bool) error {
	s.Key = keyFixedByHuman(t.first().ID)
	if settled && v.forced && v.mender.sha != "" {
		var err error
		if v.mender, err = g.history.took(ctx, t.Path, v.old); err != nil {
			return err
		}
	}
	if !settled || v.mender.sha == "" {
		g.gone = append(g.gone, s.Key)
		return nil
	}
	by := v.mender.by
	if !g.human(by) || v.mender.vouched { // an address that GitHub does not know: who settled it vouches for it
		for _, who := range []pipeline.Actor{g.st.Merger, t.Resolver} {
			if g.human(who) {
				by = who
			}
		}
	}
	s.Kind, s.At, s.Actor, s.After = pipeline.SignalFixedByHuman, v.mender.at, by, asCode(v.after)
	s.Waited = waited(s.At, t.first().Created)
	g.fact(s)
	return nil
}

func (g *collector) suggestion(ctx context.Context, t *Thread, s pipeline.Signal, v outcome, dismissed bool) error {
	c := t.first()
	s.Key = keySuggestion(c.ID)
	had := g.known[s.Key]
	if stays, err := g.stays(ctx, t, &had, &v); err != nil || stays {
		had.Off = false
		g.fact(had)
		return err
	}
	switch {
	case v.kind != "":
		if v.forced { // the head alone does not tell whose doing it is
			by, err := g.history.took(ctx, t.Path, v.old)
			if err != nil {
				return err
			}
			if by.sha != "" {
				v.by = by
			}
		}
		s.Kind, s.At, s.Actor, s.Where, s.Button = v.kind, v.by.at, v.by.by, v.where, v.by.button
		s.After = asCode(v.after)
		if v.where != "" {
			s.After = asCode(v.suggest)
		}
	case g.st.State == "MERGED" && v.known && v.stands && !v.partly && !dismissed && g.human(g.st.Merger): // one that was taken in part was neither
		if there, err := g.stands(ctx, t, v.suggest, v.forced); err != nil || there {
			g.gone = append(g.gone, s.Key)
			return err
		}
		s.Kind, s.At, s.Actor, s.Implied = pipeline.SignalIgnored, g.st.Ended, g.st.Merger, true
		s.After = asCode(v.after)
	default:
		g.gone = append(g.gone, s.Key)
		return nil
	}
	s.Before = asCode(v.suggest)
	if !g.human(s.Actor) && g.human(had.Actor) && !had.Off && had.Kind == s.Kind && had.After == s.After && had.Where == s.Where {
		s.Actor, s.Weight, s.At = had.Actor, had.Weight, had.At // who pushed it vouched for an address that GitHub does not know: that is told once
	}
	s.Waited = waited(s.At, c.Created)
	g.fact(s)
	return nil
}

// stays reports whether what a person made of a suggestion stands, although it cannot be
// followed: the commits that led there are gone after a forced push, or its file is another.
func (g *collector) stays(ctx context.Context, t *Thread, had *pipeline.Signal, v *outcome) (bool, error) {
	if had.Kind != pipeline.SignalApplied && had.Kind != pipeline.SignalRewritten || !g.human(had.Actor) || !v.forced && (v.kind != "" || v.stands) {
		return false, nil
	}
	code := split(had.After)
	if had.Kind == pipeline.SignalApplied {
		code = v.suggest
	}
	return g.stands(ctx, t, code, true)
}

// stands reports whether code is in a conversation's file at the head, or in any file that
// the pull request changes. Code that stands everywhere is nowhere.
func (g *collector) stands(ctx context.Context, t *Thread, code []string, anywhere bool) (bool, error) {
	steps, err := g.history.load(ctx)
	if err != nil || len(steps) == 0 || !telling(code) {
		return false, err
	}
	paths := []string{t.Path}
	if anywhere {
		list, err := g.src.Files(ctx)
		if err != nil {
			return false, err
		}
		for _, p := range list[:min(len(list), maxFiles)] {
			paths = append(paths, p.Path)
		}
	}
	for _, p := range paths {
		lines, err := g.history.file(ctx, steps[len(steps)-1].sha, p)
		if err != nil || index(lines, code) >= 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// waited is the time between two moments in milliseconds, never negative.
func waited(at, since time.Time) int64 {
	if since.IsZero() {
		return 0
	}
	return max(0, at.Sub(since).Milliseconds())
}

// reason is one way in which a finding is dismissed.
type reason struct {
	by      pipeline.Actor
	at      time.Time
	text    string
	weight  float64
	command bool // it says what is to be, whatever the code is
	doubted bool // what they said since nobody has read
}

// dismissed records whether the finding is dismissed, by whom and why. There may be
// several ways at once; the weightiest word counts, a reason before none, then the
// first.
func (g *collector) dismissed(ctx context.Context, t *Thread, s pipeline.Signal, v outcome) (bool, error) {
	c := t.first()
	s.Key, s.Kind = keyDismissed(c.ID), pipeline.SignalDismissed
	list := g.refusals(t)
	clicked, err := g.clicks(ctx, t, v)
	if err != nil {
		return false, err
	}
	list = append(list, clicked...)
	for i := range list {
		if list[i].weight > 0 {
			continue
		}
		if list[i].weight, err = g.weigh(ctx, list[i].by); err != nil {
			return false, err
		}
	}
	if len(list) == 0 {
		g.gone = append(g.gone, s.Key)
		return false, nil
	}
	best := slices.MinFunc(list, func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(min(1, len(b.text)), min(1, len(a.text))), a.at.Compare(b.at))
	})
	s.Actor, s.At, s.Text, s.Weight, s.Waited = best.by, best.at, kept(best.text), best.weight, waited(best.at, c.Created)
	against, err := g.contested(ctx, t, &best)
	if err != nil {
		return false, err
	}
	s.Unsure = against || best.doubted || !best.command && (v.people || v.kind == pipeline.SignalApplied)
	g.fact(s)
	return true, nil
}

// contested reports whether somebody else with write access, by what they said last, lets a
// dismissal stand alone: after it, in words that are no dismissal themselves; before it, that
// the finding is right. A command decides what was said before.
func (g *collector) contested(ctx context.Context, t *Thread, of *reason) (bool, error) {
	last := map[int64]*Comment{}
	for i := range t.Comments[1:] {
		if c := &t.Comments[1+i]; g.human(c.Author) && c.Hidden == "" && c.Author.ID != of.by.ID {
			last[c.Author.ID] = c
		}
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		c := last[id]
		st, _, _ := g.stance(c)
		objects := st == Agree && !of.command
		if of.text == "" || !c.Updated.Before(of.at) { // a click answers no words
			objects = g.objects(c, st)
		}
		if !objects {
			continue
		}
		if w, err := g.weigh(ctx, c.Author); err != nil || w > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// objects reports whether words that follow a dismissal may speak against it: all but another
// dismissal, a question, and a phrase that says nothing.
func (g *collector) objects(c *Comment, st Stance) bool {
	if _, command := delivery.ParseCommand(c.Body, g.slug); command || asks(c.Body) || Read(c.Body) == Nothing {
		return false
	}
	if r := g.reading(c); r != nil && (r.Meaning == record.MeaningRefuses || r.Meaning == record.MeaningQuestion) {
		return false
	}
	return st != Dismiss
}

// refusals are the people whose last plain word in the conversation refuses the
// finding.
func (g *collector) refusals(t *Thread) []reason {
	last := map[int64]*reason{}
	var order []int64
	for i := range t.Comments[1:] {
		c := &t.Comments[1+i]
		if !g.human(c.Author) || c.Hidden != "" {
			continue
		}
		st, text, _ := g.stance(c)
		if had := g.known[keyDismissed(t.first().ID)]; st == None && text != "" && !had.Off && had.Actor.ID == c.Author.ID && had.Text == kept(text) {
			st = Dismiss // it was taken so once, and is not taken back
		}
		switch {
		case st == Agree:
			delete(last, c.Author.ID)
		case st == Dismiss:
			if last[c.Author.ID] == nil {
				order = append(order, c.Author.ID)
			}
			_, command := delivery.ParseCommand(c.Body, g.slug)
			last[c.Author.ID] = &reason{by: c.Author, at: c.Updated, text: text, command: command}
		case last[c.Author.ID] != nil && !last[c.Author.ID].command && g.unread(c):
			last[c.Author.ID].doubted = true
		}
	}
	var out []reason
	for _, id := range slices.Compact(order) {
		if r := last[id]; r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// clicks are the ways to dismiss a finding without a word.
func (g *collector) clicks(ctx context.Context, t *Thread, v outcome) ([]reason, error) {
	c := t.first()
	had, known := g.known[keyDismissed(c.ID)]
	known = known && !had.Off
	mine := func(event string) bool { return g.f.Event == event && g.human(g.n.Actor) }
	var out []reason
	for _, d := range c.Downs {
		if g.human(d.By) {
			out = append(out, reason{by: d.By, at: d.At})
		}
	}
	told := mine("pull_request_review_thread") && g.f.Thread == t.Node && g.f.Action == "resolved"
	plain := known || v.stands && !v.ever // what a person changed in between may have been why
	if told {
		plain = v.stood && !v.touched
	}
	if t.Resolved && g.human(t.Resolver) && v.known && !v.people && plain {
		r := reason{by: t.Resolver, at: g.now}
		switch {
		case told:
			r.at = g.when()
		case known && had.Actor.ID == t.Resolver.ID:
			r.at = had.At
		}
		other, err := g.otherReason(ctx, t, r, told || known)
		if err != nil {
			return nil, err
		}
		if !other {
			out = append(out, r)
		}
	}
	if c.Hidden != "" && !silent[strings.ToLower(c.Hidden)] {
		r := reason{at: g.now, text: "hidden as " + c.Hidden, weight: weightHidden}
		if known && nobody(had.Actor) {
			r.at = had.At
		}
		out = append(out, r)
	}
	for _, rv := range g.st.Reviews {
		if rv.ID != c.Review || rv.State != "DISMISSED" || rv.Author.ID != g.bot.ID {
			continue
		}
		switch {
		case mine("pull_request_review") && g.f.Review == rv.ID:
			out = append(out, reason{by: g.n.Actor, at: g.when()})
		case known:
			out = append(out, reason{by: had.Actor, at: had.At, text: had.Text, weight: had.Weight})
		}
	}
	return out, nil
}

// deleted finds comments of Forge's that are gone: by the delivery, which has who
// and what, or because the run knows of a comment that is not there.
func (g *collector) deleted() {
	if g.f.Event == "pull_request_review_comment" && g.f.Action == "deleted" && g.f.Author.ID == g.bot.ID && len(g.f.Comments) == 1 && g.human(g.n.Actor) {
		if fp := g.marked(g.f.Body); fp != "" {
			g.fact(pipeline.Signal{Key: keyDismissed(g.f.Comments[0]), Kind: pipeline.SignalDismissed, At: g.when(), Actor: g.n.Actor, Finding: fp,
				File: g.f.Path, Line: g.f.Line, Comment: g.f.Comments[0], Waited: waited(g.when(), g.f.Created), Text: "deleted"})
		}
	}
	for i := range g.run.Findings {
		is := &g.run.Findings[i]
		a := g.run.Published.Artefacts[render.FindingKey(is.Fingerprint())]
		key := keyDismissed(a.ID)
		if a.ID == 0 || g.st.Partial || is.Finding == nil || g.listed(a.ID) {
			continue
		}
		g.gone = append(g.gone, keyFixedByHuman(a.ID), keyRefused(a.ID))
		if g.holds(key) || slices.ContainsFunc(g.facts, func(s pipeline.Signal) bool { return s.Key == key }) {
			continue // whoever deleted it meant it
		}
		g.fact(pipeline.Signal{Key: key, Kind: pipeline.SignalDismissed, At: g.now, Weight: weightHidden, Finding: is.Fingerprint(),
			File: is.Finding.File, Line: is.Finding.Line, Comment: a.ID, Text: "deleted"})
	}
}

// listed reports whether a comment is there.
func (g *collector) listed(id int64) bool {
	return slices.ContainsFunc(g.st.Threads, func(t Thread) bool {
		return slices.ContainsFunc(t.Comments, func(c Comment) bool { return c.ID == id })
	})
}
