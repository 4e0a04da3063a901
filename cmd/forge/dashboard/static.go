package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// staticFiles are the pages' style, their script, and the libraries that they use
// (see LICENCES.txt there).
//
//go:embed static
var staticFiles embed.FS

// asset returns the address of a static file. The address changes with what is in the
// file, so that a browser may keep it for ever.
func asset(name string) (string, error) {
	data, err := fs.ReadFile(staticFiles, "static/"+name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "/static/" + hex.EncodeToString(sum[:6]) + "/" + name, nil
}

// serveStatic serves a file with or without what asset puts into its address.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	data, err := fs.ReadFile(staticFiles, "static/"+name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	cache := "no-cache"
	if now, err := asset(name); err == nil && now == r.URL.Path {
		cache = "public, max-age=31536000, immutable"
	}
	w.Header().Set("Cache-Control", cache)
	kind := mime.TypeByExtension(path.Ext(name))
	if strings.HasSuffix(name, ".js") {
		kind = "text/javascript; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Write(data) //nolint:errcheck // whoever asked has gone
}
