//go:build e2e

package main

import (
	"testing"

	"forge/cmd/forge/shell"
)

// Covers D1, S1: what the double of a workspace cannot show. The same commands once more,
// with a worker process for each work tree and each command in bubblewrap.
func TestInSandbox(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"a task in words":  TestLocalRun,
		"an issue":         TestRunIssue,
		"interrupted":      TestResume,
		"taken over":       TestLocalTakeOver,
		"modules that ask": TestLocalModuleAsks,
		"modules by hand":  modulesByHand,
	} {
		t.Run(name, test)
	}
}

// Covers V9: a person's commit on the branch of a module is judged as the module's own
// work is: what is another module's stays as it was. The script modules_conflict_foreign
// has the rule alone.
func modulesByHand(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.pieces("wrong.txtar")
	c.write(map[string]string{".github/forge.yml": "tests: {commands: [sh test.sh]}\nmodules: {mode: auto, min_gain: 0, parallel: 2, iterations: 1}\n"})
	c.commit("one attempt")
	c.run(shell.Waiting, []string{"b asks"}, "run", "--repo", c.repo, "Pieces that say who they are")
	c.run(shell.Done, []string{"b is stopped", "`forge resume 3`"}, "answer", "3", "stop")
	branch := c.branch("forge/*--b")
	c.byHand(branch, "b/run.sh", "# It says who it is.\necho b\n")
	head := c.byHand(branch, "a/run.sh", "# It says who it is.\necho b\n")
	c.run(shell.Waiting, []string{"b asks"}, "resume", "3")
	c.run(shell.Done, []string{"head " + head[:12]}, "show", "1/b")
	c.run(shell.Waiting, []string{"2 of 2 passed", "b asks", "a/run.sh is in conflict, and belongs to the module a"}, "answer", "3", "continue")
	head = c.byHand(branch, "a/run.sh", ":\n") // as it was
	c.run(shell.Done, []string{"3 of 3 passed", "b is in"}, "answer", "3", "continue")
	c.git("merge-base", "--is-ancestor", head, branch)
}
