// Package export writes what is remembered as Markdown, one file for a scope, and
// reads it back. The files are meant to be read, reviewed in a pull request and
// merged by git: the order is stable, each learning is a section of its own under
// its key, each field and each piece of evidence a line. It stores nothing.
//
// The form:
//
//	# Memory of repo:acme/site
//
//	## dismissal:thread/PRRT_x
//
//	- type: semantic
//	- confidence: 0.7 (base 0.7)
//	- …
//
//	> The words, one line for a line.
//
//	- evidence: thread/PRRT_y | -0.2 | 2026-03-01T12:00:00Z | ann (1) | run 7 | on | why
//
// A value that would not survive as it is (leading space, line break, …) stands
// in Go's double quotes.
package export

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Entry is a learning with its evidence.
type Entry struct {
	Learning pipeline.Learning
	Evidence []pipeline.Evidence
}

const title = "# Memory of "

// Write returns the file of a scope: its entries by key. Ids are those of one
// database and are left out: scope and key are the identity.
func Write(scope string, entries []Entry) []byte {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Learning.Key, b.Learning.Key) })
	var b strings.Builder
	b.WriteString(title + plain(scope) + "\n")
	for _, e := range entries {
		if e.Learning.Scope == scope {
			section(&b, e)
		}
	}
	return []byte(b.String())
}

func section(b *strings.Builder, e Entry) {
	l := &e.Learning
	fmt.Fprintf(b, "\n## %s\n\n", plain(l.Key))
	for _, f := range fields {
		if v := f.get(l); v != "" {
			fmt.Fprintf(b, "- %s: %s\n", f.name, v)
		}
	}
	b.WriteByte('\n')
	for line := range strings.SplitSeq(l.Content, "\n") {
		switch {
		case line == "":
			b.WriteString(">\n")
		case indented(line):
			b.WriteString("> " + line + "\n")
		default:
			b.WriteString("> " + plain(line) + "\n")
		}
	}
	evidence := slices.Clone(e.Evidence)
	slices.SortFunc(evidence, func(a, b pipeline.Evidence) int { return cmp.Compare(a.Key, b.Key) })
	if len(evidence) > 0 {
		b.WriteByte('\n')
	}
	for _, v := range evidence {
		on := "on"
		if v.Off {
			on = "taken back"
		}
		parts := []string{v.Key, number(v.Delta), stamp(v.At), actor(v.Actor), fmt.Sprintf("run %d", v.Run), on, v.Why}
		for i, p := range parts {
			if parts[i] = plain(p); strings.Contains(p, "|") { // a bar inside a value
				parts[i] = strings.ReplaceAll(strconv.Quote(p), "|", `\x7c`)
			}
		}
		b.WriteString("- evidence: " + strings.Join(parts, " | ") + "\n")
	}
}

// A field is one line of a section.
type field struct {
	name string
	get  func(*pipeline.Learning) string // "" leaves it out
	set  func(*pipeline.Learning, string) error
}

func textField(name string, at func(*pipeline.Learning) *string) field {
	return field{name, func(l *pipeline.Learning) string {
		if *at(l) == "" {
			return ""
		}
		return plain(*at(l))
	}, func(l *pipeline.Learning, s string) (err error) {
		*at(l), err = unplain(s)
		return err
	}}
}

func numberField(name string, at func(*pipeline.Learning) *float64) field {
	return field{name, func(l *pipeline.Learning) string { return number(*at(l)) }, func(l *pipeline.Learning, s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return fmt.Errorf("%q is not a number from 0 to 1", s)
		}
		*at(l) = f
		return nil
	}}
}

func timeField(name string, at func(*pipeline.Learning) *time.Time) field {
	return field{name, func(l *pipeline.Learning) string { return stamp(*at(l)) }, func(l *pipeline.Learning, s string) (err error) {
		*at(l), err = unstamp(s)
		return err
	}}
}

