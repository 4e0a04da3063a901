package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/cmd/forge/shell"

	"github.com/google/go-cmp/cmp"
)

// Covers I2: the database that an older version wrote is brought up to date, its run is
// folded again from its log, and shown as that version showed it. The files under
// testdata/older are that version's: they are never written again.
func TestOlderDatabase(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	f, err := os.Open("testdata/older/forge.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(c.dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "forge.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if missing := lost(read(t, filepath.Join("testdata", "older", "report.txt")), c.run(shell.Done, nil, "show", "1", "--report")); missing != "" {
		t.Errorf("show --report lacks %q, in its place", missing)
	}
	for _, view := range []string{"scratchpad", "progress", "why"} {
		if diff := cmp.Diff(read(t, filepath.Join("testdata", "older", view+".txt")), c.run(shell.Done, nil, "show", "1", "--"+view)); diff != "" {
			t.Errorf("show --%s (-the version that wrote it +this one):\n%s", view, diff)
		}
	}
	var was, is map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join("testdata", "older", "run.json"))), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "show", "1", "--json")), &is); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the run (-the version that wrote it +this one):\n%s", diff)
	}
	c.run(shell.Done, []string{"phase.completed", "finding.detected", "loop.phase_bounce", "run.verified"}, "show", "1", "--events")
}

// lost returns the first line of a text that another, which may say more in between,
// does not have in its place; "" when there is none.
func lost(was, is string) string {
	rest := strings.Split(is, "\n")
	for line := range strings.SplitSeq(was, "\n") {
		i := slices.Index(rest, line)
		if i < 0 {
			return line
		}
		rest = rest[i+1:]
	}
	return ""
}
