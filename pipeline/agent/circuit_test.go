package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/config"
)

// pastDeadline is over when it is asked for.
var pastDeadline = time.Unix(1, 0)

var hello = Request{MaxTokens: 10, Messages: []Message{{Role: "user", Text: "hello"}}}

// bubble runs f with a model against a handler on a clock that stands still while
// anything happens, and jumps when everybody waits.
func bubble(t *testing.T, o ProviderOptions, h http.HandlerFunc, f func(t *testing.T, m *remote)) {
	t.Helper()
	srv := httptest.NewServer(h) // outside: a server waits for connections, and the clock would wait for it
	defer srv.Close()
	synctest.Test(t, func(t *testing.T) {
		o.Credentials = Credentials{OpenAIURL: srv.URL + "/v1", OpenAIKey: "sk-key-1234"}
		m, err := NewProviders(o).remote("openai/llama")
		if err != nil {
			t.Fatal(err)
		}
		m.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // an idle connection waits, too
		f(t, m)
	})
}

func answerOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"model":"llama","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
}

// TestProviderAway lets the provider be away for ten minutes under 20 runs: each of
// them is done afterwards, nobody is asked, and at most 30 calls are wasted. The runs
// wait as the engine lets them: a fault with a time is waited for, without a worker.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	const runs, callsPerRun = 20, 4
	for _, how := range []string{"503", "hangs up"} {
		for _, together := range []bool{false, true} {
			for seed := range uint64(6) {
				t.Run(fmt.Sprintf("%s together=%v seed=%d", how, together, seed), func(t *testing.T) {
					var away atomic.Bool
					var wasted, asked, done atomic.Int32
					first := make(chan struct{})
					var arrived atomic.Int32
					handler := func(w http.ResponseWriter, r *http.Request) {
						if !away.Load() {
							answerOK(w)
							return
						}
						wasted.Add(1)
						if together { // the calls of all runs are under way when the first one fails
							if arrived.Add(1) == runs {
								close(first)
							}
							<-first
						}
						if how == "hangs up" {
							panic(http.ErrAbortHandler)
						}
						w.WriteHeader(http.StatusServiceUnavailable)
					}
					random := rand.New(rand.NewPCG(seed, 1))
					var mu sync.Mutex
					o := ProviderOptions{Random: func() float64 { mu.Lock(); defer mu.Unlock(); return random.Float64() }}
					bubble(t, o, handler, func(t *testing.T, m *remote) {
						began := time.Now()
						away.Store(together)
						time.AfterFunc(5*time.Second, func() { away.Store(true) })
						time.AfterFunc(10*time.Minute+5*time.Second, func() { away.Store(false) })
						var wg sync.WaitGroup
						for run := range runs {
							wg.Go(func() {
								for call := 0; call < callsPerRun; {
									_, err := m.Complete(t.Context(), hello)
									var f *pipeline.Fault
									switch {
									case err == nil:
										call++
										<-time.After(time.Duration(1+run%7) * time.Second) // it works
									case errors.As(err, &f) && !f.Final && f.RetryAt.After(time.Now()):
										<-time.After(time.Until(f.RetryAt))
									default:
										t.Error(err)
										asked.Add(1)
										return
									}
								}
								done.Add(1)
							})
						}
						wg.Wait()
						t.Logf("%d done, %d asked, %d calls wasted, after %v", done.Load(), asked.Load(), wasted.Load(), time.Since(began))
						if done.Load() != runs || asked.Load() != 0 || wasted.Load() > 30 {
							t.Errorf("%d runs done, %d humans asked, %d calls wasted; want %d, 0, at most 30", done.Load(), asked.Load(), wasted.Load(), runs)
						}
						if d := time.Since(began); d > 10*time.Minute+mostWait {
							t.Errorf("the last run is done after %v", d)
						}
					})
				})
			}
		}
	}
}

