package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"forge/pipeline"
)

// tolerant reads an answer as it was meant, and says in r.Adapted what had to be done for
// that: reasoning in the text is not said, a call that the model wrote as text is a call,
// and a tool's name is the one that it stands around.
func tolerant(r Response, tools []Tool) Response {
	if said := withoutThought(r.Text); said != r.Text {
		r.Text = said
		r.Adapted = append(r.Adapted, pipeline.AdaptedThought)
	}
	if len(r.Calls) == 0 && len(tools) > 0 && r.Stop != StopRefusal {
		if before, calls := callsIn(r.Text); len(calls) > 0 {
			r.Text, r.Calls, r.Stop = before, calls, StopTools
			r.Adapted = append(r.Adapted, pipeline.AdaptedCalls)
		}
	}
	for i := range r.Calls {
		if name := toolNamed(r.Calls[i].Name, tools); name != r.Calls[i].Name {
			r.Calls[i].Name = name
			r.Adapted = append(r.Adapted, pipeline.AdaptedName)
		}
	}
	return r
}

// withoutThought leaves out reasoning that stands between <think> and </think>, of which a
// server may have taken the first for itself; what does not end is reasoning as a whole.
func withoutThought(text string) string {
	const begin, end = "<think>", "</think>"
	if _, after, ok := strings.Cut(text, end); ok && !strings.Contains(strings.TrimPrefix(strings.TrimSpace(text), begin), begin) {
		return strings.TrimLeft(after, "\r\n ")
	}
	if strings.HasPrefix(strings.TrimSpace(text), begin) && !strings.Contains(text, end) {
		return ""
	}
	return text
}

// toolNamed is the tool that a name means: "functions.read", "read<|channel|>commentary"
// and "read_file" hold one name of a tool each. Each tool that hands in a result may be called
// submit.
func toolNamed(name string, tools []Tool) string {
	known := func(s string) bool {
		return s == "submit" && len(tools) > 0 || slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == s })
	}
	if known(name) {
		return name
	}
	found := ""
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' }) {
		if known(part) {
			return part
		}
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if part = strings.ToLower(part); known(part) && part != found {
			if found != "" {
				return name
			}
			found = part
		}
	}
	if found == "" {
		return name
	}
	return found
}

// callsIn finds the calls that a model wrote into its text because its server read none:
//
//	<tool_call>{"name": …, "arguments": {…}}</tool_call>     Hermes, Qwen; also bare, fenced, or in a list
//	<function=read><parameter=path>…</parameter></function>  Qwen3-Coder
//	<function=read>{…}</function>                            Llama
//
// Before is the text up to the first of them: what comes behind it a model invents, often
// the result of the call as well.
func callsIn(text string) (before string, calls []ToolCall) {
	first := -1
	take := func(at int, found ...ToolCall) {
		if first < 0 {
			first = at
		}
		calls = append(calls, found...)
	}
	for i := 0; i < len(text); {
		if rest, ok := strings.CutPrefix(text[i:], "<function="); ok {
			if call, left, ok := functionIn(rest); ok {
				take(i, call)
				i = len(text) - len(left)
				continue
			}
		}
		if (text[i] == '{' || text[i] == '[') && begins(text[:i]) {
			if found, n := jsonCalls(text[i:]); len(found) > 0 {
				take(i, found...)
				i += n
				continue
			}
		}
		i++
	}
	for i := range calls {
		calls[i].ID = "text_" + strconv.Itoa(i+1)
	}
	if first < 0 {
		return text, nil
	}
	before = strings.TrimSpace(text[:first])
	for _, mark := range []string{"<tool_call>", "<function_call>", "[TOOL_CALLS]", "<|python_tag|>", "```json", "```tool_call", "```"} {
		before = strings.TrimSpace(strings.TrimSuffix(before, mark))
	}
	return before, calls
}

// begins reports whether JSON may begin behind a text: on a line of its own, or behind a mark.
func begins(before string) bool {
	line := strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:])
	return line == "" || strings.HasSuffix(line, ">") || strings.HasSuffix(line, "]") || strings.HasSuffix(line, "`")
}

