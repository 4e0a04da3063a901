package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/gorilla/mux"

	"forge/webhook"
)

// Receive takes webhooks in while there is no server yet, and keeps them for it, until
// stop is called.
func Receive(ctx context.Context, o Options) (stop func(), err error) {
	db, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	hooks, err := webhook.New(deliveryKeeper{db: db}, o.Log, webhook.Options{Secret: []byte(o.Config.WebhookSecret.Reveal())})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	l, err := net.Listen("tcp", o.Config.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", o.Config.Listen, err), db.Close())
	}
	r := mux.NewRouter()
	hooks.Route(r)
	s := newHTTPServer(r, o.Log)
	hooks.Start(ctx)
	go func() { _ = s.Serve(l) }() // ends with stop
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = errors.Join(s.Shutdown(ctx), hooks.Stop(ctx), db.Close()) // what is kept is on disk
	}, nil
}
