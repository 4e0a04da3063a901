package check

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
	"forge/pipeline/testname"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Code under test can tell that a test runs by more than can be listed: its callers, what
// is loaded, how deep the stack is. So what the base's tests call in Python and in node is
// recorded while they run, and called again in a program of its own, in a work tree without
// tests. What comes to something else there, and did not at the base, turns on who calls it.
//
// A method is called on an object that is made of the state that it had, without its
// constructor: what happened to it before has no part in it.

// callsDir is where a recording and its program lie, relative to the root of a work tree.
const callsDir = ".forge-calls"

// What a recording may cost. The tests run once more with it, and, where a call comes to
// something else, once more at the base; each recording is replayed twice.
const (
	callsAtMost  = 2 * time.Minute // of tests whose run takes longer, nothing is recorded
	recordAtMost = 5 * time.Minute // of a suite: recording slows down Python several times
	replayAtMost = time.Minute     // of the calls of a language
	maxCalls     = 2000            // of all processes of the tests; one records as many at most, by record.py and record.cjs
)

var (
	//go:embed record.py
	recordPython string
	//go:embed replay.py
	replayPython string
	//go:embed record.cjs
	recordNode string
	//go:embed record.mjs
	recordHooks string
	//go:embed replay.cjs
	replayNode string

	// recorders are the files by which Python and node record what is called.
	recorders = map[string]string{"sitecustomize.py": recordPython, "record.cjs": recordNode, "record.mjs": recordHooks}
)

// call is a call of a function of the product by a test, with plain values.
type call struct {
	Lang   string  `json:"lang"` // "py" or "js"
	Module string  `json:"module"`
	Name   string  `json:"name"`
	Args   string  `json:"args"`   // a tuple as Python writes it, or a list of JSON
	Named  string  `json:"named"`  // a dictionary
	State  *string `json:"state"`  // of the object whose method it is, a dictionary; nil: it is a function
	Result *string `json:"result"` // nil: it is no plain value
	Raises bool    `json:"raises"` // it did not return; known in Python
	Thread bool    `json:"thread"` // it was not called in the main thread
	Ends   string  `json:"-"`      // what it raised when made again, where the test may not notice that
	File   string  `json:"file"`
	Line   int     `json:"line"`
}

func (c *call) key() string {
	state := ""
	if c.State != nil {
		state = *c.State
	}
	return strings.Join([]string{c.Module, c.Name, c.Args, c.Named, state}, "\x00")
}

// String is the call as people write it.
func (c *call) String() string {
	args := strings.TrimSuffix(c.Args[1:len(c.Args)-1], ",")
	if c.Named != "{}" {
		args += ", **" + c.Named
	}
	return text.Clip(text.OneLine(cmp.Or(c.Name, path.Base(c.Module))+"("+args+")"), 100)
}

// recording is what tests called.
type recording struct {
	Path  []string `json:"path"` // where modules are looked for, relative to the root
	Calls []call   `json:"calls"`
	Again bool     `json:"again"` // they are made in another order, and each of them twice
	Exits []exit   `json:"exits"` // of node
}

// runAlone finds code that comes to something else in a program of its own.
func (v *verdict) runAlone(ctx context.Context) error {
	var ms int64
	for _, s := range v.head.suites {
		ms += s.done.Millis
	}
	known := slices.ContainsFunc(v.head.patch.changedNames(), func(name string) bool {
		lang := languageOf(name)
		return (lang == &pyLang || lang == &jsLang) && roleOf(name) == product
	})
	if !known || v.o.Baseline == nil || time.Duration(ms)*time.Millisecond > callsAtMost || !v.senses() && !v.raises() && !v.mayExit() && !v.threads {
		return nil
	}
	now, odd, err := v.differing(ctx, v.o.Head)
	ends := slices.ContainsFunc(now.Calls, func(c call) bool { return c.Raises && c.Ends != "" })
	if err != nil || len(odd) == 0 && !ends && len(now.Exits) == 0 {
		return err
	}
	before, unsteady, err := v.differing(ctx, v.o.Base)
	if err != nil {
		return err
	}
	steady := map[string]bool{} // calls that came to the same at the base
	for _, c := range before.Calls {
		_, differed := unsteady[c.key()]
		steady[c.key()] = !differed && (c.Result != nil || steady[c.key()])
	}
	v.endsCallers(now.Calls, before.Calls)
	v.endsProcess(now.Exits, before.Exits)
	told := map[string]bool{}
	for i := range now.Calls {
		c := &now.Calls[i]
		there, differs := odd[c.key()]
		if !differs || !steady[c.key()] || told[c.File+c.Name] || len(told) == maxBent {
			continue
		}
		told[c.File+c.Name] = true
		v.found = append(v.found, pipeline.Finding{Rule: ruleDetects, File: c.File, Line: c.Line, Code: c.Name, Message: fmt.Sprintf(
			"`%s` comes to %s within the tests and to %s in a program of its own, without tests around it; at the base it came to the same in both. Make it not turn on where it is called, or let a human decide that it stays",
			c, text.Clip(*c.Result, 80), text.Clip(there, 80))})
	}
	return nil
}

