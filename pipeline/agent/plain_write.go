package agent

import (
	"context"
	"errors"
	"fmt"
	"go/format"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent/edit"
	"forge/pipeline/testname"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// plainTries is how often the model is asked in one attempt: once, once more with what was
// wrong with its answer or what its code failed with, and once anew: what it has said it
// repeats, and another answer may be right.
const plainTries = 3

// writing is an attempt at code in the plain form.
type writing struct {
	*conversation
	located  located
	feedback feedback
	was      map[string]string // the shown files as they are before the attempt
	back     []string          // what the answer lacked and was put back
	left     []string          // what of it was left out, and why
	failed   string            // what was wrong when the tries were used up
	changed  []string
}

// write asks for code, puts it into the work tree and runs the tests, until they pass or the
// tries are used up. What stands there then is judged like any work.
func (w *writing) write(ctx context.Context) error {
	p := w.p
	if err := w.open(ctx); err != nil {
		return err
	}
	request := w.request(ctx)
	w.mem.begin(request, nil)
	for try := 1; ; try++ {
		log := &turnLog{step: pipeline.Step{Phase: p.phase, Iteration: p.job.Ref.Iteration, Model: w.modelName}}
		wrong, err := w.once(ctx, log)
		if e := p.emit(context.WithoutCancel(ctx), w.role, log); e != nil && err == nil {
			err = e
		}
		if err != nil || wrong == "" {
			return err
		}
		if try == plainTries {
			w.failed = wrong
			return nil
		}
		if w.mem.user(nil, wrong); try == plainTries-1 {
			w.mem = memory{}
			w.mem.begin(request, nil)
		}
	}
}

// once is a request and what comes of it; wrong is what the model is to be told.
func (w *writing) once(ctx context.Context, log *turnLog) (wrong string, err error) {
	p, start := w.p, w.p.agent.opts.Clock()
	w.step++
	p.steps++
	log.step.Number = p.steps
	defer func() { log.step.Millis = p.agent.opts.Clock().Sub(start).Milliseconds() }()
	p.release()
	req := Request{Role: w.name, System: promptText("plain"), Messages: w.mem.messages, MaxTokens: plainAnswer}
	rec, err := p.call(ctx, w.model, w.modelName, w.step, req)
	if err == nil {
		rec, err = p.finish(ctx, w.model, w.modelName, req, rec, func(pipeline.Usage) error { return nil })
	}
	if err != nil {
		return "", err
	}
	r := rec.response
	log.replayed, log.step.Usage, log.step.Adapted = rec.replayed, r.Usage, r.Adapted
	log.step.Call = p.agent.opts.Clock().Sub(start).Milliseconds()
	w.mem.assistant(r)
	if r.Stop == StopRefusal {
		return "", agentFault("%s refused: %q; rephrase the task, or choose another model", w.modelName, text.ClipBytes(r.Text, 300))
	}
	w.back, w.left = nil, nil
	content, wrong := w.read(r.Text)
	if wrong != "" {
		return wrong, nil
	}
	if err := w.put(ctx, content, log); err != nil {
		return "", err
	}
	return w.test(ctx, log)
}

// read is what the files become by an answer; wrong says why nothing comes of it.
func (w *writing) read(answer string) (content map[string]string, wrong string) {
	content = map[string]string{}
	blocks := edit.Read(answer, w.p.job.Tree)
	if len(blocks) == 0 && w.isCode(answer) {
		blocks = []edit.Block{{Text: answer}}
	}
	if len(blocks) == 0 {
		blocks = calledWrites(answer)
	}
	whole := map[string]bool{}
	for _, b := range blocks {
		file, why := w.fileOf(b)
		if file == "" {
			w.left = append(w.left, "Left out of its answer: "+why)
			continue
		}
		now, known := content[file]
		if !known {
			now, known = w.was[file]
		}
		switch {
		case b.Open:
			return nil, fmt.Sprintf("Your answer was cut off in %s. Write only the functions that you change.", file)
		case b.Old != "":
			next, problem := replaced(now, b)
			if problem != "" {
				return nil, fmt.Sprintf("In %s: %s. Write the whole file instead.", file, problem)
			}
			content[file] = next
		case !known:
			content[file] = b.Text
		case testname.IsFile(file):
			content[file] = edit.Add(now, b.Text)
		case whole[file] && strings.Contains(now, strings.TrimSpace(b.Text)):
		default:
			var back []string
			content[file], back = edit.Merge(now, b.Text, w.mayGo)
			whole[file] = true
			w.back = append(w.back, back...)
		}
		if next := content[file]; strings.HasSuffix(file, ".go") {
			formatted, err := format.Source([]byte(next))
			if err != nil {
				return nil, fmt.Sprintf("Your %s does not parse: %v. Write the whole file again.", file, err)
			}
			content[file] = string(formatted)
		}
	}
	for file, next := range content {
		if was, known := w.was[file]; known && was == next {
			delete(content, file)
		}
	}
	switch {
	case len(content) > 0:
		return content, ""
	case len(blocks) == 0:
		return nil, "Your answer holds no code. Write the changed code in a block that begins with ``` and ends with ```."
	}
	return nil, "Your answer changes nothing: the code is what it was before. Think about what is wrong in it. Then write it again, changed. " + strings.Join(w.left, " ")
}

// calledWrites are calls in the text of tools that nobody gave it.
func calledWrites(answer string) (out []edit.Block) {
	_, calls := callsIn(answer)
	for _, c := range calls {
		var in struct{ Path, File, Content, Old, New string }
		if decode(c.Args, &in) == nil && firstOf(in.Path, in.File) != "" && firstOf(in.Content, in.New) != "" {
			out = append(out, edit.Block{Path: firstOf(in.Path, in.File), Old: in.Old, Text: firstOf(in.Content, in.New)})
		}
	}
	return out
}

// isCode reports whether an answer without a fence begins like one of the shown files.
func (w *writing) isCode(answer string) bool {
	first := text.FirstLine(strings.TrimSpace(answer))
	for _, was := range w.was {
		if len(first) > 5 && strings.Contains(was, first+"\n") || edit.Declared(first) != "" && slices.Contains(edit.Names(was), edit.Declared(first)) {
			return true
		}
	}
	return false
}

// fileOf is the file that a block is for; why says why there is none.
func (w *writing) fileOf(b edit.Block) (file, why string) {
	shown := w.located.files
	if slices.Contains([]string{"sh", "bash", "shell", "console", "text", "txt", "json", "output"}, b.Lang) && b.Path == "" {
		return "", "a block of " + b.Lang + ", which names no file"
	}
	if b.Path != "" {
		file, err := inside(b.Path)
		_, known := w.was[file]
		task := w.p.job.Run.Task.Title + "\n" + w.p.job.Run.Task.Body
		switch {
		case err != nil:
			return "", err.Error()
		case known && (!w.located.tests[file] || b.Old == ""):
			return file, ""
		case known:
			return "", file + ", which holds tests that are not its to change"
		case slices.Contains(w.p.job.Tree, file):
			return "", file + ", which it was not shown"
		case strings.Contains(task, path.Base(file)), testname.IsFile(file):
			return file, ""
		}
		if len(shown) > 1 || path.Ext(file) != path.Ext(shown[0]) {
			return "", file + ", of which the task says nothing"
		}
	}
	names, most := edit.Names(b.Text), 0
	for _, f := range shown {
		n := 0
		for _, have := range edit.Names(w.was[f]) {
			if have != "package" && slices.Contains(names, have) {
				n++
			}
		}
		if b.Old != "" && strings.Contains(w.was[f], strings.TrimSpace(b.Old)) {
			n += 100
		}
		if n > most {
			file, most = f, n
		}
	}
	switch {
	case file != "":
		return file, ""
	case len(shown) == 1 && len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(strings.ToLower(n), "test") }):
		return shown[0], ""
	}
	return "", "a block that belongs to none of the files"
}

