package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/store"
)

// told is a notifier with a run that has asked and ended, and a receiver that answers
// with these statuses, then 200.
func newTold(t *testing.T, kind string, statuses ...int) (*Notifier, *[]string, func(time.Duration)) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(statuses) > 0 {
			status := statuses[0]
			statuses = statuses[1:]
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("0123456789abcdef"))
		mac.Write(body)
		if sig := r.Header.Get("X-Forge-Signature-256"); kind == Webhook && sig != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("the signature is %s", sig)
		}
		got = append(got, string(body))
	}))
	t.Cleanup(receiver.Close)
	task := pipeline.Task{Issue: 7, Title: "Mend <this> & sk-secret", URL: "https://github.com/acme/shop/issues/7"}
	run, err := db.CreateRun(t.Context(), "k", pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop"}, Task: task, Base: "b",
		Branch: "forge/x"}, now, strings.Repeat("a", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	gate := &pipeline.Gate{ID: "gate/1", Question: "Go on?", Choices: []pipeline.Choice{{Name: "continue", Label: "go on"}}, Opened: now}
	events := []pipeline.Event{
		{ID: "g", Type: pipeline.EventGateRequested, Source: "test", Time: now, Data: pipeline.Data{Gate: gate}},
		{ID: "c", Type: pipeline.EventRunCancelled, Source: "test", Time: now, Data: pipeline.Data{Note: "nobody answered"}},
	}
	if err := db.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
	n := New(Options{URL: receiver.URL, Kind: kind, Secret: "0123456789abcdef", DB: db, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Hide: func(s string) string { return strings.ReplaceAll(s, "sk-secret", "…") }})
	n.OnEvents(run.ID, events)
	return n, &got, func(d time.Duration) { now = now.Add(d) }
}

func ids(t *testing.T, got []string) (out []string) {
	for _, text := range got {
		var m Message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m.ID+" "+m.Event)
	}
	return out
}

// What could not be told is told later, in order, each once; a cursor says how far.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	want := []string{"run/1/2 question", "run/1/3 end"}
	for name, statuses := range map[string][]int{"well": nil, "away": {503, 429}, "away in between": {503}} {
		n, got, pass := newTold(t, Webhook, statuses...)
		for range 5 {
			pass(n.round(t.Context()))
		}
		if list := ids(t, *got); !slices.Equal(list, want) {
			t.Errorf("%s: told %v, want %v", name, list, want)
		}
		again := New(n.o) // as after a start
		again.add(1)
		if again.round(t.Context()); len(*got) != 2 {
			t.Errorf("%s: told again after a start: %v", name, *got)
		}
		if strings.Contains(strings.Join(*got, ""), "sk-secret") {
			t.Errorf("%s: a secret is told: %v", name, *got)
		}
	}
}

// A receiver that refuses is not asked again, and one that stays away is given up.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	n, got, _ := newTold(t, Webhook, 400)
	if pause := n.round(t.Context()); pause != 0 || len(*got) != 1 {
		t.Errorf("refused: the next try in %s, %d told", pause, len(*got))
	}
	n, got, pass := newTold(t, Webhook, slices.Repeat([]int{500}, 99)...)
	var waits []time.Duration
	for range 20 {
		pause := n.round(t.Context())
		if pause == 0 {
			break
		}
		waits = append(waits, pause)
		pass(pause)
	}
	if !slices.Equal(waits, pauses) || len(*got) != 0 {
		t.Errorf("tried after %v, want %v", waits, pauses)
	}
}

// A chat is told in a line that nobody's title can change the form of.
func TestSlack(t *testing.T) {
	t.Parallel()
	n, got, _ := newTold(t, Slack)
	n.round(t.Context())
	if len(*got) != 2 {
		t.Fatalf("told %v", *got)
	}
	var m map[string]string
	if err := json.Unmarshal([]byte((*got)[0]), &m); err != nil {
		t.Fatal(err)
	}
	if want := "*Forge asks* <https://github.com/acme/shop/issues/7|acme/shop#7> Mend &lt;this&gt; &amp; …\nGo on?"; m["text"] != want {
		t.Errorf("it reads\n%s, want\n%s", m["text"], want)
	}
}

// The address is a secret: no error tells it, and a redirect is not followed.
func TestAddressIsSecret(t *testing.T) {
	t.Parallel()
	n, _, _ := newTold(t, Webhook)
	n.o.URL = "http://127.0.0.1:1/T0PSECRET"
	if err := n.send(context.Background(), Message{}); err == nil || strings.Contains(err.Error(), "T0PSECRET") {
		t.Errorf("the error is %v", err)
	}
	n.o.URL = "http://127.0.0.1:1/%zzT0PSECRET"
	if err := n.send(context.Background(), Message{}); !errors.Is(err, errRefused) || strings.Contains(err.Error(), "T0PSECRET") {
		t.Errorf("the error is %v", err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect is followed") }))
	defer elsewhere.Close()
	to := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer to.Close()
	n.o.URL = to.URL
	_ = n.send(context.Background(), Message{})
}

func TestNobodyIsTold(t *testing.T) {
	t.Parallel()
	n := New(Options{})
	n.OnEvents(1, nil)
	n.Run(context.Background())
}

// What is posted is told once, and again when nobody answered; without a receiver nothing
// happens.
func TestPost(t *testing.T) {
	t.Parallel()
	n, got, pass := newTold(t, Webhook, 500)
	n.todo = map[int64]*wait{}
	m := Message{ID: "incident/4", Event: "question", Repo: "acme/shop", Issue: 9, Title: strings.Repeat("x", mostTitle-5) + "sk-secret", // which is cut in it
		Text: "What is to be done about sk-secret?"}
	n.Post(m)
	if next := n.round(t.Context()); next != pauses[0] || len(*got) != 0 {
		t.Errorf("after the first try %s, %q", next, *got)
	}
	pass(pauses[0])
	if next := n.round(t.Context()); next != 0 || len(*got) != 1 || !strings.Contains((*got)[0], `"id":"incident/4","event":"question"`) || strings.Contains((*got)[0], "sk-") {
		t.Errorf("after the second %s, %q", next, *got)
	}
	n.round(t.Context())
	if len(*got) != 1 {
		t.Errorf("told %d times", len(*got))
	}
	refusing, got, _ := newTold(t, Webhook, 404)
	refusing.todo = map[int64]*wait{}
	refusing.Post(m)
	if next := refusing.round(t.Context()); next != 0 || len(*got) != 0 {
		t.Errorf("what is refused is tried again after %s: %q", next, *got)
	}
	(*Notifier)(nil).Post(m)
}
