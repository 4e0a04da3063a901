package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"forge/cmd/forge/settings"
	"forge/github"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/deps"
	"forge/pipeline/registry"
)

// leaveOut is what helps where a rule for branches that people work for holds for Forge's, too.
const leaveOut = "leave SLUG/** out of the rule"

// refusals are rules of branches that stand in Forge's way where its own branches are, and
// what to do, with SLUG/ for where those are; "" stands in nobody's way.
var refusals = map[string]string{
	"file_path_restriction":       "a push that changes such a file is refused; list the same paths under paths.protected",
	"creation":                    "Forge makes branches SLUG/**: leave them out of the rule",
	"update":                      "Forge pushes to branches SLUG/**: leave them out of the rule",
	"non_fast_forward":            "",
	"deletion":                    "",
	"required_signatures":         "", // looked at by itself
	"copilot_code_review":         "",
	"pull_request":                "it refuses every push to such a branch: " + leaveOut,
	"merge_queue":                 "it refuses every push to such a branch: " + leaveOut,
	"required_status_checks":      "it refuses pushes of what was not checked yet: " + leaveOut,
	"required_deployments":        "it refuses pushes of what was not deployed yet: " + leaveOut,
	"workflows":                   "it refuses pushes of what the workflows have not passed yet: " + leaveOut,
	"code_scanning":               "it refuses pushes of what was not scanned yet: " + leaveOut,
	"code_quality":                "it refuses pushes of what was not looked at yet: " + leaveOut,
	"required_linear_history":     "Forge merges the base branch into its own: " + leaveOut + ", or set on_base_moved so that it does not",
	"branch_name_pattern":         "Forge's branches are SLUG/issue-N-…: allow the pattern ^SLUG/",
	"commit_message_pattern":      "Forge's commit messages may not fit: let the App bypass the rule",
	"committer_email_pattern":     "Forge commits as its bot user: allow its address",
	"commit_author_email_pattern": "Forge commits as its bot user: allow its address",
	"max_file_size":               "a push with a larger file is refused: let the App bypass the rule, or keep such files out of its tasks",
	"max_file_path_length":        "a push with a longer path is refused: let the App bypass the rule",
	"file_extension_restriction":  "a push that changes such a file is refused; list the same files under paths.protected",
}

func (d *doctor) repository(ctx context.Context, app *github.App, facts *github.Facts, full string) {
	page := facts.URL
	owner, name, ok := strings.Cut(full, "/")
	if !ok || strings.Contains(name, "/") {
		d.say("repository", GradeBad, "name it OWNER/NAME", "%q is no repository", full)
		return
	}
	id, err := app.FindInstallation(ctx, owner, name)
	if err != nil {
		d.say("repository", GradeBad, notFound(err, page), "%v", err)
		return
	}
	repo, err := app.Repo(ctx, id, owner, name)
	if err != nil {
		d.say("repository", GradeBad, notFound(err, page), "%v", err)
		return
	}
	d.closed(ctx, app, repo)
	d.branches(ctx, app, repo)
	how := d.o.Config.Run
	raw, err := app.File(ctx, repo, configPath, repo.DefaultBranch)
	switch {
	case err != nil:
		d.say("repository", GradeBad, "the App needs contents: read", "%v", err)
	case raw == nil && misnamed(ctx, app, repo):
		d.say("repository", GradeBad, "rename it to "+configPath, "%s keeps its settings in %s, which is not read", full, misnamedPath)
	case raw == nil:
		d.ok("repository", "%s has no %s: the defaults hold", full, configPath)
	default:
		if how, err = settings.Repository(configPath, raw, how); err != nil {
			d.say("repository", GradeBad, "mend it on "+repo.DefaultBranch, "%v", err)
		} else {
			d.ok("repository", "%s of %s is right", configPath, full)
		}
	}
	d.deploys(ctx, app, facts, repo, how)
	d.rules(ctx, app, repo, how.Commits)
	d.setUp(ctx, app, repo, how)
}

// notFound is what to do where a repository cannot be asked about.
func notFound(err error, page string) string {
	if later := (interface{ RetryAfter() time.Duration })(nil); errors.As(err, &later) && later.RetryAfter() > 0 {
		return fmt.Sprintf("look again in %s: GitHub answers no more for now", later.RetryAfter().Round(time.Second))
	}
	return "install the App on it: " + page + "/installations/new"
}

