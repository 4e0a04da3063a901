package github

import (
	"strings"
	"testing"
)

// What an answer says about a finding: the stated phrases, plain negation, and
// nothing where it is not plain. Covers H1, lessons 3.
func TestStanceOf(t *testing.T) {
	for body, want := range map[string]stance{
		"Won't fix.": stanceDismiss,
		"won’t fix":  stanceDismiss,
		"wontfix":    stanceDismiss,
		"This is not a bug, the caller checks it.":       stanceDismiss,
		"This isn't a bug":                               stanceDismiss,
		"False positive: n is never negative here.":      stanceDismiss,
		"It's by design.":                                stanceDismiss,
		"That is intentional":                            stanceDismiss,
		"No, this is intended.":                          stanceDismiss,
		"I don't think this is a bug.":                   stanceDismiss,
		"Does not apply here":                            stanceDismiss,
		"doesn't apply":                                  stanceDismiss,
		"I disagree.":                                    stanceDismiss,
		"I don't agree.":                                 stanceDismiss,
		"Please ignore":                                  stanceDismiss,
		"Out of scope for this change.\n\nThanks!":       stanceDismiss,
		"> is this a bug?\n\nNot a bug.":                 stanceDismiss,
		"Leave it as is!":                                stanceDismiss,
		"This is not a false positive.":                  stanceAgree,
		"this isn't by design":                           stanceAgree,
		"That was never intended.":                       stanceAgree,
		"I doubt that this is a false positive":          stanceAgree,
		"Good catch, thanks.":                            stanceAgree,
		"You're right":                                   stanceAgree,
		"Will fix.":                                      stanceAgree,
		"Fixed in abc123":                                stanceAgree,
		"This is a bug.":                                 stanceAgree,
		"Is this a false positive?":                      stanceNone,
		"Isn't it by design?":                            stanceNone,
		"Maybe a false positive.":                        stanceNone,
		"Not sure this is a false positive":              stanceNone,
		"If it is by design, say so in a comment.":       stanceNone,
		"By design, but you are right: we should fix it": stanceNone,
		"It might be intentional":                        stanceNone,
		"This could be a false positive":                 stanceNone,
		"Why?":                                           stanceNone,
		"Let me think about it.":                         stanceNone,
		"> won't fix\n\nWho says so?":                    stanceNone,
		"```\n// by design\n```":                         stanceNone,
		"See `not a bug`":                                stanceNone,
		"The design is nice":                             stanceNone,
		"":                                               stanceNone,
		"Not wontfix.":                                   stanceAgree,
	} {
		if got := stanceOf(body); got != want {
			t.Errorf("stanceOf(%q) = %d, want %d", body, got, want)
		}
	}
}

func TestAnswerOf(t *testing.T) {
	for _, c := range []struct {
		body, reason string
		want         stance
	}{
		{"/forge dismiss the caller checks it\nsee upload.go", "the caller checks it\nsee upload.go", stanceDismiss},
		{"/forge dismiss", "", stanceDismiss},
		{"/forge accept by design", "", stanceNone},
		{" By design. ", "By design.", stanceDismiss},
	} {
		if got, reason := answerOf(c.body, "forge"); got != c.want || reason != c.reason {
			t.Errorf("answerOf(%q) = %d, %q; want %d, %q", c.body, got, reason, c.want, c.reason)
		}
	}
}

func TestPraise(t *testing.T) {
	for body, want := range map[string]bool{
		"LGTM!": true, "Nice.": true, "": true, "Looks good to me :)": true, "> quoted": true, "thanks": true,
		"This leaks the file handle.": false, "Nice, but this leaks the file handle when open fails": false, "Close it": false,
	} {
		if got := praise(body); got != want {
			t.Errorf("praise(%q) = %v, want %v", body, got, want)
		}
	}
}

// No phrase is both a refusal and a consent, and each is found by itself.
func TestPhrases(t *testing.T) {
	for _, p := range dismissals {
		if got := stanceOf(strings.Join(p, " ")); got != stanceDismiss {
			t.Errorf("stanceOf(%q) = %d, want a dismissal", strings.Join(p, " "), got)
		}
	}
	for _, p := range agreements {
		if got := stanceOf(strings.Join(p, " ")); got != stanceAgree {
			t.Errorf("stanceOf(%q) = %d, want consent", strings.Join(p, " "), got)
		}
	}
}

func FuzzStanceOf(f *testing.F) {
	f.Add("Won't fix: by design, isn't it?")
	f.Add("> a\n```\nb\n")
	f.Fuzz(func(t *testing.T, body string) {
		if s := stanceOf(body); s != stanceNone && s == stanceOf(body+" ?\nMaybe.\nWon't fix.\nGood catch.") {
			t.Errorf("stanceOf(%q) with yes and no behind it is still %d", body, s)
		}
		praise(body)
	})
}
