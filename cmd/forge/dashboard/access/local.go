package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// proxied are headers that proxies and tunnels add to what they pass on.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Forwarded-Port",
	"X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "True-Client-Ip", "Cf-Connecting-Ip", "Cf-Ray", "Fly-Client-Ip",
	"Fastly-Client-Ip", "X-Envoy-External-Address", "X-Amzn-Trace-Id", "Ngrok-Auth-User-Id"}

// ThisMachine reports whether a request comes from this machine and calls the server by
// a name that only this machine has.
func ThisMachine(r *http.Request) bool { return overLoopback(r) && localName(r.Host) }

// overLoopback reports whether a request comes from this machine. What a proxy on it passes
// on does not, as far as it can be told: by a header, or by HTTP/1.0, which nginx speaks to
// what is behind it.
func overLoopback(r *http.Request) bool {
	for _, h := range proxied {
		if len(r.Header.Values(h)) > 0 {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback() && r.ProtoAtLeast(1, 1)
}

// whyNotHere says why a request is not one of who sits at this machine; "": it is.
func whyNotHere(r *http.Request) string {
	switch {
	case !overLoopback(r):
		return "These pages are shown to this machine alone. To see them from elsewhere let people sign in with GitHub: set dashboard to github (FORGE_DASHBOARD=github)."
	case !localName(r.Host):
		return "These pages answer to http://localhost, http://127.0.0.1 and http://[::1] alone. To use another name let people sign in with GitHub: set dashboard to github (FORGE_DASHBOARD=github)."
	}
	return ""
}

// keyCookie shows the browser's next requests the key: its digest, since a cookie goes to every
// port of this machine.
const keyCookie = "forge_key"

// Key is what the pages ask for; "" where they are not of mode Local.
func (a *Access) Key() string { return a.opts.Key }

func digest(key string) string {
	sum := sha256.Sum256([]byte("forge dashboard key: " + key))
	return hex.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// hasKey reports whether a request brings the key: every user of the machine can reach the address.
func (a *Access) hasKey(r *http.Request) bool {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(key, a.opts.Key)
	}
	for _, c := range r.CookiesNamed(keyCookie) {
		if same(c.Value, digest(a.opts.Key)) {
			return true
		}
	}
	return false
}

// unlock takes the key and leads on to the page that was asked for.
func (a *Access) unlock(w http.ResponseWriter, r *http.Request) {
	if !same(strings.TrimSpace(r.PostFormValue("key")), a.opts.Key) {
		a.askForKey(w, r, "That is not the key. ")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: keyCookie, Value: digest(a.opts.Key), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, relative(r.PostFormValue("to")), http.StatusSeeOther)
}

func (a *Access) askForKey(w http.ResponseWriter, r *http.Request, why string) {
	d := pageData{Title: "Key", Key: true, Text: why + "These pages ask for a key, since every user of this machine can reach them. It is in " + a.opts.KeyFile +
		"; programs send it as Authorization: Bearer KEY."}
	if r.URL.Path != loginPath && !unsafe(r.Method) {
		d.To = r.URL.RequestURI()
	}
	say(w, r, http.StatusUnauthorized, d)
}

// Entry is a page's address that answers the question for the key. What stands behind # stays in
// the browser: it is sent to no server, and is in no log.
func Entry(page, key string) string { return page + "#" + url.PathEscape(key) }
