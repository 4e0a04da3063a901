package work

import "testing"

// What is written as the outcome of a refused delivery is read back as that, and no
// other outcome is.
func TestRefused(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string][2]string{
		refusedBot("dep[bot]", "bots start nothing"):                       {"dep[bot]", "is a bot, and bots start nothing"},
		refusedReader("eve", "start runs"):                                 {"eve", "may not start runs (needs write)"},
		refusedEdit(7, "eve"):                                              {"eve", "may not change the task (needs write)"},
		"ignored: no command":                                              {},
		"run 7 started by mia":                                             {},
		`run 7: answered: "ignored: eve may not start runs (needs write)"`: {},
	} {
		if who, why, ok := Refused(outcome); who != want[0] || why != want[1] || ok != (want[0] != "") {
			t.Errorf("Refused(%q) is %q, %q, %v; want %q", outcome, who, why, ok, want)
		}
	}
}
