// Package setup brings a server from nothing to its first run: it registers the GitHub
// App by the manifest flow, from a page on this machine or from a terminal, writes the
// App's key, its secrets and a commented forge.yml, waits until the App is installed,
// and makes the label. How far it has come is in setup.json, beside the files, until
// it is done: a set-up that was interrupted goes on there, and makes nothing twice.
package setup

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"forge/cmd/forge/settings"
	"forge/github"
	"forge/pipeline/agent"
)

// Options say what is to be set up, and how people are asked.
type Options struct {
	Dir      string // where all files go
	Answers  Answers
	Key      string // the model's; "" asks
	Terminal bool   // ask here, not on a page
	Port     int    // of the page; 0: any
	Unit     string // "systemd" or "compose": write such a file, too
	Replace  bool   // files that are there are moved aside

	In     io.Reader
	Out    io.Writer
	Secret func() (string, error)    // reads a line that is not shown; nil: as other lines
	Getenv func(string) string       // of the settings; may be nil
	Now    func() time.Time          // nil: time.Now
	Every  time.Duration             // between two looks at GitHub; 0: 5 s
	Linger time.Duration             // how long the page waits to show the end; 0: a minute
	Look   func(settings.Config)     // called when the files are there; may be nil
	Ready  func(page, manual string) // called with the page's address; may be nil
}

// Answers are what a person decides. They hold no secret.
type Answers struct {
	GitHub string // the address of a GitHub Enterprise server; "": github.com
	Org    string // the organisation that owns the App; "": the person who registers it
	Name   string // the App's; names are unique on GitHub
	URL    string // where GitHub reaches the server; "" with Poll
	Poll   bool   // GitHub cannot reach it
	Model  string // provider/model
	Base   string // the address of an OpenAI-compatible server; "": the provider's own

	Plain     bool   `json:",omitempty"` // the model is to be asked for code alone
	Reflector string `json:",omitempty"` // a much cheaper model of the same provider, where it has one
}

// stateLife is how long a registration may take, as GitHub's codes live.
const stateLife = time.Hour

// progress is how far a set-up has come.
type progress struct {
	Answers Answers            `json:"answers"`
	Settled bool               `json:"settled"` // the answers are complete, and the model was tried
	State   string             `json:"state,omitempty"`
	Until   time.Time          `json:"until,omitzero"`
	Port    int                `json:"port,omitempty"` // of the page that GitHub leads back to
	Key     string             `json:"key,omitempty"`  // lets a browser in
	Code    string             `json:"code,omitempty"` // that GitHub led back with, not exchanged yet
	App     *github.Registered `json:"app,omitempty"`  // until the files are written
}

// setup is one that is under way.
type setup struct {
	o    Options
	in   *bufio.Reader
	mu   sync.Mutex // of all below
	p    progress
	done bool   // the files are there
	url  string // of the App
	ends string // what is to be seen at the end
	said string // what is waited for
	wake chan struct{}
}

// Run sets up. It returns when all is done, or ctx ends.
func Run(ctx context.Context, o Options) error {
	lock, err := own(o.Dir, o.Out)
	if err != nil {
		return err
	}
	defer release(lock)
	s, err := open(o)
	if err != nil {
		return err
	}
	page, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer page.stop()
	if !s.isDone() {
		if err := s.register(ctx, page); err != nil {
			return err
		}
	}
	if err := s.finish(ctx); err != nil {
		return err
	}
	page.linger(ctx, s.o.Linger)
	return nil
}

