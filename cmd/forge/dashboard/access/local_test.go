package access

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"forge/pipeline"
)

const testKey = "the-key-of-the-pages"

const bearer = "Authorization: Bearer " + testKey

func localTestAccess(t *testing.T) *testAccess {
	return newTestAccess(t, func(o *Options) {
		*o = Options{Mode: Local, User: pipeline.Actor{Login: "ann"}, Key: testKey, KeyFile: "/state/dashboard.key", Clock: o.Clock}
	})
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{
		{"this machine", []string{"Host: localhost:8080"}, 200},
		{"by its number", []string{"Host: 127.0.0.1:8080"}, 200},
		{"IPv6", []string{"Host: [::1]:8080", "From: [::1]:99"}, 200},
		{"without a port", []string{"Host: localhost"}, 200},
		{"IPv6 without a port", []string{"Host: [::1]"}, 200},
		{"in capitals", []string{"Host: LOCALHOST:8080"}, 200},
		{"a v4 address in v6", []string{"Host: localhost:8080", "From: [::ffff:127.0.0.1]:99"}, 200},
		{"elsewhere", []string{"Host: localhost:8080", "From: 192.0.2.7:99"}, 403},
		{"elsewhere, IPv6", []string{"Host: localhost:8080", "From: [2001:db8::1]:99"}, 403},
		{"a neighbour", []string{"Host: localhost:8080", "From: 10.0.0.2:99"}, 403},
		{"nowhere", []string{"Host: localhost:8080", "From: @"}, 403},
		{"rebinding", []string{"Host: evil.example:8080"}, 403},
		{"rebinding that looks local", []string{"Host: localhost.evil.example:8080"}, 403},
		{"rebinding by a number", []string{"Host: 127.0.0.1.evil.example"}, 403},
		{"another loopback name", []string{"Host: 127.0.0.2"}, 403},
		{"dot", []string{"Host: localhost."}, 403},
		{"no name", []string{"Host: "}, 403},
		{"the public name", []string{"Host: forge.example.com"}, 403},
		{"proxy", []string{"Host: localhost:8080", "X-Forwarded-For: 192.0.2.7"}, 403},
		{"proxy that claims this machine", []string{"Host: localhost:8080", "X-Forwarded-For: 127.0.0.1"}, 403},
		{"proxy with an empty header", []string{"Host: localhost:8080", "X-Forwarded-For: "}, 403},
		{"proxy, RFC 7239", []string{"Host: localhost:8080", "Forwarded: for=192.0.2.7"}, 403},
		{"proxy, Via", []string{"Host: localhost:8080", "Via: 1.1 x"}, 403},
		{"tunnel", []string{"Host: localhost:8080", "Cf-Connecting-Ip: 192.0.2.7"}, 403},
		{"a proxy without a header", []string{"Host: 127.0.0.1:8080", "Proto: HTTP/1.0"}, 403},
	} {
		d := localTestAccess(t)
		r := d.send("GET", "/runs", "", append(c.header, bearer)...)
		body := text(t, r)
		if r.StatusCode != c.want || d.hits != map[int]int{200: 1, 403: 0}[c.want] {
			t.Errorf("%s: %d, %d hits, want %d: %s", c.name, r.StatusCode, d.hits, c.want, body)
		}
		if c.want == 200 && body != "ann 0 local=true stale=false all=true [] body=0 " {
			t.Errorf("%s: %s", c.name, body)
		}
		if c.want == 403 && !strings.Contains(body, "set dashboard to github") {
			t.Errorf("%s: %s does not say how to mend it", c.name, body)
		}
	}
}

func TestLocalHasNoSignIn(t *testing.T) {
	t.Parallel()
	d := localTestAccess(t)
	for _, path := range []string{"/login", "/login/callback?code=x&state=", "/logout"} {
		if r := d.send("GET", path, "", "Host: localhost", bearer); r.StatusCode != http.StatusNotFound || d.hits > 0 {
			t.Errorf("%s: %d, %d hits", path, r.StatusCode, d.hits)
		}
	}
}

