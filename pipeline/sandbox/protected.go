package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"forge/pipeline/glob"
)

// protectedPaths are paths that act on whoever merges or checks out a change, and how. A
// change to one needs an explicit opt-in by the operator.
var protectedPaths = []struct {
	why   string
	globs []string
}{
	{"it says what runs on GitHub, with its secrets", []string{".github/workflows/**", ".github/actions/**", ".github/dependabot.yml"}},
	{"it says what Forge itself may do here", []string{".github/forge.yml", ".github/forge.yaml"}},
	{"it says who must approve what", []string{"**/CODEOWNERS"}},
	{"it says what git does, and runs", []string{"**/.git*"}},
	{"it says what another CI system runs, with its secrets", []string{
		"**/.gitlab-ci.yml", "**/.circleci/**", "**/.travis.yml", "**/Jenkinsfile", "**/azure-pipelines.yml", "**/.azure-pipelines/**",
		"**/bitbucket-pipelines.yml", "**/.drone.yml", "**/.woodpecker.yml", "**/.woodpecker/**", "**/.buildkite/**", "**/appveyor.yml",
		"**/.appveyor.yml", "**/.cirrus.yml", "**/.semaphore/**", "**/cloudbuild.yaml", "**/buildspec.yml", "**/.teamcity/**",
	}},
	{"it runs on the machine of whoever commits or pushes", []string{
		"**/.husky/**", "**/.pre-commit-config.yaml", "**/.pre-commit-hooks.yaml", "**/lefthook.yml", "**/.lefthook.yml", "**/lefthook.yaml",
		"**/.lefthook/**", "**/.overcommit.yml",
	}},
	{"it says where packages come from, and what runs when they are installed", []string{
		"**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.yarn/plugins/**", "**/.yarn/releases/**", "**/.pnpmfile.cjs", "**/bunfig.toml",
		"**/.pypirc", "**/pip.conf", "**/.cargo/config", "**/.cargo/config.toml", "**/.bundle/config", "**/nuget.config", "**/.mvn/**",
	}},
	{"it says how agents behave", []string{
		".github/copilot-instructions.md", ".github/instructions/**", ".github/agents/**", ".github/prompts/**",
		"**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md", "**/.claude/**", "**/.codex/**", "**/.gemini/**", "**/.agents/**",
		"**/.mcp.json", "**/mcp.json", "**/.cursor/**", "**/.cursorrules", "**/.windsurf/**", "**/.windsurfrules", "**/.aider*",
		"**/.clinerules", "**/.clinerules/**", "**/.roo/**", "**/.roomodes", "**/.kiro/**", "**/.junie/**", "**/.amazonq/**",
		"**/.opencode/**", "**/opencode.json", "**/.goosehints", "**/.continue/**",
	}},
	{"it says what editors and shells run when they open the folder", []string{
		"**/.vscode/**", "**/.idea/**", "**/.zed/**", "**/.devcontainer/**", "**/.devcontainer.json", "**/.envrc", "**/mise.toml", "**/.mise.toml",
	}},
}

// unprotected are the exceptions among them that cannot do harm: git itself and
// editors only read them as lists of names.
var unprotected = []string{"**/.gitignore", "**/.gitkeep"}

// ProtectedError is a change that nobody has opted in to.
type ProtectedError struct {
	Path       string `json:"path"`
	Rule       string `json:"rule"`                 // the glob that protects it
	Repository bool   `json:"repository,omitempty"` // the rule is of paths.protected, not a built-in one
	Why        string `json:"why,omitempty"`        // of a built-in rule
	Owner      string `json:"owner,omitempty"`      // whose the path is, where it is protected from a module: "the module auth"
}

