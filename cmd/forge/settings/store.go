package settings

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"forge/pipeline/store"
)

// OpenStore opens the configured database beside a server that may be using it.
func (c Config) OpenStore(ctx context.Context, log *slog.Logger) (*store.DB, error) {
	if err := c.MakeStateDir(); err != nil {
		return nil, err
	}
	return store.Open(ctx, c.DatabaseURL.Reveal(), log)
}

// MakeStateDir makes the directory that holds everything. The worker's user may
// pass through it, and read nothing in it.
func (c Config) MakeStateDir() error {
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	return nil
}
