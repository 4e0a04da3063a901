package feedback

import (
	"testing"
)

func TestAnswerOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, reason string
		want         Stance
	}{
		{"/forge dismiss the caller checks it\nsee upload.go", "the caller checks it\nsee upload.go", Dismiss},
		{"/forge dismiss", "", Dismiss},
		{"/forge accept by design", "", None},
		{" By design. ", "By design.", Dismiss},
	} {
		if got, reason := answerOf(c.body, "forge"); got != c.want || reason != c.reason {
			t.Errorf("answerOf(%q) = %d, %q; want %d, %q", c.body, got, reason, c.want, c.reason)
		}
	}
}