// replaced is a file with what a block of SEARCH and REPLACE, or a hunk of a patch, changes.
func replaced(now string, b edit.Block) (next, problem string) {
	if strings.Count(now, b.Old) == 1 {
		return strings.Replace(now, b.Old, b.Text, 1), ""
	}
	if strings.Count(now, b.Old) > 1 {
		return "", "what you search for stands there more than once"
	}
	if n, ok := near(now, b.Old, b.Text); ok {
		return now[:n.from] + n.text + now[n.to:], ""
	}
	return "", "what you search for does not stand there"
}

// mayGo reports whether the task wants something to go that a file declares.
func (w *writing) mayGo(name string) bool {
	task := w.p.job.Run.Task.Title + "\n" + w.p.job.Run.Task.Body + "\n" + strings.Join(w.p.job.Run.Notes, "\n")
	words := text.Words(task)
	goes := slices.ContainsFunc(words, func(s string) bool {
		return slices.Contains([]string{"remove", "removes", "removed", "delete", "drop", "rename", "renamed", "replace", "move", "instead"}, s)
	})
	return goes && slices.Contains(identifiers(task), name[strings.LastIndexByte(name, '.')+1:])
}

// put writes files. A try takes the place of the one before it.
func (w *writing) put(ctx context.Context, content map[string]string, log *turnLog) error {
	ws := w.p.job.Workspace
	for _, file := range w.changed {
		if _, again := content[file]; again {
			continue
		}
		var err error
		if was, known := w.was[file]; known {
			err = ws.Write(ctx, file, []byte(was))
		} else {
			err = ws.Remove(ctx, file)
		}
		if err != nil {
			return asFault(ctx, err)
		}
	}
	w.changed = nil
	for _, file := range slices.Sorted(maps.Keys(content)) {
		if err := ws.Write(ctx, file, []byte(content[file])); err != nil {
			if ends(ctx, err) {
				return err
			}
			w.left = append(w.left, "Left out of its answer: "+file+", "+err.Error())
			continue
		}
		w.changed = append(w.changed, file)
		log.step.Progress = true
		log.tools = append(log.tools, w.used("write", file, content[file], true))
	}
	return nil
}

