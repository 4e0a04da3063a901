package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Registries for Composer name archives that lie elsewhere, and lock files repeat
// their addresses. The gateway takes none from a client: it is asked for a commit of a
// package, and the registry's own document says where that is.

// composerName is a package's name.
const composerName = `[a-z0-9](?:[_.-]?[a-z0-9]+)*/[a-z0-9](?:[_.-]{0,2}[a-z0-9]+)*`

// distPath begins the path of an archive: /-/dist/VENDOR/NAME/REFERENCE.
const distPath = "/-/dist/"

// errNoDist is for a commit of a package that no document of the registry names.
var errNoDist = errors.New("the registry names no archive of that commit")

// metadata is where a registry has a package's document: its packages.json says so.
func (g *Gateway) metadata(ctx context.Context, u *upstream, p string) (string, error) {
	e, err := g.get(ctx, u, u.base.String()+"/packages.json", "", false)
	if err != nil {
		return "", err
	}
	var root struct {
		Metadata string `json:"metadata-url"`
	}
	if e.Status == http.StatusOK {
		body, err := g.read(e.entry)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(body, &root); err != nil {
			return "", fmt.Errorf("%s: packages.json: %w", u.base.Host, err)
		}
	}
	if !strings.Contains(root.Metadata, "%package%") {
		return "", fmt.Errorf("%s: its packages.json has no metadata-url, which Composer 2 asks for", u.base.Host)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(p, "/p2/"), ".json")
	target, err := u.base.Parse(strings.ReplaceAll(root.Metadata, "%package%", name))
	if err != nil || target.User != nil || target.Scheme != "https" && target.Scheme != u.base.Scheme {
		return "", fmt.Errorf("%s: packages.json: metadata-url: must be an https address", u.base.Host)
	}
	return target.String(), nil
}

// dist is where a registry says that an archive is.
func (g *Gateway) dist(ctx context.Context, u *upstream, p string) (string, error) {
	rest := strings.TrimPrefix(p, distPath)
	cut := strings.LastIndexByte(rest, '/')
	name, reference := rest[:cut], rest[cut+1:]
	for _, doc := range []string{"/p2/" + name + ".json", "/p2/" + name + "~dev.json"} {
		target, err := g.metadata(ctx, u, doc)
		if err != nil {
			return "", err
		}
		e, err := g.get(ctx, u, target, "", false)
		if err != nil {
			return "", err
		}
		if e.Status != http.StatusOK {
			continue
		}
		body, err := g.read(e.entry)
		if err != nil {
			return "", err
		}
		var all struct {
			Packages map[string][]struct {
				Dist *struct{ URL, Reference string }
			}
		}
		if err := json.Unmarshal(body, &all); err != nil {
			return "", fmt.Errorf("%s: %s: %w", u.base.Host, doc, err)
		}
		for _, v := range all.Packages[name] {
			if v.Dist == nil || v.Dist.Reference != reference {
				continue
			}
			target, err := url.Parse(v.Dist.URL)
			if err != nil || target.User != nil || target.Scheme != "https" && target.Scheme != u.base.Scheme {
				return "", fmt.Errorf("%s: %s: the address of an archive must be https", u.base.Host, doc)
			}
			return target.String(), nil
		}
	}
	return "", errNoDist
}

// composed are documents as Composer reads them through the gateway: archives are asked
// for by their commit, and there are no mirrors, searches or notifications.
func composed(p string, body []byte) ([]byte, error) {
	if p == "/packages.json" {
		return []byte(`{"packages":[],"metadata-url":"/p2/%package%.json"}`), nil
	}
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	packages, _ := doc["packages"].(map[string]any)
	for name, versions := range packages {
		list, _ := versions.([]any)
		for _, v := range list {
			version, _ := v.(map[string]any)
			delete(version, "notification-url")
			if dist, ok := version["dist"].(map[string]any); ok {
				reference, _ := dist["reference"].(string)
				own := distPath + name + "/" + reference
				if dist["url"] = Composer.URL() + own; !Composer.valid(own) {
					dist["url"] = Composer.URL() + "/-/refused"
				}
				delete(dist, "mirrors")
			}
		}
	}
	return json.Marshal(doc)
}
