package deps

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/untrusted"
)

const pnpmSettings = "pnpm-workspace.yaml"

// pnpmKept are the settings of a pnpm-workspace.yaml that decide what is installed. The
// others may name registries, shells, and packages whose code pnpm runs.
var pnpmKept = []string{"packages", "catalog", "catalogs", "overrides", "patchedDependencies", "allowUnusedPatches", "allowNonAppliedPatches",
	"packageExtensions", "peerDependencyRules", "ignoredOptionalDependencies", "supportedArchitectures",
	"nodeLinker", "hoist", "hoistPattern", "publicHoistPattern", "shamefullyHoist", "hoistingLimits", "hoistWorkspacePackages", "symlink",
	"autoInstallPeers", "strictPeerDependencies", "dedupePeerDependents", "dedupeDirectDeps", "dedupeInjectedDeps", "resolvePeersFromWorkspaceRoot",
	"peersSuffixMaxLength", "excludeLinksFromLockfile", "injectWorkspacePackages", "linkWorkspacePackages", "preferWorkspacePackages",
	"sharedWorkspaceLockfile", "disallowWorkspaceCycles",
	"onlyBuiltDependencies", "neverBuiltDependencies", "ignoredBuiltDependencies", "allowBuilds"}

// pnpmSettingsOf are a project's settings as far as they are kept. JSON is YAML.
func pnpmSettingsOf(text []byte) []byte {
	var all map[string]any
	if untrusted.YAML(text, &all) != nil {
		return nil // it is said
	}
	out, err := json.Marshal(pick(all, pnpmKept))
	if err != nil {
		return nil
	}
	return out
}

// hooksOf is what a lock file says of the hooks that it was made with. They are code of
// the repository, so that they do not run, and what they changed is in the lock file.
var hooksOf = lazyregexp.New(`(?m)^pnpmfileChecksum:.*\n`)

// pnpmPatches are the patches that a project names for its packages.
func (f *finder) pnpmPatches(dir, lock string) []string {
	if lock != "pnpm-lock.yaml" {
		return nil
	}
	text, err := f.read(path.Join(dir, lock))
	if err != nil {
		return nil // whoever reads all inputs says so
	}
	var out []string
	for _, m := range patchOf.FindAllSubmatch(text, -1) {
		out = append(out, f.existing(dir, string(m[1]))...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// patchOf is the path of a patch, which the lock file keeps beside its checksum.
var patchOf = lazyregexp.New(`(?m)^\s+path:\s*['"]?([^'"\s]+\.patch)['"]?\s*$`)

var versionText = lazyregexp.New(`^\d+(?:\.\d+){0,2}(?:-[\w.]+)?$`)

// pnpmVersion is the newest major version that writes such a lock file and needs no
// newer Node than those do.
func pnpmVersion(lock []byte) string {
	m := regexp.MustCompile(`(?m)^lockfileVersion:\s*'?"?(\d+)`).FindSubmatch(lock)
	switch {
	case m == nil || string(m[1]) >= "9" || len(m[1]) > 1:
		return "9"
	case string(m[1]) == "5":
		return "7"
	}
	return "8"
}
