package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/learnings"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/learn"
	"forge/learn/export"
	"forge/pipeline"
	"forge/pipeline/store"
)

// wrapErrors is a learning from a dismissal, with evidence against it.
func wrapErrors(scope, key string, at time.Time) export.Entry {
	return export.Entry{
		Learning: pipeline.Learning{Key: key, Scope: scope, Type: pipeline.LearningSemantic, State: pipeline.LearningActive, Category: "style",
			Base: 0.8, Source: pipeline.SourceHuman,
			Author: pipeline.Actor{ID: 1, Login: "ann"}, Weight: 1, Paths: []string{"api/a.go"}, Content: "Wrap errors with the activity", Created: at, Touched: at},
		Evidence: []pipeline.Evidence{{Of: key, Key: "thread/1", Delta: -0.2, Why: "a related finding was dismissed",
			Actor: pipeline.Actor{ID: 2, Login: "bob"}, At: at.Add(time.Hour)}},
	}
}

// file writes a file beside the state directory.
func (c *cli) file(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *cli) db() *store.DB {
	c.t.Helper()
	db, err := store.Open(c.t.Context(), filepath.Join(c.dir, "state", "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	return db
}

// Covers H7, M3: what is remembered can be listed, found, read with its evidence,
// changed and forgotten, and who did it is kept.
func TestMemoryCommands(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(shell.Done, []string{"Nothing is remembered yet", "/forge remember", "import"}, "memory", "list")
	if got := c.run(shell.Done, nil, "memory", "list", "--json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("memory list --json of nothing = %q, want []", got)
	}
	at := time.Now().Add(-60 * 24 * time.Hour).UTC().Truncate(time.Microsecond)
	second := wrapErrors("repo:acme/site", "b", at.Add(59*24*time.Hour))
	second.Learning.Content, second.Evidence = "Close files", nil
	site := c.file("site.json", string(export.Write("repo:acme/site", []export.Entry{wrapErrors("repo:acme/site", "a", at), second})))
	org := c.file("org.json", string(export.Write("org:acme", []export.Entry{wrapErrors("org:acme", "a", at)})))
	c.run(shell.Done, []string{"3 new"}, "memory", "import", site, org)

	var list []learnings.View
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "memory", "list", "--scope", "acme/site", "--json")), &list); err != nil || len(list) != 2 {
		t.Fatalf("memory list --json: %+v, %v", list, err)
	}
	// Age takes half at most, half of that of a fact in 120 days (learn.Effective).
	if l := list[1]; l.Confidence != 0.6 || l.Effective > 0.6*0.8536 || l.Effective < 0.6*0.85 || list[0].Content != "Close files" {
		t.Errorf("the list is %+v", list)
	}
	out := c.run(shell.Done, []string{"org:acme", "Wrap errors", "0.51", "1 of 3", "--skip 1"}, "memory", "list", "--limit", "1")
	if strings.Contains(out, "repo:acme/site") {
		t.Errorf("--limit 1 lists more:\n%s", out)
	}
	out = c.run(shell.Done, []string{"repo:acme/site"}, "memory", "list", "--skip", "1")
	if strings.Contains(out, "org:acme") || strings.Contains(out, "--skip") {
		t.Errorf("--skip 1 lists the first, or tells of more:\n%s", out)
	}
	out = c.run(shell.Done, []string{"Close files"}, "memory", "search", "files", "nothing")
	if strings.Contains(out, "Wrap") {
		t.Errorf("search finds what has none of the words:\n%s", out)
	}
	c.run(shell.Done, []string{"org:acme"}, "memory", "search", "--scope", "acme", "errors")
	c.run(shell.Done, []string{"Nothing that is remembered"}, "memory", "search", "zebra")

	id := fmt.Sprint(list[1].ID)
	c.run(shell.Done, []string{"Wrap errors", "-0.20", "bob", "dismissed", "ann", "0.60 before decay", "began with 0.80", "paths: api/a.go",
		"no run was given it"}, "memory", "show", id)
	c.run(shell.Failed, []string{"from 0.00 to 0.80"}, "memory", "edit", id, "--confidence", "0.9")
	c.run(shell.Done, []string{"confidence is 0.75"}, "memory", "edit", id, "--confidence", "0.75", "--content", "Wrap all errors", "--context",
		"in Go", "--path", "b.go", "--path", "c.go")
	me := server.OSUser().Login
	c.run(shell.Done, []string{"Wrap all errors", "when it matters: in Go", "b.go, c.go", "0.75 before decay", me,
		`words: "Wrap errors with the activity"`, "edited"}, "memory", "show", id)
	c.run(shell.Done, []string{"is forgotten"}, "memory", "forget", id, "--why", "we left Go")
	c.run(shell.Done, []string{"was forgotten before"}, "memory", "forget", id)
	c.run(shell.Done, []string{"forgotten: we left Go", me}, "memory", "show", id)
	c.run(shell.Failed, []string{"is forgotten"}, "memory", "edit", id, "--content", "again")
	if out := c.run(shell.Done, nil, "memory", "list", "--scope", "acme/site"); strings.Contains(out, "Wrap") {
		t.Errorf("what is forgotten is listed:\n%s", out)
	}
	c.run(shell.Done, []string{"Wrap all errors", "forgotten"}, "memory", "list", "--all")
	c.run(shell.Done, []string{"repo:acme/site", "acme/other"}, "memory", "list", "--scope", "acme/other")
	var d learnings.Details
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "memory", "show", id, "--json")), &d); err != nil || len(d.Evidence) != 1 || d.Uses == nil {
		t.Errorf("memory show --json: %+v, %v", d, err)
	}
	var changes []string // H7: who changed what is remembered, and how
	for _, h := range d.History {
		changes = append(changes, h.By.Login+" "+h.What)
		if h.At.IsZero() {
			t.Errorf("a change without a time: %+v", h)
		}
	}
	if diff := cmp.Diff([]string{me + " imported", me + " edited", me + " forgotten: we left Go"}, changes); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestMemoryUsage(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, args := range []string{"list now", "list --limit 0", "list --skip -1", "list --scope a/b/c", "list --scope team:x", "search",
		"show x", "show", "show 0", "edit 1",
		"edit 1 --content=", "edit 1 --confidence 2", "edit 1 --confidence NaN", "forget", "export a b", "import"} {
		c.run(shell.Misused, nil, append([]string{"memory"}, strings.Fields(args)...)...)
	}
	c.run(shell.Misused, []string{"--source takes one of", "did you mean dismissal?"}, "memory", "list", "--source", "dismisal")
	c.run(shell.Misused, []string{"--category takes one of", "security", `got "foo"`}, "memory", "list", "--category", "foo")
	c.run(shell.Misused, []string{"take one of stands:ask"}, "memory", "edit", "1", "--tag", "stands:banana")
	c.run(shell.Misused, []string{"no path within the repository"}, "memory", "edit", "1", "--path", "../../etc/passwd")
	c.run(shell.Misused, []string{"say it shorter"}, "memory", "edit", "1", "--content", strings.Repeat("x", learn.MaxWords+1))
	for _, args := range []string{"show 7", "edit 7 --content x", "forget 7"} {
		c.run(shell.Failed, []string{"learning 7: not found", "memory list"}, append([]string{"memory"}, strings.Fields(args)...)...)
	}
	c.run(shell.Failed, []string{"nothing is remembered there"}, "memory", "export")
}

