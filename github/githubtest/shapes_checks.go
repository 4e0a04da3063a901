package githubtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (s *Server) pullsWithHead(r *repository, sha string) []any {
	out := []any{}
	for _, p := range r.pulls() {
		if p.headSHA == sha && p.state == "open" {
			out = append(out, s.shapePullMinimal(p))
		}
	}
	return out
}

func (s *Server) shapeCheckRun(c *checkRun) obj {
	r := c.suite.repo
	api := fmt.Sprintf("%s/check-runs/%d", s.api(r), c.id)
	details := c.detailsURL
	if details == "" {
		details = s.app.URL
	}
	return obj{
		"id": c.id, "node_id": c.node, "head_sha": c.suite.head, "external_id": c.externalID, "url": api,
		"html_url": fmt.Sprintf("%s/runs/%d", s.html(r), c.id), "details_url": details, "status": c.status, "conclusion": orNil(c.conclusion),
		"started_at": stampOrNil(c.started), "completed_at": stampOrNil(c.completed), "name": c.name,
		"output": obj{
			"title": orNil(c.title), "summary": orNil(c.summary), "text": orNil(c.text), "annotations_count": len(c.annotations),
			"annotations_url": api + "/annotations",
		},
		"check_suite": obj{"id": c.suite.id}, "app": s.shapeAppOf(c.suite), "pull_requests": s.pullsWithHead(r, c.suite.head),
	}
}

// shapeCheckRunHook has the suite in it, as webhooks do.
func (s *Server) shapeCheckRunHook(c *checkRun) obj {
	o, su := s.shapeCheckRun(c), c.suite
	status, conclusion := su.summary()
	o["check_suite"] = obj{
		"id": su.id, "node_id": su.node, "head_branch": orNil(su.branch), "head_sha": su.head, "status": status, "conclusion": orNil(conclusion),
		"url": fmt.Sprintf("%s/check-suites/%d", s.api(su.repo), su.id), "before": orNil(su.before), "after": su.head,
		"pull_requests": s.pullsWithHead(su.repo, su.head), "app": s.shapeAppOf(su), "created_at": stamp(su.created), "updated_at": stamp(su.updated),
	}
	return o
}

// suiteRank orders conclusions as a suite takes them from its runs.
var suiteRank = []string{"failure", "timed_out", "action_required", "cancelled", "neutral", "skipped", "success"}

// newest is the suite's check runs without those that a later one of the same
// name has superseded.
func (su *checkSuite) newest() []*checkRun {
	return slices.DeleteFunc(slices.Clone(su.runs), func(x *checkRun) bool {
		return slices.ContainsFunc(su.runs, func(y *checkRun) bool { return y.name == x.name && y.id > x.id })
	})
}

// summary is the suite's status and conclusion.
func (su *checkSuite) summary() (status, conclusion string) {
	if su.ended != "" {
		return "completed", su.ended
	}
	if len(su.runs) == 0 {
		return "queued", ""
	}
	worst := len(suiteRank)
	for _, c := range su.newest() {
		if c.status != "completed" {
			return "in_progress", ""
		}
		for i, name := range suiteRank {
			if name == c.conclusion {
				worst = min(worst, i)
			}
		}
	}
	if worst == len(suiteRank) {
		return "completed", "neutral"
	}
	return "completed", suiteRank[worst]
}

func (s *Server) shapeCheckSuite(su *checkSuite) obj {
	status, conclusion := su.summary()
	api := fmt.Sprintf("%s/check-suites/%d", s.api(su.repo), su.id)
	o := obj{
		"id": su.id, "node_id": su.node, "head_branch": orNil(su.branch), "head_sha": su.head, "status": status, "conclusion": orNil(conclusion), "url": api,
		"before": orNil(su.before), "after": su.head, "pull_requests": s.pullsWithHead(su.repo, su.head), "app": s.shapeAppOf(su),
		"repository": s.shapeRepo(su.repo), "created_at": stamp(su.created), "updated_at": stamp(su.updated), "latest_check_runs_count": len(su.runs),
		"check_runs_url": api + "/check-runs", "rerequestable": true, "runs_rerequestable": true,
	}
	if at, err := s.commitAt(su.repo, su.head); err == nil {
		o["head_commit"] = shapeSimpleCommit(at)
	}
	return o
}

