package command

import (
	"strings"
	"testing"
)

// A command that settles something is carried out when nothing else stands on its line,
// in whatever language, and when the note below it is a plain one.
func TestDoubt(t *testing.T) {
	const line, below = "the line goes on after", "may take it back"
	for _, c := range []struct{ name, args, text, want string }{
		{"accept", "", "", ""},
		{"accept", "nicht, bitte warten wir auf Anna", "", line},
		{"accept", "hyväksyn vasta kun Anna on katsonut", "", line},
		{"accept", "only if legal agrees, otherwise do nothing", "", line},
		{"accept", ", thanks!", "", line},
		{"accept", "👍", "", line},
		{"accept", "@anna", "", line},
		{"accept", "all", "", line},
		{"approve", "all", "", ""},
		{"approve", "All", "", ""},
		{"approve", "all but the last", "", line},
		{"approve", "ALLES", "", line},
		{"cancel", "bitte", "", line},
		{"later", "ja", "", line},
		{"without", "b", "", line},
		{"reset", "nein", "", line},
		{"raise", "5", "", ""},
		{"raise", "5 jos Anna sallii", "", line},
		{"dismiss", "F1 nicht, bitte warten", "", ""}, // its argument is the reason
		{"choose", "not the cache", "", ""},
		{"simplify", "no cache", "", ""},
		{"continue", "2 not so many files", "not in main.go", ""}, // words for the work
		{"stop", "bitte", "not yet", ""},                          // what can be taken back
		{"accept", "", "Good enough for the demo.\nThe rest is in ticket 12.", ""},
		{"accept", "", "Gut genug für die Vorführung, danke!", ""},
		{"accept", "", "看起来很好，谢谢", ""},
		{"accept", "", "Fine.\n\n> Do not accept this?\n> /forge cancel", ""}, // quoted
		{"accept", "", "See https://example.org/forge and acme/forge#1.", ""},
		{"accept", "", "Shall we?", below},
		{"accept", "", "当真？好", below},
		{"accept", "", "See https://example.org/?q=1", ""},
		{"accept", "", "And then\n`/forge stop`", below},
		{"accept", "!", "", ""},
		{"accept", ".", "", ""},
	} {
		got := Line{Name: c.name, Args: c.args, Text: c.text}.Doubt("", Below)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("Doubt of %s %q with %q = %q, want %q in it", c.name, c.args, c.text, got, c.want)
		}
	}
	if got := (Line{Name: "raise", Args: "5 euro"}).Doubt("robot auth", "there"); !strings.Contains(got, "`/robot auth raise 5`") || !strings.Contains(got, "notes go there") {
		t.Errorf("Doubt with another slug says %q", got)
	}
	if got := (Line{Name: "accept", Text: "/robot stop"}).Doubt("robot auth", Below); !strings.Contains(got, "hold another command") {
		t.Errorf("Doubt of two commands of another slug says %q", got)
	}
	for _, c := range All {
		if c.Settles && !strings.Contains(Alone, c.Name) {
			t.Errorf("the help does not say that %s stands alone", c.Name)
		}
	}
}
