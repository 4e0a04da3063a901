package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"forge/pipeline"
)

func TestReadTapeErrors(t *testing.T) {
	t.Parallel()
	for tape, say := range map[string]string{
		"":                                        "no section",
		"-- implementer --\n":                     "want CONVERSATION ITERATION/STEP",
		"-- implementer 1/0 --\n":                 "count from 1",
		"-- a 1/1 --\nx\n-- a 1/1 --\ny\n":        "occurs twice",
		"-- a 1/1 --\n@expect\n":                  "@expect needs a text",
		"-- a 1/1 --\n@reject \n":                 "@reject needs a text",
		"-- a 1/1 --\n@usage input=many\n":        "@usage",
		"-- a 1/1 --\n@usage in=1\n":              `"in" is not known`,
		"-- a 1/1 --\n@usage input=1 cached=2\n":  "part of input",
		"-- a 1/1 --\n@stop now\n":                "want end, tools, length or refusal",
		"-- a 1/1 --\n@error soon\n":              "want an HTTP status",
		"-- a 1/1 --\n@error 200 fine\n":          "want an HTTP status",
		"-- a 1/1 --\n@takes long\n":              "want a duration",
		"-- a 1/1 --\n@raw {\n":                   "not JSON",
		"-- a 1/1 --\n@expcet x\n":                "line 1: @expcet is not known",
		"-- a 1/1 --\nhi\n>>> read path\n":        "line 2: \">>> read path\": want >>> TOOL",
		"-- a 1/1 --\n>>> read\npath: [\n":        "arguments of read",
		"-- a 1/1 --\n>>> read\n- path\n":         "arguments of read",
		"-- a 1/1 --\n>>> read\n!raw path\n":      "!raw wants a JSON string",
		"-- a 1/99999999999999999999 --\n@stop x": "@stop",
	} {
		if _, err := ReadTape([]byte(tape)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("ReadTape(%q) gives %v, want it to say %q", tape, err, say)
		}
	}
}

// TestPlayerFinds checks which section answers a call.
func TestPlayerFinds(t *testing.T) {
	t.Parallel()
	m := tapeModel(t, "-- a 1/1 --\nfirst\n-- a 1@2/1 --\nsecond attempt\n-- a */1 --\nevery\n-- a 3@2/2 --\nonly attempt\n")
	for _, tt := range []struct {
		iteration, attempt, step int
		want                     string
	}{
		{1, 0, 1, "first"}, {1, 1, 1, "first"}, {1, 2, 1, "second attempt"}, {1, 3, 1, "first"},
		{2, 1, 1, "every"}, {3, 1, 2, "only attempt"}, {3, 2, 2, "only attempt"},
	} {
		got, err := m.Complete(t.Context(), Request{Role: "a", Iteration: tt.iteration, Attempt: tt.attempt, Step: tt.step})
		if err != nil || got.Text != tt.want {
			t.Errorf("call %+v: %q, %v; want %q", tt, got.Text, err, tt.want)
		}
	}
	_, err := m.Complete(t.Context(), Request{Role: "a", Iteration: 1, Step: 2})
	wantFault(t, err, pipeline.FaultProvider, `no section "a 1/2"`, `"a 1/1"`)
	_, err = m.Complete(t.Context(), Request{Role: "b", Iteration: 1, Step: 2})
	wantFault(t, err, pipeline.FaultProvider, "none for the b")
	_, err = tapeModel(t, "-- a 1/1 --\n@reject secret\nx\n").Complete(t.Context(), Request{Role: "a", Iteration: 1, Step: 1, System: "the secret"})
	wantFault(t, err, pipeline.FaultProvider, `not to contain "secret"`)
}

