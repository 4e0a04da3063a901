package deps

import (
	"slices"
	"strings"
	"testing"
)

// What lock files of each kind say of ms and semver.
var lockOf = map[string]string{
	"package-lock.json": `{"lockfileVersion":3,"packages":{"":{"dependencies":{"ms":"^2"}},
"node_modules/ms":{"version":"2.1.3","resolved":"https://registry.npmjs.org/ms/-/ms-2.1.3.tgz","integrity":"sha512-ms3"},
"node_modules/semver":{"version":"7.6.0","resolved":"https://registry.npmjs.org/semver/-/semver-7.6.0.tgz","integrity":"sha512-semver"}}}`,
	"yarn.lock": "# yarn lockfile v1\n\nms@^2:\n  version \"2.1.3\"\n  resolved \"https://registry.yarnpkg.com/ms/-/ms-2.1.3.tgz#a3\"\n  integrity sha512-ms3\n\n" +
		"semver@^7:\n  version \"7.6.0\"\n  resolved \"https://registry.yarnpkg.com/semver/-/semver-7.6.0.tgz#b0\"\n  integrity sha512-semver\n  dependencies:\n    ms \"^2\"\n",
	"pnpm-lock.yaml": "lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    dependencies:\n      ms:\n        specifier: ^2\n        version: 2.1.3\n\npackages:\n\n" +
		"  ms@2.1.3:\n    resolution: {integrity: sha512-ms3}\n\n  semver@7.6.0:\n    resolution: {integrity: sha512-semver}\n    hasBin: true\n\nsnapshots:\n\n  ms@2.1.3: {}\n\n  semver@7.6.0:\n    dependencies:\n      ms: 2.1.3\n",
	"b/yarn.lock": "__metadata:\n  version: 8\n\n\"ms@npm:^2\":\n  version: 2.1.3\n  resolution: \"ms@npm:2.1.3\"\n  checksum: 10c0/ms3\n\n" +
		"\"semver@npm:^7\":\n  version: 7.6.0\n  resolution: \"semver@npm:7.6.0\"\n  checksum: 10c0/semver\n\n\"app@workspace:.\":\n  version: 0.0.0-use.local\n  resolution: \"app@workspace:.\"\n",
}

