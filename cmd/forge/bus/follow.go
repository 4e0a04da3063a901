package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"forge/pipeline/store"
)

// Choice is which events one follows. Zero fields choose all.
type Choice struct {
	Run   int64
	Repos []string // globs of OWNER/NAME
	Types []string // globs of types such as run.*
	Since time.Time
	Sees  func(repo string) bool // nil: every repository
}

func (c Choice) check() error {
	if c.Run < 0 {
		return fmt.Errorf("%d is no run: they are numbered from 1", c.Run)
	}
	for _, list := range [][]string{c.Repos, c.Types} {
		for _, glob := range list {
			if _, err := path.Match(glob, ""); err != nil {
				return fmt.Errorf("%q is no pattern: a [ needs its ], and a \\ a character behind it", glob)
			}
		}
	}
	return nil
}

// overlap is how much of the time before is looked at again: servers' clocks differ, and
// what is stored late has an earlier time.
const overlap = time.Minute

// Follower finds what is new, in the order of each run and incident.
type Follower struct {
	Choice
	db   *store.DB
	hide func(string) string
	from time.Time       // since when runs and incidents are looked at
	seen map[int64]int64 // by run: the event that was told last, or passed over

	incidents map[int64]int64 // the same by incident
}

// NewFollower returns a follower of what happens from the choice's moment on. A run that is
// not there, or must not be seen, is an error: one would wait for it without end.
func NewFollower(ctx context.Context, db *store.DB, c Choice, hide func(string) string) (*Follower, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Run != 0 {
		run, err := db.Load(ctx, c.Run)
		if errors.Is(err, store.ErrNotFound) || err == nil && c.Sees != nil && !c.Sees(run.Repo.FullName()) {
			return nil, fmt.Errorf("there is no run %d; `forge runs` lists them", c.Run)
		}
		if err != nil {
			return nil, err
		}
	}
	return &Follower{Choice: c, db: db, hide: hide, from: c.Since, seen: map[int64]int64{}, incidents: map[int64]int64{}}, nil
}

// Next hands tell what has come since the last call, and stops at its error: that event
// comes again.
func (f *Follower) Next(ctx context.Context, tell func(Event) error) error {
	rows, err := f.db.Changed(ctx, f.from)
	if err != nil {
		return err
	}
	newest, err := f.nextIncidents(ctx, tell)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Updated.After(newest) {
			newest = row.Updated
		}
		if f.Run != 0 && row.ID != f.Run || row.Seq <= f.seen[row.ID] || !matches(f.Repos, row.Repo) || f.Sees != nil && !f.Sees(row.Repo) {
			continue
		}
		if err := f.tellRun(ctx, row.ID, tell); err != nil {
			return err
		}
	}
	if from := newest.Add(-overlap); from.After(f.from) {
		f.from = from
	}
	return nil
}

func (f *Follower) tellRun(ctx context.Context, id int64, tell func(Event) error) error {
	events, err := f.db.Events(ctx, id, f.seen[id])
	if err != nil {
		return err
	}
	run, err := f.db.Load(ctx, id)
	if err != nil {
		return err
	}
	for i := range events {
		if e := &events[i]; public(e.Type) && matches(f.Types, string(e.Type)) && !e.Time.Before(f.Since) {
			if err := tell(newEvent(run, e, f.hide)); err != nil {
				return err
			}
		}
		f.seen[id] = events[i].Seq
	}
	return nil
}

// Lines writes what happens as JSON, an event a line, until ctx ends.
func (f *Follower) Lines(ctx context.Context, w io.Writer, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := f.Next(ctx, func(e Event) error {
			_, err := fmt.Fprintf(w, "%s\n", e.bytes())
			return err
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const (
	mostStreams = 64               // at the same time; each looks into the database
	aliveEvery  = 20 * time.Second // proxies end what is silent for longer
)

// Streams tells programs that listen, as server-sent events.
type Streams struct {
	DB   *store.DB
	Hide func(string) string
	Now  func() time.Time
	Sees func(r *http.Request, repo string) bool

	mu   sync.Mutex
	wake chan struct{} // closed when there may be something new
	open int
	done bool
}

// OnEvents is called when events of a run or an incident are stored.
func (s *Streams) OnEvents() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// Close ends all streams; those who listen come again, to the next server.
func (s *Streams) Close() {
	s.mu.Lock()
	s.done = true
	s.mu.Unlock()
	s.OnEvents()
}

func (s *Streams) waiting() (news <-chan struct{}, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	return s.wake, s.done
}

// enter reports whether there is room for one more.
func (s *Streams) enter(by int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by > 0 && s.open >= mostStreams {
		return false
	}
	s.open += by
	return true
}

// chosen reads what a request asks for.
func (s *Streams) chosen(r *http.Request) (c Choice, err error) {
	q := r.URL.Query()
	list := func(name string) []string {
		return strings.FieldsFunc(strings.Join(q[name], ","), func(r rune) bool { return r == ',' || r == ' ' })
	}
	c = Choice{Repos: list("repo"), Types: list("types"), Since: s.Now(), Sees: func(repo string) bool { return s.Sees(r, repo) }}
	if text := q.Get("run"); text != "" {
		if c.Run, err = strconv.ParseInt(text, 10, 64); err != nil || c.Run <= 0 {
			return c, fmt.Errorf("run=%q: must be the number of a run, such as 7", text)
		}
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" { // what a client sends that comes again
		if c.Since, err = time.Parse(time.RFC3339Nano, last); err != nil {
			return c, fmt.Errorf("Last-Event-ID: %q: must be the id of an event that came from here, which is a moment", last)
		}
		c.Since = c.Since.Add(-overlap)
	} else if since := q.Get("since"); since != "" {
		if c.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return c, fmt.Errorf("since=%q: must be a moment such as 2026-07-01T12:00:00Z", since)
		}
	}
	return c, nil
}

// ServeHTTP streams events: each as CloudEvents has it, its id the moment from which one
// goes on. Who comes again may be told some twice.
func (s *Streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := s.chosen(r)
	var f *Follower
	if err == nil {
		f, err = NewFollower(r.Context(), s.DB, c, s.Hide)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !s.enter(1) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d programs listen already; try again later", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.enter(-1)
	out := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out.SetReadDeadline(time.Time{}) //nolint:errcheck // the server's limit is for requests; where it cannot be lifted, the client comes again
	look, alive := time.NewTicker(lookTime), time.NewTicker(aliveEvery)
	defer look.Stop()
	defer alive.Stop()
	fmt.Fprint(w, "retry: 3000\n\n")
	for {
		news, ended := s.waiting()
		err := f.Next(r.Context(), func(e Event) error {
			_, err := fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.Time.Format(time.RFC3339Nano), strings.TrimPrefix(e.Type, typePrefix), e.bytes())
			return err
		})
		if err = errors.Join(err, out.Flush()); err != nil || ended {
			return // the client comes again
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-look.C: // another server may have stored something
		case <-alive.C:
			fmt.Fprint(w, ": alive\n\n")
		}
	}
}
