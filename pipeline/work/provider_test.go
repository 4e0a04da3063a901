package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// shelf is a work tree in memory.
type shelf struct {
	mu    sync.Mutex
	files map[string]string
}

func (s *shelf) List(context.Context, string) ([]string, error) { return []string{"greet.sh"}, nil }

func (s *shelf) Read(_ context.Context, path string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (s *shelf) Search(context.Context, string, string, int) ([]string, error) { return nil, nil }

func (s *shelf) Write(_ context.Context, path string, content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = string(content)
	return nil
}

func (s *shelf) Remove(_ context.Context, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, path)
	return nil
}

func (s *shelf) Run(context.Context, workspace.Command) (workspace.Result, error) {
	return workspace.Result{}, nil
}

// office carries out phases with real agents, whose model is behind HTTP.
type office struct {
	agents *agent.Agent
	mu     sync.Mutex
	trees  map[int64]*shelf
}

const wished = "echo hello, $1\n"

func (o *office) Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
	time.Sleep(time.Duration(1+run.ID%5) * time.Second) // checking out, running the tests
	o.mu.Lock()
	tree := o.trees[run.ID]
	if tree == nil || act.Phase.Phase == pipeline.PhaseImplement { // what was cut off begins anew
		tree = &shelf{files: map[string]string{"greet.sh": "echo hello $1\n"}}
		o.trees[run.ID] = tree
	}
	o.mu.Unlock()
	job := agent.Job{Run: run, Ref: *act.Phase, Key: act.Key, Emit: emit, Workspace: tree, Tree: []string{"greet.sh"}}
	events := succeed(run, act)
	d := &events[0].Data
	var err error
	switch act.Phase.Phase {
	case pipeline.PhasePlan:
		*d.Plan, _, err = o.agents.Plan(ctx, job)
	case pipeline.PhaseImplement:
		parent, head := d.Implementation.Parent, d.Implementation.Head
		if *d.Implementation, _, err = o.agents.Implement(ctx, job); err == nil && tree.files["greet.sh"] != wished {
			err = fmt.Errorf("run %d implemented %q", run.ID, tree.files["greet.sh"])
		}
		d.Implementation.Parent, d.Implementation.Head = parent, head
	case pipeline.PhaseReview:
		job.Diff = "diff --git a/greet.sh b/greet.sh\n--- a/greet.sh\n+++ b/greet.sh\n@@ -1 +1 @@\n-echo hello $1\n+echo hello, $1\n"
		*d.Review, _, err = o.agents.Review(ctx, job)
	}
	if err != nil {
		return nil, err
	}
	return events, nil
}

// provider is a model's, on this machine: it answers as an agent should, or breaks
// down as the test says.
type provider struct {
	mu     sync.Mutex
	down   func(w http.ResponseWriter) // nil: it is there
	calls  int
	wasted int
}

func (p *provider) set(down func(w http.ResponseWriter)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	down := p.down
	if p.calls++; down != nil {
		p.wasted++
	}
	p.mu.Unlock()
	if down != nil {
		down(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"model": "llama", "usage": map[string]int{"prompt_tokens": 100, "completion_tokens": 10},
		"choices": []any{map[string]any{"finish_reason": "tool_calls", "message": map[string]any{"tool_calls": []any{
			map[string]any{"id": "call_1", "type": "function", "function": answer(body)}}}}},
	})
}

// answer is the call that an agent makes next, by what it was asked.
func answer(body []byte) map[string]string {
	call := func(name, args string) map[string]string { return map[string]string{"name": name, "arguments": args} }
	has := func(text string) bool { return bytes.Contains(body, []byte(text)) }
	switch {
	case has(`"steps"`):
		return call("submit", `{"summary":"Put a comma after hello","steps":["Edit greet.sh"],"criteria":[{"id":"AC1","text":"A comma follows hello"}]}`)
	case has("This is stage two"):
		return call("submit", `{"summary":"Small and right.","risk":1,"findings":[]}`)
	case has("This is stage one"):
		return call("submit", `{"criteria":[{"id":"AC1","met":true,"evidence":"greet.sh"}]}`)
	case has(`"role":"tool"`):
		return call("submit", `{"summary":"Put a comma after hello"}`)
	}
	return call("edit", `{"path":"greet.sh","old":"echo hello $1","new":"echo hello, $1"}`)
}

func status(code int, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, `{"error":{"message":"not now"}}`)
	}
}

