package sandbox

import (
	"context"
	"strings"

	"forge/pipeline"
)

// Heads returns the commits that branches of the remote stand at, of those that are there,
// and the branch that its HEAD names; "" where that names none. The mirror stays as it is.
func (g *Gateway) Heads(ctx context.Context, repo pipeline.Repo, token string, branches ...string) (heads map[string]string, current string, err error) {
	call, address, err := g.remote(repo, token)
	if err != nil {
		return nil, "", &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error(), Final: true}
	}
	call.args = []string{"ls-remote", "--symref", address, "HEAD"}
	for _, b := range branches {
		ref, err := fullRef(b)
		if err != nil {
			return nil, "", &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error(), Final: true}
		}
		call.args = append(call.args, ref)
	}
	out, err := g.call(ctx, repo, call)
	if err != nil {
		return nil, "", remoteFault("list the branches of", repo, err)
	}
	heads = map[string]string{}
	for line := range strings.Lines(string(out)) {
		what, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
		to, isSymbolic := strings.CutPrefix(what, "ref: refs/heads/")
		switch {
		case isSymbolic && ref == "HEAD":
			current = to
		case isBranch:
			heads[branch] = what
		}
	}
	return heads, current, nil
}
