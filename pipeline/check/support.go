package check

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/workspace"
)

const (
	maxSupports = 40   // changed files that are looked at
	maxReferrer = 3000 // files that are read to learn what names a changed one
)

var (
	toolDirs     = lazyregexp.New(`(?i)(?:^|/)(?:tools?|scripts?|ci|hack|\.ci|\.github|mk|make|tasks?)/`)
	supportNames = lazyregexp.New(`(?i)(?:^|[/_.-])(?:tests?|testing|helpers?|fixtures?|mocks?|fakes?|stubs?|assert\w*|expect\w*|check(?:s|er|ing)?|verif\w+|support|specs?|cases|golden|samples?)(?:[/_.-]|$)`)
	quoted       = lazyregexp.New("[\"'`]([\\w.@~*+-]*(?:/[\\w.@~*+-]*)*)[\"'`]")
	embedded     = lazyregexp.New(`(?m)^//go:embed (.*)$`)
	goTopLevel   = lazyregexp.New(`(?m)^(?:func|type|var|const) (\w+)`)
	goGrouped    = lazyregexp.New(`(?m)^\t(\w+)`)
	goGroup      = lazyregexp.New(`(?ms)^(?:var|const|type) \($.*?^\)`)
	failsTests   = lazyregexp.New(`(?m)(?:^|[{;])\s*(?:Fatalf?|Errorf|FailNow|Helper)\(`) // a helper's own words for what *testing.T does
	canFail      = lazyregexp.New(`\b(?:assert\w*|raise|throw|panic|fail\w*|Fatal\w*|Error[f]?|exit)\b`)
	holdsCode    = map[string]*lazyregexp.Regexp{
		".go": lazyregexp.New(`(?m)^func `),
		".py": lazyregexp.New(`(?m)^\s*(?:async )?(?:def|class) |\blambda\b`),
		".js": lazyregexp.New(`\bfunction\b|=>|(?m)^\s*(?:export\s+)?(?:default\s+)?class `),
	}
)

// baseView is a repository as it was at the base, made of the head and the patch.
type baseView struct {
	v     *verdict
	read  func(name string) ([]byte, bool) // of the head
	used  map[string]bool
	makes bool
	begun map[string]bool // what the commands lead to
	said  []mention       // what the commands and what they lead to say
	files map[string]bool
	dirs  map[string]bool // that hold some of them
	texts map[string][]byte
}

// text returns a file of the base; nil where it is not there or no text.
func (b *baseView) text(name string) []byte {
	if had, ok := b.texts[name]; ok {
		return had
	}
	var out []byte
	touched := false
	for _, f := range b.v.head.patch.files {
		if f.OldName == name && !f.IsNew && !f.IsCopy {
			out, touched = textBefore(f, b.read), true
			break
		}
		touched = touched || f.NewName == name
	}
	if !touched {
		out, _ = b.read(name)
	}
	b.texts[name] = out
	return out
}

func extension(name string) string {
	if languageOf(name) == &jsLang {
		return ".js"
	}
	return path.Ext(name)
}

func isCode(name string) bool {
	return languageOf(name) != &otherLang || compiled.MatchString(name) || odd.MatchString(name) || sourceExt.MatchString(name)
}

// serves reports whether a file looks as if it were there for tests alone.
func (b *baseView) serves(name string) bool {
	_, begun := b.begun[name]
	if begun || b.v.head.patch.role(name, nil, b.used, b.makes) != product {
		return true
	}
	re := frameworks[extension(name)]
	return re != nil && re.Match(b.text(name))
}

