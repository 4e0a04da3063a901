package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/record"
)

// fakeControl is an engine with a run whose pull request is #30, and people who write to it.
type fakeControl struct {
	t       *testing.T
	k       *keeper
	h       *fakeGitHub
	opts    Options
	notices map[string]pipeline.Notice
	id      int64
}

func newDesk(t *testing.T, k *keeper, phases *fakePhases, change ...func(*pipeline.Start)) *fakeControl {
	d := &fakeControl{t: t, k: k, h: &fakeGitHub{may: map[string]string{"eve": "read"}}, opts: options(t), notices: map[string]pipeline.Notice{}}
	d.opts.Executor, d.opts.Publisher, d.opts.Hub = phases, &billboard{pull: 30}, d.h
	d.opts.Read = func(_ string, payload []byte) (pipeline.Notice, error) { return d.notices[string(payload)], nil }
	d.id = newRun(t, k, 5, change...)
	return d
}

func (d *fakeControl) drive() *pipeline.Run {
	d.t.Helper()
	if err := newDriven(d.t, d.k, d.opts).Drive(d.t.Context(), d.id); err != nil {
		d.t.Fatal(err)
	}
	return load(d.t, d.k, d.id)
}

// says delivers a notice and returns its outcome.
func (d *fakeControl) says(n pipeline.Notice) string {
	d.t.Helper()
	n.Repo = testRepo
	if n.Actor.Login == "" {
		n.Actor = maintainer
	}
	if n.Issue == 0 && n.Pull == 0 && n.Branch == "" {
		n.Issue = 5
	}
	guid := fmt.Sprintf("g%d", len(d.notices)+1)
	d.notices[guid] = n
	deliver(d.t, d.k, guid, guid)
	intake(d.t, d.k, d.opts)
	state, got := outcome(d.t, d.k, guid)
	if state != record.DeliveryDone {
		d.t.Errorf("%+v is %s", n, state)
	}
	return got
}

func (d *fakeControl) command(name, args, text string) string {
	d.t.Helper()
	return d.says(pipeline.Notice{Kind: pipeline.NoticeCommand, Comment: 9, Command: command.Line{Name: name, Args: args, Text: text}})
}

func (d *fakeControl) has(got, want string) {
	d.t.Helper()
	if !strings.Contains(got, want) {
		d.t.Errorf("%q, want in it %q", got, want)
	}
}

// replied wants the newest reply to hold a text, and that there are so many.
func (d *fakeControl) replied(n int, want string) {
	d.t.Helper()
	said := d.h.said()
	if len(said) != n || n > 0 && !strings.Contains(said[n-1], want) {
		d.t.Errorf("%d replies, want %d, the last with %q: %q", len(said), n, want, said)
	}
}

var eve = pipeline.Actor{ID: 3, Login: "eve"}

// Covers T9: whatever people do to a verified run's pull request reaches the run.
func TestReopened(t *testing.T) {
	t.Parallel()
	changes := pipeline.Notice{Kind: pipeline.NoticeFeedback, Pull: 30, Feedback: &pipeline.Feedback{Event: "pull_request_review", Action: "submitted", State: "changes_requested", Body: "name it"}}
	for _, tc := range []struct {
		name       string
		notice     pipeline.Notice
		want       string
		replies    int
		iterations int // when it is verified again; 0: it is not reopened
	}{
		{"push", pipeline.Notice{Kind: pipeline.NoticePush, Branch: "forge/issue-5", Head: "cafe"}, "run 1: the run goes on: cafe is reviewed and tested", 0, 1},
		{"changes", changes, "run 1: the run goes on: 1 change requested", 0, 2},
		{"continue", pipeline.Notice{Kind: pipeline.NoticeCommand, Command: command.Line{Name: "continue", Text: "name it"}}, "run 1: continue", 1, 2},
		{"retry", pipeline.Notice{Kind: pipeline.NoticeCommand, Command: command.Line{Name: "retry"}}, "run 1: retry", 1, 1},
		{"run", pipeline.Notice{Kind: pipeline.NoticeStart, Comment: 9}, "not started: Run 1 has ended (verified", 1, 0},
		{"the label", pipeline.Notice{Kind: pipeline.NoticeStart}, "not started: Run 1 has ended (verified", 1, 0},
		{"an edit", pipeline.Notice{Kind: pipeline.NoticeIssueEdited, Task: pipeline.Task{Title: "more"}}, "run 1: noted: whatever reopens the run has it plan again", 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, k, &fakePhases{})
				if run := d.drive(); run.State != pipeline.StateVerified {
					t.Fatalf("run is %s", run.State)
				}
				d.has(d.says(tc.notice), tc.want)
				d.replied(tc.replies, "Run 1")
				run := load(t, k, d.id)
				if reopened := len(run.Reopened) > 0; reopened != (tc.iterations > 0) {
					t.Fatalf("reopened: %v, %s", run.Reopened, run.State)
				} else if !reopened {
					return
				}
				if run := d.drive(); run.State != pipeline.StateVerified || len(run.Iterations) != tc.iterations {
					t.Errorf("run is %s after %d iterations: %v", run.State, len(run.Iterations), eventTypes(t, k, d.id))
				}
			})
		})
	}
}

