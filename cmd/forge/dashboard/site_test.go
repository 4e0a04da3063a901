package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"golang.org/x/tools/txtar"

	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// today is when the pages of tests are looked at.
var today = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

// person is a viewer of tests. The zero person sees and may do everything.
type person struct {
	login  string
	repos  []string // nil: every one
	writes []string // nil: where they see
}

func (v person) Actor() pipeline.Actor {
	return pipeline.Actor{ID: 5, Login: cmp.Or(v.login, "ann")}
}
func (v person) Repos() ([]string, bool) { return v.repos, v.repos == nil }
func (v person) MayWrite(_ context.Context, repo string) (bool, error) {
	return Sees(v, repo) && (v.writes == nil || slices.Contains(v.writes, repo)), nil
}

// site is the pages on a database of its own, with what somebody told a run.
type site struct {
	db     *store.DB
	pages  *Pages
	router *mux.Router
	viewer person
	told   []string
	runs   int // that add has kept
}

// newSite makes the pages over an empty database.
func newSite(t testing.TB) *site {
	t.Helper()
	db, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := &site{db: db, router: mux.NewRouter()}
	s.pages = New(Options{
		DB: db, Now: func() time.Time { return today }, Version: "test", Production: true,
		Viewer: func(*http.Request) Viewer { return s.viewer },
		Report: func(ctx context.Context, o metrics.Options, repos ...string) (metrics.Report, error) {
			from, to := o.Span()
			sums := metrics.NewSums(o)
			for _, repo := range repos {
				if err := db.EachMetric(ctx, repo, from, to, sums.Add); err != nil {
					return metrics.Report{}, err
				}
			}
			return sums.Report(), nil
		},
		Tell: func(_ context.Context, run int64, key string, c command.Line, by pipeline.Actor, via string) (string, error) {
			s.told = append(s.told, fmt.Sprintf("run %d: %s %s %q by %s via %s", run, c.Name, c.Args, c.Text, by.Login, via))
			return "heard", nil
		},
		Redrive: func(_ context.Context, guid string) error { s.told = append(s.told, "redrive "+guid); return nil },
	})
	s.pages.Route(s.router)
	return s
}

// fill plays scripts of pipeline/testdata/loop, each as a run: of acme/shop and
// acme/secret in turns, one an hour back from today. Without names it plays all.
func (s *site) fill(t testing.TB, names ...string) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "pipeline", "testdata", "loop")
	if len(names) == 0 {
		files, _ := filepath.Glob(filepath.Join(dir, "*.txtar"))
		for _, f := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".txtar"))
		}
	}
	for i, name := range names {
		ar, err := txtar.ParseFile(filepath.Join(dir, name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		p, script, err := pipelinetest.Load(ar)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Play(script); err != nil {
			t.Fatal(err)
		}
		s.keep(t, p.Events, pipeline.Repo{ID: int64(1 + i%2), Owner: "acme", Name: [...]string{"shop", "secret"}[i%2], DefaultBranch: "main"}, i+1,
			today.Add(-time.Duration(len(names)-i)*time.Hour))
	}
	if _, err := s.db.MeasureRuns(context.Background(), func(events []pipeline.Event) (out []record.MetricRow) {
		for _, r := range metrics.Of(events) {
			out = append(out, record.MetricRow(r))
		}
		return out
	}); err != nil {
		t.Fatal(err)
	}
}

// keep stores the events of a run as one of a repository's issue, from a moment on.
func (s *site) keep(t testing.TB, events []pipeline.Event, repo pipeline.Repo, issue int, from time.Time) {
	t.Helper()
	start := *events[0].Data.Start
	start.Repo, start.Task.Issue = repo, issue
	shift := from.Sub(events[0].Time)
	run, err := s.db.CreateRun(context.Background(), fmt.Sprintf("start/%s/%d", repo.Name, issue), start, from, fmt.Sprintf("%032x", issue), nil)
	if err != nil {
		t.Fatal(err)
	}
	rest := slices.Clone(events[1:])
	for i := range rest {
		rest[i].Time = rest[i].Time.Add(shift)
		if rest[i].ID == "" {
			rest[i].ID = fmt.Sprintf("e%d", i)
		}
	}
	if err := s.db.Append(context.Background(), run, rest, nil); err != nil {
		t.Fatal(err)
	}
}

// get reads a page, which must have a status.
func (s *site) get(t testing.TB, path string, status int) string {
	t.Helper()
	return s.answer(t, path, status).Body.String()
}

// answer is get with the headers.
func (s *site) answer(t testing.TB, path string, status int) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != status {
		t.Fatalf("GET %s = %d, want %d:\n%s", path, w.Code, status, w.Body)
	}
	return w
}

// post sends a form and returns where the answer leads.
func (s *site) post(t testing.TB, path, form string, status int) string {
	t.Helper()
	w := s.reply(t, path, form)
	if w.Code != status {
		t.Fatalf("POST %s = %d, want %d:\n%s", path, w.Code, status, w.Body)
	}
	return w.Header().Get("Location")
}

// send sends a form and returns the page that answers it.
func (s *site) send(t testing.TB, path, form string, status int) string {
	t.Helper()
	w := s.reply(t, path, form)
	if w.Code != status {
		t.Fatalf("POST %s = %d, want %d:\n%s", path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

func (s *site) reply(t testing.TB, path, form string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.router.ServeHTTP(w, r)
	return w
}

// has reports what of a page is missing, and what is there although a "-" stands before it.
func has(t testing.TB, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		word, without := strings.CutPrefix(w, "-")
		if strings.Contains(page, word) == without {
			t.Errorf("%q there: %v, want %v\n%s", word, without, !without, page)
		}
	}
}