// supports finds the changed files that no name gives away and by which tests of
// the base pass or fail all the same: what the commands start, and what tests alone
// import or open, at the base and at the head.
func (v *verdict) supports(ctx context.Context, tree Tree, b *baseView) error {
	var open []edit
	plain := slices.ContainsFunc(v.head.suites, (*suite).plain)
	apart := func(name string) bool { return document.MatchString(name) || configFile.MatchString(name) }
	for _, f := range v.head.patch.files {
		if f.OldName == "" || f.IsNew || f.IsCopy || v.isTest[f.OldName] || len(open) == maxSupports {
			continue
		}
		b.files[f.OldName] = true
		e := edit{name: f.OldName, role: testSource, before: b.text(f.OldName)}
		e.now, _ = b.read(f.NewName)
		if v.head.patch.role(e.name, e.before, b.used, b.makes) != product || apart(e.name) && !plain {
			continue
		}
		if !isCode(e.name) {
			e.role = testData
		}
		open = append(open, e)
	}
	if len(open) == 0 || v.o.Base == "" {
		return nil
	}
	names, err := v.list(ctx, tree, open)
	if err != nil {
		return err
	}
	for _, name := range names.all {
		b.files[name] = true
	}
	b.begun = b.started()
	for _, e := range open {
		tests, product := b.named(e, names.near)
		direct, begun := b.begun[e.name]
		switch {
		case !direct && apart(e.name):
			continue
		case begun && !direct && isCode(e.name) && !toolDirs.MatchString(e.name) && !supportNames.MatchString(e.name):
			v.unsure = append(v.unsure, e) // what a script leads to may be what it tests
			continue
		case begun && (isCode(e.name) || !product):
			e.role = runner
		case begun || !tests || product || !b.sure(e):
			if begun || b.mentioned(e.name) {
				v.unsure = append(v.unsure, e)
			}
			continue
		}
		v.edits, v.isTest[e.name] = append(v.edits, e), true
		if direct {
			v.direct = append(v.direct, e.name)
		}
	}
	return nil
}

// sure reports whether a file that tests alone name is one of theirs, and not the
// code under test.
func (b *baseView) sure(e edit) bool {
	if !isCode(e.name) {
		return true
	}
	ext := extension(e.name)
	if re := frameworks[ext]; re != nil && re.Match(e.before) || ext == ".go" && failsTests.Match(e.before) {
		return true
	}
	re := holdsCode[ext]
	if re != nil && !re.Match(e.before) {
		return true // a table of values
	}
	return ext != ".go" && supportNames.MatchString(e.name) && canFail.Match(e.before)
}

// listed are the files of a tree, and those of them in which a word stands that
// names a changed file.
type listed struct{ all, near []string }

const listScript = `find . \( -name .git -o -name .venv -o -name ` + scratch + ` \) -prune -o -type f -size -1024k -print | grep -v '/node_modules/.*/node_modules/' | head -n 40000
echo //
grep -rlIwF --exclude-dir=.git --exclude-dir=.venv --exclude-dir=node_modules "$@" . | head -n 4000`

func (v *verdict) list(ctx context.Context, tree Tree, open []edit) (listed, error) {
	args := []string{"sh", "-c", listScript, "sh"}
	seen := map[string]bool{}
	for _, e := range open {
		for _, word := range v.words(e) {
			if !seen[word] {
				seen[word] = true
				args = append(args, "-e", word)
			}
		}
	}
	res, err := tree.Run(ctx, workspace.Command{Args: args, Timeout: time.Minute})
	if err != nil {
		return listed{}, err
	}
	var out listed
	into := &out.all
	for line := range strings.Lines(string(res.Stdout)) {
		if line = strings.TrimSpace(line); line == "//" {
			into = &out.near
		} else if line != "" {
			*into = append(*into, path.Clean(line))
		}
	}
	for _, f := range v.head.patch.files { // as they were, they may name others
		if f.OldName != "" && !f.IsNew {
			out.near = append(out.near, f.OldName)
		}
	}
	slices.Sort(out.near)
	out.near = slices.Compact(out.near)
	return out, nil
}

// words returns what must stand in a file that names another.
func (v *verdict) words(e edit) []string {
	base, dir := path.Base(e.name), path.Base(path.Dir(e.name))
	stem := strings.TrimSuffix(base, path.Ext(base))
	if stem == "__init__" || stem == "index" {
		stem = dir
	}
	out := []string{stem, base}
	if (!isCode(e.name) || path.Ext(e.name) == ".go") && dir != "." {
		out = append(out, dir)
	}
	if path.Ext(e.name) == ".go" {
		out = append(out, identifiers(e.before)...)
	}
	return out
}

// identifiers lists what a Go file declares, but for methods.
func identifiers(source []byte) []string {
	var out []string
	for _, m := range goTopLevel.FindAllSubmatch(source, -1) {
		out = append(out, string(m[1]))
	}
	for _, group := range goGroup.FindAll(source, -1) {
		for _, m := range goGrouped.FindAllSubmatch(group, -1) {
			out = append(out, string(m[1]))
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "_" || s == "init" || s == "main" })
}

// named reports whether tests of the base name a file, and whether the product does, at
// the base or at the head.
func (b *baseView) named(e edit, near []string) (tests, inProduct bool) {
	for i, name := range near {
		if name == e.name || i > maxReferrer || document.MatchString(name) || strings.HasPrefix(name, ".github/") {
			continue
		}
		before := b.names(name, b.text(name), e)
		if b.serves(name) {
			tests = tests || before
		} else if isCode(name) {
			now, _ := b.read(name)
			inProduct = inProduct || before || b.names(name, now, e)
		}
	}
	return tests, inProduct
}

