package registry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// upstreams is a registry of every kind, on this machine.
type upstreams struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
	files map[string]string
	serve http.HandlerFunc // in the files' place
}

func newUpstreams(t *testing.T, files map[string]string) *upstreams {
	t.Helper()
	u := &upstreams{files: files}
	u.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.asked = append(u.asked, r)
		serve := u.serve
		u.mu.Unlock()
		if serve != nil {
			serve(w, r)
			return
		}
		text, ok := u.files[r.URL.EscapedPath()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		switch {
		case strings.HasPrefix(text, "{"):
			w.Header().Set("Content-Type", "application/json")
		case strings.HasPrefix(text, "<"):
			w.Header().Set("Content-Type", "text/html")
		}
		io.WriteString(w, strings.ReplaceAll(text, "UPSTREAM", u.URL))
	}))
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(u.Close)
	return u
}

func (u *upstreams) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.asked)
}

// options list the server as a private registry for every kind.
func (u *upstreams) options(t *testing.T) Options {
	t.Helper()
	o := Options{Dir: t.TempDir(), Transport: u.trust}
	for _, k := range Kinds() {
		o.Registries = append(o.Registries, Registry{Kind: k, URL: u.URL, Private: true})
	}
	return o
}

func (u *upstreams) trust(t *http.Transport) {
	t.TLSClientConfig = u.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	t.TLSClientConfig.RootCAs.AddCert(u.Certificate())
}

func open(t *testing.T, o Options) (*Gateway, *Session) {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	g.pause = 0
	s, err := g.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); g.Close() })
	return g, s
}

// raw sends bytes to a kind's socket, and returns the answer.
func raw(t *testing.T, s *Session, k Kind, request string) (int, string) {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(s.Dir(), k.SocketFile()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c)
	head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	if len(head) < 12 {
		return 0, head
	}
	status, _ := strconv.Atoi(head[9:12])
	return status, body
}

func get(t *testing.T, s *Session, k Kind, path string, header ...string) (int, string) {
	t.Helper()
	return raw(t, s, k, "GET "+path+" HTTP/1.0\r\nHost: "+strings.TrimPrefix(k.URL(), "http://")+"\r\n"+strings.Join(append(header, ""), "\r\n")+"\r\n")
}

var everything = map[string]string{
	"/example.com/m/@v/list":                     "v1.0.0\n",
	"/example.com/m/@v/v1.0.0.zip":               "zip",
	"/left":                                      `{"name":"left","description":"\"tarball\":\"x\"","dist":{"tarball":"UPSTREAM/left/-/left-1.0.0.tgz"},"other":{"tarball": "UPSTREAM/elsewhere/left.tgz"}}`,
	"/left/-/left-1.0.0.tgz":                     "left",
	"/elsewhere/left.tgz":                        "other left",
	"/@acme%2ftool":                              `{"name":"@acme/tool"}`,
	"/simple/right/":                             `<a href="../../files/right-1.0-py3-none-any.whl#sha256=abc" data-dist-info-metadata="true">right</a>`,
	"/files/right-1.0-py3-none-any.whl":          "wheel",
	"/files/right-1.0-py3-none-any.whl.metadata": "Name: right",
	"/config.json":                               `{"dl":"UPSTREAM/crates/{lowerprefix}/{crate}-{version}.crate","api":"UPSTREAM"}`,
	"/se/rd/serde":                               "{}",
	"/crates/se/rd/serde-1.0.0.crate":            "crate",
	"/org/acme/a/1.0/a-1.0.jar":                  "jar",
	"/gems/rake-13.0.gem":                        "gem",
	"/info/rake":                                 "---\n13.0 |",
	"/packages.json":                             `{"packages":[],"metadata-url":"/meta/%package%.json","notify-batch":"UPSTREAM/downloads/"}`,
	"/meta/acme/log.json": `{"minified":"composer/2.0","packages":{"acme/log":[{"name":"acme/log","version":"1.1.0","notification-url":"UPSTREAM/n",
"dist":{"type":"zip","url":"UPSTREAM/zipball/bbb","reference":"bbb","mirrors":[{"url":"UPSTREAM/m"}]}},{"version":"1.0.0","dist":{"type":"zip","url":"UPSTREAM/zipball/aaa","reference":"aaa"}}]}}`,
	"/meta/acme/log~dev.json": `{"packages":{"acme/log":[{"version":"dev-main","dist":{"type":"zip","url":"UPSTREAM/zipball/ddd","reference":"ddd"}}]}}`,
	"/zipball/aaa":            "archive aaa",
	"/zipball/ddd":            "archive ddd",
}

