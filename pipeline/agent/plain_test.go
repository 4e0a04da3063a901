package agent

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"forge/pipeline"
	"forge/pipeline/role"
)

func TestForm(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"openai/qwen2.5-coder:1.5b":             FormPlain,
		"openai/Qwen2.5-Coder-7B-Instruct-Q4":   FormPlain,
		"openai/smollm2-135M":                   FormPlain,
		"openai/qwen3-coder-30b-a3b":            FormTools,
		"openai/llama-3.3-70b":                  FormTools,
		"anthropic/claude-sonnet-5-5":           FormTools,
		"openai/gpt-6-sol":                      FormTools,
		"openai/mine":                           FormPlain, // as it is said below
		"openai/deepseek-coder-v2-lite-16b:b1b": FormTools,
	} {
		a := newAgent(t, name, modelFunc(nil), func(o *Options) { o.Limits = map[string]Limits{"openai/mine": {Form: FormPlain}} })
		if got, why := a.limits(name).form(t.Context(), name, modelFunc(nil)); got != want || got == FormPlain && why == "" {
			t.Errorf("%s is asked in the form %s, want %s", name, got, want)
		}
	}
	m := &remote{}
	m.window.tokens.Store(8192)
	if got, _ := (Limits{}).form(t.Context(), "openai/unknown", queued{Model: chosen{m}}); got != FormPlain {
		t.Errorf("a small window: %s", got)
	}
}

const (
	plainCalc = "# Calculations.\n\n\ndef add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a + b\n"
	plainTest = "import calc\n\n\ndef test_sub():\n    assert calc.sub(5, 3) == 2\n"
	// testCommand fails as long as sub adds.
	testCommand = "if grep -q 'a - b' calc.py; then echo ok; else echo 'test_calc.py:5: assert 8 == 2'; exit 1; fi"
)

// plainRun is a run of a small model on a repository with a failing test.
func plainRun() *pipeline.Run {
	run := newRun()
	run.Task = pipeline.Task{Title: "sub adds", Body: "`sub(5, 3)` gives 8. It has to give 2."}
	run.Baseline = &pipeline.TestReport{Passed: 1, Suites: []pipeline.Suite{{Name: "pytest", Command: testCommand}},
		Failures: []pipeline.Failure{{Test: "test_calc.py::test_sub", File: "test_calc.py", Line: 5, Error: "assert 8 == 2"}}}
	return run
}

// answering is a model that gives one answer after the other, and keeps what it was asked.
type answering struct {
	answers []string
	asked   []Request
}

func (m *answering) Complete(_ context.Context, r Request) (Response, error) {
	m.asked = append(m.asked, r)
	a := m.answers[min(len(m.asked), len(m.answers))-1]
	return Response{Text: a, Stop: StopEnd, Usage: pipeline.Usage{Calls: 1, Input: 100, Output: 50}}, nil
}

