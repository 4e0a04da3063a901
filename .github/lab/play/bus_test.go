package play

import (
	"bufio"
	"encoding/json"
	"forge/cmd/forge/server/servertest"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/pipeline"
)

// A program is told of a whole run as it goes, each event once where nothing fails, and
// one that listens on the pages' address hears the same. Covers U7.
func TestSubscriberOfARun(t *testing.T) {
	t.Parallel()
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
	ts := newServer(t, servertest.Options{Wire: func(o *server.Options) {
		o.Config.Subscribers = []settings.Subscriber{{Name: "ci", URL: settings.NewSecret(program.URL), Secrets: settings.NewSecret("0123456789abcdef"), Private: true}}
	}})
	stream, err := ts.Page("/events?repo=" + servertest.Repo)
	if err != nil || stream.StatusCode != http.StatusOK || stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("GET /events: %+v, %v", stream, err)
	}
	defer stream.Body.Close()
	heard := make(chan []string)
	go func() {
		var ids []string
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e bus.Event
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Error(err)
				}
				if ids = append(ids, e.ID); e.Type == "io.forge.run.verified" {
					break
				}
			}
		}
		heard <- ids
	}()
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	var ids []string
	late := time.After(time.Minute)
	for range 2 {
		select {
		case ids = <-heard:
			heard = nil
		case <-ended:
			ended = nil
		case <-late:
			t.Fatal("the end is not told")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	seq := int64(0)
	var told []string
	for _, e := range got {
		told = append(told, e.ID)
		if e.Data.Run != run.ID || e.Data.Repo != servertest.Repo || e.Data.Seq <= seq {
			t.Errorf("after event %d: %+v", seq, e)
		}
		seq = e.Data.Seq
	}
	if n := min(len(ids), len(told)); n < 10 || !slices.Equal(ids[:n], told[:n]) { // what follows the end may be on its way
		t.Errorf("who listens hears %q, who is told %q", ids, told)
	}
	if got[0].Type != "io.forge.run.started" || len(got) < 10 {
		t.Errorf("told %d events, first %s", len(got), got[0].Type)
	}
}
