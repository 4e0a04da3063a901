package githubtest

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// repoOps are the operations on a repository and what is in it.
var repoOps = map[string]handler{
	"repos/get":                               func(c *call) answer { return ok(c.s.shapeRepo(c.repo)) },
	"repos/get-content":                       getContent,
	"repos/get-commit":                        getCommit,
	"repos/compare-commits-with-basehead":     compareCommits,
	"repos/get-collaborator-permission-level": getPermission,
	"repos/get-branch-rules":                  getRules,
	"repos/merge":                             mergeBranches,
	"repos/get-combined-status-for-ref":       combinedStatus,
	"repos/create-or-update-file-contents":    putContent,
}

// at resolves the commit that ?ref= names, or the default branch.
func (c *call) at(ref string) (string, bool) {
	if ref == "" {
		ref = c.repo.defaultBranch
	}
	for _, prefix := range []string{"refs/heads/", "heads/", "refs/tags/", "tags/"} {
		if rest, found := strings.CutPrefix(ref, prefix); found {
			ref = rest
			break
		}
	}
	return c.s.resolve(c.repo, ref)
}

func getContent(c *call) answer {
	file := strings.Trim(c.vars["path"], "/")
	sha, found := c.at(c.r.URL.Query().Get("ref"))
	if !found {
		return fail(http.StatusNotFound, "No commit found for the ref "+c.r.URL.Query().Get("ref"))
	}
	if file != "" && checkPath(file) != nil {
		return notFound()
	}
	at, err := c.s.find(c.repo, sha, file)
	switch {
	case err != nil:
		return notFound()
	case at.mode == modeTree:
		return listDir(c, sha, file, at.sha)
	}
	text, err := c.s.show(c.repo, sha, file)
	if err != nil {
		return notFound()
	}
	if strings.Contains(c.r.Header.Get("Accept"), "raw") {
		return answer{status: http.StatusOK, raw: []byte(text), header: http.Header{"Content-Type": {"application/vnd.github.raw; charset=utf-8"}}}
	}
	o := c.shapeEntry("file", file, at.sha, sha, len(text))
	o["encoding"], o["content"] = "base64", wrap64(text)
	return ok(o)
}

// wrap64 is base64 in lines of 60, as GitHub sends it.
func wrap64(text string) string {
	enc := base64.StdEncoding.EncodeToString([]byte(text))
	var b strings.Builder
	for len(enc) > 60 {
		b.WriteString(enc[:60] + "\n")
		enc = enc[60:]
	}
	if enc != "" {
		b.WriteString(enc + "\n")
	}
	return b.String()
}

func (c *call) shapeEntry(kind, file, blob, sha string, size int) obj {
	s, r := c.s, c.repo
	self := fmt.Sprintf("%s/contents/%s?ref=%s", s.api(r), file, sha)
	git := s.api(r) + "/git/blobs/" + blob
	html := fmt.Sprintf("%s/blob/%s/%s", s.html(r), sha, file)
	var download any = fmt.Sprintf("%s/raw/%s/%s", s.html(r), sha, file)
	if kind == "dir" {
		download = nil
	}
	return obj{
		"type": kind, "size": size, "name": path.Base(file), "path": file, "sha": blob, "url": self, "git_url": git, "html_url": html,
		"download_url": download, "_links": obj{"self": self, "git": git, "html": html},
	}
}

func listDir(c *call, sha, dir, tree string) answer {
	out, err := c.s.once(c.repo, "ls-tree", "-l", "-z", tree)
	if err != nil {
		return notFound()
	}
	rows := []any{}
	for _, line := range strings.Split(strings.Trim(out, "\x00"), "\x00") {
		meta, name, found := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		if !found || len(f) != 4 {
			continue
		}
		kind := map[string]string{"blob": "file", "tree": "dir", "commit": "submodule"}[f[1]]
		size, _ := strconv.Atoi(f[3]) // "-" for a folder
		rows = append(rows, c.shapeEntry(kind, path.Join(dir, name), f[2], sha, size))
	}
	return ok(rows)
}

func putContent(c *call) answer {
	var req struct {
		Message, Content, SHA, Branch string
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	text, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(req.Content, "\n", ""))
	if err != nil || req.Message == "" {
		return invalidField("Content", "content", "invalid", "content is not valid Base64, or the message is empty")
	}
	if req.Branch == "" {
		req.Branch = c.repo.defaultBranch
	}
	file := c.vars["path"]
	if a := c.refuseWorkflows(file); a != nil {
		return *a
	}
	parent := c.repo.refs["refs/heads/"+req.Branch]
	if parent == "" {
		return fail(http.StatusNotFound, "Branch "+req.Branch+" not found")
	}
	old, _ := c.s.find(c.repo, parent, file)
	if old.sha != req.SHA {
		return fail(http.StatusConflict, file+" does not match "+req.SHA)
	}
	body := string(text)
	sha, err := c.s.commit(c.repo, commitRequest{parent: parent, message: req.Message + "\n", author: c.actor, committer: webFlow,
		files: map[string]*string{file: &body}})
	if err != nil {
		return invalid(err.Error())
	}
	c.repo.verified[sha] = true
	if err := c.s.setRef(c.repo, "refs/heads/"+req.Branch, sha, c.actor); err != nil {
		return invalid(err.Error())
	}
	now, err1 := c.s.find(c.repo, sha, file)
	at, err2 := c.s.commitAt(c.repo, sha)
	if err1 != nil || err2 != nil {
		return notFound()
	}
	a := ok(obj{"content": c.shapeEntry("file", file, now.sha, req.Branch, len(body)), "commit": c.s.shapeGitCommit(c.repo, at)})
	if old.sha == "" {
		a.status = http.StatusCreated
	}
	return a
}

