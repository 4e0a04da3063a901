package settings

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Subscriber is a program that is told of events.
type Subscriber struct {
	Name    string
	Kind    string // "slack", a chat, or "": a program that takes CloudEvents
	URL     Secret
	Secrets Secret   // a line each
	Types   []string // globs of types; none: all
	Repos   []string // globs of OWNER/NAME; none: all
	Private bool     // its address may be one that is not public
}

// subscriberFile is a subscriber in forge.yml.
type subscriberFile struct {
	Kind       string   `json:"kind"`
	URLFile    string   `json:"url_file"`
	SecretFile string   `json:"secret_file"`
	Types      []string `json:"types"`
	Repos      []string `json:"repos"`
	Private    bool     `json:"private"`
}

// subscribers takes the subscribers, and reads their secrets.
func (l *loader) subscribers() {
	for _, name := range slices.Sorted(maps.Keys(l.file.Subscribers)) {
		f := l.file.Subscribers[name]
		key := "subscribers." + name
		s := Subscriber{Name: name, Kind: f.Kind, Types: f.Types, Repos: f.Repos, Private: f.Private}
		signs := f.Kind != "slack"
		if f.URLFile == "" || signs && f.SecretFile == "" {
			l.problem("%s needs url_file, which holds the address, and secret_file, which holds the secret that signs; a chat needs none", key)
			continue
		}
		s.URL = l.secret(key+".url_file", "", f.URLFile)
		if signs {
			s.Secrets = l.secret(key+".secret_file", "", f.SecretFile)
		}
		u, err := url.Parse(s.URL.Reveal())
		switch {
		case !s.URL.Set() || signs && !s.Secrets.Set(): // said already
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			l.problem("%s.url_file must hold an address such as https://ci.example.com/forge", key)
		case u.Scheme == "http" && !f.Private:
			l.problem("%s.url_file must hold an https address, or set `private: true`", key)
		}
		lines := strings.Fields(s.Secrets.Reveal())
		if len(lines) > 2 || slices.ContainsFunc(lines, func(line string) bool { return len(line) < 16 }) {
			l.problem("%s.secret_file must hold one secret of at least 16 characters, or two on a line each: make one with openssl rand -hex 32", key)
		}
		l.config.Subscribers = append(l.config.Subscribers, s)
	}
}
