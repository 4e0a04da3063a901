package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"forge/pipeline/record"

	"github.com/gorilla/mux"
)

const (
	// maxBody is the size in bytes of the largest payload that GitHub sends.
	maxBody = 25 << 20

	defaultPath = "/webhook"
	maxName     = 200  // bytes of a GUID or an event's name
	retryAfter  = "10" // seconds
)

// A keeper makes deliveries durable, all of them or none. One whose GUID is known
// is passed over. It must not hold on to the list or the payloads.
type keeper interface {
	KeepDeliveries(ctx context.Context, list []record.Delivery) error
}

// Options configure a [Receiver].
type Options struct {
	Secret []byte // shared with GitHub; must not be empty
	Path   string // of the route; empty: "/webhook"
	Notify func() // called after a commit, to wake up who handles deliveries; may be nil; must not block

	// Read says by what a delivery is listed, and why nothing follows from it, as most of
	// what GitHub sends is of no concern: it is then kept as handled, in the same insert.
	// An outcome of "" leaves that to who handles deliveries. It must be quick, must not
	// keep the payload, and may be nil.
	Read func(event string, payload []byte) (action, repo, outcome string)

	Sources map[string]Source // by name; none: no route but GitHub's

	Clock func() time.Time // nil: time.Now
}

// Receiver is the HTTP handler for GitHub's deliveries. Start it before it
// serves, stop it after the server has been shut down.
type Receiver struct {
	opts   Options
	log    *slog.Logger
	macs   sync.Pool // of hash.Hash
	bodies bodies
	commit *committer
	gates  map[string]*gate
}

// New returns a receiver that keeps deliveries with k.
func New(k keeper, log *slog.Logger, o Options) (*Receiver, error) {
	if len(o.Secret) == 0 {
		return nil, errors.New("webhook: the secret is empty: anybody could forge deliveries; set the same secret here and in the GitHub App")
	}
	if o.Path == "" {
		o.Path = defaultPath
	}
	if !strings.HasPrefix(o.Path, "/") {
		return nil, fmt.Errorf("webhook: path %q must start with a slash", o.Path)
	}
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	gates, err := newGates(o.Sources)
	if err != nil {
		return nil, err
	}
	r := &Receiver{opts: o, log: log, commit: newCommitter(k, o.Notify), gates: gates}
	r.macs.New = func() any { return hmac.New(sha256.New, o.Secret) }
	return r, nil
}

// Route adds the receiver's route, and one for sources when there are any. Another
// method than POST is answered 405.
func (r *Receiver) Route(m *mux.Router) {
	m.Handle(r.opts.Path, r).Methods(http.MethodPost)
	if len(r.gates) > 0 {
		m.HandleFunc(sourcePrefix+"{name}", r.serveSource).Methods(http.MethodPost)
	}
}

// Start begins to accept deliveries. Commits outlive ctx, so that those that are
// waiting when it ends are still kept: Stop ends them.
func (r *Receiver) Start(ctx context.Context) { r.commit.start(context.WithoutCancel(ctx)) }

// Stop refuses further deliveries and returns when those that wait have been
// committed and answered, or ctx ends.
func (r *Receiver) Stop(ctx context.Context) error { return r.commit.stop(ctx) }

// A refusal is an answer other than 202, in words for whoever reads GitHub's list
// of deliveries.
type refusal struct {
	status int
	text   string
	cause  error // for the log alone
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

func busy(text string, cause error) *refusal {
	no := refuse(http.StatusServiceUnavailable, "%s; deliver it again in %s s", text, retryAfter)
	no.cause = cause
	return no
}

// ServeHTTP answers 202 when the delivery is kept; 400 without GitHub's headers,
// 401 for a wrong signature, 413 for a body over 25 MiB, 415 for a form, 503 when
// it cannot be kept now.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d := record.Delivery{GUID: req.Header.Get("X-GitHub-Delivery"), Event: req.Header.Get("X-GitHub-Event"), Received: r.opts.Clock()}
	r.answer(w, req, &d, r.receive(w, req, &d))
}

// answer says what became of a delivery; without a refusal it was kept.
func (r *Receiver) answer(w http.ResponseWriter, req *http.Request, d *record.Delivery, no *refusal) {
	if no == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	level := slog.LevelInfo
	if no.status >= 500 {
		level = slog.LevelError
		if no.cause == nil && strings.HasPrefix(d.Event, "hook/") { // its sender tries again
			level = slog.LevelWarn
		}
		w.Header().Set("Retry-After", retryAfter)
	}
	r.log.Log(req.Context(), level, "delivery refused", "delivery", shorten(d.GUID), "event", shorten(d.Event), "status", no.status, "why",
		no.text, "error", no.cause)
	if no.status == http.StatusRequestEntityTooLarge || no.status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	http.Error(w, no.text, no.status)
}

