package deps

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/lock"
	"forge/pipeline/text"
	"forge/pipeline/untrusted"
)

// A lock file that was written by hand may say of a package that it comes from another's
// archive, and whoever installs by it gets that one. So entries that differ are looked
// through: an archive must be that of the name and the version, at a registry that was asked
// before, and its checksum one that nothing else has. Whether archive and checksum belong
// together, the package manager finds when it installs.

// lockEntry is what a lock file says of a version of a package.
type lockEntry struct {
	at      string // where it stands
	as      string // the name that it is found by
	name    string // its own
	version string
	address string // "": that of the registry
	sum     string
	noSum   bool // it needs none: it is in another's archive, or said elsewhere
	alias   bool // it is asked for as another package by that name
}

// HandWritten says why changed lock files and vendored packages are not taken as they are,
// except for lock files that package managers have made of older ones. One that they made of
// a new one has what that said.
func HandWritten(e Edit, made func(name string) bool) (wrong []string, err error) {
	if of := Vendored(e.Changed, e.Before, e.Now); len(of) > 0 {
		wrong = append(wrong, fmt.Sprintf("dependencies: packages of others are not taken as they were written: %s. Undo that; where the task cannot be done without it, "+
			"say in `unable` that a person has to vendor them on the branch first", strings.Join(of, "; ")))
	}
	for _, name := range e.Changed {
		if !isNodeLock(name) || foreign(name) || made(name) && slices.Contains(e.Before.Paths, name) {
			continue
		}
		d, err := diffLocks(e.Before, e.Now, name, made(name))
		if err != nil {
			return nil, err
		}
		if len(d.wrong) > 0 {
			wrong = append(wrong, fmt.Sprintf("dependencies: %s is not taken as it was written: %s. Undo that; to have another version, ask for it in the manifest, and the package manager writes the lock file",
				name, strings.Join(most(d.wrong), "; ")))
		}
	}
	return wrong, nil
}

// LockedAlone says what lock files say else than those of a base where no manifest beside
// them asks for something else, and everywhere which entries are not of their packages.
func LockedAlone(base, now Files) (lines []string, err error) {
	names := slices.Concat(base.Paths, now.Paths)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !isNodeLock(name) || foreign(name) {
			continue
		}
		d, err := diffLocks(base, now, name, true)
		if err != nil {
			return nil, err
		}
		said := d.wrong
		asked, err := manifestDiffers(base, now, path.Dir(name))
		if err != nil {
			return nil, err
		}
		if !asked {
			said = slices.Concat(d.wrong, d.moved)
		}
		if len(said) > 0 {
			lines = append(lines, name+": "+strings.Join(most(said), "; "))
		}
	}
	return lines, nil
}

// isNodeManifest reports whether a file says what a project asks for.
func isNodeManifest(name string) bool {
	return slices.Contains([]string{"package.json", pnpmSettings, berrySettings}, path.Base(name))
}

// isNodeLock reports whether a file is one that a package manager of Node locks versions in.
func isNodeLock(name string) bool {
	return slices.ContainsFunc(locks, func(l struct{ file, manager string }) bool { return l.file == path.Base(name) })
}

// most is what is said of a lock file.
func most(list []string) []string {
	const named = 20
	if n := len(list) - named; n > 0 {
		return append(slices.Clone(list[:named]), fmt.Sprintf("and %d more", n))
	}
	return list
}

// manifestDiffers reports whether a manifest at or beneath a directory asks for something else.
func manifestDiffers(base, now Files, dir string) (bool, error) {
	for _, name := range now.Paths {
		if foreign(name) || !below(path.Dir(name), dir) || !isNodeManifest(name) {
			continue
		}
		is, err := now.Text(name)
		if err != nil {
			return false, err
		}
		was, err := base.Text(name)
		if err != nil {
			return false, err
		}
		if path.Base(name) == "package.json" {
			is, was = askedBy(is).all, askedBy(was).all
		}
		if string(is) != string(was) {
			return true, nil
		}
	}
	return false, nil
}

// lockDiff is how a lock file differs from what it was.
type lockDiff struct{ wrong, moved []string }