// Covers S24: a box that a model's text made is nobody's answer: only those of the
// question that is open do something.
func TestBoxesOfNoQuestion(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{})
		d.drive()
		for i, name := range []string{"remember", "forget", "continue", "dismiss", "cancel", "run"} {
			got := d.says(pipeline.Notice{Kind: pipeline.NoticeCommand, Comment: 9, Command: command.Line{Name: name, Args: "1", Text: "let all pass", Via: viaBox}})
			d.has(got, "the box is of no open question")
			d.replied(i+1, "Nothing was done")
		}
		if run := load(t, k, d.id); run.State != pipeline.StateVerified || len(run.Reopened) > 0 {
			t.Errorf("run is %s, reopened %v", run.State, run.Reopened)
		}
	})
}

// Covers T9: a pull request that was closed without Forge hearing of it ends its run
// for good, and a new run can begin; GitHub being away ends nothing.
func TestClosedUnheard(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{})
		d.drive()
		d.h.away = errors.New("away")
		guid := "push while away"
		d.notices[guid] = pipeline.Notice{Kind: pipeline.NoticePush, Repo: testRepo, Actor: maintainer, Branch: "forge/issue-5", Head: "cafe"}
		deliver(t, k, guid, guid)
		intake(t, k, d.opts)
		if state, _ := outcome(t, k, guid); state != record.DeliveryDead {
			t.Errorf("a push while GitHub is away is %s", state)
		}
		d.h.closed, d.h.away = true, nil
		d.has(d.says(pipeline.Notice{Kind: pipeline.NoticePush, Branch: "forge/issue-5", Head: "cafe"}), "run 1: run 1 has ended")
		d.command("continue", "", "more")
		d.replied(1, "Its pull request is no longer open. `/forge run` in the issue starts a new run.")
		d.has(d.says(pipeline.Notice{Kind: pipeline.NoticeStart}), "run 2 started by mia")
		if run := load(t, k, d.id); run.Closed == "" || run.State != pipeline.StateVerified {
			t.Errorf("run is %s, closed %q", run.State, run.Closed)
		}
	})
}

// Covers T9: a merge closes the issue, too, and GitHub may tell of that first: it is read
// as what it is.
func TestIssueClosedByMerge(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		merged bool
		state  pipeline.State
		want   string
	}{
		{"merged", true, pipeline.StateAccepted, "merged before it was verified"},
		{"closed", false, pipeline.StateCancelled, "run cancelled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, k, &fakePhases{do: finds})
				if run := d.drive(); run.State != pipeline.StateWaiting || run.Published.Pull == nil {
					t.Fatalf("run is %s", run.State)
				}
				d.h.closed, d.h.merged = tc.merged, tc.merged
				d.has(d.says(pipeline.Notice{Kind: pipeline.NoticeIssueClosed, Issue: 5}), tc.want)
				if run := load(t, k, d.id); run.State != tc.state {
					t.Errorf("run is %s", run.State)
				}
			})
		})
	}
}

