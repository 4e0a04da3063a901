package command

import (
	"strings"
	"testing"
)

// Every command is in the help, with what it takes, and found by its name.
func TestCommands(t *testing.T) {
	help := Help("")
	seen := map[string]bool{}
	for _, c := range All {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		if c.Name != "help" && !strings.Contains(help, "`/forge "+c.Name) {
			t.Errorf("the help does not tell of %s", c.Name)
		}
		if Find(c.Name).Name != c.Name {
			t.Errorf("Find(%q) = %+v", c.Name, Find(c.Name))
		}
	}
	if c := Find("contineu"); c.Name != "" {
		t.Errorf("Find of an unknown one = %+v", c)
	}
}
