package deps

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// Yarn 2 and newer reads other lock files and settings than Yarn 1, and is published as
// another package. Its settings may name programs (plugins, yarnPath). So Forge passes on
// only those settings that decide what is installed.

const berrySettings = ".yarnrc.yml"

// berryKept are the settings of a .yarnrc.yml that decide what is installed, and nothing else.
var berryKept = []string{"compressionLevel", "defaultProtocol", "nmHoistingLimits", "nmMode", "nmSelfReferences", "nodeLinker", "packageExtensions",
	"supportedArchitectures"}

var (
	berryLock    = lazyregexp.New(`(?m)^__metadata:\n(?:\s+.*\n)*?\s+version:\s*"?(\d+)`)
	berryRelease = lazyregexp.New(`(?m)^\s*yarnPath:.*yarn-(\d+\.\d+\.\d+[\w.-]*?)\.c?js`)
	berryPatch   = lazyregexp.New(`^\.yarn/patches/[^/]+\.patch$`)
	berryArchive = lazyregexp.New(`__archiveUrl=[^"&\s]+`)
)

// isBerry reports whether a lock file is one of Yarn 2 or newer.
func isBerry(lock []byte) bool { return strings.Contains(string(lock), "__metadata:") }

// patches are the patches that a project keeps for its packages.
func (f *finder) patches(dir string) []string {
	var out []string
	for _, name := range f.files {
		if rel, ok := within(name, dir); ok && berryPatch.MatchString(rel) {
			out = append(out, name)
		}
	}
	return out
}

// berrySettingsOf are a project's settings as far as they are kept. JSON is YAML.
func berrySettingsOf(text []byte) []byte {
	var all map[string]any
	if untrusted.YAML(text, &all) != nil {
		return nil // it is said
	}
	kept := pick(all, berryKept)
	if kept["nodeLinker"] != "pnpm" {
		kept["nodeLinker"] = "node-modules" // Plug'n'Play keeps its packages where the project is
	}
	out, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return out
}

// berryLocked leads the addresses in a lock file to the gateway.
func (f *finder) berryLocked(lock []byte) []byte {
	return berryArchive.ReplaceAllFunc(lock, func(param []byte) []byte {
		escaped := strings.TrimPrefix(string(param), "__archiveUrl=")
		address, err := url.QueryUnescape(escaped)
		if err != nil {
			return param
		}
		return []byte("__archiveUrl=" + url.QueryEscape(archive.ReplaceAllString(address, f.host.Registry["npm"]+"/$1")))
	})
}

// berryVersion is the version that a project names, or else one that writes such a lock file.
func berryVersion(named string, settings, lock []byte) string {
	if versionText.MatchString(named) && !strings.HasPrefix(named, "1.") && strings.Count(named, ".") == 2 {
		return named
	}
	if m := berryRelease.FindSubmatch(settings); m != nil {
		return string(m[1])
	}
	m := berryLock.FindSubmatch(lock)
	switch {
	case m == nil || len(m[1]) > 1 || string(m[1]) >= "7":
		return "4"
	case string(m[1]) >= "5":
		return "3"
	}
	return "2"
}

// berrySteps are the commands that install.
func (f *finder) berrySteps(p *Project, version string) []workspace.Command {
	env := slices.DeleteFunc(f.npmEnv(), func(kv string) bool { return strings.HasPrefix(kv, "YARN_") }) // Yarn 2 refuses settings of Yarn 1
	env = append(env, "YARN_NPM_REGISTRY_SERVER="+f.host.Registry["npm"], "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1",
		"YARN_ENABLE_TELEMETRY=0", "YARN_ENABLE_GLOBAL_CACHE=false", "YARN_GLOBAL_FOLDER=/scratch/yarn", "YARN_CACHE_FOLDER=/scratch/yarn/cache",
		"YARN_INSTALL_STATE_PATH=/scratch/yarn/state.gz", "YARN_ENABLE_PROGRESS_BARS=false", "YARN_HTTP_RETRY=0", "YARN_IGNORE_PATH=1")
	args := []string{"npm", "exec", "--yes", "--package=@yarnpkg/cli-dist@" + version, "--", "yarn", "install", "--immutable"}
	if !f.host.Scripts {
		env = append(env, "YARN_ENABLE_SCRIPTS=false") // of packages: the project's own run all the same, unless builds are skipped
		args = append(args, map[bool]string{true: "--skip-builds", false: "--mode=skip-build"}[version == "2" || strings.HasPrefix(version, "2.")])
	}
	return []workspace.Command{{Dir: path.Join(root, p.tree), Timeout: timeout, Env: env, Args: args}}
}
