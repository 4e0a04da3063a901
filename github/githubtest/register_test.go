package githubtest

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-github/v62/github"
)

// The manifest flow makes the App once; its code buys the key once, for an hour.
func TestManifestFlow(t *testing.T) {
	t.Parallel()
	clock := newTestClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	s, err := New(Options{Dir: t.TempDir(), Manifest: manifest(t), Empty: true, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(path string, form url.Values) *http.Response {
		t.Helper()
		resp, err := client.PostForm(s.URL+path, form)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	const text = `{"name":"forge","url":"https://x.example","redirect_url":"http://127.0.0.1:1/done","hook_attributes":{"url":"https://forge.invalid/webhook","active":true},"default_permissions":{"metadata":"read","issues":"write"},"default_events":["issues"]}`
	for _, bad := range []string{`{`, `{"name":"x"}`, `{"name":"x","url":"https://x","redirect_url":"https://evil.example/"}`,
		`{"name":"x","url":"https://x","redirect_url":"http://127.0.0.1:1/","default_events":["installation"]}`} {
		if resp := post("/settings/apps/new", url.Values{"manifest": {bad}}); resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s is answered %d", bad, resp.StatusCode)
		}
	}
	if resp := post("/organizations/acme/settings/apps/new?state=abc", url.Values{"manifest": {text}}); resp.StatusCode != 200 || s.Registered() != 0 {
		t.Fatalf("the form is answered %d; %d Apps", resp.StatusCode, s.Registered())
	}
	form := url.Values{"manifest": {text}, "state": {"abc"}}
	to, err := url.Parse(post("/-/register", form).Header.Get("Location"))
	if err != nil || to.Query().Get("state") != "abc" || to.Host != "127.0.0.1:1" || s.Registered() != 1 {
		t.Fatalf("redirected to %s, %v; %d Apps", to, err, s.Registered())
	}
	if resp := post("/-/register", form); resp.StatusCode != http.StatusUnprocessableEntity || s.Registered() != 1 {
		t.Errorf("the name is taken twice: %d", resp.StatusCode)
	}
	anonymous, err := github.NewClient(nil).WithEnterpriseURLs(s.URL, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	app, _, err := anonymous.Apps.CompleteAppManifest(t.Context(), to.Query().Get("code"))
	if err != nil || app.GetID() != s.AppID || app.GetPEM() != string(s.PrivateKey) || app.GetWebhookSecret() != s.WebhookSecret {
		t.Errorf("app = %d %s, %v", app.GetID(), app.GetSlug(), err)
	}
	if _, resp, err := anonymous.Apps.CompleteAppManifest(t.Context(), to.Query().Get("code")); err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("the code works twice: %v", err)
	}
	s.mu.Lock()
	s.made["late"] = clock.Now().Add(codeOfAppLife)
	s.mu.Unlock()
	clock.Advance(codeOfAppLife)
	if _, _, err := anonymous.Apps.CompleteAppManifest(t.Context(), "late"); err == nil {
		t.Error("an expired code works")
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := s.Deliveries(); len(list) != 1 || list[0].Event != "ping" || list[0].StatusCode != 0 {
		t.Errorf("deliveries: %+v", list)
	}
}
