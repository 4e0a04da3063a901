// Package delivery says what a webhook delivery means: Read makes a notice of its
// payload, which names what happened and what is asked of Forge, with the slash
// command or the button that a person used. It is pure: whether that person may is
// for the engine to find out. It stores nothing.
package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

// Options says what in a delivery is meant for Forge.
type Options struct {
	Label string // the label that starts a run; default "forge"
	Slug  string // the word after the slash, and before the slash of a branch; default "forge"
	BotID int64  // the id of the App's own bot user; 0 when it is not known yet
	AppID int64  // the App's id: its own check runs are no CI; 0 when it is not known
	Other bool   // listen to what people remark on the diffs of pull requests that are not Forge's, too
}

type account struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

func (u account) actor() pipeline.Actor {
	return pipeline.Actor{ID: u.ID, Login: u.Login, Bot: u.Type == "Bot" || strings.HasSuffix(u.Login, "[bot]")}
}

type repository struct {
	ID            int64   `json:"id"`
	Name          string  `json:"name"`
	Owner         account `json:"owner"`
	DefaultBranch string  `json:"default_branch"`
	CloneURL      string  `json:"clone_url"`
}

type issue struct {
	Number      int             `json:"number"`
	Title       string          `json:"title"`
	Body        string          `json:"body"`
	User        account         `json:"user"`
	HTMLURL     string          `json:"html_url"`
	PullRequest json.RawMessage `json:"pull_request"`
	Labels      []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

func (i *issue) labels() (names []string) {
	for _, l := range i.Labels {
		names = append(names, l.Name)
	}
	return names
}

func (i *issue) pull() bool { return len(i.PullRequest) > 0 && string(i.PullRequest) != "null" }

func (i *issue) task() pipeline.Task {
	return pipeline.Task{Issue: i.Number, Title: i.Title, Body: i.Body, Author: i.User.actor(), URL: i.HTMLURL}
}

// payload is what Forge reads of a payload, whatever the event.
type payload struct {
	Action       string     `json:"action"`
	Sender       account    `json:"sender"`
	Repository   repository `json:"repository"`
	Installation struct {
		ID      int64   `json:"id"`
		Account account `json:"account"`
	} `json:"installation"`
	Issue   issue         `json:"issue"`
	Comment reviewComment `json:"comment"`
	Review  struct {
		ID        int64   `json:"id"`
		Body      string  `json:"body"`
		State     string  `json:"state"`
		User      account `json:"user"`
		Commit    string  `json:"commit_id"`
		Submitted stamp   `json:"submitted_at"`
	} `json:"review"`
	Thread struct {
		Node     string          `json:"node_id"`
		Comments []reviewComment `json:"comments"`
	} `json:"thread"`
	PullRequest struct {
		Number  int   `json:"number"`
		Merged  bool  `json:"merged"`
		Updated stamp `json:"updated_at"`
		Closed  stamp `json:"closed_at"`
		Base    struct {
			Ref string `json:"ref"`
		} `json:"base"`
		Head struct {
			Ref  string `json:"ref"`
			SHA  string `json:"sha"`
			Repo struct {
				ID int64 `json:"id"`
			} `json:"repo"`
		} `json:"head"`
	} `json:"pull_request"`
	Label struct {
		Name string `json:"name"`
	} `json:"label"`
	Changes struct {
		Title struct {
			From *string `json:"from"`
		} `json:"title"`
		Body struct {
			From *string `json:"from"`
		} `json:"body"`
		Base json.RawMessage `json:"base"`

		Repository struct {
			Name struct {
				From string `json:"from"`
			} `json:"name"`
		} `json:"repository"`
		Owner struct {
			From struct {
				User         account `json:"user"`
				Organization account `json:"organization"`
			} `json:"from"`
		} `json:"owner"`
	} `json:"changes"`
	Removed []struct {
		ID int64 `json:"id"`
	} `json:"repositories_removed"`
	Repositories []struct {
		ID int64 `json:"id"`
	} `json:"repositories"`
	ciDelivery
	Ref     string `json:"ref"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Deleted bool   `json:"deleted"`
	Updated stamp  `json:"updated_at"`
	Zen     string `json:"zen"`

	HeadCommit struct {
		Message string `json:"message"`
	} `json:"head_commit"`
	MergeGroup struct {
		HeadSHA string `json:"head_sha"`
		HeadRef string `json:"head_ref"`
	} `json:"merge_group"`
}

// Read says what a delivery means, from its payload alone: nobody has checked yet
// whether the actor may do what it asks for. What means nothing is a notice of
// kind none, whose Why says so; an error is a payload that cannot be read.
func Read(event string, raw []byte, o Options) (pipeline.Notice, error) {
	if o.Label == "" {
		o.Label = "forge"
	}
	if o.Slug == "" {
		o.Slug = "forge"
	}
	var d payload
	if err := unmarshal(event, raw, &d); err != nil {
		return pipeline.Notice{}, fmt.Errorf("read delivery of event %q: %s", event, text.ClipBytes(err.Error(), 300)) // which holds what was sent
	}
	n := pipeline.Notice{Kind: pipeline.NoticeNone, Action: d.Action, Repo: d.repo(), Actor: d.Sender.actor()}
	r := reader{o: o, d: &d, n: &n}
	switch event {
	case "issues":
		r.issues()
	case "issue_comment":
		r.issueComment()
	case "pull_request_review_comment":
		r.reviewComment()
	case "pull_request_review":
		r.review()
	case "pull_request_review_thread":
		r.thread()
	case "push":
		r.push()
	case "pull_request":
		r.pullRequest()
	case "check_run", "check_suite", "workflow_run", "status":
		r.checks(event)
	case "delete":
		r.deleted()
	case "merge_group":
		r.mergeGroup()
	case "installation", "installation_repositories":
		r.installation(event)
	case "repository":
		r.repository()
	case "ping":
		r.none("ping: the webhook works")
	default:
		r.none("event %s: Forge does not listen to it", strings.TrimSuffix(event+"."+d.Action, "."))
	}
	return n, nil
}

// unmarshal reads a payload. Events that Forge does not listen to use the same
// names for other things, so of those only the common fields are read.
func unmarshal(event string, raw []byte, d *payload) error {
	switch event {
	case "issues", "issue_comment", "pull_request_review_comment", "pull_request_review", "pull_request_review_thread", "push", "pull_request",
		"installation", "installation_repositories", "check_run", "check_suite", "workflow_run", "status", "delete", "merge_group", "repository":
		return json.Unmarshal(raw, d)
	}
	var c common
	err := json.Unmarshal(raw, &c)
	d.Action, d.Sender, d.Repository = c.Action, c.Sender, c.Repository
	return err
}

// common is what all payloads have.
type common struct {
	Action     string     `json:"action"`
	Sender     account    `json:"sender"`
	Repository repository `json:"repository"`
}

func (d *payload) repo() pipeline.Repo {
	r := d.Repository
	owner := r.Owner.Login
	return pipeline.Repo{ID: r.ID, Owner: owner, Name: r.Name, DefaultBranch: r.DefaultBranch, CloneURL: r.CloneURL, Installation: d.Installation.ID}
}

// reader reads one delivery into n.
type reader struct {
	o Options
	d *payload
	n *pipeline.Notice
}

func (r reader) none(format string, args ...any) {
	r.n.Kind, r.n.Why = pipeline.NoticeNone, fmt.Sprintf(format, args...)
}

func (r reader) is(kind pipeline.NoticeKind, format string, args ...any) {
	r.n.Kind, r.n.Why = kind, fmt.Sprintf(format, args...)
}

// own reports whether the App itself did it.
func (r reader) own() bool { return r.o.BotID != 0 && r.d.Sender.ID == r.o.BotID }

func (r reader) issues() {
	d := r.d
	r.n.Issue = d.Issue.Number
	mine := strings.EqualFold(d.Label.Name, r.o.Label)
	switch {
	case d.Issue.Number == 0:
		r.none("the issue has no number")
	case r.own():
		r.none("issue %s by Forge itself", d.Action)
	case d.Action == "labeled" && !mine:
		r.none("label %q is not %q", d.Label.Name, r.o.Label)
	case d.Action == "labeled" && r.n.Actor.Bot:
		r.none("the label was set by the bot %s: bots start nothing", d.Sender.Login)
	case d.Action == "labeled":
		r.n.Task, r.n.Labels = d.Issue.task(), d.Issue.labels()
		r.is(pipeline.NoticeStart, "issue #%d was labelled %q by %s", d.Issue.Number, d.Label.Name, d.Sender.Login)
	case d.Action == "unlabeled" && mine:
		r.is(pipeline.NoticeUnlabelled, "the label %q was taken from issue #%d by %s", d.Label.Name, d.Issue.Number, d.Sender.Login)
	case d.Action == "edited" && r.n.Actor.Bot:
		r.none("issue edited by the bot %s", d.Sender.Login)
	case d.Action == "edited" && d.Changes.Title.From == nil && d.Changes.Body.From == nil:
		r.none("issue edited, but neither its title nor its text")
	case d.Action == "edited":
		r.n.Task = d.Issue.task()
		switch {
		case d.Changes.Body.From == nil:
			r.n.Part = "title"
		case d.Changes.Title.From == nil:
			r.n.Part = "body"
		}
		r.is(pipeline.NoticeIssueEdited, "issue #%d was edited by %s", d.Issue.Number, d.Sender.Login)
	case d.Action == "closed":
		r.is(pipeline.NoticeIssueClosed, "issue #%d was closed by %s", d.Issue.Number, d.Sender.Login)
	case d.Action == "deleted", d.Action == "transferred": // gone from here: there is nobody to work for
		r.is(pipeline.NoticeIssueClosed, "issue #%d was %s by %s", d.Issue.Number, d.Action, d.Sender.Login)
	case d.Action == "reopened":
		r.is(pipeline.NoticeIssueReopened, "issue #%d was opened again by %s", d.Issue.Number, d.Sender.Login)
	default:
		r.none("issue %s: nothing to do", d.Action)
	}
}

func (r reader) issueComment() {
	d := r.d
	if d.Issue.pull() {
		r.n.Pull = d.Issue.Number
	} else {
		r.n.Issue = d.Issue.Number
	}
	switch d.Action {
	case "created":
		r.command(d.Comment.Body)
	case "edited":
		if !r.unsaid() {
			r.tick()
		}
	default:
		if d.Action != "deleted" || !r.unsaid() {
			r.none("a comment was %s", d.Action)
		}
	}
	listens := d.Action == "created" || d.Action == "deleted"
	if r.n.Pull == 0 { // what a person says there is read by agents, if it comes in time
		listens = d.Action == "created" && !r.own() && !r.n.Actor.Bot
	}
	if why := r.n.Why; r.n.Kind == pipeline.NoticeNone && listens {
		if r.feedback("issue_comment", d.Comment.updated()); r.n.Pull == 0 {
			r.n.Why = why
		}
	}
}

// unsaid reads a comment that told Forge to remember something and that its writer edited or
// deleted: it takes its effect along. That is no command which may run twice: the same
// words are remembered once.
func (r reader) unsaid() bool {
	d := r.d
	before := d.Comment.Body
	if d.Action == "edited" {
		if d.Changes.Body.From == nil {
			return false
		}
		before = *d.Changes.Body.From
	}
	was, _ := ParseCommand(before, r.o.Slug)
	if was.Name != "remember" || was.Error != "" || was.Text == "" || r.n.Actor.Bot || d.Comment.User.ID != d.Sender.ID {
		return false
	}
	line := command.Line{Name: was.Name, Was: was.Text}
	if now, ok := ParseCommand(d.Comment.Body, r.o.Slug); ok && d.Action == "edited" && now.Name == was.Name {
		line.Text, line.Error = now.Text, now.Error
	}
	if line.Text == was.Text {
		return false
	}
	r.n.Command, r.n.Comment = line, d.Comment.ID
	r.is(pipeline.NoticeCommand, "a comment that told Forge to remember something was %s by %s", d.Action, d.Sender.Login)
	return true
}

// tick reads a box that a person ticked in a comment of Forge's. Only then does
// an edited comment mean something: a command must not run twice.
func (r reader) tick() {
	d := r.d
	if d.Changes.Body.From != nil && d.Comment.User.ID == d.Sender.ID && !r.n.Actor.Bot && r.edited(*d.Changes.Body.From, d.Comment.Body) {
		return
	}
	if r.o.BotID == 0 || d.Comment.User.ID != r.o.BotID || r.n.Actor.Bot || d.Changes.Body.From == nil {
		r.none("a comment was edited: only new comments are read")
		return
	}
	line := ticked(*d.Changes.Body.From, d.Comment.Body)
	if line == "" {
		r.none("a comment of Forge's was edited, but no box was ticked")
		return
	}
	r.command(line)
	r.n.Command.Via = "box"
}

// edited answers whoever edits a comment of their own into a command, or into another one,
// that it is not read: they would wait in vain.
func (r reader) edited(from, to string) bool {
	was, _ := ParseCommand(from, r.o.Slug)
	c, ok := ParseCommand(to, r.o.Slug)
	if !ok || c == was {
		return false
	}
	r.n.Command, r.n.Comment = command.Line{Name: c.Name, Error: fmt.Sprintf(
		"Nothing was done: only new comments are read, since a command must not run twice. Write `/%s %s` in a new one.",
		r.o.Slug, strings.TrimSpace(text.Clip(strings.TrimSpace(c.Part+" "+c.Name)+" "+c.Args, 100)))}, r.d.Comment.ID
	r.is(pipeline.NoticeCommand, "a comment that was edited into a command by %s", r.d.Sender.Login)
	return true
}

// command reads a comment's first line.
func (r reader) command(body string) {
	if r.own() {
		r.none("a comment by Forge itself")
		return
	}
	if r.n.Actor.Bot {
		r.none("a comment by the bot %s: bots command nothing", r.d.Sender.Login)
		return
	}
	c, ok := ParseCommand(body, r.o.Slug)
	if !ok {
		r.none("a comment without a command in its first line")
		return
	}
	r.n.Command, r.n.Comment = c, r.d.Comment.ID
	switch {
	case c.Error != "":
		r.is(pipeline.NoticeCommand, "a command with a mistake: /%s %s", r.o.Slug, text.Clip(c.Name, 40))
	case c.Name == "dismiss" && c.Args == "":
		r.n.Command.Error = fmt.Sprintf("`/%s dismiss` works as a reply to one of Forge's comments on the diff, with the reason behind it, and anywhere with a finding's name: `/%s dismiss F1 WHY`.", r.o.Slug, r.o.Slug)
		r.is(pipeline.NoticeCommand, "/%s dismiss, but not in a reply to a finding", r.o.Slug)
	case c.Name == "run" && r.n.Pull != 0:
		r.n.Command.Error = fmt.Sprintf("`/%s run` works in an issue, and #%d is a pull request.", r.o.Slug, r.n.Pull)
		r.is(pipeline.NoticeCommand, "/%s run in a pull request", r.o.Slug)
	case c.Name == "run":
		r.n.Task, r.n.Labels = r.d.Issue.task(), r.d.Issue.labels()
		r.is(pipeline.NoticeStart, "/%s run in issue #%d by %s", r.o.Slug, r.n.Issue, r.d.Sender.Login)
	default:
		r.is(pipeline.NoticeCommand, "/%s %s by %s", r.o.Slug, c.Name, r.d.Sender.Login)
	}
}

func (r reader) push() {
	d := r.d
	branch, isBranch := strings.CutPrefix(d.Ref, "refs/heads/")
	switch {
	case !isBranch:
		r.none("push to %s: not a branch", text.Clip(d.Ref, 200))
	case branch != "" && branch == d.Repository.DefaultBranch && !r.own() && !d.Deleted:
		r.n.Branch, r.n.Head = branch, d.After
		r.n.Feedback = r.about("push", time.Time{}) // it may revert what was merged
		r.is(pipeline.NoticeBaseMoved, "%s pushed to %s", d.Sender.Login, branch)
	case !strings.HasPrefix(branch, r.o.Slug+"/"):
		r.none("push to %s: not a branch of Forge's", text.Clip(branch, 200))
	case r.own() && d.Deleted:
		r.none("branch %s was deleted by Forge itself", branch)
	case r.own(): // or by what else has its token: the run knows the commits that it made
		r.n.Branch, r.n.Before, r.n.Head, r.n.Own, r.n.Made = branch, d.Before, d.After, true, MadeBy(d.HeadCommit.Message)
		r.is(pipeline.NoticePush, "push to %s with Forge's own token", branch)
	case d.Deleted:
		r.none("branch %s was deleted by %s", branch, d.Sender.Login)
	default:
		r.n.Branch, r.n.Head = branch, d.After
		r.n.Feedback = r.about("push", time.Time{})
		r.is(pipeline.NoticePush, "%s pushed to %s", d.Sender.Login, branch)
	}
}

// MadeBy is the trace of the run that a commit of Forge's names in its trailer.
func MadeBy(message string) string {
	for line := range strings.SplitSeq(message, "\n") {
		if rest, ok := strings.CutPrefix(line, "Forge-Run: "); ok {
			trace, _, _ := strings.Cut(rest, "/")
			return trace
		}
	}
	return ""
}

func (r reader) pullRequest() {
	d, p := r.d, r.d.PullRequest
	r.n.Pull = p.Number
	kind := pullKinds[d.Action]
	switch {
	case d.Action == "synchronize" && r.forges() && !r.own():
		r.n.Branch, r.n.Head = p.Head.Ref, p.Head.SHA
		r.feedback("pull_request", p.Updated.Time)
	case kind == "", d.Action == "edited" && len(d.Changes.Base) == 0:
		r.none("pull request %s: nothing to do", d.Action)
	case !r.forges():
		r.none("pull request #%d was %s: its branch is not Forge's", p.Number, pullWords[kind])
	case r.own():
		r.none("pull request #%d was %s by Forge itself", p.Number, pullWords[kind])
	default:
		r.n.Branch, r.n.Head, r.n.Merged = p.Head.Ref, p.Head.SHA, p.Merged
		r.n.Feedback = r.about("pull_request", later(p.Closed, p.Updated))
		word := pullWords[kind]
		if p.Merged {
			word = "merged"
		}
		if kind == pipeline.NoticeBaseEdited {
			r.n.Base = p.Base.Ref
		}
		r.is(kind, "pull request #%d was %s by %s", p.Number, word, d.Sender.Login)
	}
}
