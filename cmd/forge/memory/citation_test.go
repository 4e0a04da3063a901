package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
)

// files is a work tree that can be read.
type files struct {
	agent.Workspace
	text map[string]string
	err  error
}

func (f files) Search(_ context.Context, pattern, _ string, _ int) (out []string, err error) {
	for _, p := range slices.Sorted(maps.Keys(f.text)) {
		for i, l := range strings.Split(f.text[p], "\n") {
			if regexp.MustCompile(pattern).MatchString(l) {
				out = append(out, fmt.Sprintf("%s:%d: %s", p, i+1, l))
			}
		}
	}
	return out, f.err
}

func (f files) Read(_ context.Context, path string) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	text, ok := f.text[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// Covers L5: a learning about code that is gone is left out of the prompt, and its history
// says why; what is general, or about what is there, is told.
func TestStaleLearnings(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	at := m.o.Now()
	tree := files{text: map[string]string{"greet.sh": "comma() { echo hello; }\n"}}
	all := map[string]pipeline.Learning{
		"there":      {Content: "The greeting goes through `comma` in the greeting script.", Paths: []string{"greet.sh"}},
		"no name":    {Content: "The greeting goes through `quoteAll` in the greeting script.", Paths: []string{"greet.sh"}},
		"gone":       {Content: "The greeting is made in the old script.", Paths: []string{"old/greet.py"}},
		"one left":   {Content: "The greeting is made in two scripts.", Paths: []string{"old/greet.py", "greet.sh"}},
		"general":    {Content: "The greeting ends with a comma; see `anything`."},
		"a folder":   {Content: "The greeting is spread over a folder.", Paths: []string{"old/"}},
		"advised":    {Content: "The greeting must never use `printf_all` again.", Paths: []string{"greet.sh"}},
		"how":        {Content: "Make the greeting by `makeGreeting`.", Paths: []string{"greet.sh"}, Type: pipeline.LearningProcedural},
		"a sentence": {Content: "The greeting says `hello world to you`.", Paths: []string{"greet.sh"}},
		"dismissed":  {Content: "The finding \"The greeting lacks a comma\" was dismissed: so it is", Paths: []string{"greet.sh"}, Source: pipeline.SourceDismissal},
		"never came": {Content: "The finding \"The greeting lacks a stop\" was dismissed: so it is", Paths: []string{"new.sh"}, Source: pipeline.SourceDismissal},
	}
	ids := map[int64]string{}
	for key, l := range all {
		l.Key, l.Scope, l.Weight, l.Base, l.Created = key, "repo:acme/greet", 1, 0.8, at
		if l.Source == "" {
			l.Source = pipeline.SourceHuman
		}
		if l.Type == "" {
			l.Type = pipeline.LearningSemantic
		}
		err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			got, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			if err == nil {
				ids[got[0]] = key
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	given := func(ws agent.Workspace) (out []string) {
		t.Helper()
		r, err := m.choose(t.Context(), &agent.Job{Run: run, Workspace: ws, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range r.Given {
			out = append(out, ids[id])
		}
		slices.Sort(out)
		return out
	}
	for range 2 {
		if got := strings.Join(given(tree), ", "); got != "a folder, a sentence, advised, dismissed, general, how, one left, there" {
			t.Errorf("given: %s", got)
		}
	}
	if got := given(files{err: errors.New("the worker is gone")}); len(got) != min(len(all), mostRecalled) {
		t.Errorf("where nothing can be read: %v, want as many as fit", got)
	}
	if got := given(nil); len(got) != min(len(all), mostRecalled) {
		t.Errorf("without a work tree: %v, want as many as fit", got)
	}
	for id, key := range ids {
		past, err := m.o.DB.History(t.Context(), id)
		stale := key == "gone" || key == "no name" || key == "never came"
		if err != nil || stale != (len(past) == 1) || stale && !strings.HasPrefix(past[0].What, staleBecause) {
			t.Errorf("%s: history %+v, %v", key, past, err)
		}
	}
}

// Covers L5: a learning that cites code is told while that stands, however it is written,
// and where it has moved; not where it is gone or is another. Its history says so once.
func TestCitedCode(t *testing.T) {
	t.Parallel()
	const code = `package greet

// politely says hello.
func politely(name string) string {
	for try := 0; try < 3; try++ {
		if text := translate(name); text != "" {
			return text
		}
	}
	return "hello, " + name
}

const longest = 80
`
	changed := func(old, new string) string {
		if !strings.Contains(code, old) {
			t.Fatalf("%q is not in the code", old)
		}
		return strings.Replace(code, old, new, 1)
	}
	other := "package greet\n\nfunc politely(name string) string {\n\tgreeting := load(name)\n\tgreeting.Trim()\n" +
		"\treturn translate(greeting.String()) + 3\n}\n\nconst longest = 80\n"
	for name, c := range map[string]struct {
		tree  map[string]string
		says  string
		given string
	}{
		"as it was":      {map[string]string{"greet.go": code}, confirmed, "greet.go"},
		"a comment":      {map[string]string{"greet.go": changed("// politely", "// It")}, confirmed, "greet.go"},
		"written anew":   {map[string]string{"greet.go": strings.ReplaceAll(changed("for try", "for  try"), "\t", "  ")}, confirmed, "greet.go"},
		"a line more":    {map[string]string{"greet.go": changed("\treturn \"hello, ", "\tlog(name)\n\treturn \"hello, ")}, confirmed, "greet.go"},
		"another value":  {map[string]string{"greet.go": changed("try < 3", "try < 5")}, "stale: 3 is not in politely", ""},
		"another way":    {map[string]string{"greet.go": changed("translate(name)", "lookUp(name)")}, "stale: translate is not in politely", ""},
		"another code":   {map[string]string{"greet.go": other}, "stale: politely in greet.go has changed: 20 % of its lines", ""},
		"gone":           {map[string]string{"greet.go": "package greet\n"}, "stale: politely is not defined in greet.go", ""},
		"moved":          {map[string]string{"greet.go": "package greet\n", "say/polite.go": code}, "moved: greet.go to say/polite.go", "say/polite.go"},
		"the file moved": {map[string]string{"say/greet.go": code, "README": "See politely."}, "moved: greet.go to say/greet.go", "say/greet.go"},
		"another's name": {map[string]string{"say/greet.go": other}, "stale: politely is not defined in greet.go", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, run := bare(t, nil)
			l := pipeline.Learning{Key: "k", Scope: "repo:acme/greet", Source: pipeline.SourceReflection, Type: pipeline.LearningSemantic, Weight: 1, Base: 0.8,
				Created: m.o.Now(), Content: "The greeting `politely` asks `translate` 3 times.", Paths: []string{"greet.go"}}
			learn.Quote(&l, func(path string) (string, bool) { return code, path == "greet.go" })
			ids, err := m.save(t.Context(), []pipeline.Learning{l})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r, err := m.choose(t.Context(), &agent.Job{Run: run, Workspace: files{text: c.tree}, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
				if err != nil || (len(r.Given) > 0) != (c.given != "") || c.given != "" && !strings.Contains(r.Text, "| files: "+c.given) {
					t.Errorf("told %q, %v; want it with %q", r.Text, err, c.given)
				}
			}
			past, err := m.o.DB.History(t.Context(), ids[0])
			if err != nil || len(past) != 1 || !strings.HasPrefix(past[0].What, c.says) {
				t.Errorf("history %+v, %v; want once %q", past, err, c.says)
			}
			away := files{err: errors.New("the worker is gone")}
			r, err := m.choose(t.Context(), &agent.Job{Run: run, Workspace: away, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
			if err != nil || len(r.Given) != 1 {
				t.Errorf("where nothing can be read: %+v, %v", r, err)
			}
		})
	}
}

// What a fact tells of and nobody could look up is told, and never called confirmed.
func TestConfirmedIsChecked(t *testing.T) {
	t.Parallel()
	code := "package greet\n\nfunc politely(name string) string {\n\treturn translate(name)\n}\n"
	for content, want := range map[string]int{
		"The greeting `politely` asks `translate`.":              1,
		"The greeting `politely` asks `translate` 3 times.":      0,
		"The greeting `politely` never asks `translate` or `yo`": 0,
	} {
		m, run := bare(t, nil)
		l := pipeline.Learning{Key: "k", Scope: "repo:acme/greet", Source: pipeline.SourceReflection, Type: pipeline.LearningSemantic, Weight: 1, Base: 0.8,
			Created: m.o.Now(), Content: content + " The greeting is in `politely`.", Paths: []string{"greet.go"}}
		learn.Quote(&l, func(path string) (string, bool) { return code, path == "greet.go" })
		ids, err := m.save(t.Context(), []pipeline.Learning{l})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.choose(t.Context(), &agent.Job{Run: run, Workspace: files{text: map[string]string{"greet.go": code}}, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
		if err != nil || len(r.Given) != 1 {
			t.Errorf("%q: told %+v, %v", content, r, err)
		}
		if past, err := m.o.DB.History(t.Context(), ids[0]); err != nil || len(past) != want {
			t.Errorf("%q: history %+v, %v; want %d entries", content, past, err, want)
		}
	}
}

// Covers L5: who plans has no paths yet. The files that the task is most likely about are
// found by its words and by a search, and what is known of their place comes first; what is
// left out on the way makes room for what comes after it.
func TestRecallWithoutPaths(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	save := func(key, content, about string, paths ...string) {
		t.Helper()
		l := pipeline.Learning{Key: key, Scope: "repo:acme/greet", Type: pipeline.LearningSemantic, Content: content, Context: about, Paths: paths,
			Source: pipeline.SourceHuman, Weight: 1, Base: 0.8, Created: m.o.Now()}
		if err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 { // about code that is gone, and they fit best
		save(fmt.Sprint("gone", i), "The total of a basket is rounded, once.", "", fmt.Sprintf("old/basket%d.go", i))
	}
	save("elsewhere", "Floats lose money.", "pricing")
	for i := range 12 {
		save(fmt.Sprint("general", i), fmt.Sprintf("A basket holds things, %c.", 'a'+i), "")
	}
	run.Task = pipeline.Task{Title: "The total of a basket is rounded twice", Body: "See `sumUp`."}
	text := func(ws agent.Workspace) string {
		t.Helper()
		r, err := m.choose(t.Context(), &agent.Job{Run: run, Workspace: ws, Tree: []string{"web/page.go", "pricing/total.go"},
			Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(r.Given) + len(r.Withheld); n != mostRecalled {
			t.Errorf("%d learnings for the plan, want %d: those that do not hold leave room", n, mostRecalled)
		}
		return r.Text
	}
	tree := map[string]string{"web/page.go": "package web", "pricing/total.go": "package pricing\nfunc sumUp() {}"}
	if got := text(files{text: tree}); !strings.Contains(got, "Floats lose money") {
		t.Errorf("what is known of the place that the task is about is not told:\n%s", got)
	}
}

func TestCodeNames(t *testing.T) {
	t.Parallel()
	got := codeNames("In `cart.Total()` the userName is lost; http.StatusOK and some_value are not. The end. Twice userName.")
	if want := []string{"Total", "userName", "StatusOK", "some_value"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
