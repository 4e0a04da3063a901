package learn

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Limits of what a person writes into a learning.
const (
	MaxWords = maxContent // bytes of its words, and of when it matters
	maxList  = 50         // paths, or tags
)

// Edit is what a person changes of a learning; nil leaves it as it is. Its errors
// are for people.
type Edit struct {
	Content, Context *string
	Category         *pipeline.Category
	Confidence       *float64 // before decay, with the evidence that there is
	Paths, Tags      *[]string
}

// Check says what of an edit can be for no learning. It is nothing that depends on
// what the learning is now: that is for [Edit.Apply].
func (e *Edit) Check() error {
	switch {
	case *e == Edit{}:
		return errors.New("nothing is to be changed")
	case e.Content != nil && Tidy(*e.Content, MaxWords) == "":
		return errors.New("a learning without words is none: forget it to take it out of use")
	case e.Confidence != nil && !(*e.Confidence >= 0 && *e.Confidence <= 1):
		return fmt.Errorf("confidence is a number from 0 to 1, got %v", *e.Confidence)
	}
	for _, text := range []*string{e.Content, e.Context} {
		if text != nil && len(*text) > MaxWords {
			return fmt.Errorf("these words have %d bytes, over %d: say it shorter", len(*text), MaxWords)
		}
	}
	for _, f := range []struct {
		name string
		list *[]string
	}{{"paths", e.Paths}, {"tags", e.Tags}} {
		if f.list == nil {
			continue
		}
		if n := len(*f.list); n > maxList {
			return fmt.Errorf("these are %d %s, over %d: a pattern such as api/*.go stands for many", n, f.name, maxList)
		}
		for _, s := range *f.list {
			if len(s) > maxField {
				return fmt.Errorf("one of the %s has %d bytes, over %d", f.name, len(s), maxField)
			}
		}
	}
	return nil
}

// Apply changes a learning, whose evidence is what there is for and against it.
// Texts are tidied: they hold no secret and nothing that people do not see.
func (e *Edit) Apply(l *pipeline.Learning, evidence []pipeline.Evidence) error {
	if l.State == pipeline.LearningForgotten {
		return errors.New("it is forgotten: what people forget is out of use for good")
	}
	if e.Category != nil {
		if c := *e.Category; c != "" && c != l.Category && !slices.Contains(pipeline.Categories(), c) {
			return fmt.Errorf("there is no category %.40q: take one of %s, or none", c, text.Join(pipeline.Categories(), ", "))
		}
		l.Category = *e.Category
	}
	if e.Content != nil {
		l.Content = Tidy(*e.Content, MaxWords)
	}
	if e.Context != nil {
		l.Context = Tidy(*e.Context, MaxWords)
	}
	if e.Paths != nil {
		l.Paths = tidyList(*e.Paths)
	}
	if e.Tags != nil {
		l.Tags = tidyList(*e.Tags)
	}
	if e.Confidence == nil {
		return nil
	}
	sum := l.Sway(evidence) / 1e6
	base := math.Round((*e.Confidence-sum)*1e6) / 1e6
	if base < 0 || base > 1 {
		return fmt.Errorf("its evidence changes confidence by %+.2f, so that it can be from %.2f to %.2f, not %v",
			sum, max(0, min(1, sum)), max(0, min(1, 1+sum)), *e.Confidence)
	}
	l.Base = base
	return nil
}

// tidyList tidies a list of short texts: each once, no empty one.
func tidyList(list []string) (out []string) {
	for _, s := range list {
		if s = strings.Join(strings.Fields(Tidy(s, maxField)), " "); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// HalfLives say how long it takes until half is gone of what age takes from the
// confidence of a learning of a type, when nothing confirms it; see [Effective].
func HalfLives() map[pipeline.LearningType]time.Duration { return maps.Clone(halfLives) }
