package evaluate

import (
	"encoding/json"
	"strings"
	"testing"

	"forge/cmd/forge/shell"
	"forge/lab/simulate"
)

// The loop's evaluation says the same twice, in a table and as JSON.
func TestLoop(t *testing.T) {
	t.Parallel()
	args := []string{"loop", "--runs", "100", "--sweep", "0", "--seed", "3"}
	first := labDone(t, args...)
	if again := labDone(t, args...); again != first {
		t.Errorf("the same seed gives another table:\n%s\n%s", first, again)
	}
	var res simulate.Result
	if err := json.Unmarshal([]byte(labDone(t, append(args, "--json")...)), &res); err != nil {
		t.Fatal(err)
	}
	if len(res.Profiles) != 2 || res.Profiles[0].Forge.Runs != 100 || res.Seed != 3 || len(res.Limits) != 25 {
		t.Errorf("as JSON: %+v", res)
	}
	swept := labDone(t, "loop", "--runs", "50", "--sweep", "5")
	for _, want := range []string{"50 simulated runs (seed", "none (ends at 25)", "diminishing_returns", "flaky test phases", "not heard that it cannot",
		"patient: wasted iterations", "all of them", "unsolvable tasks"} {
		if !strings.Contains(swept, want) {
			t.Errorf("no %q in\n%s", want, swept)
		}
	}
	exits(t, shell.Misused, "--runs takes a number from 1", "loop", "--runs", "0")
	exits(t, shell.Misused, "--pulls takes a number from 100", "learning", "--pulls", "5")
	exits(t, shell.Failed, "bigger repository", "learning", "--repo", t.TempDir())
}
