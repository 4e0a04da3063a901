package pipeline_test

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	. "forge/pipeline"
)

// Logs that an older version wrote fold to the runs that it folded them to, byte for
// byte and after every event: testdata/recorded/folds.txt has a digest of all of
// them for each log. Neither file is ever written again.
func TestRecordedLogs(t *testing.T) {
	want := map[string]string{}
	sums, err := os.ReadFile("testdata/recorded/folds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[name] = sum
	}
	f, err := os.Open("testdata/recorded/logs.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	seen := 0
	for ; lines.Scan(); seen++ {
		var log struct {
			Name   string  `json:"name"`
			Events []Event `json:"events"`
		}
		if err := json.Unmarshal(lines.Bytes(), &log); err != nil {
			t.Fatal(err)
		}
		var r Run
		h := sha256.New()
		for _, e := range log.Events {
			r.Apply(e)
			run, err := json.Marshal(&r)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(run)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)); got != want[log.Name] {
			t.Errorf("the fold of %q has changed: digest %s, want %s", log.Name, got, want[log.Name])
		}
	}
	if err := lines.Err(); err != nil || seen != len(want) || seen < 150 {
		t.Errorf("%d logs, want %d: %v", seen, len(want), err)
	}
}
