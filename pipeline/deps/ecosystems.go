package deps

import (
	"cmp"
	_ "embed"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// goCompile compiles what is there, as tests and vet do, and runs none of it. Go
// would remove what it compiled a while ago, and mark what it uses by its time, for which an
// overlay copies it: both end with times that are yet to come.
const goCompile = `{ all=$(go list -m -f '{{.Dir}}/...'); for flags in ''FLAGS; do go vet $flags $all
go test -count=1 -exec=true -cover $flags $all || go test -count=1 -exec=true $flags $all; done
find "$GOCACHE" -type f -exec touch -t 203701010000 {} +; } >/dev/null 2>&1`

// goFlag is a flag by which Go compiles something else.
var goFlag = lazyregexp.New(`\s--?(?:race|msan|asan|trimpath|tags[ =]['"]?[\w.,-]+)`)

// goFlags are those flags of the commands of tests by which Go compiles something else.
func goFlags(commands []string) (out string) {
	for _, c := range commands {
		if flags := goFlag.FindAllString(c, -1); flags != nil && strings.Contains(c, "go test") {
			out += " '" + strings.NewReplacer("'", "", `"`, "").Replace(strings.Join(flags, "")) + "'"
		}
	}
	return out
}

// golang finds Go modules, those of a workspace as one. All share one module cache, and one
// cache of what is compiled. Without installing, what is compiled is kept all the same.
func (f *finder) golang(installs bool, tests []string) (out []*Project) {
	mods := func(base string) bool { return strings.HasPrefix(base, "go.") }
	add := func(dir, from string) {
		p := &Project{Manager: "go", Dir: dir, From: from, Inputs: f.inputs(dir, mods), use: []string{"GOCACHE=" + env + "/go-build"}}
		out = append(out, p)
		if f.host.Compile && f.host.Tools["go"] != "" {
			p.ahead = strings.Replace(goCompile, "FLAGS", goFlags(tests), 1)
		}
		if !installs || f.in(dir, "vendor/modules.txt") {
			return
		}
		p.Lacks = f.lacks("go", "go", "install Go")
		p.steps = []string{"go mod download", "find " + env + "/go/cache/download -name '*.zip' -delete"} // their content is there
		p.use = append(p.use, "GOMODCACHE="+env+"/go")
		if from == "go.mod" && !strings.Contains(f.textOf(dir, "go.mod"), "require") {
			p.steps = nil // a change may need something
		}
		if from == "go.mod" {
			// Without "tidy": a base that is not tidy would get changes that nobody asked for.
			p.more = []string{"go list -mod=mod -deps -test ./... >/dev/null && go mod download"}
			p.locks = []string{"go.mod", "go.sum"}
			p.check = "go list -deps -test ./... >/dev/null"
		} else {
			p.more, p.locks = p.steps[:1], []string{"go.work.sum"}
		}
	}
	spaces := f.topmost("go.work")
	for _, dir := range spaces {
		add(dir, "go.work")
	}
	for _, dir := range f.dirs("go.mod") {
		if !slices.ContainsFunc(spaces, func(space string) bool { return below(dir, space) }) {
			add(dir, "go.mod")
		}
	}
	return out
}

// nodePackage is what of a package.json decides what is installed.
type nodePackage struct {
	PackageManager string            `json:"packageManager"`
	Workspaces     any               `json:"workspaces"`
	Dependencies   map[string]string `json:"dependencies"`
	Dev            map[string]string `json:"devDependencies"`
	Optional       map[string]string `json:"optionalDependencies"`
	Peer           map[string]string `json:"peerDependencies"`
}

// nodeLocks are the lock files of Node's package managers, the one that counts first.
var nodeLocks = []struct{ file, manager string }{
	{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"npm-shrinkwrap.json", "npm"}, {"package-lock.json", "npm"},
}

// node finds Node packages: those with a lock file, and those with none above them, of whose
// workspaces they would be.
func (f *finder) node() (out []*Project) {
	for _, dir := range f.dirs("package.json") {
		if f.in(dir, ".pnp.cjs") {
			continue
		}
		lock, manager := "", "npm"
		for _, l := range nodeLocks {
			if f.in(dir, l.file) {
				lock, manager = l.file, l.manager
				break
			}
		}
		inside := slices.ContainsFunc(out, func(p *Project) bool { return below(dir, p.Dir) })
		var pkg nodePackage
		err := untrusted.JSON(f.text[path.Join(dir, "package.json")], &pkg)
		needs := len(pkg.Dependencies)+len(pkg.Dev)+len(pkg.Optional)+len(pkg.Peer) > 0 || pkg.Workspaces != nil || f.in(dir, "pnpm-workspace.yaml")
		if inside && (lock == "" || beside(dir)) || err == nil && !needs {
			continue
		}
		p := &Project{Manager: manager, Dir: dir, From: path.Join(dir, cmp.Or(lock, "package.json")), Lacks: f.lacks("npm", "npm", "install Node.js with npm"),
			Inputs: f.inputs(dir, func(base string) bool {
				return strings.Contains(base, "package") || strings.HasSuffix(base, "rc") || strings.HasPrefix(base, "pnpm") || strings.Contains(base, "yarn") || strings.HasSuffix(base, ".patch")
			})}
		if err != nil {
			p.Lacks = "package.json cannot be read: " + err.Error()
		}
		f.nodeSteps(p, lock, &pkg)
		out = append(out, p)
	}
	return out
}

// publicHosts are npm's, as lock files name them.
const publicHosts = `s#https?://registry\.(npmjs\.org|yarnpkg\.com)/#$FORGE_REGISTRY_NPM/#g`

// nodeSteps are the commands that install. Managers other than npm are installed by it, in the
// version that the repository names.
func (f *finder) nodeSteps(p *Project, lock string, pkg *nodePackage) {
	back := "sed -i \"s#$FORGE_REGISTRY_NPM/#https://registry.npmjs.org/#g\" " + lock
	p.locks = []string{lock}
	manager, version, _ := strings.Cut(pkg.PackageManager, "@")
	version, _, _ = strings.Cut(version, "+") // a checksum
	if manager != p.Manager || !versionText.MatchString(version) {
		version = ""
	}
	get := func(name string) string {
		p.use = append(p.use, "PATH="+env+"/npm/bin")
		return "npm install --global --silent --prefix " + env + "/npm " + name
	}
	switch {
	case p.Manager == "pnpm":
		first := get("pnpm@" + cmp.Or(version, pnpmFor(f.textOf(p.Dir, lock))))
		install := "pnpm install --store-dir " + env + "/pnpm --package-import-method copy "
		p.use = append(p.use, "npm_config_manage_package_manager_versions=false")
		p.steps = []string{first, install + "--frozen-lockfile || " + install + "--frozen-lockfile --ignore-scripts"}
		p.more = []string{install + "--no-frozen-lockfile --ignore-pnpmfile --ignore-scripts"}
	case p.Manager == "yarn" && strings.Contains(f.textOf(p.Dir, lock), "__metadata:"):
		name := "@yarnpkg/cli-dist@" + cmp.Or(version, "4")
		if strings.Contains(f.textOf(p.Dir, ".yarnrc.yml"), "yarnPath:") {
			name = "yarn@1" // which becomes the one that the repository has
		}
		p.steps = []string{get(name), "yarn install --immutable || YARN_ENABLE_SCRIPTS=0 yarn install --immutable"}
		p.more = []string{"YARN_ENABLE_SCRIPTS=0 YARN_IGNORE_PATH=1 yarn install --no-immutable"}
	case p.Manager == "yarn":
		to := `sed -i -E "` + publicHosts + `" yarn.lock`
		install := "YARN_REGISTRY=$FORGE_REGISTRY_NPM yarn install --non-interactive --cache-folder " + env + "/yarn "
		p.steps = []string{get("yarn@" + cmp.Or(version, "1")), "cp yarn.lock " + env + "/yarn.lock && " + to,
			install + "--frozen-lockfile || " + install + "--frozen-lockfile --ignore-scripts", "mv " + env + "/yarn.lock yarn.lock"}
		p.more = []string{to, install + "--ignore-scripts", `sed -i "s#$FORGE_REGISTRY_NPM/#https://registry.yarnpkg.com/#g" yarn.lock`}
	case lock != "":
		// The last one, which says what is wrong, asks other hosts by their own names.
		p.steps = []string{"npm ci >/dev/null 2>&1 || npm ci --ignore-scripts >/dev/null 2>&1 || npm_config_replace_registry_host=npmjs npm ci --ignore-scripts"}
		p.more = []string{"npm install --ignore-scripts", back}
	default:
		p.steps = []string{"npm install --no-package-lock || npm install --no-package-lock --ignore-scripts"}
		p.more, p.locks = []string{"npm install --no-package-lock --ignore-scripts"}, nil
	}
	if f.host.Scripts {
		for i := range p.more {
			p.more[i] = strings.ReplaceAll(strings.ReplaceAll(p.more[i], " --ignore-scripts", ""), "YARN_ENABLE_SCRIPTS=0 ", "")
		}
	}
}

var versionText = lazyregexp.New(`^\d+(?:\.\d+){0,2}(?:-[\w.]+)?$`)

// pnpmFor is the newest version of pnpm that writes a lock file as that one is.
func pnpmFor(lock string) string {
	for line := range strings.Lines(lock[:min(len(lock), 200)]) {
		if v, ok := strings.CutPrefix(line, "lockfileVersion:"); ok {
			switch v = strings.Trim(strings.TrimSpace(v), `'"`); {
			case strings.HasPrefix(v, "5"):
				return "7"
			case strings.HasPrefix(v, "6"):
				return "8"
			}
		}
	}
	return "9"
}

//go:embed python.py
var pythonScript string

//go:embed python.sh
var pythonSteps string

// python finds Python projects. They share one virtual environment.
func (f *finder) python() (out []*Project) {
	files := []string{"pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt", "manage.py"}
	for _, dir := range f.topmost(files...) {
		p := &Project{Manager: "pip", Dir: dir, Inputs: f.inputs(dir, func(base string) bool {
			return strings.HasPrefix(base, "py") || strings.HasPrefix(base, "setup.") || strings.HasSuffix(base, ".lock") || strings.Contains(base, "requirements") ||
				strings.HasPrefix(base, "constraints") || base == "tox.ini" || base == "Pipfile" || strings.HasSuffix(base, ".in") || strings.HasSuffix(base, ".txt")
		}), Lacks: f.lacks("pip", "pypi", "apt-get install python3-pip python3-venv"), stage: map[string]string{"forge/python.py": pythonScript, "forge/python.sh": pythonSteps},
			steps: []string{"sh " + env + "/forge/python.sh"}, more: []string{"sh " + env + "/forge/python.sh names"},
			use: []string{"PATH=" + env + "/venv/bin:" + path.Join(workspace.TreePath, dir, ".venv/bin")}} // its own commands make it there
		for _, name := range append([]string{"uv.lock"}, files...) {
			if f.in(dir, name) {
				p.From = path.Join(dir, name)
				break
			}
		}
		if f.host.Scripts {
			p.more = []string{"sh " + env + "/forge/python.sh"}
		}
		out = append(out, p)
	}
	return out
}

// cargo finds Rust packages and workspaces.
func (f *finder) cargo() (out []*Project) {
	for _, dir := range f.topmost("Cargo.toml") {
		p := &Project{Manager: "cargo", Dir: dir, From: path.Join(dir, "Cargo.toml"), Lacks: f.lacks("cargo", "cargo", "install Rust"),
			Inputs: f.inputs(dir, func(base string) bool { return strings.HasPrefix(base, "Cargo.") || strings.HasPrefix(base, "rust-") }),
			stage: map[string]string{"cargo/config.toml": "[source.crates-io]\nreplace-with = \"gateway\"\n\n[source.gateway]\nregistry = \"sparse+" +
				f.host.Registry["cargo"] + "/\"\n"},
			steps: []string{"[ -f Cargo.lock ] || cargo generate-lockfile", "cargo fetch", "cargo test --no-run --offline >/dev/null 2>&1 || true"},
			more:  []string{"cargo fetch"}, use: []string{"CARGO_HOME=" + env + "/cargo", "CARGO_NET_OFFLINE=true"}}
		if f.in(dir, "Cargo.lock") {
			p.locks = []string{"Cargo.lock"}
		}
		out = append(out, p)
	}
	return out
}

// mavenSettings lead all that Maven asks for to the gateway.
func mavenSettings(registry string) string {
	return "<settings><mirrors><mirror><id>forge</id><mirrorOf>*</mirrorOf><url>" + registry + "</url></mirror></mirrors></settings>\n"
}

//go:embed maven.sh
var mavenSteps string

// maven finds Maven's outermost builds.
func (f *finder) maven() (out []*Project) {
	for _, dir := range f.topmost("pom.xml") {
		out = append(out, &Project{Manager: "maven", Dir: dir, From: path.Join(dir, "pom.xml"), Lacks: f.lacks("mvn", "maven", "install Maven"),
			Inputs: f.inputs(dir, func(base string) bool {
				return base == "pom.xml" || strings.HasPrefix(base, "maven") || base == "extensions.xml"
			}),
			stage: map[string]string{".m2/settings.xml": mavenSettings(f.host.Registry["maven"]), "forge/maven.sh": mavenSteps,
				"forge/empty.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>forge</groupId><artifactId>forge</artifactId><version>1</version></project>\n"},
			steps: []string{"sh " + env + "/forge/maven.sh"},
			use:   []string{"MAVEN_OPTS=-Duser.home=" + env, "PATH=" + env + "/maven/bin"}})
		if f.host.Scripts {
			p := out[len(out)-1]
			p.more = p.steps
		}
	}
	return out
}

//go:embed init.gradle
var gradleInit string

// gradle finds Gradle's outermost builds.
func (f *finder) gradle() (out []*Project) {
	names := []string{"settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"}
	for _, dir := range f.topmost(names...) {
		p := &Project{Manager: "gradle", Dir: dir, Inputs: f.inputs(dir, func(base string) bool {
			return strings.Contains(base, "gradle") || base == "libs.versions.toml"
		}), stage: map[string]string{".gradle/init.d/forge.gradle": strings.ReplaceAll(gradleInit, "GATEWAY", f.host.Registry["maven"])},
			use: []string{"GRADLE_USER_HOME=" + env + "/.gradle", "JAVA_OPTS=-Duser.home=" + env}}
		for _, name := range names {
			if f.in(dir, name) {
				p.From = path.Join(dir, name)
				break
			}
		}
		p.Lacks = f.lacks("gradle", "maven", "install Gradle: the wrapper's own distribution is on no registry")
		p.steps = []string{"gradle --no-daemon --console=plain --continue test || gradle --no-daemon --console=plain testClasses"}
		if f.host.Scripts {
			p.more = p.steps
		}
		out = append(out, p)
	}
	return out
}

// ruby finds projects with a Gemfile.
func (f *finder) ruby() (out []*Project) {
	for _, dir := range f.topmost("Gemfile") {
		p := &Project{Manager: "bundler", Dir: dir, From: path.Join(dir, "Gemfile"), Lacks: f.lacks("bundle", "rubygems", "install Ruby with Bundler"),
			Inputs: f.inputs(dir, func(base string) bool {
				return strings.HasPrefix(base, "Gemfile") || strings.HasSuffix(base, ".gemspec")
			}),
			steps: []string{"bundle install"}, use: []string{"BUNDLE_PATH=" + env + "/bundle", "BUNDLE_APP_CONFIG=" + env + "/.bundle", "BUNDLE_DISABLE_VERSION_CHECK=true"}}
		if f.host.Scripts { // a Gemfile is a program
			p.more = p.steps
			if f.in(dir, "Gemfile.lock") {
				p.locks = []string{"Gemfile.lock"}
			}
		}
		out = append(out, p)
	}
	return out
}

// composerPinned has Composer install the versions of its lock file from the gateway, where
// the lock file names addresses that are not reached.
const composerPinned = `cp composer.json ` + env + `/composer.json; if [ -f composer.lock ]; then cp composer.lock ` + env + `/composer.lock
php -r '$l=json_decode(file_get_contents("composer.lock"),true);$m=json_decode(file_get_contents("composer.json"),true);
foreach(["packages"=>"require","packages-dev"=>"require-dev"] as $k=>$r)foreach($l[$k]??[] as $p)$m[$r][$p["name"]]=$p["version"];
file_put_contents("composer.json",json_encode($m));' && rm composer.lock; fi`

// php finds projects with a composer.json that need packages.
func (f *finder) php() (out []*Project) {
	for _, dir := range f.topmost("composer.json") {
		if !strings.Contains(f.textOf(dir, "composer.json"), "require") || f.in(dir, "vendor/autoload.php") {
			continue
		}
		out = append(out, &Project{Manager: "composer", Dir: dir, From: path.Join(dir, "composer.json"), Lacks: f.lacks("composer", "composer", "install PHP with Composer"),
			Inputs: f.inputs(dir, func(base string) bool { return strings.HasPrefix(base, "composer.") }),
			stage: map[string]string{"composer/config.json": `{"config":{"secure-http":false},"repositories":[{"type":"composer","url":"` + f.host.Registry["composer"] +
				`"},{"packagist.org":false}]}`},
			steps: []string{composerPinned, "composer update --no-interaction --no-progress --prefer-dist || composer update --no-interaction --no-progress --prefer-dist --no-scripts",
				"mv " + env + "/composer.json . ; if [ -f " + env + "/composer.lock ]; then mv " + env + "/composer.lock .; fi"},
			use: []string{"COMPOSER_HOME=" + env + "/composer"}})
	}
	return out
}
