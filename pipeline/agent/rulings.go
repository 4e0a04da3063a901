package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/glob"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/source"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// claim is a finding that was open before this review, and what is known of it now.
type claim struct {
	id      string // in the prompt, "F1"
	issue   *pipeline.Issue
	outcome change.Fate
	since   bool     // whether anything at all was committed since it was last seen
	back    bool     // it was ruled fixed, and the code that this was said of is no longer there
	foreign bool     // its place is not the module's to change
	fix     bool     // whether code was changed in another file, which the reviewer's own fix of it names
	code    bool     // whether that was code, and had an effect: what only writes about the work does not do it
	product bool     // whether some of that was no test
	prose   []string // the writing that was changed since
	files   []string // all that was changed since
	said    string   // the implementer, of it
	part    int      // which part of the change it is ruled on with
}

// changed is what a ruling says of the code; see pipeline.Ruling. What a person asks
// for is a wish, and the place is where they wrote it: any commit may fulfil it that changes
// what they ask for.
func (c *claim) changed() bool {
	switch f := c.issue.Finding; {
	case f.Category == pipeline.CategoryHuman:
		return c.since && c.fulfils(f)
	case f.File == "" && behaves(f):
		return c.code
	case f.File == "":
		return c.since
	case c.foreign:
		return c.code
	}
	return c.outcome.Changed || c.fix
}

// fulfils reports whether what was committed since may be what a person asks for: code of the
// product, unless it is tests or writing that they speak of, or that they stand on.
func (c *claim) fulfils(f *pipeline.Finding) bool {
	switch {
	case c.product || change.AboutNoEffect(f.Message) || asksWriting.MatchString(f.Message):
		return true
	case testname.IsFile(f.File) || asksTests.MatchString(f.Message):
		return c.code
	case f.File == "":
		return c.code || len(c.prose) > 0
	}
	return !source.Knows(f.File)
}

// What people ask for and no code of the product does, by words of several languages.
var (
	asksWriting = lazyregexp.New(`(?i)komment|coment|коммент|注释|コメント|doc(?:s|u|\b)|dok(?:u|\b)|докум|文档|ドキュメント|` +
		`read ?me|change ?log|release ?notes?|\.(?:md|rst|adoc|txt)\b|expla|expli|erklär|поясн|说明|説明|descri|décri|beschreib|опиш|` +
		`typo|spell|wording|grammar|tippfehler|rechtschreib|faute|опечат|formatt?|indent|white ?space|blank line|` +
		`renam|renomm|umbenen|file ?name|\bmove|verschieb|déplac`)
	asksTests = lazyregexp.New(`(?i)test|spec\b|\bcover|тест|测试|テスト`)
)

// behaves reports whether a finding is about what the code does, which no comment and
// no text changes.
func behaves(f *pipeline.Finding) bool {
	return f.Category == pipeline.CategoryCorrectness || f.Category == pipeline.CategorySecurity || f.Category == pipeline.CategoryPerformance
}

// aboutCode reports whether a finding at a place is about its code alone: so are unmet wishes
// and tests that lack something, in a language that is known.
func aboutCode(f *pipeline.Finding) bool {
	return behaves(f) || (f.Category == pipeline.CategoryRequirements || f.Category == pipeline.CategoryTests) && source.Knows(f.File)
}

