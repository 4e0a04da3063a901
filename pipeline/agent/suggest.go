package agent

import (
	"encoding/json"
	goparser "go/parser"
	"go/token"
	"path"
	"strings"

	"forge/pipeline"
	"forge/pipeline/untrusted"
)

// tryReplacement applies a finding's suggestion to its file and keeps it only
// when it fits: it replaces whole lines that exist, keeps their indentation, changes
// something, and leaves a file that parses (lessons 7). Otherwise the suggestion
// becomes a diff in words. The replacement that is kept has plain line ends and no
// newline at its end; whoever applies it uses the line ends of the file.
func tryReplacement(f *pipeline.Finding, content string) {
	repl := strings.TrimSuffix(strings.ReplaceAll(*f.Fix.Replacement, "\r\n", "\n"), "\n")
	f.Fix.Replacement = nil
	if f.Line == 0 || content == "" {
		if f.Fix.Diff == "" {
			f.Fix.Diff = signed("+", repl)
		}
		return
	}
	last := max(f.Line, f.EndLine)
	if repl != f.Code && (repl == "" || sameIndent(f.Code, repl)) && parses(f.File, content, applied(content, f.Line, last, repl)) {
		f.Fix.Replacement = &repl
		return
	}
	if f.Fix.Diff == "" && repl != f.Code {
		f.Fix.Diff = signed("-", f.Code) + signed("+", repl)
	}
}

// applied returns content with the lines first to last replaced, in its own line ends.
func applied(content string, first, last int, repl string) string {
	eol := "\n"
	if strings.Contains(content, "\r\n") {
		eol = "\r\n"
	}
	lines := splitLines(content)
	var out []string
	out = append(out, lines[:first-1]...)
	if repl != "" {
		out = append(out, strings.Split(repl, "\n")...)
	}
	out = append(out, lines[last:]...)
	text := strings.Join(out, eol)
	if strings.HasSuffix(content, "\n") && len(out) > 0 {
		text += eol
	}
	return text
}

// sameIndent compares the indentation of the first lines that are not blank.
func sameIndent(a, b string) bool { return leading(a) == leading(b) }

func leading(s string) string {
	for l := range strings.SplitSeq(s, "\n") {
		if t := strings.TrimLeft(l, " \t"); t != "" {
			return l[:len(l)-len(t)]
		}
	}
	return ""
}

// parses reports whether a file of a known kind is still well-formed. What was
// broken before need not be whole afterwards, except Go and YAML: where nothing
// can be told, the suggestion is not kept.
func parses(name, before, after string) bool {
	switch path.Ext(name) {
	case ".go":
		_, err := goparser.ParseFile(token.NewFileSet(), name, after, goparser.AllErrors)
		return err == nil
	case ".json":
		return json.Valid([]byte(after)) || !json.Valid([]byte(before))
	case ".yml", ".yaml":
		return yamlOK(after)
	}
	return true
}

// maxYAML caps what is given to the YAML parser, whose time grows with the square of the keys: a
// repository's file must not be able to hold up the server (S30).
const maxYAML = 32 << 10

// yamlOK checks the syntax alone: aliases are not expanded.
func yamlOK(s string) bool {
	if len(s) > maxYAML {
		return false
	}
	_, err := untrusted.ParseYAML([]byte(s))
	return err == nil
}

func signed(sign, text string) string {
	if text == "" {
		return ""
	}
	return sign + strings.ReplaceAll(text, "\n", "\n"+sign) + "\n"
}
