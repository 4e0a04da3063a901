package memory

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

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
	}
	ids := map[int64]string{}
	for key, l := range all {
		l.Key, l.Scope, l.Source, l.Weight, l.Base, l.Created = key, "repo:acme/greet", pipeline.SourceHuman, 1, 0.8, at
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
		if got := strings.Join(given(tree), ", "); got != "a folder, a sentence, advised, general, how, one left, there" {
			t.Errorf("given: %s", got)
		}
	}
	if got := given(files{err: errors.New("the worker is gone")}); len(got) != len(all) {
		t.Errorf("where nothing can be read: %v, want all", got)
	}
	if got := given(nil); len(got) != len(all) {
		t.Errorf("without a work tree: %v, want all", got)
	}
	for id, key := range ids {
		past, err := m.o.DB.History(t.Context(), id)
		stale := key == "gone" || key == "no name"
		if err != nil || stale != (len(past) == 1) || stale && !strings.HasPrefix(past[0].What, staleBecause) {
			t.Errorf("%s: history %+v, %v", key, past, err)
		}
	}
}
