package githubtest

import (
	"fmt"
	"html"
	"html/template"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	"forge/github/githubtest/markdown"
)

// issuePage is what the page of an issue or pull request shows.
type issuePage struct {
	Number               int
	Title, State, Author string
	Body                 template.HTML
	Labels               []string
	Entries              []entry // comments, reviews and events in their order
	Pull                 *pullPage
}

type entry struct {
	At      time.Time
	Who     string
	What    string        // an event in words; empty for a comment
	Body    template.HTML // of a comment or review
	ID      int64
	Hidden  bool
	React   []string
	Verdict bool // a review that can be dismissed
	Threads []threadView
}

type pullPage struct {
	Branch, Base, Head string
	Draft, CanMerge    bool
	Conflict           bool
	BranchDeleted      bool // its branch was deleted
	Checks             []checkView
	Files              []fileView
}

type checkView struct {
	CheckRun
	Text    template.HTML
	Buttons []checkAction
}

type fileView struct {
	Path, Status         string
	Additions, Deletions int
	Lines                []lineView
	Loose                []threadView // on the file, or outdated
}

type lineView struct {
	Class, Text string
	Old, New    int
	Threads     []threadView
}

type threadView struct {
	Path               string
	Line               int
	Resolved, Outdated bool
	First              int64 // id of the first comment
	Comments           []threadComment
}

type threadComment struct {
	ID         int64
	Who        string
	Body       template.HTML
	Suggestion bool // it has one that can be committed
	Hidden     bool
	React      []string
}

func (s *Server) pageIssue(w http.ResponseWriter, r *http.Request) {
	var page issuePage
	full, found := s.pageRepoOf(w, r, func(repo *repository) bool {
		n, _ := strconv.Atoi(r.PathValue("n")) // zero is none
		i := repo.issues[n]
		if i == nil {
			return false
		}
		page = s.viewIssuePage(i, r.URL.Path)
		return true
	})
	if found {
		s.render(w, r, "issue.html", frame{Title: fmt.Sprintf("%s · #%d", page.Title, page.Number), Repo: full, Body: page})
	}
}

// boxForm is a task-list box that can be clicked.
func boxForm(repo, action, back, field string, id int64) func(int, bool) string {
	return func(n int, ticked bool) string {
		mark := "☐"
		if ticked {
			mark = "☑"
		}
		return fmt.Sprintf(`<form class="box" method="post" action="/%s/-/do"><input type="hidden" name="do" value="%s"><input type="hidden" name="back" value="%s"><input type="hidden" name="%s" value="%d"><button name="box" value="%d">%s</button></form>`,
			html.EscapeString(repo), action, html.EscapeString(back), field, id, n, mark)
	}
}

func (s *Server) viewIssuePage(i *issue, back string) issuePage {
	full := i.repo.fullName()
	p := issuePage{
		Number: i.number, Title: i.title, State: i.status(), Author: i.user.login,
		Body: markdown.HTML(i.body, boxForm(full, "tick-body", back, "n", int64(i.number))),
	}
	for _, l := range i.labels {
		p.Labels = append(p.Labels, l.name)
	}
	for _, c := range i.comments {
		p.Entries = append(p.Entries, entry{
			At: c.created, Who: c.user.login, ID: c.id, Body: markdown.HTML(c.body, boxForm(full, "tick", back, "id", c.id)), Hidden: c.minimized != "",
			React: contents(c.reactions),
		})
	}
	for _, e := range i.events {
		what := strings.ReplaceAll(e.kind, "_", " ")
		if e.label != nil {
			what += " " + e.label.name
		}
		p.Entries = append(p.Entries, entry{At: e.at, Who: e.actor.login, What: what, ID: e.id})
	}
	if i.pull != nil {
		p.Pull = s.viewPullPage(i.pull, back)
		for _, rv := range i.pull.reviews {
			e := entry{At: rv.submitted, Who: rv.user.login, ID: rv.id, What: "reviewed: " + strings.ToLower(strings.ReplaceAll(rv.state, "_", " "))}
			e.Verdict = rv.state == "APPROVED" || rv.state == "CHANGES_REQUESTED"
			e.Body = markdown.HTML(rv.body, boxForm(full, "tick", back, "id", 0))
			for _, t := range i.pull.threads {
				if t.comments[0].review == rv {
					e.Threads = append(e.Threads, viewThread(t, full, back))
				}
			}
			if rv.state != "PENDING" && (rv.state != "COMMENTED" || rv.body != "" || len(e.Threads) > 0) {
				p.Entries = append(p.Entries, e)
			}
		}
	}
	sort.SliceStable(p.Entries, func(a, b int) bool {
		x, y := p.Entries[a], p.Entries[b]
		return x.At.Before(y.At) || x.At.Equal(y.At) && x.ID < y.ID
	})
	return p
}

