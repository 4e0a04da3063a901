package agent

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// dir is a directory of the map.
type dir struct {
	name  string // from its parent
	dirs  []*dir
	files []string
	count int            // files in it, at any depth
	kinds map[string]int // by extension
	open  bool
}

// repoMap shows a tree of files in at most that many bytes: directories are unfolded
// from the top as far as there is room, the smaller ones first; the others are shown
// as one line with what is in them.
func repoMap(paths []string, most int) string {
	root := readDirs(paths)
	if root.count == 0 {
		return ""
	}
	root.open = true
	size := root.own()
	queue := slices.Clone(root.dirs)
	for depth := 0; len(queue) > 0; depth++ {
		slices.SortStableFunc(queue, func(a, b *dir) int { return cmp.Compare(a.own(), b.own()) })
		var next []*dir
		for _, d := range queue {
			// Unfolding replaces the folded line by one with the name and the content.
			if n := d.own(); size+n <= most {
				size += n
				d.open = true
				next = append(next, d.dirs...)
			}
		}
		queue = next
	}
	var b strings.Builder
	root.write(&b, "")
	out := b.String()
	if len(out) > most { // the top alone is too much
		out = cutWithWord(out, most-100, len(out), "this map")
	}
	return out
}

func readDirs(paths []string) *dir {
	root := &dir{kinds: map[string]int{}}
	known := map[string]*dir{".": root}
	var find func(p string) *dir
	find = func(p string) *dir {
		if d := known[p]; d != nil {
			return d
		}
		parent := find(path.Dir(p))
		d := &dir{name: path.Base(p), kinds: map[string]int{}}
		parent.dirs = append(parent.dirs, d)
		known[p] = d
		return d
	}
	for _, p := range slices.Sorted(slices.Values(paths)) {
		p = path.Clean(p)
		if path.IsAbs(p) || strings.HasPrefix(p, "..") {
			continue
		}
		find(path.Dir(p)).files = append(find(path.Dir(p)).files, path.Base(p))
		for at := path.Dir(p); ; at = path.Dir(at) {
			d := known[at]
			d.count++
			d.kinds[path.Ext(p)]++
			if at == "." {
				break
			}
		}
	}
	return root
}

// own is about how many bytes it takes to unfold the directory.
func (d *dir) own() int {
	n := 4
	for _, f := range d.files {
		n += len(f) + 2
	}
	for _, s := range d.dirs {
		n += len(s.folded()) + 6
	}
	return n
}

// folded is the directory in one line.
func (d *dir) folded() string {
	type kind struct {
		ext string
		n   int
	}
	var kinds []kind
	for ext, n := range d.kinds {
		kinds = append(kinds, kind{ext, n})
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.ext, b.ext)) })
	var most []string
	for _, k := range kinds[:min(3, len(kinds))] {
		if k.ext != "" {
			most = append(most, fmt.Sprintf("%d %s", k.n, k.ext))
		}
	}
	what := "files"
	if d.count == 1 {
		what = "file"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s/ (%d %s: %s", d.name, d.count, what, strings.Join(most, ", ")), ": ") + ")"
}

// write shows the files of a directory in one line, and below it its directories.
func (d *dir) write(b *strings.Builder, indent string) {
	if len(d.files) > 0 {
		b.WriteString(indent + strings.Join(d.files, " ") + "\n")
	}
	for _, s := range d.dirs {
		if !s.open {
			b.WriteString(indent + s.folded() + "\n")
			continue
		}
		b.WriteString(indent + s.name + "/\n")
		s.write(b, indent+"  ")
	}
}