// asFault is an error of a workspace as the phase ends with it.
func asFault(ctx context.Context, err error) error {
	if ends(ctx, err) {
		return err
	}
	return agentFault("%v", err)
}

// test runs the commands that the repository is tested by, and returns what of their output
// the model is to be told. Where tests fail that are none of the task's, it is not asked again.
func (w *writing) test(ctx context.Context, log *turnLog) (wrong string, err error) {
	p := w.p
	base := p.baseline()
	if base == nil {
		return "", nil
	}
	about := len(p.job.Run.Config.Tests.Commands)
	if p.job.Run.Plan != nil {
		about = len(p.job.Run.Plan.Tests)
	}
	for _, s := range base.Suites {
		if s.Command == "" || s.NotRun != "" || s.Tier != "" {
			continue
		}
		start := p.agent.opts.Clock()
		res, err := p.job.Workspace.Run(ctx, workspace.Command{Args: []string{"sh", "-c", s.Command}, Timeout: time.Duration(p.job.Run.Config.Tests.TimeoutMinutes) * time.Minute})
		if err != nil {
			if ends(ctx, err) {
				return "", err
			}
			return "", nil // the tests of the run will say so
		}
		ok := res.Exit == 0 && res.Class == ""
		out := strings.TrimSpace(string(res.Stdout) + "\n" + string(res.Stderr))
		use := w.used("run", s.Command, denoise(out), ok)
		use.Millis = p.agent.opts.Clock().Sub(start).Milliseconds()
		log.tools = append(log.tools, use)
		if ok || len(base.Failures)+len(base.Before) > about && about > 0 {
			continue
		}
		return fmt.Sprintf("With that, the tests fail (%s):\n\n%s\n\nWrite the code again, corrected so that they pass: each function that changes as a whole, in a fenced block. Code first.", s.Command,
			text.Fence("", middleCut(strings.ToValidUTF8(out, "\uFFFD"), 800, 1500))), nil
	}
	return "", nil
}