// TestRetryAfter checks that what the provider asks for is kept to exactly: no call
// before that time, one at it. A short wait is the call's own, a long one the run's.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // where a bubble's clock begins
	for _, tt := range []struct {
		header, value string
		wait          time.Duration
	}{
		{"Retry-After", "20", 20 * time.Second},
		{"Retry-After", "3600", time.Hour},
		{"Retry-After", start.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After", "1e12", maxRetryAfter},
	} {
		for _, status := range []int{429, 503, 500} {
			t.Run(fmt.Sprintf("%s %s %d", tt.header, tt.value, status), func(t *testing.T) {
				var times []time.Time
				var now atomic.Pointer[func() time.Time]
				o := ProviderOptions{Random: func() float64 { return 0 }}
				bubble(t, o, func(w http.ResponseWriter, r *http.Request) {
					times = append(times, (*now.Load())())
					if len(times) == 1 {
						w.Header().Set(tt.header, tt.value)
						w.WriteHeader(status)
						return
					}
					answerOK(w)
				}, func(t *testing.T, m *remote) {
					clock := time.Now()
					read := func() time.Time { return clock }
					now.Store(&read)
					// The handler is outside: it is told the time by whoever calls it.
					m.client.Transport = tell{m.client.Transport, func() { clock = time.Now() }}
					_, err := m.Complete(t.Context(), hello)
					var f *pipeline.Fault
					if tt.wait > patience {
						if !errors.As(err, &f) || f.Final || !f.RetryAt.Equal(start.Add(tt.wait)) {
							t.Fatalf("error %#v, want a fault until %v", err, start.Add(tt.wait))
						}
						// Another run is told the same, without a call.
						<-time.After(tt.wait - patience - time.Nanosecond)
						if _, err := m.Complete(t.Context(), hello); !errors.As(err, &f) || !f.RetryAt.Equal(start.Add(tt.wait)) {
							t.Errorf("%v before: error %#v", patience, err)
						}
						// It waits itself when it is soon.
						<-time.After(time.Second)
						_, err = m.Complete(t.Context(), hello)
					}
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff([]time.Time{start, start.Add(tt.wait)}, times); d != "" {
						t.Errorf("calls (-want +got):\n%s", d)
					}
				})
			})
		}
	}
}

// tell calls f before each request.
type tell struct {
	http.RoundTripper
	f func()
}

func (r tell) RoundTrip(req *http.Request) (*http.Response, error) {
	r.f()
	return r.RoundTripper.RoundTrip(req)
}

// TestRetries checks that a failure of a single call is tried again in the call, from
// 5 s on, and that a call gives up in time.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fails  int // calls that fail
		random float64
		calls  int
		waited time.Duration
		fault  bool
		takes  time.Duration // each call
	}{
		{"once", 1, 0, 2, 5 * time.Second, false, 0},
		{"once, with the longest wait", 1, 1, 2, 10 * time.Second, false, 0},
		{"five times", 5, 0, 6, 25 * time.Second, false, 0},
		{"always", 1000, 0, 7, 30 * time.Second, true, 0},
		{"always, with long waits", 1000, 1, 3, 20 * time.Second, true, 0},
		{"slow calls: their own time is no waiting", 2, 0, 3, 10*time.Second + 3*time.Minute, false, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int32
			o := ProviderOptions{Random: func() float64 { return tt.random }}
			bubble(t, o, func(w http.ResponseWriter, r *http.Request) {
				if int(calls.Add(1)) <= tt.fails {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				answerOK(w)
			}, func(t *testing.T, m *remote) {
				began := time.Now()
				m.client.Transport = tell{m.client.Transport, func() { <-time.After(tt.takes) }}
				_, err := m.Complete(t.Context(), hello)
				var f *pipeline.Fault
				if tt.fault != errors.As(err, &f) || tt.fault && (f.Final || f.RetryAt.Before(time.Now().Add(leastWait))) {
					t.Errorf("error %v, want a fault with a time: %v", err, tt.fault)
				}
				if n, d := int(calls.Load()), time.Since(began); n != tt.calls || d != tt.waited {
					t.Errorf("%d calls in %v, want %d in %v", n, d, tt.calls, tt.waited)
				}
			})
		})
	}
}