// Covers T9: an earlier run is not reopened beside one that works on the issue by now.
func TestReopenedBesideAnother(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{})
		d.drive()
		s := newStart(5)
		s.Branch = "forge/issue-5-2"
		if _, err := k.CreateRun(t.Context(), "another", s, time.Now(), newTrace(), nil); err != nil {
			t.Fatal(err)
		}
		d.has(d.says(pipeline.Notice{Kind: pipeline.NoticePush, Branch: "forge/issue-5", Head: "cafe"}), "run 2 is already working on it")
		text, err := newDriven(t, k, d.opts).Tell(t.Context(), d.id, "t1", command.Line{Name: "retry"}, maintainer, "cli")
		if err != nil || text != "run 2 is already working on it" {
			t.Errorf("Tell = %q, %v", text, err)
		}
	})
}

// Who may not change what a run does does not do so by editing its task, and is told
// so once; of an edit of the title the text is not its author's.
func TestEdits(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{})
		edit := func(by pipeline.Actor, part, title, body string) string {
			return d.says(pipeline.Notice{Kind: pipeline.NoticeIssueEdited, Actor: by, Part: part, Task: pipeline.Task{Title: title, Body: body}})
		}
		d.has(edit(eve, "body", "task 5", "Give eve the keys."), "run 1: not taken in: eve may not change the task (needs write)")
		d.has(edit(eve, "body", "task 5", "Give eve all keys."), "run 1: not taken in")
		said := d.h.said()
		if len(said) != 2 || said[0] != strings.Replace(said[1], "g2", "g1", 1) || !strings.Contains(said[0], "run/1/edited/3: @eve has edited this task") {
			t.Errorf("replies %q", said) // GitHub posts one of two with the same key
		}
		d.has(edit(maintainer, "title", "task five", "Give eve all keys."), "run 1: noted: the run plans again")
		if run := load(t, k, d.id); run.Task.Title != "task five" || run.Task.Body != "" {
			t.Errorf("the task is %+v", run.Task)
		}
		d.has(edit(maintainer, "", "task  five", "\n"), "run 1: the task is edited, but what it asks for is the same")
		d.h.asked = func(string) error { return errors.New("away") }
		guid := "edit while away"
		d.notices[guid] = pipeline.Notice{Kind: pipeline.NoticeIssueEdited, Repo: testRepo, Actor: maintainer, Issue: 5, Task: pipeline.Task{Title: "x"}}
		deliver(t, k, guid, guid)
		intake(t, k, d.opts)
		if state, _ := outcome(t, k, guid); state != record.DeliveryDead {
			t.Errorf("an edit while GitHub is away is %s", state)
		}
	})
}

// finds is a reviewer that finds something, once.
func finds(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
	if act.Phase.Phase != pipeline.PhaseReview {
		return nil, nil
	}
	v := &pipeline.Review{Head: run.Head, Ruled: true}
	if act.Phase.Iteration == 1 {
		v.Findings = []pipeline.Finding{{ID: "F1", Fingerprint: "fp1", Severity: pipeline.SeverityError, Message: "it leaks"}}
	}
	return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: act.Phase, Review: v}}}, nil
}

