package deps

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

func basis(files, tested map[string]string, host Host) Basis {
	from := func(files map[string]string) func([]string) (map[string][]byte, error) {
		return func(paths []string) (map[string][]byte, error) {
			out := map[string][]byte{}
			for _, p := range paths {
				if text, ok := files[p]; ok {
					out[p] = []byte(text)
				}
			}
			return out, nil
		}
	}
	return Basis{Files: slices.Sorted(maps.Keys(files)), Read: from(files), Tested: from(tested), Host: host}
}

// Covers D1: commands run again when, and only when, something changes that decides what
// they leave: what they run, and what that runs, lock files, inputs, tools.
func TestKeyOfCommands(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"Makefile": "gen:\n\tsh ci/gen.sh\n", "ci/gen.sh": ". ./lib.sh\npython3 tools/x.py\ngo run ./cmd/gen\n", "ci/lib.sh": "A=1\n", "tools/x.py": "print(1)\n",
		"cmd/gen/main.go": "package main\n", "composer.lock": "{}", "web/package-lock.json": "{}", "src/a.go": "package a\n", "README.md": "read\n", "node_modules/x/package.json": "{}",
		"Gemfile.lock": "base",
	}
	tested := map[string]string{"Gemfile.lock": "change", "src/a.go": "package b\n"}
	set := config.Setup{Commands: []string{"make gen"}, Inputs: []string{"Gemfile.lock"}}
	key := func(change func(map[string]string, map[string]string, *config.Setup, *Basis)) *Commands {
		t.Helper()
		f, c, s := maps.Clone(files), maps.Clone(tested), set
		b := basis(f, c, Host{Tools: map[string]string{"go": "go1.26"}})
		if change != nil {
			change(f, c, &s, &b)
			b.Files = slices.Sorted(maps.Keys(f))
		}
		got, err := FindCommands(s, b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := key(nil)
	if want := []string{"Makefile", "ci/gen.sh", "ci/lib.sh", "cmd/gen/main.go", "tools/x.py"}; !slices.Equal(first.Runs, want) {
		t.Errorf("commands run %v, want %v", first.Runs, want)
	}
	edit := func(name string) func(map[string]string, map[string]string, *config.Setup, *Basis) {
		return func(f, _ map[string]string, _ *config.Setup, _ *Basis) { f[name] += "\n# more" }
	}
	for _, tt := range []struct {
		name   string
		same   bool
		change func(map[string]string, map[string]string, *config.Setup, *Basis)
	}{
		{"a source file", true, edit("src/a.go")},
		{"words", true, edit("README.md")},
		{"somebody else's manifest", true, edit("node_modules/x/package.json")},
		{"the base's input", true, edit("Gemfile.lock")},
		{"the change's source", true, func(_, c map[string]string, _ *config.Setup, _ *Basis) { c["src/a.go"] = "x" }},
		{"more time", true, func(_, _ map[string]string, s *config.Setup, _ *Basis) { s.TimeoutMinutes = 20 }},
		{"the makefile", false, edit("Makefile")},
		{"a script", false, edit("ci/gen.sh")},
		{"what a script includes", false, edit("ci/lib.sh")},
		{"what a script runs", false, edit("tools/x.py")},
		{"a program's source", false, edit("cmd/gen/main.go")},
		{"a lock file", false, edit("composer.lock")},
		{"a lock file beneath", false, edit("web/package-lock.json")},
		{"a new manifest", false, edit("pom.xml")},
		{"an input", false, func(_, c map[string]string, _ *config.Setup, _ *Basis) { c["Gemfile.lock"] = "other" }},
		{"an input that is gone", false, func(_, c map[string]string, _ *config.Setup, _ *Basis) { delete(c, "Gemfile.lock") }},
		{"a command", false, func(_, _ map[string]string, s *config.Setup, _ *Basis) { s.Commands = []string{"make  gen"} }},
		{"a cache", false, func(_, _ map[string]string, s *config.Setup, _ *Basis) { s.Cache = []string{"x"} }},
		{"instead", false, func(_, _ map[string]string, s *config.Setup, _ *Basis) { s.Instead = true }},
		{"what is installed", false, func(_, _ map[string]string, _ *config.Setup, b *Basis) { b.Installed = "k" }},
		{"scripts", false, func(_, _ map[string]string, _ *config.Setup, b *Basis) { b.Host.Scripts = true }},
		{"a tool", false, func(_, _ map[string]string, _ *config.Setup, b *Basis) {
			b.Host.Tools = map[string]string{"go": "go1.27"}
		}},
	} {
		if got := key(tt.change); (got.Key == first.Key) != tt.same {
			t.Errorf("%s: the same key is %v, want %v", tt.name, got.Key == first.Key, tt.same)
		}
	}
}

// Covers D1: what a command failed at is said with how to put it right; a fault of the
// machine is none of the repository's.
func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"/bin/sh: 1: protoc: not found":                                             "It needs protoc on the server",
		"sh: line 3: cargo-nextest: command not found":                              "It needs cargo-nextest on the server",
		"env: ‘ruby3.2’: No such file or directory":                                 "It needs ruby3.2 on the server",
		"make: gcc: No such file or directory\nmake: *** [Makefile:2: x] Error 127": "It needs gcc on the server",
		`exec: "buf": executable file not found in $PATH`:                           "It needs buf on the server",
		"curl: (6) Could not resolve host: example.com":                             "It reaches the server's registries alone",
		"cat: /etc/x: No such file or directory":                                    "Run it in a clean checkout",
		"@acme `boom` <b>":                                                          "Run it in a clean checkout",
	} {
		c, err := FindCommands(config.Setup{Commands: []string{"first `x`\nsecond"}}, basis(nil, nil, Host{}))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := c.Make(t.Context(), func(context.Context, workspace.Command) (workspace.Result, error) {
			return workspace.Result{Exit: 1, Stderr: []byte("a\n\nb\n" + said + "\n")}, nil
		}, nil)
		if err != nil || !tree.Broken() {
			t.Fatalf("%+v, %v", tree, err)
		}
		got := strings.Join(tree.Summary(), "\n")
		if !strings.HasPrefix(got, "could not set up (setup.commands[0]): `first 'x'` ended with 1: a\nb\n"+said+"\n"+want) {
			t.Errorf("%q is told as\n%s\nwant %s", said, got, want)
		}
	}
	c, err := FindCommands(config.Setup{Commands: []string{"true"}}, basis(nil, nil, Host{}))
	if err != nil {
		t.Fatal(err)
	}
	ok := func(context.Context, workspace.Command) (workspace.Result, error) { return workspace.Result{}, nil }
	fault := &pipeline.Fault{Class: pipeline.FaultEnvironment, Message: "the disk is full"}
	if _, err := c.Make(t.Context(), ok, func(context.Context, []string) ([]Mount, []string, error) { return nil, nil, fault }); !errors.Is(err, fault) {
		t.Errorf("a fault of the machine: %v", err)
	}
	tree, err := c.Make(t.Context(), ok, func(context.Context, []string) ([]Mount, []string, error) {
		return nil, nil, errors.New("pool is a link")
	})
	if err != nil || len(tree.Failed) != 1 || tree.Failed[0].Why != "pool is a link" {
		t.Errorf("%+v, %v", tree, err)
	}
}