// used is what the program did with an answer, for the step's events.
func (w *writing) used(tool, subject, content string, ok bool) pipeline.ToolUse {
	return pipeline.ToolUse{Phase: w.p.phase, Iteration: w.p.job.Ref.Iteration, Step: w.p.steps, Tool: tool,
		Subject: text.ClipBytes(subject, 120), OK: ok, Bytes: len(content), Digest: digest(content)}
}

// open finds the model.
func (w *writing) open(ctx context.Context) (err error) {
	w.model, _, err = w.p.agent.model(w.p.job.Run, w.role)
	if err != nil {
		return err
	}
	w.price, _ = w.p.agent.prices.Find(w.modelName)
	w.p.budget.role = w.role
	w.was = map[string]string{}
	for _, f := range slices.Concat(w.located.files, w.located.shown) {
		content, ok := w.p.source(ctx, f)
		if !ok {
			return errors.Join(ctx.Err(), agentFault("%s cannot be read", f))
		}
		w.was[f] = content
	}
	if len(w.p.job.Run.Iterations) > 1 {
		w.feedback = openFeedback(w.p.job.Run)
	}
	return nil
}

// plainAnswer is how many tokens an answer may have: a whole file, and some words.
const plainAnswer = 4_000

// request holds all that is needed.
func (w *writing) request(ctx context.Context) string {
	run := w.p.job.Run
	var b strings.Builder
	fmt.Fprintf(&b, "# Task\n\n%s\n", cutWithWord(strings.TrimSpace(Clean(run.Task.Title+"\n\n"+strings.TrimPrefix(run.Task.Body, run.Task.Title))), 6<<10, len(run.Task.Body), "the task"))
	for _, n := range run.Notes {
		fmt.Fprintf(&b, "\nA maintainer says: %s\n", text.ClipBytes(Clean(n), 1000))
	}
	for _, f := range w.located.files {
		fmt.Fprintf(&b, "\n# File %s\n\n%s\n", f, text.Fence(langOf(f), w.located.show(w.was[f])))
	}
	if said := w.failing(ctx); said != "" {
		b.WriteString(said)
	} else {
		for _, f := range w.located.shown {
			fmt.Fprintf(&b, "\n# Tests in %s\n\n%s\n", f, text.Fence(langOf(f), cutWithWord(w.was[f], maxShownTest, len(w.was[f]), f)))
		}
	}
	for _, f := range w.feedback.findings {
		fmt.Fprintf(&b, "\nA reviewer says%s %s\n", where(f.File, f.Line, f.EndLine), text.ClipBytes(f.Message, 600))
	}
	fmt.Fprintf(&b, "\nSay in one sentence what has to change in %s. Then write the changed code in a fenced block: each function that changes as a whole, and nothing else.",
		strings.Join(w.located.files, ", "))
	return b.String()
}

// failing is what the tests say that the task is about, or that failed last, with the tests themselves.
func (w *writing) failing(ctx context.Context) string {
	list := w.feedback.failures
	if len(list) == 0 {
		list = w.p.aboutTask(ctx)
	}
	var b strings.Builder
	for _, f := range list[:min(len(list), mostShown)] {
		fmt.Fprintf(&b, "\n# Failing test%s %s\n\n", where(f.File, f.Line, 0), f.Test)
		if source, ok := w.p.source(ctx, f.File); ok && f.Line > 0 {
			b.WriteString(text.Fence(langOf(f.File), testSource(source, f)) + "\n\n")
		}
		b.WriteString(text.Fence("", middleCut(strings.TrimSpace(f.Error), 500, 900)) + "\n")
	}
	return b.String()
}

// langOf is what a block of a file is marked with.
func langOf(file string) string {
	ext := strings.TrimPrefix(path.Ext(file), ".")
	if ext == "py" {
		return "python"
	}
	return ext
}
