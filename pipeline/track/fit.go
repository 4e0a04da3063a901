package track

import (
	"fmt"
	"strings"
)

// Fit is how much of its limits a task gets, by what it asks for: never more than is set.
type Fit struct {
	Percent int      `json:"percent"`
	Score   int      `json:"score"`
	Reasons []string `json:"reasons,omitempty"`
}

// FitOf says how much of its limits a task gets. The shares are assumed, as the points are.
func FitOf(title, body string, tree []string) *Fit {
	f := &Fit{Percent: 50}
	switch f.Score, f.Reasons = Score(title, body, tree); {
	case f.Score >= fromFull:
		f.Percent = 100
	case f.Score >= fromStandard:
		f.Percent = 85
	case f.Score > 0:
		f.Percent = 70
	}
	return f
}

// Of is the share of a limit, rounded up; no limit stays none.
func (f *Fit) Of(limit int64) int64 { return (limit*int64(f.Percent) + 99) / 100 }

// String says it for people: "70 % of those that are set, by its score of 2: UI, 4 asks".
func (f *Fit) String() string {
	s := fmt.Sprintf("%d %% of those that are set, by its score of %d", f.Percent, f.Score)
	if len(f.Reasons) > 0 {
		s += ": " + strings.Join(f.Reasons, ", ")
	}
	return s
}
