// Package mergeable says how a pull request stands to the branch that it goes into, in
// the words that GitHub's side and the runs share.
package mergeable

// State is how a pull request stands to its base branch at one moment. The zero value
// says that nothing stands in the way and that nothing of the base is missing.
type State struct {
	Base     string `json:"base"`               // SHA of the base branch's head
	Behind   int    `json:"behind,omitempty"`   // commits of the base that the pull request lacks
	Conflict bool   `json:"conflict,omitempty"` // it does not merge by itself
	Required bool   `json:"required,omitempty"` // it may be merged only when it lacks none
	Unknown  bool   `json:"unknown,omitempty"`  // GitHub is still working out whether it merges, or it is closed: ask again later
}

// News reports whether a state says something that people were not told with the last
// one, nil when they were told nothing. How far behind a pull request is, is told each
// time that it has doubled: a busy branch is not followed commit by commit.
func (s State) News(told *State) bool {
	if told == nil {
		return s.Conflict || s.Behind > 0
	}
	if s.Unknown {
		return s.Behind >= 2*max(told.Behind, 1) && !told.Conflict
	}
	return s.Conflict != told.Conflict || s.Required && !told.Required || s.Behind == 0 || s.Behind >= 2*max(told.Behind, 1)
}
