package deps

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/lock"
	"forge/pipeline/untrusted"
)

// A lock file that was written by hand may say of a package that it comes from another's
// archive, and whoever installs by it gets that one. So an implementer's is not taken, unless
// the package manager made it, and a person's is shown to the reviewer.

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
		now, before, err := e.Both(name)
		if err != nil {
			return nil, err
		}
		if now != nil && !sameLock(name, before, now) {
			wrong = append(wrong, fmt.Sprintf("dependencies: %s is not taken as it was written. Undo that; to have another version, ask for it in the manifest, and the package manager writes the lock file", name))
		}
	}
	return wrong, nil
}

// LockedAlone says what lock files say else than those of a base where no manifest beside
// them asks for something else.
func LockedAlone(base, now Files) (lines []string, err error) {
	names := slices.Concat(base.Paths, now.Paths)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !isNodeLock(name) || foreign(name) {
			continue
		}
		was, err := base.Text(name)
		if err != nil {
			return nil, err
		}
		is, err := now.Text(name)
		if err != nil {
			return nil, err
		}
		if sameLock(name, was, is) {
			continue
		}
		asked, err := manifestDiffers(base, now, path.Dir(name))
		if err != nil {
			return nil, err
		}
		if !asked {
			lines = append(lines, name+": "+strings.Join(most(moved(name, was, is)), "; "))
		}
	}
	return lines, nil
}

// sameLock reports whether two states of a lock file say the same of others' packages: npm's
// has the versions of the repository's own, too, which whoever raises one writes there.
func sameLock(name string, was, is []byte) bool {
	if bytes.Equal(was, is) || path.Ext(name) != ".json" || was == nil || is == nil {
		return bytes.Equal(was, is)
	}
	var a, b map[string]any
	if untrusted.JSON(was, &a) != nil || untrusted.JSON(is, &b) != nil {
		return false
	}
	for _, file := range []map[string]any{a, b} {
		delete(file, "name")
		delete(file, "version")
		for at := range tableOf(file, "packages") {
			if !strings.Contains(at, "node_modules/") {
				delete(tableOf(file, "packages"), at)
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// moved are the packages that two states of a lock file say something else of.
func moved(name string, was, is []byte) (out []string) {
	if is == nil {
		return []string{"it was removed"}
	}
	had, now := lockedIn(name, was), lockedIn(name, is)
	for _, came := range cameIn(&Project{}, had, now, nil) {
		out = append(out, (lock.Package{Name: came.Name, Version: came.Version, From: came.From}).String())
	}
	for pkg := range had {
		if now[pkg] == nil {
			out = append(out, pkg+" is gone")
		}
	}
	if slices.Sort(out); len(out) == 0 {
		out = []string{"of the same packages something else"}
	}
	return out
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

// lockEntry is a version of a package in a lock file.
type lockEntry struct {
	as      string // the name that it is found by
	name    string // its own
	version string
}

// entriesOf reads a lock file.
func entriesOf(name string, content []byte) ([]lockEntry, error) {
	switch {
	case path.Ext(name) == ".json":
		return npmEntries(content)
	case path.Base(name) == "pnpm-lock.yaml":
		return pnpmEntries(content)
	case isBerry(content):
		return berryEntries(content)
	}
	return yarnEntries(content), nil
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
	out := npmOld(nil, tableOf(file, "dependencies"), 0)
	for at, v := range tableOf(file, "packages") {
		p, _ := v.(map[string]any)
		if _, as, ok := cutLast(at, "node_modules/"); ok { // others are the repository's own
			out = append(out, lockEntry{as, cmp.Or(textOf(p, "name"), as), textOf(p, "version")})
		}
	}
	return out, nil
}

// npmOld reads what npm 6 installs by.
func npmOld(out []lockEntry, table map[string]any, depth int) []lockEntry {
	for as, v := range table {
		p, _ := v.(map[string]any)
		e := lockEntry{as, as, textOf(p, "version")}
		if spec, ok := strings.CutPrefix(e.version, "npm:"); ok {
			e.name, e.version, _ = cutLast(spec, "@")
		}
		if out = append(out, e); depth < 50 {
			out = npmOld(out, tableOf(p, "dependencies"), depth+1)
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
	for key := range tableOf(file, "packages") {
		if m := pnpmKey.FindStringSubmatch(key); m != nil {
			out = append(out, lockEntry{m[1], m[1], m[2]})
		}
	}
	return out, nil
}

// nameIn is the name that a spec of Yarn (NAME@RANGE) is found by.
func nameIn(spec string) string {
	if i := strings.Index(spec[min(1, len(spec)):], "@"); i >= 0 {
		return spec[:i+1]
	}
	return spec
}

func berryEntries(content []byte) ([]lockEntry, error) {
	var file map[string]any
	if err := untrusted.YAML(content, &file); err != nil {
		return nil, err
	}
	var out []lockEntry
	for header, v := range file {
		p, _ := v.(map[string]any)
		if header == "__metadata" || strings.Contains(header, "@workspace:") {
			continue
		}
		for spec := range strings.SplitSeq(header, ",") {
			out = append(out, lockEntry{nameIn(strings.TrimSpace(spec)), nameIn(textOf(p, "resolution")), textOf(p, "version")})
		}
	}
	return out, nil
}

// yarnEntries reads a lock file of Yarn 1.
func yarnEntries(content []byte) (out []lockEntry) {
	var header []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\r\n")
		version, ok := strings.CutPrefix(line, "  version ")
		switch {
		case ok:
			for _, spec := range header {
				as := nameIn(spec)
				name := as
				if of, alias := strings.CutPrefix(spec, as+"@npm:"); alias && strings.Contains(of[min(1, len(of)):], "@") {
					name, _, _ = cutLast(of, "@")
				}
				out = append(out, lockEntry{as, name, strings.Trim(version, `" `)})
			}
		case line != "" && line[0] != ' ' && line[0] != '#':
			header = nil
			for spec := range strings.SplitSeq(strings.TrimSuffix(line, ":"), ",") {
				header = append(header, strings.Trim(strings.TrimSpace(spec), `"`))
			}
		}
	}
	return out
}
