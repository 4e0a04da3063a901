package server

import (
	"context"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/memory"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
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

func (s storeAdapter) DeadDeliveries(ctx context.Context, limit int) ([]record.Delivery, error) {
	return s.Deliveries(ctx, store.DeliveryFilter{State: record.DeliveryDead, Limit: limit})
}

// deliveryKeeper lets the webhook keep deliveries in the store.
type deliveryKeeper struct {
	db   *store.DB
	wake func() // called when there is something of production; may be nil
}

// KeepDeliveries implements the webhook's keeper.
func (k deliveryKeeper) KeepDeliveries(ctx context.Context, list []record.Delivery) error {
	other := false
	for i := range list {
		if incidents.Concerns(list[i].Event) {
			list[i].Lane, other = incidents.Lane, true
		}
	}
	err := k.db.KeepDeliveries(ctx, list)
	if err == nil && other && k.wake != nil {
		k.wake()
	}
	return err
}
