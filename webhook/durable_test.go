package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/mux"

	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/webhook"
)

var secret = []byte("it is a secret")

func openStore(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func handler(t testing.TB, db *store.DB) http.Handler {
	t.Helper()
	r, err := webhook.New(db, slog.New(slog.NewTextHandler(io.Discard, nil)), webhook.Options{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	r.Start(t.Context())
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	m := mux.NewRouter()
	r.Route(m)
	return m
}

func signature(body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func header(guid, signature string) http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"issues"},
		"X-Github-Delivery": {guid}, "X-Hub-Signature-256": {signature},
	}
}

// Covers reliability 3: of 10,000 deliveries, 30 % of them repeats, in any order
// and side by side, each is kept once.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	h := handler(t, db)
	const total, distinct = 10_000, 7_000
	order := make([]int, total)
	for i := range order {
		order[i] = i % distinct
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(total, func(i, j int) { order[i], order[j] = order[j], order[i] })
	next := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for n := range next {
				body := fmt.Appendf(nil, `{"action":"labeled","n":%d,"repository":{"full_name":"acme/site"}}`, n)
				req := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
				req.Header = header(fmt.Sprintf("guid-%d", n), signature(body))
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, req); w.Code != http.StatusAccepted {
					t.Errorf("delivery %d: status %d: %s", n, w.Code, w.Body)
				}
			}
		})
	}
	for _, n := range order {
		next <- n
	}
	close(next)
	wg.Wait()
	list, err := db.WaitingDeliveries(t.Context(), time.Now(), total)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, d := range list {
		seen[d.GUID] = true
		if n := strings.TrimPrefix(d.GUID, "guid-"); !bytes.Contains(d.Payload, []byte(`"n":`+n+`,`)) {
			t.Fatalf("delivery %+v", d)
		}
	}
	if len(list) != distinct || len(seen) != distinct {
		t.Errorf("%d rows with %d GUIDs, want %d", len(list), len(seen), distinct)
	}
}

