package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"forge/cmd/forge/phase"
	"forge/cmd/forge/settings"
	"forge/github"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/mergeable"
	"forge/pipeline/sandbox"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/track"
	"forge/pipeline/work"
	"forge/pipeline/workspace"
)

// configPath is where a repository keeps its settings.
const configPath = ".github/forge.yml"

// misnamedPath is where some put them. They are not read there: of two files, which one
// holds would have to be guessed.
const misnamedPath = ".github/forge.yaml"

// githubClient is what the engine needs of GitHub: it answers who may do what, prepares
// runs, and publishes them.
type githubClient struct {
	App     *github.App
	gateway *sandbox.Gateway
	base    config.Config // the server's; a repository's settings go on top
	slug    string        // of commands and branches
	label   string        // that starts a run
	signer  signer
	load    func(context.Context, int64) (*pipeline.Run, error) // of the runs of modules

	mu  sync.Mutex // one question at a time
	bot atomic.Pointer[pipeline.Actor]
}

// Permission implements work.Hub.
func (h *githubClient) Permission(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (string, error) {
	return h.App.Permission(ctx, repo, actor)
}

// comments returns what people with write access said on an issue and its pull request.
func (h *githubClient) comments(ctx context.Context, repo pipeline.Repo, issue, pull int) ([]agent.Comment, error) {
	list, err := h.App.Comments(ctx, repo, issue, pull)
	var out []agent.Comment
	for _, c := range list {
		out = append(out, agent.Comment{By: c.By.Login, At: c.At, Text: c.Text, Place: c.Place})
	}
	return out, err
}

// Reply implements work.Hub.
func (h *githubClient) Reply(ctx context.Context, n pipeline.Notice, text, key string) error {
	return h.App.Reply(ctx, n, text, key)
}

// PullState implements work.Hub.
func (h *githubClient) PullState(ctx context.Context, repo pipeline.Repo, pull int) (open, merged bool, err error) {
	return h.App.PullState(ctx, repo, pull)
}

// Mergeable implements work.Hub.
func (h *githubClient) Mergeable(ctx context.Context, repo pipeline.Repo, pull int) (mergeable.State, error) {
	return h.App.Mergeable(ctx, repo, pull)
}

// Requested implements work.Hub.
func (h *githubClient) Requested(ctx context.Context, repo pipeline.Repo, pull int, f pipeline.Feedback) (pipeline.Review, error) {
	return h.App.Requested(ctx, repo, pull, f)
}

// Prepare implements work.Hub: it reads the repository's settings from its default
// branch and finds where the work starts.
func (h *githubClient) Prepare(ctx context.Context, n pipeline.Notice) (pipeline.Start, error) {
	yaml, body := text.FrontMatter(n.Task.Body)
	n.Task.Body = body
	if strings.TrimSpace(n.Task.Body) == "" && len(strings.Fields(n.Task.Title)) < 3 {
		return pipeline.Start{}, refuse("This issue says too little to work on: its text is empty and its title is %q. Describe what should happen and what happens instead, then put the label on again.", n.Task.Title)
	}
	cfg, err := h.config(ctx, n.Repo)
	if err != nil {
		return pipeline.Start{}, err
	}
	if cfg, err = h.overrides(ctx, n, yaml, cfg); err != nil {
		return pipeline.Start{}, err
	}
	head, err := h.App.BranchHead(ctx, n.Repo, n.Repo.DefaultBranch)
	if err != nil {
		return pipeline.Start{}, err
	}
	if head == "" {
		return pipeline.Start{}, refuse("`%s`, the default branch of %s, has no commit that can be read. Push one, or choose another "+
			"default branch in the repository's settings, then put the label on again.", n.Repo.DefaultBranch, n.Repo.FullName())
	}
	named := n.Task
	if own := ofIncident.FindString(named.Title); own != "" { // no words of an alert become a branch's name
		named.Title = own
	}
	branch, err := h.freeBranch(ctx, n.Repo, phase.BranchName(h.slug, cfg.BranchName, named))
	if err != nil {
		return pipeline.Start{}, err
	}
	chosen, err := track.Choose(track.Track(cfg.Track), track.Labels(h.label, n.Labels), n.Task.Title, n.Task.Body, h.files(ctx, n.Repo, head))
	if err != nil {
		return pipeline.Start{}, err
	}
	start := pipeline.Start{Repo: n.Repo, Task: n.Task, By: n.Actor, Config: cfg, Base: head, Branch: branch, Slug: keptSlug(h.slug), Track: chosen}
	return start, fit(&start, h.files(ctx, n.Repo, head))
}

// files lists the files of a commit, once they are asked for.
func (h *githubClient) files(ctx context.Context, repo pipeline.Repo, sha string) func() ([]string, error) {
	return func() ([]string, error) {
		token, err := h.App.Token(ctx, repo)
		if err != nil {
			return nil, err
		}
		if err := h.gateway.Fetch(ctx, repo, token, sha); err != nil {
			return nil, err
		}
		return h.gateway.Files(ctx, repo, sha)
	}
}

// ofIncident is how the title of an incident's issue begins.
var ofIncident = lazyregexp.New(`^Incident [0-9]+\b`)

// keptSlug is what a run keeps of the slug: nothing of the default, as runs that were
// started before there was another.
func keptSlug(slug string) string {
	if slug == command.Slug {
		return ""
	}
	return slug
}

// freeBranch returns the name, or with a number behind it when an earlier run
// left a branch of that name.
func (h *githubClient) freeBranch(ctx context.Context, repo pipeline.Repo, name string) (string, error) {
	for n := 1; n < 100; n++ {
		branch := name
		if n > 1 {
			branch = fmt.Sprintf("%s-%d", name, n)
		}
		head, err := h.App.BranchHead(ctx, repo, branch)
		if err != nil || head == "" {
			return branch, err
		}
	}
	return "", refuse("There are a hundred branches named `%s-N` already: delete those that are no longer needed, then put the label on again.", name)
}

// config reads the repository's settings, or else the organisation's.
func (h *githubClient) config(ctx context.Context, repo pipeline.Repo) (config.Config, error) {
	return h.read(ctx, repo, "Forge does not start, because its settings are wrong", "put the label on again")
}

// settings reads them again for a run that has begun.
func (h *githubClient) settings(ctx context.Context, run *pipeline.Run) (config.Config, error) {
	return h.read(ctx, run.Repo, "The settings are wrong, so nothing has changed", "answer again")
}

// read reads a repository's settings. Where they are wrong, the fault says what that
// means, and what to do once they are not.
func (h *githubClient) read(ctx context.Context, repo pipeline.Repo, means, then string) (config.Config, error) {
	name := repo.FullName() + ": " + configPath
	raw, err := h.App.File(ctx, repo, configPath, repo.DefaultBranch)
	if err != nil {
		return config.Config{}, err
	}
	if raw == nil {
		other, err := h.App.File(ctx, repo, misnamedPath, repo.DefaultBranch)
		if err != nil {
			return config.Config{}, err
		}
		if other != nil {
			return config.Config{}, refuse("%s: they are in `%s`, which is not read. Rename it to `%s` on `%s`, then %s.", means, misnamedPath, configPath, repo.DefaultBranch, then)
		}
	}
	cfg, err := settings.Repository(name, raw, h.base)
	if err != nil {
		return config.Config{}, refuse("%s:\n\n```\n%s\n```\n\nFix `%s` on `%s`, then %s.", means, strings.TrimSpace(err.Error()), configPath, repo.DefaultBranch, then)
	}
	return cfg, nil
}

// overrides reads the issue's front matter (R4).
func (h *githubClient) overrides(ctx context.Context, n pipeline.Notice, yaml string, cfg config.Config) (config.Config, error) {
	if strings.TrimSpace(yaml) == "" {
		return cfg, nil
	}
	trusted := n.Task.Author.ID == n.Actor.ID // who sets the label has write access
	if !trusted {
		perm, err := h.App.Permission(ctx, n.Repo, n.Task.Author)
		if err != nil {
			return cfg, err
		}
		trusted = work.MayWrite(perm)
	}
	cfg, err := settings.Task(fmt.Sprintf("front matter of #%d", n.Task.Issue), yaml, cfg, h.base, trusted)
	if err != nil {
		return cfg, refuse("Forge does not start, because the front matter of this issue is wrong:\n\n```\n%s\n```\n\nFix it, then take the label off and put it on again.", strings.TrimSpace(err.Error()))
	}
	return cfg, nil
}

// refuse makes an answer to people out of a reason not to start.
func refuse(format string, args ...any) error {
	return &pipeline.Fault{Class: pipeline.FaultEnvironment, Message: fmt.Sprintf(format, args...), Final: true}
}

// identity returns whom commits are by: the App's bot user, so that GitHub shows
// its picture next to them.
func (h *githubClient) identity(ctx context.Context) (phase.Identity, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.bot.Load()
	if u == nil {
		found, err := h.App.BotUser(ctx)
		if err != nil {
			return phase.Identity{}, err
		}
		u = &found
		h.bot.Store(u)
	}
	return phase.Identity{Name: u.Login, Email: emailOf(*u)}, nil
}

// botID is the id of the App's bot user, 0 while it is not known.
func (h *githubClient) botID() int64 {
	if u := h.bot.Load(); u != nil {
		return u.ID
	}
	return 0
}

// Publish implements work.Publisher.
func (h *githubClient) Publish(ctx context.Context, run *pipeline.Run, again bool) (pipeline.Publication, []pipeline.Event, error) {
	if e, lost := h.lost(ctx, run); lost {
		return pipeline.Publication{Rev: run.Published.Rev}, []pipeline.Event{e}, nil
	}
	return h.App.Publish(ctx, run, github.PublishOptions{Again: again, Family: h.family(run), Pusher: pusher{h.gateway, h.App.Token, &h.signer, run}})
}

// family returns the runs that build the modules of a run, as they stand.
func (h *githubClient) family(run *pipeline.Run) func(context.Context) ([]*pipeline.Run, error) {
	return func(ctx context.Context) (out []*pipeline.Run, err error) {
		for i := range run.Parts {
			if id := run.Parts[i].Run; id != 0 {
				child, err := h.load(ctx, id)
				if err != nil {
					return nil, fmt.Errorf("load run %d: %w", id, err)
				}
				out = append(out, child)
			}
		}
		return out, nil
	}
}

// lost reports a commit that was never pushed and lies on another machine, one
// that has died since. The branch then goes on from where it is, and the phase
// that made the commit is done again; its tape is in the database, so that it
// costs nothing.
func (h *githubClient) lost(ctx context.Context, run *pipeline.Run) (pipeline.Event, bool) {
	if run.Head == run.Base || run.Head == run.Published.Head {
		return pipeline.Event{}, false
	}
	if _, err := h.gateway.Resolve(ctx, run.Repo, run.Head); !errors.Is(err, fs.ErrNotExist) {
		return pipeline.Event{}, false
	}
	return pipeline.Event{
		ID: fmt.Sprintf("run/%d/lost/%s/%d", run.ID, run.Head, run.Seq), Type: pipeline.EventBranchMoved, Source: "forge",
		Data: run.LostHead(),
	}, true
}

// pusher lets the publisher push without knowing git or tokens.
type pusher struct {
	gateway *sandbox.Gateway
	token   func(context.Context, pipeline.Repo) (string, error)
	signer  *signer
	run     *pipeline.Run
}

func (p pusher) Push(ctx context.Context, repo pipeline.Repo, branch, sha, old string) error {
	signs, err := p.signer.wanted(ctx, p.run)
	if err != nil {
		return err
	}
	if signs {
		return p.signer.push(ctx, p.run, sha, old)
	}
	token, err := p.token(ctx, repo)
	if err != nil {
		return err
	}
	return p.gateway.Push(ctx, repo, token, pushOf(p.run, branch, sha, old))
}

// pushOf is a push of a run's work.
func pushOf(run *pipeline.Run, branch, sha, old string) workspace.PushOptions {
	return workspace.PushOptions{Branch: branch, SHA: sha, Old: old, Base: run.Base, Cleared: slices.Sorted(maps.Keys(run.Cleared))}
}

// Delete implements the publisher's interface.
func (p pusher) Delete(ctx context.Context, repo pipeline.Repo, branch, old string) error {
	token, err := p.token(ctx, repo)
	if err != nil {
		return err
	}
	return p.gateway.Delete(ctx, repo, token, branch, old)
}

// Keep implements the publisher's keeper. Another run may be quicker: then it is done again
// on what that has made.
func (p pusher) Keep(ctx context.Context, repo pipeline.Repo, branch, message string, files []workspace.Change) (sha string, err error) {
	bot, err := p.signer.app.BotUser(ctx)
	if err != nil {
		return "", err
	}
	token, err := p.token(ctx, repo)
	if err != nil {
		return "", err
	}
	for range 3 {
		head, err := p.signer.app.BranchHead(ctx, repo, branch)
		if err != nil {
			return "", err
		}
		if head != "" {
			if err := p.gateway.Fetch(ctx, repo, token, head); err != nil {
				return "", err
			}
		}
		o := workspace.CommitOptions{Parent: head, Message: message, Author: bot.Login, Email: emailOf(bot), Time: p.run.Updated, Changes: files}
		if sha, err = p.gateway.Commit(ctx, repo, o); err != nil || sha == head {
			return sha, err
		}
		err = p.gateway.Push(ctx, repo, token, workspace.PushOptions{Branch: branch, SHA: sha, Old: head})
		var moved *workspace.MovedError
		if !errors.As(err, &moved) {
			return sha, err
		}
	}
	return "", fmt.Errorf("%s is moved again and again", branch)
}

func emailOf(bot pipeline.Actor) string {
	return fmt.Sprintf("%d+%s@users.noreply.github.com", bot.ID, bot.Login)
}

func (p pusher) Diff(ctx context.Context, repo pipeline.Repo, from, to string) (string, error) {
	return p.gateway.Diff(ctx, repo, from, to)
}

func newGitHubClient(o Options, db *store.DB, gateway *sandbox.Gateway) (*githubClient, error) {
	app, err := NewGitHubApp(o.Config, o.Log)
	if err != nil {
		return nil, err
	}
	h := &githubClient{load: db.Load, App: app, gateway: gateway, base: o.Config.Run, slug: o.Config.Slug, label: o.Config.Label,
		signer: signer{app: app, gateway: gateway}}
	gateway.OnRefused(h.refused)
	return h, nil
}

// refused finds out why git's remote does not take a call: the token has ended, or the
// repository is called otherwise by now.
func (h *githubClient) refused(ctx context.Context, repo pipeline.Repo, token string) (pipeline.Repo, string, error) {
	now, found, err := h.App.Locate(ctx, repo.ID)
	switch {
	case err != nil:
		return repo, "", err
	case !found:
		return repo, "", goneFault(repo)
	}
	token, err = h.App.Renew(ctx, now, token)
	return now, token, err
}

// goneFault says that a repository is none of the App's any more.
func goneFault(repo pipeline.Repo) error {
	return &pipeline.Fault{Class: pipeline.FaultGitHub, Final: true, Message: fmt.Sprintf("%s was deleted, or belongs to an account where the App is not installed on it: "+
		"nothing can be written there. Install the App on it and start a new run.", repo.FullName())}
}

// NewGitHubApp is the configured App as it calls GitHub.
func NewGitHubApp(cfg settings.Config, log *slog.Logger) (*github.App, error) {
	key, err := os.ReadFile(cfg.PrivateKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the App's private key: %w", err)
	}
	finder, err := newSecrets(cfg)
	if err != nil {
		return nil, err
	}
	return github.New(github.Options{
		Secrets: finder, BaseURL: cfg.GitHubURL, AppID: cfg.AppID, PrivateKey: key, Slug: cfg.Slug, Label: cfg.Label, LogHosts: cfg.LogHosts,
		MinWriteInterval: cfg.WriteInterval, Timeout: cfg.CallTimeout, Log: log, UserAgent: "forge/" + Version(), Gaps: true, Reads: cfg.Reflection,
	})
}