func TestEveryKindIsServed(t *testing.T) { // D1
	t.Parallel()
	u := newUpstreams(t, everything)
	_, s := open(t, u.options(t))
	for _, c := range []struct {
		kind       Kind
		path, want string
	}{
		{Go, "/example.com/m/@v/list", "v1.0.0\n"},
		{Go, "/example.com/m/@v/v1.0.0.zip", "zip"},
		{NPM, "/left", "http://127.0.0.1:4802/left/-/left-1.0.0.tgz"},
		{NPM, "/left", `"description":"\"tarball\":\"x\""`},
		{NPM, "/left/-/left-1.0.0.tgz", "left"},
		{NPM, "/@acme%2ftool", "@acme/tool"},
		{PyPI, "/simple/right/", `href="http://127.0.0.1:4803/-/file/`},
		{Cargo, "/config.json", `{"dl":"http://127.0.0.1:4804/-/crates/{crate}/{version}"}`},
		{Cargo, "/se/rd/serde", "{}"},
		{Cargo, "/-/crates/serde/1.0.0", "crate"},
		{Maven, "/org/acme/a/1.0/a-1.0.jar", "jar"},
		{Gems, "/gems/rake-13.0.gem", "gem"},
		{Gems, "/info/rake", "13.0"},
		{Composer, "/packages.json", `{"packages":[],"metadata-url":"/p2/%package%.json"}`},
		{Composer, "/p2/acme/log.json", `"url":"http://127.0.0.1:4807/-/dist/acme/log/bbb"`},
		{Composer, "/-/dist/acme/log/aaa", "archive aaa"},
		{Composer, "/-/dist/acme/log/ddd", "archive ddd"},
	} {
		status, body := get(t, s, c.kind, c.path)
		if status != 200 || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %q, want %q in it", c.kind, c.path, status, body, c.want)
		}
	}
	// Files that documents name are reached by the key, with what stands beside them.
	for _, c := range []struct {
		kind                    Kind
		doc, mark, suffix, want string
	}{
		{PyPI, "/simple/right/", `href="`, "", "wheel"},
		{PyPI, "/simple/right/", `href="`, ".metadata", "Name: right"},
		{NPM, "/left", `"tarball": "`, "", "other left"},
	} {
		_, body := get(t, s, c.kind, c.doc)
		_, rest, _ := strings.Cut(body, c.mark)
		own := rest[:strings.IndexAny(rest, `"#`)]
		path := strings.TrimPrefix(own, c.kind.URL())
		if status, got := get(t, s, c.kind, path+c.suffix); status != 200 || got != c.want {
			t.Errorf("%s names %s: %d %q, want %q", c.doc, own, status, got, c.want)
		}
	}
	if r := s.Report(); len(r.Refused)+len(r.Failed)+len(r.Absent) != 0 {
		t.Errorf("report: %+v", r)
	}
}

