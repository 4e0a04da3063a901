package registry

import (
	"strings"
	"testing"
)

// Covers S9: what a registry's document says of an archive leads nowhere else than to
// an encrypted, public address, and only for a commit that it names.
func TestArchivesOfComposer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, url, asked, want string }{
		{"another commit", "UPSTREAM/zipball/aaa", "bbb", "no registry of the server has it"},
		{"not encrypted", "http://elsewhere.example/aaa", "aaa", "must be https"},
		{"a file", "file:///etc/passwd", "aaa", "must be https"},
		{"a password in it", "https://user:secret@elsewhere.example/aaa", "aaa", "must be https"},
		{"a private address", "https://10.0.0.1/aaa", "aaa", "is not a public address"},
		{"the metadata service", "https://169.254.169.254/aaa", "aaa", "is not a public address"},
		{"this machine", "https://127.0.0.1:1/aaa", "aaa", "is not a public address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUpstreams(t, map[string]string{
				"/packages.json":     everything["/packages.json"],
				"/meta/acme/it.json": `{"packages":{"acme/it":[{"version":"1.0.0","dist":{"url":"` + c.url + `","reference":"aaa"}}]}}`,
				"/zipball/aaa":       "archive",
			})
			_, s := open(t, u.options(t))
			status, body := get(t, s, Composer, "/-/dist/acme/it/"+c.asked)
			if status < 400 || !strings.Contains(body, c.want) || strings.Contains(body, "secret") {
				t.Errorf("%d %q, want %q", status, body, c.want)
			}
		})
	}
	for _, root := range []string{`{}`, `{"metadata-url":"/p2/fixed.json"}`, `{"metadata-url":"http://elsewhere.example/%package%.json"}`, `[`} {
		u := newUpstreams(t, map[string]string{"/packages.json": root})
		_, s := open(t, u.options(t))
		if status, body := get(t, s, Composer, "/p2/acme/log.json"); status != 502 || !strings.Contains(body, "packages.json") {
			t.Errorf("packages.json %s: %d %q", root, status, body)
		}
	}
}

func TestPackageOfPath(t *testing.T) { // S9: a package that belongs to one registry is asked nowhere else
	t.Parallel()
	for _, c := range []struct {
		kind       Kind
		path, want string
	}{
		{Gems, "/info/rake", "rake"},
		{Gems, "/gems/rake-13.0.6.gem", "rake"},
		{Gems, "/gems/acme-2fa-1.0.gem", "acme-2fa"},
		{Gems, "/gems/libv8-8.4.255.0-x86_64-darwin-20.gem", "libv8"},
		{Gems, "/gems/nokogiri-1.16.0.rc1-java.gem", "nokogiri"},
		{Gems, "/quick/Marshal.4.8/rack-test-2.1.0.gemspec.rz", "rack-test"},
		{Composer, "/p2/acme/log.json", "acme/log"},
		{Composer, "/p2/acme/log~dev.json", "acme/log"},
		{Composer, "/-/dist/acme/log/0a1b2c", "acme/log"},
		{Maven, "/org/acme/a/1.0/a-1.0.jar", "org/acme/a/1.0/a-1.0.jar"},
	} {
		if got := c.kind.pkg(c.path); got != c.want || !c.kind.valid(c.path) {
			t.Errorf("%s %s is of %q, want %q (valid: %v)", c.kind, c.path, got, c.want, c.kind.valid(c.path))
		}
	}
}