// Every user of the machine reaches the address: who has no key sees nothing and changes
// nothing, and who brings it once is known by the browser from then on.
func TestLocalKey(t *testing.T) {
	t.Parallel()
	d := localTestAccess(t)
	at := []string{"Host: localhost:8080"}
	for name, header := range map[string][]string{
		"none": nil, "wrong": {"Authorization: Bearer the-key-of-the-page"}, "empty": {"Authorization: Bearer "}, "another scheme": {"Authorization: Basic " + testKey},
		"the key as the cookie": {"Cookie: forge_key=" + testKey}, "an empty cookie": {"Cookie: forge_key="},
	} {
		for _, method := range []string{"GET", "POST"} {
			r := d.send(method, "/runs/7?x=1", "", append(at, header...)...)
			if body := text(t, r); r.StatusCode != http.StatusUnauthorized || d.hits > 0 || !strings.Contains(body, "/state/dashboard.key") || strings.Contains(body, testKey) ||
				strings.Contains(body, `value="/runs/7?x=1"`) != (method == "GET") {
				t.Errorf("%s, %s: %d, %d hits: %s", name, method, r.StatusCode, d.hits, body)
			}
		}
	}
	form := append(at, "Content-Type: application/x-www-form-urlencoded")
	if r := d.send("POST", "/login", "key=wrong&to=/runs/7", form...); r.StatusCode != http.StatusUnauthorized || len(r.Cookies()) > 0 || !strings.Contains(text(t, r), "That is not the key") {
		t.Errorf("a wrong key: %d %v", r.StatusCode, r.Cookies())
	}
	for to, want := range map[string]string{"/runs/7%3Fx=1": "/runs/7?x=1", "//evil.example/": "/", "": "/", "/login": "/"} {
		r := d.send("POST", "/login", "key=+"+testKey+"%0A&to="+to, form...)
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != want || len(r.Cookies()) != 1 {
			t.Fatalf("the key, to %s: %d %s %v", to, r.StatusCode, r.Header.Get("Location"), r.Cookies())
		}
		c := r.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || strings.Contains(c.Value, testKey) {
			t.Errorf("the cookie is %s", c)
		}
		d.hits = 0
		if r := d.send("GET", "/runs", "", append(at, "Cookie: "+c.Name+"="+c.Value)...); r.StatusCode != http.StatusOK || d.hits != 1 {
			t.Errorf("with the cookie: %d, %d hits", r.StatusCode, d.hits)
		}
	}
	if r := d.send("GET", "/static/style.css", "", at...); r.StatusCode != http.StatusOK {
		t.Errorf("the style of the question: %d", r.StatusCode)
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t, func(o *Options) { *o = Options{Mode: Off} })
	for _, path := range []string{"/", "/login", "/static/style.css", "/runs/7"} {
		if r := d.send("GET", path, "", "Host: localhost"); r.StatusCode != http.StatusNotFound || d.hits > 0 {
			t.Errorf("%s: %d, %d hits", path, r.StatusCode, d.hits)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	good := Options{Mode: GitHub, PublicURL: publicURL, Secret: []byte(testSecret), SignIn: &fakeGitHub{}, Permission: (&fakeGitHub{}).permission}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string // in the error; "": none
	}{
		{"good", func(*Options) {}, ""},
		{"nothing", func(o *Options) { *o = Options{} }, "a key of 16 characters"},
		{"local", func(o *Options) { *o = Options{Key: testKey} }, ""},
		{"http on this machine", func(o *Options) { o.PublicURL = "http://localhost:8080/" }, ""},
		{"mode", func(o *Options) { o.Mode = "public" }, `the mode "public" is none of`},
		{"http elsewhere", func(o *Options) { o.PublicURL = "http://forge.example.com" }, "must begin with https://"},
		{"no address", func(o *Options) { o.PublicURL = "" }, "is not like https://HOST"},
		{"a path", func(o *Options) { o.PublicURL = "https://example.com/forge" }, "is not like https://HOST"},
		{"short secret", func(o *Options) { o.Secret = []byte("short") }, "has 5 bytes"},
		{"no GitHub", func(o *Options) { o.SignIn = nil }, "are needed"},
		{"nobody to ask", func(o *Options) { o.Permission = nil }, "are needed"},
		{"a policy of one's own", func(o *Options) { o.GitHubURL = "https://x;script-src *" }, "is not like https://HOST"},
	} {
		o := good
		c.change(&o)
		_, err := New(o)
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) && c.want != "" {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: the secret is in %v", c.name, err)
		}
	}
}
