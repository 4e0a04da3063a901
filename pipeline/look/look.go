// Package look finds what in a change its tests cannot speak for: code that may tell one
// place from another, that ends its caller, that settles how its values compare, that holds values of the tests,
// and constants and data that tests look at. Each is a point at which the reviewer has to
// look, and to say why it is right. Most of them are honest; none is a finding by itself.
//
// The package is pure.
package look

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
	"forge/pipeline/text"
)

// File is what a change does to a file that is no test.
type File struct {
	Name  string
	New   bool
	Added []point.Line
	Gone  []string

	Source string // the whole file after the change; "": not known

	lines, own []string // of Source, and of Added: see whole
}

// MaxPoints caps what the reviewer is asked of a change.
const MaxPoints = 12

// base is what is known of the base's files of tests.
type base struct {
	files   []File         // of the change
	defined map[string]int // the functions that the change touches in the file that is looked at
	names   []string
	tests   map[string]string
	known   map[string]map[string]bool // the numbers that each has
	alike   map[string]map[string]bool // the functions that the change touches and that each holds against each other alone
}

// Find returns the points of a change. tests are the base's files of tests, by name.
func Find(files []File, tests map[string]string) []point.Point {
	files = slices.Clone(files)
	b := base{files, nil, slices.Sorted(maps.Keys(tests)), tests, map[string]map[string]bool{}, map[string]map[string]bool{}}
	touched := map[string]bool{}
	defined := make([]map[string]int, len(files))
	for i := range files {
		defined[i] = files[i].defined()
		for name := range defined[i] {
			touched[name] = true
		}
	}
	for name, source := range tests {
		b.known[name], b.alike[name] = values(source), alike(source, touched)
	}
	var out []point.Point
	for i := range files {
		f := &files[i]
		b.defined = defined[i]
		for _, k := range []point.Kind{point.Hidden, point.Place, point.Ends, point.Compare, point.Values, point.Data} {
			if p, found := f.find(k, &b); found {
				out = append(out, p)
			}
		}
	}
	return out[:min(len(out), MaxPoints)]
}

// find returns the first line of a kind.
func (f *File) find(k point.Kind, b *base) (p point.Point, found bool) {
	p = point.Point{File: f.Name, Kind: k}
	hit := func(l point.Line, test string) {
		if !found {
			p.Line, p.Code, p.Test, found = l.Number, text.Head(strings.TrimSpace(l.Text), 300), test, true
			return
		}
		p.More++
	}
	switch {
	case k == point.Data:
		f.data(b, hit)
	case k == point.Place && path.Base(f.Name) == "package.json":
		for _, l := range f.Added {
			if b.otherwise(l.Text) {
				hit(l, "")
			}
		}
	default:
		f.code(k, b, hit)
	}
	return p, found
}

// code finds the lines of a kind in a file of a language that is known.
func (f *File) code(k point.Kind, b *base, hit func(l point.Line, test string)) {
	lang := f.language()
	if lang == nil {
		return
	}
	var state map[string]*regexp.Regexp
	if k == point.Place {
		state = kept(f.Name, f.Added)
	}
	for i, l := range f.Added {
		code := strings.TrimSpace(l.Text)
		if code == "" || strings.HasPrefix(code, lang.remark) {
			continue
		}
		if k == point.Values {
			if at := slices.IndexFunc(b.names, func(n string) bool { return shares(l.Text, b.known[n]) }); at >= 0 {
				hit(l, b.names[at])
			} else if digests.MatchString(code) {
				hit(l, "")
			}
			continue
		}
		re, code := lang.kinds[k], withoutProse(code)
		switch {
		case re != nil && re.MatchString(code) && !lang.plain(k, f, i),
			k == point.Place && (lang.chance.decidesAt(f.Added, i) || decidedByKept(state, code)),
			k == point.Ends && f.swallows(i),
			k == point.Compare && f.catches(i):
			hit(l, "")
		}
	}
}

