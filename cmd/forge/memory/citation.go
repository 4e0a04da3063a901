package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"forge/learn"
	"forge/learn/cite"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// What the history of a learning says of the code that it cites.
const (
	staleBecause = "stale: " // it is gone, or is another
	confirmed    = "confirmed: the code that it is about stands"
	movedTo      = "moved: "
)

// citations looks up, in a run's work tree, what learnings cite.
type citations struct {
	ws    agent.Workspace
	files map[string][]byte // nil: it is not there
	known map[string]bool
}

func newCitations(ws agent.Workspace) *citations {
	return &citations{ws: ws, files: map[string][]byte{}, known: map[string]bool{}}
}

// read returns a file, nil when it is not there.
func (c *citations) read(ctx context.Context, path string) ([]byte, error) {
	if !c.known[path] {
		data, err := c.ws.Read(ctx, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && data == nil {
			data = []byte{}
		}
		c.files[path], c.known[path] = data, true
	}
	return c.files[path], nil
}

// look says whether a learning holds in the work tree, and what its history should say of
// that. The paths of one whose code has moved follow it. One that cites no code is looked
// up by its paths.
func (c *citations) look(ctx context.Context, l *pipeline.Learning) (says string, holds bool) {
	_, names := learn.Cites(l)
	list := slices.DeleteFunc(slices.Clone(l.Cites), func(q record.Cite) bool { // people edit words and paths
		return !slices.Contains(names, q.Name) || !slices.Contains(l.Paths, q.File)
	})
	if c.ws == nil || len(list) == 0 {
		if why := c.stale(ctx, l); why != "" {
			return staleBecause + why, false
		}
		return "", true
	}
	var failed error
	t := c.tree(ctx, &failed)
	why, stands := map[string]string{}, map[string]bool{} // by name: in one of the files is enough
	moved := map[string]string{}
	for i := range list {
		q := &list[i]
		got := cite.Look(q, t)
		if failed != nil {
			return "", true // that cannot be told
		}
		if got.Why != "" {
			why[q.Name] = cmp.Or(why[q.Name], got.Why)
			continue
		}
		stands[q.Name] = true
		if got.Moved != "" {
			moved[q.File] = got.Moved
		}
	}
	for _, n := range slices.Sorted(maps.Keys(why)) {
		if !stands[n] {
			return staleBecause + why[n], false
		}
	}
	if len(moved) == 0 {
		if !learn.Checked(l, list) {
			return "", true
		}
		return confirmed, true
	}
	for _, from := range slices.Sorted(maps.Keys(moved)) {
		l.Paths = slices.Clone(l.Paths)
		l.Paths[slices.Index(l.Paths, from)] = moved[from]
		says += ", " + from + " to " + moved[from]
	}
	return movedTo + strings.TrimPrefix(says, ", "), true
}

// mostHaving is how many lines with a name are looked at for where its code has moved.
const mostHaving = 200

// tree is the work tree as what is cited is looked up in it. An error goes to failed.
func (c *citations) tree(ctx context.Context, failed *error) cite.Tree {
	return cite.Tree{
		Read: func(path string) (string, bool) {
			data, err := c.read(ctx, path)
			*failed = errors.Join(*failed, err)
			return string(data), data != nil
		},
		Having: func(name string) (paths []string) {
			lines, err := c.ws.Search(ctx, `\b`+name+`\b`, "", mostHaving)
			*failed = errors.Join(*failed, err)
			for _, l := range lines {
				if p, _, ok := strings.Cut(l, ":"); ok && !slices.Contains(paths, p) {
					paths = append(paths, p)
				}
			}
			return paths
		},
	}
}

// stale says why a learning does not hold any more: all files that it is about are gone,
// or none of the names that it tells of is in them. "" when it holds, or that cannot be
// told.
func (c *citations) stale(ctx context.Context, l *pipeline.Learning) string {
	files, names := learn.Cites(l)
	if c.ws == nil || len(files) == 0 {
		return ""
	}
	var there [][]byte
	for _, f := range files {
		data, err := c.read(ctx, f)
		if err != nil {
			return ""
		}
		if data != nil {
			there = append(there, data)
		}
	}
	if len(there) == 0 {
		return strings.Join(files, ", ") + " is not there any more"
	}
	if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool {
		return slices.ContainsFunc(there, func(data []byte) bool { return bytes.Contains(data, []byte(n)) })
	}) {
		return fmt.Sprintf("%s is not in %s any more", strings.Join(names, ", "), strings.Join(files, ", "))
	}
	return ""
}

// noteOnce writes into a learning's history what became of the code that it is about,
// unless it says so already.
func (m *Learner) noteOnce(ctx context.Context, l *pipeline.Learning, what string) {
	past, err := m.o.DB.History(ctx, l.ID)
	if err == nil && !slices.ContainsFunc(past, func(c store.MemoryChange) bool { return c.What == what }) {
		err = m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return m.o.DB.NoteLearning(ctx, tx, l.ID, pipeline.Actor{}, m.o.Now(), what)
		})
	}
	if err != nil && ctx.Err() == nil {
		m.o.Log.WarnContext(ctx, "note what became of the code that a learning is about", "error", err)
	}
}
