package deps

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// testGroup is what people call the extras, groups and files of what tests need.
var testGroup = lazyregexp.New(`^(?:test(?:s|ing)?|unit-?tests?|dev(?:el|elop|elopment)?|ci)$`)

// requirementFile are files that list what to install for running and testing.
var requirementFile = lazyregexp.New(`^(?:requirements(?:[-_.](?:base|common|test(?:s|ing)?|dev(?:el|elopment)?|ci))?|(?:test(?:s|ing)?|dev(?:el|elopment)?|ci)[-_]requirements)\.(?:txt|in)$`)

// requirementDir are those in a directory of their own.
var requirementDir = lazyregexp.New(`^requirements/(?:base|common|main|test(?:s|ing)?|dev(?:el|elopment)?|ci)\.(?:txt|in)$`)

// pyproject is what of a pyproject.toml decides what is installed.
type pyproject struct {
	Project struct {
		Name         string
		Version      string
		Dependencies []string
		Optional     map[string][]string `toml:"optional-dependencies"`
	}
	Groups map[string][]any `toml:"dependency-groups"`
	Tool   struct {
		UV struct {
			Sources   map[string]any
			Workspace struct{ Members, Exclude []string }
		}
		Setuptools struct {
			Dynamic struct {
				Dependencies any
				Optional     map[string]any `toml:"optional-dependencies"`
			}
		}
		Poetry struct {
			Name         string
			Version      string
			Dependencies map[string]any
			Dev          map[string]any `toml:"dev-dependencies"`
			Group        map[string]struct{ Dependencies map[string]any }
		}
	}
}

func readTOML[T any](text []byte) (v T, err error) {
	return v, untrusted.TOML(text, &v)
}

