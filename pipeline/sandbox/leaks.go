package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// maxScanned is how many bytes of one commit's files, old and new, are looked through before it
// is pushed; one that holds more is not.
const maxScanned = 512 << 20

// Secrets finds secrets in what is about to leave.
type Secrets interface {
	// Added looks through the lines of a file that it did not have before.
	Added(file string, content, before []byte) []text.Leak
	// Text looks through a text, and returns it without what was found.
	Text(name, content string) (string, []text.Leak)
}

// Mask takes the secrets out of a text.
func (g *Gateway) Mask(s string) string {
	if g.secrets != nil {
		s, _ = g.secrets.Text("", s)
	}
	return s
}

// leaving is what would leave with one commit.
type leaving struct {
	message string
	edits   []edit
	deleted []byte // what the files held that it takes away: what moves is nothing new
}

// edit is a file that a commit adds or changes.
type edit struct {
	path        string
	now, before []byte
}

// inName is the place of a leak that is in a file's name.
const inName = "the name of a file"

// leaks looks through what would leave, until nobody waits for it any more.
func (g *Gateway) leaks(ctx context.Context, l leaving) ([]text.Leak, error) {
	_, found := g.secrets.Text("the commit message", l.message)
	for _, e := range l.edits {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look for secrets: %w", err)
		}
		name, hits := g.secrets.Text(inName, e.path) // the name that is told holds no secret
		found = append(found, hits...)
		in := g.secrets.Added(name, e.now, e.before)
		if len(in) > 0 && len(l.deleted) > 0 {
			in = g.secrets.Added(name, e.now, slices.Concat(e.before, []byte("\n"), l.deleted))
		}
		found = append(found, in...)
	}
	return found, nil
}

// withhold returns a *pipeline.Fault of the class secret for leaks that nobody has let
// pass, or nil.
func withhold(found []text.Leak, cleared []string) error {
	found = slices.DeleteFunc(slices.Clone(found), func(l text.Leak) bool { return l.Name != "" && slices.Contains(cleared, l.Name) })
	if len(found) == 0 {
		return nil
	}
	f := &pipeline.Fault{Class: pipeline.FaultSecret, Final: true, Message: "this looks like a secret, so nothing was pushed: " + text.Leaks(found) +
		`. Take it out; a value that is made up should say so ("example", "xxxx")`}
	if len(found) > text.MaxLeaks || slices.ContainsFunc(found, func(l text.Leak) bool { return l.Name == "" }) {
		return f // nobody vouches for what they are not shown, or for Forge's own
	}
	for _, l := range found {
		f.About = append(f.About, l.Name)
	}
	return f
}

// checkCommit looks through what a commit would hold, before any of it is an object.
func (g *Gateway) checkCommit(ctx context.Context, git git, o workspace.CommitOptions) error {
	if g.secrets == nil {
		return nil
	}
	l := leaving{message: messageOf(&o)}
	var specs []string
	for _, c := range o.Changes {
		specs = append(specs, o.Parent+":"+c.Path)
	}
	before := make([][]byte, len(specs))
	if o.Parent != "" {
		var err error
		if before, err = blobs(ctx, git, specs); err != nil {
			return err
		}
	}
	for i, c := range o.Changes {
		if c.Deleted {
			l.deleted = slices.Concat(l.deleted, before[i], []byte("\n"))
			continue
		}
		l.edits = append(l.edits, edit{path: c.Path, now: c.Content, before: before[i]})
	}
	found, err := g.leaks(ctx, l)
	if err != nil {
		return err
	}
	return withhold(found, o.Cleared)
}