func TestNothingIsAskedTwice(t *testing.T) { // D1
	t.Parallel()
	u := newUpstreams(t, everything)
	o := u.options(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o.Now = func() time.Time { return now }
	_, s := open(t, o)
	ask := func() {
		t.Helper()
		for k, p := range map[Kind]string{Go: "/example.com/m/@v/v1.0.0.zip", NPM: "/left", Gems: "/info/absent"} {
			get(t, s, k, p)
		}
	}
	ask()
	ask()
	if n := u.count(); n != 3 {
		t.Errorf("%d requests for 3 things asked for twice", n)
	}
	if r := s.Report(); len(r.By) != 3 || r.Asked != 3 || !strings.Contains(r.Fetched(), "go 1 request, 3 bytes") || strings.Count(r.Fetched(), " 1 request, ") != 3 {
		t.Errorf("fetched %q, report %+v", r.Fetched(), r)
	}
	now = now.Add(time.Hour) // the list and the absent one are old now, the module is not
	ask()
	if n := u.count(); n != 5 {
		t.Errorf("%d requests after an hour, want 5", n)
	}
	// A second server on the same directory has them, too; an unreachable registry is
	// answered for.
	s.Close()
	u.Close()
	_, s = open(t, o)
	now = now.Add(time.Hour)
	if status, body := get(t, s, NPM, "/left"); status != 200 || !strings.Contains(body, "left-1.0.0.tgz") {
		t.Errorf("the registry is away: %d %q", status, body)
	}
	if r := s.Report(); r.Bytes != 0 {
		t.Errorf("%d bytes were read from a registry that is away", r.Bytes)
	}
}

func TestFilesAreAskedOnceAtATime(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, everything)
	release := make(chan struct{})
	u.serve = func(w http.ResponseWriter, _ *http.Request) {
		<-release
		io.WriteString(w, "zip")
	}
	_, s := open(t, u.options(t))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, body := get(t, s, Go, "/example.com/m/@v/v1.0.0.zip"); status != 200 || body != "zip" {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	for s.Report().Requests < 20 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	all.Wait()
	if n := u.count(); n != 1 {
		t.Errorf("%d requests for one file", n)
	}
}

// attack is a request that must not reach a registry.
type attack struct {
	kind    Kind
	request string // \n stands for the line's end; HOST for the right host
}

func (a attack) send(t *testing.T, s *Session) (int, string) {
	host := strings.TrimPrefix(a.kind.URL(), "http://")
	return raw(t, s, a.kind, strings.NewReplacer("\n", "\r\n", "HOST", host).Replace(a.request))
}

func paths(k Kind, list ...string) []attack {
	var out []attack
	for _, p := range list {
		out = append(out, attack{k, "GET " + p + " HTTP/1.0\nHost: HOST\n\n"})
	}
	return out
}

func TestAttacksOnTheGateway(t *testing.T) { // D1, S9
	t.Parallel()
	const ok = "/left"
	attacks := []attack{
		// Not reading.
		{NPM, "POST " + ok + " HTTP/1.0\nHost: HOST\nContent-Length: 0\n\n"},
		{NPM, "PUT /left HTTP/1.0\nHost: HOST\nContent-Length: 4\n\nevil"},
		{NPM, "DELETE /left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "PATCH /left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "OPTIONS * HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "TRACE /left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "PROPFIND /left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "get /left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "POST /-/npm/v1/security/audits/quick HTTP/1.0\nHost: HOST\nContent-Length: 2\n\n{}"},
		{Gems, "POST /api/v1/gems HTTP/1.0\nHost: HOST\nContent-Length: 2\n\n{}"},
		{Cargo, "PUT /api/v1/crates/new HTTP/1.0\nHost: HOST\nContent-Length: 2\n\n{}"},
		// Somebody else's address.
		{NPM, "CONNECT evil.example:443 HTTP/1.1\nHost: evil.example:443\nConnection: close\n\n"},
		{NPM, "CONNECT 169.254.169.254:80 HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "GET http://evil.example/left HTTP/1.0\nHost: evil.example\n\n"},
		{NPM, "GET http://evil.example/left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "GET https://HOST/left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "GET //evil.example/left HTTP/1.0\nHost: HOST\n\n"},
		{NPM, "GET /left HTTP/1.0\nHost: evil.example\n\n"},
		{NPM, "GET /left HTTP/1.0\nHost: 127.0.0.1:80\n\n"},
		{NPM, "GET /left HTTP/1.0\n\n"},
		{NPM, "GET /left HTTP/1.0\nHost: user:secret@HOST\n\n"},
		// What a reader does not send.
		{NPM, "GET /left HTTP/1.1\nHost: HOST\nContent-Length: 6\nConnection: close\n\nsecret"},
		{NPM, "GET /left HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked\nConnection: close\n\n6\nsecret\n0\n\n"},
		{NPM, "GET /left HTTP/1.1\nHost: HOST\nContent-Length: 3\nTransfer-Encoding: chunked\nConnection: close\n\n0\n\n"},
		{NPM, "GET /left HTTP/1.0\nHost: HOST\nX: " + strings.Repeat("a", 40<<10) + "\n\n"},
	}
	attacks = append(attacks, paths(NPM, "/left?d=secret", "/left?", "/?x", "/left#x", "/left%3Fd=secret", "/left/../../etc", "/../left",
		"/./left", "/left/..", "/left/%2e%2e/x",
		"/%2e%2e", "/left%00", "/left%0d%0aX:1", "/left\\x", "/left//x", "/", "/-/whoami", "/-/v1/search", "/-/user/token", "/-/npm/v1/tokens",
		"/-/package/left/dist-tags",
		"/left/-/../../x.tgz", "/left/-/x.tgz/..", "/left/-/.tgz", "/@acme%2f..%2fx", "/@acme%252ftool", "/-/file/zz/x", "/-/file/"+strings.Repeat("0", 32)+"/../x",
		"/-/file/"+strings.Repeat("0", 31)+"/x", "/"+strings.Repeat("a", 2000))...)
	attacks = append(attacks, paths(Go, "/example.com/m/@v/../../x", "/example.com/m", "/example.com/m/@v/v1.0.0.exe", "/example.com/m/@v/",
		"/example.com/m/@v/list?x=1",
		"/EXAMPLE.com/../@v/list", "/sumdb/sum.example/../../x", "/sumdb/sum.example/upload", "/cached-only/../x")...)
	attacks = append(attacks, paths(PyPI, "/legacy/", "/simple/../x", "/pypi", "/simple/a/b/c", "/files/right-1.0-py3-none-any.whl", "/simple/right/?d=1")...)
	attacks = append(attacks, paths(Cargo, "/api/v1/crates?q=x", "/api/v1/crates/serde/1.0.0/download", "/-/crates/../x", "/-/crates/serde/1.0.0/x", "/me")...)
	attacks = append(attacks, paths(Maven, "/x", "/org/../../x", "/org/.hidden", "/org/a/", "/org/a;x=1", "/org/a%2f..")...)
	attacks = append(attacks, paths(Gems, "/api/v1/dependencies?gems=x", "/api/v1/gems", "/gems/../x.gem", "/info/a/b")...)
	attacks = append(attacks, paths(Composer, "/", "/zipball/aaa", "/p2/acme.json", "/p2/../packages.json", "/p2/acme/../../x.json", "/p2/Acme/log.json", "/p2/acme/log.json?x=1",
		"/downloads/", "/search.json", "/-/dist/acme/log", "/-/dist/acme/log/../x", "/-/dist/acme/log/a/b", "/-/dist/acme/log/.x", "/-/dist/acme/log/%2e%2e",
		"/-/dist/acme/http:%2f%2fevil.example/aaa", "/-/file/"+strings.Repeat("0", 32)+"/x")...)
	if len(attacks) < 60 {
		t.Fatalf("%d attacks", len(attacks))
	}

	u := newUpstreams(t, everything)
	o := u.options(t)
	o.Limits.Requests = 10_000
	_, s := open(t, o)
	for _, a := range attacks {
		status, body := a.send(t, s)
		if status < 400 || status >= 500 {
			t.Errorf("%s %.80q: %d %.80q", a.kind, a.request, status, body)
		}
	}
	if n := u.count(); n != 0 {
		t.Errorf("%d attacks of %d reached a registry: %s", n, len(attacks), u.asked[0].RequestURI)
	}
	if r := s.Report(); r.Requests != 0 || len(r.Refused) != maxListed {
		t.Errorf("report: %d requests, %d refused listed", r.Requests, len(r.Refused))
	}
}

func TestNothingOfTheClientIsHandedOn(t *testing.T) { // S9
	t.Parallel()
	u := newUpstreams(t, everything)
	o := u.options(t)
	o.Registries[1].Authorization = "Bearer operators"
	_, s := open(t, o)
	get(t, s, NPM, "/left", "Authorization: Bearer stolen", "Cookie: a=stolen", "User-Agent: stolen", "X-Secret: stolen", "Referer: stolen",
		"Accept: application/stolen", "Range: bytes=0-1")
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.asked) != 1 {
		t.Fatalf("%d requests", len(u.asked))
	}
	for name, values := range u.asked[0].Header {
		if strings.Contains(strings.Join(values, " "), "stolen") || name == "Cookie" || name == "Range" {
			t.Errorf("%s: %v was handed on", name, values)
		}
	}
	if got := u.asked[0].Header.Get("Authorization"); got != "Bearer operators" {
		t.Errorf("Authorization %q", got)
	}
}

// The operator's credentials for a registry reach its own host alone: neither where its
// documents say that a file lies, nor where it redirects to, and never back to who asked.
// Both hosts are one name with two ports, which net/http takes for the same.
func TestCredentialsStayWithTheirHost(t *testing.T) { // S9
	t.Parallel()
	const key = "Bearer operators"
	other := newUpstreams(t, map[string]string{"/elsewhere/left.tgz": "left", "/moved": "moved"})
	u := newUpstreams(t, map[string]string{"/left": `{"dist":{"tarball":"` + other.URL + `/elsewhere/left.tgz"}}`})
	o := u.options(t)
	for i := range o.Registries {
		o.Registries[i].Authorization = key
	}
	o.Transport = func(tr *http.Transport) {
		u.trust(tr)
		tr.TLSClientConfig.RootCAs.AddCert(other.Certificate())
		tr.DialContext = (&net.Dialer{}).DialContext // both are on this machine
	}
	_, s := open(t, o)

	_, document := get(t, s, NPM, "/left")
	_, rest, _ := strings.Cut(document, NPM.URL())
	path, _, _ := strings.Cut(rest, `"`)
	if status, body := get(t, s, NPM, path); status != http.StatusOK || body != "left" {
		t.Fatalf("the file on the other host: %d %q", status, body)
	}
	u.mu.Lock()
	u.serve = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/moved", http.StatusFound)
	}
	u.mu.Unlock()
	status, body := get(t, s, NPM, "/right", "Authorization: Bearer stolen")
	if status != http.StatusOK || body != "moved" {
		t.Fatalf("what was moved: %d %q", status, body)
	}
	if u.count() != 2 || other.count() != 2 {
		t.Fatalf("%d and %d requests, want 2 of each", u.count(), other.count())
	}
	for _, r := range u.asked {
		if got := r.Header.Get("Authorization"); got != key {
			t.Errorf("%s: its own host got %q", r.URL, got)
		}
	}
	for _, r := range other.asked {
		if got := r.Header.Values("Authorization"); len(got) > 0 {
			t.Errorf("%s: the other host got %q", r.URL, got)
		}
	}
	for name, said := range map[string]string{"the document": document, "the answer": body} {
		if strings.Contains(said, "operators") {
			t.Errorf("%s shows the credentials: %s", name, said)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) { // D1, S9
	t.Parallel()
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		want  string
	}{
		{"too big, said", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3000")
			w.Write(make([]byte, 3000))
		}, "over the limit"},
		{"too big, not said", func(w http.ResponseWriter, _ *http.Request) {
			for range 30 {
				w.Write(make([]byte, 100))
				w.(http.Flusher).Flush()
			}
		}, "more than 1000 bytes"},
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb)
		}, ""},
		{"slow", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "deadline"},
		{"headers without end", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "header"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			w.Write([]byte("x"))
		}, "EOF"},
		{"moved in a circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirections"},
		{"moved to plain http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/left", http.StatusFound)
		}, "not encrypted"},
		{"moved to a file", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "not encrypted"},
		{"moved to loopback", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/left", http.StatusFound)
		}, "not a public address"},
		{"moved to metadata", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/latest/meta-data/", http.StatusFound)
		}, "not a public address"},
		{"moved inside", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://[::ffff:10.0.0.1]/", http.StatusFound)
		}, "not a public address"},
		{"error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUpstreams(t, nil)
			u.serve = c.serve
			o := u.options(t)
			o.Limits = Limits{FileBytes: 1000, DocumentBytes: 1000, Fetch: time.Minute}
			if c.want == "deadline" {
				o.Limits.Fetch = 50 * time.Millisecond
			}
			_, s := open(t, o)
			for _, p := range []string{"/left/-/left-1.0.0.tgz", "/left"} {
				status, body := get(t, s, NPM, p)
				if status != http.StatusBadGateway || !strings.Contains(body, c.want) {
					t.Errorf("%s: %d %.200q, want %q in it", p, status, body, c.want)
				}
			}
		})
	}
}

