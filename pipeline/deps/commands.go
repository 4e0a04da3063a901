package deps

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Commands are those of a repository's settings that prepare its tests. They are the
// base commit's, and so are the files that they see, inputs aside.
type Commands struct {
	Key    string   // the same where nothing has changed that decides what they leave
	Runs   []string // files that they run, as far as their words name them
	Inputs []string // files that are those of the commit under test

	set config.Setup
	env []string
}

// Basis is what commands are found on.
type Basis struct {
	Files     []string                                        // of the base commit
	Read      func(paths []string) (map[string][]byte, error) // of the base commit; what is not there is left out
	Tested    func(paths []string) (map[string][]byte, error) // of the commit under test
	Installed string                                          // key of what is installed without them; "": nothing
	Host      Host                                            //
}

// lockFile are names of files that pin what is installed, of managers that [Find] does
// not know.
var lockFile = lazyregexp.New(`^(?:Gemfile(?:\.lock)?|[\w.-]+\.gemspec|composer\.(?:json|lock)|pom\.xml|` +
	`(?:build|settings)\.gradle(?:\.kts)?|gradle\.lockfile|libs\.versions\.toml|mix\.(?:exs|lock)|Package\.(?:swift|resolved)|` +
	`packages\.lock\.json|[\w.-]+\.(?:cs|fs)proj|bun\.lockb?|deno\.lock|conan\.lock|environment\.ya?ml|flake\.lock|` +
	`\.tool-versions|\.?mise\.toml|\.nvmrc)$`)

// Caps on the files that commands are followed into.
const (
	maxFollowed     = 200
	maxFollowedText = 256 << 10
)

// FindCommands reads what decides what commands leave.
func FindCommands(set config.Setup, b Basis) (*Commands, error) {
	c := &Commands{set: set, Inputs: slices.Sorted(slices.Values(set.Inputs)), env: commandEnv(b.Host)}
	texts, err := b.follow(set.Commands)
	if err != nil {
		return nil, err
	}
	c.Runs = slices.Sorted(maps.Keys(texts))
	locks, err := b.Read(slices.DeleteFunc(slices.Clone(b.Files), func(name string) bool {
		return foreign(name) || !manifest.MatchString(path.Base(name)) && !lockFile.MatchString(path.Base(name))
	}))
	if err != nil {
		return nil, fmt.Errorf("read lock files: %w", err)
	}
	maps.Copy(texts, locks)
	tested, err := b.Tested(c.Inputs)
	if err != nil {
		return nil, fmt.Errorf("read the inputs of setup: %w", err)
	}
	for _, name := range c.Inputs {
		delete(texts, name)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "setup %s %v %v %q %q %q\n", format, b.Host.Scripts, set.Instead, set.Commands, set.Cache, b.Installed)
	for _, tool := range slices.Sorted(maps.Keys(b.Host.Tools)) {
		fmt.Fprintf(sum, "%s %q\n", tool, b.Host.Tools[tool])
	}
	for i, files := range []map[string][]byte{texts, tested} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(sum, "%d %q %d\n%s", i, name, len(files[name]), files[name])
		}
	}
	c.Key = "setup-" + hex.EncodeToString(sum.Sum(nil)[:16])
	return c, nil
}

// word is what may be a path in a command or a script.
var word = lazyregexp.New(`[A-Za-z0-9_@.][A-Za-z0-9_@.+/-]*`)

// named are files that a program reads without being told.
var named = map[string][]string{
	"make": {"Makefile", "makefile", "GNUmakefile"}, "just": {"justfile", "Justfile"}, "rake": {"Rakefile"}, "tox": {"tox.ini"},
	"task": {"Taskfile.yml", "Taskfile.yaml"}, "cmake": {"CMakeLists.txt"}, "buf": {"buf.gen.yaml", "buf.yaml"},
}

// follow finds the files of the base that commands name, and those that these name.
func (b *Basis) follow(commands []string) (map[string][]byte, error) {
	has := map[string]bool{}
	in := map[string][]string{} // files directly in a directory
	for _, name := range b.Files {
		has[name] = true
		in[path.Dir(name)] = append(in[path.Dir(name)], name)
	}
	all := map[string][]byte{}
	type script struct{ dir, text string }
	next := []script{{".", strings.Join(commands, "\n")}}
	for len(next) > 0 && len(all) < maxFollowed {
		var found []string
		add := func(name string) {
			if _, known := all[name]; has[name] && !known && len(all)+len(found) < maxFollowed && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		for _, s := range next {
			for _, w := range word.FindAllString(s.text, -1) {
				w = strings.TrimRight(w, "./")
				for _, dir := range []string{".", s.dir} {
					add(path.Join(dir, w))
					for _, name := range named[w] {
						add(path.Join(dir, name))
					}
				}
				if strings.Contains(w, "/") { // a directory, as in go run ./cmd/generate
					for _, name := range in[path.Clean(w)] {
						add(name)
					}
				}
			}
		}
		texts, err := b.Read(found)
		if err != nil {
			return nil, fmt.Errorf("read what setup runs: %w", err)
		}
		next = nil
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			all[name] = texts[name]
			if len(texts[name]) <= maxFollowedText {
				next = append(next, script{path.Dir(name), string(texts[name])})
			}
		}
	}
	return all, nil
}

