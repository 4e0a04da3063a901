// Package exchangetest writes down what tests say to the local GitHub and hear from it, so
// that the laboratory can hold it to GitHub's own descriptions, whose libraries the program
// does not need.
package exchangetest

import (
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"testing"

	"forge/github/githubtest/exchange"
)

// Variable names the file that exchanges are appended to, one object of JSON in a line.
const Variable = "FORGE_TEST_EXCHANGES"

// Line is one exchange: a call of the REST API, a webhook, or a document of GraphQL.
type Line struct {
	Test string

	Op, Method, URL string // REST
	Body            []byte
	Status          int
	Header          http.Header
	Answer          []byte

	Event, Action string // a webhook
	Payload       []byte

	Query string // GraphQL
}

// recorder appends to a file. Several processes may: each line is one write.
type recorder struct {
	t    *testing.T
	mu   sync.Mutex
	file *os.File
}

// Record returns what writes down the exchanges of a test; nil where nobody asked for it.
func Record(t *testing.T) exchange.Checker {
	path := os.Getenv(Variable)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &recorder{t: t, file: file}
}

func (r *recorder) write(l Line) {
	l.Test = r.t.Name()
	text, err := json.Marshal(l)
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(text, '\n')); err != nil {
		r.t.Errorf("record an exchange: %v", err)
	}
}

func (r *recorder) REST(x exchange.Exchange) {
	r.write(Line{Op: x.Op, Method: x.Request.Method, URL: x.Request.URL.String(), Body: x.Body, Status: x.Status, Header: x.Header, Answer: x.Answer})
}

func (r *recorder) Webhook(event, action string, payload []byte) {
	r.write(Line{Event: event, Action: action, Payload: payload})
}

func (r *recorder) GraphQL(query string) { r.write(Line{Query: query}) }
