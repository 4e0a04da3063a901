package githubtest

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitOps are the operations on git's own objects.
var gitOps = map[string]handler{
	"git/get-ref":       getRef,
	"git/create-ref":    createRef,
	"git/update-ref":    updateRef,
	"git/create-tree":   createTree,
	"git/get-tree":      getTree,
	"git/create-commit": createCommit,
}

func (c *call) shapeRef(ref string) any {
	sha := c.repo.refs[ref]
	return obj{
		"ref": ref, "node_id": "REF_" + ref, "url": c.s.api(c.repo) + "/git/" + ref,
		"object": obj{"type": "commit", "sha": sha, "url": c.s.api(c.repo) + "/git/commits/" + sha},
	}
}

func getRef(c *call) answer {
	ref := "refs/" + strings.TrimPrefix(c.vars["ref"], "refs/")
	if strings.HasPrefix(ref, "refs/pull/") {
		if sha, err := os.ReadFile(filepath.Join(c.repo.dir, filepath.Clean("/"+ref))); err == nil {
			sha := strings.TrimSpace(string(sha))
			return ok(obj{"ref": ref, "node_id": "REF_" + ref, "url": c.s.api(c.repo) + "/git/" + ref,
				"object": obj{"type": "commit", "sha": sha, "url": c.s.api(c.repo) + "/git/commits/" + sha}})
		}
	}
	if c.repo.refs[ref] == "" {
		return notFound()
	}
	return ok(c.shapeRef(ref))
}

// commitExists says whether an id is that of a commit here.
func (c *call) commitExists(sha string) bool {
	at, err := c.s.commitAt(c.repo, sha)
	return err == nil && at.SHA == sha
}

// guardRef holds a change of a ref by API against rules and workflow files.
func (c *call) guardRef(ref, old, sha string) *answer {
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	for _, r := range c.repo.rules {
		if !isBranch || !r.matches(branch) {
			continue
		}
		if why := c.refusedBy(r, branch, old, sha); why != "" {
			a := fail(http.StatusUnprocessableEntity, "Repository rule violations found\n\n"+why+"\n\n")
			return &a
		}
	}
	if sha == zeroSHA {
		return nil
	}
	known := slices.Collect(maps.Values(c.repo.refs))
	for _, p := range c.repo.pulls() {
		known = append(known, p.headSHA)
	}
	added, err := c.s.commits(c.repo, sha, known...)
	var touched []string
	for _, at := range added {
		before := commitInfo{}
		if len(at.Parents) > 0 {
			before, _ = c.s.commitAt(c.repo, at.Parents[0]) // commits has read it
		}
		files, readErr := c.s.changedFiles(c.repo, before.Tree, at.Tree)
		err = errors.Join(err, readErr)
		touched = slices.AppendSeq(touched, maps.Keys(files))
	}
	if err != nil {
		a := invalid(err.Error())
		return &a
	}
	slices.Sort(touched)
	return c.refuseWorkflows(touched...)
}

// refusedBy says why a rule refuses a change of a branch, or "".
func (c *call) refusedBy(r Rule, branch, old, sha string) string {
	made, gone := old == zeroSHA, sha == zeroSHA
	switch {
	case r.Type == "update" || r.Type == "pull_request" || r.Type == "creation" && made || r.Type == "deletion" && gone:
		return r.Type
	case r.Type == "non_fast_forward" && !made && !gone && !c.s.isAncestor(c.repo, old, sha):
		return "Cannot force-push to this branch"
	case r.Type == "branch_name_pattern" && !strings.HasPrefix(branch, r.Value):
		return "Branch name must start with a matching pattern: " + r.Value
	case gone:
	case r.Type == "required_signatures":
		out, _ := c.s.git(c.repo, "rev-list", sha, "--not", "--all")
		for _, added := range strings.Fields(out) {
			if !c.repo.verified[added] {
				return "Commits must have verified signatures."
			}
		}
	case r.Type == "file_path_restriction":
		if out, _ := c.s.git(c.repo, "log", "--format=", "--name-only", sha, "--not", "--all", "--", ":(glob)"+r.Value); out != "" {
			return "File path is restricted: " + strings.Fields(out)[0]
		}
	}
	return ""
}

