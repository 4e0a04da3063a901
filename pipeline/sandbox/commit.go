package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Commit makes a commit of the parent's tree with the changes, and returns its
// SHA; the parent's when the changes change nothing. It is not pushed. The same
// options give the same SHA. A protected path is a *ProtectedError; what looks like a
// secret is a *pipeline.Fault of that class, and leaves no object behind.
func (g *Gateway) Commit(ctx context.Context, repo pipeline.Repo, o workspace.CommitOptions) (string, error) {
	if err := checkCommit(&o); err != nil {
		return "", fmt.Errorf("commit to %s: %w", repo.FullName(), err)
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	if _, err := os.Stat(g.Dir(repo)); err != nil {
		return "", fmt.Errorf("commit to %s: fetch it first: %w", repo.FullName(), err)
	}
	sha, err := g.commit(ctx, repo, o)
	if err != nil {
		return "", fmt.Errorf("commit to %s on %s: %w", repo.FullName(), o.Parent, roomFault(g.dir, err))
	}
	return sha, nil
}

func checkCommit(o *workspace.CommitOptions) error {
	switch {
	case o.Parent != "" && !isOID(o.Parent):
		return fmt.Errorf("parent %q is not a full SHA", o.Parent)
	case checkOIDs(o.Parents...) != nil:
		return checkOIDs(o.Parents...)
	case text.CommitMessage(o.Message) == "":
		return errors.New("the message is empty")
	case !runName.MatchString(o.Run):
		return fmt.Errorf("run %q is not a name", o.Run)
	case o.Author == "" || strings.ContainsAny(o.Author, "<>\n\x00"):
		return fmt.Errorf("author %q is not a name", o.Author)
	case o.Email == "" || strings.ContainsAny(o.Email, "<>\n\x00 "):
		return fmt.Errorf("email %q is not an address", o.Email)
	case o.Time.IsZero():
		return errors.New("the time is not set")
	}
	seen := make(map[string]bool, len(o.Changes))
	for _, c := range o.Changes {
		if err := checkPath(c.Path); err != nil {
			return err
		}
		if seen[c.Path] {
			return fmt.Errorf("path %q is there twice", c.Path)
		}
		seen[c.Path] = true
		if err := checkProtected(c.Path, o.Protected, o.Allow); err != nil {
			return owned(err, o.Owners)
		}
		if err := taken(c.Path, o.Taken); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gateway) commit(ctx context.Context, repo pipeline.Repo, o workspace.CommitOptions) (string, error) {
	scratch, err := os.MkdirTemp(g.private(), "commit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	git := g.git(repo)
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}

	base := ""
	if o.Parent != "" {
		if _, err := git.run(ctx, gitCall{args: []string{"read-tree", o.Parent}, env: index}); err != nil {
			return "", err
		}
		if base, err = line(git.run(ctx, gitCall{args: []string{"rev-parse", "--verify", o.Parent + "^{tree}"}})); err != nil {
			return "", err
		}
		if err := g.refuseGitlinks(ctx, repo, o); err != nil {
			return "", err
		}
	}
	if err := g.checkCommit(ctx, git, o); err != nil {
		return "", err
	}
	blobs, err := writeBlobs(ctx, git, nil, scratch, o.Changes)
	if err != nil {
		return "", err
	}
	if _, err := git.run(ctx, gitCall{
		args: []string{"update-index", "-z", "--index-info"}, env: index, stdin: indexInfo(o.Changes, blobs, o.Parent),
	}); err != nil {
		return "", err
	}
	tree, err := line(git.run(ctx, gitCall{args: []string{"write-tree"}, env: index}))
	if err != nil {
		return "", err
	}
	if tree == base && len(o.Parents) == 0 {
		return o.Parent, nil
	}
	parents := o.Parents
	if len(parents) == 0 && o.Parent != "" {
		parents = []string{o.Parent}
	}
	return git.commitTree(ctx, &o, tree, parents...)
}

// runName is what a Forge-Run trailer may hold.
var runName = lazyregexp.New(`^[A-Za-z0-9._/-]*$`)

// message is the whole message of the commit.
func messageOf(o *workspace.CommitOptions) string {
	var trailers []string
	if o.Run != "" {
		trailers = append(trailers, "Forge-Run: "+o.Run)
	}
	if o.Signoff {
		trailers = append(trailers, fmt.Sprintf("Signed-off-by: %s <%s>", o.Author, o.Email))
	}
	return text.CommitMessage(o.Message, trailers...)
}

// commitTree makes the commit object.
func (g git) commitTree(ctx context.Context, o *workspace.CommitOptions, tree string, parents ...string) (string, error) {
	date := fmt.Sprintf("@%d +0000", o.Time.Unix())
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return line(g.run(ctx, gitCall{
		args: args, stdin: strings.NewReader(messageOf(o)),
		env: []string{
			"GIT_AUTHOR_NAME=" + o.Author, "GIT_AUTHOR_EMAIL=" + o.Email, "GIT_AUTHOR_DATE=" + date,
			"GIT_COMMITTER_NAME=" + o.Author, "GIT_COMMITTER_EMAIL=" + o.Email, "GIT_COMMITTER_DATE=" + date,
		},
	}))
}

// refuseGitlinks refuses to replace a submodule or a symbolic link, or to put
// something beneath one.
func (g *Gateway) refuseGitlinks(ctx context.Context, repo pipeline.Repo, o workspace.CommitOptions) error {
	out, err := g.git(repo).run(ctx, gitCall{args: []string{"ls-tree", "-r", "-z", "--full-tree", o.Parent}})
	if err != nil {
		return err
	}
	special := map[string]string{}
	for row := range bytes.SplitSeq(out, []byte{0}) {
		meta, name, ok := strings.Cut(string(row), "\t")
		switch {
		case !ok:
		case strings.HasPrefix(meta, "160000 "):
			special[name] = "a submodule"
		case strings.HasPrefix(meta, "120000 "):
			special[name] = "a symbolic link"
		}
	}
	for _, c := range o.Changes {
		for i := 0; i <= len(c.Path); i++ {
			if i < len(c.Path) && c.Path[i] != '/' {
				continue
			}
			kind, found := special[c.Path[:i]]
			gone := c.Deleted && i == len(c.Path) && kind != "a submodule" // taking a link away is fine
			if found && !gone {
				return fmt.Errorf("path %q is %s in the parent commit: not changed by Forge", c.Path[:i], kind)
			}
		}
	}
	return nil
}

// writeBlobs puts the contents into the object store with one process, and
// returns the object names in the order of the changes; deletions have none.
func writeBlobs(ctx context.Context, git git, env []string, scratch string, changes []workspace.Change) ([]string, error) {
	var paths bytes.Buffer
	for i, c := range changes {
		if c.Deleted {
			continue
		}
		file := filepath.Join(scratch, strconv.Itoa(i))
		if err := writeFile(file, string(c.Content), 0o600); err != nil {
			return nil, err
		}
		fmt.Fprintln(&paths, file)
	}
	blobs := make([]string, len(changes))
	if paths.Len() == 0 {
		return blobs, nil
	}
	out, err := git.run(ctx, gitCall{args: []string{"hash-object", "-w", "--no-filters", "--stdin-paths"}, stdin: &paths, env: env})
	if err != nil {
		return nil, err
	}
	names := strings.Fields(string(out))
	for i, c := range changes {
		if c.Deleted {
			continue
		}
		if len(names) == 0 || !isOID(names[0]) {
			return nil, fmt.Errorf("git hash-object gave no name for %q", c.Path)
		}
		blobs[i], names = names[0], names[1:]
	}
	return blobs, nil
}

// indexInfo is the input of update-index: deletions first, so that a file can
// become a directory.
func indexInfo(changes []workspace.Change, blobs []string, parent string) *bytes.Buffer {
	order := make([]int, len(changes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if changes[a].Deleted != changes[b].Deleted {
			if changes[a].Deleted {
				return -1
			}
			return 1
		}
		return strings.Compare(changes[a].Path, changes[b].Path)
	})
	zero := strings.Repeat("0", max(len(parent), 40))
	var b bytes.Buffer
	for _, i := range order {
		mode, blob := "100644", blobs[i]
		if changes[i].Exec {
			mode = "100755"
		}
		if changes[i].Deleted {
			mode, blob = "0", zero
		}
		fmt.Fprintf(&b, "%s %s\t%s\x00", mode, blob, changes[i].Path)
	}
	return &b
}

// line is the one line that a command printed.
func line(out []byte, err error) (string, error) { return strings.TrimSpace(string(out)), err }
