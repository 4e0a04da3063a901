package server

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"forge/cmd/forge/settings"
	"forge/github"
	"forge/learn/metrics"
	"forge/pipeline/work"
)

// startUpkeep starts what goes on beside the engine; Stop ends it.
func (s *Server) startUpkeep(ctx context.Context) {
	base, halt := context.WithCancel(context.WithoutCancel(ctx))
	s.halt = halt
	beside := func(what string, loop func(context.Context)) { s.beside(base, what, loop) }
	beside("looking for missed deliveries", func(ctx context.Context) { s.sweep(ctx, waitFor) })
	if s.config.Poll {
		beside("polling", func(ctx context.Context) { s.poll(ctx, s.pollEvery) })
	}
	beside("learning", s.Learner.Run)
	beside("tidying up", func(ctx context.Context) { s.tidy(ctx, s.now, s.config) })
	beside("measuring", s.measure)
	beside("probing the sandbox", s.keepProbing)
	beside("watching the database", s.watchDatabase)
	beside("telling that the server is there", s.beats)
	if s.config.BackupEvery > 0 && ofFile(s.config) {
		beside("backing up", s.keepBackups)
	}
	beside("telling subscribers", s.bus.Run)
	beside("reading what production says", s.Incidents.Run)
	beside("shipping", s.Shipping.Run)
	if len(s.config.HealthChecks) > 0 {
		beside("checking health", func(ctx context.Context) { s.healthChecks().Run(ctx) })
	}
}

// beside has something go on until ctx ends, unless it ended the process twice.
func (s *Server) beside(ctx context.Context, what string, loop func(context.Context)) {
	if what != s.aside {
		s.aux.Go(func() { s.keepGoing(ctx, what, waitFor, loop) })
	}
}

// anewAfter is how long what panicked waits before it begins anew.
const anewAfter = time.Minute

// keepGoing carries out what goes on beside the engine until ctx ends. When it panics,
// that is told, and it begins anew after a while: without that, one run that something
// cannot deal with would end the server, which meets the same run after its next start.
func (s *Server) keepGoing(ctx context.Context, what string, wait func(context.Context, time.Duration) bool, loop func(context.Context)) {
	ctx, done := work.Working(ctx, jobLabel+what)
	defer done()
	again := func() (panicked bool) {
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(ctx, "a panic; it begins anew in a minute", "what", what, "error", p, "stack", string(debug.Stack()))
				panicked = true
			}
		}()
		loop(ctx)
		return false
	}
	for again() && wait(ctx, anewAfter) {
	}
}

// watchEvery is how often the server looks whether its database is in place.
const watchEvery = 5 * time.Second

// watchDatabase copies the database as soon as its file is deleted or replaced: until
// the process ends, what was in it can be read.
func (s *Server) watchDatabase(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	said := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch path, err := s.DB.Rescue(ctx); {
		case err != nil && ctx.Err() == nil:
			s.log.Error("copy the database, whose file is gone", "error", err)
		case path != "" && !said:
			said = true
			s.log.Error("the database file was deleted or replaced: nothing is kept any more; stop Forge, move the copy to its place and start again", "copy", path)
		}
	}
}

// How GitHub is asked for deliveries that did not arrive. Every minute the newest are
// looked at, as far as the attempts at one of them go, so that one that GitHub lists
// ten seconds after it failed is there within two minutes; at the start and every hour
// all of them, which GitHub keeps for three days (a GitHub Enterprise Server for seven).
// That is at most 650 of the 5,000 calls that an App has in an hour; most take one.
const (
	sweepEvery  = time.Minute
	sweepRecent = time.Hour
	sweepPages  = 10
	sweepBack   = 71 * time.Hour
	sweepAll    = 50 // pages
)

// sweep asks GitHub who the App is, until it knows, and has it send again what was
// missed while the server was away: GitHub does not do so by itself. wait returns false
// when ctx has ended.
func (s *Server) sweep(ctx context.Context, wait func(context.Context, time.Duration) bool) {
	var whole time.Time // when all was looked at
	for {
		if _, err := s.GitHub.identity(ctx); err != nil && ctx.Err() == nil { // to know its own comments' boxes
			s.log.Warn("ask for the App's own user", "error", err)
		}
		var missed []string
		var err error
		if !s.config.Poll { // which reads them itself
			now := s.now()
			o := github.Sweeping{Since: now.Add(-sweepRecent), Pages: sweepPages, Now: now}
			if whole.IsZero() || now.Sub(whole) >= sweepRecent {
				o.Since, o.Pages = now.Add(-sweepBack), sweepAll
			}
			if missed, err = s.GitHub.App.Sweep(ctx, o); err == nil && o.Pages == sweepAll {
				whole = now
			}
		}
		pause := sweepEvery
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			var limit interface{ RetryAfter() time.Duration }
			if errors.As(err, &limit) {
				pause = max(pause, limit.RetryAfter())
			}
			s.log.Warn("look for missed deliveries", "error", err)
		case len(missed) > 0:
			s.log.Info("missed deliveries are sent again", "deliveries", len(missed))
		}
		if !wait(ctx, pause) {
			return
		}
	}
}

// waitFor waits, unless ctx ends before.
func waitFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tidyEvery is how often what is no longer needed is deleted.
const tidyEvery = 6 * time.Hour

// tidy deletes old payloads and tapes, what earlier processes left on the disk and caches
// that nothing uses, and maintains the memory, at the start and then at intervals.
func (s *Server) tidy(ctx context.Context, now func() time.Time, cfg settings.Config) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := s.prune(ctx, now(), cfg); err != nil && ctx.Err() == nil {
			s.log.Warn("delete what is old", "error", err)
		}
		if err := errors.Join(s.spaces.Sweep(ctx), s.Gateway.Collect(ctx, now())); err != nil && ctx.Err() == nil {
			s.log.Warn("remove what nothing uses from the disk", "error", err)
		}
		if err := s.Learner.Maintain(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("maintain the memory", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// keepMonth is for how many days incidents are kept in any case: their limits count so far
// back.
const keepMonth = 31

// prune deletes what is older than the configuration keeps.
func (s *Server) prune(ctx context.Context, now time.Time, cfg settings.Config) error {
	errs := []error{s.DB.PruneTurns(ctx, now.AddDate(0, 0, -1))}
	if days := cfg.KeepDeliveries; days > 0 {
		n, err := s.DB.PruneDeliveries(ctx, now.AddDate(0, 0, -days))
		errs = append(errs, err)
		if n > 0 {
			s.log.Info("payloads of old deliveries are deleted", "deliveries", n)
		}
	}
	if days := cfg.KeepIncidents; days > 0 {
		n, err := s.DB.PruneProduction(ctx, now.AddDate(0, 0, -max(days, keepMonth)))
		errs = append(errs, err)
		if n > 0 {
			s.log.Info("old incidents are deleted", "incidents", n)
		}
	}
	if days := cfg.KeepTapes; days > 0 {
		n, err := s.DB.PruneTapes(ctx, now.AddDate(0, 0, -days))
		errs = append(errs, err)
		if n > 0 {
			s.log.Info("tapes of old runs are deleted", "runs", n)
		}
	}
	return errors.Join(errs...)
}

// measureEvery is how often the daily sums are brought up to date with the log. It
// reads what has gone on since, so that a day is complete when it is over.
const measureEvery = 5 * time.Minute

// measure keeps the daily sums of the metrics up to date.
func (s *Server) measure(ctx context.Context) {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		if _, err := s.DB.MeasureRuns(ctx, metrics.Of); err != nil && ctx.Err() == nil {
			s.log.Warn("measure runs", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
