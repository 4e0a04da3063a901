package deps

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Covers D1: what files ask for is read as their own tools read it.
func TestWants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, text, want string }{
		{".nvmrc", "22\n", "node=22"}, {".nvmrc", "# ours\nv20.11.1 # lts\n", "node=20.11.1"}, {".nvmrc", "lts/iron", "node=20"}, {".nvmrc", "lts/*", ""}, {".nvmrc", "node", ""},
		{".nvmrc", "${NODE}", ""}, {".nvmrc", "", ""}, {".node-version", "v18.19.0", "node=18.19.0"}, {".nvmrc", strings.Repeat("9", 61), ""},
		{".python-version", "3.12.1\n3.11\n", "python3=3.12.1"}, {".python-version", "pypy3.10-7.3", ""}, {".python-version", "3.13-dev", "python3=3.13"},
		{".ruby-version", "ruby-3.2.2\n", "ruby=3.2.2"}, {".ruby-version", "jruby-9.4", ""},
		{".tool-versions", "nodejs 20.1.0\npython 3.12 3.11\n# x\ngolang 1.22\njava temurin-21.0.1+12.0.LTS\nerlang 27\nruby latest\nrust 1.75\nphp system\n",
			"node=20.1.0 python3=3.12 go=1.22 java=21.0.1 cargo=1.75"},
		{"mise.toml", "[tools]\nnode = \"22\"\npython = [\"3.12\", \"3.11\"]\ngo = {version = \"1.25\"}\nrust = \"latest\"\n\"npm:prettier\" = \"3\"\n\"core:ruby\" = \"3.3\"\n", "go=1.25 node=22 python3=3.12 ruby=3.3"},
		{".mise.toml", "[tools", ""}, {".config/mise.toml", "[tools]\njava = 21\n", "java=21"},
		{"go.mod", "module a\n\ngo 1.22\n\ntoolchain go1.26.3\n\nrequire (\n\tgo.uber.org/x v1.0.0\n)\n", "go=1.26.3"}, {"go.mod", "module a\ngo 1.22.1 // x\n", "go=1.22.1"}, {"go.mod", "module go\n", ""},
		{"package.json", `{"engines":{"node":">=18 <23","npm":"^10","vscode":"^1"}}`, "node~>=18 <23 npm~^10"}, {"package.json", `{"engines":{"node":18}}`, ""}, {"package.json", "{", ""},
		{"pyproject.toml", "[project]\nrequires-python = \">=3.9,<4\"\n", "python3~>=3.9,<4"}, {"pyproject.toml", "[tool.poetry.dependencies]\npython = \"^3.12\"\n", "python3~^3.12"},
		{"pyproject.toml", "[tool.black]\n", ""},
		{"rust-toolchain", "1.75.0\n", "cargo=1.75.0"}, {"rust-toolchain.toml", "[toolchain]\nchannel = \"1.80\"\n", "cargo=1.80"}, {"rust-toolchain", "nightly-2024-01-01", ""}, {"rust-toolchain", "stable", ""},
		{"Cargo.toml", "[package]\nname = \"a\"\nrust-version = \"1.70\"\n", "cargo=1.70"}, {"Cargo.toml", "[workspace.package]\nrust-version = \"1.71\"\n[package]\nrust-version.workspace = true\n", "cargo=1.71"},
		{".devcontainer/devcontainer.json", "// ours\n{\n \"image\": \"mcr.microsoft.com/devcontainers/python:1-3.12-bookworm\", /* a // b */\n \"postCreateCommand\": \"echo // \\\" /* no */\",\n" +
			" \"features\": {\n  \"ghcr.io/devcontainers/features/node:1\": {\"version\": \"22\", },\n  \"ghcr.io/devcontainers/features/go:1.2\": {\"version\": \"latest\"},\n  \"ghcr.io/devcontainers/features/java\": {},\n },\n}\n",
			"python3=3.12 node=22"},
		{".devcontainer.json", `{"image":"golang:1.24-bookworm"}`, "go=1.24"}, {".devcontainer.json", `{"image":"mcr.microsoft.com/devcontainers/typescript-node:dev-22"}`, "node=22"},
		{".devcontainer.json", `{"image":"registry:5000/acme/node-tools:7"}`, ""}, {".devcontainer.json", "/* never ends", ""}, {".devcontainer.json", "{\"image\":\"python:3\"", ""},
		{".github/workflows/copilot-setup-steps.yml", "jobs:\n  copilot-setup-steps:\n    steps:\n      - uses: actions/checkout@v5\n      - uses: actions/setup-node@v4\n        with:\n          node-version: '22.x'\n" +
			"      - uses: actions/setup-go@v5\n        with: {go-version: ^1.22}\n      - uses: actions/setup-python@v5\n        with: {python-version: '${{ matrix.x }}'}\n      - uses: dtolnay/rust-toolchain@1.75\n" +
			"      - uses: actions/setup-java@v4\n        with: {java-version: 21}\n  other:\n    steps:\n      - uses: ruby/setup-ruby@v1\n        with: {ruby-version: 3.3}\n",
			"node~22.x go~^1.22 cargo=1.75 java=21"},
		{".github/workflows/copilot-setup-steps.yaml", "jobs: [", ""},
	} {
		var got []string
		for _, w := range Wants(map[string][]byte{tt.file: []byte(tt.text)}) {
			sign := "~"
			if w.pin {
				sign = "="
			}
			got = append(got, w.Tool+sign+w.Text)
			if w.File != tt.file {
				t.Errorf("%s: from %s", tt.file, w.File)
			}
		}
		if got := strings.Join(got, " "); got != tt.want && !(strings.HasPrefix(tt.file, ".devcontainer/") && got == "node=22 python3=3.12") {
			t.Errorf("%s %q wants %q, want %q", tt.file, tt.text, got, tt.want)
		}
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version, text string
		in, ok        bool
	}{
		{"20.20.2", ">=18", true, true}, {"18.19", ">= 20.0.0", false, true}, {"20.20.2", ">=18 <20", false, true}, {"20.20.2", "^18 || ^20", true, true}, {"20.20.2", "18 || 22", false, true},
		{"20.20.2", "20.x", true, true}, {"21.0.0", "20.X", false, true}, {"20.20.2", "*", true, true}, {"20.20.2", "", true, true}, {"20.20.2", "~20.20", true, true}, {"20.21.0", "~20.20", false, true},
		{"20.20.2", "^20.21", false, true}, {"0.3.1", "^0.2.3", false, true}, {"0.2.9", "^0.2.3", true, true}, {"20.5.0", "18 - 20", true, true}, {"21.0.0", "18 - 20", false, true}, {"20.20.2", ">20", false, true},
		{"3.11.7", ">=3.9,<4", true, true}, {"3.11.7", "~=3.9", true, true}, {"3.11.7", "~=3.9.1", false, true}, {"3.11.7", "==3.11.*", true, true}, {"3.11.7", "!=3.11.*", false, true}, {"3.11.7", ">=3.12", false, true},
		{"3.11.7", "!=3.11.7", false, true}, {"3.11.7", "^3.8", true, true}, {"3.11.7", "<=3.11", true, true}, {"20.0.0", ">=20.0.0-rc.1", true, true},
		{"20.0.0", "latest", false, false}, {"20.0.0", "node >= 18", false, false}, {"20.0.0", ">=18; rm", false, false}, {"20.0.0", ">=v18", true, true},
	} {
		if in, ok := inRange(readVersion(tt.version), tt.text); in != tt.in || ok != tt.ok {
			t.Errorf("%s in %q: %v %v, want %v %v", tt.version, tt.text, in, ok, tt.in, tt.ok)
		}
	}
}

