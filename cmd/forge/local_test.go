package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/shell"
)

// pieces puts a repository whose feature falls into two modules into the local one, and
// returns its model, whose tape is a file of testdata/modules. A build of scripts takes no
// time.
func (c *cli) pieces(tape string) string {
	c.t.Helper()
	c.write(map[string]string{
		".github/forge.yml": "tests: {commands: [sh test.sh]}\nmodules: {mode: auto, min_gain: 0, parallel: 2}\n",
		"test.sh": "echo TAP version 13\nn=0\nfor t in tests/*.sh; do\n  n=$((n+1))\n" +
			"  if sh \"$t\"; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; fi\ndone\necho 1..$n\n",
		"tests/base.sh": "[ -f test.sh ]\n",
	})
	c.commit("a feature's repository")
	text, err := os.ReadFile(filepath.Join("testdata", "modules", tape))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.tape(string(text))
}

func (c *cli) commit(message string) {
	c.t.Helper()
	c.git("add", "-A")
	c.git(commitArgs(message)...)
}

// Covers V9: on a local folder the answer to a module's question lets the whole go on, by
// the name of the run, of its module, or of the module's run; and what is said names
// commands that can be typed there.
func TestLocalModuleAsks(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.pieces("asks.txtar")
	asks := []string{"b asks: ", "Large or small letters?", "Answer with `forge answer 3 CHOICE`"}
	all := c.run(shell.Waiting, asks, "run", "--repo", c.repo, "Pieces that say who they are")
	all += c.run(shell.Done, asks, "show", "1")
	all += c.run(shell.Failed, []string{"There is no module \"x\" at work here; there are a, b."}, "answer", "1/x", "choose", "small")
	c.run(shell.Misused, []string{`"1/" names no module`}, "answer", "1/", "cancel") // an empty $MODULE ends no run
	all += c.run(shell.Failed, []string{"For the module b, which is run 3.", "They are: `forge answer 3 choose ANSWER`, `forge answer 3 later`"}, "answer", "1", "accept")
	all += c.run(shell.Failed, []string{"For the module b", "`forge answer 3 choose …`"}, "answer", "1/b", "choose")
	all += c.run(shell.Done, []string{"`forge answer 1 stop` · `forge answer 1 resume`"}, "answer", "1", "help")
	all += c.run(shell.Done, []string{"Choices: `forge answer 3 choose ANSWER`"}, "show", "1/b", "--why")
	if strings.Contains(all, "/forge") {
		t.Errorf("it names commands of GitHub:\n%s", all)
	}
	branch := strings.TrimSpace(c.git("branch", "--list", "--format=%(refname:short)", "forge/*"))
	branch, _, _ = strings.Cut(branch, "\n") // the modules' come behind it
	c.git("checkout", "--quiet", branch)
	got := c.run(shell.Waiting, []string{"The repository refuses", "the branch " + branch + " is checked out", "Check out another one there, then type `forge answer 1 continue`"}, "answer", "1", "choose", "small")
	if strings.Contains(got, "GitHub refuses") || strings.Contains(got, "denyCurrentBranch") {
		t.Errorf("it says\n%s", got)
	}
	c.git("checkout", "--quiet", "main")
	c.run(shell.Done, []string{"Run 1 is verified"}, "answer", "1", "continue")
	if got := c.run(shell.Done, []string{"merged"}, "show", "1"); strings.Contains(got, "asks") {
		t.Errorf("it shows what was true before:\n%s", got)
	}
	c.run(shell.Failed, []string{"a run with modules cannot be replayed"}, "replay", "1")
	c.run(shell.Done, nil, "replay", "1", "--tape", filepath.Join(c.dir, "written.txtar"))
}

// The same by the number of the module's run, and of orders: who stops or ends a module
// or all of it is told how it goes on, and all of it hears of it.
func TestLocalModuleOrders(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.pieces("asks.txtar")
	c.run(shell.Waiting, nil, "run", "--repo", c.repo, "Pieces that say who they are")
	c.run(shell.Done, []string{"The module b (run 3) is stopped", "b is stopped. What you commit on its branch forge/", "`forge resume 3`"}, "answer", "3", "stop")
	c.run(shell.Done, []string{"b is stopped"}, "show", "1")
	c.run(shell.Waiting, []string{"The module b (run 3) is no longer stopped", "`forge answer 3 choose ANSWER`", "b asks"}, "resume", "1/b")
	c.run(shell.Done, []string{"Run 1 is stopped"}, "answer", "1", "stop")
	c.run(shell.Done, []string{"The module b (run 3) is stopped"}, "show", "1/b")
	c.run(shell.Waiting, []string{"b asks"}, "resume", "1")
	c.run(shell.Done, []string{"Run 1 is cancelled"}, "answer", "1", "cancel")
	c.run(shell.Done, []string{"The module b (run 3) is cancelled"}, "show", "1/b")
	c.run(shell.Done, []string{" b       cancelled "}, "show", "1")
	if got := c.git("branch", "--list", "forge/*--*"); got != "" {
		t.Errorf("branches of modules are left: %s", got)
	}
	c.run(shell.Failed, []string{"Run 1 has ended"}, "answer", "1", "choose", "small")
}