// closed says what of a repository is shut, so that no run can work there.
func (d *doctor) closed(ctx context.Context, app *github.App, repo pipeline.Repo) {
	why, err := app.Closed(ctx, repo)
	if err != nil {
		d.say("repository", GradeBad, "", "%v", err)
	}
	for _, w := range why {
		d.say("repository", GradeBad, "open it again in the repository's settings", "%s: %s", repo.FullName(), w)
	}
}

// branches looks whether there is something to begin from, and room for branches of Forge's.
func (d *doctor) branches(ctx context.Context, app *github.App, repo pipeline.Repo) {
	head, err := app.BranchHead(ctx, repo, repo.DefaultBranch)
	switch {
	case err != nil:
		d.say("repository", GradeBad, "the App needs contents: read", "%v", err)
	case head == "":
		d.say("repository", GradeBad, "push to it, or choose another default branch in the repository's settings", "%s has no commit on its default branch %s", repo.FullName(), repo.DefaultBranch)
	}
	slug := d.o.Config.Slug
	if head, err = app.BranchHead(ctx, repo, slug); err == nil && head != "" {
		d.say("repository", GradeBad, "rename or delete that branch, or set the server's slug", "%s has a branch %s: git can make none beneath it, and Forge's are %[2]s/…", repo.FullName(), slug)
	}
}

// deploys looks whether the App may do and hear what the repository's settings for
// production need. Where they need nothing, nothing is asked.
func (d *doctor) deploys(ctx context.Context, app *github.App, facts *github.Facts, repo pipeline.Repo, how config.Config) {
	p, ship := how.Production, how.Ship
	ships := ship.Enabled && len(ship.Environments) > 0
	makes, hears := p.RollBack || ships && ship.Via != "watch", p.RollBack || p.Revert || p.BakeMinutes > 0 || ships
	if makes {
		if err := app.MayDeploy(ctx, repo); err != nil {
			d.say("repository", GradeBad, "grant deployments: write at "+facts.URL+" under Permissions & events, then approve it in the installation",
				"%s wants deployments to be made (ship, production.roll_back), and the App may not: %v", repo.FullName(), err)
		}
	}
	for _, e := range []string{"deployment", "deployment_status"} {
		if hears && !slices.Contains(facts.Events, e) {
			d.say("repository", GradeBad, "subscribe to it at "+facts.URL+" under Permissions & events",
				"%s wants deployments to be followed, and the App is not sent the event %s", repo.FullName(), e)
		}
	}
}

// misnamed reports whether a repository's settings are where they are not read.
func misnamed(ctx context.Context, app *github.App, repo pipeline.Repo) bool {
	other, err := app.File(ctx, repo, misnamedPath, repo.DefaultBranch)
	return err == nil && other != nil
}

// mostRead is how many files of a repository are read one by one.
const mostRead = 60

// setUp looks whether this machine has what the repository's files ask for, and says how it
// would be set up.
func (d *doctor) setUp(ctx context.Context, app *github.App, repo pipeline.Repo, how config.Config) {
	tools := <-d.tools // it is closed in any case
	list, whole, err := app.Files(ctx, repo, repo.DefaultBranch)
	if err != nil {
		d.say("repository", GradeWarn, "", "which files it has cannot be read: %v", err)
		return
	}
	if !whole {
		d.say("repository", GradeWarn, "", "it has more files than GitHub lists at once: how it is set up is told from a part of them")
	}
	read := func(paths []string) (map[string][]byte, error) {
		paths = slices.DeleteFunc(slices.Clone(paths), func(name string) bool { return !slices.Contains(list, name) })
		slices.SortFunc(paths, func(a, b string) int { return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), cmp.Compare(a, b)) })
		files := map[string][]byte{}
		var mu sync.Mutex
		var all errgroup.Group
		all.SetLimit(6)
		for _, name := range paths[:min(mostRead, len(paths))] {
			all.Go(func() error {
				text, err := app.File(ctx, repo, name, repo.DefaultBranch)
				if err == nil && text != nil {
					mu.Lock()
					files[name] = text
					mu.Unlock()
				}
				return err
			})
		}
		return files, all.Wait()
	}
	files, err := read(deps.WantFiles())
	if err != nil {
		d.say("repository", GradeWarn, "", "which versions it asks for cannot be read: %v", err)
	}
	for _, line := range deps.NotFetched(files) {
		d.say("repository", GradeWarn, "commit what the tests need of it, or let setup.commands make it", "%s", line)
	}
	wants := deps.Wants(files)
	if d.o.Config.UnsafeNoSandbox {
		tools = map[string]string{}
		for _, w := range wants {
			ask := "--version"
			if w.Tool == "go" {
				ask = "version"
			}
			tools[w.Tool] = d.o.hostTool()(ctx, w.Tool, ask)
		}
	}
	if tools == nil {
		return
	}
	d.plan(deps.Commit{Files: list, Tests: how.Tests.Commands, Read: read}, how, tools)
	if len(wants) == 0 {
		return
	}
	_, chosen := deps.Choose(wants, tools)
	misfits := deps.Misfits(wants, chosen)
	for _, line := range misfits {
		says, fix, _ := strings.Cut(line, ": ")
		d.say("repository", GradeWarn, fix, "%s", says)
	}
	if len(misfits) == 0 {
		d.ok("repository", "the versions that its files ask for are there")
	}
}

