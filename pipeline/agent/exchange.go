package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"
)

// Caps on what a provider may send.
const (
	maxAnswer = 64 << 20 // bytes of one answer
	maxEvent  = 8 << 20  // bytes of one event of a stream
)

// endpoint is an address of a provider with its key.
type endpoint struct {
	provider string            // for people: "OpenAI"
	setting  string            // what the address is set by: "openai_base_url"
	base     string            // without a slash at the end
	key      string            //
	headers  map[string]string // of every request, the key among them
	silence  time.Duration     // how long it may take until an answer begins, or is whole where it is no stream
	idle     time.Duration     // how long a stream may be silent
	total    time.Duration     // how long a stream may take in all
	client   *http.Client
	after    func(time.Duration) <-chan time.Time
}

// newClient returns an HTTP client that follows no redirect: the key must not travel
// to another address.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// at is an address for people: without a user's name, a password or a query.
func (e *endpoint) at(path string) string {
	u, err := url.Parse(e.base + path)
	if err != nil {
		return "the address in " + e.setting
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// piece is a part of an answer as it arrives: its head, then its whole body or, of
// a stream, events and signs of life between them.
type piece struct {
	head  *http.Response // whose body is read elsewhere
	whole []byte
	event *event
	err   error // nothing follows
}

// event is one server-sent event.
type event struct {
	name string
	data []byte
}

// answer is what came back, but for the events of a stream.
type answer struct {
	status int
	header http.Header
	body   []byte // nil when it came as a stream
}

// exchange makes one request. The events of a stream go to onEvent as they arrive,
// until it says that the answer is complete. The error is a *failure, onEvent's, or
// the context's.
func (e *endpoint) exchange(ctx context.Context, method, path string, body []byte, onEvent func(event) (done bool, err error)) (answer, error) {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces := make(chan piece)
	go e.fetch(call, method, path, body, pieces)
	var out answer
	total, limit, what := e.after(e.total), e.silence, "did not answer within %v"
	for {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-total:
			return out, &failure{kind: kindSilent, said: fmt.Sprintf("did not finish within %v", e.total)}
		case <-e.after(limit):
			return out, &failure{kind: kindSilent, said: fmt.Sprintf(what, limit)}
		case p := <-pieces:
			switch {
			case p.err != nil && ctx.Err() != nil:
				return out, ctx.Err()
			case p.err != nil && out.header == nil:
				return out, &failure{kind: kindUnreachable, said: plain(p.err)}
			case p.err != nil:
				return out, &failure{kind: kindBroken, said: plain(p.err)}
			case p.head != nil:
				out.status, out.header = p.head.StatusCode, p.head.Header
				if streams(p.head) {
					limit, what = min(e.idle, e.silence), "fell silent for %v in the middle of its answer"
				}
			case p.whole != nil:
				out.body = p.whole
				return out, nil
			case p.event != nil:
				if done, err := onEvent(*p.event); done || err != nil {
					return out, err
				}
			}
		}
	}
}

// plain is an error of a call without its address, which may hold credentials.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

func streams(res *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return res.StatusCode == http.StatusOK && kind == "text/event-stream"
}

// fetch sends the pieces of an answer until it is whole or the context ends.
func (e *endpoint) fetch(ctx context.Context, method, path string, body []byte, pieces chan<- piece) {
	send := func(p piece) bool {
		select {
		case pieces <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, e.base+path, bytes.NewReader(body))
	if err != nil {
		send(piece{err: errors.New("the address in " + e.setting + " is not valid")})
		return
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range e.headers {
		req.Header.Set(k, v)
	}
	res, err := e.client.Do(req)
	if err != nil {
		send(piece{err: err})
		return
	}
	defer res.Body.Close()
	if !send(piece{head: res}) {
		return
	}
	if streams(res) {
		err := readEvents(res.Body, func(ev *event) bool { return send(piece{event: ev}) })
		send(piece{err: err})
		return
	}
	whole, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		send(piece{err: err})
	case len(whole) > maxAnswer:
		send(piece{err: fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)})
	default:
		send(piece{whole: append(make([]byte, 0, len(whole)+1), whole...)}) // never nil
	}
}

// readEvents reads a stream of server-sent events. A nil event is a sign of life. It
// ends when send says so, or with the error that ended the stream: io.ErrUnexpectedEOF
// where it just ends, because the answer's own last event comes before that.
func readEvents(body io.Reader, send func(*event) bool) error {
	lines := bufio.NewReaderSize(io.LimitReader(body, maxAnswer), 64<<10)
	ev, some := &event{}, false
	for {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			if some { // some servers leave out the last empty line
				send(ev)
			}
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && some:
			if !send(ev) {
				return nil
			}
			ev, some = &event{}, false
		case len(field) == 0: // a comment, or an empty line
			if !send(nil) {
				return nil
			}
		case string(field) == "event":
			ev.name = string(value)
		case string(field) == "data":
			if some {
				ev.data = append(ev.data, '\n')
			}
			if ev.data = append(ev.data, value...); len(ev.data) > maxEvent {
				return fmt.Errorf("an event has more than %d MiB", maxEvent>>20)
			}
			some = true
		}
	}
}

// readLine reads a line without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxEvent {
			return nil, fmt.Errorf("a line has more than %d MiB", maxEvent>>20)
		}
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			return bytes.TrimRight(line, "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
