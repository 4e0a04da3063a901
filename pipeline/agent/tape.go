package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/tools/txtar"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// A tape is a txtar archive with a section for each call of a model. It is
// written by hand for tests and by WriteTape from what a run recorded:
//
//	-- implementer 1/3 --
//	@expect the old text occurs 2 times
//	@usage input=1200 cached=800 write=0 output=90
//	The text occurs twice, so I take more of it.
//
//	>>> edit
//	path: calc.go
//	old: |
//	  func Sub(a, b int) int {
//	  	return a + b
//	new: |
//	  func Sub(a, b int) int {
//	  	return a - b
//	>>> run
//	command: go test ./...
//
// A section's name is CONVERSATION ITERATION/STEP, with the attempt after the
// iteration when it is not the first ("implementer 1@2/3"); "*" stands for every
// iteration. In the run of a module its name goes before it ("auth/implementer 1/3").
// The conversations are planner, implementer, compliance, quality and
// tester, each with .reflection, and reflector, whose steps are the run's looks
// back. The plan's iteration is 0.
//
// First come lines that start with "@":
//
//	@expect TEXT        the request must contain TEXT: proof that feedback reached the model
//	@otherwise TEXT     what people are told when it does not; the call then fails for good
//	@reject TEXT        the request must not contain TEXT
//	@usage input=N cached=N write=N output=N
//	@stop WORD          end, tools, length or refusal; tools when there are calls, else end
//	@error STATUS TEXT  the provider answers with this HTTP status
//	@takes DURATION     how long the answer takes, such as 1.5s; none without
//	@model NAME, @raw JSON, @hash HEX, @attempt N   written by the recorder
//
// then the model's words, then its calls: ">>> TOOL", with "#ID" after it when
// the provider gave one, and below it the arguments as YAML or JSON. A line of
// the words that would be taken for something else has a backslash before it.
type section struct {
	name     callName
	expect   []string
	other    string // what is said to a request that lacks what is expected; "" for the tape's own words
	reject   []string
	status   int    // of @error
	said     string // of @error
	takes    time.Duration
	hash     string
	response Response
}

// callName names one call of a model.
type callName struct {
	part      string // module
	role      string
	iteration int // anyIteration: every one
	attempt   int
	step      int
}

const anyIteration = -1

func (n callName) String() string {
	it := strconv.Itoa(n.iteration)
	if n.iteration == anyIteration {
		it = "*"
	}
	if n.attempt > 1 {
		it += "@" + strconv.Itoa(n.attempt)
	}
	role := n.role
	if n.part != "" {
		role = n.part + "/" + role
	}
	return fmt.Sprintf("%s %s/%d", role, it, n.step)
}

var sectionName = lazyregexp.New(`^(?:([a-z][a-z0-9-]*)/)?([a-z]+(?:\.[a-z]+)?) (\*|\d+)(?:@(\d+))?/(\d+)$`)

func parseName(s string) (callName, error) {
	m := sectionName.FindStringSubmatch(s)
	if m == nil {
		return callName{}, fmt.Errorf("section %q: want CONVERSATION ITERATION/STEP, for instance \"implementer 1/3\"", s)
	}
	n := callName{part: m[1], role: m[2], iteration: anyIteration, attempt: 1}
	n.step, _ = strconv.Atoi(m[5]) // the pattern admits digits alone; too many give the largest int
	if m[3] != "*" {
		n.iteration, _ = strconv.Atoi(m[3])
	}
	if m[4] != "" {
		n.attempt, _ = strconv.Atoi(m[4])
	}
	if n.step < 1 || n.attempt < 1 {
		return n, fmt.Errorf("section %q: steps and attempts count from 1", s)
	}
	return n, nil
}

