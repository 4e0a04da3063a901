package main

import (
	"context"
	"net/http"

	"forge/cmd/forge/dashboard"
	"forge/learn/metrics"
	"forge/pipeline"
)

// newPages makes the web pages of a server.
func newPages(w *wiring, o wireOptions) *dashboard.Pages {
	return dashboard.New(dashboard.Options{
		DB: w.db, Now: o.clock(), Log: o.log, Version: version(),
		Viewer: func(*http.Request) dashboard.Viewer { return operator{} },
		Report: func(ctx context.Context, m metrics.Options, repos ...string) (metrics.Report, error) {
			return reportMetrics(ctx, w.db, m, repos...)
		},
		Tell:    w.engine.Tell,
		Redrive: func(ctx context.Context, guid string) error { return w.engine.Redrive(ctx, "delivery/"+guid) },
	})
}

// operator is who sits at this machine: they have the database, so there is nobody
// else to ask.
type operator struct{}

// Actor implements dashboard.Viewer.
func (operator) Actor() pipeline.Actor { return osUser() }

// Repos implements dashboard.Viewer.
func (operator) Repos() ([]string, bool) { return nil, true }

// MayWrite implements dashboard.Viewer.
func (operator) MayWrite(context.Context, string) (bool, error) { return true, nil }
