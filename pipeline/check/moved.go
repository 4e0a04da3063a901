package check

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/workspace"
)

// Code under test can look for its tests: for a directory that is called as theirs are,
// for its own sources around it, for its answers in their text, or whether it is
// installed. So in another place the tests are moved to a directory of another name,
// their numbers are spelled in another way, Go's run where no source lies, and a Python
// package is installed by its name.

// moved is how a work tree was changed.
type moved struct {
	names map[string]string // of directories of tests: the new name, and the old one
}

// move changes a work tree.
func move(ctx context.Context, tree Tree, o *Options) (*moved, error) {
	files, err := sourceFiles(ctx, tree)
	if err != nil {
		return nil, err
	}
	m := &moved{names: map[string]string{}}
	dirs := testRoots(files)
	for i, dir := range dirs {
		name := "p" + o.word(7)
		to := path.Join(path.Dir(dir), name)
		if _, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"mv", "--", dir, to}}); err != nil {
			return nil, err
		}
		m.names[name] = path.Base(dir)
		for j, f := range files {
			if rest, in := strings.CutPrefix(f, dir+"/"); in {
				files[j] = to + "/" + rest
			}
		}
		for j, d := range dirs[i+1:] {
			if rest, in := strings.CutPrefix(d, dir+"/"); in {
				dirs[i+1+j] = to + "/" + rest
			}
		}
	}
	for _, name := range slices.Concat(files, pathConfigs, []string{"package.json", "Makefile", "makefile", "GNUmakefile"}) {
		if err := m.rewrite(ctx, tree, name); err != nil {
			return nil, err
		}
	}
	return m, installed(ctx, tree)
}

// rewrite makes a file speak of the directories by their new names, and a test spell its
// numbers otherwise.
func (m *moved) rewrite(ctx context.Context, tree Tree, name string) error {
	was := m.old(name)
	role := roleOf(was)
	isTest := role == testSource || testname.IsFile(was)
	if !isTest && role != runner && role != mixed && !makeNames.MatchString(path.Base(name)) {
		return nil
	}
	source, err := tree.Read(ctx, name)
	if err != nil {
		return ctx.Err() // a link, or not there
	}
	text := m.say(string(source), path.Ext(name))
	if isTest {
		text = respelled(was, text)
	}
	if text == string(source) {
		return nil
	}
	if err := tree.Write(ctx, name, []byte(text)); err != nil {
		return ctx.Err()
	}
	return nil
}

// old is a path as it was.
func (m *moved) old(text string) string {
	for now, was := range m.names {
		text = strings.ReplaceAll(text, now, was)
	}
	return text
}

// say changes the names of the directories in a text, where they are no other words.
func (m *moved) say(text, ext string) string {
	for now, was := range m.names {
		name := regexp.QuoteMeta(was)
		text = regexp.MustCompile(`(^|[\s"'=,\[(])(\./)?`+name+`/`).ReplaceAllString(text, "${1}${2}"+now+"/")
		switch ext {
		case ".py":
			text = regexp.MustCompile(`(?m)^(\s*(?:from|import)\s+)`+name+`\b`).ReplaceAllString(text, "${1}"+now)
		case ".toml", ".cfg", ".ini":
			text = regexp.MustCompile(`(?m)(["'])`+name+`(["'])|^(\s*testpaths\s*=\s*)`+name+`[ \t]*$`).ReplaceAllString(text, "${1}${3}"+now+"${2}")
		}
	}
	return text
}

// command is a suite's command with the new names.
func (m *moved) command(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		out[i] = m.say(a, "")
		for now, was := range m.names {
			if i > 0 && path.Clean(a) == was && !slices.Contains([]string{"npm", "yarn", "pnpm", "make", "run", "go", "cargo", "just"}, out[i-1]) {
				out[i] = now
			}
		}
	}
	return out
}

// back gives the results the names that they have in the usual place.
func (m *moved) back(c *checker) {
	for _, s := range c.suites {
		s.done.Command = m.old(s.done.Command)
		for i := range s.result.cases {
			t := &s.result.cases[i]
			t.name, t.group, t.file, t.err = m.old(t.name), m.old(t.group), m.old(t.file), m.old(t.err)
		}
	}
}

