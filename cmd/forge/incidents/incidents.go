// Package incidents makes incidents of what production says: deliveries of monitors
// and of GitHub's deployments, as they were kept. What they mean is found out by
// learn/production; this package reads and writes the database for it, and shows
// incidents at a terminal.
package incidents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/panics"
	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Lane is where the deliveries wait that this package handles.
const Lane = "production"

const (
	hookPrefix  = "hook/"
	checkPrefix = "check/"
	batch       = 200             // deliveries that are handled together
	mostWait    = 1000            // of one hook; more are refused
	tickEvery   = time.Minute     // how often time passes for incidents
	retryAfter  = 5 * time.Second // when the database could not be written
)

// Concerns reports whether an event is handled here, and not by the engine.
func Concerns(event string) bool {
	return strings.HasPrefix(event, hookPrefix) || strings.HasPrefix(event, checkPrefix) || event == "deployment" || event == "deployment_status"
}

// Options are what the service needs.
type Options struct {
	DB       *store.DB
	Hooks    map[string]production.Hook // by name
	Log      *slog.Logger
	Now      func() time.Time
	OnChange func(repo string) // called when incidents of a repository have changed; may be nil
	Code     Code              // nil: incidents are correlated by time and name alone
	Teller   Teller            // nil: nobody is told
	Actions  Actions           // nil: nothing is done; needs Teller
	Slug     string            // of commands
	Checks   []settings.HealthCheck
	Queries  []settings.Query
	Take     func(ctx context.Context, guid, event string, payload []byte) error // keeps what queries show as what monitors send is kept
}

// Service turns deliveries into incidents.
type Service struct {
	Options
	wake chan struct{}
	full atomic.Pointer[map[string]bool]

	changed atomic.Bool // there may be something to follow up
	failed  map[int64]int
	untold  map[int64]time.Time      // incidents that people could not be told of; not tried again before
	unread  map[int64]production.Act // roll-backs of incidents of which it could not be looked up what they change

	baking    sync.Mutex           // held while deployments that are watched are looked at
	unwatched map[string]time.Time // deployments that are not to be watched, as was found out then

	mu    sync.Mutex
	known map[string]knownSettings // by repository
}

// New returns a service; Run works.
func New(o Options) *Service {
	s := &Service{Options: o, wake: make(chan struct{}, 1), failed: map[int64]int{}, untold: map[int64]time.Time{}, unread: map[int64]production.Act{},
		unwatched: map[string]time.Time{}, known: map[string]knownSettings{}}
	s.full.Store(&map[string]bool{})
	return s
}

// Hooks are the server's hooks in the words of what reads their messages.
func Hooks(list []settings.Hook) map[string]production.Hook {
	out := map[string]production.Hook{}
	for _, h := range list {
		out[h.Name] = production.Hook{Name: h.Name, Kind: production.HookKind(h.Kind), Repo: h.Repo, Repos: h.Repos, Environment: h.Environment, Projects: h.Projects}
	}
	return out
}

// Wake says that there is something to read.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Full reports whether so much of a hook waits already that no more is taken.
func (s *Service) Full(hook string) bool { return (*s.full.Load())[hook] }

// Run works until ctx ends. Deployments are watched beside the rest: what is measured may
// take its time to answer, and alerts must not wait for it.
func (s *Service) Run(ctx context.Context) {
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(ctx) })
	defer watch.Wait()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		err := errors.Join(s.Round(ctx), s.Follow(ctx))
		if late := s.Act(ctx); late != nil && ctx.Err() == nil { // tried again with the next tick, or what comes in
			if errors.Is(late, store.ErrConflict) { // something came in meanwhile
				s.Wake()
			} else {
				s.Log.Warn("answer to incidents", "error", late)
			}
		}
		err = errors.Join(err, s.Follow(ctx))
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("read what production says", "error", err)
			select {
			case <-time.After(retryAfter):
				continue
			case <-ctx.Done():
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
			if err := s.Tick(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("let time pass for incidents", "error", err)
			}
			s.changed.Store(true) // what could not be looked up or told is tried again
		}
	}
}

// Round handles what waits.
func (s *Service) Round(ctx context.Context) error {
	for {
		list, err := s.DB.WaitingIn(ctx, Lane, s.Now(), batch)
		if err != nil || len(list) == 0 {
			return errors.Join(err, s.count(ctx, 0))
		}
		if err := s.count(ctx, len(list)); err != nil {
			return err
		}
		if err := s.handle(ctx, list); err != nil {
			return err
		}
		if len(list) < batch {
			return s.count(ctx, 0)
		}
	}
}

// count notes of which hooks too much waits.
func (s *Service) count(ctx context.Context, n int) error {
	full := map[string]bool{}
	if n == batch { // else few enough wait
		waiting, err := s.DB.WaitingOf(ctx, Lane)
		if err != nil {
			return err
		}
		for event, n := range waiting {
			if hook, ok := strings.CutPrefix(event, hookPrefix); ok && n >= mostWait {
				full[hook] = true
			}
		}
	}
	s.full.Store(&full)
	return nil
}

// errHandled says that another server has handled a delivery.
var errHandled = errors.New("another server has handled it")

// a reading is what a delivery says.
type reading struct {
	guid         string
	observations []production.Observation
	deployment   *production.Deployment
	why          string // nothing follows, or not from all of it
	notes        []production.Note
}