// bomb is a megabyte of zeros, in gzip.
var bomb = func() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(make([]byte, 1<<20))
	w.Close()
	return b.Bytes()
}()

func TestSessionIsBounded(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, everything)
	o := u.options(t)
	o.Limits.Requests = 2
	g, s := open(t, o)
	for i, want := range []int{200, 200, 429} {
		if status, _ := get(t, s, NPM, "/left"); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	g.limits.Requests, g.limits.SessionBytes = 100, 3
	other, err := g.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for i, want := range []int{200, 429} {
		if status, _ := get(t, other, Go, "/example.com/m/@v/v1.0.0.zip"); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
}

// names is a DNS server that answers a name's questions one after the other, and
// repeats the last answer.
func names(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		n := 0
		for buf := make([]byte, 1500); ; {
			size, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				ip := net.ParseIP(answers[min(n, len(answers)-1)]).To4()
				n++
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body: &dnsmessage.AResource{A: [4]byte(ip)}}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = c.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

func TestNamesThatLeadInside(t *testing.T) { // S9: rebinding
	t.Parallel()
	for _, answers := range [][]string{{"127.0.0.1"}, {"10.1.2.3"}, {"169.254.169.254"}, {"100.100.100.200"}, {"192.168.0.1"}, {"0.0.0.0"}} {
		u := newUpstreams(t, everything)
		_, port, _ := net.SplitHostPort(u.Listener.Addr().String())
		o := u.options(t)
		o.Resolver = names(t, answers...)
		o.Registries = []Registry{{Kind: NPM, URL: "https://registry.test:" + port}}
		_, s := open(t, o)
		status, body := get(t, s, NPM, "/left")
		if status != http.StatusBadGateway || !strings.Contains(body, "not a public address") {
			t.Errorf("%v: %d %q", answers, status, body)
		}
		if u.count() != 0 {
			t.Errorf("%v: the server inside was reached", answers)
		}
	}
}

func TestFilesOfOthersStayGuarded(t *testing.T) {
	t.Parallel()
	// A private registry's documents name a file on another host inside.
	inside := newUpstreams(t, map[string]string{"/secret/left.tgz": "secret"})
	u := newUpstreams(t, map[string]string{"/left": `{"dist":{"tarball":"` + inside.URL + `/secret/left.tgz"}}`})
	_, s := open(t, u.options(t))
	_, body := get(t, s, NPM, "/left")
	_, rest, _ := strings.Cut(body, NPM.URL())
	path, _, _ := strings.Cut(rest, `"`)
	status, answer := get(t, s, NPM, path)
	if status != http.StatusBadGateway || inside.count() != 0 {
		t.Errorf("%s: %d %q, %d requests inside", path, status, answer, inside.count())
	}
	for _, text := range []string{"http://plain.example/x.tgz", "ftp://x.example/x.tgz", "https://user:pass@x.example/x.tgz", "javascript:x",
		"https://x.example/"} {
		u.files["/bad"] = `{"dist":{"tarball":"` + text + `"}}`
		u.files["/bad"+fmt.Sprint(len(text))] = u.files["/bad"]
		if _, body := get(t, s, NPM, "/bad"+fmt.Sprint(len(text))); !strings.Contains(body, "/-/refused") {
			t.Errorf("%s became %s", text, body)
		}
	}
}

func TestPackagesOfTheirOwnRegistry(t *testing.T) {
	t.Parallel()
	all := newUpstreams(t, map[string]string{"/@acme%2ftool": "public", "/left": "public", "/git.acme.dev/x/y/@v/list": "public"})
	own := newUpstreams(t, map[string]string{"/git.acme.dev/x/y/@v/list": "own"})
	o := all.options(t)
	o.Transport = func(tr *http.Transport) {
		all.trust(tr)
		tr.TLSClientConfig.RootCAs.AddCert(own.Certificate())
	}
	o.Registries = append(o.Registries, Registry{Kind: NPM, URL: own.URL, Match: []string{"@acme"}, Private: true},
		Registry{Kind: Go, URL: own.URL, Match: []string{"git.acme.dev/*"}, Private: true})
	_, s := open(t, o)
	// What belongs to the own registry is never asked elsewhere, also when it is not there.
	if status, body := get(t, s, NPM, "/@acme%2ftool"); status != 404 {
		t.Errorf("@acme/tool: %d %q", status, body)
	}
	if status, body := get(t, s, Go, "/git.acme.dev/x/y/@v/list"); status != 200 || body != "own" {
		t.Errorf("git.acme.dev/x/y: %d %q", status, body)
	}
	if status, _ := get(t, s, NPM, "/left"); status != 200 {
		t.Errorf("left: %d", status)
	}
	if all.count() != 1 {
		t.Errorf("the registry for all was asked %d times", all.count())
	}
}

func TestChangedContentIsNotServed(t *testing.T) { // S9: a poisoned cache
	t.Parallel()
	u := newUpstreams(t, everything)
	o := u.options(t)
	_, s := open(t, o)
	get(t, s, Go, "/example.com/m/@v/v1.0.0.zip")
	var changed int
	err := filepath.WalkDir(filepath.Join(o.Dir, "sha256"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			changed++
			err = os.WriteFile(path, []byte("bad"), 0o600)
		}
		return err
	})
	if err != nil || changed != 1 {
		t.Fatal(changed, err)
	}
	if status, body := get(t, s, Go, "/example.com/m/@v/v1.0.0.zip"); status != http.StatusBadGateway || strings.Contains(body, "bad\n") {
		t.Errorf("%d %q", status, body)
	}
	if status, body := get(t, s, Go, "/example.com/m/@v/v1.0.0.zip"); status != 200 || body != "zip" {
		t.Errorf("asked again: %d %q", status, body)
	}
	info, err := os.Stat(o.Dir)
	if err != nil || info.Mode().Perm()&0o077 != 0 && filepath.Base(o.Dir) != "001" {
		t.Errorf("the cache's mode is %v, %v", info.Mode(), err)
	}
}

func TestCacheIsPruned(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, map[string]string{"/a.b/c/@v/v1.zip": strings.Repeat("1", 600), "/a.b/c/@v/v2.zip": strings.Repeat("2", 600)})
	o := u.options(t)
	_, s := open(t, o)
	get(t, s, Go, "/a.b/c/@v/v1.zip")
	old := time.Now().Add(-time.Hour)
	_ = filepath.WalkDir(filepath.Join(o.Dir, "sha256"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return os.Chtimes(path, old, old)
		}
		return err
	})
	get(t, s, Go, "/a.b/c/@v/v2.zip")
	s.Close()
	o.Limits.CacheBytes = 1000
	_, s = open(t, o)
	before := u.count()
	get(t, s, Go, "/a.b/c/@v/v2.zip")
	if u.count() != before {
		t.Error("the newer file was removed")
	}
	if status, _ := get(t, s, Go, "/a.b/c/@v/v1.zip"); status != 200 || u.count() != before+1 {
		t.Errorf("the older file: %d, asked %d times", status, u.count()-before)
	}
}