// testRoots returns the outermost directories that hold tests in Python or JavaScript,
// and are named for them.
func testRoots(files []string) []string {
	roots, others := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		dir := testRoot(f)
		if dir == "" {
			continue
		}
		if lang := languageOf(f); lang == &pyLang || lang == &jsLang {
			roots[dir] = roots[dir] || testname.IsFile(f) || testNames.MatchString(path.Base(f))
		} else {
			others[dir] = true
		}
	}
	var out []string
	for dir, tests := range roots {
		if tests && !others[dir] {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

var rootNames = lazyregexp.New(`^(?:tests?|specs?|__tests__|e2e)$`)

// testRoot is the outermost directory of a path that is named for tests; "" for none.
func testRoot(file string) string {
	parts := strings.Split(file, "/")
	for i, p := range parts[:len(parts)-1] {
		switch {
		case p == "node_modules" || p == "vendor":
			return ""
		case rootNames.MatchString(p):
			return path.Join(parts[:i+1]...)
		}
	}
	return ""
}

var (
	pySpelled = lazyregexp.New(doubled + `|` + single + `|#.*|[\w.$@]*\d[\w.]*`)
	jsSpelled = lazyregexp.New(doubled + `|` + single + "|`[^`\n]*`|//.*|[\\w.$@]*\\d[\\w.]*")
	plain     = lazyregexp.New(`^(?:0|[1-9]\d{0,17})$`)
)

// respelled writes the numbers of a source file in another way, which means the same.
func respelled(name, source string) string {
	lang := languageOf(name)
	re := map[*language]*lazyregexp.Regexp{&goLang: jsSpelled, &jsLang: jsSpelled, &pyLang: pySpelled}[lang]
	if re == nil {
		return source
	}
	var b strings.Builder
	long := false // in a text of several lines
	for line := range strings.Lines(source) {
		quotes := strings.Count(line, "`")
		if lang == &pyLang {
			quotes = len(longString.FindAllString(line, -1))
		}
		code := line
		if lang == &jsLang { // what is between slashes may be a pattern
			code, _, _ = strings.Cut(line, "//")
		}
		if !long && quotes%2 == 0 && (lang != &pyLang || quotes == 0) && (lang != &jsLang || !strings.Contains(code, "/")) {
			line = re.ReplaceAllStringFunc(line, func(word string) string {
				if !plain.MatchString(word) {
					return word
				}
				n, _ := strconv.ParseUint(word, 10, 64) // it fits
				return "0x" + strconv.FormatUint(n, 16)
			})
		}
		long = long != (quotes%2 == 1)
		b.WriteString(line)
	}
	return b.String()
}

var (
	projectName = lazyregexp.New(`(?m)^\s*name\s*=\s*["']?([A-Za-z0-9][\w.-]*)`)
	projectOf   = lazyregexp.New(`(?s)(?:^|\n)\[(?:project|tool\.poetry|metadata)\]\s*\n(.*?)(?:\n\[|$)`)
)

// installed makes a Python project look installed for code that imports it by its name.
func installed(ctx context.Context, tree Tree) error {
	for _, name := range []string{"pyproject.toml", "setup.cfg"} {
		data, err := tree.Read(ctx, name)
		if err != nil {
			continue
		}
		section := projectOf.FindSubmatch(bytes.ReplaceAll(data, []byte("\r"), nil))
		if section == nil {
			continue
		}
		if m := projectName.FindSubmatch(section[1]); m != nil {
			project := string(m[1])
			info := strings.NewReplacer("-", "_", ".", "_").Replace(project) + "-1.0.dist-info/METADATA"
			if err := tree.Write(ctx, info, []byte("Metadata-Version: 2.1\nName: "+project+"\nVersion: 1.0\n")); err != nil {
				return ctx.Err()
			}
			return nil
		}
	}
	return ctx.Err()
}

// withoutSources is the way in which Go's tests are run where there are no sources: in a
// copy of the work tree without them, by a program that lies in another directory.
const withoutSources = `r=$1 app=$2; shift 2
m=$r/` + scratch + `/m
until [ -e "$m.done" ]; do
	if mkdir "$m" 2>/dev/null; then
		(cd "$r" && tar -cf - --exclude='*.go' --exclude=./` + scratch + ` --exclude=./.git . 2>/dev/null | tar -xf - -C "$m" 2>/dev/null)
		: >"$m.done"
	else
		sleep 0.05
	fi
done
d=$(mktemp -d "${GOTMPDIR:-/tmp}/runXXXXXX") && { ln -f "$app" "$d/app" 2>/dev/null || cp "$app" "$d/app"; } || exec "$app" "$@"
cd "$m${PWD#"$r"}" 2>/dev/null
app=$d/app
` + atTerminal
