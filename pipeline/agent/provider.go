package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forge/pipeline"
)

// Credentials are what Open may use. A URL replaces the provider's own address:
// "https://host", for OpenAI-compatible servers with the version, "http://localhost:11434/v1".
type Credentials struct {
	AnthropicKey string
	OpenAIKey    string
	AnthropicURL string
	OpenAIURL    string
	Timeout      time.Duration // until an answer begins, or is whole where it does not come in a stream; 0: CallTimeout
}

// ProviderNames are what names of models begin with, a tape's aside.
var ProviderNames = []string{"anthropic", "openai"}

// of is where the credentials of a provider stand.
func (c *Credentials) of(provider string) (key, url *string) {
	switch provider {
	case "anthropic":
		return &c.AnthropicKey, &c.AnthropicURL
	case "openai":
		return &c.OpenAIKey, &c.OpenAIURL
	}
	return new(string), new(string)
}

// Has reports whether there is a provider's key, or an address at which none may be needed.
func (c Credentials) Has(provider string) bool {
	key, url := c.of(provider)
	return *key != "" || *url != ""
}

// CredentialsOf are those of one provider.
func CredentialsOf(provider, key, url string) (c Credentials) {
	k, u := c.of(provider)
	*k, *u = key, url
	return c
}

// Limits of a call's time when nothing else is said.
const (
	CallTimeout = 10 * time.Minute
	idleTimeout = 5 * time.Minute // of a stream: a model may think for minutes without a word
	totalFactor = 6               // times the timeout: how long a stream may take in all
)

// Trouble is what the operator of the server has to mend.
type Trouble struct {
	Provider string // "OpenAI"
	URL      string // without credentials
	Model    string // as the provider knows it
	Message  string // what is wrong and how to mend it
}

// ProviderOptions configure Providers. Everything may be left out.
type ProviderOptions struct {
	Credentials Credentials
	Operator    func(Trouble)                        // told once of each trouble of a provider, until a call succeeds; nil: logged as an error
	Log         *slog.Logger                         // nil: none
	Now         func() time.Time                     // nil: time.Now
	After       func(time.Duration) <-chan time.Time // nil: time.After
	Random      func() float64                       // from 0 to 1; nil: math/rand's
	Attended    bool                                 // the operator sees what is wrong at once: nothing waits until it is fixed
}

// Providers opens models. All models of a provider share one circuit, so there should
// be one Providers in a process. It is safe for concurrent use.
type Providers struct {
	opts      ProviderOptions
	anthropic *provider
	openai    *provider
}

// NewProviders returns Providers.
func NewProviders(o ProviderOptions) *Providers {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Operator == nil {
		o.Operator = func(t Trouble) {
			o.Log.Error("model provider needs the operator", "provider", t.Provider, "url", t.URL, "model", t.Model, "error", t.Message)
		}
	}
	p, c := &Providers{opts: o}, o.Credentials
	p.anthropic = p.provider("Anthropic", "anthropic_base_url", cmp.Or(c.AnthropicURL, "https://api.anthropic.com"), c.AnthropicKey, map[string]string{
		"X-Api-Key": c.AnthropicKey, "Anthropic-Version": "2023-06-01",
	})
	headers := map[string]string{}
	if c.OpenAIKey != "" { // a local server (Ollama, vLLM) wants none
		headers["Authorization"] = "Bearer " + c.OpenAIKey
	}
	p.openai = p.provider("OpenAI", "openai_base_url", cmp.Or(c.OpenAIURL, "https://api.openai.com/v1"), c.OpenAIKey, headers)
	return p
}

func (p *Providers) provider(name, setting, base, key string, headers map[string]string) *provider {
	o := p.opts
	timeout := cmp.Or(o.Credentials.Timeout, CallTimeout)
	out := &provider{opts: o, told: map[trouble]int{}, well: map[string]time.Time{}, endpoint: &endpoint{
		provider: name, setting: setting, base: strings.TrimRight(base, "/"), key: key, headers: headers,
		silence: timeout, idle: min(idleTimeout, timeout), total: totalFactor * timeout, client: newClient(), after: o.After,
	}}
	out.circuit = &circuit{now: o.Now, after: o.After, random: o.Random, opened: func(until time.Time, f *failure) {
		o.Log.Warn("model provider is away", "provider", name, "until", until.UTC().Format(time.RFC3339), "error", f.fault.Message)
	}, closed: func() { o.Log.Warn("model provider is back", "provider", name) }}
	return out
}

