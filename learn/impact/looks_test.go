package impact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

// What looks back taught is counted by what asked for them, and their budget follows.
func TestLooks(t *testing.T) {
	var list []pipeline.Learning
	add := func(n int, trigger string, change func(*pipeline.Learning)) {
		for range n {
			l := pipeline.Learning{Key: fmt.Sprintf("reflection:abc/%s#%d", trigger, len(list)), Source: pipeline.SourceReflection, State: pipeline.LearningActive}
			change(&l)
			list = append(list, l)
		}
	}
	given := func(l *pipeline.Learning) { l.Recalled = 3 }
	used := func(l *pipeline.Learning) { l.Recalled, l.Used = 3, 1 }
	add(6, "run_ended", used)
	add(20, "run_ended", given)
	add(1, "override/2", used)
	add(3, "override/3", func(*pipeline.Learning) {})
	add(19, "bounced_twice/review", given)
	add(20, "errors", func(l *pipeline.Learning) { l.Recalled, l.Used, l.Against = 1, 1, 1 })
	add(1, "errors", func(l *pipeline.Learning) { l.State = pipeline.LearningForgotten })
	add(20, "half_budget", given)
	add(2, "half_budget", used)
	list = append(list, pipeline.Learning{Key: "human:x/y", Source: pipeline.SourceHuman})
	want := []Look{
		{"run_ended", 26, 26, 6, 0, 1}, {"half_budget", 22, 22, 2, 0, 2.0 / 22 / 0.2}, {"errors", 21, 20, 0, 21, 0.25}, {"bounced_twice", 19, 19, 0, 0, 1},
		{"override", 4, 1, 1, 0, 1},
	}
	got := Looks(list)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for trigger, share := range map[string]float64{"errors": 0.25, "bounced_twice/test": 1, "unknown": 1} {
		if s := ShareOf(got, trigger); s != share {
			t.Errorf("%s: %v of the budget, want %v", trigger, s, share)
		}
	}
	if s := LooksText(got); !strings.Contains(s, "errors         21 learnings; of 20 that runs were given 0 were of use; 21 wrong; 25 % of the budget") || LooksText(nil) != "" {
		t.Errorf("%s", s)
	}
}
