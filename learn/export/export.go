// Package export writes what is remembered as JSON, one file for a scope, and reads it
// back. The files are meant to be read, reviewed in a pull request and merged by git: the
// order is stable, each field stands in a line of its own. It stores nothing.
package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"forge/pipeline"
)

// Entry is a learning with its evidence.
type Entry struct {
	Learning pipeline.Learning
	Evidence []pipeline.Evidence
}

// file is what a file holds.
type file struct {
	Scope     string     `json:"scope"` // repo:OWNER/NAME or org:OWNER
	Learnings []learning `json:"learnings"`
}

// none takes the place of a field that a file does not have: it is another database's, or
// follows from what the file has. Scope and key are a learning's identity.
type none = *struct{}

type learning struct {
	pipeline.Learning
	ID       none       `json:"id,omitempty"`
	Scope    none       `json:"scope,omitempty"`
	Cites    none       `json:"cites,omitempty"`
	For      none       `json:"for,omitempty"`
	Against  none       `json:"against,omitempty"`
	Recalled none       `json:"recalled,omitempty"`
	Used     none       `json:"used,omitempty"`
	Evidence []evidence `json:"evidence,omitempty"`
}

type evidence struct {
	pipeline.Evidence
	Learning none `json:"learning,omitempty"`
	Of       none `json:"of,omitempty"`
}

// Write returns the file of a scope: its entries by key.
func Write(scope string, entries []Entry) []byte {
	f := file{Scope: scope, Learnings: []learning{}}
	for _, e := range entries {
		if e.Learning.Scope != scope {
			continue
		}
		l := learning{Learning: e.Learning}
		for _, v := range e.Evidence {
			l.Evidence = append(l.Evidence, evidence{Evidence: v})
		}
		slices.SortFunc(l.Evidence, func(a, b evidence) int { return cmp.Compare(a.Key, b.Key) })
		f.Learnings = append(f.Learnings, l)
	}
	slices.SortFunc(f.Learnings, func(a, b learning) int { return cmp.Compare(a.Key, b.Key) })
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(f) // plain values: it cannot fail
	return b.Bytes()
}

// maxFile is the largest file that is read, in bytes.
const maxFile = 32 << 20

// Read reads a file of a scope. The first mistake is an error, which names its line, or the
// learning that has it.
func Read(data []byte) (scope string, entries []Entry, err error) {
	if len(data) > maxFile {
		return "", nil, fmt.Errorf("the file has %d bytes, over %d", len(data), maxFile)
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\uFEFF"))))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		at := d.InputOffset()
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			at = syntax.Offset
		case errors.As(err, &kind):
			at = kind.Offset
		}
		return "", nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(int(at), len(data))], []byte("\n")), err)
	}
	if f.Scope == "" {
		return "", nil, errors.New("the scope is missing: want repo:OWNER/NAME or org:OWNER")
	}
	keys := map[string]bool{}
	for _, l := range f.Learnings {
		if keys[l.Key] {
			return "", nil, fmt.Errorf("the learning %q is there twice: merge the two", l.Key)
		}
		keys[l.Key] = true
		e, err := l.entry(f.Scope)
		if err != nil {
			return "", nil, fmt.Errorf("the learning %q: %w", l.Key, err)
		}
		entries = append(entries, e)
	}
	return f.Scope, entries, nil
}

var (
	types  = []pipeline.LearningType{pipeline.LearningEpisodic, pipeline.LearningSemantic, pipeline.LearningProcedural}
	states = []pipeline.LearningState{pipeline.LearningActive, pipeline.LearningWithdrawn, pipeline.LearningMerged, pipeline.LearningRetired, pipeline.LearningForgotten}
)

// entry checks a learning of a file.
func (l *learning) entry(scope string) (Entry, error) {
	e := Entry{Learning: l.Learning}
	e.Learning.Scope, e.Learning.Created, e.Learning.Touched = scope, l.Created.UTC(), l.Touched.UTC()
	switch {
	case l.Key == "" || l.Content == "" || l.Created == time.Time{}:
		return e, errors.New("it needs a key, content and created")
	case !slices.Contains(types, l.Type):
		return e, fmt.Errorf("type is %q, want one of %q", l.Type, types)
	case !slices.Contains(states, l.State):
		return e, fmt.Errorf("state is %q, want one of %q", l.State, states)
	case min(l.Base, l.Confidence, l.Weight) < 0 || max(l.Base, l.Confidence, l.Weight) > 1:
		return e, errors.New("base, confidence and weight are numbers from 0 to 1")
	}
	keys := map[string]bool{}
	for _, v := range l.Evidence {
		switch {
		case v.Key == "" || v.At == time.Time{}:
			return e, errors.New("evidence needs a key and at")
		case keys[v.Key]:
			return e, fmt.Errorf("the evidence %q is there twice", v.Key)
		case v.Delta < -1 || v.Delta > 1:
			return e, fmt.Errorf("delta of the evidence %q is not a number from -1 to 1", v.Key)
		case v.Off:
		case v.Delta > 0:
			e.Learning.For++
		case v.Delta < 0:
			e.Learning.Against++
		}
		keys[v.Key] = true
		v.Evidence.Of, v.Evidence.At = l.Key, v.At.UTC()
		e.Evidence = append(e.Evidence, v.Evidence)
	}
	return e, nil
}
