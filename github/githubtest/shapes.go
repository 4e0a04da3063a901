package githubtest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The functions here write the model as GitHub's JSON. One shape serves the REST
// answers and the webhooks: it has the fields of both.

func (s *Server) api(r *repository) string  { return s.APIURL() + "repos/" + r.fullName() }
func (s *Server) html(r *repository) string { return s.URL + "/" + r.fullName() }

func (s *Server) shapeUser(a *account) any {
	if a == nil {
		return nil
	}
	u, login := s.APIURL()+"users/"+url.PathEscape(a.login), url.PathEscape(a.login)
	html := s.URL + "/" + login
	if a.bot() {
		html = s.URL + "/apps/" + s.AppSlug
	}
	return obj{
		"login": a.login, "id": a.id, "node_id": a.node, "avatar_url": s.URL + "/avatars/" + login, "gravatar_id": "", "url": u, "html_url": html,
		"followers_url": u + "/followers", "following_url": u + "/following{/other_user}", "gists_url": u + "/gists{/gist_id}",
		"starred_url": u + "/starred{/owner}{/repo}", "subscriptions_url": u + "/subscriptions", "organizations_url": u + "/orgs",
		"repos_url": u + "/repos", "events_url": u + "/events{/privacy}", "received_events_url": u + "/received_events",
		"type": a.kind, "site_admin": false,
	}
}

// repoURLs are the addresses in a repository's JSON, below its API address.
var repoURLs = map[string]string{
	"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}", "branches_url": "/branches{/branch}",
	"collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}", "commits_url": "/commits{/sha}",
	"compare_url": "/compare/{base}...{head}", "contents_url": "/contents/{+path}", "contributors_url": "/contributors", "deployments_url": "/deployments",
	"downloads_url": "/downloads", "events_url": "/events", "forks_url": "/forks", "git_commits_url": "/git/commits{/sha}", "git_refs_url": "/git/refs{/sha}",
	"git_tags_url": "/git/tags{/sha}", "hooks_url": "/hooks", "issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}", "languages_url": "/languages", "merges_url": "/merges",
	"milestones_url": "/milestones{/number}", "notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
	"releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}", "subscribers_url": "/subscribers",
	"subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams", "trees_url": "/git/trees{/sha}",
}

func (s *Server) shapeRepo(r *repository) obj {
	api, html, issues, visibility := s.api(r), s.html(r), 0, "public"
	if r.private {
		visibility = "private"
	}
	for _, i := range r.issues {
		if i.state == "open" {
			issues++
		}
	}
	o := obj{
		"id": r.id, "node_id": r.node, "name": r.name, "full_name": r.fullName(), "owner": s.shapeUser(r.owner), "private": r.private, "html_url": html,
		"description": nil, "fork": false, "url": api, "git_url": "git://" + strings.TrimPrefix(html, "http://") + ".git",
		"ssh_url": "git@127.0.0.1:" + r.fullName() + ".git", "clone_url": html + ".git", "svn_url": html, "mirror_url": nil, "homepage": nil, "language": nil,
		"forks_count": 0, "stargazers_count": 0, "watchers_count": 0, "size": 1, "default_branch": r.defaultBranch, "open_issues_count": issues,
		"is_template": false, "topics": []any{}, "has_issues": true, "has_projects": false, "has_wiki": false, "has_pages": false, "has_downloads": false,
		"has_discussions": false, "archived": r.archived, "disabled": false, "visibility": visibility, "pushed_at": stamp(r.pushed), "created_at": stamp(r.created),
		"updated_at": stamp(r.pushed), "subscribers_count": 0, "network_count": 0, "license": nil, "forks": 0, "open_issues": issues, "watchers": 0,
		"allow_forking": true, "web_commit_signoff_required": false,
	}
	for key, tail := range repoURLs {
		o[key] = api + tail
	}
	return o
}

func (s *Server) shapeLabel(r *repository, l *label) obj {
	return obj{
		"id": l.id, "node_id": l.node, "url": s.api(r) + "/labels/" + url.PathEscape(l.name), "name": l.name, "color": l.color, "default": false,
		"description": orNil(l.description),
	}
}

