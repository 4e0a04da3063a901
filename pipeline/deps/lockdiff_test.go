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

// handWritten are the cases of a lock file that changes and no manifest with it.
var handWritten = []struct {
	name, file string
	edit       []string // what is replaced, and by what
	wrong      string   // "": nothing
	moved      string
}{
	{"another archive with its checksum", "package-lock.json", []string{"/ms/-/ms-2.1.3.tgz", "/semver/-/semver-7.6.0.tgz", "sha512-ms3", "sha512-semver"},
		"ms 2.1.3 comes from https://registry.npmjs.org/semver/-/semver-7.6.0.tgz, which is not the archive of that name and version", "ms 2.1.3 was from "},
	{"the checksum of another", "package-lock.json", []string{`"2.1.3"`, `"2.1.0"`, "ms-2.1.3", "ms-2.1.0", "sha512-ms3", "sha512-semver"}, "ms 2.1.0 has the checksum of semver 7.6.0", "ms 2.1.3 → 2.1.0"},
	{"another version", "package-lock.json", []string{`"2.1.3"`, `"2.1.0"`, "ms-2.1.3", "ms-2.1.0", "sha512-ms3", "sha512-ms0"}, "", "ms 2.1.3 → 2.1.0 from https://registry.npmjs.org/ms/-/ms-2.1.0.tgz"},
	{"another checksum", "package-lock.json", []string{"sha512-ms3", "sha512-other"}, "ms 2.1.3 has another checksum than before", "ms 2.1.3 had the checksum sha512-ms3 and has sha512-other"},
	{"no checksum", "package-lock.json", []string{`,"integrity":"sha512-ms3"`, ""}, "ms 2.1.3 has another checksum than before", "has none"},
	{"no checksum of what is new", "package-lock.json", []string{`"2.1.3"`, `"2.1.0"`, "ms-2.1.3", "ms-2.1.0", `,"integrity":"sha512-ms3"`, ""}, "ms 2.1.0 has no checksum", "ms 2.1.3 → 2.1.0"},
	{"another host", "package-lock.json", []string{"https://registry.npmjs.org/ms", "https://evil.example/ms"}, "ms 2.1.3 comes from https://evil.example/ms/-/ms-2.1.3.tgz, a registry that", "is from https://evil.example"},
	{"another name", "package-lock.json", []string{`"node_modules/ms":{`, `"node_modules/ms":{"name":"semver",`, `"2.1.3"`, `"7.6.0"`, "/ms/-/ms-2.1.3.tgz", "/semver/-/semver-7.6.0.tgz", "sha512-ms3", "sha512-semver"},
		"ms 7.6.0 is another package, semver 7.6.0", "ms was ms 2.1.3 and is semver 7.6.0"},
	{"a package that nobody asks for", "package-lock.json", []string{`"node_modules/semver"`, `"node_modules/evil":{"version":"1.0.0","resolved":"https://registry.npmjs.org/evil/-/evil-1.0.0.tgz","integrity":"sha512-e"},"node_modules/semver"`},
		"", "evil 1.0.0 came in from https://registry.npmjs.org/evil/-/evil-1.0.0.tgz"},
	{"a field in capitals, which Node does not read", "package-lock.json", []string{`"https://registry.npmjs.org/ms/-/ms-2.1.3.tgz"`, `"https://evil.example/x.tgz","RESOLVED":"https://registry.npmjs.org/ms/-/ms-2.1.3.tgz"`}, "comes from https://evil.example/x.tgz", ""},
	{"a place in the repository", "package-lock.json", []string{`"https://registry.npmjs.org/ms/-/ms-2.1.3.tgz"`, `"lib/ms","link":true`}, "ms 2.1.3 comes from lib/ms", ""},
	{"not JSON", "package-lock.json", []string{"{", "{{"}, "it cannot be read", ""},
	{"Yarn 1", "yarn.lock", []string{"/ms/-/ms-2.1.3.tgz#a3", "/semver/-/semver-7.6.0.tgz#b0", "sha512-ms3", "sha512-semver"}, "ms 2.1.3 comes from https://registry.yarnpkg.com/semver/-/semver-7.6.0.tgz", "ms 2.1.3 was from"},
	{"Yarn 1, another version", "yarn.lock", []string{`"2.1.3"`, `"2.1.2"`, "ms-2.1.3.tgz#a3", "ms-2.1.2.tgz#a2", "sha512-ms3", "sha512-ms2"}, "", "ms 2.1.3 → 2.1.2 from https://registry.yarnpkg.com/ms/-/ms-2.1.2.tgz#a2"},
	{"Yarn 1, an address twice", "yarn.lock", []string{"  integrity sha512-ms3", "  resolved \"https://evil.example/x.tgz\"\n  integrity sha512-ms3"}, "has resolved twice", ""},
	{"pnpm", "pnpm-lock.yaml", []string{"{integrity: sha512-ms3}", "{integrity: sha512-semver, tarball: https://registry.npmjs.org/semver/-/semver-7.6.0.tgz}"}, "ms 2.1.3 comes from https://registry.npmjs.org/semver", "ms 2.1.3 was from the registry"},
	{"pnpm, another package by its name", "pnpm-lock.yaml", []string{"        version: 2.1.3", "        version: semver@7.6.0"}, "ms 7.6.0 is another package, semver 7.6.0", "ms 7.6.0 came in"},
	{"pnpm, a place", "pnpm-lock.yaml", []string{"      ms: 2.1.3", "      ms: link:../ms"}, "ms comes from link:../ms", ""},
	{"pnpm, another version", "pnpm-lock.yaml", []string{"2.1.3", "2.1.2", "sha512-ms3", "sha512-ms2"}, "", "ms 2.1.3 → 2.1.2"},
	{"Yarn 4", "b/yarn.lock", []string{`resolution: "ms@npm:2.1.3"`, `resolution: "semver@npm:7.6.0"`, "version: 2.1.3", "version: 7.6.0", "10c0/ms3", "10c0/semver"}, "ms 7.6.0 is another package, semver 7.6.0", "ms was ms 2.1.3 and is semver 7.6.0"},
	{"Yarn 4, an archive", "b/yarn.lock", []string{`"ms@npm:2.1.3"`, `"ms@npm:2.1.3::__archiveUrl=https%3A%2F%2Fregistry.npmjs.org%2Fsemver%2F-%2Fsemver-7.6.0.tgz"`}, "ms 2.1.3 comes from https://registry.npmjs.org/semver", ""},
	{"Yarn 4, another version", "b/yarn.lock", []string{"2.1.3", "2.1.2", "10c0/ms3", "10c0/ms2"}, "", "ms 2.1.3 → 2.1.2"},
}

