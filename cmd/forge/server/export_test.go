package server

import (
	"context"
	"net/http"
	"time"

	"forge/cmd/forge/dashboard"
	"forge/cmd/forge/settings"
	"forge/pipeline"
)

// What the tests of a running server look at, or break, and its users do not: they start
// it by servertest, which imports this package, and so have to be outside it.

const (
	BackupForm    = backupForm
	CheckedFor    = checkedFor
	OnboardBranch = onboardBranch
)

var OpenStore = openStore

type (
	Condition = condition
	Readiness = readiness
)

func (s *Server) Beat() time.Time                               { return s.beat() }
func (s *Server) Now() time.Time                                { return s.now() }
func (s *Server) Checkup(ctx context.Context) dashboard.Checkup { return s.checkup(ctx) }
func (s *Server) Report(ctx context.Context) error              { return s.report(ctx, s.peer()) }
func (s *Server) Beside(f func())                               { s.aux.Go(f) }
func (s *Server) OpenRuns() []int64                             { return s.exec.Open() }
func (s *Server) ForgetSigning()                                { clear(s.GitHub.signer.signs) } // as after a restart

func (s *Server) Sweep(ctx context.Context, wait func(context.Context, time.Duration) bool) {
	s.sweep(ctx, wait)
}

func (s *Server) Prune(ctx context.Context, now time.Time, cfg settings.Config) error {
	return s.prune(ctx, now, cfg)
}

// Code is what answers to incidents know of what was deployed, and Actions what they do.
func (s *Server) Code() deployedCode { return deployedCode{s.GitHub.App, s.Gateway, s.DB} }
func (s *Server) MadeBy(ctx context.Context, repo pipeline.Repo, message string) (*pipeline.Run, error) {
	return s.Code().madeBy(ctx, repo, message)
}

func (s *Server) Actions() incidentActions { return incidentActions{s.Code(), s.App} }

func (s *Server) Ready(w http.ResponseWriter, r *http.Request) { s.ready(w, r) }

// SetDraining, SetSandbox, SetBeat and SetWrote break one of the conditions of readiness.
func (s *Server) SetDraining(on bool)   { s.health.draining.Store(on) }
func (s *Server) SetSandbox(works bool) { s.health.sandbox.Store(works) }
func (s *Server) SetWrote(err error)    { s.health.wrote, s.health.looked = err, s.now() }

func (s *Server) SetBeat(last func() time.Time) (undo func()) {
	old := s.beat
	s.beat = last
	return func() { s.beat = old }
}

// Nameless has GitHub not yet said who the App is, until it is called.
func (s *Server) Nameless() (undo func()) {
	bot := s.GitHub.bot.Swap(nil)
	return func() { s.GitHub.bot.Store(bot) }
}
