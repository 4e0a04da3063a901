package deps

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/lock"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// lockedBy are the parts of a package.json that decide what is in the lock file.
var lockedBy = []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta", "dependenciesMeta",
	"bundleDependencies", "bundledDependencies", "overrides", "resolutions", "workspaces", "pnpm"}

// nodeLocks finds the lock files that do not have what a changed package.json asks for. A
// project without one needs none.
func nodeLocks(e Edit, host Host) ([]*Lock, error) {
	f := &finder{every: e.Now.Paths, host: host, has: map[string]bool{}}
	for _, name := range e.Now.Paths {
		if !foreign(name) {
			f.files = append(f.files, name)
			f.has[name] = true
		}
	}
	f.read = func(name string) ([]byte, error) { // what a change has made of a lock file is not gone on from
		if isNodeLock(name) && slices.Contains(e.Before.Paths, name) {
			return e.Before.Read(name)
		}
		return e.Now.Read(name)
	}
	projects, err := f.node()
	if err != nil {
		return nil, err
	}
	var out []*Lock
	for _, p := range projects {
		i := slices.IndexFunc(p.Inputs, isNodeLock)
		if i < 0 {
			continue
		}
		asks, wrong, err := asksAnew(e, p)
		if err != nil {
			return nil, err
		}
		if !asks {
			continue
		}
		l, err := f.lockOf(e, p, p.Inputs[i])
		if err != nil {
			return nil, err
		}
		if len(wrong) > 0 {
			l.Refused = notOfRegistries(wrong)
		}
		out = append(out, l)
	}
	return out, nil
}

// asksAnew reports whether a project's manifests ask for something else than before, and
// for what of that no registry can be asked.
func asksAnew(e Edit, p *Project) (asks bool, wrong []string, err error) {
	for _, name := range p.Inputs {
		if !e.touches(name) || !isNodeManifest(name) {
			continue
		}
		now, before, err := e.Both(name)
		if err != nil {
			return false, nil, err
		}
		if path.Base(name) != "package.json" {
			asks = true
			continue
		}
		is, was := askedBy(now), askedBy(before)
		if bytes.Equal(is.all, was.all) {
			continue
		}
		asks = true
		for _, at := range slices.Sorted(maps.Keys(is.specs)) {
			if spec := is.specs[at]; spec != was.specs[at] && !ofRegistry(spec, path.Dir(name)) {
				wrong = append(wrong, at+" ("+spec+")")
			}
		}
	}
	return asks, wrong, nil
}

// asked is what a package.json asks for.
type asked struct {
	all   []byte
	specs map[string]string // versions, by where they stand
}

func askedBy(manifest []byte) asked {
	out := asked{specs: map[string]string{}}
	var all, kept map[string]any
	if untrusted.JSON(manifest, &all) != nil {
		return out
	}
	kept = pick(all, lockedBy)
	out.all, _ = json.Marshal(kept) // it was read from JSON
	for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies", "overrides", "resolutions"} {
		specsIn("", kept[key], out.specs)
	}
	if of, ok := kept["pnpm"].(map[string]any); ok {
		specsIn("", of["overrides"], out.specs)
	}
	return out
}

// specsIn notes the texts in a table, and in those within it.
func specsIn(at string, v any, into map[string]string) {
	switch v := v.(type) {
	case string:
		into[at] = v
	case map[string]any:
		for key, in := range v {
			specsIn(strings.TrimPrefix(at+">"+key, ">"), in, into)
		}
	}
}

// rangeText is what asks a registry: a range of versions or a tag, of another name perhaps.
var rangeText = lazyregexp.New(`^(?:npm:(?:@[\w.~-]+/)?[\w.~-]+@)?[\w.+~^<>=|*, -]*$|^(?:workspace|catalog):[\w.+~^*/-]*$|^\$[@\w./~-]+$|^npm:(?:@[\w.~-]+/)?[\w.~-]+$`)

// ofRegistry reports whether a version is one of a registry's, or a place in the repository.
func ofRegistry(spec, dir string) bool {
	for _, scheme := range []string{"file:", "link:", "portal:"} {
		if rel, ok := strings.CutPrefix(spec, scheme); ok {
			at := path.Join(dir, rel)
			return !path.IsAbs(rel) && at != ".." && !strings.HasPrefix(at, "../") && !strings.HasPrefix(rel, "~")
		}
	}
	return rangeText.MatchString(strings.TrimSpace(spec))
}

// lockOf is how a project's lock file is written.
func (f *finder) lockOf(e Edit, p *Project, file string) (*Lock, error) {
	old, err := f.read(file)
	if err != nil {
		return nil, err
	}
	base, err := e.Base.Text(file)
	if err != nil {
		return nil, err
	}
	manifest, err := f.read(path.Join(p.Dir, "package.json"))
	if err != nil {
		return nil, err
	}
	pkg, err := decode[nodePackage](manifest)
	if err != nil {
		return nil, err
	}
	l := &Lock{Manager: p.Manager, Dir: p.Dir, Lacks: p.Lacks, stage: p.stage, take: map[string]string{file: path.Join(p.tree, path.Base(file))}}
	step := p.steps[0]
	step.Args = f.lockArgs(p, path.Base(file), old, &pkg)
	step.Env = slices.DeleteFunc(slices.Clone(step.Env), func(kv string) bool { return strings.HasPrefix(kv, "YARN_ENABLE_SCRIPTS=") })
	if isBerry(old) {
		step.Env = append(step.Env, "YARN_ENABLE_SCRIPTS=false", "YARN_ENABLE_IMMUTABLE_INSTALLS=false")
	}
	l.tries = [][]workspace.Command{{step}}
	gateway := f.host.Registry["npm"]
	l.read = func(taken map[string][]byte) (map[string][]byte, []lock.Package, error) {
		text := readdressed(taken[file], old, gateway, p.Manager)
		if bytes.Contains(text, []byte(gateway)) || bytes.Contains(text, []byte(url.QueryEscape(gateway))) {
			return nil, nil, refusal("an archive is not where the server's registry has its packages, so that the lock file cannot say where it is")
		}
		direct, err := f.directOf(p)
		if err != nil {
			return nil, nil, err
		}
		return map[string][]byte{file: text}, cameIn(p, lockedIn(file, base), lockedIn(file, text), direct), nil
	}
	return l, nil
}

