package server

import (
	"context"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/settings"
	"forge/pipeline/store"
	"forge/webhook"
)

// newIncidents makes what turns what production says into incidents.
func newIncidents(a *App, o Options) *incidents.Service {
	opts := incidents.Options{
		DB: a.DB, Hooks: incidents.Hooks(o.Config.Hooks), Log: o.Log, Now: o.clock(),
		Checks: o.Config.HealthChecks, Queries: o.Config.Queries,
		OnChange: func(repo string) {
			if a.Shipping != nil {
				a.Shipping.Wake(0, false)
			}
			a.bus.OnEvents()
			if a.streams != nil {
				a.streams.OnEvents()
			}
			if a.pages != nil {
				a.pages.Notify("production", repo)
				a.pages.Notify("deliveries", "")
			}
		},
	}
	if a.GitHub != nil {
		code := deployedCode{a.GitHub.App, a.Gateway, a.DB}
		h := incidentActions{code, a}
		opts.Code, opts.Teller, opts.Actions, opts.Slug = code, h, h, a.slug
	}
	return incidents.New(opts)
}

// sourceKinds says how each kind of hook proves who it is.
var sourceKinds = map[string]string{"alertmanager": webhook.SourceBearer, "sentry": webhook.SourceSentry, "generic": webhook.SourceStandard}

// sources are the hooks as doors.
func sources(hooks []settings.Hook, of *incidents.Service) map[string]webhook.Source {
	out := map[string]webhook.Source{}
	for _, h := range hooks {
		out[h.Name] = webhook.Source{Kind: sourceKinds[h.Kind], Secret: []byte(h.Secret.Reveal()), Repo: h.Repo, PerMinute: h.PerMinute, Full: func() bool { return of.Full(h.Name) }}
	}
	return out
}

// deploys reports whether GitHub has ever told of a deployment.
func (a *App) deploys() bool {
	list, err := a.DB.Deployments(context.Background(), store.DeploymentFilter{Limit: 1})
	return err == nil && len(list) > 0
}

// healthChecks looks at the health of services; what it finds comes in at the same door.
func (s *Server) healthChecks() *incidents.Poller {
	return &incidents.Poller{Checks: s.config.HealthChecks, Take: s.Hooks.Take, Log: s.log, Now: s.now}
}