// TestProbe checks that one call at a time finds out whether the provider is back,
// and that others wait for what it finds.
func TestProbe(t *testing.T) {
	t.Parallel()
	release := make(chan int)
	var calls atomic.Int32
	bubble(t, ProviderOptions{Random: func() float64 { return 0 }}, func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if n == 2 {
			if status := <-release; status != http.StatusOK {
				w.WriteHeader(status)
				return
			}
		}
		answerOK(w)
	}, func(t *testing.T, m *remote) {
		if _, err := m.attemptAndTell(t.Context()); err == nil {
			t.Fatal("the first call does not fail")
		}
		<-time.After(leastWait)
		probe, err := m.circuit.enter(t.Context(), time.Now())
		if err != nil || !probe.probe {
			t.Fatalf("%+v, %v; want the probe", probe, err)
		}
		// Nobody else gets through; who has no time left is told when to come again.
		_, err = m.circuit.enter(t.Context(), time.Now())
		var f *pipeline.Fault
		if !errors.As(err, &f) || !f.RetryAt.Equal(time.Now().Add(patience)) {
			t.Errorf("a second probe: %v, %+v", err, f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.circuit.enter(ctx, time.Now().Add(patience)); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting for the probe: %v, want the context's error", err)
		}
		others := make(chan error)
		for range 3 {
			go func() {
				_, err := m.circuit.enter(t.Context(), time.Now().Add(patience))
				others <- err
			}()
		}
		synctest.Wait()
		m.circuit.abandoned(probe) // its run was stopped: the next one probes
		synctest.Wait()
		if err := <-others; err != nil {
			t.Errorf("the next probe: %v", err)
		}
		select {
		case err := <-others:
			t.Errorf("two probes at once: %v", err)
		default:
		}
		m.circuit.succeeded(pass{round: probe.round, probe: true})
		for range 2 {
			if err := <-others; err != nil {
				t.Errorf("after the probe: %v", err)
			}
		}
	})
	close(release)
}

// TestSlowProbe checks that a probe whose answer takes long holds up nobody else: another
// call probes after half a minute, one more a minute later, and the first answer counts.
func TestSlowProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &circuit{now: time.Now, after: time.After, random: func() float64 { return 0 }}
		enter := func() (pass, error) { return c.enter(t.Context(), time.Now()) }
		away := &failure{kind: kindUnreachable, fault: &pipeline.Fault{}}
		first, err := enter()
		if err != nil {
			t.Fatal(err)
		}
		c.failed(first, away)
		<-time.After(leastWait)
		slow, err := enter()
		if err != nil || !slow.probe {
			t.Fatalf("%+v, %v; want the probe", slow, err)
		}
		for _, wait := range []time.Duration{patience, 2 * patience} {
			<-time.After(wait - time.Nanosecond)
			if p, err := enter(); err == nil {
				t.Fatalf("%+v before %s", p, wait)
			}
			<-time.After(time.Nanosecond)
			if p, err := enter(); err != nil || !p.probe {
				t.Fatalf("after %s: %+v, %v; want one more probe", wait, p, err)
			}
		}
		c.succeeded(slow)
		if p, err := enter(); err != nil || p.probe {
			t.Errorf("after an answer: %+v, %v; want any call let through", p, err)
		}
	})
}

// attemptAndTell makes one call and tells the circuit.
func (m *remote) attemptAndTell(ctx context.Context) (Response, error) {
	p, err := m.circuit.enter(ctx, m.opts.Now())
	if err != nil {
		return Response{}, err
	}
	r, err := m.attempt(ctx, p, hello)
	var f *failure
	if errors.As(err, &f) {
		m.circuit.failed(p, f)
	}
	return r, err
}

