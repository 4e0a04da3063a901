package bus

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/store"
)

func hide(s string) string { return strings.ReplaceAll(s, "sk-secret", "…") }

// add appends so many notes to a run, at a moment.
func add(t *testing.T, db *store.DB, run *pipeline.Run, at time.Time, ids ...string) {
	t.Helper()
	var events []pipeline.Event
	for _, id := range ids {
		events = append(events, pipeline.Event{ID: id, Type: pipeline.EventBaseMoved, Source: "test", Time: at})
	}
	if err := db.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
}

// Each event comes once, in the order of its run, from the moment on; what is stored late
// comes, too, and a run that was silent for long tells nothing again. Covers U7.
func TestFollower(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	old, run := newRun(t, db, "old", 3), newRun(t, db, "a", 0)
	f, err := NewFollower(t.Context(), db, Choice{Since: now.Add(time.Second)}, hide)
	if err != nil {
		t.Fatal(err)
	}
	next := func(want ...string) {
		t.Helper()
		var got []string
		if err := f.Next(t.Context(), func(e Event) error {
			got = append(got, fmt.Sprintf("%d/%d", e.Data.Run, e.Data.Seq))
			return nil
		}); err != nil || !slices.Equal(got, want) {
			t.Errorf("told %q, %v, want %q", got, err, want)
		}
	}
	next()
	add(t, db, run, now.Add(2*time.Second), "x", "y")
	next("2/2", "2/3")
	next()
	add(t, db, run, now.Add(time.Hour), "z")
	next("2/4")
	add(t, db, old, now.Add(time.Hour-30*time.Second), "late") // of a server whose clock is behind
	next("1/5")
	add(t, db, run, now.Add(3*time.Hour), "much later")
	next("2/5")
	add(t, db, old, now.Add(4*time.Hour), "even later")
	next("1/6")

	refused := true
	tell := func(Event) error {
		if refused {
			return io.ErrClosedPipe
		}
		return nil
	}
	add(t, db, run, now.Add(5*time.Hour), "refused")
	if err := f.Next(t.Context(), tell); err == nil {
		t.Error("an error of who is told is dropped")
	}
	next("2/6")
}

func TestFollowsTheChosen(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	newRun(t, db, "a", 1)
	newRun(t, db, "b1", 1)
	for _, tt := range []struct {
		name   string
		choice Choice
		want   string
	}{
		{"all", Choice{}, "1/1 1/2 2/1 2/2"},
		{"a run", Choice{Run: 2}, "2/1 2/2"},
		{"a repository", Choice{Repos: []string{"acme/shop-a"}}, "1/1 1/2"},
		{"types", Choice{Types: []string{"run.*"}}, "1/1 2/1"},
		{"what may be seen", Choice{Sees: func(repo string) bool { return repo == "acme/shop-b1" }}, "2/1 2/2"},
		{"a run that is not there", Choice{Run: 99}, "there is no run 99"},
		{"a run that may not be seen", Choice{Run: 1, Sees: func(repo string) bool { return repo == "acme/shop-b1" }}, "there is no run 1"},
		{"a wrong pattern", Choice{Types: []string{"run.["}}, "is no pattern"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			f, err := NewFollower(t.Context(), db, tt.choice, hide)
			if err == nil {
				err = f.Next(t.Context(), func(e Event) error {
					got = append(got, fmt.Sprintf("%d/%d", e.Data.Run, e.Data.Seq))
					return nil
				})
			}
			if err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && strings.Join(got, " ") != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	newRun(t, db, "a", 1)
	f, err := NewFollower(t.Context(), db, Choice{}, hide)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	if err := f.Lines(ctx, writer(func(p []byte) (int, error) {
		if n, err := out.Write(p); bytes.Count(out.Bytes(), []byte("\n")) < 2 {
			return n, err
		}
		cancel()
		return len(p), nil
	}), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.SpecVersion != "1.0" || strings.Contains(line, "sk-secret") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// listen opens a stream and returns how to read its next event.
func listen(t *testing.T, url, last string) (next func() (id string, e Event), status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func() (id string, e Event) {
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case key == "id":
				id = value
			case key == "data":
				if err := json.Unmarshal([]byte(value), &e); err != nil {
					t.Fatal(err)
				}
			case key == "" && e.ID != "":
				return id, e
			}
		}
		return "", Event{}
	}, answer.StatusCode
}

// A program that listens is told at once, and goes on where it was when it comes again.
func TestStreams(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	run, hidden := newRun(t, db, "a", 0), newRun(t, db, "b1", 0)
	s := &Streams{DB: db, Hide: hide, Now: func() time.Time { return now.Add(time.Second) },
		Sees: func(_ *http.Request, repo string) bool { return repo == "acme/shop-a" }}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)

	next, status := listen(t, web.URL, "")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	add(t, db, hidden, now.Add(time.Minute), "not theirs")
	add(t, db, run, now.Add(time.Minute), "x")
	s.OnEvents()
	id, e := next()
	if e.Data.Run != run.ID || e.Data.Seq != 2 || id != "2026-07-01T12:01:00Z" {
		t.Errorf("%q %+v", id, e)
	}
	add(t, db, run, now.Add(2*time.Minute), "y")
	s.Close()
	if _, e := next(); e.Data.Seq != 3 && e.ID != "" {
		t.Errorf("at its end a stream tells %+v", e)
	}

	again := &Streams{DB: db, Hide: hide, Now: s.Now, Sees: s.Sees}
	web = httptest.NewServer(again)
	t.Cleanup(web.Close)
	t.Cleanup(again.Close)
	next, _ = listen(t, web.URL, id)
	var got []int64
	for len(got) == 0 || got[len(got)-1] != 3 {
		_, e := next()
		if e.ID == "" {
			t.Fatalf("the stream ended after %d", got)
		}
		got = append(got, e.Data.Seq)
	}
	for _, bad := range []string{"run=x", "run=-1", "since=yesterday", "types=%5B"} {
		if _, status := listen(t, web.URL+"?"+bad, ""); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", bad, status)
		}
	}
	if _, err := again.chosen(&http.Request{URL: &url.URL{}, Header: http.Header{"Last-Event-Id": {"yesterday"}}}); err == nil || !strings.Contains(err.Error(), "Last-Event-ID") {
		t.Errorf("a bad Last-Event-ID: %v", err)
	}
	for again.enter(1) {
	}
	if _, status := listen(t, web.URL, ""); status != http.StatusServiceUnavailable {
		t.Errorf("one too many: status %d", status)
	}
}
