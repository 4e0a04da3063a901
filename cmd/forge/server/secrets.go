package server

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/settings"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/secrets"
	"forge/pipeline/store"
)

// newSecrets makes what everything that is pushed or posted is looked through with: it
// knows the shapes of credentials, and all secrets that the server holds.
func newSecrets(cfg settings.Config) (*secrets.Scanner, error) {
	var own []string
	v := reflect.ValueOf(cfg)
	for i := range v.NumField() { // every one, also those that are added later
		if s, ok := v.Field(i).Interface().(settings.Secret); ok {
			own = append(own, s.Reveal())
		}
	}
	if db := cfg.DatabaseURL.Reveal(); !strings.Contains(db, "://") { // the path of a file is none
		for i := range own {
			if own[i] == db {
				own[i] = ""
			}
		}
	}
	for _, key := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		own = append(own, headerSecrets(os.Getenv(key))...)
	}
	if cfg.PrivateKeyFile != "" {
		key, err := os.ReadFile(cfg.PrivateKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the App's private key: %w", err)
		}
		own = append(own, string(key))
	}
	scanner, _ := scanners.LoadOrStore(strings.Join(own, "\x00"), sync.OnceValue(func() *secrets.Scanner { return secrets.New(own...) }))
	return scanner.(func() *secrets.Scanner)(), nil
}

// scanners are kept by what they look for: to make one takes 20 ms, and a server asks four times.
var scanners sync.Map

// newBus makes what tells programs of events; nil without.
func newBus(o Options, db *store.DB) (*bus.Service, error) {
	if len(o.Config.Subscribers) == 0 || o.Silent || o.Local {
		return nil, nil
	}
	hide, err := HideInEvents(o.Config)
	if err != nil {
		return nil, err
	}
	after := o.After
	if after == nil {
		after = time.After
	}
	return bus.New(bus.Options{Subscribers: Subscribers(o.Config), DB: db, Log: o.Log, Now: o.clock(), After: after, Hide: hide}), nil
}

// newStreams makes what tells programs that listen.
func newStreams(o Options, db *store.DB) (*bus.Streams, error) {
	hide, err := HideInEvents(o.Config)
	return &bus.Streams{DB: db, Hide: hide, Now: o.clock()}, err
}

// HideInEvents returns what takes secrets out of the texts of events.
func HideInEvents(c settings.Config) (func(string) string, error) {
	hidden, err := newSecrets(c)
	if err != nil {
		return nil, err
	}
	return func(s string) string { s, _ = hidden.Text("an event", s); return s }, nil
}

// Subscribers are those of a configuration.
func Subscribers(c settings.Config) (out []bus.Subscriber) {
	for _, s := range c.Subscribers {
		to := bus.Subscriber{Name: s.Name, Kind: s.Kind, URL: s.URL.Reveal(), Secrets: strings.Fields(s.Secrets.Reveal()), Types: s.Types, Repos: s.Repos, Private: s.Private}
		if to.Kind == bus.Slack && len(to.Types) == 0 {
			to.Types = bus.Chatted
		}
		out = append(out, to)
	}
	return out
}

var secretHeader = lazyregexp.New(`(?i)auth|key|token|secret`)

// headerSecrets returns the secrets of headers as OpenTelemetry takes them:
// "authorization=Bearer%20abc,x-tenant=one".
func headerSecrets(headers string) (out []string) {
	for h := range strings.SplitSeq(headers, ",") {
		name, value, _ := strings.Cut(h, "=")
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		value = strings.TrimSpace(value)
		if _, after, ok := strings.Cut(value, " "); ok {
			value = after // without "Bearer"
		}
		if secretHeader.MatchString(name) {
			out = append(out, value)
		}
	}
	return out
}
