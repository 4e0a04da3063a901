package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/glob"
	"forge/pipeline/text"
)

// claim is a finding that was open before this review, and what is known of it now.
type claim struct {
	id      string // in the prompt, "F1"
	issue   *pipeline.Issue
	outcome change.Fate
	since   bool   // whether anything at all was committed since it was last seen
	back    bool   // it was ruled fixed, and the code that this was said of is another now
	foreign bool   // its place is not the module's to change
	fix     bool   // whether another file was changed, which the reviewer's own fix of it names
	said    string // the implementer, of it
	part    int    // which part of the change it is ruled on with
}

// changed is what a ruling says of the code; see pipeline.Ruling: its place has changed, or,
// where it has none, it is a person's wish or the place is another module's, anything.
func (c *claim) changed() bool {
	if c.anywhere() {
		return c.since
	}
	return c.outcome.Changed || c.fix
}

// anywhere reports whether any commit may fix it.
func (c *claim) anywhere() bool {
	f := c.issue.Finding
	return f.File == "" || f.Category == pipeline.CategoryHuman || c.foreign
}

// aboutCode reports whether a finding is about what the code does, which no comment changes.
func aboutCode(f *pipeline.Finding) bool {
	switch f.Category {
	case pipeline.CategoryCorrectness, pipeline.CategorySecurity, pipeline.CategoryPerformance, pipeline.CategoryRequirements, pipeline.CategoryTests:
		return true
	}
	return false
}

// claims collects the open findings of earlier reviews and of people, and those that were
// fixed and whose code is another now. Those of stage one, that a criterion is not met, are
// apart: that stage rules on them.
func (p *phase) claims(ctx context.Context) (list, criteria []*claim, err error) {
	run := p.job.Run
	patches := map[string]*change.Change{}
	for i := range run.Findings {
		is := &run.Findings[i]
		if is.Finding == nil || is.Phase == pipeline.PhaseTest || is.State != pipeline.IssueOpen && !mayBeBack(run, is) {
			continue
		}
		c := &claim{id: fmt.Sprintf("F%d", len(list)+1), issue: is, said: answered(run, is.Finding)}
		if err := p.follow(ctx, c, patches); err != nil {
			return nil, nil, err
		}
		if is.State == pipeline.IssueFixed {
			if c.back, err = p.another(ctx, c, patches); err != nil {
				return nil, nil, err
			}
			if !c.back {
				continue
			}
		}
		if is.Finding.Criterion != "" {
			criteria = append(criteria, c)
		} else {
			list = append(list, c)
		}
	}
	return list, criteria, nil
}

// mayBeBack reports whether a later commit may have brought back what was fixed.
func mayBeBack(run *pipeline.Run, is *pipeline.Issue) bool {
	return is.State == pipeline.IssueFixed && is.FixedIn != run.Head && is.Finding.Severity.Blocks() && is.Finding.Criterion == ""
}

// another reports whether the code that a finding was ruled fixed on is another now: at its
// place, or, where any commit may have fixed it, in any file that was there. A ruling is for the
// code that it was made on.
func (p *phase) another(ctx context.Context, c *claim, patches map[string]*change.Change) (bool, error) {
	fixed, err := p.since(ctx, c.issue.FixedIn, patches)
	if fixed == nil || err != nil {
		return p.job.Since != nil && c.issue.FixedIn != "" && err == nil, err // nobody knows what it was
	}
	if c.anywhere() || !c.outcome.Changed {
		return slices.ContainsFunc(fixed.Files, func(f *change.File) bool { return f.From != "" }), nil
	}
	now, stop := p.head(ctx)
	place := change.Place{File: firstOf(c.outcome.File, c.issue.Finding.File), Line: c.outcome.Line, End: c.outcome.End, CodeAlone: aboutCode(c.issue.Finding)}
	return fixed.Differs(place, now), stop()
}

// since is what was changed since a commit, nil when that is not known here any more.
func (p *phase) since(ctx context.Context, commit string, patches map[string]*change.Change) (*change.Change, error) {
	if patch, known := patches[commit]; known {
		return patch, nil
	}
	var patch *change.Change
	if commit == p.job.Run.Head {
		patch = &change.Change{}
	} else if commit != "" && p.job.Since != nil {
		text, err := p.job.Since(ctx, commit)
		if err != nil && ends(ctx, err) {
			return nil, err
		}
		if err == nil {
			read := change.Read(text)
			patch = &read
		}
	}
	patches[commit] = patch
	return patch, nil
}

