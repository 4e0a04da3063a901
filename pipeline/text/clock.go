package text

import (
	"fmt"
	"time"
)

// Clock renders a duration for people: "1m 05s", "3.2s".
func Clock(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
}
