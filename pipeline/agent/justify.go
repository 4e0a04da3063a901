package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
)

var justifySchema = object(
	"tests", listOf(object(
		"id", typed("string", "The test's id, such as T1."),
		"must_change", typed("boolean", "Whether the task makes it impossible for the test to stay as it was."),
		"reason", typed("string", "What the task asks for that contradicts the test as it was, for the pull request. Otherwise why it should have stayed."),
	), "Every test, once."),
)

// justify asks for each test of the base that fails as it stood why it had to change.
func (p *phase) justify(ctx context.Context, list []pipeline.TestChange) ([]pipeline.TestChange, error) {
	out := slices.Clone(list)
	if len(out) == 0 {
		return out, nil
	}
	w := p.prompt().say("Judge changed tests. What you are to say of them is said at the end.").
		task().plan().instructions().mark().notes().comments().tests()
	now, stop := p.head(ctx)
	r := p.changeOf(out).Divide(wholeChange, now)
	if err := stop(); err != nil {
		return nil, err
	}
	w.changed(r, 0)
	w.recall().lastFault().data("Tests of the base that fail on the new code as they stood at the base", testList(out))
	s := w.say("%s", promptText("justify")).spec("justify", roleReviewer, system("reviewer"))
	s.tools, s.result = p.examining(), justifySchema
	s.accept = func(args json.RawMessage) []string { return checkReasons(out, args) }
	if err := p.converse(ctx, s); err != nil {
		return nil, err
	}
	return out, p.restore(ctx)
}

// changeOf is the job's change, with the files first that the tests depend on: whoever judges
// an edited test sees what of the product it was edited for.
func (p *phase) changeOf(list []pipeline.TestChange) change.Change {
	c := change.Read(p.job.Diff)
	rank := map[string]int{}
	for _, t := range list {
		for _, file := range t.Files {
			rank[file] = -1
		}
	}
	slices.SortStableFunc(c.Files, func(a, b *change.File) int {
		return min(rank[a.Path], rank[a.From]) - min(rank[b.Path], rank[b.From])
	})
	return c
}

func testList(list []pipeline.TestChange) string {
	var b strings.Builder
	for i, t := range list {
		fmt.Fprintf(&b, "T%d %s\n   as it stood, on the new code: failed\n%s\n   as the change has it: %s\n", i+1, t.Test, indent(middleCut(t.Error, 1500, 1500)), firstOf(t.Now, "unknown"))
		if len(t.Files) > 0 {
			fmt.Fprintf(&b, "   the change edited: %s\n", strings.Join(t.Files, ", "))
		}
	}
	return b.String()
}

// checkReasons reads the reviewer's reasons into list. A test without one must not
// change.
func checkReasons(list []pipeline.TestChange, args json.RawMessage) []string {
	var in struct {
		Tests []struct {
			ID         string `json:"id"`
			MustChange bool   `json:"must_change"`
			Reason     string `json:"reason"`
		} `json:"tests"`
	}
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	var bad []string
	strange := 0
	done := map[int]bool{}
	for _, t := range in.Tests {
		i := slices.IndexFunc(list, func(k pipeline.TestChange) bool { return k.Test == t.ID })
		var n int
		if _, err := fmt.Sscanf(t.ID, "T%d", &n); err == nil && n >= 1 && n <= len(list) && i < 0 {
			i = n - 1
		}
		reason := unlessNone(t.Reason)
		switch {
		case i < 0:
			bad = append(bad, fmt.Sprintf("tests: there is no %q", t.ID))
			strange++
			continue
		case done[i]:
			bad = append(bad, fmt.Sprintf("tests: T%d is answered twice", i+1))
		case t.MustChange && reason == "":
			bad = append(bad, fmt.Sprintf("tests: T%d had to change, and no reason says why", i+1))
		}
		done[i] = true
		if list[i].Reason = ""; t.MustChange {
			list[i].Reason = reason
		}
	}
	for i, t := range list {
		if !done[i] {
			bad = append(bad, fmt.Sprintf("tests: T%d (%s) is not answered", i+1, t.Test))
		}
	}
	if len(bad) == strange { // what is too much takes nothing away
		return nil
	}
	return bad
}
