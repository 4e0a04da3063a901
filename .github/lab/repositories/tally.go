package repositories

import (
	"context"
	"log/slog"
	"sync"
)

// tally is a log that counts test commands, and how long they took.
type tally struct {
	mu     sync.Mutex
	millis []int64
	first  map[string]int64 // by command
}

// Enabled wants what says that a command is done.
func (t *tally) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle takes a line.
func (t *tally) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "suite done" {
		return nil
	}
	var command string
	var ms int64
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "command":
			command = a.Value.String()
		case "ms":
			ms = a.Value.Int64()
		}
		return true
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.first = map[string]int64{}
	}
	if _, ran := t.first[command]; !ran {
		t.first[command] = ms
	}
	t.millis = append(t.millis, ms)
	return nil
}

// WithAttrs and WithGroup say nothing of interest.
func (t *tally) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup is as WithAttrs.
func (t *tally) WithGroup(string) slog.Handler { return t }

// sums are how many commands ran, how long all of them took, and the first of each, in seconds.
func (t *tally) sums() (n int, all, plain float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ms := range t.millis {
		all += float64(ms) / 1000
	}
	for _, ms := range t.first {
		plain += float64(ms) / 1000
	}
	return len(t.millis), all, plain
}