// follow finds out what became of a finding's place since it was last seen.
func (p *phase) follow(ctx context.Context, c *claim, patches map[string]*change.Change) error {
	run, f := p.job.Run, c.issue.Finding
	seen := lastSeen(run, c.issue)
	patch, err := p.since(ctx, seen, patches)
	if err != nil {
		return err
	}
	c.since = seen != "" && seen != run.Head && (patch == nil || len(patch.Files) > 0)
	if f.File == "" {
		return nil
	}
	now, stop := p.head(ctx)
	c.foreign = run.Part != nil && !slices.ContainsFunc(run.Part.Module.Paths, func(pattern string) bool { return glob.Match(pattern, f.File) })
	place := change.Place{File: f.File, Line: f.Line, End: f.EndLine, Code: f.Code, CodeAlone: aboutCode(f)}
	if patch != nil {
		c.outcome = patch.Follow(place, now)
		named := f.Fix.Files()
		c.fix = slices.ContainsFunc(patch.Files, func(cf *change.File) bool { return cf.Path != f.File && slices.Contains(named, cf.Path) })
		return stop()
	}
	// The commit is not known here any more. Code that still stands has not changed.
	c.outcome = change.Change{}.Follow(place, now)
	if content, ok := now(f.File); ok && f.Code != "" {
		c.outcome.Changed = !change.Holds(content, f.Code)
	}
	return stop()
}

// lastSeen is the commit at which a finding was last listed, "" when nobody knows.
func lastSeen(run *pipeline.Run, is *pipeline.Issue) string {
	if is.Seen != "" {
		return is.Seen
	}
	for i := range run.Iterations {
		if it := &run.Iterations[i]; it.Number == is.Last && it.Review != nil {
			return it.Review.Head
		}
	}
	return ""
}

// head returns a reader of the files at the run's head, and what says whether the
// phase has to end because of one of them.
func (p *phase) head(ctx context.Context) (now func(string) (string, bool), stop func() error) {
	var fatal error
	now = func(file string) (string, bool) {
		clean, err := inside(file)
		if err != nil || p.job.Workspace == nil || fatal != nil {
			return "", false
		}
		data, err := p.job.Workspace.Read(ctx, clean)
		if err != nil && ends(ctx, err) {
			fatal = err
		}
		return string(data), err == nil && isText(data)
	}
	return now, func() error { return fatal }
}

// answered is what the implementer said of a finding in the current iteration.
func answered(run *pipeline.Run, f *pipeline.Finding) string {
	it := run.Current()
	if it == nil || it.Impl == nil {
		return ""
	}
	return said(it.Impl, titleOf(f))
}

// said is what an implementation says of what has a title; see feedback.check.
func said(impl *pipeline.Implementation, title string) string {
	for _, a := range impl.Addressed {
		if _, what, ok := strings.Cut(a, "("+title+"): "); ok {
			return what
		}
	}
	return ""
}

// disputed is why the implementer thinks that a finding is mistaken.
func disputed(run *pipeline.Run, is *pipeline.Issue) string {
	if is.Disputed != "" {
		return is.Disputed
	}
	if it := run.Current(); it != nil && it.Impl != nil {
		for _, d := range it.Impl.Disputes {
			if d.Finding == is.Fingerprint() {
				return d.Why
			}
		}
	}
	return ""
}

func titleOf(f *pipeline.Finding) string { return text.ClipBytes(text.FirstLine(f.Message), 100) }

// shortPrint is as much of a fingerprint as people and models need.
func shortPrint(s string) string { return s[:min(8, len(s))] }

// claimList shows claims to the reviewer.
func (p *phase) claimList(list []*claim) string {
	var b strings.Builder
	for _, c := range list {
		f := c.issue.Finding
		by := ""
		if f.Category == pipeline.CategoryHuman {
			by = ", asked for by a person"
		}
		fmt.Fprintf(&b, "%s [%s, %s, %s%s]%s %s\n", c.id, f.Severity, f.Category, shortPrint(f.Fingerprint), by, where(f.File, f.Line, f.EndLine), f.Message)
		if f.Code != "" {
			fmt.Fprintf(&b, "   the code was:\n%s\n", indent(text.ClipBytes(f.Code, 1500)))
		}
		b.WriteString(c.history())
		if c.said != "" {
			fmt.Fprintf(&b, "   the implementer says: %s\n", text.ClipBytes(c.said, 800))
		}
		if why := disputed(p.job.Run, c.issue); why != "" {
			fmt.Fprintf(&b, "   THE IMPLEMENTER DISPUTES IT: %s\n", text.ClipBytes(why, 1500))
		}
		if c.issue.Ruling != "" {
			fmt.Fprintf(&b, "   the last ruling on it said: %s\n", text.ClipBytes(c.issue.Ruling, 500))
		}
		if n := c.issue.Upheld; n > 0 {
			fmt.Fprintf(&b, "   it was upheld against a dispute %d× already\n", n)
		}
	}
	return b.String()
}