// Open returns the model with this name: "anthropic/MODEL", "openai/MODEL" (any
// OpenAI-compatible server) or "tape:PATH" (a scripted one, see ReadTape).
func (p *Providers) Open(name string) (Model, error) {
	if path, ok := strings.CutPrefix(name, "tape:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("open model %s: %w", name, err)
		}
		m, err := ReadTape(data)
		if err != nil {
			return nil, fmt.Errorf("open model %s: %w", name, err)
		}
		return m, nil
	}
	return p.remote(name)
}

func (p *Providers) remote(name string) (*remote, error) {
	provider, model, ok := strings.Cut(name, "/")
	if !ok || model == "" {
		return nil, fmt.Errorf("open model %q: want anthropic/MODEL, openai/MODEL or tape:PATH", name)
	}
	c := p.opts.Credentials
	switch provider {
	case "anthropic":
		if c.AnthropicKey == "" {
			return nil, fmt.Errorf("open model %s: no API key for Anthropic; set ANTHROPIC_API_KEY", name)
		}
		return &remote{provider: p.anthropic, name: model, dialect: &anthropicDialect{}}, nil
	case "openai":
		if c.OpenAIKey == "" && c.OpenAIURL == "" {
			return nil, fmt.Errorf("open model %s: no API key for OpenAI; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none", name)
		}
		return &remote{provider: p.openai, name: model, dialect: &openaiDialect{own: c.OpenAIURL == ""}}, nil
	}
	return nil, fmt.Errorf("open model %q: provider %q is not known; use anthropic, or openai with a base URL for a compatible server", name, provider)
}

// provider is an endpoint with what is known of how it does.
type provider struct {
	*endpoint
	opts    ProviderOptions
	circuit *circuit

	mu    sync.Mutex
	begun int                  // calls
	well  map[string]time.Time // when the latest call began that was answered; by model, "" for all
	told  map[trouble]int      // what the operator has been told, and how many calls had begun when it was last seen
	held  map[string]hold      // models that the key may not use, or that are not known
}

type trouble struct {
	kind  kind
	model string // "" where it concerns every model
}

// hold keeps the calls of all runs away from a model that the operator has to mend.
type hold struct {
	since time.Time
	until time.Time
	times int
	kind  kind
	fault pipeline.Fault
}

// holding returns the fault of a call that is not made, nil when it may be.
func (p *provider) holding(model string) *failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.held[model]
	if !ok || !p.opts.Now().Before(h.until) {
		return nil
	}
	fault := h.fault
	return &failure{kind: h.kind, fault: &fault}
}

// hasten has a model called now, although its provider is away or it is held.
func (m *remote) hasten() {
	m.mu.Lock()
	delete(m.held, m.name)
	m.mu.Unlock()
	m.circuit.hasten()
}

// heard takes in that a call which began at this time was answered, maybe another server's:
// what was refused before it is tried again now.
func (m *remote) heard(began time.Time) {
	m.mu.Lock()
	if h, ok := m.held[m.name]; ok && h.since.Before(began) {
		delete(m.held, m.name)
	}
	m.mu.Unlock()
	m.circuit.heard(began)
}

// answered notes when a call began that was answered.
func (p *provider) answered(model string, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{"", model} {
		if began.After(p.well[name]) {
			p.well[name] = began
		}
	}
}

// Answered is when the latest call began that was answered by a service that runs wait
// for, as their faults name it; by any, of "". Zero: none was.
func (p *Providers) Answered(service string) (began time.Time) {
	name, model, _ := strings.Cut(service, "/")
	for _, q := range []*provider{p.anthropic, p.openai} {
		if name != "" && name != strings.ToLower(q.endpoint.provider) {
			continue
		}
		q.mu.Lock()
		if at := q.well[model]; at.After(began) {
			began = at
		}
		q.mu.Unlock()
	}
	return began
}

// keep makes runs wait for a model: they go on when the operator has mended it.
func (p *provider) keep(model string, f *failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[model]
	h.times++
	h.since = p.opts.Now()
	h.until = h.since.Add(backoff(h.times, p.opts.Random()))
	f.fault.Final, f.fault.RetryAt = false, h.until
	h.kind, h.fault = f.kind, *f.fault
	if p.held == nil {
		p.held = map[string]hold{}
	}
	p.held[model] = h
}

