package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/agent/edit"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/testname"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// TestTasks holds that every task can be played: it has words, code, tests, hidden ones that
// the agent does not see, and a fix of its code.
func TestTasks(t *testing.T) {
	t.Parallel()
	list, err := readTasks(nil)
	if err != nil || len(list) != 30 {
		t.Fatalf("%d tasks, %v", len(list), err)
	}
	of := map[string]int{}
	for _, one := range list {
		of[one.Lang]++
		tests := 0
		for file := range one.Repo {
			if testname.IsFile(file) {
				tests++
			}
		}
		if one.Title == "" || one.Text == "" || tests == 0 || len(one.Hidden) == 0 || len(one.Fix) == 0 || languages[one.Lang].name == "" {
			t.Errorf("%s has %d files of tests, %d hidden, %d of a fix in %s: %q", one.Name, tests, len(one.Hidden), len(one.Fix), one.Lang, one.Text)
		}
		for file := range one.Hidden {
			if _, seen := one.Repo[file]; seen || !testname.IsFile(file) {
				t.Errorf("%s: %s is no hidden test", one.Name, file)
			}
		}
		for file := range one.Fix {
			if testname.IsFile(file) || one.fixed()[file] == one.Repo[file] {
				t.Errorf("%s: %s fixes nothing", one.Name, file)
			}
		}
	}
	if len(of) != len(languages) {
		t.Errorf("tasks by language: %v", of)
	}
	if list, err = readTasks([]string{"01", "03"}); err != nil || len(list) != 2 {
		t.Errorf("%d tasks of two, %v", len(list), err)
	}
}

// fixed is the repository with the fix.
func (t task) fixed() map[string]string {
	files := maps.Clone(t.Repo)
	for file, code := range t.Fix {
		files[file], _ = edit.Merge(files[file], code, func(string) bool { return false })
	}
	return files
}

// TestTasksProven runs the tests of each task: the hidden ones fail on the repository as it is,
// and all pass once it is fixed.
func TestTasksProven(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
	t.Parallel()
	list, err := readTasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			if tool := one.lacks(false); tool != "" {
				t.Skip(tool, "is not here")
			}
			passes := func(files map[string]string) (bool, []byte) {
				dir := t.TempDir()
				maps.Copy(files, one.Hidden)
				for name, content := range files {
					file := filepath.Join(dir, name)
					if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.CommandContext(t.Context(), "sh", "-c", languages[one.Lang].tests)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				return err == nil, out
			}
			seen := maps.Clone(one.Repo)
			maps.DeleteFunc(seen, func(file, _ string) bool { return testname.IsFile(file) })
			if ok, out := passes(seen); ok {
				t.Errorf("the hidden tests pass without a fix:\n%s", out)
			}
			if ok, out := passes(one.fixed()); !ok {
				t.Errorf("fixed, it fails:\n%s", out)
			}
		})
	}
}

// TestRecordReplay records calls and expects the very bytes back, also where the program hangs
// up before the answer ends.
func TestRecordReplay(t *testing.T) {
	t.Parallel()
	const answer = "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.Copy(w, r.Body)
		io.WriteString(w, answer)
	}))
	defer up.Close()
	dir := t.TempDir()
	base, stop, err := record(up.URL+"/v1", dir)
	if err != nil {
		t.Fatal(err)
	}
	asked := []string{"data: 1\n\n", "data: 2\n\n"}
	post := func(base, body string) string {
		t.Helper()
		res, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		out, _ := io.ReadAll(res.Body)
		return res.Header.Get("Content-Type") + " " + string(out)
	}
	var said []string
	for _, a := range asked {
		said = append(said, post(base, a))
	}
	stop()
	if base, stop, err = replay(dir); err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i := range asked {
		if got := post(base, "something else"); got != said[i] {
			t.Errorf("replayed %q, want %q", got, said[i])
		}
	}
	if got := post(base, ""); !strings.Contains(got, "has ended") {
		t.Errorf("behind its end it says %q", got)
	}
	if _, _, err := replay(t.TempDir()); err == nil {
		t.Error("nothing is replayed")
	}
	if _, _, err := record("", dir); err == nil {
		t.Error("nobody is recorded")
	}
}

// TestTable counts what the table says.
func TestTable(t *testing.T) {
	t.Parallel()
	sum := row{Model: "m", Form: "plain"}
	sum.add(Play{State: pipeline.StateVerified, Verified: true, Hidden: true, Calls: 1, Tokens: 10})
	sum.add(Play{State: pipeline.StateVerified, Verified: true, Lost: 1, Calls: 2, Tokens: 20})
	sum.add(Play{State: pipeline.StateWaiting, Hidden: true})
	if want := (row{Model: "m", Form: "plain", Tasks: 3, Verified: 2, Hidden: 2, Falsely: 1, Lost: 1, Calls: 3, Tokens: 30}); sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
	var out bytes.Buffer
	show(&out, []row{sum})
	if !strings.Contains(out.String(), "VERIFIED FALSELY") {
		t.Errorf("it prints\n%s", out.String())
	}
}

// TestPlayRecorded plays a task through the whole program with what a real small model said.
func TestPlayRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: left out with -short")
	}
	t.Parallel()
	list, err := readTasks([]string{"03"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{exe: sandboxtest.Worker(t), replay: "testdata/recordings"}
	got, err := b.play(t.Context(), "openai/qwen2.5-coder:1.5b", agent.FormPlain, list[0])
	if err != nil || !got.Handed || got.Verified || !got.Hidden || got.Calls != 1 || got.Lost > 0 || !strings.Contains(got.Ended, "nobody has read the change") {
		t.Errorf("it came to %+v, %v", got, err)
	}
}

// TestPlayFixed plays a task of each language with a model that answers with the fix: the
// work is put to a person, and the hidden tests pass.
func TestPlayFixed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
	t.Parallel()
	list, err := readTasks([]string{"02", "08", "15", "19", "24"})
	if err != nil {
		t.Fatal(err)
	}
	exe := sandboxtest.Worker(t)
	for _, one := range list {
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			if tool := one.lacks(true); tool != "" {
				t.Skip(tool, "is not here")
			}
			b := &bench{exe: exe, replay: t.TempDir()}
			words := ""
			for file, code := range one.Fix {
				words += file + "\n```\n" + code + "```\n"
			}
			answer, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": words}}}})
			if err := errors.Join(err, os.Mkdir(filepath.Join(b.replay, one.Name), 0o755), os.WriteFile(filepath.Join(b.replay, one.Name, "001.answer"), answer, 0o644)); err != nil {
				t.Fatal(err)
			}
			got, err := b.play(t.Context(), "openai/fixed", agent.FormPlain, one)
			if err != nil || !got.Handed || !got.Hidden || got.Calls != 1 {
				t.Errorf("it came to %+v, %v", got, err)
			}
		})
	}
}
