package metrics

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Periods returns the periods that metrics are shown for, in days.
func Periods() []int { return []int{7, 30, 90} }

// NearestPeriod returns the period next to a number of days.
func NearestPeriod(days int) int {
	return slices.MinFunc(Periods(), func(a, b int) int { return max(a-days, days-a) - max(b-days, days-b) })
}

// ChangeText shows how a figure moved, for people: "▲ +5 pt", "· −2.0 min" where the
// intervals do not tell the change from chance, "" without anything to compare.
func (f Figure) ChangeText(unit string) string {
	if f.Change == nil {
		return ""
	}
	mark := map[Trend]string{TrendSteady: "·"}[f.Trend]
	sign := "+"
	switch {
	case mark == "" && *f.Change > 0:
		mark = "▲"
	case mark == "":
		mark = "▼"
	}
	v := *f.Change
	if v < 0 {
		sign, v = "−", -v
	}
	if unit == "share" {
		return fmt.Sprintf("%s %s%.0f pt", mark, sign, 100*v)
	}
	return mark + " " + sign + Amount(v, unit)
}

// WriteCSV writes a line for each metric and label; what is not known is empty.
func (r Report) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write([]string{"repo", "from", "to", "metric", "label", "unit", "n", "value", "low_95", "high_95", "method", "median", "p90", "before_n", "before", "change", "trend"}) //nolint:errcheck // Error tells
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	for _, m := range r.Metrics {
		for _, f := range append([]Figure{m.Figure}, m.Labels...) {
			line := []string{r.Repo, r.From, r.To, m.Key, f.Label, m.Unit, "0", "", "", "", "", "", "", "0", "", number(f.Change), string(f.Trend)}
			if e := f.Now; e != nil {
				line[6], line[7], line[10], line[11], line[12] = strconv.FormatInt(e.N, 10), number(&e.Value), e.Method, number(e.Median), number(e.P90)
				if e.Interval != nil {
					line[8], line[9] = number(&e.Interval[0]), number(&e.Interval[1])
				}
			}
			if e := f.Before; e != nil {
				line[13], line[14] = strconv.FormatInt(e.N, 10), number(&e.Value)
			}
			w.Write(line) //nolint:errcheck // Error tells
		}
	}
	w.Flush()
	return w.Error()
}
