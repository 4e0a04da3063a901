package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/palantir/go-githubapp/githubapp"
)

// peers are the other servers, by the argument that starts them.
var peers = map[string]func() error{"go-githubapp": goGitHubApp, "hmac": bareHMAC}

func serve(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", l.Addr())
	return http.Serve(l, h)
}

// goGitHubApp answers once the signature is checked and the event is on a queue in
// memory, whose handler does nothing.
func goGitHubApp() error {
	h := githubapp.NewEventDispatcher([]githubapp.EventHandler{empty{}}, secret,
		githubapp.WithScheduler(githubapp.QueueAsyncScheduler(100_000, 4)))
	return serve(h)
}

type empty struct{}

func (empty) Handles() []string                                    { return []string{"pull_request"} }
func (empty) Handle(context.Context, string, string, []byte) error { return nil }

// bareHMAC checks the signature and keeps nothing: the least that a server can do.
func bareHMAC() error {
	return serve(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		if err != nil || !hmac.Equal([]byte("sha256="+hex.EncodeToString(mac.Sum(nil))), []byte(req.Header.Get("X-Hub-Signature-256"))) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
}