// Covers L5: which runs were given a learning, and whether they used it.
func TestMemoryShowUses(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	now := time.Now()
	c.run(shell.Done, []string{"1 new"}, "memory", "import",
		c.file("m.json", string(export.Write("repo:acme/greet", []export.Entry{wrapErrors("repo:acme/greet", "a", now)}))))
	db := c.db()
	start := pipeline.Start{Repo: pipeline.Repo{ID: 5, Owner: "acme", Name: "greet"}, Task: pipeline.Task{Issue: 3, Title: "Say hello"}, Branch: "forge/issue-3"}
	run, err := db.CreateRun(t.Context(), "start", start, now, strings.Repeat("0", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []pipeline.Recall{{Given: []int64{1}}, {Used: []int64{1}}, {Withheld: []int64{1}}} {
		r.Phase, r.Iteration, r.Role = pipeline.PhaseReview, i/2+1, "quality"
		err := db.Tx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return db.RecordRecall(ctx, tx, run.ID, r, now) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	c.run(shell.Done, []string{"recalled 1 times, used 1 times:", "given and used", "withheld, to measure its worth", "quality"}, "memory", "show", "1")
}

// What comes from another installation keeps the blanks of its code, and says that its run is
// of that one; what cannot be is not taken in.
func TestMemoryFromElsewhere(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	at := march()
	e := wrapErrors("repo:acme/site", "a", at)
	e.Learning.Run, e.Learning.Source, e.Learning.Context, e.Learning.Tags = 15, pipeline.SourceReflection, "\t\treturn err", []string{"go", "stands:ask"}
	file := c.file("m.json", string(export.Write("repo:acme/site", []export.Entry{e})))
	c.run(shell.Done, []string{"1 new"}, "memory", "import", file)
	text := c.run(shell.Done, []string{`"context": "\t\treturn err"`}, "memory", "export", "--scope", "acme/site", "-")
	if strings.Contains(text, `"run": 15`) {
		t.Errorf("its run is taken for one of this installation:\n%s", text)
	}
	c.run(shell.Done, []string{"learnt in run 15 of the installation that it comes from"}, "memory", "show", "1")
	c.run(shell.Done, []string{"1 the same"}, "memory", "import", file)
	c.run(shell.Done, nil, "memory", "edit", "1", "--tag", "js")
	c.run(shell.Done, []string{"js, stands:ask"}, "memory", "show", "1")
	for _, bad := range []struct {
		change func(*export.Entry)
		want   string
	}{
		{func(e *export.Entry) { e.Learning.Touched = at.AddDate(900, 0, 0) }, "touched is in the future"},
		{func(e *export.Entry) { e.Learning.Created = at.AddDate(900, 0, 0) }, "created is in the future"},
		{func(e *export.Entry) { e.Evidence[0].At = at.AddDate(900, 0, 0) }, "the evidence thread/1 is of the future"},
		{func(e *export.Entry) { e.Learning.Tags = []string{"stands:banana"} }, "take one of stands:ask"},
		{func(e *export.Entry) { e.Learning.Paths = []string{"/etc/shadow"} }, "no path within the repository"},
	} {
		e := wrapErrors("repo:acme/site", "b", at)
		bad.change(&e)
		c.run(shell.Failed, []string{bad.want}, "memory", "import", c.file("bad.json", string(export.Write("repo:acme/site", []export.Entry{e}))))
	}
	c.run(shell.Done, []string{"1 learning"}, "memory", "export", "--scope", "acme/site", filepath.Join(c.dir, "out"))
}

// What is exported and taken in by another server is the same there; a file that
// people edited changes words, and what was forgotten stays so.
func TestMemoryFiles(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	at := march()
	site := c.file("site.json", string(export.Write("repo:acme/site", []export.Entry{wrapErrors("repo:acme/site", "a", at), wrapErrors("repo:acme/site", "b", at)})))
	org := c.file("org.json", string(export.Write("org:acme", []export.Entry{wrapErrors("org:acme", "a", at)})))
	c.run(shell.Done, []string{"new: a of org:acme", "3 new", "this was a check"}, "memory", "import", "--check", site, org)
	c.run(shell.Done, []string{"Nothing is remembered yet"}, "memory", "list", "--all")
	c.run(shell.Done, []string{"3 learning(s) read: 3 new"}, "memory", "import", site, org, site)
	c.run(shell.Done, []string{"0 new", "3 the same"}, "memory", "import", site, org)

	c.run(shell.Misused, []string{"org:acme, repo:acme/site", "--scope"}, "memory", "export")
	text := c.run(shell.Done, []string{`"scope": "repo:acme/site"`, `"key": "a"`, `"delta": -0.2`}, "memory", "export", "--scope", "acme/site", "-")
	dir := filepath.Join(c.dir, "out")
	c.run(shell.Done, []string{"acme.json", "acme/site.json: 2 learning(s)"}, "memory", "export", dir)
	if diff := cmp.Diff(text, read(t, filepath.Join(dir, "acme", "site.json"))); diff != "" {
		t.Errorf("the file differs from the output (-output +file):\n%s", diff)
	}
	other := newCLI(t)
	other.run(shell.Done, []string{"3 new"}, "memory", "import", dir)
	if diff := cmp.Diff(text, other.run(shell.Done, nil, "memory", "export", "--scope", "acme/site")); diff != "" {
		t.Errorf("the other server exports something else (-here +there):\n%s", diff)
	}

	edited := strings.Replace(text, "Wrap errors with the activity", "Wrap errors, never twice", 1)
	edited = strings.Replace(edited, `"evidence": [`,
		`"evidence": [{"key": "thread/2", "delta": 0.1, "at": "2026-03-02T12:00:00Z", "actor": {"id": 1, "login": "ann"}, "why": "used"},`, 1)
	edited = strings.Replace(edited, `"confidence": 0.6`, `"confidence": 0.99`, 1)
	path := other.file("edited.json", edited)
	other.run(shell.Done, []string{"changed: a of repo:acme/site: Wrap errors, never twice (was: Wrap errors with the activity)",
		"base and evidence make it 0.70"}, "memory", "import", "--check", path)
	other.run(shell.Done, []string{"1 changed", "1 the same"}, "memory", "import", path)
	other.run(shell.Done, []string{"Wrap errors, never twice", "0.70 before decay", server.OSUser().Login, "1 piece(s) of evidence imported"},
		"memory", "show", other.idOf("a"))
	other.run(shell.Done, []string{"is forgotten"}, "memory", "forget", other.idOf("b"))
	other.run(shell.Done, []string{"stays so", "0 changed"}, "memory", "import", path)
	gone := strings.Replace(text, `"state": "active"`, `"state": "forgotten"`, 1)
	other.run(shell.Done, []string{"1 forgotten"}, "memory", "import", other.file("gone.json", gone))
	if out := other.run(shell.Done, nil, "memory", "list", "--scope", "acme/site", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("what a file calls forgotten is in use: %s", out)
	}
}

// idOf is the number of the repository's learning with the key.
func (c *cli) idOf(key string) string {
	c.t.Helper()
	db := c.db()
	defer db.Close()
	list, err := db.Learnings(c.t.Context(), store.MemoryFilter{Scopes: []string{"repo:acme/site"}, States: []pipeline.LearningState{"*"}})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range list {
		if l.Key == key {
			return fmt.Sprint(l.ID)
		}
	}
	c.t.Fatalf("no learning has the key %s", key)
	return ""
}

// A mistake in one file is named, and nothing of any is taken in.
func TestMemoryImportMistakes(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	at := march()
	good := c.file("good.json", string(export.Write("org:acme", []export.Entry{wrapErrors("org:acme", "a", at)})))
	bad := c.file("bad.json", "{\n\"scope\": \"org:acme\",\n\"learning\": 1}")
	lost := c.file("lost.json", `{"scope": "the/../world"}`)
	c.run(shell.Failed, []string{"bad.json: line 3: ", "lost.json: the scope is", "repo:OWNER/NAME", "nowhere.json"}, "memory",
		"import", good, bad, lost, filepath.Join(c.dir, "nowhere.json"))
	c.run(shell.Failed, []string{"no file *.json"}, "memory", "import", t.TempDir())
	c.run(shell.Done, []string{"Nothing is remembered yet"}, "memory", "list", "--all")
}
