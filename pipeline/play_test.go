package pipeline_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/pipelinetest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Covers T1–T7, B1, B3, B5, B6, R1–R9, V1, V2, V4, V5: each file of testdata/loop
// is a script of outcomes and the trace of what Decide made of it.
func TestLoop(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/loop/*.txtar")
	if len(files) < 60 {
		t.Fatalf("%d scripts in testdata/loop", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, script, err := pipelinetest.Load(ar)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Play(script); err != nil {
				t.Fatal(err)
			}
			progress, _ := json.MarshalIndent(p.Run.Progress(), "", "  ")
			views := map[string]string{
				"trace": p.Trace.String(), "report": p.Run.Report(len(p.Run.Iterations)),
				"scratchpad": p.Run.Scratchpad(), "progress.json": string(progress) + "\n", "explain": p.Run.Explain(),
			}
			for i, f := range ar.Files {
				got, ok := views[f.Name]
				if !ok {
					continue
				}
				if *update {
					ar.Files[i].Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s of %s (-want +got):\n%s", f.Name, file, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			checkReplay(t, p.Events, &p.Run)
		})
	}
}

// checkReplay folds the events again, from their stored form, and wants the same
// run byte for byte (I2).
func checkReplay(t interface {
	Helper()
	Fatalf(string, ...any)
}, events []Event, want *Run) {
	t.Helper()
	raw, err := json.Marshal(events)
	if err != nil {
		t.Fatalf("marshal events: %v", err)
	}
	var again []Event
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatalf("unmarshal events: %v", err)
	}
	var r Run
	for _, e := range again {
		r.Apply(e)
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(&r)
	if string(a) != string(b) {
		t.Fatalf("replay differs (-want +got):\n%s", cmp.Diff(string(a), string(b)))
	}
}
