package main

import (
	"testing"

	"forge/cmd/forge/shell"
)

// Covers S30: the kill switch needs no server; what it says stays said.
func TestPauseCommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.env["FORGE_UNSAFE_NO_SANDBOX"] = "true" // the doctor looks at no sandbox
	c.run(shell.Done, []string{"Nothing is paused"}, "pauses")
	c.run(shell.Done, []string{"The work of all repositories is paused"}, "pause", "the", "model", "goes", "wild")
	c.run(shell.Done, []string{"is paused already"}, "pause")
	c.run(shell.Done, []string{"The work of acme/shop is paused"}, "pause", "--repo", "acme/Shop")
	c.run(shell.Done, []string{"all repositories", "the model goes wild", "acme/shop"}, "pauses")
	c.run(shell.Done, []string{`"repo": ""`, `"reason": "the model goes wild"`}, "pauses", "--json")
	c.run(shell.Failed, []string{"the work of all repositories is paused by", "the model goes wild"}, "doctor")
	c.run(shell.Done, []string{"The work of all repositories goes on", "Still paused: acme/shop"}, "unpause")
	c.run(shell.Failed, []string{"is not paused", "forge pauses"}, "unpause")
	c.run(shell.Done, []string{"The work of acme/shop goes on"}, "unpause", "--repo", "ACME/shop")
	c.run(shell.Misused, []string{"OWNER/NAME"}, "pause", "--repo", "shop")
	c.run(shell.Misused, []string{"OWNER/NAME"}, "pause", "--repo", "")
	c.run(shell.Misused, []string{"takes no arguments"}, "unpause", "now")
}