// refuseWorkflows refuses to touch a workflow without the permission for it.
func (c *call) refuseWorkflows(files ...string) *answer {
	if c.id.kind != identInstallation || grants(c.id.tok.perms, "workflows:write") {
		return nil
	}
	for _, f := range files {
		if strings.HasPrefix(f, ".github/workflows/") {
			a := fail(http.StatusForbidden, "refusing to allow a GitHub App to create or update workflow `"+f+"` without `workflows` permission")
			return &a
		}
	}
	return nil
}

// matches compares as the hook does: * stands for anything.
func (r Rule) matches(branch string) bool {
	parts := strings.Split(r.Pattern, "*")
	if len(parts) == 1 {
		return r.Pattern == branch
	}
	rest, found := strings.CutPrefix(branch, parts[0])
	if !found {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

func (c *call) branches() []string {
	var names []string
	for ref := range c.repo.refs {
		if b, found := strings.CutPrefix(ref, "refs/heads/"); found {
			names = append(names, b)
		}
	}
	sort.Strings(names)
	return names
}

func (c *call) shapeFiles(files []fileDiff, sha string) []any {
	rows := []any{}
	for _, f := range files {
		rows = append(rows, c.shapeFile(f, sha))
	}
	return rows
}

func (c *call) shapeFile(f fileDiff, sha string) obj {
	at, _ := c.s.find(c.repo, sha, f.path) // nothing when it was removed
	o := obj{
		"sha": cmp.Or(at.sha, zeroSHA), "filename": f.path, "status": f.status, "additions": f.additions, "deletions": f.deletions, "changes": f.additions + f.deletions,
		"blob_url":     fmt.Sprintf("%s/blob/%s/%s", c.s.html(c.repo), sha, escapePath(f.path)),
		"raw_url":      fmt.Sprintf("%s/raw/%s/%s", c.s.html(c.repo), sha, escapePath(f.path)),
		"contents_url": fmt.Sprintf("%s/contents/%s?ref=%s", c.s.api(c.repo), escapePath(f.path), sha),
	}
	if f.patch != "" {
		o["patch"] = f.patch
	}
	if f.oldPath != "" {
		o["previous_filename"] = f.oldPath
	}
	return o
}

func getCommit(c *call) answer {
	sha, found := c.at(c.vars["ref"])
	if !found {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.vars["ref"])
	}
	if strings.Contains(c.r.Header.Get("Accept"), "sha") {
		return answer{status: http.StatusOK, raw: []byte(sha), header: http.Header{"Content-Type": {"application/vnd.github.sha; charset=utf-8"}}}
	}
	at, err := c.s.commitAt(c.repo, sha)
	if err != nil {
		return notFound()
	}
	from := emptyTree
	if len(at.Parents) > 0 {
		from = at.Parents[0]
	}
	files, err := c.s.diff(c.repo, from, sha)
	if err != nil {
		return notFound()
	}
	o := c.s.shapeCommit(c.repo, at)
	add, del := 0, 0
	for _, f := range files {
		add, del = add+f.additions, del+f.deletions
	}
	o["files"], o["stats"] = c.shapeFiles(files, sha), obj{"additions": add, "deletions": del, "total": add + del}
	return ok(o)
}

const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func compareCommits(c *call) answer {
	baseRef, headRef, found := strings.Cut(c.vars["basehead"], "...")
	strip := func(ref string) string { return strings.TrimPrefix(ref, c.repo.owner.login+":") }
	base, ok1 := c.at(strip(baseRef))
	head, ok2 := c.at(strip(headRef))
	if !found || !ok1 || !ok2 {
		return notFound()
	}
	mb := c.s.mergeBase(c.repo, base, head)
	if mb == "" {
		return fail(http.StatusNotFound, fmt.Sprintf("No common ancestor between %s and %s.", baseRef, headRef))
	}
	ahead, err1 := c.s.commits(c.repo, head, base)
	behind, err2 := c.s.commits(c.repo, base, head)
	from, err3 := c.s.commitAt(c.repo, base)
	left, err4 := c.s.commitAt(c.repo, mb)
	files, err5 := c.s.diff(c.repo, mb, head)
	if errors.Join(err1, err2, err3, err4, err5) != nil {
		return notFound()
	}
	slices.Reverse(ahead)
	status := "identical"
	switch {
	case len(ahead) > 0 && len(behind) > 0:
		status = "diverged"
	case len(ahead) > 0:
		status = "ahead"
	case len(behind) > 0:
		status = "behind"
	}
	commits, header := page(c, ahead, func(i commitInfo) any { return c.s.shapeCommit(c.repo, i) })
	html := fmt.Sprintf("%s/compare/%s...%s", c.s.html(c.repo), escapePath(baseRef), escapePath(headRef))
	return answer{status: http.StatusOK, header: header, body: obj{
		"url": fmt.Sprintf("%s/compare/%s...%s", c.s.api(c.repo), escapePath(baseRef), escapePath(headRef)), "html_url": html, "permalink_url": html,
		"diff_url": html + ".diff", "patch_url": html + ".patch", "base_commit": c.s.shapeCommit(c.repo, from),
		"merge_base_commit": c.s.shapeCommit(c.repo, left), "status": status, "ahead_by": len(ahead), "behind_by": len(behind),
		"total_commits": len(ahead), "commits": commits, "files": c.shapeFiles(files, head),
	}}
}
