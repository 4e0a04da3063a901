package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Old payloads go, of what was done alone; the rows stay, so that repeats are known.
func TestPruneDeliveries(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		old := now.AddDate(0, 0, -40)
		var list []record.Delivery
		for i := range pruneAtOnce + 20 { // more than one step
			list = append(list, record.Delivery{GUID: fmt.Sprintf("old-%03d", i), Event: "issues", Received: old, Payload: []byte("{}")})
		}
		list = append(list, record.Delivery{GUID: "waits", Event: "issues", Received: old, Payload: []byte("{}")},
			record.Delivery{GUID: "late", Event: "issues", Received: old, Payload: []byte("{}")})
		must(t, d.KeepDeliveries(ctx, list))
		must(t, d.KeepDeliveries(ctx, []record.Delivery{{GUID: "new", Event: "issues", Received: now, Payload: []byte("{}")}}))
		for _, v := range list[:len(list)-2] {
			_, err := d.FinishDelivery(ctx, nil, v.GUID, "done", false, old)
			must(t, err)
		}
		for _, guid := range []string{"late", "new"} {
			_, err := d.FinishDelivery(ctx, nil, guid, "done", false, now)
			must(t, err)
		}
		before := now.AddDate(0, 0, -30)
		for _, wanted := range []int64{pruneAtOnce + 20, 0} {
			n, err := d.PruneDeliveries(ctx, before)
			must(t, err)
			want(t, "pruned", n, wanted)
		}
		for guid, payload := range map[string]string{"old-000": "", "old-519": "", "waits": "{}", "late": "{}", "new": "{}"} {
			v, err := d.Delivery(ctx, guid)
			must(t, err)
			want(t, "payload of "+guid, string(v.Payload), payload)
		}
		must(t, d.KeepDeliveries(ctx, list[:1]))
		waiting, err := d.WaitingDeliveries(ctx, now, 10)
		must(t, err)
		want(t, "deliveries that wait after a repeat", len(waiting), 1)
	})
}

// Of what nothing followed from nothing stays: anybody can make as much of it as they like.
func TestPruneQuietDeliveries(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		old := now.AddDate(0, 0, -121)
		of := func(guid, outcome string, at time.Time) record.Delivery {
			return record.Delivery{GUID: guid, Event: "issues", Received: at, Payload: []byte("{}"), Outcome: outcome}
		}
		must(t, d.KeepDeliveries(ctx, []record.Delivery{of("quiet", "nothing to do", old), of("heard", "", old),
			of("waits", "", old), of("young", "nothing to do", now.AddDate(0, 0, -119))}))
		_, err := d.FinishDelivery(ctx, nil, "heard", "a run was started", false, old)
		must(t, err)
		_, err = d.PruneDeliveries(ctx, now.AddDate(0, 0, -30))
		must(t, err)
		list, err := d.Deliveries(ctx, DeliveryFilter{})
		must(t, err)
		var left []string
		for _, v := range list {
			left = append(left, v.GUID)
		}
		slices.Sort(left)
		want(t, "deliveries that stay", strings.Join(left, " "), "heard waits young")
	})
}

// Old tapes go, of runs that have ended alone.
func TestPruneTapes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		ended, active := begin(t, d, 1), begin(t, d, 2)
		must(t, d.Append(ctx, ended, []pipeline.Event{ev("end", pipeline.EventRunCancelled, 1, pipeline.Data{})}, nil))
		for _, run := range []*pipeline.Run{ended, active} {
			must(t, d.TapeRecord(ctx, run.ID, "plan", 1, "h", []byte("answer")))
		}
		for _, step := range []struct {
			before                time.Time
			pruned, ended, active int
		}{{now, 0, 1, 1}, {now.Add(time.Hour), 1, 0, 1}, {now.Add(time.Hour), 0, 0, 1}} {
			n, err := d.PruneTapes(ctx, step.before)
			must(t, err)
			want(t, "pruned", n, step.pruned)
			for run, calls := range map[*pipeline.Run]int{ended: step.ended, active: step.active} {
				tape, err := d.TapeAll(ctx, run.ID)
				must(t, err)
				want(t, fmt.Sprintf("calls of run %d", run.ID), len(tape), calls)
			}
		}
	})
}
