package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Caps on a search for symbols.
const (
	maxSymbols     = 200
	defSymbols     = 50
	symbolsTimeout = 60 * time.Second
)

// symbol is a place where a name is defined.
type symbol struct {
	name, kind, file, text string
	line                   int
}

// ctagsScript lists definitions with Universal Ctags, in the sandbox: its parsers
// are C and read what strangers wrote. Options of the repository are not read.
// Another ctags does not know --_xformat, and fails. The query comes as $1.
const ctagsScript = `out=$(mktemp) || exit 9
trap 'rm -f "$out"' EXIT
ctags --quiet --options=NONE -R --links=no --maxdepth=40 --sort=no --kinds-go=+n \
 --languages=-Markdown,-JSON,-Yaml,-HTML,-CSS,-SCSS,-XML,-Iniconf,-Make,-ReStructuredText \
 --exclude=node_modules --exclude=vendor --exclude=third_party --exclude=dist --exclude=target --exclude='*.min.js' \
 -x --_xformat='%{name}	%{kind}	%{input}	%n	%C' -f "$out" . 2>/dev/null || exit 9
grep -iF -m 20000 -e "$1" "$out"
exit 0`

// skippedDirs hold code of others.
var skippedDirs = []string{"node_modules", "vendor", "third_party", "dist", "target"}

// symbols finds definitions by a part of their name.
func (w *worker) symbols(ctx context.Context, query string, most int) (string, error) {
	// "Type.Method", "Type::method" and "Type#method" are asked for by people.
	name := query
	if i := strings.LastIndexAny(name, ".:#"); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), "()"))
	if name == "" || len(name) > 200 || strings.ContainsAny(name, "\x00\n\t ") {
		return "", fmt.Errorf("symbols: %q is not a name", text.ClipBytes(query, 200))
	}
	if most <= 0 {
		most = defSymbols
	}
	ctx, cancel := context.WithTimeout(ctx, symbolsTimeout)
	defer cancel()
	found, err := w.ctags(ctx, name)
	if err != nil {
		found, err = w.tree.definitions(ctx, name)
	}
	if err != nil {
		return "", fmt.Errorf("symbols: %w", err)
	}
	return listSymbols(found, name, min(most, maxSymbols)), nil
}

// errNoCtags is why patterns are used.
var errNoCtags = errors.New("universal-ctags is not installed")

func (w *worker) ctags(ctx context.Context, name string) ([]symbol, error) {
	r, err := w.run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", ctagsScript, "sh", name}})
	if err != nil {
		return nil, err
	}
	if r.Exit != 0 {
		return nil, errNoCtags
	}
	var found []symbol
	for l := range strings.SplitSeq(string(r.Stdout), "\n") {
		f := strings.SplitN(l, "\t", 5)
		if len(f) != 5 || !strings.Contains(strings.ToLower(f[0]), name) {
			continue
		}
		n, err := strconv.Atoi(f[3])
		if err != nil {
			continue
		}
		found = append(found, symbol{name: f[0], kind: f[1], file: strings.TrimPrefix(f[2], "./"), line: n, text: f[4]})
	}
	return found, nil
}

// definitions finds what looks like a definition, by patterns.
func (t *tree) definitions(ctx context.Context, name string) ([]symbol, error) {
	var found []symbol
	errFull := errors.New("full")
	err := t.walk(ctx, ".", func(file string, info fs.FileInfo) error {
		if info.IsDir() && slices.Contains(skippedDirs, path.Base(file)) {
			return fs.SkipDir
		}
		patterns := definitionPatterns[strings.ToLower(path.Ext(file))]
		if patterns == nil || !info.Mode().IsRegular() || strings.HasSuffix(file, ".min.js") {
			return nil
		}
		content, _, err := t.safeRead(file, 1<<20)
		if err != nil || slices.Contains(content[:min(len(content), 8000)], 0) {
			return nil
		}
		n := 0
		for l := range strings.SplitSeq(string(content), "\n") {
			n++
			if len(l) > 1000 || !strings.Contains(strings.ToLower(l), name) {
				continue
			}
			for _, p := range patterns {
				m := p.find.FindStringSubmatch(l)
				if m == nil || !strings.Contains(strings.ToLower(m[1]), name) || notNames[m[1]] {
					continue
				}
				if found = append(found, symbol{name: m[1], kind: p.kind, file: file, line: n, text: l}); len(found) >= 20_000 {
					return errFull
				}
				break
			}
		}
		return nil
	})
	if err != nil && err != errFull {
		return nil, err
	}
	return found, nil
}

