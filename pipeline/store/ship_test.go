package store

import (
	"errors"
	"testing"
)

// What is shipped is written by one at a time, and one of a repository is busy.
func TestShips(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		one := &Ship{Run: 1, Repo: "acme/shop", Active: true, Data: []byte(`{"a":1}`)}
		must(t, d.SaveShip(t.Context(), one))
		if err := d.SaveShip(t.Context(), &Ship{Run: 1, Repo: "acme/shop", Active: true, Data: []byte(`{}`)}); !errors.Is(err, ErrConflict) {
			t.Errorf("begun twice: %v", err)
		}
		two, far := &Ship{Run: 2, Repo: "acme/shop", Active: true, Data: []byte(`{}`)}, &Ship{Run: 3, Repo: "acme/far", Active: true, Data: []byte(`{}`)}
		late := *one
		one.Busy = true
		for _, v := range []*Ship{two, far, one} {
			must(t, d.SaveShip(t.Context(), v))
		}
		if err := d.SaveShip(t.Context(), &late); !errors.Is(err, ErrConflict) {
			t.Errorf("a writer that was late: %v", err)
		}
		two.Busy, far.Busy = true, true
		if err := d.SaveShip(t.Context(), two); !errors.Is(err, ErrConflict) {
			t.Errorf("two of a repository are busy: %v", err)
		}
		must(t, d.SaveShip(t.Context(), far))
		one.Busy, one.Active = false, false
		must(t, d.SaveShip(t.Context(), one))
		must(t, d.SaveShip(t.Context(), two))
		list, err := d.ActiveShips(t.Context(), nil)
		must(t, err)
		if len(list) != 2 || list[0].Run != 2 || !list[0].Busy || list[1].Run != 3 {
			t.Errorf("active: %+v", list)
		}
		for n, repos := range [][]string{{}, {"acme/far"}, {"acme/far", "acme/shop"}} {
			list, err := d.ActiveShips(t.Context(), repos)
			must(t, err)
			want(t, "of some repositories", len(list), n)
		}
		got, err := d.Ship(t.Context(), 1)
		must(t, err)
		want(t, "data", string(got.Data), `{"a":1}`)
		want(t, "seq", got.Seq, one.Seq)
		if _, err := d.Ship(t.Context(), 9); !errors.Is(err, ErrNotFound) {
			t.Errorf("none: %v", err)
		}
	})
}
