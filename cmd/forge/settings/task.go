package settings

import (
	"fmt"
	"maps"

	"forge/pipeline/config"
)

// taskFile is what an issue's front matter may set (R4). How the repository is
// tested is not among it: commands come from the default branch alone.
type taskFile struct {
	Attempts    int                    `json:"max_refinement_attempts"`
	Mode        config.Mode            `json:"mode"`
	OnBaseMoved string                 `json:"on_base_moved"`
	Gates       config.Gates           `json:"gates"`
	Loop        config.Loop            `json:"loop"`
	Limits      config.Limits          `json:"limits"`
	Breaker     config.Breaker         `json:"breaker"`
	Models      map[config.Role]string `json:"models"`
	Paths       config.Paths           `json:"paths"`
	Modules     config.Modules         `json:"modules"`
	Track       string                 `json:"track"`
}

// Task reads an issue's front matter on top of the repository's configuration.
// Server is the server's own: its limits bind. Trusted says that the author
// has write access to the repository; the front matter of anybody else can make the
// run stricter, never looser, and chooses no models: who sets the label may not
// have read it. The error lists every problem, with line and column.
func Task(name, yaml string, repo, server config.Config, trusted bool) (config.Config, error) {
	c, own := snapshot(repo), snapshot(repo) // maps are filled in place
	f := taskFile{Mode: c.Mode, OnBaseMoved: c.OnBaseMoved, Gates: c.Gates, Loop: c.Loop, Limits: c.Limits, Breaker: c.Breaker,
		Models: own.Models, Paths: own.Paths, Modules: c.Modules, Track: c.Track}
	caps := limitCaps(server)
	if !trusted {
		caps = limitCaps(repo)
		for key, most := range map[string]int{
			"loop.max_iterations": c.Loop.MaxIterations, "loop.review_bounces": c.Loop.ReviewBounces, "loop.test_bounces": c.Loop.TestBounces,
			"loop.same_finding": c.Loop.SameFinding, "loop.same_failure": c.Loop.SameFailure, "loop.diminishing_from": c.Loop.DiminishingFrom,
			"loop.doubts": c.Loop.Doubts, "loop.evidence": c.Loop.Evidence, "loop.faults": c.Loop.Faults,
			"breaker.max_iterations": c.Breaker.MaxIterations, "max_refinement_attempts": c.Breaker.MaxIterations,
			"modules.max": c.Modules.Max, "modules.parallel": c.Modules.Parallel, "modules.iterations": c.Modules.Iterations, "modules.rounds": c.Modules.Rounds,
		} {
			caps[key] = float64(most)
		}
	}
	r := &reader{name: name, caps: caps, untrusted: !trusted}
	r.read([]byte(yaml), &f)
	if !trusted && f.Loop.Proofs.Weaker(repo.Loop.Proofs) {
		r.problems = append(r.problems, fmt.Errorf("%s: loop.proofs can be loosened by people with write access to the repository: remove the key", name))
	}
	manual := repo.Mode == config.ModeManual && !trusted || server.Mode == config.ModeManual
	if manual && f.Mode == config.ModeAuto {
		r.problems = append(r.problems, fmt.Errorf("%s: mode is \"auto\", but this repository runs in manual mode: remove the key", name))
	}
	if !trusted && !maps.Equal(f.Models, repo.Models) {
		r.problems = append(r.problems, fmt.Errorf("%s: models can be chosen by people with write access to the repository: remove the key", name))
	}
	if !trusted && r.set["breaker.enabled"] && !f.Breaker.Enabled {
		r.problems = append(r.problems, fmt.Errorf("%s: breaker.enabled can be switched off by people with write access to the repository: remove the key", name))
	}
	if !trusted && (repo.Loop.AutoFixOnly && !f.Loop.AutoFixOnly || f.Loop.AutoFixConfidence < repo.Loop.AutoFixConfidence) {
		r.problems = append(r.problems, fmt.Errorf("%s: loop.auto_fix_only and loop.auto_fix_confidence can be loosened by people with write access to the repository: remove them", name))
	}
	if !trusted && f.Loop.Profile != repo.Loop.Profile {
		r.problems = append(r.problems, fmt.Errorf("%s: loop.profile can be chosen by people with write access to the repository: remove the key", name))
	}
	if !trusted && f.Track != repo.Track {
		r.problems = append(r.problems, fmt.Errorf("%s: track can be chosen by people with write access to the repository: remove the key", name))
	}
	if !trusted && widens(f.Modules, repo.Modules) {
		r.problems = append(r.problems, fmt.Errorf("%s: modules.mode, min_gain and on_failure can be chosen by people with write access to the repository; "+
			"anybody may write \"mode: off\" or a larger min_gain: remove the others", name))
	}
	if err := r.err(); err != nil {
		return snapshot(repo), err
	}
	profiled(r.set, &f.Loop, &f.Breaker)
	protected := append(snapshot(repo).Paths.Protected, f.Paths.Protected...)
	c.Mode, c.OnBaseMoved, c.Gates, c.Loop, c.Limits, c.Breaker, c.Models, c.Modules, c.Track = f.Mode, f.OnBaseMoved, f.Gates, f.Loop, f.Limits,
		f.Breaker, f.Models, f.Modules, f.Track
	if r.set["paths.protected"] {
		c.Paths.Protected = protected
	}
	if n := f.Attempts; n > 0 { // reworks, each of which is one more iteration
		c.Breaker.MaxIterations, c.Loop.ReviewBounces, c.Loop.TestBounces, c.Loop.MaxIterations = n, n, n, n+1
	}
	return c, nil
}

// widens reports whether a task's modules are more than the repository lets everybody have.
func widens(task, repo config.Modules) bool {
	return task.Mode != repo.Mode && task.Mode != "off" || task.MinGain < repo.MinGain || task.OnFailure != repo.OnFailure
}

// limitCaps are the limits that bind whoever configures on top of c.
func limitCaps(c config.Config) map[string]float64 {
	return map[string]float64{
		"limits.cost_usd":        c.Limits.CostUSD,
		"limits.tokens":          float64(c.Limits.Tokens),
		"limits.wall_minutes":    float64(c.Limits.WallMinutes),
		"limits.steps_per_phase": float64(c.Limits.Steps),
		"tests.timeout_minutes":  float64(c.Tests.TimeoutMinutes),
	}
}