// TestPlain takes a task through the phases in the plain form.
func TestPlain(t *testing.T) {
	t.Parallel()
	right := strings.Replace(plainCalc, "def sub(a, b):\n    return a + b", "def sub(a, b):\n    return a - b", 1)
	for name, tt := range map[string]struct {
		answers []string
		want    string // calc.py
		calls   int
		unable  string
		summary string
	}{
		"the whole file":     {[]string{"### calc.py\n```python\n" + right + "```"}, right, 1, "", "(form: plain)"},
		"the function alone": {[]string{"```python\ndef sub(a, b):\n    return a - b\n```"}, right, 1, "", "lacked add, which was put back"},
		"a test edited":      {[]string{"### calc.py\n```python\n" + right + "```\n### test_calc.py\n```python\ndef test_sub():\n    pass\n```"}, right, 1, "", ""},
		"wrong, then right":  {[]string{"```python\ndef sub(a, b):\n    return b + a\n```", "```python\ndef sub(a, b):\n    return a - b\n```"}, right, 2, "", ""},
		"always wrong":       {[]string{"```python\ndef sub(a, b):\n    return b + a\n```"}, strings.Replace(plainCalc, "def sub(a, b):\n    return a + b", "def sub(a, b):\n    return b + a", 1), 3, "the tests fail", ""},
		"an invented call":   {[]string{`<tool_call>{"name": "write", "arguments": {"path": "calc.py", "content": "def sub(a, b):\n    return a - b\n"}}</tool_call>`}, right, 1, "", ""},
		"no code, then code": {[]string{"You should subtract.", "```\ndef sub(a, b):\n    return a - b\n```"}, right, 2, "", ""},
		"no code":            {[]string{"You should subtract."}, plainCalc, 3, "holds no code", ""},
		"unchanged":          {[]string{"```python\n" + plainCalc + "```"}, plainCalc, 3, "changes nothing", ""},
		"right, asked anew":  {[]string{"Hm.", "I do not know.", "```python\ndef sub(a, b):\n    return a - b\n```"}, right, 3, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, log := plainRun(), &eventLog{}
			ws := newWorkspace(t, map[string]string{"calc.py": plainCalc, "test_calc.py": plainTest, "other.py": "x = 1\n"})
			m := &answering{answers: tt.answers}
			a := newAgent(t, "openai/qwen2.5-coder:1.5b", m)
			ofPhase := func(ph pipeline.Phase, iteration int) Job {
				j := job(run, pipeline.PhaseRef{Phase: ph, Iteration: iteration, Attempt: 1, Mode: pipeline.ModeFresh}, ws, log)
				j.Tree = []string{"calc.py", "other.py", "test_calc.py"}
				return j
			}
			plan, usage, err := a.Plan(t.Context(), ofPhase(pipeline.PhasePlan, 0))
			if err != nil || usage.Calls > 0 || strings.Join(plan.Files, " ") != "calc.py" || strings.Join(plan.Tests, " ") != "test_calc.py::test_sub" || len(plan.Criteria) != 2 {
				t.Fatalf("planned %+v with %+v, %v", plan, usage, err)
			}
			run.Plan = &plan
			run.Iterations = []pipeline.Iteration{{Number: 1}}
			impl, usage, err := a.Implement(t.Context(), ofPhase(pipeline.PhaseImplement, 1))
			if err != nil || !strings.Contains(impl.Summary, tt.summary) || !strings.Contains(impl.Unable, tt.unable) || (impl.Unable == "") != (tt.unable == "") {
				t.Fatalf("%+v, %v", impl, err)
			}
			files := ws.files(t)
			if files["calc.py"] != tt.want || files["test_calc.py"] != plainTest || len(files) != 3 {
				t.Errorf("the files are\n%v", files)
			}
			if len(m.asked) != tt.calls || usage.Calls != tt.calls || log.usage().Calls != tt.calls {
				t.Errorf("%d calls, %+v in the usage, %+v in events, want %d", len(m.asked), usage, log.usage(), tt.calls)
			}
			if r := m.asked[0]; len(r.Tools) > 0 || !strings.Contains(r.Messages[0].Text, "def sub") || !strings.Contains(r.Messages[0].Text, "assert 8 == 2") || strings.Contains(r.Messages[0].Text, "x = 1") {
				t.Errorf("asked %+v", r)
			}
			review, usage, err := a.Review(t.Context(), ofPhase(pipeline.PhaseReview, 1))
			if err != nil || usage.Calls > 0 || !strings.HasPrefix(review.Summary, "Not reviewed: ") {
				t.Errorf("reviewed %+v, %v", review, err)
			}
		})
	}
}

