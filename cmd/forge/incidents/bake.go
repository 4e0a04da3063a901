package incidents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/config"
	"forge/pipeline/panics"
	"forge/pipeline/rollout"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// lookEvery is how often a deployment that is watched is measured; a little less than
// the tick, so that none is left out.
const lookEvery = tickEvery - 10*time.Second

// lookAgain is how long a deployment is left alone that is not to be watched: the settings
// may change.
const lookAgain = 10 * time.Minute

// bakeMost is for how long back deployments are looked for whose watch may begin.
const bakeMost = 24 * time.Hour

// BakeOf is the watch over a deployment that a row holds.
func BakeOf(row store.Bake) (*production.Bake, error) {
	var b production.Bake
	if err := json.Unmarshal(row.Data, &b); err != nil {
		return nil, fmt.Errorf("read the watch over deployment %d: %w", row.Deployment, err)
	}
	return &b, nil
}

// Deployments reads deployments, with how those fare that were watched.
func Deployments(ctx context.Context, db *store.DB, f store.DeploymentFilter) ([]production.Deployment, error) {
	out, err := readDeployments(ctx, db, f)
	if err != nil {
		return nil, err
	}
	repos := map[string]bool{}
	for _, d := range out {
		repos[d.Repo] = true
	}
	bakes, err := db.Bakes(ctx, store.BakeFilter{Repos: append([]string{}, slices.Sorted(maps.Keys(repos))...), Limit: 2000})
	if err != nil {
		return nil, err
	}
	for _, row := range bakes {
		n := slices.IndexFunc(out, func(d production.Deployment) bool { return d.Repo == row.Repo && d.ID == row.Deployment })
		if n < 0 {
			continue
		}
		if out[n].Bake, err = BakeOf(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// watch looks at deployments until ctx ends.
func (s *Service) watch(ctx context.Context) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		if err := s.Bake(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("watch deployments", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Bake watches the deployments that have succeeded a short time ago: it measures them by
// the server's health checks and queries, and says how they fare.
func (s *Service) Bake(ctx context.Context) error {
	if s.Actions == nil || s.Teller == nil {
		return nil
	}
	s.baking.Lock()
	defer s.baking.Unlock()
	rows, err := s.DB.Bakes(ctx, store.BakeFilter{Since: s.Now(), Limit: 1000})
	if err != nil {
		return err
	}
	errs := []error{s.guarded(ctx, func() error { return s.beginBakes(ctx, &rows) })}
	asked := answers{}
	for _, row := range rows {
		err := s.guarded(ctx, func() error { return s.bake(ctx, &row, asked) })
		if errors.Is(err, store.ErrConflict) { // another server has looked
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// guarded makes a panic an error: what is watched beside it goes on.
func (s *Service) guarded(ctx context.Context, f func() error) (err error) {
	defer panics.AsError(ctx, s.Log, &err, "watching a deployment")
	return f()
}

// beginBakes finds deployments whose watch is to begin.
func (s *Service) beginBakes(ctx context.Context, rows *[]store.Bake) error {
	if len(s.Checks)+len(s.Queries) == 0 {
		return nil
	}
	list, err := readDeployments(ctx, s.DB, store.DeploymentFilter{Since: s.Now().Add(-bakeMost), Limit: 500})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, r := range *rows {
		known[bakeKey(r.Repo, r.Deployment)] = true
	}
	maps.DeleteFunc(s.unwatched, func(_ string, at time.Time) bool { return s.Now().Sub(at) >= lookAgain })
	var errs []error
	for _, d := range list {
		key := bakeKey(d.Repo, d.ID)
		if d.At.IsZero() || s.Now().Sub(d.At) > bakeMost || known[key] || !s.unwatched[key].IsZero() || !s.measures(d.Repo, d.Environment) {
			continue
		}
		b, err := s.newBake(ctx, d)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("begin to watch deployment %d of %s: %w", d.ID, d.Repo, err))
		case b == nil:
			s.unwatched[key] = s.Now()
		default:
			*rows = append(*rows, store.Bake{Repo: b.Repo, Deployment: b.Deployment, Data: encoded(b)})
		}
	}
	return errors.Join(errs...)
}

func bakeKey(repo string, id int64) string { return fmt.Sprintf("%s#%d", repo, id) }

// measures reports whether the server can measure an environment of a repository.
func (s *Service) measures(repo, environment string) bool {
	checks, queries := s.measuresOf(repo, environment)
	return len(checks)+len(queries) > 0
}

func (s *Service) measuresOf(repo, environment string) (checks []settings.HealthCheck, queries []settings.Query) {
	here := func(r, e string) bool {
		return strings.EqualFold(r, repo) && strings.EqualFold(cmp.Or(e, "production"), environment)
	}
	for _, c := range s.Checks {
		if here(c.Repo, c.Environment) {
			checks = append(checks, c)
		}
	}
	for _, q := range s.Queries {
		if here(q.Repo, q.Environment) {
			queries = append(queries, q)
		}
	}
	return checks, queries
}

// newBake begins the watch over a deployment, nil when the repository's settings want
// none, or when its time is over already.
func (s *Service) newBake(ctx context.Context, d production.Deployment) (*production.Bake, error) {
	p, err := s.settings(ctx, d.Repo)
	if err != nil {
		return nil, err
	}
	length := time.Duration(p.BakeMinutes) * time.Minute
	if length == 0 || !p.Covers(d.Environment) || s.Now().After(d.At.Add(length)) {
		return nil, nil
	}
	work, err := s.workOf(ctx, d)
	if err != nil || len(work) == 0 && p.Watch != config.WatchAll {
		return nil, err
	}
	return production.NewBake(d, work, length), nil
}

// workOf is what runs have brought with a deployment.
func (s *Service) workOf(ctx context.Context, d production.Deployment) (out []production.Work, err error) {
	if s.Code == nil {
		return nil, nil
	}
	look, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	facts, err := s.Code.Facts(look, d.Repo, []production.Deployment{d}, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		for _, c := range f.Commits {
			if w := (production.Work{Run: c.Run, Pull: c.Pull, Began: c.Began}); c.Run != 0 && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out, nil
}

// bake looks at a deployment that is watched, when it is time, and judges how it fares.
func (s *Service) bake(ctx context.Context, row *store.Bake, asked answers) error {
	b, err := BakeOf(*row)
	if err != nil {
		return err
	}
	now := s.Now().UTC().Truncate(time.Microsecond)
	if b.Open(now) && now.Sub(b.Looked) >= lookEvery {
		if err := s.measure(ctx, b, now, asked); err != nil {
			return err
		}
	}
	incidents, deployments, err := s.since(ctx, b)
	if err != nil {
		return err
	}
	b.Judge(incidents, deployments, now)
	if err := s.saveBake(ctx, row, b); err != nil || b.Told == b.State {
		return err
	}
	if err := s.tellBake(ctx, b); err != nil {
		return fmt.Errorf("say how deployment %d of %s fares: %w", b.Deployment, b.Repo, err)
	}
	b.Told = b.State
	s.Log.Info("how a deployment fares", "repo", b.Repo, "deployment", b.Deployment, "what", b.Status().String())
	return s.saveBake(ctx, row, b)
}

// saveBake writes what has changed.
func (s *Service) saveBake(ctx context.Context, row *store.Bake, b *production.Bake) error {
	data := encoded(b)
	if row.Seq > 0 && string(data) == string(row.Data) {
		return nil
	}
	row.Data, row.Follow = data, b.FollowUntil()
	if err := s.DB.SaveBake(ctx, row); err != nil {
		return err
	}
	if s.OnChange != nil {
		s.OnChange(b.Repo)
	}
	return nil
}

// BeginBake begins the watch over a deployment. The error is store.ErrConflict when it is
// watched already.
func BeginBake(ctx context.Context, db *store.DB, b *production.Bake) error {
	return db.SaveBake(ctx, &store.Bake{Repo: b.Repo, Deployment: b.Deployment, Follow: b.FollowUntil(), Data: encoded(b)})
}

func encoded(b *production.Bake) []byte {
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // unreachable: plain fields, and no number of a query is infinite
	}
	return data
}

// since reads the incidents and deployments of a repository since one of its deployments.
func (s *Service) since(ctx context.Context, b *production.Bake) (incidents []*production.Incident, deployments []production.Deployment, err error) {
	incidents, err = Read(ctx, s.DB, store.IncidentFilter{Repo: b.Repo, Environment: b.Environment, Since: b.From, Limit: 1000})
	if err != nil {
		return nil, nil, err
	}
	f := store.DeploymentFilter{Repo: b.Repo, Environment: b.Environment, Since: b.From.Add(-bakeMost), Limit: 500}
	deployments, err = readDeployments(ctx, s.DB, f)
	return incidents, deployments, err
}

// measure looks once. What a query shows comes in at the same door as what monitors say,
// before the look is written down: after a crash it is said again.
func (s *Service) measure(ctx context.Context, b *production.Bake, now time.Time, shared answers) error {
	checks, queries := s.measuresOf(b.Repo, b.Environment)
	var list []production.Sample
	poller := &Poller{Log: s.Log, Now: s.Now}
	for _, c := range checks {
		list = append(list, watchOf(c).Sample(shared.probe(c.Name, func() production.Probe { return poller.probe(ctx, poller.client(c), c) })))
	}
	var asked []production.Query
	for _, q := range queries {
		one := production.Query{Name: q.Name, Max: q.Max, Min: q.Min, WorseBy: q.WorseBy}
		asked = append(asked, one)
		list = append(list, one.Judge(shared.compare(ctx, q, b, now)))
	}
	if ctx.Err() != nil {
		return ctx.Err() // what was not answered for this reason shows nothing
	}
	for _, o := range b.Take(list, asked, now) {
		data, err := json.Marshal(o)
		if err != nil {
			return err // unreachable: plain fields
		}
		if err := s.Take(ctx, fmt.Sprintf("%s:%d:%d:%s", o.Group, b.Deployment, now.Truncate(tickEvery).Unix(), o.Status), checkPrefix+o.Group, data); err != nil {
			return err
		}
	}
	return nil
}

// errPaused has people told when work goes on.
var errPaused = errors.New("work is paused")

// tellBake tells the runs whose work it is, and at their pull requests what came of it.
func (s *Service) tellBake(ctx context.Context, b *production.Bake) error {
	if paused, err := s.DB.Paused(ctx, b.Repo); paused || err != nil {
		return errors.Join(errPaused, err)
	}
	for _, w := range b.Work {
		if err := s.Teller.Released(ctx, w.Run, b.Status()); err != nil {
			return err
		}
	}
	if b.State == rollout.Watched || b.State == rollout.Replaced {
		return nil
	}
	pulls := map[int]bool{}
	for _, w := range b.Work {
		pulls[w.Pull] = true
	}
	key := fmt.Sprintf("bake/%d/%s", b.Deployment, strings.ReplaceAll(string(b.State), " ", "-"))
	for _, pull := range slices.Sorted(maps.Keys(pulls)) {
		if err := s.Teller.Tell(ctx, b.Repo, pull, bakeText(b), key); err != nil {
			return err
		}
	}
	return nil
}

// bakeText says how a deployment fares, and by what that is known.
func bakeText(b *production.Bake) string {
	var t strings.Builder
	words := b.Status().String()
	fmt.Fprintf(&t, "**%s**\n", strings.ToUpper(words[:1])+words[1:])
	if lines := b.Lines(); len(lines) > 0 {
		t.WriteString("\n")
		for _, l := range lines {
			fmt.Fprintf(&t, "- %s\n", text.Clip(l, 300))
		}
	}
	return t.String()
}