// names reports whether a file, with a text, imports or opens another.
func (b *baseView) names(from string, source []byte, e edit) bool {
	ext := extension(from)
	switch {
	case len(source) == 0:
		return false
	case ext == ".go" && path.Ext(e.name) == ".go":
		return b.v.goNames(from, source, e)
	case ext == ".py" && path.Ext(e.name) == ".py":
		return pythonNames(source, e.name)
	}
	lits := literals(source)
	if ext == ".js" && extension(e.name) == ".js" {
		return slices.ContainsFunc(lits, func(lit string) bool { return jsNames(from, lit, e.name) })
	}
	base, dir := path.Base(e.name), path.Base(path.Dir(e.name))
	return slices.ContainsFunc(lits, func(lit string) bool {
		last := path.Base(lit)
		glob, _ := path.Match(last, base)
		return last == base || strings.Contains(last, "*") && glob || !isCode(e.name) && dir != "." && last == dir
	})
}

func literals(source []byte) []string {
	var out []string
	for _, m := range quoted.FindAllSubmatch(source, -1) {
		if len(m[1]) > 1 {
			out = append(out, string(m[1]))
		}
	}
	for _, m := range embedded.FindAllSubmatch(source, -1) {
		out = append(out, strings.Fields(string(m[1]))...)
	}
	return out
}

func (v *verdict) goNames(from string, source []byte, e edit) bool {
	dir := path.Dir(e.name)
	qualifier := ""
	if path.Dir(from) != dir {
		pkg := v.head.packageOf(dir)
		if _, outside, ok := strings.Cut("/"+dir, "/vendor/"); ok {
			pkg = outside
		}
		if !strings.Contains(string(source), `"`+pkg+`"`) {
			return false
		}
		qualifier = `\.`
	}
	ids := slices.Concat(identifiers(e.before), identifiers(e.now))
	if len(ids) == 0 {
		return qualifier != ""
	}
	return regexp.MustCompile(qualifier + `\b(?:` + strings.Join(ids, "|") + `)\b`).Match(source)
}

func pythonNames(source []byte, name string) bool {
	base := path.Base(name)
	stem := strings.TrimSuffix(base, ".py")
	if stem == "__init__" {
		stem = path.Base(path.Dir(name))
	}
	stem = regexp.QuoteMeta(stem)
	return regexp.MustCompile(`(?m)^\s*(?:from\s+[\w.]*\b` + stem + `\b|import\s+[^\n#]*\b` + stem + `\b|from\s+[\w.]+\s+import\s+[^\n#]*\b` + stem + `\b)|["'](?:[\w./-]*[./])?` + stem + `(?:\.py)?["']`).Match(source)
}

func jsNames(from, lit, name string) bool {
	bare := strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), "/index")
	fits := func(p string) bool { return p == name || strings.TrimSuffix(p, path.Ext(p)) == bare || p == bare }
	if strings.HasPrefix(lit, ".") {
		return fits(path.Join(path.Dir(from), lit))
	}
	if _, in, ok := strings.Cut("/"+name, "/node_modules/"); ok {
		return in == lit || strings.HasPrefix(in, lit+"/")
	}
	lit = strings.TrimLeft(lit, "@~/")
	return strings.Contains(lit, "/") && (fits(lit) || strings.HasSuffix(bare, "/"+strings.TrimSuffix(lit, path.Ext(lit))))
}

