package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/record"
)

const ttl = 20 * time.Second

func dueNow(t *testing.T, d *DB, at time.Time) string {
	t.Helper()
	ids, _, err := d.Due(t.Context(), at, 0)
	must(t, err)
	return strings.Trim(fmt.Sprint(ids), "[]")
}

// Covers reliability 14 and 16: a run has one worker at a time, whatever the clock does.
func TestLease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		id := fmt.Sprint(run.ID)
		lease := func(owner string, at time.Time) bool {
			t.Helper()
			ok, err := d.Lease(ctx, run.ID, owner, at, ttl)
			must(t, err)
			return ok
		}
		renew := func(owner string, at time.Time) bool {
			t.Helper()
			ok, err := d.Renew(ctx, run.ID, owner, at, ttl)
			must(t, err)
			return ok
		}
		want(t, "due at first", dueNow(t, d, now), id)
		want(t, "a takes it", lease("a", now), true)
		want(t, "a takes it twice", lease("a", now), false)
		want(t, "b takes it", lease("b", now.Add(ttl-1000)), false)
		want(t, "b takes it as the clock jumps back", lease("b", now.Add(-10*time.Minute)), false)
		want(t, "due while leased", dueNow(t, d, now), "")
		want(t, "a renews", renew("a", now.Add(5*time.Second)), true)
		want(t, "b renews", renew("b", now), false)
		want(t, "due when a is late", dueNow(t, d, now.Add(ttl+5*time.Second)), id)
		want(t, "b takes over", lease("b", now.Add(ttl+5*time.Second)), true)
		want(t, "a renews too late", renew("a", now.Add(ttl+6*time.Second)), false)
		ok, err := d.Release(ctx, run.ID, "a", run.Seq)
		must(t, err)
		want(t, "a releases", ok, false)
		must(t, d.Drop(ctx, run.ID, "a"))
		want(t, "due after a dropped what it has not", dueNow(t, d, now.Add(ttl+6*time.Second)), "")
		seq := run.Seq
		add(t, d, run, story()[0]...)
		ok, err = d.Release(ctx, run.ID, "b", seq)
		must(t, err)
		want(t, "b releases although something arrived", ok, false)
		ok, err = d.Release(ctx, run.ID, "b", run.Seq)
		must(t, err)
		want(t, "b releases", ok, true)
		want(t, "due after release", dueNow(t, d, now), "")
		add(t, d, run, story()[1]...)
		want(t, "due after an event", dueNow(t, d, now), id)
		want(t, "c takes it", lease("c", now), true)
		must(t, d.Drop(ctx, run.ID, "c"))
		want(t, "due after drop", dueNow(t, d, now), id)
		if _, err := d.Lease(ctx, run.ID, "", now, ttl); err == nil {
			t.Error("no error for a lease without an owner")
		}
	})
}

func TestPostpone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		ok, err := d.Lease(t.Context(), run.ID, "a", now, ttl)
		must(t, err)
		want(t, "lease", ok, true)
		ok, err = d.Postpone(t.Context(), run.ID, "a", run.Seq, now.Add(time.Hour))
		must(t, err)
		want(t, "postpone", ok, true)
		want(t, "due too early", dueNow(t, d, now.Add(time.Hour-time.Second)), "")
		want(t, "due in time", dueNow(t, d, now.Add(time.Hour)), fmt.Sprint(run.ID))
		add(t, d, run, story()[0]...)
		want(t, "due after an event", dueNow(t, d, now), fmt.Sprint(run.ID))
	})
}

func TestClearLeases(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		_, err := d.Lease(t.Context(), run.ID, "gone", now, time.Hour)
		must(t, err)
		must(t, d.ClearLeases(t.Context()))
		due := dueNow(t, d, now)
		if d.Pool() == nil {
			want(t, "due", due, fmt.Sprint(run.ID))
		} else {
			want(t, "due: the lease may be another server's", due, "")
		}
	})
}

