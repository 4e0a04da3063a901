package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

const (
	memoriesShown = 50   // learnings on a page of the list
	hitsKept      = 1000 // of a search: whoever looks further has the wrong words
)

// seesScope reports whether a viewer sees what is remembered of a scope; repos are all
// repositories that Forge has runs in. What is remembered of a repository is seen by
// those who see the repository. What is remembered of an organisation was learnt in any
// of its repositories, so it is seen only by those who see every one that Forge has runs
// in; where it has none, only by those who see everything.
func seesScope(v Viewer, scope string, repos []string) bool {
	list, all := v.Repos()
	kind, name, _ := strings.Cut(scope, ":")
	switch {
	case all:
		return true
	case kind == "repo":
		return slices.Contains(list, name)
	case kind != "org":
		return false
	}
	owned := slices.DeleteFunc(slices.Clone(repos), func(r string) bool { return !ownedBy(r, name) })
	return len(owned) > 0 && !slices.ContainsFunc(owned, func(r string) bool { return !slices.Contains(list, r) })
}

// ownedBy reports whether a repository is an owner's. GitHub's names differ by more than case.
func ownedBy(repo, owner string) bool {
	o, _, ok := strings.Cut(repo, "/")
	return ok && strings.EqualFold(o, owner)
}

// scopeName is a scope as an address and a person name it: "acme/shop", "org:acme".
func scopeName(scope string) string {
	repo, _ := record.CutScope(scope)
	return repo
}

// scopes are the scopes that anything is remembered of and that a viewer sees.
func (p *Pages) scopes(ctx context.Context, v Viewer) ([]string, error) {
	list, err := p.DB.Scopes(ctx)
	if err != nil {
		return nil, err
	}
	repos, err := p.DB.Repos(ctx)
	return slices.DeleteFunc(list, func(s string) bool { return !seesScope(v, s, repos) }), err
}

// learning finds the learning that an address names, if the viewer sees it.
func (p *Pages) learning(ctx context.Context, v Viewer, number string) (pipeline.Learning, error) {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return pipeline.Learning{}, notFound("A learning has a number: the list of the memory shows them.")
	}
	l, err := p.DB.Learning(ctx, id)
	if err != nil {
		return l, err
	}
	repos, err := p.DB.Repos(ctx)
	if err == nil && !seesScope(v, l.Scope, repos) {
		err = store.ErrNotFound
	}
	return l, err
}

// mayChange returns an error for people unless a viewer may, now, change what is
// remembered of a scope: they write to its repository, or to every repository of the
// organisation that Forge knows, from runs or from what it remembers.
func (p *Pages) mayChange(ctx context.Context, v Viewer, scope string) error {
	kind, name, _ := strings.Cut(scope, ":")
	repos, takes := []string{name}, "write access to "+name
	if kind != "repo" {
		takes = "write access to every repository of " + name + " that Forge knows"
		known, err := p.DB.Repos(ctx)
		if err != nil {
			return err
		}
		scopes, err := p.DB.Scopes(ctx)
		if err != nil {
			return err
		}
		for _, s := range scopes {
			if r, ok := record.CutScope(s); ok {
				known = append(known, r)
			}
		}
		repos = slices.DeleteFunc(known, func(r string) bool { return !ownedBy(r, name) })
		slices.Sort(repos)
		repos = slices.Compact(repos)
	}
	for _, r := range repos {
		ok, err := v.MayWrite(ctx, r)
		if err != nil {
			return fmt.Errorf("ask whether %s may write to %s: %w", v.Actor().Login, r, err)
		}
		if !ok {
			repos = nil
			break
		}
	}
	if len(repos) == 0 {
		return &problem{http.StatusForbidden, "Changing what is remembered of " + name + " takes " + takes + "."}
	}
	return nil
}

// notifyScope tells of a change to what is remembered of a scope.
func (p *Pages) notifyScope(ctx context.Context, scope string) {
	kind, name, _ := strings.Cut(scope, ":")
	if kind == "repo" {
		p.Notify("memory", name)
		return
	}
	repos, _ := p.DB.Repos(ctx) // those who look find it out when they look again
	for _, r := range repos {
		if ownedBy(r, name) {
			p.Notify("memory", r)
		}
	}
}