func viewThread(t *thread, full, back string) threadView {
	v := threadView{Path: t.path, Line: t.line, Resolved: t.resolved, Outdated: t.outdated, First: t.comments[0].id}
	for _, c := range t.comments {
		_, suggests := markdown.Suggestion(c.body)
		v.Comments = append(v.Comments, threadComment{
			ID: c.id, Who: c.user.login, Body: markdown.HTML(c.body, boxForm(full, "tick", back, "id", c.id)),
			Suggestion: suggests && !t.outdated && !t.resolved && !c.applied && t.pull.state == "open", Hidden: c.minimized != "",
			React: contents(c.reactions),
		})
	}
	return v
}

func (s *Server) viewPullPage(p *pull, back string) *pullPage {
	v := &pullPage{Branch: p.headRef, Base: p.baseRef, Head: p.headSHA, Draft: p.draft}
	yes, why := s.mergeable(p)
	v.CanMerge, v.Conflict = yes == true && !p.draft, why == "dirty"
	v.BranchDeleted = p.repo.refs["refs/heads/"+p.headRef] == ""
	for _, su := range p.repo.suites {
		for _, c := range su.runs {
			if su.head == p.headSHA {
				text := markdown.HTML(c.summary+"\n\n"+c.text, func(int, bool) string { return "☐" })
				v.Checks = append(v.Checks, checkView{CheckRun: c.view(), Text: text, Buttons: c.actions})
			}
		}
	}
	files, err := s.pullFiles(p)
	if err != nil {
		s.log.Warn("show a diff", "repo", p.repo.fullName(), "pull", p.number, "error", err)
	}
	var threads []threadView
	for _, t := range p.threads {
		if t.comments[0].review.state != "PENDING" && t.side != "LEFT" {
			threads = append(threads, viewThread(t, p.repo.fullName(), back))
		}
	}
	v.Files = viewFiles(files, threads)
	return v
}

func viewFiles(files []fileDiff, threads []threadView) []fileView {
	var out []fileView
	for _, f := range files {
		v := fileView{Path: f.path, Status: f.status, Additions: f.additions, Deletions: f.deletions}
		shown := map[int64]bool{}
		for _, h := range f.hunks {
			v.Lines = append(v.Lines, lineView{Class: "hunk", Text: h.header})
			for _, l := range h.lines {
				lv := lineView{Class: map[byte]string{'+': "add", '-': "del", ' ': "same"}[l.kind], Text: l.text, Old: l.old, New: l.new}
				for _, t := range threads {
					if t.Path == f.path && t.Line == l.new && l.new > 0 && !t.Outdated {
						lv.Threads = append(lv.Threads, t)
						shown[t.First] = true
					}
				}
				v.Lines = append(v.Lines, lv)
			}
		}
		for _, t := range threads {
			if t.Path == f.path && !shown[t.First] {
				v.Loose = append(v.Loose, t)
			}
		}
		out = append(out, v)
	}
	return out
}
