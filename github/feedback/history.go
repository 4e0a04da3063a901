package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// maxPeopleCommits is how many commits by people are compared.
const maxPeopleCommits = 50

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
	list, err := h.g.src.Commits(ctx)
	if err != nil {
		return nil, err
	}
	pushed := ""
	for i := range list {
		h.steps = append(h.steps, h.g.step(&list[i]))
		if h.steps[i].vouched {
			pushed = list[i].AuthorMail
		}
	}
	for i := range h.steps { // a push brings several commits of one address
		if s := &h.steps[i]; pushed != "" && !s.forge && s.by.ID == 0 && list[i].AuthorMail == pushed {
			s.by, s.vouched = h.g.n.Actor, true
		}
	}
	h.loaded = true
	return h.steps, nil
}

// step says whose commit it is. Forge's own are those that the run knows, those
// by the bot, and those with Forge's trailer.
func (g *collector) step(c *Commit) step {
	s := step{sha: c.SHA, at: c.At, merge: c.Parents > 1, by: c.Author}
	mail := fmt.Sprintf("%d+%s@users.noreply.github.com", g.bot.ID, g.bot.Login)
	s.forge = s.by.ID == g.bot.ID || strings.EqualFold(c.AuthorMail, mail) ||
		s.by.ID == 0 && strings.Contains(c.Message, "\nForge-Run: "+g.run.Trace)
	for i := range g.run.Iterations {
		if m := g.run.Iterations[i].Impl; m != nil && m.Head == s.sha && m.Head != m.Parent {
			s.forge = true
		}
	}
	s.button = !s.merge && strings.EqualFold(c.CommitterMail, webFlow) && coAuthor(c.Message, mail)
	if s.by.ID == 0 && !s.forge && g.human(g.n.Actor) && g.n.Head == s.sha {
		s.by, s.vouched = g.n.Actor, true // an address that GitHub does not know: who pushed it vouches for it
	}
	return s
}

// coAuthor reports whether a commit's trailers name somebody as its co-author.
func coAuthor(message, mail string) bool {
	for l := range strings.SplitSeq(message, "\n") {
		name, value, ok := strings.Cut(l, ":")
		if ok && strings.EqualFold(strings.TrimSpace(name), "co-authored-by") &&
			strings.HasSuffix(strings.ToLower(strings.TrimSpace(value)), "<"+strings.ToLower(mail)+">") {
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
	text, err := h.g.src.File(ctx, sha, path)
	if err != nil {
		return nil, err
	}
	lines := split(text)
	h.files[key] = lines
	return lines, nil
}

// patch returns what a commit changed, compared with its first parent.
func (h *history) patch(ctx context.Context, sha string) ([]change, error) {
	if p, ok := h.patches[sha]; ok {
		return p, nil
	}
	list, err := h.g.src.Patch(ctx, sha)
	if err != nil {
		return nil, err
	}
	var out []change
	for _, p := range list {
		if p.From != "" {
			if h.names[sha] == nil {
				h.names[sha] = map[string]string{}
			}
			h.names[sha][p.From] = p.Path
		}
		out = append(out, changes(p.Path, p.Hunks)...)
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
