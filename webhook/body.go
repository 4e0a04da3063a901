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
	maxHeld      = 256 << 20 // bytes of all bodies that are in memory at once
	pooledBuffer = 64 << 10  // bytes: most payloads are smaller
	firstRead    = 4 << 10   // bytes that must have come before a buffer is taken

	// bodyTime is how long a body may take: GitHub gives a delivery up after 10 s.
	bodyTime = 10 * time.Second
	// commitTime is how long a connection lives while its delivery is kept.
	commitTime = time.Minute
)

// bodies reads what is posted. Nobody has been identified yet, so memory is taken as
// bodies come, not as their headers claim: who sends little costs little, who is slow
// is cut off, and there is a limit to all of it.
type bodies struct {
	firsts  sync.Pool // of *[firstRead]byte
	buffers sync.Pool // of *buffer

	held atomic.Int64 // bytes in memory
}

// A buffer holds a body. It is used again, because the bodies of a burst would
// keep the garbage collector busier than all else.
type buffer struct {
	data []byte
	held int64 // what counts against the limit, in bytes
}

// read reads a body of up to most bytes. Its buffer is nil, or for release.
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
	buf, no := b.begin(req)
	for no == nil && len(buf.data) == cap(buf.data) && len(buf.data) <= most { // full: there may be more
		size := 4 * int64(cap(buf.data))
		if req.ContentLength > 0 {
			size = min(size, req.ContentLength)
		}
		if no = b.grow(buf, min(size, int64(most))+1); no == nil { // one byte more, to see the end
			no = fill(req.Body, buf)
		}
	}
	if no == nil && len(buf.data) > most {
		no = tooLarge
	}
	_ = connection.SetReadDeadline(time.Now().Add(commitTime))
	return buf, no
}

// begin reads the first bytes, and only then takes a buffer for them.
func (b *bodies) begin(req *http.Request) (*buffer, *refusal) {
	first, _ := b.firsts.Get().(*[firstRead]byte)
	if first == nil {
		first = new([firstRead]byte)
	}
	defer b.firsts.Put(first)
	start := &buffer{data: first[:0]}
	if no := fill(req.Body, start); no != nil {
		return nil, no
	}
	buf, _ := b.buffers.Get().(*buffer)
	if buf == nil {
		buf = &buffer{data: make([]byte, 0, pooledBuffer)}
	}
	if no := b.take(buf, int64(cap(buf.data))); no != nil {
		return buf, no
	}
	buf.data = append(buf.data, start.data...)
	if len(start.data) < firstRead {
		return buf, nil
	}
	return buf, fill(req.Body, buf)
}

// fill reads until the buffer is full or the body ends.
func fill(body io.Reader, buf *buffer) *refusal {
	for len(buf.data) < cap(buf.data) {
		n, err := body.Read(buf.data[len(buf.data):cap(buf.data)])
		buf.data = buf.data[:len(buf.data)+n]
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return refuse(http.StatusRequestTimeout, "the body did not come within %s", bodyTime)
		case err != nil:
			return refuse(http.StatusBadRequest, "the body broke off after %d bytes", len(buf.data))
		}
	}
	return nil
}

// grow makes room for size bytes.
func (b *bodies) grow(buf *buffer, size int64) *refusal {
	if no := b.take(buf, size-int64(cap(buf.data))); no != nil {
		return no
	}
	buf.data = slices.Grow(buf.data, int(size)-len(buf.data))
	return nil
}

// take counts what a buffer takes.
func (b *bodies) take(buf *buffer, n int64) *refusal {
	if b.held.Add(n) > maxHeld {
		b.held.Add(-n)
		return busy("too many deliveries are being received", nil)
	}
	buf.held += n
	return nil
}

// release gives a buffer back. Large ones are left to the garbage collector.
func (b *bodies) release(buf *buffer) {
	if buf == nil {
		return
	}
	b.held.Add(-buf.held)
	buf.held = 0
	if cap(buf.data) <= 2*pooledBuffer {
		buf.data = buf.data[:0]
		b.buffers.Put(buf)
	}
}