// memoryRow is a learning in a list.
type memoryRow struct {
	pipeline.Learning
	Left float64 // of its confidence, after decay
}

func (p *Pages) rowOf(l pipeline.Learning) memoryRow {
	return memoryRow{l, learn.Effective(l, p.Now())}
}

// memoryData is the list of what is remembered.
type memoryData struct {
	Scopes                     []string // as scopeName names them
	Types                      []pipeline.LearningType
	States                     []pipeline.LearningState
	Categories                 []pipeline.Category
	Repo, Q                    string // as chosen
	Category                   pipeline.Category
	State                      pipeline.LearningState
	Type                       pipeline.LearningType
	Filtered                   bool
	Rows                       []memoryRow
	First, Last, All           int    // the place of the rows in the whole list, from 1
	More                       bool   // a search found more than it keeps
	Previous, Next, Everything string // addresses
	Remember                   string // the command
}

var (
	memoryTypes  = []pipeline.LearningType{pipeline.LearningEpisodic, pipeline.LearningSemantic, pipeline.LearningProcedural}
	memoryStates = []pipeline.LearningState{pipeline.LearningActive, pipeline.LearningWithdrawn, pipeline.LearningMerged,
		pipeline.LearningRetired, pipeline.LearningForgotten}
)

func (p *Pages) memory(w http.ResponseWriter, r *http.Request, v Viewer) error {
	scopes, err := p.scopes(r.Context(), v)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	d := memoryData{Remember: command.Write(p.Slug, "remember WORDS"), Types: memoryTypes, States: memoryStates,
		Categories: pipeline.Categories(), Repo: q.Get("repo"), Q: strings.TrimSpace(q.Get("q")),
		Type: pipeline.LearningType(q.Get("type")), State: pipeline.LearningState(q.Get("state")), Category: pipeline.Category(q.Get("category"))}
	for _, s := range scopes {
		d.Scopes = append(d.Scopes, scopeName(s))
	}
	if scopes, err = d.chosen(scopes); err != nil {
		return err
	}
	skip := 0
	if s := q.Get("skip"); s != "" {
		if skip, err = strconv.Atoi(s); err != nil || skip < 0 || skip > 1<<30 {
			return badInput("skip= takes the number of learnings to leave out.")
		}
	}
	if err := p.listMemory(r.Context(), &d, append([]string{}, scopes...), skip); err != nil {
		return err
	}
	d.Filtered = d.Repo != "" || d.Q != "" || d.Type != "" || d.State != "" || d.Category != ""
	d.First, d.Last = min(skip+1, d.All), skip+len(d.Rows)
	if skip > 0 {
		d.Previous = skipURL(q, max(0, skip-memoriesShown))
	}
	if d.Last < d.All && len(d.Rows) > 0 {
		d.Next = skipURL(q, d.Last)
	}
	return p.render(w, r, v, "memory.html", page{Title: "Memory", Nav: "/memory", Live: "memory", Data: d})
}

// chosen checks what was chosen and returns the scopes to look into.
func (d *memoryData) chosen(scopes []string) ([]string, error) {
	switch {
	case d.Type != "" && !slices.Contains(memoryTypes, d.Type):
		return nil, badInput("There is no type " + strconv.Quote(string(d.Type)) + ".")
	case d.State != "" && d.State != "all" && !slices.Contains(memoryStates, d.State):
		return nil, badInput("There is no state " + strconv.Quote(string(d.State)) + ".")
	case d.Category != "" && !slices.Contains(d.Categories, d.Category):
		d.Categories = append(slices.Clone(d.Categories), d.Category)
	}
	if d.Repo == "" {
		return scopes, nil
	}
	for _, s := range scopes {
		if s == d.Repo || scopeName(s) == d.Repo {
			d.Repo = scopeName(s)
			return []string{s}, nil
		}
	}
	words := "Nothing is remembered of " + d.Repo + ", or you do not see it."
	if near := text.Nearest(d.Repo, d.Scopes); near != "" {
		words += " Did you mean " + near + "?"
	}
	return nil, notFound(words)
}

