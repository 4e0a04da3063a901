package pipeline

import (
	"strings"
	"testing"

	"forge/pipeline/upstream"
)

// Covers U3: a matter is known again by its words, with the criteria as a hint: two matters of
// one criterion are two, and one under several criteria is one.
func TestSameFeedback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string // "AC1: text"
		same bool
	}{
		{"AC1: this hosting closes WebSockets", "AC1: WebSockets are closed by this hosting", true},
		{"AC1: this hosting closes WebSockets", "AC2: the hosting closes WebSockets", true},
		{"AC1: this hosting closes WebSockets", "plan: WebSockets get closed on this hosting", true},
		{"AC1,AC2: there are no sockets on this hosting", "plan: this hosting has no sockets there", true},
		{"AC1: 500 ms cannot be reached, the shell alone takes 800 ms", "AC1: the shell takes 800 ms, so that 500 ms cannot be reached", true},
		{"AC1: 500 ms cannot be reached, the shell alone takes 800 ms", "AC1: starting the shell takes 800 ms, more than 500 ms", true},
		{"AC1: the export needs a library that AGENTS.md forbids", "plan: AGENTS.md forbids the library that the export needs", true},
		{"plan: the queue needs a broker that is not installed", "plan: no broker is installed, and step 2 wants a queue", true},
		{"AC1: how is it?", "AC2: How is  it?", true},
		{"plan: the API has no endpoint for deleting", "AC3: there is no endpoint to delete in the API", true},
		{"AC1: no sockets", "AC1: no sockets", true},
		{"AC1: no sockets", "AC2: no sockets", true},

		{"AC1: this hosting closes WebSockets", "AC1: the list has no order to sort by", false},
		{"AC1: no sockets here", "AC1: no disk here", false},
		{"AC1: the date format is not said", "AC1: the time zone is not said", false},
		{"AC1: the database has no column for the colour", "AC1: the template cannot show an image", false},
		{"AC1: 500 ms cannot be reached on this machine", "AC1: the page needs JavaScript, which is off", false},
		{"AC1: the API has no endpoint for deleting", "AC1: the API has no endpoint for searching", false},
		{"AC1: the export needs a library that AGENTS.md forbids", "AC2: the import has no file format", false},
		{"AC1: the date format is not said", "AC1: no date format is named", false}, // one, which two words in three do not tell
		{"AC2: a test needs the network", "plan: a step needs a password", false},
		{"plan: the queue needs a broker that is not installed", "plan: the queue has no place for the results", false},
		{"plan: polling costs too much", "plan: there are no sockets on this hosting", false},
	} {
		of := func(s string) *upstream.Feedback {
			about, text, _ := strings.Cut(s, ": ")
			return &upstream.Feedback{Kind: upstream.Constraint, Ask: upstream.Ask{About: strings.Split(about, ","), Text: text}}
		}
		if got := sameMatter(of(c.a), of(c.b)); got != c.same {
			t.Errorf("%q and %q: %v, %.2f alike", c.a, c.b, got, shared(of(c.a).Text, of(c.b).Text))
		}
	}
	missed := func(text, id string) *upstream.Feedback {
		return &upstream.Feedback{Kind: upstream.Missed, Ask: upstream.Ask{About: []string{id}, Text: text}}
	}
	if !sameMatter(missed("there is no file", "AC1"), missed("the page is empty", "AC1")) || sameMatter(missed("it is not there", "AC1"), missed("it is not there", "AC2")) {
		t.Error("a criterion that is not met is a matter of its own")
	}
}
