package evaluate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"forge/lab/stream"
)

// What learning is worth is measured on this tree, in a table and as JSON.
func TestLearning(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute: left out with -short")
	}
	args := []string{"learning", "--repo", "../../../learn", "--pulls", "100", "--seeds", "1"}
	out := labDone(t, args...)
	for _, want := range []string{"1 streams of 100 pull requests", "memory off", "product", "false alarm", "useful held", "true errors", "hasty: 10 % mistakes"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var res stream.Result
	if err := json.Unmarshal([]byte(labDone(t, append(args, "--json")...)), &res); err != nil {
		t.Fatal(err)
	}
	product := slices.IndexFunc(res.Verdicts, func(v stream.Verdict) bool { return v.Policy == stream.Product })
	if len(res.Models) == 0 || res.Pulls != 100 || res.Files == 0 || product < 0 {
		t.Fatalf("as JSON: %+v", res.Verdicts)
	}
	if v := res.Verdicts[product]; v.Planted < 100 || v.Lost*100 > v.Planted {
		t.Errorf("%d of %d true errors are not shown any more, over 1 %%", v.Lost, v.Planted)
	}
}
