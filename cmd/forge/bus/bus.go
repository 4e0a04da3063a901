// Package bus tells programs elsewhere what happens in runs and incidents. The log of events is the
// bus, and each subscriber is a cursor in it: an event is told after it is stored, in its
// order within a run, and again until the subscriber says that it has it. So none is
// lost, and one may come twice; its id says so.
package bus

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/panics"
	"forge/pipeline/registry"
	"forge/pipeline/store"
	"forge/webhook"
)

// Subscriber is who is told.
type Subscriber struct {
	Name    string
	Kind    string // Slack, or "": it takes CloudEvents
	URL     string
	Secrets []string // each signs; two while one takes the place of the other
	Types   []string // globs of types such as run.*; none: all
	Repos   []string // globs of OWNER/NAME; none: all
	Private bool     // its address may be one that is not public
}

// wants reports whether an event of a repository is for it.
func (s Subscriber) wants(t pipeline.EventType, repo string) bool {
	return public(t) && matches(s.Types, string(t)) && matches(s.Repos, repo)
}

func matches(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool {
		ok, _ := path.Match(strings.TrimPrefix(strings.ToLower(g), typePrefix), strings.ToLower(name)) // GitHub's names know no case
		return ok
	})
}

// Options are a service's.
type Options struct {
	DB          *store.DB
	Subscribers []Subscriber
	Hide        func(string) string // takes secrets out of a text
	Log         *slog.Logger
	Now         func() time.Time
	After       func(time.Duration) <-chan time.Time
	Resolver    *net.Resolver // nil: the system's
}

const (
	callTime = 10 * time.Second // of one message
	holdTime = time.Minute      // for which one server tells a subscriber; longer than a call
	lookTime = 10 * time.Second // until the next look at what another server has stored
	patience = 72 * time.Hour   // for which nothing may get through
	atOnce   = 100              // runs that are looked up
	// passAfter is after how many events the cursor moves: so many come twice at most
	// when the server dies.
	passAfter = 20
)

// pauses are those after failures in a row.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour}

// Service tells all subscribers, each on its own: a slow one holds up nobody.
type Service struct {
	o      Options
	holder string
	to     []*sender
}

// New returns a service, nil without subscribers, whose methods then do nothing.
func New(o Options) *Service {
	if len(o.Subscribers) == 0 {
		return nil
	}
	s := &Service{o: o, holder: rand.Text()}
	for _, sub := range o.Subscribers {
		s.to = append(s.to, &sender{Service: s, Subscriber: sub, client: client(sub, o.Resolver), wake: make(chan struct{}, 1)})
	}
	return s
}

