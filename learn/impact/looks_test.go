package impact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Covers L7: what looks back taught is counted by what asked for them, and their budget follows.
func TestLooks(t *testing.T) {
	t.Parallel()
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
	for i := range list { // all but the first twenty say the model
		if i >= 20 {
			model := []string{"a/good", "tape:/tmp/x#1"}[min(1, i/60)]
			trigger, n, _ := strings.Cut(strings.TrimPrefix(list[i].Key, "reflection:abc/"), "#")
			list[i].Key = LookKey("abc", trigger, model) + "#" + n
		}
	}
	list = append(list, Taught{Key: "human:x/y"})
	row := func(trigger, model string, learnings, given, used, wrong int, share float64) Look {
		return Look{trigger, model, learnings, given, used, wrong, share}
	}
	want := []Look{
		row("run_ended", "", 26, 26, 6, 0, 1), row("half_budget", "", 22, 22, 2, 0, 2.0/22/0.2), row("errors", "", 21, 20, 0, 21, 0.25),
		row("bounced_twice", "", 19, 19, 0, 0, 1), row("override", "", 4, 1, 1, 0, 1),
		row("", "a/good", 40, 37, 1, 11, 0.25), row("", "tape", 32, 31, 2, 10, 2.0/31/0.2),
	}
	got := Looks(list)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for of, share := range map[[2]string]float64{{"errors", ""}: 0.25, {"bounced_twice/test", ""}: 1, {"unknown", "b/new"}: 1, {"run_ended", "a/good"}: 0.25,
		{"run_ended", "tape:/tmp/y"}: 2.0 / 31 / 0.2, {"errors", "tape:/tmp/y"}: 0.25} {
		if s := ShareOf(got, of[0], of[1]); s != share {
			t.Errorf("%s: %v of the budget, want %v", of, s, share)
		}
	}
	line := "errors         21 learnings; of 20 that runs were given 0 were useful; 21 wrong; 25 % of the budget"
	model := "By the model that looked:\n  a/good         40 learnings; of 37"
	if s := LooksText(got); !strings.Contains(s, line) || !strings.Contains(s, model) || LooksText(nil) != "" {
		t.Errorf("%s", s)
	}
}