// TestLateNews checks that calls which began before the circuit opened neither open it
// further nor close it, and that only what the provider asks for counts from them.
func TestLateNews(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &circuit{now: func() time.Time { return now }, after: never, random: func() float64 { return 0 }}
	enter := func() pass {
		p, err := c.enter(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	down := &failure{kind: kindOverloaded, fault: &pipeline.Fault{Class: pipeline.FaultProvider, Message: "down"}}
	slow := &failure{kind: kindLimited, wait: time.Minute, fault: &pipeline.Fault{Class: pipeline.FaultProvider, Message: "slow"}}
	first, second, third, fourth := enter(), enter(), enter(), enter()
	if until := c.failed(first, down); !until.Equal(now.Add(5 * time.Second)) {
		t.Fatalf("open until %v", until)
	}
	c.failed(second, down)
	if c.failures != 1 {
		t.Errorf("%d openings, want 1: the calls failed together", c.failures)
	}
	c.succeeded(third)
	if c.until.IsZero() {
		t.Error("a call from before closed the circuit")
	}
	if until := c.failed(fourth, slow); !until.Equal(now.Add(time.Minute)) {
		t.Errorf("open until %v, want what the provider asked for", until)
	}
	// A failure that may be a single call's opens it the second time in a row.
	odd := &failure{kind: kindFailed, fault: down.fault}
	now = now.Add(time.Minute)
	c.succeeded(enter())
	for i, want := range []bool{false, true} {
		if open := !c.failed(enter(), odd).IsZero(); open != want {
			t.Errorf("after %d errors of a single call: open %v, want %v", i+1, open, want)
		}
	}
	now = now.Add(time.Hour)
	c.succeeded(enter())
	c.failed(enter(), odd)
	c.succeeded(enter())
	if open := !c.failed(enter(), odd).IsZero(); open {
		t.Error("two errors with a success between them opened the circuit")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, most := range []time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second, 7: 640 * time.Second, 8: mostWait, 100: mostWait} {
		if n == 0 || most == 0 {
			continue
		}
		if low, high := backoff(n, 0), backoff(n, 1); low != leastWait || high != most {
			t.Errorf("the %d. wait is from %v to %v, want %v to %v", n, low, high, leastWait, most)
		}
	}
}

// TestOperator checks that what only the operator can mend is told once, not to each
// run, until it works, and again when it breaks again. Runs wait for it, those of a model
// that is not there without a call.
func TestOperator(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	var told []Trouble
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := ProviderOptions{After: never, Now: func() time.Time { return now }, Operator: func(tr Trouble) { told = append(told, tr) }}
	m := serve(t, "openai/llama", o, func(w http.ResponseWriter, r *http.Request) {
		if s := int(status.Load()); s != 200 {
			w.WriteHeader(s)
			fmt.Fprint(w, `{"error":{"message":"no: sk-secret-0123456789abcdef"}}`)
			return
		}
		answerOK(w)
	})
	for _, s := range []int32{401, 401, 401, 404, 404, 400, 200, 404, 401} {
		status.Store(s)
		_, err := m.Complete(t.Context(), hello)
		var f *pipeline.Fault
		waits := s == 401 || s == 404
		if s != 200 && (!errors.As(err, &f) || f.Final == waits || f.RetryAt.After(now) != waits) {
			t.Errorf("%d gives %#v; is it to be waited for: %v", s, err, waits)
		}
		if waits {
			now = f.RetryAt
		}
	}
	var got []string
	for _, tr := range told {
		if tr.URL != m.base || tr.Model != "llama" || tr.Provider != "OpenAI" || strings.Contains(tr.Message, "sk-secret") {
			t.Errorf("told %+v", tr)
		}
		got = append(got, tr.Message[:strings.Index(tr.Message, "(")])
	}
	key, model := "OpenAI refused the API key ", "OpenAI does not know the model llama "
	if d := cmp.Diff([]string{key, model, model, key}, got); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

// TestRefusals covers what an answer that is an error means, and that a page is taken
// for what it is.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const page = "<!DOCTYPE html><html><body>Welcome</body></html>"
	for _, tt := range []struct {
		status int
		body   string
		kind   kind
		say    string
	}{
		{401, `{"error":{"message":"Incorrect API key"}}`, kindKey, "refused the API key (401, BASE)"},
		{400, `{"error":{"message":"API key not valid","code":"invalid_api_key"}}`, kindKey, "check the key"},
		{403, `{"error":"no"}`, kindPermission, "does not let this API key use llama"},
		{404, `{"error":{"message":"model \"llama\" not found, try pulling it first"}}`, kindModel, "does not know the model llama (404, BASE)"},
		{404, `404 page not found`, kindURL, "BASE/chat/completions answered 404, and not as a provider does; set openai_base_url"},
		{404, page, kindURL, "answered with a web page (404)"},
		{200, page, kindURL, "answered with a web page (200); set openai_base_url"},
		{200, "OK", kindURL, "BASE/chat/completions answered 200, and not as a provider does"},
		{403, page, kindURL, "answered with a web page (403)"},
		{405, `{"detail":"Method Not Allowed"}`, kindURL, "answered 405"},
		{501, `Unsupported method`, kindURL, "answered 501"},
		{502, page, kindOverloaded, "overloaded or down (502, llama); it is tried again later"},
		{429, `{"error":{"message":"Slow down","type":"rate_limit_error"}}`, kindLimited, "limits the rate"},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`, kindCredit, "OpenAI says that the quota is used up (429); raise the account's limit, or check its credit: You exceeded"},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, kindCredit, "check the account's credit"},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, kindTooLong, "too long for llama"},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"x"}}`, kindTooLong, "too long for llama"},
		{400, `{"error":{"message":"messages: bad"}}`, kindRequest, "refused the request (400, llama): messages: bad"},
		{422, `{"detail":"bad role"}`, kindRequest, "bad role"},
		{500, `{"error":{"message":"oops"}}`, kindFailed, "overloaded or down (500"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, kindOverloaded, "down (529"},
	} {
		m := serve(t, "openai/llama", ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		})
		_, err := m.once(t)
		var f *failure
		if !errors.As(err, &f) || f.kind != tt.kind || !strings.Contains(strings.ReplaceAll(err.Error(), m.base, "BASE"), tt.say) {
			t.Errorf("%d %s: %v of kind %s, want kind %s and %q", tt.status, tt.body, err, f.kind, tt.kind, tt.say)
		}
		if f.fault.Final == f.kind.passes() || errors.Is(err, ErrTooLong) != (tt.kind == kindTooLong) {
			t.Errorf("%d %s: final %v, too long %v", tt.status, tt.body, f.fault.Final, errors.Is(err, ErrTooLong))
		}
	}
}

