package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/store"
)

// step is a moment at which something happened to a learning's confidence.
type step struct {
	At    time.Time
	What  string
	By    string
	Run   int64
	Delta float64 // what it did, before limits and decay
	Left  float64 // of the confidence, right after it
	Out   bool    // the learning is out of use from here on
	do    func(*courseState)
}

// courseState is what a learning's confidence depends on, at some moment.
type courseState struct {
	pipeline.Learning
	micro float64 // millionths that evidence adds to Base
	out   bool
}

func (s *courseState) left(at time.Time) float64 {
	l := s.Learning
	l.Confidence = max(0, min(1, math.Round(l.Base*1e6+s.micro)/1e6))
	return learn.Effective(l, at)
}

// touch notes that the learning was confirmed: decay counts from there.
func (s *courseState) touch(at time.Time) {
	if at.After(s.Touched) {
		s.Touched = at
	}
}

// point is what was left of the confidence at a moment; a gap comes before it when the
// learning was out of use.
type point struct {
	at   time.Time
	left float64
	gap  bool
}

// confidenceHistory computes how a learning's confidence went, from what is known of it: the
// evidence that counts, its changes, and when it was of use; and what decay left at
// each moment, by the same function that reads it. What was taken back is a step
// without effect: only when it last changed is known.
func confidenceHistory(l pipeline.Learning, evidence []pipeline.Evidence, history []store.MemoryChange, uses []store.Use, now time.Time) ([]step, []point) {
	s := courseState{Learning: l}
	s.Touched = l.Created
	if len(history) > 0 {
		var first pipeline.Learning
		if json.Unmarshal([]byte(history[0].Before), &first) == nil {
			s.Base, s.Type = first.Base, first.Type
		}
	}
	steps := courseSteps(l, evidence, history, uses)
	for i := range steps {
		if steps[i].At.Before(l.Created) { // what people did before it was born counts from its birth
			steps[i].At = l.Created
		}
		if steps[i].At.After(now) {
			steps[i].At = now
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.At.Compare(b.At) })
	span := max(now.Sub(l.Created), time.Second)
	line := []point{}
	last := l.Created
	for i := range steps {
		at := steps[i].At
		if !s.out {
			line = append(line, decay(&s, last, at, span)...)
		}
		wasOut := s.out
		steps[i].do(&s)
		steps[i].Left, steps[i].Out = s.left(at), s.out
		if !s.out {
			line = append(line, point{at, steps[i].Left, wasOut || len(line) == 0})
		}
		last = at
	}
	if !s.out {
		line = append(line, decay(&s, last, now, span)...)
	}
	return steps, line
}

// courseSteps collects what happened, in no order.
func courseSteps(l pipeline.Learning, evidence []pipeline.Evidence, history []store.MemoryChange, uses []store.Use) []step {
	steps := []step{{At: l.Created, What: "learnt from " + sourceWord(l.Source), By: l.Author.Login, Run: l.Run, do: func(*courseState) {}}}
	for _, e := range slices.Backward(evidence) {
		st := step{At: e.At, What: e.Why, By: e.Actor.Login, Run: e.Run, Delta: e.Delta, do: func(s *courseState) {
			s.micro += math.Round(e.Delta * 1e6)
			if e.Delta > 0 {
				s.touch(e.At)
			}
		}}
		if e.Off {
			st.What, st.Delta, st.do = "taken back: "+e.Why, 0, func(*courseState) {}
		}
		steps = append(steps, st)
	}
	for _, u := range slices.Backward(uses) {
		if u.Used {
			steps = append(steps, step{At: u.At, What: fmt.Sprintf("used in the %s of iteration %d", u.Phase, u.Iteration), Run: u.Run,
				do: func(s *courseState) { s.touch(u.At) }})
		}
	}
	for _, c := range history {
		var after pipeline.Learning
		if json.Unmarshal([]byte(c.After), &after) != nil {
			continue // unreachable: the store writes it
		}
		steps = append(steps, step{At: c.At, What: c.What, By: c.By.Login, do: func(s *courseState) {
			s.Base, s.Type, s.out = after.Base, after.Type, after.State != pipeline.LearningActive
		}})
	}
	return steps
}

// decay is how the confidence falls between two moments, as many points as can be seen.
func decay(s *courseState, from, to time.Time, span time.Duration) (line []point) {
	n := max(1, int(math.Ceil(100*float64(to.Sub(from))/float64(span))))
	for i := 1; i <= n; i++ {
		at := to
		if i < n {
			at = from.Add(to.Sub(from) / time.Duration(n) * time.Duration(i))
		}
		line = append(line, point{at: at, left: s.left(at)})
	}
	return line
}

// The size of the drawing; the style sheet scales it.
const (
	courseWide = 640
	courseHigh = 160
)

// drawCourse draws the line, with a dot where something happened.
func drawCourse(line []point, steps []step, from, to time.Time) template.HTML {
	if len(line) == 0 {
		return ""
	}
	span := float64(max(to.Sub(from), time.Second))
	x := func(t time.Time) float64 {
		return max(0, min(1, float64(t.Sub(from))/span)) * courseWide
	}
	y := func(left float64) float64 { return 2 + (courseHigh-4)*(1-left) }
	var path, marks strings.Builder
	for i, p := range line {
		pen := 'L'
		if i == 0 || p.gap {
			pen = 'M'
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", pen, x(p.at), y(p.left))
	}
	for _, s := range steps {
		kind := cmp.Or(map[bool]string{true: "out"}[s.Out], map[bool]string{true: "up"}[s.Delta > 0], map[bool]string{true: "down"}[s.Delta < 0], "other")
		fmt.Fprintf(&marks, `<path class="mark %s" d="M%.1f %.1fv.01"/>`, kind, x(s.At), y(s.Left))
	}
	var grid strings.Builder
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&grid, `<path class="grid" d="M0 %.1fH%d"/>`, y(v), courseWide)
	}
	label := fmt.Sprintf("Confidence from %.2f on %s to %.2f on %s; the table has the numbers.", line[0].left, day(line[0].at),
		line[len(line)-1].left, day(line[len(line)-1].at))
	// Only numbers, dates and words of this function go into it.
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">%s<path class="line" d="%s"/>%s</svg>`, //nolint:gosec
		courseWide, courseHigh, label, grid.String(), path.String(), marks.String()))
}