// checkPush looks through all commits that the remote does not have yet: what one of
// them adds and a later one takes away would be in the history.
func (g *Gateway) checkPush(ctx context.Context, git git, o workspace.PushOptions) error {
	if g.secrets == nil {
		return nil
	}
	_, found := g.secrets.Text("the branch's name", o.Branch)
	args := []string{"rev-list", "--reverse", o.SHA, "--not"}
	for _, known := range []string{o.Old, o.Base} {
		if known != "" {
			args = append(args, known)
		}
	}
	out, err := git.run(ctx, gitCall{args: append(args, "--")})
	if err != nil {
		return fmt.Errorf("list the commits to be pushed: %w", err)
	}
	for _, sha := range strings.Fields(string(out)) {
		l, err := leavingWith(ctx, git, sha)
		if err != nil {
			return fmt.Errorf("look through commit %s for secrets: %w", sha, err)
		}
		leaks, err := g.leaks(ctx, l)
		if err != nil {
			return err
		}
		for _, leak := range leaks {
			if !slices.Contains(found, leak) {
				found = append(found, leak)
			}
		}
	}
	return withhold(found, o.Cleared)
}

// leavingWith returns what leaves with a commit. A merge adds nothing of its own: its
// tree is made of what its parents hold.
func leavingWith(ctx context.Context, git git, sha string) (leaving, error) {
	raw, err := git.run(ctx, gitCall{args: []string{"cat-file", "commit", sha}})
	if err != nil {
		return leaving{}, err
	}
	_, message, _ := strings.Cut(string(raw), "\n\n")
	list, err := differing(ctx, git, sha)
	if err != nil {
		return leaving{}, err
	}
	l, err := load(ctx, git, list)
	l.message = message
	return l, err
}

// differs is a file that a commit changes: its blobs, which are zeros where it is not there.
type differs struct{ path, was, is string }

func (d differs) gone() bool { return strings.Trim(d.is, "0") == "" }

// differing lists the files that a commit changes.
func differing(ctx context.Context, git git, sha string) (list []differs, err error) {
	args := []string{"diff-tree", "--root", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id", sha, "--"}
	out, err := git.run(ctx, gitCall{args: args})
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		meta := strings.Fields(fields[i]) // :100644 100644 OLD NEW M
		if len(meta) != 5 {
			return nil, fmt.Errorf("git diff-tree says %q", fields[i])
		}
		list = append(list, differs{path: fields[i+1], was: meta[2], is: meta[3]})
	}
	return list, nil
}

// load reads what the files hold.
func load(ctx context.Context, git git, list []differs) (l leaving, err error) {
	var oids []string
	for _, d := range list {
		oids = append(oids, d.was, d.is)
	}
	contents, err := blobs(ctx, git, oids)
	if err != nil {
		return leaving{}, err
	}
	for i, d := range list {
		before, now := contents[2*i], contents[2*i+1]
		if d.gone() {
			l.deleted = slices.Concat(l.deleted, before, []byte("\n"))
			continue
		}
		l.edits = append(l.edits, edit{path: d.path, now: now, before: before})
	}
	return l, nil
}

// blobs returns the contents of objects, in order; nil for one that is not there, and
// for a submodule. More than maxScanned bytes in all are an error.
func blobs(ctx context.Context, git git, specs []string) ([][]byte, error) {
	out := make([][]byte, len(specs))
	if len(specs) == 0 {
		return out, nil
	}
	all, err := git.run(ctx, gitCall{args: []string{"cat-file", "--batch"}, stdin: strings.NewReader(strings.Join(specs, "\n") + "\n"), max: maxScanned})
	if err != nil {
		return nil, err
	}
	for i := range specs {
		head, rest, ok := bytes.Cut(all, []byte("\n"))
		if !ok {
			return nil, fmt.Errorf("git cat-file ends after %d of %d objects", i, len(specs))
		}
		all = rest
		if bytes.HasSuffix(head, []byte(" missing")) {
			continue
		}
		meta := strings.Fields(string(head)) // OID TYPE SIZE
		if len(meta) != 3 {
			return nil, fmt.Errorf("git cat-file says %q", head)
		}
		size, err := strconv.Atoi(meta[2])
		if err != nil || size < 0 || size >= len(all) {
			return nil, fmt.Errorf("git cat-file says %q", head)
		}
		if meta[1] == "blob" {
			out[i] = all[:size]
		}
		all = all[size+1:]
	}
	return out, nil
}
