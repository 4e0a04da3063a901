// Package settings reads configuration: the server's (a file and the
// environment) and a repository's (.github/forge.yml).
//
// Both are strict. An unknown key, a wrong type or a value that cannot be meant
// is an error that says where it stands and how to mend it, and all errors of a
// file are reported together. The package stores nothing and opens no files but
// those that the server's own configuration names.
package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"forge/pipeline/config"
)

// Repository reads a repository's .github/forge.yml on top of the server's
// configuration. Name is what errors call the file. An empty file gives base.
//
// The server's limits, its time for tests and its manual mode bind: a repository
// can be stricter, never looser (S26); its protected paths come on top. Base
// itself is never changed, so the answer can be kept as a run's snapshot (R4).
// The error lists every problem, one after the other, each with line, column and
// the line itself; then the configuration is base.
func Repository(name string, yaml []byte, base config.Config) (config.Config, error) {
	r := &reader{name: name, caps: limitCaps(base)}
	c := snapshot(base)
	r.read(yaml, &c)
	if base.Mode == config.ModeManual && c.Mode == config.ModeAuto {
		r.problems = append(r.problems, fmt.Errorf("%s: mode is \"auto\", but this server runs in manual mode: remove the key, or ask the server's operator", name))
	}
	if p := c.Production; p.Run && !p.Issue {
		r.problems = append(r.problems, fmt.Errorf("%s: production.run is true, but production.issue is not: a run works on an issue, so switch both on", name))
	}
	for _, why := range append(wrongShip(c.Ship), wrongSetup(c.Setup)...) {
		r.problems = append(r.problems, fmt.Errorf("%s: %s", name, why))
	}
	if err := r.err(); err != nil {
		return snapshot(base), err
	}
	profiled(r.set, &c.Loop, &c.Breaker)
	if r.set["paths.protected"] {
		for _, glob := range base.Paths.Protected {
			if !slices.Contains(c.Paths.Protected, glob) {
				c.Paths.Protected = append(c.Paths.Protected, glob)
			}
		}
	}
	return c, nil
}

// wrongShip says what does not go together about shipping.
func wrongShip(s config.Ship) (out []string) {
	has := func(list []string, e string) bool { // GitHub makes no difference between letter cases
		return slices.ContainsFunc(list, func(o string) bool { return strings.EqualFold(o, e) })
	}
	for i, e := range s.Environments {
		if has(s.Environments[:i], e) {
			out = append(out, fmt.Sprintf("ship.environments[%d] is %q, which is there already: remove one", i, e))
		}
	}
	for i, e := range s.Ask {
		if !has(s.Environments, e) {
			out = append(out, fmt.Sprintf("ship.ask[%d] is %q, which is not among ship.environments: add it there, or remove it here", i, e))
		}
	}
	if s.Via == "watch" && len(s.Ask) > 0 {
		out = append(out, "ship.ask needs ship.via: deployments: with watch the repository deploys by itself, and nobody can be asked before; remove one of them")
	}
	return out
}

// wrongSetup says what does not go together about the setup.
func wrongSetup(s config.Setup) (out []string) {
	for i, dir := range s.Cache {
		for j, other := range s.Cache {
			if i != j && (dir == other && j < i || strings.HasPrefix(dir, other+"/")) {
				out = append(out, fmt.Sprintf("setup.cache[%d] is %q, which setup.cache[%d], %q, holds already: remove it", i, dir, j, other))
			}
		}
	}
	return out
}

// snapshot copies a configuration with all that it refers to.
func snapshot(c config.Config) config.Config {
	c.Tests.Commands = slices.Clone(c.Tests.Commands)
	c.Tests.Integration, c.Tests.System = slices.Clone(c.Tests.Integration), slices.Clone(c.Tests.System)
	c.Paths.Protected = slices.Clone(c.Paths.Protected)
	c.Production.Environments = slices.Clone(c.Production.Environments)
	c.Production.Irreversible = slices.Clone(c.Production.Irreversible)
	c.Skills = slices.Clone(c.Skills)
	c.Review.Lenses = slices.Clone(c.Review.Lenses)
	c.Ship.Environments, c.Ship.Ask = slices.Clone(c.Ship.Environments), slices.Clone(c.Ship.Ask)
	c.Setup.Commands, c.Setup.Cache = slices.Clone(c.Setup.Commands), slices.Clone(c.Setup.Cache)
	c.Models = maps.Clone(c.Models)
	c.Quality = slices.Clone(c.Quality) // what is in them is never changed
	return c
}