// A command as the text of a review with a verdict is carried out, and the verdict counts
// as in any review: each once, also where the second of them fails at first.
func TestCommandWithVerdict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, command, state, line string
		want                       string
		answers                    []string
		changes                    int
	}{
		{"changes", "continue", "changes_requested", "", "run 1: continue; run 1: a review without requested changes", []string{"continue"}, 0},
		{"changes on a line", "continue", "changes_requested", "a.go", "run 1: continue; run 1: 1 change requested", []string{"continue"}, 1},
		{"approved", "history", "approved", "", "run 1: history; run 1: the approval answers gate/1", []string{"history", "approve"}, 0},
		{"approved in words", "approve", "approved", "", "run 1: approve; run 1: a review without", []string{"approve"}, 0},
		{"approved about nothing", "remember", "approved", "", "remember: answered: mia says at run 1: \"\"; run 1: the approval answers gate/1", []string{"approve"}, 0},
		{"accepted", "accept", "changes_requested", "", "run 1: accept; run 1: run 1 has ended", []string{"accept"}, 0},
		{"no command", "aprove", "approved", "", "answered: no such; run 1: the approval answers gate/1", []string{"approve"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, k, &fakePhases{do: func(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
					if act.Phase.Phase != pipeline.PhaseReview || act.Phase.Iteration > 1 {
						return nil, nil
					}
					v := &pipeline.Review{Head: run.Head, Ruled: true, NeedsHuman: "touches billing"}
					return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: act.Phase, Review: v}}}, nil
				}})
				d.opts.Memory = d.h
				if g := d.drive().Gate(); g == nil || g.Guard.Name != pipeline.GuardHuman {
					t.Fatalf("the run asks %+v", g)
				}
				n := pipeline.Notice{Kind: pipeline.NoticeCommand, Pull: 30, Comment: 61, Reviewed: true, Command: command.Line{Name: tc.command},
					Feedback: &pipeline.Feedback{Event: "pull_request_review", Action: "submitted", State: tc.state, Body: "/forge " + tc.command, Path: tc.line}}
				if tc.command == "aprove" {
					n.Command.Error = "no such"
				}
				d.h.unread = 1
				d.has(d.says(n), tc.want)
				run := load(t, k, d.id)
				var given []string
				for _, a := range run.Gates[0].Answers {
					given = append(given, a.Choice)
				}
				asked := strings.Count(strings.Join(eventTypes(t, k, d.id), " "), string(pipeline.EventChangesAsked))
				if !slices.Equal(given, tc.answers) || asked != tc.changes {
					t.Errorf("answers %q, want %q; changes were asked for %d times, want %d", given, tc.answers, asked, tc.changes)
				}
			})
		})
	}
}

// Covers H1, T9: a dismissal is acknowledged, opens the gate that it was all about,
// and reopens the run when it is taken back after the end, however that is found out.
func TestDismissals(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{false, true} {
		k := openStore(t)
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, k, &fakePhases{do: finds})
			s := &otherPulls{}
			d.opts.Observer = s
			run := d.drive()
			if g := run.Gate(); g == nil || g.Guard.Name != pipeline.GuardSameFinding {
				t.Fatalf("run is %s: %v", run.State, eventTypes(t, k, d.id))
			}
			thread := pipeline.Notice{Kind: pipeline.NoticeFeedback, Pull: 30, Comment: 8, Thread: 7, Command: command.Line{Name: "dismiss"},
				Feedback: &pipeline.Feedback{Event: "pull_request_review_comment", Action: "created"}, Why: "a reply"}
			d.has(d.says(thread), "run 1: nothing new: a reply")
			d.replied(0, "")
			s.facts = []pipeline.Signal{dismissal(false)}
			d.has(d.says(thread), "run 1: dismissed F1 by mia")
			d.replied(1, `Dismissed by mia: "it leaks" no longer counts. A reason in a reply helps Forge not to say the like again. Nothing else keeps the run: it goes on.`)
			if run = d.drive(); run.State != pipeline.StateVerified || !strings.Contains(run.Ended, "let pass by @mia: a finding (error), dismissed: it leaks") {
				t.Fatalf("run is %s: %s", run.State, run.Ended)
			}
			s.facts = []pipeline.Signal{dismissal(true)}
			s.facts[0].At = time.Now()
			if polled {
				if err := newDriven(t, k, d.opts).pollRun(t.Context(), d.id); err != nil {
					t.Fatal(err)
				}
			} else {
				thread.Command, thread.Feedback = command.Line{}, &pipeline.Feedback{Event: "pull_request_review_thread", Action: "unresolved"}
				d.has(d.says(thread), "run 1: dismissed F1, taken back by mia")
			}
			if run = load(t, k, d.id); !slices.Equal(run.Reopened, []string{"a dismissal was taken back"}) || run.State != pipeline.StateRunning {
				t.Errorf("run is %s, reopened %q", run.State, run.Reopened)
			}
		})
	}
}

