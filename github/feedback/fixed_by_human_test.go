package feedback

import (
	"context"
	"testing"

	"forge/pipeline"
)

// After a forced push the head alone does not tell who changed the lines.
func TestFixedByHumanForced(t *testing.T) {
	t.Parallel()
	file := func(line string) []string { return []string{"one", "two", "three", line, "five"} }
	person, forge := step{sha: "p", by: alice}, step{sha: "f", forge: true}
	last := step{sha: "q", by: boss}
	for _, c := range []struct {
		name  string
		steps []step
		patch map[string][]change
		want  string
	}{
		{"a person's commit took the line", []step{forge, person, last},
			map[string][]change{"p": {{path: "retry.go", before: []string{"line four"}, after: []string{"x line"}}},
				"q": {{path: "retry.go", before: []string{"five"}}}}, "alice"},
		{"Forge's commit did", []step{forge, last},
			map[string][]change{"f": {{path: "retry.go", before: []string{"line four"}}}, "q": {{path: "retry.go", before: []string{"five"}}}}, ""},
		{"all in one commit", []step{last}, map[string][]change{"q": {{path: "retry.go", after: file("x line")}}}, ""},
		{"in another file", []step{person}, map[string][]change{
			"p": {{path: "retry.go", after: []string{"x line"}}, {path: "other.go", before: []string{"line four"}}}}, ""},
	} {
		th := forgeTalk("aaaa")
		th.Resolved, th.Resolver = true, boss
		g := tester(&Pull{State: "OPEN", Threads: []Thread{th}}, pipeline.Notice{})
		g.history.steps = c.steps
		g.history.files["c0:retry.go"], g.history.files[c.steps[len(c.steps)-1].sha+":retry.go"] = file("line four"), file("x line")
		g.history.patches = c.patch
		got, err := g.finish(context.Background(), g.all)
		who := ""
		for _, s := range got {
			who += s.Actor.Login
		}
		if err != nil || who != c.want || len(got) == 1 && got[0].Kind != pipeline.SignalFixedByHuman {
			t.Errorf("%s: %+v, %v; want a mend by %q", c.name, got, err, c.want)
		}
	}
}

// Whose address GitHub does not know is vouched for by who settled it, whoever the
// delivery is of.
func TestFixedByUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		st   Pull
		by   step
		want pipeline.Actor
	}{
		{"resolved", Pull{State: "OPEN"}, step{sha: "p"}, boss},
		{"resolved, told by another", Pull{State: "OPEN"}, step{sha: "p", by: alice, vouched: true}, boss},
		{"merged", Pull{State: "MERGED", Merger: alice}, step{sha: "p"}, alice},
	} {
		th := forgeTalk("aaaa")
		if c.st.State == "OPEN" {
			th.Resolved, th.Resolver = true, boss
		}
		c.st.Threads = []Thread{th}
		g := tester(&c.st, pipeline.Notice{})
		g.history.steps = []step{{sha: "c0", forge: true}, c.by}
		g.history.files["c0:retry.go"], g.history.files["p:retry.go"] = []string{"one", "two", "three", "line four"}, []string{"one", "two", "three", "x line"}
		g.history.patches["p"] = []change{{path: "retry.go"}}
		if err := g.thread(context.Background(), &g.st.Threads[0], "aaaa"); err != nil || len(g.facts) != 1 || g.facts[0].Actor != c.want {
			t.Errorf("%s: %+v, %v; want a mend by %s", c.name, g.facts, err, c.want.Login)
		}
	}
}
