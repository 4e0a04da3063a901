package server

import (
	"strings"
	"testing"

	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/config"
)

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
