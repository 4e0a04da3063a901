package check

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/cover"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// covered is the coverage of all suites, by file from the root. What several
// suites run counts once.
type covered struct{ files map[string]*fileCover }

// fileCover is the coverage of one file.
type fileCover struct {
	lines                 map[int]bool      // line → was run
	blocks                map[span]*goBlock // of Go, whose unit is the statement
	branches, branchesHit int
}

// span is where a block of Go begins and ends.
type span struct{ line, col, endLine, endCol int }

type goBlock struct {
	statements int
	ran        bool
}

func (v *covered) file(name string) *fileCover {
	f := v.files[name]
	if f == nil {
		f = &fileCover{lines: map[int]bool{}, blocks: map[span]*goBlock{}}
		if v.files == nil {
			v.files = map[string]*fileCover{}
		}
		v.files[name] = f
	}
	return f
}

// units counts the statements, or the lines, and those that were run.
func (f *fileCover) units() (total, hit int) {
	for _, b := range f.blocks {
		total += b.statements
		if b.ran {
			hit += b.statements
		}
	}
	if len(f.blocks) > 0 {
		return total, hit
	}
	for _, ran := range f.lines {
		if ran {
			hit++
		}
	}
	return len(f.lines), hit
}

// readCoverage reads what a suite left. It is never a reason to fail.
func (c *checker) readCoverage(ctx context.Context, s *suite) {
	if c.cover == nil {
		c.cover = &covered{}
	}
	files := preferred(s.left)
	if s.cover != "" {
		files = []string{s.cover}
	}
	for _, name := range files {
		data, err := c.readReport(ctx, name)
		if err == nil {
			err = c.addCoverage(c.cover, s, name, data)
		}
		if err != nil {
			c.log.Warn("coverage is left out", "file", name, "error", err)
		}
	}
}

var junitName = lazyregexp.New(`^(?:junit.*|TEST-.*|test-results|test-report)\.xml$`)

// preferred drops test reports, and the Cobertura file where the same directory
// has the same as LCOV.
func preferred(files []string) []string {
	lcov := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "lcov.info") {
			lcov[path.Dir(f)] = true
		}
	}
	var out []string
	for _, f := range files {
		if junitName.MatchString(path.Base(f)) || path.Ext(f) == ".trx" || path.Ext(f) == ".xml" && lcov[path.Dir(f)] {
			continue
		}
		out = append(out, f)
	}
	return out
}

var jacocoRoot = lazyregexp.New(`<report[\s>]`)

// addCoverage adds a report by what it looks like; its name says where it was found.
func (c *checker) addCoverage(v *covered, s *suite, name string, data []byte) error {
	place := func(file string) string { return c.inRoot(s.dir, file) }
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil
	case bytes.HasPrefix(data, []byte("mode: ")):
		return v.goProfile(data, c.modules)
	case jacocoRoot.Match(data[:min(len(data), 1000)]):
		return v.jacoco(data, name)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		return v.cobertura(data, place)
	}
	return v.lcov(data, place)
}

// inRoot makes a path from a report relative to the root of the work tree; one of
// a file outside of it is "".
func (c *checker) inRoot(dir, file string) string {
	if rest, ok := strings.CutPrefix(file, c.root+"/"); ok && c.root != "" {
		return path.Clean(rest)
	}
	if path.IsAbs(file) {
		return ""
	}
	if file = path.Join(dir, file); strings.HasPrefix(file, "../") {
		return ""
	}
	return file
}

// goProfile adds a profile of go test. Its unit is the statement.
func (v *covered) goProfile(data []byte, modules []goModule) error {
	profiles, err := cover.ParseProfilesFromReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("read Go coverage profile: %w", err)
	}
	g := &goOutput{modules: modules}
	for _, p := range profiles {
		pkg := path.Dir(p.FileName)
		f := v.file(path.Join(g.moduleDir(pkg), g.inModule(pkg), path.Base(p.FileName)))
		for _, b := range p.Blocks {
			at := span{b.StartLine, b.StartCol, b.EndLine, b.EndCol}
			ran := b.Count > 0 || f.blocks[at] != nil && f.blocks[at].ran
			f.blocks[at] = &goBlock{b.NumStmt, ran}
			for n := b.StartLine; n <= b.EndLine && n-b.StartLine < 100_000; n++ {
				f.lines[n] = f.lines[n] || ran
			}
		}
	}
	return nil
}

// lcov adds a tracefile; see geninfo(1) for the format.
func (v *covered) lcov(data []byte, place func(string) string) error {
	file, seen, inside := "", false, false
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		key, value, _ := strings.Cut(strings.TrimSpace(in.Text()), ":")
		f := strings.Split(value, ",")
		switch key {
		case "SF":
			file, seen, inside = place(value), true, true
		case "DA":
			if len(f) < 2 || !inside {
				return fmt.Errorf("read LCOV: no file, or no count, at %q", text.Head(in.Text(), 80))
			}
			if file != "" {
				v.file(file).count(atoi(f[0]), f[1] != "0")
			}
		case "BRDA":
			if len(f) >= 4 && file != "" {
				v.file(file).branches++
				if f[3] != "0" && f[3] != "-" {
					v.file(file).branchesHit++
				}
			}
		case "end_of_record":
			file, inside = "", false
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read LCOV: %w", err)
	}
	if !seen {
		return fmt.Errorf("read LCOV: not a tracefile: it names no source file")
	}
	return nil
}