// begin numbers a call.
func (p *provider) begin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return p.begun
}

// settle takes in how the n-th call went: the operator hears of what only they can
// mend, once until it works again. A call from before the trouble does not show that.
func (p *provider) settle(model string, n int, f *failure) {
	p.mu.Lock()
	tell := false
	if f == nil {
		delete(p.held, model)
		maps.DeleteFunc(p.told, func(t trouble, seen int) bool { return (t.model == "" || t.model == model) && seen < n })
	} else if f.kind.operators() {
		t := trouble{kind: f.kind}
		if f.kind == kindModel || f.kind == kindPermission || f.kind == kindTools {
			t.model = model
		}
		tell = p.told[t] == 0
		p.told[t] = p.begun
	}
	p.mu.Unlock()
	if tell {
		p.opts.Operator(Trouble{Provider: p.endpoint.provider, URL: p.at(""), Model: model, Message: f.fault.Message})
	}
}

// dialect is how a provider wants a request and writes an answer. It is safe for
// concurrent use.
type dialect interface {
	current() dialect // the one that takes a request now, after what was learnt
	path() string     // where requests go
	models() string   // where the list of models is
	encode(model string, req Request) any
	decode(body []byte) (Response, error)
	stream() stream
	adapt(f *failure, req Request) bool // learns from a refusal how to write the request; false: no other way
}

// stream puts the events of an answer together.
type stream interface {
	add(ev event) (done bool, err error) // err may be a *failure that the provider tells in the stream
	finished() bool                      // whether nothing is missing but the end
	response() (Response, error)
}

// remote is a model behind HTTP.
type remote struct {
	*provider
	name    string // as the provider knows it
	dialect dialect
	window  window
	asked   atomic.Bool // the server, what the window is
	cut     atomic.Bool // it was said that the server cuts prompts
}

// Complete implements Model. What passes soon is waited for here; what does not is a
// fault that says until when.
func (m *remote) Complete(ctx context.Context, req Request) (Response, error) {
	deadline := m.opts.Now().Add(patience)
	if f := m.holding(m.name); f != nil {
		return Response{}, f
	}
	if req.Context == 0 && tokens(req.bytes())+int64(req.MaxTokens) > anyContext {
		m.described(ctx)
	}
	adapted := 0
	for attempt := 1; ; {
		p, err := m.circuit.enter(ctx, deadline)
		if err != nil {
			return Response{}, err
		}
		began, n := m.opts.Now(), m.begin()
		r, err := m.attempt(ctx, p, req)
		var f *failure
		switch {
		case err == nil:
			m.settle(m.name, n, nil)
			m.answered(m.name, began)
			if adapted > 0 {
				r.Adapted = append(r.Adapted, pipeline.AdaptedRequest)
			}
			return r, nil
		case !errors.As(err, &f): // the context's
			m.circuit.abandoned(p)
			return Response{}, err
		case f.kind == kindTooLong && f.status == 0: // it was not asked
			return Response{}, f
		case adapted < maxAdapted && (m.window.learn(f) || m.dialect.current().adapt(f, req)):
			m.circuit.succeeded(p)
			adapted++
			continue
		case f.kind.passes() && f.refused && f.wait > 0: // not again at once, but then
			f.fault.RetryAt = m.circuit.failed(p, f)
			return Response{}, f
		case f.kind.operators() && m.opts.Attended, f.kind == kindAnswer && attempt >= maxUnread:
			m.circuit.succeeded(p)
			m.settle(m.name, n, f)
			f.fault.Final = true
			return Response{}, f
		case f.kind.servers(): // asked again later, and not by every run
			m.settle(m.name, n, f)
			f.fault.Final = false
			f.fault.RetryAt = m.circuit.failed(p, f)
			return Response{}, f
		case !f.kind.passes() || f.refused:
			m.circuit.succeeded(p) // it is there, and answers
			if m.settle(m.name, n, f); f.kind == kindModel || f.kind == kindPermission {
				m.keep(m.name, f)
			}
			return Response{}, f
		}
		now := m.opts.Now()
		deadline = deadline.Add(now.Sub(began)) // only waiting counts
		until := m.circuit.failed(p, f)
		open := !until.IsZero()
		if !open {
			until = now.Add(backoff(attempt, m.opts.Random()))
		}
		if attempt++; until.After(deadline) {
			f.fault.RetryAt = until
			return Response{}, f
		}
		if !open { // else enter waits
			if err := m.pause(ctx, until.Sub(now)); err != nil {
				return Response{}, err
			}
		}
	}
}