// What a provider says of a request that it refused is for people, too, without what names the server's own.
func TestReasonIsSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status    int
		body      string
		has, lack []string
	}{
		{400, `{"error":{"message":"max_tokens is too large: 16384. This model supports at most 4096 completion tokens"}}`, []string{"refused the request (400)", "max_tokens is too large: 16384", "at most 4096"}, nil},
		{400, `{"error":{"message":"maximum context length is 8192 tokens, see https://llm.corp.example/x","code":"context_length_exceeded"}}`, []string{"too long", "8192 tokens"}, []string{"corp"}},
		{422, `{"detail":"bad role at 10.1.2.3:8080 or llm.local:8000/v1 for org-Abc123 of bob@example.com, key sk-12345, in /srv/llm/conf.yml"}`, []string{"bad role"}, []string{"10.1", "8080", "local", "8000", "Abc", "bob", "12345", "srv"}},
		{401, `{"error":{"message":"Incorrect API key"}}`, []string{"refuses the server's key"}, []string{"Incorrect"}},
	} {
		m := serve(t, "openai/llama", ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		})
		_, err := m.once(t)
		var f *failure
		if !errors.As(err, &f) {
			t.Fatalf("%d: %v", tt.status, err)
		}
		said := f.fault.Public
		for _, w := range tt.has {
			if !strings.Contains(said, w) {
				t.Errorf("%s\nsays %q, want %q", tt.body, said, w)
			}
		}
		for _, w := range tt.lack {
			if strings.Contains(said, w) {
				t.Errorf("%s\nsays %q, which holds %q", tt.body, said, w)
			}
		}
	}
}