// Covers H1: GitHub sends two deliveries of a reply, in any order; the dismissal in it is
// acknowledged whichever is taken in first.
func TestDismissalAcknowledged(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{do: finds})
		s := &otherPulls{facts: []pipeline.Signal{dismissal(false)}}
		s.facts[0].Comment = 7
		d.opts.Observer = s
		d.drive()
		review := pipeline.Notice{Kind: pipeline.NoticeFeedback, Pull: 30, Feedback: &pipeline.Feedback{Event: "pull_request_review", Action: "submitted", State: "commented"}}
		d.has(d.says(review), "run 1: dismissed F1 by mia")
		d.replied(0, "")
		s.facts = nil
		reply := pipeline.Notice{Kind: pipeline.NoticeFeedback, Pull: 30, Comment: 8, Thread: 7, Command: command.Line{Name: "dismiss"},
			Feedback: &pipeline.Feedback{Event: "pull_request_review_comment", Action: "created"}, Why: "a reply"}
		d.has(d.says(reply), "run 1: nothing new: a reply")
		d.replied(1, "Nothing else keeps the run: it goes on.")
		reply.Actor = eve
		d.says(reply)
		d.replied(1, "")
		reply.Actor, reply.Thread = maintainer, 6
		d.says(reply)
		d.replied(1, "")
	})
}

// Covers V2: words that name a refusal of what blocks, and leave it in doubt, are answered
// to whoever may write here.
func TestDoubtIsAnswered(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{do: finds})
		words := dismissal(false)
		words.Key, words.Kind, words.Comment, words.Unsure = "answer/7", pipeline.SignalAnswered, 7, true
		s := &otherPulls{facts: []pipeline.Signal{words}}
		d.opts.Observer = s
		d.drive()
		reply := pipeline.Notice{Kind: pipeline.NoticeFeedback, Pull: 30, Feedback: &pipeline.Feedback{Event: "pull_request_review_comment", Action: "created", ReplyTo: 5, Comments: []int64{7}}}
		d.says(reply)
		d.replied(1, `"it leaks" keeps the pull request from being verified`)
		if run := load(t, k, d.id); run.State != pipeline.StateWaiting || run.Findings[0].State != pipeline.IssueOpen {
			t.Errorf("the run is %s, the finding %s", run.State, run.Findings[0].State)
		}
		for _, plain := range []bool{true, false} { // said plainly to be something else; by a stranger
			words.Key, words.Unsure, words.Weight = "answer/8", !plain, 0
			words.Comment++
			reply.Feedback.Comments[0] = words.Comment
			s.facts = append(s.facts, words)
			d.says(reply)
			d.replied(1, "")
		}
	})
}

// A dismissal that is taken back on a pull request that is closed, or beside another
// run, is kept and reopens nothing.
func TestTakenBackInVain(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{false, true} {
		for _, closed := range []bool{false, true} {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, k, &fakePhases{do: finds})
				s := &otherPulls{}
				d.opts.Observer = s
				d.drive()
				s.facts = []pipeline.Signal{dismissal(false)}
				back := pipeline.Notice{Kind: pipeline.NoticeFeedback, Pull: 30, Feedback: &pipeline.Feedback{Event: "pull_request_review_thread"}}
				d.says(back)
				d.drive()
				if d.h.closed = closed; !closed {
					other := newStart(5)
					other.Branch = "forge/issue-5-2"
					if _, err := k.CreateRun(t.Context(), "another", other, time.Now(), newTrace(), nil); err != nil {
						t.Fatal(err)
					}
				}
				s.facts = []pipeline.Signal{dismissal(true)}
				s.facts[0].At = time.Now()
				if polled {
					if err := newDriven(t, k, d.opts).pollRun(t.Context(), d.id); err != nil {
						t.Fatal(err)
					}
				} else {
					back.Branch, back.Pull = "", 30
					d.says(back)
				}
				run := load(t, k, d.id)
				if len(run.Reopened) > 0 || closed != (run.Closed != "") {
					t.Errorf("closed %v: reopened %q, closed %q", closed, run.Reopened, run.Closed)
				}
				if n := len(feedbackOf(t, k, d.id)); n != 2 && (polled || closed) {
					t.Errorf("polled %v, closed %v: %d signals", polled, closed, n)
				}
			})
		}
	}
}

