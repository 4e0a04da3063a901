package server

import (
	"context"

	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

func openStore(ctx context.Context, o Options) (*store.DB, error) {
	if o.Database != "" {
		o.Config.DatabaseURL = settings.NewSecret(o.Database)
	}
	return o.Config.OpenStore(ctx, o.Log)
}
