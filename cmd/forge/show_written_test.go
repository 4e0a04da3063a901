package main

import (
	"encoding/json"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/role"
	"forge/pipeline/upstream"
)

// What agents told each other and what roles wrote is printed with what was decided, and as JSON.
func TestShowWritten(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{
		Artefacts: []role.Artefact{{Role: role.Architect, Rev: 2, Body: "one call", Items: []role.Item{{ID: "DEC1", Kind: role.Decision, Text: "it is kept", Why: "it is quick"}}}},
		Upstream: []upstream.Feedback{{ID: "up/1", Kind: upstream.Infeasible, From: "architect", To: "product", State: upstream.Resolved, Why: "it may ask for less",
			Ask: upstream.Ask{About: []string{"AC1"}, Text: "too slow"}, Decision: &upstream.Reply{Choice: upstream.Limit, Criterion: "AC1", By: "ann", Human: true}}},
	}
	var b strings.Builder
	if err := showWritten(&b, run, true, true, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"up/1 (infeasible, architect → product, resolved)", "Decided by ann: AC1 is a known limitation", "because it may ask for less",
		"architect, revision 2", "  DEC1 (decision): it is kept, because it is quick"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	b.Reset()
	var got map[string][]any
	if err := showWritten(&b, run, true, false, true); err != nil || json.Unmarshal([]byte(b.String()), &got) != nil || len(got["upstream"]) != 1 || len(got) != 1 {
		t.Errorf("%v, %v, %s", err, got, b.String())
	}
}
