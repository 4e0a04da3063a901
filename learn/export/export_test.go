package export

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"forge/pipeline"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

const scope = "repo:acme/site"

func example() []Entry {
	ann := pipeline.Actor{ID: 1, Login: "ann"}
	return []Entry{
		{Learning: pipeline.Learning{Key: "b", Scope: scope, Type: pipeline.LearningProcedural,
			Content: "Wrap errors:\n\n\treturn fmt.Errorf(\"x: %w\", err)\n\"quoted\"", Source: "rewrite", Base: 0.8, Confidence: 0.8,
			Weight: 1, Created: at, Touched: at, State: "active"}},
		{Learning: pipeline.Learning{Key: "a", Scope: scope, Type: pipeline.LearningSemantic, Category: "style", Content: "Keep names short",
			Context: "in small\nscopes", Paths: []string{"a.go", "b, c.go"},
			Tags: []string{"go", "rule:x"}, Source: "human", Author: ann, Weight: 0.5, Run: 7, Signal: "thread/1", Finding: "fp", Code: "c0de",
			Base: 0.7, Confidence: 0.6, For: 1, Against: 1, Created: at, Touched: at, State: "active"},
			Evidence: []pipeline.Evidence{{Of: "a", Key: "y", Delta: -0.2, Why: "a | b", Actor: ann, Run: 3, At: at},
				{Of: "a", Key: "x", Delta: 0.1, Why: "used", Actor: pipeline.Actor{ID: 9, Login: "ci", Bot: true}, At: at},
				{Of: "a", Key: "z", Delta: 0.1, Why: "used", Actor: ann, At: at, Off: true}}},
	}
}

const written = `# Memory of repo:acme/site

## a

- type: semantic
- state: active
- category: style
- confidence: 0.6
- base: 0.7
- source: human
- author: ann (1)
- weight: 0.5
- run: 7
- signal: thread/1
- finding: fp
- code: c0de
- paths: a.go, "b, c.go"
- tags: go, rule:x
- created: 2026-03-01T12:00:00.123456Z
- touched: 2026-03-01T12:00:00.123456Z
- context: "in small\nscopes"

> Keep names short

- evidence: x | 0.1 | 2026-03-01T12:00:00.123456Z | ci (9) bot | run 0 | on | used
- evidence: y | -0.2 | 2026-03-01T12:00:00.123456Z | ann (1) | run 3 | on | "a \x7c b"
- evidence: z | 0.1 | 2026-03-01T12:00:00.123456Z | ann (1) | run 0 | taken back | used

## b

- type: procedural
- state: active
- confidence: 0.8
- base: 0.8
- source: rewrite
- weight: 1
- created: 2026-03-01T12:00:00.123456Z
- touched: 2026-03-01T12:00:00.123456Z

> Wrap errors:
>
> 	return fmt.Errorf("x: %w", err)
> "\"quoted\""
`