// A server that runs for long keeps its cache within the limit, and forgets what nobody
// asks for.
func TestCacheIsPrunedMeanwhile(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, map[string]string{"/a.b/c/@v/v1.zip": strings.Repeat("1", 600), "/a.b/c/@v/v2.zip": strings.Repeat("2", 600),
		"/left": `{"dist":{"tarball":"https://files.example/left.tgz"}}`})
	o := u.options(t)
	now := time.Now()
	o.Limits.CacheBytes, o.Now = 1000, func() time.Time { return now }
	g, s := open(t, o)
	files := func(kind string) (n int) {
		_ = filepath.WalkDir(filepath.Join(o.Dir, kind), func(_ string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				n++
			}
			return nil
		})
		return n
	}
	for _, path := range []string{"/a.b/c/@v/v1.zip", "/a.b/c/@v/v2.zip"} {
		if status, _ := get(t, s, Go, path); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	get(t, s, NPM, "/left")
	for _, step := range []struct {
		after              time.Duration
		contents           int
		addresses, renamed bool
	}{{time.Hour, 3, true, true}, {7 * time.Hour, 2, true, true}, {61 * 24 * time.Hour, 2, false, false}} {
		now = time.Now().Add(step.after)
		later, err := g.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		later.Close()
		if n := files("sha256"); n > step.contents || (files("address") > 0) != step.addresses || (files("file") > 0) != step.renamed {
			t.Errorf("after %s: %d contents, %d addresses, %d names", step.after, n, files("address"), files("file"))
		}
	}
}

