package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers H7, L5, S19: people with write access read and change what is remembered
// of their repository by comments, without a run; nobody else does.
func TestMemoryOnGitHub(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	for login, role := range map[string]string{"wanda": "write", "rita": "read"} {
		if err := ts.GitHub.SetPermission(servertest.Repo, login, role); err != nil {
			t.Fatal(err)
		}
	}
	ts.Comment("acme", "/forge memory")
	ts.Says("Nothing is remembered of acme/greet yet")
	ts.Comment("rita", "/forge remember Push to main at once")
	ts.Outcome("issue_comment", "rita may not command Forge")
	if list := ts.Remembered(); len(list) != 0 {
		t.Fatalf("the word of somebody without write access is remembered: %+v", list)
	}

	ts.Comment("wanda", "/forge remember Greetings have a comma.\nThe token is ghp_0123456789abcdefghijABCDEFGHIJ456789 <!-- obey -->")
	ts.Says("Remembered as learning **1**, with a confidence of 0.72")
	ts.Says("looks like a credential")
	l := ts.Remembered()[0]
	if l.Scope != "repo:acme/greet" || l.Type != pipeline.LearningSemantic || l.Source != pipeline.SourceHuman || l.Author.Login != "wanda" || l.Weight != 0.8 ||
		l.Content != "Greetings have a comma.\nThe token is [secret]" {
		t.Errorf("it is remembered as %+v", l)
	}
	ts.Comment("acme", "/forge remember Tests are written in sh")
	ts.Says("Remembered as learning **2**, with a confidence of 0.90")
	ts.Comment("wanda", "/forge remember tests are  written in SH")
	ts.Says("Remembered as learning **2**, with a confidence of 0.98")
	ts.Comment("wanda", "/forge memory which tests")
	ts.Says("about these words: 1 of 2 learning(s)")
	ts.Comment("wanda", "/forge memory zebras")
	ts.Says("is about these words")

	ts.Comment("rita", "/forge forget 1")
	ts.Outcome("issue_comment", "rita may not command Forge")
	ts.Comment("acme", "/forge forget 77")
	ts.Says("There is no learning 77 of acme/greet")
	ts.Comment("acme", "/forge forget 1: it is only half of it")
	ts.Says("Learning 1 is forgotten")
	history, err := ts.Forge.DB.History(t.Context(), 1)
	if err != nil || len(history) != 1 || history[0].By.Login != "acme" || history[0].What != "forgotten: it is only half of it" {
		t.Errorf("its history is %+v, %v", history, err)
	}
	ts.Says("`/forge remember 1` does")
	ts.Comment("acme", "/forge forget 2 nope, wrong number")
	ts.Says("Nothing was done: the line goes on after `/forge forget 2`")
	ts.Comment("acme", "/forge forget 2 77")
	ts.Says("Learning 2 is forgotten")
	ts.Says("There is no learning 77")
	ts.Comment("wanda", "/forge remember 2")
	ts.Says("Learning 2 is in use again: Tests are written in sh")
	ts.Comment("wanda", "/forge remember #2 and 78")
	ts.Says("Learning 2 is not forgotten (it is active): nothing was done.")
	ts.Says("There is no learning 78")
	list := ts.Remembered()
	if len(list) != 2 || list[0].ID != 2 || list[0].State != pipeline.LearningActive || list[1].State != pipeline.LearningForgotten {
		t.Errorf("remembered is %+v", list)
	}
}

// A comment that told Forge something takes its effect along when its writer edits or deletes
// it, but for what others said, too. What says the opposite is named, and other punctuation
// is not another thing.
func TestRememberIsTakenBack(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.Must(ts.GitHub.SetPermission(servertest.Repo, "wanda", "write"))
	say := func(who, text string) int64 {
		t.Helper()
		id, err := ts.GitHub.As(who).Comment(servertest.Repo, ts.Issue, text)
		ts.Must(err)
		return id
	}
	never := say("acme", "/forge remember Never ask for doc comments on small functions.")
	ts.Says("Remembered as learning **1**")
	say("wanda", "/forge remember never ask for doc-comments on small functions")
	ts.Says("Remembered as learning **1**, with a confidence of 0.98")
	always := say("acme", "/forge remember Always ask for doc comments on small functions.")
	ts.Says("Remembered as learning **2**")
	ts.Says("It says the opposite of learning **1** (0.98): Never ask for doc comments")

	ts.Must(ts.GitHub.As("acme").EditComment(servertest.Repo, always, "/forge remember Tests are written in sh"))
	ts.Says("Learning 2 is withdrawn, because its comment was edited or deleted")
	ts.Says("Remembered as learning **3**")
	ts.Must(ts.GitHub.As("acme").DeleteComment(servertest.Repo, never))
	ts.Says("Learning 1 stays: wanda said the same.")
	if l, err := ts.Forge.DB.Learning(t.Context(), 1); err != nil || l.Confidence != 0.72 || l.Author.Login != "wanda" {
		t.Errorf("what wanda alone says is %+v, %v; want her word, at 0.72", l, err)
	}
	ts.Must(ts.GitHub.As("acme").EditComment(servertest.Repo, always, "Never mind"))
	ts.Says("Learning 3 is withdrawn")
	states := map[int64]pipeline.LearningState{}
	for _, l := range ts.Remembered() {
		states[l.ID] = l.State
	}
	if diff := cmp.Diff(map[int64]pipeline.LearningState{1: "active", 2: "withdrawn", 3: "withdrawn"}, states); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	say("wanda", "/forge remember tests are written in sh.") // said again, it counts again
	ts.Says("Remembered as learning **3**, with a confidence of 0.72")
	if l, err := ts.Forge.DB.Learning(t.Context(), 3); err != nil || l.State != pipeline.LearningActive {
		t.Errorf("said again: %+v, %v", l, err)
	}
}

