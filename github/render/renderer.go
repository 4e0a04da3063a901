// Package render says what GitHub should show of a run: the status comment, the
// pull request, reviews, questions, the check run. It is pure: the same run gives
// the same bytes. Text of models and people is sanitized on its way (sanitize.go).
package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Renderer renders one run. Everything it renders is a function of the run alone.
type Renderer struct {
	Run   *pipeline.Run
	Web   string // https://github.com
	Host  string // the only host that texts may link to
	Slug  string // the word of the commands and the check run's name
	Label string // the label that starts a run
}

var plainKey = lazyregexp.New(`^[A-Za-z0-9/_.:-]+$`)

// Marker is hidden in what belongs to a run, so that it is found again.
func Marker(trace, key string) string {
	if !plainKey.MatchString(key) || strings.Contains(key, "--") {
		key = Hash(key)
	}
	if trace != "" {
		key = trace + "/" + key
	}
	return "<!-- forge:" + key + " -->"
}

func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// body puts the marker in front, so that no text behind it can hide it.
func (v Renderer) body(key string, parts ...string) string {
	marker, text, _ := strings.Cut(v.whole(key, parts...), "\n")
	return marker + "\n" + Cut(strings.TrimSuffix(text, "\n"), MaxText) + "\n"
}

// whole is a body of any length, for a comment that [Parts] splits.
func (v Renderer) whole(key string, parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			kept = append(kept, p)
		}
	}
	return Marker(v.Run.Trace, key) + "\n" + strings.Join(kept, "\n\n") + "\n"
}

func (v Renderer) line(s string, n int) string  { return Line(s, v.Host, n) }
func (v Renderer) cell(s string, n int) string  { return cell(s, v.Host, n) }
func (v Renderer) block(s string, n int) string { return Block(s, v.Host, n) }

// repoURL returns an address below the repository's page.
func (v Renderer) repoURL(path string) string {
	return v.Web + "/" + v.Run.Repo.FullName() + "/" + path
}

func (v Renderer) commit(sha string) string {
	if sha == "" {
		return ""
	}
	if sha == v.Run.Head && v.unpublished() {
		return code(text.ShortSHA(sha))
	}
	return fmt.Sprintf("[`%s`](%s)", text.ShortSHA(sha), v.repoURL("commit/"+sha))
}

// unpublished reports whether GitHub did not take the run's last commit.
func (v Renderer) unpublished() bool {
	r := v.Run
	return r.Head != r.Base && r.Head != r.Published.Head && r.Counters.PublishFaults > 0
}

// command shows a choice as people type it, with an example for its argument.
func (v Renderer) command(c pipeline.Choice) string {
	arg := c.Arg
	if arg == "N" {
		arg = "3"
	}
	return code("/" + v.Slug + " " + c.Name + " " + arg)
}

