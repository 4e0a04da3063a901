//go:build e2e

package main

import (
	"encoding/json"
	"testing"

	"forge/cmd/forge/shell"
	"forge/learn/stream"
	"forge/pipeline/racetest"
)

// The evaluation runs on this tree, says the same twice, in a table and as JSON.
func TestEvaluateLearning(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	args := []string{"evaluate", "learning", "--repo", "../../learn", "--pulls", "100", "--seeds", "1"}
	if racetest.Enabled {
		return // a stream takes a minute there; its package plays some under the race detector
	}
	c.run(shell.Done, []string{"1 streams of 100 pull requests", "memory off", "product", "false alarm", "useful held", "true errors",
		"hasty: 10 % mistakes"}, args...)
	var res stream.Result
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, append(args, "--json")...)), &res); err != nil {
		t.Fatal(err)
	}
	if len(res.Models) == 0 || res.Pulls != 100 || res.Files == 0 || len(res.Verdicts) == 0 || res.Verdicts[0].Lost != 0 || res.Verdicts[0].Planted < 100 {
		t.Errorf("as JSON: %+v", res.Verdicts)
	}
}