func listField(name string, at func(*pipeline.Learning) *[]string) field {
	return field{name, func(l *pipeline.Learning) string {
		var parts []string
		for _, s := range *at(l) {
			if s == "" || strings.ContainsAny(s, `, "`) || !bare(s) {
				s = strconv.Quote(s)
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, ", ")
	}, func(l *pipeline.Learning, s string) error {
		for s != "" {
			one, rest := s, ""
			if q, err := strconv.QuotedPrefix(s); err == nil && s[0] == '"' { // Go's other quotes are no quotes here
				one, rest = q, s[len(q):]
			} else if i := strings.Index(s, ","); i >= 0 {
				one, rest = s[:i], s[i:]
			}
			v, err := unplain(strings.TrimSpace(one))
			if err != nil {
				return err
			}
			*at(l) = append(*at(l), v)
			if rest = strings.TrimSpace(rest); rest != "" && rest[0] != ',' {
				return fmt.Errorf("%q is not a list: put commas between its parts", s)
			}
			s = strings.TrimSpace(strings.TrimPrefix(rest, ","))
		}
		return nil
	}}
}

func countField(name string, at func(*pipeline.Learning) *int64) field {
	return field{name, func(l *pipeline.Learning) string {
		if *at(l) == 0 {
			return ""
		}
		return strconv.FormatInt(*at(l), 10)
	}, func(l *pipeline.Learning, s string) (err error) {
		if *at(l), err = strconv.ParseInt(s, 10, 64); err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		return nil
	}}
}

// oneOf refuses what is not in the list.
func oneOf(f field, allowed ...string) field {
	set := f.set
	f.set = func(l *pipeline.Learning, s string) error {
		if !slices.Contains(allowed, s) {
			return fmt.Errorf("%q is none of %s", s, strings.Join(allowed, ", "))
		}
		return set(l, s)
	}
	return f
}

// fields are those of a section, in their order.
var fields = []field{
	oneOf(textField("type", func(l *pipeline.Learning) *string { return (*string)(&l.Type) }), "episodic", "semantic", "procedural"),
	oneOf(textField("state", func(l *pipeline.Learning) *string { return (*string)(&l.State) }), "active", "withdrawn", "merged", "retired", "forgotten"),
	textField("category", func(l *pipeline.Learning) *string { return (*string)(&l.Category) }),
	numberField("confidence", func(l *pipeline.Learning) *float64 { return &l.Confidence }),
	numberField("base", func(l *pipeline.Learning) *float64 { return &l.Base }),
	textField("source", func(l *pipeline.Learning) *string { return (*string)(&l.Source) }),
	{"author", func(l *pipeline.Learning) string {
		if l.Author == (pipeline.Actor{}) {
			return ""
		}
		return plain(actor(l.Author))
	}, func(l *pipeline.Learning, s string) (err error) {
		if s, err = unplain(s); err == nil {
			l.Author, err = unactor(s)
		}
		return err
	}},
	numberField("weight", func(l *pipeline.Learning) *float64 { return &l.Weight }),
	countField("run", func(l *pipeline.Learning) *int64 { return &l.Run }),
	textField("signal", func(l *pipeline.Learning) *string { return &l.Signal }),
	textField("finding", func(l *pipeline.Learning) *string { return &l.Finding }),
	textField("code", func(l *pipeline.Learning) *string { return &l.Code }),
	listField("paths", func(l *pipeline.Learning) *[]string { return &l.Paths }),
	listField("tags", func(l *pipeline.Learning) *[]string { return &l.Tags }),
	timeField("created", func(l *pipeline.Learning) *time.Time { return &l.Created }),
	timeField("touched", func(l *pipeline.Learning) *time.Time { return &l.Touched }),
	textField("context", func(l *pipeline.Learning) *string { return &l.Context }),
}

// Error is what is wrong with a file, and in which line.
type Error struct {
	Line int // from 1
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("memory file, line %d: %s", e.Line, e.Text) }

// maxFile is the largest file that is read, in bytes.
const maxFile = 32 << 20

// Read reads a file of a scope. The first mistake is an [*Error].
func Read(data []byte) (scope string, entries []Entry, err error) {
	if len(data) > maxFile {
		return "", nil, &Error{1, fmt.Sprintf("the file has %d bytes, over %d", len(data), maxFile)}
	}
	r := &reader{seen: map[string]int{}}
	for i, text := range strings.Split(strings.TrimPrefix(string(data), "\uFEFF"), "\n") {
		r.line = i + 1
		if err := r.take(strings.TrimSuffix(text, "\r")); err != nil {
			return "", nil, r.at(err)
		}
	}
	if err := r.close(); err != nil {
		return "", nil, r.at(err)
	}
	if r.scope == "" {
		return "", nil, &Error{1, `the file does not begin with "` + title + `SCOPE"`}
	}
	return r.scope, r.entries, nil
}

type reader struct {
	line    int
	scope   string
	entry   *Entry
	words   []string        // of the content
	has     map[string]bool // fields of the entry, and keys of its evidence
	entries []Entry
	seen    map[string]int // keys, and their lines
}

// at says in which line an error is, unless it says so itself.
func (r *reader) at(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{r.line, err.Error()}
}

func (r *reader) take(s string) (err error) {
	switch {
	case strings.TrimSpace(s) == "":
		return nil
	case r.scope == "":
		rest, ok := strings.CutPrefix(s, title)
		if !ok {
			return fmt.Errorf("%.60q: want %q first", s, title+"SCOPE")
		}
		if r.scope, err = unplain(rest); err == nil && r.scope == "" {
			err = fmt.Errorf("the scope is missing: give repo:OWNER/NAME or org:OWNER")
		}
		return err
	case strings.HasPrefix(s, "## "):
		if err := r.close(); err != nil {
			return err
		}
		return r.open(s[len("## "):])
	case r.entry == nil:
		return fmt.Errorf("%.60q stands outside of a section: want ## KEY first", s)
	case s == ">" || strings.HasPrefix(s, "> "):
		text, err := unplain(strings.TrimPrefix(strings.TrimPrefix(s, ">"), " "))
		r.words = append(r.words, text)
		return err
	case strings.HasPrefix(s, "- "):
		return r.field(s[len("- "):])
	}
	return fmt.Errorf("%.60q is no heading (##), field (- name: value) or content (> words)", s)
}

func (r *reader) open(text string) error {
	key, err := unplain(text)
	if err != nil {
		return err
	}
	if at, ok := r.seen[key]; ok {
		return fmt.Errorf("the learning %s is there already, in line %d: merge the two sections", key, at)
	}
	r.seen[key] = r.line
	r.entry, r.words, r.has = &Entry{Learning: pipeline.Learning{Key: key, Scope: r.scope}}, nil, map[string]bool{}
	return nil
}

func (r *reader) field(s string) error {
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		return fmt.Errorf("%.60q: want - name: value", s)
	}
	value = strings.TrimSpace(value)
	if name == "evidence" {
		e, err := r.evidence(value)
		if err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
		if r.has["evidence "+e.Key] {
			return fmt.Errorf("evidence: the key %s comes twice", e.Key)
		}
		r.has["evidence "+e.Key] = true
		r.entry.Evidence = append(r.entry.Evidence, e)
		return nil
	}
	for _, f := range fields {
		if f.name == name {
			if r.has[name] {
				return fmt.Errorf("%s comes twice", name)
			}
			r.has[name] = true
			if err := f.set(&r.entry.Learning, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	near := text.Nearest(name, append(names, "evidence"))
	if near != "" {
		near = ": did you mean " + near + "?"
	}
	return fmt.Errorf("there is no field %q%s", name, near)
}

// evidence reads KEY | DELTA | TIME | ACTOR | run N | on | WHY.
func (r *reader) evidence(s string) (e pipeline.Evidence, err error) {
	parts := strings.Split(s, "|")
	if len(parts) != 7 {
		return e, fmt.Errorf("%d parts between bars, want 7: KEY | DELTA | TIME | ACTOR | run N | on | WHY", len(parts))
	}
	for i := range parts {
		if parts[i], err = unplain(strings.TrimSpace(parts[i])); err != nil {
			return e, err
		}
	}
	e.Of, e.Key, e.Why = r.entry.Learning.Key, parts[0], parts[6]
	if e.Delta, err = strconv.ParseFloat(parts[1], 64); err != nil || !(e.Delta >= -1 && e.Delta <= 1) {
		return e, fmt.Errorf("%q is not a number from -1 to 1", parts[1])
	}
	if e.At, err = unstamp(parts[2]); err != nil {
		return e, err
	}
	if e.Actor, err = unactor(parts[3]); err != nil {
		return e, err
	}
	run, ok := strings.CutPrefix(parts[4], "run ")
	if e.Run, err = strconv.ParseInt(run, 10, 64); err != nil || !ok {
		return e, fmt.Errorf("%q is not a run: want run N", parts[4])
	}
	if e.Off = parts[5] == "taken back"; !e.Off && parts[5] != "on" {
		return e, fmt.Errorf(`%q: want "on" or "taken back"`, parts[5])
	}
	return e, nil
}

// close ends the section that is open.
func (r *reader) close() error {
	if r.entry == nil {
		return nil
	}
	r.entry.Learning.Content = strings.Join(r.words, "\n")
	for _, name := range []string{"type", "state", "base", "created"} {
		if !r.has[name] {
			return &Error{r.seen[r.entry.Learning.Key], fmt.Sprintf("the learning %s has no %s", r.entry.Learning.Key, name)}
		}
	}
	if r.words == nil {
		return &Error{r.seen[r.entry.Learning.Key], fmt.Sprintf("the learning %s has no words: want > TEXT", r.entry.Learning.Key)}
	}
	for _, e := range r.entry.Evidence {
		switch {
		case e.Off:
		case e.Delta > 0:
			r.entry.Learning.For++
		case e.Delta < 0:
			r.entry.Learning.Against++
		}
	}
	r.entries = append(r.entries, *r.entry)
	r.entry = nil
	return nil
}

// bare reports whether a value survives without quotes.
func bare(s string) bool {
	if s == "" || s != strings.TrimSpace(s) || s[0] == '"' {
		return false
	}
	for _, c := range s {
		if c == unicode.ReplacementChar || c != '\t' && !unicode.IsGraphic(c) {
			return false
		}
	}
	return true
}

// indented reports whether a line of code or prose survives as it is behind "> ".
func indented(s string) bool {
	text := strings.TrimLeft(s, " \t")
	return bare(text) || strings.HasPrefix(text, `"`) && text != s && bare("x"+text)
}

func plain(s string) string {
	if bare(s) {
		return s
	}
	return strconv.Quote(s)
}

func unplain(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	text, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("%.60q is not a quoted text", s)
	}
	return text, nil
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func unstamp(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("%q is not a time like 2026-03-01T12:00:00Z", s)
	}
	return t.UTC(), nil
}

// actor is "LOGIN (ID)", with " bot" behind a bot.
func actor(a pipeline.Actor) string {
	s := fmt.Sprintf("%s (%d)", a.Login, a.ID)
	if a.Bot {
		s += " bot"
	}
	return s
}

func unactor(s string) (a pipeline.Actor, err error) {
	text, bot := strings.CutSuffix(s, " bot")
	a.Bot = bot
	i := strings.LastIndex(text, " (")
	if i < 0 || !strings.HasSuffix(text, ")") {
		return a, fmt.Errorf("%q is not a person: want LOGIN (ID)", s)
	}
	a.Login = text[:i]
	if a.ID, err = strconv.ParseInt(text[i+2:len(text)-1], 10, 64); err != nil {
		return a, fmt.Errorf("%q is not a person: want LOGIN (ID)", s)
	}
	return a, nil
}
