package githubtest

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed pages
var pageFiles embed.FS

var pageTemplates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"ago":   func(t time.Time) string { return t.Format("2 Jan 15:04") },
		"short": func(sha string) string { return fmt.Sprintf("%.7s", sha) },
		"dict": func(kv ...any) obj {
			o := obj{}
			for i := 0; i+1 < len(kv); i += 2 {
				o[fmt.Sprint(kv[i])] = kv[i+1]
			}
			return o
		},
	}).ParseFS(pageFiles, "pages/*.html"))
})

// userCookie says as whom somebody clicks.
const userCookie = "githubtest_user"

// pages serves what a person sees. It takes no writes from other origins, but for
// the manifest, which comes from the page of `forge setup`.
func (s *Server) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.pageHome)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, pageFiles, "pages/style.css") })
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /avatars/{login}", pageAvatar)
	mux.HandleFunc("GET /-/logs/{key}", s.serveLog)
	mux.HandleFunc("POST /-/user", s.switchUser)
	mux.HandleFunc("POST /settings/apps/new", s.takeManifest)
	mux.HandleFunc("POST /organizations/{org}/settings/apps/new", s.takeManifest)
	mux.HandleFunc("POST /-/register", s.registerApp)
	mux.HandleFunc("GET /apps/{slug}/installations/new", s.pageInstall)
	mux.HandleFunc("POST /apps/{slug}/installations/new", s.install)
	mux.HandleFunc("GET /login/oauth/authorize", s.pageAuthorize)
	mux.HandleFunc("POST /login/oauth/authorize", s.authorize)
	mux.HandleFunc("GET /{owner}/{repo}", s.pageRepo)
	mux.HandleFunc("GET /{owner}/{repo}/issues/{n}", s.pageIssue)
	mux.HandleFunc("GET /{owner}/{repo}/pull/{n}", s.pageIssue)
	mux.HandleFunc("GET /{owner}/{repo}/pull/{n}/{tab}", s.pageIssue)
	mux.HandleFunc("GET /{owner}/{repo}/commit/{sha}", s.pageCommit)
	mux.HandleFunc("GET /{owner}/{repo}/runs/{id}", s.pageRun)
	mux.HandleFunc("GET /{owner}/{repo}/blob/{sha}/{path...}", s.pageFile)
	mux.HandleFunc("GET /{owner}/{repo}/raw/{sha}/{path...}", s.pageFile)
	mux.HandleFunc("POST /{owner}/{repo}/-/do", s.pageAction)
	guard := http.NewCrossOriginProtection()
	guard.AddInsecureBypassPattern("POST /settings/apps/new")
	guard.AddInsecureBypassPattern("POST /organizations/{org}/settings/apps/new")
	inner := guard.Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		inner.ServeHTTP(w, r)
	})
}

// frame is what every page has.
type frame struct {
	Title  string
	Me     string
	People []string
	Back   string // where a form returns to
	Error  string
	Repo   string
	Body   any
}

// me reads who clicks; the first person with a role by default. s.mu is held.
func (s *Server) me(r *http.Request) string {
	if c, err := r.Cookie(userCookie); err == nil && s.accounts[strings.ToLower(c.Value)] != nil {
		return c.Value
	}
	for _, a := range s.order {
		for _, repo := range s.repos {
			if a.kind == "User" && repo.can(a, "write") {
				return a.login
			}
		}
	}
	return s.owner.login
}

