package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"forge/pipeline/record"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/mux"
)

var (
	secret = []byte("it is a secret")
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// memory is a keeper for what the real store cannot be made to do: to fail, and
// to wait.
type memory struct {
	mu      sync.Mutex
	kept    []record.Delivery
	commits int
	before  func(list []record.Delivery) error
}

func (m *memory) KeepDeliveries(_ context.Context, list []record.Delivery) error {
	if m.before != nil {
		if err := m.before(list); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range list {
		d.Payload = bytes.Clone(d.Payload)
		m.kept = append(m.kept, d)
	}
	m.commits++
	return nil
}

func (m *memory) guids() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for _, d := range m.kept {
		ids = append(ids, d.GUID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// started returns a running receiver that is stopped after the test.
func started(t testing.TB, k keeper, o Options) *Receiver {
	t.Helper()
	o.Secret, o.Clock = secret, func() time.Time { return now }
	r, err := New(k, quiet(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Start(t.Context())
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func sign256(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// request is a delivery as GitHub sends it.
func request(guid string, body []byte) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Delivery", guid)
	req.Header.Set("X-GitHub-Event", "issues")
	req.Header.Set("X-Hub-Signature-256", sign256(secret, body))
	return req
}

func serve(h http.Handler, req *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

const labeled = `{"action":"labeled","issue":{"number":5},"repository":{"id":7,"full_name":"acme/site"}}`

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Secret: []byte{}}, {Secret: secret, Path: "hook"}} {
		if _, err := New(&memory{}, quiet(), o); err == nil {
			t.Errorf("New(%+v): no error", o)
		}
	}
	if _, err := New(&memory{}, quiet(), Options{Secret: secret}); err != nil {
		t.Error(err)
	}
}

func TestKeepsBeforeItAnswers(t *testing.T) {
	t.Parallel()
	var k memory
	notified := make(chan struct{}, 9)
	r := started(t, &k, Options{Notify: func() { notified <- struct{}{} }})
	w := serve(r, request("g1", []byte(labeled)))
	if w.Code != http.StatusAccepted {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := []record.Delivery{{GUID: "g1", Event: "issues", Received: now, Payload: []byte(labeled)}}
	if diff := cmp.Diff(want, k.kept); diff != "" {
		t.Error(diff)
	}
	<-notified
}

func TestRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, method, url string
		want              int
	}{
		{"", "POST", "/webhook", 202}, {"", "GET", "/webhook", 405}, {"", "POST", "/", 404},
		{"/in/here", "POST", "/in/here", 202}, {"/in/here", "POST", "/webhook", 404},
	} {
		m := mux.NewRouter()
		started(t, &memory{}, Options{Path: c.path}).Route(m)
		req := request("g", []byte(labeled))
		req.Method, req.URL.Path = c.method, c.url
		if w := serve(m, req); w.Code != c.want {
			t.Errorf("path %q, %s %s: status %d, want %d", c.path, c.method, c.url, w.Code, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	body := []byte(labeled)
	set := func(header, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(header, value) }
	}
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		status int
		says   string
	}{
		{"no GUID", set("X-GitHub-Delivery", ""), 400, "X-GitHub-Delivery is missing"},
		{"no event", set("X-GitHub-Event", ""), 400, "X-GitHub-Event is missing"},
		{"no signature", set("X-Hub-Signature-256", ""), 400, "X-Hub-Signature-256 is missing"},
		{"GUID with a line's end", set("X-GitHub-Delivery", "a\nb"), 400, "not a plain word"},
		{"GUID too long", set("X-GitHub-Delivery", strings.Repeat("a", 201)), 400, "not a plain word"},
		{"event with a space", set("X-GitHub-Event", "a b"), 400, "not a plain word"},
		{"form", set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), 415, "set the content type of the App's webhook to application/json"},
		{"signature of another algorithm", set("X-Hub-Signature-256", "sha1="+strings.Repeat("0", 40)), 401, "64 hexadecimal digits"},
		{"signature too short", set("X-Hub-Signature-256", "sha256=00"), 401, "64 hexadecimal digits"},
		{"signature of another secret", set("X-Hub-Signature-256", sign256([]byte("guess"), body)), 401, "does not match"},
		{"signature of nothing", set("X-Hub-Signature-256", sign256(secret, nil)), 401, "does not match"},
		{"signature of an empty secret", set("X-Hub-Signature-256", sign256(nil, body)), 401, "does not match"},
		{"claims 26 MiB", func(r *http.Request) { r.ContentLength = 26 << 20 }, 413, "25 MiB"},
		{"sends 26 MiB", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(io.LimitReader(zeros{}, 26<<20)), -1
		}, 413, "25 MiB"},
		{"breaks off", func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:10]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}, 400, "broke off after 10 bytes"},
		{"shortened", func(r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(body[:10])) }, 401, "does not match"},
	} {
		var k memory
		r := started(t, &k, Options{})
		req := request("g", body)
		c.change(req)
		w := serve(r, req)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: got %d %q, want %d %q", c.name, w.Code, w.Body, c.status, c.says)
		}
		if len(k.kept) != 0 || r.bodies.held.Load() != 0 {
			t.Errorf("%s: kept %v, %d bytes still held", c.name, k.kept, r.bodies.held.Load())
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The largest body that GitHub sends is taken, with or without its length.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte(" "), maxBody)
	copy(body, labeled)
	for _, length := range []int64{maxBody, -1} {
		var k memory
		r := started(t, &k, Options{})
		req := request("g", body)
		req.ContentLength = length
		if w := serve(r, req); w.Code != 202 || len(k.kept) != 1 || !bytes.Equal(k.kept[0].Payload, body) {
			t.Errorf("length %d: status %d, kept %d", length, w.Code, len(k.kept))
		}
	}
}