// history says what became of the code, and of what fixed it.
func (c *claim) history() string {
	if c.back {
		return "   IT WAS RULED FIXED, AND THE CODE HAS CHANGED SINCE: rule on the code as it is now\n" + c.fate()
	}
	return c.fate()
}

func (c *claim) fate() string {
	f := c.issue.Finding
	switch {
	case f.File == "" && c.since:
		return "   since then: commits were made; it has no place in the code\n"
	case f.File == "":
		return "   since then: no commit was made\n"
	case !c.outcome.Changed && !c.changed():
		return "   since then: THE CODE AT ITS PLACE HAS NOT CHANGED\n"
	case !c.outcome.Changed:
		return "   since then: the code at its place has not changed, other code has\n"
	case c.outcome.File == "":
		return "   since then: the file is gone\n"
	}
	moved := ""
	if c.outcome.File != f.File {
		moved = ", the file is now " + c.outcome.File
	}
	out := "   since then: the code at its place has changed" + moved + "\n"
	if c.outcome.Excerpt != "" {
		out += indent(c.outcome.Excerpt) + "\n"
	}
	return out
}

var rulingsSchema = listOf(object(
	"id", typed("string", "The open finding's id, such as F1."),
	"verdict", oneOf("What has become of it.", "fixed", "open", "withdrawn"),
	"why", typed("string", "The code or the test that shows it. Of a withdrawn one: why it is no problem, or where it is handled."),
), "One for each open finding that was listed. Leave it out when none was.")

// maxAsked is how often the reviewer is asked again for its rulings alone.
const maxAsked = 2

// docket takes the reviewer's rulings on the claims that it was shown.
type docket struct {
	claims  []*claim
	asked   int
	rulings map[*claim]pipeline.Ruling
}

// take reads rulings. What is missing or cannot be is asked for again, twice; what
// still lacks a ruling then stays open.
func (d *docket) take(args json.RawMessage) []string {
	var in struct {
		Rulings []struct{ ID, Verdict, Why string }
	}
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	d.rulings = map[*claim]pipeline.Ruling{}
	var bad []string
	for _, r := range in.Rulings {
		c := d.find(r.ID)
		if c == nil {
			bad = append(bad, fmt.Sprintf("rulings: there is no open finding %q; %s", text.ClipBytes(r.ID, 40), d.ids()))
			continue
		}
		ruling, why := c.rule(r.Verdict, strings.TrimSpace(r.Why))
		if why != "" {
			bad = append(bad, why)
		}
		if _, twice := d.rulings[c]; twice && d.rulings[c].Verdict != ruling.Verdict {
			bad = append(bad, fmt.Sprintf("rulings: %s is ruled on twice, differently", c.id))
			ruling.Verdict = pipeline.VerdictOpen
		}
		if ruling.Verdict != "" {
			d.rulings[c] = ruling
		}
	}
	for _, c := range d.claims {
		if _, ok := d.rulings[c]; !ok && c.issue.Finding.Severity.Blocks() && !mentions(bad, c.id) {
			bad = append(bad, fmt.Sprintf("rulings: %s (%s) has none: is it fixed, open or withdrawn?", c.id, titleOf(c.issue.Finding)))
		}
	}
	if len(bad) > 0 {
		if d.asked++; d.asked > maxAsked {
			return nil
		}
	}
	return bad
}

func mentions(problems []string, id string) bool {
	return slices.ContainsFunc(problems, func(s string) bool { return strings.Contains(s, " "+id+" ") })
}