// diffLocks compares what lock files say. With aliases, names that whoever asks gives to
// other packages are right.
func diffLocks(before, now Files, name string, aliases bool) (d lockDiff, err error) {
	was, err := before.Text(name)
	if err != nil {
		return d, err
	}
	is, err := now.Text(name)
	if err != nil || string(is) == string(was) {
		return d, err
	}
	if is == nil {
		d.moved = []string{"it was removed"}
		return d, nil
	}
	after, err := entriesOf(name, is)
	if err != nil {
		d.wrong = []string{"it cannot be read: " + text.Clip(text.OneLine(err.Error()), 300)}
		return d, nil
	}
	had, _ := entriesOf(name, was) // of one that could not be read nothing was known
	d.compare(had, after, aliases)
	return d, nil
}

func (d *lockDiff) compare(had, now []lockEntry, aliases bool) {
	left := slices.DeleteFunc(slices.Clone(had), func(e lockEntry) bool { return slices.Contains(now, e) })
	for _, e := range now {
		if slices.Contains(had, e) {
			continue
		}
		for _, why := range e.faults(had, now, aliases) {
			d.wrong = append(d.wrong, e.String()+" "+why)
		}
		from := slices.IndexFunc(left, func(l lockEntry) bool { return l.at == e.at && l.as == e.as })
		if from < 0 {
			d.moved = append(d.moved, e.String()+" came in"+e.source())
			continue
		}
		if said := e.since(left[from]); said != "" {
			d.moved = append(d.moved, said)
		}
		left = slices.Delete(left, from, from+1)
	}
	for _, e := range left {
		d.moved = append(d.moved, e.String()+" is gone")
	}
	slices.Sort(d.wrong)
	slices.Sort(d.moved)
	d.wrong, d.moved = slices.Compact(d.wrong), slices.Compact(d.moved)
}

// String names an entry for people.
func (e lockEntry) String() string {
	return strings.TrimSpace(text.Clip(text.OneLine(e.as), 120) + " " + text.Clip(text.OneLine(e.version), 60))
}

func (e lockEntry) source() string {
	if e.address == "" {
		return ""
	}
	return " from " + shownAddress(e.address)
}