// Covers T8: who is asked about missing tests has the settings read again by the
// answer; wrong ones are said, and the question stays.
func TestSettingsAgain(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		none := true
		d := newDesk(t, k, &fakePhases{do: func(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if act.Phase.Phase != pipeline.PhasePlan || !none {
				return nil, nil
			}
			return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: act.Phase, Tests: &pipeline.TestReport{None: "nothing was found"}}}}, nil
		}})
		cfg := config.Default()
		cfg.Tests.Commands = []string{"make test"}
		var wrong error = &pipeline.Fault{Message: "The settings are wrong: line 3"}
		d.opts.Settings = func(context.Context, *pipeline.Run) (config.Config, error) { return cfg, wrong }
		if run := d.drive(); run.Gate() == nil || run.Gate().Guard.Name != pipeline.GuardNoTests || len(run.Steps) > 0 {
			t.Fatalf("run is %s", run.State)
		}
		d.has(d.command("continue", "", ""), "run 1: answered: The settings are wrong: line 3")
		d.replied(1, "The settings are wrong: line 3")
		d.command("history", "", "")
		wrong = errors.New("away")
		if _, err := newDriven(t, k, d.opts).Tell(t.Context(), d.id, "t1", command.Line{Name: "continue"}, maintainer, "cli"); err == nil || !strings.Contains(err.Error(), "read the settings of acme/shop again: away") {
			t.Errorf("Tell: %v", err)
		}
		none, wrong = false, nil
		d.has(d.command("continue", "", ""), "run 1: continue")
		d.replied(2, "Run 1 looks for tests again, with the repository's settings as they are now.")
		if run := d.drive(); run.State != pipeline.StateVerified || !slices.Equal(run.Config.Tests.Commands, cfg.Tests.Commands) {
			t.Errorf("run is %s with %v", run.State, run.Config.Tests.Commands)
		}
	})
}

// Covers T8: who is asked because of a model that the repository chose has its choice
// read again by the answer.
func TestModelAgain(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		chosen := map[config.Role]string{"": "repo/typo"}
		d := newDesk(t, k, &fakePhases{do: func(_ context.Context, run *pipeline.Run, _ pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if run.Config.Models[""] == "repo/typo" {
				return nil, &pipeline.Fault{Class: pipeline.FaultProvider, Final: true, Message: "no such model"}
			}
			return nil, nil
		}}, func(s *pipeline.Start) { s.Config.Models = chosen })
		cfg := config.Default()
		cfg.Models = map[config.Role]string{"": "repo/right"}
		d.opts.Settings = func(context.Context, *pipeline.Run) (config.Config, error) { return cfg, nil }
		if run := d.drive(); run.Gate() == nil || run.Gate().Guard.Name != pipeline.GuardFaults {
			t.Fatalf("run is %s", run.State)
		}
		d.has(d.command("continue", "", ""), "run 1: continue")
		if run := d.drive(); run.State != pipeline.StateVerified || run.Config.Models[""] != "repo/right" {
			t.Errorf("run is %s with %v: %v", run.State, run.Config.Models, run.Fault)
		}
	})
}

// Covers B8: what was decided carries its time in the event itself.
func TestTimesInEvents(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, k, &fakePhases{do: finds})
		d.drive()
		events, err := k.Events(t.Context(), d.id, 0)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, e := range events {
			if b := e.Data.Bounce; b != nil {
				seen++
				if !b.At.Equal(e.Time) {
					t.Errorf("a bounce of %v says %v", e.Time, b.At)
				}
			}
			if g := e.Data.Gate; g != nil {
				seen++
				if !g.Opened.Equal(e.Time) {
					t.Errorf("a gate of %v says %v", e.Time, g.Opened)
				}
			}
		}
		if seen != 3 {
			t.Errorf("%d bounces and gates", seen)
		}
	})
}

