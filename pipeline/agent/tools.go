package agent

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

//go:embed tools/*.md
var toolTexts embed.FS

// Caps on what one use of a tool may take in or give out (S22).
const (
	maxReadLines  = 400
	maxReadBytes  = 64 << 10
	maxWriteBytes = 1 << 20
	maxListed     = 500
	maxHits       = 100     // of a search, that are shown
	mostHits      = 1000    // that are counted
	outputHead    = 6 << 10 // of a command's output, which is cut in the middle
	outputTail    = 10 << 10
)

// outcome is what a tool gave.
type outcome struct {
	text    string
	ok      bool
	misuse  bool   // the call itself was wrong: no information came of it
	changed string // path that has other content now
	content string // digest of that content
}

func misuse(format string, args ...any) outcome {
	return outcome{text: fmt.Sprintf(format, args...), misuse: true}
}

// tool is something that a model can do to a workspace. An error of run ends the
// phase; everything that the model can fix is an outcome.
type tool struct {
	name    string
	schema  map[string]any
	subject string // the argument that says what it is about
	reads   bool   // it changes nothing, and may go beside others
	run     func(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error)
}

// toolbox is what tools work on.
type toolbox struct {
	ws      Workspace
	base    string        // SHA that the run's work starts from
	ran     bool          // a command was run: the work tree may have changed
	timeout time.Duration // cap on a command
}

