package main

import (
	"testing"

	"forge/cmd/forge/shell"
)

// The list of servers is empty where none runs, and a server that is not there is not drained.
func TestServersCommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(shell.Done, []string{"No server runs on this database."}, "servers")
	c.run(shell.Done, []string{"[]"}, "servers", "--json")
	c.run(shell.Failed, []string{`there is no server "abc" here`, "forge servers"}, "servers", "drain", "abc")
	c.run(shell.Misused, []string{"takes"}, "servers", "drain")
}
