package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Covers reliability 9: a panic in what goes on beside the engine is told, and that begins
// anew after a while; the server goes on, and so does everything else.
func TestPanicBeside(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := &Server{App: &App{log: slog.New(slog.NewTextHandler(&log, nil))}}
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	var waits []time.Duration
	s.keepGoing(ctx, "learning", func(_ context.Context, d time.Duration) bool {
		waits = append(waits, d)
		return true
	}, func(context.Context) {
		if begun++; begun < 3 {
			panic("a poisonous run")
		}
		cancel()
	})
	if begun != 3 || len(waits) != 2 || waits[0] < time.Second {
		t.Errorf("it began %d times, after %v", begun, waits)
	}
	if text := log.String(); strings.Count(text, "a poisonous run") != 2 || !strings.Contains(text, "learning") || !strings.Contains(text, "TestPanicBeside") {
		t.Errorf("the log does not tell what and where: %s", text)
	}
	s.keepGoing(ctx, "learning", func(context.Context, time.Duration) bool { return false }, func(context.Context) { panic("at the end") })
}