// byHand commits a file on a branch, as a person does.
func (c *cli) byHand(branch, file, text string) string {
	c.t.Helper()
	dir := filepath.Join(c.t.TempDir(), "hand")
	c.git("worktree", "add", "-q", dir, branch)
	if err := writeFiles(dir, map[string]string{file: text}); err != nil {
		c.t.Fatal(err)
	}
	c.git("-C", dir, "add", "-A")
	c.git(append([]string{"-C", dir}, commitArgs("By hand: "+file)...)...)
	c.git("worktree", "remove", "--force", dir)
	return strings.TrimSpace(c.git("rev-parse", branch))
}

func (c *cli) branch(pattern string) string {
	c.t.Helper()
	return strings.TrimSpace(c.git("branch", "--list", pattern, "--format", "%(refname:short)"))
}

// stuckTape greets in the wrong way, and nobody knows why.
var stuckTape = strings.Replace(servertest.GreeterTape, `new: "echo hello, $1"`, `new: "echo hullo, $1"`, 1) +
	"-- tester */1 --\n>>> submit\nfailures:\n  - {id: T1, cause: logic, analysis: It greets in another way., confidence: 0.3}\n"

// Covers V9, T9: what a person commits on the branch of a local run after taking it over
// is judged, and is the work from then on.
func TestLocalTakeOver(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.tape(stuckTape)
	c.run(shell.Waiting, []string{"`forge answer 1 take-over`"}, "run", "--repo", c.repo, "Put a comma after hello")
	branch := c.branch("forge/*")
	c.run(shell.Done, []string{"Run 1 is stopped", "What you commit on its branch " + branch, "`forge resume 1`"}, "answer", "1", "take-over")
	head := c.byHand(branch, "greet.sh", "echo \"hello, $1\"\n")
	c.run(shell.Done, []string{"reviewing the change", "1 of 1 passed", "verified", "(" + head[:12] + ")"}, "resume", "1")
	if got := c.git("show", branch+":greet.sh"); got != "echo \"hello, $1\"\n" {
		t.Errorf("greet.sh on %s is %q", branch, got)
	}
	c.byHand(branch, "greet.sh", "echo \"hello, $1\" # by hand\n")
	c.run(shell.Done, []string{"somebody pushed to the branch", "verified"}, "answer", "1", "continue")
	c.git("branch", "-D", branch)
	c.run(shell.Waiting, []string{"somebody deleted the branch"}, "answer", "1", "continue")
	c.run(shell.Done, []string{"verified"}, "answer", "1", "continue")
	c.git("rev-parse", branch)
}

// What is on the branch counts, too, where somebody answers without stopping the run.
func TestLocalCommitBeforeAnswer(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.tape(stuckTape)
	c.run(shell.Waiting, nil, "run", "--repo", c.repo, "Put a comma after hello")
	head := c.byHand(c.branch("forge/*"), "greet.sh", "echo \"hello, $1\"\n")
	c.run(shell.Done, []string{"Run 1 is accepted"}, "answer", "1", "accept")
	c.run(shell.Done, []string{"head " + head[:12]}, "show", "1")
}

// during runs a command, and does something once when it prints the words.
func (c *cli) during(words string, do func(), args ...string) (code int, out string) {
	var b bytes.Buffer
	code = Main(c.context(), args, writerFunc(func(p []byte) (int, error) {
		if do != nil && bytes.Contains(p, []byte(words)) {
			do()
			do = nil
		}
		return b.Write(p)
	}), &b)
	return code, b.String()
}

// What is committed while the work goes on is taken in before it is verified: on the
// branch that it began from, whatever is checked out by then, and on its own.
func TestLocalCommitsMeanwhile(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.tape(servertest.GreeterTape)
	code, out := c.during("reviewing the change", func() {
		c.write(map[string]string{"README": "It greets.\n"})
		c.commit("say what it is")
		c.git("checkout", "-q", "-b", "elsewhere")
	}, "run", "--repo", c.repo, "Put a comma after hello")
	if code != shell.Done || !strings.Contains(out, "main has moved on to") || !strings.Contains(out, "taking main in") {
		t.Errorf("exit %d\n%s", code, out)
	}
	branch := c.branch("forge/*")
	c.git("merge-base", "--is-ancestor", "main", branch)
	head := ""
	code, out = c.during("running the tests", func() { head = c.byHand(branch, "notes.txt", "By hand.\n") }, "answer", "1", "continue")
	if code != shell.Done || !strings.Contains(out, "somebody pushed to the branch") || strings.TrimSpace(c.git("rev-parse", branch)) != head {
		t.Errorf("exit %d\n%s", code, out)
	}
	c.run(shell.Done, []string{"verified", head[:12]}, "show", "1")
}