// handle takes deliveries in together, in the order of their arrival: all of it
// happens, or nothing.
func (s *Service) handle(ctx context.Context, list []record.Delivery) error {
	var readings []*reading
	for i := range list {
		r, err := s.read(&list[i])
		if err != nil { // a panic: it is tried again, and put aside
			if err := s.DB.FailDelivery(ctx, list[i].GUID, err.Error(), s.Now().Add(time.Minute)); err != nil {
				return err
			}
			continue
		}
		readings = append(readings, r)
	}
	trackers := map[string]*production.Tracker{}
	for _, r := range readings {
		if err := s.take(ctx, trackers, r); err != nil {
			return err
		}
	}
	return s.keep(ctx, trackers, readings)
}

// take puts what a delivery says on its repository's tracker.
func (s *Service) take(ctx context.Context, trackers map[string]*production.Tracker, r *reading) error {
	if d := r.deployment; d != nil {
		tracker, err := s.tracker(ctx, trackers, d.Repo)
		if err != nil {
			return err
		}
		d.Environment = tracker.Spelled(d.Environment)
		tracker.Deployed(*d)
	}
	for _, o := range r.observations {
		tracker, err := s.tracker(ctx, trackers, o.Repo)
		if err != nil {
			return err
		}
		if n := tracker.Take(o); n.Incident != nil || r.deployment == nil {
			r.notes = append(r.notes, n)
		}
	}
	return nil
}

// read says what a delivery says. What cannot be read now cannot be read later.
func (s *Service) read(d *record.Delivery) (r *reading, err error) {
	defer panics.AsError(context.Background(), s.Log.With("delivery", d.GUID), &err, "reading a delivery")
	r = &reading{guid: d.GUID}
	name, ok := strings.CutPrefix(d.Event, hookPrefix)
	if strings.HasPrefix(d.Event, checkPrefix) { // the server itself has looked
		var o production.Observation
		if err := json.Unmarshal(d.Payload, &o); err != nil {
			r.why = "not understood: " + err.Error()
			return r, nil
		}
		r.observations = append(r.observations, o)
		return r, nil
	}
	if !ok {
		dep, o, why, err := production.ReadDeployment(d.Event, d.Payload)
		switch {
		case err != nil:
			r.why = "not understood: " + err.Error()
		case why != "":
			r.why = "nothing to do: " + why
		default:
			r.deployment = &dep
			r.why = fmt.Sprintf("deployment %d to %s is %s", dep.ID, dep.Environment, dep.State)
			if o != nil {
				r.observations = append(r.observations, *o)
			}
		}
		return r, nil
	}
	hook, known := s.Hooks[name]
	if !known {
		r.why = "ignored: there is no hook " + name + " any more"
		return r, nil
	}
	var read error
	r.observations, r.why, read = production.Read(hook, production.Message{Resource: d.Action, Body: d.Payload, Received: d.Received})
	if read != nil {
		r.why = "not understood: " + read.Error()
	}
	return r, nil
}

// tracker returns the tracker of a repository: the one that is there, or a new one.
func (s *Service) tracker(ctx context.Context, trackers map[string]*production.Tracker, repo string) (*production.Tracker, error) {
	if d := trackers[repo]; d != nil {
		return d, nil
	}
	d, err := newTracker(ctx, s.DB, repo, s.Now())
	if err != nil {
		return nil, err
	}
	trackers[repo] = d
	return d, nil
}

// keep writes what has happened, and what became of the deliveries.
func (s *Service) keep(ctx context.Context, trackers map[string]*production.Tracker, readings []*reading) error {
	var changed []string
	err := s.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, r := range readings {
			if r.deployment != nil {
				if err := s.DB.KeepDeployment(ctx, tx, rowOf(*r.deployment, s.Now())); err != nil {
					return err
				}
			}
		}
		changed = nil
		for _, repo := range slices.Sorted(maps.Keys(trackers)) {
			if err := saveAll(ctx, s.DB, tx, trackers[repo]); err != nil {
				return err
			}
			changed = append(changed, repo)
		}
		for _, r := range readings {
			ok, err := s.DB.FinishDelivery(ctx, tx, r.guid, r.outcome(), len(r.notes) == 0 && r.deployment == nil, s.Now())
			if err != nil {
				return err
			}
			if !ok {
				return errHandled
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.changed.Store(true)
	for _, repo := range changed {
		if s.OnChange != nil {
			s.OnChange(repo)
		}
	}
	for _, r := range readings {
		s.Log.Info("delivery", "delivery", r.guid, "outcome", r.outcome())
	}
	return nil
}

// outcome is what became of a delivery, in words.
func (r *reading) outcome() string {
	var parts []string
	for _, n := range r.notes {
		if s := n.String(); !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if r.why != "" {
		parts = append(parts, r.why)
	}
	return text.Clip(strings.Join(parts, "; "), 500)
}

// Tick lets time pass for the incidents that go on.
func (s *Service) Tick(ctx context.Context) error {
	rows, err := s.DB.Incidents(ctx, store.IncidentFilter{Active: true, Limit: 1000})
	if err != nil {
		return err
	}
	trackers := map[string]*production.Tracker{}
	for _, row := range rows {
		tracker, err := s.tracker(ctx, trackers, row.Repo)
		if err != nil {
			return err
		}
		trackers[row.Repo] = tracker
	}
	for _, tracker := range trackers {
		tracker.Tick()
	}
	return s.keep(ctx, trackers, nil)
}
