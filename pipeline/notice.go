package pipeline

import (
	"forge/pipeline/command"
	"forge/pipeline/mergeable"
	"time"
)

// NoticeKind says what a delivery means to Forge.
type NoticeKind string

// The kinds of notices.
const (
	NoticeNone         NoticeKind = "none"         // nothing; Why says it
	NoticeStart        NoticeKind = "start"        // the label, or /forge run
	NoticeCommand      NoticeKind = "command"      // a slash command in a comment
	NoticeUnlabelled   NoticeKind = "unlabelled"   // the start label was taken away
	NoticePush         NoticeKind = "push"         // someone pushed to a branch of Forge's
	NoticePullClosed   NoticeKind = "pull_closed"  // closed or merged
	NoticeIssueEdited  NoticeKind = "issue_edited" //
	NoticeIssueClosed  NoticeKind = "issue_closed" //
	NoticeInstallation NoticeKind = "installation" // installed, suspended, removed

	NoticeBranchDeleted NoticeKind = "branch_deleted" // a branch of Forge's
	NoticeBaseMoved     NoticeKind = "base_moved"     // someone pushed to the default branch: Branch is its name; Mergeable for a run that has ended
	NoticeBaseEdited    NoticeKind = "base_edited"    // the pull request goes into another branch now: Base
	NoticeChecks        NoticeKind = "checks"         // a check of the repository's own CI ended on Head: look again
	NoticeMergeGroup    NoticeKind = "merge_group"    // the merge queue wants a verdict on Head, made of Pull and what goes before it
	NoticeReviewed      NoticeKind = "reviewed"       // a human reviewed Forge's pull request
	NoticeAskedAnew     NoticeKind = "asked_anew"     // what a human's review asks for was edited or deleted
	NoticeDraft         NoticeKind = "draft"          // the pull request became a draft again
	NoticeReady         NoticeKind = "ready"          // the pull request left draft
	NoticeReopened      NoticeKind = "reopened"       // the pull request was opened again
	NoticeIssueReopened NoticeKind = "issue_reopened" //
	NoticeRepository    NoticeKind = "repository"     // it was renamed, or went elsewhere: Former, or Left
	NoticeFeedback      NoticeKind = "feedback"       // someone did something with what Forge said or made; see Feedback
)

// Notice is what a delivery means to Forge, read from its payload alone. Nobody
// has checked yet whether the actor may do what it asks for.
type Notice struct {
	Kind     NoticeKind   `json:"kind"`
	Repo     Repo         `json:"repo"`
	Action   string       `json:"-"` // as GitHub names it, for lists
	Actor    Actor        `json:"actor"`
	Task     Task         `json:"task"`               // of a start or an edited issue
	Labels   []string     `json:"labels,omitempty"`   // of a start: those of the issue
	Part     string       `json:"part,omitempty"`     // of an edited issue: "title" or "body" when nothing else of it was edited
	Issue    int          `json:"issue,omitempty"`    // number of the issue that it is about, if any
	Pull     int          `json:"pull,omitempty"`     // number of the pull request that it is about, if any
	Command  command.Line `json:"command"`            //
	Comment  int64        `json:"comment,omitempty"`  // id of the comment that carried the command
	Reviewed bool         `json:"reviewed,omitempty"` // it was a review, and Comment is its id
	Thread   int64        `json:"thread,omitempty"`   // id of the first comment of the conversation on the diff that the command was given in
	Branch   string       `json:"branch,omitempty"`   // of a push
	Head     string       `json:"head,omitempty"`     // SHA after the push, or of the pull request
	Before   string       `json:"before,omitempty"`   // SHA before a push with Forge's own token
	Merged   bool         `json:"merged,omitempty"`   //
	Own      bool         `json:"own,omitempty"`      // of a push: with Forge's own token, which others may have, too
	Made     string       `json:"made,omitempty"`     // of a push: the trace of the run that its newest commit names
	Verdict  string       `json:"verdict,omitempty"`  // of a human's review: approved, changes_requested, commented
	Review   *Review      `json:"review,omitempty"`   // what a human asks for in a review, as findings of category "human"
	Base     string       `json:"base,omitempty"`     // branch that the pull request goes into, when that was changed
	Trace    string       `json:"trace,omitempty"`    // of the run whose button was pressed
	Why      string       `json:"why,omitempty"`      // the outcome in words, for the delivery's record
	Former   string       `json:"former,omitempty"`   // of a repository: what it was called, OWNER/NAME
	Left     []int64      `json:"left,omitempty"`     // of an installation: ids of repositories that do not belong to it any more

	Mergeable *mergeable.State `json:"mergeable,omitempty"` // how the pull request stands to the branch by now
	Feedback  *Feedback        `json:"feedback,omitempty"`  // of a feedback, a push and a closed pull request
}

// Feedback is what a person did on a pull request, as the delivery tells it. It
// says where to look: whether it means anything is judged by what is there.
type Feedback struct {
	Event    string    `json:"event"`              // GitHub's name: "pull_request_review_thread"
	Action   string    `json:"action,omitempty"`   // GitHub's name: "resolved"
	At       time.Time `json:"at,omitzero"`        // when it happened, as far as the delivery says
	Thread   string    `json:"thread,omitempty"`   // node id of the conversation
	Comments []int64   `json:"comments,omitempty"` // ids of the comments that it is about; of a conversation, all in order
	ReplyTo  int64     `json:"reply_to,omitempty"` // id of the comment that the comment answers
	Created  time.Time `json:"created,omitzero"`   // when the comment was written
	Review   int64     `json:"review,omitempty"`   // id of the review that it is about, or that the comment came with
	State    string    `json:"state,omitempty"`    // of the review: approved, changes_requested, commented, dismissed
	Author   Actor     `json:"author,omitzero"`    // who wrote the comment or review
	Body     string    `json:"body,omitempty"`     // of the comment or review
	Path     string    `json:"path,omitempty"`     // file of the comment
	Line     int       `json:"line,omitempty"`     // line of the comment in the commit that it was written on
	Commit   string    `json:"commit,omitempty"`   // SHA of that commit, or of the reviewed one
	Before   string    `json:"before,omitempty"`   // SHA before a push
}
