// Package track says how much process a task gets before it is implemented, and why: by
// what people set, or by a score of what the task asks for. It is pure and asks no model.
package track

import (
	"fmt"
	"strings"
)

// Track is how much process there is.
type Track string

// The tracks, and what has the score choose one.
const (
	Quick    Track = "quick"    // a plan; "" is that, too
	Standard Track = "standard" // a plan that is traced to the task's words and held against what is fixed
	Full     Track = "full"     // besides, roles write down what is wanted and how it is to be built, before it; see package role
	Auto     Track = "auto"     // of settings alone
)

// from is the score from which on a task gets a track. Assumed: the metric track_result
// says whether what a track costs is worth it.
const (
	fromStandard = 3
	fromFull     = 6
)

// Choice is the track of a run, and why.
type Choice struct {
	Track   Track    `json:"track"`
	By      string   `json:"by"`                // ByLabel, BySettings, ByScore
	Score   int      `json:"score,omitempty"`   // where it was asked for
	Reasons []string `json:"reasons,omitempty"` // what the score is made of
	UI      bool     `json:"ui,omitempty"`      // of the full track: the task is about what people see
}

// Who chose a track.
const (
	ByLabel    = "label"
	BySettings = "settings"
	ByScore    = "score"
)

// Labels returns the track that the labels of an issue ask for, "" for none. They are the
// start label with a track behind it, "forge:quick"; of several the one with least counts.
func Labels(start string, labels []string) Track {
	for _, t := range []Track{Quick, Full} {
		for _, l := range labels {
			if strings.EqualFold(l, start+":"+string(t)) {
				return t
			}
		}
	}
	return ""
}

// Choose says which track a run takes: a label's, else that of the settings. Nil is the
// quick one that nobody asked for. The task's files are read only where they matter.
func Choose(set, label Track, title, body string, tree func() ([]string, error)) (*Choice, error) {
	c := &Choice{Track: set, By: BySettings}
	switch {
	case (label == "" || label == Quick) && (set == "" || set == Quick):
		return nil, nil
	case label != "":
		c = &Choice{Track: label, By: ByLabel}
	case set == Auto:
		c = &Choice{Track: Quick, By: ByScore}
	}
	if c.By != ByScore && c.Track != Full {
		return c, nil
	}
	files, err := tree()
	if err != nil {
		return nil, err
	}
	if c.By == ByScore {
		switch c.Score, c.Reasons = Score(title, body, files); {
		case c.Score >= fromFull:
			c.Track = Full
		case c.Score >= fromStandard:
			c.Track = Standard
		}
	}
	c.UI = c.Track == Full && UI(title, body, files)
	return c, nil
}

// Above reports whether a run has more process than the quick track. Nil has not.
func (c *Choice) Above() bool { return c != nil && c.Track != Quick }

// Name is the track's name.
func (c *Choice) Name() Track {
	if c == nil {
		return Quick
	}
	return c.Track
}

// String says it for people: "standard, by its score of 4: 9 asks, 2 packages".
func (c *Choice) String() string {
	switch {
	case c == nil:
		return string(Quick)
	case c.By != ByScore && c.By != BySettings:
		return fmt.Sprintf("%s, by a %s", c.Track, c.By)
	case c.By == BySettings:
		return fmt.Sprintf("%s, by the settings", c.Track)
	case len(c.Reasons) == 0:
		return fmt.Sprintf("%s, by its score of %d", c.Track, c.Score)
	}
	return fmt.Sprintf("%s, by its score of %d: %s", c.Track, c.Score, strings.Join(c.Reasons, ", "))
}