// Nobody who cannot sign gets in: of 10,000 forged requests none.
func TestForged(t *testing.T) {
	t.Parallel()
	var k memory
	r := started(t, &k, Options{})
	rnd := rand.New(rand.NewPCG(1, 2))
	good := sign256(secret, []byte(labeled))
	for n := range 10_000 {
		body := []byte(labeled)
		req := request("g", body)
		req.Header.Set("X-Hub-Signature-256", good)
		var sum []byte
		switch n % 7 {
		case 0: // the body was changed
			body[rnd.IntN(len(body))] ^= byte(1 + rnd.IntN(255))
		case 1: // or shortened
			body = body[:rnd.IntN(len(body))]
		case 2: // or lengthened
			body = append(body, byte(rnd.IntN(256)))
		case 3: // the signature was changed
			sum, _ = hex.DecodeString(good[7:])
			sum[rnd.IntN(len(sum))] ^= byte(1 + rnd.IntN(255))
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum))
		case 4: // or shortened
			req.Header.Set("X-Hub-Signature-256", good[:rnd.IntN(len(good))])
		case 5: // the old algorithm, rightly signed
			mac := hmac.New(sha1.New, secret)
			mac.Write(body)
			sum = mac.Sum(nil)
			req.Header.Del("X-Hub-Signature-256")
			req.Header.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(sum))
		case 6: // the old algorithm's digest in the new header
			mac := hmac.New(sha1.New, secret)
			mac.Write(body)
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil))+strings.Repeat("0", 24))
		}
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if w := serve(r, req); w.Code != 400 && w.Code != 401 {
			t.Fatalf("case %d: status %d: %s", n%7, w.Code, w.Body)
		}
	}
	if len(k.kept) != 0 {
		t.Errorf("%d forged deliveries were kept", len(k.kept))
	}
}

// Covers reliability 10: what cannot be kept is refused, never taken and dropped.
func TestKeeperFails(t *testing.T) {
	t.Parallel()
	k := memory{before: func([]record.Delivery) error { return errors.New("disk full at /var/lib/forge") }}
	var log bytes.Buffer
	r := started(t, &k, Options{Notify: func() {
		if len(k.kept) == 0 {
			t.Error("notified of nothing")
		}
	}})
	r.log = slog.New(slog.NewTextHandler(&log, nil))
	w := serve(r, request("g1", []byte(labeled)))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "/var/lib") {
		t.Errorf("status %d, Retry-After %q, body %q", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	if !strings.Contains(log.String(), "disk full") || !strings.Contains(log.String(), "g1") {
		t.Errorf("log: %q", &log)
	}
	k.before = nil
	if w := serve(r, request("g1", []byte(labeled))); w.Code != 202 {
		t.Errorf("when there is room again: status %d", w.Code)
	}
}

// Deliveries that arrive during a commit are committed together; one that cannot
// be kept does not take the others with it.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		k := memory{before: func(list []record.Delivery) error {
			<-hold
			for _, d := range list {
				if d.GUID == "bad" {
					return errors.New("poison")
				}
			}
			return nil
		}}
		r := started(t, &k, Options{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		status := map[string]int{}
		send := func(guid string) {
			wg.Go(func() {
				code := serve(r, request(guid, []byte(labeled))).Code
				mu.Lock()
				defer mu.Unlock()
				status[guid] = code
			})
			synctest.Wait()
		}
		send("first") // its commit waits
		for n := range 20 {
			send(fmt.Sprintf("g%02d", n))
		}
		if len(status) != 0 {
			t.Errorf("answered before the commit: %v", status)
		}
		hold <- struct{}{} // first
		hold <- struct{}{} // the rest
		wg.Wait()
		if k.commits != 2 || len(k.kept) != 21 {
			t.Errorf("%d commits of %d deliveries, want 2 of 21", k.commits, len(k.kept))
		}
		send("second")
		send("bad")
		send("good")
		close(hold)
		wg.Wait()
		if status["bad"] != 503 || status["good"] != 202 || !strings.Contains(k.guids(), "good") || strings.Contains(k.guids(), "bad") {
			t.Errorf("poison: %d, beside it: %d; kept %s", status["bad"], status["good"], k.guids())
		}
	})
}

