package tracing

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"forge/pipeline"
	"forge/pipeline/pipelinetest"
)

var update = flag.Bool("update", false, "write the pictures of span trees anew")

// secret stands for all that must not leave this machine: it is in every text of
// the runs of these tests.
const secret = "s3cret-words"

// play plays a script of the loop and puts agents' turns into its phases. pick
// chooses numbers from 0 to n-1.
func play(t rapid.TB, name string, pick func(n int) int) []pipeline.Event {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("../../../pipeline/testdata/loop", name))
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
	var out []pipeline.Event
	var run pipeline.Run
	seen := map[string]bool{}
	add := func(e pipeline.Event, wait time.Duration) {
		if seen[e.ID] { // a script may repeat one; a log never does
			e.ID = fmt.Sprintf("%s/again/%d", e.ID, len(out))
		}
		seen[e.ID] = true
		if e.Data.Publication != nil {
			e.Data.Publication.Rev = run.Rev // events have other numbers than in the script
		}
		if n := len(out); n > 0 {
			e.Time = out[n-1].Time.Add(wait)
		}
		e.Run, e.Trace, e.Seq = 7, "0123456789abcdef0123456789abcdef", int64(len(out)+1)
		out = append(out, e)
		run.Apply(e)
	}
	for _, e := range p.Events {
		if e.Type == pipeline.EventPublishCompleted && pick(2) == 0 {
			add(pipeline.Event{ID: e.ID + "/started", Type: pipeline.EventPublishStarted, Data: pipeline.Data{Publication: &pipeline.Publication{}}}, 0)
		}
		add(tainted(e), time.Duration(1+pick(3))*time.Second)
		if e.Type == pipeline.EventPhaseEntered {
			turns(e, pick, add)
		}
	}
	return out
}

// turns are an agent's, each with its tools, as package agent writes them.
func turns(in pipeline.Event, pick func(n int) int, add func(pipeline.Event, time.Duration)) {
	ref := in.Data.Phase
	for n := 1; n <= 1+pick(3); n++ {
		tools := pick(3)
		step := &pipeline.Step{Phase: ref.Phase, Iteration: ref.Iteration, Number: n, Model: "anthropic/claude-x", Call: int64(200 + pick(4)*300), Advice: secret,
			Usage: pipeline.Usage{Calls: 1, Input: 1000, CachedInput: 800, Output: 50, MicroUSD: 1500}}
		step.Millis = step.Call + int64(tools*250)
		id := fmt.Sprintf("%s/step/%d", in.ID, n)
		add(pipeline.Event{ID: id, Type: pipeline.EventAgentIteration, Source: "agent:implementer", Data: pipeline.Data{Step: step}},
			time.Duration(step.Millis)*time.Millisecond)
		for i := range tools {
			name := []string{"read", secret + " is no tool"}[pick(2)]
			add(pipeline.Event{ID: fmt.Sprintf("%s/tool/%d", id, i+1), Type: pipeline.EventToolExecuted, Source: "agent:implementer",
				Data: pipeline.Data{Tool: &pipeline.ToolUse{
					Phase: ref.Phase, Iteration: ref.Iteration, Step: n, Tool: name, OK: name == "read", Error: secret, Subject: secret, Millis: 250, Bytes: 10}}}, 0)
		}
	}
}

// tainted puts the secret wherever people and models write.
func tainted(e pipeline.Event) pipeline.Event {
	data, _ := json.Marshal(e.Data)
	e.Data = pipeline.Data{}
	_ = json.Unmarshal(data, &e.Data) // came out of JSON
	d := &e.Data
	if s := d.Start; s != nil {
		s.Task.Title, s.Task.Body, s.Branch, s.By.Login, s.Repo.CloneURL = secret, secret, "forge/"+secret, secret, "https://"+secret
	}
	if f := d.Fault; f != nil {
		f.Message = secret
	}
	if g := d.Guard; g != nil {
		g.Detail = secret
	}
	if g := d.Gate; g != nil {
		g.Question = secret
		for i := range g.Choices {
			g.Choices[i].Arg, g.Choices[i].Label = secret, secret
		}
		if g.Guard != nil {
			g.Guard.Detail = secret
		}
	}
	if a := d.Answer; a != nil {
		a.Text, a.By.Login = secret, secret
	}
	if w := d.Await; w != nil {
		w.What = secret
	}
	return e
}