// data finds what tests of the base compare with: files, constants, errors that were exported, and functions
// that they hold against each other alone.
func (f *File) data(b *base, hit func(l point.Line, test string)) {
	lang := f.language()
	if dataFile.MatchString(f.Name) && !settings.MatchString(f.Name) && !f.New && len(f.Added) > 0 {
		if at := slices.IndexFunc(b.names, func(n string) bool { return strings.Contains(b.tests[n], path.Base(f.Name)) }); at >= 0 {
			hit(f.Added[0], b.names[at])
			return
		}
	}
	if lang == nil || len(f.Added) == 0 {
		return
	}
	for _, l := range f.Added {
		if code := strings.TrimSpace(l.Text); code == "" || strings.HasPrefix(code, lang.remark) {
			continue
		}
		if name := lang.constant(f, l.Text); name != "" {
			if at := slices.IndexFunc(b.names, func(n string) bool { return mentions(b.tests[n], name) }); at >= 0 {
				hit(l, b.names[at])
			}
		}
	}
	for _, n := range b.names {
		if gone := f.lostError(b.tests[n]); gone != "" {
			hit(point.Line{Number: f.Added[0].Number, Text: "- " + strings.TrimSpace(gone)}, n)
		}
		for _, name := range slices.Sorted(maps.Keys(b.alike[n])) {
			if at, ok := b.defined[name]; ok {
				hit(f.Added[at], n)
			}
		}
	}
}

func (f *File) language() *language { return languages[strings.ToLower(path.Ext(f.Name))] }

var (
	dataFile = lazyregexp.New(`(?i)\.(?:json|ya?ml|toml|csv|tsv|txt|ini|properties|xml|sql)$`)
	settings = lazyregexp.New(`(?i)(?:^|/)(?:package(?:-lock)?\.json|[^/]*lock[^/]*|pyproject\.toml|setup\.cfg|tox\.ini|tsconfig[^/]*|requirements[^/]*\.txt|cmakelists\.txt|\.[^/]*|\.github/.*)$`)
	quoted   = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
)

// withoutProse leaves sentences out of a line: they name things and reach nothing.
func withoutProse(line string) string {
	return quoted.ReplaceAllStringFunc(line, func(s string) string {
		if strings.Count(s, " ") >= 2 {
			return `""`
		}
		return s
	})
}

func mentions(source, name string) bool {
	for at := 0; ; {
		i := strings.Index(source[at:], name)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(name)
		if (i == 0 || !inWord(source[i-1])) && (at == len(source) || !inWord(source[at])) {
			return true
		}
	}
}

func inWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

var number = lazyregexp.New(`\d+(?:\.\d+)?`)

// numbers returns those of a text, each once. What stands within a word is none.
func numbers(s string) (out []string) {
	for _, m := range number.FindAllStringIndex(s, -1) {
		if m[0] > 0 && inWord(s[m[0]-1]) || m[1] < len(s) && inWord(s[m[1]]) {
			continue
		}
		if w := s[m[0]:m[1]]; !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// values are the numbers that a file of tests has.
func values(source string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(source) {
		for _, w := range numbers(line) {
			out[w] = true
		}
	}
	return out
}

var (
	compares = lazyregexp.New(`[!=]==?|[<>]=?|\bin\b|\bcase\b|\bis\b|\.(?:has|get|includes)\(`)
	lists    = lazyregexp.New(`[{\[(][^{}\[\]()]*\d|^\s*\d+\s*:`)
	digests  = lazyregexp.New(`\b(?:md5|sha\d+|crc32|adler32|fnv|blake2\w?|createHash|hash)\b[^;]*\(.*(?:[!=]==?|\bin\b|\.has\(|\.includes\()`)
	common   = lazyregexp.New(`^(?:\d|\d*0+|[1-9]?[0-9]?00|1[26]|2[48]|3[26]|6[0-9]|1[0-2]|255|256|365|366|360|512|1024|2048|4096|8192|65535|65536|20[0-6]|226|30[0-8]|4[0-3]\d|451|50[0-8]|511|(?:19|20)\d\d|3600|86400|8080|443)$`)
)

// shares reports whether a line of code has so much of what a file of tests holds that it
// may be no chance: a value that it compares with and that is none of every day, two of those,
// or three values in a list.
func shares(line string, test map[string]bool) bool {
	same, telling := 0, 0
	for _, w := range numbers(line) {
		if test[w] {
			same++
			if !common.MatchString(w) && len(w) > 1 {
				telling++
			}
		}
	}
	return telling >= 2 || telling == 1 && (compares.MatchString(line) || same >= 3 && lists.MatchString(line)) || same >= 4 && lists.MatchString(line)
}
