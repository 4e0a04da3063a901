package deps

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/jsonc"

	"forge/pipeline/config"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// settingsCommands are where a repository's settings for Forge have commands.
const settingsCommands = "setup.commands"

// own finds the commands by which the repository itself says how it is set up: its settings for Forge, which come on top
// of what its ecosystems install, else those for other agents and for development containers, which come in place of it.
func (f *finder) own(c Commit, set config.Setup) ([]*Project, error) {
	if len(set.Commands) > 0 {
		p := ownProject(settingsCommands, f.named(set.Commands), set.Commands)
		if err := f.more(c, p.Inputs); err != nil {
			return nil, err
		}
		return []*Project{p}, nil
	}
	if !set.Installs() {
		return nil, nil
	}
	for _, name := range f.files {
		var steps []string
		switch {
		case path.Dir(name) == ".github/workflows" && strings.HasPrefix(path.Base(name), "copilot-setup-steps."):
			steps = copilotSteps(f.text[name])
		case name == ".devcontainer.json" || strings.HasPrefix(name, ".devcontainer/") && path.Base(name) == "devcontainer.json":
			steps = containerSteps(f.text[name])
		}
		if len(steps) > 0 {
			p := ownProject(name, append(f.named(steps), name), steps)
			return []*Project{p}, f.more(c, p.Inputs)
		}
	}
	return nil, nil
}

// ownProject are commands of the repository. They were written for machines that are theirs
// alone: python has that name there, and programs are installed for all users.
func ownProject(from string, inputs, steps []string) *Project {
	const machine = `mkdir -p ` + env + `/bin; command -v python >/dev/null || ln -sf "$(command -v python3 || echo python3)" ` + env + `/bin/python`
	return &Project{Manager: "setup", Dir: ".", From: from, Inputs: inputs, before: machine, steps: steps,
		use: []string{"PATH=" + env + "/.local/bin:" + env + "/npm/bin:" + env + "/bin", "PATH=" + workspace.TreePath + "/.venv/bin", "npm_config_prefix=" + env + "/npm"}}
}

// named are the files of the commit that commands name.
func (f *finder) named(commands []string) (out []string) {
	for _, word := range strings.FieldsFunc(strings.Join(commands, "\n"), func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>=", r) }) {
		switch name := path.Clean(word); {
		case f.has[name]:
			out = append(out, name)
		case word == "make" && f.has["Makefile"]:
			out = append(out, "Makefile")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// more reads files that are no manifests.
func (f *finder) more(c Commit, names []string) error {
	texts, err := c.Read(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return f.text[name] != nil }))
	if err != nil {
		return fmt.Errorf("read what sets up: %w", err)
	}
	for name, text := range texts {
		f.text[name] = text
	}
	return nil
}

// copilotSteps are the commands of a workflow that prepares a machine for agents.
func copilotSteps(text []byte) (out []string) {
	var workflow struct {
		Env  map[string]any
		Jobs map[string]struct {
			Env   map[string]any
			Steps []struct {
				Run       string
				Env       map[string]any
				Directory string `yaml:"working-directory"`
			}
		}
	}
	if untrusted.YAML(text, &workflow) != nil {
		return nil
	}
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Run == "" || strings.Contains(step.Run, "${{") {
				continue
			}
			run := step.Run
			if step.Directory != "" && !strings.Contains(step.Directory, "${{") {
				run = "cd " + quote(step.Directory) + " && {\n" + run + "\n}"
			}
			run = exports(workflow.Env) + exports(job.Env) + exports(step.Env) + run
			out = append(out, run)
		}
	}
	return out
}

// exports are commands that set variables, except to expressions of the workflow.
func exports(env map[string]any) (out string) {
	for _, key := range sortedKeys(env) {
		if value := fmt.Sprint(env[key]); !strings.Contains(value, "${{") {
			out += "export " + key + "=" + quote(value) + "\n"
		}
	}
	return out
}

func sortedKeys(m map[string]any) []string {
	var out []string
	for key := range m {
		if isVariable(key) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// isVariable reports whether a name is one that a shell has variables of.
func isVariable(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) < 0
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// containerSteps are the commands that a development container runs when it is made.
func containerSteps(text []byte) (out []string) {
	var container map[string]any
	if untrusted.JSON(jsonc.ToJSON(text), &container) != nil { // JSON with comments
		return nil
	}
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			var words []string
			for _, w := range v {
				words = append(words, quote(fmt.Sprint(w)))
			}
			out = append(out, strings.Join(words, " "))
		case map[string]any:
			for _, name := range sortedKeys(v) {
				add(v[name])
			}
		}
	}
	for _, name := range []string{"onCreateCommand", "updateContentCommand", "postCreateCommand"} {
		if v := container[name]; v != nil {
			add(v)
		}
	}
	return out
}
