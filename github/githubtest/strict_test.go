package githubtest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v62/github"
)

// do sends a request with a token and returns status and body.
func (w *world) do(method, path, token, body string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, w.s.URL+path, strings.NewReader(body))
	w.must(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	w.must(err)
	return resp.StatusCode, string(text)
}

// narrow asks for a token with some permissions only.
func (w *world) narrow(p *github.InstallationPermissions) string {
	w.t.Helper()
	tok, _, err := w.appClient().Apps.CreateInstallationToken(w.ctx, w.inst, &github.InstallationTokenOptions{Permissions: p})
	w.must(err)
	return tok.GetToken()
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.issue()
	if n != 1 {
		t.Fatalf("the issue is #%d, want #1", n)
	}
	other, err := w.s.AddRepo("acme", "secret", nil)
	w.must(err)
	read, full := w.narrow(&github.InstallationPermissions{Contents: github.String("read"), Issues: github.String("read")}), w.token()
	const denied = "Resource not accessible by integration"
	for _, tc := range []struct {
		name, method, path, token, body string
		status                          int
		text                            string
	}{
		{"granted", "GET", "/api/v3/repos/acme/shop/issues/1", read, "", 200, `"number":1`},
		{"without the prefix", "GET", "/repos/acme/shop/issues/1", read, "", 200, `"number":1`},
		{"not granted", "POST", "/api/v3/repos/acme/shop/issues/1/comments", read, `{"body":"x"}`, 403, denied},
		{"not in the manifest", "POST", "/api/v3/repos/acme/shop/deployments", full, `{"ref":"main"}`, 403, denied},
		{"statuses are only read", "POST", "/api/v3/repos/acme/shop/statuses/main", full, `{"state":"success"}`, 403, denied},
		{"a repository outside the token", "GET", "/api/v3/repos/" + other, full, "", 404, "Not Found"},
		{"no such repository", "GET", "/api/v3/repos/acme/none", full, "", 404, "Not Found"},
		{"no such issue", "GET", "/api/v3/repos/acme/shop/issues/99", full, "", 404, "Not Found"},
		{"no such path", "GET", "/api/v3/repos/acme/shop/nothing", full, "", 404, "Not Found"},
		{"no such token", "GET", "/api/v3/repos/acme/shop", "ghs_nonsense", "", 401, "Bad credentials"},
		{"a token where the App is asked for", "GET", "/api/v3/app", full, "", 401, "could not be decoded"},
		{"writing without a token", "POST", "/api/v3/repos/acme/shop/issues", "", `{"title":"x"}`, 401, "Requires authentication"},
		{"a person without rights", "POST", "/api/v3/repos/acme/shop/issues/1/assignees", w.s.As("mallory").Token, `{"assignees":["alice"]}`, 403,
			"Must have write access"},
		{"a person with rights", "POST", "/api/v3/repos/acme/shop/issues/1/assignees", w.al.Token, `{"assignees":["alice"]}`, 201, `"alice"`},
		{"no JSON", "POST", "/api/v3/repos/acme/shop/issues/1/comments", full, `{`, 400, "Problems parsing JSON"},
		{"no body", "POST", "/api/v3/repos/acme/shop/issues/1/comments", full, `{}`, 422, "missing_field"},
		{"too long", "POST", "/api/v3/repos/acme/shop/issues/1/comments", full, `{"body":"` + strings.Repeat("x", 262145) + `"}`, 422, "body is too long"},
		{"not implemented", "GET", "/api/v3/repos/acme/shop/actions/runs/1/artifacts", full, "", 501, "does not implement"},
		{"workflow by API", "PUT", "/api/v3/repos/acme/shop/contents/.github/workflows/ci.yml", full, `{"message":"m","content":"eA=="}`, 403,
			"without `workflows` permission"},
		{"GraphQL without a token", "POST", "/api/graphql", "", `{"query":"{viewer{login}}"}`, 401, "Bad credentials"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, text := w.do(tc.method, tc.path, tc.token, tc.body)
			if status != tc.status || !strings.Contains(text, tc.text) {
				t.Errorf("%s %s = %d %.200s; want %d with %q", tc.method, tc.path, status, text, tc.status, tc.text)
			}
		})
	}
}

