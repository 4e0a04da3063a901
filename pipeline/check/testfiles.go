package check

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
)

// role is what a file is to the tests.
type role int

const (
	product    role = iota // code under test, or anything else
	testSource             // holds tests, or what only tests use
	testData               // fixtures, snapshots, expected output
	runner                 // settings, hooks, the runner: it decides what counts as passed
	mixed                  // a file with test settings among others
)

// mixedFiles are the files of which only a part is about tests; see merge.go.
var mixedFiles = []string{"package.json", "pyproject.toml", "setup.cfg"}

var (
	runnerNames = lazyregexp.New(`(?i)^(?:conftest\.py|\.?pytest\.ini|tox\.ini|noxfile\.py|\.coveragerc|nose2?\.cfg|unittest\.cfg|\.noserc|(?:site|user)customize\.py|.*\.pth` +
		`|jest[.-](?:config|setup|preset|env\w*|global[\w-]*)[\w.-]*|setup-?tests?\.[cm]?[jt]sx?|(?:vitest|vite)\.(?:config|setup|workspace)[\w.-]*|\.mocharc(?:\..*)?|mocha\.opts` +
		`|(?:karma|wtr|web-test-runner|ava|playwright|cypress|nightwatch|stryker|babel)[.-]conf(?:ig)?[\w.-]*|\.nycrc(?:\..*)?|\.c8rc(?:\..*)?|\.taprc|\.babelrc(?:\..*)?|\.swcrc` +
		`|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.[cm]?js|\.env\.test.*|\.rspec|(?:spec|rails|test)_helper\.rb|phpunit\.xml(?:\.dist)?|testng\.xml|junit-platform\.properties|nextest\.toml` +
		`|(?:run[-_.]?)?(?:all[-_.]?)?tests?(?:[-_.]all)?\.(?:sh|bash|bat|cmd|ps1|mk)|run[-_.]?(?:all[-_.]?)?tests?(?:\.[\w]+)?)$`)
	makeNames = lazyregexp.New(`(?i)^(?:GNU)?makefile$|\.mk$|^(?:justfile|taskfile\.ya?ml|rakefile)$`)

	// shadows are files that take a test library's place because they are found first.
	shadows = lazyregexp.New(`(?:^|/)(?:_?pytest|unittest|pluggy|iniconfig|doctest|nose2?|mock|coverage|hypothesis|xdist|pytest_\w+)(?:\.pyi?|/.*\.pyi?)$` +
		`|(?:^|/)node_modules/(?:\.bin/|(?:@jest|@vitest|@testing-library|@sinonjs|jest|vitest|mocha|chai|expect|ava|tap|tape|sinon|jasmine|nyc|c8|should|supertest|karma|babel-jest|ts-jest|cypress|playwright)(?:[-\w]*)/)` +
		`|(?:^|/)vendor/(?:github\.com/(?:stretchr/testify|onsi/g|google/go-cmp|frankban/quicktest|matryer/is|smartystreets|sebdah/goldie)|gotest\.tools|gopkg\.in/check|pgregory\.net/rapid)`)
	// loaded are files that a runner loads by itself, or that Ruby finds before those of its test library.
	loaded = lazyregexp.New(`(?:^|/)minitest/(?:\w+_plugin|autorun|assertions|test|spec|unit|mock)\.rb$` +
		`|(?:^|/)(?:lib|test|spec)/(?:minitest|rspec|test/unit)\.rb$` +
		`|(?:^|/)(?:lib|test|spec)/rspec/(?:core|expectations|mocks|autorun|support)(?:\.rb$|/)` +
		`|(?:^|/)META-INF/services/org\.(?:junit|testng|spockframework)\.|(?:^|/)\.cargo/config(?:\.toml)?$`)
	// pythonFirst are modules of the standard library that a runner imports: a file of
	// that name at the root is found before them.
	pythonFirst = lazyregexp.New(`^(?:abc|argparse|ast|asyncio|atexit|bdb|cmd|code|codecs|collections|contextlib|copy|dataclasses|datetime|difflib|dis|enum|errno|faulthandler|fnmatch|functools|gc|getopt|gettext` +
		`|glob|importlib|inspect|io|itertools|json|linecache|locale|logging|math|numbers|operator|os|pathlib|pdb|platform|pprint|re|reprlib|runpy|shlex|shutil|signal|site|stat|string|struct|subprocess` +
		`|sysconfig|tempfile|textwrap|threading|time|timeit|token|tokenize|traceback|types|typing|unicodedata|uuid|warnings|weakref|zipfile|zlib)(?:\.py|/__init__\.py)$`)

	testDirs   = lazyregexp.New(`(?i)(?:^|/)(?:tests?|__tests__|__mocks__|e2e|cypress|test[-_]?(?:utils?|helpers?|support|data|fixtures|lib)|[\w.-]+\.tests?)/`)
	specDirs   = lazyregexp.New(`(?i)(?:^|/)specs?/.*\.(?:rb|[cm]?[jt]sx?|py)$`)
	dataDirs   = lazyregexp.New(`(?i)(?:^|/)(?:testdata|(?:__)?fixtures?(?:__)?|(?:__)?(?:image_)?snapshots(?:__)?|goldens?|cassettes)/`)
	dataNames  = lazyregexp.New(`(?i)\.(?:snap|golden|ambr|approved\.\w+)$`)
	testNames  = lazyregexp.New(`(?i)^tests?\.(?:py|rs|[cm]?[jt]sx?)$|^tests?[-_]?(?:helpers?|utils?|support|setup|base|case|common)\.\w+$|^mock_\w+\.go$|_mocks?\.go$|^test-.*\.[cm]?js$`)
	goDirs     = lazyregexp.New(`(?i)(?:^|/)(?:test[-_]?(?:utils?|helpers?|support|lib)|mocks?)/`) // of Go code that only tests use
	odd        = lazyregexp.New(`(?i)\.(?:s|asm|so|pyd|pyc|node|wasm|dylib|dll|a|syso|jar|class|sh|bash)$`)
	sourceExt  = lazyregexp.New(`(?i)\.(?:rb|php|java|kt|kts|scala|groovy|cs|fs|vb|rs|ex|exs|c|cc|cpp|h|hpp|m|swift|lua|pl|pm|sh|bash|r|jl|dart|clj|hs|ml|zig|nim)$`)
	configFile = lazyregexp.New(`(?i)(?:^|/)(?:\.[^/]*|go\.(?:mod|work)|[^/]*\.(?:toml|ini|cfg|gradle(?:\.kts)?|props|csproj|conf)|[^/]*\.config\.[cm]?[jt]s|` +
		`[tj]sconfig[^/]*\.json|package\.json|deno\.jsonc?|pom\.xml|build\.xml)$`)
	compiled = lazyregexp.New(`\.(?:go|rs|java|kt|cs|swift|c|cc|cpp|h)$`)
	document = lazyregexp.New(`(?i)(?:^|/)(?:readme|changelog|contributing|license)[^/]*$`)
)