func TestLeaseRace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		var wg sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for w := range 6 {
			wg.Go(func() {
				ok, err := d.Lease(context.Background(), run.ID, fmt.Sprint("w", w), now, ttl)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if ok {
					got++
				}
			})
		}
		wg.Wait()
		want(t, "owners", got, 1)
	})
}

func delivery(guid string) record.Delivery {
	return record.Delivery{GUID: guid, Event: "issues", Action: "labeled", Repo: "acme/site", Received: now,
		Payload: []byte(`{"action":"labeled","n":"` + guid + `"}`)}
}

func waiting(t *testing.T, d *DB, at time.Time) string {
	t.Helper()
	list, err := d.WaitingDeliveries(t.Context(), at, 0)
	must(t, err)
	var ids []string
	for _, v := range list {
		ids = append(ids, v.GUID)
	}
	return strings.Join(ids, " ")
}

// Covers reliability 3 and 9.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		must(t, d.KeepDeliveries(ctx, []record.Delivery{delivery("a"), delivery("b"), delivery("a")}))
		again := delivery("a")
		again.Payload = []byte("another")
		must(t, d.KeepDeliveries(ctx, []record.Delivery{again, delivery("c")}))
		must(t, d.KeepDeliveries(ctx, nil))
		want(t, "waiting", waiting(t, d, now), "a b c")
		a, err := d.Delivery(ctx, "a")
		must(t, err)
		wanted := delivery("a")
		wanted.ID, wanted.State = a.ID, record.DeliveryWaiting
		if diff := cmp.Diff(&wanted, a); diff != "" {
			t.Errorf("Delivery: %s", diff)
		}
		ok, err := d.FinishDelivery(ctx, nil, "a", "started run 1", false, now)
		must(t, err)
		want(t, "finish", ok, true)
		ok, err = d.FinishDelivery(ctx, nil, "a", "again", false, now)
		must(t, err)
		want(t, "finish twice", ok, false)
		want(t, "waiting", waiting(t, d, now), "b c")
		boom := errors.New("boom")
		err = d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if ok, err := d.FinishDelivery(ctx, tx, "b", "nothing", true, now); err != nil || !ok {
				t.Errorf("finish in a transaction: %v %v", ok, err)
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Error(err)
		}
		want(t, "waiting after a roll-back", waiting(t, d, now), "b c")
		if _, err := d.Delivery(ctx, "none"); !errors.Is(err, ErrNotFound) {
			t.Errorf("Delivery of nothing: %v", err)
		}
		if err := d.KeepDeliveries(ctx, []record.Delivery{{}}); err == nil {
			t.Error("no error for a delivery without GUID")
		}
		list, err := d.Deliveries(ctx, DeliveryFilter{State: record.DeliveryDone, Repo: "acme/site", Before: 1 << 40})
		must(t, err)
		if len(list) != 1 || list[0].Outcome != "started run 1" || list[0].Attempts != 1 || !list[0].Finished.Equal(now) || list[0].Payload != nil {
			t.Errorf("Deliveries: %+v", list)
		}
	})
}

// Covers reliability 9: poison is put aside after five tries and can be driven again.
func TestDeadDelivery(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		must(t, d.KeepDeliveries(ctx, []record.Delivery{delivery("a"), delivery("b")}))
		for n := range maxAttempts {
			at := now.Add(time.Duration(n) * time.Minute)
			want(t, fmt.Sprint("waiting before attempt ", n+1), waiting(t, d, at), "a b")
			must(t, d.FailDelivery(ctx, "a", "bad \xff\x00 text", at.Add(time.Minute)))
			want(t, "waiting at once", waiting(t, d, at), "b")
		}
		want(t, "waiting ever", waiting(t, d, now.Add(time.Hour)), "b")
		dead, err := d.Deliveries(ctx, DeliveryFilter{State: record.DeliveryDead})
		must(t, err)
		if len(dead) != 1 || dead[0].GUID != "a" || dead[0].Attempts != 5 || dead[0].Error != "bad \uFFFD\uFFFD text" {
			t.Errorf("dead: %+v", dead)
		}
		must(t, d.RetryDelivery(ctx, "a"))
		want(t, "waiting after retry", waiting(t, d, now), "a b")
		_, err = d.FinishDelivery(ctx, nil, "a", "fine", false, now)
		must(t, err)
		if err := d.RetryDelivery(ctx, "a"); !errors.Is(err, ErrConflict) {
			t.Errorf("retry of a handled one: %v", err)
		}
		if err := d.RetryDelivery(ctx, "none"); !errors.Is(err, ErrNotFound) {
			t.Errorf("retry of nothing: %v", err)
		}
		must(t, d.FailDelivery(ctx, "a", "too late", now))
		v, err := d.Delivery(ctx, "a")
		must(t, err)
		want(t, "state of a handled one that fails late", v.State, record.DeliveryDone)
	})
}

