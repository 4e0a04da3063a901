// Package route reads from a delivery's payload what it is listed by. It is a package of
// its own so that a fuzzer's binary holds nothing else: with a database in it, building it
// takes minutes, and each input as long as a thousand. It stores nothing.
package route

import (
	"bytes"
	"encoding/json"
)

// Read reads the two fields by which a delivery is listed from a payload: the
// top-level "action" and "repository"."full_name". It reads no further than it
// must and does not validate: a payload that is not JSON gives what was found
// until then. A field that comes twice counts as it comes first.
func Read(payload []byte) (action, repo string) {
	s := scanner{data: payload}
	var hasAction, hasRepo bool
	s.object(func(key []byte) bool {
		switch {
		case !hasAction && string(key) == "action":
			action, hasAction = s.text(), true
		case !hasRepo && string(key) == "repository":
			repo, hasRepo = s.fullName(hasAction), true
		default:
			s.skip()
		}
		return !hasAction || !hasRepo
	})
	return action, repo
}

// fullName reads the field "full_name" of an object; with last, nothing behind it.
func (s *scanner) fullName(last bool) (name string) {
	if s.peek() != '{' {
		s.skip()
		return ""
	}
	found := false
	s.object(func(key []byte) bool {
		if !found && string(key) == "full_name" {
			name, found = s.text(), true
		} else {
			s.skip()
		}
		return !found || !last
	})
	if s.peek() == '}' {
		s.pos++
	}
	return name
}

// A scanner walks over JSON without building anything. At an error it stands at
// the end.
type scanner struct {
	data []byte
	pos  int
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) fail() { s.pos = len(s.data) }

// object calls field for each key of the object that is next. field must read the
// value; it returns false to end.
func (s *scanner) object(field func(key []byte) bool) {
	if s.peek() != '{' {
		s.fail()
		return
	}
	s.pos++
	for s.peek() == '"' {
		key := s.quoted()
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(unquote(key))
		} else if len(key) >= 2 {
			key = key[1 : len(key)-1]
		}
		if s.peek() != ':' {
			s.fail()
			return
		}
		s.pos++
		if !field(key) {
			return
		}
		if s.peek() != ',' {
			return
		}
		s.pos++
	}
}

// text reads a string; of another value it gives nothing.
func (s *scanner) text() string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	return unquote(s.quoted())
}

// quoted reads a string with its quotes, as it stands.
func (s *scanner) quoted() []byte {
	start := s.pos
	if s.pos = endOfString(s.data, start); s.pos < 0 {
		s.fail()
		return nil
	}
	return s.data[start:s.pos]
}

func unquote(quoted []byte) string {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return ""
	}
	return text
}

// structural marks the bytes that matter while a value is skipped.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skip passes over a value of any kind.
func (s *scanner) skip() {
	switch s.peek() {
	case '"':
		s.quoted()
		return
	case '{', '[':
	default:
		for s.pos < len(s.data) && !structural[s.data[s.pos]] && s.data[s.pos] != ',' {
			s.pos++
		}
		return
	}
	// Nearly all of a payload goes through here, so position and data stay in registers.
	data, pos, depth := s.data, s.pos, 0
	for pos < len(data) {
		switch data[pos] {
		case '"':
			if pos = endOfString(data, pos); pos < 0 {
				s.fail()
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos = pos + 1
				return
			}
		}
		pos++
	}
	s.fail()
}

// endOfString returns where the string that begins at start ends: the position
// behind its closing quote, under 0 when there is none.
func endOfString(data []byte, start int) int {
	for pos := start + 1; ; pos++ {
		n := bytes.IndexByte(data[pos:], '"')
		if n < 0 {
			return -1
		}
		pos += n
		slashes := 0
		for data[pos-1-slashes] == '\\' {
			slashes++ // stops at the opening quote at the latest
		}
		if slashes%2 == 0 {
			return pos + 1
		}
	}
}