var raise = lazyregexp.New(`^\s*(?:.*:\s*)?raise\b`)

// raises reports whether the change has the product raise something in Python, which may
// end a thread that a test checks in.
func (v *verdict) raises() bool {
	for f, lines := range v.head.patch.productLines(v.isTest) {
		if languageOf(f.NewName) == &pyLang && slices.ContainsFunc(lines, func(l point.Line) bool { return raise.MatchString(l.Text) }) {
			return true
		}
	}
	return false
}

// endsCallers finds calls that came to something at the base, and now end the thread or the
// iteration in which tests make them, which pass all the same: their checks are not reached.
func (v *verdict) endsCallers(now, before []call) {
	for _, o := range v.tests {
		if o.status == failed {
			return // it is seen
		}
	}
	returned := map[string]bool{}
	for _, c := range before {
		returned[c.key()] = !c.Raises && c.Result != nil
	}
	told := map[string]bool{}
	for i := range now {
		c := &now[i]
		if !c.Raises || c.Ends == "" || !returned[c.key()] || told[c.File+c.Name] || len(told) == maxBent {
			continue
		}
		told[c.File+c.Name] = true
		v.found = append(v.found, pipeline.Finding{Rule: ruleEnds, File: c.File, Line: c.Line, Code: c.Name, Message: fmt.Sprintf(
			"`%s` returned at the base, and raises %s now; the tests pass all the same, since that ends the thread or the iteration in which one of them checks. "+
				"Let it return, or raise what the test sees, or let a human decide that it stays", c, c.Ends)})
	}
}

// differing records the calls of the base's tests on a commit, and returns those that come to
// something else in a program of its own, each time, with what that is.
func (v *verdict) differing(ctx context.Context, sha string) (recording, map[string]string, error) {
	var rec recording
	r := treeRun{sha: sha, record: &rec}
	if sha == v.o.Head {
		r.back = true
		if r.kept = map[string]string{}; v.stood != nil {
			r.kept = v.stood.kept
		}
	}
	if _, err := v.run(ctx, r); err != nil {
		if _, mine := environment(err); mine {
			return rec, nil, nil
		}
		return rec, nil, err
	}
	if len(rec.Calls) == 0 {
		return rec, nil, nil
	}
	first, err := v.replay(ctx, sha, rec)
	if err != nil {
		return rec, nil, err
	}
	rec.Again = true
	second, err := v.replay(ctx, sha, rec)
	if err != nil {
		return rec, nil, err
	}
	out := map[string]string{}
	for i, c := range rec.Calls {
		switch {
		case c.Result == nil || first[i] == nil || second[i] == nil || *first[i] == *c.Result:
		case *first[i] == *second[i]: // else it is chance, or turns on what was before
			out[c.key()] = *first[i]
		}
	}
	return rec, out, nil
}

// replay makes the recorded calls in a program of its own. The result of one is nil where it
// could not be made, or turns on what was before.
func (v *verdict) replay(ctx context.Context, sha string, rec recording) ([]*string, error) {
	tree, err := v.open(ctx, sha)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	files, err := sourceFiles(ctx, tree, "*.json", "*.csv", "*.txt", "*.yaml", "*.yml")
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return !testname.IsFile(name) && testRoot(name) == "" && !inTests(name) })
	if len(files) > 0 {
		if _, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: append([]string{"rm", "-f", "--"}, files[:min(len(files), 2000)]...)}); err != nil {
			return nil, err
		}
	}
	python, dir := v.python()
	out := make([]*string, len(rec.Calls))
	if err := replayIn(ctx, tree, rec, "py", dir, []string{python, "app.py", replayPython}, out); err != nil {
		return nil, err
	}
	return out, replayIn(ctx, tree, rec, "js", dir, []string{"node", "app.cjs", replayNode}, out)
}

