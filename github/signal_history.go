package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/github/render"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// Bounds of what is looked at of one pull request.
const (
	maxPeopleCommits = 50      // commits by people that are compared
	maxSignalFile    = 1 << 20 // bytes of a file, as App.File has it
)

// webFlow is the account in whose name GitHub commits what its buttons make.
const webFlow = "noreply@github.com"

// step is one commit of the pull request.
type step struct {
	sha     string
	by      pipeline.Actor
	at      time.Time
	forge   bool
	merge   bool
	vouched bool // by is who did what the notice tells, not its author
	button  bool // of GitHub's, with the bot as co-author: a committed suggestion
}

// person reports whether a person made this change: not Forge, not a merge that
// only brings in what others did elsewhere, not a bot.
func (s *step) person() bool { return !s.forge && !s.merge && !s.by.Bot }

// history reads the commits and files of the pull request, each once.
type history struct {
	g       *collector
	steps   []step // oldest first
	loaded  bool
	files   map[string][]string
	patches map[string][]change
	names   map[string]map[string]string // of a commit: a file's former name, and the one that it gave it
}

func (h *history) load(ctx context.Context) ([]step, error) {
	if h.loaded {
		return h.steps, nil
	}
	g := h.g
	opts := &gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := g.s.rest.PullRequests.ListCommits(ctx, g.run.Repo.Owner, g.run.Repo.Name, g.st.number, opts)
		if err = explain(fmt.Sprintf("list the commits of %s#%d", g.run.Repo.FullName(), g.st.number), "pull_requests: read", err); err != nil {
			return nil, err
		}
		for _, c := range list {
			h.steps = append(h.steps, g.step(c))
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	h.loaded = true
	return h.steps, nil
}

// step says whose commit it is. Forge's own are those that the run knows, those
// by the bot, and those with Forge's trailer.
func (g *collector) step(c *gh.RepositoryCommit) step {
	s := step{sha: c.GetSHA(), at: c.GetCommit().GetCommitter().GetDate().UTC(), merge: len(c.Parents) > 1}
	s.by = actorOf(c.GetAuthor())
	mail := fmt.Sprintf("%d+%s@users.noreply.github.com", g.bot.ID, g.bot.Login)
	message := c.GetCommit().GetMessage()
	s.forge = s.by.ID == g.bot.ID || strings.EqualFold(c.GetCommit().GetAuthor().GetEmail(), mail) ||
		s.by.ID == 0 && strings.Contains(message, "\nForge-Run: "+g.run.Trace)
	for i := range g.run.Iterations {
		if m := g.run.Iterations[i].Impl; m != nil && m.Head == s.sha && m.Head != m.Parent {
			s.forge = true
		}
	}
	s.button = !s.merge && strings.EqualFold(c.GetCommit().GetCommitter().GetEmail(), webFlow) && coAuthor(message, mail)
	if s.by.ID == 0 && !s.forge && g.human(g.n.Actor) && g.n.Head == s.sha {
		s.by, s.vouched = g.n.Actor, true // an address that GitHub does not know: who pushed it vouches for it
	}
	return s
}

// coAuthor reports whether a commit's trailers name somebody as its co-author.
func coAuthor(message, mail string) bool {
	for l := range strings.SplitSeq(message, "\n") {
		name, value, ok := strings.Cut(l, ":")
		if ok && strings.EqualFold(strings.TrimSpace(name), "co-authored-by") && strings.HasSuffix(strings.ToLower(strings.TrimSpace(value)), "<"+strings.ToLower(mail)+">") {
			return true
		}
	}
	return false
}

// since returns the commits after one. When that is no longer part of the pull
// request, after a forced push, only the head can be compared with it.
func (h *history) since(ctx context.Context, sha string) ([]step, error) {
	steps, err := h.load(ctx)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	for i := range steps {
		if steps[i].sha == sha {
			return steps[i+1:], nil
		}
	}
	return steps[len(steps)-1:], nil
}

// has reports whether a commit is part of the pull request, as far as it was read.
func (h *history) has(sha string) bool {
	return slices.ContainsFunc(h.steps, func(s step) bool { return s.sha == sha })
}

// took returns the last commit by a person that took one of some lines out of a file,
// the zero step when none did. After a forced push it says whose doing it is that they
// are gone: the head alone does not, because what Forge did before is in it too.
func (h *history) took(ctx context.Context, path string, lines []string) (step, error) {
	steps, err := h.load(ctx)
	if err != nil {
		return step{}, err
	}
	looked := 0
	for i := len(steps) - 1; i >= 0 && looked < maxPeopleCommits; i-- {
		if !steps[i].person() {
			continue
		}
		looked++
		list, err := h.patch(ctx, steps[i].sha)
		if err != nil {
			return step{}, err
		}
		for _, c := range list {
			if c.path == path && slices.ContainsFunc(c.before, func(l string) bool { return strings.TrimSpace(l) != "" && slices.Contains(lines, l) }) {
				return steps[i], nil
			}
		}
	}
	return step{}, nil
}

// people reports whether a person has committed after a commit.
func (h *history) people(ctx context.Context, sha string) (bool, error) {
	steps, err := h.since(ctx, sha)
	for i := range steps {
		if steps[i].person() {
			return true, err
		}
	}
	return false, err
}

// file returns a file's lines at a commit; nil when it is not there, or too big.
func (h *history) file(ctx context.Context, sha, path string) ([]string, error) {
	key := sha + ":" + path
	if lines, ok := h.files[key]; ok {
		return lines, nil
	}
	g := h.g
	f, _, _, err := g.s.rest.Repositories.GetContents(ctx, g.run.Repo.Owner, g.run.Repo.Name, path, &gh.RepositoryContentGetOptions{Ref: sha})
	if err = explain(fmt.Sprintf("read %s of %s at %s", path, g.run.Repo.FullName(), render.ShortSHA(sha)), "contents: read", err); err != nil && !gone(err) {
		return nil, err
	}
	var lines []string
	if err == nil && f != nil && f.GetType() == "file" && f.GetSize() <= maxSignalFile {
		if text, err := f.GetContent(); err == nil {
			lines = split(text)
		}
	}
	h.files[key] = lines
	return lines, nil
}

// patch returns what a commit changed, compared with its first parent.
func (h *history) patch(ctx context.Context, sha string) ([]change, error) {
	if p, ok := h.patches[sha]; ok {
		return p, nil
	}
	g := h.g
	c, _, err := g.s.rest.Repositories.GetCommit(ctx, g.run.Repo.Owner, g.run.Repo.Name, sha, &gh.ListOptions{PerPage: 100})
	if err = explain(fmt.Sprintf("read commit %s of %s", render.ShortSHA(sha), g.run.Repo.FullName()), "contents: read", err); err != nil && !gone(err) {
		return nil, err
	}
	var out []change
	if err == nil {
		for _, f := range c.Files {
			if from := f.GetPreviousFilename(); from != "" && f.GetStatus() == "renamed" {
				if h.names[sha] == nil {
					h.names[sha] = map[string]string{}
				}
				h.names[sha][from] = f.GetFilename()
			}
			out = append(out, changes(f.GetFilename(), f.GetPatch())...)
		}
	}
	h.patches[sha] = out
	return out, nil
}

// renamed returns a file's name after a person's commit.
func (h *history) renamed(ctx context.Context, s *step, path string) (string, error) {
	if !s.person() {
		return path, nil
	}
	if _, err := h.patch(ctx, s.sha); err != nil {
		return path, err
	}
	if now, ok := h.names[s.sha][path]; ok {
		return now, nil
	}
	return path, nil
}

// touches reports whether a commit may have changed a file.
func (h *history) touches(ctx context.Context, s *step, path string) (bool, error) {
	if s.forge || s.merge {
		return true, nil // the file itself is read in any case
	}
	list, err := h.patch(ctx, s.sha)
	return len(list) == 0 || slices.ContainsFunc(list, func(c change) bool { return c.path == path }), err
}
