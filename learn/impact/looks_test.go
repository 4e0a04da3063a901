package impact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What looks back taught is counted by what asked for them, and their budget follows.
func TestLooks(t *testing.T) {
	var list []Taught
	add := func(n int, trigger string, l Taught) {
		for range n {
			l.Key = fmt.Sprintf("reflection:abc/%s#%d", trigger, len(list))
			list = append(list, l)
		}
	}
	given, used := Taught{Given: true}, Taught{Given: true, Used: true}
	add(6, "run_ended", used)
	add(20, "run_ended", given)
	add(1, "override/2", used)
	add(3, "override/3", Taught{})
	add(19, "bounced_twice/review", given)
	add(20, "errors", Taught{Given: true, Used: true, Wrong: true})
	add(1, "errors", Taught{Wrong: true})
	add(20, "half_budget", given)
	add(2, "half_budget", used)
	list = append(list, Taught{Key: "human:x/y"})
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
	line := "errors         21 learnings; of 20 that runs were given 0 were useful; 21 wrong; 25 % of the budget"
	if s := LooksText(got); !strings.Contains(s, line) || LooksText(nil) != "" {
		t.Errorf("%s", s)
	}
}
