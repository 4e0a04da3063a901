package feedback

import (
	"context"
	"slices"
	"strings"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/written"
)

// around is how many lines from a finding a person's comment may be to be about the
// same thing.
const around = 5

// gap records a person's comment on the diff where Forge had nothing to say (H5). One
// beside a finding names that, and bears nothing: it is feedback all the same (H7).
func (g *collector) gap(ctx context.Context, t *Thread) error {
	c := t.first()
	key := keyGap(c.ID)
	if _, command := delivery.ParseCommand(c.Body, g.slug); !g.human(c.Author) || c.Hidden != "" || command || Read(c.Body) != None || Idle(c.Body) || written.ByMachine(t.Path) {
		g.gone = append(g.gone, key)
		return nil
	}
	generated, err := g.generated(ctx, t)
	if err != nil {
		return err
	}
	if generated {
		g.gone = append(g.gone, key)
		return nil
	}
	beside := ""
	if had := g.known[key]; !g.holds(key) || had.Finding != "" {
		beside = g.covered(t)
	}
	g.fact(pipeline.Signal{Key: key, Kind: pipeline.SignalGap, At: c.Created, Actor: c.Author, File: t.Path, Line: c.Line,
		Before: asCode(commented(c)), Text: kept(c.Body), Comment: c.ID, Finding: beside})
	return nil
}

// markedWithin is how many lines from its top a generated file says so in.
const markedWithin = 10

// generated reports whether a file says of itself that a generator wrote it. It is read
// once: what is known of a remark on it stays.
func (g *collector) generated(ctx context.Context, t *Thread) (bool, error) {
	c := t.first()
	if c.Commit == "" || g.holds(keyGap(c.ID)) {
		return false, nil
	}
	lines, err := g.history.file(ctx, c.Commit, t.Path)
	return written.Marker().MatchString(strings.Join(lines[:min(len(lines), markedWithin)], "\n")), err
}

// holds reports whether a fact is known and was not taken back.
func (g *collector) holds(key string) bool {
	s, ok := g.known[key]
	return ok && !s.Off
}

// covered returns the fingerprint of the finding that Forge has at a conversation's
// place, "" for none.
func (g *collector) covered(t *Thread) string {
	near := func(path string, line, end int) bool {
		return path == t.Path && (t.Whole || line == 0 || line-around <= t.Line && t.Line <= max(line, end)+around)
	}
	for i := range g.st.Threads {
		o := &g.st.Threads[i]
		if fp := g.finding(o.first()); fp != "" && near(o.Path, o.Line-(o.first().Line-o.first().Start), o.Line) {
			return fp
		}
	}
	for _, i := range g.run.Findings {
		if i.Finding != nil && i.Finding.File != "" && near(i.Finding.File, i.Finding.Line, i.Finding.EndLine) {
			return i.Fingerprint()
		}
	}
	return ""
}

// commented returns the lines that a comment is about: the last ones of its hunk.
func commented(c *Comment) []string {
	var out []string
	for _, l := range strings.Split(c.Hunk, "\n") {
		if l != "" && l[0] != '@' && l[0] != '-' && l[0] != '\\' {
			out = append(out, l[1:])
		}
	}
	return out[max(0, len(out)-max(1, c.Line-c.Start+1)):]
}

// lost finds comments of people that are gone.
func (g *collector) lost() {
	for key, s := range g.known {
		if (s.Kind == pipeline.SignalGap || s.Kind == pipeline.SignalAnswered) && !g.st.Partial && !g.listed(s.Comment) {
			g.gone = append(g.gone, key)
		}
	}
	slices.Sort(g.gone)
}