// receive verifies and keeps a delivery.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, d *record.Delivery) *refusal {
	r.commit.open.Add(1)
	defer r.commit.open.Add(-1)
	buf, no := r.read(w, req, d)
	if no != nil {
		return no
	}
	return r.keep(req.Context(), d, func() { r.bodies.release(buf) })
}

// read verifies a delivery and reads from its payload what it concerns. The payload
// lies in the buffer, which the caller releases.
func (r *Receiver) read(w http.ResponseWriter, req *http.Request, d *record.Delivery) (*buffer, *refusal) {
	signature, no := checkHeaders(req, d)
	if no != nil {
		return nil, no
	}
	buf, no := r.bodies.read(w, req, maxBody)
	if no == nil && !r.signed(buf.data, signature) {
		no = refuse(http.StatusUnauthorized, "the signature does not match: the App's webhook secret and Forge's differ, or the body was changed on the way")
	}
	if no != nil {
		r.bodies.release(buf)
		return nil, no
	}
	d.Payload = buf.data
	r.list(d)
	return buf, nil
}

// list fills in what a delivery is listed by.
func (r *Receiver) list(d *record.Delivery) {
	if r.opts.Read != nil {
		d.Action, d.Repo, d.Outcome = r.opts.Read(d.Event, d.Payload)
	}
}

// keep waits until a delivery is on disk. release is called when its payload is not
// needed any more.
func (r *Receiver) keep(ctx context.Context, d *record.Delivery, release func()) *refusal {
	err := r.commit.keep(ctx, d, release)
	switch {
	case errors.Is(err, errFull):
		return busy("too many deliveries wait to be kept", nil)
	case errors.Is(err, errStopped):
		return busy("Forge is being stopped or started", nil)
	case err != nil:
		return busy("the delivery could not be kept", err)
	}
	return nil
}

// Take keeps a delivery that was read from GitHub itself, and so needs no signature.
// It returns when the delivery is on disk; one whose GUID is known is passed over.
func (r *Receiver) Take(ctx context.Context, guid, event string, payload []byte) error {
	if !isName(guid) || !isName(event) || guid == "" || event == "" {
		return fmt.Errorf("webhook: %q of %q is no delivery", shorten(event), shorten(guid))
	}
	d := record.Delivery{GUID: guid, Event: event, Received: r.opts.Clock(), Payload: payload}
	r.list(&d)
	return r.commit.keep(ctx, &d, func() {})
}

// checkHeaders returns the signature, as bytes.
func checkHeaders(req *http.Request, d *record.Delivery) ([]byte, *refusal) {
	signature := req.Header.Get("X-Hub-Signature-256")
	for _, h := range [...]struct{ name, value string }{
		{"X-GitHub-Delivery", d.GUID}, {"X-GitHub-Event", d.Event}, {"X-Hub-Signature-256", signature},
	} {
		if h.value == "" {
			return nil, refuse(http.StatusBadRequest, "the header %s is missing: is this GitHub, and has the App a webhook secret?", h.name)
		}
	}
	// What other doors take in has a slash in its event: GitHub's signature does not cover the name.
	if !isName(d.GUID) || !isName(d.Event) || strings.Contains(d.Event, "/") {
		return nil, refuse(http.StatusBadRequest, "X-GitHub-Delivery or X-GitHub-Event is not a plain word of up to %d characters", maxName)
	}
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return nil, refuse(http.StatusUnsupportedMediaType, "the payload comes as a form: set the content type of the App's webhook to application/json")
	}
	digest, ok := strings.CutPrefix(signature, "sha256=")
	mac, err := hex.DecodeString(digest)
	if !ok || err != nil || len(mac) != sha256.Size {
		return nil, refuse(http.StatusUnauthorized, "X-Hub-Signature-256 is not sha256= and 64 hexadecimal digits")
	}
	return mac, nil
}

// isName reports whether s is short, printable ASCII without spaces.
func isName(s string) bool {
	if len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func shorten(s string) string { return s[:min(len(s), maxName)] }

// signed checks the HMAC over the raw body, in constant time.
func (r *Receiver) signed(body, signature []byte) bool {
	mac := r.macs.Get().(hash.Hash)
	defer r.macs.Put(mac)
	mac.Reset()
	mac.Write(body)
	var sum [sha256.Size]byte
	return hmac.Equal(mac.Sum(sum[:0]), signature)
}
