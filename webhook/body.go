package webhook

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxHeld = 64 << 20  // bytes of all buffers that are filled at once: two of GitHub's largest payloads, hundreds of its usual ones
	pooled  = 128 << 10 // capacity up to which a buffer is used again: most payloads are smaller

	// bodyTime is how long a body may take: GitHub gives a delivery up after 10 s.
	bodyTime = 10 * time.Second
	// commitTime is how long a connection lives while its delivery is kept.
	commitTime = time.Minute
)

// bodies reads what is posted. Nobody has been identified yet, so memory is taken as
// bodies come, not as their headers claim: who sends little costs little, who is slow
// is cut off, and there is a limit to all of it.
type bodies struct {
	buffers sync.Pool    // of *buffer: the garbage collector is not kept busy by a burst
	held    atomic.Int64 // bytes of the buffers that are not released
}

// A buffer holds a body.
type buffer struct{ data []byte }

// read reads a body of up to most bytes. Its buffer is for release.
func (b *bodies) read(w http.ResponseWriter, req *http.Request, most int) (*buffer, *refusal) {
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d MiB", most>>20)
	if most == maxBody {
		tooLarge.text += ", the most that GitHub sends"
	}
	if req.ContentLength > int64(most) {
		return nil, tooLarge
	}
	connection := http.NewResponseController(w) // a test's recorder has no deadlines
	_ = connection.SetReadDeadline(time.Now().Add(bodyTime))
	defer func() { _ = connection.SetReadDeadline(time.Now().Add(commitTime)) }()
	buf, _ := b.buffers.Get().(*buffer)
	if buf == nil {
		buf = &buffer{}
	}
	if b.held.Add(int64(cap(buf.data))) > maxHeld {
		return buf, busy("too many deliveries are being received", nil)
	}
	for {
		if was := cap(buf.data); len(buf.data) == was {
			more := min(max(4<<10, was), max(4<<10, most+1-was))
			if b.held.Add(int64(more)) > maxHeld {
				b.held.Add(-int64(more))
				return buf, busy("too many deliveries are being received", nil)
			}
			buf.data = slices.Grow(buf.data, more)
			b.held.Add(int64(cap(buf.data) - was - more)) // the allocator rounds up
		}
		n, err := req.Body.Read(buf.data[len(buf.data):cap(buf.data)])
		buf.data = buf.data[:len(buf.data)+n]
		switch {
		case len(buf.data) > most:
			return buf, tooLarge
		case err == io.EOF:
			return buf, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return buf, refuse(http.StatusRequestTimeout, "the body did not come within %s", bodyTime)
		case err != nil:
			return buf, refuse(http.StatusBadRequest, "the body broke off after %d bytes", len(buf.data))
		}
	}
}

// release gives a buffer back. Large ones are left to the garbage collector.
func (b *bodies) release(buf *buffer) {
	if buf == nil {
		return
	}
	b.held.Add(-int64(cap(buf.data)))
	if cap(buf.data) <= pooled {
		buf.data = buf.data[:0]
		b.buffers.Put(buf)
	}
}