// Covers D1: what does not fit is said, with what to do about it; what does is not.
func TestMisfits(t *testing.T) {
	t.Parallel()
	tools := map[string]string{"go": "go1.26.8", "node": "v18.19.0", "python3": "Python 3.11.7", "cargo": "cargo 1.85.0 (abc 2025-01-01)", "java": "openjdk 21.0.2 2024-01-16"}
	files := map[string]string{
		".nvmrc": "22", ".node-version": "22", "package.json": `{"engines":{"node":"<=18.19"}}`, ".python-version": "3.11", "go.mod": "module a\n\ngo 1.27\n", "rust-toolchain": "1.70",
		".ruby-version": "3.3", ".tool-versions": "java 17\nnodejs 18.20\npython 3.12.1\n",
	}
	texts := map[string][]byte{}
	for name, text := range files {
		texts[name] = []byte(text)
	}
	fix := func(what string) string {
		return ": install it for all users, or (`mise install " + what + "`) below a directory of the server's `toolchains`"
	}
	want := []string{
		"`.node-version` and `.nvmrc` ask for Node 22, the server has 18.19.0" + fix("node@22"),
		"`.ruby-version` asks for Ruby 3.3, the server has none" + fix("ruby@3.3"),
		"`.tool-versions` asks for Node 18.20, the server has 18.19.0" + fix("node@18.20"),
		"`.tool-versions` asks for Python 3.12.1, the server has 3.11.7" + fix("python@3.12.1"),
		"`go.mod` asks for Go 1.27, the server has 1.26.8" + fix("go@1.27"),
	}
	if got := strings.Join(Misfits(Wants(texts), tools), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if got := Misfits(Wants(map[string][]byte{"package.json": []byte("{\"engines\":{\"node\":\">=99 `x` @acme\"}}")}), tools); len(got) != 0 {
		t.Errorf("what cannot be read is told: %q", got)
	}
}

// Covers D1: of the toolchains that the server has, a repository gets those that its files ask
// for, and its own where they do.
func TestChoose(t *testing.T) {
	t.Parallel()
	tools := map[string]string{"node": "v18.19.0", "npm": "9.2.0", "python3": "Python 3.11.7", "pip": "pip 23",
		"node@/n/20/bin": "v20.1.0", "npm@/n/20/bin": "10.1.0", "node@/n/22/bin": "v22.3.0", "npm@/n/22/bin": "10.8.0",
		"python3@/p/3.12/bin": "Python 3.12.1", "python3@/p/3.13/bin": "Python 3.13.0", "pip@/p/3.13/bin": "pip 24", "cargo@/r/old/bin": "cargo 1.70.0", "cargo@/r/new/bin": "cargo 1.85.0"}
	for _, tt := range []struct {
		name, file, text string
		bins             []string
		tool, version    string
	}{
		{"a tool that the server lacks, the newest", "README", "", []string{"/r/new/bin"}, "cargo", "cargo 1.85.0"},
		{"the server's own does", ".nvmrc", "18", []string{"/r/new/bin"}, "node", "v18.19.0"},
		{"another is asked for, with what comes with it", ".nvmrc", "20", []string{"/r/new/bin", "/n/20/bin"}, "npm", "10.1.0"},
		{"the newest in a range", "pyproject.toml", "[project]\nrequires-python = \">=3.12\"\n", []string{"/r/new/bin", "/p/3.13/bin"}, "pip", "pip 24"},
		{"none fits: as it was", ".nvmrc", "24", []string{"/r/new/bin"}, "node", "v18.19.0"},
		{"none of those that are missing fits", "rust-toolchain", "1.90", nil, "cargo", ""},
	} {
		bins, chosen := Choose(Wants(map[string][]byte{tt.file: []byte(tt.text)}), tools)
		if !slices.Equal(bins, tt.bins) || chosen[tt.tool] != tt.version {
			t.Errorf("%s: %q, %s is %q", tt.name, bins, tt.tool, chosen[tt.tool])
		}
	}
}

// What a version manager has is found, whatever the directory is called.
func TestToolScript(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's here")
	for name, version := range map[string]string{"node/22/bin/node": "v22.3.0", "node/22/bin/npm": "10.8.0", "bin/ruby": "ruby 3.3.1"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", ToolScript([]string{dir, filepath.Join(dir, "none")})).CombinedOutput()
	tools := ParseTools(string(out))
	for name, want := range map[string]string{"node@" + dir + "/node/22/bin": "v22.3.0", "npm@" + dir + "/node/22/bin": "10.8.0", "ruby@" + dir + "/bin": "ruby 3.3.1"} {
		if tools[name] != want {
			t.Errorf("%s is %q, want %q (%v)\n%s", name, tools[name], want, err, out)
		}
	}
}

func FuzzWants(f *testing.F) {
	f.Add("22", ">=18 || ^20")
	f.Fuzz(func(t *testing.T, text, version string) {
		files := map[string][]byte{}
		for name := range wantFiles {
			files[name] = []byte(text)
		}
		for _, line := range Misfits(Wants(files), map[string]string{"node": version, "go": version}) {
			if strings.Contains(line, "\n") {
				t.Errorf("more than a line: %q", line)
			}
		}
		inRange(readVersion(version), text)
	})
}
