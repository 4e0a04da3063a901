package pipeline_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "forge/pipeline"
)

// Logs that an older version wrote fold to the runs that it folded them to, byte for
// byte and after every event: testdata/recorded/folds.txt has a digest of all of
// them for each log. Neither file is ever written again.
func TestRecordedLogs(t *testing.T) {
	t.Parallel()
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
			h.Write(asRecorded(t, run))
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)); got != want[log.Name] {
			t.Errorf("the fold of %q has changed: digest %s, want %s", log.Name, got, want[log.Name])
		}
	}
	if err := lines.Err(); err != nil || seen != len(want) || seen < 150 {
		t.Errorf("%d logs, want %d: %v", seen, len(want), err)
	}
}

// recordedKeys are the keys of a run in the order in which the version wrote them that
// made the digests.
var recordedKeys = strings.Fields(`id trace seq state started updated repo task by config base branch head plan iterations
	findings failures bounces gates notes former asked await fault ended waivers reopened closed edited passed known known_as
	cleared fix untested last instructions baseline approved allowed base_head gone simpler planned stopped stopped_by attempts
	active steps tools usage spent millis published rev counters`)

// asRecorded puts the keys of a run into that order. Keys that it lacked go last.
func asRecorded(t *testing.T, run []byte) []byte {
	t.Helper()
	var values map[string]json.RawMessage
	if err := json.Unmarshal(run, &values); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, k := range append(slices.Clip(recordedKeys), slices.Sorted(maps.Keys(values))...) {
		if v, ok := values[k]; ok {
			fmt.Fprintf(&out, ",%q:%s", k, v)
			delete(values, k)
		}
	}
	return append(append([]byte("{"), out.Bytes()[min(1, out.Len()):]...), '}')
}