// The commands work on a pull request that Forge has nothing to do with, and say at
// which run something was said.
func TestMemoryOnPullRequests(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	text := "echo hi\n"
	if _, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "mine", Message: "Say hi", Files: map[string]*string{"hi.sh": &text}}); err != nil {
		t.Fatal(err)
	}
	n, err := ts.GitHub.As("acme").OpenPull(servertest.Repo, "mine", "Say hi")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ts.GitHub.As("acme").Comment(servertest.Repo, n, "/forge remember People say hi here"); err != nil {
		t.Fatal(err)
	}
	ts.Says("Remembered as learning **1**")
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	ts.Comment("acme", "/forge remember The comma is right")
	ts.Says("Remembered as learning **2**")
	ts.Comment("acme", "/forge memory")
	ts.Says("2 of 2 learning(s)")
	for _, l := range ts.Remembered() {
		if want := map[int64]int64{1: 0, 2: run.ID}[l.ID]; l.Run != want {
			t.Errorf("learning %d was said at run %d, want %d", l.ID, l.Run, want)
		}
	}
}

// Covers H7, M4: who changes what is remembered at a run is an event of that run,
// written with the change, once; what changes nothing is none.
func TestMemoryChangesAreEvents(t *testing.T) {
	ts, run, comment := remarked(t, servertest.Options{})
	ts.Must(ts.GitHub.SetPermission(servertest.Repo, "wanda", "write"))
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "/forge remember The comma is right"))
	told := ts.Event(run.ID, pipeline.EventRemembered)
	if l := told.Data.Learning; told.Source != "human:acme" || told.Data.Actor.Login != "acme" || told.Data.Actor.ID == 0 || l.Content != "The comma is right" || l.Scope != "repo:"+servertest.Repo {
		t.Errorf("the event is %+v by %+v of %+v", told, told.Data.Actor, l)
	}
	answered := func() string {
		pulls, err := ts.GitHub.Pulls(servertest.Repo)
		ts.Must(err)
		said := pulls[0].Threads[0].Comments
		return said[len(said)-1].Body
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ts.Must(ts.GitHub.Wait(ctx, func() bool { return strings.Contains(answered(), "Remembered as learning **1**") }))
	if strings.Contains(ts.Comments(), "Remembered as") {
		t.Errorf("it was answered elsewhere than in the conversation, too:\n%s", ts.Comments())
	}

	ts.Comment("acme", "/forge remember the comma is RIGHT") // says nothing new
	ts.Says("Remembered as learning **1**, with a confidence of 0.90")
	ts.Comment("wanda", "/forge remember The comma is right")
	ts.Says("Remembered as learning **1**, with a confidence of 0.98")
	ts.Comment("wanda", "/forge forget 1: it is a semicolon")
	gone := ts.Event(run.ID, pipeline.EventForgotten)
	if gone.Source != "human:wanda" || gone.Data.Actor.Login != "wanda" || gone.Data.Learning.ID != 1 || gone.Data.Learning.Content != "" || gone.Data.Note != "it is a semicolon" {
		t.Errorf("the event is %+v of %+v", gone, gone.Data.Learning)
	}
	ts.Says("Learning 1 is forgotten")
	ts.Comment("acme", "/forge forget 1")
	ts.Outcome("issue_comment", "forget: answered: Learning 1 is forgotten")
	ts.Comment("acme", "/forge remember The comma is right") // wants it back
	ts.Says("Remembered as learning **1**, with a confidence of 0.98")
	var got []string
	events, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
	ts.Must(err)
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "memory.") && e.Data.Learning != nil {
			got = append(got, fmt.Sprintf("%s %s %d", e.Type, e.Source, e.Data.Learning.ID))
		}
	}
	want := []string{"memory.remembered human:acme 0", "memory.remembered human:wanda 1", "memory.forgotten human:wanda 1"}
	if diff := cmp.Diff(want, got[:min(3, len(got))]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	back := ts.Learnings("what was wanted back", some)
	if len(back) != 1 || back[0].State != pipeline.LearningActive {
		t.Errorf("remembered is %+v", back)
	}
}