// Covers D1: a lock file that is written by hand is not taken where an entry is not of its
// own package, and what else it moves is named.
func TestHandWrittenLock(t *testing.T) {
	t.Parallel()
	for _, tt := range handWritten {
		old := lockOf[tt.file]
		now := old
		for i := 0; i < len(tt.edit); i += 2 {
			now = strings.ReplaceAll(now, tt.edit[i], tt.edit[i+1])
		}
		if now == old {
			t.Fatalf("%s: nothing was changed", tt.name)
		}
		e := edit(map[string]string{tt.file: old, "package.json": "{}"}, map[string]string{tt.file: now})
		none := func(string) bool { return false }
		wrong, err := HandWritten(e, none)
		if said := strings.Join(wrong, "\n"); err != nil || !strings.Contains(said, tt.wrong) || tt.wrong == "" && said != "" {
			t.Errorf("%s: %q, %v, want %q", tt.name, said, err, tt.wrong)
		}
		lines, err := LockedAlone(e.Base, e.Now)
		if said := strings.Join(lines, "\n"); err != nil || !strings.Contains(said, tt.wrong) || !strings.Contains(said, tt.moved) || !strings.HasPrefix(said, tt.file+": ") {
			t.Errorf("%s: said %q, %v, want %q and %q", tt.name, said, err, tt.wrong, tt.moved)
		}
		if wrong, err := HandWritten(e, func(name string) bool { return name == tt.file }); err != nil || len(wrong) > 0 {
			t.Errorf("%s: of the package manager's own: %q, %v", tt.name, wrong, err)
		}
	}
}

