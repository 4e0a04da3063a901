package server

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/store"
)

// beatEvery is how often a server says how it is, and looks whether it is to drain.
const beatEvery = 5 * time.Second

// beats keeps this server on the list of all until ctx ends, and drains it when it is
// asked to.
func (s *Server) beats(ctx context.Context) {
	p := s.peer()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	told := false
	for {
		err := s.report(ctx, p)
		if err != nil && !told && ctx.Err() == nil {
			s.log.Warn("this server is not on the list of servers", "error", err)
		}
		told = err != nil
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := s.DB.Leave(last, p.ID); err != nil {
			s.log.Debug("leave the list of servers", "error", err)
		}
		return
	}
}

// peer is this server on the list of all.
func (s *Server) peer() store.Peer {
	return store.Peer{ID: s.Engine.ID(), Process: processName(), Version: Version(), Started: s.now(), Processors: runtime.NumCPU()}
}

// report says how this server is, and drains it when it is asked to, or when a newer one
// has upgraded the database.
func (s *Server) report(ctx context.Context, p store.Peer) error {
	p.Seen, p.Load = s.now(), loadOfMachine()
	p.FreeDisk, _ = freeDisk(s.config.StateDir)
	drain, err := s.DB.Beat(ctx, p)
	newer, look := s.DB.Newer(ctx)
	err = errors.Join(err, look)
	if err == nil && (drain || newer) && s.health.draining.CompareAndSwap(false, true) {
		if newer {
			s.log.Error("a newer Forge has upgraded the database, and would write what this one does not know: end this server, and start the newer one in its place")
		}
		s.drain(ctx)
	}
	return err
}

// drain ends the work of this server, in order: others go on with it. It still takes in
// webhooks and shows its pages, and is not ready, so that a proxy asks another.
func (s *Server) drain(ctx context.Context) {
	s.log.Info("this server is drained: what it works on stops at its next step, and nothing begins; end it, or start it again")
	stop, cancel := context.WithTimeout(ctx, DrainTime)
	defer cancel()
	if err := s.stopEngine(stop); err != nil && ctx.Err() == nil {
		s.log.Warn("drain this server", "error", err)
	}
}

// loadOfMachine is the load over the last minute; 0 where it is not told.
func loadOfMachine() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