// ReadTape reads a tape and returns a model that plays it. Each call is answered
// by the section with its name, however often and in whatever order it comes: the
// attempt's own section, else the first attempt's, else one for every iteration.
// A call without a section, and a request that lacks what its section expects, is
// a fault that says so.
func ReadTape(data []byte) (Model, error) {
	ar := txtar.Parse(data)
	p := &player{sections: map[callName]*section{}}
	for _, f := range ar.Files {
		s, err := parseSection(f)
		if err != nil {
			return nil, fmt.Errorf("read tape: %w", err)
		}
		if p.sections[s.name] != nil {
			return nil, fmt.Errorf("read tape: section %q occurs twice", f.Name)
		}
		p.sections[s.name] = s
	}
	if len(p.sections) == 0 {
		return nil, fmt.Errorf("read tape: no section; a tape has one for each call, such as \"-- implementer 1/1 --\"")
	}
	return p, nil
}

// WriteTape joins recorded calls, as Tape has kept them, to one archive that
// ReadTape reads.
func WriteTape(calls ...[]byte) []byte {
	var out bytes.Buffer
	for _, c := range calls {
		out.Write(c)
	}
	return out.Bytes()
}

type player struct{ sections map[callName]*section }

// Complete implements Model.
func (p *player) Complete(ctx context.Context, req Request) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	want := callName{part: req.Part, role: req.Role, iteration: req.Iteration, attempt: max(1, req.Attempt), step: req.Step}
	s := p.find(want)
	if s == nil {
		return Response{}, tapeFault("it has no section %q; it has %s", want, p.names(req.Role))
	}
	text := req.text()
	for _, e := range s.expect {
		if !strings.Contains(text, e) {
			if s.other != "" {
				return Response{}, &pipeline.Fault{Class: pipeline.FaultProvider, Final: true, Message: s.other}
			}
			return Response{}, tapeFault("section %q expects the request to contain %q, and it does not; its last message is:\n%s", s.name, e, req.last())
		}
	}
	for _, e := range s.reject {
		if strings.Contains(text, e) {
			return Response{}, tapeFault("section %q wants the request not to contain %q, and it does", s.name, e)
		}
	}
	if s.takes > 0 {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return Response{}, ctx.Err()
		}
	}
	if s.status != 0 {
		return Response{}, fault("The tape", s.name.String(), s.status, s.said)
	}
	r := s.response
	r.Calls = slices.Clone(r.Calls)
	r.Usage.Calls = 1
	return r, nil
}

func (p *player) find(want callName) *section {
	first := want
	first.attempt = 1
	every := first
	every.iteration = anyIteration
	for _, n := range []callName{want, first, every} {
		if s := p.sections[n]; s != nil {
			return s
		}
	}
	// A conversation that a fault cut in two was recorded under two attempts.
	var best *section
	for n, s := range p.sections {
		if n.part == want.part && n.role == want.role && n.iteration == want.iteration && n.step == want.step && (best == nil || n.attempt < best.name.attempt) {
			best = s
		}
	}
	return best
}

