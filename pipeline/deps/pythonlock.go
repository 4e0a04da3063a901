package deps

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// locked is a package in a lock file of uv, Poetry, PDM or Pipenv.
type locked struct {
	Name, Version string
	Marker        any            // of PDM, and of Poetry long ago
	Markers       any            // of Poetry; a table where groups differ
	Resolution    []string       `toml:"resolution-markers"` // of uv, where there are several versions
	Source        map[string]any // where it is from; nothing: the index
	Git, URL      string         // the same, of PDM
	Path          string         //
	Dependencies  any            // a list of uv's tables or of PDM's texts, Poetry's table
	Optional      any            `toml:"optional-dependencies"`
	Dev           any            `toml:"dev-dependencies"`
	Files         []struct{ Hash string }
	Wheels        []struct{ Hash string }
	Sdist         struct{ Hash string }
}

// own reports whether a package is a directory of the repository.
func (k *locked) own() bool {
	return k.Source["virtual"] != nil || k.Source["editable"] != nil || k.Source["directory"] != nil || k.Source["type"] == "directory" || k.Version == ""
}

// from says where a package is from that no registry has; empty for all others.
func (k *locked) from() string {
	if k.Source["type"] == "legacy" { // Poetry's name of an index
		return ""
	}
	for _, key := range []string{"git", "url", "path"} {
		if at, ok := k.Source[key].(string); ok {
			return at
		}
	}
	return cmp.Or(k.Git, k.URL, k.Path)
}

func (k *locked) hashes() (out []string) {
	for _, h := range slices.Concat(k.Files, k.Wheels) {
		out = append(out, h.Hash)
	}
	out = append(out, k.Sdist.Hash)
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(h string) bool { return !strings.HasPrefix(h, "sha256:") })
}

// edge is what a package needs, where its marker holds.
type edge struct{ name, marker string }

// edges of a table of dependencies, in whatever way a package manager writes it.
func edges(said any) (out []edge) {
	switch said := said.(type) {
	case []map[string]any: // uv
		for _, d := range said {
			name, _ := d["name"].(string)
			marker, _ := d["marker"].(string)
			if more, ok := d["markers"].(string); ok { // Poetry's name of it
				marker = more
			}
			out = append(out, edge{name, marker})
		}
	case []any: // PDM, and tables as others read them
		for _, d := range said {
			switch d := d.(type) {
			case string:
				name, marker, _ := strings.Cut(d, ";")
				out = append(out, edge{strings.TrimSpace(nameOf(name)), strings.TrimSpace(marker)})
			case map[string]any:
				out = append(out, edges([]map[string]any{d})...)
			}
		}
	case map[string]any: // Poetry's, or uv's groups
		for _, name := range slices.Sorted(maps.Keys(said)) {
			switch d := said[name].(type) {
			case map[string]any:
				marker, _ := d["markers"].(string)
				out = append(out, edge{name, marker})
			case string:
				out = append(out, edge{name, ""})
			case []map[string]any, []any: // of Poetry, versions for several systems; of uv, a group
				for _, e := range edges(d) {
					out = append(out, edge{cmp.Or(e.name, name), e.marker})
				}
			}
		}
	}
	return out
}

// nameOf is the name that a requirement begins with.
func nameOf(requirement string) string {
	if at := strings.IndexAny(requirement, "[<>=!~@; ("); at >= 0 {
		return requirement[:at]
	}
	return requirement
}

// pythonLock returns what a lock file pins, as pip reads it; nothing when there is none
// that is known, or that pip can be told.
func (f *finder) pythonLock(p *Project, project *pyproject) (string, error) {
	names := f.existing(p.Dir, "uv.lock", "poetry.lock", "pdm.lock")
	if len(names) == 0 {
		return "", nil
	}
	text, err := f.read(names[0])
	if err != nil {
		return "", err
	}
	p.Inputs = append(p.Inputs, names[0])
	lock, err := readTOML[struct{ Package []*locked }](text)
	if err != nil {
		p.unreadable(names[0], err)
		return "", nil
	}
	return p.pins(lock.Package, project.requirements()), nil
}

