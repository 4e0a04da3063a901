package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
)

// staleBecause begins what the history of a learning says when what it cites is gone.
const staleBecause = "stale: "

// citations looks up, in a run's work tree, what learnings cite.
type citations struct {
	ws    agent.Workspace
	files map[string][]byte // nil: it is not there
	known map[string]bool
}

func newCitations(ws agent.Workspace) *citations {
	return &citations{ws: ws, files: map[string][]byte{}, known: map[string]bool{}}
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
		if !c.known[f] {
			data, err := c.ws.Read(ctx, f)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return ""
			}
			if err == nil && data == nil {
				data = []byte{}
			}
			c.files[f], c.known[f] = data, true
		}
		if c.files[f] != nil {
			there = append(there, c.files[f])
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

// noteStale writes into a learning's history, once, that it was left out.
func (m *Learner) noteStale(ctx context.Context, l *pipeline.Learning, why string) {
	past, err := m.o.DB.History(ctx, l.ID)
	if err == nil && !slices.ContainsFunc(past, func(c store.MemoryChange) bool { return c.What == staleBecause+why }) {
		err = m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return m.o.DB.NoteLearning(ctx, tx, l.ID, pipeline.Actor{}, m.o.Now(), staleBecause+why)
		})
	}
	if err != nil && ctx.Err() == nil {
		m.o.Log.WarnContext(ctx, "note that a learning is stale", "error", err)
	}
}
