// Package source reads code as tokens, so that it can be found again however it is written:
// white space, comments, docstrings, type hints that nothing reads and the kind of quotes are
// told from the rest.
//
// The package is pure.
package source

import (
	"path"
	"strings"
)

// Kind says what a token is for.
type Kind uint8

const (
	Code    Kind = 0
	Comment Kind = 1
	Idle    Kind = 2 // of a statement that does nothing: a docstring, pass
	Hint    Kind = 4 // of a type hint that nothing reads when the code runs
)

// Token is a token of code. Texts of equal meaning are equal.
type Token struct {
	Text string
	Line int // from 1
	Kind Kind
}

// Read reads the tokens of a file; ok is false for a language that it does not know.
func Read(file, text string) (list []Token, ok bool) {
	switch l := language(file); l {
	case "":
		return nil, false
	case "go":
		return readGo(text), true
	case "python":
		return readPython(text), true
	default:
		return readBraces(text, l), true
	}
}

func language(file string) string {
	switch strings.ToLower(path.Ext(file)) {
	case ".go":
		return "go"
	case ".py", ".pyi", ".pyw":
		return "python"
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
		return "js"
	case ".java", ".kt", ".kts", ".scala", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rs", ".swift", ".dart":
		return "c"
	}
	return ""
}

// IsLayout reports whether a token is the begin or the end of a block of Python, or the end
// of a statement.
func IsLayout(t Token) bool { return t.Text == stop || t.Text == indent || t.Text == dedent }
