package server_test

import (
	"strings"
	"testing"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
)

// A repository without settings is proposed some, with what its tests did; once.
func TestOnboard(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Files: map[string]string{".github/forge.yml": "", "Makefile": "test:\n\tsh test.sh\n"}})
	url, made, err := ts.Forge.Onboard(t.Context(), "acme", "greet")
	if err != nil || !made {
		t.Fatalf("%q, %v, %v", url, made, err)
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	if err != nil || len(pulls) != 1 || pulls[0].Branch != "forge"+server.OnboardBranch {
		t.Fatalf("pull requests: %+v, %v", pulls, err)
	}
	for _, words := range []string{"make test", "1 passed", "exit code 0"} {
		if !strings.Contains(pulls[0].Body, words) {
			t.Errorf("the pull request does not say %q:\n%s", words, pulls[0].Body)
		}
	}
	again, made, err := ts.Forge.Onboard(t.Context(), "acme", "greet")
	if err != nil || made || again != url {
		t.Errorf("again: %q, %v, %v", again, made, err)
	}
	if err := ts.GitHub.As("acme").Merge(servertest.Repo, pulls[0].Number); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ts.Forge.Onboard(t.Context(), "acme", "greet"); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("with settings: %v", err)
	}
	if _, _, err := ts.Forge.Onboard(t.Context(), "acme", "other"); err == nil {
		t.Error("a repository without the App is proposed settings")
	}
}
