package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"forge/pipeline"
)

const (
	scope   = "repo:acme/site"
	written = `{
  "scope": "repo:acme/site",
  "learnings": [
    {
      "key": "a",
      "type": "semantic",
      "content": "Keep names <short>",
      "paths": [
        "a.go"
      ],
      "source": "human",
      "author": {
        "id": 1,
        "login": "ann"
      },
      "weight": 0.5,
      "base": 0.7,
      "confidence": 0.6,
      "created": "2026-03-01T12:00:00Z",
      "touched": "2026-03-01T12:00:00Z",
      "state": "active",
      "evidence": [
        {
          "key": "x",
          "delta": -0.2,
          "why": "used",
          "actor": {
            "id": 1,
            "login": "ann"
          },
          "run": 3,
          "at": "2026-03-01T12:00:00Z"
        }
      ]
    }
  ]
}
`
)

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	at, ann := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), pipeline.Actor{ID: 1, Login: "ann"}
	want := []Entry{{Learning: pipeline.Learning{Key: "a", Scope: scope, Type: pipeline.LearningSemantic, Content: "Keep names <short>", Paths: []string{"a.go"},
		Source: "human", Author: ann, Weight: 0.5, Base: 0.7, Confidence: 0.6, Against: 1, Created: at, Touched: at, State: "active"},
		Evidence: []pipeline.Evidence{{Of: "a", Key: "x", Delta: -0.2, Why: "used", Actor: ann, Run: 3, At: at}}}}
	another := want[0]
	another.Learning.Scope = "org:acme"
	stored := append([]Entry{another}, want...)
	stored[1].Learning.ID, stored[1].Learning.Recalled = 7, 9 // of this database
	if diff := cmp.Diff(written, string(Write(scope, stored))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{written, strings.ReplaceAll(written, "\n", "\r\n"), "\uFEFF" + written} {
		got, entries, err := Read([]byte(text))
		if diff := cmp.Diff(want[:1], entries, cmpopts.IgnoreFields(pipeline.Learning{}, "ID", "Recalled")); err != nil || got != scope || diff != "" {
			t.Errorf("%q, %v (-want +got):\n%s", got, err, diff)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, now, want string }{ // what is changed in a good file
		{`{
  "scope"`, `# Memory`, "line 1: "},
		{`"paths"`, `"path"`, `unknown field "path"`},
		{`"key": "a"`, `"id": 7, "key": "a"`, "line 5: "},
		{`"type": "semantic"`, `"type": "rumour"`, `the learning "a": type is "rumour"`},
		{`"type": "semantic",`, ``, `type is ""`},
		{`"state": "active"`, `"state": "gone"`, `state is "gone"`},
		{`"base": 0.7`, `"base": 1.7`, "numbers from 0 to 1"},
		{`"content": "Keep names <short>"`, `"content": ""`, "needs a key, content and created"},
		{`"created": "2026`, `"created": "last`, "parsing time"},
		{`"delta": -0.2`, `"delta": 3`, `delta of the evidence "x"`},
		{`"at": "2026-03-01T12:00:00Z"`, `"off": true`, "evidence needs a key and at"},
		{`"scope": "repo:acme/site"`, `"scope": ""`, "the scope is missing"},
	} {
		text := strings.Replace(written, c.old, c.now, 1)
		if text == written {
			t.Fatalf("%q is not in the file", c.old)
		}
		if _, entries, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) || entries != nil {
			t.Errorf("%q for %q: got %v, want %s", c.now, c.old, err, c.want)
		}
	}
}

// Whatever is remembered comes back as it was, and is written the same again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[ \\t\\r\\n\"'`|>#\\\\x,é-]{1,12}")
		when := rapid.Custom(func(t *rapid.T) time.Time { return time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, "micros")).UTC() })
		var entries []Entry
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			l := pipeline.Learning{Key: fmt.Sprintf("%d%s", i, text.Draw(t, "key")), Scope: scope, Type: pipeline.LearningEpisodic,
				Content: text.Draw(t, "content"), Context: text.Draw(t, "context"), Tags: rapid.SliceOfN(text, 1, 3).Draw(t, "tags"),
				Run: rapid.Int64().Draw(t, "run"), Base: rapid.Float64Range(0, 1).Draw(t, "base"),
				Created: when.Draw(t, "created"), Touched: when.Draw(t, "touched"), State: "retired"}
			e := Entry{Learning: l}
			for k := range rapid.IntRange(0, 3).Draw(t, "evidence") {
				e.Evidence = append(e.Evidence, pipeline.Evidence{Of: l.Key, Key: fmt.Sprintf("%d%s", k, text.Draw(t, "evidence key")), Delta: 0.1,
					Why: text.Draw(t, "why"), At: when.Draw(t, "at"), Off: rapid.Bool().Draw(t, "off")})
				if !e.Evidence[k].Off {
					e.Learning.For++
				}
			}
			entries = append(entries, e)
		}
		data := Write(scope, entries)
		got, back, err := Read(data)
		if diff := cmp.Diff(entries, back); err != nil || got != scope || diff != "" {
			t.Fatalf("%v\n(-written +read):\n%s\n%s", err, diff, data)
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
