package githubtest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func escapePath(p string) string { return (&url.URL{Path: p}).EscapedPath() }

// getPermission answers what somebody may do: maintain counts as write and
// triage as read in the coarse field.
func getPermission(c *call) answer {
	a := c.s.accounts[strings.ToLower(c.vars["username"])]
	if a == nil {
		return fail(http.StatusNotFound, c.vars["username"]+" is not a user")
	}
	role := c.repo.role(a)
	coarse := map[string]string{"maintain": "write", "triage": "read"}[role]
	if coarse == "" {
		coarse = role
	}
	user := c.s.shapeUser(a).(obj)
	user["role_name"] = role
	user["permissions"] = obj{
		"pull": c.repo.can(a, "read"), "triage": c.repo.can(a, "triage"), "push": c.repo.can(a, "write"),
		"maintain": c.repo.can(a, "maintain"), "admin": c.repo.can(a, "admin"),
	}
	return ok(obj{"permission": coarse, "role_name": role, "user": user})
}

func getRules(c *call) answer {
	rules := slices.DeleteFunc(slices.Clone(c.repo.rules), func(r Rule) bool { return !r.matches(c.vars["branch"]) })
	return listing(c, rules, func(r Rule) any {
		o := obj{"type": r.Type, "ruleset_source_type": "Repository", "ruleset_source": c.repo.fullName(), "ruleset_id": 1}
		switch r.Type { // go-github v62 falls over a pull_request rule without parameters
		case "pull_request":
			o["parameters"] = obj{
				"dismiss_stale_reviews_on_push": false, "require_code_owner_review": false, "require_last_push_approval": false,
				"required_approving_review_count": 0, "required_review_thread_resolution": false,
			}
		case "update":
			o["parameters"] = obj{"update_allows_fetch_and_merge": false}
		case "branch_name_pattern":
			o["parameters"] = obj{"operator": "starts_with", "pattern": r.Value}
		case "file_path_restriction":
			o["parameters"] = obj{"restricted_file_paths": []any{r.Value}}
		case "required_status_checks":
			check := obj{"context": r.Value}
			if r.App != 0 {
				check["integration_id"] = r.App
			}
			o["parameters"] = obj{"required_status_checks": []any{check}, "strict_required_status_checks_policy": false}
		case "merge_queue":
			o["parameters"] = obj{
				"check_response_timeout_minutes": 60, "grouping_strategy": "ALLGREEN", "max_entries_to_build": 5, "max_entries_to_merge": 5,
				"merge_method": "MERGE", "min_entries_to_merge": 1, "min_entries_to_merge_wait_minutes": 5,
			}
		}
		return o
	})
}

// mergeBranches merges one branch into another.
func mergeBranches(c *call) answer {
	var req struct {
		Base          string `json:"base"`
		Head          string `json:"head"`
		CommitMessage string `json:"commit_message"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	base := c.repo.refs["refs/heads/"+req.Base]
	head, found := c.at(req.Head)
	if base == "" || !found {
		return fail(http.StatusNotFound, "Base or head does not exist")
	}
	if c.s.isAncestor(c.repo, head, base) {
		return noContent()
	}
	tree, err := c.s.mergeTree(c.repo, base, head)
	if err != nil {
		return fail(http.StatusConflict, "Merge conflict")
	}
	if req.CommitMessage == "" {
		req.CommitMessage = "Merge " + req.Head + " into " + req.Base
	}
	sha, err := c.s.commitTree(c.repo, tree, []string{base, head}, c.actor, req.CommitMessage)
	if err == nil {
		err = c.s.setRef(c.repo, "refs/heads/"+req.Base, sha, c.actor)
	}
	merge, readErr := c.s.commitAt(c.repo, sha)
	if err != nil || readErr != nil {
		return fail(http.StatusConflict, "Merge conflict")
	}
	return created(c.s.shapeCommit(c.repo, merge))
}

// statuses lists the statuses of a commit, the newest first.
func (c *call) statuses() (string, []*commitStatus, bool) {
	sha, found := c.at(c.vars["ref"])
	var list []*commitStatus
	for _, st := range c.repo.statuses {
		if st.sha == sha {
			list = append(list, st)
		}
	}
	slices.Reverse(list)
	return sha, list, found
}

func combinedStatus(c *call) answer {
	sha, list, found := c.statuses()
	if !found {
		return notFound()
	}
	state, newest, seen := "success", []*commitStatus{}, map[string]bool{}
	for _, st := range list {
		if seen[st.context] {
			continue
		}
		seen[st.context] = true
		newest = append(newest, st)
		if st.state == "failure" || st.state == "error" {
			state = "failure"
		} else if st.state == "pending" && state == "success" {
			state = "pending"
		}
	}
	if len(newest) == 0 {
		state = "pending"
	}
	rows, header := page(c, newest, func(st *commitStatus) any { return c.s.shapeStatus(c.repo, st) })
	url := c.s.api(c.repo) + "/commits/" + sha
	return answer{status: http.StatusOK, header: header, body: obj{
		"state": state, "statuses": rows, "sha": sha, "total_count": len(newest), "repository": c.s.shapeRepo(c.repo), "commit_url": url, "url": url + "/status",
	}}
}