// roleOf tells a file's role by its path. Where that is not sure it is taken for
// code under test: to run the base's code instead of the change's would hide what
// the change broke.
func roleOf(name string) role {
	base := path.Base(name)
	switch {
	case runnerNames.MatchString(base), shadows.MatchString(name), loaded.MatchString(name), pythonFirst.MatchString(name):
		return runner
	case slices.Contains(mixedFiles, base) && !strings.Contains(name, "node_modules/"):
		return mixed
	case path.Ext(name) == ".go":
		if strings.HasSuffix(name, "_test.go") || goDirs.MatchString(name) || testNames.MatchString(base) {
			return testSource
		}
		if strings.Contains("/"+name, "/testdata/") {
			return testData
		}
		return product
	case dataDirs.MatchString(name) && !compiled.MatchString(name), dataNames.MatchString(name):
		return testData
	case document.MatchString(name):
		return product
	case testname.IsFile(name), testDirs.MatchString(name), specDirs.MatchString(name), testNames.MatchString(base):
		if testname.IsData(name) {
			return testData
		}
		return testSource
	}
	return product
}

// edit is a file of the tests that differs from what it was at the base.
type edit struct {
	name   string
	role   role
	added  bool   // it was not there
	before []byte // its text at the base; nil where that is not known
	now    []byte // and at the head, of Go code
	merged []byte // what a mixed file is, with the base's settings in it
}