// python finds directories with a pyproject.toml, a setup.cfg or lists of requirements.
func (f *finder) python() ([]*Project, error) {
	dirs := map[string]bool{}
	for _, name := range f.files {
		base, dir := path.Base(name), path.Dir(name)
		switch {
		case base == "pyproject.toml", base == "setup.cfg", base == "setup.py", base == "Pipfile.lock", requirementFile.MatchString(base):
			dirs[dir] = true
		case requirementDir.MatchString(path.Join(path.Base(dir), base)):
			dirs[path.Dir(dir)] = true
		}
	}
	var out []*Project
	for _, dir := range slices.Sorted(maps.Keys(dirs)) { // what is above comes first
		member, err := f.uvMember(dir)
		if err != nil {
			return nil, err
		}
		if member {
			continue
		}
		p, err := f.pythonProject(dir)
		if err != nil {
			return nil, err
		}
		if p != nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// uvMember reports whether a directory belongs to a workspace of uv, whose lock file pins
// what all members need.
func (f *finder) uvMember(dir string) (bool, error) {
	if f.has[path.Join(dir, "uv.lock")] || !f.has[path.Join(dir, "pyproject.toml")] {
		return false, nil
	}
	for _, top := range f.dirs("uv.lock") {
		rel, ok := within(dir, top)
		name := path.Join(top, "pyproject.toml")
		if !ok || !f.has[name] {
			continue
		}
		text, err := f.read(name)
		if err != nil {
			return false, err
		}
		project, err := readTOML[pyproject](text)
		space := project.Tool.UV.Workspace
		if err == nil && matchAny(space.Members, rel) && !matchAny(space.Exclude, rel) {
			return true, nil
		}
	}
	return false, nil
}

// stageMembers lets the members of a workspace find their own names and versions.
func (f *finder) stageMembers(p *Project, site string) error {
	if !slices.Contains(p.Inputs, path.Join(p.Dir, "uv.lock")) {
		return nil
	}
	for _, dir := range f.dirs("pyproject.toml") {
		if member, err := f.uvMember(dir); err != nil || !member || !below(dir, p.Dir) {
			if err != nil {
				return err
			}
			continue
		}
		name := path.Join(dir, "pyproject.toml")
		text, err := f.read(name)
		if err != nil {
			return err
		}
		p.Inputs = append(p.Inputs, name)
		if project, err := readTOML[pyproject](text); err == nil {
			project.stageMetadata(p, site)
		}
	}
	return nil
}

// pythonProject says what one directory asks for: what a lock file pins, else what
// manifests name.
func (f *finder) pythonProject(dir string) (*Project, error) {
	p := &Project{Manager: "pip", Dir: dir, stage: map[string][]byte{}}
	tree := slot("python", dir)
	lists := map[string]list{} // by the file that they are from
	var project pyproject
	for _, name := range f.files {
		rel, ok := within(name, dir)
		if !ok || !requirementFile.MatchString(rel) && !requirementDir.MatchString(rel) {
			continue
		}
		if strings.HasSuffix(rel, ".in") && f.has[path.Join(dir, strings.TrimSuffix(rel, ".in")+".txt")] {
			continue // that is compiled from it
		}
		if err := f.requirements(p, lists, name, false); err != nil {
			return nil, err
		}
	}
	if name := path.Join(dir, "pyproject.toml"); f.has[name] {
		text, err := f.read(name)
		if err != nil {
			return nil, err
		}
		p.Inputs = append(p.Inputs, name)
		if project, err = readTOML[pyproject](text); err != nil {
			p.unreadable(name, err)
			return p, nil
		}
		pinned, err := f.pythonLock(p, &project)
		if err != nil || p.Lacks != "" {
			return p, err
		}
		if pinned != "" {
			lists[name] = list{text: pinned, locked: true}
		} else if wanted := project.requirements(); len(wanted) > 0 {
			lists[name] = list{text: p.fromRegistries(strings.Join(wanted, "\n") + "\n")}
		}
		for _, other := range project.dynamic() {
			if err := f.requirements(p, lists, path.Join(dir, other), false); err != nil {
				return nil, err
			}
		}
	}
	if err := f.pipfile(p, lists); err != nil || p.Lacks != "" {
		return p, err
	}
	if err := f.setupConfig(p, lists); err != nil {
		return nil, err
	}
	if err := f.setupScript(p, lists); err != nil {
		return nil, err
	}
	if p.steps = f.pipSteps(p, tree, lists); len(p.steps) == 0 {
		if len(p.elsewhere) == 0 {
			return nil, nil
		}
		p.stage, p.Lacks = nil, notOfRegistries(p.elsewhere) // to be said, although there is nothing to install
		return p, nil
	}
	site := path.Join(root, tree, "site")
	project.stageMetadata(p, path.Join(tree, "site"))
	if err := f.stageMembers(p, path.Join(tree, "site")); err != nil {
		return nil, err
	}
	if p.Lacks = f.lacks("python3", "pypi", "install Python"); p.Lacks == "" {
		p.Lacks = f.lacks("pip", "pypi", "apt-get install python3-pip")
	}
	p.env = []string{"PYTHONPATH=" + site, "PATH=" + path.Join(site, "bin")}
	return p, nil
}

// list is a list of requirements, or of constraints on them.
type list struct {
	text       string
	constraint bool
	locked     bool // all that is needed is in it
}

// pipSteps are the commands that install some lists. pip wants checksums of all that
// one command installs, or of none; so those lists that have them come first, alone.
func (f *finder) pipSteps(p *Project, tree string, lists map[string]list) []workspace.Command {
	var locked, hashed, plain, limits []string
	for i, name := range slices.Sorted(maps.Keys(lists)) {
		l := lists[name]
		if strings.TrimSpace(l.text) == "" {
			continue
		}
		file := fmt.Sprintf("%s/list-%d.txt", tree, i)
		p.stage[file] = []byte(l.text)
		switch file = path.Join(root, file); {
		case l.constraint:
			limits = append(limits, "--constraint="+file)
		case l.locked:
			locked = append(locked, "--requirement="+file)
		case strings.Contains(l.text, "--hash="):
			hashed = append(hashed, "--requirement="+file)
		default:
			plain = append(plain, "--requirement="+file)
		}
	}
	args := []string{"python3", "-m", "pip", "install", "--target=" + path.Join(root, tree, "site"), "--no-warn-script-location", "--progress-bar=off"}
	if !f.host.Scripts {
		args = append(args, "--only-binary=:all:") // what is not built yet runs a script of its own
	}
	var steps []workspace.Command
	if len(locked) > 0 {
		locked = append(locked, "--no-deps")
	}
	for _, what := range [][]string{locked, hashed, plain} {
		if len(what) > 0 {
			steps = append(steps, workspace.Command{Dir: root, Args: slices.Concat(args, what, limits), Timeout: timeout, Env: []string{
				"PIP_INDEX_URL=" + f.host.Registry["pypi"] + "/simple/", "PIP_CONFIG_FILE=/dev/null", "PIP_CACHE_DIR=/scratch/pip", "TMPDIR=/scratch",
				"PIP_NO_INPUT=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore", "PIP_RETRIES=0"}})
		}
	}
	return steps
}

var (
	includes = lazyregexp.New(`^\s*(-r|--requirement|-c|--constraint)[\s=]+(\S+)`)
	pipFlags = lazyregexp.New(`^\s*(?:-i|--index-url|--extra-index-url|-f|--find-links|--trusted-host|--no-index|--pre|--prefer-binary|--no-binary|--only-binary)\b`)
	index    = lazyregexp.New(`^\s*(?:-i|--index-url|--extra-index-url|-f|--find-links)[\s=]+(\S+)`)
	itself   = lazyregexp.New(`^\s*(?:-e\s+|--editable[\s=]+)?\.{1,2}(?:/[\w./-]*)?(?:\[[\w,\s-]*\])?\s*(?:#.*)?$`)
)

// publicIndex is the one whose packages a server's registry has.
var publicIndex = lazyregexp.New(`^https?://(?:www\.)?pypi\.(?:org|python\.org)/`)

// requirements reads one list, and those that it includes. Their lines are put
// together: what installs the repository itself is left out, because its source is
// there, and so is every other registry.
func (f *finder) requirements(p *Project, lists map[string]list, name string, constraint bool) error {
	if _, done := lists[name]; done || !f.has[name] {
		return nil
	}
	lists[name] = list{}
	text, err := f.read(name)
	if err != nil {
		return err
	}
	p.Inputs = append(p.Inputs, name)
	var kept strings.Builder
	for line := range strings.Lines(string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))) {
		if m := includes.FindStringSubmatch(line); m != nil {
			if !slices.Contains(f.every, path.Join(path.Dir(name), m[2])) { // of an address, or not there
				p.elsewhere = append(p.elsewhere, m[1]+" "+m[2])
			}
			if err := f.requirements(p, lists, path.Join(path.Dir(name), m[2]), constraint || m[1] == "-c" || m[1] == "--constraint"); err != nil {
				return err
			}
			continue
		}
		if m := index.FindStringSubmatch(line); m != nil && !publicIndex.MatchString(m[1]) && !slices.Contains(p.unasked, m[1]) {
			p.unasked = append(p.unasked, m[1])
		}
		if line, err = f.packaged(p, name, line); err != nil {
			return err
		}
		if !pipFlags.MatchString(line) && (archived.MatchString(line) || !itself.MatchString(line)) {
			kept.WriteString(line)
		}
	}
	lists[name] = list{text: p.fromRegistries(kept.String()), constraint: constraint}
	return nil
}