// An answer takes as long as its section says, unless it is called off.
func TestPlayerTakesItsTime(t *testing.T) {
	t.Parallel()
	m := tapeModel(t, "-- a 1/1 --\n@takes 90s\nat last\n")
	req := Request{Role: "a", Iteration: 1, Step: 1}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if got, err := m.Complete(t.Context(), req); err != nil || got.Text != "at last" || time.Since(begun) != 90*time.Second {
			t.Errorf("%q, %v after %s", got.Text, err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Complete(ctx, req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("called off, it says %v", err)
		}
	})
}

// TestTapeRoundTrip writes answers and reads them back.
func TestTapeRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "@expect x", ">>> read", "-- a 1/1 --", `\x`, "a: b", " a", "a ", "a\n", "\n", "a\n\n  b\n", "\ta\n\tb", "- a", "# a", "'a", "1", "1.0", "true", "null", "~", "|", ">", "a #b", "é\u200b", "{", "[a", "%", "!raw \"x\"", "&a", "*", "?", "a\r\nb", "--- a", "...", "a\n-- a 1/2 --\nb\n", "a\n>>> b\n"}),
		rapid.String(),
	)
	value := rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil),
		rapid.Map(rapid.SliceOf(text), func(s []string) any { return s }), rapid.Map(rapid.MapOf(text, text), func(m map[string]string) any { return m }))
	rapid.Check(t, func(t *rapid.T) {
		s := section{name: callName{role: "a", iteration: rapid.IntRange(0, 9).Draw(t, "iteration"), attempt: rapid.IntRange(1, 3).Draw(t, "attempt"), step: rapid.IntRange(1, 99).Draw(t, "step")}, hash: "00ff"}
		s.response = Response{Text: strings.TrimSpace(strings.ToValidUTF8(text.Draw(t, "text"), "")), Stop: rapid.SampledFrom([]string{StopEnd, StopTools, StopLength, StopRefusal}).Draw(t, "stop"), Model: "m",
			Usage: pipeline.Usage{Input: 30, CachedInput: 10, CacheWrite: 5, Output: 2}, Raw: json.RawMessage(`{"a":["b"]}`)}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			args, err := json.Marshal(rapid.MapOf(text, value).Draw(t, "args"))
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "broken") {
				args = args[:len(args)-1]
			}
			s.response.Calls = append(s.response.Calls, ToolCall{ID: "toolu_1", Name: "edit", Args: args})
		}
		data := formatSection(&s)
		back := readSection(data)
		if back == nil {
			_, err := parseSection(txtar.Parse(data).Files[0])
			t.Fatalf("cannot be read back: %v\n%s", err, data)
		}
		for i := range s.response.Calls {
			s.response.Calls[i].Args = json.RawMessage(canonical(s.response.Calls[i].Args))
		}
		for i := range back.response.Calls {
			back.response.Calls[i].Args = json.RawMessage(canonical(back.response.Calls[i].Args))
		}
		s.response.Usage.Calls = 1
		if d := cmp.Diff(&s, back, cmp.AllowUnexported(section{}, callName{})); d != "" {
			t.Fatalf("read back (-want +got):\n%s\nfrom\n%s", d, data)
		}
		if of, r, ok := ReadCall(data); !ok || of != "a" || r.Text != back.response.Text || len(r.Calls) != len(back.response.Calls) {
			t.Fatalf("ReadCall = %q, %+v, %v; want what was written", of, r, ok)
		}
		if _, _, ok := ReadCall(data[1:]); ok {
			t.Fatalf("ReadCall takes %q for a section", data[1:])
		}
	})
}

func FuzzReadTape(f *testing.F) {
	f.Add([]byte(fixTape))
	f.Add([]byte("-- a 1/1 --\n@usage input=1\n\\@x\n>>> b #c\n!raw \"\\u0000\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ReadTape(data)
		if err != nil {
			return
		}
		for name, s := range m.(*player).sections {
			if name.step < 1 || name.attempt < 1 || name.iteration < anyIteration {
				t.Fatalf("section %v", name)
			}
			for _, c := range s.response.Calls {
				if c.Name == "" || c.ID == "" {
					t.Fatalf("call %+v", c)
				}
			}
		}
	})
}