// listMemory fills in the rows: those with words, best first, or all, most confident first.
func (p *Pages) listMemory(ctx context.Context, d *memoryData, scopes []string, skip int) error {
	var list []pipeline.Learning
	if d.Q == "" {
		f := store.MemoryFilter{Scopes: scopes, Type: d.Type, Category: d.Category, Limit: memoriesShown, Skip: skip,
			Decay: &store.Decay{At: p.Now(), HalfLives: learn.HalfLives(), Least: learn.AgeLeaves}}
		switch d.State {
		case "":
		case "all":
			f.States = []pipeline.LearningState{"*"}
		default:
			f.States = []pipeline.LearningState{d.State}
		}
		var err error
		if d.All, err = p.DB.CountLearnings(ctx, f); err != nil {
			return err
		}
		if list, err = p.DB.Learnings(ctx, f); err != nil {
			return err
		}
	} else if d.State == "" || d.State == "all" || d.State == pipeline.LearningActive {
		hits, err := p.DB.SearchMemories(ctx, d.Q, scopes, hitsKept)
		if err != nil {
			return err
		}
		d.More = len(hits) == hitsKept
		for _, h := range hits {
			if (d.Type == "" || h.Type == d.Type) && (d.Category == "" || h.Category == d.Category) {
				list = append(list, h.Learning)
			}
		}
		d.All = len(list)
		list = list[min(skip, len(list)):min(skip+memoriesShown, len(list))]
	}
	for _, l := range list {
		d.Rows = append(d.Rows, p.rowOf(l))
	}
	return nil
}

// skipURL is the address of another page of a list.
func skipURL(q url.Values, skip int) string {
	next := url.Values{}
	for k := range q {
		if v := q.Get(k); v != "" && k != "skip" {
			next.Set(k, v)
		}
	}
	if skip > 0 {
		next.Set("skip", strconv.Itoa(skip))
	}
	return "?" + next.Encode()
}

// version is the identity of what of a learning can be edited: whoever edits it sends
// the version that they saw. Evidence and recalls do not change it.
func version(l *pipeline.Learning) string {
	data, _ := json.Marshal([]any{l.Type, l.Category, l.Content, l.Context, l.Paths, l.Tags, l.State}) // plain data: it cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// legible makes what would be drawn otherwise than it is stored show itself: control
// characters and marks that turn the direction of what follows.
func legible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if hidden(c) {
			fmt.Fprintf(&b, "[U+%04X]", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func hidden(c rune) bool {
	switch {
	case c == '\n' || c == '\t':
		return false
	case unicode.IsControl(c), c == 0x61C, c == 0x200E, c == 0x200F, c >= 0x202A && c <= 0x202E, c >= 0x2066 && c <= 0x2069:
		return true
	}
	return false
}

// kindWord says in plain words what kind of knowledge a learning is.
func kindWord(t pipeline.LearningType) string {
	switch t {
	case pipeline.LearningSemantic:
		return "fact or rule"
	case pipeline.LearningProcedural:
		return "way of working"
	}
	return "something that happened"
}

// stateWord says in plain words whether a learning is used, and why not.
func stateWord(s pipeline.LearningState) string {
	switch s {
	case pipeline.LearningActive:
		return "in use"
	case pipeline.LearningWithdrawn:
		return "taken back"
	case pipeline.LearningMerged:
		return "merged into another"
	case pipeline.LearningRetired:
		return "retired, it did not help"
	case pipeline.LearningForgotten:
		return "forgotten"
	}
	return string(s)
}

// sourceWord says in plain words where a learning comes from.
func sourceWord(s pipeline.LearningSource) string {
	switch s {
	case pipeline.SourceReflection:
		return "a look back at a run"
	case pipeline.SourceDismissal:
		return "a finding that was dismissed"
	case pipeline.SourceRewrite:
		return "a suggestion that was written otherwise"
	case pipeline.SourceEdit:
		return "a change that somebody made to Forge’s work"
	case pipeline.SourceGap:
		return "a problem that Forge had not found"
	case pipeline.SourceRevert:
		return "work that was reverted"
	case pipeline.SourceHuman:
		return "the words of a person"
	case pipeline.SourceImport:
		return "another server"
	}
	return string(s)
}

// day is a date as a table shows it.
func day(t time.Time) string { return t.UTC().Format("2 Jan 2006") }
