package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/github"
)

// The start label, as it is made in repositories.
const (
	labelColour = "5319e7"
	labelText   = "Forge works on this issue"
)

// pingPatience is how long a server that GitHub should reach may be without its ping
// once the App is installed.
const pingPatience = time.Minute

// finish waits until GitHub reaches the server and the App is installed, and makes
// the label there. All of it can be done again.
func (s *setup) finish(ctx context.Context) error {
	cfg, err := s.config()
	if err != nil {
		return err
	}
	if s.o.Look != nil {
		s.o.Look(cfg)
	}
	app, err := server.NewGitHubApp(cfg, discard)
	if err != nil {
		return err
	}
	stop, err := s.receive(ctx, cfg)
	if err != nil {
		return err
	}
	defer stop()
	facts, err := s.await(ctx, app, cfg)
	if err != nil {
		return err
	}
	for _, in := range facts.Installations {
		if err := s.labels(ctx, app, cfg, in); err != nil {
			return err
		}
	}
	if err := s.tidy(); err != nil {
		return err
	}
	ends := s.next(cfg)
	s.mu.Lock()
	s.ends = ends
	s.mu.Unlock()
	s.say("\n%s", ends)
	return nil
}

// receive takes deliveries in for the server that is not there yet. Where it is
// running already, it does so itself.
func (s *setup) receive(ctx context.Context, cfg settings.Config) (func(), error) {
	if cfg.Poll {
		return func() {}, nil
	}
	stop, err := server.Receive(ctx, server.Options{Config: cfg, Log: discard})
	var busy *net.OpError
	if errors.As(err, &busy) && errors.Is(err, syscall.EADDRINUSE) {
		s.say("Something listens on %s already; if that is not Forge, end it.", cfg.Listen)
		return func() {}, nil
	}
	return stop, err
}

// await waits for the ping and the installation.
func (s *setup) await(ctx context.Context, app *github.App, cfg settings.Config) (*github.Facts, error) {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	var asked, installed time.Time
	for {
		facts, err := app.Facts(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.url = facts.URL
		s.mu.Unlock()
		now := s.o.Now()
		arrived, ping := pinged(facts)
		if !arrived && !cfg.Poll && ping != 0 && now.Sub(asked) > 30*time.Second {
			asked = now
			if err := app.Redeliver(ctx, ping); err != nil {
				return nil, err
			}
		}
		if len(facts.Installations) > 0 && installed.IsZero() {
			installed = now
		}
		switch {
		case installed.IsZero():
			s.tell("Install the App on your repositories: " + facts.URL + "/installations/new")
		case arrived || cfg.Poll:
			return facts, nil
		case now.Sub(installed) > pingPatience:
			s.tell("GitHub does not reach " + facts.HookURL + " yet: `forge doctor` says more once the server runs.")
			return facts, nil
		default:
			s.tell("Waiting for GitHub's ping at " + facts.HookURL + ": does it lead to " + cfg.Listen + "?")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tell says something once.
func (s *setup) tell(text string) {
	s.mu.Lock()
	same := s.said == text
	s.said = text
	s.mu.Unlock()
	if !same {
		s.say("%s", text)
	}
}

// pinged reports whether a ping arrived, and the newest that did not.
func pinged(f *github.Facts) (bool, int64) {
	var last int64
	for _, d := range f.Deliveries {
		if d.Status >= 200 && d.Status < 300 {
			return true, 0 // whatever it was, it came through
		}
		if d.Event == "ping" && last == 0 {
			last = d.ID
		}
	}
	return false, last
}

// mostLabelled bounds how many repositories of an installation are given the label:
// one of all repositories of an organisation may have thousands.
const mostLabelled = 100

func (s *setup) labels(ctx context.Context, app *github.App, cfg settings.Config, in github.Installation) error {
	if in.Suspended {
		return nil
	}
	repos, err := app.Repos(ctx, in.ID)
	if err != nil {
		return err
	}
	if len(repos) > mostLabelled {
		s.say("The App is on %d repositories of %s: the label %q is made in the first %d. GitHub offers to make it in the others when it is first typed.", len(repos), in.Account, cfg.Label, mostLabelled)
		repos = repos[:mostLabelled]
	}
	for _, repo := range repos {
		made, err := app.EnsureLabel(ctx, repo, cfg.Label, labelColour, labelText)
		if err != nil {
			return err
		}
		if made {
			s.say("The label %q is made in %s.", cfg.Label, repo.FullName())
		}
	}
	return nil
}

// next says what to do now.
func (s *setup) next(cfg settings.Config) string {
	var b strings.Builder
	config := s.path(configFile)
	fmt.Fprintf(&b, "All is set up; the settings are in %s.\n\n", config)
	switch s.o.Unit {
	case unitSystemd:
		fmt.Fprintf(&b, "  sudo cp %s /etc/systemd/system/ && sudo systemctl enable --now forge\n", s.path("forge.service"))
	case unitCompose:
		fmt.Fprintf(&b, "  docker build -t forge:local .    # in Forge's sources\n  cd %[1]s && sudo chown -R 10001:10001 . && docker compose up -d\n", s.o.Dir)
	default:
		fmt.Fprintf(&b, "  forge doctor --config %s    # looks at all that the server needs\n  forge serve --config %s\n", config, config)
	}
	if a := s.p.Answers; a.Plain {
		fmt.Fprintf(&b, "\n%s is asked for code alone, as model_limits says: give it tasks of one file with a failing test.\n", a.Model)
	}
	if !cfg.Poll && s.o.Unit == "" {
		fmt.Fprintf(&b, "\nA TLS proxy must pass %s on to %s.\n", cfg.PublicURL, cfg.Listen)
	}
	fmt.Fprintf(&b, "\nThen give an issue the label %q. Keep a copy of %s: it cannot be read from GitHub again.", cfg.Label, filepath.Base(cfg.PrivateKeyFile))
	return b.String()
}