// elsewhere is a requirement that no registry has: of a repository, an address or a file.
var elsewhere = lazyregexp.New(`^\s*(?:(?:-e|--editable)[\s=]+\S|(?:git|hg|svn|bzr)\+|(?:https?|file)://|[\w.-]+(?:\[[^\]]*\])?\s*@|[\w.-][\w./-]*\.(?:whl|zip|tar\.gz)\b)`)

// fromRegistries leaves out what no registry has, and keeps what that was.
func (p *Project) fromRegistries(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if elsewhere.MatchString(line) {
			said, _, _ := strings.Cut(line, " #")
			p.elsewhere = append(p.elsewhere, strings.TrimRight(strings.TrimSpace(said), " \\"))
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}

// archived is a requirement that is a file of the repository.
var archived = lazyregexp.New(`^\s*(?:\./)?([\w./-]+\.(?:whl|zip|tar\.gz))(?:\s.*)?$`)

// packaged has a line name a copy of the package that it names by its file, if there is
// such a file. pip looks from where it is run, which is the top as a rule.
func (f *finder) packaged(p *Project, list, line string) (string, error) {
	m := archived.FindStringSubmatch(strings.TrimRight(line, "\n"))
	if m == nil {
		return line, nil
	}
	for _, dir := range []string{p.Dir, path.Dir(list), "."} {
		name := path.Join(dir, m[1])
		if strings.HasPrefix(name, "..") || !slices.Contains(f.every, name) {
			continue
		}
		content, err := f.read(name)
		if err != nil {
			return "", err
		}
		to := path.Join(slot("python", p.Dir), "files", path.Base(name))
		p.Inputs, p.stage[to] = append(p.Inputs, name), content
		return strings.Replace(line, strings.TrimSpace(strings.SplitN(strings.TrimSpace(line), " ", 2)[0]), path.Join(root, to), 1), nil
	}
	return line, nil
}

// requirements of a pyproject.toml: what it runs with, and what its tests need.
func (p *pyproject) requirements() []string {
	out := slices.Clone(p.Project.Dependencies)
	for _, extra := range slices.Sorted(maps.Keys(p.Project.Optional)) {
		if testGroup.MatchString(extra) {
			out = append(out, p.Project.Optional[extra]...)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(p.Groups)) {
		if testGroup.MatchString(group) {
			out = append(out, p.group(group, 0)...)
		}
	}
	poetry := p.Tool.Poetry
	tables := []map[string]any{poetry.Dependencies, poetry.Dev}
	for _, group := range slices.Sorted(maps.Keys(poetry.Group)) {
		if testGroup.MatchString(group) {
			tables = append(tables, poetry.Group[group].Dependencies)
		}
	}
	for _, table := range tables {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if line := poetryLine(name, table[name]); line != "" {
				out = append(out, line)
			}
		}
	}
	for i, line := range out {
		out[i] = p.sourced(line)
	}
	out = slices.DeleteFunc(out, func(line string) bool { return line == "" })
	// An extra of the project itself, as "acme[test]", is no package to be fetched.
	return slices.DeleteFunc(out, func(line string) bool {
		own, _, extra := strings.Cut(line, "[")
		return extra && normal(own) == normal(p.Project.Name)
	})
}

// sourced is a requirement with where uv's settings take it from; empty for a directory
// of the repository.
func (p *pyproject) sourced(line string) string {
	for name, said := range p.Tool.UV.Sources {
		if normal(name) != normal(nameOf(line)) {
			continue
		}
		table, _ := said.(map[string]any)
		switch {
		case table["workspace"] == true, table["path"] != nil:
			return ""
		case table["git"] != nil:
			return fmt.Sprintf("%s @ git+%v", name, table["git"])
		case table["url"] != nil:
			return fmt.Sprintf("%s @ %v", name, table["url"])
		}
	}
	return line
}

// dynamic are the files that setuptools takes requirements from.
func (p *pyproject) dynamic() (out []string) {
	table := p.Tool.Setuptools.Dynamic
	said := []any{table.Dependencies}
	for _, extra := range slices.Sorted(maps.Keys(table.Optional)) {
		if testGroup.MatchString(extra) {
			said = append(said, table.Optional[extra])
		}
	}
	for _, s := range said {
		of, _ := s.(map[string]any)
		switch file := of["file"].(type) {
		case string:
			out = append(out, file)
		case []any:
			for _, name := range file {
				out = append(out, fmt.Sprint(name))
			}
		}
	}
	return out
}

// group resolves one dependency group, with those that it includes.
func (p *pyproject) group(name string, depth int) []string {
	var out []string
	for _, item := range p.Groups[name] {
		switch item := item.(type) {
		case string:
			out = append(out, item)
		case map[string]any:
			if other, ok := item["include-group"].(string); ok && depth < 10 {
				out = append(out, p.group(other, depth+1)...)
			}
		}
	}
	return out
}

// poetryLine is a requirement as pip writes it; empty for what pip does not fetch.
func poetryLine(name string, spec any) string {
	if name == "python" {
		return ""
	}
	extras, version := "", ""
	switch spec := spec.(type) {
	case string:
		version = spec
	case map[string]any:
		switch {
		case spec["path"] != nil, spec["optional"] == true:
			return ""
		case spec["git"] != nil:
			return fmt.Sprintf("%s @ git+%v", name, spec["git"])
		case spec["url"] != nil:
			return fmt.Sprintf("%s @ %v", name, spec["url"])
		}
		version, _ = spec["version"].(string)
		if list, ok := spec["extras"].([]any); ok {
			var all []string
			for _, e := range list {
				all = append(all, fmt.Sprint(e))
			}
			extras = "[" + strings.Join(all, ",") + "]"
		}
	}
	return name + extras + poetryRange(version)
}

var caret = lazyregexp.New(`^([~^])\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?`)

// poetryRange turns Poetry's ranges into pip's.
func poetryRange(text string) string {
	if text == "" || text == "*" {
		return ""
	}
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		m := caret.FindStringSubmatch(part)
		switch {
		case m == nil && part != "" && strings.ContainsAny(part[:1], "<>=!~"):
			out = append(out, part)
		case m == nil:
			out = append(out, "=="+part)
		default:
			out = append(out, ">="+strings.TrimSpace(part[1:]), "<"+nextBreaking(m))
		}
	}
	return strings.Join(out, ",")
}