// functionIn reads a call behind "<function=".
func functionIn(text string) (call ToolCall, rest string, ok bool) {
	name, rest, ok := strings.Cut(text, ">")
	if name = strings.Trim(name, `"' `); !ok || name == "" || strings.ContainsAny(name, "\n<") {
		return call, text, false
	}
	call.Name = name
	if body := strings.TrimSpace(rest); strings.HasPrefix(body, "{") {
		if value, n := jsonValue(body); n > 0 {
			call.Args = value
			return call, body[n:], true
		}
	}
	args, end := map[string]string{}, "</function>"
	body, rest, closed := strings.Cut(rest, end)
	if !closed {
		body, rest = rest+body, ""
	}
	for {
		_, after, found := strings.Cut(body, "<parameter=")
		if !found {
			break
		}
		key, after, found := strings.Cut(after, ">")
		if !found {
			break
		}
		value, after, found := strings.Cut(after, "</parameter>")
		if !found {
			return call, text, false // it was cut off
		}
		args[strings.Trim(key, `"' `)] = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		body = after
	}
	call.Args, _ = json.Marshal(args) // texts always can be
	return call, rest, true
}

// jsonCalls reads the call, or the list of calls, that a text begins with; n is its length.
func jsonCalls(text string) (calls []ToolCall, n int) {
	value, n := jsonValue(text)
	if n == 0 {
		return nil, 0
	}
	list := []json.RawMessage{value}
	if value[0] == '[' && json.Unmarshal(value, &list) != nil {
		return nil, 0
	}
	for _, item := range list {
		call, ok := jsonCall(item)
		if !ok {
			return nil, 0
		}
		calls = append(calls, call)
	}
	return calls, n
}

// jsonCall reads an object that is a call: it has a name and arguments, and nothing that a
// call has not.
func jsonCall(value json.RawMessage) (call ToolCall, ok bool) {
	var in map[string]json.RawMessage
	if json.Unmarshal(value, &in) != nil {
		return call, false
	}
	if inner, wrapped := in["function"]; wrapped && bytes.HasPrefix(inner, []byte("{")) {
		return jsonCall(inner)
	}
	for key, v := range in {
		switch key {
		case "name", "tool", "tool_name", "function":
			if call.Name != "" || json.Unmarshal(v, &call.Name) != nil {
				return call, false
			}
		case "arguments", "parameters", "args", "input":
			if call.Args != nil {
				return call, false
			}
			call.Args = v
		case "id", "type", "call_id":
		default:
			return call, false
		}
	}
	var whole any
	_ = json.Unmarshal(call.Args, &whole) // nil is refused below
	switch inner := whole.(type) {
	case map[string]any:
		return call, call.Name != ""
	case string:
		call.Args = json.RawMessage(inner)
		return call, call.Name != "" && json.Valid(call.Args)
	}
	return call, false
}

// jsonValue reads the value that a text begins with, and returns its length in the text; 0
// where there is none. Line breaks inside a text, which small models write as they are, are
// taken for what they look like.
func jsonValue(text string) (value json.RawMessage, n int) {
	dec := json.NewDecoder(strings.NewReader(text))
	if dec.Decode(&value) == nil {
		return value, int(dec.InputOffset())
	}
	escaped, lengths := breaksEscaped(text)
	dec = json.NewDecoder(strings.NewReader(escaped))
	if dec.Decode(&value) != nil {
		return nil, 0
	}
	return value, lengths(int(dec.InputOffset()))
}

// breaksEscaped writes control characters inside texts as JSON wants them. Original returns how
// much of the text a length of what came out of it is.
func breaksEscaped(text string) (out string, original func(int) int) {
	var b strings.Builder
	var added []int // where in out a byte was put in
	inside, skip := false, false
	for i := range len(text) {
		c := text[i]
		short := strings.IndexByte("\n\t\r", c)
		switch {
		case skip:
			skip = false
		case c == '\\':
			skip = true
		case c == '"':
			inside = !inside
		case inside && short >= 0:
			b.WriteByte('\\')
			added = append(added, b.Len())
			c = "ntr"[short]
		}
		b.WriteByte(c)
	}
	return b.String(), func(n int) int {
		less, _ := slices.BinarySearch(added, n)
		return n - less
	}
}
