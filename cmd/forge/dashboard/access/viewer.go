package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/work"
)

// Viewer is who looks at a page.
type Viewer struct {
	Actor     pipeline.Actor
	AvatarURL string // "": there is no picture
	Local     bool   // sits at this machine: sees and may do everything
	Stale     bool   // GitHub does not answer; what they can read is what it said up to 15 minutes ago

	can *readable
	ask func(context.Context, pipeline.Repo, pipeline.Actor) (string, error)
}

type viewerKey struct{}

func with(r *http.Request, v *Viewer) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), viewerKey{}, v))
}

// From returns who looks. It is never nil: who is not known sees nothing and may do
// nothing.
func From(ctx context.Context) *Viewer {
	if v, ok := ctx.Value(viewerKey{}).(*Viewer); ok {
		return v
	}
	return &Viewer{}
}

// Repos returns the full names of the repositories that the viewer can read, in
// order of the alphabet, or all: every one. The list belongs to the caller.
func (v *Viewer) Repos() (list []string, all bool) {
	if v.Local {
		return nil, true
	}
	if v.can == nil {
		return nil, false
	}
	return slices.Clone(v.can.list), false
}

// Sees reports whether the viewer can read the repository of a full name,
// "owner/name", in whatever case.
func (v *Viewer) Sees(repo string) bool {
	return v.Local || v.can != nil && v.can.names[strings.ToLower(repo)]
}

// SeesRepo reports the same by the repository's id where it has one: a name may
// belong to another repository by now.
func (v *Viewer) SeesRepo(repo pipeline.Repo) bool {
	if repo.ID == 0 {
		return v.Sees(repo.FullName())
	}
	return v.Local || v.can != nil && v.can.ids[repo.ID]
}

// askFor is how long GitHub may take to say what somebody may do.
const askFor = 15 * time.Second

// MayWrite asks GitHub, at this moment and for the person's numeric id, whether the
// viewer may change what Forge does in a repository: the right to write is needed,
// as for commands in comments. Without an answer they may not. The repository must
// have its owner, name and installation.
func (v *Viewer) MayWrite(ctx context.Context, repo pipeline.Repo) (bool, error) {
	if v.Local {
		return true, nil
	}
	if v.ask == nil || v.Actor.ID == 0 || repo.ID == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	p, err := v.ask(ctx, repo, v.Actor)
	if err != nil {
		return false, fmt.Errorf("what %s may do in %s: %w", v.Actor.Login, repo.FullName(), err)
	}
	return work.MayWrite(p), nil
}

// readable is what a person can read. It does not change.
type readable struct {
	list  []string
	names map[string]bool // in lower case
	ids   map[int64]bool
}

func readableOf(repos []pipeline.Repo) *readable {
	r := &readable{names: map[string]bool{}, ids: map[int64]bool{}}
	for _, repo := range repos {
		if repo.ID == 0 || repo.Owner == "" || repo.Name == "" {
			continue
		}
		r.list = append(r.list, repo.FullName())
		r.names[strings.ToLower(repo.FullName())] = true
		r.ids[repo.ID] = true
	}
	slices.Sort(r.list)
	r.list = slices.Compact(r.list)
	return r
}