const (
	maxAdapted = 6 // times that a request may be written in another way
	maxUnread  = 3 // answers to a request that cannot be read: the server answers so to the next one, too
)

func (m *remote) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.opts.After(d):
		return nil
	}
}

// attempt makes one request. The error is a described *failure or the context's.
func (m *remote) attempt(ctx context.Context, p pass, req Request) (Response, error) {
	d := m.dialect.current()
	body, err := json.Marshal(d.encode(m.name, req))
	if err != nil {
		return Response{}, (&failure{kind: kindRequest, said: err.Error()}).describe(m.endpoint, m.name)
	}
	fits, ok := m.window.bound(req, len(body))
	if !ok {
		m.circuit.abandoned(p)
		return Response{}, (&failure{kind: kindTooLong, said: fmt.Sprintf("its context holds %d tokens, and the request alone has about %d", m.window.size(req), m.window.prompt(len(body)))}).describe(m.endpoint, m.name)
	}
	if fits.MaxTokens != req.MaxTokens || fits.Reasoning != req.Reasoning {
		body, err = json.Marshal(d.encode(m.name, fits))
		if err != nil {
			return Response{}, (&failure{kind: kindRequest, said: err.Error()}).describe(m.endpoint, m.name)
		}
	}
	begins := sync.OnceFunc(func() { m.circuit.answering(p) })
	st := d.stream()
	a, err := m.exchange(ctx, http.MethodPost, d.path(), body, func(ev event) (bool, error) {
		done, err := st.add(ev)
		if err == nil {
			begins()
		}
		return done, err
	})
	var r Response
	var f *failure
	switch {
	case errors.As(err, &f) && f.kind == kindBroken && st.finished():
		r, err = st.response()
	case err != nil:
	case a.status != http.StatusOK:
		err = m.refusal(d.path(), a, m.opts.Now())
	case a.body != nil:
		if r, err = d.decode(a.body); err != nil && !json.Valid(a.body) {
			err = &failure{kind: kindURL, said: m.elsewhere(d.path(), a, bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<")))}
		}
	default:
		r, err = st.response()
	}
	switch {
	case err == nil:
		m.circuit.succeeded(p)
		return tolerant(m.counted(r, body, req), req.Tools), nil
	case ctx.Err() != nil:
		return Response{}, ctx.Err()
	case !errors.As(err, &f):
		f = &failure{kind: kindAnswer, said: err.Error()}
	}
	f.asked = fits.MaxTokens + fits.Reasoning
	return Response{}, f.describe(m.endpoint, m.name)
}

// cutOver is the least estimate of a prompt that is compared with the server's count.
const cutOver = 3000

// whyCut is what helps against a server that cuts prompts and does not say so.
const whyCut = "let its context be longer (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx of the model)"

// counted compares a server's count of the prompt with the estimate, and estimates the usage
// where it does not count: a cap that sees nothing holds nothing. A conversation's first
// prompt is compared, because some servers leave out what they kept of the one before.
func (m *remote) counted(r Response, body []byte, req Request) Response {
	r.Usage.Calls = 1
	if n, about := r.Usage.Input, tokens(len(body)); n > 0 && n < about/2 && about >= cutOver && len(req.Messages) == 1 && r.Usage.CachedInput == 0 {
		r.Adapted = append(r.Adapted, pipeline.AdaptedCut)
		if m.cut.CompareAndSwap(false, true) {
			m.opts.Log.Warn("the model's server seems to cut prompts", "provider", m.endpoint.provider, "url", m.at(""), "model", m.name,
				"error", fmt.Sprintf("it counted %d tokens of a prompt that has about %d: %s", n, about, whyCut))
		}
	}
	if r.Usage.Input+r.Usage.Output == 0 {
		n := len(r.Text) + len(r.Raw)
		for _, c := range r.Calls {
			n += len(c.Args)
		}
		r.Usage.Input, r.Usage.Output = tokens(len(body)), tokens(n)
		r.Adapted = append(r.Adapted, pipeline.AdaptedEstimated)
	}
	return r
}

// fault is what a provider's status means for people; a tape uses it, too.
func fault(provider, model string, status int, said string) *pipeline.Fault {
	e := &endpoint{provider: provider}
	return (&failure{kind: statusKind(status, said), status: status, said: said}).describe(e, model).fault
}
