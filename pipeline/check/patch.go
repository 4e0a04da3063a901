package check

import (
	"fmt"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
)

// patch is the change under test, base to head.
type patch struct {
	files []*gitdiff.File
}

func parsePatch(text string) (*patch, error) {
	if strings.TrimSpace(text) == "" {
		return &patch{}, nil
	}
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the patch from base to head (%d bytes): %w", len(text), err)
	}
	return &patch{files: files}, nil
}

// changed returns the added lines of each file, by their number in the new file.
func (p *patch) changed() map[string][]int {
	out := map[string][]int{}
	for _, f := range p.files {
		if f.IsDelete || f.IsBinary {
			continue
		}
		for _, frag := range f.TextFragments {
			n := int(frag.NewPosition)
			for _, l := range frag.Lines {
				if l.Op == gitdiff.OpAdd {
					out[f.NewName] = append(out[f.NewName], n)
				}
				if l.New() {
					n++
				}
			}
		}
	}
	return out
}

// language holds what tells a test and an assertion by its looks.
type language struct {
	decl   *lazyregexp.Regexp // of a test; its name is the only group that matches
	assert *lazyregexp.Regexp
	remark string // what starts a comment
}

var (
	goLang = language{
		decl:   lazyregexp.New(`^func ((?:Test|Example|Fuzz)\w*)\(`),
		assert: lazyregexp.New(`\b\w+\.(?:Errorf|Fatalf|FailNow|Fail)\(|\b\w+\.(?:Error|Fatal)\([^)]|\b(?:assert|require|qt|is)\.\w+\(|//\s*(?:Unordered o|O)utput:`),
		remark: "//",
	}
	pyLang = language{
		decl:   lazyregexp.New(`^\s*(?:async )?def (test\w*)\(`),
		assert: lazyregexp.New(`\bassert\b|\bself\.(?:assert\w+|fail)\(|\bpytest\.(?:raises|fail|warns)\(`),
		remark: "#",
	}
	jsLang = language{
		decl:   lazyregexp.New("\\b(?:it|test)(?:\\.\\w+)*\\(\\s*(?:'((?:[^'\\\\]|\\\\.)*)'|\"((?:[^\"\\\\]|\\\\.)*)\"|`([^`]*)`)"),
		assert: lazyregexp.New(`\bexpect\w*\(|\bassert\b\s*[.(]|\.should\b|\bt\.(?:is|not|ok|equal|deepEqual|same|throws|rejects|true|false|like)\(`),
		remark: "//",
	}
	rustLang = language{
		decl:   lazyregexp.New(`^\s*(?:pub )?(?:async )?fn (\w+)\(\)`),
		assert: lazyregexp.New(`\b(?:debug_)?assert\w*!|\bpanic!|#\[should_panic`),
		remark: "//",
	}
	rubyLang = language{
		decl:   lazyregexp.New(`^\s*(?:def (test_\w+)|(?:it|test|specify) ['"](.+)['"])`),
		assert: lazyregexp.New(`\bexpect\b|\b(?:assert|refute)\w*\b|\.should\b`),
		remark: "#",
	}
	otherLang = language{
		decl:   lazyregexp.New(`\b(?:void|fun|func) +(\w*[tT]est\w*|should\w+|\w+)\(\)`),
		assert: lazyregexp.New(`\b[aA]ssert\w*\b|\b(?:EXPECT|ASSERT)_\w+\(|\bverify\(|\bexpect\w*\(|\.[sS]hould\b`),
		remark: "//",
	}
)

func languageOf(name string) *language {
	switch path.Ext(name) {
	case ".go":
		return &goLang
	case ".py":
		return &pyLang
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts":
		return &jsLang
	case ".rs":
		return &rustLang
	case ".rb":
		return &rubyLang
	}
	return &otherLang
}

// test returns the name of the test that a line declares, or "".
func (l *language) test(line string) string {
	m := l.decl.FindStringSubmatch(line)
	for i := 1; i < len(m); i++ {
		if m[i] != "" {
			return m[i]
		}
	}
	return ""
}

// file returns what the change does to a file, nil for nothing.
func (p *patch) file(name string) *gitdiff.File {
	for _, f := range p.files {
		if f.NewName == name {
			return f
		}
	}
	return nil
}

// changedNames lists the files of a patch by both their names.
func (p *patch) changedNames() []string {
	var out []string
	for _, f := range p.files {
		out = append(out, f.OldName, f.NewName)
	}
	return out
}

// asserts reports whether a line looks like an assertion that is not commented out.
func (l *language) asserts(line string) bool {
	if text := strings.TrimSpace(line); strings.HasPrefix(text, l.remark) && !strings.Contains(text, "utput:") {
		return false
	}
	return l.assert.MatchString(line)
}

// block is a test that a patch removes or adds, as far as the patch shows it.
type block struct {
	name, file string
	line       int      // of its declaration, in the file it belongs to
	fragment   int      // which part of the patch it is in
	body       []string // its changed lines, without space around them
	kept       int      // lines of it that stayed
	used       bool
}

// TestText returns the text of a test in a file, from its declaration to the next one
// outside of it; "" when there is none of that name.
func TestText(file string, source []byte, name string) string {
	var out strings.Builder
	lang, in, depth := languageOf(file), false, 0
	for line := range strings.Lines(string(source)) {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		declared := lang.test(line)
		if in && (declared != "" || lang == &pyLang && indent <= depth && strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), ")")) {
			in = false
		}
		if declared == name {
			in, depth = true, indent
		}
		if in {
			out.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return strings.TrimSpace(out.String())
}

// blocks returns the tests whose declarations the patch removes and adds.
func (p *patch) blocks() (removed, added []*block) {
	n := 0
	for _, f := range p.files {
		name := f.NewName
		if f.IsDelete {
			name = f.OldName
		}
		if !testname.IsFile(name) && path.Ext(name) != ".rs" {
			continue
		}
		for _, frag := range f.TextFragments {
			n++
			removed = append(removed, fragmentBlocks(frag, name, n, gitdiff.OpDelete)...)
			added = append(added, fragmentBlocks(frag, name, n, gitdiff.OpAdd)...)
		}
	}
	return removed, added
}

func fragmentBlocks(frag *gitdiff.TextFragment, file string, n int, op gitdiff.LineOp) []*block {
	lang := languageOf(file)
	var out []*block
	var at *block
	line := int(frag.OldPosition)
	if op == gitdiff.OpAdd {
		line = int(frag.NewPosition)
	}
	for _, l := range frag.Lines {
		if l.Op != op && l.Op != gitdiff.OpContext {
			continue
		}
		name := lang.test(l.Line)
		switch {
		case name != "" && l.Op == op:
			at = &block{name: name, file: file, line: line, fragment: n}
			out = append(out, at)
		case name != "":
			at = nil
		case at != nil && l.Op == op:
			at.body = append(at.body, strings.TrimSpace(l.Line))
		case at != nil:
			at.kept++
		}
		line++
	}
	return out
}

// sameBody reports whether an added test looks like a removed one under another
// name: most of it stayed where it was, or came again.
func sameBody(old, new *block) bool {
	if old.fragment == new.fragment && old.kept > 0 && new.kept > 0 && len(old.body) <= old.kept {
		return true
	}
	if len(old.body) == 0 {
		return old.fragment == new.fragment
	}
	count := map[string]int{}
	for _, l := range old.body {
		count[l]++
	}
	same := 0
	for _, l := range new.body {
		if count[l] > 0 {
			count[l]--
			same++
		}
	}
	return same*10 >= len(old.body)*6
}
