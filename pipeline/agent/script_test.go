package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"forge/pipeline"
)

var update = flag.Bool("update", false, "write what came out into the scripts")

// TestScripts drives the real loop with tapes; testdata/README.md has the format.
// Covers I1, I2, I4, B2, B4, B7, T5, V5.
func TestScripts(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { runScript(t, name) })
	}
}

// scriptJob is a script's job.yaml.
type scriptJob struct {
	Model    string             `json:"model"`
	Ref      pipeline.PhaseRef  `json:"ref"`
	Run      json.RawMessage    `json:"run"` // over newRun
	Tree     []string           `json:"tree"`
	Failures []pipeline.Failure `json:"failures"`

	Instructions []Doc                `json:"instructions"`
	Comments     []Comment            `json:"comments"`
	Baseline     *pipeline.TestReport `json:"baseline"`

	Changed []pipeline.TestChange `json:"changed"` // for JustifyTests, in place of Analyse
}

func runScript(t *testing.T, name string) {
	ar, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var tape txtar.Archive
	var sj scriptJob
	var diff string
	repo, want, since := map[string]string{}, map[string]string{}, map[string]string{}
	for _, f := range ar.Files {
		dir, rest, _ := strings.Cut(f.Name, "/")
		switch {
		case sectionName.MatchString(f.Name):
			tape.Files = append(tape.Files, f)
		case dir == "repo":
			repo[rest] = string(f.Data)
		case f.Name == "job.yaml":
			readYAML(t, f.Data, &sj)
		case f.Name == "diff":
			diff = string(f.Data)
		case dir == "since":
			since[rest] = string(f.Data)
		case dir == "want":
			want[rest] = string(f.Data)
		default:
			t.Fatalf("%s: section %q is not known", name, f.Name)
		}
	}
	run := newRun()
	if len(sj.Run) > 0 {
		if err := json.Unmarshal(sj.Run, run); err != nil {
			t.Fatalf("%s: job.yaml: %v", name, err)
		}
	}
	ws, log := newWorkspace(t, repo), &eventLog{}
	a := newAgent(t, firstOf(sj.Model, "tape:script"), tapeModel(t, string(txtar.Format(&tape))))
	j := job(run, sj.Ref, ws, log)
	j.Diff, j.Tree, j.Failures = diff, sj.Tree, sj.Failures
	j.Instructions, j.Comments, j.Baseline = sj.Instructions, sj.Comments, sj.Baseline
	if len(since) > 0 {
		j.Since = func(_ context.Context, from string) (string, error) {
			if patch, ok := since[from]; ok {
				return patch, nil
			}
			return "", fmt.Errorf("there is no commit %s", from)
		}
	}
	result, usage, err := perform(t, a, j, sj.Changed)

	got := map[string]string{"events": log.String()}
	if err != nil {
		got["error"] = err.Error() + "\n"
	} else {
		got["result"] = pretty(result)
	}
	after := ws.files(t)
	for p, content := range after {
		if content != repo[p] {
			got["repo/"+p] = content
		}
	}
	for p := range repo {
		if _, ok := after[p]; !ok {
			got["repo/"+p] = "(removed)\n"
		}
	}
	if d := cmp.Diff(log.usage(), usage); d != "" {
		t.Errorf("usage returned differs from the events' (-events +returned):\n%s", d)
	}
	if *update {
		updateScript(t, name, ar, got)
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
}

// perform runs the phase that a job is for.
func perform(t *testing.T, a *Agent, j Job, changed []pipeline.TestChange) (any, pipeline.Usage, error) {
	switch j.Ref.Phase {
	case pipeline.PhasePlan:
		return anyOf(a.Plan(t.Context(), j))
	case pipeline.PhaseImplement:
		return anyOf(a.Implement(t.Context(), j))
	case pipeline.PhaseReview:
		return anyOf(a.Review(t.Context(), j))
	case pipeline.PhaseTest:
		if len(changed) > 0 {
			return anyOf(a.JustifyTests(t.Context(), j, changed))
		}
		return anyOf(a.Analyse(t.Context(), j))
	}
	return nil, pipeline.Usage{}, errors.New("job.yaml: ref.phase must be plan, implement, review or test")
}

func anyOf[T any](v T, u pipeline.Usage, err error) (any, pipeline.Usage, error) { return v, u, err }

func readYAML(t *testing.T, data []byte, into any) {
	t.Helper()
	j, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatalf("job.yaml: %v", err)
	}
	if err := json.Unmarshal(j, into); err != nil {
		t.Fatalf("job.yaml: %v", err)
	}
}

func updateScript(t *testing.T, name string, ar *txtar.Archive, got map[string]string) {
	ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want/") })
	for _, k := range slices.Sorted(maps.Keys(got)) {
		ar.Files = append(ar.Files, txtar.File{Name: "want/" + k, Data: []byte(got[k])})
	}
	if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
		t.Fatal(fmt.Errorf("update %s: %w", name, err))
	}
}
