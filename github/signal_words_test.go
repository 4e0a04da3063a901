package github

import (
	"testing"

	"forge/github/feedback"
)

func TestAnswerOf(t *testing.T) {
	for _, c := range []struct {
		body, reason string
		want         feedback.Stance
	}{
		{"/forge dismiss the caller checks it\nsee upload.go", "the caller checks it\nsee upload.go", feedback.Dismiss},
		{"/forge dismiss", "", feedback.Dismiss},
		{"/forge accept by design", "", feedback.None},
		{" By design. ", "By design.", feedback.Dismiss},
	} {
		if got, reason := answerOf(c.body, "forge"); got != c.want || reason != c.reason {
			t.Errorf("answerOf(%q) = %d, %q; want %d, %q", c.body, got, reason, c.want, c.reason)
		}
	}
}
