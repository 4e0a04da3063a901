// Package notify tells a webhook or a chat of a run's questions and ends. It reads
// the event log behind a cursor of its own, so that nothing is told before it is
// stored, and what could not be told is told later, also by the next start. It stores
// nothing but the cursor. Somebody may be told twice; the id says so.
package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// The kinds of receivers.
const (
	Webhook = "webhook" // takes JSON, signed as GitHub signs its webhooks
	Slack   = "slack"   // takes Slack's {"text": …}, as Mattermost, Rocket.Chat and others do
)

// Options say who is told.
type Options struct {
	URL    string // secret: Slack's addresses are
	Kind   string
	Secret string // of the signature
	DB     *store.DB
	Hide   func(string) string // takes secrets out of a text
	Log    *slog.Logger
	Now    func() time.Time
	After  func(time.Duration) <-chan time.Time
}

// The tries of one message. After the last one it is given up.
var pauses = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

const (
	cursor  = "notify"
	old     = time.Hour // what happened before is no news to a server that starts
	timeout = 10 * time.Second
)

// Notifier tells. Its methods are safe for concurrent use; those of nil do nothing.
type Notifier struct {
	o    Options
	http *http.Client

	mu    sync.Mutex
	todo  map[int64]*wait
	posts map[string]*post // by the message's id
	wake  chan struct{}
}

// post is a message about something beside the log of a run.
type post struct {
	wait
	message Message
}

// Post tells of something beside the log of a run, such as an incident's question. What
// cannot be told is tried again for as long as a run is, if this process lives that long.
func (n *Notifier) Post(m Message) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.posts[m.ID] = &post{message: m}
	n.mu.Unlock()
	n.nudge()
}

func (n *Notifier) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// postDue tells what was posted and is due.
func (n *Notifier) postDue(ctx context.Context) {
	n.mu.Lock()
	var due []*post
	for _, p := range n.posts {
		if !n.o.Now().Before(p.due) {
			due = append(due, p)
		}
	}
	n.mu.Unlock()
	for _, p := range due {
		err := n.send(ctx, p.message)
		if err != nil && ctx.Err() != nil {
			return
		}
		last := p.tries == len(pauses) || errors.Is(err, errRefused)
		n.mu.Lock()
		if err == nil || last {
			delete(n.posts, p.message.ID)
		} else {
			p.due, p.tries = n.o.Now().Add(pauses[p.tries]), p.tries+1
		}
		n.mu.Unlock()
		if err != nil {
			n.o.Log.Warn("somebody is not told", "what", p.message.ID, "error", err)
		}
	}
}

// wait is a run that has something to tell.
type wait struct {
	due   time.Time
	tries int
}