// GitHub asks for contents: write besides pull_requests: write to resolve a
// thread and to leave draft.
func TestGraphQLPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	tok := w.narrow(&github.InstallationPermissions{PullRequests: github.String("write"), Contents: github.String("read")})
	q, _ := json.Marshal(map[string]any{
		"query":     "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}",
		"variables": map[string]any{"id": pr.GetNodeID()},
	})
	status, text := w.do("POST", "/api/graphql", tok, string(q))
	if status != 200 || !strings.Contains(text, `"type":"FORBIDDEN"`) || !strings.Contains(text, `"markPullRequestReadyForReview":null`) {
		t.Errorf("ready with contents: read = %d %s", status, text)
	}
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	if !pulls[0].Draft {
		t.Error("the pull request left draft")
	}
}

func TestAppToken(t *testing.T) {
	t.Parallel()
	// ghinstallation signs with the machine's clock: the server has the same.
	var ahead atomic.Int64
	w := newWorld(t, func(o *Options) {
		o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	tok := w.token()
	if !strings.HasPrefix(tok, "ghs_4242_") || len(tok) < 300 {
		t.Errorf("token = %.20s…, %d characters", tok, len(tok))
	}
	if status, text := w.do("GET", "/api/v3/installation/repositories", tok, ""); status != 200 || !strings.Contains(text, `"total_count":1`) {
		t.Errorf("repositories = %d %s", status, text)
	}
	ahead.Store(int64(61 * time.Minute))
	if status, _ := w.do("GET", "/api/v3/installation/repositories", tok, ""); status != 401 {
		t.Errorf("after an hour: %d, want 401", status)
	}
	// The same clock makes every JSON web token of ghinstallation an expired one.
	if _, _, err := w.appClient().Apps.Get(w.ctx, ""); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("an expired JSON web token: %v, want 401", err)
	}
	ahead.Store(0)
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	w.must(err)
	foreign := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for name, c := range map[string]struct {
		id  int64
		pem []byte
	}{"a foreign key": {w.s.AppID, foreign}, "another App": {w.s.AppID + 1, w.s.PrivateKey}} {
		tr, err := ghinstallation.NewAppsTransport(http.DefaultTransport, c.id, c.pem)
		w.must(err)
		gh, err := github.NewClient(&http.Client{Transport: tr}).WithEnterpriseURLs(w.s.URL, w.s.URL)
		w.must(err)
		if _, _, err := gh.Apps.Get(w.ctx, ""); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%s: %v, want 401", name, err)
		}
	}
}

func TestInstallationLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.s.Suspend("acme", true))
	_, _, err := w.appClient().Apps.CreateInstallationToken(w.ctx, w.inst, nil)
	if e := (*github.ErrorResponse)(nil); !errors.As(err, &e) || e.Response.StatusCode != 403 || !strings.Contains(e.Message, "has been suspended") {
		t.Errorf("token of a suspended installation: %v, want 403", err)
	}
	w.issue() // nobody is told
	w.must(w.s.Suspend("acme", false))
	other, err := w.s.AddRepo("acme", "tools", nil)
	w.must(err)
	_, err = w.s.Install(other)
	w.must(err)
	list, _, err := w.appClient().Apps.ListInstallations(w.ctx, nil)
	w.must(err)
	if len(list) != 1 {
		t.Errorf("%d installations, want 1", len(list))
	}
	w.must(w.s.Uninstall("acme"))
	w.settle()
	want := []string{"installation.suspend", "installation.unsuspend", "installation_repositories.added", "installation.deleted"}
	if got := w.hook.names(); !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}
	if _, resp, err := w.appClient().Apps.CreateInstallationToken(w.ctx, w.inst, nil); err == nil || resp.StatusCode != 404 {
		t.Errorf("token after the end: %v, want 404", err)
	}
}

func TestPushRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.s.SetRules(w.repo, Rule{Type: "pull_request", Pattern: "main"}, Rule{Type: "creation", Pattern: "release/*"},
		Rule{Type: "non_fast_forward", Pattern: "forge/*"}))
	for _, tc := range []struct {
		name, branch, file string
		want               string // empty when it is accepted
	}{
		{"a guarded branch", "main", "a.txt", "GH013: Repository rule violations found for refs/heads/main"},
		{"a branch that must not be made", "release/1", "a.txt", "creations being restricted"},
		{"a workflow", "forge/ci", ".github/workflows/ci.yml",
			"refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission"},
		{"an own branch", "forge/ok", "a.txt", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := w.push(tc.branch, map[string]string{tc.file: "x\n"})
			if (err == nil) != (tc.want == "") || !strings.Contains(out, tc.want) {
				t.Errorf("push to %s: %v %s; want %q", tc.branch, err, out, tc.want)
			}
		})
	}
	rules, _, err := w.gh.Repositories.GetRulesForBranch(w.ctx, "acme", "shop", "main")
	w.must(err)
	if len(rules) != 1 || rules[0].Type != "pull_request" {
		t.Errorf("rules of main = %v", rules)
	}
	// Over and with the wrong token.
	if out, err := w.git(t.TempDir(), "ghs_wrong", "clone", w.s.URL+"/"+w.repo+".git", "."); err == nil {
		t.Errorf("a clone with a wrong token: %s", out)
	}
	dir := t.TempDir()
	if out, err := w.git(dir, w.token(), "clone", w.s.URL+"/"+w.repo, "."); err != nil {
		t.Fatal(out)
	}
	if out, err := w.git(dir, w.token(), "push", "origin", "HEAD:refs/pull/7/head"); err == nil {
		t.Errorf("refs/pull was pushed to: %s", out)
	}
	if err := w.s.SetRules(w.repo, Rule{Type: "update", Pattern: "a;b"}); err == nil {
		t.Error("a pattern for the shell was accepted")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	for _, tc := range []struct {
		name    string
		fault   Fault
		status  int // of the answer; 0 when there is none
		effects int // comments at once
		late    int // comments in the end
		header  string
	}{
		{"none", Fault{Kind: FaultErrorBefore, Operation: "pulls/"}, 201, 1, 1, ""},
		{"before", Fault{Kind: FaultErrorBefore}, 502, 0, 0, ""},
		{"after", Fault{Kind: FaultErrorAfter, Status: 500}, 500, 1, 1, ""},
		{"late", Fault{Kind: FaultErrorLate, Release: release}, 502, 0, 1, ""},
		{"hang before", Fault{Kind: FaultHangBefore}, 0, 0, 0, ""},
		{"hang after", Fault{Kind: FaultHangAfter}, 0, 1, 1, ""},
		{"primary limit", Fault{Kind: FaultPrimaryLimit}, 403, 0, 0, "X-Ratelimit-Reset"},
		{"secondary limit", Fault{Kind: FaultSecondary, Status: 429, RetryAfter: 3 * time.Second}, 429, 0, 0, "Retry-After"},
		{"the second only", Fault{Kind: FaultErrorBefore, Nth: 2}, 201, 1, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			n, tok := w.issue(), w.token()
			tc.fault.Method, tc.fault.Path = "POST", "/comments"
			w.s.AddFault(tc.fault)
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			if tc.status == 0 { // the caller gives up once the call has arrived
				go func() {
					arrived := func() bool {
						i, _ := w.s.Issue(w.repo, n)
						return len(i.Comments) == tc.effects
					}
					if w.s.Wait(ctx, arrived) == nil {
						cancel()
					}
				}()
			}
			req, err := http.NewRequestWithContext(ctx, "POST", w.s.URL+"/api/v3/repos/acme/shop/issues/1/comments", strings.NewReader(`{"body":"x"}`))
			w.must(err)
			req.Header.Set("Authorization", "token "+tok)
			resp, err := http.DefaultClient.Do(req)
			status := 0
			if err == nil {
				status = resp.StatusCode
				resp.Body.Close()
				if tc.header != "" && resp.Header.Get(tc.header) == "" {
					t.Errorf("no header %s in %v", tc.header, resp.Header)
				}
			}
			if i, err := w.s.Issue(w.repo, n); err != nil || status != tc.status || len(i.Comments) != tc.effects {
				t.Errorf("status %d, %d comments; want %d, %d", status, len(i.Comments), tc.status, tc.effects)
			}
			if tc.fault.Release != nil {
				close(release)
			}
			w.must(w.s.Wait(w.ctx, func() bool { i, _ := w.s.Issue(w.repo, n); return len(i.Comments) == tc.late }))
			w.s.ClearFaults()
			if status, _ := w.do("POST", "/api/v3/repos/acme/shop/issues/1/comments", tok, `{"body":"y"}`); status != 201 {
				t.Errorf("after the faults: %d, want 201", status)
			}
		})
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.s.SetDeliveryFaults(DeliveryFaults{Drop: 1})
	w.issue()
	w.settle()
	if got := w.hook.names(); len(got) != 0 {
		t.Fatalf("%v came, though all are dropped", got)
	}
	list, _, err := w.appClient().Apps.ListHookDeliveries(w.ctx, &github.ListCursorOptions{PerPage: 1})
	w.must(err)
	if len(list) != 1 || list[0].GetEvent() != "issues" || list[0].GetStatus() == "OK" {
		t.Fatalf("deliveries = %v, want the failed one first", list)
	}
	full, _, err := w.appClient().Apps.GetHookDelivery(w.ctx, list[0].GetID())
	w.must(err)
	if !strings.Contains(string(*full.Request.RawPayload), `"opened"`) {
		t.Errorf("payload = %s", *full.Request.RawPayload)
	}
	_, _, err = w.appClient().Apps.RedeliverHookDelivery(w.ctx, list[0].GetID())
	if e := (*github.AcceptedError)(nil); !errors.As(err, &e) {
		t.Errorf("redeliver: %v, want 202", err)
	}
	w.settle()
	d := w.s.Deliveries()
	last := d[len(d)-1]
	if got := w.hook.names(); !slices.Equal(got, []string{"issues.opened"}) || last.GUID != list[0].GetGUID() || !last.Redelivery || last.Status != "OK" {
		t.Errorf("redelivered %v as %s (%s); want the same GUID %s", got, last.GUID, last.Status, list[0].GetGUID())
	}
	w.s.SetDeliveryFaults(DeliveryFaults{Duplicate: 1})
	w.must(w.al.Label(w.repo, 1, "forge"))
	w.settle()
	if got := w.hook.names(); !slices.Equal(got, []string{"issues.labeled", "issues.labeled"}) {
		t.Errorf("%v came, want it twice", got)
	}
	w.hook.status = 500
	w.s.SetDeliveryFaults(DeliveryFaults{})
	_, err = w.al.Comment(w.repo, 1, "hello")
	w.must(err)
	w.settle()
	failed, _, err := w.appClient().Apps.ListHookDeliveries(w.ctx, nil)
	w.must(err)
	if failed[0].GetStatusCode() != 500 {
		t.Errorf("status = %v, want 500", failed[0].GetStatusCode())
	}
	if err := w.s.Redeliver(1); err == nil {
		t.Error("a delivery that never was is redelivered")
	}
	mac := hmac.New(sha1.New, []byte(w.s.WebhookSecret))
	mac.Write(last.Payload)
	if last.headers["X-Hub-Signature"] != "sha1="+hex.EncodeToString(mac.Sum(nil)) {
		t.Error("the old signature is wrong")
	}
}
