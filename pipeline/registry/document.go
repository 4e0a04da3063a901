package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
)

// Where documents name files. In JSON a quote within a text is escaped, so that what
// is matched is a key and not something that somebody wrote about one.
var (
	tarball = lazyregexp.New(`("tarball"\s*:\s*")([^"\\]+)(")`)
	fileURL = lazyregexp.New(`("url"\s*:\s*")([^"\\]+)(")`)
	anchor  = lazyregexp.New(`(?i)(<a\s[^>]*?href\s*=\s*["'])([^"'#]+)((?:#[^"']*)?["'])`)
)

// rewritten returns a document with the addresses in it replaced by the gateway's;
// ok is false for what is handed on as it is.
func (g *Gateway) rewritten(k Kind, p string, e found) (body []byte, ok bool, err error) {
	u := e.from
	if u == nil || k.immutable(p) || k != NPM && k != PyPI && k != Composer && !(k == Cargo && p == "/config.json") {
		return nil, false, nil
	}
	if body, err = g.read(e.entry); err != nil {
		return nil, false, err
	}
	switch {
	case k == Cargo:
		body, err = json.Marshal(map[string]string{"dl": Cargo.URL() + "/-/crates/{crate}/{version}"})
	case k == Composer:
		body, err = composed(p, body)
	case k == NPM:
		body, err = g.replace(k, u, e.URL, tarball, body)
	case strings.Contains(e.Type, "json"):
		body, err = g.replace(k, u, e.URL, fileURL, body)
	default:
		body, err = g.replace(k, u, e.URL, anchor, body)
	}
	return body, true, err
}

// replace gives each address that a pattern finds the gateway's own.
func (g *Gateway) replace(k Kind, u *upstream, at string, pattern *lazyregexp.Regexp, body []byte) ([]byte, error) {
	base, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	last := 0
	for _, m := range pattern.FindAllSubmatchIndex(body, -1) {
		out.Write(body[last:m[4]])
		last = m[5]
		own, err := g.own(k, u, base, html.UnescapeString(string(body[m[4]:m[5]])))
		if err != nil {
			return nil, err
		}
		out.WriteString(own)
	}
	out.Write(body[last:])
	return out.Bytes(), nil
}

// own is the gateway's address for one that a document names.
func (g *Gateway) own(k Kind, u *upstream, base *url.URL, text string) (string, error) {
	target, err := base.Parse(text)
	if err != nil || target.User != nil || target.Scheme != "https" && target.Scheme != u.base.Scheme {
		return k.URL() + "/-/refused", nil
	}
	target.Fragment = ""
	if rest, ok := strings.CutPrefix(target.String(), u.base.String()); ok && k.valid(rest) {
		return k.URL() + rest, nil
	}
	name := path.Base(target.Path)
	key, err := g.cache.remember(named{URL: target.String(), Registry: u.base.String()})
	if err != nil {
		return "", err
	}
	own := "/-/file/" + key + "/" + name
	if !k.valid(own) {
		return k.URL() + "/-/refused", nil
	}
	return k.URL() + own, nil
}

// crate is where a registry of crates has one: its config says so.
func (g *Gateway) crate(ctx context.Context, u *upstream, p string) (string, error) {
	e, err := g.get(ctx, u, u.base.String()+"/config.json", "", false)
	if err != nil {
		return "", err
	}
	if e.Status != http.StatusOK {
		return "", fmt.Errorf("%s has no config.json", u.base.Host)
	}
	body, err := g.read(e.entry)
	if err != nil {
		return "", err
	}
	var config struct {
		DL string `json:"dl"`
	}
	if err := json.Unmarshal(body, &config); err != nil {
		return "", fmt.Errorf("%s: config.json: %w", u.base.Host, err)
	}
	parts := strings.Split(strings.TrimPrefix(p, "/-/crates/"), "/")
	name, version := parts[0], parts[1]
	if !strings.Contains(config.DL, "{") {
		config.DL += "/{crate}/{version}/download"
	}
	if strings.Contains(config.DL, "{sha256-checksum}") {
		return "", fmt.Errorf("%s: its config.json asks for checksums in addresses, which the gateway does not know", u.base.Host)
	}
	target, err := url.Parse(strings.NewReplacer("{crate}", name, "{version}", version, "{prefix}", cratePrefix(name),
		"{lowerprefix}", cratePrefix(strings.ToLower(name))).Replace(config.DL))
	if err != nil || target.User != nil || target.Scheme != "https" && target.Scheme != u.base.Scheme {
		return "", fmt.Errorf("%s: config.json: dl: must be an https address", u.base.Host)
	}
	return target.String(), nil
}

// cratePrefix is the directory of a crate in an index.
func cratePrefix(name string) string {
	switch len(name) {
	case 1, 2:
		return fmt.Sprint(len(name))
	case 3:
		return "3/" + name[:1]
	}
	return name[:2] + "/" + name[2:4]
}