// What a person asks for is tried at once, whatever the provider asked for.
func TestHastened(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	bubble(t, ProviderOptions{}, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "99999999999")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		answerOK(w)
	}, func(t *testing.T, m *remote) {
		_, err := m.Complete(t.Context(), hello)
		var f *pipeline.Fault
		if !errors.As(err, &f) || !f.RetryAt.Equal(time.Now().Add(2*time.Hour)) || !strings.Contains(f.Message, "names a time of 2h0m0s or more") {
			t.Fatalf("%v, %+v; want a wait of two hours at most", err, f)
		}
		a := &Agent{models: map[string]Model{"openai/llama": m}, opts: Options{Models: map[config.Role]string{"": "openai/llama"}}}
		run := newRun()
		for _, asked := range []bool{false, true} {
			run.Await = &pipeline.Await{Model: true, Woken: true, Asked: asked}
			again, _, err := a.model(run, config.RoleReviewer)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := again.Complete(t.Context(), hello); (err == nil) != asked {
				t.Errorf("asked for: %v, %v", asked, err)
			}
		}
	})
}

// A provider that says when to come back is left alone until then, by all calls, also
// when it says that this request is not to be sent again at once.
func TestRefusedUntil(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	bubble(t, ProviderOptions{}, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("X-Should-Retry", "false")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		answerOK(w)
	}, func(t *testing.T, m *remote) {
		back := time.Now().Add(time.Hour)
		for n := range 3 {
			_, err := m.Complete(t.Context(), hello)
			var f *pipeline.Fault
			if !errors.As(err, &f) || f.Final || !f.RetryAt.Equal(back) || calls.Load() != 1 {
				t.Fatalf("call %d: %v after %d requests; want a fault until %s", n+1, err, calls.Load(), back)
			}
		}
		<-time.After(time.Hour)
		if _, err := m.Complete(t.Context(), hello); err != nil || calls.Load() != 2 {
			t.Errorf("an hour later: %v after %d requests", err, calls.Load())
		}
	})
}

// What another server was answered counts here when the call began after this circuit, or what is held
// of a model, was told to wait; older answers say nothing.
func TestHeard(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusNotFound} {
		var calls atomic.Int32
		bubble(t, ProviderOptions{Random: func() float64 { return 1 }}, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(status)
				fmt.Fprint(w, `{"error":{"message":"not now"}}`)
				return
			}
			answerOK(w)
		}, func(t *testing.T, m *remote) {
			p := &Providers{anthropic: &provider{endpoint: &endpoint{provider: "Anthropic"}}, openai: m.provider}
			begun := time.Now()
			_, err := m.Complete(t.Context(), hello)
			var f *pipeline.Fault
			service := map[int]string{429: "openai", 404: "openai/" + m.name}[status]
			if !errors.As(err, &f) || f.Service != service || f.RetryAt.IsZero() {
				t.Fatalf("%d: %v, %+v; want a fault of %s", status, err, f, service)
			}
			if at := p.Answered(""); !at.IsZero() {
				t.Errorf("%d: answered at %s", status, at)
			}
			<-time.After(time.Second)
			a := &Agent{models: map[string]Model{"openai/llama": m}, opts: Options{Models: map[config.Role]string{"": "openai/llama"}}}
			run := newRun()
			for _, back := range []time.Time{{}, begun, time.Now()} {
				run.Await = &pipeline.Await{Model: true, Woken: true, Back: back}
				again, _, err := a.model(run, config.RoleReviewer)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := again.Complete(t.Context(), hello); (err == nil) != back.After(begun) {
					t.Errorf("%d: answered at %s, told to wait at %s: %v", status, back, begun, err)
				}
			}
			for name, want := range map[string]time.Time{"": time.Now(), "openai": time.Now(), "openai/" + m.name: time.Now(), "openai/other": {}, "anthropic": {}} {
				if at := p.Answered(name); !at.Equal(want) {
					t.Errorf("%d: %q answered at %s, want %s", status, name, at, want)
				}
			}
		})
	}
}
