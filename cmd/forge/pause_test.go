package main

import (
	"testing"
)

// Covers S30: the kill switch needs no server; what it says stays said.
func TestPauseCommand(t *testing.T) {
	c := newCLI(t)
	c.run(exitDone, []string{"Nothing is paused"}, "pauses")
	c.run(exitDone, []string{"The work of all repositories is paused"}, "pause", "the", "model", "goes", "wild")
	c.run(exitDone, []string{"is paused already"}, "pause")
	c.run(exitDone, []string{"The work of acme/shop is paused"}, "pause", "--repo", "acme/Shop")
	c.run(exitDone, []string{"all repositories", "the model goes wild", "acme/shop"}, "pauses")
	c.run(exitDone, []string{`"repo": ""`, `"reason": "the model goes wild"`}, "pauses", "--json")
	c.run(exitFailed, []string{"the work of all repositories is paused by", "the model goes wild"}, "doctor")
	c.run(exitDone, []string{"The work of all repositories goes on", "Still paused: acme/shop"}, "unpause")
	c.run(exitFailed, []string{"is not paused", "forge pauses"}, "unpause")
	c.run(exitDone, []string{"The work of acme/shop goes on"}, "unpause", "--repo", "ACME/shop")
	c.run(exitUsage, []string{"OWNER/NAME"}, "pause", "--repo", "shop")
	c.run(exitUsage, []string{"OWNER/NAME"}, "pause", "--repo", "")
	c.run(exitUsage, []string{"takes no arguments"}, "unpause", "now")
}
