package githubtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
)

// history is what the oracle judges by. s.mu is held by whoever writes to it.
type history struct {
	steps int // what has happened, counted
	moves []move
	asked map[*issue]int // when somebody with write access first asked for work on it
}

// move is a ref that was made, moved or deleted.
type move struct {
	step     int
	repo     *repository
	ref      string
	old, new string
	by       *account
}

// moved takes note of a move.
func (h *history) moved(r *repository, ref, old, sha string, by *account) {
	h.steps++
	h.moves = append(h.moves, move{h.steps, r, ref, old, sha, by})
}

// order is what people write to have something done: a command, or a ticked box.
var order = lazyregexp.New(`(?m)^/[a-z]|\[[xX]\]`)

// asks takes note of a word on an issue or pull request that may ask for work: a label,
// or a text with a command or a ticked box.
func (h *history) asks(i *issue, by *account, label bool, text string) {
	h.steps++
	if by.bot() || !i.repo.can(by, "write") || !label && !order.MatchString(text) {
		return
	}
	if h.asked == nil {
		h.asked = map[*issue]int{}
	}
	if h.asked[i] == 0 {
		h.asked[i] = h.steps
	}
}

// Violations says what the App has done that it must never do, whatever happened to it:
// written to a ref that is not its own, lost a commit of a person, worked for an issue
// that nobody with write access asked it for, or posted the same thing twice. slug is what
// its branches begin with. It is for the end of a test, when nothing goes on any more.
func (s *Server) Violations(slug string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := map[*repository]map[string]string{} // all refs, as they were at each move
	people := map[string]string{}                // commits that people pushed, and who
	for _, m := range s.history.moves {
		if heads[m.repo] == nil {
			heads[m.repo] = map[string]string{}
		}
		at := heads[m.repo]
		if m.new == zeroSHA {
			delete(at, m.ref)
		} else {
			at[m.ref] = m.new
		}
		if m.by != s.bot {
			for _, sha := range s.between(m.repo, m.new, m.old) {
				people[sha] = m.by.login
			}
			continue
		}
		if why := s.notOwn(m, slug); why != "" {
			list = append(list, fmt.Sprintf("%s moved %s of %s: %s", m.by.login, m.ref, m.repo.fullName(), why))
		}
		known := []string{m.new}
		for _, sha := range at {
			known = append(known, sha)
		}
		for _, p := range m.repo.pulls() { // whose head GitHub keeps, also when its branch is gone
			known = append(known, p.headSHA)
		}
		for _, sha := range s.between(m.repo, m.old, known...) {
			if who := people[sha]; who != "" {
				list = append(list, fmt.Sprintf("%s moved %s of %s: commit %.10s of %s is lost", m.by.login, m.ref, m.repo.fullName(), sha, who))
			}
		}
	}
	return append(list, s.twice()...)
}

// between lists the commits that one has and the others have not.
func (s *Server) between(r *repository, sha string, others ...string) (shas []string) {
	if sha == zeroSHA {
		return nil
	}
	others = slices.DeleteFunc(others, func(o string) bool { return o == zeroSHA })
	list, _ := s.commits(r, sha, others...) // none of a commit that was never here
	for _, c := range list {
		shas = append(shas, c.SHA)
	}
	return shas
}

// notOwn says why the App may not make a move; "" when it may. It works on its own
// branches, for an issue that somebody asked it for or an incident of its own, and merges its own pull requests.
func (s *Server) notOwn(m move, slug string) string {
	branch, ok := strings.CutPrefix(m.ref, "refs/heads/")
	if !ok {
		return "it is no branch"
	}
	if strings.HasPrefix(branch, "gh-readonly-queue/") {
		return "" // GitHub makes and removes it
	}
	for _, p := range m.repo.pulls() {
		if p.mergeSHA == m.new && p.mergedBy == s.bot {
			if p.user == s.bot && p.baseRef == branch {
				return ""
			}
			return fmt.Sprintf("that merges #%d, which is not its own", p.number)
		}
		if rest, ok := strings.CutPrefix(branch, fmt.Sprintf("revert-%d-", p.number)); ok && rest == p.headRef && m.old == zeroSHA {
			return "" // GitHub's button made it, for a draft that takes a merge back
		}
	}
	if !strings.HasPrefix(branch, slug+"/") {
		return "it is not one of its own"
	}
	n := issueOf(branch)
	i := m.repo.issues[n]
	if n == 0 || i == nil {
		return "" // of no issue: what is proposed about the App's own settings
	}
	if i.user == s.bot && slices.ContainsFunc(i.labels, func(l *label) bool { return l.name == "incident" }) {
		return "" // what a repository's settings ask for, when production breaks
	}
	if at := s.history.asked[i]; m.new != zeroSHA && (at == 0 || at > m.step) {
		return fmt.Sprintf("nobody with write access had asked for work on #%d", n)
	}
	return ""
}

var branchNumber = lazyregexp.New(`^[^/]+/(?:issue-)?(\d+)\b`)

// issueOf is the number of the issue that a branch is for, by its name; 0 for none.
func issueOf(branch string) int {
	m := branchNumber.FindStringSubmatch(branch)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

var marker = lazyregexp.New(`<!-- [a-z-]+:[^ ]+ -->`)

// twice lists what the App has posted more than once: texts with the same marker at the
// same place, check runs of the same name for the same commit and purpose, and pull
// requests that are open from the same branch.
func (s *Server) twice() (list []string) {
	seen := map[string]bool{}
	add := func(by *account, place, key string) {
		if by != s.bot || key == "" {
			return
		}
		if id := place + " " + key; seen[id] {
			list = append(list, "posted twice: "+id)
		} else {
			seen[id] = true
		}
	}
	for _, r := range s.repos {
		for _, i := range r.issueList() {
			at := fmt.Sprintf("%s#%d", r.fullName(), i.number)
			if i.state == "open" {
				add(i.user, r.fullName(), marker.FindString(i.body))
			}
			for _, c := range i.comments {
				add(c.user, at+" comment", marker.FindString(c.body))
			}
			if i.pull == nil {
				continue
			}
			if i.state == "open" {
				add(i.user, r.fullName()+" pull request", i.pull.headRef)
			}
			for _, rv := range i.pull.reviews {
				add(rv.user, at+" review", marker.FindString(rv.body))
			}
			for _, c := range i.pull.reviewComments() {
				add(c.user, at+" on the diff", marker.FindString(c.body))
			}
		}
		for _, su := range r.suites {
			for _, c := range su.runs {
				if su.app == nil && c.externalID != "" {
					add(s.bot, r.fullName()+" check", su.head+" "+c.name+" "+c.externalID)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}
