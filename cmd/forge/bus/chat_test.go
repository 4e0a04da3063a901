package bus

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forge/pipeline"
)

// A chat is told of questions and ends, in words without markup of people's or secrets.
func TestChat(t *testing.T) {
	t.Parallel()
	var got []string
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var m struct{ Text string }
		if err := json.Unmarshal(body, &m); err != nil || req.Header.Get("Webhook-Signature") != "" {
			t.Errorf("%s: %v", body, err)
		}
		got = append(got, m.Text)
	}))
	t.Cleanup(r.Close)
	db := openStore(t)
	s := newSender(t, db, Subscriber{Kind: Slack, URL: r.URL, Types: Chatted})
	run := newRun(t, db, "a", 2)
	gate := &pipeline.Gate{ID: "gate/1", Question: "Go on with <sk-secret>?", Opened: now}
	events := []pipeline.Event{
		{ID: "g", Type: pipeline.EventGateRequested, Source: "test", Time: now, Data: pipeline.Data{Gate: gate}},
		{ID: "c", Type: pipeline.EventRunCancelled, Source: "test", Time: now},
	}
	if err := db.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.round(t.Context()); err != nil || len(got) != 2 {
		t.Fatalf("told %q, %v", got, err)
	}
	if want := "*Forge asks* <https://github.com/acme/shop/issues/7|acme/shop-a#7> Mend it, …\nGo on with &lt;…&gt;?"; got[0] != want {
		t.Errorf("the question is %q, want %q", got[0], want)
	}
	if !strings.HasPrefix(got[1], "*Forge: run.cancelled* ") {
		t.Errorf("the end is %q", got[1])
	}
}
