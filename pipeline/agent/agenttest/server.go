// Package agenttest is a model provider on this machine: an HTTP server that
// speaks Anthropic's Messages API and OpenAI's chat completions and plays a tape.
// It lets the real clients be used without a network, in tests and in the demo.
// It stores nothing.
package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/lazyregexp"
)

// Server is a provider that plays a tape. It knows which call a request is from
// the state line at the end of the prompt, so any number of runs may use it at once.
type Server struct {
	URL string // "http://127.0.0.1:PORT"; OpenAI's clients want URL + "/v1"

	model agent.Model
	http  *http.Server

	mu     sync.Mutex
	bodies [][]byte
}

// NewServer starts a server on a free port of the loopback interface. The tape's
// format is that of agent.ReadTape.
func NewServer(tape []byte) (*Server, error) {
	model, err := agent.ReadTape(tape)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the scripted provider: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), model: model}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{name}", s.models)
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/chat/completions", s.completions)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(l) // ends with Close
	return s, nil
}

// Close stops the server and ends the calls under way.
func (s *Server) Close() error { return s.http.Close() }

// Requests returns the bodies of the calls so far.
func (s *Server) Requests() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

var stateLine = lazyregexp.New(`<state conversation="([^"]*)" iteration="(\d+)" attempt="(\d+)" step="(\d+)"`)

// name finds out which call a request is.
func name(req *agent.Request) error {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if m := req.Messages[i]; m.Role == "user" {
			said := m.Text
			for _, r := range m.Results {
				said += r.Text
			}
			all := stateLine.FindAllStringSubmatch(said, -1)
			if len(all) == 0 {
				continue
			}
			last := all[len(all)-1]
			req.Role = last[1]
			req.Iteration, _ = strconv.Atoi(last[2]) // digits by the pattern
			req.Attempt, _ = strconv.Atoi(last[3])
			req.Step, _ = strconv.Atoi(last[4])
			return nil
		}
	}
	return errors.New("no message of the user has a <state …/> line that says which call this is")
}

// read reads a request's body.
func (s *Server) read(r *http.Request, into any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 32<<20))
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	return nil
}

// play answers a request; a status over 0 means an error.
func (s *Server) play(ctx context.Context, req agent.Request) (agent.Response, int, string) {
	if err := name(&req); err != nil {
		return agent.Response{}, http.StatusBadRequest, err.Error()
	}
	res, err := s.model.Complete(ctx, req)
	if err == nil {
		if res.Usage.Input+res.Usage.Output == 0 { // a provider always counts
			res.Usage = pipeline.Usage{Input: 100, Output: 20}
		}
		return res, 0, ""
	}
	// The tape's own errors carry the status in brackets, as the clients show it.
	status := http.StatusBadRequest
	if m := regexp.MustCompile(`\((\d{3})[,)]`).FindStringSubmatch(err.Error()); m != nil {
		status, _ = strconv.Atoi(m[1])
	}
	return agent.Response{}, status, err.Error()
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	if status >= 400 {
		w.Header().Set("X-Should-Retry", "false") // a tape gives the same answer again
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone, if anything
}

// models answers for the list of models, which is empty, and for any model by its name:
// a tape plays under all of them.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("name"); name != "" {
		reply(w, http.StatusOK, map[string]any{"id": name, "object": "model", "type": "model"})
		return
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}})
}

// text reads content that is a string or a list of blocks.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []struct{ Text string }
	_ = json.Unmarshal(content, &blocks) // other content has no text
	var out []string
	for _, b := range blocks {
		out = append(out, b.Text)
	}
	return strings.Join(out, "\n")
}
