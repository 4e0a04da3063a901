package feedback

import (
	"context"
	"time"

	"forge/pipeline"
)

// Source answers questions about one pull request and its repository. What is not
// there, or is too big to be shown, is empty and no error.
type Source interface {
	Commits(ctx context.Context) ([]Commit, error) // of the pull request, oldest first
	Files(ctx context.Context) ([]Patch, error)    // that the pull request changed
	Closer(ctx context.Context) (pipeline.Actor, error)
	Patch(ctx context.Context, sha string) ([]Patch, error) // of a commit, against its first parent
	File(ctx context.Context, sha, path string) (string, error)
	Compare(ctx context.Context, from, to string) (paths []string, commits []Commit, err error)
	Weight(ctx context.Context, actor pipeline.Actor) (float64, error) // how much somebody's word counts here
}

// Commit is a commit as GitHub lists it.
type Commit struct {
	SHA, Message              string
	At                        time.Time      // when it was committed
	Author                    pipeline.Actor // nobody when GitHub does not know the address
	AuthorMail, CommitterMail string
	Parents                   int
}

// Patch is what a commit or a pull request changed in one file.
type Patch struct {
	Path, From string // From is its former name, when it was renamed
	Hunks      string
	Lines      int // that were changed; they are not in Hunks when they are too many
}

// Pull is a pull request as people left it.
type Pull struct {
	Number  int
	Node    string
	State   string // OPEN, CLOSED, MERGED
	Head    string
	Ended   time.Time // when it was merged or closed
	Merger  pipeline.Actor
	Merge   string // SHA of the merge commit
	Threads []Thread
	Reviews []Review
	Partial bool // there was more than is read
}

// Thread is a conversation on the diff.
type Thread struct {
	Node, Path string
	Line       int // now, or where it was written when it is outdated
	Whole      bool
	Resolved   bool
	Resolver   pipeline.Actor
	MayResolve bool // Forge may
	Comments   []Comment
}

// first is the comment that the conversation began with.
func (t *Thread) first() *Comment { return &t.Comments[0] }

// Comment is one comment of a conversation.
type Comment struct {
	ID               int64
	Body, URL        string
	Author           pipeline.Actor
	Own              bool // Forge wrote it
	Created, Updated time.Time
	Hidden           string // why it was minimised; "" when it was not
	Commit           string // that it was written on
	Start, Line      int    // in that commit, both included
	strict           bool   // it is about what blocks
	second           bool   // another person has spoken before in the conversation
	Review           int64
	Hunk             string
	Downs            []Reaction
}

// Reaction is a 👎.
type Reaction struct {
	By pipeline.Actor
	At time.Time
}

// Review is a submitted review.
type Review struct {
	ID     int64
	State  string
	Body   string
	Author pipeline.Actor
	At     time.Time
	Commit string
}
