package measure

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// A small tree whose figures can be counted by hand.
const tree = `-- go.mod --
module forge

go 1.26
-- pipeline/run.go --
package pipeline

import "regexp"

// Run has two methods, one of them exported.
type Run struct {
	CostUSD int ` + "`json:\"cost_usd\"`" + `
	Seq     int ` + "`json:\"number\"`" + `
}

func (Run) Next()    {}
func (*Run) follow() {}

var expr = regexp.MustCompile("x")

// Store is too big to be told apart from what implements it.
type Store interface {
	A()
	B()
	C()
	D()
	E()
	F()
}
-- pipeline/run_test.go --
package pipeline

import "regexp"

var other = regexp.MustCompile("y")
-- cmd/forge/main.go --
package main

func main() {}
-- webhook/doc.go --
package webhook
-- github/doc.go --
package github
-- learn/doc.go --
package learn
`

func TestTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(tree)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Tree(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &Measures{CodeLines: 30, TestLines: 5, Packages: 5, Largest: "pipeline", LargestLines: 24, Exported: 3, Expressions: 1, RunMethods: 2, Interfaces: 1, Tags: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Tree(t.TempDir()); err == nil {
		t.Error("an empty folder has figures")
	}
}

func TestSnake(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"CostUSD": "cost_usd", "ID": "id", "HTMLURL": "htmlurl", "At": "at", "N2": "n2"} {
		if got := snake(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
