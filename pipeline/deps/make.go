package deps

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Installer is where a recipe is carried out.
type Installer interface {
	Run(ctx context.Context, c workspace.Command) (workspace.Result, error)
	Stage(ctx context.Context, name string, content []byte) error
}

// Mount shows a directory of the tree in the work tree; nothing is an empty one that
// can be written.
type Mount struct {
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	Copy bool   `json:"copy,omitempty"` // a copy, which can be written
}

// Env is what commands in and below a directory are told.
type Env struct {
	Dir string   `json:"dir"`
	Env []string `json:"env"`
}

// Failure is a project that could not be installed.
type Failure struct {
	Project string `json:"project"`
	Why     string `json:"why"`
	Lacks   bool   `json:"lacks,omitempty"` // it was not tried
	Away    bool   `json:"away,omitempty"`  // a registry did not answer: it may go well the next time
}

// Tree is what a recipe made, and how it is used.
type Tree struct {
	Projects []string  `json:"projects"`
	Mounts   []Mount   `json:"mounts,omitempty"`
	Env      []Env     `json:"env,omitempty"`
	Failed   []Failure `json:"failed,omitempty"`
	Seconds  float64   `json:"seconds"`
	Requests int       `json:"requests"` // that went to registries
	Bytes    int64     `json:"bytes"`    // that they sent
	At       time.Time `json:"at"`
	Fetched  string    `json:"-"` // both by ecosystem, for people; "" of a tree that was there already

	Ran  int      `json:"ran,omitempty"`  // commands of the repository's settings, of a tree that they made
	Left []string `json:"left,omitempty"` // what they changed or made that is not kept
}

// written are directories that test runners make in node_modules.
var written = []string{".cache", ".vite", ".vite-temp", ".vitest"}