// page is what stands before a provider that is down, or in its place.
func page(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		fmt.Fprint(w, "<!DOCTYPE html><html><body>We will be back soon.</body></html>")
	}
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// cut breaks an answer off in the middle of its stream.
func cut(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"model\":\"llama\",\"choices\":[{\"delta\":{\"content\":\"I w\"}}]}\n\n")
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// Covers lessons 12 and 22: a provider that is away for ten minutes under 20 runs, in
// whichever way, costs patience and nothing else. All of them are verified afterwards,
// nobody is asked, and few calls are in vain; people are told what is waited for, and
// until when. What the operator has to mend is told them once.
func TestTwentyRunsOutlastTheirProvider(t *testing.T) {
	t.Parallel()
	runs := 6
	if thorough {
		runs = 20
	}
	for _, tc := range []struct {
		name   string
		down   func(http.ResponseWriter)
		away   time.Duration // since the runs began; the first ones have by then
		told   int           // times that the operator is
		wasted int           // calls, at most
		over   time.Duration // by when all are done
		when   string        // all runs call when it goes ("at once"), or some are in the middle ("midway"); or both are tried
		quick  string        // which of these is tried without the tag e2e
	}{
		{"overloaded", status(529), 10 * time.Minute, 0, 30, 30 * time.Minute, "at once, midway", "midway"},
		{"hangs up", hangUp, 10 * time.Minute, 0, 30, 30 * time.Minute, "at once", ""},
		{"limits the rate for an hour", status(429, "Retry-After", "3600"), 50 * time.Minute, 0, 20, 62 * time.Minute, "at once, midway", "at once"},
		{"wrong key", status(401), 10 * time.Minute, 1, 30, 30 * time.Minute, "at once, midway", "at once"},
		{"nothing left to pay with", status(402), 10 * time.Minute, 1, 30, 30 * time.Minute, "at once", ""},
		{"a page in its place", page(200), 10 * time.Minute, 1, 30, 30 * time.Minute, "at once", ""},
		{"a gateway's page", page(502), 10 * time.Minute, 0, 30, 30 * time.Minute, "at once", ""},
		{"cut off in the middle", cut, 10 * time.Minute, 0, 30, 30 * time.Minute, "at once, midway", "midway"},
	} {
		for _, when := range []string{"at once", "midway"} {
			if !strings.Contains(tc.when, when) || !thorough && tc.quick != when {
				continue
			}
			t.Run(tc.name+", "+when, func(t *testing.T) {
				t.Parallel()
				p := &provider{}
				srv := httptest.NewUnstartedServer(p)
				srv.Config.SetKeepAlivesEnabled(false) // an idle connection would hold the clock
				srv.Start()
				defer srv.Close()
				inBubble(t, func(t *testing.T, k *keeper) {
					outlast(t, k, p, srv.URL, outage{tc.down, tc.away, tc.told, tc.wasted, tc.over, when == "at once", runs})
				})
			})
		}
	}
}

type outage struct {
	down   func(http.ResponseWriter)
	away   time.Duration
	told   int
	wasted int
	over   time.Duration
	atOnce bool
	runs   int
}

// outlast lets runs live through an outage.
func outlast(t *testing.T, k *keeper, p *provider, url string, o outage) {
	begun, told := time.Now(), 0
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	providers := agent.NewProviders(agent.ProviderOptions{
		Credentials: agent.Credentials{OpenAIURL: url + "/v1", OpenAIKey: "sk-test"},
		Operator:    func(agent.Trouble) { mu.Lock(); defer mu.Unlock(); told++ },
		Random:      func() float64 { mu.Lock(); defer mu.Unlock(); return random.Float64() },
	})
	agents, err := agent.New(agent.Options{Open: providers.Open, Models: map[config.Role]string{"": "openai/llama"}})
	if err != nil {
		t.Fatal(err)
	}
	board := &billboard{}
	waiting := map[int64][]string{} // what people were told, by run
	board.publish = func(_ context.Context, run *pipeline.Run, _ bool) error {
		if w := run.Await; w != nil {
			mu.Lock()
			defer mu.Unlock()
			waiting[run.ID] = append(waiting[run.ID], w.What)
		}
		return nil
	}
	opts := options(t)
	opts.Executor, opts.Publisher = &office{agents: agents, trees: map[int64]*shelf{}}, board
	opts.Watch, opts.LeaseTTL = time.Minute, 10*time.Minute // each look is work for the database
	e := newDriven(t, k, opts)
	start := 5 * time.Second
	if o.atOnce {
		start = 0
		p.set(o.down)
	}
	time.AfterFunc(start, func() { p.set(o.down) })
	time.AfterFunc(o.away, func() { p.set(nil) })
	var wg sync.WaitGroup
	for i := range o.runs {
		id := newRun(t, k, i+1)
		wg.Go(func() {
			if err := e.Drive(t.Context(), id); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("run %d: %v", id, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	verified, asked, silent := 0, 0, 0
	for id := int64(1); id <= int64(o.runs); id++ {
		run := load(t, k, id)
		if run.State == pipeline.StateVerified {
			verified++
		} else {
			t.Logf("run %d is %s: %s", id, run.State, run.Summary())
		}
		asked += count(eventTypes(t, k, id), pipeline.EventGateRequested)
		events, err := k.Events(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events { // who waits for long is seen to
			w := ev.Data.Await
			if w != nil && w.Next.Sub(ev.Time) >= time.Minute && !slices.Contains(waiting[id], "the model's provider until "+w.Next.Format("15:04 UTC")+w.What[strings.Index(w.What, " ("):]) {
				silent++
			}
		}
	}
	t.Logf("%d verified, %d asked, %d of %d calls wasted, the operator told %d times, after %s", verified, asked, p.wasted, p.calls, told, took)
	if verified != o.runs || asked != 0 || p.wasted > o.wasted || p.wasted == 0 || told != o.told || silent != 0 || took > o.over {
		t.Errorf("%d runs verified, %d people asked, %d calls wasted, the operator told %d times, %d waits that nobody was shown, after %s; want %d, 0, at most %d, %d, 0, within %s",
			verified, asked, p.wasted, told, silent, took, o.runs, o.wasted, o.told, o.over)
	}
}
