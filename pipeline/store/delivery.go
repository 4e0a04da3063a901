package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/record"

	"github.com/klauspost/compress/s2"
)

// maxAttempts is how often a delivery is tried before it is put aside for a human.
const maxAttempts = 5

// deliveryWidth is how many parameters a row of deliveries takes.
const deliveryWidth = 12

var insertDeliveries = newBulkInsert(`INTO deliveries (guid, event, action, repo, received, payload, state, attempts, outcome, finished, quiet, lane) VALUES `, deliveryWidth, ` ON CONFLICT DO NOTHING`)

// KeepDeliveries stores deliveries in one transaction. One whose GUID is known is
// passed over. When it returns nil, all of them are on disk.
func (d *DB) KeepDeliveries(ctx context.Context, list []record.Delivery) error {
	if d.pool != nil {
		// Two servers that insert the same GUIDs in different orders would wait for each other.
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b record.Delivery) int { return strings.Compare(a.GUID, b.GUID) })
	}
	p, _ := d.packers.Get().(*packer)
	if p == nil {
		p = &packer{}
	}
	defer d.packers.Put(p)
	p.buf = p.buf[:0]
	rows := make([]any, 0, len(list)*deliveryWidth)
	for i := range list {
		v := &list[i]
		if v.GUID == "" {
			return errors.New("keep deliveries: one has no GUID")
		}
		rows = append(rows, v.GUID, clean(v.Event), clean(v.Action), clean(v.Repo), micros(v.Received), p.pack(v.Payload))
		if v.Outcome == "" {
			rows = append(rows, record.DeliveryWaiting, 0, "", int64(0), false, v.Lane)
		} else {
			rows = append(rows, record.DeliveryDone, 1, clean(v.Outcome), micros(v.Received), true, v.Lane)
		}
	}
	err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := insertDeliveries.run(ctx, d, tx, rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep %d deliveries: %w", len(list), err)
	}
	return nil
}

// A packer compresses payloads into one buffer, one behind the other: a burst of
// deliveries would else cost as much in garbage as in work.
type packer struct{ buf []byte }

func (p *packer) pack(payload []byte) []byte {
	used, need := len(p.buf), s2.MaxEncodedLen(len(payload))
	if cap(p.buf)-used < need {
		p.buf, used = make([]byte, 0, max(need, 256<<10)), 0 // what is in the old one stays there
	}
	packed := s2.Encode(p.buf[used:used+need], payload)
	p.buf = p.buf[:used+len(packed)]
	return packed
}

const deliveryColumns = `SELECT id, guid, event, action, repo, received, state, attempts, next, outcome, error, finished, quiet`

// scanDelivery reads a row; payload is nil where the query has none.
func scanDelivery(row interface{ Scan(...any) error }, v *record.Delivery, payload bool) error {
	var received, next, finished int64
	var packed []byte
	into := []any{&v.ID, &v.GUID, &v.Event, &v.Action, &v.Repo, &received, &v.State, &v.Attempts, &next, &v.Outcome, &v.Error, &finished, &v.Quiet}
	if payload {
		into = append(into, &packed)
	}
	if err := row.Scan(into...); err != nil {
		return err
	}
	v.Received, v.Next, v.Finished = fromMicros(received), fromMicros(next), fromMicros(finished)
	if !payload || len(packed) == 0 { // it was pruned
		return nil
	}
	var err error
	if v.Payload, err = s2.Decode(nil, packed); err != nil {
		return fmt.Errorf("decompress payload of delivery %s: %w", v.GUID, err)
	}
	return nil
}

// WaitingDeliveries returns deliveries that wait for the engine, with their payloads,
// in the order of arrival; those of a repository whose work is paused wait on.
func (d *DB) WaitingDeliveries(ctx context.Context, now time.Time, limit int) ([]record.Delivery, error) {
	return d.WaitingIn(ctx, "", now, limit)
}

// WaitingIn is WaitingDeliveries of a lane.
func (d *DB) WaitingIn(ctx context.Context, lane string, now time.Time, limit int) ([]record.Delivery, error) {
	rows, err := d.reader.QueryContext(ctx, deliveryColumns+`, payload FROM deliveries work
		WHERE state = 'waiting' AND lane = $3 AND next <= $1 AND`+notPaused+` ORDER BY id LIMIT $2`, micros(now), limitOr(limit, 100), lane)
	if err != nil {
		return nil, fmt.Errorf("list waiting deliveries: %w", err)
	}
	return collect(rows, "list waiting deliveries", func(v *record.Delivery) error { return scanDelivery(rows, v, true) })
}

// WaitingOf counts the deliveries of a lane that wait, by event.
func (d *DB) WaitingOf(ctx context.Context, lane string) (map[string]int, error) {
	rows, err := d.reader.QueryContext(ctx, `SELECT event, COUNT(*) FROM deliveries WHERE state = 'waiting' AND lane = $1 GROUP BY event`, lane)
	if err != nil {
		return nil, fmt.Errorf("count waiting deliveries: %w", err)
	}
	out := map[string]int{}
	_, err = collect(rows, "count waiting deliveries", func(event *string) error {
		var n int
		err := rows.Scan(event, &n)
		out[*event] = n
		return err
	})
	return out, err
}