// TestPlainLarge holds that of a large file only what the task names is shown, and that the
// rest stays.
func TestPlainLarge(t *testing.T) {
	t.Parallel()
	large := plainCalc
	for i := range 400 {
		large += fmt.Sprintf("\n\ndef other%d(a, b):\n    return a * b + %[1]d\n", i)
	}
	run := plainRun()
	ws := newWorkspace(t, map[string]string{"calc.py": large, "test_calc.py": plainTest})
	m := &answering{answers: []string{"```python\n# ... existing code ...\n\ndef sub(a, b):\n    return a - b\n```"}}
	j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1, Mode: pipeline.ModeFresh}, ws, &eventLog{})
	j.Tree, run.Plan, run.Iterations = []string{"calc.py", "test_calc.py"}, &pipeline.Plan{Summary: "x", Tests: []string{"test_calc.py::test_sub"}}, []pipeline.Iteration{{Number: 1}}
	impl, _, err := newAgent(t, "openai/qwen2.5-coder:1.5b", m).Implement(t.Context(), j)
	if got := ws.files(t)["calc.py"]; err != nil || impl.Unable != "" || got != strings.Replace(large, "def sub(a, b):\n    return a + b", "def sub(a, b):\n    return a - b", 1) {
		t.Errorf("%+v, %v\n%s", impl, err, cmp.Diff(large, got))
	}
	if asked := m.asked[0].Messages[0].Text; strings.Contains(asked, "other7") || !strings.Contains(asked, "def sub(a, b)") || len(asked) > 4000 {
		t.Errorf("asked %d bytes: %s", len(asked), asked)
	}
}

// TestPlainRecorded plays what a real small model answered, byte by byte as its server sent
// it. Each archive of testdata/plain holds a repository, how its test failed, the answers, and
// what the files came to.
func TestPlainRecorded(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/plain/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			run, files, want := newRun(), map[string]string{}, map[string]string{}
			run.Task.Title, run.Task.Body, _ = strings.Cut(strings.TrimSpace(string(ar.Comment)), "\n")
			run.Baseline = &pipeline.TestReport{}
			var answers [][]byte
			for _, f := range ar.Files {
				dir, rest, _ := strings.Cut(f.Name, "/")
				switch dir {
				case "repo":
					files[rest] = string(f.Data)
				case "want":
					want[rest] = string(f.Data)
				case "baseline.yaml":
					readYAML(t, f.Data, run.Baseline)
				default:
					answers = append(answers, f.Data)
				}
			}
			n := 0
			m := serve(t, "openai/qwen2.5-coder:1.5b", ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost { // it does not say what it is
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				w.Write(answers[min(n, len(answers)-1)])
				n++
			})
			ws, log := newWorkspace(t, files), &eventLog{}
			a := newAgent(t, "openai/qwen2.5-coder:1.5b", m)
			j := job(run, pipeline.PhaseRef{Phase: pipeline.PhasePlan}, ws, log)
			j.Tree = slices.Sorted(maps.Keys(files))
			plan, _, err := a.Plan(t.Context(), j)
			if err != nil || len(plan.Tests) == 0 {
				t.Fatalf("planned %+v, %v", plan, err)
			}
			run.Plan, run.Iterations = &plan, []pipeline.Iteration{{Number: 1}}
			j.Ref = pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1, Mode: pipeline.ModeFresh}
			j.Key = run.Key(j.Ref)
			impl, _, err := a.Implement(t.Context(), j)
			if err != nil || n != len(answers) {
				t.Errorf("%d of %d answers were read: %+v, %v", n, len(answers), impl, err)
			}
			for file, content := range ws.files(t) {
				if w, changed := want[file]; changed && content != w || !changed && content != files[file] {
					t.Errorf("%s (-want +got):\n%s", file, cmp.Diff(firstOf(want[file], files[file]), content))
				}
			}
		})
	}
}

// TestPlainElsewhere holds that a role which needs tools says so, and asks nothing.
func TestPlainElsewhere(t *testing.T) {
	t.Parallel()
	m := &answering{}
	a := newAgent(t, "openai/qwen2.5-coder:1.5b", m)
	_, _, err := a.Draft(t.Context(), job(plainRun(), pipeline.PhaseRef{Phase: pipeline.PhaseAnalyse}, nil, nil), role.Analyst)
	wantFault(t, err, pipeline.FaultProvider, "is asked for code alone: set models.analyst to a larger model")
	if len(m.asked) > 0 {
		t.Errorf("asked %+v", m.asked)
	}
}