// took renders a working time: "8 s", "1 min 05 s", "2 h 10 min".
func took(ms int64) string {
	d := (time.Duration(ms) * time.Millisecond).Round(time.Second)
	switch {
	case ms <= 0:
		return ""
	case d < time.Second:
		return "< 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// quoted puts a text into a box of GitHub's: NOTE, TIP, IMPORTANT, WARNING, CAUTION.
func quoted(kind, text string) string {
	return "> [!" + kind + "]\n> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
}

var severityNames = map[pipeline.Severity]string{
	pipeline.SeverityCritical: "🛑 Critical", pipeline.SeverityError: "🔴 Error",
	pipeline.SeverityWarning: "🟡 Warning", pipeline.SeverityInfo: "🔵 Note",
}

func severityName(s pipeline.Severity) string {
	if n := severityNames[s]; n != "" {
		return n
	}
	return "🔴 " + Line(string(s), "", 20)
}

// tally counts findings by severity: "1 critical, 2 errors".
func tally(list []pipeline.Finding) string {
	n := map[pipeline.Severity]int{}
	for _, f := range list {
		n[f.Severity]++
	}
	var out []string
	for _, s := range []struct {
		s         pipeline.Severity
		one, many string
	}{{pipeline.SeverityCritical, "critical", "critical"}, {pipeline.SeverityError, "error", "errors"},
		{pipeline.SeverityWarning, "warning", "warnings"}, {pipeline.SeverityInfo, "note", "notes"}} {
		if n[s.s] > 0 {
			out = append(out, text.Plural(n[s.s], s.one, s.many))
			delete(n, s.s)
		}
	}
	rest := 0
	for _, k := range n {
		rest += k
	}
	if rest > 0 {
		out = append(out, fmt.Sprintf("%d of unknown severity", rest))
	}
	if len(out) == 0 {
		return "no findings"
	}
	return strings.Join(out, ", ")
}

func worstFirst(list []pipeline.Finding) []pipeline.Finding {
	out := slices.Clone(list)
	rank := func(s pipeline.Severity) int {
		if r := s.Rank(); r > 0 {
			return r
		}
		return 5 // unknown blocks, so it stands first
	}
	slices.SortStableFunc(out, func(a, b pipeline.Finding) int { return cmp.Compare(rank(b.Severity), rank(a.Severity)) })
	return out
}

// place says where a finding is, as a link into the reviewed commit.
func (v Renderer) place(file string, line, end int, sha string) string {
	if file == "" {
		return ""
	}
	at := file
	if line > 0 {
		at = fmt.Sprintf("%s:%d", file, line)
	}
	if sha == "" || strings.ContainsAny(file, " ()<>?#%\\\n") {
		return code(at)
	}
	u := v.repoURL("blob/" + sha + "/" + file)
	if line > 0 {
		u += fmt.Sprintf("#L%d", line)
		if end > line {
			u += fmt.Sprintf("-L%d", end)
		}
	}
	return "[" + code(at) + "](" + u + ")"
}

// finding is a finding in one line of a list.
func (v Renderer) finding(f *pipeline.Finding, sha string) string {
	at := v.place(f.File, f.Line, f.EndLine, sha)
	if at != "" {
		at = " in " + at
	}
	return fmt.Sprintf("**%s**%s: %s", severityName(f.Severity), at, v.line(f.Message, 600))
}

// Left lists what is not fixed: findings, failures, flaky tests.
func (v Renderer) Left(limit int) []string {
	var open []pipeline.Finding
	seen := map[string]string{} // the SHA whose lines the finding names
	for _, is := range v.Run.Findings {
		if is.State == pipeline.IssueOpen || is.State == pipeline.IssueAccepted {
			open = append(open, *is.Finding)
			seen[is.Fingerprint()] = v.judged(is.Last)
		}
	}
	var out []string
	for i, f := range worstFirst(open) {
		if i >= limit { // counted, not rendered
			out = append(out, "")
			continue
		}
		s := v.finding(&f, seen[f.Fingerprint])
		if h := v.Run.Handle(f.Fingerprint); h != "" && f.Severity.Blocks() && !v.Run.State.Ended() {
			s += fmt.Sprintf(" (%s)", h)
		}
		out = append(out, s)
	}
	out = append(out, v.known()...)
	for _, is := range v.Run.Failures {
		if is.State != pipeline.IssueOpen && is.State != pipeline.IssueAccepted {
			continue
		}
		f := is.Failure
		s := fmt.Sprintf("**❌ Failing test** %s: %s", code(f.Test), v.line(f.Error, 400))
		if f.WorkedIn > 0 {
			s += fmt.Sprintf(" (new: it worked in iteration %d)", f.WorkedIn)
		}
		out = append(out, s)
	}
	if it := v.Run.Current(); it != nil && it.Tests != nil {
		for _, t := range it.Tests.Flaky {
			out = append(out, "**🎲 Flaky test** "+code(t)+": failed, then passed when run again")
		}
	}
	if it := v.Run.Current(); it != nil && it.Review != nil {
		for _, s := range it.Review.NotReviewed {
			out = append(out, "**👀 Not reviewed** "+code(s.Path)+": "+v.line(s.Why, 200))
		}
	}
	out = append(out, v.missing()...)
	if n := len(out) - limit; n > 0 {
		out = append(out[:limit], fmt.Sprintf("and %d more", n))
	}
	return out
}

// known lists the tests that failed before the work began and fail still.
func (v Renderer) known() []string {
	it := v.Run.Current()
	if it == nil || it.Tests == nil {
		return nil
	}
	var out []string
	for _, f := range it.Tests.Before {
		s := fmt.Sprintf("**⏮️ Failed before this work** %s: %s", code(f.Test), v.line(f.Error, 300))
		if f.Was != "" {
			s = fmt.Sprintf("**⚠️ Failed before this work, with another error** %s: before: %s; now: %s", code(f.Test), v.line(f.Was, 300), v.line(f.Error, 300))
		}
		if f.KnownBy != "" {
			s += " (known, says " + strings.TrimSpace(code(f.KnownBy)+" "+f.KnownFor) + ")"
		}
		out = append(out, s)
	}
	return out
}

// changedTests lists the tests of the base that had to change, with the reviewer's reason.
func (v Renderer) changedTests() []string {
	it := v.Run.Current()
	if it == nil || it.Tests == nil {
		return nil
	}
	var out []string
	for _, c := range it.Tests.Changed {
		s := code(c.Test) + " as it stood at the base: " + v.line(c.Error, 200)
		if c.Reason != "" {
			s += "<br>reviewer: " + v.line(c.Reason, 400)
		}
		out = append(out, s)
	}
	return out
}

// waivers lists what people let pass that Forge could not verify.
func (v Renderer) waivers() []string {
	var out []string
	for _, w := range v.Run.Exceptions() {
		var who []string
		if w.By.Login != "" {
			who = append(who, code(w.By.Login))
		}
		if w.Head != "" {
			who = append(who, fmt.Sprintf("on %s at %s", w.At.UTC().Format("2006-01-02 15:04 UTC"), v.commit(w.Head)))
		}
		s := v.line(w.What, 600)
		if len(who) > 0 {
			s = strings.Join(who, ", ") + ": " + s
		}
		out = append(out, s)
	}
	return out
}

// behind says how the end stands to the base branch by now, with the command that helps.
func (v Renderer) behind() string { return v.block(v.Run.Behind(), 800) }

// letPass names who let something pass, for a headline; "" when nobody had to.
func (v Renderer) letPass() string {
	var names []string
	list := v.Run.Exceptions()
	for _, w := range list {
		if w.By.Login == "" {
			w.By.Login = "the settings"
		}
		if !slices.Contains(names, w.By.Login) {
			names = append(names, w.By.Login)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s let pass by %s: %s", text.Plural(len(list), "exception", "exceptions"), strings.Join(names, ", "), kindsOf(list))
}

// kindsOf says in a few words what was let pass.
func kindsOf(list []pipeline.Waiver) string {
	words := map[pipeline.GuardName][2]string{
		pipeline.GuardKnown: {"tests that failed before", "tests that failed before"}, pipeline.GuardUnread: {"files that were not read", "files that were not read"},
		pipeline.GuardDispute:  {"a dismissed finding", "dismissed findings"},
		pipeline.GuardAccepted: {"what was left when it was accepted", "what was left when it was accepted"},
		pipeline.GuardParts:    {"a module that is left out", "modules that are left out"},
		pipeline.GuardSecret:   {"what looks like a secret", "what looks like secrets"},
		pipeline.GuardHuman:    {"what the reviewer asked a human about", "what the reviewer asked a human about"},
		pipeline.GuardUpstream: {"a known limitation", "known limitations"},
	}
	count := map[pipeline.GuardName]int{}
	var order []pipeline.GuardName
	for _, w := range list {
		if count[w.Guard]++; count[w.Guard] == 1 {
			order = append(order, w.Guard)
		}
	}
	var out []string
	for _, g := range order {
		w, ok := words[g]
		switch {
		case !ok:
			out = append(out, strings.ReplaceAll(string(g), "_", " "))
		case count[g] > 1:
			out = append(out, w[1])
		default:
			out = append(out, w[0])
		}
	}
	return strings.Join(out, ", ")
}

// judged returns the SHA that an iteration's review or tests looked at.
func (v Renderer) judged(iteration int) string {
	if iteration < 1 || iteration > len(v.Run.Iterations) {
		return ""
	}
	switch it := &v.Run.Iterations[iteration-1]; {
	case it.Review != nil:
		return it.Review.Head
	case it.Tests != nil:
		return it.Tests.Head
	}
	return ""
}

func bullets(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "- " + strings.Join(list, "\n- ")
}

// iterations is the table of what was done and what came of it. An iteration has a
// row from its first result on, so that the table changes with results alone.
func (v Renderer) iterations() string {
	var b strings.Builder
	b.WriteString("| # | What was done | Findings | Tests | Cost | Time |\n|---|---|---|---|---|---|\n")
	rows := 0
	for i := range v.Run.Iterations {
		it := &v.Run.Iterations[i]
		if it.Review == nil && it.Tests == nil && it.Ended.IsZero() {
			continue
		}
		rows++
		done, cost, time := "", "", ""
		if it.Impl != nil {
			done = v.cell(it.Impl.Summary, 200) + " " + v.commit(it.Impl.Head)
		}
		if !it.Ended.IsZero() {
			cost, time = it.Usage.Cost(), took(it.Ended.Sub(it.Started).Milliseconds())
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s |\n", it.Number, done, v.findingsCell(it), testsCell(it), cost, time)
	}
	if rows == 0 {
		return ""
	}
	return b.String()
}

// findingsCell says what became of findings in an iteration: new, still open, fixed. What it says stays, whatever
// comes of them later.
func (v Renderer) findingsCell(it *pipeline.Iteration) string {
	if it.Review == nil {
		return "not reviewed"
	}
	var fresh, still, back, passed, fixed, withdrawn int
	for i := range v.Run.Findings {
		is := &v.Run.Findings[i]
		before, now := v.Run.Stood(is, it.Number-1), v.Run.Stood(is, it.Number)
		switch {
		case is.First == it.Number:
			fresh++
		case is.First < it.Number && is.Last == it.Number && is.State == pipeline.IssueDismissed:
			passed++
		case now == pipeline.IssueOpen && before == pipeline.IssueOpen:
			still++
		case now == pipeline.IssueOpen:
			back++
		case now == pipeline.IssueFixed && before == pipeline.IssueOpen:
			fixed++
		case now == pipeline.IssueWithdrawn && before == pipeline.IssueOpen:
			withdrawn++
		}
	}
	var out []string
	for _, c := range []struct {
		n    int
		word string
	}{{fresh, "new"}, {still, "still open"}, {back, "back again"}, {passed, "let pass"}, {fixed, "fixed"}, {withdrawn, "withdrawn"}} {
		if c.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func testsCell(it *pipeline.Iteration) string {
	t := it.Tests
	switch {
	case t == nil:
		return "not run"
	case t.None != "":
		return "⚠️ none"
	}
	before := ""
	if n := len(t.Before); n > 0 {
		before = fmt.Sprintf(", %d failed before", n)
	}
	if t.OK() {
		return fmt.Sprintf("✅ %d of %d%s", t.Passed, t.Total, before)
	}
	return fmt.Sprintf("❌ %d of %d%s", t.Passed, t.Total, before)
}