// commandEnv tells clients where the registries are. The names with FORGE in them are
// for those whose clients have no variable of their own.
func commandEnv(h Host) []string {
	env := []string{"TMPDIR=/scratch", "PIP_CACHE_DIR=/scratch/pip", "npm_config_cache=/scratch/npm",
		"GOFLAGS=-modcacherw -buildvcs=false", "GOSUMDB=" + cmp.Or(h.SumDB, "off"),
		"npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1"}
	for _, kind := range slices.Sorted(maps.Keys(h.Registry)) {
		url := h.Registry[kind]
		env = append(env, "FORGE_REGISTRY_"+strings.ToUpper(kind)+"="+url)
		switch kind {
		case "go":
			env = append(env, "GOPROXY="+url)
		case "npm":
			env = append(env, "npm_config_registry="+url+"/", "YARN_REGISTRY="+url, "COREPACK_NPM_REGISTRY="+url, "npm_config_replace_registry_host=always")
		case "rubygems":
			env = append(env, "BUNDLE_MIRROR__ALL="+url)
		case "pypi":
			env = append(env, "PIP_INDEX_URL="+url+"/simple/", "UV_DEFAULT_INDEX="+url+"/simple/")
		}
	}
	if !h.Scripts {
		env = append(env, "npm_config_ignore_scripts=true", "PIP_ONLY_BINARY=:all:")
	}
	return env
}

// Keep takes what commands left out of the work tree. It returns directories, and what
// is not kept.
type Keep func(ctx context.Context, named []string) (mounts []Mount, left []string, err error)

// Make runs the commands. One that fails ends it: then nothing is kept, and the tree
// says why. The error is for what is no fault of the repository.
func (c *Commands) Make(ctx context.Context, run func(context.Context, workspace.Command) (workspace.Result, error), keep Keep) (*Tree, error) {
	tree := &Tree{Ran: len(c.set.Commands)}
	for i, command := range c.set.Commands {
		r, err := run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", command}, Env: c.env, Timeout: c.set.Timeout()})
		if err != nil {
			return nil, fmt.Errorf("setup.commands[%d]: %w", i, err)
		}
		tree.Seconds += r.Duration.Round(10 * time.Millisecond).Seconds()
		if r.Exit != 0 {
			tree.Failed = []Failure{{Project: fmt.Sprintf("setup.commands[%d]", i), Why: c.why(command, r)}}
			return tree, nil
		}
	}
	var err error
	if tree.Mounts, tree.Left, err = keep(ctx, c.set.Cache); err != nil {
		var fault *pipeline.Fault
		if errors.As(err, &fault) || ctx.Err() != nil {
			return nil, err
		}
		tree.Mounts = nil
		tree.Failed = []Failure{{Project: "setup", Why: err.Error()}}
	}
	return tree, nil
}

var (
	notFound = lazyregexp.New(`(?m)(?:^|\s)(?:\S*sh: (?:\d+: |line \d+: )?|env: [‘'"]?|make(?:\[\d+\])?: |exec: "?)` +
		`([\w.+-]+)["’']?(?:: (?:command )?not found|: No such file or directory|: executable file not found)`)
	offline = lazyregexp.New(`(?i)could not resolve|name resolution|network is unreachable|EAI_AGAIN|ENOTFOUND|` +
		`name or service not known|no such host|ENETUNREACH`)
)

// why says how a command ended, with its last lines, and how to put it right.
func (c *Commands) why(command string, r workspace.Result) string {
	said := strings.TrimSpace(string(r.Stderr))
	if said == "" {
		said = strings.TrimSpace(string(r.Stdout))
	}
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	last := strings.Join(lines[max(0, len(lines)-6):], "\n")
	if len(last) > 800 {
		last = "…" + last[len(last)-800:]
	}
	end := fmt.Sprintf("ended with %d", r.Exit)
	fix := "Run it in a clean checkout of the base branch, then correct it in .github/forge.yml there."
	switch r.Class {
	case "":
	case "timeout":
		end = fmt.Sprintf("was ended after %s", r.Duration.Round(time.Second))
		fix = "Give it longer by setup.timeout_minutes, as far as the server's tests.timeout_minutes allows, or split it."
	default:
		end = "was ended: " + r.Class
		fix = "It is held to the sandbox's limits of memory, processes, output and disk, as tests are: let it do less."
	}
	if m := notFound.FindStringSubmatch(said); m != nil && (r.Exit == 127 || r.Exit == 126 || r.Exit == 2 || r.Exit == 1) {
		fix = fmt.Sprintf("It needs %s on the server: install it there for all users, under /usr or in a directory of the server's `toolchains`.", m[1])
	} else if offline.MatchString(said) {
		fix = "It reaches the server's registries alone, at the addresses in $FORGE_REGISTRY_GO, _NPM, _PYPI, _CARGO, _MAVEN, " +
			"_RUBYGEMS and _COMPOSER, and nothing else of the network: take it from there, or commit it."
	}
	return strings.ToValidUTF8(fmt.Sprintf("`%s` %s: %s\n%s", strings.ReplaceAll(text.Clip(text.FirstLine(command), 80), "`", "'"), end, last, fix), "�")
}