// listSymbols writes the best matches: the name itself, then names that begin
// with it, then the rest; tests after other files.
func listSymbols(found []symbol, name string, most int) string {
	rank := func(s symbol) int {
		r := 4
		switch lower := strings.ToLower(s.name); {
		case lower == name:
			r = 0
		case strings.HasPrefix(lower, name):
			r = 2
		}
		if strings.Contains(strings.ToLower(path.Base(s.file)), "test") {
			r++
		}
		return r
	}
	slices.SortStableFunc(found, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	if len(found) == 0 {
		return "nothing of that name is defined here\n"
	}
	var b strings.Builder
	for i, s := range found {
		if i == most {
			fmt.Fprintf(&b, "(%d more are left out)\n", len(found)-most)
			break
		}
		fmt.Fprintf(&b, "%s:%d: %s %s: %s\n", s.file, s.line, s.kind, text.ClipBytes(s.name, 200), text.ClipBytes(text.OneLine(s.text), 300))
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// definition is a pattern whose first group is the name that a line defines.
type definition struct {
	kind string
	find *lazyregexp.Regexp
}

// notNames are words that look like the name of a method where they stand.
var notNames = map[string]bool{
	"if": true, "for": true, "while": true, "switch": true, "catch": true, "return": true, "new": true, "else": true,
	"function": true, "using": true, "lock": true, "foreach": true, "await": true, "throw": true, "super": true, "this": true,
}

func define(pairs ...string) []definition {
	var all []definition
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, definition{kind: pairs[i], find: lazyregexp.New(pairs[i+1])})
	}
	return all
}

// definitionPatterns are by the file name's ending: Go, Python, JavaScript and
// TypeScript, Java, C#, Rust, Ruby, PHP.
var definitionPatterns = func() map[string][]definition {
	script := define(
		"class", `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?class\s+([\w$]+)`,
		"function", `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:async\s+)?function\s*\*?\s*([\w$]+)`,
		"interface", `^\s*(?:export\s+)?(?:declare\s+)?interface\s+([\w$]+)`,
		"type", `^\s*(?:export\s+)?(?:declare\s+)?type\s+([\w$]+)[^=]*=`,
		"enum", `^\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+([\w$]+)`,
		"variable", `^(?:export\s+)?(?:const|let|var)\s+([\w$]+)`,
		"function", `^\s+(?:const|let|var)\s+([\w$]+)\s*=\s*(?:async\s*)?(?:function|\([^)]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>)`,
		"function", `^\s*(?:module\.)?exports\.([\w$]+)\s*=`,
		"method", `^\s+(?:(?:public|private|protected|static|async|override|readonly|get|set)\s+)*[*#]?([\w$]+)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^{;]+)?\{\s*$`,
	)
	java := define(
		"class", `\b(?:class|record)\s+(\w+)`,
		"interface", `\binterface\s+(\w+)`,
		"enum", `\benum\s+(?:class\s+)?(\w+)`,
		"struct", `\bstruct\s+(\w+)`,
		"method", `^\s+(?:\[[^\]]*\]\s*)?(?:@\w+\s+)*(?:(?:public|private|protected|internal|static|final|abstract|synchronized|virtual|override|async|sealed|default|native|partial)\s+)*(?:<[^>]+>\s+)?[\w.$]+(?:<[^;{]*>)?(?:\[\])*\??\s+(\w+)\s*(?:<[^>]*>)?\(`,
		"method", `^\s+(?:public|private|protected|internal)\s+(\w+)\s*\(`,
		"property", `^\s+(?:(?:public|private|protected|internal|static|virtual|override|abstract)\s+)+[\w.<>,\[\]?]+\s+(\w+)\s*(?:\{|=>|=|;)`,
	)
	return map[string][]definition{
		".go": define(
			"func", `^func\s+(?:\([^)]*\)\s*)?(\w+)`,
			"type", `^(?:type\s+|\t)(\w+)(?:\[[^\]]*\])?\s+(?:=\s*)?(?:struct|interface|func|map|chan)\b`,
			"type", `^type\s+(\w+)`,
			"var", `^(?:var|const)\s+(\w+)`,
			"const", `^\t(\w+)(?:\s+[\w.]+)?\s*=`,
		),
		".py": define(
			"class", `^\s*class\s+(\w+)`,
			"function", `^\s*(?:async\s+)?def\s+(\w+)`,
			"variable", `^(\w+)\s*(?::[^=]+)?=[^=]`,
		),
		".js": script, ".jsx": script, ".mjs": script, ".cjs": script, ".ts": script, ".tsx": script, ".mts": script,
		".java": java, ".kt": define("class", `\b(?:class|object)\s+(\w+)`, "interface", `\binterface\s+(\w+)`, "function",
			`\bfun\s+(?:<[^>]*>\s*)?(?:[\w.]+\.)?(\w+)`, "property", `^\s*(?:\w+\s+)*va[lr]\s+(\w+)`),
		".cs": java,
		".rs": define(
			"function", `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+)?(?:async\s+)?(?:unsafe\s+)?(?:extern\s+"[^"]*"\s+)?fn\s+(\w+)`,
			"struct", `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|union)\s+(\w+)`,
			"enum", `^\s*(?:pub(?:\([^)]*\))?\s+)?enum\s+(\w+)`,
			"trait", `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?trait\s+(\w+)`,
			"type", `^\s*(?:pub(?:\([^)]*\))?\s+)?type\s+(\w+)`,
			"const", `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?(\w+)`,
			"module", `^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)`,
			"macro", `^\s*macro_rules!\s+(\w+)`,
		),
		".rb": define(
			"class", `^\s*class\s+(?:\w+::)*(\w+)`,
			"module", `^\s*module\s+(?:\w+::)*(\w+)`,
			"method", `^\s*def\s+(?:self\.)?(\w+[?!=]?)`,
			"constant", `^\s*([A-Z]\w*)\s*=[^=]`,
		),
		".php": define(
			"class", `^\s*(?:(?:final|abstract|readonly)\s+)*class\s+(\w+)`,
			"interface", `^\s*interface\s+(\w+)`,
			"trait", `^\s*trait\s+(\w+)`,
			"enum", `^\s*enum\s+(\w+)`,
			"function", `^\s*(?:(?:public|private|protected|static|final|abstract)\s+)*function\s+&?(\w+)`,
			"constant", `^\s*(?:(?:public|private|protected|final)\s+)*const\s+(?:\w+\s+)?(\w+)\s*=`,
		),
	}
}()
