package check

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allTools makes a directory with a program of the name of each tool, so that
// detection does not depend on the machine.
func allTools(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if tool == "python3" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, tool), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Covers V1: several ecosystems and nested modules each have a suite.
func TestDetect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, archive string
		want          []string
	}{
		{"nested modules", "-- go.mod --\nmodule a\n-- b/go.mod --\nmodule a/b\n-- .c/go.mod --\nmodule c\n-- vendor/go.mod --\nmodule v\n", []string{"go test ./...", "cd b && go test ./..."}},
		{"go.work", "-- go.work --\ngo 1.24\nuse (\n\t./x // the first\n\t./y/z\n\t../out\n)\n-- x/go.mod --\nmodule x\n-- y/z/go.mod --\nmodule \"y.example/z\"\n-- w/go.mod --\nmodule w\n", []string{"cd w && GOWORK=off go test ./...", "cd x && go test ./...", "cd y/z && go test ./..."}},
		{"go.work of one line", "-- go.work --\nuse ./x\n-- x/go.mod --\nmodule x\n", []string{"cd x && go test ./..."}},
		{"Go and Node", "-- go.mod --\nmodule a\n-- web/package.json --\n{\"scripts\":{\"test\":\"jest --ci\"}}\n", []string{"go test ./...", "cd web && npm test"}},
		{"pnpm", "-- package.json --\n{\"scripts\":{\"test\":\"vitest\"}}\n-- pnpm-lock.yaml --\n", []string{"pnpm test"}},
		{"Django", "-- manage.py --\nimport django\n-- blog/tests.py --\n", []string{"python3 manage.py test --noinput -v 2"}},
		{"Django below", "-- api/manage.py --\nimport django\n-- api/blog/tests/test_post.py --\n", []string{"cd api && python3 manage.py test --noinput -v 2"}},
		{"Django with pytest", "-- manage.py --\nimport django\n-- setup.cfg --\n[tool:pytest]\nDJANGO_SETTINGS_MODULE = a\n-- blog/test_a.py --\n", []string{"python3 -m pytest -p no:cacheprovider"}},
		{"CMake", "-- CMakeLists.txt --\nenable_testing()\n-- Makefile --\nx:\n", []string{"ctest"}},
		{"CMake without tests", "-- CMakeLists.txt --\nproject(a)\n-- Makefile --\ntest:\n", []string{"make test"}},
		{"a byte order mark", "-- package.json --\n\ufeff{\"scripts\":{\"test\":\"jest\"}}\n", []string{"npm test"}},
		{"yarn", "-- package.json --\n{\"packageManager\":\"yarn@4.1.0\",\"scripts\":{\"test\":\"mocha\"}}\n", []string{"yarn test"}},
		{"broken package.json", "-- package.json --\n{\n-- Makefile --\ntest: all\n", []string{"make test"}},
		{"Rust", "-- Cargo.toml --\n[workspace]\n-- a/Cargo.toml --\n[package]\n", []string{"cargo test --workspace --no-fail-fast"}},
		{"deep modules", "-- go.mod --\nmodule a\n-- a_test.go --\n-- x/y/z/go.mod --\nmodule a/z\n-- x/_old/go.mod --\nmodule old\n-- x/testdata/m/go.mod --\nmodule t\n", []string{"go test ./...", "cd x/y/z && go test ./..."}},
		{"npm workspaces", "-- package.json --\n{\"workspaces\":[\"packages/*\",\"!packages/old\"]}\n-- packages/a/package.json --\n{\"scripts\":{\"test\":\"jest\"}}\n-- packages/b/package.json --\n{}\n-- packages/old/package.json --\n{\"scripts\":{\"test\":\"jest\"}}\n", []string{"cd packages/a && npm test", "cd packages/old && npm test"}},
		{"npm workspaces with a root script", "-- package.json --\n{\"workspaces\":[\"packages/*\"],\"scripts\":{\"test\":\"turbo run test\"}}\n-- packages/a/package.json --\n{\"scripts\":{\"test\":\"jest\"}}\n", []string{"npm test"}},
		{"npm workspaces that the root script starts", "-- package.json --\n{\"workspaces\":[\"packages/*\"],\"scripts\":{\"test\":\"npm test --workspaces --if-present\"}}\n-- packages/a/package.json --\n{\"scripts\":{\"test\":\"jest\"}}\n", []string{"cd packages/a && npm test"}},
		{"pnpm workspaces", "-- package.json --\n{}\n-- pnpm-workspace.yaml --\n# all\npackages:\n  - 'apps/**' # two levels\n  - \"lib\"\nother:\n  - x\n-- apps/a/b/package.json --\n{\"scripts\":{\"test\":\"vitest\"}}\n-- lib/package.json --\n{\"scripts\":{\"test\":\"mocha\"}}\n-- pnpm-lock.yaml --\n", []string{"cd apps/a/b && pnpm test", "cd lib && pnpm test"}},
		{"yarn workspaces", "-- package.json --\n{\"workspaces\":{\"packages\":[\"./p/*\"]},\"scripts\":{\"test\":\"yarn workspaces run test\"}}\n-- yarn.lock --\n-- p/a/package.json --\n{\"scripts\":{\"test\":\"ava\"}}\n", []string{"cd p/a && yarn test"}},
		{"packages without a workspace", "-- package.json --\n{\"devDependencies\":{\"prettier\":\"*\"}}\n-- ui/web/package.json --\n{\"scripts\":{\"test\":\"jest\"}}\n-- examples/web/package.json --\n{\"scripts\":{\"test\":\"jest\"}}\n", []string{"cd ui/web && npm test"}},
		{"Maven and Gradle", "-- a/pom.xml --\n<project/>\n-- a/b/pom.xml --\n<project/>\n-- c/build.gradle.kts --\n\n-- c/d/build.gradle --\n", []string{"cd a && mvn -B -o -fae test", "cd c && gradle --offline --continue --console=plain cleanTest test"}},
		{".NET", "-- App.sln --\n-- src/App.csproj --\n", []string{"dotnet test --nologo --logger trx"}},
		{"Ruby", "-- Gemfile --\n-- Rakefile --\nRake::TestTask.new\n-- spec/a_spec.rb --\n-- test/a_test.rb --\n", []string{"bundle exec rspec", "bundle exec rake test TESTOPTS=-v"}},
		{"Minitest without Rake", "-- test/test_a.rb --\n", []string{"ruby -Ilib -Itest -e Dir[\"./test/**/{*_test,test_*}.rb\"].sort.each { |f| require f } -- -v"}},
		{"PHP", "-- composer.json --\n{}\n-- tests/CalcTest.php --\n", []string{"phpunit tests"}},
		{"PHP with vendor", "-- phpunit.xml.dist --\n<phpunit/>\n-- vendor/bin/phpunit --\n", []string{"vendor/bin/phpunit"}},
		{"just", "-- justfile --\n@test *args: build\n  true\n", []string{"just test"}},
		{"tests by kind", "-- shop/price.py --\n-- tests/unit/test_price.py --\n-- tests/end/test_shop.py --\n-- tests/conftest.py --\n", []string{"python3 -m pytest -p no:cacheprovider"}},
		{"a project among the tests", "-- shop/price.py --\n-- tests/test_price.py --\n-- conftest.py --\n-- other/tests/sample/pyproject.toml --\n[tool.pytest.ini_options]\n", []string{"python3 -m pytest -p no:cacheprovider"}},
		{"tox with a runner of its own", "-- tox.ini --\n[testenv]\ncommands = stestr run\n", []string{"tox"}},
		{"nox with a runner of its own", "-- noxfile.py --\ndef t(s): s.run('trial')\n", []string{"nox"}},
		{"make check", "-- Makefile --\nCHECK := 1\ncheck:\n\ttrue\n", []string{"make check"}},
		{"make variable", "-- Makefile --\ntest := 1\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkspace(t, c.archive)
			w.path = allTools(t, filepath.Join(w.place(), "bin")) + ":/usr/bin:/bin"
			ch := &checker{ws: w, log: discard}
			got, err := ch.detect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ch.suites = got
			if d := cmp.Diff(c.want, ch.commands()); d != "" {
				t.Errorf("commands (-want +got):\n%s", d)
			}
		})
	}
}

