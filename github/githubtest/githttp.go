package githubtest

import (
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
)

// gitPath splits /OWNER/NAME.git/SERVICE; ok is false for anything else.
func gitPath(path string) (full, rest string, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 3)
	if len(parts) != 3 {
		return "", "", false
	}
	switch parts[2] {
	case "info/refs", "git-upload-pack", "git-receive-pack":
		return parts[0] + "/" + strings.TrimSuffix(parts[1], ".git"), parts[2], true
	}
	return "", "", false
}

var gitExecPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(out)), err
})

// serveGit serves fetches and pushes through git http-backend.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request, c *call) {
	full, rest, _ := gitPath(r.URL.Path)
	push := rest == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	s.mu.Lock()
	repo, env, status := s.gitAccess(c, full, push)
	to := ""
	if repo != nil && !strings.EqualFold(repo.fullName(), full) {
		to = s.html(repo) + ".git/" + rest
	}
	s.mu.Unlock()
	if status == 0 && to != "" {
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		http.Redirect(w, r, to, http.StatusMovedPermanently)
		return
	}
	if status != 0 {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		}
		http.Error(w, gitRefusal(status, full, c.id.login()), status)
		return
	}
	if err := bufferBody(r); err != nil {
		http.Error(w, "read the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	rel, _ := filepath.Rel(s.dir, repo.dir)
	r.URL.Path = "/" + filepath.ToSlash(rel) + "/" + rest
	exe, err := gitExecPath()
	if err != nil {
		http.Error(w, "git is not there", http.StatusInternalServerError)
		return
	}
	backend := &cgi.Handler{
		Path: filepath.Join(exe, "git-http-backend"), Root: "/", Dir: repo.dir,
		Env:    append(append(s.gitEnv(), env...), "GIT_PROJECT_ROOT="+s.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+c.id.login()),
		Logger: log.New(io.Discard, "", 0), Stderr: io.Discard,
	}
	if rest != "git-receive-pack" {
		backend.ServeHTTP(w, r)
		return
	}
	repo.pushing.Lock()
	defer repo.pushing.Unlock()
	buf := newRecorder() // the answer waits until the model knows of the push
	backend.ServeHTTP(buf, r)
	s.afterPush(repo, c.id.actor(s))
	buf.flushTo(w)
}

// gitAccess finds the repository and says whether the caller may do this: 0 for
// yes. s.mu is held.
func (s *Server) gitAccess(c *call, full string, push bool) (*repository, []string, int) {
	repo := s.named(full)
	if repo == nil || c.id.kind == identUser && !s.reaches(c.id, repo) {
		return nil, nil, http.StatusNotFound
	}
	env := []string{"FORGE_HTML_URL=" + s.html(repo)}
	switch c.id.kind {
	case identInstallation:
		need := "contents:read"
		if push {
			need = "contents:write"
		}
		if !c.id.tok.covers(repo) {
			return nil, nil, http.StatusNotFound
		}
		if !grants(c.id.tok.perms, need) {
			return nil, nil, http.StatusForbidden
		}
		if !grants(c.id.tok.perms, "workflows:write") {
			env = append(env, "FORGE_NO_WORKFLOWS=1")
		}
	case identUser:
		if push && !(repo.can(c.id.user, "write") && (c.id.on == nil || s.installationFor(repo) != nil && grants(s.app.Permissions, "contents:write"))) {
			return nil, nil, http.StatusForbidden
		}
	default:
		if push || c.id.bad || repo.private {
			return nil, nil, http.StatusUnauthorized
		}
	}
	return repo, env, 0
}

func gitRefusal(status int, full, login string) string {
	switch status {
	case http.StatusNotFound:
		return "Repository not found."
	case http.StatusForbidden:
		return "Permission to " + full + ".git denied to " + login + "."
	}
	return "Invalid username or token. Password authentication is not supported for Git operations."
}

// bufferBody reads the whole body: CGI cannot take a chunked one.
func bufferBody(r *http.Request) error {
	var src io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		src = z
		r.Header.Del("Content-Encoding")
	}
	body, err := io.ReadAll(src)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	return nil
}

// afterPush finds which refs a push moved and tells the world.
func (s *Server) afterPush(repo *repository, by *account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refs, err := s.readRefs(repo)
	if err != nil {
		s.log.Error("read refs after a push", "repo", repo.fullName(), "error", err)
		return
	}
	var names []string
	for name, sha := range refs {
		if repo.refs[name] != sha {
			names = append(names, name)
		}
	}
	for name := range repo.refs {
		if refs[name] == "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		sha := refs[name]
		if sha == "" {
			sha = zeroSHA
		}
		s.refMoved(repo, name, repo.refs[name], sha, by)
	}
}