// What a manifest asks for is said by those who lock it; what is wrong is said all the same.
func TestLockedWithAManifest(t *testing.T) {
	t.Parallel()
	const file = "package-lock.json"
	before := map[string]string{"package.json": "{}", file: lockOf[file]}
	asks := `{"dependencies":{"ms":"2.1.0"}}`
	now := map[string]string{"package.json": asks, file: strings.NewReplacer(`"2.1.3"`, `"2.1.0"`, "ms-2.1.3", "ms-2.1.0", "sha512-ms3", "sha512-ms0").Replace(lockOf[file])}
	e := edit(before, now)
	if lines, err := LockedAlone(e.Base, e.Now); err != nil || len(lines) > 0 {
		t.Errorf("what a manifest asks for: %q, %v", lines, err)
	}
	e = edit(before, map[string]string{"package.json": asks, file: strings.ReplaceAll(lockOf[file], "sha512-ms3", "sha512-other")})
	if lines, err := LockedAlone(e.Base, e.Now); err != nil || len(lines) != 1 || !strings.Contains(lines[0], "another checksum") {
		t.Errorf("what is wrong: %q, %v", lines, err)
	}
}

// A lock file that is new is looked through entry by entry, whether or not the package
// manager has added to it: it keeps what it was given.
func TestNewLock(t *testing.T) {
	t.Parallel()
	const file = "package-lock.json"
	lie := strings.NewReplacer("/ms/-/ms-2.1.3.tgz", "/semver/-/semver-7.6.0.tgz", "sha512-ms3", "sha512-semver").Replace(lockOf[file])
	aliased := strings.NewReplacer(`"ms":"^2"`, `"react":"npm:ms@^2"`, `"node_modules/ms":{`, `"node_modules/react":{"name":"ms",`).Replace(lockOf[file])
	for _, tt := range []struct{ name, file, lock, want string }{
		{"all of their names", file, lockOf[file], ""},
		{"another archive", file, lie, "ms 2.1.3 comes from https://registry.npmjs.org/semver/-/semver-7.6.0.tgz"},
		{"another archive, in a directory", "tools/" + file, lie, "ms 2.1.3 comes from"},
		{"another archive, beside a lock file", "npm-shrinkwrap.json", lie, "ms 2.1.3 comes from"},
		{"a name that is asked for", file, aliased, ""},
		{"one that nobody asks for", file, strings.Replace(aliased, "npm:ms@", "", 1), "react 2.1.3 is another package, ms 2.1.3"},
		{"pnpm, a name that is asked for", "pnpm-lock.yaml", strings.NewReplacer("      ms:\n        specifier: ^2\n        version: 2.1.3", "      react:\n        specifier: npm:ms@^2\n        version: ms@2.1.3").Replace(lockOf["pnpm-lock.yaml"]), ""},
		{"Yarn 4, a name that is asked for", "b/yarn.lock", strings.Replace(lockOf["b/yarn.lock"], `"ms@npm:^2"`, `"react@npm:ms@^2"`, 1), ""},
		{"Yarn 4, one that nobody asks for", "b/yarn.lock", strings.Replace(lockOf["b/yarn.lock"], `"ms@npm:^2"`, `"react@npm:^2"`, 1), "react 2.1.3 is another package, ms 2.1.3"},
	} {
		e := edit(map[string]string{"package.json": "{}"}, map[string]string{tt.file: tt.lock})
		wrong, err := HandWritten(e, func(name string) bool { return name == tt.file })
		if said := strings.Join(wrong, "\n"); err != nil || !strings.Contains(said, tt.want) || tt.want == "" && said != "" {
			t.Errorf("%s: %q, %v, want %q", tt.name, said, err, tt.want)
		}
	}
	if got := lockedIn(file, []byte(aliased))["react"]; !slices.Equal(got, []string{"npm:ms@2.1.3"}) {
		t.Errorf("another package by a name of its own is named as %q", got)
	}
}