func TestNodeRunners(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ script, args, env string }{
		{"node --test", "npm test", "NODE_OPTIONS=--test-reporter=tap"},
		{"node --test --test-reporter=spec", "npm test", "NODE_OPTIONS=--test-reporter=tap --test-reporter-destination=stdout --test-reporter-destination=stderr"},
		{"node --test --test-reporter=spec --test-reporter-destination=out.txt", "npm test", ""},
		{"jest --ci", "npm test -- --json", ""},
		{"tsc && jest | tee x", "npm test", ""},
		{"tsc && jest", "npm test -- --json", ""},
		{"jest && eslint .", "npm test", ""},
		{"jest || true", "npm test", ""},
		{"npm run build && npm run unit", "npm test", "NODE_OPTIONS=--test-reporter=tap"},
		{"ava", "npm test -- --tap", ""},
		{"vitest", "npm test -- --run --reporter=json", ""},
		{"./node_modules/.bin/mocha spec", "npm test -- --reporter=tap", ""},
		{"mocha --reporter dot", "npm test -- --reporter=tap", ""},
		{"./run-jest-things.sh", "npm test", ""},
	} {
		s, err := (&checker{log: discard}).nodeSuite(t.Context(), &survey{}, &nodePackage{dir: ".", Scripts: map[string]string{"test": c.script, "unit": "node --test"}}, &nodePackage{dir: "."})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.args, " "); got != c.args || c.env != "" && !slices.Contains(s.env, c.env) || c.env == "" && slices.ContainsFunc(s.env, func(e string) bool { return strings.HasPrefix(e, "NODE_OPTIONS") }) {
			t.Errorf("nodeSuite(%q) = %q with %q, want %q with %q", c.script, got, s.env, c.args, c.env)
		}
	}
}

