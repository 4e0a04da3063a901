package server_test

import (
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

// When the pull request leaves draft, who started the run is assigned and asked to
// review it, once, where the repository says so.
func TestHandOver(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Files: map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\nready: {assign: true, review: true}\n"}})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	ts.Until("it is handed over", func(r *pipeline.Run) bool { return r.Published.Artefacts["handover"].Hash != "" })
	made := ts.GitHub.Mutations()
	if made["pulls/request-reviewers"] != 1 || made["issues/add-assignees"] != 1 || run.By.Login != "acme" {
		t.Errorf("%+v", made)
	}
}