// count adds a line whose unit is the line itself.
func (f *fileCover) count(n int, hit bool) { f.lines[n] = f.lines[n] || hit }

type coberturaClass struct {
	File  string `xml:"filename,attr"`
	Lines []struct {
		Number    int    `xml:"number,attr"`
		Hits      string `xml:"hits,attr"`
		Condition string `xml:"condition-coverage,attr"` // "50% (1/2)"
	} `xml:"lines>line"`
}

var coberturaCondition = lazyregexp.New(`\((\d+)/(\d+)\)`)

// cobertura adds an XML report; see coverage-04.dtd of the Cobertura project.
func (v *covered) cobertura(data []byte, place func(string) string) error {
	var in struct {
		XMLName xml.Name         `xml:"coverage"`
		Sources []string         `xml:"sources>source"`
		Classes []coberturaClass `xml:"packages>package>classes>class"`
	}
	if err := xml.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read Cobertura report: %w", err)
	}
	for _, class := range in.Classes {
		file := class.File
		if !path.IsAbs(file) && len(in.Sources) == 1 && path.IsAbs(strings.TrimSpace(in.Sources[0])) {
			file = path.Join(strings.TrimSpace(in.Sources[0]), file)
		}
		if file = place(file); file == "" {
			continue
		}
		f := v.file(file)
		for _, l := range class.Lines {
			f.count(l.Number, l.Hits != "0")
			if m := coberturaCondition.FindStringSubmatch(l.Condition); m != nil {
				f.branches += atoi(m[2])
				f.branchesHit += atoi(m[1])
			}
		}
	}
	return nil
}

type jacocoPackage struct {
	Name  string `xml:"name,attr"` // "com/example"
	Files []struct {
		Name  string `xml:"name,attr"`
		Lines []struct {
			Number         int `xml:"nr,attr"`
			Covered        int `xml:"ci,attr"` // instructions
			BranchesMissed int `xml:"mb,attr"`
			Branches       int `xml:"cb,attr"` // covered
		} `xml:"line"`
	} `xml:"sourcefile"`
}

// jacoco adds an XML report; see report.dtd of the JaCoCo project. It names
// packages, not files: these lie where Maven's layout has them, in the project
// whose build directory holds the report.
func (v *covered) jacoco(data []byte, name string) error {
	var in struct {
		XMLName  xml.Name        `xml:"report"`
		Packages []jacocoPackage `xml:"package"`
		Grouped  []jacocoPackage `xml:"group>package"`
	}
	if err := xml.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read JaCoCo report: %w", err)
	}
	project := jacocoBuild.ReplaceAllString(path.Dir(name), "")
	for _, p := range slices.Concat(in.Packages, in.Grouped) {
		for _, file := range p.Files {
			language := map[string]string{".kt": "kotlin", ".groovy": "groovy", ".scala": "scala"}[path.Ext(file.Name)]
			f := v.file(path.Join(project, "src/main", cmp.Or(language, "java"), p.Name, file.Name))
			for _, l := range file.Lines {
				f.count(l.Number, l.Covered > 0)
				f.branches += l.BranchesMissed + l.Branches
				f.branchesHit += l.Branches
			}
		}
	}
	return nil
}

var jacocoBuild = lazyregexp.New(`(?:^|/)(?:target|build)(?:/.*)?$`)

// testCode reports whether a measured file is a test. Some tools measure these,
// too; those of Go and Java do not, and a directory's name says nothing there.
func testCode(name string) bool {
	return testname.IsFile(name) && !slices.Contains([]string{".go", ".java", ".kt"}, path.Ext(name))
}

// coverage turns the sums into per cent. Nil: nothing was measured.
func (c *checker) coverage() *pipeline.Coverage {
	if c.cover == nil {
		return nil
	}
	var total, hit, branches, branchesHit int
	for name, f := range c.cover.files {
		if testCode(name) {
			continue
		}
		n, ran := f.units()
		total, hit = total+n, hit+ran
		branches, branchesHit = branches+f.branches, branchesHit+f.branchesHit
	}
	if total == 0 {
		return nil
	}
	out := &pipeline.Coverage{Lines: percent(hit, total), Branches: percent(branchesHit, branches)}
	total, hit = 0, 0
	for name, lines := range c.patch.changed() {
		f := c.cover.files[name]
		if f == nil || testCode(name) {
			continue
		}
		for _, n := range lines {
			if ran, measured := f.lines[n]; measured {
				total++
				if ran {
					hit++
				}
			}
		}
	}
	out.Changed = percent(hit, total)
	return out
}

// percent is rounded to a tenth, and -1 where there is nothing to measure.
func percent(part, whole int) float64 {
	if whole == 0 {
		return -1
	}
	return float64((part*2000+whole)/(2*whole)) / 10
}
