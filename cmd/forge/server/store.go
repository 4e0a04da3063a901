package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

// OpenStore opens the configured database beside a server that may be using it.
func OpenStore(ctx context.Context, cfg settings.Config, log *slog.Logger) (*store.DB, error) {
	return openStore(ctx, Options{Config: cfg, Log: log})
}

func openStore(ctx context.Context, o Options) (*store.DB, error) {
	if err := makeStateDir(o.Config.StateDir); err != nil {
		return nil, err
	}
	return store.Open(ctx, cmp.Or(o.Database, o.Config.DatabaseURL.Reveal()), o.Log)
}

// makeStateDir makes the directory that holds everything. The worker's user may
// pass through it, and read nothing in it.
func makeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	return nil
}
