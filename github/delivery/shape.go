package delivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// A shape says which parts of a JSON value are read. GitHub's payloads hold whole
// repositories, several times; what Forge reads of them is one part in twenty.
// Leaving the rest out before the value is decoded takes a twentieth of the time.
type shape struct {
	fields map[string]*shape // of an object, by key; nil: the value is read whole
}

var (
	whole       = &shape{}
	decodesSelf = reflect.TypeFor[json.Unmarshaler]()
)

// shapeOf returns the parts that decoding into a type reads. Lists have the shape of
// their elements.
func shapeOf(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		if t.Implements(decodesSelf) {
			return whole
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(decodesSelf) {
		return whole
	}
	s := &shape{fields: map[string]*shape{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			for k, v := range shapeOf(f.Type).fields {
				s.fields[k] = v
			}
			continue
		}
		s.fields[name] = shapeOf(f.Type)
	}
	return s
}

var (
	deliveryShape = shapeOf(reflect.TypeFor[payload]())
	commonShape   = shapeOf(reflect.TypeFor[common]())
)

var errJSON = errors.New("the payload is not valid JSON")

// project copies the parts of the shape to out. What is left out is not checked
// beyond where it ends; the payload's signature was.
func (s *shape) project(out, src []byte) ([]byte, error) {
	p := projector{src: src, out: out}
	if !p.value(s) {
		return out, errJSON
	}
	if p.space(); p.at != len(p.src) {
		return out, errJSON
	}
	return p.out, nil
}

type projector struct {
	src, out []byte
	at       int
}

func (p *projector) space() byte {
	for ; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value copies the value at hand as far as the shape wants it.
func (p *projector) value(s *shape) bool {
	switch c := p.space(); {
	case s.fields != nil && c == '{':
		return p.object(s)
	case s.fields != nil && c == '[':
		return p.list(s)
	}
	from := p.at
	if !p.skip() {
		return false
	}
	p.out = append(p.out, p.src[from:p.at]...)
	return true
}

func (p *projector) object(s *shape) bool {
	p.at++
	p.out = append(p.out, '{')
	first := true
	for {
		switch p.space() {
		case '}':
			p.at++
			p.out = append(p.out, '}')
			return true
		case ',':
			p.at++
			continue
		case '"':
		default:
			return false
		}
		from := p.at
		if !p.text() {
			return false
		}
		key := p.src[from:p.at]
		if p.space() != ':' {
			return false
		}
		p.at++
		want := s.fields[string(key[1:len(key)-1])]
		if want == nil {
			if p.space(); !p.skip() {
				return false
			}
			continue
		}
		if !first {
			p.out = append(p.out, ',')
		}
		first = false
		p.out = append(append(p.out, key...), ':')
		if !p.value(want) {
			return false
		}
	}
}

func (p *projector) list(s *shape) bool {
	p.at++
	p.out = append(p.out, '[')
	for first := true; ; first = false {
		switch p.space() {
		case ']':
			p.at++
			p.out = append(p.out, ']')
			return true
		case ',':
			p.at++
		}
		if !first {
			p.out = append(p.out, ',')
		}
		before := p.at
		if !p.value(s) || p.at == before {
			return false
		}
	}
}

// skip passes over one value.
func (p *projector) skip() bool {
	switch c := p.space(); c {
	case '"':
		return p.text()
	case '{', '[':
		return p.nested()
	}
	from := p.at
	for p.at < len(p.src) && !endsValue[p.src[p.at]] {
		p.at++
	}
	return p.at > from
}

// endsValue marks the bytes behind a number, true, false or null.
var endsValue = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\r': true, '\n': true}

// nested passes over an object or a list, whatever is in it.
func (p *projector) nested() bool {
	for depth := 0; p.at < len(p.src); {
		switch p.src[p.at] {
		case '"':
			if !p.text() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				p.at++
				return true
			}
		}
		p.at++
	}
	return false
}

// text passes over a string.
func (p *projector) text() bool {
	p.at++
	for {
		i := bytes.IndexByte(p.src[p.at:], '"')
		if i < 0 {
			return false
		}
		escapes := 0
		for k := p.at + i - 1; k >= p.at && p.src[k] == '\\'; k-- {
			escapes++
		}
		p.at += i + 1
		if escapes%2 == 0 {
			return true
		}
	}
}