// Covers reliability 7: when the queue is full, 503, and what was queued is kept.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		k := memory{before: func([]record.Delivery) error { <-hold; return nil }}
		r := started(t, &k, Options{})
		var wg sync.WaitGroup
		send := func(guid string) { wg.Go(func() { serve(r, request(guid, []byte(labeled))) }) }
		send("first")
		synctest.Wait()
		for n := range maxWaiting {
			send(fmt.Sprint("g", n))
		}
		synctest.Wait()
		if w := serve(r, request("late", []byte(labeled))); w.Code != 503 || !strings.Contains(w.Body.String(), "too many") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		close(hold)
		wg.Wait()
		if len(k.kept) != maxWaiting+1 || k.commits != 1+maxWaiting/maxBatch {
			t.Errorf("kept %d in %d commits", len(k.kept), k.commits)
		}
		// Bodies that are being received have a limit, too.
		r.bodies.held.Store(maxHeld)
		if w := serve(r, request("late", []byte(labeled))); w.Code != 503 || !strings.Contains(w.Body.String(), "being received") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		r.bodies.held.Store(0)
	})
}

// A group does not grow without bounds: large payloads are committed by few.
func TestBatchBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		most := 0
		k := memory{before: func(list []record.Delivery) error { <-hold; most = max(most, len(list)); return nil }}
		r := started(t, &k, Options{})
		body := append([]byte(labeled), bytes.Repeat([]byte(" "), 9<<18)...)
		req := request("g", body)
		var wg sync.WaitGroup
		for n := range 9 {
			one := req.Clone(t.Context())
			one.Header.Set("X-GitHub-Delivery", fmt.Sprint("g", n))
			one.Body = io.NopCloser(bytes.NewReader(body))
			wg.Go(func() { serve(r, one) })
			synctest.Wait()
		}
		close(hold)
		wg.Wait()
		if len(k.kept) != 9 || most != 4 {
			t.Errorf("kept %d, largest group %d; want 9, 4", len(k.kept), most)
		}
	})
}

// Covers reliability 15: Stop lets those who wait have their answer.
func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		k := memory{before: func([]record.Delivery) error { <-hold; return nil }}
		r, err := New(&k, quiet(), Options{Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		if w := serve(r, request("early", []byte(labeled))); w.Code != 503 {
			t.Errorf("before Start: status %d", w.Code)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.Start(ctx)
		r.Start(ctx)
		cancel() // the process is told to end: what waits is kept all the same
		var wg sync.WaitGroup
		codes := make(chan int, 5)
		for n := range 5 {
			wg.Go(func() { codes <- serve(r, request(fmt.Sprint("g", n), []byte(labeled))).Code })
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop while a commit hangs: %v", err)
		}
		if w := serve(r, request("late", []byte(labeled))); w.Code != 503 {
			t.Errorf("after Stop: status %d", w.Code)
		}
		close(hold)
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		close(codes)
		for code := range codes {
			if code != 202 {
				t.Errorf("status %d for one that waited", code)
			}
		}
		if k.guids() != "g0 g1 g2 g3 g4" {
			t.Errorf("kept %s", k.guids())
		}
	})
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	r, err := New(&memory{}, quiet(), Options{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	r.Start(t.Context())
	if w := serve(r, request("g", []byte(labeled))); w.Code != 503 {
		t.Errorf("a stopped receiver took a delivery: %d", w.Code)
	}
}

// A client that goes away does not stop the commit of its delivery.
func TestClientGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		k := memory{before: func([]record.Delivery) error { <-hold; return nil }}
		r := started(t, &k, Options{})
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan int)
		go func() { done <- serve(r, request("g", []byte(labeled)).WithContext(ctx)).Code }()
		synctest.Wait()
		leave()
		if code := <-done; code == 202 {
			t.Error("202 before the commit")
		}
		close(hold)
		if err := r.Stop(t.Context()); err != nil || k.guids() != "g" {
			t.Errorf("Stop: %v, kept %q", err, k.guids())
		}
	})
}
