package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// The size of a sparkline's drawing; the style sheet scales it.
const (
	sparkWide = 120
	sparkHigh = 28
)

// spark draws a series by day as a small line; days without an observation are
// gaps, a day between two gaps is a dot. It is decoration: the numbers stand beside it.
func spark(series []*float64) template.HTML {
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, v := range series {
		if v != nil {
			low, high, n = min(low, *v), max(high, *v), n+1
		}
	}
	if n == 0 {
		return ""
	}
	if high == low {
		low, high = low-1, high+1
	}
	at := func(i int, v float64) (x, y float64) {
		return 2 + (sparkWide-4)*float64(i)/float64(max(1, len(series)-1)), sparkHigh - 3 - (sparkHigh-6)*(v-low)/(high-low)
	}
	var path, dots strings.Builder
	for i, v := range series {
		if v == nil {
			continue
		}
		x, y := at(i, *v)
		joined := i > 0 && series[i-1] != nil
		if joined {
			fmt.Fprintf(&path, "L%.1f %.1f", x, y)
		} else {
			fmt.Fprintf(&path, "M%.1f %.1f", x, y)
		}
		if !joined && (i == len(series)-1 || series[i+1] == nil) {
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="1.5"/>`, x, y)
		}
	}
	// Only numbers go into it.
	return template.HTML(fmt.Sprintf(`<svg class="spark" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true"><path d="%s"/>%s</svg>`, sparkWide, sparkHigh, path.String(), dots.String())) //nolint:gosec
}
