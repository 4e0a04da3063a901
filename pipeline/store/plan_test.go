package store

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/record"
)

// A plan is how an engine answers a query. Every query that a page, a report or the
// closing of a day makes of a big table has to be a step, or a stretch, of an index.
type plan struct {
	name, query string
	args        []any
	sqlite      []string // what EXPLAIN QUERY PLAN has to say
	never       []string // and what not, besides a scan of a table
	postgres    []string // what EXPLAIN has to say
}

func backlog(state string) string {
	var args []any
	query := countBacklog + state + ofRepos(anyIndexBut, []string{"acme/site"}, &args)
	return strings.ReplaceAll(query, "$1", "'acme/site'")
}

// planned are the queries that are held to their indexes.
func planned() []plan {
	runs := func(name string, f Filter, sqlite, postgres []string) plan {
		query, args := f.query()
		return plan{"runs " + name, query, args, sqlite, []string{"TEMP B-TREE"}, postgres}
	}
	deliveries := func(name string, f DeliveryFilter, sqlite, postgres []string) plan {
		query, args := f.query()
		return plan{"deliveries " + name, query, args, sqlite, []string{"TEMP B-TREE"}, postgres}
	}
	snapshot := selectMetrics + orderMetrics
	return []plan{
		// Closing a day, and what is new since: which runs have gone on is told by the
		// rows of runs and of cursors; of those the log is read by run; sums are written
		// by their key. No other event is touched, whatever the log holds.
		{"which runs have gone on", selectBehind, []any{metricsCursor, 0, 100},
			[]string{"SEARCH r USING INTEGER PRIMARY KEY (rowid>?)", "SEARCH c USING PRIMARY KEY (name=? AND run=?)"}, []string{"events", "TEMP B-TREE"}, nil},
		{"what is new in a run", selectEvents, []any{1, 5}, []string{"SEARCH events USING PRIMARY KEY (run=? AND seq>?)"}, []string{"TEMP B-TREE"},
			[]string{"events_pkey", "Index Cond: ((run = '1'::bigint) AND (seq > '5'::bigint))"}},
		{"how far a run was read", passCursor, []any{metricsCursor, 1, 9, 5}, []string{"SEARCH cursors USING PRIMARY KEY (name=? AND run=?)"}, []string{"events"},
			[]string{"cursors_pkey", "Index Cond: ((name = 'metrics'::text) AND (run = '1'::bigint))"}},
		{"a day's snapshot", snapshot, []any{"", 20260107, 20260107},
			[]string{"SEARCH metric_snapshots USING PRIMARY KEY (repo=? AND day>? AND day<?)"}, []string{"events", "TEMP B-TREE"},
			[]string{"metric_snapshots_pkey", "(day >= '20260107'::bigint) AND (day <= '20260107'::bigint)"}},
		{"days in one piece", selectDays, []any{"", 20260101, 20260107},
			[]string{"SEARCH metric_days USING PRIMARY KEY (repo=? AND day>? AND day<?)"}, []string{"TEMP B-TREE"}, nil},
		{"questions that wait", countOther, nil, []string{"SCAN gates USING INDEX gates_open", "SEARCH gates USING INDEX gates_open"}, nil, nil},

		runs("newest", Filter{}, nil, []string{"Index Scan Backward using runs_pkey"}),
		runs("before", Filter{Before: 500_000}, []string{"SEARCH runs USING INTEGER PRIMARY KEY (rowid<?)"}, []string{"Index Scan Backward using runs_pkey"}),
		runs("of a state", Filter{State: pipeline.StateFailed, Before: 500_000},
			[]string{"SEARCH runs USING INDEX runs_state (state=? AND id<?)"}, []string{"using runs_state"}),
		runs("of a repository", Filter{Repo: "acme/site", Before: 500_000},
			[]string{"SEARCH runs USING COVERING INDEX runs_repo (repo=? AND id<?)"}, []string{"using runs_repo"}),
		runs("of a repository and a state", Filter{Repo: "acme/site", State: pipeline.StateFailed},
			[]string{"SEARCH runs USING COVERING INDEX runs_repo_state (repo=? AND state=?)"}, []string{"using runs_repo"}),
		runs("of some repositories", Filter{Repos: []string{"acme/site", "acme/rare"}},
			[]string{"SEARCH runs USING COVERING INDEX runs_repo (repo=?)"}, []string{"using runs_repo"}),

		deliveries("newest", DeliveryFilter{}, nil, []string{"Index Scan Backward using deliveries_pkey"}),
		deliveries("of a repository", DeliveryFilter{Repo: "acme/site"},
			[]string{"SEARCH deliveries USING COVERING INDEX deliveries_repo (repo=?)"}, []string{"using deliveries_repo"}),
		deliveries("of some repositories", DeliveryFilter{Repos: []string{"acme/site", "acme/rare"}, Before: 7},
			[]string{"SEARCH deliveries USING COVERING INDEX deliveries_repo (repo=? AND id<?)"}, []string{"using deliveries_repo"}),
		deliveries("heard", DeliveryFilter{SkipQuiet: true, Before: 7}, []string{"USING INDEX deliveries_heard (id<?)"}, []string{"using deliveries_heard"}),
		deliveries("heard of a repository", DeliveryFilter{SkipQuiet: true, Repo: "acme/site"}, []string{"INDEX deliveries_heard_repo (repo=?)"},
			[]string{"using deliveries_heard_repo"}),
		deliveries("heard of some repositories", DeliveryFilter{SkipQuiet: true, Repos: []string{"acme/site", "acme/rare"}, Before: 7},
			[]string{"INDEX deliveries_heard_repo (repo=? AND id<?)"}, []string{"using deliveries_heard_repo"}),
		deliveries("dead of some repositories", DeliveryFilter{State: record.DeliveryDead, Repos: []string{"acme/site", "acme/rare"}},
			[]string{"USING INDEX deliveries_dead"}, []string{"using deliveries_dead"}),
		{"how many are dead", backlog("'dead'"), nil, []string{"USING INDEX deliveries_dead"}, nil, []string{"using deliveries_dead"}},
		deliveries("dead", DeliveryFilter{State: record.DeliveryDead}, []string{"USING INDEX deliveries_dead"}, []string{"using deliveries_dead"}),
	}
}

// Covers M2, M3: no query of a big table reads what it does not need; a day's
// snapshot touches what has gone on since, and not the log.
func TestPlans(t *testing.T) {
	t.Parallel()
	d := openFile(t)
	for _, p := range planned() {
		rows, err := d.reader.Query("EXPLAIN QUERY PLAN "+p.query, p.args...)
		must(t, err)
		lines, err := collect(rows, "explain", func(s *string) error {
			var a, b, c int
			return rows.Scan(&a, &b, &c, s)
		})
		must(t, err)
		never := p.never
		for _, l := range lines { // a scan in the order of an index, which a LIMIT ends, is none
			if l == "SCAN events" || l == "SCAN gates" || l == "SCAN metric_snapshots" {
				never = append(never, l)
			}
		}
		checkPlan(t, p.name, strings.Join(lines, "\n"), p.sqlite, never)
	}
}

func checkPlan(t *testing.T, name, got string, want, never []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: the plan does not say %q:\n%s", name, w, got)
		}
	}
	for _, n := range never {
		if strings.Contains(got, n) {
			t.Errorf("%s: the plan says %q:\n%s", name, n, got)
		}
	}
}
