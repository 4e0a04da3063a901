package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func samePeers(t *testing.T, what string, got []Peer, want ...Peer) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Each server is on the list with what it works on, for as long as it is heard of; one
// that is to drain hears of it.
func TestServers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx, now := t.Context(), time.Now().UTC().Truncate(time.Microsecond)
		run, other := begin(t, d, 1), begin(t, d, 2)
		a := Peer{ID: "aaa", Process: "process 1 on one", Version: "v1", Started: now.Add(-time.Hour), Seen: now, Load: 1.5, Processors: 2, FreeDisk: 7 << 30}
		b := Peer{ID: "bbb", Process: "process 2 on two", Version: "v2", Started: now, Seen: now.Add(-time.Minute), Processors: 4}
		for _, p := range []Peer{b, a} {
			if drain, err := d.Beat(ctx, p); err != nil || drain {
				t.Fatal(drain, err)
			}
		}
		for _, l := range []struct {
			run   int64
			owner string
			ends  time.Duration
		}{{run.ID, a.Process + "/aaa/7", time.Minute}, {other.ID, b.Process + "/bbb/1", -time.Second}} {
			if ok, err := d.Lease(ctx, l.run, l.owner, now, l.ends); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		list, err := d.Peers(ctx, now)
		must(t, err)
		a.Runs, b.Runs = []int64{run.ID}, []int64{}
		samePeers(t, "servers", list, a, b)
		want(t, "the state of one that is heard of", list[0].State(now), PeerWorking)
		want(t, "the state of one that is not", list[1].State(now), PeerAway)
		must(t, d.Drain(ctx, "aaa"))
		if err := d.Drain(ctx, "ccc"); !errors.Is(err, ErrNotFound) {
			t.Errorf("drain a server that is not there: %v", err)
		}
		a.Seen, a.Load = now.Add(25*time.Hour), 0.25
		if drain, err := d.Beat(ctx, a); err != nil || !drain {
			t.Errorf("the drained server hears %v, %v", drain, err)
		}
		list, err = d.Peers(ctx, a.Seen)
		must(t, err)
		a.Drain, a.Runs = true, []int64{}
		samePeers(t, "a day later", list, a)
		want(t, "the state of one that is drained", list[0].State(a.Seen), PeerDrained)
		must(t, d.Leave(ctx, "aaa"))
		list, err = d.Peers(ctx, now)
		must(t, err)
		want(t, "at the end", len(list), 0)
	})
}