// reviews records what people decided, and what they changed before they approved (H4).
func (g *collector) reviews(ctx context.Context) error {
	for _, r := range g.st.Reviews {
		if !g.human(r.Author) {
			continue
		}
		s := pipeline.Signal{Key: keyReview(r.ID), At: r.At, Actor: r.Author, Text: kept(r.Body)}
		switch r.State {
		case "CHANGES_REQUESTED":
			s.Kind = pipeline.SignalChanges
		case "APPROVED":
			edited, err := g.edits(ctx, r.Commit)
			if err != nil {
				return err
			}
			if edited {
				g.gone = append(g.gone, s.Key)
				continue
			}
			s.Kind = pipeline.SignalApproved
		default:
			g.gone = append(g.gone, s.Key)
			continue
		}
		g.fact(s)
	}
	return nil
}

// edits records what people changed after Forge's last published head, up to a
// commit ("" for the end): one signal for each file of each commit. Suggestions
// that they took over, as they were or rewritten, are not counted once more.
func (g *collector) edits(ctx context.Context, upTo string) (bool, error) {
	steps, err := g.history.load(ctx)
	if err != nil {
		return false, err
	}
	first := 0
	for i := range steps {
		if steps[i].forge {
			first = i + 1
		}
	}
	if at := slices.IndexFunc(steps, func(s step) bool { return s.sha == g.run.Published.Head }); at >= 0 {
		first = at + 1
	}
	if last := slices.IndexFunc(steps, func(s step) bool { return s.sha == upTo }); last >= 0 {
		steps = steps[:last+1]
	}
	found, looked := false, 0
	for i := first; i < len(steps) && looked < maxPeopleCommits; i++ {
		s := &steps[i]
		if !s.person() || s.button {
			continue
		}
		if g.knows(keyEdit(s.sha, "")) {
			found = true
			continue
		}
		if !g.human(s.by) {
			continue
		}
		looked++
		list, err := g.history.patch(ctx, s.sha)
		if err != nil {
			return found, err
		}
		for _, e := range g.byFile(s, list) {
			found = true
			if !slices.ContainsFunc(g.facts, func(f pipeline.Signal) bool { return f.Key == e.Key }) {
				g.fact(e)
			}
		}
	}
	return found, nil
}

// knows reports whether a fact of this kind is known.
func (g *collector) knows(prefix string) bool {
	for k := range g.known {
		if strings.HasPrefix(k, prefix) {
			return true
		}
	}
	return false
}

// byFile makes one signal of all that a commit changed in a file.
func (g *collector) byFile(s *step, list []change) []pipeline.Signal {
	var out []pipeline.Signal
	for _, c := range list {
		if g.taken(c) || written.ByMachine(c.path) {
			continue
		}
		key := keyEdit(s.sha, c.path)
		before, after := asCode(c.before), asCode(c.after)
		if n := len(out); n > 0 && out[n-1].Key == key {
			e := &out[n-1]
			e.Before, e.After = render.Shorten(e.Before+"\n…\n"+before, maxReason), render.Shorten(e.After+"\n…\n"+after, maxReason)
			continue
		}
		out = append(out, pipeline.Signal{Key: key, Kind: pipeline.SignalEdited, At: s.at, Actor: s.by, File: c.path, Line: c.line, Before: before, After: after})
	}
	return out
}

// taken reports whether a change is a suggestion that a person took over.
func (g *collector) taken(c change) bool {
	return slices.ContainsFunc(g.facts, func(f pipeline.Signal) bool {
		if f.Kind != pipeline.SignalApplied && f.Kind != pipeline.SignalRewritten || f.File != c.path && !strings.HasPrefix(f.Where, c.path+":") {
			return false
		}
		now := split(f.After)
		return index(now, c.after) >= 0 || len(now)+len(c.after) == 0
	})
}