// show renders a page. s.mu is held by nobody.
func (s *Server) render(w http.ResponseWriter, r *http.Request, page string, f frame) {
	s.mu.Lock()
	f.Me = s.me(r)
	for _, a := range s.order {
		if a.kind == "User" {
			f.People = append(f.People, a.login)
		}
	}
	s.mu.Unlock()
	f.Back, f.Error = r.URL.Path, r.URL.Query().Get("error")
	var buf strings.Builder
	if err := pageTemplates().ExecuteTemplate(&buf, page, f); err != nil {
		s.log.Error("render a page", "page", page, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(buf.String()))
}

func (s *Server) pageHome(w http.ResponseWriter, r *http.Request) {
	type row struct {
		Name      string
		Open      int
		Installed bool
	}
	var rows []row
	s.mu.Lock()
	me := s.accounts[strings.ToLower(s.me(r))]
	for _, repo := range s.repos {
		if !repo.shownTo(me) {
			continue
		}
		v := row{Name: repo.fullName(), Installed: s.installationFor(repo) != nil}
		for _, i := range repo.issues {
			if i.state == "open" {
				v.Open++
			}
		}
		rows = append(rows, v)
	}
	s.mu.Unlock()
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.Name, b.Name) })
	s.render(w, r, "home.html", frame{Title: "Repositories", Body: rows})
}

// pageRepoOf finds the repository in a page's path and calls f with s.mu held.
func (s *Server) pageRepoOf(w http.ResponseWriter, r *http.Request, f func(*repository) bool) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("repo"))]
	if repo == nil || !repo.shownTo(s.accounts[strings.ToLower(s.me(r))]) || !f(repo) {
		http.NotFound(w, r)
		return "", false
	}
	return repo.fullName(), true
}

func (s *Server) pageRepo(w http.ResponseWriter, r *http.Request) {
	type row struct {
		Number             int
		Title, Kind, State string
		Author             string
		Labels             []string
	}
	var rows []row
	full, found := s.pageRepoOf(w, r, func(repo *repository) bool {
		for _, i := range repo.issueList() {
			v := row{Number: i.number, Title: i.title, Kind: i.kindPath(), State: i.status(), Author: i.user.login}
			for _, l := range i.labels {
				v.Labels = append(v.Labels, l.name)
			}
			rows = append(rows, v)
		}
		return true
	})
	if found {
		s.render(w, r, "repo.html", frame{Title: full, Repo: full, Body: rows})
	}
}

// status is the state as a badge says it.
func (i *issue) status() string {
	switch p := i.pull; {
	case p != nil && !p.merged.IsZero():
		return "merged"
	case p != nil && p.draft && i.state == "open":
		return "draft"
	}
	return i.state
}

func (s *Server) pageCommit(w http.ResponseWriter, r *http.Request) {
	var body obj
	full, found := s.pageRepoOf(w, r, func(repo *repository) bool {
		sha, known := s.resolve(repo, r.PathValue("sha"))
		if !known {
			return false
		}
		c, err := s.commitAt(repo, sha)
		if err != nil {
			return false
		}
		from := emptyTree
		if len(c.Parents) > 0 {
			from = c.Parents[0]
		}
		files, err := s.diff(repo, from, sha)
		body = obj{"Commit": c, "Files": viewFiles(files, nil)}
		return err == nil
	})
	if found {
		s.render(w, r, "commit.html", frame{Title: full, Repo: full, Body: body})
	}
}

// pageFile shows a file as plain text.
func (s *Server) pageFile(w http.ResponseWriter, r *http.Request) {
	var text string
	if _, found := s.pageRepoOf(w, r, func(repo *repository) bool {
		sha, known := s.resolve(repo, r.PathValue("sha"))
		if !known || checkPath(r.PathValue("path")) != nil {
			return false
		}
		var err error
		text, err = s.show(repo, sha, r.PathValue("path"))
		return err == nil
	}); found {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}
}

// pageRun leads to the pull request that a check run belongs to.
func (s *Server) pageRun(w http.ResponseWriter, r *http.Request) {
	to := ""
	full, found := s.pageRepoOf(w, r, func(repo *repository) bool {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64) // zero is none
		c := repo.findCheckRun(id)
		if c == nil {
			return false
		}
		for _, p := range repo.pulls() {
			if p.headSHA == c.suite.head {
				to = fmt.Sprintf("/pull/%d#checks", p.number)
			}
		}
		return true
	})
	if found {
		http.Redirect(w, r, "/"+full+to, http.StatusSeeOther)
	}
}