// A store that is closed stands for a disk that is gone.
func TestStoreGone(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	h := handler(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"action":"labeled"}`)
	req := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
	req.Header = header("g", signature(body))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, header %v", w.Code, w.Header())
	}
}

// What nothing follows from is on disk as handled, and wakes nobody.
func TestOutcome(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	notified := 0
	r, err := webhook.New(db, slog.New(slog.DiscardHandler), webhook.Options{Secret: secret, Notify: func() { notified++ },
		Read: func(event string, payload []byte) (action, repo, outcome string) {
			if bytes.Contains(payload, []byte("starred")) {
				return "starred", "acme/site", event + " starred: nothing to do"
			}
			return "labeled", "", ""
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.Start(t.Context())
	for i, action := range []string{"starred", "labeled"} {
		body := fmt.Appendf(nil, `{"action":%q}`, action)
		req := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
		req.Header = header(action, signature(body))
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, req); w.Code != http.StatusAccepted {
			t.Fatalf("delivery %d: status %d", i, w.Code)
		}
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting, err := db.WaitingDeliveries(t.Context(), time.Now(), 10)
	if err != nil || len(waiting) != 1 || waiting[0].GUID != "labeled" || notified != 1 {
		t.Errorf("waiting %+v, notified %d times, %v", waiting, notified, err)
	}
	d, err := db.Delivery(t.Context(), "starred")
	if err != nil || d.State != record.DeliveryDone || d.Outcome != "issues starred: nothing to do" || d.Action != "starred" || d.Repo != "acme/site" || d.Finished.IsZero() || len(d.Payload) == 0 {
		t.Errorf("the other: %+v, %v", d, err)
	}
}

// payload is about 24 KB of pull_request.opened, the size that GitHub sends: the
// shape of its example, words instead of noise.
func payload() []byte {
	var b bytes.Buffer
	b.WriteString(`{"action":"opened","number":41,"pull_request":{`)
	for i := 0; b.Len() < 18_000; i++ {
		fmt.Fprintf(&b, `"%s_url":"https://api.example.org/repos/acme/site/pulls/%d/%x",`, []string{"comments", "commits", "review", "statuses"}[i%4], 41+i, i*7919)
	}
	b.WriteString(`"title":"Add a thing"},"repository":{"id":7,"name":"site","full_name":"acme/site"`)
	for i := 0; b.Len() < 23_500; i++ {
		fmt.Fprintf(&b, `,"keys_url_%d":"https://api.example.org/repos/acme/site/keys{/key_%x}"`, i, i*104729)
	}
	b.WriteString(`},"sender":{"login":"ann","id":1}}`)
	return b.Bytes()
}

// oneByOne commits each delivery by itself.
type oneByOne struct{ db *store.DB }

func (h oneByOne) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, guid := verified(w, req)
	if body == nil {
		return
	}
	err := h.db.KeepDeliveries(req.Context(), []record.Delivery{{GUID: guid, Event: "pull_request", Received: time.Now(), Payload: body}})
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// verified is the least that a receiver must do: read the body, check the HMAC.
func verified(w http.ResponseWriter, req *http.Request) (body []byte, guid string) {
	body, err := io.ReadAll(req.Body)
	if err != nil || !hmac.Equal([]byte(signature(body)), []byte(req.Header.Get("X-Hub-Signature-256"))) {
		w.WriteHeader(http.StatusUnauthorized)
		return nil, ""
	}
	return body, req.Header.Get("X-Github-Delivery")
}

// BenchmarkReceiver compares three servers in one run: the durable receiver, one
// that checks the HMAC and keeps nothing, and one that commits each delivery by
// itself. It prints the receiver's speed as multiples of theirs: the medians of
// many short rounds, in which the machine's noise meets all three alike; and the
// time that the processors spent, server and client together.
// FORGE_BENCH_CONNECTIONS sets the number of connections (64).
func BenchmarkReceiver(b *testing.B) {
	connections := 64
	if s := os.Getenv("FORGE_BENCH_CONNECTIONS"); s != "" {
		fmt.Sscan(s, &connections)
	}
	body := payload()
	servers := []http.Handler{
		handler(b, openStore(b)),
		http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if body, _ := verified(w, req); body != nil {
				w.WriteHeader(http.StatusAccepted)
			}
		}),
		oneByOne{openStore(b)},
	}
	var took, used [3][]float64 // seconds of each round
	var addresses [3]string
	for i, h := range servers {
		s := httptest.NewServer(h)
		defer s.Close()
		addresses[i] = s.Listener.Addr().String()
	}
	round := 0
	total := 640 / connections * connections
	for b.Loop() { // one loop is a burst at each server, in turn
		bodies, macs := distinct(body, round, total)
		for i := range addresses {
			i = (i + round) % len(addresses)
			before := cpuTime(b)
			took[i] = append(took[i], burst(b, addresses[i], fmt.Sprint(round), bodies, macs, connections).Seconds())
			used[i] = append(used[i], (cpuTime(b) - before).Seconds())
		}
		round++
	}
	ratio := func(of, to []float64) float64 {
		var each []float64
		for i := range of {
			each = append(each, of[i]/to[i])
		}
		return median(each)
	}
	b.ReportMetric(float64(total)/median(took[0]), "deliveries/s")
	b.ReportMetric(ratio(took[1], took[0]), "x-hmac-alone")
	b.ReportMetric(ratio(took[2], took[0]), "x-one-by-one")
	b.ReportMetric(median(used[0])/float64(total)*1e6, "cpu-µs/delivery")
	b.ReportMetric(ratio(used[0], used[1]), "x-cpu-of-hmac-alone")
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// cpuTime is what this process has used of the processors so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// distinct makes payloads of which none is the same as another, as GitHub's are, and signs them.
func distinct(body []byte, round, n int) (bodies [][]byte, macs []string) {
	for i := range n {
		one := append(slices.Clone(body[:len(body)-1]), fmt.Sprintf(`,"round":"%d-%d"}`, round, i)...)
		bodies, macs = append(bodies, one), append(macs, signature(one))
	}
	return bodies, macs
}

// burst sends deliveries over plain connections, with as little work of its own
// as it can, and returns how long the answers took.
func burst(b *testing.B, address, round string, bodies [][]byte, macs []string, connections int) time.Duration {
	each := len(bodies) / connections
	var wg sync.WaitGroup
	begin := time.Now()
	for c := range connections {
		wg.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			answer := make([]byte, 4096)
			for n := range each {
				body, mac := bodies[c*each+n], macs[c*each+n]
				head := fmt.Sprintf("POST /webhook HTTP/1.1\r\nHost: forge\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\n"+
					"X-GitHub-Delivery: %s-%d-%d\r\nX-Hub-Signature-256: %s\r\nContent-Length: %d\r\n\r\n", round, c, n, mac, len(body))
				msg := net.Buffers{[]byte(head), body}
				if _, err := msg.WriteTo(conn); err != nil {
					b.Error(err)
					return
				}
				m, err := conn.Read(answer)
				if err != nil || !bytes.HasPrefix(answer[:m], []byte("HTTP/1.1 202")) {
					b.Errorf("answer %q, %v", answer[:m], err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}