func open(o Options) (*setup, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every <= 0 {
		o.Every = 5 * time.Second
	}
	if o.Linger <= 0 {
		o.Linger = time.Minute
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	s := &setup{o: o, in: bufio.NewReader(o.In), wake: make(chan struct{}, 1)}
	found, err := s.load()
	if err != nil {
		return nil, err
	}
	if !found {
		s.p.Answers = o.Answers
		switch has, err := s.configured(); {
		case err != nil:
			return nil, err
		case has:
			s.done = true
			s.say("%s is there already: looking at what is left to do.", s.path(configFile))
			return s, nil
		}
		if err := s.clear(); err != nil {
			return nil, err
		}
	} else {
		s.say("Going on where the set-up in %s stopped.", dir)
	}
	if s.p.App != nil { // interrupted while the files were written
		return s, s.keep(*s.p.App)
	}
	return s, s.save()
}

func (s *setup) say(format string, args ...any) { fmt.Fprintf(s.o.Out, format+"\n", args...) }

func (s *setup) isDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// register asks what is to be decided, and has GitHub make the App.
func (s *setup) register(ctx context.Context, page *page) error {
	if s.o.Terminal {
		if err := s.ask(ctx); err != nil {
			return err
		}
		return s.paste(ctx, page)
	}
	s.say("Open this page in a browser on this machine:\n\n  %s\n\nFrom elsewhere: ssh -L %d:127.0.0.1:%d THIS-MACHINE, or `forge setup --terminal`.", page.url, page.port, page.port)
	for !s.isDone() {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *setup) woken() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// settle takes the answers when they are right: the model was asked whether it is there.
func (s *setup) settle(ctx context.Context, a Answers, key string) error {
	a, err := a.checked()
	if err != nil {
		return err
	}
	able, err := s.try(ctx, a, key)
	if err != nil {
		return err
	}
	if a.Plain = able.Form == agent.FormPlain; a.Plain {
		s.say("%s %s", a.Model, able)
	}
	a.Reflector = agent.Cheaper(ctx, a.Model, agent.CredentialsOf(a.provider(), key, a.Base))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.App != nil || s.done {
		return errors.New("the App is registered already")
	}
	if key != "" {
		if err := s.write(modelKeyFile, key+"\n", true); err != nil {
			return err
		}
	}
	s.p.Answers, s.p.Settled = a, true
	return s.save()
}

// begin is the state of a registration: one that is under way is gone on with, also
// after a new start, until its hour is over.
func (s *setup) begin(port int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.State == "" || !s.o.Now().Before(s.p.Until) {
		s.p.State, s.p.Until = random(), s.o.Now().Add(stateLife)
	}
	s.p.Port = port
	return s.p.State, s.save()
}

func random() string {
	b := make([]byte, 32)
	rand.Read(b) //nolint:errcheck // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Why an answer of GitHub's is not taken.
var (
	errState   = errors.New("this answer does not belong to the registration that was begun here, or was used already: begin on the first page again")
	errExpired = errors.New("the registration was begun over an hour ago: begin again; if GitHub has made the App by then, delete it there first")
)

// accept takes the code that GitHub led back with. The state is used up before
// anything is done with the code.
func (s *setup) accept(ctx context.Context, code, state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(s.p.State)) != 1 {
		return errState
	}
	late := !s.o.Now().Before(s.p.Until)
	s.p.State, s.p.Until = "", time.Time{}
	if late {
		return errors.Join(errExpired, s.save())
	}
	s.p.Code = code
	if err := s.save(); err != nil {
		return err
	}
	return s.exchange(ctx)
}

// resume exchanges a code that a set-up which ended had been given.
func (s *setup) resume(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.Code == "" || s.done {
		return nil
	}
	return s.exchange(ctx)
}

// exchange buys the App's secrets, and writes them. s.mu is held.
func (s *setup) exchange(ctx context.Context) error {
	app, err := github.Register(ctx, s.p.Answers.GitHub, s.p.Code)
	if errors.Is(err, github.ErrCodeUsed) {
		s.p.Code = ""
		return errors.Join(fmt.Errorf("%w. If %s lists an App that is called %s, delete it there; then begin again", err, appsPage(s.p.Answers),
			s.p.Answers.Name), s.save())
	}
	if err != nil {
		return err // the code may work later
	}
	s.p.App, s.p.Code = &app, ""
	if err := s.save(); err != nil {
		return err
	}
	return s.keep(app)
}

// keep writes what GitHub gave out, and notes that it is written. s.mu is held, or
// nobody else knows s yet.
func (s *setup) keep(app github.Registered) error {
	if err := s.writeFiles(app); err != nil {
		return err
	}
	s.done, s.url = true, app.URL
	s.p.App = nil
	if err := s.save(); err != nil {
		return err
	}
	s.woken()
	return nil
}

// config is what the server will see.
func (s *setup) config() (settings.Config, error) {
	return settings.Server(s.path(configFile), s.o.Getenv)
}

var discard = slog.New(slog.DiscardHandler)
