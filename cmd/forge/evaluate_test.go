package main

import (
	"encoding/json"
	"testing"

	"forge/cmd/forge/shell"
	"forge/pipeline/simulate"
)

// The loop's evaluation says the same twice, in a table and as JSON.
func TestEvaluateLoop(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	args := []string{"evaluate", "loop", "--runs", "100", "--sweep", "0", "--seed", "3"}
	first := c.run(shell.Done, []string{"100 simulated runs (seed 3)", "none (ends at 25)", "diminishing_returns", "flaky test phases"}, args...)
	if again := c.run(shell.Done, nil, args...); again != first {
		t.Errorf("the same seed gives another table:\n%s\n%s", first, again)
	}
	var res simulate.Result
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, append(args, "--json")...)), &res); err != nil {
		t.Fatal(err)
	}
	if len(res.Profiles) != 2 || res.Profiles[0].Forge.Runs != 100 || res.Seed != 3 || len(res.Limits) != 25 {
		t.Errorf("as JSON: %+v", res)
	}
	c.run(shell.Done, []string{"not heard that it cannot", "patient: wasted iterations", "all of them", "unsolvable tasks"}, "evaluate", "loop",
		"--runs", "50", "--sweep", "5")
	c.run(shell.Misused, []string{"--runs takes a number from 1"}, "evaluate", "loop", "--runs", "0")
	c.run(shell.Done, []string{"loop"}, "evaluate")
	c.run(shell.Misused, []string{"--pulls takes a number from 100"}, "evaluate", "learning", "--pulls", "5")
	c.run(shell.Failed, []string{"bigger repository"}, "evaluate", "learning", "--repo", t.TempDir())
}
