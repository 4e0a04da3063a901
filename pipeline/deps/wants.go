package deps

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/jsonc"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/untrusted"
)

// Want is a version of a tool that a file of a repository asks for.
type Want struct {
	File string
	Tool string // by its command: go, node, python3, …
	Text string // what the file says

	pin bool // a version, not a range
}

// wantFiles are the files that ask for versions, and what reads them.
var wantFiles = map[string]func(text []byte) []Want{
	".nvmrc": oneLine("node"), ".node-version": oneLine("node"), ".python-version": oneLine("python3"), ".ruby-version": oneLine("ruby"),
	".tool-versions": toolVersions, "mise.toml": mise, ".mise.toml": mise, ".config/mise.toml": mise, "go.mod": goDirectives,
	"package.json": engines, "pyproject.toml": requiresPython, "rust-toolchain": rustToolchain, "rust-toolchain.toml": rustToolchain, "Cargo.toml": rustVersion,
	".devcontainer/devcontainer.json": devcontainer, ".devcontainer.json": devcontainer,
	".github/workflows/copilot-setup-steps.yml": setupSteps, ".github/workflows/copilot-setup-steps.yaml": setupSteps,
}

// WantFiles are the paths that [Wants] and [NotFetched] read.
func WantFiles() []string {
	out := []string{attributesFile, modulesFile}
	for name := range wantFiles {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Wants reads which versions of tools a repository asks for, of files by path.
func Wants(files map[string][]byte) []Want {
	var out []Want
	for _, name := range WantFiles() {
		text, ok := files[name]
		read := wantFiles[name]
		if !ok || read == nil || len(text) > 1<<20 {
			continue
		}
		for _, w := range read(text) {
			if w.Text = strings.TrimSpace(w.Text); w.Text == "" || len(w.Text) > 60 || strings.Contains(w.Text, "${") {
				continue
			}
			w.File = name
			out = append(out, w)
		}
	}
	return out
}

// people call tools by these names.
var people = map[string]string{"go": "Go", "node": "Node", "python3": "Python", "cargo": "Rust", "ruby": "Ruby", "java": "Java", "php": "PHP", "dotnet": ".NET"}

// Misfits says which versions the server's tools are not, one line for each.
func Misfits(wants []Want, tools map[string]string) []string {
	var lines []string
	by := map[string][]string{} // files by what is said of them
	for _, w := range wants {
		name := people[w.Tool]
		if name == "" {
			name = w.Tool
		}
		has := readVersion(tools[w.Tool])
		fits, known := w.fits(tools[w.Tool])
		if !known || len(has) > 0 && fits {
			continue
		}
		there := "the server has none"
		if len(has) > 0 {
			there = "the server has " + numbers.FindString(tools[w.Tool])
		}
		line := fmt.Sprintf("%s %s, %s: install it for all users, or (`mise install %s`) below a directory of the server's `toolchains`",
			name, text.Clip(strings.ReplaceAll(w.Text, "`", "'"), 60), there, strings.TrimPrefix(strings.ToLower(name), ".")+"@"+cmp.Or(numbers.FindString(w.Text), "latest"))
		if by[line] == nil {
			lines = append(lines, line)
		}
		by[line] = append(by[line], "`"+w.File+"`")
	}
	for i, line := range lines {
		asks := "asks"
		if len(by[line]) > 1 {
			asks = "ask"
		}
		lines[i] = strings.Join(by[line], " and ") + " " + asks + " for " + line
	}
	return lines
}

// fits reports whether a tool of a version does; known is false when the file cannot be understood.
func (w Want) fits(said string) (fits, known bool) {
	has := readVersion(said)
	if !w.pin {
		return inRange(has, w.Text)
	}
	want := readVersion(w.Text)
	return serves(w.Tool, has, want), len(want) > 0
}

// called is a tool's command by the names that files have for it.
func called(name string) string {
	name = strings.TrimPrefix(name, "core:")
	switch name {
	case "nodejs":
		return "node"
	case "golang":
		return "go"
	case "python":
		return "python3"
	case "rust":
		return "cargo"
	case "go", "node", "ruby", "java", "php", "dotnet":
		return name
	}
	return ""
}

// codenames are those of Node's releases.
var codenames = map[string]string{"argon": "4", "boron": "6", "carbon": "8", "dubnium": "10", "erbium": "12", "fermium": "14", "gallium": "16",
	"hydrogen": "18", "iron": "20", "jod": "22", "krypton": "24"}

var release = lazyregexp.New(`^(?:[a-z]+-)?v?(\d+(?:\.\d+)*)(?:[.+_-].*)?$`)

// pin is a version that a file names; none for what is not a number, as "latest" is.
func pin(tool, said string) []Want {
	said = strings.ToLower(strings.TrimSpace(said))
	if code, ok := strings.CutPrefix(said, "lts/"); ok && tool == "node" {
		said = codenames[code]
	}
	if strings.ContainsAny(said, "<>=^~|*") || strings.Contains(said, ".x") { // as actions take them
		return []Want{{Tool: tool, Text: said}}
	}
	m := release.FindStringSubmatch(said)
	if tool == "" || m == nil || slices.Contains([]string{"nightly", "beta"}, strings.Split(said, "-")[0]) || strings.HasPrefix(said, "pypy") || strings.HasPrefix(said, "jruby") {
		return nil
	}
	return []Want{{Tool: tool, Text: m[1], pin: true}}
}

// oneLine reads files that hold a version alone.
func oneLine(tool string) func([]byte) []Want {
	return func(text []byte) []Want {
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line != "" {
				return pin(tool, line) // others, which pyenv takes, come after it
			}
		}
		return nil
	}
}

func toolVersions(text []byte) (out []Want) {
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 {
			out = append(out, pin(called(f[0]), f[1])...)
		}
	}
	return out
}