func shapeSimpleCommit(c commitInfo) obj {
	return obj{
		"id": c.SHA, "tree_id": c.Tree, "message": c.Message, "timestamp": c.CommitDat,
		"author": obj{"name": c.Author, "email": c.AuthorMail}, "committer": obj{"name": c.Committer, "email": c.CommitMail},
	}
}

func (s *Server) shapeStatus(r *repository, st *commitStatus) obj {
	return obj{
		"id": st.id, "node_id": st.node, "state": st.state, "context": st.context, "description": orNil(st.description), "target_url": orNil(st.target),
		"url": s.api(r) + "/statuses/" + st.sha, "avatar_url": s.URL + "/avatars/" + st.user.login, "created_at": stamp(st.at), "updated_at": stamp(st.at),
	}
}

// byMail finds whose address a commit carries.
func (s *Server) byMail(mail string) *account {
	for _, a := range s.order {
		if strings.EqualFold(a.mail(), mail) {
			return a
		}
	}
	return nil
}

func (s *Server) verification(r *repository, sha string) obj {
	if r.verified[sha] {
		return obj{"verified": true, "reason": "valid", "signature": "-----BEGIN PGP SIGNATURE-----", "payload": "tree", "verified_at": stamp(s.created)}
	}
	return obj{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
}

func (s *Server) shapeParents(r *repository, c commitInfo) []any {
	out := []any{}
	for _, p := range c.Parents {
		out = append(out, obj{"sha": p, "url": s.api(r) + "/commits/" + p, "html_url": s.html(r) + "/commit/" + p})
	}
	return out
}

// shapeCommit is a commit as /commits has it.
func (s *Server) shapeCommit(r *repository, c commitInfo) obj {
	api := s.api(r) + "/commits/" + c.SHA
	return obj{
		"sha": c.SHA, "node_id": "C_" + c.SHA, "url": api, "html_url": s.html(r) + "/commit/" + c.SHA, "comments_url": api + "/comments",
		"commit": obj{
			"url":       s.api(r) + "/git/commits/" + c.SHA,
			"author":    obj{"name": c.Author, "email": c.AuthorMail, "date": c.AuthorDate},
			"committer": obj{"name": c.Committer, "email": c.CommitMail, "date": c.CommitDat},
			"message":   c.Message, "comment_count": 0, "tree": obj{"sha": c.Tree, "url": s.api(r) + "/git/trees/" + c.Tree},
			"verification": s.verification(r, c.SHA),
		},
		"author": s.shapeUser(s.byMail(c.AuthorMail)), "committer": s.shapeUser(s.byMail(c.CommitMail)), "parents": s.shapeParents(r, c),
	}
}

// shapeGitCommit is a commit as /git/commits has it.
func (s *Server) shapeGitCommit(r *repository, c commitInfo) obj {
	return obj{
		"sha": c.SHA, "node_id": "C_" + c.SHA, "url": s.api(r) + "/git/commits/" + c.SHA, "html_url": s.html(r) + "/commit/" + c.SHA,
		"author":    obj{"name": c.Author, "email": c.AuthorMail, "date": c.AuthorDate},
		"committer": obj{"name": c.Committer, "email": c.CommitMail, "date": c.CommitDat},
		"message":   c.Message, "tree": obj{"sha": c.Tree, "url": s.api(r) + "/git/trees/" + c.Tree}, "parents": s.shapeParents(r, c),
		"verification": s.verification(r, c.SHA),
	}
}

// shapeHookCommit is a commit in the payload of a push.
func (s *Server) shapeHookCommit(r *repository, c commitInfo) obj {
	o := shapeSimpleCommit(c)
	o["distinct"], o["url"] = true, s.html(r)+"/commit/"+c.SHA
	o["added"], o["removed"], o["modified"] = []string{}, []string{}, []string{}
	for who, mail := range map[string]string{"author": c.AuthorMail, "committer": c.CommitMail} {
		if a := s.byMail(mail); a != nil {
			o[who].(obj)["username"] = a.login
		}
	}
	before := commitInfo{}
	if len(c.Parents) > 1 { // of a merge, nothing is said
		return o
	} else if len(c.Parents) == 1 {
		before, _ = s.commitAt(r, c.Parents[0]) // an empty tree if it is not there
	}
	files, _ := s.changedFiles(r, before.Tree, c.Tree) // likewise
	kinds := map[byte]string{'A': "added", 'D': "removed", 'M': "modified"}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		kind := kinds[files[name]]
		o[kind] = append(o[kind].([]string), name)
	}
	return o
}