func createRef(c *call) answer {
	var req struct{ Ref, SHA string }
	if a := c.decode(&req); a != nil {
		return *a
	}
	if !strings.HasPrefix(req.Ref, "refs/") || strings.Count(req.Ref, "/") < 2 {
		return fail(http.StatusUnprocessableEntity, "Reference name must start with 'refs/' and contain at least two slashes.")
	}
	if strings.HasPrefix(req.Ref, "refs/pull/") {
		return fail(http.StatusUnprocessableEntity, "Reference cannot be created: it is reserved")
	}
	if _, err := c.s.git(c.repo, "check-ref-format", req.Ref); err != nil {
		return fail(http.StatusUnprocessableEntity, req.Ref+" is not a valid ref name.")
	}
	if c.repo.refs[req.Ref] != "" {
		return fail(http.StatusUnprocessableEntity, "Reference already exists")
	}
	if !c.commitExists(req.SHA) {
		return fail(http.StatusUnprocessableEntity, "Object does not exist")
	}
	if a := c.guardRef(req.Ref, zeroSHA, req.SHA); a != nil {
		return *a
	}
	if err := c.s.setRef(c.repo, req.Ref, req.SHA, c.actor); err != nil {
		return invalid(err.Error())
	}
	return created(c.shapeRef(req.Ref))
}