// client asks public addresses alone, unless the operator says otherwise, and follows no
// redirect: the message goes where it was configured.
func client(s Subscriber, resolver *net.Resolver) *http.Client {
	d := registry.PublicDialer(resolver)
	if s.Private {
		d = &net.Dialer{Resolver: resolver}
	}
	return &http.Client{Timeout: callTime, Transport: &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// OnEvents is called when events of a run or an incident are stored.
func (s *Service) OnEvents() {
	if s == nil {
		return
	}
	for _, to := range s.to {
		select {
		case to.wake <- struct{}{}:
		default:
		}
	}
}

// Run tells until ctx ends.
func (s *Service) Run(ctx context.Context) {
	if s == nil {
		return
	}
	var all sync.WaitGroup
	for _, to := range s.to {
		all.Go(func() { to.run(ctx) })
	}
	all.Wait()
}

// sender tells one subscriber.
type sender struct {
	*Service
	Subscriber
	client *http.Client
	wake   chan struct{}
	known  bool
	held   time.Time // until when this server is the one that tells it
	tries  int       // failures in a row
}

func (s *sender) cursor() string { return Cursor(s.Name) }

// Cursor is the name of a subscriber in the database.
func Cursor(name string) string { return "bus/" + name }

func (s *sender) run(ctx context.Context) {
	for {
		wait, wake := lookTime, s.wake
		err := s.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait, wake = pauses[min(s.tries, len(pauses)-1)], nil
			s.tries++
			s.failed(ctx, err, wait)
		case !s.held.IsZero(): // else it is paused, or another server tells it: nothing is known
			s.through(ctx)
		}
		select {
		case <-wake:
		case <-s.o.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// attempt tells what there is to tell. A panic is its error: other subscribers are told.
func (s *sender) attempt(ctx context.Context) (err error) {
	defer panics.AsError(ctx, s.o.Log.With("subscriber", s.Name), &err, "telling a subscriber")
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	return s.round(ctx)
}

// subscribe makes the subscriber known, once.
func (s *sender) subscribe(ctx context.Context) error {
	if s.known {
		return nil
	}
	if err := s.o.DB.Subscribe(ctx, s.cursor(), s.o.Now()); err != nil {
		return err
	}
	state, err := s.o.DB.Subscriber(ctx, s.cursor())
	if err == nil && !state.Failed.IsZero() {
		s.tries = 1 // before the last start
	}
	s.known = err == nil
	return err
}

// through notes that something gets through, or that nothing is left to tell.
func (s *sender) through(ctx context.Context) {
	if s.tries > 0 {
		s.tries = 0
		s.note(ctx, time.Time{}, "")
	}
}

func (s *sender) note(ctx context.Context, failing time.Time, paused string) {
	if err := s.o.DB.SubscriberFailed(ctx, s.cursor(), failing, paused); err != nil && ctx.Err() == nil {
		s.o.Log.Warn("note how a subscriber stands", "subscriber", s.Name, "error", err)
	}
}

// errGone says that a subscriber wants to be told no more.
var errGone = errors.New("it answers 410: it wants no more events")

// failed notes a failure, and pauses who wants no more, or has had nothing for days.
func (s *sender) failed(ctx context.Context, cause error, retry time.Duration) {
	log := s.o.Log.With("subscriber", s.Name)
	state, err := s.o.DB.Subscriber(ctx, s.cursor())
	if err != nil {
		log.Warn("tell a subscriber", "error", errors.Join(cause, err), "retry_in", retry)
		return
	}
	since, paused := state.Failed, ""
	if since.IsZero() {
		since = s.o.Now()
	}
	switch {
	case errors.Is(cause, errGone):
		paused = errGone.Error()
	case s.o.Now().Sub(since) >= patience:
		paused = fmt.Sprintf("nothing got through since %s: %v", since.UTC().Format(time.RFC3339), cause)
	}
	s.note(ctx, since, paused)
	if paused != "" {
		s.held = time.Time{}
		log.Error("a subscriber is paused: `forge bus resume NAME` tells it again", "why", paused)
		return
	}
	log.Warn("tell a subscriber", "error", cause, "retry_in", retry)
}

// round tells all that is behind the cursor, when this server is the one to do it.
func (s *sender) round(ctx context.Context) error {
	if err := s.each(ctx, s.o.DB.Behind, s.tellRun); err != nil {
		return err
	}
	return s.each(ctx, s.o.DB.IncidentsBehind, s.tellIncident)
}

// each tells of all runs, or incidents, that are behind the cursor.
func (s *sender) each(ctx context.Context, behind func(context.Context, string, int64, int) ([]int64, error), tell func(context.Context, int64) error) error {
	for after := int64(0); ; {
		held, err := s.hold(ctx)
		if err != nil || !held {
			return err
		}
		list, err := behind(ctx, s.cursor(), after, atOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, id := range list {
			if err := tell(ctx, id); err != nil {
				return err
			}
		}
		after = list[len(list)-1]
	}
}

// hold reports whether this server is the one that tells the subscriber.
func (s *sender) hold(ctx context.Context) (bool, error) {
	now := s.o.Now()
	if now.Before(s.held.Add(-holdTime / 2)) {
		return true, nil
	}
	held, err := s.o.DB.HoldSubscriber(ctx, s.cursor(), s.holder, now, now.Add(holdTime))
	s.held = time.Time{}
	if held {
		s.held = now.Add(holdTime)
	}
	return held, err
}

// tellRun tells a run's events behind the cursor, in their order.
func (s *sender) tellRun(ctx context.Context, id int64) error {
	from, err := s.o.DB.Cursor(ctx, s.cursor(), id)
	if err != nil {
		return err
	}
	events, err := s.o.DB.Events(ctx, id, from)
	if err != nil || len(events) == 0 {
		return err
	}
	run, err := s.o.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	wanted := func(yield func(Event) bool) {
		for i := range events {
			e := &events[i]
			if s.Kind == Slack && run.Part != nil && e.Type != pipeline.EventGateRequested { // the end of a module is its parent's to tell
				continue
			}
			if s.wants(e.Type, run.Repo.FullName()) && !yield(newEvent(run, e, s.o.Hide)) {
				return
			}
		}
	}
	return s.tell(ctx, wanted, events[len(events)-1].Seq, func(seq int64) error { return s.pass(ctx, id, seq) })
}

// tell tells events in their order, the last of all that are known being at seq. pass moves the cursor.
func (s *sender) tell(ctx context.Context, wanted iter.Seq[Event], seq int64, pass func(seq int64) error) error {
	told := 0
	for e := range wanted {
		if held, err := s.hold(ctx); err != nil || !held {
			return err
		}
		if err := s.send(ctx, e); err != nil {
			return errors.Join(err, pass(e.Data.Seq-1))
		}
		s.through(ctx)
		if told++; told%passAfter == 0 {
			if err := pass(e.Data.Seq); err != nil {
				return err
			}
		}
	}
	return pass(seq)
}

func (s *sender) pass(ctx context.Context, run, seq int64) error {
	if seq <= 0 {
		return nil
	}
	return s.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return s.o.DB.AdvanceCursor(ctx, tx, s.cursor(), run, seq)
	})
}

// send posts an event: to a chat its words, else all of it, signed as
// https://www.standardwebhooks.com says.
func (s *sender) send(ctx context.Context, e Event) error {
	body, kind := e.bytes(), "application/cloudevents+json"
	if s.Kind == Slack {
		body, kind = e.chat(), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("its address is wrong") // whose text would tell it
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "forge")
	if s.Kind != Slack {
		id, stamp := strings.ReplaceAll(e.ID, "/", "-"), strconv.FormatInt(s.o.Now().Unix(), 10)
		req.Header.Set("Webhook-Id", id)
		req.Header.Set("Webhook-Timestamp", stamp)
		req.Header.Set("Webhook-Signature", Sign(s.Secrets, id, stamp, body))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		var inside *registry.NotPublicError
		if errors.As(err, &inside) {
			return fmt.Errorf("its address %s is not a public one: set private for this subscriber if it is yours", inside.Addr)
		}
		return errors.New("it does not answer") // the error names the address, which may be a secret
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusGone:
		return errGone
	}
	return fmt.Errorf("it answers %d", resp.StatusCode)
}

// Sign makes the header webhook-signature, with one signature for each secret.
func Sign(secrets []string, id, stamp string, body []byte) string {
	var out []string
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, webhook.StandardKey([]byte(secret)))
		fmt.Fprintf(mac, "%s.%s.", id, stamp)
		mac.Write(body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " ")
}

// Ping sends one subscriber a message that is about nothing, and says what came of it.
func Ping(ctx context.Context, s Subscriber, now time.Time) error {
	sum := sha256.Sum256([]byte(now.String()))
	e := Event{SpecVersion: "1.0", ID: "ping/" + hex.EncodeToString(sum[:8]), Source: "/forge", Type: typePrefix + "ping", Time: now.UTC(),
		DataContentType: "application/json"}
	to := &sender{Service: &Service{o: Options{Now: func() time.Time { return now }}}, Subscriber: s, client: client(s, nil)}
	return to.send(ctx, e)
}