// nextBreaking is the first version that a caret or a tilde leaves out: the next of
// the first number that is not zero, or for a tilde of the second number.
func nextBreaking(m []string) string {
	n := []int{}
	for _, text := range m[2:] {
		if text != "" {
			v := 0
			_, _ = fmt.Sscan(text, &v)
			n = append(n, v)
		}
	}
	at := 0
	if m[1] == "~" {
		at = min(1, len(n)-1)
	} else {
		for at < len(n)-1 && n[at] == 0 {
			at++
		}
	}
	var out []string
	for i, v := range n[:at+1] {
		if i == at {
			v++
		}
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ".")
}

// setupConfig reads what a setup.cfg asks for.
func (f *finder) setupConfig(p *Project, lists map[string]list) error {
	name := path.Join(p.Dir, "setup.cfg")
	if !f.has[name] {
		return nil
	}
	text, err := f.read(name)
	if err != nil {
		return err
	}
	section, key := "", ""
	var out []string
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case strings.HasPrefix(trimmed, "["):
			section, key = strings.Trim(trimmed, "[]"), ""
			continue
		case line[0] != ' ' && line[0] != '\t':
			var value string
			key, value, _ = strings.Cut(trimmed, "=")
			key, trimmed = strings.TrimSpace(key), strings.TrimSpace(value)
		}
		wanted := section == "options" && (key == "install_requires" || key == "tests_require") || section == "options.extras_require" && testGroup.MatchString(key)
		if wanted && trimmed != "" {
			out = append(out, trimmed)
		}
	}
	if len(out) > 0 {
		p.Inputs = append(p.Inputs, name)
		lists[name] = list{text: strings.Join(out, "\n") + "\n"}
	}
	return nil
}

// stageMetadata lets the project find its own name and version, as if it were installed.
func (p *pyproject) stageMetadata(to *Project, site string) {
	name, version := p.Project.Name, p.Project.Version
	if name == "" {
		name, version = p.Tool.Poetry.Name, p.Tool.Poetry.Version
	}
	if name == "" {
		return
	}
	if version == "" {
		version = "0.0.0"
	}
	dir := fmt.Sprintf("%s/%s-%s.dist-info", site, strings.ReplaceAll(normal(name), "-", "_"), version)
	to.stage[dir+"/METADATA"] = fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	to.stage[dir+"/RECORD"] = nil
}

var separators = lazyregexp.New(`[-_.]+`)

// normal is a package's name as PyPI compares it.
func normal(name string) string {
	return separators.ReplaceAllString(strings.ToLower(strings.TrimSpace(name)), "-")
}