// pins are the lines of a lock file. Where all packages have checksums, they are held.
func (p *Project) pins(list []*locked, wanted []string) string {
	of, markers := map[string]int{}, conditions(list, wanted)
	var lines []string
	var sums [][]string
	var left []string
	for _, k := range list {
		if k.own() {
			continue
		}
		if at := k.from(); at != "" {
			left = append(left, k.Name+" ("+at+")")
			continue
		}
		marker := markers[k]
		if of[normal(k.Name)]++; of[normal(k.Name)] > 1 && (marker == "" || len(k.Resolution) == 0 && k.Markers == nil && k.Marker == nil) {
			return "" // versions for several platforms, untold which: pip chooses by the manifest
		}
		line := k.Name + "==" + k.Version
		if marker != "" {
			line += " ; " + marker
		}
		lines, sums = append(lines, line), append(sums, k.hashes())
	}
	p.elsewhere = append(p.elsewhere, left...)
	if !slices.ContainsFunc(sums, func(h []string) bool { return len(h) == 0 }) {
		for i := range lines {
			for _, sum := range sums[i] {
				lines[i] += " --hash=" + sum
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// conditions are the markers under which packages are needed. Where a lock file says so
// of a package, that counts; else what its dependants say, if all of them say something.
func conditions(list []*locked, wanted []string) map[*locked]string {
	out := map[*locked]string{}
	for range 3 { // what is needed by what is needed on another system is not needed here, either
		incoming := map[string][]string{}
		for _, line := range wanted {
			name, marker, _ := strings.Cut(line, ";")
			name = normal(nameOf(strings.TrimSpace(name)))
			incoming[name] = append(incoming[name], strings.TrimSpace(marker))
		}
		for _, k := range list {
			for _, said := range []any{k.Dependencies, k.Optional, k.Dev} {
				for _, e := range edges(said) {
					incoming[normal(e.name)] = append(incoming[normal(e.name)], cmp.Or(e.marker, out[k]))
				}
			}
		}
		for _, k := range list {
			if out[k] = k.marker(); out[k] == "" {
				out[k] = anyOf(incoming[normal(k.Name)])
			}
		}
	}
	return out
}

// marker is what a lock file says of a package itself.
func (k *locked) marker() string {
	for _, said := range []any{k.Markers, k.Marker} {
		if text, ok := said.(string); ok && text != "" {
			return text
		}
	}
	return anyOf(k.Resolution)
}

// anyOf is one marker for several; empty where one of them is always so, or cannot be
// told without knowing what else was asked for.
func anyOf(markers []string) string {
	markers = slices.Compact(slices.Sorted(slices.Values(markers)))
	if slices.ContainsFunc(markers, func(m string) bool { return m == "" || strings.Contains(m, "extra") }) || len(markers) > 20 {
		return ""
	}
	switch len(markers) {
	case 0:
		return ""
	case 1:
		return markers[0]
	}
	return "(" + strings.Join(markers, ") or (") + ")"
}

// pipfile finds what Pipenv's lock file pins.
func (f *finder) pipfile(p *Project, lists map[string]list) error {
	name := path.Join(p.Dir, "Pipfile.lock")
	if !f.has[name] {
		return nil
	}
	text, err := f.read(name)
	if err != nil {
		return err
	}
	p.Inputs = append(p.Inputs, name)
	type entry struct {
		Version, Markers, Git, File, Path string
		Hashes                            []string
		Editable                          bool
	}
	lock, err := decode[struct{ Default, Develop map[string]entry }](text)
	if err != nil {
		p.unreadable(name, err)
		return nil
	}
	all := maps.Clone(lock.Develop)
	if all == nil {
		all = map[string]entry{}
	}
	maps.Copy(all, lock.Default)
	var pins []*locked
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		e := all[pkg]
		if e.Path != "" {
			continue // the repository itself
		}
		k := &locked{Name: pkg, Version: strings.TrimPrefix(e.Version, "=="), Git: e.Git, URL: e.File}
		if e.Markers != "" {
			k.Markers = e.Markers
		}
		if k.from() != "" && k.Version == "" {
			k.Version = "0"
		}
		for _, sum := range e.Hashes {
			k.Files = append(k.Files, struct{ Hash string }{sum})
		}
		pins = append(pins, k)
	}
	if text := p.pins(pins, nil); text != "" {
		lists[name] = list{text: text, locked: true}
	}
	return nil
}
