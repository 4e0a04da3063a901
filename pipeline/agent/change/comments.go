package change

import (
	"path"
	"strings"
)

// comments are the marks of a language's comments; of none that is known, empty.
type comments struct {
	line        string // begins one to the end of the line
	open, close string // around one within a line or over several
}

var (
	hash    = comments{line: "#"}
	slashes = comments{line: "//", open: "/*", close: "*/"}
	style   = comments{open: "/*", close: "*/"}
	markup  = comments{open: "<!--", close: "-->"}
	sql     = comments{line: "--", open: "/*", close: "*/"}
	dashes  = comments{line: "--"}
)

var commentsByEnding = map[string]comments{
	".py": hash, ".pyi": hash, ".rb": hash, ".sh": hash, ".bash": hash, ".zsh": hash, ".fish": hash, ".ex": hash, ".exs": hash, ".pl": hash, ".r": hash, ".jl": hash,
	".yml": hash, ".yaml": hash, ".toml": hash, ".mk": hash, ".nix": hash, ".tf": hash, ".conf": hash, ".cfg": hash, ".ini": hash, ".properties": hash, ".ps1": hash,
	".go": slashes, ".js": slashes, ".mjs": slashes, ".cjs": slashes, ".jsx": slashes, ".ts": slashes, ".mts": slashes, ".cts": slashes, ".tsx": slashes,
	".java": slashes, ".kt": slashes, ".kts": slashes, ".scala": slashes, ".groovy": slashes, ".gradle": slashes, ".proto": slashes,
	".c": slashes, ".h": slashes, ".cc": slashes, ".cpp": slashes, ".hpp": slashes, ".cs": slashes, ".rs": slashes, ".swift": slashes, ".dart": slashes, ".php": slashes,
	".scss": slashes, ".less": slashes, ".css": style, ".html": markup, ".htm": markup, ".xml": markup, ".svg": markup, ".md": markup, ".markdown": markup,
	".sql": sql, ".lua": dashes, ".hs": dashes, ".elm": dashes,
}

var commentsByName = map[string]comments{
	"makefile": hash, "gnumakefile": hash, "dockerfile": hash, "containerfile": hash, "cmakelists.txt": hash, "gemfile": hash, "rakefile": hash, "justfile": hash,
	".gitignore": hash, ".dockerignore": hash, ".env": hash, "go.mod": slashes,
}

func commentsOf(file string) comments {
	if c, ok := commentsByName[strings.ToLower(path.Base(file))]; ok {
		return c
	}
	return commentsByEnding[strings.ToLower(path.Ext(file))]
}

// in reports whether a line has a comment.
func (c comments) in(line string) bool { return c.blocks(c.toEnd(line)) != line }

// toEnd is a line without its comment to the end. A mark that follows on no white space may
// be part of a text or an address, and one in quotes is: both stay.
func (c comments) toEnd(line string) string {
	if c.line == "" {
		return line
	}
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case quote != 0 && b == '\\':
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'' || b == '`':
			quote = b
		case strings.HasPrefix(line[i:], c.line) && strings.TrimSpace(line[:i]) == "", strings.HasPrefix(line[i:], c.line) && (line[i-1] == ' ' || line[i-1] == '\t'):
			return strings.TrimRight(line[:i], " \t")
		}
	}
	return line
}

// blocks is a text without its comments that have an end. Those in quotes stay; in markup,
// where an apostrophe is one, there are none.
func (c comments) blocks(text string) string {
	if c.open == "" || !strings.Contains(text, c.open) {
		return text
	}
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0 && b == '\\':
			out.WriteString(text[i:min(i+2, len(text))])
			i++
			continue
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case c != markup && (b == '"' || b == '\'' || b == '`'):
			quote = b
		case strings.HasPrefix(text[i:], c.open):
			if end := strings.Index(text[i+len(c.open):], c.close); end >= 0 {
				i += len(c.open) + end + len(c.close) - 1
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
