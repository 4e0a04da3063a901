package registry

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// Kind is what clients a registry serves.
type Kind string

// The kinds, by the names that settings have for them.
const (
	Go       Kind = "go"
	NPM      Kind = "npm"
	PyPI     Kind = "pypi"
	Cargo    Kind = "cargo"
	Maven    Kind = "maven"
	Gems     Kind = "rubygems"
	Composer Kind = "composer"
)

// firstPort is the first kind's on the sandbox's loopback; the others follow it.
const firstPort = 4801

// Kinds are all of them. The order decides ports, which clients keep in lock files
// and caches: new ones go to the end.
func Kinds() []Kind { return []Kind{Go, NPM, PyPI, Cargo, Maven, Gems, Composer} }

// Defaults are the ecosystems' own registries, which packages come from where nothing else is said.
func Defaults() []Registry {
	return []Registry{{Kind: Go, URL: "https://proxy.golang.org"}, {Kind: NPM, URL: "https://registry.npmjs.org"}, {Kind: PyPI, URL: "https://pypi.org/simple"},
		{Kind: Cargo, URL: "https://index.crates.io"}, {Kind: Maven, URL: "https://repo.maven.apache.org/maven2"}, {Kind: Gems, URL: "https://rubygems.org"},
		{Kind: Composer, URL: "https://repo.packagist.org"}}
}

// Port is where a sandbox's bridge listens for a kind's clients.
func (k Kind) Port() int { return firstPort + slices.Index(Kinds(), k) }

// URL is a kind's registry as clients in a sandbox know it, without a slash at the end.
func (k Kind) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", k.Port()) }

// otherFile is the path of a file that a registry's document names with an address
// outside of the registry: the gateway knows the address, the client only a key.
const otherFile = `/-/file/[0-9a-f]{32}/[A-Za-z0-9][A-Za-z0-9._+!~-]*`

// name of npm packages, old ones with capitals included.
const npmName = `(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*(?:/|%2[fF]))?[A-Za-z0-9~_][A-Za-z0-9._~-]*`

// shape is what a kind's paths look like. What is immutable never changes once it
// is published, so that the cache answers for good.
type shape struct {
	allowed   *lazyregexp.Regexp
	immutable *lazyregexp.Regexp
	accept    []string // media types that a client may ask for; the first is the default when it is asked for
}

var shapes = map[Kind]shape{
	Go: {
		allowed: match(`/[a-z0-9.~_!-]+(?:/[A-Za-z0-9.~_!-]+)*/(?:@latest|@v/(?:list|[A-Za-z0-9.!+_-]+\.(?:info|mod|zip)))`,
			`/sumdb/[a-z0-9.-]+/(?:supported|latest|lookup/[A-Za-z0-9.~_!/+-]+@[A-Za-z0-9.!+_-]+|tile/[0-9x/.p]+|tile/[0-9]+/data/[0-9x/.p]+)`),
		immutable: match(`/.*/@v/v[^/]*\.(?:info|mod|zip)`, `/sumdb/.*/(?:lookup|tile)/.*`),
	},
	NPM: {
		allowed:   match(`/`+npmName+`(?:/[0-9A-Za-z.+-]+)?`, `/`+npmName+`/-/(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._+~-]*\.tgz`, otherFile),
		immutable: match(`/.*\.tgz`),
		accept:    []string{"application/vnd.npm.install-v1+json", "application/json"},
	},
	PyPI: {
		allowed:   match(`/simple/`, `/simple/[A-Za-z0-9][A-Za-z0-9._-]*/?`, otherFile),
		immutable: match(`/-/file/.*`),
		accept:    []string{"application/vnd.pypi.simple.v1+json", "text/html"},
	},
	Cargo: {
		allowed:   match(`/config\.json`, `/(?:[12]|3/[a-z0-9_-]|[a-z0-9_-]{2}/[a-z0-9_-]{2})/[a-z0-9_-]+`, `/-/crates/[A-Za-z0-9_-]+/[0-9A-Za-z.+-]+`),
		immutable: match(`/-/crates/.*`),
	},
	Maven: {
		allowed:   match(`/(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)+[A-Za-z0-9_-][A-Za-z0-9._+~-]*`),
		immutable: match(`/.*\.(?:jar|pom|war|aar|zip|module)(?:\.sha1|\.sha256|\.sha512|\.md5)?`),
	},
	Gems: {
		allowed: match(`/(?:versions|names|(?:latest_|prerelease_)?specs\.4\.8\.gz)`, `/info/[A-Za-z0-9._-]+`,
			`/quick/Marshal\.4\.8/[A-Za-z0-9._-]+\.gemspec\.rz`, `/gems/[A-Za-z0-9._-]+\.gem`),
		immutable: match(`/gems/.*`, `/quick/.*`),
	},
	Composer: {
		allowed:   match(`/packages\.json`, `/p2/`+composerName+`(?:~dev)?\.json`, distPath+composerName+`/[A-Za-z0-9][A-Za-z0-9._-]*`),
		immutable: match(distPath + `.*`),
	},
}

func match(patterns ...string) *lazyregexp.Regexp {
	return lazyregexp.New(`^(?:` + strings.Join(patterns, "|") + `)$`)
}

// valid reports whether a path, as it stands in the request line, is one that a
// registry of this kind has. A directory that leads upward is not, nor any escape
// but npm's of the slash in a scope.
func (k Kind) valid(path string) bool {
	if len(path) > 1024 || slices.Contains(strings.Split(path, "/"), "..") || slices.Contains(strings.Split(path, "/"), ".") {
		return false
	}
	return shapes[k].allowed.MatchString(path)
}

// immutable reports whether what a path names never changes. A snapshot does.
func (k Kind) immutable(path string) bool {
	return shapes[k].immutable.MatchString(path) && !(k == Maven && strings.Contains(path, "-SNAPSHOT"))
}

// gemFile is the path of one gem's file, and the gem's name in it.
var gemFile = lazyregexp.New(`^(?:gems|quick/Marshal\.4\.8)/(.+?)-\d[0-9A-Za-z.]*(?:-(?:java|jruby|dalvik|mswin|mingw|x64|x86|aarch64|arm|universal|ppc|powerpc|s390|riscv|i\d86)[\w.-]*)?\.(?:gem|gemspec\.rz)$`)

// pkg is the package that a path is about, as the operator's patterns name it.
func (k Kind) pkg(path string) string {
	path = strings.TrimPrefix(path, "/")
	switch k {
	case Go:
		name, _, _ := strings.Cut(path, "/@")
		return name
	case NPM:
		path = strings.Replace(strings.Replace(path, "%2f", "/", 1), "%2F", "/", 1)
		parts := strings.SplitN(path, "/", 3)
		if strings.HasPrefix(path, "@") && len(parts) > 1 {
			return parts[0] + "/" + parts[1]
		}
		return parts[0]
	case PyPI:
		return strings.Trim(strings.TrimPrefix(path, "simple/"), "/")
	case Cargo:
		if rest, ok := strings.CutPrefix(path, "-/crates/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			return name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	case Gems:
		if m := gemFile.FindStringSubmatch(path); m != nil {
			return m[1]
		}
		return strings.TrimPrefix(path, "info/")
	case Composer:
		if rest, ok := strings.CutPrefix(path, strings.TrimPrefix(distPath, "/")); ok {
			return rest[:strings.LastIndexByte(rest, '/')]
		}
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(path, "p2/"), ".json"), "~dev")
	}
	return path
}
