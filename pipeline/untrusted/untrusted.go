// Package untrusted reads YAML, TOML and JSON that anybody may have written: manifests, lock files
// and settings of a repository, the front matter of an issue.
//
// The parsers of YAML and TOML go down into a text by recursion, and keep the whole path of every
// value. A file of three megabytes of brackets overflows the stack, which ends the program and
// which nothing recovers from; one of 160 KB with a long key takes three gigabytes of memory. So
// a text is looked through first, from front to back: what is too large, nests too deep, or has
// too long paths is refused before its parser sees it. Real files are far below the limits:
// lock files of several megabytes in TOML and JSON pass, and nest ten deep.
//
// It counts what the parser would follow. Where a text is not well formed it may count something
// else; its parser stops there.
package untrusted

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxDepth is how deep a text may nest. Measured with Go's largest stack, 1 GB: the parser of
// TOML takes 2,000,000 brackets; that of YAML takes 1.5 GB of memory for 30,000.
const MaxDepth = 100

const (
	maxTokens  = 1 << 16 // of YAML, at about 1 KB of memory each; a workflow of 3,000 lines has 30,000
	maxAliases = 100     // of YAML, none of them in what another stands for
)

// limits are what a text is held to: its bytes, its depth, and the bytes of the paths of all its
// values together.
type limits struct{ bytes, depth, paths int }

// As large is what the gateway gives out of a file. For a byte of a path, TOML takes up to 33
// bytes of memory, JSON one and YAML half of one.
var (
	ofTOML = limits{10 << 20, MaxDepth, 16 << 20}
	ofJSON = limits{10 << 20, MaxDepth, 64 << 20}
	ofYAML = limits{10 << 20, MaxDepth, 256 << 20}
)

// Refused says why a text is not given to its parser.
type Refused string

func (r Refused) Error() string { return string(r) }

func (l limits) tooLarge(content []byte) error {
	if len(content) <= l.bytes {
		return nil
	}
	return Refused(fmt.Sprintf("the file has %d bytes; at most %d are read", len(content), l.bytes))
}

func (l limits) tooDeep() error {
	return Refused(fmt.Sprintf("the file is nested more than %d deep", l.depth))
}

const errPaths = Refused("the file has too long keys for how much is under them")

// YAML reads a text into v, a pointer.
func YAML(content []byte, v any) (err error) {
	defer recovered("YAML", &err)
	if err := checkYAML(content, ofYAML, true); err != nil {
		return err
	}
	return yaml.Unmarshal(content, v)
}

// ParseYAML returns the syntax tree of a text, in which aliases are not followed.
func ParseYAML(content []byte) (file *ast.File, err error) {
	defer recovered("YAML", &err)
	if err := checkYAML(content, ofYAML, false); err != nil {
		return nil, err
	}
	return parser.ParseBytes(content, 0)
}

// TOML reads a text into v, a pointer.
func TOML(content []byte, v any) (err error) {
	defer recovered("TOML", &err)
	if err := scan(content, true, ofTOML); err != nil {
		return err
	}
	return toml.Unmarshal(content, v)
}