func pageAvatar(w http.ResponseWriter, r *http.Request) {
	hue := 0
	for _, c := range r.PathValue("login") {
		hue = (hue*31 + int(c)) % 360
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><rect width="10" height="10" fill="hsl(%d 45%% 50%%)"/></svg>`, hue)
}

func (s *Server) switchUser(w http.ResponseWriter, r *http.Request) {
	login := r.PostFormValue("login")
	s.mu.Lock()
	a := s.accounts[strings.ToLower(login)]
	s.mu.Unlock()
	if a == nil || a.bot() {
		http.Error(w, "nobody here is called "+strconv.Quote(login), http.StatusBadRequest)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: userCookie, Value: a.login, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, back(r.PostFormValue("back")), http.StatusSeeOther)
}

// back keeps a redirect on this site.
func back(to string) string {
	if u, err := url.Parse(to); err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\r\n") {
		return "/"
	}
	return to
}

// pageAction carries out a form of a page as the person who clicks.
func (s *Server) pageAction(w http.ResponseWriter, r *http.Request) {
	repo := r.PathValue("owner") + "/" + r.PathValue("repo")
	s.mu.Lock()
	login := s.me(r)
	s.mu.Unlock()
	err := s.click(s.As(login), repo, r)
	to, _, _ := strings.Cut(back(r.PostFormValue("back")), "?")
	if err != nil {
		to += "?error=" + url.QueryEscape(err.Error())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (s *Server) click(p *Person, repo string, r *http.Request) error {
	v := r.PostFormValue
	num := func(name string) int64 {
		n, _ := strconv.ParseInt(v(name), 10, 64) // zero is refused further down
		return n
	}
	n, id := int(num("n")), num("id")
	switch action := v("do"); action {
	case "open":
		_, err := p.OpenIssue(repo, v("title"), v("body"))
		return err
	case "comment":
		_, err := p.Comment(repo, n, v("body"))
		return err
	case "label":
		return p.Label(repo, n, v("label"))
	case "unlabel":
		return p.Unlabel(repo, n, v("label"))
	case "tick":
		return p.TickBox(repo, id, int(num("box")))
	case "tick-body":
		return s.tickBody(p, repo, n, int(num("box")))
	case "close":
		return p.Close(repo, n)
	case "draft":
		return p.SetDraft(repo, n, v("button") == "yes")
	case "delete-branch":
		return p.DeleteBranch(repo, v("button"))
	case "rerequest":
		return p.Rerequest(repo, id)
	case "merge":
		return p.Merge(repo, n)
	case "squash":
		return p.Squash(repo, n)
	case "revert":
		_, err := p.Revert(repo, n)
		return err
	case "dismiss":
		return p.Dismiss(repo, n, id, v("body"))
	case "hide":
		return p.Hide(repo, id, v("button"))
	case "react":
		return p.React(repo, id, v("button"))
	case "edit":
		return p.EditComment(repo, id, v("body"))
	case "delete":
		return p.DeleteComment(repo, id)
	case "reply":
		return p.Reply(repo, id, v("body"))
	case "resolve":
		return p.Resolve(repo, id)
	case "suggest":
		return p.CommitSuggestion(repo, id)
	case "press":
		return p.Press(repo, id, v("button"))
	case "review":
		return p.Review(repo, n, Review{Event: v("event"), Body: v("body"), Path: v("path"), Line: int(num("line")), Comment: v("comment")})
	default:
		return fmt.Errorf("there is no button %q", action)
	}
}

func (s *Server) tickBody(p *Person, repo string, n, box int) error {
	return p.onIssue("tick a box of", repo, n, "author", func(a *account, i *issue) error {
		text, err := toggleBox(i.body, box)
		if err == nil {
			s.editIssue(i, a, nil, &text)
		}
		return err
	})
}