// started follows the test commands through the files that they name to those that
// these call and import. The value tells what a plain command names itself. Code of
// another directory is the product, where it is imported and not started.
func (b *baseView) started() map[string]bool {
	out := map[string]bool{}
	type script struct{ dir, name, text string }
	var todo []script
	found := func(direct bool, dir string, words []string) {
		for _, w := range words {
			for _, name := range []string{path.Join(dir, w), path.Clean(w)} {
				if _, known := out[name]; !b.files[name] || known {
					continue
				}
				out[name] = direct
				todo = append(todo, script{dir, name, string(b.text(name))})
			}
		}
	}
	for _, s := range b.v.head.suites {
		texts, dirs := b.commandTexts(s)
		for _, text := range texts {
			words := shellWords(text)
			if s.plain() {
				words = append(words, b.respelt(text, words)...)
			}
			for _, dir := range dirs {
				found(s.plain(), dir, words)
			}
			b.say(text, dirs...)
		}
	}
	for len(todo) > 0 && len(out) < 200 {
		s := todo[0]
		todo = todo[1:]
		here := path.Dir(s.name)
		b.say(s.text, here, s.dir)
		switch ext := extension(s.name); {
		case testname.IsFile(s.name):
		case !isCode(s.name) && testname.IsData(s.name):
		case languageOf(s.name) == &otherLang:
			found(false, s.dir, shellWords(s.text))
			found(false, here, shellWords(s.text))
		default:
			lits := literals([]byte(s.text))
			if ext == ".py" {
				for _, m := range pythonImport.FindAllStringSubmatch(s.text, -1) {
					lits = append(lits, "./"+strings.ReplaceAll(strings.TrimLeft(m[1], "."), ".", "/")+".py")
				}
			}
			for _, lit := range lits {
				for _, name := range []string{path.Join(here, lit), path.Join(s.dir, lit), path.Join(here, lit) + path.Ext(s.name), path.Join(here, lit, "index.js")} {
					beside := here != "." && strings.HasPrefix(name, here+"/") || supportNames.MatchString(name)
					if b.files[name] && (!isCode(name) || beside) {
						found(false, ".", []string{name})
					}
				}
			}
		}
	}
	return out
}

// mention is a text that may name files, by paths from a directory.
type mention struct {
	dir, text string
	words     []string
}

// How much of what the commands and what they lead to say is looked through.
const (
	maxSaid     = 100
	maxSaidText = 16 << 10 // bytes of one
)

func (b *baseView) say(text string, dirs ...string) {
	if !slices.ContainsFunc(b.v.head.suites, (*suite).plain) {
		return // the tests are told one by one
	}
	text = text[:min(len(text), maxSaidText)]
	words := shellWords(text)
	for _, dir := range slices.Compact(dirs) {
		if len(b.said) < maxSaid {
			b.said = append(b.said, mention{dir, text, words})
		}
	}
}

