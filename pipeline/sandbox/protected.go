package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"forge/pipeline/glob"
	"forge/pipeline/workspace"
)

// protectedPaths are paths that act on whoever merges or checks out a change, and how:
// without a word, or with rights that the change itself has not. What people start by
// hand, and what any task may change (Makefile, package.json, Dockerfile), is not among
// them. A change to one needs an explicit opt-in by the operator. "y*ml" is yml and yaml.
var protectedPaths = []struct {
	why   string
	globs []string
}{
	{"it says what runs on GitHub, with its secrets", []string{".github/workflows/**", ".github/actions/**", ".github/dependabot.y*ml"}},
	{"it says what Forge itself may do here", []string{".github/forge.y*ml"}},
	{"it says who must approve what", []string{
		"**/CODEOWNERS", "**/OWNERS", "**/OWNERS_ALIASES", ".policy.yml", ".github/policy.yml", ".pullapprove.yml",
	}},
	{"it tells a bot with rights here whom to let in, and what to merge", []string{
		".github/settings.y*ml", ".github/safe-settings/**", ".asf.yaml", ".mergify.yml", ".mergify/**", ".github/mergify.yml", "bors.toml",
		".bulldozer.yml", ".kodiak.toml", ".github/auto-merge.yml", ".prow.yaml", ".prow/**", "/renovate.json*", "/.renovaterc*",
		".github/renovate.json*", ".gitlab/renovate.json*",
	}},
	{"it says what git does, and runs", []string{"**/.git*"}},
	{"it says what another version control system does, and runs", []string{"**/.hg/**", "**/.jj/**", "**/.sl/**", "**/.svn/**", "**/.bzr/**"}},
	{"it says what another CI system runs, with its secrets", []string{
		"**/*.gitlab-ci.y*ml", ".gitlab/**/*.y*ml", "**/.circleci/**", "**/.travis.y*ml", "**/Jenkinsfile", "**/Jenkinsfile.*", "**/*.jenkinsfile",
		"**/azure-pipelines*.y*ml", "**/.azure-pipelines/**", ".azuredevops/**/*.y*ml", "**/.azure/pipelines/**",
		"**/bitbucket-pipelines.y*ml", "**/.drone.*", "**/.woodpecker.y*ml", "**/.woodpecker/**", "**/.buildkite/**", "**/appveyor.y*ml",
		"**/.appveyor.y*ml", "**/.cirrus.*", "**/.semaphore/**", "**/cloudbuild.y*ml", "**/buildspec*.y*ml", "**/.teamcity/**",
		".forgejo/workflows/**", ".forgejo/actions/**", ".gitea/workflows/**", ".gitea/actions/**", "**/.tekton/**", ".builds/**", ".build.yml", ".zuul.y*ml",
		"/zuul.y*ml", ".zuul.d/**", "zuul.d/**", "**/codemagic.y*ml", "**/bitrise.y*ml", "**/codefresh.y*ml", ".codefresh/**", "**/wercker.y*ml", ".harness/**",
		"**/screwdriver.y*ml", ".ci-operator.y*ml",
	}},
	{"it says what a host runs when a change is pushed, with its secrets", []string{
		"**/netlify.toml", "**/vercel.json", "/vercel.ts", "**/amplify.y*ml", "/render.y*ml", "/railway.json", "/railway.toml", ".do/*.y*ml",
		"**/.platform.app.y*ml", ".platform/**", ".upsun/**",
	}},
	{"it runs on the machine of whoever commits or pushes", []string{
		"**/.husky/**", "**/.huskyrc*", "**/husky.config.*", "**/.githooks/**", "**/.git-hooks/**", "**/.pre-commit-config.y*ml", "**/.pre-commit-hooks.y*ml",
		"**/prek.toml", "**/*lefthook.y*ml", "**/*lefthook.json*", "**/*lefthook.toml", "**/*lefthook-local.*", "**/.lefthook/**",
		"**/.lefthook-local/**", "**/.overcommit.yml", "**/*simple-git-hooks.*js*", "**/.lintstagedrc*", "**/lint-staged.config.*",
		"**/captainhook.json", "**/grumphp.y*ml*",
	}},
	{"it says where packages come from, and what runs when they are installed", []string{
		"**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.yarn/plugins/**", "**/.yarn/releases/**", "**/.yarn/sdks/**", "**/.pnpmfile.*", "**/bunfig.toml",
		"**/.bunfig.toml", "**/.pypirc", "**/pip.conf", "**/pip.ini", "**/uv.toml", "**/poetry.toml", "**/.pdm.toml", "**/.condarc", "**/.gemrc",
		"**/.cargo/config", "**/.cargo/config.toml", "**/.bundle/config", "**/nuget.config", "**/.mvn/**", "**/mvnw", "**/mvnw.cmd", "**/gradle/wrapper/**",
		"**/gradlew", "**/gradlew.bat", "**/.bazelrc", "**/.bazeliskrc", "tools/bazel", "tools/bazel.*",
	}},
	{"it says how agents behave", []string{
		".github/copilot-instructions.md", ".github/instructions/**", ".github/agents/**", ".github/prompts/**", ".github/chatmodes/**", ".github/hooks/**",
		".github/skills/**", ".github/copilot/**", "**/AGENT.md", "**/AGENTS.md", "**/AGENTS.*.md", "**/CLAUDE.md", "**/CLAUDE.*.md", "**/GEMINI.md",
		"**/GEMINI.*.md", "**/QWEN.md", "**/QWEN.*.md", "**/CRUSH.md", "**/CRUSH.*.md", "**/WARP.md", "**/WARP.*.md", "**/GROK.md", "**/CODEBUDDY.md",
		"**/.claude/**", "**/.codex/**", "**/.gemini/**", "**/.qwen/**", "**/.agents/**", "**/.agent/**", "**/.mcp.json", "**/mcp.json", "**/.cursor/**",
		"**/.cursorrules", "**/.windsurf/**", "**/.windsurfrules", "**/.aider*", "**/.clinerules*/**", "**/.roo/**", "**/.roomodes",
		"**/.roorules*", "**/.kilocode/**", "**/.kilocodemodes", "**/.kilocoderules*", "**/.kiro/**", "**/.junie/**", "**/.amazonq/**", "**/.opencode/**",
		"**/opencode.json", "**/opencode.jsonc", "**/.goosehints*", "**/.goose/**", "**/.continue/**", "**/.continuerules", "**/.trae/**", "**/.augment/**",
		"**/.augment-guidelines", "**/.rules", "**/.openhands/**", "**/.openhands_instructions", "**/.factory/**", "**/crush.json", "**/.crush.json",
		"**/.crush/**", "**/.warp/**", "**/.amp/**", "**/.grok/**", "**/.codebuddy/**", "**/.devin/**", "**/.jules/**", "**/.tabnine/**", "**/.cody/**",
		"**/.qodo/**", "**/.ruler/**", "replit.md",
	}},
	{"it says what reviewing bots look at", []string{
		"**/.coderabbit.y*ml", "**/.pr_agent.toml", "**/.greptile/**", "**/greptile.json", ".sourcery.y*ml", "/ellipsis.y*ml",
	}},
	{"it says what editors and shells run when they open the folder", []string{
		"**/.vscode/**", "**/*.code-workspace", "**/.idea/**", "**/.run/**", "**/.fleet/**", "**/.zed/**", "**/.nova/**", "**/.vs/**", "**/.helix/**",
		"**/*.sublime-project", "**/.vimrc", "**/.gvimrc", "**/.exrc", "**/.nvimrc", "**/.nvim.lua", "**/.lvimrc", "**/.dir-locals*.el",
		"**/.devcontainer/**", "**/.devcontainer.json", "**/.replit", "**/.envrc", "**/.autoenv*", "**/mise.toml", "**/mise.*.toml", "**/.mise.toml",
		"**/.mise.*.toml", "**/mise/config*.toml", "**/.mise/**", "**/.rtx*.toml", "**/.irbrc", "**/.pryrc", "**/.pdbrc*", "**/.Rprofile", "**/.Renviron",
		"**/.iex.exs", "**/.ghci", "**/.ocamlinit", "**/.psysh.php",
	}},
}

// unprotected are the exceptions among them that cannot do harm: git itself and
// editors only read them as lists of names.
var unprotected = []string{"**/.gitignore", "**/.gitkeep"}

// owned tells a refusal whose the path is.
func owned(err error, owners map[string]string) error {
	var p *workspace.ProtectedError
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
		return &workspace.ProtectedError{Path: name, Rule: name, Repository: true, Owner: owner}
	}
	for file, owner := range files {
		if strings.HasPrefix(file, name+"/") {
			return &workspace.ProtectedError{Path: file, Rule: file, Repository: true, Owner: owner}
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
			return &workspace.ProtectedError{Path: name, Rule: pattern, Repository: true}
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
				return &workspace.ProtectedError{Path: name, Rule: rule, Why: p.why}
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
