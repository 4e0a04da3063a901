package feedback

import "testing"

// Covers H1 and lessons 28, 37: a phrase is read where it is the whole message, and nothing else is.
func TestRead(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Stance{
		"Won't fix.": Dismiss, "won’t fix": Dismiss, "  WONTFIX \n": Dismiss, "**False positive**": Dismiss, "By design!": Dismiss,
		"> is this a bug?\n\nNot a bug.": Dismiss, "Not  needed": Dismiss,
		"Good catch!": Agree, "You’re right.": Agree, "Will fix": Agree, "Fixed": Agree, "Later…": Later, "LGTM": Nothing, "+1": Nothing,
		"Won't fix: the caller checks.": None, "Not a bug?": None, "By design, but broken.": None, "This is not by design": None,
		"> won't fix": None, "```\nby design\n```": None, "Good catch, thanks.": None, "误报": None, "": None,
	} {
		if got := Read(body); got != want {
			t.Errorf("Read(%q) = %d, want %d", body, got, want)
		}
	}
	if n := len(phrases); n < 50 || n > 75 {
		t.Errorf("there are %d phrases, want about sixty", n)
	}
	for p := range phrases {
		if plain(p) != p {
			t.Errorf("the phrase %q is never found: it reads as %q", p, plain(p))
		}
	}
	for p := range toSpeaker {
		if phrases[p] == None {
			t.Errorf("%q is no phrase", p)
		}
	}
}

// Covers H5: what says nothing about code teaches nothing about it.
func TestIdle(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"LGTM!": true, "": true, "> quoted": true, "thanks": true, "👍": true, "🎉🎉": true, "@carol": true, "@carol @octo/team!": true,
		"This leaks the file handle.": false, "Done": false, "@carol this is slow": false, "Nice, but this leaks": false,
	} {
		if got := Idle(body); got != want {
			t.Errorf("Idle(%q) = %v, want %v", body, got, want)
		}
	}
	for body, want := range map[string]bool{"Why?": true, "这里为什么？": true, "Really??": true, "?": false, "Where from? The loader fills it.": false, "Yes.": false} {
		if got := asks(body); got != want {
			t.Errorf("asks(%q) = %v, want %v", body, got, want)
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]bool{
		"dependabot": true, "renovate-bot": true, "k8s-ci-robot": true, "acme-ci": true, "bot-acme": true, "mergebot": true, "x[bot]": true, "jenkins": true,
		"alice": false, "talbot": false, "abbot": false, "robotham": false, "cicero": false, "boss": false,
	} {
		if got := Machine(login); got != want {
			t.Errorf("Machine(%q) = %v, want %v", login, got, want)
		}
	}
}
