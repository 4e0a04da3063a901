package access

import (
	"net"
	"net/http"
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