func (e *ProtectedError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("%s belongs to %s (%q): leave it as it is, and say in the summary what you need of it", e.Path, e.Owner, e.Rule)
	}
	if e.Repository {
		return fmt.Sprintf("%s is protected by the rule %q of paths.protected in the settings: leave it as it is; a maintainer must make this change", e.Path, e.Rule)
	}
	why := ""
	if e.Why != "" {
		why = ", since " + e.Why
	}
	return fmt.Sprintf("%s is protected by the built-in rule %q%s: leave it as it is; a maintainer must make this change, or the operator must allow the path",
		e.Path, e.Rule, why)
}

// Protected returns the path, so that a caller can recognise this error by its method.
func (e *ProtectedError) Protected() string { return e.Path }

// owned tells a refusal whose the path is.
func owned(err error, owners map[string]string) error {
	var p *ProtectedError
	if errors.As(err, &p) && p.Repository && owners[p.Rule] != "" {
		own := *p
		own.Owner = owners[p.Rule]
		return &own // in its own words
	}
	return err
}

// taken refuses a file that is another one's, and a directory that holds one.
func taken(name string, files map[string]string) error {
	name = path.Clean(name)
	if owner := files[name]; owner != "" {
		return &ProtectedError{Path: name, Rule: name, Repository: true, Owner: owner}
	}
	for file, owner := range files {
		if strings.HasPrefix(file, name+"/") {
			return &ProtectedError{Path: file, Rule: file, Repository: true, Owner: owner}
		}
	}
	return nil
}

// checkProtected refuses a protected path. Extra globs protect more; one that names
// a directory protects all that is in it. Allow opts in. Names are compared without
// case, since GitHub's checkout on macOS and Windows does not distinguish them.
func checkProtected(name string, extra, allow []string) error {
	lower := strings.ToLower(name)
	for _, pattern := range allow {
		if matchGlob(strings.ToLower(pattern), lower) {
			return nil
		}
	}
	for _, pattern := range extra {
		if matchOver(strings.Trim(strings.ToLower(pattern), "/"), lower) {
			return &ProtectedError{Path: name, Rule: pattern, Repository: true}
		}
	}
	for _, pattern := range unprotected {
		if matchGlob(pattern, lower) {
			return nil
		}
	}
	for _, p := range protectedPaths {
		for _, rule := range p.globs {
			if matchGlob(strings.ToLower(rule), lower) {
				return &ProtectedError{Path: name, Rule: rule, Why: p.why}
			}
		}
	}
	return nil
}

// matchOver reports whether a glob matches a path or a directory above it.
func matchOver(pattern, name string) bool {
	for i := range len(name) + 1 {
		if (i == len(name) || name[i] == '/') && matchGlob(pattern, name[:i]) {
			return true
		}
	}
	return false
}

// matchGlob matches a path; a glob without a slash is matched against the last
// element alone.
func matchGlob(pattern, name string) bool {
	if !strings.Contains(pattern, "/") && pattern != "**" {
		name = path.Base(name)
	}
	return glob.Match(strings.TrimPrefix(pattern, "/"), name)
}

// errPath is why a path cannot be used.
var errPath = errors.New("not a path inside the repository")

// checkPath refuses what git or a file system could take for something else:
// absolute and unclean paths, ".." and every spelling of ".git".
func checkPath(name string) error {
	if name == "" || len(name) > 4096 || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\x00\\") || path.Clean(name) != name {
		return fmt.Errorf("path %q: %w", name, errPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || len(part) > 255 || isDotGit(part) {
			return fmt.Errorf("path %q: %w", name, errPath)
		}
		for _, c := range part {
			if c < ' ' || c == 0x7f {
				return fmt.Errorf("path %q has a control character: %w", name, errPath)
			}
		}
	}
	return nil
}

// isDotGit reports whether some file system takes the name for ".git": without
// case, with characters that HFS+ ignores, in NTFS' short form, or with what NTFS
// drops at the end.
func isDotGit(part string) bool {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(part))
	clean, _, _ = strings.Cut(clean, ":")
	clean = strings.TrimRight(clean, ". ")
	return clean == ".git" || clean == "git~1"
}
