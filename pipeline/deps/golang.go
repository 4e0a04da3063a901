package deps

import (
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

var (
	requires = lazyregexp.New(`(?m)^(?:require|tool|godebug)\b|^\t\S+ v\d`)
	// localModule is a module that another directory of the repository stands in for.
	localModule = lazyregexp.New(`=>\s+"?(\.\.?/[^\s"]*)`)
	useLine     = lazyregexp.New(`(?m)^\s*(?:use\s+)?"?(\.[^\s")]*|[A-Za-z0-9_][^\s")]*)"?\s*$`)
)

// golang finds Go modules. All share one module cache; a workspace's modules are
// downloaded together.
func (f *finder) golang() ([]*Project, error) {
	spaces := f.dirs("go.work")
	var out []*Project
	for _, dir := range spaces {
		p := &Project{Manager: "go", Dir: dir, Inputs: f.existing(dir, "go.work", "go.work.sum")}
		text, err := f.read(path.Join(dir, "go.work"))
		if err != nil {
			return nil, err
		}
		p.Inputs = append(p.Inputs, f.replaced(dir, text)...)
		for _, module := range used(string(text)) {
			at := path.Join(dir, module)
			p.Inputs = append(p.Inputs, f.existing(at, "go.mod", "go.sum")...)
			if name := path.Join(at, "go.mod"); f.has[name] {
				if text, err = f.read(name); err != nil {
					return nil, err
				}
				p.Inputs = append(p.Inputs, f.replaced(at, text)...)
			}
		}
		slices.Sort(p.Inputs)
		p.Inputs = slices.Compact(p.Inputs)
		if err := f.goProject(p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	for _, dir := range f.dirs("go.mod") {
		if f.has[path.Join(dir, "vendor/modules.txt")] ||
			slices.ContainsFunc(out, func(p *Project) bool { return slices.Contains(p.Inputs, path.Join(dir, "go.mod")) }) {
			continue
		}
		text, err := f.read(path.Join(dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		if requires.Match(text) {
			p := &Project{Manager: "go", Dir: dir, Inputs: f.existing(dir, "go.mod", "go.sum")}
			p.Inputs = append(p.Inputs, f.replaced(dir, text)...)
			if err := f.goProject(p); err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// replaced are the manifests of modules that directories of the repository stand in for.
func (f *finder) replaced(dir string, text []byte) []string {
	var out []string
	for _, m := range localModule.FindAllSubmatch(text, -1) {
		out = append(out, f.existing(path.Join(dir, string(m[1])), "go.mod", "go.sum")...)
	}
	return out
}

// used are the directories that a go.work names.
func used(text string) []string {
	var out []string
	block := false
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "//")
		switch {
		case strings.HasPrefix(line, "use ("), line == "use(":
			block = true
			continue
		case line == ")":
			block = false
		case block && line != "", strings.HasPrefix(line, "use "):
			if m := useLine.FindStringSubmatch(line); m != nil {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// goProject downloads by copies of the manifests, because the go command completes
// them where something is missing.
func (f *finder) goProject(p *Project) error {
	const copies = "go-manifests"
	p.stage = map[string][]byte{}
	for _, name := range p.Inputs {
		text, err := f.read(name)
		if err != nil {
			return err
		}
		p.stage[path.Join(copies, name)] = text
	}
	p.Lacks = f.lacks("go", "go", "install Go")
	sums := f.host.SumDB
	if sums == "" {
		sums = "off"
	}
	p.steps = []workspace.Command{
		{Dir: path.Join(root, copies, p.Dir), Args: []string{"go", "mod", "download"}, Timeout: timeout, Env: []string{
			"GOPROXY=" + f.host.Registry["go"], "GOSUMDB=" + sums, "GOMODCACHE=" + root + "/go", "GOFLAGS=-modcacherw -buildvcs=false", "GONOSUMDB=", "GOPRIVATE="}},
		// The archives are not needed any more: their content is there. Where every module is a
		// directory of the repository, none was downloaded.
		{Dir: root, Args: []string{"sh", "-c", `[ ! -d "$1" ] || find "$1" -name "*.zip" -delete`, "sh", root + "/go/cache/download"}},
	}
	p.env = []string{"GOMODCACHE=" + root + "/go"}
	return nil
}
