package server

import (
	"context"
	"time"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/memory"
	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/work"
	"forge/webhook"
)

// storeAdapter lets the engine use the store: siblings do not know each other's
// types.
type storeAdapter struct{ *store.DB }

// Learn implements work.Store.
func (s storeAdapter) Learn(ctx context.Context, tx *store.Tx, signals []pipeline.Signal) error {
	for _, v := range signals {
		if _, err := s.LearnSignal(ctx, tx, v, memory.Judge); err != nil {
			return err
		}
	}
	return nil
}

func (s storeAdapter) WaitingDeliveries(ctx context.Context, now time.Time, limit int) ([]work.Delivery, error) {
	list, err := s.DB.WaitingDeliveries(ctx, now, limit)
	return toWork(list), err
}

func (s storeAdapter) DeadDeliveries(ctx context.Context, limit int) ([]work.Delivery, error) {
	list, err := s.Deliveries(ctx, store.DeliveryFilter{State: store.DeliveryDead, Limit: limit})
	return toWork(list), err
}

func toWork(list []store.Delivery) []work.Delivery {
	out := make([]work.Delivery, len(list))
	for i, d := range list {
		out[i] = work.Delivery{GUID: d.GUID, Event: d.Event, Payload: d.Payload, Attempts: d.Attempts, Error: d.Error, Received: d.Received}
	}
	return out
}

// deliveryKeeper lets the webhook keep deliveries in the store.
type deliveryKeeper struct {
	db   *store.DB
	wake func() // called when there is something of production; may be nil
}

// KeepDeliveries implements the webhook's keeper.
func (k deliveryKeeper) KeepDeliveries(ctx context.Context, list []webhook.Delivery) error {
	out := make([]store.Delivery, len(list))
	other := false
	for i, d := range list {
		out[i] = store.Delivery{GUID: d.GUID, Event: d.Event, Action: d.Action, Repo: d.Repo, Received: d.Received, Payload: d.Payload, Outcome: d.Outcome}
		if incidents.Concerns(d.Event) {
			out[i].Lane, other = incidents.Lane, true
		}
	}
	err := k.db.KeepDeliveries(ctx, out)
	if err == nil && other && k.wake != nil {
		k.wake()
	}
	return err
}