func (s *Server) shapeLabels(i *issue) []any {
	out := []any{}
	for _, l := range i.labels {
		out = append(out, s.shapeLabel(i.repo, l))
	}
	return out
}

func (s *Server) shapeUsers(list []*account) []any {
	out := []any{}
	for _, a := range list {
		out = append(out, s.shapeUser(a))
	}
	return out
}

// association is what GitHub computes without a viewer: an owner, a collaborator
// by invitation, or nothing. It is no authorisation.
func (s *Server) association(r *repository, a *account) string {
	switch {
	case a == r.owner:
		return "OWNER"
	case a != nil && r.roles[strings.ToLower(a.login)] != "":
		return "COLLABORATOR"
	case a.bot():
		return "CONTRIBUTOR"
	}
	return "NONE"
}

// viaApp is the App when its bot did it.
func (s *Server) viaApp(a *account) any {
	if a != s.bot {
		return nil
	}
	app := s.shapeApp()
	app["events"] = without(app["events"], "pull_request_review_thread", "merge_group")
	return app
}

// without leaves out events that the schemas of the webhooks do not know as an App's.
func without(events any, unknown ...string) []string {
	return slices.DeleteFunc(slices.Clone(events.([]string)), func(e string) bool { return slices.Contains(unknown, e) })
}

var reactionKinds = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

func rollup(address string, list []*reaction) obj {
	o := obj{"url": address + "/reactions", "total_count": len(list)}
	for _, k := range reactionKinds {
		o[k] = 0
	}
	for _, r := range list {
		o[r.content] = o[r.content].(int) + 1
	}
	return o
}

func (i *issue) kindPath() string {
	if i.pull != nil {
		return "pull"
	}
	return "issues"
}

func (s *Server) shapeIssue(i *issue) obj {
	api := fmt.Sprintf("%s/issues/%d", s.api(i.repo), i.number)
	html := fmt.Sprintf("%s/%s/%d", s.html(i.repo), i.kindPath(), i.number)
	var assignee any
	if len(i.assignees) > 0 {
		assignee = s.shapeUser(i.assignees[0])
	}
	o := obj{
		"id": i.id, "node_id": i.node, "url": api, "repository_url": s.api(i.repo), "labels_url": api + "/labels{/name}", "comments_url": api + "/comments",
		"events_url": api + "/events", "timeline_url": api + "/timeline", "html_url": html, "number": i.number, "state": i.state, "state_reason": orNil(i.reason),
		"title": i.title, "body": orNil(i.body), "user": s.shapeUser(i.user), "labels": s.shapeLabels(i), "assignee": assignee,
		"assignees": s.shapeUsers(i.assignees), "milestone": nil, "locked": false, "active_lock_reason": nil, "comments": len(i.comments),
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": stampOrNil(i.closed), "closed_by": s.shapeUser(i.closedBy),
		"author_association": s.association(i.repo, i.user), "reactions": rollup(api, i.reactions), "performed_via_github_app": s.viaApp(i.user),
	}
	s.shapeRelations(i, o)
	if p := i.pull; p != nil {
		o["draft"] = p.draft
		o["pull_request"] = obj{
			"url": fmt.Sprintf("%s/pulls/%d", s.api(i.repo), i.number), "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch",
			"merged_at": stampOrNil(p.merged),
		}
	}
	return o
}

// shapeRelations says how an issue stands to others, where it does.
func (s *Server) shapeRelations(i *issue, o obj) {
	if i.kind != "" {
		o["type"] = obj{"id": 1, "node_id": "IT_1", "name": i.kind, "description": nil, "color": "red"}
	}
	if i.parent != nil {
		o["parent_issue_url"] = fmt.Sprintf("%s/issues/%d", s.api(i.parent.repo), i.parent.number)
	}
	if n := len(i.subs); n > 0 {
		done := n - len(openOf(i.subs))
		o["sub_issues_summary"] = obj{"total": n, "completed": done, "percent_completed": 100 * done / n}
	}
	if n := len(i.blockedBy); n > 0 {
		o["issue_dependencies_summary"] = obj{"blocked_by": len(openOf(i.blockedBy)), "blocking": 0, "total_blocked_by": n, "total_blocking": 0}
	}
}

