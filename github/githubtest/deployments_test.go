package githubtest

import (
	"slices"
	"strings"
	"testing"
)

// An App that is subscribed is told of deployments and how they go; the contract holds
// the shapes. Another one is not.
func TestDeployments(t *testing.T) {
	t.Parallel()
	for _, subscribed := range []bool{false, true} {
		w := newWorld(t, func(o *Options) {
			if subscribed {
				o.Manifest = []byte(strings.NewReplacer("# deployments:", "deployments:", "# - deployment", "- deployment").Replace(string(o.Manifest)))
			}
		})
		w.settle()
		w.hook.names()
		acme := w.s.As("acme")
		id, err := acme.Deploy(w.repo, "production", "main")
		w.must(err)
		w.must(acme.DeploymentStatus(w.repo, id, "success", "it runs"))
		w.settle()
		var want []string
		if subscribed {
			want = []string{"deployment.created", "deployment_status.created"}
		}
		if got := w.hook.names(); !slices.Equal(got, want) {
			t.Errorf("subscribed %t: webhooks %v, want %v", subscribed, got, want)
		}
		for _, err := range []error{acme.DeploymentStatus(w.repo, id, "strange", ""), acme.DeploymentStatus(w.repo, id+1, "success", ""),
			w.s.As("stranger").DeploymentStatus(w.repo, id, "success", "")} {
			if err == nil {
				t.Error("what cannot be is taken")
			}
		}
		if _, err := acme.Deploy(w.repo, "production", "nowhere"); err == nil {
			t.Error("what is not there is deployed")
		}
	}
}

// An App with the permission makes deployments, which keep what it gave them, and lists
// them, newest first.
func TestAppDeploys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.Manifest = []byte(strings.NewReplacer("# deployments: read", "deployments: write", "# - deployment", "- deployment").Replace(string(o.Manifest)))
	})
	list := w.s.Deployments(w.repo)
	head, err := w.s.As("acme").Deploy(w.repo, "production", "main")
	w.must(err)
	sha := w.s.Deployments(w.repo)[len(list)].SHA
	for _, tc := range []struct {
		body   string
		status int
	}{
		{`{"ref":"` + sha + `","environment":"production","task":"rollback","auto_merge":false,"required_contexts":[],"payload":{"forge":"k"}}`, 201},
		{`{"ref":"` + sha + `","environment":"production","auto_merge":true,"required_contexts":[]}`, 409},
		{`{"ref":"` + sha + `","environment":"production","auto_merge":false}`, 409},
		{`{"ref":"nowhere","auto_merge":false,"required_contexts":[]}`, 422},
		{`{}`, 422},
	} {
		if status, text := w.do("POST", "/api/v3/repos/"+w.repo+"/deployments", w.token(), tc.body); status != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.body, status, text, tc.status)
		}
	}
	status, text := w.do("GET", "/api/v3/repos/"+w.repo+"/deployments?environment=production", w.token(), "")
	back, first := strings.Index(text, `"payload":{"forge":"k"}`), strings.Index(text, `"payload":{}`)
	if status != 200 || back < 0 || first < back || !strings.Contains(text, `"task":"rollback"`) {
		t.Errorf("%d %s", status, text)
	}
	if got := w.s.Deployments(w.repo); len(got) != len(list)+2 || got[len(list)].ID != head {
		t.Errorf("%+v", got)
	}
}
