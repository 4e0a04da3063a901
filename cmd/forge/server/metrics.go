package server

import (
	"context"

	"forge/learn/metrics"
	"forge/pipeline/store"
)

// ReportMetrics computes a report on repositories together, "" being all of them.
func ReportMetrics(ctx context.Context, db *store.DB, o metrics.Options, repos ...string) (metrics.Report, error) {
	from, to := o.Span()
	sums := metrics.NewSums(o)
	for _, repo := range repos {
		if err := db.EachMetric(ctx, repo, from, to, sums.Add); err != nil {
			return metrics.Report{}, err
		}
	}
	return sums.Report(), nil
}