// plan says how a repository would be set up.
func (d *doctor) plan(c deps.Commit, how config.Config, tools map[string]string) {
	host := deps.Host{Tools: tools, Registry: map[string]string{}, Offline: !d.o.Config.Dependencies || d.o.Config.UnsafeNoSandbox}
	for _, kind := range registry.Kinds() { // each has one by default
		host.Registry[string(kind)] = kind.URL()
	}
	plan, err := deps.Find(c, how.Setup, host)
	if err != nil {
		d.say("repository", GradeWarn, "", "how it is set up cannot be told: %v", err)
		return
	}
	if host.Offline {
		return // it is said elsewhere
	}
	for _, line := range plan.Lines() {
		d.ok("repository", "set-up: %s", line)
	}
	for _, line := range plan.Lacking() {
		d.say("repository", GradeWarn, "", "%s", line)
	}
	if plan.Empty() {
		d.ok("repository", "set-up: nothing is found to be installed; setup.commands in %s would be run", configPath)
	}
}

// rules looks at what rulesets ask of a branch of Forge's own, and of the one that it
// works for.
func (d *doctor) rules(ctx context.Context, app *github.App, repo pipeline.Repo, commits string) {
	for _, branch := range []string{d.o.Config.Slug + "/issue-1-doctor", repo.DefaultBranch} {
		rules, err := app.Rules(ctx, repo, branch)
		if err != nil {
			d.say("repository", GradeWarn, "", "%v", err)
			continue
		}
		for _, r := range rules {
			d.rule(repo, branch, commits, r)
		}
	}
}

// rule says whether one stands in the way of a branch.
func (d *doctor) rule(repo pipeline.Repo, branch, commits string, r github.Rule) {
	own := branch != repo.DefaultBranch
	fix, known := refusals[r.Type]
	if !known {
		fix = "it is not known here: see whether it refuses pushes of the App to SLUG/**"
	}
	fix = strings.ReplaceAll(fix, "SLUG/", d.o.Config.Slug+"/")
	switch {
	case r.Type == "required_signatures" && commits == "git":
		d.say("repository", GradeBad, "remove `commits: git`: GitHub then makes and signs Forge's commits", "%s must have signed commits, and commits of Forge's are not signed", branch)
	case r.Type == "required_status_checks" && !own:
		d.requiredCheck(repo, r)
	case r.Type == "required_deployments" && !own:
		d.say("repository", GradeWarn, "have pull requests deployed there by a workflow, or by people", "%s takes a pull request only once it was deployed: %s", branch, r.Type)
	case fix != "" && own:
		d.say("repository", GradeWarn, fix, "a rule of %s holds for %s: %s", repo.FullName(), branch, r.Type)
	}
}

// requiredCheck looks whose check a branch requires under Forge's name: without the App
// beside it, whoever may write statuses can pass it.
func (d *doctor) requiredCheck(repo pipeline.Repo, rule github.Rule) {
	var p struct {
		Checks []struct {
			Context string `json:"context"`
			App     int64  `json:"integration_id"`
		} `json:"required_status_checks"`
	}
	if err := json.Unmarshal(rule.Parameters, &p); err != nil {
		d.say("repository", GradeWarn, "", "the required checks of %s cannot be read: %v", repo.FullName(), err)
		return
	}
	slug := d.o.Config.Slug
	for _, c := range p.Checks {
		switch {
		case c.Context != slug:
		case c.App == 0:
			d.say("repository", GradeWarn, "choose this App as its source in the ruleset", "%s requires the check %s from anybody: whoever may write statuses can pass it", repo.FullName(), slug)
		case c.App != d.o.Config.AppID:
			d.say("repository", GradeBad, "choose this App as its source in the ruleset", "%s requires the check %s of App %d, and this is %d: no pull request can be merged", repo.FullName(), slug, c.App, d.o.Config.AppID)
		default:
			d.ok("repository", "%s requires the check %s of this App", repo.FullName(), slug)
		}
	}
}