// rule reads one ruling; problem says what is wrong with it. Its verdict is "" when it is
// none.
func (c *claim) rule(verdict, why string) (r pipeline.Ruling, problem string) {
	f := c.issue.Finding
	r = pipeline.Ruling{Finding: f.Fingerprint, Why: why, Changed: c.changed()}
	switch v := pipeline.Verdict(strings.ToLower(strings.TrimSpace(verdict))); {
	case v != pipeline.VerdictFixed && v != pipeline.VerdictOpen && v != pipeline.VerdictWithdrawn:
		return r, fmt.Sprintf("rulings: %s has the verdict %q, which is not one of fixed, open, withdrawn", c.id, text.ClipBytes(verdict, 40))
	case v == pipeline.VerdictWithdrawn && why == "":
		return r, fmt.Sprintf("rulings: %s is withdrawn without a why", c.id)
	case v == pipeline.VerdictWithdrawn && f.Category == pipeline.CategoryHuman:
		r.Verdict = pipeline.VerdictOpen
		return r, fmt.Sprintf("rulings: %s was asked for by a person, and only people take that back: rule it fixed or open", c.id)
	case v == pipeline.VerdictFixed && !r.Changed:
		r.Verdict = v
		return r, fmt.Sprintf("rulings: %s is ruled fixed, but the code at its place is as it was: rule it open, or withdrawn, and say where it is handled or why it never was a problem", c.id)
	default:
		r.Verdict = v
	}
	return r, ""
}

// find returns the claim that an id means.
func (d *docket) find(id string) *claim {
	for _, c := range d.claims {
		if strings.EqualFold(c.id, strings.TrimSpace(id)) {
			return c
		}
	}
	return nil
}

func (d *docket) ids() string {
	var ids []string
	for _, c := range d.claims {
		ids = append(ids, c.id)
	}
	if len(ids) == 0 {
		return "none was listed"
	}
	return "listed are " + strings.Join(ids, ", ")
}

// ruleCriteria rules on the findings of stage one: a criterion is met or it is not. Met after
// it was not, it is gone when anything was committed since; where nothing was, and the
// implementer disputes that it was not met, it is withdrawn.
func ruleCriteria(run *pipeline.Run, list []*claim, answers []pipeline.Compliance) []pipeline.Ruling {
	var out []pipeline.Ruling
	for _, c := range list {
		f := c.issue.Finding
		r := pipeline.Ruling{Finding: f.Fingerprint, Changed: c.since}
		answer := slices.IndexFunc(answers, func(a pipeline.Compliance) bool { return a.Criterion == f.Criterion })
		switch {
		case answer < 0 || !asksFor(run.Plan, f):
			r.Verdict, r.Why = pipeline.VerdictWithdrawn, "the plan does not have this criterion any more"
		case !answers[answer].Met:
			r.Verdict, r.Why = pipeline.VerdictOpen, answers[answer].Evidence
		case !c.since && disputed(run, c.issue) != "":
			r.Verdict, r.Why = pipeline.VerdictWithdrawn, answers[answer].Evidence
		default:
			r.Verdict, r.Why = pipeline.VerdictFixed, answers[answer].Evidence
		}
		out = append(out, r)
	}
	return out
}

// asksFor reports whether a plan still has the criterion that a finding says is not met.
func asksFor(plan *pipeline.Plan, f *pipeline.Finding) bool {
	return plan != nil && slices.ContainsFunc(plan.Criteria, func(c pipeline.Criterion) bool {
		return c.ID == f.Criterion && notMet(c.ID, c.Text) == f.Message
	})
}

// still returns the findings that were ruled open as they stand at the head: where
// they are now, with the code that is there. What a person asked for is not Forge's
// to say again.
func (p *phase) still(ctx context.Context, d *docket) ([]pipeline.Finding, error) {
	now, stop := p.head(ctx)
	var out []pipeline.Finding
	for _, c := range d.claims {
		f := *c.issue.Finding
		if d.rulings[c].Verdict != pipeline.VerdictOpen || f.Category == pipeline.CategoryHuman {
			continue
		}
		if f.File != "" {
			p.relocate(&f, c.outcome, now)
		}
		out = append(out, f)
	}
	return out, stop()
}

// relocate moves a finding to where its place is now. A suggestion that was made for
// other code becomes words.
func (p *phase) relocate(f *pipeline.Finding, fate change.Fate, now func(string) (string, bool)) {
	before := f.Code
	content, ok := "", false
	if fate.File != "" {
		content, ok = now(fate.File)
	}
	if f.Line, f.EndLine = fate.Line, fate.End; fate.File == "" {
		f.Line, f.EndLine = 0, 0
	} else {
		f.File = fate.File
	}
	lines := splitLines(content)
	if last := max(f.Line, f.EndLine); f.Line > 0 && ok && last <= len(lines) {
		f.Code = strings.Join(lines[f.Line-1:last], "\n")
	}
	if f.Fix != nil && f.Fix.Replacement != nil && (f.Code != before || f.Line == 0) {
		fix := *f.Fix
		fix.Diff, fix.Replacement = firstOf(fix.Diff, signed("-", before)+signed("+", *fix.Replacement)), nil
		f.Fix = &fix
	}
}
