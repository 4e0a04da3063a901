package learn

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
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
	if e.Tags != nil {
		if err := CheckTags(*e.Tags); err != nil {
			return err
		}
	}
	if e.Paths != nil {
		return CheckPaths(*e.Paths)
	}
	return nil
}

// CheckTags says which tag says of a learning what it stands for, and is no stand, or is one
// of two.
func CheckTags(tags []string) error {
	stands := ""
	for _, t := range tags {
		s, ok := strings.CutPrefix(strings.TrimSpace(t), StandsTag)
		switch {
		case !ok || StandsTag+s == stands:
		case Stand(s).Tag() == "":
			return fmt.Errorf("the tag %q says of nothing that there is what it stands for: take one of %s, %s, %s, %s", t,
				StandAsk.Tag(), StandAvoid.Tag(), StandHow.Tag(), StandFact.Tag())
		case stands != "":
			return fmt.Errorf("the tags say that it stands for two things: %s and %s", stands, t)
		default:
			stands = StandsTag + s
		}
	}
	return nil
}

// CheckPaths says which path is none within a repository, or no pattern.
func CheckPaths(paths []string) error {
	for _, p := range paths {
		if p = strings.TrimSpace(p); OutsidePath(p) {
			return fmt.Errorf("%q is no path within the repository", p)
		}
		if _, err := path.Match(strings.ReplaceAll(p, "**", "*"), ""); err != nil {
			return fmt.Errorf("%q is no pattern of paths: a bracket in it is not closed", p)
		}
	}
	return nil
}

var drive = lazyregexp.New(`^[A-Za-z]:`)

// OutsidePath reports whether a path is absolute or climbs out of the repository.
func OutsidePath(p string) bool {
	p = strings.ReplaceAll(p, `\`, "/")
	clean := path.Clean(p)
	return path.IsAbs(p) || strings.HasPrefix(p, "~") || drive.MatchString(p) || clean == ".." || strings.HasPrefix(clean, "../")
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

// KeepStand is what a learning's tags become when its words to find it by are replaced: what
// it stands for stays, unless there are to be none, or another stand.
func KeepStand(now, before []string) []string {
	stands := func(t string) bool { return strings.HasPrefix(t, StandsTag) }
	if strings.Join(now, "") == "" || slices.ContainsFunc(now, stands) {
		return now
	}
	if i := slices.IndexFunc(before, stands); i >= 0 {
		return append(slices.Clone(now), before[i])
	}
	return now
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
