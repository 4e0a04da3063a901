package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/settings"
	"forge/pipeline"
)

// A program is told of a whole run as it goes, each event once where nothing fails.
// Covers U7.
func TestSubscriberOfARun(t *testing.T) {
	var mu sync.Mutex
	var got []bus.Event
	ended := make(chan struct{})
	program := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e bus.Event
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &e); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, e)
		if e.Type == "io.forge.run.verified" {
			close(ended)
		}
	}))
	defer program.Close()
	ts := newTestServer(t, testOptions{wire: func(o *Options) {
		o.Config.Subscribers = []settings.Subscriber{{Name: "ci", URL: settings.NewSecret(program.URL), Secrets: settings.NewSecret("0123456789abcdef"), Private: true}}
	}})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the end is not told")
	}
	mu.Lock()
	defer mu.Unlock()
	seq := int64(0)
	for _, e := range got {
		if e.Data.Run != run.ID || e.Data.Repo != greetRepo || e.Data.Seq <= seq {
			t.Errorf("after event %d: %+v", seq, e)
		}
		seq = e.Data.Seq
	}
	if got[0].Type != "io.forge.run.started" || len(got) < 10 {
		t.Errorf("told %d events, first %s", len(got), got[0].Type)
	}
}
