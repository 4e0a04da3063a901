package pipeline

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCost covers models without a price: what is not known is not shown as $0.00.
func TestCost(t *testing.T) {
	t.Parallel()
	priced, unpriced := Usage{Calls: 1, Input: 10, Output: 5, MicroUSD: 1_250_000}, Usage{Calls: 1, Input: 10, Output: 5, Unpriced: 15}
	both := priced
	both.Add(unpriced)
	for _, tt := range []struct {
		u    Usage
		want string
	}{{Usage{}, "$0.00"}, {priced, "$1.25"}, {unpriced, "cost unknown"}, {both, "$1.25 + cost unknown"}} {
		if got := tt.u.Cost(); got != tt.want {
			t.Errorf("Cost of %+v is %q, want %q", tt.u, got, tt.want)
		}
	}
	for _, tt := range []struct {
		u    Usage
		want string
	}{{Usage{}, "$0.00 so far"}, {unpriced, "15 tokens of unknown cost so far"}, {both, "$1.25 + cost unknown so far"}} {
		if got := (&Run{Execution: Execution{Usage: tt.u}}).Summary(); !strings.Contains(got, tt.want) {
			t.Errorf("Summary with %+v is %q, want %q", tt.u, got, tt.want)
		}
	}
	// Events of before have the same bytes.
	if out, err := json.Marshal(priced); err != nil || string(out) != `{"calls":1,"input":10,"output":5,"micro_usd":1250000}` {
		t.Errorf("usage is stored as %s, %v", out, err)
	}
}