// shellWords are the parts of a text that may be paths: between blanks, quotes and what a shell
// reads as its own, without a variable in front.
func shellWords(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|()<>{}=,:", r) })
	for i, w := range words {
		if at := strings.LastIndexByte(w, '$'); at >= 0 {
			_, w, _ = strings.Cut(w[at:], "/")
		}
		words[i] = strings.TrimLeft(w, "/")
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// respelt are the files that a command names by a pattern, with a blank in the name, as a
// variable's default, or with what a shell takes away.
func (b *baseView) respelt(text string, words []string) (out []string) {
	for _, w := range words {
		out = append(out, strings.TrimLeft(w, "-"), strings.ReplaceAll(w, `\`, ""))
	}
	for name := range b.files {
		if strings.Contains(name, " ") && strings.Contains(text, name) {
			out = append(out, name)
		}
		for _, w := range words {
			if glob, _ := path.Match(path.Clean(w), name); glob {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// mentioned reports whether what the commands lead to names a file in another way than by its
// path: by its directory, a pattern, as a module, or with a blank in it.
func (b *baseView) mentioned(name string) bool {
	bare := strings.TrimSuffix(name, path.Ext(name))
	for _, s := range []string{"/__init__", "/__main__", "/index"} {
		bare = strings.TrimSuffix(bare, s)
	}
	for _, m := range b.said {
		if strings.Contains(name, " ") && strings.Contains(m.text, name) {
			return true
		}
		for _, w := range m.words {
			for _, word := range []string{path.Join(m.dir, w), path.Clean(w), path.Join(m.dir, strings.ReplaceAll(w, ".", "/"))} {
				whole, _ := path.Match(word, name)
				within, _ := path.Match(word, path.Dir(name))
				if whole || within && word != "." || word == bare && word != "." {
					return true
				}
			}
			if base, _ := path.Match(w, path.Base(name)); base && strings.Contains(w, "*") {
				return true
			}
		}
	}
	return false
}

// startedBy lists the files that a suite's command names, also through npm and make.
func (b *baseView) startedBy(s *suite) (out []string) {
	texts, dirs := b.commandTexts(s)
	for _, command := range texts {
		for _, w := range shellWords(command) {
			for _, dir := range dirs {
				if strings.ContainsAny(w, "./") {
					out = append(out, path.Join(dir, w))
				}
			}
		}
	}
	return out
}

// bringsScripts finds the commands of which the change brings the file that they start: the
// base has no such test.
func (b *baseView) bringsScripts() map[string]bool {
	out := map[string]bool{}
	for _, s := range b.v.head.suites {
		fresh, stood := false, false
		for _, file := range b.startedBy(s) {
			f := b.v.head.patch.file(file)
			fresh = fresh || f != nil && f.IsNew
			stood = stood || b.text(file) != nil
		}
		if s.format == formatAny && fresh && !stood {
			out[s.done.Name] = true
		}
	}
	return out
}

var (
	pythonImport = lazyregexp.New(`(?m)^\s*(?:from|import)\s+([\w.]+)`)
	npmRun       = lazyregexp.New(`\b(?:npm|pnpm|yarn|bun)(?:\s+(?:--?[\w-]+[= ][\w./]+|--?[\w-]+))*\s+(?:run\s+|run-script\s+)?([\w:-]+)`)
	makeRun      = lazyregexp.New(`(?:\b(?:make|gmake|just)\b|\$\(MAKE\))((?:\s+-\S+)*(?:\s+[\w.:-]+)*)`)
)

// commandTexts returns a suite's command, and what it stands for in package.json or in a Makefile,
// with the directories from which they may name files: the suite's, and those that they name.
func (b *baseView) commandTexts(s *suite) (texts, dirs []string) {
	texts, dirs = []string{strings.Join(s.args, " ")}, []string{s.dir}
	done := map[string]bool{}
	for i := 0; i < len(texts) && i < 50; i++ {
		for _, w := range shellWords(texts[i]) {
			if dir := path.Join(s.dir, w); b.holds(dir) && len(dirs) < 10 && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		for _, dir := range dirs {
			var pkg struct{ Scripts map[string]string }
			_ = json.Unmarshal(b.text(path.Join(dir, "package.json")), &pkg)
			for _, m := range npmRun.FindAllStringSubmatch(texts[i], -1) {
				for _, name := range []string{"pre" + m[1], m[1], "post" + m[1]} {
					if text := pkg.Scripts[name]; text != "" && !done[dir+" "+name] {
						done[dir+" "+name] = true
						texts = append(texts, text)
					}
				}
			}
			for _, m := range makeRun.FindAllStringSubmatch(texts[i], -1) {
				found := false
				for _, target := range append(strings.Fields(m[1]), "") { // last, where no other is one: the first of the file
					if known := done[dir+" make "+target]; known || strings.HasPrefix(target, "-") || target == "" && found {
						found = found || known
						continue
					}
					recipe := b.recipe(dir, target)
					done[dir+" make "+target], found = true, found || len(recipe) > 0
					texts = append(texts, recipe...)
				}
			}
		}
	}
	return texts, dirs
}

// holds reports whether a directory has files.
func (b *baseView) holds(dir string) bool {
	if b.dirs == nil {
		b.dirs = map[string]bool{}
		for name := range b.files {
			for at := path.Dir(name); at != "." && !b.dirs[at]; at = path.Dir(at) {
				b.dirs[at] = true
			}
		}
	}
	return b.dirs[dir]
}

// recipe returns what a target of a Makefile runs: its lines, and the targets that
// it waits for, as a command.
func (b *baseView) recipe(dir, target string) []string {
	var out []string
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile", "justfile", "Justfile", ".justfile"} {
		in := false
		for _, line := range strings.Split(withIncludes(string(b.text(path.Join(dir, name))), func(n string) []byte { return b.text(path.Join(dir, n)) }), "\n") {
			heads, needs, ok := strings.Cut(line, ":")
			switch {
			case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  "):
				if in {
					out = append(out, line)
				}
			case ok && !strings.HasPrefix(needs, "=") && !strings.HasPrefix(line, "."):
				names := strings.Fields(heads)
				if target == "" && len(names) > 0 {
					target = names[0]
				}
				if in = slices.Contains(names, target); in && strings.TrimSpace(needs) != "" {
					out = append(out, "make "+needs)
				}
			}
		}
	}
	return out
}

var makeInclude = lazyregexp.New(`(?m)^[-s]?include\s+(.+)$`)

// withIncludes adds to a Makefile those that it includes by plain names.
func withIncludes(text string, read func(name string) []byte) string {
	done := map[string]bool{}
	for i := 0; i < 20; i++ {
		grew := false
		for _, m := range makeInclude.FindAllStringSubmatch(text, -1) {
			for _, name := range strings.Fields(m[1]) {
				if !done[name] && !strings.ContainsAny(name, "$*%") {
					done[name], grew = true, true
					text += "\n" + string(read(name))
				}
			}
		}
		if !grew {
			break
		}
	}
	return text
}
