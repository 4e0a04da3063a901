package metrics

import (
	"fmt"
	"time"
)

// Amount shows a value in its unit, for people.
func Amount(v float64, unit string) string {
	switch unit {
	case "share":
		return fmt.Sprintf("%.0f %%", 100*v)
	case "ms":
		switch d := time.Duration(v * float64(time.Millisecond)); {
		case d < time.Second:
			return fmt.Sprintf("%.0f ms", v)
		case d < time.Minute:
			return fmt.Sprintf("%.1f s", d.Seconds())
		case d < 2*time.Hour:
			return fmt.Sprintf("%.1f min", d.Minutes())
		case d < 48*time.Hour:
			return fmt.Sprintf("%.1f h", d.Hours())
		default:
			return fmt.Sprintf("%.1f d", d.Hours()/24)
		}
	case "micro-USD":
		if v < 10_000 {
			return fmt.Sprintf("$%.4f", v/1e6)
		}
		return fmt.Sprintf("$%.2f", v/1e6)
	}
	return fmt.Sprintf("%.2f", v)
}
