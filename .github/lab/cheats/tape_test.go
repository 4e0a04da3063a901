package cheats

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"forge/pipeline/workspace"
)

// What the commands of tests answer is kept in testdata/tapes: one for each base, so that
// nothing is needed but Go, and no time to compile.
var record = flag.Bool("record", false, "run the commands in sandboxes, and keep what they answer in testdata/tapes")

// answer is what a command answered that was run in a work tree.
type answer struct {
	Part    string             `json:"part"`    // the base, or the case
	Key     string             `json:"key"`     // of the command and the files of the tree
	Command string             `json:"command"` // its beginning, for people
	Times   int                `json:"times,omitempty"`
	Exit    int                `json:"exit,omitempty"`
	Class   string             `json:"class,omitempty"`
	Stdout  string             `json:"stdout,omitempty"`
	Stderr  string             `json:"stderr,omitempty"`
	Files   map[string]*string `json:"files,omitempty"` // that it wrote; null: removed

	played int
}

// tape is what the commands of the cases of one base answer, in order.
type tape struct {
	file, part string

	mu   sync.Mutex
	list []*answer
}

var (
	tapes     = map[string]*tape{} // by part
	tapesLock sync.Mutex
)

// tapeOf is the tape of a test, which it shares with nobody, to be played or written.
func tapeOf(t testing.TB, file, part string, play bool) *tape {
	tapesLock.Lock()
	defer tapesLock.Unlock()
	if tp := tapes[part]; tp != nil {
		return tp
	}
	tp := &tape{file: filepath.Join("testdata", "tapes", file+".jsonl"), part: part}
	tapes[part] = tp
	if play {
		all, err := readTape(tp.file)
		if err != nil {
			t.Fatal(err)
		}
		tp.list = slices.DeleteFunc(all, func(a *answer) bool { return a.Part != part })
	}
	t.Cleanup(func() {
		tapesLock.Lock()
		defer tapesLock.Unlock()
		delete(tapes, part)
		switch {
		case *record && !play:
			if err := tp.write(); err != nil {
				t.Error(err)
			}
		case play && !t.Failed() && !testing.Short() && slices.ContainsFunc(tp.list, func(a *answer) bool { return a.played == 0 }):
			t.Errorf("%s holds commands that are not run any more: record it anew with -record", tp.file)
		}
	})
	return tp
}

func readTape(file string) (all []*answer, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(data) {
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, &a)
	}
	return all, err
}

// write puts the part into its file. Others write their parts of it meanwhile: tapesLock is held.
func (tp *tape) write() error {
	all, err := readTape(tp.file)
	if err != nil {
		return err
	}
	all = append(slices.DeleteFunc(all, func(a *answer) bool { return a.Part == tp.part }), tp.list...)
	slices.SortStableFunc(all, func(a, b *answer) int { return strings.Compare(a.Part, b.Part) })
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, a := range all {
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return os.RemoveAll(tp.file)
	}
	if err := os.MkdirAll(filepath.Dir(tp.file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(tp.file, out.Bytes(), 0o644)
}

// binary stands for the content of a file that is no text, or a long one.
const binary = "\x00"

func plainText(data []byte) string {
	if len(data) > 64<<10 || bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return binary
	}
	return string(data)
}

// play answers a command from the tape.
func (tp *tape) play(m *tapedTree, c workspace.Command) (workspace.Result, error) {
	a := tp.next(keyOf(c, m.files))
	if a == nil {
		return workspace.Result{}, fmt.Errorf("%s does not hold what %q answers in this state of its tree: record it anew", tp.file, commandLine(c))
	}
	for name, text := range a.Files {
		if text == nil {
			delete(m.files, name)
		} else {
			m.files[name] = *text
		}
	}
	return workspace.Result{Exit: a.Exit, Class: a.Class, Stdout: []byte(a.Stdout), Stderr: []byte(a.Stderr)}, nil
}

// record runs a command, and keeps what it answers.
func (tp *tape) record(ctx context.Context, r *recordedTree, c workspace.Command) (workspace.Result, error) {
	before, err := r.snapshot()
	if err != nil {
		return workspace.Result{}, err
	}
	res, err := r.lent.Run(ctx, c)
	if err != nil {
		return res, err
	}
	after, err := r.snapshot()
	if err != nil {
		return res, err
	}
	tp.keep(&answer{Part: tp.part, Key: keyOf(c, before), Command: quiet(commandLine(c)), Exit: res.Exit, Class: res.Class,
		Stdout: quiet(string(res.Stdout)), Stderr: quiet(string(res.Stderr)), Files: changes(before, after)})
	res.Duration = 0 // else what is worth the time would turn on the machine
	return res, nil
}

// keep adds an answer. The same one again, which a test that is run often gives, is counted.
func (tp *tape) keep(a *answer) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, was := range slices.Backward(tp.list) {
		if was.Key != a.Key {
			continue
		}
		same := *was
		same.Times = a.Times
		if x, _ := json.Marshal(&same); bytes.Equal(x, must(json.Marshal(a))) {
			was.Times = max(was.Times, 1) + 1
			return
		}
		break
	}
	tp.list = append(tp.list, a)
}

func must(data []byte, _ error) []byte { return data }

// next is the next answer to a command, and the last one for ever.
func (tp *tape) next(key string) (found *answer) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, a := range tp.list {
		if a.Key == key {
			if found = a; a.played < max(a.Times, 1) {
				break
			}
		}
	}
	if found != nil {
		found.played++
	}
	return found
}

func keyOf(c workspace.Command, files map[string]string) string {
	h := sha256.New()
	fmt.Fprintln(h, quiet(fmt.Sprintf("%q %q %q false %q", c.Args, c.Dir, c.Env, []string(nil))))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %q\n", name, quiet(files[name]))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func commandLine(c workspace.Command) string {
	line := strings.Join(strings.Fields(strings.Join(c.Args, " ")), " ")
	return line[:min(len(line), 60)]
}

func changes(before, after map[string]string) map[string]*string {
	out := map[string]*string{}
	for name, text := range after {
		if was, there := before[name]; !there || was != text {
			out[name] = new(quiet(text))
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			out[name] = nil
		}
	}
	return out
}

// noise is what a command says otherwise each time, and of the machine that it ran on.
var noise = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"Time":"[^"]*",`), ``},
	{regexp.MustCompile(`("Elapsed":|\bduration_ms:? |\btime=")[\d.e+-]+`), `${1}0`},
	{regexp.MustCompile(`\b((?:timestamp|hostname)=")[^"]*`), `${1}`},
	{regexp.MustCompile(`\b\d+\.\d+s\b`), `0.00s`},
	{regexp.MustCompile(`\bgo-build\d+`), `go-build0`},
	{regexp.MustCompile(`("(?:startTime|endTime|duration|start|end)":) ?[\d.]+`), `${1}0`},
}

func quiet(text string) string {
	for _, n := range noise {
		text = n.find.ReplaceAllString(text, n.with)
	}
	return text
}
