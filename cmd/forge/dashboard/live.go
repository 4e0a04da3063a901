package dashboard

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// live tells browsers that something has changed; what, they read themselves. So
// it carries no data, and what one may not see is not told.
type live struct {
	mu     sync.Mutex
	next   int
	ears   map[int]chan note
	closed chan struct{}
}

// note is that something of a repository has changed: "run/7", "memory", "deliveries".
type note struct{ topic, repo string }

// waitingNotes is how many notes wait for a browser that does not take them. More are
// dropped: a page that missed one is as out of date as one that missed ten.
const waitingNotes = 64

func newLive() *live { return &live{ears: map[int]chan note{}, closed: make(chan struct{})} }

func (l *live) listen() (<-chan note, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	id, ear := l.next, make(chan note, waitingNotes)
	l.ears[id] = ear
	return ear, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ears, id)
	}
}

// Notify tells those who look, and see the repository ("owner/name"; "" for what
// only those see who see everything), that something has changed: "run/7", "memory", "deliveries".
func (p *Pages) Notify(topic, repo string) {
	p.live.mu.Lock()
	defer p.live.mu.Unlock()
	for _, ear := range p.live.ears {
		select {
		case ear <- note{topic, repo}:
		default:
		}
	}
}

// Close ends what is being told, so that a server that stops does not wait for
// those who listen.
func (p *Pages) Close() {
	p.live.mu.Lock()
	defer p.live.mu.Unlock()
	select {
	case <-p.live.closed:
	default:
		close(p.live.closed)
	}
}

// beat is how often a silent stream says that it is alive, so that proxies keep it.
const beat = 20 * time.Second

// serveLive streams notes as server-sent events.
func (p *Pages) serveLive(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	out.SetReadDeadline(time.Time{}) //nolint:errcheck // the server's limit is for requests; where it cannot be lifted, the browser comes again
	notes, end := p.live.listen()
	defer end()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	fmt.Fprint(w, "retry: 3000\n\n")
	for {
		if out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-p.live.closed:
			return
		case <-tick.C:
			fmt.Fprint(w, ": alive\n\n")
		case n := <-notes:
			if Sees(p.Viewer(r), n.repo) {
				fmt.Fprintf(w, "event: changed\ndata: %s\n\n", n.topic)
			}
		}
	}
}
