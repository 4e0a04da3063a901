package evaluate

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The figures of prediction have these names, for whoever reads them by machine.
func TestEvaluatePrediction(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintf(&lines, `{"valid": %v, "text": "The name is wrong %d", "path": "a.go", "line": 1, "end": 2, "category": "Code Defect", "context": "Diff Level", "by": "w%d", "language": "Go", "pull": "o/r%d/pull/1"}`+"\n",
			i%2 == 0, i, i%2, i%6)
	}
	file := filepath.Join(t.TempDir(), "judged.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"prediction", file, "--json"}, {"prediction", file, "--train", file, "--json"}} {
		out := labDone(t, args...)
		var got map[string]float64
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %v in %s", args, err, out)
		}
		if diff := cmp.Diff([]string{"auc", "base_brier", "brier", "invalid_less", "valid_lost"}, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
		if got["auc"] != 1 || got["brier"] >= got["base_brier"] {
			t.Errorf("%v: %v, where who wrote it says all", args, got)
		}
	}
	if out := labDone(t, "prediction", file); !strings.Contains(out, "60 comments, 30 valid.") {
		t.Errorf("in words: %s", out)
	}
}