func plain(int) int { return 0 }

// picture draws the tree of spans.
func picture(spans []Span) string {
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	start := spans[0].Start
	var b strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			if s.Parent != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s %.2f–%.2f s", indent, s.Name, s.Start.Sub(start).Seconds(), s.End.Sub(start).Seconds())
			if s.Failed {
				b.WriteString(" FAILED")
			}
			for _, a := range s.Attributes {
				fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(a.Key), "forge."), a.Value.String())
			}
			b.WriteString("\n")
			for _, m := range s.Marks {
				fmt.Fprintf(&b, "%s  · %.2f s %s", indent, m.At.Sub(start).Seconds(), m.Name)
				for _, a := range m.Attributes {
					fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(a.Key), "forge."), a.Value.String())
				}
				b.WriteString("\n")
			}
			draw(s.ID, indent+"  ")
		}
	}
	draw(trace.SpanID{}, "")
	return b.String()
}

func TestPictures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"two_bounces", "checks", "faults", "away", "reopened_push"} {
		t.Run(name, func(t *testing.T) {
			n := 0
			turn := func(most int) int { n++; return n % most }
			got := picture(spansOf(play(t, name+".txtar", turn)))
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("Spans of %s; run with -update when it is right (-want +got):\n%s", name, diff)
			}
		})
	}
}

// scripts are all recorded runs of the loop.
func scripts(t rapid.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../../pipeline/testdata/loop/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return names
}

// check holds what must be true of a run's spans, whatever happened in it.
func check(t *rapid.T, name string, events []pipeline.Event, spans []Span) {
	byID := map[trace.SpanID]Span{}
	roots, first := 0, false
	for _, s := range spans {
		if _, ok := byID[s.ID]; ok {
			t.Fatalf("%s: two spans have the id %s", name, s.ID)
		}
		byID[s.ID] = s
		if s.Name == "run" || s.Name == "run reopened" {
			first = first || s.Name == "run"
			roots++
		}
	}
	var last pipeline.Run
	began, over := 0, 0 // one root for each time that the run ended and people were shown that
	for _, e := range events {
		last.Apply(e)
		if shown := last.State.Ended() && last.Published.Rev >= last.Rev; shown && began > over {
			over++
		} else if !last.State.Ended() && began == over {
			began++
		}
	}
	if over != roots || first != (over > 0) {
		t.Fatalf("%s: %s, shown %d of %d, and has %d root spans for %d ends", name, last.State, last.Published.Rev, last.Rev, roots, over)
	}
	for _, s := range spans {
		if !s.Trace.IsValid() || s.Trace != spans[0].Trace || s.End.Before(s.Start) {
			t.Fatalf("%s: %+v is of no trace, or ends before it starts", name, s)
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, secret) {
			t.Fatalf("%s: what must not be told is in %s", name, text)
		}
		if !s.Parent.IsValid() {
			if s.Name != "run" && first && byID[s.Link].Name != "run" {
				t.Fatalf("%s: %+v has neither a parent nor a link to the run", name, s)
			}
			continue
		}
		p, ok := byID[s.Parent]
		switch {
		case !ok && began == over:
			t.Fatalf("%s: the parent of %+v is missing", name, s)
		case ok && (s.Start.Before(p.Start) || s.End.After(p.End)):
			t.Fatalf("%s: %s %v–%v is not within its parent %s %v–%v", name, s.Name, s.Start, s.End, p.Name, p.Start, p.End)
		case ok && s.Seq > p.Seq:
			t.Fatalf("%s: %s is finished after its parent %s", name, s.Name, p.Name)
		}
	}
}

// Whatever a run does, and however wrong the clocks of its servers are, its spans
// are a tree: ids are unique, parents exist, no child is outside of its parent.
func TestSpansProperty(t *testing.T) {
	t.Parallel()
	names := scripts(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "script")
		events := play(t, name, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		if rapid.Bool().Draw(t, "wrong clocks") {
			for i := range events {
				events[i].Time = events[i].Time.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "ms")) * time.Millisecond)
			}
		}
		events = events[:rapid.IntRange(1, len(events)).Draw(t, "prefix")]
		if spans := spansOf(events); len(spans) > 0 {
			check(t, name, events, spans)
		}
	})
}