// Two servers get the same deliveries in different orders at the same time.
func TestKeepDeliveriesRace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		const n = 100
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				var list []record.Delivery
				for i := range n {
					list = append(list, delivery(fmt.Sprintf("g%03d", (i*(2*w+1))%n)))
				}
				if err := d.KeepDeliveries(context.Background(), list); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want(t, "rows", count(t, d, `SELECT count(*) FROM deliveries`), n)
	})
}

func TestTape(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run, other := begin(t, d, 5), begin(t, d, 6)
		long := bytes.Repeat([]byte("answer "), 1000)
		for step := 1; step <= 4; step++ {
			must(t, d.TapeRecord(ctx, run.ID, "iter/1/review", step, fmt.Sprint("h", step), long))
		}
		must(t, d.TapeRecord(ctx, run.ID, "plan", 1, "p", []byte("plan")))
		must(t, d.TapeRecord(ctx, other.ID, "plan", 1, "q", nil))
		must(t, d.TapeRecord(ctx, run.ID, "iter/1/review", 2, "h2b", []byte{0, 255}))
		hash, data, ok, err := d.TapeLookup(ctx, run.ID, "iter/1/review", 2)
		if hash != "h2b" || !bytes.Equal(data, []byte{0, 255}) || !ok || err != nil {
			t.Errorf("TapeLookup: %q %v %v %v", hash, data, ok, err)
		}
		must(t, d.TapeCut(ctx, run.ID, "iter/1/review", 3))
		if _, _, ok, err := d.TapeLookup(ctx, run.ID, "iter/1/review", 3); ok || err != nil {
			t.Errorf("TapeLookup of what was cut: %v %v", ok, err)
		}
		all, err := d.TapeAll(ctx, run.ID)
		must(t, err)
		wanted := []TapeEntry{{"iter/1/review", 1, "h1", long}, {"iter/1/review", 2, "h2b", []byte{0, 255}}, {"plan", 1, "p", []byte("plan")}}
		if diff := cmp.Diff(wanted, all); diff != "" {
			t.Errorf("TapeAll: %s", diff)
		}
		page, err := d.TapePage(ctx, run.ID, 1, 1)
		must(t, err)
		if diff := cmp.Diff(wanted[1:2], page); diff != "" {
			t.Errorf("TapePage(1, 1): %s", diff)
		}
		keys, err := d.TapeKeys(ctx, run.ID)
		must(t, err)
		if diff := cmp.Diff([]string{"iter/1/review", "iter/1/review", "plan"}, keys); diff != "" {
			t.Errorf("TapeKeys: %s", diff)
		}
		if err := d.TapeRecord(ctx, 99, "plan", 1, "h", nil); err == nil {
			t.Error("a tape of no run")
		}
	})
}