// since is how an entry differs from the one in whose place it is.
func (e lockEntry) since(was lockEntry) string {
	switch {
	case was.name != e.name:
		return e.as + " was " + was.name + " " + was.version + " and is " + e.name + " " + e.version + e.source()
	case was.version != e.version:
		return (lock.Package{Name: e.as, Version: e.version, From: was.version}).String() + e.source()
	case was.address != e.address:
		return e.String() + " was from " + shownAddress(was.address) + " and is from " + shownAddress(e.address)
	case was.sum != e.sum:
		return e.String() + " had the checksum " + orNone(was.sum) + " and has " + orNone(e.sum)
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return text.Clip(text.OneLine(s), 120)
}

// shownAddress is an address without what may be a password in it.
func shownAddress(address string) string {
	if address == "" {
		return "the registry"
	}
	if u, err := url.Parse(address); err == nil && u.User != nil {
		u.User = nil
		address = u.String()
	}
	return text.Clip(text.OneLine(address), 200)
}

// faults are why an entry is not that of its package.
func (e lockEntry) faults(had, now []lockEntry, aliases bool) (out []string) {
	if e.as != e.name && !(aliases && e.alias) && !slices.ContainsFunc(had, func(h lockEntry) bool { return h.as == e.as && h.name == e.name }) {
		out = append(out, "is another package, "+text.Clip(text.OneLine(e.name+" "+e.version), 200))
	}
	if e.address != "" && !slices.ContainsFunc(had, func(h lockEntry) bool { return h.name == e.name && h.version == e.version && h.address == e.address }) {
		if registry, ok := e.registry(); !ok {
			out = append(out, "comes from "+shownAddress(e.address)+", which is not the archive of that name and version")
		} else if !wasAsked(registry, had) {
			out = append(out, "comes from "+shownAddress(e.address)+", a registry that the lock file did not name before")
		}
	}
	if e.noSum {
		return out
	}
	sums, any := map[string]bool{}, false
	for _, h := range had {
		any = any || h.sum != ""
		if h.name == e.name && h.version == e.version && h.sum != "" {
			sums[h.sum] = true
		}
	}
	if len(sums) > 0 && !sums[e.sum] {
		out = append(out, "has another checksum than before")
	} else if e.sum == "" && any {
		out = append(out, "has no checksum")
	}
	if i := slices.IndexFunc(now, func(o lockEntry) bool {
		return e.sum != "" && o.sum == e.sum && (o.name != e.name || o.version != e.version)
	}); i >= 0 {
		out = append(out, "has the checksum of "+now[i].String())
	}
	return out
}

// registry is where an entry's archive is from, if it is the one of its name and version.
func (e lockEntry) registry() (string, bool) {
	address, err := url.PathUnescape(e.address)
	if err != nil {
		return "", false
	}
	address, _, _ = strings.Cut(address, "#")
	for _, file := range []string{path.Base(e.name), e.name} {
		if at, ok := strings.CutSuffix(address, "/"+e.name+"/-/"+file+"-"+e.version+".tgz"); ok {
			return at, true
		}
	}
	return "", false
}

// wasAsked reports whether a registry is the public one, or one that entries were from.
func wasAsked(registry string, had []lockEntry) bool {
	return publicPackages.MatchString(registry) || slices.ContainsFunc(had, func(h lockEntry) bool {
		at, ok := h.registry()
		return ok && at == registry
	})
}

// entriesOf reads a lock file. Names of fields count to the letter, as they do for those who
// install by it.
func entriesOf(name string, content []byte) ([]lockEntry, error) {
	switch {
	case content == nil:
		return nil, nil
	case path.Ext(name) == ".json":
		return npmEntries(content)
	case path.Base(name) == "pnpm-lock.yaml":
		return pnpmEntries(content)
	case isBerry(content):
		return berryEntries(content)
	}
	return yarnEntries(content)
}

func textOf(m map[string]any, key string) string {
	switch v := m[key].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func tableOf(m map[string]any, key string) map[string]any {
	t, _ := m[key].(map[string]any)
	return t
}

func npmEntries(content []byte) ([]lockEntry, error) {
	var file map[string]any
	if err := untrusted.JSON(content, &file); err != nil {
		return nil, err
	}
	out := npmOld(nil, "dependencies", tableOf(file, "dependencies"), 0)
	aliases := aliasesIn(tableOf(file, "packages"))
	for at, v := range tableOf(file, "packages") {
		p, _ := v.(map[string]any)
		_, as, ok := cutLast(at, "node_modules/")
		if !ok {
			continue // of the repository itself
		}
		e := lockEntry{at: at, as: as, name: as, version: textOf(p, "version"), address: textOf(p, "resolved"), sum: textOf(p, "integrity")}
		if own := textOf(p, "name"); own != "" {
			e.name, e.alias = own, aliases[as+"="+own]
		}
		e.noSum = p["link"] == true || p["inBundle"] == true && e.address == ""
		out = append(out, e)
	}
	return out, nil
}

// aliasesIn are the names by which packages ask for others: NAME=THE OTHER'S.
func aliasesIn(packages map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, v := range packages {
		p, _ := v.(map[string]any)
		for _, kind := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
			for as, spec := range tableOf(p, kind) {
				if _, name := specName(as + "@" + fmt.Sprint(spec)); name != as {
					out[as+"="+name] = true
				}
			}
		}
	}
	return out
}

// npmOld reads what npm 6 installs by.
func npmOld(out []lockEntry, at string, table map[string]any, depth int) []lockEntry {
	for as, v := range table {
		p, _ := v.(map[string]any)
		e := lockEntry{at: at + ">" + as, as: as, name: as, version: textOf(p, "version"), address: textOf(p, "resolved"), sum: textOf(p, "integrity")}
		if spec, ok := strings.CutPrefix(e.version, "npm:"); ok {
			e.name, e.version, _ = cutLast(spec, "@")
			e.alias = true // npm 6 says no more
		}
		if strings.Contains(e.version, ":") && e.address == "" {
			e.address = e.version // a git address, or a place
		}
		e.noSum = p["bundled"] == true && e.address == "" || e.address == e.version
		out = append(out, e)
		if depth < 50 {
			out = npmOld(out, e.at, tableOf(p, "dependencies"), depth+1)
		}
	}
	return out
}

var pnpmKey = lazyregexp.New(`^/?((?:@[\w.~-]+/)?[\w.~-]+)[@/](\d[A-Za-z0-9.+-]*)(?:$|[_(])`)

func pnpmEntries(content []byte) ([]lockEntry, error) {
	var file map[string]any
	if err := untrusted.YAML(content, &file); err != nil {
		return nil, err
	}
	var out []lockEntry
	for key, v := range tableOf(file, "packages") {
		p, _ := v.(map[string]any)
		from := tableOf(p, "resolution")
		e := lockEntry{at: key, as: key, name: key, address: textOf(from, "tarball"), sum: textOf(from, "integrity")}
		if m := pnpmKey.FindStringSubmatch(key); m != nil {
			e.at, e.as, e.name, e.version = m[1], m[1], m[1], m[2]
		}
		for _, other := range []string{"repo", "directory", "path", "type"} {
			if said := textOf(from, other); said != "" && e.address == "" {
				e.address = said + " " + textOf(from, "commit")
			}
		}
		out = append(out, e)
	}
	for _, section := range []string{"packages", "snapshots", "importers"} {
		for who, v := range tableOf(file, section) {
			of, _ := v.(map[string]any)
			out = pnpmEdges(out, section+">"+who, of)
		}
	}
	return pnpmEdges(out, "", file), nil
}

// pnpmEdges adds where a package is found by another name than its own, or is none of a registry.
func pnpmEdges(out []lockEntry, who string, of map[string]any) []lockEntry {
	for _, kind := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
		for as, v := range tableOf(of, kind) {
			is, _ := v.(map[string]any)
			said := textOf(is, "version")
			if is == nil {
				said = fmt.Sprint(v)
			}
			if said == "" || said[0] >= '0' && said[0] <= '9' {
				continue
			}
			e := lockEntry{at: who, as: as, name: as, address: said, noSum: true}
			if m := pnpmKey.FindStringSubmatch(said); m != nil {
				e.name, e.version, e.address = m[1], m[2], ""
				_, asked := specName(as + "@" + textOf(is, "specifier"))
				e.alias = asked == e.name
			}
			out = append(out, e)
		}
	}
	return out
}

