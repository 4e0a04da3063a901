package server

import (
	"strings"
	"testing"

	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/config"
)

// A repository without settings is proposed some, with what its tests did; once.
func TestOnboard(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{files: map[string]string{".github/forge.yml": "", "Makefile": "test:\n\tsh test.sh\n"}})
	url, made, err := ts.s.Onboard(t.Context(), "acme", "greet")
	if err != nil || !made {
		t.Fatalf("%q, %v, %v", url, made, err)
	}
	pulls, err := ts.gh.Pulls(greetRepo)
	if err != nil || len(pulls) != 1 || pulls[0].Branch != "forge"+onboardBranch {
		t.Fatalf("pull requests: %+v, %v", pulls, err)
	}
	for _, words := range []string{"make test", "1 passed", "exit code 0"} {
		if !strings.Contains(pulls[0].Body, words) {
			t.Errorf("the pull request does not say %q:\n%s", words, pulls[0].Body)
		}
	}
	again, made, err := ts.s.Onboard(t.Context(), "acme", "greet")
	if err != nil || made || again != url {
		t.Errorf("again: %q, %v, %v", again, made, err)
	}
	if err := ts.gh.As("acme").Merge(greetRepo, pulls[0].Number); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ts.s.Onboard(t.Context(), "acme", "greet"); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("with settings: %v", err)
	}
	if _, _, err := ts.s.Onboard(t.Context(), "acme", "other"); err == nil {
		t.Error("a repository without the App is proposed settings")
	}
}

// Whatever a repository's commands and tests are called, the settings can be read, and
// nothing gets out of the list that it stands in.
func TestOnboardTexts(t *testing.T) {
	for name, r := range map[string]pipeline.TestReport{
		"nothing": {None: "there is no test\n# heading"},
		"red":     {Passed: 1, Failed: 1, Failures: []pipeline.Failure{{Test: "x`y | z\n@acme/all <b>"}}, Suites: []pipeline.Suite{{Command: "make test\nmode: manual", Exit: 2, Millis: 700_000}}},
		"late":    {Suites: []pipeline.Suite{{Command: "x", TimedOut: true, Millis: 9e9}}, Unclean: "it took too long", Setup: []string{"12 packages"}},
	} {
		c, err := settings.Repository(configPath, []byte(proposedSettings(&r, "forge")), config.Default())
		if err != nil || c.Mode != "auto" {
			t.Errorf("%s: %v\n%s", name, err, proposedSettings(&r, "forge"))
		}
		text := onboardText(&r, pipeline.Repo{DefaultBranch: "main"})
		if strings.Contains(text, "\n# heading") || strings.Contains(text, "@acme") || strings.Contains(text, "<b>") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