func mise(text []byte) (out []Want) {
	file, err := readTOML[struct{ Tools map[string]any }](text)
	if err != nil {
		return nil
	}
	for name, v := range file.Tools {
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		if table, ok := v.(map[string]any); ok {
			v = table["version"]
		}
		if v != nil {
			out = append(out, pin(called(name), fmt.Sprint(v))...)
		}
	}
	slices.SortFunc(out, func(a, b Want) int { return strings.Compare(a.Tool, b.Tool) })
	return out
}

var goDirective = lazyregexp.New(`(?m)^(?:go|toolchain)[ \t]+(?:go)?(\d+(?:\.\d+)*)`)

func goDirectives(text []byte) (out []Want) {
	for _, m := range goDirective.FindAllSubmatch(text, -1) {
		out = append(out, Want{Tool: "go", Text: string(m[1]), pin: true})
	}
	if len(out) > 1 && readVersion(out[1].Text).compare(readVersion(out[0].Text)) >= 0 {
		out = out[1:] // the toolchain's, which includes it
	}
	return out
}

func engines(text []byte) (out []Want) {
	var file struct{ Engines map[string]any }
	if err := untrusted.JSON(text, &file); err != nil {
		return nil
	}
	for _, tool := range []string{"node", "npm"} {
		if said, ok := file.Engines[tool].(string); ok {
			out = append(out, Want{Tool: tool, Text: said})
		}
	}
	return out
}

func requiresPython(text []byte) []Want {
	file, err := readTOML[struct {
		Project struct {
			Requires string `toml:"requires-python"`
		}
		Tool struct {
			Poetry struct{ Dependencies map[string]any }
		}
	}](text)
	said := file.Project.Requires
	if poetry, ok := file.Tool.Poetry.Dependencies["python"].(string); ok && said == "" {
		said = poetry
	}
	if err != nil || said == "" {
		return nil
	}
	return []Want{{Tool: "python3", Text: said}}
}

func rustToolchain(text []byte) []Want {
	said := string(text)
	if strings.Contains(said, "[toolchain]") {
		file, err := readTOML[struct{ Toolchain struct{ Channel string } }](text)
		if err != nil {
			return nil
		}
		said = file.Toolchain.Channel
	}
	return pin("cargo", said)
}

func rustVersion(text []byte) []Want {
	file, err := readTOML[struct {
		Package struct {
			Rust any `toml:"rust-version"` // a table where the workspace has it
		}
		Workspace struct {
			Package struct {
				Rust string `toml:"rust-version"`
			}
		}
	}](text)
	said, _ := file.Package.Rust.(string)
	if said == "" {
		said = file.Workspace.Package.Rust
	}
	if err != nil {
		return nil
	}
	return pin("cargo", said)
}

var (
	image   = lazyregexp.New(`(?:^|/)(python|golang|go|node|javascript-node|typescript-node|ruby|rust|java|php|dotnet):(?:dev-)?(?:\d+(?:\.\d+)*-)?(\d+(?:\.\d+)*)`)
	feature = lazyregexp.New(`/features/(node|python|go|rust|ruby|java|php|dotnet)(?::\d[\d.]*)?$`)
)

func devcontainer(text []byte) (out []Want) {
	var file struct {
		Image    string
		Features map[string]any
	}
	if err := untrusted.JSON(jsonc.ToJSON(text[:min(len(text), 64<<10)]), &file); err != nil {
		return nil
	}
	if m := image.FindStringSubmatch(file.Image); m != nil {
		out = append(out, pin(called(strings.TrimPrefix(strings.TrimPrefix(m[1], "javascript-"), "typescript-")), m[2])...)
	}
	for name, v := range file.Features {
		options, _ := v.(map[string]any)
		if m := feature.FindStringSubmatch(name); m != nil && options["version"] != nil {
			out = append(out, pin(called(m[1]), fmt.Sprint(options["version"]))...)
		}
	}
	slices.SortFunc(out, func(a, b Want) int { return strings.Compare(a.Tool, b.Tool) })
	return out
}

// actions are those that set a tool up, with the key of its version.
var actions = map[string]string{"actions/setup-node": "node-version", "actions/setup-go": "go-version", "actions/setup-python": "python-version",
	"actions/setup-java": "java-version", "actions/setup-dotnet": "dotnet-version", "ruby/setup-ruby": "ruby-version", "shivammathur/setup-php": "php-version"}

func setupSteps(text []byte) (out []Want) {
	var file struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string         `yaml:"uses"`
				With map[string]any `yaml:"with"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := untrusted.YAML(text, &file); err != nil {
		return nil
	}
	for _, step := range file.Jobs["copilot-setup-steps"].Steps {
		action, ref, _ := strings.Cut(step.Uses, "@")
		if action == "dtolnay/rust-toolchain" {
			out = append(out, pin("cargo", ref)...)
		}
		if key, ok := actions[action]; ok && step.With[key] != nil {
			tool := called(strings.TrimPrefix(path.Base(action), "setup-"))
			out = append(out, pin(tool, fmt.Sprint(step.With[key]))...)
		}
	}
	return out
}