// frameworks tell by a file's imports that it is about tests.
var frameworks = map[string]*lazyregexp.Regexp{
	".go":  lazyregexp.New(`(?m)^(?:import )?\s*(?:\w+ )?"(?:testing|testing/\w+|github\.com/(?:stretchr/testify|onsi/g\w+|google/go-cmp|frankban/quicktest)[\w/]*)"`),
	".py":  lazyregexp.New(`(?m)^\s*(?:import|from)\s+(?:_?pytest|unittest|nose|hypothesis|doctest)\b|^\s*def assert_?\w*\(`),
	".js":  lazyregexp.New(`['"](?:node:test|@jest/globals|vitest|chai|mocha|sinon|expect|supertest|@testing-library/[\w-]+)['"]|(?:function|const)\s+assert\w*\s*[(=]`),
	".cfg": nil,
}

// helperNames are how files that serve tests are named; a framework's import
// alone may be that of a product, such as a plugin for it.
var helperNames = lazyregexp.New(`(?i)test|helper|util|fixture|mock|fake|stub|factor(?:y|ies)|assert|expect|support|common`)

// edits returns the files of the tests that the change adds, edits, renames or
// removes. read reads a file of the head; used are the paths that the commands
// name, and make whether they go through make.
func (p *patch) edits(read func(name string) ([]byte, bool), used map[string]bool, makes bool) []edit {
	var out []edit
	add := func(e edit) {
		if i := slices.IndexFunc(out, func(o edit) bool { return o.name == e.name }); i >= 0 {
			out[i].added = out[i].added && e.added // removed as one kind of file, added as another
			return
		}
		out = append(out, e)
	}
	for _, f := range p.files {
		if f.OldName != "" && !f.IsNew && !f.IsCopy && (f.IsDelete || f.IsRename) {
			before := textBefore(f, read)
			if r := p.role(f.OldName, before, used, makes); r == mixed {
				add(edit{name: f.OldName, role: runner, before: before})
			} else if r != product {
				add(edit{name: f.OldName, role: r, before: before})
			}
		}
		if f.IsDelete {
			continue
		}
		fresh := f.IsNew || f.IsRename || f.IsCopy
		before := []byte(nil)
		if !fresh {
			before = textBefore(f, read)
		}
		r := p.role(f.NewName, before, used, makes)
		switch {
		case r == mixed && before == nil && !fresh:
			add(edit{name: f.NewName, role: runner})
		case r == mixed:
			head, _ := read(f.NewName)
			if merged, same := merge(path.Base(f.NewName), before, head); !same {
				add(edit{name: f.NewName, role: runner, added: fresh, before: before, merged: merged})
			}
		case r != product:
			e := edit{name: f.NewName, role: r, added: fresh, before: before}
			if path.Ext(e.name) == ".go" {
				e.now, _ = read(e.name)
			}
			add(e)
		}
	}
	return out
}

// role refines what the path tells by what the commands use and by what the file
// imported at the base.
func (p *patch) role(name string, before []byte, used map[string]bool, makes bool) role {
	r := roleOf(name)
	switch {
	case r != product:
		return r
	case used[name], makes && makeNames.MatchString(path.Base(name)):
		return runner
	case before == nil || !helperNames.MatchString(name):
		return product
	}
	ext := path.Ext(name)
	if languageOf(name) == &jsLang {
		ext = ".js"
	}
	if re := frameworks[ext]; re != nil && re.Match(before) {
		return testSource
	}
	return product
}

// textBefore returns a file as it was at the base; nil where it cannot be told.
func textBefore(f *gitdiff.File, read func(name string) ([]byte, bool)) []byte {
	if f.IsBinary || f.IsNew {
		return nil
	}
	var head []byte
	if !f.IsDelete {
		var ok bool
		if head, ok = read(f.NewName); !ok {
			return nil
		}
	}
	back := &gitdiff.File{OldName: f.NewName, NewName: f.OldName}
	for _, frag := range f.TextFragments {
		b := *frag
		b.OldPosition, b.NewPosition, b.OldLines, b.NewLines = frag.NewPosition, frag.OldPosition, frag.NewLines, frag.OldLines
		b.LinesAdded, b.LinesDeleted = frag.LinesDeleted, frag.LinesAdded
		b.Lines = slices.Clone(frag.Lines)
		for i, l := range b.Lines {
			switch l.Op {
			case gitdiff.OpAdd:
				b.Lines[i].Op = gitdiff.OpDelete
			case gitdiff.OpDelete:
				b.Lines[i].Op = gitdiff.OpAdd
			}
		}
		back.TextFragments = append(back.TextFragments, &b)
	}
	var out bytes.Buffer
	if err := gitdiff.Apply(&out, bytes.NewReader(head), back); err != nil {
		return nil
	}
	return out.Bytes()
}