// Covers D1: a lock file that an implementer wrote by hand is not taken, and whoever wrote it,
// what it moves is named; one of the package manager's own is taken.
func TestHandWrittenLock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file string
		edit       []string // what is replaced, and by what
		want       string   // "": it is taken
	}{
		{"another archive with its checksum", "package-lock.json", []string{"/ms/-/ms-2.1.3.tgz", "/semver/-/semver-7.6.0.tgz", "sha512-ms3", "sha512-semver"}, "of the same packages something else"},
		{"another version", "package-lock.json", []string{`"2.1.3"`, `"2.1.0"`, "ms-2.1.3", "ms-2.1.0", "sha512-ms3", "sha512-ms0"}, "ms 2.1.3 → 2.1.0"},
		{"another name", "package-lock.json", []string{`"node_modules/ms":{`, `"node_modules/ms":{"name":"semver",`}, "ms 2.1.3 → npm:semver@2.1.3"},
		{"a package that nobody asks for", "package-lock.json", []string{`"node_modules/semver"`, `"node_modules/evil":{"version":"1.0.0"},"node_modules/semver"`}, "evil 1.0.0"},
		{"a place in the repository", "package-lock.json", []string{`"https://registry.npmjs.org/ms/-/ms-2.1.3.tgz"`, `"lib/ms","link":true`}, "of the same packages something else"},
		{"the version of the repository's own", "package-lock.json", []string{`{"lockfileVersion":3,"packages":{"":{`, `{"version":"2.0.0","lockfileVersion":3,"packages":{"":{"version":"2.0.0",`}, ""},
		{"other spacing", "package-lock.json", []string{"{", "{ "}, ""},
		{"not JSON", "package-lock.json", []string{"{", "{{"}, "ms is gone; semver is gone"},
		{"Yarn 1", "yarn.lock", []string{"/ms/-/ms-2.1.3.tgz#a3", "/semver/-/semver-7.6.0.tgz#b0"}, "of the same packages something else"},
		{"Yarn 1, another version", "yarn.lock", []string{`"2.1.3"`, `"2.1.2"`}, "ms 2.1.3 → 2.1.2"},
		{"pnpm", "pnpm-lock.yaml", []string{"      ms: 2.1.3", "      ms: link:../ms"}, "of the same packages something else"},
		{"pnpm, another version", "pnpm-lock.yaml", []string{"2.1.3", "2.1.2"}, "ms 2.1.3 → 2.1.2"},
		{"Yarn 4", "b/yarn.lock", []string{`resolution: "ms@npm:2.1.3"`, `resolution: "semver@npm:7.6.0"`}, "ms 2.1.3 → npm:semver@2.1.3"},
		{"Yarn 4, another version", "b/yarn.lock", []string{"2.1.3", "2.1.2"}, "ms 2.1.3 → 2.1.2"},
	} {
		old := lockOf[tt.file]
		now := old
		for i := 0; i < len(tt.edit); i += 2 {
			now = strings.ReplaceAll(now, tt.edit[i], tt.edit[i+1])
		}
		if now == old {
			t.Fatalf("%s: nothing was changed", tt.name)
		}
		e := edit(map[string]string{tt.file: old, "package.json": "{}"}, map[string]string{tt.file: now})
		wrong, err := HandWritten(e, func(string) bool { return false })
		if err != nil || (len(wrong) > 0) != (tt.want != "") || len(wrong) > 0 && !strings.Contains(wrong[0], tt.file+" is not taken as it was written") {
			t.Errorf("%s: %q, %v", tt.name, wrong, err)
		}
		lines, err := LockedAlone(e.Base, e.Now)
		if said := strings.Join(lines, "\n"); err != nil || tt.want == "" && said != "" || tt.want != "" && said != tt.file+": "+tt.want {
			t.Errorf("%s: said %q, %v, want %q", tt.name, said, err, tt.want)
		}
		if wrong, err := HandWritten(e, func(name string) bool { return name == tt.file }); err != nil || len(wrong) > 0 {
			t.Errorf("%s: of the package manager's own: %q, %v", tt.name, wrong, err)
		}
	}
}

// What a manifest asks for is said by those who lock it.
func TestLockedWithAManifest(t *testing.T) {
	t.Parallel()
	const file = "package-lock.json"
	e := edit(map[string]string{"package.json": "{}", file: lockOf[file]},
		map[string]string{"package.json": `{"dependencies":{"ms":"2.1.0"}}`, file: strings.ReplaceAll(lockOf[file], `"2.1.3"`, `"2.1.0"`)})
	if lines, err := LockedAlone(e.Base, e.Now); err != nil || len(lines) > 0 {
		t.Errorf("what a manifest asks for: %q, %v", lines, err)
	}
}

// A lock file that is new is not taken, whether or not the package manager has added to it:
// it keeps what it was given.
func TestNewLock(t *testing.T) {
	t.Parallel()
	const file = "package-lock.json"
	e := edit(map[string]string{"package.json": "{}"}, map[string]string{file: lockOf[file]})
	if wrong, err := HandWritten(e, func(name string) bool { return name == file }); err != nil || len(wrong) != 1 {
		t.Errorf("%q, %v", wrong, err)
	}
	aliased := strings.NewReplacer(`"ms":"^2"`, `"react":"npm:ms@^2"`, `"node_modules/ms":{`, `"node_modules/react":{"name":"ms",`).Replace(lockOf[file])
	if got := lockedIn(file, []byte(aliased))["react"]; !slices.Equal(got, []string{"npm:ms@2.1.3"}) {
		t.Errorf("another package by a name of its own is named as %q", got)
	}
}
