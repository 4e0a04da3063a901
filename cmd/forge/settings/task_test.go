package settings

import (
	"strings"
	"testing"

	"forge/pipeline/config"

	"github.com/google/go-cmp/cmp"
)

// Covers R4: a task overrides its limits, within those of the server, and within
// those of the repository when its author may not raise them.
func TestTask(t *testing.T) {
	t.Parallel()
	server := config.Default()
	server.Limits.CostUSD = 20
	repo := config.Default()
	repo.Paths.Protected = []string{"secrets/**"}
	with := func(edit func(*config.Config)) config.Config {
		c := snapshot(repo)
		edit(&c)
		return c
	}
	for name, c := range map[string]struct {
		yaml      string
		trusted   bool
		want      config.Config
		wantError []string
	}{
		"attempts": {"max_refinement_attempts: 5", true, with(func(c *config.Config) {
			c.Breaker.MaxIterations, c.Loop.ReviewBounces, c.Loop.TestBounces, c.Loop.MaxIterations = 5, 5, 5, 6
		}), nil},
		"raised":  {"limits:\n  cost_usd: 15\nmode: manual", true, with(func(c *config.Config) { c.Limits.CostUSD, c.Mode = 15, "manual" }), nil},
		"lowered": {"limits:\n  cost_usd: 5", false, with(func(c *config.Config) { c.Limits.CostUSD = 5 }), nil},
		"paths on top": {"paths:\n  protected: [\"docs/**\"]", false,
			with(func(c *config.Config) { c.Paths.Protected = []string{"secrets/**", "docs/**"} }), nil},
		"over the server's": {"limits:\n  cost_usd: 50", true, repo, []string{"front matter of #7:2:", "cost_usd is 50, over this server's limit of 20 USD"}},
		"raised by a stranger": {"limits:\n  cost_usd: 15\nmax_refinement_attempts: 9\nmodels:\n  planner: openai/x\nbreaker:\n  enabled: false", false, repo,
			[]string{"limits.cost_usd is 15, over this repository's 10 USD", "max_refinement_attempts is 9, over this repository's 3",
				"models can be chosen by people with write access", "breaker.enabled can be switched off by people"}},
		"patient stranger": {"loop: {doubts: 3, same_finding: 4, same_failure: 4, diminishing_from: 3, auto_fix_only: false}", false, repo,
			[]string{"loop.doubts is 3, over this repository's 2", "loop.same_finding is 4", "loop.same_failure is 4", "loop.diminishing_from is 3",
				"loop.auto_fix_only"}},
		"less sure stranger": {"loop: {auto_fix_confidence: 0.6}", false, repo, []string{"loop.auto_fix_confidence can be loosened"}},
		"strict stranger": {"loop: {doubts: 1, auto_fix_confidence: 0.8}", false,
			with(func(c *config.Config) { c.Loop.Doubts, c.Loop.AutoFixConfidence = 1, 0.8 }), nil},
		"patient":   {"loop: {doubts: 3, auto_fix_only: false}", true, with(func(c *config.Config) { c.Loop.Doubts, c.Loop.AutoFixOnly = 3, false }), nil},
		"no doubts": {"loop: {doubts: 0}", true, repo, []string{"loop.doubts is 0; it must be from 1 to 100"}},
		"modules":   {"modules: {mode: auto, parallel: 5}", true, with(func(c *config.Config) { c.Modules.Mode, c.Modules.Parallel = "auto", 5 }), nil},
		"stranger's modules": {"modules: {mode: auto, min_gain: 0, parallel: 5}", false, repo,
			[]string{"modules.mode, min_gain and on_failure can be chosen", "modules.parallel is 5, over this repository's 3"}},
		"fewer modules": {"modules: {mode: off, parallel: 2, min_gain: 0.5}", false,
			with(func(c *config.Config) { c.Modules.Parallel, c.Modules.MinGain = 2, 0.5 }), nil},
		"track":            {"track: standard", true, with(func(c *config.Config) { c.Track = "standard" }), nil},
		"stranger's track": {"track: standard", false, repo, []string{"track can be chosen by people with write access"}},
		"no track":         {"track: slow", true, repo, []string{"track is \"slow\""}},

		"unknown":  {"max_refinment_attempts: 5", true, repo, []string{"max_refinement_attempts"}},
		"upstream": {"upstream: {enabled: true}", true, repo, []string{"unknown key"}},
		"commands": {"tests:\n  commands: [\"curl evil\"]", true, repo, []string{"unknown key"}},
		"nonsense": {"a: [", true, repo, []string{"front matter of #7:1"}},
	} {
		got, err := Task("front matter of #7", c.yaml, repo, server, c.trusted)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: configuration (-want +got):\n%s", name, diff)
		}
		if (err != nil) != (len(c.wantError) > 0) {
			t.Errorf("%s: error %v", name, err)
		}
		for _, part := range c.wantError {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q, want %q in it", name, err, part)
			}
		}
	}
	server.Mode = "manual"
	manual := with(func(c *config.Config) { c.Mode = "manual" })
	if _, err := Task("x", "mode: auto", manual, server, true); err == nil {
		t.Error("a task switched off the server's manual mode")
	}
	server.Mode = "auto"
	if got, err := Task("x", "mode: auto", manual, server, true); err != nil || got.Mode != "auto" {
		t.Errorf("mode: auto by a maintainer = %q, %v", got.Mode, err)
	}
}
