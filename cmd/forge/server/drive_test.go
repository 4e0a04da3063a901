package server

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/store"
)

// What another process holds is waited for, with words that say who it is and until when:
// until its lease is over, where it has died, or it shows that it is alive.
func TestHeldElsewhere(t *testing.T) {
	for _, tt := range []struct {
		owner, who string
		alive      bool
		looks      int
	}{
		{"process 7 on box/ab12/1", "process 7 on box", false, 5},
		{"process 7 on box/ab12/1", "process 7 on box", true, 3},
		{"ab12/1", "another process", false, 5},
	} {
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		run, err := db.CreateRun(t.Context(), "k", pipeline.Start{}, now, "t", nil)
		if err == nil {
			_, err = db.Lease(t.Context(), run.ID, tt.owner, now, 5*time.Second)
		}
		if err != nil {
			t.Fatal(err)
		}
		looks, said := 0, ""
		a := &App{DB: db, now: func() time.Time { return now }, after: func(d time.Duration) <-chan time.Time {
			now = now.Add(d)
			if looks++; tt.alive && looks == 3 {
				if _, err := db.Renew(t.Context(), run.ID, tt.owner, now, 5*time.Second); err != nil {
					t.Error(err)
				}
			}
			c := make(chan time.Time, 1)
			c <- now
			return c
		}}
		held, err := a.held(t.Context(), run.ID)
		if err != nil || held == nil || held.run != run.ID {
			t.Fatalf("%s: held = %+v, %v", tt.owner, held, err)
		}
		until := held.until.Local().Format("15:04:05")
		alive, err := a.outwait(t.Context(), held, func(format string, args ...any) { said += fmt.Sprintf(format, args...) })
		if err != nil || alive != tt.alive || looks != tt.looks {
			t.Errorf("%s: alive %t after %d looks, %v; want %t after %d", tt.owner, alive, looks, err, tt.alive, tt.looks)
		}
		if want := fmt.Sprintf("held by %s until %s", tt.who, until); !strings.Contains(said, want) || strings.Contains(said, "goes on in "+tt.who) != tt.alive {
			t.Errorf("%s: it says %q, want in it %q", tt.owner, said, want)
		}
		if held, err = a.held(t.Context(), run.ID); err != nil || (held != nil) != tt.alive {
			t.Errorf("%s: afterwards it is held by %+v, %v", tt.owner, held, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