// FinishDelivery records what became of a delivery; quiet says that nothing did. It is false when the
// delivery does not wait any more: another worker has handled it, and what this
// one did must not stand. With a transaction, it takes part in that one.
func (d *DB) FinishDelivery(ctx context.Context, tx *sql.Tx, guid, outcome string, quiet bool, at time.Time) (bool, error) {
	n, err := d.change(ctx, tx, `UPDATE deliveries SET state = 'done', attempts = attempts + 1, outcome = $2, error = '', finished = $3, quiet = $4
		WHERE guid = $1 AND state = 'waiting'`, guid, clean(outcome), micros(at), quiet)
	if err != nil {
		return false, fmt.Errorf("finish delivery %s: %w", guid, err)
	}
	return n == 1, nil
}

// FailDelivery records that handling a delivery failed. It is tried again at
// next; after the fifth attempt it is dead, until someone retries it.
func (d *DB) FailDelivery(ctx context.Context, guid, errText string, next time.Time) error {
	_, err := d.change(ctx, nil, `UPDATE deliveries SET attempts = attempts + 1, error = $2, next = $3,
		state = CASE WHEN attempts + 1 >= $4 THEN 'dead' ELSE 'waiting' END
		WHERE guid = $1 AND state = 'waiting'`, guid, clean(errText), micros(next), maxAttempts)
	if err != nil {
		return fmt.Errorf("record failure of delivery %s: %w", guid, err)
	}
	return nil
}

// RetryDelivery makes a dead or a postponed delivery wait for its first attempt
// again. The error is ErrNotFound when there is none of this GUID, ErrConflict
// when it has been handled.
func (d *DB) RetryDelivery(ctx context.Context, guid string) error {
	n, err := d.change(ctx, nil, `UPDATE deliveries SET state = 'waiting', attempts = 0, next = 0 WHERE guid = $1 AND state <> 'done'`, guid)
	if err == nil && n == 0 {
		if _, err = d.Delivery(ctx, guid); err == nil {
			err = ErrConflict
		}
	}
	if err != nil {
		return fmt.Errorf("retry delivery %s: %w", guid, err)
	}
	return nil
}

// Delivery returns one delivery with its payload. The error is ErrNotFound when
// there is none.
func (d *DB) Delivery(ctx context.Context, guid string) (*record.Delivery, error) {
	var v record.Delivery
	err := scanDelivery(d.reader.QueryRowContext(ctx, deliveryColumns+`, payload FROM deliveries WHERE guid = $1`, guid), &v, true)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read delivery %s: %w", guid, err)
	}
	return &v, nil
}

// DeliveryFilter chooses deliveries. Zero fields choose all.
type DeliveryFilter struct {
	State     record.DeliveryState
	Repo      string   // "owner/name"
	Repos     []string // only those of these repositories; nil: of all, and of none
	SkipQuiet bool     // only those that something followed from, may still follow from, or should have
	Limit     int      // 0: 100
	Before    int64    // only those with a smaller ID: the next page
}

// Deliveries lists deliveries without their payloads, newest first.
func (d *DB) Deliveries(ctx context.Context, f DeliveryFilter) ([]record.Delivery, error) {
	if repos := (Filter{Repo: f.Repo, Repos: f.Repos}).repos(); repos != nil && len(repos) == 0 {
		return nil, nil
	}
	query, args := f.query()
	rows, err := d.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return collect(rows, "list deliveries", func(v *record.Delivery) error { return scanDelivery(rows, v, false) })
}

func (f DeliveryFilter) query() (string, []any) {
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := "1 = 1"
	if f.Before != 0 {
		where += " AND id < " + arg(f.Before)
	}
	rare := false
	switch f.State {
	case "":
	case record.DeliveryWaiting, record.DeliveryDead: // each has its index, which a parameter does not find
		rare, where = true, where+` AND state = '`+string(f.State)+`'`
	default:
		where += " AND state = " + arg(string(f.State))
	}
	if f.SkipQuiet && !rare { // what waits or is dead is not quiet
		where += " AND NOT quiet"
	}
	limit := arg(limitOr(f.Limit, 100))
	repos := Filter{Repo: f.Repo, Repos: f.Repos}.repos()
	if rare { // few: they are looked through
		where += ofRepos(anyIndexBut, repos, &args)
		repos = nil
	}
	return newest(deliveryColumns+" FROM deliveries", "deliveries", where, repos, limit, arg), args
}

// anyIndexBut is a delivery's repository where the index of its state is to be used,
// and not that of repositories: those that wait and are dead are few.
const anyIndexBut = `repo || ''`

// Backlog is how many deliveries wait to be handled, and how many were given up.
type Backlog struct {
	Waiting, Dead int
}

const countBacklog = `SELECT COUNT(*) FROM deliveries WHERE state = `

// Backlog counts the deliveries of some repositories (nil: of all, and of none) that
// are not done.
func (d *DB) Backlog(ctx context.Context, repos []string) (b Backlog, err error) {
	for _, c := range []struct {
		state string
		n     *int
	}{{`'waiting'`, &b.Waiting}, {`'dead'`, &b.Dead}} {
		var args []any
		query := countBacklog + c.state + ofRepos(anyIndexBut, repos, &args)
		if err := d.reader.QueryRowContext(ctx, query, args...).Scan(c.n); err != nil {
			return Backlog{}, fmt.Errorf("count deliveries: %w", err)
		}
	}
	return b, nil
}