func (s *Server) shapeComment(c *comment) obj {
	api := fmt.Sprintf("%s/issues/comments/%d", s.api(c.issue.repo), c.id)
	return obj{
		"id": c.id, "node_id": c.node, "url": api, "issue_url": fmt.Sprintf("%s/issues/%d", s.api(c.issue.repo), c.issue.number),
		"html_url": fmt.Sprintf("%s/%s/%d#issuecomment-%d", s.html(c.issue.repo), c.issue.kindPath(), c.issue.number, c.id), "body": c.body,
		"user": s.shapeUser(c.user), "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"author_association": s.association(c.issue.repo, c.user), "reactions": rollup(api, c.reactions), "performed_via_github_app": s.viaApp(c.user),
	}
}

func (s *Server) shapeSide(r *repository, ref, sha string) obj {
	return obj{"label": r.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": s.shapeUser(r.owner), "repo": s.shapeRepo(r)}
}

// shapePullSimple is a pull request as lists and webhooks of reviews have it.
func (s *Server) shapePullSimple(p *pull) obj {
	r := p.repo
	api, issueAPI := fmt.Sprintf("%s/pulls/%d", s.api(r), p.number), fmt.Sprintf("%s/issues/%d", s.api(r), p.number)
	html, statuses := fmt.Sprintf("%s/pull/%d", s.html(r), p.number), s.api(r)+"/statuses/"+p.headSHA
	link := func(href string) obj { return obj{"href": href} }
	var assignee any
	if len(p.assignees) > 0 {
		assignee = s.shapeUser(p.assignees[0])
	}
	return obj{
		"id": p.pullID, "node_id": p.pullNode, "url": api, "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "issue_url": issueAPI,
		"commits_url": api + "/commits", "review_comments_url": api + "/comments", "review_comment_url": s.api(r) + "/pulls/comments{/number}",
		"comments_url": issueAPI + "/comments", "statuses_url": statuses, "number": p.number, "state": p.state, "locked": false, "title": p.title,
		"user": s.shapeUser(p.user), "body": orNil(p.body), "labels": s.shapeLabels(p.issue), "milestone": nil, "active_lock_reason": nil,
		"created_at": stamp(p.created), "updated_at": stamp(p.updated), "closed_at": stampOrNil(p.closed), "merged_at": stampOrNil(p.merged),
		"merge_commit_sha": orNil(p.mergeSHA), "assignee": assignee, "assignees": s.shapeUsers(p.assignees), "requested_reviewers": s.shapeUsers(p.asked),
		"requested_teams": []any{}, "draft": p.draft, "head": s.shapeSide(r, p.headRef, p.headSHA), "base": s.shapeSide(r, p.baseRef, p.baseSHA),
		"_links": obj{
			"self": link(api), "html": link(html), "issue": link(issueAPI), "comments": link(issueAPI + "/comments"), "review_comments": link(api + "/comments"),
			"review_comment": link(s.api(r) + "/pulls/comments{/number}"), "commits": link(api + "/commits"), "statuses": link(statuses),
		},
		"author_association": s.association(r, p.user), "auto_merge": nil,
	}
}

// shapePull is the whole pull request, with what has to be asked of git.
func (s *Server) shapePull(p *pull) obj {
	o := s.shapePullSimple(p)
	files, _ := s.pullFiles(p) // an empty diff if the branch is gone
	add, del := 0, 0
	for _, f := range files {
		add, del = add+f.additions, del+f.deletions
	}
	commits, _ := s.commits(p.repo, p.headSHA, p.baseSHA)
	o["merged"], o["merged_by"], o["comments"], o["review_comments"] = !p.merged.IsZero(), s.shapeUser(p.mergedBy), len(p.comments), len(p.reviewComments())
	o["commits"], o["additions"], o["deletions"], o["changed_files"] = len(commits), add, del, len(files)
	o["maintainer_can_modify"], o["rebaseable"] = false, nil
	o["mergeable"], o["mergeable_state"] = s.mergeable(p)
	return o
}

func (s *Server) shapePullMinimal(p *pull) obj {
	side := func(ref, sha string) obj {
		return obj{"ref": ref, "sha": sha, "repo": obj{"id": p.repo.id, "url": s.api(p.repo), "name": p.repo.name}}
	}
	return obj{
		"id": p.pullID, "number": p.number, "url": fmt.Sprintf("%s/pulls/%d", s.api(p.repo), p.number),
		"head": side(p.headRef, p.headSHA), "base": side(p.baseRef, p.baseSHA),
	}
}

func (s *Server) shapeReview(rv *review) obj {
	api := fmt.Sprintf("%s/pulls/%d", s.api(rv.pull.repo), rv.pull.number)
	html := fmt.Sprintf("%s/pull/%d#pullrequestreview-%d", s.html(rv.pull.repo), rv.pull.number, rv.id)
	o := obj{
		"id": rv.id, "node_id": rv.node, "user": s.shapeUser(rv.user), "body": rv.body, "state": rv.state, "html_url": html, "pull_request_url": api,
		"_links": obj{"html": obj{"href": html}, "pull_request": obj{"href": api}}, "commit_id": rv.commit,
		"author_association": s.association(rv.pull.repo, rv.user),
	}
	if rv.state != "PENDING" {
		o["submitted_at"] = stamp(rv.submitted)
	}
	return o
}

// shapeReviewHook is a review in a webhook, where its state is in lower case.
func (s *Server) shapeReviewHook(rv *review) obj {
	o := s.shapeReview(rv)
	o["state"], o["body"], o["submitted_at"] = strings.ToLower(rv.state), orNil(rv.body), stampOrNil(rv.submitted)
	return o
}

// shapeReviewComment is a comment on the diff in an answer: there, a line that is
// not is left out. In a webhook it is null.
func (s *Server) shapeReviewComment(c *reviewComment) obj {
	o := s.shapeReviewCommentHook(c)
	for _, key := range []string{"line", "original_line"} {
		if o[key] == nil {
			delete(o, key)
		}
	}
	return o
}

func (s *Server) shapeReviewCommentHook(c *reviewComment) obj {
	t, p := c.thread, c.thread.pull
	api := fmt.Sprintf("%s/pulls/comments/%d", s.api(p.repo), c.id)
	pull := fmt.Sprintf("%s/pulls/%d", s.api(p.repo), p.number)
	html := fmt.Sprintf("%s/pull/%d#discussion_r%d", s.html(p.repo), p.number, c.id)
	num := func(n int) any { return idOrNil(int64(n)) }
	var position any = t.position
	if t.outdated {
		position = nil
	}
	var startSide any
	if t.startLine > 0 || t.origStart > 0 {
		startSide = t.startSide
	}
	o := obj{
		"id": c.id, "node_id": c.node, "url": api, "pull_request_review_id": c.review.id, "diff_hunk": t.hunk, "path": t.path, "position": position,
		"original_position": t.position, "commit_id": t.commit, "original_commit_id": t.origCommit, "user": s.shapeUser(c.user), "body": c.body,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "html_url": html, "pull_request_url": pull,
		"author_association": s.association(p.repo, c.user), "reactions": rollup(api, c.reactions), "subject_type": t.subject,
		"_links": obj{"self": obj{"href": api}, "html": obj{"href": html}, "pull_request": obj{"href": pull}},
		"line":   num(t.line), "original_line": num(t.origLine), "start_line": num(t.startLine), "original_start_line": num(t.origStart),
		"side": t.side, "start_side": startSide,
	}
	if t.subject == "file" {
		o["position"], o["original_position"], o["line"], o["original_line"] = 1, 1, nil, nil
	}
	if c.replyTo != 0 {
		o["in_reply_to_id"] = c.replyTo
	}
	return o
}