// Covers V3: of a chain of commands, each is told by itself, and the runner among them is
// asked for its tests.
func TestNodeChain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scripts map[string]string
		want    []string // commands, with what their reports are
	}{
		{map[string]string{"test": "npm run lint && npm run unit", "lint": "eslint .", "unit": "mocha --reporter dot"}, []string{"eslint . ", "mocha --reporter dot TAP"}},
		{map[string]string{"test": "pnpm run types && pnpm run test:vitest run && pnpm run -r test", "types": "tsc --build", "test:vitest": "vitest --coverage"},
			[]string{"tsc --build ", "vitest --coverage run Jest JSON", "pnpm run -r test "}},
		{map[string]string{"test": "run-s lint test:*", "lint": "eslint .", "test:b": "npm run -s mo -- \"t/*.js\"", "test:a": "node x.js mocha a", "mo": "nyc --reporter=json node bin/mocha.js"},
			[]string{"eslint . ", "node x.js mocha a TAP", `nyc --reporter=json node bin/mocha.js "t/*.js" TAP`}},
		{map[string]string{"test": "eslint . && jest; true"}, []string{"npm test "}},
		{map[string]string{"test": "eslint . && jest", "pretest": "make"}, []string{"npm test Jest JSON"}},
		{map[string]string{"test": "eslint . && ./run.sh"}, []string{"npm test "}},
		{map[string]string{"test": "jest"}, []string{"npm test Jest JSON"}},
	} {
		p := &nodePackage{dir: ".", Scripts: c.scripts}
		list, err := (&checker{log: discard}).nodeChain(t.Context(), &survey{}, p, p)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			got = append(got, s.done.Name+" "+string(s.format))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.scripts["test"], got, c.want)
		}
	}
}

// ignoring is a work tree of one file.
type ignoring struct {
	workTree
	text string
}

func (i ignoring) Read(_ context.Context, name string) ([]byte, error) {
	if name != ".gitignore" {
		return nil, os.ErrNotExist
	}
	return []byte(i.text), nil
}

// Covers V3: what tests import, and the repository ignores, is built before them.
func TestNodeBuild(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{"test": "vitest", "build": "tsc"}
	with := func(script string) map[string]string { return map[string]string{"test": script, "build": "tsc"} }
	for _, c := range []struct {
		name, ignored string
		root          nodePackage
		member        *nodePackage
		want          string
	}{
		{"an entry that is ignored", "node_modules\n/dist/\n", nodePackage{Scripts: scripts, Main: "./dist/index.js"}, nil, "npm run build"},
		{"in a table", "dist", nodePackage{Scripts: scripts, Exports: map[string]any{".": map[string]any{"import": "./dist/a.mjs"}}}, nil, "npm run build"},
		{"an entry of the repository", "build\n", nodePackage{Scripts: scripts, Main: "lib/index.js"}, nil, ""},
		{"nothing is ignored", "", nodePackage{Scripts: scripts, Main: "dist/index.js"}, nil, ""},
		{"no script", "dist\n", nodePackage{Scripts: map[string]string{"test": "vitest"}, Main: "dist/index.js"}, nil, ""},
		{"the test script builds", "dist\n", nodePackage{Scripts: with("npm run build && vitest"), Main: "dist/index.js"}, nil, ""},
		{"of a workspace", "dist\n", nodePackage{Scripts: map[string]string{"test": "vitest"}}, &nodePackage{dir: "packages/a", Scripts: scripts, Main: "dist/index.js"}, "npm run build --workspaces --if-present"},
		{"by the root of workspaces", "dist\n", nodePackage{Scripts: scripts}, &nodePackage{dir: "packages/a", Main: "dist/index.js"}, "npm run build"},
	} {
		c.root.dir = "."
		packages, members := map[string]*nodePackage{".": &c.root}, []string(nil)
		if c.member != nil {
			packages[c.member.dir], members = c.member, []string{c.member.dir}
		}
		got, err := (&checker{log: discard, ws: ignoring{text: c.ignored}}).nodeBuild(t.Context(), &survey{}, &c.root, members, packages)
		if got != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if c.member != nil {
			c.root.build = got
			if words := c.member.built(&c.root); !strings.HasPrefix(words, "said=$(cd ../../ && "+got) {
				t.Errorf("%s: %q", c.name, words)
			}
		}
	}
}

// A build that fails says why, and the tests run all the same.
func TestNodeBuildFails(t *testing.T) {
	t.Parallel()
	p := &nodePackage{dir: ".", build: "echo lacks a bracket; false"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", p.built(p)+"echo tested").CombinedOutput()
	if want := "echo lacks a bracket; false failed:\nlacks a bracket\ntested\n"; string(out) != want || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}