// ending records how the pull request ended.
func (g *collector) ending(ctx context.Context) error {
	merged, closed := g.keyPull("merged"), g.keyPull("closed")
	switch g.st.State {
	case "MERGED":
		g.gone = append(g.gone, closed)
		if !g.human(g.st.Merger) {
			return nil
		}
		if _, err := g.edits(ctx, ""); err != nil {
			return err
		}
		g.fact(pipeline.Signal{Key: merged, Kind: pipeline.SignalMerged, At: g.st.Ended, Actor: g.st.Merger})
	case "CLOSED":
		by := g.n.Actor
		if had, ok := g.known[closed]; ok && !had.Off {
			by = had.Actor
		} else if g.f.Event != "pull_request" || g.f.Action != "closed" {
			var err error
			if by, err = g.src.Closer(ctx); err != nil {
				return err
			}
		}
		if g.human(by) {
			g.fact(pipeline.Signal{Key: closed, Kind: pipeline.SignalClosed, At: g.st.Ended, Actor: by})
		}
	default:
		g.gone = append(g.gone, closed)
	}
	return nil
}

// Bounds of a revert: how much of the merged change must be undone, and how many
// of a push's commits are looked at one by one.
const (
	fullInverse   = 0.95 // without a word of it
	namedInverse  = 0.5  // when a trailer says which commit it reverts
	maxPushed     = 30
	maxFiles      = 30 // of the merged change that are compared with the branch
	revertTrailer = "This reverts commit "
)

// reverted looks for a commit that undoes the merged change, in a push to the
// default branch: by what it takes away, not by what it says. While the change
// stands on the branch, it is not reverted, or no longer.
func (g *collector) reverted(ctx context.Context) error {
	if g.st.State != "MERGED" || g.f.Before == "" || strings.Trim(g.f.Before, "0") == "" {
		return nil
	}
	done, err := g.merged(ctx)
	if err != nil || len(done) == 0 {
		return err
	}
	paths, commits, err := g.src.Compare(ctx, g.f.Before, g.n.Head)
	if err != nil || !slices.ContainsFunc(paths, func(p string) bool { return slices.ContainsFunc(done, func(c change) bool { return c.path == p }) }) {
		return err // not there after a forced push: nothing to compare with
	}
	key := g.keyPull("reverted")
	stands, err := g.standing(ctx, done)
	if err != nil {
		return err
	}
	if stands {
		g.gone = append(g.gone, key)
		return nil
	}
	for i, c := range commits {
		if i == maxPushed {
			break
		}
		if c.SHA == g.st.Merge {
			continue
		}
		patch, err := g.history.patch(ctx, c.SHA)
		if err != nil {
			return err
		}
		share := undoes(patch, done)
		named := g.st.Merge != "" && strings.Contains(c.Message, revertTrailer+g.st.Merge)
		if share >= fullInverse || named && share >= namedInverse {
			g.facts = []pipeline.Signal{{Key: key, Kind: pipeline.SignalReverted, At: c.At, Actor: g.n.Actor,
				Text: kept(c.Message)}}
		}
	}
	return nil
}

// standing reports whether at least half of a change is on the default branch now.
func (g *collector) standing(ctx context.Context, done []change) (bool, error) {
	there, total, files := 0, 0, map[string]bool{}
	for _, c := range done {
		if files[c.path] = true; len(files) > maxFiles {
			break
		}
		now, err := g.history.file(ctx, g.run.Repo.DefaultBranch, c.path)
		if err != nil {
			return false, err
		}
		lines, stands := c.after, index(now, c.after) >= 0
		if len(lines) == 0 {
			lines, stands = c.before, index(now, c.before) < 0
		}
		if total += len(lines); stands {
			there += len(lines)
		}
	}
	return 2*there >= total, nil
}

// merged returns what the pull request changed.
func (g *collector) merged(ctx context.Context) ([]change, error) {
	list, err := g.src.Files(ctx)
	var out []change
	for _, p := range list {
		if p.Hunks == "" && p.Lines > 0 {
			return nil, err // too big to be shown: what cannot be compared proves nothing
		}
		out = append(out, changes(p.Path, p.Hunks)...)
	}
	return out, err
}
