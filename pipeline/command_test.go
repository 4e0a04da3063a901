package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
)

// Every command is in the help, with what it takes, and found by its name.
func TestCommands(t *testing.T) {
	help := Help()
	seen := map[string]bool{}
	for _, c := range Commands {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		if c.Name != "help" && !strings.Contains(help, "`/forge "+c.Name) {
			t.Errorf("the help does not tell of %s", c.Name)
		}
		if FindCommand(c.Name).Name != c.Name {
			t.Errorf("FindCommand(%q) = %+v", c.Name, FindCommand(c.Name))
		}
	}
	if c := FindCommand("contineu"); c.Name != "" {
		t.Errorf("FindCommand of an unknown one = %+v", c)
	}
}