// A run whose model cannot be reached waits, without a worker, an attempt or working
// time, and goes on where it was; when it has waited too long, a human is asked.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		away    time.Duration
		patient bool
	}{{"for ten minutes", 10 * time.Minute, true}, {"for a day", 24 * time.Hour, false}} {
		t.Run(tc.name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				begun, calls := time.Now(), 0
				c := &fakePhases{do: func(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
					if act.Phase.Phase != pipeline.PhaseReview || time.Since(begun) > tc.away {
						return nil, nil
					}
					calls++
					return nil, &pipeline.Fault{Class: pipeline.FaultProvider, Message: "HTTP 529: overloaded\nmore", RetryAt: time.Now().Add(4 * time.Minute)}
				}}
				d := newDesk(t, k, c)
				e := newDriven(t, k, d.opts)
				if _, err := e.advance(t.Context(), d.id, true); err != nil {
					t.Fatal(err)
				}
				run := load(t, k, d.id)
				if w := run.Await; w == nil || !w.Model || w.What != "the model's provider until "+begun.Add(4*time.Minute).UTC().Format("15:04 UTC")+" (HTTP 529: overloaded)" || run.Counters.Faults != 0 {
					t.Fatalf("it waits for %+v, %+v", w, run.Counters)
				}
				if due, _, err := k.Due(t.Context(), time.Now().Add(3*time.Minute), 9); err != nil || len(due) > 0 {
					t.Errorf("due runs %v, %v: it holds a worker", due, err)
				}
				d.has(d.says(pipeline.Notice{Kind: pipeline.NoticeChecks, Head: run.Head, Branch: run.Branch, Why: "check build: success"}), "no run waits for it")
				run = d.drive() // by a server that began now, and asks once at once
				if tc.patient {
					if run.State != pipeline.StateVerified || calls != 4 || run.Attempts["1/review"] != 1 || run.Worked() > 60_000 {
						t.Errorf("run is %s after %d calls, attempts %v, %d ms", run.State, calls, run.Attempts, run.Worked())
					}
					return
				}
				g := run.Gate()
				if g == nil || g.Guard.Name != pipeline.GuardFaults || g.Question != "the model's provider has not answered for 120m 00s: HTTP 529: overloaded more" || time.Since(begun) > 2*time.Hour+time.Minute {
					t.Errorf("after %s: %+v", time.Since(begun), g)
				}
			})
		})
	}
}

// A run that waits for a provider tries it when a person says so, and once after a start of
// the server, whose key may be another one: the time that it was told may be absurd.
func TestAwayIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"retry", "restart", ""} {
		t.Run(how, func(t *testing.T) {
			k := openStore(t)
			calls, asked := 0, false
			c := &fakePhases{do: func(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
				if act.Phase.Phase != pipeline.PhaseReview {
					return nil, nil
				}
				calls++
				asked = run.Await != nil && run.Await.Asked
				return nil, &pipeline.Fault{Class: pipeline.FaultProvider, Message: "HTTP 429", RetryAt: time.Now().Add(90 * time.Minute)}
			}}
			d := newDesk(t, k, c)
			e := newDriven(t, k, d.opts)
			step := func() *pipeline.Run {
				t.Helper()
				if _, err := e.advance(t.Context(), d.id, true); err != nil {
					t.Fatal(err)
				}
				return load(t, k, d.id)
			}
			if run := step(); run.Await == nil || calls != 1 {
				t.Fatalf("it waits for %+v after %d calls", run.Await, calls)
			}
			want := 2
			switch how {
			case "retry":
				d.has(d.command("retry", "", ""), "retry")
			case "restart":
				e = newDriven(t, k, d.opts)
				if err := k.Hasten(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				if due, _, err := k.Due(t.Context(), time.Now(), 9); err != nil || len(due) != 1 {
					t.Errorf("due after a start: %v, %v", due, err)
				}
			default:
				want = 1
			}
			step()
			if run := step(); calls != want || asked != (how == "retry") || run.Await == nil || run.Await.Asked {
				t.Errorf("%d calls, want %d; asked for: %v; it waits for %+v", calls, want, asked, run.Await)
			}
		})
	}
}

// tooOften is GitHub's answer to who calls it too often.
type tooOften time.Duration

func (e tooOften) Error() string             { return "read the App: GitHub's rate limit was reached" }
func (e tooOften) Limited() bool             { return true }
func (e tooOften) RetryAfter() time.Duration { return time.Duration(e) }

