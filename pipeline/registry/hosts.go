package registry

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// A Go module's path begins with a host, which the proxy asks when it does not know the module:
// who may name any module may tell any host anything. So a change gets modules of hosts that
// its base has, that serve everybody's code, that the operator lists patterns for, or that a
// module fetched before requires something of.

// codeHosts serve everybody's code, or belong to projects that many modules need.
var codeHosts = []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "golang.org", "google.golang.org", "cloud.google.com",
	"gopkg.in", "go.uber.org", "go.opentelemetry.io", "k8s.io", "sigs.k8s.io", "modernc.org", "go.yaml.in"}

// Limit has a session ask for Go modules alone of hosts that some go.mod and go.sum files name,
// and of those that serve everybody's code.
func (s *Session) Limit(files [][]byte) {
	s.mu.Lock()
	s.hosts = map[string]bool{}
	for _, host := range codeHosts {
		s.hosts[host] = true
	}
	s.mu.Unlock()
	for _, file := range files {
		s.learn(bytes.NewReader(file))
	}
}

func (s *Session) limited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts != nil
}

// strange is the host of a module that a session may not ask for; "": it may.
func (s *Session) strange(k Kind, p string) string {
	name := strings.TrimPrefix(p, "/")
	if rest, ok := strings.CutPrefix(name, "sumdb/"); ok {
		if _, name, ok = strings.Cut(rest, "/lookup/"); !ok {
			return ""
		}
	}
	host, _, _ := strings.Cut(name, "/")
	s.mu.Lock()
	known := k != Go || s.hosts == nil || s.hosts[host]
	s.mu.Unlock()
	name, _, _ = strings.Cut(name, "@")
	if known || s.g.Lists(Go, strings.TrimSuffix(name, "/")) {
		return ""
	}
	return host
}

// learn takes the hosts of the modules that a go.mod or go.sum names.
func (s *Session) learn(mod io.Reader) {
	var hosts []string
	for lines := bufio.NewScanner(mod); lines.Scan(); {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require"))
		if len(f) > 1 && strings.HasPrefix(f[1], "v") {
			host, _, _ := strings.Cut(strings.Trim(f[0], `"`), "/")
			hosts = append(hosts, host)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, host := range hosts {
		s.hosts[host] = true
	}
}
