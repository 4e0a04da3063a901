package models

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// record stands between the program and a provider. Of the n-th call of a model, the
// request and the raw bytes of the answer are kept as NNN.request and NNN.answer.
func record(upstream, dir string) (base string, stop func(), err error) {
	to, err := url.Parse(upstream)
	if err != nil || to.Host == "" {
		return "", func() {}, fmt.Errorf("what is recorded is an OpenAI-compatible server: OPENAI_BASE_URL is %q", upstream)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", func() {}, err
	}
	r := &recorder{dir: dir, proxy: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})}
	r.proxy.FlushInterval = -1
	s := httptest.NewServer(r)
	return s.URL + to.Path, s.Close, nil
}

type recorder struct {
	dir   string
	proxy *httputil.ReverseProxy
	mu    sync.Mutex
	n     int
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		r.proxy.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.Header.Del("Accept-Encoding") // what is kept is to be read
	both := &keeper{ResponseWriter: w}
	defer func() { // also where the program has hung up: it does, once it has the last event
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n++
		name := filepath.Join(r.dir, fmt.Sprintf("%03d", r.n))
		if err := errors.Join(os.WriteFile(name+".request", body, 0o644), os.WriteFile(name+".answer", both.kept.Bytes(), 0o644)); err != nil {
			fmt.Fprintln(os.Stderr, "lab: record:", err)
		}
	}()
	r.proxy.ServeHTTP(both, req)
}

// keeper keeps what is answered.
type keeper struct {
	http.ResponseWriter
	kept bytes.Buffer
}

func (k *keeper) Write(p []byte) (int, error) {
	k.kept.Write(p)
	return k.ResponseWriter.Write(p)
}

// Unwrap lets the answer be flushed as it comes.
func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// replay is a provider that answers one call after the other with what was recorded.
func replay(dir string) (base string, stop func(), err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.answer"))
	if err != nil || len(names) == 0 {
		return "", func() {}, fmt.Errorf("there is no recording in %s", dir)
	}
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			http.NotFound(w, req)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if len(names) == 0 {
			http.Error(w, "the recording has ended", http.StatusTeapot)
			return
		}
		data, err := os.ReadFile(names[0])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		names = names[1:]
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.HasPrefix(string(data), "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(data) // who hung up has no need of it
	}))
	return s.URL + "/v1", s.Close, nil
}
