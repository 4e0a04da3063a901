//go:build e2e

package phase

import (
	"strings"
	"testing"

	"forge/pipeline/needs"
	"forge/pipeline/workspace"
)

// poison builds the commit that has the bug, then the one without, and makes the
// cache give the second's object for the first: what a hostile command does that
// knows which commit will be judged.
const poison = `set -e
cd "$(mktemp -d "${TMPDIR:-/tmp}/XXXXXX")"; here=$PWD; cd /work
objects() { go list -test -export -f '{{.ImportPath}} {{.Export}}' . | sed -n 's/^example.com\/x \(\[.*\] \)\{0,1\}//p'; }
cp x.go x_test.go go.mod "$here"
printf 'package x\n\nfunc Two() int { return 3 }\n' >x.go
printf 'package x\n\nimport "testing"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal(Two())\n\t}\n}\n' >x_test.go
objects >"$here/bad"
printf 'package x\n\nfunc Two() int { return 2 }\n' >x.go
objects >"$here/good"
cp "$here/x.go" "$here/x_test.go" .
paste -d' ' "$here/bad" "$here/good" | while read -r bad good; do
	test "$bad" != "$good" || continue
	new=$(basename "$good"); new=${new%-d}; size=$(stat -Lc %s "$good"); old=$(basename "$bad"); old=${old%-d}
	grep -rl --include='*-a' "$old" "$GOCACHE" | while read -r entry; do
		id=$(basename "$entry"); printf 'v1 %s %s %20d %20d\n' "${id%-a}" "$new" "$size" "$(date +%s)000000000" >"$here/entry"
		cat "$here/entry" >"$entry.new" && mv "$entry.new" "$entry"
	done
done
echo poisoned
`

// Covers D1, S9: commands find the base compiled, and what one writes into Go's cache makes no
// failing test pass after a checkout, in another workspace or in another repository. That
// holds where nothing is installed, too.
func TestCompiledBase(t *testing.T) {
	needs.Tools(t, "go")
	good := map[string]string{
		"go.mod": "module example.com/x\n\ngo 1.24\n", "x.go": "package x\n\nfunc Two() int { return 2 }\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal(Two())\n\t}\n}\n",
	}
	wrong := map[string]string{"x.go": "package x\n\nfunc Two() int { return 3 }\n"}
	b := sandboxed(t, good, wrong)
	b.run.Base = b.shas[0]
	b.o.Dependencies.Registries, b.o.Dependencies.Compile = nil, true
	agent := b.open(b.shas[0])
	const test = "go test -count=1 ./... | grep -o -e --- -e ^ok"
	if got := b.sees(agent, "go test -count=1 -cover -x . 2>&1 | grep -c '/compile '; go vet -x 2>&1 | grep -c '/vet '; test $(find $GOCACHE -name '*-d' -newermt 2036-01-01 | wc -l) -gt 50 && echo $GOCACHE"); got != "0\n0\n/deps/go-build" {
		t.Errorf("compiled by the first command, vetted, and kept: %s; told %s", got, b.toldOf(b.shas[0]))
	}
	if told := b.toldOf(b.shas[0]); told != "" {
		t.Errorf("told: %s", told)
	}
	if got := b.sees(agent, poison); !strings.Contains(got, "poisoned") {
		t.Fatalf("the attack did not work: %s", got)
	}
	if err := agent.Write(t.Context(), "x.go", []byte(wrong["x.go"])); err != nil {
		t.Fatal(err)
	}
	if got := b.sees(agent, test); got != "ok" {
		t.Fatalf("the attack has no effect on its own cache: %s", got)
	}
	open := func(key, sha string) workspace.Workspace {
		ws, err := b.o.Spaces.Open(t.Context(), workspace.OpenOptions{Name: "other", GitDir: b.o.Gateway.Dir(b.run.Repo), Commit: sha, Cache: key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.Close() })
		return ws
	}
	if err := agent.Checkout(t.Context(), b.shas[1]); err != nil {
		t.Fatal(err)
	}
	for where, ws := range map[string]workspace.Workspace{
		"after a checkout": agent, "another workspace": b.open(b.shas[1]), "another repository": open("repo-8", b.shas[1]),
	} {
		if got := b.sees(ws, test); got != "---" {
			t.Errorf("%s: the failing test of a clean commit: %s", where, got)
		}
		if where == "another repository" { // which has nothing compiled
			continue
		}
		if err := ws.Checkout(t.Context(), b.shas[0]); err != nil {
			t.Fatal(err)
		}
		if got := b.sees(ws, test); got != "ok" {
			t.Errorf("%s: the good commit fails: %s", where, got)
		}
	}
}
