package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/memory"
	"forge/cmd/forge/shell"
	"forge/learn"
	"forge/learn/export"
	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// What belongs to another repository or to the organisation is neither shown nor
// forgotten from here; what was forgotten comes back by who says it again.
func TestSlashCommandsOfTheMemory(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	db := c.dbWith(t, "repo:acme/site", "repo:acme/other", "org:acme")
	ann, bob, at := pipeline.Actor{ID: 1, Login: "ann"}, pipeline.Actor{ID: 2, Login: "bob"}, march
	weights := map[string]float64{"ann": 1, "bob": 0.8}
	m := &memory.Commands{DB: db, Now: at, Weight: weightsOf(weights)}
	site, ctx := pipeline.Repo{ID: 7, Owner: "acme", Name: "site"}, t.Context()
	word := func(who pipeline.Actor, text string, run int64) work.Word {
		return work.Word{Repo: site, Actor: who, Text: text, Run: run}
	}
	say := func(want string) func(string, error) {
		return func(got string, err error) {
			t.Helper()
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("it says %q, %v, want %q", got, err, want)
			}
		}
	}
	say("1 of 1 learning(s)")(m.Memory(ctx, site, ""))
	for _, l := range allOf(t, db) {
		if l.Scope != "repo:acme/site" {
			say("There is no learning")(m.Forget(ctx, word(ann, "", 0), l.ID))
		}
	}
	for _, l := range allOf(t, db) {
		if l.State != pipeline.LearningActive {
			t.Errorf("%d of %s is %s", l.ID, l.Scope, l.State)
		}
	}
	say("learning **4**, with a confidence of 0.90")(m.Remember(ctx, word(ann, "Mind the gap", 0)))
	say("learning **4**, with a confidence of 0.90")(m.Remember(ctx, word(ann, "Mind the gap", 0))) // a repeated delivery
	say("learning **4**, with a confidence of 0.98")(m.Remember(ctx, word(bob, "mind the gap", 3)))
	say("learning **4**, with a confidence of 0.98")(m.Remember(ctx, word(bob, "mind the gap", 3)))
	say("Learning 4 is forgotten")(m.Forget(ctx, word(bob, "", 0), 4))
	say("Learning 4 is forgotten")(m.Forget(ctx, word(bob, "", 0), 4))
	say("1 of 1 learning(s)")(m.Memory(ctx, site, ""))
	say("learning **4**, with a confidence of 0.98")(m.Remember(ctx, word(ann, "Mind the gap", 0)))
	say("about these words: 1 of 2")(m.Memory(ctx, site, "gap"))
	say("with write access")(m.Remember(ctx, word(pipeline.Actor{ID: 9, Login: "eve"}, "Trust me", 0)))
	say("nothing in these words")(m.Remember(ctx, word(ann, "<!-- obey -->", 0)))
	say(fmt.Sprintf("at most %d bytes", learn.MaxWords))(m.Remember(ctx, word(ann, strings.Repeat("long ", learn.MaxWords), 0)))
	weights["ann"] = -1
	if _, err := m.Remember(ctx, word(ann, "Never said", 0)); err == nil {
		t.Error("GitHub does not answer, and the words are remembered")
	}
	if n := len(allOf(t, db)); n != 5 {
		t.Errorf("%d learnings, want 5", n)
	}
}

// dbWith is the database with a learning for each scope.
func (c *cli) dbWith(t *testing.T, scopes ...string) *store.DB {
	t.Helper()
	for i, scope := range scopes {
		path := c.file(fmt.Sprintf("%d.json", i), string(export.Write(scope, []export.Entry{wrapErrors(scope, "a", march())})))
		c.run(shell.Done, []string{"1 new"}, "memory", "import", path)
	}
	db := c.db()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// weightsOf asks a table; a weight below 0 is a GitHub that does not answer.
func weightsOf(weights map[string]float64) func(context.Context, pipeline.Repo, pipeline.Actor) (float64, error) {
	return func(_ context.Context, _ pipeline.Repo, a pipeline.Actor) (float64, error) {
		if w := weights[a.Login]; w >= 0 {
			return w, nil
		}
		return 0, errors.New("GitHub is away")
	}
}

func allOf(t *testing.T, db *store.DB) []pipeline.Learning {
	t.Helper()
	list, err := db.Learnings(t.Context(), store.MemoryFilter{States: []pipeline.LearningState{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func march() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
