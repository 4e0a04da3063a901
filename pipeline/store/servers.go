package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Peer is a server on the database, as it said last how it is.
type Peer struct {
	ID         string    `json:"id"`      // what its leases are told by
	Process    string    `json:"process"` // "process 7 on build-1"
	Version    string    `json:"version"`
	Started    time.Time `json:"started"`
	Seen       time.Time `json:"seen"`
	Drain      bool      `json:"drain"` // somebody asked it to begin nothing any more
	Load       float64   `json:"load"`  // of its machine, over a minute
	Processors int       `json:"processors"`
	FreeDisk   int64     `json:"free_disk"` // bytes, where it works
	Runs       []int64   `json:"runs"`      // that it works on now
}

// What a server does.
const (
	PeerWorking = "working"
	PeerDrained = "drained"
	PeerAway    = "away" // nothing was heard of it for peerSilent
)

const (
	peerSilent = 30 * time.Second
	peersKept  = 24 * time.Hour // for how long a server that is away is listed
)

// State says what the server does, for people.
func (p Peer) State(now time.Time) string {
	switch {
	case now.Sub(p.Seen) > peerSilent:
		return PeerAway
	case p.Drain:
		return PeerDrained
	}
	return PeerWorking
}

const (
	beat = `INSERT INTO servers (id, process, version, started, beat, load_milli, processors, free_disk) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (id) DO UPDATE SET beat = excluded.beat, load_milli = excluded.load_milli, free_disk = excluded.free_disk`
	forgetPeers = `DELETE FROM servers WHERE beat < $1`
	leavePeer   = `DELETE FROM servers WHERE id = $1`
	drainPeer   = `UPDATE servers SET drain = 1 WHERE id = $1`
	isDrained   = `SELECT drain FROM servers WHERE id = $1`
	selectPeers = `SELECT id, process, version, started, beat, drain, load_milli, processors, free_disk FROM servers ORDER BY started, id`
	selectHolds = `SELECT id, lease_owner FROM runs WHERE lease_owner <> '' AND lease_until > $1 ORDER BY id`
)

// Beat writes down how a server is, and returns whether it is asked to drain.
func (d *DB) Beat(ctx context.Context, p Peer) (drain bool, err error) {
	_, err = d.change(ctx, nil, beat, p.ID, clean(p.Process), clean(p.Version), micros(p.Started), micros(p.Seen), int64(p.Load*1000), p.Processors, p.FreeDisk)
	if err == nil {
		_, err = d.change(ctx, nil, forgetPeers, micros(p.Seen.Add(-peersKept)))
	}
	n := 0
	if err == nil {
		err = d.reader.QueryRowContext(ctx, isDrained, p.ID).Scan(&n)
	}
	if err != nil {
		return false, fmt.Errorf("write down how this server is: %w", err)
	}
	return n == 1, nil
}

// Leave takes a server that ends in order off the list.
func (d *DB) Leave(ctx context.Context, id string) error {
	if _, err := d.change(ctx, nil, leavePeer, id); err != nil {
		return fmt.Errorf("take this server off the list: %w", err)
	}
	return nil
}

// Drain asks a server to begin nothing any more, and to hand over what it works on. The
// error is ErrNotFound when there is none with that id.
func (d *DB) Drain(ctx context.Context, id string) error {
	n, err := d.change(ctx, nil, drainPeer, id)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("drain server %s: %w", id, err)
	}
	return nil
}

// Peers lists the servers on the database, the oldest first, with the runs that each
// works on.
func (d *DB) Peers(ctx context.Context, now time.Time) ([]Peer, error) {
	rows, err := d.reader.QueryContext(ctx, selectPeers)
	if err != nil {
		return nil, fmt.Errorf("list servers: %w", err)
	}
	list, err := collect(rows, "list servers", func(p *Peer) error {
		var started, seen, load int64
		var drain int
		err := rows.Scan(&p.ID, &p.Process, &p.Version, &started, &seen, &drain, &load, &p.Processors, &p.FreeDisk)
		p.Started, p.Seen, p.Drain, p.Load, p.Runs = fromMicros(started), fromMicros(seen), drain == 1, float64(load)/1000, []int64{}
		return err
	})
	if err != nil {
		return nil, err
	}
	holds, err := d.reader.QueryContext(ctx, selectHolds, micros(now))
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	_, err = collect(holds, "list leases", func(*struct{}) error {
		var run int64
		var owner string // process/id/flight
		err := holds.Scan(&run, &owner)
		for i := range list {
			if strings.Contains(owner, "/"+list[i].ID+"/") {
				list[i].Runs = append(list[i].Runs, run)
			}
		}
		return err
	})
	return list, err
}