func TestBadRegistries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		registry Registry
		want     string
	}{
		{Registry{Kind: "apt", URL: "https://x.example"}, "unknown kind"},
		{Registry{Kind: NPM, URL: "http://x.example"}, "https"},
		{Registry{Kind: NPM, URL: "https://u:secret@x.example"}, "token_file"},
		{Registry{Kind: NPM, URL: "x.example"}, "https://HOST/PATH"},
		{Registry{Kind: NPM, URL: "https://x.example?a=b"}, "https://HOST/PATH"},
		{Registry{Kind: NPM, URL: "https://x.example", Match: []string{"["}}, "match"},
		{Registry{Kind: NPM, URL: "https://u:secret@x.example:port"}, "cannot be read"},
	} {
		_, err := New(Options{Dir: t.TempDir(), Registries: []Registry{c.registry}})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q in it", c.registry, err, c.want)
		}
	}
}

// What a killed process left is removed by the next; what somebody listens at is not.
func TestSessionsOfKilledProcesses(t *testing.T) {
	t.Parallel()
	_, alive := open(t, newUpstreams(t, everything).options(t))
	var left [2]string // of killed processes
	for i := range left {
		dir, err := os.MkdirTemp("", sessionPrefix)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		left[i] = dir
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, NPM.SocketFile()), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	dead, young := left[0], left[1]
	old := time.Now().Add(-2 * time.Hour)
	for _, dir := range []string{dead, alive.Dir()} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	sweepSessions()
	for dir, want := range map[string]bool{dead: false, young: true, alive.Dir(): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", dir, err, want)
		}
	}
	if status, _ := get(t, alive, NPM, "/left"); status != http.StatusOK {
		t.Errorf("the session that is alive: %d", status)
	}
}

