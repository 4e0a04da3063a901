package config

import "cmp"

// Quality is a gate of quality: a value that is measured on the work once its tests have
// passed, and what it may be. Several of them stand under quality in the settings.
type Quality struct {
	Name    string   `json:"name,omitempty"`     // "": as Use
	Use     string   `json:"use,omitempty"`      // a preset; "": Command and Value say what is measured
	Command string   `json:"command,omitempty"`  // run by sh in the sandbox
	Value   string   `json:"value,omitempty"`    // how the value is read: number, json:PATH, regex:RE, lines, exit, size:GLOB, sarif:FILE
	Unit    string   `json:"unit,omitempty"`     //
	Max     *float64 `json:"max,omitempty"`      //
	Min     *float64 `json:"min,omitempty"`      //
	WorseBy Amount   `json:"worse_by,omitempty"` // how much worse than at the base it may be
	Better  string   `json:"better,omitempty"`   // "lower" or "higher"; "": higher where there is only a minimum, else lower
	Block   *bool    `json:"block,omitempty"`    // nil: it does
	Owner   []string `json:"owner,omitempty"`    // the roles that answer for it

	Breakdown      string   `json:"breakdown,omitempty"`       // a command that prints "value name" of the parts, one a line
	Repeats        int      `json:"repeats,omitempty"`         // measures of head and base in turn, for a value that varies; 0: one
	TimeoutMinutes int      `json:"timeout_minutes,omitempty"` // for one command; 0: as tests.timeout_minutes
	Package        string   `json:"package,omitempty"`         // of a preset for Go: which packages; "": all
	FromBase       []string `json:"from_base,omitempty"`       // globs of files, such as a linter's settings, that are judged as the base has them
}

// Amount is a difference from the base: "5%" of its value, or a number.
type Amount string

// Blocks reports whether work that misses the gate is sent back.
func (q Quality) Blocks() bool { return q.Block == nil || *q.Block }

// Blocking returns the names of the gates of quality that block.
func (c Config) Blocking() (out []string) {
	for _, q := range c.Quality {
		if q.Blocks() {
			out = append(out, cmp.Or(q.Name, q.Use))
		}
	}
	return out
}
