package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"forge/pipeline/command"

	"github.com/goccy/go-yaml"
)

const top = "../.."

// The README is for a maintainer in a hurry.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if n := len(strings.Fields(read(t, filepath.Join(top, "README.md")))); n > 900 {
		t.Errorf("the README has %d words, over 900", n)
	}
}

var (
	docLink    = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	docTest    = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	docPath    = regexp.MustCompile("`((?:cmd|github|learn|pipeline|webhook)/[\\w./-]+)`")
	docRun     = regexp.MustCompile("`[^`]*\\bgo (?:-C (\\.github/\\w+) )?test [^`]*?(\\./[\\w/]+)[^`]* -(run|bench) '?(\\w+)")
	docCommand = regexp.MustCompile("(?m)(?:^|`)forge ([a-z][a-z -]*)")
)

// Covers D6: what GitHub and engines of containers read is YAML, and each action has a version.
func TestDeployFilesAreYAML(t *testing.T) {
	t.Parallel()
	var files []string
	for _, glob := range []string{"workflows/*.yml", "ISSUE_TEMPLATE/*.yml", "deploy/*.yml", "deploy/helm/*.yaml"} {
		list, _ := filepath.Glob(filepath.Join(top, ".github", glob))
		files = append(files, list...)
	}
	if len(files) < 6 {
		t.Fatalf("%v", files)
	}
	for _, file := range files {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(read(t, file)), &v); err != nil || len(v) == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	// A chart renders with Go's templates; of its functions it uses these alone.
	chart := template.Must(template.New("").Funcs(template.FuncMap{
		"quote":  func(v any) string { return fmt.Sprintf("%q", v) },
		"toJson": func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
	}).Parse(read(t, filepath.Join(top, ".github/deploy/helm/templates/forge.yaml"))))
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(top, ".github/deploy/helm/values.yaml"))), &values); err != nil {
		t.Fatal(err)
	}
	for _, ingress := range []bool{false, true} {
		values["ingress"].(map[string]any)["enabled"] = ingress
		var b strings.Builder
		if err := chart.Execute(&b, map[string]any{"Values": values, "Release": map[string]any{"Name": "forge"}}); err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(b.String(), "\n---\n") {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(doc), &v); err != nil || v["kind"] == nil {
				t.Errorf("the chart renders to\n%s\n%v", doc, err)
			}
		}
	}
}

// What the documents link to exists, and the files, commands and tests that they name.
func TestDocuments(t *testing.T) {
	t.Parallel()
	tests, in := map[string]bool{}, map[string][]string{} // of each folder
	for _, s := range append(sources(t), laboratory(t)...) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				tests[f.Name.Name] = true
				in[s.dir] = append(in[s.dir], f.Name.Name)
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(top, ".github", "docs", "*.md"))
	files = append(files, filepath.Join(top, "README.md"), filepath.Join(top, ".github", "CONTRIBUTING.md"))
	if len(files) < 6 {
		t.Fatalf("%d documents", len(files))
	}
	for _, file := range files {
		text := read(t, file)
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
		for _, m := range docPath.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
				t.Errorf("%s names %s: %v", file, m[1], err)
			}
		}
		for _, m := range docTest.FindAllStringSubmatch(text, -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which is no test", file, m[1])
			}
		}
		for _, m := range docRun.FindAllStringSubmatch(text, -1) {
			dir, name := path.Join(m[1], m[2]), m[4]
			if m[3] == "bench" {
				name = "Benchmark" + name
			} else if name == "xxx" { // none, for the sake of benchmarks
				continue
			}
			if !slices.ContainsFunc(in[dir], func(test string) bool { return strings.HasPrefix(test, name) }) {
				t.Errorf("%s has a command for %s in %s, which is not there", file, name, dir)
			}
		}
		for _, m := range docCommand.FindAllStringSubmatch(text, -1) {
			name := strings.Fields(m[1])[0]
			if _, _, err := rootCommand().Find([]string{name}); err != nil && !strings.Contains(text, "## What is not here yet") {
				t.Errorf("%s names `forge %s`: %v", file, name, err)
			}
		}
	}
}

// The table of all commands has each of them.
func TestEveryCommandIsDocumented(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, filepath.Join(top, ".github", "docs", "loop.md")), "## All commands")
	for _, c := range command.All {
		if !regexp.MustCompile("`" + regexp.QuoteMeta(command.Write("", c.Name)) + "[ `]").MatchString(table) {
			t.Errorf("docs/loop.md has no row for the command %s", c.Name)
		}
	}
}

// The tests that the table of promises names are there; those of the laboratory are marked.
func TestPromises(t *testing.T) {
	t.Parallel()
	own, lab := map[string]bool{}, map[string]bool{}
	for _, s := range append(sources(t), laboratory(t)...) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				if strings.HasPrefix(s.path, ".github/") {
					lab[f.Name.Name] = true
				} else {
					own[f.Name.Name] = true
				}
			}
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`(†?)").FindAllStringSubmatch(read(t, filepath.Join(top, ".github", "docs", "security.md")), -1)
	for _, m := range named {
		switch marked := m[2] != ""; {
		case marked && !lab[m[1]]:
			t.Errorf("%s is marked †, and no test of the laboratory", m[1])
		case !marked && !own[m[1]]:
			t.Errorf("there is no test %s; those of the laboratory are marked †", m[1])
		}
	}
	if len(named) < 50 {
		t.Errorf("%d tests are named", len(named))
	}
}