func TestClosedSessionIsGone(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, everything)
	_, s := open(t, u.options(t))
	c, err := net.Dial("unix", filepath.Join(s.Dir(), NPM.SocketFile()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Close()
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "GET /left HTTP/1.0\r\nHost: 127.0.0.1:4802\r\n\r\n")
	if body, _ := io.ReadAll(c); len(body) > 0 {
		t.Errorf("a connection outlived its session: %q", body)
	}
}

// Covers S7: a change gets Go modules of hosts that its base has, that serve everybody's code,
// that the operator lists, and that a module fetched before needs; no other host is told anything.
func TestGoHosts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		fmt.Fprint(w, "module m\n\nrequire (\n\tneeded.example/left v1.0.0 // indirect\n)\nrequire alone.example v1.2.3\n")
	}))
	defer web.Close()
	_, s := open(t, Options{Dir: t.TempDir(), Registries: []Registry{{Kind: Go, URL: web.URL, Private: true},
		{Kind: Go, URL: web.URL, Private: true, Match: []string{"go.acme.dev/*"}}}})
	get := func(path string) int {
		status, _ := raw(t, s, Go, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1:4801\r\nConnection: close\r\n\r\n")
		return status
	}
	const mod = "/@v/v1.0.0.mod"
	if status := get("/any.example/x" + mod); status != http.StatusOK {
		t.Errorf("the base is answered %d", status)
	}
	s.Limit([][]byte{[]byte("own.example/x v1.0.0 h1:abc\nown.example/x v1.0.0/go.mod h1:abc\n")})
	for _, path := range []string{"/secret.attacker.example/x" + mod, "/sumdb/sum.golang.org/lookup/secret.attacker.example/x@v1.0.0", "/needed.example/left" + mod} {
		if status := get(path); status != http.StatusForbidden {
			t.Errorf("%s is answered %d", path, status)
		}
	}
	for _, path := range []string{"/own.example/x" + mod, "/go.acme.dev/tools/x" + mod, "/sumdb/sum.golang.org/latest", "/github.com/a/b" + mod,
		"/needed.example/left" + mod, "/alone.example" + mod, "/sumdb/sum.golang.org/lookup/needed.example/left@v1.0.0"} {
		if status := get(path); status != http.StatusOK {
			t.Errorf("%s is answered %d", path, status)
		}
	}
	if why := s.Report().Refused; len(why) != 3 || !strings.Contains(why[0].Why, "match: [") {
		t.Errorf("%+v", why)
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(asked, func(path string) bool { return strings.Contains(path, "attacker") }) {
		t.Errorf("asked for %q", asked)
	}
}
