package incidents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/registry"
)

const (
	probeTime  = 5 * time.Second
	probeBytes = 64 << 10 // of an answer that are looked at
)

// Poller looks at the health of services. What it finds goes to disk as what monitors
// send does.
type Poller struct {
	Checks   []settings.HealthCheck
	Take     func(ctx context.Context, guid, event string, payload []byte) error
	Log      *slog.Logger
	Now      func() time.Time
	Resolver *net.Resolver // nil: the system's
}

// Run looks until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, c := range p.Checks {
		all.Go(func() { p.follow(ctx, c) })
	}
	all.Wait()
}

func (p *Poller) follow(ctx context.Context, c settings.HealthCheck) {
	w := watchOf(c)
	client := p.client(c)
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		if err := p.look(ctx, client, c, w); err != nil && ctx.Err() == nil {
			p.Log.Warn("keep what a health check has shown", "check", c.Name, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func watchOf(c settings.HealthCheck) *production.Watch {
	return &production.Watch{Check: production.Check{Name: c.Name, URL: c.URL, Repo: c.Repo, Environment: c.Environment, Expect: c.Expect, Fails: c.Fails}}
}

// look looks once, and keeps what is to be said of it. Servers that share a database
// look at the same time: one of them is enough.
func (p *Poller) look(ctx context.Context, client *http.Client, c settings.HealthCheck, w *production.Watch) error {
	probe := p.probe(ctx, client, c)
	if ctx.Err() != nil {
		return nil
	}
	if probe.Unknown != "" {
		p.Log.Warn("a health check shows nothing", "check", c.Name, "why", probe.Unknown)
	}
	o := w.Take(probe)
	if o == nil {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err // unreachable: plain fields
	}
	slot := probe.At.Truncate(c.Every).Unix()
	return p.Take(ctx, fmt.Sprintf("check:%s:%d:%s", c.Name, slot, o.Status), checkPrefix+c.Name, data)
}

// client asks public addresses alone, unless the operator says that the service's may
// be private; it follows no redirect and uses no proxy.
func (p *Poller) client(c settings.HealthCheck) *http.Client {
	d := registry.PublicDialer(p.Resolver)
	if c.Private {
		d = &net.Dialer{Resolver: p.Resolver}
	}
	return &http.Client{Timeout: probeTime, Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: probeBytes},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (p *Poller) probe(ctx context.Context, client *http.Client, c settings.HealthCheck) production.Probe {
	out := production.Probe{At: p.Now().UTC()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		out.Unknown = "its address cannot be asked"
		return out
	}
	req.Header.Set("User-Agent", "forge")
	resp, err := client.Do(req)
	if err != nil {
		var inside *registry.NotPublicError
		var dns *net.DNSError
		switch {
		case errors.As(err, &inside):
			out.Unknown = inside.Addr.String() + " is not a public address: set private for this check if it is yours"
		case errors.As(err, &dns) && (dns.IsTemporary || dns.IsTimeout):
			out.Unknown = "its name could not be looked up now"
		case errors.As(err, &dns):
			out.Why = "its name is not known"
		default:
			out.Why = "no connection, or no answer in time"
		}
		return out
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, probeBytes))
	if err != nil {
		out.Why = "its answer was cut short"
		return out
	}
	out.Status = resp.StatusCode
	if c.Contains != "" && !strings.Contains(string(body), c.Contains) {
		out.Lacks = c.Contains
	}
	return out
}
