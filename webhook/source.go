package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forge/pipeline/record"

	"github.com/gorilla/mux"
)

// The kinds of sources, by how they prove who they are.
const (
	SourceBearer   = "bearer"   // the secret itself, in Authorization: Alertmanager and Grafana cannot sign
	SourceSentry   = "sentry"   // Sentry-Hook-Signature, over the body
	SourceStandard = "standard" // Standard Webhooks 1.0: an id, a time and a signature over both and the body
)

const (
	sourcePrefix  = "/hooks/"
	sourceBody    = 1 << 20         // bytes
	sourceWindow  = 5 * time.Minute // how far a signed time may be from now
	sourceMinimum = 16              // bytes of a secret
)

// Source is another sender than GitHub. It posts to /hooks/NAME, and its deliveries
// have the event "hook/NAME".
type Source struct {
	Kind      string
	Secret    []byte
	Repo      string      // that its deliveries are listed with; "": none
	PerMinute int         // deliveries; more are answered 503; 0: 120
	Full      func() bool // too many of its deliveries wait already; may be nil
}

// A gate is a source with what is left of its rate.
type gate struct {
	Source
	name string
	key  []byte // of signatures

	mu   sync.Mutex
	left float64
	at   time.Time

	taken, unproven, busy atomic.Int64
}

// Passed is what came in by a source since the start.
type Passed struct {
	Name                  string
	Taken, Unproven, Busy int64
}

// Sources returns what came in by each source, in the order of their names.
func (r *Receiver) Sources() (out []Passed) {
	for _, name := range slices.Sorted(maps.Keys(r.gates)) {
		g := r.gates[name]
		out = append(out, Passed{name, g.taken.Load(), g.unproven.Load(), g.busy.Load()})
	}
	return out
}

func (g *gate) count(no *refusal) {
	switch {
	case no == nil:
		g.taken.Add(1)
	case no.status == http.StatusUnauthorized:
		g.unproven.Add(1)
	case no.status == http.StatusServiceUnavailable:
		g.busy.Add(1)
	}
}

func newGates(sources map[string]Source) (map[string]*gate, error) {
	out := map[string]*gate{}
	for name, s := range sources {
		g := &gate{Source: s, name: name, key: s.Secret}
		if s.Kind == SourceStandard {
			g.key = StandardKey(s.Secret)
		}
		switch {
		case !isName(name) || name == "" || strings.ContainsAny(name, "/:"):
			return nil, fmt.Errorf("webhook: %q is no name for a source", shorten(name))
		case len(s.Secret) < sourceMinimum:
			return nil, fmt.Errorf("webhook: the secret of the source %s has under %d characters", name, sourceMinimum)
		case s.Kind != SourceBearer && s.Kind != SourceSentry && s.Kind != SourceStandard:
			return nil, fmt.Errorf("webhook: the source %s is of the kind %q, which there is not", name, s.Kind)
		}
		if g.PerMinute <= 0 {
			g.PerMinute = 120
		}
		g.left = float64(g.PerMinute)
		out[name] = g
	}
	return out, nil
}

// StandardKey is the key that a secret of Standard Webhooks stands for: what follows
// "whsec_" is base64, any other secret is itself the key.
func StandardKey(secret []byte) []byte {
	if rest, ok := bytes.CutPrefix(secret, []byte("whsec_")); ok {
		if key, err := base64.StdEncoding.DecodeString(string(rest)); err == nil {
			return key
		}
	}
	return secret
}

// serveSource answers a source: 202 when the delivery is kept, 401 when it does not
// prove who it is, 404 when there is no such source, 413 for a body over 1 MiB, 503
// when there is too much now. It is never 429, after which Alertmanager gives up.
func (r *Receiver) serveSource(w http.ResponseWriter, req *http.Request) {
	g := r.gates[mux.Vars(req)["name"]]
	if g == nil {
		http.Error(w, "there is no such hook", http.StatusNotFound)
		return
	}
	d := record.Delivery{Event: "hook/" + g.name, Repo: g.Repo, Received: r.opts.Clock()}
	no := r.receiveFrom(w, g, req, &d)
	g.count(no)
	r.answer(w, req, &d, no)
}

func (r *Receiver) receiveFrom(w http.ResponseWriter, g *gate, req *http.Request, d *record.Delivery) *refusal {
	proof, no := g.proof(req.Header, d.Received)
	if no != nil {
		return no
	}
	buf, no := r.bodies.read(w, req, sourceBody)
	if no == nil {
		no = proof(buf.data)
	}
	if no == nil {
		no = g.admit(d.Received)
	}
	if no != nil {
		r.bodies.release(buf)
		return no
	}
	d.GUID, d.Action = "hook:"+g.name+":"+g.id(req.Header, buf.data, d.Received), g.action(req.Header)
	d.Payload = buf.data
	if g.Kind == SourceStandard && req.Header.Get("Ce-Specversion") != "" {
		d.Payload = structured(req.Header, buf.data)
	}
	return r.keep(req.Context(), d, func() { r.bodies.release(buf) })
}