func (p *player) names(role string) string {
	var out []string
	for n := range p.sections {
		if n.role == role {
			out = append(out, strconv.Quote(n.String()))
		}
	}
	if len(out) == 0 {
		return "none for the " + role
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func tapeFault(format string, args ...any) error {
	return &pipeline.Fault{Class: pipeline.FaultProvider, Final: true, Message: "tape: " + fmt.Sprintf(format, args...)}
}

// parseSection reads one section. Line numbers in its errors count from the
// section's first line.
func parseSection(f txtar.File) (*section, error) {
	name, err := parseName(f.Name)
	if err != nil {
		return nil, err
	}
	s := &section{name: name}
	lines := strings.Split(strings.TrimRight(string(f.Data), "\n"), "\n")
	i := 0
	for ; i < len(lines) && strings.HasPrefix(lines[i], "@"); i++ {
		key, val, _ := strings.Cut(lines[i][1:], " ")
		if err := s.header(key, val); err != nil {
			return nil, fmt.Errorf("section %q, line %d: %w", f.Name, i+1, err)
		}
	}
	var words []string
	for ; i < len(lines) && !strings.HasPrefix(lines[i], ">>> "); i++ {
		words = append(words, strings.TrimPrefix(lines[i], `\`))
	}
	s.response.Text = strings.Trim(strings.Join(words, "\n"), "\n")
	for i < len(lines) {
		start := i
		for i++; i < len(lines) && !strings.HasPrefix(lines[i], ">>> "); i++ {
		}
		call, err := parseCall(lines[start], strings.Join(lines[start+1:i], "\n")+"\n")
		if err != nil {
			return nil, fmt.Errorf("section %q, line %d: %w", f.Name, start+1, err)
		}
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", name.step, len(s.response.Calls)+1)
		}
		s.response.Calls = append(s.response.Calls, call)
	}
	if s.response.Stop == "" {
		s.response.Stop = StopEnd
		if len(s.response.Calls) > 0 {
			s.response.Stop = StopTools
		}
	}
	return s, nil
}

func (s *section) header(key, val string) error {
	var err error
	switch key {
	case "expect", "reject":
		if val == "" {
			return fmt.Errorf("@%s needs a text", key)
		}
		if key == "expect" {
			s.expect = append(s.expect, val)
		} else {
			s.reject = append(s.reject, val)
		}
	case "otherwise":
		s.other = val
	case "usage":
		s.response.Usage, err = parseUsage(val)
	case "stop":
		if !slices.Contains([]string{StopEnd, StopTools, StopLength, StopRefusal}, val) {
			return fmt.Errorf("@stop %q: want end, tools, length or refusal", val)
		}
		s.response.Stop = val
	case "error":
		code, said, _ := strings.Cut(val, " ")
		s.said = said
		if s.status, err = strconv.Atoi(code); err != nil || s.status < 400 || s.status > 599 {
			return fmt.Errorf("@error %q: want an HTTP status from 400 to 599, then a text", val)
		}
	case "takes":
		if s.takes, err = time.ParseDuration(val); err != nil || s.takes < 0 {
			return fmt.Errorf("@takes %q: want a duration such as 1.5s", val)
		}
	case "model":
		s.response.Model = val
	case "raw":
		if !json.Valid([]byte(val)) {
			return fmt.Errorf("@raw is not JSON")
		}
		s.response.Raw = json.RawMessage(val)
	case "hash":
		s.hash = val
	case "attempt": // part of the name by now
	default:
		return fmt.Errorf("@%s is not known; use expect, otherwise, reject, usage, stop, error, takes, model, raw or hash", key)
	}
	return err
}

func parseUsage(val string) (pipeline.Usage, error) {
	var u pipeline.Usage
	for part := range strings.FieldsSeq(val) {
		key, num, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(num, 10, 64)
		if err != nil || n < 0 {
			return u, fmt.Errorf("@usage %q: want input=N cached=N write=N output=N", part)
		}
		switch key {
		case "input":
			u.Input = n
		case "cached":
			u.CachedInput = n
		case "write":
			u.CacheWrite = n
		case "output":
			u.Output = n
		default:
			return u, fmt.Errorf("@usage: %q is not known; use input, cached, write and output", key)
		}
	}
	if u.CachedInput+u.CacheWrite > u.Input {
		return u, fmt.Errorf("@usage: cached and write are part of input, which is only %d", u.Input)
	}
	return u, nil
}

func parseCall(head, body string) (ToolCall, error) {
	name, id, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(head, ">>> ")), " ")
	call := ToolCall{Name: name, ID: strings.TrimPrefix(id, "#")}
	if name == "" || id != "" && !strings.HasPrefix(id, "#") {
		return call, fmt.Errorf("%q: want >>> TOOL, or >>> TOOL #ID", head)
	}
	trimmed := strings.TrimSpace(body)
	if trimmed == "" {
		call.Args = json.RawMessage("{}")
		return call, nil
	}
	// What a model wrote may be no JSON at all; then it is kept as it was.
	if raw, ok := strings.CutPrefix(trimmed, "!raw "); ok {
		var s string
		if err := json.Unmarshal([]byte(raw), &s); err != nil {
			return call, fmt.Errorf("arguments of %s: !raw wants a JSON string: %w", name, err)
		}
		call.Args = json.RawMessage(s)
		return call, nil
	}
	if json.Valid([]byte(trimmed)) && trimmed[0] == '{' {
		call.Args = json.RawMessage(trimmed)
		return call, nil
	}
	args, err := decodeYAML(body)
	if err != nil {
		return call, fmt.Errorf("arguments of %s: %w", name, err)
	}
	call.Args = args
	return call, nil
}

func decodeYAML(body string) (json.RawMessage, error) {
	var m map[string]any
	if err := yaml.Unmarshal([]byte(body), &m); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// text is all of a request that a tape may expect something of.
func (r Request) text() string {
	var b strings.Builder
	b.WriteString(r.System)
	for _, m := range r.Messages {
		b.WriteString("\n" + m.Text)
		for _, res := range m.Results {
			b.WriteString("\n" + res.Text)
		}
	}
	return b.String()
}

// last is the newest message, shortened, for an error.
func (r Request) last() string {
	if len(r.Messages) == 0 {
		return "(none)"
	}
	m := r.Messages[len(r.Messages)-1]
	return text.ClipBytes(Request{Messages: []Message{m}}.text(), 4000)
}

// formatSection writes a section so that parseSection gives the same again.
func formatSection(s *section) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "-- %s --\n", s.name)
	if s.hash != "" {
		fmt.Fprintf(&b, "@hash %s\n", s.hash)
	}
	r := s.response
	if r.Model != "" {
		fmt.Fprintf(&b, "@model %s\n", r.Model)
	}
	if u := r.Usage; u.Input+u.Output > 0 {
		fmt.Fprintf(&b, "@usage input=%d cached=%d write=%d output=%d\n", u.Input, u.CachedInput, u.CacheWrite, u.Output)
	}
	if usual := len(r.Calls) > 0; r.Stop != "" && (usual && r.Stop != StopTools || !usual && r.Stop != StopEnd) {
		fmt.Fprintf(&b, "@stop %s\n", r.Stop)
	}
	if len(r.Raw) > 0 {
		var one bytes.Buffer
		if json.Compact(&one, r.Raw) == nil {
			fmt.Fprintf(&b, "@raw %s\n", one.String())
		}
	}
	if r.Text != "" {
		for line := range strings.SplitSeq(strings.Trim(r.Text, "\n"), "\n") {
			if strings.HasPrefix(line, "@") || strings.HasPrefix(line, ">>>") || strings.HasPrefix(line, "--") || strings.HasPrefix(line, `\`) {
				b.WriteString(`\`)
			}
			b.WriteString(line + "\n")
		}
	}
	for _, c := range r.Calls {
		fmt.Fprintf(&b, ">>> %s", c.Name)
		if c.ID != "" {
			fmt.Fprintf(&b, " #%s", c.ID)
		}
		b.WriteString("\n" + formatArgs(c.Args))
	}
	return []byte(b.String())
}

// formatArgs prefers YAML, which shows code as code, and takes JSON where YAML
// does not give the same back.
func formatArgs(args json.RawMessage) string {
	var m map[string]any
	if err := json.Unmarshal(args, &m); err != nil || m == nil {
		raw, _ := json.Marshal(string(args)) // strings always marshal
		return "!raw " + string(raw) + "\n"
	}
	if len(m) == 0 {
		return ""
	}
	if out, err := yaml.MarshalWithOptions(m, yaml.UseLiteralStyleIfMultiline(true)); err == nil && !bytes.Contains(out, []byte("\n>>> ")) {
		var back map[string]any
		if again, err := decodeYAML(string(out)); err == nil && json.Unmarshal(again, &back) == nil && reflect.DeepEqual(back, m) {
			return string(out)
		}
	}
	compact, _ := json.Marshal(m) // came out of JSON
	return string(compact) + "\n"
}
