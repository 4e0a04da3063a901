package check

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"strings"

	"forge/pipeline"
	"golang.org/x/tools/cover"
)

// covered sums up the coverage of all suites.
type covered struct {
	total, hit            int // statements or lines
	branches, branchesHit int
	lines                 map[string]map[int]bool // by file from the root: line → was run
}

func (v *covered) line(file string, n int, hit bool) {
	if v.lines[file] == nil {
		v.lines[file] = map[int]bool{}
	}
	v.lines[file][n] = v.lines[file][n] || hit
}

// readCoverage reads what a suite left. It is never a reason to fail.
func (c *checker) readCoverage(ctx context.Context, s *suite) {
	if c.cover == nil {
		c.cover = &covered{lines: map[string]map[int]bool{}}
	}
	files := s.left
	if s.cover != "" {
		files = []string{s.cover}
	}
	for _, name := range preferred(files) {
		data, err := c.readReport(ctx, name)
		if err == nil {
			err = c.addCoverage(c.cover, s, data)
		}
		if err != nil {
			c.log.Warn("coverage is left out", "file", name, "error", err)
		}
	}
}

var junitName = regexp.MustCompile(`^(?:junit.*|TEST-.*|test-results|test-report)\.xml$`)

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
		if junitName.MatchString(path.Base(f)) || strings.HasSuffix(f, ".xml") && lcov[path.Dir(f)] {
			continue
		}
		out = append(out, f)
	}
	return out
}

func (c *checker) addCoverage(v *covered, s *suite, data []byte) error {
	place := func(file string) string { return c.inRoot(s.dir, file) }
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil
	case bytes.HasPrefix(data, []byte("mode: ")):
		return v.goProfile(data, c.modules)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		return v.cobertura(data, place)
	}
	return v.lcov(data, place)
}

// inRoot makes a path from a report relative to the root of the work tree.
func (c *checker) inRoot(dir, file string) string {
	if rest, ok := strings.CutPrefix(file, c.root+"/"); ok && c.root != "" {
		return path.Clean(rest)
	}
	return path.Join(dir, file)
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
		file := path.Join(g.moduleDir(pkg), g.inModule(pkg), path.Base(p.FileName))
		for _, b := range p.Blocks {
			v.total += b.NumStmt
			if b.Count > 0 {
				v.hit += b.NumStmt
			}
			for n := b.StartLine; n <= b.EndLine && n-b.StartLine < 100_000; n++ {
				v.line(file, n, b.Count > 0)
			}
		}
	}
	return nil
}

// lcov adds a tracefile; see geninfo(1) for the format.
func (v *covered) lcov(data []byte, place func(string) string) error {
	file, seen := "", false
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		key, value, _ := strings.Cut(strings.TrimSpace(in.Text()), ":")
		f := strings.Split(value, ",")
		switch key {
		case "SF":
			file, seen = place(value), true
		case "DA":
			if len(f) < 2 || file == "" {
				return fmt.Errorf("read LCOV: no file, or no count, at %q", cutBytes(in.Text(), 80))
			}
			v.count(file, atoi(f[0]), f[1] != "0")
		case "BRDA":
			if len(f) >= 4 {
				v.branches++
				if f[3] != "0" && f[3] != "-" {
					v.branchesHit++
				}
			}
		case "end_of_record":
			file = ""
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
func (v *covered) count(file string, n int, hit bool) {
	v.total++
	if hit {
		v.hit++
	}
	v.line(file, n, hit)
}

type coberturaClass struct {
	File  string `xml:"filename,attr"`
	Lines []struct {
		Number    int    `xml:"number,attr"`
		Hits      string `xml:"hits,attr"`
		Condition string `xml:"condition-coverage,attr"` // "50% (1/2)"
	} `xml:"lines>line"`
}

var coberturaCondition = regexp.MustCompile(`\((\d+)/(\d+)\)`)

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
		file = place(file)
		for _, l := range class.Lines {
			v.count(file, l.Number, l.Hits != "0")
			if m := coberturaCondition.FindStringSubmatch(l.Condition); m != nil {
				v.branches += atoi(m[2])
				v.branchesHit += atoi(m[1])
			}
		}
	}
	return nil
}

// coverage turns the sums into per cent. Nil: nothing was measured.
func (c *checker) coverage() *pipeline.Coverage {
	v := c.cover
	if v == nil || v.total == 0 {
		return nil
	}
	out := &pipeline.Coverage{Lines: percent(v.hit, v.total), Branches: percent(v.branchesHit, v.branches)}
	total, hit := 0, 0
	for file, lines := range c.patch.changed() {
		for _, n := range lines {
			if ran, measured := v.lines[file][n]; measured {
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
