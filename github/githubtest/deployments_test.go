package githubtest

import (
	"slices"
	"strings"
	"testing"
)

// An App that is subscribed is told of deployments and how they go; the contract holds
// the shapes. Another one is not.
func TestDeployments(t *testing.T) {
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
		for _, err := range []error{acme.DeploymentStatus(w.repo, id, "strange", ""), acme.DeploymentStatus(w.repo, id+1, "success", ""), w.s.As("stranger").DeploymentStatus(w.repo, id, "success", "")} {
			if err == nil {
				t.Error("what cannot be is taken")
			}
		}
		if _, err := acme.Deploy(w.repo, "production", "nowhere"); err == nil {
			t.Error("what is not there is deployed")
		}
	}
}