// object makes the schema of an object. Names of optional properties end in "?".
func object(props ...any) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for i := 0; i < len(props); i += 2 {
		name := props[i].(string)
		if optional, ok := strings.CutSuffix(name, "?"); ok {
			name = optional
		} else {
			required = append(required, name)
		}
		properties[name] = props[i+1]
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func typed(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}

// anyText is an item that its list says enough of.
var anyText = map[string]any{"type": "string"}

func listOf(items map[string]any, description string) map[string]any {
	return map[string]any{"type": "array", "items": items, "description": description}
}

func oneOf(description string, values ...string) map[string]any {
	return map[string]any{"type": "string", "enum": values, "description": description}
}

var readingTools = []tool{
	{"list", object("dir?", typed("string", "A directory, relative to the root. Empty for the root.")), "dir", true, runList},
	{"read", object("path", typed("string", "A file, relative to the root."), "from?", typed("integer", "The first line, from 1."), "to?", typed("integer", "The last line.")), "path", true, runRead},
	{"search", object("pattern", typed("string", "A regular expression (RE2)."), "glob?", typed("string", "Only files that match, such as *.go."), "max?", typed("integer", "The most hits, up to 100.")), "pattern", true, runSearch},
}

var editingTools = []tool{
	{"edit", object("path", typed("string", "A file, relative to the root."), "old", typed("string", "The text to replace. It must occur exactly once."), "new", typed("string", "The text to put there.")), "path", false, runEdit},
	{"write", object("path", typed("string", "A file, relative to the root."), "content", typed("string", "The whole content.")), "path", false, runWrite},
	{"remove", object("path", typed("string", "A file, relative to the root.")), "path", false, runRemove},
}

var commandTool = tool{"run", object("command", typed("string", "A command line for sh."), "dir?", typed("string", "The directory to run it in."), "seconds?", typed("integer", "A time limit in seconds.")), "command", false, runCommand}

func (t tool) describe() Tool {
	text, err := toolTexts.ReadFile("tools/" + t.name + ".md")
	if err != nil {
		panic("agent: tool " + t.name + " has no description: " + err.Error())
	}
	return Tool{Name: t.name, Description: strings.TrimSpace(string(text)), Schema: t.schema}
}

// about returns the subject of a call, shortened.
func (t tool) about(args json.RawMessage) string {
	var m map[string]any
	_ = json.Unmarshal(args, &m) // what does not parse has no subject
	s, _ := m[t.subject].(string)
	return text.ClipBytes(strings.Join(strings.Fields(s), " "), 120)
}

// inside cleans a path and refuses one that leaves the work tree. The workspace
// checks again, on the file system.
func inside(p string) (string, error) {
	if p == "" {
		return "", errors.New("path is empty")
	}
	clean := path.Clean(strings.TrimPrefix(p, "./"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, "\x00\\") {
		return "", fmt.Errorf("path %q is outside the repository; paths are relative to its root", p)
	}
	return clean, nil
}

// failed tells the model what a workspace said, or ends the phase.
func failed(ctx context.Context, err error) (outcome, error) {
	if ends(ctx, err) {
		return outcome{}, err
	}
	return misuse("%s", text.ClipBytes(err.Error(), 1000)), nil
}

func runList(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct{ Dir string }
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	dir := "."
	if in.Dir != "" {
		var err error
		if dir, err = inside(in.Dir); err != nil {
			return misuse("%v", err), nil
		}
	}
	names, err := b.ws.List(ctx, dir)
	if err != nil {
		return failed(ctx, err)
	}
	more := ""
	if n := len(names); n > maxListed {
		names, more = names[:maxListed], fmt.Sprintf("\n… and %d more; list a subdirectory, or search", n-maxListed)
	}
	if len(names) == 0 {
		return outcome{text: "(empty)", ok: true}, nil
	}
	return outcome{text: strings.Join(names, "\n") + more, ok: true}, nil
}

func runRead(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Path     string
		From, To int
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := inside(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	data, err := b.ws.Read(ctx, p)
	if err != nil {
		return failed(ctx, err)
	}
	if !isText(data) {
		return misuse("%s is not a text file (%d bytes)", p, len(data)), nil
	}
	lines := splitLines(string(data))
	from, to := max(1, in.From), in.To
	if to <= 0 || to > len(lines) {
		to = len(lines)
	}
	if from > max(1, len(lines)) || to < from && len(lines) > 0 {
		return misuse("%s has %d lines; lines %d to %d do not exist", p, len(lines), in.From, in.To), nil
	}
	return outcome{text: numbered(lines, from, to), ok: true}, nil
}

// numbered shows lines with their numbers, up to the caps.
func numbered(lines []string, from, to int) string {
	var s strings.Builder
	last := min(to, from+maxReadLines-1)
	for n := from; n <= last; n++ {
		line := fmt.Sprintf("%5d\t%s\n", n, text.ClipBytes(lines[n-1], 2000))
		if s.Len()+len(line) > maxReadBytes {
			last = n - 1
			break
		}
		s.WriteString(line)
	}
	if len(lines) == 0 {
		return "(empty file)"
	}
	if last < to {
		fmt.Fprintf(&s, "… lines %d to %d are left out; read them with from and to\n", last+1, to)
	}
	return s.String()
}

func runSearch(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Pattern, Glob string
		Max           int
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	if in.Pattern == "" {
		return misuse("pattern is empty"), nil
	}
	if in.Max <= 0 || in.Max > maxHits {
		in.Max = maxHits
	}
	hits, err := b.ws.Search(ctx, in.Pattern, in.Glob, mostHits)
	if err != nil {
		return failed(ctx, err)
	}
	if len(hits) == 0 {
		return outcome{text: fmt.Sprintf("nothing matches %q", in.Pattern), ok: true}, nil
	}
	more := ""
	if n := len(hits) - in.Max; n > 0 {
		hits, more = hits[:in.Max], fmt.Sprintf("\n(%d more lines match; narrow the pattern or the glob, or raise max)", n)
		if n == mostHits-in.Max {
			more = fmt.Sprintf("\n(%d more lines match at least; narrow the pattern or the glob)", n)
		}
	}
	for i := range hits {
		hits[i] = text.ClipBytes(hits[i], 300)
	}
	return outcome{text: strings.Join(hits, "\n") + more, ok: true}, nil
}

func runEdit(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct{ Path, Old, New string }
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := inside(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	if in.Old == "" {
		return misuse("old is empty; to make a new file use write"), nil
	}
	if isElided(in.Old) || isElided(in.New) {
		return misuse("%s", whyElided), nil
	}
	if in.Old == in.New {
		return misuse("old and new are the same"), nil
	}
	data, err := b.ws.Read(ctx, p)
	if err != nil {
		return failed(ctx, err)
	}
	text, old, repl := string(data), in.Old, in.New
	if strings.Contains(text, "\r\n") && !strings.Contains(old, "\r") { // models write plain line ends
		old, repl = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(repl, "\n", "\r\n")
	}
	place := nearly{from: strings.Index(text, old), text: repl}
	place.to = place.from + len(old)
	switch n := strings.Count(text, old); n {
	case 1:
	case 0:
		var ok bool
		if place, ok = near(text, old, repl); !ok {
			return misuse("old does not occur in %s%s", p, hint(text, in.Old)), nil
		}
	default:
		return misuse("old occurs %d times in %s (lines %s); take more of the lines around it, so that it occurs once", n, p, places(text, old)), nil
	}
	now := text[:place.from] + place.text + text[place.to:]
	out, err := store(ctx, b, p, now)
	if out.ok {
		at := 1 + strings.Count(text[:place.from], "\n")
		out.text = fmt.Sprintf("replaced, from line %d of %s", at, p)
		if place.how != "" {
			out.text += fmt.Sprintf(", although old differs from what stood there in %s", place.how)
		}
		lines := splitLines(now)
		from, to := max(1, at-editedAround), min(len(lines), at+strings.Count(place.text, "\n")+editedAround)
		if to-from < editedLines {
			out.text += ". It says now:\n" + numbered(lines, from, to)
		}
	}
	return out, err
}

// How much of a file is shown after an edit: so many lines around it, and nothing where that
// would be more than editedLines.
const (
	editedAround = 2
	editedLines  = 40
)

// hint says where text like old stands.
func hint(text, old string) string {
	lines := splitLines(text)
	if from, to, ok := closest(lines, old); ok {
		return fmt.Sprintf("; what is most like it stands at line %d, and it must be copied as it is:\n%s", from+1, numbered(lines, from+1, to))
	}
	return ", nor anything like it; read the file again, it may have changed"
}

// places lists the lines on which old begins, at most five.
func places(text, old string) string {
	var out []string
	for off := 0; len(out) < 5; {
		i := strings.Index(text[off:], old)
		if i < 0 {
			break
		}
		out = append(out, fmt.Sprint(1+strings.Count(text[:off+i], "\n")))
		off += i + len(old)
	}
	return strings.Join(out, ", ")
}

func runWrite(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct{ Path, Content string }
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := inside(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	return store(ctx, b, p, in.Content)
}

// store writes a file and says what became of it.
func store(ctx context.Context, b *toolbox, p, content string) (outcome, error) {
	if isElided(content) {
		return misuse("%s", whyElided), nil
	}
	if len(content) > maxWriteBytes {
		return misuse("%s would have %d bytes; the most is %d", p, len(content), maxWriteBytes), nil
	}
	if before, err := b.ws.Read(ctx, p); err == nil && string(before) == content {
		return outcome{text: p + " has this content already; nothing changed", ok: true}, nil
	}
	if err := b.ws.Write(ctx, p, []byte(content)); err != nil {
		return failed(ctx, err)
	}
	return outcome{text: fmt.Sprintf("wrote %s, %d lines", p, len(splitLines(content))), ok: true, changed: p, content: digest(content)}, nil
}

func runRemove(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct{ Path string }
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := inside(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	if p == "." {
		return misuse("path is the root of the repository; remove takes a file"), nil
	}
	if err := b.ws.Remove(ctx, p); err != nil {
		return failed(ctx, err)
	}
	return outcome{text: "removed " + p, ok: true, changed: p, content: "removed"}, nil
}

func runCommand(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Command, Dir string
		Seconds      int
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	if strings.TrimSpace(in.Command) == "" {
		return misuse("command is empty"), nil
	}
	cmd := workspace.Command{Args: []string{"sh", "-c", in.Command}, Timeout: b.timeout}
	if in.Dir != "" {
		dir, err := inside(in.Dir)
		if err != nil {
			return misuse("%v", err), nil
		}
		cmd.Dir = dir
	}
	if t := time.Duration(in.Seconds) * time.Second; t > 0 && (b.timeout == 0 || t < b.timeout) {
		cmd.Timeout = t
	}
	b.ran = true
	res, err := b.ws.Run(ctx, cmd)
	if err != nil {
		return failed(ctx, err)
	}
	how := fmt.Sprintf("exit %d", res.Exit)
	if res.Class != "" {
		how = "killed: " + res.Class
	}
	if res.Truncated {
		how += ", output over the cap was dropped"
	}
	out := strings.TrimRight(string(res.Stdout), "\n")
	if e := strings.TrimRight(string(res.Stderr), "\n"); e != "" {
		out = strings.TrimLeft(out+"\n[stderr]\n"+e, "\n")
	}
	for _, sub := range res.Outside {
		how += fmt.Sprintf("; what is written into %s goes into no commit: it is a submodule, a repository of its own", sub)
	}
	return outcome{text: how + "\n" + middleCut(strings.ToValidUTF8(out, "\uFFFD"), outputHead, outputTail), ok: res.Exit == 0 && res.Class == ""}, nil
}

// middleCut keeps the head and the tail of long output: the first error is in
// the one, the summary in the other.
func middleCut(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	h := strings.LastIndexByte(s[:head], '\n')
	if h < head/2 {
		h = head
	}
	t := len(s) - tail
	if i := strings.IndexByte(s[t:], '\n'); i >= 0 && i < tail/2 {
		t += i + 1
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s\n… %d bytes left out …\n%s", s[:h], t-h, s[t:]), "")
}

func isText(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return !slices.Contains(head, 0) && (utf8.Valid(data) || len(data) > 8000)
}

// splitLines splits text into lines without their ends.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
