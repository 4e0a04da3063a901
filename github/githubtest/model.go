package githubtest

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// obj is a JSON object on its way out.
type obj = map[string]any

// account is a person, an organisation or the App's bot.
type account struct {
	id      int64
	node    string
	login   string
	kind    string // "User", "Bot", "Organization"
	token   string // a personal access token, for people
	created time.Time
}

func (a *account) bot() bool { return a != nil && a.kind == "Bot" }

// mail is the address that GitHub gives to commits of this account.
func (a *account) mail() string {
	return fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, a.login)
}

type repository struct {
	id            int64
	node          string
	owner         *account
	name          string
	dir           string // the bare git repository
	defaultBranch string
	private       bool
	archived      bool              // nothing in it can be changed
	roles         map[string]string // login in lower case → admin, maintain, write, triage, read
	refs          map[string]string // full name → object id, as last seen; pushes are told from it
	verified      map[string]bool   // commits that GitHub itself signed
	labels        []*label
	issues        map[int]*issue
	lastNumber    int
	suites        []*checkSuite
	statuses      []*commitStatus
	workflows     []*workflowRun
	deployments   []*deployment
	rules         []Rule
	queues        map[string]bool // branches that a merge queue alone merges into
	created       time.Time
	pushed        time.Time
	commits       sync.Map   // of commitInfo by id, as they were read
	pushing       sync.Mutex // one push at a time, so that every change has its author
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

type label struct {
	id          int64
	node        string
	name        string
	color       string
	description string
}

type issue struct {
	id        int64
	node      string
	repo      *repository
	number    int
	title     string
	body      string
	state     string // "open", "closed"
	reason    string // "completed", "not_planned", "reopened", or empty
	user      *account
	labels    []*label
	assignees []*account
	comments  []*comment
	reactions []*reaction
	events    []*issueEvent
	created   time.Time
	updated   time.Time
	closed    time.Time
	closedBy  *account
	pull      *pull // nil for a plain issue

	kind      string // the type that the organisation gives it; "": none
	parent    *issue
	subs      []*issue
	blockedBy []*issue
}

// openOf are those of some issues that are open.
func openOf(list []*issue) (out []*issue) {
	for _, i := range list {
		if i.state == "open" {
			out = append(out, i)
		}
	}
	return out
}

type issueEvent struct {
	id    int64
	node  string
	kind  string // "labeled", "closed", …
	actor *account
	label *label
	at    time.Time
}

type comment struct {
	id        int64
	node      string
	issue     *issue
	user      *account
	body      string
	minimized string // the classifier, when hidden
	reactions []*reaction
	created   time.Time
	updated   time.Time
}

type reaction struct {
	id      int64
	node    string
	user    *account
	content string
	at      time.Time
}

type pull struct {
	*issue
	pullID   int64
	pullNode string
	headRef  string // branch names without refs/heads/
	baseRef  string
	headSHA  string
	baseSHA  string // of the base branch when last looked at
	draft    bool
	queued   bool // in the merge queue of its base
	merged   time.Time
	mergedBy *account
	mergeSHA string
	reviews  []*review
	threads  []*thread
	asked    []*account // to review it
}

type review struct {
	id        int64
	node      string
	pull      *pull
	user      *account
	body      string
	state     string // "COMMENTED", "APPROVED", "CHANGES_REQUESTED", "DISMISSED", "PENDING"
	commit    string
	submitted time.Time
}

// thread is a conversation on the diff. Line is 0 when it can no longer be anchored.
type thread struct {
	node       string
	pull       *pull
	path       string
	subject    string // "line" or "file"
	side       string // "LEFT", "RIGHT"
	startSide  string
	line       int
	startLine  int // 0 for a single line
	origLine   int
	origStart  int
	position   int // in the diff that it was written on
	hunk       string
	commit     string // that the lines are counted in
	origCommit string
	resolved   bool
	resolvedBy *account
	outdated   bool
	comments   []*reviewComment
}

type reviewComment struct {
	id        int64
	node      string
	thread    *thread
	review    *review
	user      *account
	body      string
	replyTo   int64
	minimized string
	applied   bool // its suggestion was committed
	reactions []*reaction
	created   time.Time
	updated   time.Time
}

type checkSuite struct {
	id      int64
	node    string
	repo    *repository
	app     *ciApp // nil for the App's own
	head    string
	branch  string
	before  string
	runs    []*checkRun
	ended   string // conclusion of one that ended without a check run
	created time.Time
	updated time.Time
}

type checkRun struct {
	id          int64
	node        string
	suite       *checkSuite
	name        string
	externalID  string
	detailsURL  string
	status      string
	conclusion  string
	title       string
	summary     string
	text        string
	annotations []obj
	actions     []checkAction
	started     time.Time
	completed   time.Time
}

type checkAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

type commitStatus struct {
	id          int64
	node        string
	sha         string
	state       string
	context     string
	description string
	target      string
	user        *account
	at          time.Time
}

type installation struct {
	id        int64
	node      string
	account   *account
	repos     map[int64]*repository
	suspended time.Time
	by        *account // who suspended it
	created   time.Time
	updated   time.Time
}

func (in *installation) list() []*repository {
	out := make([]*repository, 0, len(in.repos))
	for _, r := range in.repos {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

// findLabel compares names as GitHub does, without regard to case.
func (r *repository) findLabel(name string) *label {
	for _, l := range r.labels {
		if strings.EqualFold(l.name, name) {
			return l
		}
	}
	return nil
}

func (i *issue) hasLabel(l *label) bool {
	for _, x := range i.labels {
		if x == l {
			return true
		}
	}
	return false
}

// issueList returns the repository's issues and pull requests, newest first.
func (r *repository) issueList() []*issue {
	out := make([]*issue, 0, len(r.issues))
	for _, i := range r.issues {
		out = append(out, i)
	}
	sort.Slice(out, func(a, b int) bool { return out[a].number > out[b].number })
	return out
}

// pulls returns the repository's pull requests, newest first.
func (r *repository) pulls() []*pull {
	var out []*pull
	for _, i := range r.issueList() {
		if i.pull != nil {
			out = append(out, i.pull)
		}
	}
	return out
}

func (r *repository) findComment(id int64) *comment {
	for _, i := range r.issues {
		for _, c := range i.comments {
			if c.id == id {
				return c
			}
		}
	}
	return nil
}

func (r *repository) findReviewComment(id int64) *reviewComment {
	for _, p := range r.pulls() {
		for _, t := range p.threads {
			for _, c := range t.comments {
				if c.id == id {
					return c
				}
			}
		}
	}
	return nil
}

func (r *repository) findCheckRun(id int64) *checkRun {
	for _, s := range r.suites {
		for _, c := range s.runs {
			if c.id == id {
				return c
			}
		}
	}
	return nil
}

// comments returns the pull request's review comments in the order of writing.
func (p *pull) reviewComments() []*reviewComment {
	var out []*reviewComment
	for _, t := range p.threads {
		out = append(out, t.comments...)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

// roles in the order of their power.
var roleRank = map[string]int{"": 0, "none": 0, "read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

func (r *repository) role(a *account) string {
	if a == nil {
		return "none"
	}
	if a == r.owner {
		return "admin"
	}
	if role := r.roles[strings.ToLower(a.login)]; role != "" {
		return role
	}
	if r.private {
		return "none"
	}
	return "read"
}

// shownTo reports whether somebody can know that the repository exists; nil is
// somebody who is not signed in.
func (r *repository) shownTo(a *account) bool { return !r.private || r.can(a, "read") }

func (r *repository) can(a *account, role string) bool {
	return roleRank[r.role(a)] >= roleRank[role]
}
