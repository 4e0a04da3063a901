package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// A frame is four bytes of length, big-endian, and that much JSON. Neither side
// trusts the other's lengths.
const maxFrame = 128 << 20

// request is a call of the worker. Cancel is a method too: it names a call and
// has no answer.
type request struct {
	ID     uint64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// response answers the request with the same id.
type response struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *wireError      `json:"error,omitempty"`
}

// wireError carries an error over the pipe, with what callers test for.
type wireError struct {
	Text      string                    `json:"text"`
	NotExist  bool                      `json:"not_exist,omitempty"`
	NoRoom    bool                      `json:"no_room,omitempty"` // a disk is full
	Fault     *pipeline.Fault           `json:"fault,omitempty"`
	Protected *workspace.ProtectedError `json:"protected,omitempty"`
}

func (e *wireError) Error() string { return e.Text }

// Unwrap gives errors.Is and errors.As what they look for.
func (e *wireError) Unwrap() error {
	switch {
	case e.Fault != nil:
		return e.Fault
	case e.Protected != nil:
		return e.Protected
	case e.NotExist:
		return fs.ErrNotExist
	}
	return nil
}

func toWire(err error) *wireError {
	w := &wireError{Text: err.Error(), NotExist: errors.Is(err, fs.ErrNotExist), NoRoom: isNoRoom(err)}
	errors.As(err, &w.Fault)
	errors.As(err, &w.Protected)
	return w
}

// frameWriter writes whole frames, from many goroutines.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frameWriter) send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("message of %d bytes is over the limit of %d", len(body), maxFrame)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.w.Write(append(frame, body...))
	return err
}

// readFrame reads one frame into v. io.EOF at a frame's border is the end.
func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("message of %d bytes is over the limit of %d", n, maxFrame)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n))) // grows with what comes, not with what is said
	if err != nil {
		return err
	}
	if len(body) < int(n) {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(body, v)
}