// replayIn makes the calls of one language.
func replayIn(ctx context.Context, tree Tree, rec recording, lang, dir string, command []string, out []*string) error {
	part, at := recording{Path: rec.Path, Again: rec.Again}, []int{}
	for i, c := range rec.Calls {
		if c.Lang == lang {
			part.Calls, at = append(part.Calls, c), append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	data, err := json.Marshal(part)
	if err != nil {
		return fmt.Errorf("write down %d calls: %w", len(at), err)
	}
	if err := into(ctx, tree, map[string]string{command[1]: command[2], "calls.json": string(data)}); err != nil {
		return err
	}
	app := strings.Repeat("../", strings.Count(path.Join("/", dir, "x"), "/")-1) + callsDir + "/" + command[1]
	res, err := tree.Run(ctx, workspace.Command{Timeout: replayAtMost, Dir: dir, Args: []string{command[0], app}, Env: []string{"PYTHONHASHSEED=0"}})
	if err != nil || res.Exit != 0 {
		return err
	}
	var results []*string
	got, err := tree.Read(ctx, callsDir+"/results.json")
	if err != nil || json.Unmarshal(got, &results) != nil || len(results) != len(at) {
		return ctx.Err()
	}
	for i, r := range results {
		out[at[i]] = r
	}
	var ends []string
	if got, err := tree.Read(ctx, callsDir+"/ends.json"); err == nil && json.Unmarshal(got, &ends) == nil && len(ends) == len(at) {
		for i, name := range ends {
			rec.Calls[at[i]].Ends = name
		}
	}
	return ctx.Err()
}

// python is the interpreter that the tests run by, and the directory.
func (v *verdict) python() (name, dir string) {
	for _, s := range v.head.suites {
		if (s.pytest || s.format == formatUnittest) && len(s.args) > 0 && strings.Contains(s.args[0], "python") {
			return s.args[0], s.dir
		}
	}
	return "python3", "."
}

// recordEnv has Python and node load their recorders first, before what a suite's own
// environment has them load.
func (c *checker) recordEnv(own []string) []string {
	if !c.recording || strings.ContainsAny(c.root, " \t\"'\\") {
		return nil
	}
	at := c.root + "/" + callsDir
	python := "PYTHONPATH=" + at
	for _, e := range own {
		if paths, is := strings.CutPrefix(e, "PYTHONPATH="); is {
			python += ":" + paths
		}
	}
	return []string{python, "PYTHONHASHSEED=0", "NODE_OPTIONS=--require=" + at + "/record.cjs"}
}

// into writes files into the directory of a recording.
func into(ctx context.Context, tree Tree, files map[string]string) error {
	if _, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"mkdir", "-p", callsDir}}); err != nil {
		return err
	}
	for name, content := range files {
		if err := tree.Write(ctx, callsDir+"/"+name, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// recorded reads what a run called, in each of its processes.
func recorded(ctx context.Context, tree Tree, rec *recording) error {
	names, err := tree.List(ctx, callsDir)
	if err != nil {
		return ctx.Err()
	}
	slices.Sort(names)
	for _, name := range names {
		var one recording
		if !strings.HasPrefix(name, "calls-") {
			continue
		}
		data, err := tree.Read(ctx, callsDir+"/"+name)
		if err != nil || json.Unmarshal(data, &one) != nil {
			continue // a process that was ended in another way
		}
		for _, p := range one.Path {
			if !slices.Contains(rec.Path, p) {
				rec.Path = append(rec.Path, p)
			}
		}
		rec.Exits = append(rec.Exits, one.Exits...)
		one.Calls = slices.DeleteFunc(one.Calls, func(c call) bool { return len(c.Args) < 2 })
		rec.Calls = append(rec.Calls, one.Calls[:min(len(one.Calls), maxCalls-len(rec.Calls))]...)
	}
	return ctx.Err()
}