// unproven is the answer to who does not prove who they are; it helps nobody to guess.
func unproven(what string) *refusal {
	return refuse(http.StatusUnauthorized, "%s", what)
}

// proof checks what can be checked without the body, and returns what checks that.
func (g *gate) proof(h http.Header, now time.Time) (func(body []byte) *refusal, *refusal) {
	switch g.Kind {
	case SourceSentry:
		want, err := hex.DecodeString(h.Get("Sentry-Hook-Signature"))
		if err != nil || len(want) != sha256.Size {
			return nil, unproven("Sentry-Hook-Signature is missing, or is not 64 hexadecimal digits")
		}
		return func(body []byte) *refusal {
			if !hmac.Equal(want, g.mac(body)) {
				return unproven("the signature does not match the hook's secret")
			}
			return nil
		}, nil
	case SourceStandard:
		return g.standardProof(h, now)
	}
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256(g.Secret)
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return nil, unproven("Authorization must be Bearer and the hook's token")
	}
	return func([]byte) *refusal { return nil }, nil
}

// standardProof checks as https://www.standardwebhooks.com says.
func (g *gate) standardProof(h http.Header, now time.Time) (func(body []byte) *refusal, *refusal) {
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	if id == "" || !isName(id) {
		return nil, unproven("the header webhook-id is missing, or is not a plain word")
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if away := now.Sub(time.Unix(seconds, 0)).Abs(); err != nil || seconds < 0 || away > sourceWindow {
		return nil, unproven("webhook-timestamp is missing, or more than 5 minutes from now")
	}
	var given [][]byte
	for one := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		version, digest, _ := strings.Cut(one, ",")
		if mac, err := base64.StdEncoding.DecodeString(digest); err == nil && version == "v1" && len(given) < 10 {
			given = append(given, mac)
		}
	}
	return func(body []byte) *refusal {
		want := g.mac([]byte(id), []byte("."), []byte(stamp), []byte("."), body)
		for _, mac := range given {
			if hmac.Equal(mac, want) {
				return nil
			}
		}
		return unproven("webhook-signature does not match the hook's secret")
	}, nil
}

func (g *gate) mac(parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, g.key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// id tells a repeat. Alertmanager gives none: the same body within a minute is a
// retry, and later it goes on. Sentry's is not signed, so that its body counts.
func (g *gate) id(h http.Header, body []byte, now time.Time) string {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:16])
	switch g.Kind {
	case SourceStandard:
		id := h.Get("Webhook-Id")
		if strings.ContainsAny(id, "/?#%:") { // a delivery's page has its id in the address
			sum = sha256.Sum256([]byte(id))
			id = hex.EncodeToString(sum[:])
		}
		return id
	case SourceSentry:
		return digest
	}
	return digest + "-" + strconv.FormatInt(now.Unix()/60, 10)
}

// action says what a delivery is about, for lists.
func (g *gate) action(h http.Header) string {
	if s := h.Get("Sentry-Hook-Resource"); g.Kind == SourceSentry && isName(s) {
		return s
	}
	return ""
}

// admit takes one from what the source may send now.
func (g *gate) admit(now time.Time) *refusal {
	if g.Full != nil && g.Full() {
		return busy("too many deliveries of this hook wait to be read", nil)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	most := float64(g.PerMinute)
	if !g.at.IsZero() && now.After(g.at) {
		g.left = min(most, g.left+now.Sub(g.at).Minutes()*most)
	}
	g.at = now
	if g.left < 1 {
		return busy(fmt.Sprintf("this hook takes %d deliveries a minute", g.PerMinute), nil)
	}
	g.left--
	return nil
}

// structured makes an event that CloudEvents' binary mode splits into headers and
// body one JSON object, as its structured mode is.
func structured(h http.Header, body []byte) []byte {
	out := map[string]any{}
	for key, values := range h {
		if name, ok := strings.CutPrefix(strings.ToLower(key), "ce-"); ok && len(values) > 0 {
			out[name] = values[0]
		}
	}
	out["data"] = string(body)
	if json.Valid(body) {
		out["data"] = json.RawMessage(body)
	}
	data, _ := json.Marshal(out) // plain values: it cannot fail
	return data
}
