package shipping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/cmd/forge/incidents"
	"forge/github"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/panics"
	"forge/pipeline/rollout"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

const (
	tickEvery = time.Minute     // how often time passes for what waits
	hold      = 2 * time.Minute // a process may act alone; after it was killed, another may
	callTime  = time.Minute     // for the calls of one step
	lookEvery = time.Hour
	missed    = 5 * time.Minute     // in which nothing was said of a deployment: GitHub's webhook may not have come
	recent    = 14 * 24 * time.Hour // runs that ended since then are looked at after a start
	mostRuns  = 200                 // of each kind
	mostSteps = 40                  // at once, of one run
)

// Options are what the service needs.
type Options struct {
	DB     *store.DB
	GitHub *github.App
	Log    *slog.Logger
	Now    func() time.Time
	Name   string                                                              // of this process, as no other one's
	Take   func(ctx context.Context, guid, event string, payload []byte) error // keeps what was looked up as what GitHub sends is kept
	Record func(ctx context.Context, run int64, events []pipeline.Event) error // adds to a run's log what it does not have yet; may be nil
	Has    func(ctx context.Context, repo, commit, part string) (bool, error)  // whether a commit has all of another; nil: none has
}

// Service ships what is verified.
type Service struct {
	Options
	wake chan struct{}

	mu   sync.Mutex
	runs map[int64]bool // that may begin to be shipped

	has map[string]bool // "commit part", of what was looked up; used in rounds alone

	working sync.Mutex // held while one round goes on
}

// NewService returns a service; Run works.
func NewService(o Options) *Service {
	return &Service{Options: o, wake: make(chan struct{}, 1), runs: map[int64]bool{}, has: map[string]bool{}}
}

// Wake says that something has happened that shipping may wait for; with ended, that a
// run may begin to be shipped.
func (v *Service) Wake(run int64, ended bool) {
	if ended {
		v.mu.Lock()
		v.runs[run] = true
		v.mu.Unlock()
	}
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

func (v *Service) now() time.Time { return v.Now().UTC().Truncate(time.Microsecond) }

// Run works until ctx ends.
func (v *Service) Run(ctx context.Context) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var looked time.Time
	for {
		if now := v.now(); now.Sub(looked) > lookEvery { // what ended while no process ran, or in one that was killed
			if err := v.look(ctx, looked); err == nil {
				looked = now
			} else if ctx.Err() == nil {
				v.Log.Warn("look for what is to be shipped", "error", err)
			}
		}
		if err := v.Round(ctx); err != nil && ctx.Err() == nil {
			v.Log.Warn("ship", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		case <-tick.C:
		}
	}
}

// look finds runs that may begin to be shipped, of which nobody tells any more: those
// that changed since it looked before, or lately.
func (v *Service) look(ctx context.Context, before time.Time) error {
	if since := v.now().Add(-recent); before.Before(since) {
		before = since
	}
	for _, state := range []pipeline.State{pipeline.StateVerified, pipeline.StateAccepted} {
		rows, err := v.DB.Runs(ctx, store.Filter{State: state, Limit: mostRuns})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Updated.After(before.Add(-lookEvery)) {
				v.mu.Lock()
				v.runs[r.ID] = true
				v.mu.Unlock()
			}
		}
	}
	return nil
}

