package githubtest

import (
	"encoding/base64"
	"fmt"
	"sort"
	"strings"
)

// maxCommitBody is what GitHub takes as one GraphQL request of this mutation.
const maxCommitBody = 45 << 20

// commitOnBranch is GitHub's createCommitOnBranch: it appends one commit with whole
// files to a branch that is where the caller thinks, and signs it. It knows no modes:
// what it writes is an ordinary file, whatever was there before.
func (c *call) commitOnBranch(in map[string]any) (obj, error) {
	if len(c.body) > maxCommitBody {
		return nil, unprocessable("The request is too large.")
	}
	branch, _ := in["branch"].(map[string]any)
	full, _ := branch["repositoryNameWithOwner"].(string)
	name, _ := branch["branchName"].(string)
	r := c.s.named(full)
	if r == nil || !c.s.reaches(c.id, r) {
		return nil, &gqlError{Type: "NOT_FOUND", Message: fmt.Sprintf("Could not resolve to a Repository with the name '%s'.", full)}
	}
	if c.id.kind == identUser && !r.can(c.actor, "write") {
		return nil, forbidden()
	}
	c.repo = r
	ref := "refs/heads/" + strings.TrimPrefix(name, "refs/heads/")
	head := r.refs[ref]
	if head == "" {
		return nil, &gqlError{Type: "NOT_FOUND", Message: "The given branch name does not exist on the given repository."}
	}
	message, _ := in["message"].(map[string]any)
	headline, _ := message["headline"].(string)
	if strings.TrimSpace(headline) == "" {
		return nil, unprocessable("A commit message headline is required.")
	}
	if body, _ := message["body"].(string); body != "" {
		headline += "\n\n" + body
	}
	if want, _ := in["expectedHeadOid"].(string); want != head {
		return nil, &gqlError{Type: "STALE_DATA", Message: fmt.Sprintf("Expected branch to point to \"%s\" but it did not. Pull and try again.", want)}
	}
	changes, _ := in["fileChanges"].(map[string]any)
	tree, err := c.treeOf(head, changes)
	if err != nil {
		return nil, err
	}
	sha, err := c.s.commitTree(r, tree, []string{head}, c.actor, strings.TrimRight(headline, "\n"))
	if err != nil {
		return nil, unprocessable(err.Error())
	}
	if a := c.guardRef(ref, head, sha); a != nil {
		text, _ := a.body.(obj)["message"].(string)
		return nil, unprocessable(text)
	}
	if err := c.s.setRef(r, ref, sha, c.actor); err != nil {
		return nil, unprocessable(err.Error())
	}
	commit := fields{"Commit", obj{"oid": sha, "id": "C_" + sha, "url": c.s.html(r) + "/commit/" + sha}}
	return obj{"commit": commit, "ref": fields{"Ref", obj{"name": name, "id": "REF_" + ref, "target": commit}}}, nil
}

// treeOf writes the tree of a commit with changed files.
func (c *call) treeOf(head string, changes map[string]any) (string, error) {
	at, err := c.s.commitAt(c.repo, head)
	if err != nil {
		return "", unprocessable(err.Error())
	}
	files, err := c.filesOf(head, changes)
	if err != nil {
		return "", err
	}
	tree, err := c.s.changeTree(c.repo, at.Tree, files)
	if err != nil {
		return "", unprocessable(err.Error())
	}
	return tree, nil
}

// filesOf writes the files of the changes.
func (c *call) filesOf(head string, changes map[string]any) (map[string]treeFile, error) {
	seen := map[string]bool{}
	paths := func(key string) (map[string]string, error) {
		out := map[string]string{}
		list, _ := changes[key].([]any)
		for _, item := range list {
			f, _ := item.(map[string]any)
			path, _ := f["path"].(string)
			if checkPath(path) != nil || seen[path] {
				return nil, unprocessable(fmt.Sprintf("A path is invalid or there twice: %q", path))
			}
			seen[path] = true
			out[path], _ = f["contents"].(string)
		}
		return out, nil
	}
	deletions, err := paths("deletions")
	if err != nil {
		return nil, err
	}
	additions, err := paths("additions")
	if err != nil {
		return nil, err
	}
	files := map[string]treeFile{}
	for _, path := range sorted(deletions) {
		if _, err := c.s.find(c.repo, head, path); err != nil {
			return nil, unprocessable("A path was requested for deletion which does not exist as of commit oid `" + head + "`")
		}
		files[path] = treeFile{}
	}
	for _, path := range sorted(additions) {
		data, err := base64.StdEncoding.DecodeString(additions[path])
		if err != nil {
			return nil, &gqlError{Message: "Variable $input of type CreateCommitOnBranchInput! was provided invalid value: contents is not valid Base64"}
		}
		blob, err := c.repo.write("blob", string(data))
		if err != nil {
			return nil, unprocessable(err.Error())
		}
		files[path] = treeFile{modeFile, blob}
	}
	return files, nil
}

func sorted(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