// lockArgs are the arguments of the command that writes a lock file and nothing else. Yarn 1
// knows no such thing: what it installs besides is thrown away.
func (f *finder) lockArgs(p *Project, file string, old []byte, pkg *nodePackage) []string {
	switch args := p.steps[0].Args; {
	case p.Manager == "npm":
		args = []string{"npm", "install", "--package-lock-only", "--ignore-scripts", "--package-lock=true"}
		if m := lockVersion.FindSubmatch(old); m != nil {
			args = append(args, "--lockfile-version="+string(m[1]))
		}
		return args
	case isBerry(old):
		at := slices.Index(args, "install")
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--package=@yarnpkg/cli-dist@2") }) {
			return append(slices.Clone(args[:at+1]), "--skip-builds")
		}
		return append(slices.Clone(args[:at+1]), "--mode=update-lockfile")
	case p.Manager == "pnpm":
		at := slices.Index(args, "install")
		return append(slices.Clone(args[:at+1]), "--lockfile-only", "--no-frozen-lockfile", "--ignore-scripts", "--ignore-pnpmfile", "--store-dir=/scratch/pnpm")
	default:
		at := slices.Index(args, "install")
		return append(slices.Clone(args[:at+1]), "--non-interactive", "--ignore-scripts", "--cache-folder=/scratch/yarn")
	}
}

var lockVersion = lazyregexp.New(`"lockfileVersion"\s*:\s*([123])\b`)

// readdressed is a lock file with the addresses that it had, and in place of the gateway
// that of the registry that most of its packages are from.
func readdressed(text, old []byte, gateway, manager string) []byte {
	had, count, most := map[string]string{}, map[string]int{}, ""
	for _, m := range archive.FindAllSubmatch(old, -1) {
		whole, rest := string(m[0]), string(m[1])
		had[rest] = whole
		at := strings.TrimSuffix(whole, rest)
		if count[at]++; count[at] > count[most] || count[at] == count[most] && at < most {
			most = at
		}
	}
	if most == "" {
		most = map[bool]string{true: "https://registry.yarnpkg.com/", false: "https://registry.npmjs.org/"}[manager == "yarn"]
	}
	text = archive.ReplaceAllFunc(text, func(address []byte) []byte {
		rest, ours := strings.CutPrefix(string(address), gateway+"/")
		if !ours {
			return address
		}
		if whole, ok := had[rest]; ok {
			return []byte(whole)
		}
		return []byte(most + rest)
	})
	escaped := []byte(url.QueryEscape(gateway + "/"))
	return bytes.ReplaceAll(text, escaped, []byte(url.QueryEscape(most)))
}

// directOf are the names that a project's manifests ask for.
func (f *finder) directOf(p *Project) (map[string]bool, error) {
	out := map[string]bool{}
	for _, name := range p.Inputs {
		if path.Base(name) != "package.json" {
			continue
		}
		text, err := f.read(name)
		if err != nil {
			return nil, err
		}
		pkg, _ := decode[nodePackage](text) // the package manager has read it
		for _, table := range []map[string]string{pkg.Dependencies, pkg.Dev, pkg.Optional, pkg.Peer} {
			for name := range table {
				out[name] = true
			}
		}
	}
	return out, nil
}

// cameIn are the versions of packages that one lock file has and another has not.
func cameIn(p *Project, was, is map[string][]string, direct map[string]bool) (out []lock.Package) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		gone := slices.DeleteFunc(slices.Clone(was[name]), func(v string) bool { return slices.Contains(is[name], v) })
		for _, version := range is[name] {
			if slices.Contains(was[name], version) {
				continue
			}
			came := lock.Package{Manager: p.Manager, Dir: place(p.Dir), Name: name, Version: version, Indirect: !direct[name]}
			if len(gone) > 0 {
				came.From, gone = gone[0], gone[1:]
			}
			out = append(out, came)
		}
	}
	return out
}

// lockedIn are the versions of packages in a lock file, by the names that they are found by,
// sorted; none where it cannot be read. That of another package by that name is as npm has
// it, npm:NAME@VERSION.
func lockedIn(file string, content []byte) map[string][]string {
	out := map[string][]string{}
	entries, _ := entriesOf(file, content)
	for _, e := range entries {
		version := e.version
		if version != "" && e.name != e.as {
			version = "npm:" + e.name + "@" + version
		}
		if version != "" && !slices.Contains(out[e.as], version) {
			out[e.as] = append(out[e.as], version)
		}
	}
	for _, versions := range out {
		slices.Sort(versions)
	}
	return out
}

// cutLast cuts a text around the last of a separator.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
