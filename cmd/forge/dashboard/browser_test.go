//go:build browser

package dashboard

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"forge/cmd/forge/dashboard/browsertest"
)

// Every page, as people see it who like it light, dark or narrow: nothing that
// axe-core objects to, nothing on the console, nothing wider than the window.
func TestBrowserEveryPage(t *testing.T) {
	s := newSite(t)
	s.fill(t)
	web := httptest.NewServer(s.router)
	defer web.Close()
	defer s.pages.Close()
	b := browsertest.New(t)
	for _, page := range []struct{ name, path string }{
		{"overview", "/"}, {"runs", "/runs"}, {"runs-verified", "/runs?state=verified"},
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				name := fmt.Sprintf("%s-%s-%d", page.name, scheme, width)
				b.Scheme(scheme, width)
				b.Open(web.URL + page.path)
				b.Check(name)
				if b.Overflows() {
					t.Errorf("%s is wider than the window", name)
				}
				b.Picture(name)
			}
		}
	}
}

// A page that shows a run takes over what has changed, without being loaded again.
func TestBrowserLiveUpdate(t *testing.T) {
	s := newSite(t)
	web := httptest.NewServer(s.router)
	defer web.Close()
	defer s.pages.Close()
	b := browsertest.New(t)
	if text := b.Open(web.URL + "/"); !strings.Contains(text, "Nothing waits for an answer") {
		t.Fatalf("the overview reads\n%s", text)
	}
	b.Until("the page listens", `!document.getElementById("live").hidden`)
	s.fill(t, "wall")
	s.pages.Notify("run/1", "acme/shop")
	b.Until("the question appears", `document.getElementById("main").innerText.includes("for ann with write access")`)
	b.Check("live")
}
