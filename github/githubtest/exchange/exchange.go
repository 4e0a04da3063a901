// Package exchange has what the local GitHub shows to whoever checks it, so that the
// program, which needs no check, is built without its libraries.
package exchange

import "net/http"

// Exchange is a request to the REST API and its answer.
type Exchange struct {
	Op      string // the operation's id, "issues/create"
	Request *http.Request
	Body    []byte // of the request
	Status  int
	Header  http.Header // of the answer
	Answer  []byte
}

// Checker is shown everything that goes in and out.
type Checker interface {
	REST(Exchange)
	Webhook(event, action string, payload []byte)
	GraphQL(query string)
}