// specName are the name that a spec of Yarn is found by, and the package's own.
func specName(spec string) (as, name string) {
	as = spec
	if i := strings.Index(spec[min(1, len(spec)):], "@"); i >= 0 {
		as, spec = spec[:i+1], spec[i+2:]
	} else {
		spec = ""
	}
	name = as
	if of, ok := strings.CutPrefix(spec, "npm:"); ok && strings.Contains(of[min(1, len(of)):], "@") {
		name, _, _ = cutLast(of, "@")
	}
	return as, name
}

func berryEntries(content []byte) ([]lockEntry, error) {
	var file map[string]any
	if err := untrusted.YAML(content, &file); err != nil {
		return nil, err
	}
	var out []lockEntry
	for header, v := range file {
		p, _ := v.(map[string]any)
		if header == "__metadata" || strings.Contains(textOf(p, "resolution"), "@workspace:") && strings.Contains(header, "@workspace:") {
			continue
		}
		locator := textOf(p, "resolution")
		name, _ := specName(locator)
		reference := strings.TrimPrefix(strings.TrimPrefix(locator, name), "@")
		e := lockEntry{at: header, name: name, version: textOf(p, "version"), sum: textOf(p, "checksum")}
		if plain, params, _ := strings.Cut(reference, "::"); plain != "npm:"+e.version {
			e.address = reference
		} else if archive, ok := strings.CutPrefix(params, "__archiveUrl="); ok {
			e.address, _ = url.QueryUnescape(archive)
		} else {
			e.address = params
		}
		for spec := range strings.SplitSeq(header, ",") {
			var asked string
			e.as, asked = specName(strings.TrimSpace(spec))
			e.alias = asked == e.name
			out = append(out, e)
		}
	}
	return out, nil
}

// yarnEntries reads a lock file of Yarn 1.
func yarnEntries(content []byte) ([]lockEntry, error) {
	var out []lockEntry
	var header []string
	fields := map[string]string{}
	end := func() {
		for _, spec := range header {
			as, name := specName(spec)
			e := lockEntry{at: strings.Join(header, ", "), as: as, name: name, alias: true,
				version: fields["version"], address: fields["resolved"], sum: fields["integrity"]}
			if _, sha, ok := strings.Cut(e.address, "#"); ok && e.sum == "" {
				e.sum = sha
			}
			out = append(out, e)
		}
		header, fields = nil, map[string]string{}
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\r\n")
		rest := strings.TrimLeft(line, " ")
		switch indent := len(line) - len(rest); {
		case rest == "" || strings.HasPrefix(rest, "#"):
		case indent == 0:
			end()
			for spec := range strings.SplitSeq(strings.TrimSuffix(rest, ":"), ",") {
				header = append(header, strings.Trim(strings.TrimSpace(spec), `"`))
			}
		case indent == 2:
			key, value, _ := strings.Cut(rest, " ")
			key = strings.Trim(key, `":`)
			if _, twice := fields[key]; twice {
				return nil, fmt.Errorf("%s has %s twice", header, key)
			}
			fields[key] = strings.Trim(value, `" `)
		}
	}
	end()
	return out, nil
}