// JSON reads a text into v, a pointer. Its parser refuses what nests 10,000 deep by itself; who
// goes through what it read would have to do the same.
func JSON(content []byte, v any) error {
	if err := scan(content, false, ofJSON); err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

// recovered makes an error of a parser's panic. A stack that overflows is none.
func recovered(form string, err *error) {
	if p := recover(); p != nil {
		*err = errors.New("the file cannot be read as " + form)
	}
}

// level is what a text has gone down into.
type level struct {
	column int  // of YAML's blocks
	entry  bool // of a list in one
	width  int  // of the path, in bytes
	depth  int
}

// within reports whether a block is inside another: a list may stand in the column of its key.
func (l level) within(above level) bool {
	return l.column > above.column || l.column == above.column && l.entry && !above.entry
}

// scan looks through TOML or JSON. Its depth is that of brackets and of dotted keys.
func scan(content []byte, isTOML bool, l limits) error {
	if err := l.tooLarge(content); err != nil {
		return err
	}
	var open []level
	var in, head, key, named level // all that is open, the table's header, the key that is read, the one that is read
	fresh := true                  // nothing but spaces in this line
	for i := 0; i < len(content); i++ {
		c := content[i]
		header := isTOML && fresh && c == '[' && len(open) == 0
		fresh = fresh && (c == ' ' || c == '\t')
		switch {
		case header:
			head = level{}
			for ; i < len(content) && content[i] != '\n'; i++ {
				end := skip(content, i, true)
				if head.width += end - i; content[i] == '.' {
					head.depth++
				}
				i = end - 1
			}
			key, named, fresh = level{}, level{}, true
		case c == '"' || isTOML && (c == '\'' || c == '#'):
			end := skip(content, i, isTOML)
			key.width += end - i
			i = end - 1
		case c == '[' || c == '{':
			named.depth++
			open = append(open, named)
			in.width, in.depth = in.width+named.width, in.depth+named.depth
			key, named = level{}, level{}
		case c == ']' || c == '}':
			if n := len(open) - 1; n >= 0 {
				in.width, in.depth = in.width-open[n].width, in.depth-open[n].depth
				open = open[:n]
			}
			key, named = level{}, level{}
		case c == ',' || c == '\n' && isTOML:
			key, named, fresh = level{}, level{}, c == '\n'
		case c == '=' && isTOML || c == ':' && !isTOML:
			if l.paths -= head.width + in.width + key.width; l.paths < 0 {
				return errPaths
			}
			key, named = level{}, key
		case c == '.' && isTOML:
			key.depth++
			key.width++
		default:
			key.width++
		}
		if head.depth+in.depth+key.depth > l.depth {
			return l.tooDeep()
		}
	}
	return nil
}

// skip returns where a string or a comment ends that begins at a place; the next place where none does.
func skip(content []byte, i int, isTOML bool) int {
	quote := content[i]
	switch {
	case isTOML && quote == '#':
		for i < len(content) && content[i] != '\n' {
			i++
		}
		return i
	case quote != '"' && (quote != '\'' || !isTOML):
		return i + 1
	}
	mark := 1
	if isTOML && i+2 < len(content) && content[i+1] == quote && content[i+2] == quote {
		mark = 3
	}
	quotes := 0
	for i += mark; i < len(content); i++ {
		switch {
		case content[i] == '\\' && quote == '"':
			quotes = 0
			i++
		case content[i] != quote:
			quotes = 0
		default:
			if quotes++; quotes < mark {
				continue
			}
			for more := 0; mark == 3 && more < 2 && i+1 < len(content) && content[i+1] == quote; more++ {
				i++ // a text may end with quotes of its own
			}
			return i + 1
		}
	}
	return len(content)
}

// checkYAML looks through the tokens that the parser will see. Its depth is that of brackets and
// of columns, and of tags in a row. followed: aliases are, by who decodes it.
func checkYAML(content []byte, l limits, followed bool) error {
	if err := l.tooLarge(content); err != nil {
		return err
	}
	marks := 0 // what tokens begin and end with
	for _, c := range content {
		switch c {
		case ',', '[', ']', '{', '}', ':', '-', '?', '!', '&', '*', '#', '|', '>', '\'', '"', '%', '\n':
			marks++
		}
	}
	tooMany := Refused(fmt.Sprintf("the file has too many values: more than %d words and signs", maxTokens))
	if marks > 2*maxTokens {
		return tooMany
	}
	tokens := lexer.Tokenize(string(content))
	if len(tokens) > maxTokens {
		return tooMany
	}
	var open []level
	width, last := 0, 0
	tags, aliases, flow := 0, 0, 0
	anchored := -1 // how much is open around what an anchor names
	pop := func() {
		n := len(open) - 1
		width -= open[n].width
		if open = open[:n]; n < anchored {
			anchored = -1
		}
	}
	for _, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		next := level{column: t.Position.Column, entry: t.Type == token.SequenceEntryType, width: len(t.Value)}
		for flow == 0 && len(open) > 0 && !next.within(open[len(open)-1]) {
			pop()
		}
		switch t.Type {
		case token.TagType:
			tags++
		case token.AnchorType:
			if tags++; anchored < 0 {
				anchored = len(open)
			}
		case token.AliasType:
			if aliases++; followed && (aliases > maxAliases || anchored >= 0) {
				return Refused(fmt.Sprintf("the file has aliases within what an alias stands for, or more than %d", maxAliases))
			}
		case token.SequenceStartType, token.MappingStartType:
			tags, flow = 0, flow+1
			next.width = last
			open, width, last = append(open, next), width+next.width, 0
		case token.SequenceEndType, token.MappingEndType:
			if tags = 0; flow > 0 {
				flow--
				pop()
			}
		case token.MappingValueType, token.CollectEntryType:
			tags = 0
		default:
			if next.entry {
				tags = 0
			}
			if last = next.width; flow == 0 {
				open, width = append(open, next), width+next.width
			}
		}
		if len(open)+tags > l.depth {
			return l.tooDeep()
		}
		if l.paths -= width + len(t.Value); l.paths < 0 {
			return errPaths
		}
	}
	return nil
}