func TestWrite(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(written, string(Write(scope, example()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// byKey puts what has no order in one.
var byKey = cmp.Options{cmpopts.SortSlices(func(a, b Entry) bool { return a.Learning.Key < b.Learning.Key }),
	cmpopts.SortSlices(func(a, b pipeline.Evidence) bool { return a.Key < b.Key }), cmpopts.EquateEmpty()}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{written, strings.ReplaceAll(written, "\n", "\r\n"), "\uFEFF" + written, strings.ReplaceAll(written, "\n\n", "\n")} {
		got, entries, err := Read([]byte(text))
		if err != nil || got != scope {
			t.Fatalf("%q, %v", got, err)
		}
		if diff := cmp.Diff(example(), entries, byKey); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, now string // what is changed in a good file
		line     int
		says     string
	}{
		{"# Memory", "# Memories", 1, "want \"# Memory of SCOPE\" first"},
		{"# Memory of repo:acme/site\n\n## a", "# Memory of repo:acme/site\n\nhello\n## a", 3, "outside of a section"},
		{"- category: style", "- categry: style", 7, "did you mean category?"},
		{"- category: style", "category: style", 7, "is no heading"},
		{"- category: style", "- category style", 7, "want - name: value"},
		{"- category: style", "- type: semantic", 7, "type comes twice"},
		{"- type: semantic", "- type: rumour", 5, "is none of episodic"},
		{"- type: semantic\n", "", 3, "the learning a has no type"},
		{"- state: active\n- confidence: 0.8", "- confidence: 0.8", 29, "the learning b has no state"},
		{"- base: 0.7", "- base: 1.7", 9, "from 0 to 1"},
		{"- base: 0.7", "- base: NaN", 9, "from 0 to 1"},
		{"ann (1)\n", "ann\n", 11, "want LOGIN (ID)"},
		{"ann (1)\n", "ann (one)\n", 11, "want LOGIN (ID)"},
		{"- run: 7", "- run: seven", 13, "whole number"},
		{`a.go, "b, c.go"`, `"a.go" "b"`, 17, "put commas"},
		{`- tags: go`, `- tags: "go`, 18, "not a quoted text"},
		{"- created: 2026", "- created: last", 19, "is not a time"},
		{"\n## b", "\n## a", 29, "there already, in line 3"},
		{" | used\n- evidence: y", "\n- evidence: y", 25, "6 parts between bars, want 7"},
		{"x | 0.1", "x | 3", 25, "from -1 to 1"},
		{"run 3 | on", "3 | on", 26, "want run N"},
		{"run 3 | on", "run 3 | off", 26, `want "on" or "taken back"`},
		{"- evidence: y", "- evidence: x", 26, "comes twice"},
		{"> Keep names short\n", "", 3, "has no words"},
	} {
		text := strings.Replace(written, c.old, c.now, 1)
		if text == written {
			t.Fatalf("%q is not in the file", c.old)
		}
		_, entries, err := Read([]byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || !strings.Contains(e.Text, c.says) || entries != nil {
			t.Errorf("%q for %q: got %v, want line %d: %s", c.now, c.old, err, c.line, c.says)
		}
	}
	for _, empty := range []string{"", "\n\n"} {
		if _, _, err := Read([]byte(empty)); err == nil {
			t.Errorf("Read(%q) gives no error", empty)
		}
	}
}

// Whatever is remembered comes back as it was, and is written the same again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching("[ \\t\\r\\n\"'`|>#\\\\x,:()-]{0,12}"), rapid.StringMatching(`[a-z ]{1,20}`))
		share := rapid.Custom(func(t *rapid.T) float64 { return math.Abs(rapid.Float64Range(0, 1).Draw(t, "share")) })
		when := rapid.Custom(func(t *rapid.T) time.Time { return time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "micros")).UTC() })
		who := rapid.Custom(func(t *rapid.T) pipeline.Actor {
			return pipeline.Actor{ID: rapid.Int64().Draw(t, "id"), Login: text.Draw(t, "login"), Bot: rapid.Bool().Draw(t, "bot")}
		})
		var entries []Entry
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			l := pipeline.Learning{Key: fmt.Sprintf("%d%s", i, text.Draw(t, "key")), Scope: scope, Type: pipeline.LearningEpisodic,
				Category: pipeline.Category(text.Draw(t, "category")), Content: text.Draw(t, "content"),
				Context: text.Draw(t, "context"), Paths: rapid.SliceOfN(text, 0, 3).Draw(t, "paths"),
				Source: pipeline.LearningSource(text.Draw(t, "source")), Author: who.Draw(t, "author"), Weight: share.Draw(t, "weight"),
				Run: rapid.Int64().Draw(t, "run"), Base: share.Draw(t, "base"), Confidence: share.Draw(t, "confidence"),
				Created: when.Draw(t, "created"), Touched: when.Draw(t, "touched"), State: "retired"}
			e := Entry{Learning: l}
			for k := range rapid.IntRange(0, 3).Draw(t, "evidence") {
				v := pipeline.Evidence{Of: l.Key, Key: fmt.Sprintf("%d%s", k, text.Draw(t, "evidence key")), Delta: share.Draw(t, "delta") - 0.5,
					Why: text.Draw(t, "why"), Actor: who.Draw(t, "actor"),
					Run: rapid.Int64().Draw(t, "run"), At: when.Draw(t, "at"), Off: rapid.Bool().Draw(t, "off")}
				e.Evidence = append(e.Evidence, v)
				switch {
				case v.Off:
				case v.Delta > 0:
					e.Learning.For++
				case v.Delta < 0:
					e.Learning.Against++
				}
			}
			entries = append(entries, e)
		}
		data := Write(scope, entries)
		got, back, err := Read(data)
		if err != nil || got != scope {
			t.Fatalf("%v\n%s", err, data)
		}
		if diff := cmp.Diff(entries, back, byKey); diff != "" {
			t.Fatalf("(-written +read):\n%s\n%s", diff, data)
		}
		if again := Write(scope, back); !bytes.Equal(data, again) {
			t.Fatalf("written again:\n%s\nwas:\n%s", again, data)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(written))
	f.Fuzz(func(t *testing.T, data []byte) {
		scope, entries, err := Read(data)
		if err != nil {
			return
		}
		if _, again, err := Read(Write(scope, entries)); err != nil || len(again) != len(entries) {
			t.Errorf("what was read cannot be written and read: %v", err)
		}
	})
}