// The log is read as it was written, also what another version wrote.
func TestLog(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run := begin(t, d, 5)
		must(t, d.Append(ctx, run, story()[0], nil))
		must(t, d.Append(ctx, run, []pipeline.Event{{ID: "new", Type: "module.started", Source: "forge", Time: now}}, nil))
		_, err := d.change(ctx, nil, `UPDATE events SET data = $1 WHERE run = $2 AND id = 'new'`, `{"module":{"name":"api"}}`, run.ID)
		must(t, err)
		got, err := d.Log(ctx, run.ID, run.Seq-1, "", 0)
		must(t, err)
		wanted := []LogEntry{{Seq: run.Seq, Type: "module.started", Source: "forge", Time: now, Data: []byte(`{"module":{"name":"api"}}`)}}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("Log(after %d): %s", run.Seq-1, diff)
		}
		first, err := d.Log(ctx, run.ID, 0, "", 1)
		must(t, err)
		if len(first) != 1 || first[0].Type != pipeline.EventRunStarted || len(first[0].Data) < 10 {
			t.Errorf("Log(limit 1) = %+v, want run.started with its data", first)
		}
		if of, err := d.Log(ctx, run.ID, 0, "module.started", 5); err != nil || len(of) != 1 {
			t.Errorf("Log(module.started) = %d events, %v; want 1", len(of), err)
		}
		types, counts, err := d.LogTypes(ctx, run.ID)
		must(t, err)
		all := 0
		for _, n := range counts {
			all += n
		}
		if int64(all) != run.Seq || len(types) != len(counts) || !slices.IsSorted(types) || !slices.Contains(types, "module.started") {
			t.Errorf("LogTypes = %v, %v; want all %d events, in order", types, counts, run.Seq)
		}
	})
}

// A caller that has gone away leaves nothing half done.
func TestCancelledContext(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		gone, cancel := context.WithCancel(t.Context())
		err := d.Append(gone, run, story()[0], func(context.Context, *sql.Tx) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("append: %v", err)
		}
		calls := map[string]func() error{
			"Append":            func() error { return d.Append(gone, run, story()[0], nil) },
			"CreateRun":         func() error { _, err := d.CreateRun(gone, "k", startOf(9), now, trace, nil); return err },
			"Load":              func() error { _, err := d.Load(gone, run.ID); return err },
			"Events":            func() error { _, err := d.Events(gone, run.ID, 0); return err },
			"Runs":              func() error { _, err := d.Runs(gone, Filter{}); return err },
			"Find":              func() error { _, err := d.Find(gone, repoID, 5, 0, ""); return err },
			"Bounces":           func() error { _, err := d.Bounces(gone, 1); return err },
			"Lease":             func() error { _, err := d.Lease(gone, 1, "a", now, ttl); return err },
			"Due":               func() error { _, _, err := d.Due(gone, now, 1); return err },
			"PutOff":            func() error { _, err := d.PutOff(gone, now, ""); return err },
			"KeepDeliveries":    func() error { return d.KeepDeliveries(gone, []record.Delivery{delivery("a")}) },
			"WaitingDeliveries": func() error { _, err := d.WaitingDeliveries(gone, now, 1); return err },
			"FinishDelivery":    func() error { _, err := d.FinishDelivery(gone, nil, "a", "", false, now); return err },
			"FailDelivery":      func() error { return d.FailDelivery(gone, "a", "", now) },
			"RetryDelivery":     func() error { return d.RetryDelivery(gone, "a") },
			"Delivery":          func() error { _, err := d.Delivery(gone, "a"); return err },
			"Deliveries":        func() error { _, err := d.Deliveries(gone, DeliveryFilter{}); return err },
			"TapeRecord":        func() error { return d.TapeRecord(gone, 1, "k", 1, "h", nil) },
			"TapeLookup":        func() error { _, _, _, err := d.TapeLookup(gone, 1, "k", 1); return err },
			"TapeCut":           func() error { return d.TapeCut(gone, 1, "k", 1) },
			"TapeAll":           func() error { _, err := d.TapeAll(gone, 1); return err },
			"TapePage":          func() error { _, err := d.TapePage(gone, 1, 0, 1); return err },
			"TapeKeys":          func() error { _, err := d.TapeKeys(gone, 1); return err },
			"Log":               func() error { _, err := d.Log(gone, 1, 0, "", 1); return err },
			"LogTypes":          func() error { _, _, err := d.LogTypes(gone, 1); return err },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want the context's error", name, err)
			}
		}
		want(t, "events", count(t, d, `SELECT count(*) FROM events`), 1)
		want(t, "run's seq", run.Seq, 1)
		want(t, "state", run.State, pipeline.StateRunning)
	})
}