func updateRef(c *call) answer {
	var req struct {
		SHA   string
		Force bool
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	ref := "refs/" + c.vars["ref"]
	old := c.repo.refs[ref]
	switch {
	case old == "":
		return fail(http.StatusUnprocessableEntity, "Reference does not exist")
	case !c.commitExists(req.SHA):
		return fail(http.StatusUnprocessableEntity, "Object does not exist")
	case !req.Force && !c.s.isAncestor(c.repo, old, req.SHA):
		return fail(http.StatusUnprocessableEntity, "Update is not a fast forward")
	}
	if a := c.guardRef(ref, old, req.SHA); a != nil {
		return *a
	}
	if err := c.s.setRef(c.repo, ref, req.SHA, c.actor); err != nil {
		return invalid(err.Error())
	}
	return ok(c.shapeRef(ref))
}

func isHex(sha string) bool {
	return len(sha) == 40 && strings.Trim(sha, "0123456789abcdef") == ""
}

type treeEntry struct {
	Path    string  `json:"path"`
	Mode    string  `json:"mode"`
	Type    string  `json:"type"`
	SHA     *string `json:"sha"`
	Content *string `json:"content"`
}

// createTree writes a tree on top of another. An entry without sha and content
// deletes its path.
func createTree(c *call) answer {
	var req struct {
		BaseTree string      `json:"base_tree"`
		Tree     []treeEntry `json:"tree"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	base, found := c.treeAt(req.BaseTree)
	if req.BaseTree != "" && !found {
		return fail(http.StatusUnprocessableEntity, "base_tree is not a valid tree oid")
	}
	files := map[string]treeFile{}
	for _, e := range req.Tree {
		if checkPath(e.Path) != nil {
			return fail(http.StatusUnprocessableEntity, "tree.path contains a malformed path component")
		}
		f := treeFile{mode: strings.TrimPrefix(e.Mode, "0")}
		switch {
		case e.SHA != nil:
			f.sha = *e.SHA
			if _, _, err := c.s.object(c.repo, f.sha); err != nil && isHex(f.sha) && f.sha != zeroSHA && e.Mode != "160000" {
				return fail(http.StatusUnprocessableEntity, "tree.sha is not a valid object")
			}
		case e.Content != nil:
			var err error
			if f.sha, err = c.repo.write("blob", *e.Content); err != nil {
				return invalid(err.Error())
			}
		}
		if f.sha == "" || f.sha == zeroSHA {
			f = treeFile{}
		} else if !slices.Contains([]string{"100644", "100755", "120000", "040000", "160000"}, e.Mode) || !isHex(f.sha) {
			return fail(http.StatusUnprocessableEntity, "Must supply a valid tree.mode")
		}
		files[e.Path] = f
	}
	tree, err := c.s.changeTree(c.repo, base, files)
	if err != nil {
		return fail(http.StatusUnprocessableEntity, "tree.sha "+err.Error())
	}
	c.vars["tree_sha"] = tree
	a := getTree(c)
	a.status = http.StatusCreated
	return a
}

// treeAt is the tree with an id, or that of a commit with it.
func (c *call) treeAt(sha string) (string, bool) {
	if kind, _, err := c.s.object(c.repo, sha); err == nil && kind == "tree" {
		return sha, true
	}
	at, err := c.s.commitAt(c.repo, sha)
	return at.Tree, err == nil
}

func getTree(c *call) answer {
	rev := c.vars["tree_sha"]
	if sha, found := c.at(rev); found {
		rev = sha
	}
	tree, found := c.treeAt(rev)
	if !found {
		return notFound()
	}
	args := []string{"ls-tree", "-l", "-z"}
	if c.r.URL.Query().Get("recursive") != "" {
		args = append(args, "-r", "-t")
	}
	out, err := c.s.once(c.repo, append(args, tree)...)
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
		o := obj{"path": name, "mode": f[0], "type": f[1], "sha": f[2], "url": c.s.api(c.repo) + "/git/" + f[1] + "s/" + f[2]}
		if size, err := strconv.Atoi(f[3]); err == nil {
			o["size"] = size
		}
		rows = append(rows, o)
	}
	return ok(obj{"sha": tree, "url": c.s.api(c.repo) + "/git/trees/" + tree, "tree": rows, "truncated": false})
}

type gitPerson struct{ Name, Email, Date string }

// createCommit writes a commit. Without an author it is the App's own and signed
// by GitHub.
func createCommit(c *call) answer {
	var req struct {
		Message   string
		Tree      string
		Parents   []string
		Author    *gitPerson
		Committer *gitPerson
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if kind, _, err := c.s.object(c.repo, req.Tree); err != nil || kind != "tree" {
		return fail(http.StatusUnprocessableEntity, "Tree SHA does not exist")
	}
	for _, p := range req.Parents {
		if !c.commitExists(p) {
			return fail(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object")
		}
	}
	var sha string
	var err error
	if req.Author == nil && req.Committer == nil {
		sha, err = c.s.commitTree(c.repo, req.Tree, req.Parents, c.actor, req.Message)
	} else {
		sha, err = c.commitAs(req.Tree, req.Parents, req.Author, req.Committer, req.Message)
	}
	if err != nil {
		return invalid(err.Error())
	}
	c.vars["commit_sha"] = sha
	a := getGitCommit(c)
	a.status = http.StatusCreated
	return a
}

func (c *call) commitAs(tree string, parents []string, author, committer *gitPerson, message string) (string, error) {
	if author == nil {
		author = &gitPerson{Name: c.actor.login, Email: c.actor.mail()}
	}
	if committer == nil {
		committer = author
	}
	who := func(p *gitPerson) string {
		at, err := time.Parse(time.RFC3339, p.Date)
		if err != nil {
			at = c.s.now()
		}
		return person(p.Name, p.Email, at)
	}
	if strings.HasPrefix(who(author), " ") || strings.HasPrefix(who(committer), " ") {
		return "", errors.New("empty ident name not allowed")
	}
	return c.repo.writeCommit(tree, parents, who(author), who(committer), message)
}

func getGitCommit(c *call) answer {
	at, err := c.s.commitAt(c.repo, c.vars["commit_sha"])
	if err != nil {
		return notFound()
	}
	return ok(c.s.shapeGitCommit(c.repo, at))
}