// Round does all that can be done now.
func (v *Service) Round(ctx context.Context) error {
	v.working.Lock()
	defer v.working.Unlock()
	errs := []error{v.beginAll(ctx)}
	rows, err := v.DB.ActiveShips(ctx, nil)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, row := range rows {
		if paused, err := v.DB.Paused(ctx, row.Repo); paused || err != nil { // nothing is merged meanwhile
			errs = append(errs, err)
			continue
		}
		err := v.ship(ctx, row.Run)
		if errors.Is(err, store.ErrConflict) { // somebody has answered, or another process does it
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// beginAll begins to ship the runs that were told of.
func (v *Service) beginAll(ctx context.Context) error {
	v.mu.Lock()
	runs := make([]int64, 0, len(v.runs))
	for id := range v.runs {
		runs = append(runs, id)
	}
	v.mu.Unlock()
	slices.Sort(runs)
	var errs []error
	for _, id := range runs {
		if err := v.beginOne(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		v.mu.Lock()
		delete(v.runs, id)
		v.mu.Unlock()
	}
	return errors.Join(errs...)
}

func (v *Service) beginOne(ctx context.Context, id int64) error {
	run, err := v.DB.Load(ctx, id)
	if err != nil || !run.Config.Ship.Enabled || run.Closed != "" || !Verified(run) {
		return err
	}
	if _, err := Of(ctx, v.DB, id); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	err = v.save(ctx, &store.Ship{Run: id, Repo: run.Repo.FullName()}, New(run))
	if errors.Is(err, store.ErrConflict) { // another process has begun
		return nil
	}
	return err
}

// shipOf is what a row holds.
func shipOf(row *store.Ship) (*Ship, error) {
	var s Ship
	if err := json.Unmarshal(row.Data, &s); err != nil {
		return nil, fmt.Errorf("read how run %d is shipped: %w", row.Run, err)
	}
	s.Repo = row.Repo
	return &s, nil
}

// save writes what has changed.
func (v *Service) save(ctx context.Context, row *store.Ship, s *Ship) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err // unreachable: plain fields
	}
	row.Active, row.Busy, row.Data = s.active(), s.busy(), data
	return v.DB.SaveShip(ctx, row)
}

// ship does for one run all that can be done now, and writes each step down before the
// next.
func (v *Service) ship(ctx context.Context, id int64) (err error) {
	defer panics.AsError(ctx, v.Log.With("run", id), &err, "shipping a run") // others are shipped
	for range mostSteps {
		row, err := v.DB.Ship(ctx, id)
		if err != nil {
			return err
		}
		s, err := shipOf(row)
		if err != nil {
			return err
		}
		run, err := v.DB.Load(ctx, id)
		if err != nil {
			return err
		}
		before := s.State
		changed, err := v.step(ctx, row, s, run)
		if err != nil {
			return fmt.Errorf("ship run %d (%s): %w", id, before, err)
		}
		if !changed {
			return nil
		}
		if err := v.save(ctx, row, s); err != nil {
			return err
		}
		if s.State != before {
			v.Log.Info("shipping", "run", id, "what", s.Why)
		}
	}
	return nil
}

// step does the next thing, and reports whether there was one.
func (v *Service) step(ctx context.Context, row *store.Ship, s *Ship, run *pipeline.Run) (bool, error) {
	now := v.now()
	if v.held(s, now) && (s.State != Merging || len(s.Say)+len(s.Out) > 0) {
		return false, nil
	}
	work, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if len(s.Out) > 0 {
		if v.Record != nil {
			o := s.Out[0]
			e := pipeline.Event{ID: o.ID, Type: o.Type, Source: "forge", Data: pipeline.Data{Ship: &o.Step}}
			if err := v.Record(work, run.ID, []pipeline.Event{e}); err != nil {
				return false, err
			}
		}
		s.Out = s.Out[1:]
		return true, nil
	}
	if len(s.Say) > 0 {
		m := s.Say[0]
		if err := v.GitHub.Ask(work, pipeline.Notice{Repo: run.Repo, Pull: s.Pull}, m.question(), m.Key); err != nil {
			return false, err
		}
		s.Say = s.Say[1:]
		return true, nil
	}
	switch s.State {
	case Unverified:
		return v.unverified(work, s, run, now)
	case Asking:
		return v.asking(work, s, run, now)
	case Agreed:
		s.to(Merging, now, "", "it is merged at %s", text.ShortSHA(s.Head))
		return true, nil
	case Merging:
		return v.merge(work, row, s, run, now)
	case Leaving:
		return v.leave(work, s, run, now)
	case Deploying:
		return v.deploy(work, row, s, run, now)
	case Rolling:
		return v.rolling(work, s, run, now)
	case Watching:
		return v.watching(work, s, run, now)
	}
	return false, nil
}

// held reports whether another process acts now.
func (v *Service) held(s *Ship, now time.Time) bool {
	return s.Holder != "" && s.Holder != v.Name && now.Before(s.Until)
}

// claim keeps other processes from acting for a while. It is written down at once.
func (v *Service) claim(ctx context.Context, row *store.Ship, s *Ship, now time.Time) error {
	s.Holder, s.Until = v.Name, now.Add(hold)
	return v.save(ctx, row, s)
}

// over says by what a run's work cannot be shipped any more, "" by nothing. People may
// have merged it themselves: then they are asked before it is deployed.
func (v *Service) over(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	if run.Closed == "" {
		return false, nil
	}
	p, err := v.GitHub.Shipping(ctx, run.Repo, s.Pull)
	if err != nil {
		return false, err
	}
	switch {
	case p.Merged != "" && p.Base != run.Repo.DefaultBranch:
		s.stop(now, "", "it was merged into %s, and it was verified for %s", p.Base, run.Repo.DefaultBranch)
	case p.Merged != "" && p.Head == s.Head:
		s.Foreign = true
		v.merged(s, p.Merged, now)
	case p.Merged != "":
		s.stop(now, "", "it was merged at %s, which people were not asked about", text.ShortSHA(p.Head))
	case p.Closed:
		s.stop(now, "", "the pull request was closed")
	default:
		return false, nil // it was opened again
	}
	return true, nil
}

// unverified asks once the work is verified, if the App may do what is to be done.
func (v *Service) unverified(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	if changed, err := v.over(ctx, s, run, now); changed || err != nil || !Verified(run) {
		return changed, err
	}
	if s.deploys() && len(s.Settings.Environments) > 0 {
		err := v.GitHub.MayDeploy(ctx, run.Repo)
		if fault := refusal(err); fault != nil {
			s.stop(now, "", "Forge may not deploy: %s", sentence(fault))
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	p, err := v.GitHub.Shipping(ctx, run.Repo, s.Pull)
	if err != nil {
		return false, err
	}
	if p.Base != run.Repo.DefaultBranch {
		s.stop(now, "", "its base is %s, and it was verified for %s", p.Base, run.Repo.DefaultBranch)
		return true, nil
	}
	s.Base = p.Base
	why := ""
	if s.Asked > 0 {
		why = "it was asked about before: " + s.Why
		if run.Head != s.Head {
			why = "it was worked on since it was asked about, and stands again"
		}
	}
	if run.State == pipeline.StateAccepted {
		why = "it is not verified: it was accepted with its known issues"
	}
	s.askMerge(run.Head, why, now)
	return true, nil
}

// refusal is a fault that trying again does not cure.
func refusal(err error) *pipeline.Fault {
	var fault *pipeline.Fault
	if errors.As(err, &fault) && fault.Final {
		return fault
	}
	return nil
}

// asking waits for an answer, as long as the question holds.
func (v *Service) asking(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	if s.Merged == "" {
		if changed, err := v.over(ctx, s, run, now); changed || err != nil {
			return changed, err
		}
		if !Verified(run) || run.Head != s.Head {
			why := "the head moved on from " + text.ShortSHA(s.Head)
			if run.Head == s.Head {
				why = "it was closed, or did not stand any more, and was opened again"
			}
			s.to(Unverified, now, "", "%s", why)
			return true, nil
		}
	}
	if s.Merged != "" {
		if turned, err := v.turned(ctx, s, run, now); turned || err != nil {
			return turned, err
		}
	}
	if q := s.Question; q.Wait {
		if d, err := v.deployment(ctx, s, run); err != nil || d != nil && s.decided(d) {
			s.to(Rolling, now, "", "the deployment to %s got on", s.environment())
			return err == nil, err
		}
	}
	if limit := run.Config.Gates.Timeout(); now.Sub(s.Question.At) > limit {
		s.stop(now, "", "nobody answered within %d hours", int(limit.Hours()))
		return true, nil
	}
	return false, nil
}

// merge merges the pull request at the head that people agreed to, and at no other.
func (v *Service) merge(ctx context.Context, row *store.Ship, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	p, err := v.GitHub.Shipping(ctx, run.Repo, s.Pull)
	if err != nil {
		return false, err
	}
	switch {
	case p.Merged != "" && p.Base != run.Repo.DefaultBranch:
		s.stop(now, "", "it was merged into %s, and it was verified for %s", p.Base, run.Repo.DefaultBranch)
		return true, nil
	case p.Merged != "" && p.Head != s.Head:
		s.stop(now, "", "it was merged at %s, and people agreed to %s", text.ShortSHA(p.Head), text.ShortSHA(s.Head))
		return true, nil
	case p.Merged != "":
		v.merged(s, p.Merged, now)
		return true, nil
	case p.Closed:
		s.stop(now, "", "the pull request was closed")
		return true, nil
	case p.Base != run.Repo.DefaultBranch:
		s.stop(now, "", "its base is %s, and it was verified for %s", p.Base, run.Repo.DefaultBranch)
		return true, nil
	case p.Head == s.Head && run.Head == s.Head && !Verified(run):
		s.to(Unverified, now, "", "it is not verified any more at %s", text.ShortSHA(s.Head))
		s.tell(fmt.Sprintf("Nothing was merged: %s, which people agreed to, is not verified any more, as %s has moved on or it was reopened. "+
			"You are asked again once it is.", text.ShortSHA(s.Head), p.Base))
		return true, nil
	case p.Head != s.Head || run.Head != s.Head || !Verified(run):
		s.to(Unverified, now, "", "the head moved from %s", text.ShortSHA(s.Head))
		s.tell(fmt.Sprintf("Nothing was merged: the head moved from %s, which people agreed to, to %s. You are asked again once that is verified.",
			text.ShortSHA(s.Head), text.ShortSHA(p.Head)))
		return true, nil
	case p.Queued:
		return false, nil // GitHub tells when it is merged, or the tick finds it out of the queue
	case p.Queue && s.Enqueued:
		s.askMerge(s.Head, "the merge queue gave it back", now)
		return true, nil
	}
	if v.held(s, now) { // to look does no harm
		return false, nil
	}
	if err := v.claim(ctx, row, s, now); err != nil {
		return false, err
	}
	if p.Queue {
		s.Enqueued = true
		err = v.GitHub.Enqueue(ctx, run.Repo, p)
	} else {
		err = v.GitHub.MergeAt(ctx, run.Repo, s.Pull, s.Head, s.method())
	}
	fault := refusal(err)
	if fault == nil && (err == nil || now.Sub(s.Since) < s.Settings.Timeout()) {
		return err == nil, err // what came of it is looked up
	}
	if p, late := v.GitHub.Shipping(ctx, run.Repo, s.Pull); late != nil || p.Head != s.Head || p.Merged != "" {
		return late == nil, late // somebody was quicker
	}
	s.askMerge(s.Head, "it was not merged: "+sentence(err), now)
	return true, nil
}

// leave stops what was being merged: it takes the pull request out of the merge queue
// into which Forge has put it. When GitHub does not let it, or it was merged by then,
// people are told so.
func (v *Service) leave(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	p, err := v.GitHub.Shipping(ctx, run.Repo, s.Pull)
	if err != nil {
		return false, err
	}
	why := s.Why // who stopped it
	switch {
	case p.Merged != "":
		s.Merged, s.MergedAt = p.Merged, now
		s.stop(now, "", "%s, but it was merged by then", why)
	case p.Queued && s.Refused != "": // nothing but to wait for what comes of it
		return false, nil
	case p.Queued:
		err := v.GitHub.Dequeue(ctx, run.Repo, p)
		if err == nil { // whether it is out is looked up
			s.Dequeued = true
			return true, nil
		}
		fault := refusal(err)
		if fault == nil && now.Sub(s.Since) < s.Settings.Timeout() {
			return false, err
		}
		s.Refused = sentence(err)
		s.tell(fmt.Sprintf("The pull request **is still in the merge queue**, although %s: %s. "+
			"Take it out there by hand. Once it is merged or out of it, you are told.", why, s.Refused))
	case s.Dequeued:
		s.stop(now, "", "%s, and the pull request was taken out of the merge queue", why)
	default:
		s.stop(now, "", "%s", why)
	}
	return true, nil
}

// sentence makes a part of a sentence of an error.
func sentence(err error) string {
	words := err.Error()
	var fault *pipeline.Fault
	if errors.As(err, &fault) {
		words = fault.Message
	}
	return text.Clip(strings.TrimRight(text.OneLine(words), "."), 300)
}

// merged goes on to the environments.
func (v *Service) merged(s *Ship, sha string, now time.Time) {
	s.Merged, s.MergedAt = sha, now
	s.Log = append(s.Log, Entry{At: now, What: "merged as " + text.ShortSHA(sha)})
	s.log(pipeline.EventShipMerged, rollout.Step{Commit: sha, At: now, Why: "merged as " + text.ShortSHA(sha)})
	s.next(now, "")
}

// turned stops it when a deployment by which it came this far has failed after all, or is not
// healthy any more: it was asked about, or agreed to, without that.
func (v *Service) turned(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	for _, r := range s.arrivals() {
		if r.Turned != "" { // people know
			continue
		}
		list, err := incidents.Deployments(ctx, v.DB, store.DeploymentFilter{Repo: run.Repo.FullName(), Environment: r.Environment, Limit: 100})
		if err != nil {
			return false, err
		}
		switch d := byID(list, r.Deployment); {
		case d == nil:
			continue
		case d.State == "failure" || d.State == "error":
			r.Turned = fmt.Sprintf("deployment %d to %s ended as %s after it had succeeded", d.ID, r.Environment, d.State)
		case d.Bake != nil && r.State != d.Bake.State && (d.Bake.State == rollout.Unhealthy || d.Bake.State == rollout.RolledBack):
			r.Turned = d.Bake.Status().String()
		default:
			continue
		}
		s.stop(now, "", "%s", r.Turned)
		return true, nil
	}
	return false, nil
}

// deploy makes the deployment to the present environment, unless it is there.
func (v *Service) deploy(ctx context.Context, row *store.Ship, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	if turned, err := v.turned(ctx, s, run, now); turned || err != nil {
		return turned, err
	}
	env := s.environment()
	other, err := v.newer(ctx, s, run)
	if err != nil {
		return false, err
	}
	if other != nil {
		s.Record, s.Seen = s.Record[:len(s.Record)-1], other.ID // nothing was begun
		s.ask(Question{About: env, Why: fmt.Sprintf("deployment %d brought %s there in the meantime, which this may take back",
			other.ID, text.ShortSHA(other.Commit))}, now)
		return true, nil
	}
	if err := v.claim(ctx, row, s, now); err != nil {
		return false, err
	}
	id, err := v.GitHub.Deploy(ctx, run.Repo, github.Deploying{
		Environment: env, Commit: s.Merged, Task: "deploy", Any: true, Key: fmt.Sprintf("ship/%d/%s/%d", s.Run, env, s.tries()),
		Description: fmt.Sprintf("#%d, run %d", s.Pull, s.Run),
	})
	if err != nil && (refusal(err) != nil || now.Sub(s.Since) > s.Settings.Timeout()) {
		s.stop(now, "", "there is no deployment to %s: %s", env, sentence(err))
		return true, nil
	}
	if err != nil {
		return false, err
	}
	s.record().Deployment = id
	s.to(Rolling, now, "", "deployment %d to %s is made", id, env)
	return true, nil
}

// newer is the newest deployment of something else to the present environment that was
// made since people agreed to merge, and which they were not told of; nil for none.
func (v *Service) newer(ctx context.Context, s *Ship, run *pipeline.Run) (*store.Deployment, error) {
	since := s.MergedAt
	if !s.AgreedAt.IsZero() { // it may have been merged long before that was seen
		since = s.AgreedAt
	}
	f := store.DeploymentFilter{Repo: run.Repo.FullName(), Environment: s.environment(), Since: since.Truncate(time.Second)} // as GitHub's times are
	list, err := v.DB.Deployments(ctx, f)
	if err != nil {
		return nil, err
	}
	var newest *store.Deployment
	for n := range list {
		if d := &list[n]; d.Commit != s.Merged && d.ID > s.Seen && (newest == nil || d.ID > newest.ID) {
			newest = d
		}
	}
	return newest, nil
}

// deployment is what is known of the present environment's deployment; nil for nothing.
func (v *Service) deployment(ctx context.Context, s *Ship, run *pipeline.Run) (*production.Deployment, error) {
	list, err := incidents.Deployments(ctx, v.DB, store.DeploymentFilter{Repo: run.Repo.FullName(), Environment: s.environment(), Limit: 100})
	if err != nil {
		return nil, err
	}
	r := s.record()
	if s.deploys() || r.Deployment != 0 {
		return byID(list, r.Deployment), nil
	}
	return v.following(ctx, s, list, r.Began.Add(-time.Hour)), nil
}

// byID is the deployment of that number; nil when it is not among them.
func byID(list []production.Deployment, id int64) *production.Deployment {
	if n := slices.IndexFunc(list, func(d production.Deployment) bool { return d.ID == id }); n >= 0 {
		return &list[n]
	}
	return nil
}

// mostNewer is how many deployments of other commits are looked at for whether they have the
// merge.
const mostNewer = 10

// following is the repository's own deployment of the merge, or else the newest of a commit that
// has it; nil for none.
func (v *Service) following(ctx context.Context, s *Ship, list []production.Deployment, since time.Time) *production.Deployment {
	list = slices.DeleteFunc(list, func(d production.Deployment) bool {
		return d.Task == production.TaskRollBack || d.Created.Before(since)
	})
	for n := range list {
		if list[n].Commit == s.Merged {
			return &list[n]
		}
	}
	for n := range list[:min(len(list), mostNewer)] {
		has, err := v.contains(ctx, s, list[n].Commit)
		if err != nil { // it may be gone: nothing is held up by it
			v.Log.Warn("ship", "run", s.Run, "error", err)
		}
		if has {
			return &list[n]
		}
	}
	return nil
}

// contains reports whether a commit has the merge. What was looked up stays so.
func (v *Service) contains(ctx context.Context, s *Ship, commit string) (bool, error) {
	key := commit + " " + s.Merged
	has, known := v.has[key]
	if known || v.Has == nil {
		return has, nil
	}
	has, err := v.Has(ctx, s.Repo, commit, s.Merged)
	if err != nil {
		return false, fmt.Errorf("look whether %s has %s: %w", text.ShortSHA(commit), text.ShortSHA(s.Merged), err)
	}
	if len(v.has) > 1000 {
		clear(v.has)
	}
	v.has[key] = has
	return has, nil
}

// decided reports whether it is known how a deployment ended.
func (s *Ship) decided(d *production.Deployment) bool {
	return !d.At.IsZero() || slices.Contains([]string{"failure", "error", "inactive"}, d.State)
}

// rolling follows the present deployment.
func (v *Service) rolling(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	d, err := v.deployment(ctx, s, run)
	if err != nil {
		return false, err
	}
	r, since, env := s.record(), s.Since, s.environment()
	if d != nil {
		r.Deployment = d.ID
		if d.Changed.After(since) {
			since = d.Changed
		}
	}
	switch {
	case d != nil && !d.At.IsZero():
		r.Succeeded = d.At
		return true, v.deployed(ctx, s, run, *d, now)
	case d != nil && s.decided(d):
		s.stop(now, "", "deployment %d of %s to %s ended as %s", d.ID, text.ShortSHA(s.Merged), env, d.State)
		return true, nil
	case r.Deployment != 0 && s.deploys() && now.Sub(since) >= missed && now.Sub(s.Looked) >= missed:
		s.Looked = now
		return true, v.catchUp(ctx, s, run, d)
	case now.Sub(since) < s.Settings.Timeout():
		return false, nil
	}
	why := fmt.Sprintf("Nothing listens to deployments of %s: nothing has said for %s how deployment %d goes", env, minutes(now.Sub(since)), r.Deployment)
	switch {
	case d == nil && !s.deploys():
		why = fmt.Sprintf("Nothing deploys %s to %s, for %s by now", text.ShortSHA(s.Merged), env, minutes(now.Sub(since)))
	case d != nil && d.State != "pending":
		why = fmt.Sprintf("Deployment %d to %s is %s, for %s by now", d.ID, env, d.State, minutes(now.Sub(since)))
	}
	s.ask(Question{About: env, Wait: true, Why: why}, now)
	return true, nil
}

// catchUp looks what was said of the present deployment, where webhooks may be missed. It
// comes in at the door of webhooks.
func (v *Service) catchUp(ctx context.Context, s *Ship, run *pipeline.Run, known *production.Deployment) error {
	r := s.record()
	list, err := v.GitHub.Statuses(ctx, run.Repo, r.Deployment)
	if refusal(err) != nil { // it was deleted, or may not be seen: the question says that nothing is known
		return nil
	}
	if err != nil {
		return err
	}
	for _, one := range list {
		if known != nil && one.At.Before(known.Changed) { // several are of one second; what is known already is a repeat
			continue
		}
		at := one.At.Format(time.RFC3339)
		body, err := json.Marshal(map[string]any{
			"deployment": map[string]any{"id": r.Deployment, "sha": s.Merged, "ref": s.Merged, "task": "deploy",
				"environment": r.Environment, "created_at": r.Began.Format(time.RFC3339)},
			"deployment_status": map[string]any{"state": one.State, "description": one.Description, "created_at": at},
			"repository":        map[string]any{"full_name": run.Repo.FullName()},
		})
		if err != nil {
			return err // unreachable: plain fields
		}
		if err := v.Take(ctx, fmt.Sprintf("deployment:%d:%s:%d", r.Deployment, one.State, one.At.Unix()), "deployment_status", body); err != nil {
			return err
		}
	}
	return nil
}

// deployed begins to watch what was deployed, as every deployment is watched; one that
// is not goes on.
func (v *Service) deployed(ctx context.Context, s *Ship, run *pipeline.Run, d production.Deployment, now time.Time) error {
	minutes := s.Settings.BakeMinutes
	if minutes == 0 {
		s.arrived(now, "", "", "")
		return nil
	}
	if d.Bake == nil {
		b := production.NewBake(d, []production.Work{{Run: s.Run, Pull: s.Pull, Began: run.Started}}, time.Duration(minutes)*time.Minute)
		err := incidents.BeginBake(ctx, v.DB, b)
		if err != nil && !errors.Is(err, store.ErrConflict) { // it is watched already
			return err
		}
	}
	s.to(Watching, now, "", "%s is watched", s.environment())
	return nil
}

// watching waits for what the watch over the deployment comes to.
func (v *Service) watching(ctx context.Context, s *Ship, run *pipeline.Run, now time.Time) (bool, error) {
	d, err := v.deployment(ctx, s, run)
	if err != nil || d == nil || d.Bake == nil {
		return false, err
	}
	r, env := s.record(), s.environment()
	r.State = d.Bake.State
	switch d.Bake.State {
	case rollout.Watched:
		return false, nil
	case rollout.Healthy:
		s.arrived(now, rollout.Healthy, "", "")
	case rollout.Unknown:
		s.ask(Question{About: env, Pass: true, Why: fmt.Sprintf("Whether %s is healthy is not known: %s", env, d.Bake.Why)}, now)
	default:
		s.stop(now, "", "%s", d.Bake.Status())
	}
	return true, nil
}

// OnItsWay lists what goes on, oldest first: of these repositories, nil for all.
func OnItsWay(ctx context.Context, db *store.DB, repos []string) (out []*Ship, err error) {
	rows, err := db.ActiveShips(ctx, repos)
	for n := range rows {
		s, wrong := shipOf(&rows[n])
		if wrong != nil {
			return nil, wrong
		}
		out = append(out, s)
	}
	return out, err
}

// Waits says since when the oldest question waits for a person, and the oldest step that
// is GitHub's or a deployer's for its end; zero for none.
func Waits(ctx context.Context, db *store.DB) (question, step time.Time, err error) {
	list, err := OnItsWay(ctx, db, nil)
	oldest := func(t *time.Time, at time.Time) {
		if t.IsZero() || at.Before(*t) {
			*t = at
		}
	}
	for _, s := range list {
		switch s.State {
		case Asking:
			oldest(&question, s.Question.At)
		case Merging, Leaving, Deploying, Rolling:
			oldest(&step, s.Since)
		}
	}
	return question, step, err
}

// Of reads how a run's work is shipped. The error is store.ErrNotFound when it is not.
func Of(ctx context.Context, db *store.DB, run int64) (*Ship, error) {
	row, err := db.Ship(ctx, run)
	if err != nil {
		return nil, err
	}
	return shipOf(row)
}

// All returns everything that is or was shipped, oldest first.
func All(ctx context.Context, db *store.DB) ([]*Ship, error) {
	rows, err := db.Ships(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]*Ship, len(rows))
	for i := range rows {
		if list[i], err = shipOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}
