package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"forge/learn"
	"forge/learn/impact"
	"forge/learn/recall"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
)

// What an agent is told of earlier runs.
const (
	recallBytes = 6000 // some 1,500 tokens
	lineBytes   = 700  // of one learning
	leastSure   = 0.15 // effective confidence under which a learning is not worth its tokens
	queryWords  = 15   // identifiers of the changed lines
	queryText   = 4000 // bytes of the task

	mostRecalled = 10 // learnings for a phase
	lookedAt     = 60 // hits that are looked at, because some do not hold any more or are not for this role
)

// Recall gives the job what earlier runs taught that matters for it (L5). It is
// decided once for each phase of an iteration, and kept as an event before the model
// is asked: carried out again, the phase says the same, and its tape still fits.
// That nothing can be recalled is no fault of the phase.
func (m *Learner) Recall(ctx context.Context, job *agent.Job, role config.Role, emit work.Emit) error {
	run, ref := job.Run, job.Ref
	events, err := m.o.DB.Events(ctx, run.ID, 0)
	if err != nil {
		return err
	}
	for _, e := range events {
		if r := e.Data.Recall; e.Type == pipeline.EventRecalled && r != nil && r.Phase == ref.Phase && r.Iteration == ref.Iteration && r.Role == role {
			job.Learnings = r.Text
			return m.keepRecall(ctx, run.ID, *r) // a crash may have come before
		}
	}
	for _, e := range events {
		if s := e.Data.Step; e.Type == pipeline.EventAgentIteration && s != nil && s.Phase == ref.Phase && s.Iteration == ref.Iteration {
			return nil // it began without any
		}
	}
	r, err := m.choose(ctx, job, role)
	if err != nil {
		m.o.Log.WarnContext(ctx, "recall learnings; the phase goes on without", "run", run.ID, "phase", ref.Phase, "error", err)
		return nil
	}
	if len(r.Given)+len(r.Withheld) == 0 {
		return nil
	}
	if err := emit(ctx, pipeline.Event{ID: recallID(run, r) + "/recalled", Type: pipeline.EventRecalled, Source: "forge",
		Data: pipeline.Data{Recall: &r}}); err != nil {
		return err
	}
	job.Learnings = r.Text
	return m.keepRecall(ctx, run.ID, r)
}

func recallID(run *pipeline.Run, r pipeline.Recall) string {
	return run.Key(pipeline.PhaseRef{Phase: r.Phase, Iteration: r.Iteration}) + "/" + string(r.Role)
}

func (m *Learner) keepRecall(ctx context.Context, run int64, r pipeline.Recall) error {
	return m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return m.o.DB.RecordRecall(ctx, tx, run, r, m.o.Now()) })
}

// choose searches for what matters, drops what is about code that is gone and what is
// contradicted by what is surer, and withholds some at random.
func (m *Learner) choose(ctx context.Context, job *agent.Job, role config.Role) (pipeline.Recall, error) {
	run := job.Run
	r := pipeline.Recall{Phase: job.Ref.Phase, Iteration: job.Ref.Iteration, Role: role}
	if err := m.refresh(ctx); err != nil {
		return r, err
	}
	now := m.o.Now()
	q, fits := queryOf(run, job.Diff), func(*pipeline.Learning) bool { return true }
	if role == config.RoleTester {
		q, fits = testQuery(run, job.Diff, job.Failures)
	}
	q.Now = now
	if len(q.Paths) == 0 && role != config.RoleTester {
		q.Guesses = guess(ctx, job, q.Text)
	}
	q.Limit = lookedAt
	var list []pipeline.Learning
	cites := newCitations(job.Workspace)
	for _, h := range m.index.Search(q) {
		l, err := m.o.DB.Learning(ctx, h.ID)
		if err != nil {
			return r, err
		}
		if heldOut(run, &l) || l.State != pipeline.LearningActive || learn.Effective(l, now) < leastSure || !fits(&l) || !shares(run, &l, list) {
			continue
		}
		judges := role == config.RoleReviewer
		if own := l.Run == run.ID && !judges; !own && !learn.Told(&l, judges) { // its own a run has from texts that it has read
			continue
		}
		says, holds := cites.look(ctx, &l)
		if says != "" {
			m.noteOnce(ctx, &l, says)
		}
		if !holds {
			continue
		}
		if list = append(list, l); len(list) == mostRecalled {
			break
		}
	}
	for _, c := range learn.Contradictions(list, now) {
		list = slices.DeleteFunc(list, func(l pipeline.Learning) bool { return l.ID == c.Weaker.ID })
	}
	lines := map[int64]string{}
	var ids, always []int64
	size := 0
	for _, l := range list {
		line := lessonLine(l, learn.Effective(l, now))
		if size += len(line) + 1; size > recallBytes {
			break
		}
		lines[l.ID] = line
		if promised(&l) {
			always = append(always, l.ID)
		}
		ids = append(ids, l.ID)
	}
	r.Given, r.Withheld = m.split(run, ids, always...)
	for _, id := range r.Given {
		r.Text += lines[id] + "\n"
	}
	return r, nil
}

