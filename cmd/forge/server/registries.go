package server

import (
	"archive/zip"
	"context"
	"encoding/json"
	"encoding/xml"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"forge/pipeline/registry"
	"forge/pipeline/sandbox"
)

// hostTool asks one of the server's own tools; see sandbox.HostTool.
type hostTool func(ctx context.Context, name string, args ...string) string

func (o Options) hostTool() hostTool {
	if o.HostTool == nil {
		return sandbox.HostTool
	}
	return o.HostTool
}

// newRegistries returns what opens the gateway to package registries, and names Go's
// checksum database, when they are first needed: asking the server's own tools takes
// a while.
func newRegistries(o Options) func(context.Context) (*registry.Gateway, string, error) {
	var mu sync.Mutex
	var gateway *registry.Gateway
	var sumDB string
	ask := o.hostTool()
	return func(ctx context.Context) (*registry.Gateway, string, error) {
		mu.Lock()
		defer mu.Unlock()
		if gateway != nil {
			return gateway, sumDB, nil
		}
		var list []registry.Registry
		for _, r := range o.Config.Registries {
			one := registry.Registry{Kind: registry.Kind(r.Kind), URL: r.URL, Match: r.Match, Private: r.Private}
			if r.Token.Set() {
				one.Authorization = "Bearer " + r.Token.Reveal()
			}
			list = append(list, one)
		}
		for _, r := range ownRegistries(ctx, ask) {
			if !slices.ContainsFunc(list, func(l registry.Registry) bool { return l.Kind == r.Kind && len(l.Match) == 0 }) {
				o.Log.Info("packages come from what the server's own tools are configured with", "kind", r.Kind, "registry", r.URL)
				list = append(list, r)
			}
		}
		for _, r := range registry.Defaults() {
			if !slices.ContainsFunc(list, func(l registry.Registry) bool { return l.Kind == r.Kind && len(l.Match) == 0 }) {
				list = append(list, r)
			}
		}
		made, err := registry.New(registry.Options{Dir: filepath.Join(o.Config.StateDir, "registries"), Registries: list, Log: o.Log})
		if err != nil {
			return nil, "", err
		}
		gateway, sumDB = made, ask(ctx, "go", "env", "GOSUMDB")
		return gateway, sumDB, nil
	}
}

// ownRegistries are those that the server's tools are configured with.
func ownRegistries(ctx context.Context, ask hostTool) []registry.Registry {
	var out []registry.Registry
	add := func(k registry.Kind, url string) {
		if strings.HasPrefix(url, "https://") && !strings.Contains(url, "@") { // one with a password is listed by hand
			out = append(out, registry.Registry{Kind: k, URL: strings.TrimSpace(url)})
		}
	}
	for url := range strings.FieldsFuncSeq(ask(ctx, "go", "env", "GOPROXY"), func(r rune) bool { return r == ',' || r == '|' }) {
		add(registry.Go, url)
	}
	add(registry.NPM, ask(ctx, "npm", "config", "get", "registry"))
	index := ask(ctx, "python3", "-m", "pip", "config", "get", "global.index-url")
	if index == "" {
		index = ask(ctx, "python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")
	}
	add(registry.PyPI, index)
	for url := range strings.FieldsSeq(ask(ctx, "ruby", "-e", "puts Gem.sources.to_a")) {
		add(registry.Gems, strings.TrimSuffix(url, "/"))
	}
	var repositories map[string]struct{ Type, URL string }
	if json.Unmarshal([]byte(ask(ctx, "composer", "config", "--global", "--no-plugins", "repositories")), &repositories) == nil {
		for _, name := range slices.Sorted(maps.Keys(repositories)) {
			if r := repositories[name]; r.Type == "composer" {
				add(registry.Composer, r.URL)
			}
		}
	}
	add(registry.Maven, mavenRegistry(ctx, ask))
	return out
}

// mirrorsCentral reports whether a mirror of Maven's settings stands for the central registry.
func mirrorsCentral(of string) bool {
	names := strings.FieldsFunc(of, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	return !slices.Contains(names, "!central") &&
		slices.ContainsFunc(names, func(n string) bool { return n == "*" || n == "external:*" || n == "central" })
}

// mavenRegistry is the mirror of the server's own Maven, else the registry that Maven itself names.
func mavenRegistry(ctx context.Context, ask hostTool) string {
	_, home, ok := strings.Cut(ask(ctx, "mvn", "-v"), "Maven home: ")
	if !ok {
		return ""
	}
	home, _, _ = strings.Cut(home, "\n")
	own, _ := os.UserHomeDir()
	for _, name := range []string{filepath.Join(own, ".m2", "settings.xml"), filepath.Join(home, "conf", "settings.xml")} {
		var settings struct {
			Mirrors []struct {
				Of  string `xml:"mirrorOf"`
				URL string `xml:"url"`
			} `xml:"mirrors>mirror"`
		}
		text, err := os.ReadFile(name)
		if err != nil || xml.Unmarshal(text, &settings) != nil {
			continue
		}
		for _, m := range settings.Mirrors {
			if mirrorsCentral(m.Of) {
				return strings.TrimSuffix(strings.TrimSpace(m.URL), "/")
			}
		}
	}
	jars, _ := filepath.Glob(filepath.Join(home, "lib", "maven-model-builder-*.jar"))
	for _, name := range jars {
		jar, err := zip.OpenReader(name)
		if err != nil {
			continue
		}
		defer jar.Close()
		var super struct {
			URLs []string `xml:"repositories>repository>url"`
		}
		if text, err := fs.ReadFile(jar, "org/apache/maven/model/pom-4.0.0.xml"); err == nil && xml.Unmarshal(text, &super) == nil && len(super.URLs) > 0 {
			return super.URLs[0]
		}
	}
	return ""
}