// Make installs what can be. One project that fails does not keep the others from
// being installed; the error is for what is no fault of the repository.
func (r *Recipe) Make(ctx context.Context, in Installer) (*Tree, error) {
	tree := &Tree{}
	for _, p := range r.Projects {
		if p.Lacks != "" {
			tree.Failed = append(tree.Failed, Failure{Project: p.String(), Why: p.Lacks, Lacks: true})
			continue
		}
		if err := p.make(ctx, in, tree); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

func (p *Project) make(ctx context.Context, in Installer, tree *Tree) error {
	for _, name := range slices.Sorted(maps.Keys(p.stage)) {
		if err := in.Stage(ctx, name, p.stage[name]); err != nil {
			return fmt.Errorf("install with %s: %w", p, err)
		}
	}
	for _, step := range p.steps {
		r, err := in.Run(ctx, step)
		if err != nil {
			return fmt.Errorf("install with %s: %w", p, err)
		}
		tree.Seconds += r.Duration.Round(10 * time.Millisecond).Seconds()
		if r.Exit != 0 {
			tree.Failed = append(tree.Failed, Failure{Project: p.String(), Why: strings.Join(append([]string{why(step, r)}, p.hints...), "\n")})
			return nil
		}
	}
	tree.Projects = append(tree.Projects, p.String())
	if len(p.env) > 0 {
		tree.Env = append(tree.Env, Env{Dir: p.Dir, Env: p.env})
	}
	for _, dir := range p.shown {
		tree.Mounts = append(tree.Mounts, Mount{From: path.Join(p.tree, dir), To: path.Join(p.Dir, dir)})
	}
	if !p.mounts {
		return nil
	}
	return p.mount(ctx, in, tree)
}

// mount finds the directories of packages that a package manager for Node made.
func (p *Project) mount(ctx context.Context, in Installer, tree *Tree) error {
	r, err := in.Run(ctx, workspace.Command{Dir: root, Args: []string{"find", p.tree, "-type", "d", "-name", "node_modules", "-print", "-prune"}})
	if err != nil {
		return fmt.Errorf("install with %s: %w", p, err)
	}
	for _, from := range strings.Fields(string(r.Stdout)) {
		rel, _ := within(from, p.tree)
		to := path.Join(p.Dir, rel)
		tree.Mounts = append(tree.Mounts, Mount{From: from, To: to})
		for _, dir := range written {
			if err := in.Stage(ctx, path.Join(from, dir, ".keep"), nil); err != nil {
				return fmt.Errorf("install with %s: %w", p, err)
			}
			tree.Mounts = append(tree.Mounts, Mount{To: path.Join(to, dir)})
		}
	}
	return nil
}

// why says what a package manager said at its end.
func why(step workspace.Command, r workspace.Result) string {
	said := strings.TrimSpace(string(r.Stderr))
	if said == "" {
		said = strings.TrimSpace(string(r.Stdout))
	}
	said, _, _ = strings.Cut(said, "\nnpm error Clean install a project\n") // then it says how it is called
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(l string) bool {
		l = strings.TrimSpace(l)
		return l == "" || l == "npm error" || l == "npm error 404" || strings.HasPrefix(l, "npm error A complete log") || strings.HasPrefix(l, "npm warn") ||
			strings.HasPrefix(l, "[notice]") || strings.HasPrefix(l, "npm notice")
	})
	said = strings.Join(lines[max(0, len(lines)-6):], "\n")
	if len(said) > 800 {
		said = "…" + said[len(said)-800:]
	}
	end := fmt.Sprintf("ended with %d", r.Exit)
	if r.Class != "" {
		end = "was ended: " + r.Class
	}
	return fmt.Sprintf("`%s` %s: %s", strings.Join(step.Args[:min(len(step.Args), 3)], " "), end, strings.ToValidUTF8(said, "�"))
}

// ReadTree reads a tree's description, which is its JSON.
func ReadTree(about []byte) (*Tree, error) {
	var t Tree
	if err := json.Unmarshal(about, &t); err != nil {
		return nil, fmt.Errorf("description of installed dependencies: %w", err)
	}
	return &t, nil
}

// Broken reports whether something failed that may not fail the next time.
func (t *Tree) Broken() bool {
	return slices.ContainsFunc(t.Failed, func(f Failure) bool { return !f.Lacks })
}

// Explain adds to what failed why registries did not answer, and what they do not have.
func (t *Tree) Explain(failed, absent []string) {
	if !t.Broken() {
		return
	}
	var reasons []string
	reasons = append(reasons, failed[:min(3, len(failed))]...)
	for _, a := range absent[:min(3, len(absent))] {
		reasons = append(reasons, "no registry has "+a)
	}
	for i := range t.Failed {
		f := &t.Failed[i]
		f.Away = !f.Lacks && len(failed) > 0
		if !f.Lacks && len(reasons) > 0 {
			f.Why += "\n(" + strings.Join(reasons, "; ") + ")"
		}
	}
}

// Away reports whether a registry did not answer when something failed.
func (t *Tree) Away() bool {
	return slices.ContainsFunc(t.Failed, func(f Failure) bool { return f.Away })
}

// CannotInstall begins what [Tree.Summary] says of a project whose dependencies could not
// be installed.
const CannotInstall = "could not install dependencies"

// Summary says in lines what was installed, and what was not.
func (t *Tree) Summary() []string {
	var lines []string
	if t.Fetched != "" {
		lines = append(lines, "fetched from registries: "+t.Fetched)
	}
	if t.Ran > 0 {
		return append(t.prepared(), lines...)
	}
	if len(t.Projects) > 0 {
		lines = append([]string{"installed dependencies (" + strings.Join(t.Projects, ", ") + ")"}, lines...)
	}
	for _, f := range t.Failed {
		if !f.Lacks { // those are said by the recipe
			lines = append(lines, fmt.Sprintf(CannotInstall+" (%s): %s", f.Project, f.Why))
		}
	}
	return lines
}

// prepared says what commands of the repository's settings left.
func (t *Tree) prepared() []string {
	for _, f := range t.Failed {
		return []string{fmt.Sprintf("could not set up (%s): %s", f.Project, f.Why)}
	}
	kept := "which left no directory that is kept: name it under setup.cache, or let the repository ignore it"
	if len(t.Mounts) > 0 {
		var dirs []string
		for _, m := range t.Mounts {
			dirs = append(dirs, m.To)
		}
		if n := len(dirs); n > 8 {
			dirs = append(dirs[:8], fmt.Sprintf("%d more", n-8))
		}
		kept = "which left " + strings.Join(dirs, ", ")
	}
	lines := []string{fmt.Sprintf("set up by %s, %s", text.Plural(t.Ran, "command", "commands"), kept)}
	if len(t.Left) > 0 {
		lines = append(lines, "setup also changed "+strings.Join(t.Left, ", ")+": files outside of ignored directories are not kept")
	}
	return lines
}
