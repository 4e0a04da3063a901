package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"forge/pipeline"
)

// A long log is read page by page.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "x"}, stuck)
	s.keep(t, busy(p.Events, 400), shopRepo, 7, today)
	first := s.get(t, "/runs/1/events", 200)
	has(t, first, `id="event-1"`, `id="event-100"`, `-id="event-101"`, `href="?after=100"`, "agent.iteration (", `<summary><code>{&#34;start`,
		"&#34;repo&#34;: {\n")
	has(t, s.get(t, "/runs/1/events?after=100", 200), `-id="event-100"`, `id="event-101"`, `href="?after=200"`, "From the beginning")
	has(t, s.get(t, "/runs/1/events?type=loop.phase_bounce", 200), "loop.phase_bounce", "-Next</a>")
}

// A tape is read page by page, a long answer part by part.
func TestTape(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "x"}, goesOn)
	s.keep(t, busy(p.Events, 150), shopRepo, 7, today)
	has(t, s.get(t, "/runs/1/tape", 200), "The tape of this run was deleted")
	ctx := t.Context()
	call := func(conversation string, step int, data string) {
		t.Helper()
		if err := s.db.TapeRecord(ctx, 1, "run/1/iter/1/implement/"+conversation, step, "c0ffee", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= callsShown; i++ {
		call("implementer", i, fmt.Sprintf("-- implementer 1/%d --\n@model sonnet-9\n@usage input=9000 cached=7000 write=0 output=400\nI read </script>.\n>>> read\npath: a.go\n>>> run\ncommand: go test\n", i))
	}
	call("implementer.reflection", 1, "-- implementer.reflection 1/1 --\nTake another way.\n")
	call("implementer", callsShown+1, "of another version")
	call("implementer", callsShown+2, "-- implementer 1/52 --\n"+strings.Repeat("é", answerShown))

	has(t, s.get(t, "/runs/1/tape", 200), "implementer, step 1<", `<td class="nowrap">implement 1</td>`, "sonnet-9", "9000, 400",
		"7000 cached", "$0.0120", "1.2s", "<code>read</code>, <code>run</code>", "1 to 50 of 53", `href="?after=50"`, `-I read`)
	has(t, s.get(t, "/runs/1/tape?after=50", 200), "implementer.reflection, step 1", "51 to 53 of 53", "-Next</a>", "65 KB")
	has(t, s.get(t, "/runs/1/tape?call=1", 200), "I read &lt;/script&gt;.", "c0ffee", "&gt;&gt;&gt; read", "$0.0120, 1.2s", "-Next part")
	has(t, s.get(t, "/runs/1/tape?call=51", 200), "Take another way", "-$0.0120")
	has(t, s.get(t, "/runs/1/tape?call=52", 200), "of another version")
	has(t, s.get(t, "/runs/1/tape?call=53", 200), "part 1 of 3", `href="?call=53&amp;part=2"`)
	has(t, s.get(t, "/runs/1/tape?call=53&part=3", 200), "part 3 of 3", "Part before")
	for _, q := range []string{"?call=54", "?call=53&part=4", "?call=53&part=0"} {
		s.get(t, "/runs/1/tape"+q, 404)
	}
	for _, q := range []string{"?call=x", "?after=-1", "?call=1&part=x"} {
		s.get(t, "/runs/1/tape"+q, 400)
	}
	empty := newSite(t)
	empty.keep(t, p.Events, shopRepo, 7, today)
	has(t, empty.get(t, "/runs/1/tape", 200), "No model has answered yet")
}
