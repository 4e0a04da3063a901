// Package lock says what package managers have written into lock files for a change.
package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Update is how the lock files of a change differ from those of its base.
type Update struct {
	Files    []string  `json:"files"`              // lock files that were written
	Packages []Package `json:"packages,omitempty"` // what came in with them
}

// Package is a version of a package that the base does not have.
type Package struct {
	Manager  string `json:"manager"`            // go, npm, pnpm, yarn
	Dir      string `json:"dir,omitempty"`      // of the project; "": the top
	Name     string `json:"name"`               //
	Version  string `json:"version"`            //
	From     string `json:"from,omitempty"`     // the version that it takes the place of; "": none
	Indirect bool   `json:"indirect,omitempty"` // another package asks for it
}

// String names a package for people.
func (p Package) String() string {
	out := p.Name + " " + p.Version
	if p.From != "" {
		out = p.Name + " " + p.From + " → " + p.Version
	}
	if p.Indirect {
		out += " (indirect)"
	}
	return out
}

// rank brings what is asked for directly before what another package asks for.
func (p Package) rank() int {
	if p.Indirect {
		return 1
	}
	return 0
}

// mostNamed is how many packages of a project are named.
const mostNamed = 40

// Lines says what came in, one line for each project, what is asked for directly first.
func (u *Update) Lines() (lines []string) {
	if u == nil {
		return nil
	}
	by := map[string][]Package{}
	var projects []string
	for _, p := range u.Packages {
		project := p.Manager
		if p.Dir != "" {
			project += " in " + p.Dir
		}
		if by[project] == nil {
			projects = append(projects, project)
		}
		by[project] = append(by[project], p)
	}
	for _, project := range projects {
		list := by[project]
		slices.SortStableFunc(list, func(a, b Package) int {
			return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
		})
		var names []string
		for _, p := range list[:min(len(list), mostNamed)] {
			names = append(names, p.String())
		}
		if n := len(list) - mostNamed; n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		lines = append(lines, project+": "+strings.Join(names, ", "))
	}
	return lines
}
