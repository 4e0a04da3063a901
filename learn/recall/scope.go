package recall

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"forge/pipeline"
)

// A posting says which learning has a word, and how often: the learning's slot in
// the upper 24 bits, the count in the lower 8.
type posting uint32

const (
	countBits = 8
	maxSlots  = 1 << (32 - countBits)
)

func (p posting) slot() uint32 { return uint32(p) >> countBits }

// list is the postings of one term, by rising slot.
type list struct {
	posts []posting
	live  int32 // postings whose learning is there
}

// scope is the inverted index of one scope. A learning has a slot; one that is
// replaced or removed leaves a hole, and when most slots are holes the scope is
// tidied up.
type scope struct {
	dict   map[string]uint32 // term → index in lists
	names  []string          // and back
	lists  []list
	slots  map[int64]uint32 // learning → slot
	lens   []uint32         // by slot: words in the learning, 0 for a hole
	notes  []note           // by slot
	room   int              // slots at most
	live   int              // learnings
	length int64            // words in all of them
}

// note is what the ranking needs of a learning beside its words.
type note struct {
	id         int64
	touched    int64 // seconds since 1970
	confidence float32
	terms      []byte // terms and counts: what must be taken back when it goes
}

func newScope() *scope {
	return &scope{dict: map[string]uint32{}, slots: map[int64]uint32{}, room: maxSlots}
}

// put adds or replaces a learning. It says false when the scope is full.
func (s *scope) put(l pipeline.Learning, d *document) bool {
	n := note{id: l.ID, touched: touched(l), confidence: float32(min(l.Confidence, 1))}
	if old, known := s.slots[l.ID]; known {
		n.terms = s.encode(d)
		if bytes.Equal(n.terms, s.notes[old].terms) && uint32(d.length) == s.lens[old] {
			s.notes[old] = n // the usual change: evidence, which moves confidence alone
			return true
		}
		s.remove(l.ID)
	}
	if len(s.lens) == s.room {
		s.tidy(0)
	}
	if len(s.lens) == s.room {
		return false
	}
	n.terms = s.encode(d) // now for certain: tidying up gives the terms new numbers
	slot := uint32(len(s.lens))
	for t, count := range decode(n.terms) {
		s.lists[t].posts = append(s.lists[t].posts, posting(slot<<countBits|count))
		s.lists[t].live++
	}
	s.lens = append(s.lens, uint32(d.length))
	s.notes = append(s.notes, n)
	s.slots[l.ID] = slot
	s.live++
	s.length += int64(d.length)
	return true
}

// touched is the time from which a learning ages.
func touched(l pipeline.Learning) int64 {
	if l.Touched.After(l.Created) {
		return l.Touched.Unix()
	}
	return l.Created.Unix()
}

// remove takes out a learning that is there.
func (s *scope) remove(id int64) {
	slot := s.slots[id]
	delete(s.slots, id)
	for t := range decode(s.notes[slot].terms) {
		s.lists[t].live--
	}
	s.live--
	s.length -= int64(s.lens[slot])
	s.lens[slot], s.notes[slot] = 0, note{}
	s.tidy(len(s.lens)/2 + 8)
}

// encode writes a document's terms and counts, by rising number of the term, as
// pairs of varints: the distance from the term before, and the count. Terms that
// the scope has not seen get a number.
func (s *scope) encode(d *document) []byte {
	var room [256]uint64
	numbers := room[:0] // the number of the term in the upper half, the count in the lower
	for i, term := range d.terms {
		t, ok := s.dict[term]
		if !ok {
			t = uint32(len(s.lists))
			// The term may be a part of a long text that must not be kept for it.
			term = strings.Clone(term)
			s.dict[term] = t
			s.names = append(s.names, term)
			s.lists = append(s.lists, list{})
		}
		numbers = append(numbers, uint64(t)<<32|uint64(d.counts[i]))
	}
	slices.Sort(numbers)
	out := make([]byte, 0, 3*len(numbers))
	last := uint64(0)
	for i := 0; i < len(numbers); {
		t, count := numbers[i]>>32, uint64(0)
		for ; i < len(numbers) && numbers[i]>>32 == t; i++ {
			count += numbers[i] & maxCount
		}
		out = binary.AppendUvarint(out, t-last)
		out = append(out, byte(min(count, maxCount)))
		last = t
	}
	return bytes.Clone(out)
}

// decode yields the terms and counts that encode wrote.
func decode(terms []byte) func(yield func(term, count uint32) bool) {
	return func(yield func(term, count uint32) bool) {
		t := uint64(0)
		for len(terms) > 0 {
			step, n := binary.Uvarint(terms)
			t += step
			if !yield(uint32(t), uint32(terms[n])) {
				return
			}
			terms = terms[n+1:]
		}
	}
}

// tidy makes the scope anew without its holes, when there are more than allowed.
func (s *scope) tidy(allowed int) {
	if len(s.lens)-s.live <= allowed {
		return
	}
	fresh := newScope()
	fresh.room, fresh.live, fresh.length = s.room, s.live, s.length
	moved := make([]uint32, len(s.lens))
	for slot, n := range s.notes {
		if s.lens[slot] > 0 { // no hole
			moved[slot] = uint32(len(fresh.lens))
			fresh.slots[n.id] = moved[slot]
			fresh.lens = append(fresh.lens, s.lens[slot])
			fresh.notes = append(fresh.notes, n)
		}
	}
	renamed := make([]uint32, len(s.lists))
	for t, l := range s.lists {
		if l.live == 0 {
			continue
		}
		renamed[t] = uint32(len(fresh.lists))
		fresh.dict[s.names[t]] = renamed[t]
		fresh.names = append(fresh.names, s.names[t])
		kept := list{posts: make([]posting, 0, l.live), live: l.live}
		for _, p := range l.posts {
			if s.lens[p.slot()] > 0 {
				kept.posts = append(kept.posts, posting(moved[p.slot()]<<countBits|uint32(p)&maxCount))
			}
		}
		fresh.lists = append(fresh.lists, kept)
	}
	// Terms keep their order, so the distances between them stay positive.
	for i := range fresh.notes {
		old := fresh.notes[i].terms
		terms := make([]byte, 0, len(old))
		last := uint32(0)
		for t, count := range decode(old) {
			terms = binary.AppendUvarint(terms, uint64(renamed[t]-last))
			terms = append(terms, byte(count))
			last = renamed[t]
		}
		fresh.notes[i].terms = slices.Clip(terms)
	}
	*s = *fresh
}

// find returns the postings of a term.
func (s *scope) find(term string) list {
	if t, ok := s.dict[term]; ok {
		return s.lists[t]
	}
	return list{}
}

// has says whether the learning in a slot has a term.
func (s *scope) has(term string, slot uint32) bool {
	posts := s.find(term).posts
	_, ok := slices.BinarySearchFunc(posts, slot, func(p posting, slot uint32) int { return int(p.slot()) - int(slot) })
	return ok
}
