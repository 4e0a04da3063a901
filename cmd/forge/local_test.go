package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
)

// feature puts a feature's repository into the local one, and returns its model. A build
// of scripts takes no time.
func (c *cli) feature(f servertest.Feature) string {
	c.t.Helper()
	for name, text := range f.Files() {
		path := filepath.Join(c.repo, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.commit("a feature's repository")
	return c.tape(f.Tape())
}

func (c *cli) commit(message string) {
	c.t.Helper()
	c.git("add", "-A")
	c.git("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", message)
}

// Covers V9: on a local folder the answer to a module's question lets the whole go on, by
// the name of the run, of its module, or of the module's run; and what is said names
// commands that can be typed there.
func TestLocalModuleAsks(t *testing.T) {
	c := newCLI(t)
	f := servertest.Beside(2, 2)
	f.Modules[1].Asks = true
	t.Setenv("FORGE_MODEL", c.feature(f))
	asks := []string{"b asks: ", "Large or small letters?", "Answer with `forge answer 3 CHOICE`"}
	all := c.run(exitWaiting, asks, "run", "--repo", c.repo, "Pieces that say who they are")
	all += c.run(exitDone, asks, "show", "1")
	all += c.run(exitFailed, []string{"There is no module \"x\" at work here; there are a, b."}, "answer", "1/x", "choose", "small")
	all += c.run(exitFailed, []string{"For the module b, which is run 3.", "They are: `forge answer 3 choose ANSWER`, `forge answer 3 later`"}, "answer", "1", "accept")
	all += c.run(exitFailed, []string{"For the module b", "`forge answer 3 choose …`"}, "answer", "1/b", "choose")
	all += c.run(exitDone, []string{"`forge answer 1 stop` · `forge answer 1 resume`"}, "answer", "1", "help")
	all += c.run(exitDone, []string{"Choices: `forge answer 3 choose ANSWER`"}, "show", "1/b", "--why")
	if strings.Contains(all, "/forge") {
		t.Errorf("it names commands of GitHub:\n%s", all)
	}
	c.run(exitDone, []string{"For the module b", "b is in", "Run 1 is verified"}, "answer", "1", "choose", "small")
	if got := c.run(exitDone, []string{"merged"}, "show", "1"); strings.Contains(got, "asks") {
		t.Errorf("it shows what was true before:\n%s", got)
	}
}

// The same by the number of the module's run, and of orders: who stops or ends a module
// or all of it is told how it goes on, and all of it hears of it.
func TestLocalModuleOrders(t *testing.T) {
	c := newCLI(t)
	f := servertest.Beside(2, 2)
	f.Modules[1].Asks = true
	t.Setenv("FORGE_MODEL", c.feature(f))
	c.run(exitWaiting, nil, "run", "--repo", c.repo, "Pieces that say who they are")
	c.run(exitDone, []string{"Run 3 is stopped", "b is stopped. What you commit on its branch forge/", "`forge resume 3`"}, "answer", "3", "stop")
	c.run(exitDone, []string{"b is stopped"}, "show", "1")
	c.run(exitWaiting, []string{"Run 3 is no longer stopped", "`forge answer 3 choose ANSWER`", "b asks"}, "resume", "1/b")
	c.run(exitDone, []string{"Run 1 is stopped"}, "answer", "1", "stop")
	c.run(exitDone, []string{"Run 3 is stopped"}, "show", "1/b")
	c.run(exitWaiting, []string{"b asks"}, "resume", "1")
	c.run(exitDone, []string{"Run 1 is cancelled"}, "answer", "1", "cancel")
	c.run(exitDone, []string{"Run 3 is cancelled"}, "show", "1/b")
	if got := c.git("branch", "--list", "forge/*--*"); got != "" {
		t.Errorf("branches of modules are left: %s", got)
	}
	c.run(exitFailed, []string{"Run 1 has ended"}, "answer", "1", "choose", "small")
}