// GitHub's rate limit is waited for in every phase, however long it lasts: it costs no
// attempt, and no human is asked.
func TestRateLimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, phase := range []pipeline.Phase{pipeline.PhasePlan, pipeline.PhaseImplement, pipeline.PhaseReview, pipeline.PhaseTest} {
		t.Run(string(phase), func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				begun, calls := time.Now(), 0
				c := &fakePhases{do: func(_ context.Context, _ *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
					if act.Phase.Phase != phase || time.Since(begun) > 3*time.Hour {
						return nil, nil
					}
					calls++
					return nil, fmt.Errorf("sign the commit: %w", tooOften(50*time.Minute))
				}}
				d := newDesk(t, k, c)
				run := d.drive()
				if run.State != pipeline.StateVerified || calls != 4 || run.Attempts["1/"+string(phase)] > 1 || run.Worked() > 60_000 {
					t.Errorf("run is %s after %d calls, attempts %v, %d ms, gate %+v", run.State, calls, run.Attempts, run.Worked(), run.Gate())
				}
			})
		})
	}
}

// How long a provider has been away counts from its last answer, what a phase has
// found out is kept, and a moment that is past is not waited for.
func TestAwaitModel(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	e := newDriven(t, k, options(t))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e.Now = func() time.Time { return now }
	ref := pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1, Attempt: 1}
	act := pipeline.Action{Key: "k", Phase: &ref}
	away := &pipeline.Fault{Class: pipeline.FaultProvider, Message: "HTTP 503", RetryAt: now.Add(-time.Hour)}
	since, tests := now.Add(-time.Hour), &pipeline.TestReport{Passed: 1}
	was := &pipeline.Run{Execution: pipeline.Execution{Await: &pipeline.Await{Model: true, Since: since, Looks: 4, Tests: tests, Woken: true}, Steps: map[pipeline.Phase]int{pipeline.PhaseTest: 2}}}
	for _, tc := range []struct {
		steps int
		since time.Time
		looks int
	}{{2, since, 5}, {3, now, 1}} {
		ev, waits := e.awaitModel(was, &pipeline.Run{Execution: pipeline.Execution{Steps: map[pipeline.Phase]int{pipeline.PhaseTest: tc.steps}}}, act, ref, away)
		w := ev.Data.Await
		if !waits || w == nil || !w.Since.Equal(tc.since) || w.Looks != tc.looks || w.Tests != tests || w.Woken || !w.Next.Equal(now.Add(time.Second)) || !w.Until.Equal(tc.since.Add(2*time.Hour)) {
			t.Errorf("%d steps: %v, %+v", tc.steps, waits, w)
		}
	}
	// Told is what comes first: when the provider may be asked again, or when a human is.
	for _, tc := range []struct{ retry, since, next time.Duration }{
		{10 * time.Minute, 0, 10 * time.Minute},
		{2 * time.Hour, 0, 2 * time.Hour},
		{7 * 24 * time.Hour, 0, 2 * time.Hour},
		{time.Hour, 90 * time.Minute, 30 * time.Minute},
		{time.Hour, 2*time.Hour - time.Millisecond, time.Second}, // not at once again
	} {
		busy := &pipeline.Fault{Class: pipeline.FaultProvider, Message: "HTTP 429", RetryAt: now.Add(tc.retry)}
		known := &pipeline.Run{Execution: pipeline.Execution{Await: &pipeline.Await{Model: true, Since: now.Add(-tc.since), Woken: true}}}
		ev, waits := e.awaitModel(known, known, act, ref, busy)
		want := now.Add(tc.next)
		if w := ev.Data.Await; !waits || w == nil || !w.Next.Equal(want) || w.What != "the model's provider until "+want.Format("15:04 UTC")+" (HTTP 429)" {
			t.Errorf("asked to wait %s after %s: %v, %+v; want until %s", tc.retry, tc.since, waits, w, want)
		}
	}
	for _, err := range []error{errors.New("x"), &pipeline.Fault{Class: pipeline.FaultProvider}, &pipeline.Fault{Class: pipeline.FaultAgent, RetryAt: now}, &pipeline.Fault{Class: pipeline.FaultProvider, RetryAt: now, Final: true}} {
		if ev, waits := e.awaitModel(was, was, act, ref, err); waits {
			t.Errorf("%v is waited for: %+v", err, ev)
		}
	}
}