// Whatever the batches in which events arrive, whichever of two servers appends
// them, and whenever one of them starts anew: the spans that are exported are
// those of the whole log, and a span that comes twice is the same twice.
func TestFollowerProperty(t *testing.T) {
	t.Parallel()
	names := scripts(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "script")
		events := play(t, name, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		known := 0 // events on disk
		got := map[trace.SpanID]Span{}
		start := func() *follower {
			return &follower{folds: map[int64]*followed{},
				events: func(_ context.Context, _, after int64) ([]pipeline.Event, error) { return events[after:known], nil },
				emit: func(s Span) {
					if old, ok := got[s.ID]; ok {
						if diff := cmp.Diff(old, s, cmp.Comparer(func(a, b Span) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
							t.Fatalf("%s: exported twice, and not the same: %s", name, diff)
						}
					}
					got[s.ID] = s
				}}
		}
		servers := []*follower{start(), start()}
		for known < len(events) {
			first := events[known].Seq
			known += rapid.IntRange(1, len(events)-known).Draw(t, "batch")
			n := rapid.IntRange(0, 1).Draw(t, "server")
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				servers[n] = start()
			}
			if err := servers[n].catchUp(t.Context(), 7, first); err != nil {
				t.Fatal(err)
			}
		}
		want := map[trace.SpanID]Span{}
		for _, s := range spansOf(events) {
			want[s.ID] = s
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d spans exported, %d in the log", name, len(got), len(want))
		}
		for id, s := range want {
			if fmt.Sprint(got[id]) != fmt.Sprint(s) {
				t.Fatalf("%s: exported %+v, want %+v", name, got[id], s)
			}
		}
	})
}

// A server that died may have lost what it had just finished: the next one exports
// that again, and not the whole run.
func TestFollowerHeals(t *testing.T) {
	t.Parallel()
	events := play(t, "two_bounces.txtar", plain)
	for i := range events { // half of it is long ago
		if i >= len(events)/2 {
			events[i].Time = events[i].Time.Add(time.Hour)
		}
	}
	var got []Span
	f := &follower{folds: map[int64]*followed{}, emit: func(s Span) { got = append(got, s) },
		events: func(_ context.Context, _, after int64) ([]pipeline.Event, error) { return events[after:], nil }}
	last := events[len(events)-1]
	if err := f.catchUp(t.Context(), 7, last.Seq); err != nil {
		t.Fatal(err)
	}
	all := spansOf(events)
	if len(got) == 0 || len(got) >= len(all) {
		t.Fatalf("after a restart %d of %d spans are exported again", len(got), len(all))
	}
	for _, s := range got {
		if s.Seq < last.Seq && last.Time.Sub(s.End) > 2*heal {
			t.Errorf("%s ended %v ago and is exported again", s.Name, last.Time.Sub(s.End))
		}
	}
}

// The trace is the run's own; the ids are the same for ever.
func TestIDs(t *testing.T) {
	t.Parallel()
	id := traceID("0123456789abcdef0123456789abcdef")
	if got := id.String(); got != "0123456789abcdef0123456789abcdef" {
		t.Errorf("traceID of a trace id = %s", got)
	}
	if id := traceID("cafe"); !id.IsValid() || id != traceID("cafe") || id == traceID("babe") {
		t.Errorf("traceID(cafe) = %s", id)
	}
	if got := spanID(id, "phase", "run/1/iter/1/review/entered").String(); got != "d9dd8f1a48b71990" {
		t.Errorf("spanID = %s", got)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	f := &follower{folds: map[int64]*followed{}, emit: func(Span) {}, events: func(context.Context, int64, int64) ([]pipeline.Event, error) { return nil, nil }}
	for run := range int64(3 * maxFolds) {
		for _, id := range []int64{run, 0} { // the first one keeps moving
			if err := f.catchUp(t.Context(), id, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(f.folds) != maxFolds || f.folds[0] == nil || f.folds[3*maxFolds-1] == nil {
		t.Errorf("%d runs are followed, the one that moves: %v", len(f.folds), f.folds[0] != nil)
	}
}
