package deps

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Each of these would end the program, or take all of its memory, if a parser saw it.
var (
	deepTOML = "a = " + strings.Repeat("[", 3<<20)
	deepYAML = "a: " + strings.Repeat("[", 60_000)
	deepJSON = `{"a":` + strings.Repeat("[", 1<<20)
	longJSON = `{"dependencies":{"` + strings.Repeat("k", 100_000) + `":{` + strings.Repeat(`"a":{},`, 2000) + `"b":{}}}}`
	manyYAML = "overrides:\n  a0: &a0 [x,x]\n" + `  a1: &a1 [*a0,*a0]` + "\n  a2: [*a1,*a1]\n"
)

// Covers S30: a manifest that is made to end the server is a manifest that cannot be read, and
// is named; what else the repository has is installed.
func TestHostileManifests(t *testing.T) {
	t.Parallel()
	node := `{"dependencies":{"ms":"1"}}`
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // what is lacking
	}{
		"pyproject": {map[string]string{"pyproject.toml": deepTOML}, "pip: pyproject.toml cannot be read: the file is nested more than 100 deep"},
		"beneath one of uv": {map[string]string{"a/pyproject.toml": deepTOML, "pyproject.toml": deepTOML, "uv.lock": "version = 1\n"},
			"pip: pyproject.toml cannot be read: the file is nested more than 100 deep|pip in a: pyproject.toml cannot be read: the file is nested more than 100 deep"},
		"uv":     {map[string]string{"pyproject.toml": "[project]\nname=\"a\"\n", "uv.lock": deepTOML}, "pip: uv.lock cannot be read: the file is nested more than 100 deep"},
		"poetry": {map[string]string{"pyproject.toml": "[project]\nname=\"a\"\n", "poetry.lock": deepTOML}, "pip: poetry.lock cannot be read: the file is nested more than 100 deep"},
		"pdm":    {map[string]string{"pyproject.toml": "[project]\nname=\"a\"\n", "pdm.lock": deepTOML}, "pip: pdm.lock cannot be read: the file is nested more than 100 deep"},
		"Pipenv": {map[string]string{"Pipfile.lock": deepJSON}, "pip: Pipfile.lock cannot be read: the file is nested more than 100 deep"},
		"cargo":  {map[string]string{"b/Cargo.toml": deepTOML, "b/Cargo.lock": deepTOML}, "cargo in b: Cargo.lock cannot be read: the file is nested more than 100 deep"},
		"node":   {map[string]string{"package.json": deepJSON}, "npm: package.json cannot be read: the file is nested more than 100 deep"},
		"long keys": {map[string]string{"package.json": longJSON},
			"npm: package.json cannot be read: the file has too long keys for how much is under them"},
		"pnpm":       {map[string]string{"package.json": node, "pnpm-lock.yaml": deepYAML, "pnpm-workspace.yaml": deepYAML}, "pnpm: pnpm-workspace.yaml cannot be read: the file is nested more than 100 deep"},
		"aliases":    {map[string]string{"package.json": node, "pnpm-workspace.yaml": manyYAML}, "npm: pnpm-workspace.yaml cannot be read: the file has aliases within what an alias stands for, or more than 100"},
		"no YAML":    {map[string]string{"package.json": node, "pnpm-workspace.yaml": "shell: [\n"}, "npm: pnpm-workspace.yaml cannot be read: [1:8] sequence end token ']' not found"},
		"yarn":       {map[string]string{"package.json": node, "yarn.lock": "__metadata:\n  version: 8\n", ".yarnrc.yml": deepYAML}, "yarn: .yarnrc.yml cannot be read: the file is nested more than 100 deep"},
		"composer":   {map[string]string{"composer.json": deepJSON}, "composer: composer.json cannot be read: the file is nested more than 100 deep"},
		"its lock":   {map[string]string{"composer.json": `{"require":{"a/b":"1"}}`, "composer.lock": deepJSON}, "composer: composer.lock cannot be read: the file is nested more than 100 deep"},
		"read by us": {map[string]string{"pom.xml": strings.Repeat("<a>", 1<<20), "Gemfile.lock": strings.Repeat(" ", 1<<20), "setup.py": "install_requires=" + strings.Repeat("[", 1<<20), "go.mod": strings.Repeat("(", 1<<20)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(tt.files)
			files["good/go.mod"], files["good/go.sum"] = goMod+"require example.com/a v1.0.0\n", ""
			r := find(t, files, whole)
			if got := strings.Join(r.Lacking(), "|"); got != tt.want {
				t.Errorf("lacking is %.300q\nwant       %q", got, tt.want)
			}
			if !slices.ContainsFunc(r.Projects, func(p *Project) bool { return p.Dir == "good" && p.Lacks == "" }) {
				t.Error("the good manifest beside it is left out")
			}
			for _, p := range r.Projects {
				for name, text := range p.stage {
					if p.Lacks != "" && strings.HasPrefix(string(text), "shell:") {
						t.Errorf("settings that could not be read are passed on as %s", name)
					}
				}
			}
		})
	}
}

func TestHostileLocks(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"pnpm-lock.yaml": deepYAML, "yarn.lock": "__metadata:\n" + deepYAML, "package-lock.json": deepJSON, "a/package-lock.json": longJSON} {
		e := edit(map[string]string{file: ""}, map[string]string{file: text})
		wrong, err := HandWritten(e, func(string) bool { return false })
		if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], file+" is not taken as it was written") {
			t.Errorf("%s: HandWritten = %q, %v", file, wrong, err)
		}
		if lines, err := LockedAlone(e.Before, e.Now); err != nil || len(lines) != 1 {
			t.Errorf("%s: LockedAlone = %q, %v", file, lines, err)
		}
	}
	for _, text := range []string{deepJSON, longJSON} {
		list, err := FindLocks(edit(map[string]string{"package.json": "{}"}, map[string]string{"package.json": text}), whole)
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Refused, "package.json:1: the file ") {
			t.Errorf("FindLocks = %v, %v", list, err)
		}
	}
	if got := lockedIn("pnpm-lock.yaml", []byte(deepYAML)); len(got) != 0 {
		t.Errorf("lockedIn = %v", got)
	}
}

func TestHostileWants(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for name := range wantFiles {
		switch {
		case strings.HasSuffix(name, ".toml"), name == "rust-toolchain":
			files[name] = []byte("[toolchain]\n" + deepTOML[:1<<20-20])
		case strings.Contains(name, ".y"):
			files[name] = []byte(deepYAML)
		default:
			files[name] = []byte(deepJSON[:1<<20])
		}
	}
	if got := Wants(files); len(got) != 0 {
		t.Errorf("Wants = %v", got)
	}
}