// claims collects the open findings of earlier reviews and of people, and those that were
// fixed and whose code is back. Those of stage one, that a criterion is not met, are apart:
// that stage rules on them.
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
			if c.back, err = p.undone(ctx, c, patches); err != nil {
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

// undone reports whether what fixed a finding is no longer there as it was when it was ruled
// fixed: a ruling is for the code that it was made on. At its place that is the function
// around it; what has no place, what was fixed in another file, and a wish, which may be
// fulfilled anywhere, are undone with any line of what was done until then.
func (p *phase) undone(ctx context.Context, c *claim, patches map[string]*change.Change) (bool, error) {
	seen := patches[lastSeen(p.job.Run, c.issue)]
	if seen != nil && !c.changed() {
		return true, nil
	}
	fixed, err := p.since(ctx, c.issue.FixedIn, patches)
	if fixed == nil || err != nil {
		return p.job.Since != nil && c.issue.FixedIn != "" && err == nil, err // nobody knows what it was
	}
	f := c.issue.Finding
	now, stop := p.head(ctx)
	wish := f.Category == pipeline.CategoryHuman
	if f.File != "" && c.outcome.Changed {
		place := change.Place{File: c.outcome.File, Line: c.outcome.Line, End: c.outcome.End, CodeAlone: aboutCode(f), About: f.Message}
		if place.File == "" {
			place.File = f.File
		}
		if differs := fixed.Differs(place, now); differs || !wish {
			return differs, stop()
		}
	}
	if seen == nil {
		return len(fixed.Files) > 0, stop()
	}
	named := f.Fix.Files()
	only := func(file string) bool {
		return f.File == "" || wish || c.foreign || slices.Contains(named, file)
	}
	return fixed.Undid(*seen, only, now), stop()
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
	now, stop := p.head(ctx)
	c.code = c.since && (patch == nil || slices.ContainsFunc(patch.Files, func(f *change.File) bool { return works(f, now) }))
	c.product = c.since && (patch == nil || slices.ContainsFunc(patch.Files, func(f *change.File) bool {
		return works(f, now) && !testname.IsFile(f.Path) && !f.OnlyMoved()
	}))
	if patch != nil {
		for _, f := range patch.Files {
			c.files = append(c.files, f.Path)
			if isProse(f.Path) && f.Effect(now) {
				c.prose = append(c.prose, f.Path)
			}
		}
	}
	if f.File == "" {
		return stop()
	}
	owns := func(pattern string) bool { return glob.Match(pattern, f.File) }
	c.foreign = run.Part != nil && !slices.ContainsFunc(run.Part.Module.Paths, owns)
	place := change.Place{File: f.File, Line: f.Line, End: f.EndLine, Code: f.Code, CodeAlone: aboutCode(f), About: f.Message}
	if patch != nil {
		c.outcome = patch.Follow(place, now)
		named := f.Fix.Files()
		c.fix = slices.ContainsFunc(patch.Files, func(cf *change.File) bool {
			return cf.Path != f.File && slices.Contains(named, cf.Path) && works(cf, now)
		})
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
	title := "(" + titleOf(f) + "): "
	for _, a := range it.Impl.Addressed {
		if _, what, ok := strings.Cut(a, title); ok {
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
	switch {
	case c.back && !c.changed():
		return "   since then: IT WAS RULED FIXED, AND THE CODE AT ITS PLACE IS AGAIN WHAT IT WAS\n"
	case c.back:
		return "   IT WAS RULED FIXED, AND WHAT FIXED IT IS NO LONGER THERE AS IT WAS THEN: rule on the code as it is now\n" + c.fate()
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
	case c.outcome.Idle != "" && !c.changed():
		return "   since then: THE CODE AT ITS PLACE DOES WHAT IT DID: " + c.outcome.Idle + "\n"
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
	"id", typed("string", "of the open finding, F1"),
	"verdict", oneOf("what has become of it", "fixed", "open", "withdrawn"),
	"why", typed("string", "what shows it: the code or the test; of a withdrawn one: why it is no problem, or where it is handled"),
), "one for each open finding that was listed; may be empty when none was")

// verdicts are words that models use for the three.
var verdicts = map[string]pipeline.Verdict{
	"fixed": pipeline.VerdictFixed, "resolved": pipeline.VerdictFixed, "gone": pipeline.VerdictFixed,
	"open": pipeline.VerdictOpen, "still open": pipeline.VerdictOpen, "still there": pipeline.VerdictOpen, "upheld": pipeline.VerdictOpen, "not fixed": pipeline.VerdictOpen,
	"withdrawn": pipeline.VerdictWithdrawn, "mistaken": pipeline.VerdictWithdrawn, "invalid": pipeline.VerdictWithdrawn, "not a problem": pipeline.VerdictWithdrawn,
}

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
	bad = append(bad, d.alike()...)
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

// alike leaves open what blocks and is withdrawn in the same words as another finding that
// says something else: one reason for all is a reason for none.
func (d *docket) alike() (bad []string) {
	first := map[string]*claim{} // by the words
	for _, c := range d.claims {
		r := d.rulings[c]
		if r.Verdict != pipeline.VerdictWithdrawn || !c.issue.Finding.Severity.Blocks() {
			continue
		}
		words := strings.Join(strings.Fields(strings.ToLower(r.Why)), " ")
		other := first[words]
		if other == nil {
			first[words] = c
			continue
		}
		if other.issue.Finding.Message == c.issue.Finding.Message {
			continue
		}
		bad = append(bad, fmt.Sprintf("rulings: %s is withdrawn in the same words as %s: say of each why it is no problem", c.id, other.id))
		r.Verdict = pipeline.VerdictOpen
		d.rulings[c] = r
		if o := d.rulings[other]; o.Verdict == pipeline.VerdictWithdrawn {
			o.Verdict = pipeline.VerdictOpen
			d.rulings[other] = o
		}
	}
	return bad
}

func mentions(problems []string, id string) bool {
	return slices.ContainsFunc(problems, func(s string) bool { return strings.Contains(s, " "+id+" ") })
}

// rule reads one ruling; why says what is wrong with it. Its verdict is "" when it is
// none.
func (c *claim) rule(verdict, why string) (r pipeline.Ruling, problem string) {
	f := c.issue.Finding
	r = pipeline.Ruling{Finding: f.Fingerprint, Why: why, Changed: c.changed()}
	v, known := verdicts[strings.ToLower(strings.Trim(strings.TrimSpace(verdict), "."))]
	switch {
	case !known:
		return r, fmt.Sprintf("rulings: %s has the verdict %q, which is not one of fixed, open, withdrawn", c.id, text.ClipBytes(verdict, 40))
	case v == pipeline.VerdictWithdrawn && why == "":
		return r, fmt.Sprintf("rulings: %s is withdrawn without a why", c.id)
	case v == pipeline.VerdictWithdrawn && f.Category != pipeline.CategoryHuman && f.Severity.Blocks() && !givesReason(why):
		r.Verdict, r.Why = pipeline.VerdictOpen, fmt.Sprintf("it was withdrawn without a reason (%q), so it stays open", text.ClipBytes(why, 40))
		return r, fmt.Sprintf("rulings: %s is withdrawn, but its why (%q) gives no reason: name the code, the file or the behaviour that makes it no problem",
			c.id, text.ClipBytes(why, 40))
	case v == pipeline.VerdictWithdrawn && f.Category == pipeline.CategoryHuman:
		r.Verdict = pipeline.VerdictOpen
		return r, fmt.Sprintf("rulings: %s was asked for by a person, and only people take that back: rule it fixed or open", c.id)
	case v == pipeline.VerdictFixed && r.Changed && !c.shows(why):
		r.Verdict = pipeline.VerdictOpen
		if f.Category != pipeline.CategoryHuman {
			return r, fmt.Sprintf("rulings: %s is ruled fixed, but has no place in the code that could have changed: name the changed file that fixes it, or rule it open",
				c.id)
		}
		return r, fmt.Sprintf("rulings: %s was asked for by a person, and the code at its place is as it was: name the changed file that does what they ask for, or rule it open", c.id)
	case v == pipeline.VerdictFixed && !r.Changed:
		as := "the code at its place is as it was"
		if f.Category == pipeline.CategoryHuman && c.since {
			as = "nothing but comments, documents or tests was changed since a person asked for it"
		}
		if r.Verdict = v; c.outcome.Idle != "" {
			as = c.outcome.Idle
			r.Why = strings.TrimSpace(r.Why + " (it stays open: " + as + ")")
		}
		return r, fmt.Sprintf("rulings: %s is ruled fixed, but %s: rule it open, or withdrawn, and say where it is handled or why it never was a problem", c.id, as)
	}
	r.Verdict = v
	return r, ""
}

// shows reports whether a reason shows where a wish was fulfilled, or what blocks was fixed: at
// its place, or in a changed file that it names, or that a finding without a place names. What
// has no place in the code, or one that is not there, any commit would seem to have fixed.
func (c *claim) shows(why string) bool {
	f := c.issue.Finding
	placed := f.File != "" && !c.outcome.Nowhere
	switch {
	case c.fix || len(c.files) == 0:
		return true
	case f.Category == pipeline.CategoryHuman && (f.File == "" || c.outcome.Changed && placed):
		return true
	case f.Category != pipeline.CategoryHuman && (placed || !f.Severity.Blocks()):
		return true
	}
	if f.File == "" { // "CHANGELOG.md has no entry"
		why += "\n" + f.Message
	}
	return slices.ContainsFunc(c.files, func(file string) bool { return strings.Contains(why, path.Base(file)) })
}

// find returns the claim that an id means: "F1", or the beginning of its fingerprint.
func (d *docket) find(id string) *claim {
	id = strings.Trim(strings.TrimSpace(id), "[]()")
	for _, c := range d.claims {
		if strings.EqualFold(c.id, id) || len(id) >= 6 && strings.HasPrefix(c.issue.Finding.Fingerprint, strings.ToLower(id)) {
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

// ruleCriteria rules on the findings of stage one: a criterion is met or it is not.
// Met after it was not, it is gone when code, or a test that asserts something, has changed
// since, or the writing that the evidence names. Where the implementer disputes that it was
// not met, a line of a file that is there withdraws it.
func ruleCriteria(run *pipeline.Run, list []*claim, answers []pipeline.Compliance, now func(string) (string, bool)) []pipeline.Ruling {
	var out []pipeline.Ruling
	for _, c := range list {
		f := c.issue.Finding
		r := pipeline.Ruling{Finding: f.Fingerprint, Changed: c.code}
		answer := slices.IndexFunc(answers, func(a pipeline.Compliance) bool { return a.Criterion == f.Criterion })
		switch {
		case answer < 0 || !asksFor(run.Plan, f):
			r.Verdict, r.Why = pipeline.VerdictWithdrawn, "the plan does not have this criterion any more"
		case answers[answer].Met:
			c.met(run, &r, answers[answer].Evidence, now)
		default:
			r.Verdict, r.Why = pipeline.VerdictOpen, answers[answer].Evidence
		}
		out = append(out, r)
	}
	return out
}

// met rules on a criterion that is called met.
func (c *claim) met(run *pipeline.Run, r *pipeline.Ruling, evidence string, now func(string) (string, bool)) {
	r.Verdict, r.Why = pipeline.VerdictFixed, evidence
	r.Changed = c.code || slices.ContainsFunc(c.prose, func(file string) bool { return strings.Contains(evidence, file) })
	switch {
	case r.Changed:
	case disputed(run, c.issue) != "" && namesLine(evidence, now):
		r.Verdict = pipeline.VerdictWithdrawn
	default:
		r.Why += " (it stays open: what was committed since it was not met has no effect on it)"
	}
}

// works reports whether a change of a file may change what the code does, or what its
// tests show.
func works(f *change.File, now func(string) (string, bool)) bool {
	return !isProse(f.Path) && f.Effect(now) && (!testname.IsFile(f.Path) || f.Asserts())
}

// isProse reports whether a file is writing about the work, and not a part of what runs.
func isProse(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".rst", ".adoc":
		return true
	case ".txt":
		base := strings.ToLower(path.Base(name))
		return !strings.HasPrefix(base, "requirements") && !strings.HasPrefix(base, "constraints") && base != "cmakelists.txt"
	}
	return false
}

// lineOf is how evidence names a line: "calc.py:14".
var lineOf = lazyregexp.New(`([\w./-]+\.\w+):(\d+)`)

// namesLine reports whether a text names a line of a file that the head has.
func namesLine(evidence string, now func(string) (string, bool)) bool {
	for _, m := range lineOf.FindAllStringSubmatch(evidence, -1) {
		content, ok := now(m[1])
		if n, err := strconv.Atoi(m[2]); ok && err == nil && n > 0 && n <= len(splitLines(content)) {
			return true
		}
	}
	return false
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
