package pipeline_test

import (
	"testing"

	. "forge/pipeline"
	"forge/pipeline/upstream"
)

// Who wants work back is told as it is: no person is named where none said anything.
func TestWhyBack(t *testing.T) {
	t.Parallel()
	decided := []upstream.Feedback{{ID: "up/1", Iteration: 1, State: upstream.Resolved, Decision: &upstream.Reply{Choice: upstream.Design}}}
	for _, c := range []struct {
		brief string
		told  []upstream.Feedback
		want  string
	}{
		{"1 error", decided, "1 error"},
		{"", decided, "what was decided of what agents told each other"},
		{"", nil, "a maintainer asked for changes"},
	} {
		r := &Run{Upstream: c.told}
		r.Iterations = []Iteration{{Number: 1, Brief: c.brief}}
		if got := r.WhyBack(&Bounce{Iteration: 1}); got != c.want {
			t.Errorf("%q with %d decisions: %q, want %q", c.brief, len(c.told), got, c.want)
		}
	}
}
