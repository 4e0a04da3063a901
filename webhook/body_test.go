package webhook

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow opens connections that claim a large body and send a few bytes of it, and says
// when the server is reading all of them.
func slow(t *testing.T, r *Receiver, n int) (front *httptest.Server) {
	t.Helper()
	reading := make(chan struct{}, n)
	front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Slow") != "" {
			req.Body = &told{ReadCloser: req.Body, read: reading}
		}
		r.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	for range n {
		conn, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /webhook HTTP/1.1\r\nHost: forge\r\nSlow: yes\r\nX-GitHub-Delivery: g\r\nX-GitHub-Event: issues\r\n"+
			"X-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n{\"a\":", strings.Repeat("00", 32), maxBody)
	}
	for range n {
		<-reading
	}
	return front
}

// told says that a body is being read.
type told struct {
	io.ReadCloser
	read chan<- struct{}
}

func (b *told) Read(p []byte) (int, error) {
	if b.read != nil {
		b.read <- struct{}{}
		b.read = nil
	}
	return b.ReadCloser.Read(p)
}

// 400 connections that claim 25 MiB each and send 5 bytes hold nobody else up.
func TestSlowConnections(t *testing.T) {
	t.Parallel()
	var k memory
	r := started(t, &k, Options{})
	front := slow(t, r, 400)
	resp, err := http.DefaultClient.Do(toServer(request("real", []byte(labeled)), front.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusAccepted || len(k.kept) != 1 {
		t.Errorf("a real delivery is answered %d %s", resp.StatusCode, text)
	}
}

func toServer(req *http.Request, url string) *http.Request {
	out := req.Clone(req.Context())
	out.RequestURI = ""
	u, err := out.URL.Parse(url + out.URL.Path)
	if err != nil {
		panic(err)
	}
	out.URL = u
	return out
}

// deadlines is a connection whose body never ends.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.read = at; return nil }

func (d *deadlines) Read([]byte) (int, error) {
	time.Sleep(time.Until(d.read))
	return 0, &net.OpError{Op: "read", Err: timedOut{}}
}

// timedOut is what a connection says after its deadline.
type timedOut struct{}

func (timedOut) Error() string   { return "i/o timeout" }
func (timedOut) Is(e error) bool { return e.Error() == "i/o timeout" }

// A body that does not come in the time that GitHub waits is given up.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, &memory{}, Options{})
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		req := request("slow", []byte(labeled))
		req.Body, req.ContentLength = io.NopCloser(w), 100
		began := time.Now()
		r.ServeHTTP(w, req)
		if took := time.Since(began); took != bodyTime || w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" {
			t.Errorf("after %s: %d %s %v", took, w.Code, w.Body, w.Header())
		}
	})
}

// All that is received at once has a limit, and what is given back can be taken again.
func TestHeldInAll(t *testing.T) {
	t.Parallel()
	var b bodies
	read := func() (*buffer, *refusal) {
		return b.read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("12")), 10)
	}
	b.held.Store(maxHeld - 4<<10)
	one, no := read()
	if no != nil {
		t.Errorf("all of it: %+v", no)
	}
	two, no := read()
	if no == nil || no.status != http.StatusServiceUnavailable {
		t.Errorf("bytes more: %+v", no)
	}
	b.release(one)
	b.release(two)
	if _, no = read(); no != nil {
		t.Errorf("once they are given back: %+v", no)
	}
}

// Every size comes through whole, with or without its length, and leaves nothing behind.
func TestBodySizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4<<10 - 1, 4 << 10, 4<<10 + 1, pooled - 1, pooled, pooled + 1, sourceBody - 1,
		sourceBody, sourceBody + 1, 2 * sourceBody} {
		for _, known := range []bool{true, false} {
			var b bodies
			want := bytes.Repeat([]byte("x"), size)
			req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(want))
			if !known {
				req.ContentLength = -1
			}
			buf, no := b.read(httptest.NewRecorder(), req, sourceBody)
			switch {
			case size > sourceBody:
				if no == nil || no.status != http.StatusRequestEntityTooLarge {
					t.Errorf("%d bytes: %+v", size, no)
				}
			case no != nil || !bytes.Equal(buf.data, want):
				t.Errorf("%d bytes, length known: %t: %+v", size, known, no)
			}
			if b.release(buf); b.held.Load() != 0 {
				t.Errorf("%d bytes: %d are held", size, b.held.Load())
			}
		}
	}
}
