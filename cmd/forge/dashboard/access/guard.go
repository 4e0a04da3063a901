package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard holds what is the same for every request.
type guard struct {
	policy string // Content-Security-Policy
	origin string // that pages are reached at; "": the one that the request names
	cross  *http.CrossOriginProtection
}

func newGuard(gitHubURL string, public *url.URL) (guard, error) {
	pictures, err := picturesFrom(gitHubURL)
	if err != nil {
		return guard{}, err
	}
	g := guard{cross: http.NewCrossOriginProtection(), policy: strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: " + pictures, "connect-src 'self'",
		"form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
	}, "; ")}
	if public != nil {
		g.origin = public.String()
		err = g.cross.AddTrustedOrigin(g.origin) // a proxy may change the Host header
	}
	return g, err
}

// picturesFrom is where a GitHub keeps the pictures of people. An Enterprise server
// has them on its own host, or on one below it.
func picturesFrom(base string) (string, error) {
	const public = "https://avatars.githubusercontent.com"
	if base == "" {
		return public, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"") || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("dashboard: GitHub's address %q is not like https://HOST", base)
	}
	own := u.Scheme + "://" + u.Host
	if net.ParseIP(u.Hostname()) != nil || u.Hostname() == "localhost" {
		return public + " " + own, nil
	}
	return public + " " + own + " " + u.Scheme + "://avatars." + u.Host, nil
}

// headers are on every answer. A handler may say more exactly how long its answer
// can be kept.
func (g guard) headers(h http.Header) {
	h.Set("Content-Security-Policy", g.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Cache-Control", "no-store")
}

// crossSite says why a request that changes something does not come from these
// pages; "": it does, or changes nothing, or comes from no browser.
func (g guard) crossSite(r *http.Request) string {
	const why = "This change was asked for by another site. Open the page here and do it there."
	if g.cross.Check(r) != nil {
		return why
	}
	// Check takes any scheme and port that names the same host.
	own := g.origin
	if own == "" {
		own = "http://" + r.Host
	}
	if origin := r.Header.Get("Origin"); unsafe(r.Method) && origin != "" && !strings.EqualFold(origin, own) {
		return why
	}
	return ""
}

// unsafe reports whether a method may change something.
func unsafe(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// limitBody reads the body of a request that changes something, so that no handler
// can forget its limit. It returns the status of a refusal, or 0.
func limitBody(w http.ResponseWriter, r *http.Request) int {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if !unsafe(r.Method) {
		return 0
	}
	body, err := io.ReadAll(r.Body)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge
	case err != nil:
		return http.StatusBadRequest
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return 0
}
