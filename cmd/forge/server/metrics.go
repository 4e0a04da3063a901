package server

import (
	"context"

	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/store"
)

// Measured measures a run for the database.
func Measured(events []pipeline.Event) []store.MetricRow {
	rows := metrics.Of(events)
	out := make([]store.MetricRow, len(rows))
	for i, r := range rows {
		out[i] = store.MetricRow(r)
	}
	return out
}

// ReportMetrics computes a report on repositories together, "" being all of them.
func ReportMetrics(ctx context.Context, db *store.DB, o metrics.Options, repos ...string) (metrics.Report, error) {
	from, to := o.Span()
	sums := metrics.NewSums(o)
	for _, repo := range repos {
		if err := db.EachMetric(ctx, repo, from, to, func(r store.MetricRow) { sums.Add(metrics.Row(r)) }); err != nil {
			return metrics.Report{}, err
		}
	}
	return sums.Report(), nil
}
