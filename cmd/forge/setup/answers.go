package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/goccy/go-yaml"

	"forge/cmd/forge/demo"
	"forge/pipeline/agent"
	"forge/pipeline/lazyregexp"
)

var (
	accountName = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?$`)
	modelName   = lazyregexp.New(`^(?:` + strings.Join(agent.ProviderNames, "|") + `)/\S{1,200}$|^tape:/\S+$`)
)

// appNameMost is how long GitHub lets the name of an App be.
const appNameMost = 34

// checked are the answers without what does not matter, or what is wrong with them.
func (a Answers) checked() (Answers, error) {
	a.GitHub, a.URL, a.Base = strings.TrimRight(strings.TrimSpace(a.GitHub), "/"), strings.TrimRight(strings.TrimSpace(a.URL), "/"), strings.TrimSpace(a.Base)
	a.Org, a.Name, a.Model = strings.TrimSpace(a.Org), cmp.Or(strings.TrimSpace(a.Name), "forge"), strings.TrimSpace(a.Model)
	if a.GitHub == "https://github.com" {
		a.GitHub = ""
	}
	if a.Poll {
		a.URL = ""
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.GitHub != "" && !address(a.GitHub) {
		bad("GitHub's address %q is not like https://github.example.com", a.GitHub)
	}
	if a.Org != "" && !accountName.MatchString(a.Org) {
		bad("%q is no name of an organisation", a.Org)
	}
	if len(a.Name) > appNameMost {
		bad("the App's name has %d characters; GitHub takes %d", len(a.Name), appNameMost)
	}
	switch {
	case a.Poll:
	case a.URL == "":
		bad("name the address at which GitHub reaches this server, such as https://forge.example.com, or choose to have its deliveries read from here")
	case !address(a.URL):
		bad("%q is not an address such as https://forge.example.com: a scheme and a host alone", a.URL)
	}
	if a.Base != "" {
		if u, err := url.Parse(a.Base); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
			bad("the model's address %q is not like https://HOST/v1", a.Base)
		}
	}
	if !modelName.MatchString(a.Model) {
		bad("the model %q is not like anthropic/MODEL or openai/MODEL", a.Model)
	}
	return a, errors.Join(errs...)
}

// address wants a scheme and a host alone; without TLS, on this machine alone.
func address(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1")
}

// web is where people reach GitHub.
func (a Answers) web() string { return cmp.Or(a.GitHub, "https://github.com") }

// newAppPage is where GitHub takes a manifest, and appsPage lists the Apps.
func newAppPage(a Answers) string { return appsPage(a) + "/new" }

func appsPage(a Answers) string {
	if a.Org != "" {
		return a.web() + "/organizations/" + url.PathEscape(a.Org) + "/settings/apps"
	}
	return a.web() + "/settings/apps"
}

// nowhere is where the webhook of a server points that GitHub cannot reach: a name
// that never exists (RFC 6761). GitHub keeps a delivery although it cannot send it.
const nowhere = "https://forge.invalid"

// manifest is what GitHub is asked to register: app.yml with this server's addresses.
func (a Answers) manifest(redirect string) (string, error) {
	var m map[string]any
	if err := yaml.Unmarshal(demo.Manifest(), &m); err != nil {
		return "", err // unreachable: it is compiled in
	}
	m["name"], m["redirect_url"] = a.Name, redirect
	m["hook_attributes"] = map[string]any{"url": cmp.Or(a.URL, nowhere) + "/webhook", "active": true}
	delete(m, "callback_urls")
	if a.URL != "" {
		m["url"], m["callback_urls"] = a.URL, []string{a.URL + "/login/callback"}
	}
	text, err := json.Marshal(m)
	return string(text), err
}

// provider is whose key a model needs; "" for a tape.
func (a Answers) provider() string {
	p, _, ok := strings.Cut(a.Model, "/")
	if !ok || strings.HasPrefix(a.Model, "tape:") {
		return ""
	}
	return p
}

// try holds a short conversation with the model: whether it is there, takes the key and calls tools.
func (s *setup) try(ctx context.Context, a Answers, key string) (able agent.Ability, err error) {
	if key == "" && a.Base == "" && a.provider() != "" {
		return able, fmt.Errorf("%s needs the key of its provider", a.Model)
	}
	if able, err = agent.Probe(ctx, a.Model, agent.Limits{}, agent.CredentialsOf(a.provider(), key, a.Base)); err != nil {
		return able, fmt.Errorf("the model was tried once: %w", err)
	}
	return able, nil
}

// line reads one line from the terminal.
func (s *setup) line(ctx context.Context, question, def string) (string, error) {
	if def != "" {
		question += " [" + def + "]"
	}
	fmt.Fprint(s.o.Out, question+": ")
	text, err := s.read(ctx, func() (string, error) { return s.in.ReadString('\n') })
	return cmp.Or(strings.TrimSpace(text), def), err
}

// read reads from the terminal until ctx ends.
func (s *setup) read(ctx context.Context, f func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := f()
		if errors.Is(err, io.EOF) && text != "" {
			err = nil
		}
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ask asks on the terminal what has not been decided.
func (s *setup) ask(ctx context.Context) error {
	for !s.p.Settled {
		a := s.p.Answers
		var err error
		ask := func(into *string, question, def string) {
			if err == nil && *into == "" {
				*into, err = s.line(ctx, question, def)
			}
		}
		ask(&a.Name, "The App's name; names are unique on GitHub", "forge")
		if !a.Poll {
			ask(&a.URL, "The address at which GitHub reaches this server, such as https://forge.example.com; empty when it cannot", "")
			a.Poll = err == nil && a.URL == ""
		}
		ask(&a.Model, "The model, such as anthropic/MODEL or openai/MODEL", "")
		key := s.o.Key
		if err == nil && key == "" && a.provider() != "" {
			fmt.Fprintf(s.o.Out, "The key of %s: ", a.provider())
			key, err = s.read(ctx, s.secret)
			key = strings.TrimSpace(key)
			s.say("")
		}
		if err != nil {
			return err
		}
		if err := s.settle(ctx, a, key); err != nil {
			if s.o.Key != "" || ctx.Err() != nil {
				return err
			}
			s.say("%v", err)
			s.p.Answers = s.o.Answers
		}
	}
	return nil
}

func (s *setup) secret() (string, error) {
	if s.o.Secret != nil {
		return s.o.Secret()
	}
	return s.in.ReadString('\n')
}

// paste waits for the address where a browser on another machine ended, or for the
// page on this one.
func (s *setup) paste(ctx context.Context, page *page) error {
	if err := s.resume(ctx); err != nil {
		s.say("%v", err)
	}
	lines := make(chan string)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			text, err := s.read(stop, func() (string, error) { return s.in.ReadString('\n') })
			if err != nil {
				return
			}
			select {
			case lines <- text:
			case <-stop.Done():
				return
			}
		}
	}()
	for !s.isDone() {
		if err := s.offer(page); err != nil {
			return err
		}
		select {
		case text := <-lines:
			u, err := url.Parse(strings.TrimSpace(text))
			if err != nil || u.Query().Get("code") == "" {
				s.say("That address holds no code: paste all of it.")
				continue
			}
			if err := s.accept(ctx, u.Query().Get("code"), u.Query().Get("state")); err != nil {
				s.say("%v", err)
			}
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// offer says how to register the App from another machine.
func (s *setup) offer(page *page) error {
	file, err := s.registerPage(page)
	if err != nil {
		return err
	}
	s.say("\nOpen this link in a browser on this machine, or after ssh -L %d:127.0.0.1:%d:\n\n  %s\n\nOr copy %s to another machine and open it there. The browser ends at an address\nthat it cannot open: paste it here.\n", page.port, page.port, page.url, file)
	if s.o.Ready != nil {
		s.o.Ready(page.url, file)
	}
	return nil
}
