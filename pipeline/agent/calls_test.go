package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// orderedWorkspace notes what is done to it, and how much at the same time. A read
// takes a second.
type orderedWorkspace struct {
	Workspace
	mu    sync.Mutex
	now   int
	most  int
	log   []string
	files map[string]string
}

func (w *orderedWorkspace) note(what string) {
	w.mu.Lock()
	w.log = append(w.log, what)
	w.mu.Unlock()
}

func (w *orderedWorkspace) Read(_ context.Context, p string) ([]byte, error) {
	w.mu.Lock()
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	<-time.After(time.Second) // of the bubble's clock: until nobody else can come
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now--
	w.log = append(w.log, "read "+p)
	return []byte(w.files[p]), nil
}

func (w *orderedWorkspace) Write(_ context.Context, p string, content []byte) error {
	w.note("write " + p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[p] = string(content)
	return nil
}

// Calls that only read are carried out side by side; one that writes has its turn,
// and what is read after it sees what it wrote. Results keep the order of the calls.
func TestCallsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws := &orderedWorkspace{files: map[string]string{"a": "old\n", "b": "b\n", "c": "c\n"}}
		step := 0
		var results []ToolResult
		m := modelFunc(func(_ context.Context, r Request) (Response, error) {
			if step++; step > 1 {
				results = r.Messages[len(r.Messages)-1].Results
				return Response{Calls: []ToolCall{{ID: "s", Name: "submit", Args: []byte(`{"summary":"done"}`)}}}, nil
			}
			var calls []ToolCall
			for i, c := range []string{"read a", "read b", "read c", "write a", "read a"} {
				name, path, _ := strings.Cut(c, " ")
				args, _ := json.Marshal(map[string]string{"path": path, "content": "new\n"})
				if name == "read" {
					args, _ = json.Marshal(map[string]string{"path": path})
				}
				calls = append(calls, ToolCall{ID: fmt.Sprint(i), Name: name, Args: args})
			}
			return Response{Calls: calls}, nil
		})
		log := &eventLog{}
		if _, _, err := newAgent(t, "tape:x", m).Implement(t.Context(), job(newRun(), implementRef, ws, log)); err != nil {
			t.Fatal(err)
		}
		if ws.most != 3 {
			t.Errorf("%d reads at the same time, want 3", ws.most)
		}
		// write reads the file first, to see whether anything changes.
		if got := strings.Join(ws.log[3:], ", "); got != "read a, write a, read a" {
			t.Errorf("after the first reads: %s", got)
		}
		for i, want := range []string{"old", "\tb", "\tc", "wrote a", "new"} {
			if r := results[i]; r.ID != fmt.Sprint(i) || !strings.Contains(r.Text, want) {
				t.Errorf("result %d is %+v, want %q", i, r, want)
			}
		}
		want := "step 1 agent:implementer progress=true 0+0 tokens $0.0000\n" +
			"  read \"a\" ok=true\n  read \"b\" ok=true\n  read \"c\" ok=true\n  write \"a\" ok=true\n  read \"a\" ok=true\n"
		if !strings.HasPrefix(log.String(), want) {
			t.Errorf("events:\n%s", log)
		}
	})
}

// What was written is left out of old turns, much at once, and a model that takes the
// mark for content is told so.
func TestWrittenIsElided(t *testing.T) {
	t.Parallel()
	m := memory{}
	m.begin("task", nil)
	content := strings.Repeat("0123456789abcde\n", 256) // 4 KB
	args, _ := json.Marshal(map[string]string{"path": "a.go", "content": content})
	var sizes []int
	for i := range 14 {
		m.assistant(Response{Calls: []ToolCall{{ID: fmt.Sprint(i), Name: "write", Args: args}}, Raw: json.RawMessage(`{}`)})
		m.user([]ToolResult{{ID: fmt.Sprint(i), Text: "wrote a.go"}}, "")
		sizes = append(sizes, m.bytes())
	}
	shrank := 0
	for i := 1; i < len(sizes); i++ {
		if sizes[i] < sizes[i-1] {
			shrank++
		}
	}
	if shrank != 1 || m.elided != 6 {
		t.Errorf("the memory shrank %d times, by %d contents; want once, by 6: %v", shrank, m.elided, sizes)
	}
	first, last := string(m.messages[1].Calls[0].Args), string(m.messages[27].Calls[0].Args)
	if !strings.Contains(first, elidedMark+"4 KB") || !strings.Contains(first, `"path":"a.go"`) || last != string(args) || m.messages[1].Raw == nil {
		t.Errorf("the first call is %s, the last has %d bytes", first, len(last))
	}
	ws := newWorkspace(t, map[string]string{"a.go": "x\n"})
	for name, args := range map[string]string{"write": first, "edit": `{"path":"a.go","old":"x","new":"` + elidedMark + `4 KB]"}`} {
		c := conversation{spec: spec{tools: editingTools}, p: &phase{agent: newAgent(t, "tape:x", nil), job: Job{Run: newRun()}}, box: toolbox{ws: ws}}
		if d := c.use(t.Context(), ToolCall{Name: name, Args: json.RawMessage(args)}); d.ok || d.text != whyElided {
			t.Errorf("%s of an elided content: %+v", name, d)
		}
	}
	if got := ws.files(t)["a.go"]; got != "x\n" {
		t.Errorf("the file holds %q", got)
	}
}
