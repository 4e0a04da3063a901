package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Every answer has the same headers: pages, refusals, redirects, files.
func TestHeaders(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	alice := d.signIn("alice")
	for _, c := range []struct {
		name  string
		r     *http.Response
		code  int
		cache string
	}{
		{"page", d.send("GET", "/", "", alice), 200, "no-store"},
		{"refusal", d.send("GET", "/", ""), 401, "no-store"},
		{"redirect", d.send("GET", "/login", ""), 303, "no-store"},
		{"failed sign-in", d.send("GET", "/login/callback", ""), 400, "no-store"},
		{"file", d.send("GET", "/static/app.1f2e.js", ""), 200, "public, max-age=31536000, immutable"},
		{"wrong method", d.send("POST", "/login", ""), 405, "no-store"},
		{"text", d.send("GET", "/", "", "HX-Request: true"), 401, "no-store"},
	} {
		h := c.r.Header
		want := map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https://avatars.githubusercontent.com; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": c.cache, "X-Frame-Options": "DENY",
			"Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
		}
		if c.r.StatusCode != c.code {
			t.Errorf("%s: %d, want %d", c.name, c.r.StatusCode, c.code)
		}
		for name, value := range want {
			if len(h.Values(name)) != 1 || h.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", c.name, name, h.Values(name), value)
			}
		}
		if body := text(t, c.r); strings.Contains(body, "<script") || strings.Contains(body, "style=") || strings.Contains(body, "<style") {
			t.Errorf("%s: something inline in %s", c.name, body)
		}
	}
}

func TestPicturesFrom(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                             "https://avatars.githubusercontent.com",
		"https://ghe.example.com":      "https://avatars.githubusercontent.com https://ghe.example.com https://avatars.ghe.example.com",
		"http://127.0.0.1:3000":        "https://avatars.githubusercontent.com http://127.0.0.1:3000",
		"ghe.example.com":              "",
		"https://a.example *":          "",
		"https://a.example;script-src": "",
		"data:x":                       "",
	} {
		if got, err := picturesFrom(base); got != want || (err != nil) != (want == "") {
			t.Errorf("picturesFrom(%q) = %q, %v, want %q", base, got, err, want)
		}
	}
}

// A change is asked for by Forge's own pages, or by no browser.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		method string
		header []string
		want   int
	}{
		{"own page", "POST", []string{"Sec-Fetch-Site: same-origin", "Origin: ORIGIN"}, 200},
		{"no browser", "POST", nil, 200},
		{"another site", "POST", []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, 403},
		{"another port", "POST", []string{"Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"}, 403},
		{"no origin", "POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"old browser", "POST", []string{"Origin: https://evil.example"}, 403},
		{"old browser, own page", "POST", []string{"Origin: ORIGIN"}, 200},
		{"sandboxed", "POST", []string{"Origin: null"}, 403},
		{"sandboxed, said otherwise", "POST", []string{"Sec-Fetch-Site: same-origin", "Origin: null"}, 403},
		{"another scheme", "POST", []string{"Origin: ftp://HOST"}, 403},
		{"PUT", "PUT", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"DELETE", "DELETE", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"a method that nobody knows", "FROB", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"a link from elsewhere", "GET", []string{"Sec-Fetch-Site: cross-site"}, 200},
	} {
		for _, mode := range []string{Local, GitHub} {
			d, host, origin := localTestAccess(t), "localhost:8080", "http://localhost:8080"
			header := []string{bearer}
			if mode == GitHub {
				d, host, origin = newTestAccess(t), "forge.example.com", publicURL
				header = []string{d.signIn("alice")}
			}
			header = append(header, "Host: "+host)
			for _, line := range c.header {
				line = strings.Replace(line, "ORIGIN", origin, 1)
				header = append(header, strings.Replace(line, "HOST", host, 1))
			}
			r := d.send(c.method, "/runs/7/stop", "x=1", header...)
			if r.StatusCode != c.want || (d.hits == 1) != (c.want == 200) {
				t.Errorf("%s, %s: %d, %d hits, want %d: %s", c.name, mode, r.StatusCode, d.hits, c.want, text(t, r))
			}
		}
	}
}

// A proxy may call the server by another name than people do.
func TestBehindProxy(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	alice := d.signIn("alice")
	for _, site := range []string{"", "Sec-Fetch-Site: same-origin"} {
		if r := d.send("POST", "/x", "", alice, "Host: 10.0.0.7:8080", "Origin: "+publicURL, "X-Forwarded-For: 192.0.2.7", site); r.StatusCode != 200 {
			t.Errorf("%q: %d %s", site, r.StatusCode, text(t, r))
		}
	}
	if r := d.send("POST", "/x", "", alice, "Host: 10.0.0.7:8080", "Origin: http://10.0.0.7:8080"); r.StatusCode != 403 {
		t.Errorf("from the inner name: %d", r.StatusCode)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	alice := d.signIn("alice")
	fits, over := strings.Repeat("a", maxBody), strings.Repeat("a", maxBody+1)
	for _, c := range []struct {
		name, method, body string
		want               int
	}{
		{"small", "POST", "a=b", 200}, {"the most", "POST", fits, 200}, {"over", "POST", over, 413}, {"PUT", "PUT", over, 413},
		{"with a GET", "GET", over, http.StatusTeapot}, // the page's own reading fails
	} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/", strings.NewReader(c.body))
			if chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Cookie", strings.TrimPrefix(alice, "Cookie: "))
			w := httptest.NewRecorder()
			d.h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s (chunked %t): %d, want %d: %.200s", c.name, chunked, w.Code, c.want, w.Body)
			}
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	for _, c := range []struct {
		name   string
		header []string
		html   bool
	}{
		{"browser", []string{"Accept: text/html,application/xhtml+xml,*/*;q=0.8"}, true},
		{"nothing said", nil, true},
		{"JSON", []string{"Accept: application/json"}, false},
		{"htmx", []string{"HX-Request: true", "Accept: */*"}, false},
	} {
		r := d.send("GET", "/runs?repo=a%2Fb&x=<script>", "", c.header...)
		body := text(t, r)
		if r.StatusCode != 401 || strings.Contains(r.Header.Get("Content-Type"), "text/html") != c.html || strings.Contains(body, "<!doctype html>") != c.html {
			t.Errorf("%s: %d %s: %s", c.name, r.StatusCode, r.Header.Get("Content-Type"), body)
		}
		if c.html && (!strings.Contains(body, `href="/login?to=%2Fruns%3Frepo%3Da%252Fb%26x%3D%3Cscript%3E"`) ||
			!strings.Contains(body, `href="/static/style.css"`)) || !c.html && len(body) > 200 {
			t.Errorf("%s: %s", c.name, body)
		}
		if strings.Contains(body, "<script>") {
			t.Errorf("%s: what was asked for is in the page as it is: %s", c.name, body)
		}
	}
}