// split leaves some learnings out at random. A run that has one left out has it left
// out in all its phases and iterations: were it drawn anew in each, runs that went
// through more of them, those that did badly, would have had more of the learnings,
// and every learning would look harmful.
// What is always given is not left out.
func (m *Learner) split(run *pipeline.Run, ids []int64, always ...int64) (given, withheld []int64) {
	for _, id := range ids {
		if slices.Contains(always, id) {
			given = append(given, id)
			continue
		}
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d", run.Trace, id)
		g, w := impact.Withhold([]int64{id}, m.o.Withhold, rand.New(rand.NewPCG(h.Sum64(), uint64(run.ID))))
		given, withheld = append(given, g...), append(withheld, w...)
	}
	return given, withheld
}

// heldOut reports whether a run that works without memory is not told a learning. What
// people told Forge in words, by the command remember or as the reason of a dismissal,
// holds in every run: they were promised that. So does what the run itself has just taught
// (L1): it is no memory of others.
func heldOut(run *pipeline.Run, l *pipeline.Learning) bool {
	return run.Holdout != nil && run.Holdout.Out && !promised(l) && l.Run != run.ID && l.Run != run.Root()
}

// promised reports whether a learning is what people told Forge in words, which holds in
// every run.
func promised(l *pipeline.Learning) bool {
	return l.Source == pipeline.SourceHuman || learn.Borne(l) || reasoned(l)
}

// reasoned reports whether a learning is a person's dismissal with a reason: they said
// why, and are not to be asked again to find out what their word is worth.
func reasoned(l *pipeline.Learning) bool {
	return l.Source == pipeline.SourceDismissal && l.Author.ID != 0 && l.Weight > 0 &&
		!slices.Contains(l.Tags, learn.TagNoReason) && !slices.Contains(l.Tags, learn.TagAsRead)
}

// lessonLine is a learning in one line: "L12 (0.70, semantic, dismissal) …".
func lessonLine(l pipeline.Learning, sure float64) string {
	from := string(l.Source)
	if learn.Unchecked(&l) {
		from += ", nothing that was looked up"
	}
	text := fmt.Sprintf("L%d (%.2f, %s, %s) %s", l.ID, sure, l.Type, from, l.Content)
	if len(l.Paths) > 0 {
		text += " | files: " + strings.Join(l.Paths, ", ")
	}
	if l.Context != "" {
		text += " | matters for: " + l.Context
	}
	return learn.Tidy(strings.Join(strings.Fields(text), " "), lineBytes)
}