// New returns a notifier, nil without an address.
func New(o Options) *Notifier {
	if o.URL == "" {
		return nil
	}
	return &Notifier{o: o, todo: map[int64]*wait{}, posts: map[string]*post{}, wake: make(chan struct{}, 1), http: &http.Client{Timeout: timeout,
		// The address may be a secret: it goes where it was configured, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// OnEvents is called when events of a run are stored.
func (n *Notifier) OnEvents(run int64, events []pipeline.Event) {
	if n == nil {
		return
	}
	for _, e := range events {
		if told[e.Type] != "" {
			n.add(run)
			return
		}
	}
}

func (n *Notifier) add(run int64) {
	n.mu.Lock()
	if n.todo[run] == nil {
		n.todo[run] = &wait{}
	}
	n.mu.Unlock()
	n.nudge()
}

// told are the events that people are told of.
var told = map[pipeline.EventType]string{
	pipeline.EventGateRequested: "question", pipeline.EventRunVerified: "end", pipeline.EventRunAccepted: "end",
	pipeline.EventRunCancelled: "end", pipeline.EventRunFailed: "end", pipeline.EventRunSkipped: "end",
}

// Run tells until ctx ends, beginning with what the last start left over.
func (n *Notifier) Run(ctx context.Context) {
	if n == nil {
		return
	}
	rows, err := n.o.DB.Runs(ctx, store.Filter{})
	if err != nil {
		n.o.Log.Warn("look for what was not told", "error", err)
	}
	for _, r := range rows {
		if n.o.Now().Sub(r.Updated) < old {
			n.add(r.ID)
		}
	}
	for {
		pause := n.round(ctx)
		var later <-chan time.Time
		if pause > 0 {
			later = n.o.After(pause)
		}
		select {
		case <-n.wake:
		case <-later:
		case <-ctx.Done():
			return
		}
	}
}

// round tells what is due, and returns how long until something else is; 0: nothing is.
func (n *Notifier) round(ctx context.Context) time.Duration {
	n.mu.Lock()
	due := map[int64]*wait{}
	for run, w := range n.todo {
		if !n.o.Now().Before(w.due) {
			due[run] = w
			delete(n.todo, run)
		}
	}
	n.mu.Unlock()
	for run, w := range due {
		err := n.run(ctx, run, w.tries == len(pauses))
		if err == nil || ctx.Err() != nil {
			continue
		}
		w.due, w.tries = n.o.Now().Add(pauses[min(w.tries, len(pauses)-1)]), w.tries+1
		n.o.Log.Warn("tell of a run", "run", run, "error", err, "retry_in", w.due.Sub(n.o.Now()))
		n.mu.Lock()
		n.todo[run] = w
		n.mu.Unlock()
	}
	n.postDue(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	var next time.Duration
	waits := slices.Collect(maps.Values(n.todo))
	for _, p := range n.posts {
		waits = append(waits, &p.wait)
	}
	for _, w := range waits {
		if d := max(w.due.Sub(n.o.Now()), time.Millisecond); next == 0 || d < next {
			next = d
		}
	}
	return next
}

// errRefused says that trying again does not help.
var errRefused = errors.New("the receiver refuses it")

// run tells of a run's events behind the cursor, in their order. With last, what
// cannot be told is given up.
func (n *Notifier) run(ctx context.Context, id int64, last bool) error {
	after, err := n.o.DB.Cursor(ctx, cursor, id)
	if err != nil {
		return err
	}
	events, err := n.o.DB.Events(ctx, id, after)
	if err != nil || len(events) == 0 {
		return err
	}
	run, err := n.o.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range events {
		if told[e.Type] == "" || n.o.Now().Sub(e.Time) > old+24*time.Hour {
			continue
		}
		if after == 0 && n.o.Now().Sub(e.Time) > old {
			continue // from before there was anybody to tell
		}
		err := n.send(ctx, message(run, e))
		if err != nil && !last && !errors.Is(err, errRefused) {
			return errors.Join(err, n.advance(ctx, id, e.Seq-1))
		}
		if err != nil {
			n.o.Log.Error("somebody is not told of a run", "run", id, "error", err)
		}
	}
	return n.advance(ctx, id, events[len(events)-1].Seq)
}

func (n *Notifier) advance(ctx context.Context, run, seq int64) error {
	if seq <= 0 {
		return nil
	}
	return n.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return n.o.DB.AdvanceCursor(ctx, tx, cursor, run, seq)
	})
}

// Message is what a webhook is told.
type Message struct {
	ID      string            `json:"id"`    // the same when it is told again
	Event   string            `json:"event"` // question, end
	Time    time.Time         `json:"time"`
	Run     int64             `json:"run,omitempty"`
	Repo    string            `json:"repo"`
	Issue   int               `json:"issue,omitempty"`
	Pull    int               `json:"pull,omitempty"`
	Title   string            `json:"title"`
	State   string            `json:"state"`   // waiting, verified, accepted, …
	Text    string            `json:"text"`    // the question, or how the run ended
	Choices map[string]string `json:"choices"` // of a question: command → what it does
	URL     string            `json:"url"`     // the pull request, or the issue
}

// Lengths of texts in a message, in characters.
const (
	mostTitle = 200
	mostText  = 1500
)

func message(run *pipeline.Run, e pipeline.Event) Message {
	m := Message{ID: fmt.Sprintf("run/%d/%d", run.ID, e.Seq), Event: told[e.Type], Time: e.Time.UTC(), Run: run.ID, Repo: run.Repo.FullName(),
		Issue: run.Task.Issue, Title: run.Task.Title, State: string(run.State), URL: run.Task.URL}
	if p := run.Published.Pull; p != nil {
		m.Pull, m.URL = p.Number, p.URL
	}
	if g := e.Data.Gate; g != nil {
		m.State, m.Text, m.Choices = string(pipeline.StateWaiting), g.Question, map[string]string{}
		for _, c := range g.Choices {
			m.Choices[c.Name] = c.Label
		}
		return m
	}
	m.State = strings.TrimPrefix(string(e.Type), "run.")
	m.Text = run.Summary()
	return m
}

// slack is a message as a chat shows it.
func (m Message) slack() any {
	esc := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	head := map[string]string{"question": "Forge asks", "end": "Forge: " + m.State}[m.Event]
	name := m.Repo
	if m.Issue > 0 {
		name = fmt.Sprintf("%s#%d", m.Repo, m.Issue)
	}
	if m.URL != "" {
		name = "<" + strings.NewReplacer("<", "", ">", "", "|", "").Replace(m.URL) + "|" + esc(name) + ">"
	} else {
		name = esc(name)
	}
	return map[string]string{"text": fmt.Sprintf("*%s* %s %s\n%s", esc(head), name, esc(m.Title), esc(m.Text))}
}

func (n *Notifier) send(ctx context.Context, m Message) error {
	hidden := func(s string, most int) string { return text.Clip(n.o.Hide(s), most) } // a secret that is cut is none to Hide
	m.Title, m.Text = hidden(m.Title, mostTitle), hidden(m.Text, mostText)
	for name, label := range m.Choices {
		m.Choices[name] = hidden(label, mostTitle)
	}
	var body any = m
	if n.o.Kind == Slack {
		body = m.slack()
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err // unreachable: plain fields
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.o.URL, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: its address is wrong", errRefused) // whose text would tell it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "forge")
	if n.o.Kind == Webhook {
		mac := hmac.New(sha256.New, []byte(n.o.Secret))
		mac.Write(data)
		req.Header.Set("X-Forge-Event", m.Event)
		req.Header.Set("X-Forge-Delivery", m.ID)
		req.Header.Set("X-Forge-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return errors.New("the receiver does not answer") // the error names the address
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestTimeout:
		return fmt.Errorf("%w: it answers %d", errRefused, resp.StatusCode)
	}
	return fmt.Errorf("the receiver answers %d", resp.StatusCode)
}
