package delivery

import (
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// pullKinds says what the actions of pull_request mean.
var pullKinds = map[string]pipeline.NoticeKind{
	"closed": pipeline.NoticePullClosed, "reopened": pipeline.NoticeReopened, "converted_to_draft": pipeline.NoticeDraft,
	"ready_for_review": pipeline.NoticeReady, "edited": pipeline.NoticeBaseEdited,
}

var pullWords = map[pipeline.NoticeKind]string{
	pipeline.NoticePullClosed: "closed", pipeline.NoticeReopened: "opened again", pipeline.NoticeDraft: "turned into a draft",
	pipeline.NoticeReady: "marked as ready", pipeline.NoticeBaseEdited: "pointed at another base branch",
}

// checkPart is what a check run, a check suite and a workflow run have in common.
type checkPart struct {
	Name         string      `json:"name"`
	HeadSHA      string      `json:"head_sha"`
	HeadBranch   string      `json:"head_branch"` // null for forks
	Conclusion   string      `json:"conclusion"`
	ExternalID   string      `json:"external_id"`
	App          checkApp    `json:"app"`
	PullRequests []checkPull `json:"pull_requests"`
	CheckSuite   struct {
		HeadBranch string `json:"head_branch"`
	} `json:"check_suite"`
}

type checkApp struct {
	ID   int64  `json:"id"`
	Slug string `json:"slug"`
}

type checkPull struct {
	Number int `json:"number"`
	Base   struct {
		Repo struct {
			ID int64 `json:"id"`
		} `json:"repo"`
	} `json:"base"`
}

// ciDelivery is what the events of checks and branches have besides the others.
type ciDelivery struct {
	CheckRun        checkPart `json:"check_run"`
	CheckSuite      checkPart `json:"check_suite"`
	WorkflowRun     checkPart `json:"workflow_run"`
	RequestedAction struct {
		Identifier string `json:"identifier"`
	} `json:"requested_action"`
	RefType string `json:"ref_type"` // of a deleted ref: branch, tag

	SHA      string `json:"sha"`     // of a commit status
	State    string `json:"state"`   // of a commit status
	Context  string `json:"context"` // of a commit status
	Branches []struct {
		Name string `json:"name"`
	} `json:"branches"` // that contain the status's commit; at most 10
}

// checks reads the events of CI, and of Forge's own check runs.
func (r reader) checks(event string) {
	d := r.d
	if event == "status" {
		r.status()
		return
	}
	c := map[string]checkPart{"check_run": d.CheckRun, "check_suite": d.CheckSuite, "workflow_run": d.WorkflowRun}[event]
	words := strings.ReplaceAll(event, "_", " ")
	r.n.Head, r.n.Branch = c.HeadSHA, c.HeadBranch
	if r.n.Branch == "" {
		r.n.Branch = c.CheckSuite.HeadBranch
	}
	if len(c.PullRequests) > 0 && c.PullRequests[0].Base.Repo.ID == d.Repository.ID {
		r.n.Pull = c.PullRequests[0].Number
	}
	// Not by the sender: of a workflow that Forge's push started, that is Forge.
	own := c.App.ID != 0 && (c.App.ID == r.o.AppID || r.o.AppID == 0 && c.App.Slug == r.o.Slug)
	switch {
	case own && (d.Action == "requested_action" || d.Action == "rerequested"):
		r.button(c)
	case own:
		r.none("%s of Forge itself: %s", words, d.Action)
	case d.Action != "completed":
		r.none("%s %s: its end counts", words, d.Action)
	default:
		r.ended(words, c.Name, c.Conclusion)
	}
}

// ended is a notice that something ended on a commit that may be a run's.
func (r reader) ended(what, name, conclusion string) {
	if name != "" {
		what += " " + strconv.Quote(text.Clip(name, 100))
	}
	switch {
	case r.n.Head == "":
		r.none("%s that names no commit", what)
	case r.n.Branch != "" && !strings.HasPrefix(r.n.Branch, r.o.Slug+"/"):
		r.none("%s on %s: not a branch of Forge's", what, text.Clip(r.n.Branch, 200))
	default:
		r.is(pipeline.NoticeChecks, "%s on %s: %s", what, text.ShortSHA(r.n.Head), text.Clip(conclusion, 40))
	}
}

func (r reader) status() {
	d := r.d
	r.n.Head = d.SHA
	for _, b := range d.Branches {
		if r.n.Branch == "" || strings.HasPrefix(b.Name, r.o.Slug+"/") {
			r.n.Branch = b.Name
		}
	}
	switch {
	case !slices.Contains([]string{"success", "failure", "error"}, d.State):
		r.none("commit status %q is %s: its end counts", text.Clip(d.Context, 100), text.Clip(d.State, 40))
	default:
		r.ended("commit status", d.Context, d.State)
	}
}

// button reads a button of Forge's own check run as the command that it stands for.
func (r reader) button(c checkPart) {
	d := r.d
	if r.own() || r.n.Actor.Bot {
		r.none("a button pressed by the bot %s: bots command nothing", d.Sender.Login)
		return
	}
	r.n.Trace, _, _ = strings.Cut(c.ExternalID, "/")
	if d.Action == "rerequested" {
		r.n.Command = command.Line{Name: "retry", Via: "button"}
		r.is(pipeline.NoticeCommand, "re-run of the check asked for by %s", d.Sender.Login)
		return
	}
	m := command.Button.FindStringSubmatch(d.RequestedAction.Identifier)
	if m == nil {
		r.none("a button that Forge does not have: %q", text.Clip(d.RequestedAction.Identifier, 40))
		return
	}
	r.n.Command = command.Line{Name: m[1], Args: m[2], Via: "button"}
	check(&r.n.Command, r.o.Slug)
	if m[3] != "" {
		n, _ := strconv.Atoi(m[3]) // digits only
		r.n.Command.Gate = "gate/" + strconv.Itoa(n)
	}
	r.is(pipeline.NoticeCommand, "button %q pressed by %s", m[0], d.Sender.Login)
}

// deleted reads the deletion of a branch. The push that says the same is none.
func (r reader) deleted() {
	d := r.d
	switch {
	case d.RefType != "branch":
		r.none("%s %s was deleted", text.Clip(d.RefType, 20), text.Clip(d.Ref, 200))
	case !strings.HasPrefix(d.Ref, r.o.Slug+"/"):
		r.none("branch %s was deleted: not Forge's", text.Clip(d.Ref, 200))
	case r.own():
		r.none("branch %s was deleted by Forge itself", d.Ref)
	default:
		r.n.Branch = d.Ref
		r.is(pipeline.NoticeBranchDeleted, "branch %s was deleted by %s", d.Ref, d.Sender.Login)
	}
}

// queued is a merge group's branch: the last of its pull requests is in the name.
var queued = lazyregexp.New(`^refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{7,64}$`)

func (r reader) mergeGroup() {
	g := r.d.MergeGroup
	m := queued.FindStringSubmatch(g.HeadRef)
	switch {
	case r.d.Action != "checks_requested":
		r.none("merge group %s: nothing to do", r.d.Action)
	case m == nil || g.HeadSHA == "":
		r.none("merge group %s: no pull request is in its name", text.Clip(g.HeadRef, 200))
	default:
		r.n.Pull, _ = strconv.Atoi(m[1]) // digits
		r.n.Head = g.HeadSHA
		r.is(pipeline.NoticeMergeGroup, "merge group %s with #%d", text.ShortSHA(g.HeadSHA), r.n.Pull)
	}
}