// Used returns the event that tells which of the learnings that a phase was given
// its agent says to have used.
func (m *Learner) Used(ctx context.Context, run *pipeline.Run, ref pipeline.PhaseRef, role config.Role, data pipeline.Data) ([]pipeline.Event, error) {
	if role == "" {
		return nil, nil
	}
	said, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	cited := map[int64]bool{}
	for _, c := range citation.FindAllSubmatch(said, -1) {
		if id, err := strconv.ParseInt(string(c[1]), 10, 64); err == nil {
			cited[id] = true
		}
	}
	if len(cited) == 0 {
		return nil, nil
	}
	recalls, err := m.o.DB.Recalls(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	r := pipeline.Recall{Phase: ref.Phase, Iteration: ref.Iteration, Role: role}
	for _, past := range recalls {
		if past.Phase != r.Phase || past.Iteration != r.Iteration || past.Role != r.Role {
			continue
		}
		for _, id := range past.Given {
			if cited[id] {
				r.Used = append(r.Used, id)
			}
		}
	}
	if len(r.Used) == 0 {
		return nil, nil
	}
	slices.Sort(r.Used)
	if err := m.keepRecall(ctx, run.ID, r); err != nil {
		return nil, err
	}
	return []pipeline.Event{{ID: recallID(run, r) + "/used", Type: pipeline.EventUsed, Source: "forge", Data: pipeline.Data{Recall: &r}}}, nil
}

// citation is how an agent names a learning; lists are fine, too: "[L3, L12]".
var citation = lazyregexp.New(`[\[,] ?L(\d+)\b`)

// queryOf asks for what matters for the task, what is open of it, and the change so far.
func queryOf(run *pipeline.Run, diff string) recall.Query {
	q := recall.Query{Scopes: scopes(run.Repo)}
	text := []string{run.Task.Title, run.Task.Body}
	paths := map[string]bool{}
	if run.Plan != nil {
		text = append(text, run.Plan.Summary)
		for _, p := range run.Plan.Files {
			paths[p] = true
		}
	}
	for _, i := range run.Findings {
		if f := i.Finding; f != nil && i.State == pipeline.IssueOpen {
			text = append(text, f.Message)
			paths[f.File] = true
		}
	}
	for _, i := range run.Failures {
		if f := i.Failure; f != nil && i.State == pipeline.IssueOpen {
			text = append(text, f.Test, f.Error)
			paths[f.File] = true
		}
	}
	q.Text = learn.Tidy(strings.Join(text, "\n"), queryText)
	readDiff(diff, &q, paths)
	delete(paths, "")
	q.Paths = slices.Sorted(maps.Keys(paths))
	return q
}

// What is searched for in the work tree to guess which files a task is about.
const (
	mostNames = 8
	mostLines = 200 // that have a name
)

// guess says which files a task may be about, by its text, before there is a plan. What
// cannot be searched says nothing.
func guess(ctx context.Context, job *agent.Job, text string) []recall.Guess {
	hits := map[string]map[string]int{}
	for _, n := range codeNames(text) {
		if job.Workspace == nil {
			break
		}
		lines, err := job.Workspace.Search(ctx, `\b`+n+`\b`, "", mostLines)
		if err != nil {
			continue
		}
		for _, l := range lines {
			if p, _, ok := strings.Cut(l, ":"); ok {
				if hits[n] == nil {
					hits[n] = map[string]int{}
				}
				hits[n][p]++
			}
		}
	}
	return recall.Guesses(text, job.Tree, hits)
}

// codeName finds what can only be a name of code: in backquotes, in camel case, with an
// underscore, or the last one behind a point.
var codeName = lazyregexp.New("`([^`\n]{3,60})`|\\b([A-Za-z_]+[a-z0-9][A-Z_]\\w*|[a-z]+_\\w+|[A-Z][a-z0-9]+[A-Z]\\w*)\\b|\\b([A-Za-z_]\\w*(?:\\.[A-Za-z_]\\w*)+)")

func codeNames(text string) (out []string) {
	for _, m := range codeName.FindAllStringSubmatch(text, -1) {
		words := identifierWord.FindAllString(cmp.Or(m[1], m[2], m[3]), -1)
		if len(words) == 0 {
			continue
		}
		if n := words[len(words)-1]; len(n) >= 4 && !slices.Contains(out, n) {
			out = append(out, n)
		}
		if len(out) == mostNames {
			break
		}
	}
	return out
}

// testQuery asks for what is known about tests: how they are run, which are flaky,
// what else was found out about the ones that fail. fits tells such learnings from
// those about the code.
func testQuery(run *pipeline.Run, diff string, failures []pipeline.Failure) (q recall.Query, fits func(*pipeline.Learning) bool) {
	q = recall.Query{Scopes: scopes(run.Repo), Category: pipeline.CategoryTests, Tags: testTags}
	words := []string{"flaky tests"}
	paths := map[string]bool{}
	for _, f := range failures {
		words = append(words, f.Test, f.Error)
		paths[f.File] = true
	}
	q.Text = learn.Tidy(strings.Join(words, "\n"), queryText)
	readDiff(diff, &q, paths)
	delete(paths, "")
	q.Paths = slices.Sorted(maps.Keys(paths))
	return q, func(l *pipeline.Learning) bool {
		if l.Category == pipeline.CategoryTests || slices.ContainsFunc(l.Tags, func(t string) bool { return slices.Contains(testTags, t) }) {
			return true
		}
		return slices.ContainsFunc(text.KeyWords(l.Content+" "+l.Context), func(w string) bool { return testWords[w] })
	}
}

// testTags are the tags of learnings about tests, testWords the key words of texts
// about them.
var (
	testTags  = []string{"tests", "testing", "test", "flaky"}
	testWords = func() map[string]bool {
		out := map[string]bool{}
		for _, w := range text.KeyWords("test tests testing tester flaky flake fixture mock assertion suite coverage") {
			out[w] = true
		}
		return out
	}()
)

var (
	identifierWord = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]{2,}`)
	calledName     = lazyregexp.New(`([A-Za-z_]\w*)\s*\(`)
)

// readDiff takes from a unified diff the files, the functions that its hunks name,
// and the most frequent identifiers of the changed lines.
func readDiff(diff string, q *recall.Query, paths map[string]bool) {
	counts := map[string]int{}
	functions := map[string]bool{}
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+++ b/"), strings.HasPrefix(line, "--- a/"):
			paths[line[len("+++ b/"):]] = true
		case strings.HasPrefix(line, "@@ "):
			if _, name, ok := strings.Cut(line[3:], "@@"); ok {
				for _, m := range calledName.FindAllStringSubmatch(name, -1) {
					functions[m[1]] = m[1] != "func"
				}
			}
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"), strings.HasPrefix(line, "-"):
			for _, w := range identifierWord.FindAllString(line[1:], -1) {
				counts[w]++
			}
		}
	}
	maps.DeleteFunc(functions, func(_ string, is bool) bool { return !is })
	q.Functions = slices.Sorted(maps.Keys(functions))
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	q.Words = words[:min(len(words), queryWords)]
}
